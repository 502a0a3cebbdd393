"""Statistics about sources: lateness, tiers, budget plans, failures and posting rhythm.

The cost of the lateness figures grows with what is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import convert, to_builtins

from catchment.clock import micros, moment
from catchment.messages import Message
from catchment.model import Progress, Record, Source, View
from catchment.store.database import Database, Row, StorePart, Transaction, reads, writes
from catchment.store.item_fields import to_json
from catchment.store.settings import StoredSettings
from catchment.store.sources.due import BY_INTERVAL, BY_TIME, groups_waiting
from catchment.store.sources.metrics import RECHECK_JOB
from catchment.store.sources.sources import JOINED_COLUMNS, set_pace, with_progress

LATE = timedelta(minutes=15)
"""Runs start every minute: a source due for longer than this waits for a budget or a free worker."""


class DueSources(Record, frozen=True):
    """Sources of one kind that are due."""

    kind: str
    due: int
    late: int
    """Those that have been due for longer than LATE."""
    since: datetime
    """When the first of them became due."""


class WarmUp(Record, frozen=True):
    """Progress of the first visits to the sources of one kind."""

    kind: str
    followed: int
    visited: int
    """Visited, or crawled into the cache, at least once."""
    last_first_at: datetime | None
    """When a source was last visited, or crawled into the cache, for the first time."""
    waiting_since: datetime
    """When the oldest unvisited source was added."""


class LatenessStats(StorePart):
    @reads
    def waiting(self, tx: Transaction, intervals: Mapping[str, int], fallback: int, now: datetime) -> list[DueSources]:
        """Returns due sources by kind. `intervals` are minutes by kind, `fallback` those of other kinds."""
        at, late_at = micros(now), micros(now - LATE)
        due: dict[str, DueSources] = {}

        def add(kind: str, sql: str, *values: int | str) -> None:
            row = tx.one(sql, *values)
            if row and row[0]:
                count, late, since = int(row[0]), int(row[1]), moment(row[2])
                so_far = due.get(kind, DueSources(kind, 0, 0, since))
                due[kind] = DueSources(kind, so_far.due + count, so_far.late + late, min(so_far.since, since))

        for group in groups_waiting(tx, BY_TIME):
            add(group[0], _DUE_BY_TIME, late_at, *group, at)
        for group in groups_waiting(tx, BY_INTERVAL):
            interval = intervals.get(group[0], fallback) * 60_000_000
            add(group[0], _DUE_BY_INTERVAL, late_at - interval, interval, *group, at - interval)
            add(group[0], _UNVISITED, late_at, *group)
        return sorted(due.values(), key=lambda sources: sources.kind)

    @reads
    def warm_ups(self, tx: Transaction) -> list[WarmUp]:
        """Returns the kinds with sources that wait for their first visit."""
        unvisited = """
            SELECT 1 FROM progress
             WHERE is_active AND {pace} AND kind = ? AND precedence = ? AND last_polled_at IS NULL LIMIT 1
        """
        # A source that was just added has a due time of its own, so that it is collected at once.
        kinds = {
            group[0]
            for pace in (BY_INTERVAL, BY_TIME)
            for group in groups_waiting(tx, pace)
            if tx.one(unvisited.format(pace=pace), *group)
        }
        sql = """
            SELECT s.kind, count(*) AS followed, count(coalesce(p.first_polled_at, h.last_warmed_at)) AS visited,
                   max(coalesce(p.first_polled_at, h.last_warmed_at)) AS last_first_at,
                   min(CASE WHEN p.first_polled_at IS NULL AND h.last_warmed_at IS NULL THEN s.created_at END)
                       AS waiting_since
              FROM sources s JOIN progress p ON p.source_id = s.id LEFT JOIN hot_sources h ON h.source_id = s.id
             WHERE s.kind = ? AND p.is_active GROUP BY s.kind
        """
        rows = [row for kind in sorted(kinds) for row in tx.all(sql, kind)]
        # All unvisited ones may have been crawled into the cache.
        return tx.as_records(WarmUp, [row for row in rows if row[-1] is not None])


# How many sources of a group are due, how many of them are late, and since when.
_DUE_BY_INTERVAL = """
    SELECT count(*), coalesce(sum(CASE WHEN last_polled_at <= ? THEN 1 ELSE 0 END), 0), min(last_polled_at) + ?
      FROM progress
     WHERE is_active AND next_due_at IS NULL AND kind = ? AND precedence = ? AND last_polled_at <= ?
"""
_UNVISITED = """
    SELECT count(*), coalesce(sum(CASE WHEN s.created_at <= ? THEN 1 ELSE 0 END), 0), min(s.created_at)
      FROM progress p JOIN sources s ON s.id = p.source_id
     WHERE p.is_active AND p.next_due_at IS NULL AND p.kind = ? AND p.precedence = ? AND p.last_polled_at IS NULL
"""
_DUE_BY_TIME = """
    SELECT count(*), coalesce(sum(CASE WHEN next_due_at <= ? THEN 1 ELSE 0 END), 0), min(next_due_at)
      FROM progress
     WHERE is_active AND next_due_at IS NOT NULL AND kind = ? AND precedence = ? AND next_due_at <= ?
