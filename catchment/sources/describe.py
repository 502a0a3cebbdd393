"""What is shown of a source: its description, its health, when it is due and why, why it is late, its coverage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec.structs import asdict

from catchment.messages import Message, message
from catchment.model import (
    ADDED,
    ON_PROBATION,
    OWN_INTERVAL,
    CoverageState,
    Kind,
    Order,
    Progress,
    Record,
    SettingValues,
    Source,
    SourceState,
    View,
)
from catchment.platforms import ANNOUNCED, Platforms, installed, listing_of, no_platform, platform_named
from catchment.policy import coverage, schedule
from catchment.policy.coverage import REPAIRED, Day, Hole, Repairability, Stretch, outlook_of, repair_message
from catchment.policy.schedule import UNKNOWN_KIND_MINUTES, interval, kind_intervals
from catchment.policy.spending import Period, day_of, ends_at
from catchment.settings import Settings
from catchment.sources.kinds import NameResolver
from catchment.store import Store
from catchment.store.sources.gaps import GapView

NO_PLATFORM = "no_platform"
_PAGE = 1000


class FetchStats(View, frozen=True):
    """What the adaptive limit of a source is learnt from."""

    last_fetch_at: datetime | None
    last_fetched_count: int | None
    last_new_count: int | None
    total_fetches: int
    avg_new_rate: float | None
    consecutive_empty_fetches: int
    next_limit: int | None


class SourceView(View, frozen=True):
    """A source with its health and its next collection."""

    id: int
    kind: str
    platform: str
    target: str
    name: str
    state: SourceState
    state_reason: Message | None
    settings: SettingValues
    credential: str | None
    interval_minutes: int | None
    fetch_interval_minutes: int
    """The interval that applies: its own, its tier's or its kind's."""
    categories: tuple[str, ...]
    priority: str
    quality_score: float | None
    created_at: datetime
    last_fetched_at: datetime | None
    last_success_at: datetime | None
    last_new_at: datetime | None
    next_fetch_at: datetime | None
    next_fetch_reason: Message
    note: str | None
    """What is special about how it is currently read."""
    has_platform: bool
    """Whether a platform is installed for its kind."""
    fetch_count: int
    fetch_error_count: int
    success_count: int
    empty_count: int
    failures_in_a_row: int
    last_error: str | None
    last_error_code: str | None
    watermark: datetime | None
    expected_by: datetime | None
    posts_per_day: float | None
    tier: str | None
    average_valid: float | None
    recent_valid: tuple[int, ...]
    fetch_stats: FetchStats

    @property
    def is_active(self) -> bool:
        return self.state == SourceState.ACTIVE


_OF_SOURCE = tuple(name for name in SourceView.__struct_fields__ if name in Source.__struct_fields__)
_OF_PROGRESS = {name: name for name in SourceView.__struct_fields__ if name in Progress.__struct_fields__} | {
    "fetch_count": "poll_count", "fetch_error_count": "failure_count"
}  # fmt: skip


def source_view(source: Source, progress: Progress, intervals: Mapping[str, int]) -> SourceView:
    """Returns a source as CLI, API and pages show it; `intervals` are minutes by kind."""
    minutes, is_absent = interval_of(source, progress, intervals), lacks_platform(source)
    # A source without a platform has its turn, and is skipped.
    last_fetched_at = progress.last_success_at if is_absent else progress.last_polled_at
    values = {name: getattr(source, name) for name in _OF_SOURCE}
    values |= {name: getattr(progress, column) for name, column in _OF_PROGRESS.items()}
    values |= {
        "last_fetched_at": last_fetched_at,
        "fetch_interval_minutes": minutes,
        "next_fetch_at": next_fetch_at(source, progress, minutes),
        "next_fetch_reason": _why(source, progress),
        "note": no_platform(source.kind) if is_absent else progress.note,
        "has_platform": not is_absent,
        "watermark": progress.watermark.at if progress.watermark else None,
        "posts_per_day": _rounded(progress.posts_per_day),
        "average_valid": _rounded(progress.average_valid),
        "fetch_stats": FetchStats(
            last_fetched_at,
            progress.last_fetched_count,
            progress.last_new_count,
            progress.poll_count,
            progress.new_share,
            progress.empty_in_a_row,
            progress.next_limit,
        ),
    }
    return SourceView(**values)


def current_intervals(store: Store, settings: Settings, sources: Iterable[Source]) -> dict[str, int]:
    """Returns the current minutes between collections, by kind, for the kinds of these sources and their platforms."""
    platforms = {source.platform: platform_named(source.platform) for source in sources}
    kinds = [kind for platform in platforms.values() if platform is not None for kind in platform.KINDS]
    return kind_intervals(kinds, store.settings.intervals(), settings.intervals)


def all_sources(
    store: Store, kind: str | None = None, state: SourceState | None = None, category: str | None = None
) -> list[tuple[Source, Progress]]:
    """Returns the matching sources, in order of id. Raises InvalidInput if the kind or the category does not exist."""
    names = NameResolver(store, installed)
    if kind is not None:
        names.source_kind(kind)
    if category is not None:
        names.category(category)
    sources: list[tuple[Source, Progress]] = []
    after, states = 0, [state] if state else []
    while page := store.sources.page(after, _PAGE, kind=kind, states=states, category=category):
        sources += page
        after = page[-1][0].id
    return sources


def lacks_platform(source: Source) -> bool:
    """Whether no platform is installed for its kind. Loads the platforms only for kinds that may lack one."""
    return source.kind in ANNOUNCED and installed().of_kind(source.kind) is None


def interval_of(source: Source, progress: Progress, intervals: Mapping[str, int]) -> int:
    return interval(source, progress, intervals.get(source.kind, UNKNOWN_KIND_MINUTES)).minutes


def next_fetch_at(source: Source, progress: Progress, minutes: int) -> datetime | None:
    """Returns the real due time; None while the source is not active, or was never visited (then it is due now)."""
    if source.state != SourceState.ACTIVE:
        return None
    if progress.next_due_at is not None and not _is_new(progress):
        return progress.next_due_at
    return progress.last_polled_at + timedelta(minutes=minutes) if progress.last_polled_at else None


def health_of(source: Source, progress: Progress, failures_limit: int) -> str:
    """Returns the health as one word: ok, waiting (never visited), no_platform (none is installed for its kind),
    failing, probation, paused, retired."""
    if source.state != SourceState.ACTIVE:
        return str(source.state)
    if lacks_platform(source):
        return NO_PLATFORM
    if progress.failures_in_a_row >= failures_limit:
        return "probation"
    if progress.last_error is not None:
        return "failing"
    return "ok" if progress.last_polled_at else "waiting"


def _is_new(progress: Progress) -> bool:
    """Whether it was just added and not visited yet; one that was deferred before its first visit has a due time."""
    return progress.last_polled_at is None and progress.due_reason == ADDED


def _why(source: Source, progress: Progress) -> Message:
    if source.state != SourceState.ACTIVE and source.state_reason:
        return message("due.not_active_because", state=str(source.state), why=source.state_reason)
    if source.state != SourceState.ACTIVE:
        return message("due.not_active", state=str(source.state))
    if progress.next_due_at is None or _is_new(progress):
        return message("due.interval_of_kind" if progress.last_polled_at else "due.first")
    return progress.due_reason or OWN_INTERVAL


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


class Why(StrEnum):
    PUNCTUAL = "punctual"
    DUE = "due"
    """Visited with the next tick."""
    FIRST = "first"
    """Never visited yet: first in the queue."""
    VISITING = "visiting"
    PAUSED = "paused"
    RETIRED = "retired"
    NO_PLATFORM = "no_platform"
    """No platform is installed for its kind: it is skipped until there is one."""
    NOBODY = "nobody"
    """It was due, and no process collects."""
    BUDGET = "budget"
    """It was due, and the platform is in cooldown: its requests are used up, or it asked us to wait."""
    CROWDED = "crowded"
    """It was due, and so were many others."""
    STUCK = "stuck"
    """It was due, alone, and still was not visited."""
    TOLD = "told"
    """The server asked us to wait."""
    DEFERRED = "deferred"
    """Our own limits (a budget, politeness, a cooldown) made it wait."""
    UNSCHEDULED = "unscheduled"
    """A setting ended the schedule of its kind: it is visited on request only."""
    NO_MONEY = "no_money"
    """A spending cap made it wait."""
    PROBATION = "probation"
    FAILING = "failing"
    SILENT = "silent"
    """It is visited, and shows nothing new, against its own rhythm."""


_PUT_OFF = {ON_PROBATION: Why.PROBATION, schedule.TOLD: Why.TOLD, schedule.DEFERRED: Why.DEFERRED}
_NO_MONEY = {schedule.NO_MONEY_TODAY: Period.DAY, schedule.NO_MONEY_THIS_MONTH: Period.MONTH}
LATE = frozenset((Why.NOBODY, Why.BUDGET, Why.CROWDED, Why.STUCK, Why.SILENT))


class DeploymentFacts(Record, frozen=True):
    """What is known about the deployment at this moment."""

    now: datetime
    patience: timedelta
    """How long after its due time a source is not yet called late."""
    is_collecting: bool = True
    is_held: bool = False
    """A process visits the source right now."""
    closed: Mapping[str, datetime] = {}
    """The platforms in cooldown, and its end."""
    unscheduled: frozenset[str] = frozenset()
    """The kinds that are visited on request only."""
    waiting_count: int = 0
    """How many sources are overdue, this one included."""


class Lateness(Record, frozen=True):
    why: Why
    at: datetime | None = None
    """When it was due, or expected, or will be visited, depending on the reason."""
    until: datetime | None = None
    """How long the reason lasts, where that is known."""

    @property
    def is_late(self) -> bool:
        return self.why in LATE


def lateness(source: Source, progress: Progress, minutes: int, around: DeploymentFacts) -> Lateness:
    """Returns the most important reason for when a source is visited."""
    due_at = next_fetch_at(source, progress, minutes)
    if source.state != SourceState.ACTIVE:
        return Lateness(Why.PAUSED if source.state == SourceState.PAUSED else Why.RETIRED)
    if lacks_platform(source):
        return Lateness(Why.NO_PLATFORM)
    if around.is_held:
        return Lateness(Why.VISITING)
    if source.kind in around.unscheduled:
        return Lateness(Why.UNSCHEDULED)
    if due_at is None:
        is_old = around.now - source.created_at > around.patience
        return _overdue(source, source.created_at, around) if is_old else Lateness(Why.FIRST)
    if around.now - due_at > around.patience:
        return _overdue(source, due_at, around)
    if due_at > around.now and progress.due_reason in _PUT_OFF:
        return Lateness(_PUT_OFF[progress.due_reason], due_at)
    if due_at > around.now and progress.due_reason in _NO_MONEY:
        return Lateness(Why.NO_MONEY, due_at, ends_at(_NO_MONEY[progress.due_reason], day_of(around.now)))
    if progress.last_error is not None:
        return Lateness(Why.FAILING, due_at)
    if is_silent(progress, around.now):
        return Lateness(Why.SILENT, progress.expected_by)
    return Lateness(Why.PUNCTUAL if due_at > around.now else Why.DUE, due_at)


def is_silent(progress: Progress, now: datetime) -> bool:
    """Whether something new should have been seen by now, and a visit since then saw nothing."""
    expected, seen = progress.expected_by, progress.last_success_at
    return expected is not None and expected <= now and seen is not None and seen >= expected


def _overdue(source: Source, due_at: datetime, around: DeploymentFacts) -> Lateness:
    if not around.is_collecting:
        return Lateness(Why.NOBODY, due_at)
    if source.platform in around.closed:
        return Lateness(Why.BUDGET, due_at, around.closed[source.platform])
    return Lateness(Why.CROWDED if around.waiting_count > 1 else Why.STUCK, due_at)


class GapReport(GapView, frozen=True):
    """A gap, and whether it can be repaired."""

    outlook: Repairability
    repair_note: Message | None
    """What a repair cannot find, what the last attempt came to, or why there is none."""


def gap_reports(gaps: Sequence[GapView], platforms: Platforms | None = None) -> list[GapReport]:
    """Returns gaps with the state of their repair. If there are no gaps, no platform is loaded."""
    if not gaps:
        return []
    loaded = platforms or installed()
    return [_gap_report(gap, loaded.kind(gap.source_kind)) for gap in gaps]


def _gap_report(gap: GapView, kind: Kind | None) -> GapReport:
    outlook = outlook_of(kind, gap.attempt_count, gap.closed_because)
    note = repair_message(outlook, kind, gap.stopped_by, gap.last_error)
    return GapReport(**asdict(gap), outlook=outlook, repair_note=note)


class CoverageView(View, frozen=True):
    """For which time a source is proven complete."""

    source_id: int
    source_name: str
    order: Order
    from_at: datetime
    to_at: datetime
    seconds: Mapping[CoverageState, int]
    """How much of the time is in each state."""
    stretches: tuple[Stretch, ...]
    calendar: tuple[Day, ...]


def coverage_of(store: Store, platforms: Platforms, source_id: int, now: datetime, days: int) -> CoverageView:
    """Returns the coverage of the last `days` days."""
    source, progress = store.sources.with_progress(source_id)
    since = now - timedelta(days=days)
    order = _order(platforms, source, progress)
    holes = [hole for gap in store.gaps.since(source_id, since) for hole in _holes(gap)]
    stretches = coverage.stretches(source, progress, order, holes, since, now)
    return CoverageView(
        source.id,
        source.name,
        order,
        since,
        now,
        {standing: _seconds(stretches, standing) for standing in CoverageState},
        tuple(stretches),
        tuple(coverage.calendar(stretches, coverage.known_until(stretches, progress, now))),
    )


def _holes(gap: GapView) -> list[Hole]:
    """Returns a gap for the coverage: in two parts, if its upper part was repaired."""
    closed_because = (gap.closed_because or Message("closed")) if gap.closed_at else None
    hole = Hole(gap.id, gap.is_certain, gap.from_at, gap.to_at, gap.cause, closed_because)
    edge = gap.repaired_from_at
    if edge is None or closed_because is not None:
        return [hole]
    return [hole.replace(to_at=edge), hole.replace(from_at=edge, closed_because=REPAIRED)]


def _order(platforms: Platforms, source: Source, progress: Progress) -> Order:
    kind = platforms.kind(source.kind)
    # Nothing is known about a kind that is not installed.
    return listing_of(kind, schedule.walk_plans(kind, source, progress)[0].listing).order if kind else Order.SNAPSHOT


def _seconds(stretches: list[Stretch], standing: CoverageState) -> int:
    lengths = [stretch.to_at - stretch.from_at for stretch in stretches if stretch.standing == standing]
    return round(sum(length.total_seconds() for length in lengths))
