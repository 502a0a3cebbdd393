"""Budgets of one process alone, in the place of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock
from typing import Any, TypeVar

from catchment.fetch.budgets import StoredBudgets

T = TypeVar("T")


class MemoryRows:
    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}
        self._lock = Lock()

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self._kept[name] for name in names if name in self._kept}

    def change(self, name: str, now: datetime, decide: Callable[[Any | None], tuple[Any, T]]) -> T:
        with self._lock:
            self._kept[name], result = decide(self._kept.get(name))
            return result


class MemoryBudgets(StoredBudgets):
    def __init__(self) -> None:
        super().__init__(MemoryRows())
