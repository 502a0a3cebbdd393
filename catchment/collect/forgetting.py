"""Forget for good: in the archive, and where it lies ready to be shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from catchment.hot import Hot
from catchment.store import Store
from catchment.store.forgetting import Forget


def forget_for_good(
    store: Store, hot: Hot, wanted: Forget, now: datetime, seen: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """All of it; gives the record."""
    record = store.forgetting.forget(wanted, now, seen)
    hot.forget(wanted.platform)
    return record
