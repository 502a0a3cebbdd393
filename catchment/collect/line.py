"""The sources of a round that are claimed: at work, or waiting for a hand. Decides who may begin; knows no threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from catchment.model import Record
from catchment.store.sources import Claimed


class Lane(Record, frozen=True):
    """For kinds whose sources are visited a few at once, however many hands are free."""

    batch: int
    """So many are claimed at a time."""
    at_once: int


class Line:
    def __init__(self, hands: int, lanes: Mapping[str, Lane]) -> None:
        """`lanes` by kind; sources of other kinds go wherever a hand is free."""
        self._hands, self._lanes = hands, lanes
        self._waiting: list[Claimed] = []
        self._at_work: Counter[str] = Counter()
        """By kind."""

    def __bool__(self) -> bool:
        return self.at_work > 0 or bool(self._waiting)

    @property
    def at_work(self) -> int:
        return self._at_work.total()

    @property
    def free(self) -> int:
        """For how many more there would be a hand; those that wait for their lane need none yet."""
        waiting = sum(1 for one in self._waiting if one.source.kind not in self._lanes)
        return max(0, self._hands - self.at_work - waiting)

    def room(self) -> dict[str, int]:
        """Of each kind that has a lane, how many may be claimed: a batch, once all of the last one are under way."""
        waiting = {one.source.kind for one in self._waiting}
        is_full = self.at_work >= self._hands
        return {kind: 0 if is_full or kind in waiting else lane.batch for kind, lane in self._lanes.items()}

    def join(self, claimed: Sequence[Claimed]) -> None:
        self._waiting += claimed

    def begin(self) -> list[Claimed]:
        """Those that may begin now; they are at work from here on."""
        return self._taken(self._may_begin)

    def _may_begin(self, one: Claimed) -> bool:
        kind = one.source.kind
        lane = self._lanes.get(kind)
        if self.at_work >= self._hands or (lane is not None and self._at_work[kind] >= lane.at_once):
            return False
        self._at_work[kind] += 1
        return True

    def done(self, kind: str) -> None:
        self._at_work[kind] -= 1

    def leave(self, is_leaving: Callable[[Claimed], bool]) -> list[Claimed]:
        """Those of the waiting that go away again without having been visited."""
        return self._taken(is_leaving)

    def _taken(self, is_taken: Callable[[Claimed], bool]) -> list[Claimed]:
        taken = [one for one in self._waiting if is_taken(one)]
        gone = {one.source.id for one in taken}
        self._waiting = [one for one in self._waiting if one.source.id not in gone]
        return taken
