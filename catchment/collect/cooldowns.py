"""Cooldowns of platforms and their services, shared by all processes through the database."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from catchment import logs
from catchment.clock import micros, moment
from catchment.errors import StoreError
from catchment.fetch.throttle import Cooldowns
from catchment.store.settings import BudgetRows

log = logs.logger(__name__)


class SharedCooldowns:
    """Stored beside the budgets in the database. Thread-safe."""

    def __init__(self, rows: BudgetRows) -> None:
        self._rows = rows
        self._own = Cooldowns()
        """Cooldowns set in this process; they hold even if they could not be stored."""

    def start(self, platform: str, until: datetime, now: datetime) -> None:
        """Starts a cooldown. The later end wins: a second answer of a burst must not shorten the first one's."""
        if not self._own.until(platform, now):
            log.info("platform cooldown started", platform=platform, until=until.isoformat())
        self._own.begin(platform, until)

        def later_end(kept: Any | None) -> tuple[Any, None]:
            later = max(until, _believed(kept, now) or until)
            return {"until": micros(later), "noted_at": micros(now)}, None

        try:
            self._rows.change(_name(platform), now, later_end)
        except StoreError as error:
            if not error.is_logged:
                log.error(
                    "platform cooldown could not be shared with other processes", platform=platform, error=str(error)
                )

    def until(self, platforms: Iterable[str], now: datetime) -> dict[str, datetime]:
        """Returns those of the given platforms that are in cooldown, with its end."""
        names = list(platforms)
        kept = self._rows.kept([_name(name) for name in names])
        ends = {name: (self._own.until(name, now), _believed(kept.get(_name(name)), now)) for name in names}
        return {name: max(dates) for name, both in ends.items() if (dates := [end for end in both if end is not None])}


def _name(platform: str) -> str:
    return f"closed {platform}"


def _believed(kept: Any | None, now: datetime) -> datetime | None:
    """Returns the end of a stored cooldown unless it is over. One set in the future is ignored: the clock was wrong."""
    if kept is None or not kept["noted_at"] <= micros(now) < kept["until"]:
        return None
    return moment(kept["until"])
