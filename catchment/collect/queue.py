"""Queue of the claimed sources of a run: in progress, or waiting for a worker. Decides which may begin; uses no
threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from catchment.model import Record
from catchment.store.sources.sources import Claimed


class KindLimit(Record, frozen=True):
    """Limit for kinds of which only a few sources are visited at once, however many workers are free."""

    batch: int
    """How many are claimed at a time."""
    at_once: int


class Queue:
    def __init__(self, hands: int, lanes: Mapping[str, KindLimit]) -> None:
        """`lanes` are the limits by kind; sources of other kinds take any free worker."""
        self.hands, self._lanes = hands, lanes
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
        """How many more workers are free; sources that wait for their kind's limit need none yet."""
        waiting = sum(1 for claim in self._waiting if claim.source.kind not in self._lanes)
        return max(0, self.hands - self.at_work - waiting)

    def room(self) -> dict[str, int]:
        """Returns how many sources of each limited kind may be claimed: a batch, once all of the last have begun."""
        waiting = {claim.source.kind for claim in self._waiting}
        is_full = self.at_work >= self.hands
        return {kind: 0 if is_full or kind in waiting else lane.batch for kind, lane in self._lanes.items()}

    def join(self, claimed: Sequence[Claimed]) -> None:
        self._waiting += claimed

    def begin(self) -> list[Claimed]:
        """Returns the sources that may begin now, and counts them as in progress."""
        return self._taken(self._may_begin)

    def _may_begin(self, claimed: Claimed) -> bool:
        kind = claimed.source.kind
        lane = self._lanes.get(kind)
        if self.at_work >= self.hands or (lane is not None and self._at_work[kind] >= lane.at_once):
            return False
        self._at_work[kind] += 1
        return True

    def done(self, kind: str) -> None:
        self._at_work[kind] -= 1

    def leave(self, is_leaving: Callable[[Claimed], bool]) -> list[Claimed]:
        """Removes and returns waiting sources that leave without having been visited."""
        return self._taken(is_leaving)

    def _taken(self, is_taken: Callable[[Claimed], bool]) -> list[Claimed]:
        taken = [claim for claim in self._waiting if is_taken(claim)]
        gone = {claim.source.id for claim in taken}
        self._waiting = [claim for claim in self._waiting if claim.source.id not in gone]
        return taken