"""

Place = tuple[float, int]
"""A cursor in the list of communities: average and source id."""
_TOP: Place = (1e300, 0)


class TierStats(StorePart):
    @reads
    def by_average(self, tx: Transaction, limit: int, after: Place | None = None) -> list[tuple[Source, Progress]]:
        """Returns active communities that were visited, the most active first."""
        sql = f"""
            SELECT {JOINED_COLUMNS} FROM progress p JOIN sources s ON s.id = p.source_id
             WHERE p.is_active AND p.average_valid IS NOT NULL AND (p.average_valid, p.source_id) < (?, ?)
             ORDER BY p.average_valid DESC, p.source_id DESC LIMIT ?
        """
        rows = tx.all(sql, *(after or _TOP), limit)
        return with_progress(tx, rows)

    def counts(self) -> dict[str | None, int]:
        """Returns how many active communities there are in each tier; None: in none yet."""
        sql = """
            SELECT tier, count(*) FROM progress WHERE is_active AND average_valid IS NOT NULL GROUP BY tier
            """
        return dict(self._all(sql))

    @writes
    def assign(self, tx: Transaction, assigned: Sequence[tuple[Source, Progress]]) -> list[int]:
        """Assign communities to the tiers in these progresses and reschedule them; returns the ids that were assigned.

        A community that was visited meanwhile has its tier from that visit.
        """
        return [source.id for source, progress in assigned if _assign(tx, source, progress)]

    @reads
    def neglected(self, tx: Transaction, kinds: Iterable[str], below: float, since: datetime, limit: int) -> list[int]:
        """Returns communities with an average below that, not visited since then; the oldest visit first.

        Sources that a user, a server or probation makes wait are left out: that is intended.
        """

        sql = """
            SELECT source_id, last_polled_at FROM progress
             WHERE is_active AND average_valid IS NOT NULL AND kind = ? AND last_polled_at < ? AND average_valid < ?
               AND (due_reason IS NULL OR due_reason = tier_reason)
             ORDER BY last_polled_at LIMIT ?
        """
        rows = [row for kind in kinds for row in tx.all(sql, kind, micros(since), below, limit)]
        return [row[0] for row in sorted(rows, key=lambda row: (row[1], row[0]))[:limit]]


def _assign(tx: Transaction, source: Source, progress: Progress) -> bool:
    # A source that waits by its tier is rescheduled by the new one; one that waits for another reason keeps waiting.
    sql = """
        UPDATE progress SET tier = ?, tier_minutes = ?, tier_reason = ?,
               due_reason = CASE WHEN due_reason = tier_reason THEN NULL ELSE due_reason END
         WHERE source_id = ? AND recent_valid = ?
    """
    is_done = tx.run(
        sql, progress.tier, progress.tier_minutes, progress.tier_reason, source.id, to_json(progress.recent_valid)
    )
    if is_done:
        set_pace(tx, source.id, source.interval_minutes)
    return bool(is_done)


class BudgetedSource(Record, frozen=True):
    """An active source, as the budget plan needs it."""

    id: int
    name: str
    platform: str
    kind: str
    priority: str
    interval_minutes: int | None
    """Its own or its tier's; None: its kind's."""


class RequestsUsed(Record, frozen=True):
    """How many requests were used lately."""

    a_visit: Mapping[int, float]
    """By source, average per visit."""
    besides: Mapping[str, int]
    """By platform and day: all requests other than those of visits at an interval."""


_TAKEN = "requests_taken"


class PlanStats(StorePart):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._settings = StoredSettings(database)

    def followed(self) -> list[BudgetedSource]:
        """Returns all active sources."""
        sql = """
            SELECT s.id, s.name, s.platform, s.kind, s.priority,
                   coalesce(s.interval_minutes, p.tier_minutes) AS interval_minutes
              FROM sources s JOIN progress p ON p.source_id = s.id WHERE s.state = 'active' ORDER BY s.id
        """
        return self._records(BudgetedSource, sql)

    def requests_per_visit(self, since: datetime) -> dict[int, float]:
        """Returns the average requests of a successful visit, by source."""
        sql = """
            SELECT v.source_id, avg(v.request_count) FROM run_sources v JOIN runs r ON r.id = v.run_id
             WHERE v.started_at >= ? AND v.outcome IN ('succeeded', 'unchanged') AND r.job <> ?
             GROUP BY v.source_id
        """
        rows = self._all(sql, micros(since), RECHECK_JOB)
        return {source_id: float(mean) for source_id, mean in rows}

    def requests_besides(self, job: str, since: datetime) -> dict[str, int]:
        """Returns the requests since then of all scheduled jobs but this one, by platform."""
        sql = """
            SELECT s.platform, sum(v.request_count) FROM run_sources v JOIN sources s ON s.id = v.source_id
             WHERE v.started_at >= ?
               AND (SELECT r.started_by = 'schedule' AND r.job <> ? FROM runs r WHERE r.id = v.run_id)
             GROUP BY s.platform
        """
        rows = self._all(sql, micros(since), job)
        return {platform: int(count) for platform, count in rows}

    def keep(self, taken: RequestsUsed, now: datetime) -> None:
        """Store it: counting it again takes longer than a page may."""
        rounded = {source_id: round(requests, 2) for source_id, requests in taken.a_visit.items()}
        self._settings.put(_TAKEN, to_builtins(taken.replace(a_visit=rounded), str_keys=True), now)

    def kept(self) -> RequestsUsed | None:
        """Returns the last stored counts; None: never counted."""
        stored = self._settings.get(_TAKEN)
        return None if stored is None else convert(stored, RequestsUsed, strict=False)


class StandingRow(Record, frozen=True):
    """The stored collection state of one active source."""

    source_id: int
    name: str
    platform: str
    kind: str
    target: str
    minutes: int | None
    """Its own interval or its tier's; None: its kind's."""
    active_since: datetime
    last_success_at: datetime | None
    last_polled_at: datetime | None
    error_code: str | None
    due_reason: Message | None
    next_due_at: datetime | None
    failures_in_a_row: int


class FailingSource(View, frozen=True):
    """An active source whose last visit failed."""

    id: int
    name: str
    kind: str
    platform: str
    target: str
    last_error: Message
    last_error_code: str | None
    failures_in_a_row: int
    last_polled_at: datetime | None
    due_reason: Message | None


class FailureCounts(Record, frozen=True):
    """How many active sources fail, and how many of them are on probation."""

    failing: int
    probation: int


class FailureStats(StorePart):
    def standings(self) -> list[StandingRow]:
        """Returns the collection state of every active source."""
        sql = """
            SELECT s.id AS source_id, s.name, s.platform, s.kind, s.target,
                   coalesce(s.interval_minutes, p.tier_minutes) AS minutes, s.state_changed_at AS active_since,
                   p.last_success_at, p.last_polled_at, p.last_error_code AS error_code, p.due_reason,
                   p.next_due_at, p.failures_in_a_row
              FROM progress p JOIN sources s ON s.id = p.source_id WHERE p.is_active
        """
        return self._records(StandingRow, sql)

    def failing(self, limit: int) -> list[FailingSource]:
        """Returns active sources whose last visit failed, those with the most failures first."""
        sql = """
            SELECT s.id, s.name, s.kind, s.platform, s.target, p.last_error, p.last_error_code,
                   p.failures_in_a_row, p.last_polled_at, p.due_reason
              FROM progress p JOIN sources s ON s.id = p.source_id
             WHERE p.is_active AND p.last_error IS NOT NULL
             ORDER BY p.failures_in_a_row DESC, p.source_id DESC LIMIT ?
        """
        return self._records(FailingSource, sql, limit)

    def counts(self, failures_limit: int) -> FailureCounts:
        """`failures_limit`: from how many failures in a row on a source is on probation."""
        sql = """
            SELECT count(*) AS failing,
                   coalesce(sum(CASE WHEN failures_in_a_row >= ? THEN 1 ELSE 0 END), 0) AS probation
              FROM progress WHERE is_active AND last_error IS NOT NULL
        """
        counts = self._record(FailureCounts, sql, failures_limit)
        assert counts is not None
        return counts


class RhythmStats(StorePart):
    def posted(self, source_id: int, limit: int = 2000) -> list[datetime]:
        """Returns when the newest items of a source were posted, newest first."""
        rows = self._all(
            "SELECT ordered_at FROM sightings WHERE source_id = ? ORDER BY ordered_at DESC LIMIT ?", source_id, limit
        )
        return [moment(row[0]) for row in rows]

    def delays(self, starts: Sequence[datetime], length: timedelta, limit: int = 60) -> list[list[float]]:
        """Returns, for each of these periods, how many seconds passed until a sample of its posts was captured.

        Posts from before their source's first visit, and posts without a stated time, are left out.
        """
        if not starts:
            return []
        delays: list[list[float]] = [[] for _ in starts]
        stretches = [(micros(at), micros(at + length)) for at in starts]
        for position, created, seen in self._db.read(lambda tx: _delays(tx, stretches, limit)):
            delays[position].append(max(seen - created, 0) / 1_000_000)
        return delays


def _delays(tx: Transaction, stretches: Sequence[tuple[int, int]], limit: int) -> list[Row]:
    # Each period reads its own few rows along the index; all are queried at once, since dozens of round trips to a
    # server would cost the most.
    stretch_rows = " UNION ALL ".join(_STRETCH.format(place=place) for place in range(len(stretches)))
    sql = f"""
        WITH few AS MATERIALIZED ({stretch_rows})
        SELECT few.place, few.created_at, few.first_seen_at FROM few JOIN progress p ON p.source_id = few.source_id
         WHERE NOT few.is_created_at_guessed AND few.created_at >= p.first_polled_at
    """
    return tx.all(sql, *(value for since, until in stretches for value in (since, until, limit)))


_STRETCH = """
    SELECT * FROM (SELECT {place} AS place, source_id, created_at, first_seen_at, is_created_at_guessed FROM items
                    WHERE ordered_at >= ? AND ordered_at < ? ORDER BY ordered_at LIMIT ?) AS told
"""
