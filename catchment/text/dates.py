"""Parses dates in the formats found in feeds and pages, and times that users ask for, to UTC.

Nearly all dates are RFC 3339, RFC 822 or in the form of X, and take three fast paths. The rest is what programs made of
them: localised months, missing zones, ISO dates in pubDate, Chinese and Korean forms, epoch seconds. Unparseable
dates are None.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import NamedTuple

from catchment.lazy import pattern


class Dated(NamedTuple):
    """A moment in UTC, and whether its zone had to be guessed."""

    at: datetime
    is_zone_guessed: bool = False


RFC_822 = pattern(
    r"(?:[^\W\d]+\.?,?\s*)?"  # the day's name, in any language, adds nothing
    r"(\d{1,2})(?:st|nd|rd|th)?[\s.-]+([^\W\d]{3,})\.?,?[\s-]+(\d{2,4}),?"
    r"(?:\s+(\d{1,2})[:.](\d{2})(?:[:.](\d{2})(?:[.,]\d+)?)?)?\s*(.*)",
    re.DOTALL,
)
NUMERIC = pattern(
    r"(\d{4})\s?[-/.年년]\s?(\d{1,2})(?:\s?[-/.月월]\s?(\d{1,2})\s?[日일.]?)?"
    r"(?:[T\s,]*(上午|下午|오전|오후|午前|午後)?\s?(\d{1,2})[:時时点시]\s?(\d{2})(?:[:分분]\s?(\d{2})(?:[.,]\d+)?)?[秒초분分]?)?\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
OFFSET = pattern(r"(?:GMT|UTC|UT)?\s*([+-])(\d{1,2}):?(\d{2})?(?!\d)", re.IGNORECASE)
HALF_OF_DAY = pattern(r"([ap])\.?m\.?\b\s*", re.IGNORECASE)
AFTERNOON = ("下午", "오후", "午後", "p")

# By their first three letters, or four where three are not enough.
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan ene gen янв sty ιαν oca led",
            "feb fév fev fevr févr фев lut φεβ şub úno",
            "mar mär mrt мар μαρ bře",
            "apr avr abr апр kwi απρ nis dub",
            "may mai mag maj мая май μαι μαϊ μάι kvě",
            "jun juin giu июн cze ιουν ιούν haz čer",
            "jul juil lug июл lip ιουλ ιούλ tem čvc",
            "aug aoû aou ago авг sie αυγ αύγ ağu srp",
            "sep set сен wrz σεπ eyl zář",
            "oct okt ott out окт paź οκτ eki říj",
            "nov ноя lis νοε νοέ kas",
            "dec déc dez dic дек gru δεκ ara pro",
        ),
        start=1,
    )
    for name in names.split()
}

ENGLISH_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MONTH_NUMBERS = {name: f"{number:02}" for number, name in enumerate(ENGLISH_MONTHS, start=1)}

# Hours from UTC. CST and IST are claimed by several countries: RFC 822 means the American CST; IST is India's.
ZONES = {
    name: hours
    for hours, names in {
        0: "ut utc gmt z wet",
        1: "cet bst west met",
        2: "cest eet sast mest",
        3: "msk eest",
        4: "gst msd",
        5.5: "ist",
        8: "hkt sgt awst pht",
        9: "jst kst",
        9.5: "acst",
        10: "aest",
        10.5: "acdt",
        11: "aedt",
        12: "nzst",
        13: "nzdt",
        -3: "brt art adt",
        -4: "edt ast",
        -5: "est cdt",
        -6: "cst mdt",
        -7: "mst pdt",
        -8: "pst akdt",
        -9: "akst",
        -10: "hst",
    }.items()
    for name in names.split()
}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# No date is longer; a longer text is a page in the wrong element.
LONGEST = 100


def read_date(text: str) -> Dated | None:
    """Returns the moment that a text names; None if it names none."""
    text = text.strip()
    try:
        if text[4:5] == "-":
            return _utc(datetime.fromisoformat(text))
        if text[3:5] == ", ":
            return _utc(datetime.fromisoformat(_as_iso(text)))
        if len(text) == 30 and text[3] == text[7] == text[10] == text[19] == text[25] == " ":
            return _utc(datetime.fromisoformat(_of_x_as_iso(text)))
    except (ValueError, OverflowError, KeyError):
        pass  # not in its standard form: left to the lenient parsers
    if not text or len(text) > LONGEST:
        return None
    try:
        return _rfc_822(text) or _numeric(text) or _epoch(text) or _anything(text)
    except (ValueError, OverflowError):
        return None


def asked_moment(text: str) -> datetime:
    """Returns a fixed moment that a user names: ISO 8601, in UTC where no offset is given. ValueError says what is
    right.

    Stricter than `read_date`: a user can ask again, and must not get an answer to another question.
    """
    try:
        at = _iso_moment(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("not a time; use one like 2026-03-01T00:00:00Z") from None


class AskedTime(NamedTuple):
    """A time that a user asks about: a moment, a day, or a span before now. One of the three is set."""

    moment: datetime | None = None
    """Without a zone, it is in the user's own."""
    day: date | int | None = None
    """A date, or how many days before today."""
    ago: timedelta | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether it does not depend on the current time."""
        return self.moment is not None or isinstance(self.day, date)

    def at(self, now: datetime, zone: tzinfo = UTC, *, is_end: bool = False) -> datetime:
        """Returns the moment that is meant. A day means its beginning; with `is_end`, the beginning of the next day.
        Raises ValueError if the calendar has no such moment."""
        try:
            if self.ago is not None:
                return now.astimezone(UTC) - self.ago
            if self.moment is not None:
                return (self.moment if self.moment.tzinfo else self.moment.replace(tzinfo=zone)).astimezone(UTC)
            day = self.day
            if not isinstance(day, date):
                day = now.astimezone(zone).date() - timedelta(days=day or 0)
            return datetime.combine(day + timedelta(days=int(is_end)), time(), zone).astimezone(UTC)
        except OverflowError:
            raise ValueError(NO_TIME) from None


NO_TIME = "not a time; use one like 2026-03-01, 2026-03-01T00:00:00Z, yesterday or 2d (two days ago)"
RELATIVE_TIME = "(today|yesterday|[1-9][0-9]{0,4}(min|h|d|w))"
"""The short forms of a relative time, as a regular expression. Longer ones ("2 days ago") are parsed as well."""
_DAYS = {"today": 0, "yesterday": 1, "今天": 0, "昨天": 1}
_AGO = pattern(
    r"([1-9]\d{0,4})\s*"
    r"(?:(m|min|mins|minutes?|分钟)|(h|hours?|小时)|(d|days?|天)|(w|weeks?|周))(?:\s*ago|前)?",
    re.ASCII,
)
_UNITS = ("minutes", "hours", "days", "weeks")


def asked_time(text: str) -> AskedTime:
    """Parses the time a user asks about: a day, an ISO 8601 moment, `today`, `yesterday`, or a span before now (`2d`,
    `12h`, `30min`, `1w`). ValueError says what is right."""
    text = text.strip()
    word = text.lower()
    if word in _DAYS:
        return AskedTime(day=_DAYS[word])
    if match := _AGO.fullmatch(word):
        count, *units = match.groups()
        name = next(name for name, unit in zip(_UNITS, units, strict=True) if unit)
        return AskedTime(ago=timedelta(**{name: int(count)}))
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            return AskedTime(day=date.fromisoformat(text))
        return AskedTime(moment=_iso_moment(text))
    except (ValueError, OverflowError):
        raise ValueError(NO_TIME) from None


def _iso_moment(text: str) -> datetime:
    # In a URL a plus sign means a space, and times are pasted into URLs as they are shown: with +00:00.
    return datetime.fromisoformat(re.sub(r" (\d\d:\d\d)$", r"+\1", text) if "T" in text else text)


def from_epoch(number: float) -> datetime | None:
    """Returns the moment of a number of seconds since 1970, or of milliseconds if seconds would be absurd."""
    seconds = number / 1000 if abs(number) >= 1e11 else number
    try:
        return EPOCH + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None


def _utc(moment: datetime) -> Dated | None:
    if moment.year == 1:
        return None  # some programs write their zero, the year 1, for "no date"
    if moment.tzinfo is UTC:
        return Dated(moment)
    if moment.tzinfo is None:
        return Dated(moment.replace(tzinfo=UTC), is_zone_guessed=True)
    return Dated(moment.astimezone(UTC))


def _as_iso(text: str) -> str:
    """Reorders `Thu, 01 Jan 2026 10:00:00 GMT` for the fast parser; by position, since most have exactly this form."""
    if text[6:7] == " ":
        text = f"{text[:5]}0{text[5:]}"
    zone = text[26:]
    return f"{text[12:16]}-{MONTH_NUMBERS[text[8:11]]}-{text[5:7]}T{text[17:25]}{'Z' if zone == 'GMT' else zone}"


def _of_x_as_iso(text: str) -> str:
    """Reorders `Thu Jan 01 10:00:00 +0000 2026`, as X writes it."""
    return f"{text[26:]}-{MONTH_NUMBERS[text[4:7]]}-{text[8:10]}T{text[11:19]}{text[20:25]}"


def _rfc_822(text: str) -> Dated | None:
    match = RFC_822.match(text)
    if not match:
        return None
    day, month_name, year, hour, minute, second, rest = match.groups()
    month = _month(month_name)
    if not month:
        return None
    return _moment(_full_year(year), month, int(day), _hour(hour, rest), minute, second, rest)


def _month(name: str) -> int | None:
    name = name.casefold()
    return MONTHS.get(name[:3]) or MONTHS.get(name[:4])


def _full_year(year: str) -> int:
    """Expands a year. Two digits as in RFC 2822: 49 is 2049, 50 is 1950; three digits count from 1900."""
    value = int(year)
    if len(year) == 4:
        return value
    return value + (2000 if value < 50 else 1900)


def _numeric(text: str) -> Dated | None:
    """Parses dates with the year first: 2005/11/9 12:30, 2005年11月9日, 2005-11-09 오후 11:23:17, 2005-11."""
    match = NUMERIC.match(text)
    if not match:
        return None
    year, month, day, half, hour, minute, second, rest = match.groups()
    return _moment(int(year), int(month), int(day or 1), _hour(hour, half or rest), minute, second, rest)


def _hour(hour: str | None, words: str) -> int:
    """Returns the hour of 24, where the words around it may say morning or afternoon."""
    value = int(hour or 0)
    half = HALF_OF_DAY.match(words)
    marker = half[1].lower() if half else words
    if marker in AFTERNOON and value < 12:
        return value + 12
    is_midnight = value == 12 and (marker == "a" or marker in ("上午", "오전", "午前"))
    return 0 if is_midnight else value


def _moment(
    year: int, month: int, day: int, hour: int, minute: str | None, second: str | None, rest: str
) -> Dated | None:
    # Leap seconds and 24:00 are times too: counted on from the day's beginning.
    time = timedelta(hours=hour, minutes=int(minute or 0), seconds=int(second or 0))
    if time > timedelta(days=1):
        return None
    offset = _offset(HALF_OF_DAY.sub("", rest, count=1))
    if offset is None:
        return _utc(datetime(year, month, day) + time)  # noqa: DTZ001 — the zone is missing, and marked so
    return _utc(datetime(year, month, day, tzinfo=UTC) + time - offset)


def _offset(rest: str) -> timedelta | None:
    """Returns the offset of a time's zone from UTC; None if there is none, or an unknown one."""
    if match := OFFSET.match(rest):
        sign, hours, minutes = match.groups()
        ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return -ahead if sign == "-" else ahead
    words = rest.split(None, 1)
    hours_ahead = ZONES.get(words[0].strip("()").lower()) if words else None
    return None if hours_ahead is None else timedelta(hours=hours_ahead)


def _epoch(text: str) -> Dated | None:
    """Parses nine to thirteen digits as seconds or milliseconds since 1970."""
    moment = from_epoch(float(text)) if text.isdecimal() and 9 <= len(text) <= 13 else None
    return Dated(moment) if moment else None


def _anything(text: str) -> Dated | None:
    """Parses with a lenient parser, but only if it adds nothing: parsed on another day, and with the day before the
    month, the result must be the same."""
    if not any(char.isdigit() for char in text):
        return None
    from dateutil import parser  # last resort, hardly ever needed

    days = (datetime(2001, 2, 3), datetime(2012, 12, 21))  # noqa: DTZ001 — only their difference matters
    at, other = (parser.parse(text, default=day, dayfirst=day == days[1], tzinfos=_zone) for day in days)
    return _utc(at) if at == other else None


def _zone(name: str | None, seconds: int | None) -> timezone | None:
    """Returns a zone by its offset, or else by its name; None if unknown. Given a table instead of this function, the
    parser would warn of each unknown name, and remember the warning forever."""
    if seconds is not None:
        return timezone(timedelta(seconds=seconds))
    hours = ZONES.get((name or "").lower())
    return None if hours is None else timezone(timedelta(hours=hours))
