"""Platforms that are left alone for a while, because their budget is used up or they told us to wait: what one process
was told, all of them obey."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import structlog

from catchment.clock import micros, moment
from catchment.errors import StoreError
from catchment.fetch import Pauses
from catchment.store.kept import BudgetRows

log = structlog.get_logger(__name__)


class Closings:
    """Kept beside the budgets, in the database. Safe for threads."""

    def __init__(self, rows: BudgetRows) -> None:
        self._rows = rows
        self._own = Pauses()
        """What this process was told itself: it obeys even while the database is away."""

    def close(self, platform: str, until: datetime, now: datetime) -> None:
        """The later end wins: a second answer of the same burst must not shorten what the first one said."""
        if not self._own.until(platform, now):
            log.info("a platform is left alone", platform=platform, until=until.isoformat())
        self._own.begin(platform, until)

        def deed(kept: Any | None) -> tuple[Any, None]:
            later = max(until, _believed(kept, now) or until)
            return {"until": micros(later), "told_at": micros(now)}, None

        try:
            self._rows.change(_name(platform), now, deed)
        except StoreError as error:
            log.error("the others do not know that a platform is left alone", platform=platform, error=str(error))

    def until(self, platforms: Iterable[str], now: datetime) -> dict[str, datetime]:
        """Those of these platforms that may not be asked now, and until when."""
        names = list(platforms)
        kept = self._rows.kept([_name(one) for one in names])
        ends = {one: (self._own.until(one, now), _believed(kept.get(_name(one)), now)) for one in names}
        return {one: max(known) for one, both in ends.items() if (known := [end for end in both if end is not None])}


def _name(platform: str) -> str:
    return f"closed {platform}"


def _believed(kept: Any | None, now: datetime) -> datetime | None:
    """Until when it holds. What was told in the future is not believed: the clock was wrong then."""
    if kept is None or not kept["told_at"] <= micros(now) < kept["until"]:
        return None
    return moment(kept["until"])
