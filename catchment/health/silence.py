"""Stale but green: a source that answers and shows nothing new for longer than its own rhythm allows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from catchment.model import Record

_LEAST_OF_A_PLATFORM = 3


class Late(Record, frozen=True):
    """A source that was asked in time and showed nothing new in time."""

    source_id: int
    name: str
    platform: str
    expected_by: datetime


def alerts_for(late: Sequence[Late], followed: dict[str, int]) -> dict[str, tuple[str, int | None]]:
    """The alerts that should be open: subject → (message, source id).

    `followed` tells how many sources of each platform have a rhythm at all. Where all of them are silent, it is the
    platform that is: one alert, not a thousand.
    """
    alerts: dict[str, tuple[str, int | None]] = {}
    for platform in sorted({one.platform for one in late}):
        of_it = [one for one in late if one.platform == platform]
        if len(of_it) >= _LEAST_OF_A_PLATFORM and len(of_it) >= followed.get(platform, 0):
            words = f"nothing new from any of the {len(of_it)} sources of {platform} — is it down, or blocking us?"
            alerts[f"platform {platform} silent"] = (words, None)
            continue
        for one in of_it:
            words = (
                f"{one.name} answers, but has shown nothing new since it should have "
                f"({one.expected_by:%Y-%m-%d %H:%M} UTC by its own rhythm) — look at it in a browser"
            )
            alerts[f"source {one.source_id} silent"] = (words, one.source_id)
    return alerts
