"""What travels between a visit and the store: a page, the decisions about it, and how a visit ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from catchment.model import (
    Counts,
    Gap,
    Judged,
    Known,
    Lease,
    Point,
    Progress,
    Record,
    RefinedItem,
    Request,
    Result,
    Source,
    Verdict,
)


class RawAnswer(Record, frozen=True):
    """An answer as it came, compressed, with the request as it may be shown."""

    step: str
    request: dict[str, Any]
    url: str
    http_status: int
    headers: dict[str, str]
    reader_version: int
    is_read: bool
    body_hash: bytes
    body: bytes


Key = tuple[str, str]
"""What tells items of one platform apart: scope and external id."""


class NextLook(Record, frozen=True):
    """What follows from a look at an item: when the next one is, and what is known by now."""

    item_id: int
    at: datetime | None
    """None: there is none to come."""
    look_count: int
    failure_count: int = 0
    gone_since: datetime | None = None


class Owed(Record, frozen=True):
    """What is still to be asked for about one item."""

    item_id: int
    external_id: str
    requests: tuple[Request, ...]
    """None are left: it is settled."""
    asked_count: int = 0
    """How much was asked for already, since it is owed."""


class Earlier(Record, frozen=True):
    """An earlier content of an item."""

    fingerprint: bytes
    valid_to: datetime


class Found(Record, frozen=True):
    """What the store knows about a page, for the conclusion."""

    judged: tuple[Judged, ...]
    earlier: Mapping[int, tuple[Earlier, ...]]
    """The earlier contents of the items that were judged edited."""
    open_gaps: tuple[Gap, ...]
    is_body_seen_before: bool
    """These very bytes came once before, with other ones since."""
    points: Mapping[int, Point] = {}
    """The last point of each item whose counters changed, by its id."""


class Ending(Record, frozen=True):
    """How a visit ends: written with its last page, or alone."""

    result: Result
    progress: Progress
    alert: str | None = None
    """Opens the source's alert with these words."""
    is_recovered: bool = False
    """Closes it."""
    retire: str | None = None
    new_target: str | None = None
    new_name: str | None = None


class Closing(Record, frozen=True):
    """The end of one visit, ready to be written."""

    source: Source
    lease: Lease
    run_id: int
    ending: Ending
    outcomes: Mapping[tuple[str, datetime], int] = {}
    """Attempts by outcome and minute."""


class Conclusion(Record, frozen=True):
    """What follows from a page as a whole."""

    judged: tuple[Judged, ...]
    counts: Counts
    valid: int = 0
    """How many of the new ones are valid posts."""
    gap: Gap | None = None
    closed: tuple[tuple[int, str], ...] = ()
    """Gaps that are shown to be none, by id, with the reason."""
    is_seen: bool = True
    """False: the answer is stale, and no sighting moves."""
    proven: Progress | None = None
    """What is known now that a walk is over, where the visit goes on with another one."""
    ending: Ending | None = None
    points: frozenset[Key] = frozenset()
    """The items whose counters are worth a point in their series."""
    first_looks: Mapping[Key, datetime] = {}
    """When the new items are looked at again; those that are not named are not."""
    looks: tuple[NextLook, ...] = ()
    more: Mapping[Key, tuple[Request, ...]] = {}
    """What is to be asked for about items of this page: owed from now on."""
    settled: tuple[Owed, ...] = ()
    """How what was owed stands after this page."""


class Deciding(Protocol):
    """The pure decisions about a page."""

    def recognise(self, strangers: Sequence[RefinedItem], held: Sequence[Known]) -> Mapping[str, Known]:
        """Which of the unknown items are known ones under a new id."""

    def judge(self, known: Known | None, item: RefinedItem) -> Verdict: ...

    def conclude(self, found: Found) -> Conclusion: ...

    def in_rhythm(self, progress: Progress, newest_first: Sequence[datetime]) -> Progress:
        """The progress, with what the times of the source's newest items tell: how many a day, by when the next."""


class Page(Record, frozen=True):
    """What one answer showed, or a few that were asked for one by one, ready to be written."""

    source: Source
    lease: Lease
    run_id: int
    answered_at: datetime
    items: tuple[RefinedItem, ...]
    fingerprint_rule: int
    may_have_new_ids: bool
    """Feeds change their ids now and then; platforms with ids of their own do not."""
    suspects_staleness: bool
    raws: tuple[RawAnswer, ...] = ()
    outcomes: Mapping[tuple[str, datetime], int] = {}
    """Attempts by outcome and minute."""
    item_kind: str | None = None
    """Of items of this kind the source's rhythm is told; None: of all that it showed."""
    is_kept_hot: bool = False
    """Sources of its platform are kept hot: what this page changes makes their hot sets untrue."""
