"""Sources, how far each is captured, and credentials: their state, never a secret."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from catchment.messages import Message
from catchment.model.record import JsonObject, Record

SettingValues: TypeAlias = dict[str, Any]
"""Settings of a source by name; the values are as in JSON."""


class Target(Record, frozen=True):
    """A parsed target: something on a platform that can be added as a source."""

    kind: str
    address: str
    """The canonical form: two spellings of the same target give one address."""
    name: str | None = None
    settings: SettingValues = {}
    """Settings of the source that the typed text implied (`search:WORDS`, a page's query string)."""


class SourceState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """Paused by a user; stays paused until a user resumes it."""
    RETIRED = "retired"
    """The platform says that it is gone permanently (410, banned). A user may resume it."""
    REMOVED = "removed"
    """No longer collected; its items stay."""


class Source(Record, frozen=True):
    """A feed, community, user or board that is collected."""

    id: int
    key: str
    """Does not change with the address; the scope of item ids that are unique within a source only."""
    platform: str
    kind: str
    target: str
    name: str
    created_at: datetime
    settings: SettingValues = {}
    credential: str | None = None
    """The name of a credential, never a secret."""
    interval_minutes: int | None = None
    """The source's own interval; None: the interval of its kind."""
    categories: tuple[str, ...] = ()
    priority: str = "medium"
    quality_score: float | None = None
    state: SourceState = SourceState.ACTIVE
    state_reason: Message | None = None


PRIORITIES = ("high", "medium", "low")
"""Priorities that a user may give a source: the order in which budgets are allotted."""


def precedence(priority: str) -> int:
    """Returns the sort order of a priority, smallest first; an unknown word counts as medium."""
    return PRIORITIES.index(priority if priority in PRIORITIES else "medium")


class Watermark(Record, frozen=True):
    """The newest stored position: a time, and the ids of all items with exactly that time, so that ties are not
    lost."""

    at: datetime
    ids: tuple[str, ...] = ()


OWN_INTERVAL, ON_PROBATION = Message("due.own_interval"), Message("due.probation")
CLOCK_SET_BACK = Message("due.clock_set_back")
REQUESTED, ADDED = Message("due.requested"), Message("due.added")
"""The `due_reason` of a source that a user asked to collect now or has just added: the user is waiting for it."""


class Progress(Record, frozen=True):
    """How far a source is captured. One per source; written in the transaction that it describes."""

    watermark: Watermark | None = None
    newest_shown_at: datetime | None = None
    """Time of the newest entry in the last good answer: an answer whose newest entry is older may be stale."""
    etag: str | None = None
    last_modified: str | None = None
    body_hash: bytes | None = None
    parser_version: int | None = None
    """`PARSER_VERSION` of the parser that read the last answer. A newer parser requests the full answer again."""
    cursor: JsonObject = {}
    """Small platform-specific state; `note` holds a remark that is shown with the source."""
    moved_to: str | None = None
    moved_count: int = 0
    """Number of consecutive visits in which a permanent redirect pointed to `moved_to`."""
    stale_count: int = 0
    """Consecutive stale answers."""
    first_polled_at: datetime | None = None
    """When it was first visited: with success, once there was one."""
    last_polled_at: datetime | None = None
    last_success_at: datetime | None = None
    last_new_at: datetime | None = None
    expected_by: datetime | None = None
    """When something new should have appeared, by the source's posting rhythm; after that the source counts as
    stale."""
    next_due_at: datetime | None = None
    """Set when something other than the kind's interval decides; `due_reason` says what."""
    due_reason: Message | None = None
    failures_in_a_row: int = 0
    last_error: Message | None = None
    last_error_code: str | None = None
    poll_count: int = 0
    failure_count: int = 0
    empty_in_a_row: int = 0
    new_share: float | None = None
    """Moving average of the share of new items per visit."""
    next_limit: int | None = None
    """How many items to request first, learnt from recent visits; None: not known yet."""
    last_shown_count: int | None = None
    last_fetched_count: int | None = None
    """How many items the last successful visit showed …"""
    last_new_count: int | None = None
    """… and how many of them were new."""
    success_count: int = 0
    empty_count: int = 0
    """The successes without new items."""
    posts_per_day: float | None = None
    """Estimated from the times of the newest posts; halved by every visit without new items."""
    reach: int | None = None
    """How many items the last walked listing can show at all, as declared by the platform."""
    recent_valid: tuple[int, ...] = ()
    """Valid posts of the last few visits, the latest last; recorded for tiered kinds only."""
    tier: str | None = None
    """Activity tier by the average of `recent_valid`: tier1, tier2, tier3. None: too few visits."""
    tier_minutes: int | None = None
    """Minutes between visits by tier; fewer if the platform would not show everything posted in the meantime."""
    tier_reason: Message | None = None
    """The tier's interval in words; becomes `due_reason` when the tier decides."""

    @property
    def note(self) -> str | None:
        """The platform's remark about how the source is currently read."""
        return self.cursor.get("note")

    @property
    def average_valid(self) -> float | None:
        return sum(self.recent_valid) / len(self.recent_valid) if self.recent_valid else None


class CredentialState(StrEnum):
    ACTIVE = "active"
    COOLING = "cooling"
    """Refused several times in a row: in cooldown."""
    BANNED = "banned"
    """Refused during its cooldown, or when it was retried on probation."""
    INVALID = "invalid"
    """Refused too often in total."""
    PROBATION = "probation"
    """The wait after a ban is over: the next request decides."""
    PAUSED = "paused"
    """Paused by a user; stays paused until a user resumes it."""


class Credential(Record, frozen=True):
    """The state of a credential: what a user configured and what happened to it. Never its secret."""

    id: int
    platform: str
    name: str
    created_at: datetime
    state: CredentialState
    state_since: datetime
    priority: int = 0
    """The highest priority is used first."""
    is_shared: bool = True
    """It is in the pool: any source of the platform may use it. Otherwise only sources that name it."""
    is_from_environment: bool = False
    """Its secret is in the environment of a process, and nowhere else."""
    daily_limit: int | None = None
    expires_at: datetime | None = None
    state_until: datetime | None = None
    """When the state ends automatically; None: it does not."""
    state_reason: Message | None = None
    errors_in_a_row: int = 0
    errors_in_all: int = 0
    falls_in_a_row: int = 0
    """How often it was banned or found invalid since it was last accepted."""
    last_error_at: datetime | None = None
    last_error: str | None = None
    used_on: str | None = None
    """The day in UTC, as 2026-01-31, that `used_that_day` counts."""
    used_that_day: int = 0
    use_count: int = 0
    last_used_at: datetime | None = None
    hosts: tuple[str, ...] = ()
    """Where the platform's sources have hosts of their own: those that it may be sent to, as `host` or `host:port`."""
