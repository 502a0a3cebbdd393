"""What the pages say, in English and in Chinese; how they count and tell time.

One catalogue: every entry is a pair, English and Chinese side by side, so that neither can be forgotten. It lies in one
module for each part of the pages.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from catchment.clock import EPOCH
from catchment.pages.words import common, entering, errors, keeping, live, overview, reading, records, sources
from catchment.pages.words.foreign import FOREIGN
from catchment.pages.words.sentences import in_chinese

LANGUAGES = {"en": "English", "zh": "中文"}

CATALOGUE: dict[str, tuple[str, str]] = {}
for _part in (common, entering, errors, keeping, live, overview, reading, records, sources):
    if _twice := CATALOGUE.keys() & _part.WORDS.keys():
        raise AssertionError(f"said twice: {', '.join(sorted(_twice))}")
    CATALOGUE |= _part.WORDS

DONE = frozenset(name.removeprefix("done:") for name in CATALOGUE if name.startswith("done:"))
"""What a reader may be told that they have done."""

# Largest first; a span is told in the largest unit that fits at least once.
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
_ALMOST_NOW = timedelta(seconds=5)
_LONG_AGO = timedelta(days=14)


def language(asked: str | None, accepted: str | None) -> str:
    """The language that was asked for by name, else the browser's favourite of those we speak, else English."""
    if asked in LANGUAGES:
        return asked
    wishes = [_wish(part) for part in (accepted or "")[:1000].split(",")]
    ours = [(weight, name) for weight, name in wishes if name in LANGUAGES and weight > 0]
    # The first of the heaviest: browsers list what they like best first.
    return max(ours, key=lambda wish: wish[0])[1] if ours else "en"


def _wish(part: str) -> tuple[float, str]:
    """Weight and language of one part of an Accept-Language header: `zh-CN;q=0.8`."""
    name, _, parameter = part.strip().partition(";")
    match = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", parameter)
    weight = float(match[1]) if match else 0.0 if parameter else 1.0
    return weight, name.split("-")[0].lower()


class Speech:
    """One language, spoken at one moment, to somebody in one zone of time."""

    def __init__(self, language: str, now: datetime = EPOCH, zone: tzinfo = UTC) -> None:
        self.language, self._now, self._zone = language, now, zone
        self._column = list(LANGUAGES).index(language)

    def __call__(self, name: str, /, **values: object) -> str:
        return CATALOGUE[name][self._column].format(**values)

    def counted(self, name: str, count: int, **values: object) -> str:
        return self(f"{name}_one" if count == 1 else f"{name}_many", count=self.number(count), **values)

    def named(self, group: str, name: str) -> str:
        """Of a name that comes from elsewhere (a job, a kind): our word for it, or the name itself."""
        return self.known(group, name) or name

    def known(self, group: str, name: str) -> str | None:
        """The same; None: we have no word for it."""
        said = CATALOGUE.get(f"{group}:{name}")
        return said[self._column] if said else None

    def told(self, words: str) -> str:
        """What another part of the product says in English (a kind, a setting), in this language."""
        return words if self.language == "en" else FOREIGN.get(words, words)

    def said(self, sentence: str) -> str:
        """What another part of the product has written down in English, in this language."""
        return sentence if self.language == "en" else in_chinese(sentence)

    @staticmethod
    def number(count: int) -> str:
        return f"{count:,}"

    @staticmethod
    def share(part: float) -> str:
        """12 %; a little is not nothing, and almost all is not all."""
        percent = round(part * 100)
        if part > 0 and percent == 0:
            return "< 1 %"
        return "> 99 %" if part < 1 and percent == 100 else f"{percent} %"

    @staticmethod
    def rate(rate: float) -> str:
        return f"{rate:g}"

    # ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def now(self) -> str:
        """2026-02-25 10:30"""
        return self.day_and_time(self._now.isoformat())

    def between(self, start: str, end: str) -> str:
        return self.span(max(datetime.fromisoformat(end) - datetime.fromisoformat(start), timedelta(seconds=1)))

    def when(self, at: str | None) -> str:
        """A moment as people say it: 5 min ago, in 2 h; a date if it is long past."""
        if at is None:
            return self("never")
        distance = datetime.fromisoformat(at) - self._now
        if abs(distance) < _ALMOST_NOW:
            return self("due_now" if distance > timedelta() else "just_now")
        if -distance > _LONG_AGO:
            return self._local(at).strftime("%Y-%m-%d")
        return self("in" if distance > timedelta() else "ago", span=self.span(abs(distance)))

    def next(self, at: str | None) -> str:
        """When something comes next; what is due already comes now."""
        return self("due_now") if at is None or datetime.fromisoformat(at) <= self._now else self.when(at)

    def span(self, length: timedelta | float) -> str:
        seconds = int(length.total_seconds() if isinstance(length, timedelta) else length)
        unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= size), _UNITS[-1])
        return self(unit, count=seconds // size)

    def took(self, start: str, end: str) -> str:
        """How long something took that may be over in a moment."""
        length = datetime.fromisoformat(end) - datetime.fromisoformat(start)
        return self.span(length) if length >= timedelta(seconds=1) else self("milliseconds", count=_millis(length))

    def day_and_time(self, at: str) -> str:
        """2026-02-25 10:30, in the reader's zone."""
        return self._local(at).strftime("%Y-%m-%d %H:%M")

    def hour(self, at: str) -> str:
        """02-25 10:00: for the edge of a chart."""
        return self._local(at).strftime("%m-%d %H:00")

    def exactly(self, at: str) -> str:
        """2026-02-25 10:30:05 +0800: nothing is left to be guessed."""
        return self._local(at).strftime("%Y-%m-%d %H:%M:%S %z")

    def _local(self, at: str) -> datetime:
        return datetime.fromisoformat(at).astimezone(self._zone)


def _millis(length: timedelta) -> int:
    return max(0, round(length.total_seconds() * 1000))
