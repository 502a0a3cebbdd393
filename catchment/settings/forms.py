"""How values are written: what is allowed, in words; from text to value, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


@dataclass(frozen=True)
class Form(Generic[T]):
    """How values of one sort are written."""

    allowed: str
    read: Callable[[str], T]
    """Raises ValueError for what is not allowed."""
    show: Callable[[T], str] = str


def within(number: T, minimum: float, maximum: float) -> T:
    # Written so that NaN, which compares false with everything, is refused too.
    if not minimum <= number <= maximum:  # type: ignore[operator]
        raise ValueError
    return number


def whole(minimum: int, maximum: int) -> Form[int]:
    return Form(
        f"a whole number from {minimum} to {maximum}",
        lambda text: within(int(text), minimum, maximum),
    )


def number(minimum: float, maximum: float) -> Form[float]:
    return Form(
        f"a number from {minimum:g} to {maximum:g}",
        lambda text: within(float(text), minimum, maximum),
        lambda value: f"{value:g}",
    )


def choice(*choices: str) -> Form[str]:
    def read(text: str) -> str:
        return choices[choices.index(text.lower())]

    return Form(f"one of {', '.join(choices)}", read)


def address(*schemes: str) -> Form[str]:
    def read(text: str) -> str:
        parts = urlsplit(text)
        # Asking for the port checks it: urlsplit itself takes any text for one.
        if parts.scheme not in schemes or not parts.hostname or parts.port == 0 or re.search(r"\s", text):
            raise ValueError
        return text.rstrip("/")

    return Form(f"an address that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}", read)


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


def read_database(text: str) -> str:
    """The address as SQLAlchemy wants it: PostgreSQL always by psycopg 3, whatever the address calls it."""
    parts = urlsplit(text)
    if parts.scheme == "sqlite" and parts.path.strip("/"):
        return text
    if parts.scheme in ("postgres", "postgresql", "postgresql+psycopg") and parts.path.strip("/"):
        return "postgresql+psycopg" + text[len(parts.scheme) :]
    raise ValueError


def read_moving(text: str) -> int | None:
    return None if text.lower() == "off" else within(int(text), 1, 525_600)


TierRow = tuple[float, float, str, str, int]
"""From which average of valid posts on, hours between visits, which listing, how far back, how many."""
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


flag = Form("true or false (also 1/0, yes/no, on/off)", read_flag, lambda value: str(value).lower())
line = Form("text on one line", read_line)
folder = Form("a folder", lambda text: Path(text).expanduser())
size = Form("a size from 1KB on, as in 20MB", read_size, show_size)
waits = Form("seconds, separated by commas, each up to 3600; or none", read_waits, show_waits)
minutes = whole(1, 525_600)
days = whole(1, 36_500)
moving = Form("off, or a whole number of minutes from 1 to 525600", read_moving, lambda value: str(value or "off"))
tier = Form(
    f"average, hours, {'/'.join(_SORTS)}, {'/'.join(_TIME_FILTERS)} and limit, separated by commas: 20,2,new,week,50",
    read_tier,
    show_tier,
)
web = address("http", "https")
database = Form("sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME", read_database)
