"""Value formats of settings: what is allowed, in words; parsing from text, and formatting back to text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


@dataclass(frozen=True)
class ValueFormat(Generic[T]):
    """The format of one type of value."""

    allowed: str
    read: Callable[[str], T]
    """Raises ValueError for a value that is not allowed."""
    show: Callable[[T], str] = str


SHORTEST_API_KEY = 12


def within(number: T, minimum: float, maximum: float) -> T:
    # Written so that NaN, which compares false with everything, is refused too.
    if not minimum <= number <= maximum:  # type: ignore[operator]
        raise ValueError
    return number


def whole(minimum: int, maximum: int) -> ValueFormat[int]:
    return ValueFormat(f"a whole number from {minimum} to {maximum}", lambda text: within(int(text), minimum, maximum))


def number(minimum: float, maximum: float) -> ValueFormat[float]:
    return ValueFormat(
        f"a number from {minimum:g} to {maximum:g}",
        lambda text: within(float(text), minimum, maximum),
        lambda value: f"{value:g}",
    )


def choice(*choices: str) -> ValueFormat[str]:
    def read(text: str) -> str:
        return choices[choices.index(text.lower())]

    return ValueFormat(f"one of {', '.join(choices)}", read)


def choices(*names: str) -> ValueFormat[tuple[str, ...]]:
    """Several of these names, each once."""

    def read(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names[names.index(part.strip().lower())] for part in text.split(",")))

    return ValueFormat(f"some of {', '.join(names)}, separated by commas", read, ",".join)


def address(*schemes: str) -> ValueFormat[str]:
    def read(text: str) -> str:
        parts = urlsplit(text)
        # Reading the port validates it: urlsplit itself accepts any text.
        if parts.scheme not in schemes or not parts.hostname or parts.port == 0 or re.search(r"\s", text):
            raise ValueError
        return text.rstrip("/")

    return ValueFormat(f"an address that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}", read)


def read_flag(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError


UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def read_size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if not match or match[2].upper() not in UNITS:
        raise ValueError
    return within(int(float(match[1]) * UNITS[match[2].upper()]), 1_000, 10**12)


def show_size(size: int) -> str:
    unit = next(unit for unit in ("GB", "MB", "KB", "B") if size % UNITS[unit] == 0)
    return f"{size // UNITS[unit]}{unit}"


def read_waits(text: str) -> tuple[float, ...]:
    if text.lower() == "none":
        return ()
    return tuple(within(float(wait), 0, 3600) for wait in text.split(","))


def show_waits(waits: tuple[float, ...]) -> str:
    return ",".join(f"{wait:g}" for wait in waits) or "none"


def read_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError
    return text


def read_strong_key(text: str) -> str:
    """Raises ValueError for a key that is short enough to be guessed."""
    key = read_line(text)
    if len(key) < SHORTEST_API_KEY:
        raise ValueError
    return key


def read_database(text: str) -> str:
    """The URL as SQLAlchemy expects it: PostgreSQL always through psycopg 3, whatever driver the URL names."""
    parts = urlsplit(text)
    if parts.scheme == "sqlite" and parts.path.strip("/"):
        return text
    if parts.scheme in ("postgres", "postgresql", "postgresql+psycopg") and parts.path.strip("/"):
        return "postgresql+psycopg" + text[len(parts.scheme) :]
    raise ValueError


def read_moving(text: str) -> int | None:
    return None if text.lower() == "off" else within(int(text), 1, 525_600)


TierRow = tuple[float, float, str, str, int]
"""Minimum average of valid posts, hours between visits, listing, time filter, limit."""
_SORTS, _TIME_FILTERS = ("new", "top", "hot", "rising"), ("hour", "day", "week", "month", "year", "all")


def read_tier(text: str) -> TierRow:
    average, hours, sort, time_filter, limit = (part.strip().lower() for part in text.split(","))
    return (
        within(float(average), 0, 1_000_000),
        within(float(hours), 0.1, 8_760),
        _SORTS[_SORTS.index(sort)],
        _TIME_FILTERS[_TIME_FILTERS.index(time_filter)],
        within(int(limit), 1, 1_000),
    )


def show_tier(row: TierRow) -> str:
    return ",".join(f"{part:g}" if isinstance(part, float) else str(part) for part in row)


flag = ValueFormat("true or false (also 1/0, yes/no, on/off)", read_flag, lambda value: str(value).lower())
line = ValueFormat("text on one line", read_line)
strong_key = ValueFormat(f"at least {SHORTEST_API_KEY} characters", read_strong_key)
folder = ValueFormat("a folder", lambda text: Path(text).expanduser())
size = ValueFormat("a size of at least 1KB, such as 20MB", read_size, show_size)
waits = ValueFormat("seconds, separated by commas, each up to 3600; or none", read_waits, show_waits)
minutes = whole(1, 525_600)


def _user_names(text: str) -> tuple[str, ...]:
    names = [name.strip().removeprefix("@") for name in text.split(",") if name.strip()]
    if not all(re.fullmatch(r"[A-Za-z0-9_]{1,15}", name) for name in names):
        raise ValueError
    return tuple(dict.fromkeys(names))


user_names = ValueFormat("user names on X, separated by commas", _user_names, ",".join)
days = whole(1, 36_500)
moving = ValueFormat(
    "off, or a whole number of minutes from 1 to 525600", read_moving, lambda value: str(value or "off")
)
tier = ValueFormat(
    f"average, hours, {'/'.join(_SORTS)}, {'/'.join(_TIME_FILTERS)} and limit, separated by commas: 20,2,new,week,50",
    read_tier,
    show_tier,
)
web = address("http", "https")


def read_dollars(text: str) -> int:
    """Millionths of a US dollar. Raises ValueError for more than six digits after the point."""
    if not re.fullmatch(r"\$?\d{1,9}(\.\d{1,6})?", text):
        raise ValueError
    whole, _, fraction = text.removeprefix("$").partition(".")
    return int(whole) * 1_000_000 + int(fraction.ljust(6, "0") or 0)


def show_dollars(amount: int) -> str:
    fraction = f"{amount % 1_000_000:06}".rstrip("0")
    return f"{amount // 1_000_000}{'.' if fraction else ''}{fraction}"


PRICES = ("item", "call", "profile", "list_call", "minimum")


def read_prices(text: str) -> dict[str, int]:
    prices = {}
    for part in text.split(","):
        name, _, amount = part.partition("=")
        prices[PRICES[PRICES.index(name.strip().lower())]] = read_dollars(amount.strip())
    return prices


dollars = ValueFormat("an amount in US dollars, such as 2.50", read_dollars, show_dollars)
prices = ValueFormat(
    f"prices in US dollars, separated by commas, of {', '.join(PRICES)}: item=0.00015,minimum=0.00015",
    read_prices,
    lambda value: ",".join(f"{name}={show_dollars(amount)}" for name, amount in value.items()),
)
database = ValueFormat("sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME", read_database)
