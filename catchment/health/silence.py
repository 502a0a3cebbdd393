"""Stale but green: a source that answers and shows nothing new for longer than its own rhythm allows.

Whether nobody posted, or the platform is down or blocks us, tells its canary: the source that is never silent for long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from catchment.model import Alarm, Record

_LEAST_OF_A_PLATFORM = 3


class Late(Record, frozen=True):
    """A source that was asked in time and showed nothing new in time."""

    source_id: int
    name: str
    platform: str
    expected_by: datetime


class Rhythm(Record, frozen=True):
    """A source that is followed and has a rhythm."""

    source_id: int
    name: str
    platform: str
    expected_by: datetime
    newest_shown_at: datetime | None
    last_new_at: datetime | None

    @property
    def patience(self) -> timedelta:
        """How long it may be silent: the shorter, the busier it is."""
        return self.expected_by - self.newest_shown_at if self.newest_shown_at else timedelta.max


def canaries_among(
    followed: Sequence[Rhythm], platforms: Collection[str], named: Mapping[str, int]
) -> dict[str, Rhythm]:
    """The canary of each of these platforms, and of those that have one by name: that one, else the busiest."""
    canaries: dict[str, Rhythm] = {}
    for one in sorted(followed, key=lambda one: (one.patience, one.source_id)):
        if one.platform in platforms:
            canaries.setdefault(one.platform, one)
    return canaries | {one.platform: one for one in followed if named.get(one.platform) == one.source_id}


def alarms_for(late: Sequence[Late], followed: Sequence[Rhythm], canaries: Mapping[str, Rhythm]) -> list[Alarm]:
    """What should be alarmed about.

    Where a whole platform is silent there is one alert, not a thousand: where all its sources with a rhythm are late,
    or where its canary is and nothing new came from any other since it should have sung.
    """
    alarms: list[Alarm] = []
    counts = Counter(one.platform for one in followed)
    for platform in sorted({one.platform for one in late}):
        of_it = [one for one in late if one.platform == platform]
        canary = canaries.get(platform)
        if canary is not None and _is_silenced(canary, of_it, followed):
            alarms.append(Alarm(f"platform {platform} silent", _platform_words(canary, platform)))
        elif len(of_it) >= _LEAST_OF_A_PLATFORM and len(of_it) >= counts[platform]:
            words = f"nothing new from any of the {len(of_it)} sources of {platform} — is it down, or blocking us?"
            alarms.append(Alarm(f"platform {platform} silent", words))
        else:
            is_well = canary is not None and all(one.source_id != canary.source_id for one in of_it)
            for one in of_it:
                words = _source_words(one, canary if is_well else None)
                alarms.append(Alarm(f"source {one.source_id} silent", words, source_id=one.source_id))
    return alarms


def _is_silenced(canary: Rhythm, late: Sequence[Late], followed: Sequence[Rhythm]) -> bool:
    """The canary is late, and nobody else on its platform has shown anything new since half of its time was over."""
    others = [one for one in followed if one.platform == canary.platform and one.source_id != canary.source_id]
    is_late = any(one.source_id == canary.source_id for one in late)
    if not is_late or not others or canary.newest_shown_at is None:
        return False
    since = canary.expected_by - canary.patience / 2
    return all(one.last_new_at is None or one.last_new_at < since for one in others)


def _platform_words(canary: Rhythm, platform: str) -> str:
    return (
        f"{platform} is silent: {canary.name} (source {canary.source_id}), which is its busiest, should have shown "
        f"something new by {canary.expected_by:%Y-%m-%d %H:%M} UTC, and no other source of it has since — it "
        f"is down, or blocks us"
    )


def _source_words(one: Late, canary: Rhythm | None) -> str:
    words = (
        f"{one.name} answers, but has shown nothing new since it should have "
        f"({one.expected_by:%Y-%m-%d %H:%M} UTC by its own rhythm)"
    )
    if canary is not None:
        words += f"; {one.platform} itself is well ({canary.name} shows new things), so nobody posted, or it has moved"
    return f"{words} — look at it in a browser"
