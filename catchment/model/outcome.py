"""Results: counts, gaps, the outcome of a visit, leases, events, alerts and watches."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from catchment.model.record import Record


class Gap(Record, frozen=True):
    """A period in which items are missing, or may be."""

    is_certain: bool
    """Items are known to be missing, not just possibly."""
    from_at: datetime
    """Time of the newest item stored before it."""
    to_at: datetime
    """Time of the oldest item shown after it."""
    cause: str
    from_ids: tuple[str, ...] = ()
    id: int | None = None
    to_ids: tuple[str, ...] = ()
    """The items at the upper edge of what is missing: those of `to_at`, or of `repaired_from_at`."""
    repaired_from_at: datetime | None = None
    """A repair has stored what is newer than this; None: nothing was repaired so far."""

    @property
    def open_to_at(self) -> datetime:
        """The upper edge of what is missing."""
        return self.to_at if self.repaired_from_at is None else self.repaired_from_at


class CoverageState(StrEnum):
    """How certain it is that nothing is missing; from best to worst."""

    VERIFIED = "verified"
    """Walked from end to end: everything that the platform showed is stored."""
    REPAIRED = "repaired"
    """There was a gap, and it was closed."""
    UNPROVEN = "unproven"
    """Nothing contradicts it, and nothing proves it."""
    SUSPECT = "suspect"
    """A possible gap."""
    UNREACHABLE = "unreachable"
    """Something is missing or cannot be requested."""

    @classmethod
    def of_gap(cls, is_certain: bool, is_closed: bool) -> CoverageState:
        if is_closed:
            return cls.REPAIRED
        return cls.UNREACHABLE if is_certain else cls.SUSPECT


class Counts(Record, frozen=True):
    """Outcome of the items shown: the four numbers always add up to their total."""

    new: int = 0
    updated: int = 0
    duplicate: int = 0
    invalid: int = 0

    @property
    def shown(self) -> int:
        return self.new + self.updated + self.duplicate + self.invalid

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.new + other.new,
            self.updated + other.updated,
            self.duplicate + other.duplicate,
            self.invalid + other.invalid,
        )


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    UNCHANGED = "unchanged"
    """The platform's answer, or an identical body, showed that nothing changed. A success."""
    FAILED = "failed"
    DEFERRED = "deferred"
    """Our own limits (a budget, politeness, a cooldown) allow no request yet. Neither a success nor a failure."""
    SKIPPED = "skipped"


class EndCode(StrEnum):
    """Error codes of visits that ended without an error."""

    HELD = "HELD"
    """Another process was collecting the source."""
    CUT_OFF = "CUT_OFF"
    """The process ended before the visit did."""
    NOT_VISITED = "NOT_VISITED"
    """The run ended before the source's turn."""


class VisitResult(Record, frozen=True):
    """The result of one visit to one source."""

    source_id: int
    name: str
    kind: str
    outcome: Outcome
    counts: Counts = Counts()
    requests: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    http_status: int | None = None
    error_code: str | None = None
    error: str | None = None
    is_retryable: bool | None = None
    watermark_before: datetime | None = None
    watermark_after: datetime | None = None
    notes: tuple[str, ...] = ()
    valid: int = 0
    """The new posts that are neither deleted nor pinned: they measure a source's activity."""
    backlog: int = 0
    """The valid posts that a first visit found already there: they say nothing about a source's activity."""
    deferred_until: datetime | None = None
    """When a deferred source is due again."""

    @property
    def valid_since_watched(self) -> int:
        """The valid posts without the backlog of a first visit."""
        return self.valid - self.backlog


class Lease(Record, frozen=True):
    """A claim on a piece of work: the number grows with every claim, and a superseded number cannot write."""

    resource: str
    resource_id: int
    owner_id: int
    number: int


class Event(Record, frozen=True):
    """Something that happened, delivered to webhooks and hooks."""

    FORGOTTEN: ClassVar[str] = "forgotten"

    id: int
    name: str
    created_at: datetime
    data: dict[str, Any]

    @property
    def is_forgotten(self) -> bool:
        """Its data was deleted permanently: only its id is left, and it is not delivered."""
        return self.name == Event.FORGOTTEN


class Severity(StrEnum):
    """How soon a person should look at an alert."""

    P0 = "P0"
    """Now: part of the work is blocked until a person acts."""
    P1 = "P1"
    """Today: something fails or is late."""
    P2 = "P2"
    """When there is time: nothing is lost, but it will not improve automatically."""


class AlertRequest(Record, frozen=True):
    """A present problem: it opens an alert, which closes automatically when the problem ends."""

    subject: str
    """What it is about, in a few stable words: there is one open alert per subject."""
    message: str
    severity: Severity = Severity.P1
    source_id: int | None = None


class Watch(Record, frozen=True):
    """A user's keyword rule over items: matching items cause an event."""

    name: str
    words: tuple[str, ...] = ()
    """As the user typed them; a word that begins with - must not occur."""
    is_any_enough: bool = False
    """One of the words is enough; otherwise all must occur, as in a search."""
    kinds: tuple[str, ...] = ()
    source_ids: tuple[int, ...] = ()
    authors: tuple[str, ...] = ()
    is_for_edits: bool = False
    """Edited items match, too, not only new ones."""
