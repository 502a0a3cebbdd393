"""The language of a page: texts, names, numbers and times as its reader expects them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias

from catchment.clock import EPOCH
from catchment.errors import CatchmentError, InvalidInput
from catchment.messages import Translator
from catchment.platforms import Platforms
from catchment.web.pages.locale.names import NAMES

LANGUAGES = {"en": "English", "zh": "中文"}

Time: TypeAlias = datetime | str
"""A time, or one in ISO 8601."""
_ALMOST_NOW = timedelta(seconds=5)
_LONG_AGO = timedelta(days=14)


def language(asked: str | None, accepted: str | None) -> str:
    """The language requested by name, else the browser's favourite of ours, else English."""
    if asked in LANGUAGES:
        return asked
    wishes = [_wish(part) for part in (accepted or "")[:1000].split(",")]
    ours = [(weight, name) for weight, name in wishes if name in LANGUAGES and weight > 0]
    # The first of those with the highest weight: browsers list their favourite first.
    return max(ours, key=lambda wish: wish[0])[1] if ours else "en"


def _wish(part: str) -> tuple[float, str]:
    """Weight and language of one part of an Accept-Language header: `zh-CN;q=0.8`."""
    name, _, parameter = part.strip().partition(";")
    match = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", parameter)
    weight = float(match[1]) if match else 0.0 if parameter else 1.0
    return weight, name.split("-")[0].lower()


class Locale(Translator):
    """Texts in one language, for one current time and one time zone."""

    def __init__(
        self, language: str, now: datetime = EPOCH, zone: tzinfo = UTC, platforms: Platforms | None = None
    ) -> None:
        super().__init__(language, platforms.chinese if platforms else {})
        self._now, self._zone = now, zone
        self._titles = platforms.titles if platforms else {}

    def name(self, group: str, name: str, /, **params: object) -> str:
        """The text for a name of a group (a job, a state), or the name itself."""
        return self.lookup(group, name, **params) or name

    def kind(self, name: str) -> str:
        """The title of a kind of source, or the name of a kind of item."""
        return self.lookup("kind", name) or self.name("sort", name)

    def lookup(self, group: str, name: str, /, **params: object) -> str | None:
        """The text for a name; None if there is none."""
        names = self._titles.get(group) or NAMES.get(group, {})
        text = names.get(name)
        return None if text is None else self.gettext(text, **params)

    def error(self, code: str | None, message: str | None, *, is_saved: bool = True) -> str | None:
        """An error in the user's language if its code has a translation, else its message.

        `is_saved`: it is about a stored source, and not about one in a form.
        """
        text = (None if is_saved else self.lookup("unsaved", code)) or self.lookup("error", code) if code else None
        return text or (self.message(message) if message else message)

    def form_error(self, error: CatchmentError, *, is_saved: bool = True) -> str | None:
        """What an error of a form says above it."""
        if isinstance(error, InvalidInput) and error.field is not None:
            return self.gettext("Check the highlighted fields.")
        return self.error(error.code, None, is_saved=is_saved)

    @staticmethod
    def number(count: int) -> str:
        return f"{count:,}"

    @staticmethod
    def share(part: float) -> str:
        """12 %; a small share is not shown as 0 %, nor a large one as 100 %."""
        percent = round(part * 100)
        if part > 0 and percent == 0:
            return "< 1 %"
        return "> 99 %" if part < 1 and percent == 100 else f"{percent} %"

    @staticmethod
    def rate(rate: float) -> str:
        return f"{rate:g}"

    def now(self) -> str:
        """2026-02-25 10:30"""
        return self.day_and_time(self._now)

    def between(self, start: Time, end: Time) -> str:
        return self.span(max(_moment(end) - _moment(start), timedelta(seconds=1)))

    def when(self, at: Time | None) -> str:
        """A relative time: 5 min ago, in 2 h; a date if it is long past."""
        if at is None:
            return self.gettext("never")
        distance = _moment(at) - self._now
        if abs(distance) < _ALMOST_NOW:
            return self.gettext("now" if distance > timedelta() else "just now")
        if -distance > _LONG_AGO:
            return self._local(at).strftime("%Y-%m-%d")
        return self.gettext("in {span}" if distance > timedelta() else "{span} ago", span=self.span(abs(distance)))

    def next(self, at: Time | None) -> str:
        """When something happens next; "now" if it is due already."""
        is_due = at is None or _moment(at) <= self._now
        return self.gettext("now") if is_due else self.when(at)

    def span(self, length: timedelta | float) -> str:
        """A duration in the largest unit that fits at least once."""
        seconds = int(length.total_seconds() if isinstance(length, timedelta) else length)
        if seconds >= 86_400:
            return self.gettext("{count} d", count=seconds // 86_400)
        if seconds >= 3_600:
            return self.gettext("{count} h", count=seconds // 3_600)
        if seconds >= 60:
            return self.gettext("{count} min", count=seconds // 60)
        return self.gettext("{count} s", count=seconds)

    def interval(self, minutes: int) -> str:
        """An interval exactly as it was set, in the largest unit in which it is a whole number."""
        if minutes % 1_440 == 0:
            return self.gettext("{count} d", count=minutes // 1_440)
        if minutes % 60 == 0:
            return self.gettext("{count} h", count=minutes // 60)
        return self.gettext("{count} min", count=minutes)

    def took(self, start: Time, end: Time) -> str:
        """How long something took, also if it took almost no time."""
        length = _moment(end) - _moment(start)
        if length >= timedelta(seconds=1):
            return self.span(length)
        return self.gettext("{count} ms", count=max(0, round(length.total_seconds() * 1000)))

    def day_and_time(self, at: Time) -> str:
        """2026-02-25 10:30, in the user's zone."""
        return self._local(at).strftime("%Y-%m-%d %H:%M")

    def hour(self, at: Time) -> str:
        """02-25 10:00: for the edge of a chart."""
        return self._local(at).strftime("%m-%d %H:00")

    def exactly(self, at: Time) -> str:
        """2026-02-25 10:30:05 +0800: unambiguous."""
        return self._local(at).strftime("%Y-%m-%d %H:%M:%S %z")

    def _local(self, at: Time) -> datetime:
        return _moment(at).astimezone(self._zone)


def _moment(at: Time) -> datetime:
    return at if isinstance(at, datetime) else datetime.fromisoformat(at)
