"""What is logged while a test runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Collector(logging.Handler):
    def __init__(self, events: list[dict[str, Any]]) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        self._events.append({"event": record.getMessage(), **getattr(record, "fields", {})})


@contextmanager
def logged() -> Iterator[list[dict[str, Any]]]:
    """The events of catchment within this block, of every level, each with its fields."""
    events: list[dict[str, Any]] = []
    logger, collector = logging.getLogger("catchment"), _Collector(events)
    level = logger.level
    logger.addHandler(collector)
    logger.setLevel(logging.DEBUG)
    try:
        yield events
    finally:
        logger.removeHandler(collector)
        logger.setLevel(level)
