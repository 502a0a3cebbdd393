"""Sources and their progress: adding, changing, pausing, and claiming due ones."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

from catchment.clock import micros, moment
from catchment.errors import Conflict, NotFound
from catchment.lazy import lazy_imports
from catchment.messages import Message, encode
from catchment.model import (
    ADDED,
    CLOCK_SET_BACK,
    ON_PROBATION,
    OWN_INTERVAL,
    REQUESTED,
    Lease,
    Progress,
    Record,
    SettingValues,
    Source,
    SourceState,
    Target,
    precedence,
)
from catchment.store import leases
from catchment.store.database import Row, StorePart, Transaction, placeholders, reads, writes
from catchment.store.item_fields import decode, to_json, to_micros
from catchment.store.row_mappers import columns, values
from catchment.store.sources import alerts
from catchment.store.sources.due import first_due, next_due, requested, set_precedence

with lazy_imports():
    from catchment.store.search import facets
    from catchment.text import tokens


class ListedChanges(Record, frozen=True):
    """What an imported list says about one source; None: nothing."""

    categories: tuple[str, ...] = ()
    priority: str | None = None
    quality_score: float | None = None


SOURCE_COLUMNS = ", ".join(columns(Source))
PROGRESS = (*columns(Progress), "average_valid")
"""The columns of progress; the average is stored so that sources can be ordered by it."""
JOINED_COLUMNS = ", ".join((*(f"s.{name}" for name in columns(Source)), *(f"p.{name}" for name in PROGRESS)))


def progress_values(progress: Progress) -> list[Any]:
    """Returns the values of PROGRESS, in order."""
    return [*values(progress), progress.average_valid]


def with_progress(tx: Transaction, rows: Sequence[Row]) -> list[tuple[Source, Progress]]:
    """Returns rows with JOINED_COLUMNS as sources with their progress."""
    return [*zip(tx.as_records(Source, rows), tx.as_records(Progress, rows), strict=True)]


def merge(tx: Transaction, described: Mapping[int, ListedChanges]) -> set[int]:
    """Add categories to the existing ones, replace priority and score; returns the ids that changed."""
    sql = f"""
        SELECT id, categories, priority, quality_score FROM sources WHERE id IN {{values}} ORDER BY id {tx.lock_rows()}
    """
    rows = tx.select_in(sql, list(described))
    merged = {row[0]: _merged(row[1:], described[row[0]]) for row in rows}
    changed = [(row[0], *merged[row[0]]) for row in rows if merged[row[0]] != tuple(row[1:])]
    tx.update("sources", ("id", "categories", "priority", "quality_score"), changed)
    set_precedence(tx, {source_id: priority for source_id, _, priority, _ in changed})
    return {row[0] for row in changed}


def _merged(stored: Sequence[Any], described: ListedChanges) -> tuple[str, str, float | None]:
    categories, priority, quality_score = stored
    united = dict.fromkeys((*decode(categories), *described.categories))
    score = quality_score if described.quality_score is None else described.quality_score
    return to_json(list(united)), described.priority or priority, score


# Clocks of two machines may differ by this much without anything being wrong: an hour, in microseconds.
_CLOCKS_DIFFER = 3_600_000_000
_BEGINNING = progress_values(Progress())
_FOLLOWED = (SourceState.ACTIVE, SourceState.PAUSED, SourceState.RETIRED)
_NAMES_AT_ONCE = 1000
_WIDTHS = (1, 4, 16, *[64] * 5)
"""How many times as many due sources as are needed a claimer reads: more each time others have claimed all it found. In
the end, it gives up: where a process hangs while it claims, the others must not read again and again."""


class Claimed(Record, frozen=True):
    """A source that this process has claimed for a visit."""

    source: Source
    progress: Progress
    lease: Lease
    has_follow_ups: bool = False
    """Follow-up requests about its items are pending."""


class _FollowUps(Record, frozen=True):
    has_follow_ups: bool


class SourceRequest(Record, frozen=True):
    """A source to be added."""

    target: Target
    platform: str
    name: str | None = None
    settings: SettingValues = {}
    credential: str | None = None
    interval_minutes: int | None = None
    categories: Sequence[str] = ()
    priority: str = "medium"
    quality_score: float | None = None

    @property
    def address(self) -> tuple[str, str]:
        """The unique key: kind and address."""
        return self.target.kind, self.target.address

    def columns(self) -> dict[str, str | int | float | None]:
        """Returns what the user chose, as table columns."""
        return {
            "settings": to_json({**self.target.settings, **self.settings}),
            "credential": self.credential,
            "interval_minutes": self.interval_minutes,
            "categories": to_json(list(self.categories)),
            "priority": self.priority,
            "quality_score": self.quality_score,
        }


class Holder(Record, frozen=True):
    """The process that is collecting a source."""

    machine: str
    pid: int
    work: str


class Sources(StorePart):
    def follow(self, target: Target, platform: str, now: datetime, **more: Any) -> tuple[Source, bool]:
        """Add one source, with the other fields of `SourceRequest`; returns it, and whether it is new."""
        ((source_id, is_new),) = self.follow_many([SourceRequest(target, platform, **more)], now)
        return self.get(source_id), is_new

    @writes
    def follow_many(self, tx: Transaction, requests: Sequence[SourceRequest], now: datetime) -> list[tuple[int, bool]]:
        """Add sources in one transaction; returns the id of each, and whether it is new. A removed source comes back
        with its items."""
        return _follow(tx, requests, now)

    @writes
    def follow_paused(
        self, tx: Transaction, requests: Sequence[SourceRequest], reason: str, now: datetime
    ) -> list[int]:
        """Returns the ids of these sources; those that are not there yet are added, paused for that reason."""
        followed = _follow(tx, requests, now)
        for source_id, is_new in followed:
            if is_new:
                _set_state(tx, source_id, SourceState.PAUSED, reason, now)
        return [source_id for source_id, _ in followed]

    def get(self, source_id: int, *, even_removed: bool = False) -> Source:
        source = self._record(Source, f"SELECT {SOURCE_COLUMNS} FROM sources WHERE id = ?", source_id)
        if source is None or (source.state == SourceState.REMOVED and not even_removed):
            raise NotFound("there is no source {id}", "`catchment sources list` shows all sources", id=source_id)
        return source

    def names(self, source_ids: Iterable[int | None]) -> dict[int, str]:
        """Returns names by id, including removed sources: their items stay."""
        return self._by_id("name", source_ids)

    def first_names(self, limit: int) -> list[tuple[int, str]]:
        """Returns the ids and names of the first sources, in order of id. Read with every list of items: whole sources
        with their progress would cost as much as the rest of such a page."""
        sql = "SELECT id, name FROM sources WHERE id > 0 AND state IN {values} ORDER BY id LIMIT ?"
        states = [str(state) for state in _FOLLOWED]
        return self._db.read(lambda tx: tx.select_in(sql, states, after=[limit]))

    def states(self, source_ids: Iterable[int | None]) -> dict[int, str]:
        """Returns states by id."""
        return self._by_id("state", source_ids)

    def _by_id(self, column: str, source_ids: Iterable[int | None]) -> dict[int, str]:
        ids = sorted({source_id for source_id in source_ids if source_id is not None})
        return dict(self._select_in(f"SELECT id, {column} FROM sources WHERE id IN {{values}}", ids))

    def of_target(self, kind: str, address: str) -> Source | None:
        """Returns the source with that address."""
        sql = f"SELECT {SOURCE_COLUMNS} FROM sources WHERE kind = ? AND target = ? AND state <> 'removed'"
        return self._record(Source, sql, kind, address)

    def page(
        self,
        after: int = 0,
        limit: int = 100,
        *,
        kind: str | None = None,
        states: Iterable[SourceState] = (),
        category: str | None = None,
        words: str = "",
    ) -> list[tuple[Source, Progress]]:
        """Returns sources with their progress in order of id; the next page begins after the last one's id.

        `category`: only sources in it, ignoring case. `words`: all of them must occur in the name or address.
        """
        of_states = [str(state) for state in list(states) or _FOLLOWED]
        if category is not None or words:
            return self.these(self._db.read(lambda tx: _described(tx, category, words, after, limit, kind, of_states)))
        where, of_kind = ("AND s.kind = ?", [kind]) if kind is not None else ("", [])
        sql = f"""
            SELECT {JOINED_COLUMNS} FROM sources s JOIN progress p ON p.source_id = s.id
             WHERE s.id > ? {where} AND s.state IN {{values}} ORDER BY s.id LIMIT ?
        """
        return self._db.read(
            lambda tx: with_progress(tx, tx.select_in(sql, of_states, before=[after, *of_kind], after=[limit]))
        )

    def these(self, source_ids: Sequence[int]) -> list[tuple[Source, Progress]]:
        """Returns those that exist, with their progress, in this order."""
        sources = self._db.read(lambda tx: with_progress(tx, tx.select_in(_THESE, source_ids)))
        by_id = {source.id: (source, progress) for source, progress in sources}
        return [by_id[source_id] for source_id in source_ids if source_id in by_id]

    def overdue(
        self,
        intervals: Mapping[str, int],
        fallback: int,
        at: datetime,
        limit: int,
        most: Mapping[str, int] = MappingProxyType({}),
    ) -> list[int]:
        """Returns the sources that were due by then and are not being visited, in the order in which they are claimed;
        `most` as in `claim_due`."""
        return list(self._db.read(lambda tx: first_due(tx, intervals, fallback, at, limit, most)))

    def with_progress(self, source_id: int) -> tuple[Source, Progress]:
        self.get(source_id)
        ((source, progress),) = self.these([source_id])
        return source, progress

    def categories(self) -> dict[str, int]:
        """Returns the categories and how many sources each has, the largest first."""
        return self._db.read(facets.category_counts)

    @reads
    def matching(self, tx: Transaction, text: str, limit: int, *, is_exact: bool = False) -> list[tuple[int, str]]:
        """Returns ids and names of the sources that match a name, an address or words of these: exact matches, if there
        are any; else, unless `is_exact`, those that contain all the words."""
        whole, words = tokens.folded(text).strip(), tokens.folded(text).split()
        exact: list[tuple[int, str]] = []
        near: list[tuple[int, str]] = []
        for source_id, name, target in _named(tx, 0, None, [str(state) for state in _FOLLOWED]):
            if whole in (tokens.folded(name).strip(), tokens.folded(target)):
                exact.append((source_id, name))
            elif (
                not is_exact and len(near) < limit and all(word in tokens.folded(f"{name}\n{target}") for word in words)
            ):
                near.append((source_id, name))
        return (exact or near)[:limit]

    def next_due(self, intervals: Mapping[str, int], fallback: int) -> datetime | None:
        """Returns when the next source is due; None: no active source has been visited yet, or there is none."""
        at = self._db.read(lambda tx: next_due(tx, intervals, fallback))
        return None if at is None else moment(at)

    def counts(self) -> dict[str, int]:
        """Returns how many sources there are in each state."""
        rows = self._all("SELECT state, count(*) FROM sources GROUP BY state")
        return dict(rows)

    def platforms(self) -> set[str]:
        """Returns the platforms of active sources."""
        return set(self._column("SELECT DISTINCT platform FROM sources WHERE state = 'active'"))

    def kinds(self) -> set[str]:
        """Returns the kinds of all sources, including removed ones."""
        return set(self._column("SELECT DISTINCT kind FROM sources"))

    def platforms_ever(self) -> set[str]:
        """Returns the platforms of all sources, including removed ones."""
        return set(self._column("SELECT DISTINCT platform FROM sources"))

    def set_state(self, source_id: int, state: SourceState, reason: Message | None, now: datetime) -> Source:
        self.get(source_id)
        self._db.write(lambda tx: _set_state(tx, source_id, state, reason, now))
        return self.get(source_id, even_removed=True)

    def change(self, source_id: int, **fields: Any) -> Source:
        """Change what a user may change: name, settings, credential, interval_minutes, categories, priority."""
        self.get(source_id)
        values = {
            name: to_json(value) if name in ("settings", "categories") else value for name, value in fields.items()
        }
        if values.get("name"):
            values["is_name_given"] = True

        def update(tx: Transaction) -> None:
            tx.run(f"UPDATE sources SET {placeholders(values)} WHERE id = ?", *values.values(), source_id)
            if "interval_minutes" in values:
                # The new interval counts from the last visit; a source that waits for another reason keeps waiting.
                set_pace(tx, source_id, fields["interval_minutes"])
            if "settings" in values:
                _read_anew(tx, source_id)
            if "priority" in values:
                set_precedence(tx, {source_id: values["priority"]})

        if values:
            self._db.write(update)
        return self.get(source_id)

    def set_canonical_target(self, source: Source, address: str, settings: SettingValues) -> Source:
        """Store the canonical target and settings of a source that was added before its platform was installed. Raises
        Conflict if another source has that address."""

        def change(tx: Transaction) -> bool:
            if address != source.target and not move_target(tx, source, address):
                return False
            tx.run("UPDATE sources SET settings = ? WHERE id = ?", to_json(dict(settings)), source.id)
            return True

        if not self._db.write(change):
            raise Conflict("{address} is already another source", "remove this one", address=address)
        return self.get(source.id)

    def merge(self, described: Mapping[int, ListedChanges]) -> set[int]:
        """Apply what a list says about existing sources, in one transaction; returns those that changed."""
        return self._db.write(lambda tx: merge(tx, described)) if described else set()

    def mark_due(self, source_id: int, now: datetime, reason: Message = REQUESTED) -> None:
        """Make the source due now, whatever its schedule says: `requested` returns it until it is visited."""
        self.get(source_id)
        sql = "UPDATE progress SET next_due_at = ?, due_reason = ? WHERE source_id = ?"
        self._run(sql, micros(now), encode(reason), source_id)

    def requested(self, now: datetime, limit: int) -> dict[int, int | None]:
        """Returns the sources that users are waiting for, the longest waiting first, each with the time of its last
        visit; those being visited are left out."""
        return self._db.read(lambda tx: requested(tx, now, limit))

    @writes
    def reset_future_times(self, tx: Transaction, now: datetime) -> int:
        """Make sources due that were visited, added or requested in the future: the clock was wrong then, and they
        should not wait for that day."""
        at, ahead = micros(now), micros(now) + _CLOCKS_DIFFER
        sql = """
            UPDATE progress SET next_due_at = ?, due_reason = ?, last_polled_at = ?
             WHERE is_active AND last_polled_at > ?
        """
        visited = tx.run(sql, at, CLOCK_SET_BACK.code, at, ahead)
        sql = "UPDATE progress SET next_due_at = ? WHERE is_active AND next_due_at > ? AND due_reason IN (?, ?)"
        requested = tx.run(sql, at, ahead, REQUESTED.code, ADDED.code)
        return visited + requested

    def claim_due(
        self,
        owner_id: int,
        intervals: Mapping[str, int],
        fallback: int,
        now: datetime,
        limit: int,
        most: Mapping[str, int] = MappingProxyType({}),
        total: int | None = None,
        *,
        without: Collection[int] = (),
    ) -> list[Claimed]:
        """Claim up to `limit` due sources: never visited first, then by priority, then the most overdue.

        Those in `without` are left out. `intervals` are minutes by kind, `fallback` those of other kinds. Kinds in
        `most` have limits of their own, in addition to the others; 0: none are claimed, and they stay due. `total`: at
        most this many of all. The cost grows with what is claimed: each query covers one kind, uses an index, and stops
        at its limit.
        """
        if limit < 1 and not any(most.values()):
            return []
        before: Collection[int] | None = None
        for width in _WIDTHS:
            wider = {kind: width * count for kind, count in most.items()}
            # Read before locking: an empty run takes no lock and writes nothing.
            due = self._db.read(
                partial(first_due, intervals=intervals, fallback=fallback, now=now, limit=width * limit, most=wider)
            )
            if width > 1:
                total = min(total or sys.maxsize, limit if limit > 0 else max(most.values()))
            unclaimed = {source_id: polled_at for source_id, polled_at in due.items() if source_id not in without}
            claimed = (
                self._db.write(partial(_claim_unvisited, due=unclaimed, owner_id=owner_id, now=now, limit=total))
                if unclaimed
                else []
            )
            # A wider look that finds the same has seen all there is.
            if claimed or not due or due.keys() == before:
                return claimed
            before = due.keys()
        return []

    def claim_requested(self, last_visits: Mapping[int, int | None], owner_id: int, now: datetime) -> list[Claimed]:
        """Claim these of `requested`; those that another process has visited since, or is visiting, are left out."""
        return self._db.write(lambda tx: _claim_unvisited(tx, last_visits, owner_id, now)) if last_visits else []

    def claim(self, source_ids: Sequence[int], owner_id: int, now: datetime) -> list[Claimed]:
        """Claim these, whatever their schedule says; those that are taken are left out."""
        return self._db.write(lambda tx: _claim(tx, source_ids, owner_id, now, None)) if source_ids else []

    def give_back(self, claimed: Sequence[Lease]) -> None:
        """Release them unchanged: they were not visited."""

        if claimed:
            self._db.write(lambda tx: leases.release(tx, *claimed))

    def holder(self, source_id: int) -> Holder | None:
        """Returns the process that is currently collecting it."""
        sql = """
            SELECT o.machine, o.pid, o.work FROM leases l JOIN owners o ON o.id = l.owner_id
             WHERE l.resource = 'source' AND l.resource_id = ?
        """
        return self._record(Holder, sql, source_id)

    def ids(self, *, kind: str | None = None) -> list[int]:
        """Returns all active sources, oldest visit first."""
        where, values = ("AND kind = ?", [kind]) if kind else ("", [])
        sql = f"""
            SELECT source_id FROM progress WHERE is_active {where}
             ORDER BY coalesce(last_polled_at, 0), source_id
        """
        return self._column(sql, *values)


def _follow(tx: Transaction, requests: Sequence[SourceRequest], now: datetime) -> list[tuple[int, bool]]:
    existing = _states(tx, requests)
    first: dict[tuple[str, str], SourceRequest] = {}
    for request in requests:
        # Of two requests for the same source, the first one counts.
        first.setdefault(request.address, request)
    fresh = [request for request in first.values() if request.address not in existing]
    removed = {address for address, (_, state) in existing.items() if state == SourceState.REMOVED}
    back = [request for request in first.values() if request.address in removed]
    if fresh:
        _begin(tx, fresh, now)
        existing = _states(tx, requests)
        rows = [
            (existing[request.address][0], request.target.kind, precedence(request.priority), True, *_BEGINNING)
            for request in fresh
        ]
        tx.insert("progress", ("source_id", "kind", "precedence", "is_active", *PROGRESS), rows)
        leases.announce(tx, "source", [row[0] for row in rows], now)
    for request in back:
        _take_up(tx, existing[request.address][0], request, now)
    new = {request.address for request in (*fresh, *back)}
    return [
        (existing[request.address][0], request.address in new and request is first[request.address])
        for request in requests
    ]


def key_of(platform: str, address: str, *more: object) -> str:
    """Returns a source's stable key: derived from its first address, kept when the address changes."""
    return hashlib.sha256("\n".join(map(str, (platform, address, *more))).encode()).hexdigest()[:20]


def _keys(tx: Transaction, requests: Sequence[SourceRequest], now: datetime) -> list[str]:
    """Returns the key of each. A key that moved away with its source is taken: what is at its address now is a
    different source."""
    keys = [key_of(source.platform, source.target.address) for source in requests]
    addresses = dict(zip(keys, (source.target.address for source in requests), strict=True))
    rows = tx.select_in("SELECT key, target FROM sources WHERE key IN {values}", list(addresses))
    gone = {key for key, target in rows if target != addresses[key]}
    return [
        key_of(source.platform, source.target.address, micros(now)) if key in gone else key
        for key, source in zip(keys, requests, strict=True)
    ]


def _states(tx: Transaction, requests: Sequence[SourceRequest]) -> dict[tuple[str, str], tuple[int, str]]:
    """Returns id and state of existing sources, by kind and address."""
    states: dict[tuple[str, str], tuple[int, str]] = {}
    sql = "SELECT target, id, state FROM sources WHERE kind = ? AND target IN {values}"
    for kind in {request.target.kind for request in requests}:
        addresses = dict.fromkeys(request.target.address for request in requests if request.target.kind == kind)
        rows = tx.select_in(sql, list(addresses), before=[kind])
        states |= {(kind, target): (source_id, state) for target, source_id, state in rows}
    return states


def _begin(tx: Transaction, fresh: Sequence[SourceRequest], now: datetime) -> None:
    rows = [
        {
            "key": key,
            "platform": source.platform,
            "kind": source.target.kind,
            "target": source.target.address,
            "name": source.name or source.target.name or source.target.address,
            "is_name_given": bool(source.name or source.target.name),
            **source.columns(),
            "state": str(SourceState.ACTIVE),
            "state_changed_at": micros(now),
            "created_at": micros(now),
        }
        for source, key in zip(fresh, _keys(tx, fresh, now), strict=True)
    ]
    tx.insert("sources", list(rows[0]), [list(row.values()) for row in rows])


def _take_up(tx: Transaction, source_id: int, request: SourceRequest, now: datetime) -> None:
    """Adds a removed source again: its items and progress are as they were, its settings are the new ones."""
    columns = request.columns() | ({"name": request.name, "is_name_given": True} if request.name else {})
    tx.run(f"UPDATE sources SET {placeholders(columns)} WHERE id = ?", *columns.values(), source_id)
    _set_state(tx, source_id, SourceState.ACTIVE, None, now)
    set_pace(tx, source_id, request.interval_minutes)
    set_precedence(tx, {source_id: request.priority})
    _read_anew(tx, source_id)


_THESE = f"SELECT {JOINED_COLUMNS} FROM sources s JOIN progress p ON p.source_id = s.id WHERE s.id IN {{values}}"


def _named(tx: Transaction, after: int, kind: str | None, states: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Scans id, name and address of sources, in order of id: databases differ in how they fold case."""
    where, of_kind = ("AND kind = ?", [kind]) if kind is not None else ("", [])
    sql = f"SELECT id, name, target FROM sources WHERE id > ? {where} AND state IN {{values}} ORDER BY id LIMIT ?"
    while rows := tx.select_in(sql, states, before=[after, *of_kind], after=[_NAMES_AT_ONCE]):
        yield from rows
        after = rows[-1][0]


def _described(
    tx: Transaction, category: str | None, words: str, after: int, limit: int, kind: str | None, states: Sequence[str]
) -> list[int]:
    """Returns the sources of that category whose names or addresses contain all the words."""
    members = None if category is None else facets.sources_in(tx, category)
    parts = tokens.folded(words).split()
    matches = (
        source_id
        for source_id, name, target in _named(tx, after, kind, states)
        if (members is None or source_id in members)
        and all(part in tokens.folded(f"{name}\n{target}") for part in parts)
    )
    return list(islice(matches, limit))


def _set_state(tx: Transaction, source_id: int, state: SourceState, reason: str | None, now: datetime) -> None:
    sql = "UPDATE sources SET state = ?, state_reason = ?, state_changed_at = ? WHERE id = ?"
    tx.run(sql, str(state), None if reason is None else encode(reason), micros(now), source_id)
    is_active = state == SourceState.ACTIVE
    if not is_active:
        # It is no longer visited, so no visit could ever close them.
        for problem in ("failing", "silent"):
            alerts.close(tx, f"source {source_id} {problem}", micros(now))
    tx.run("UPDATE progress SET is_active = ? WHERE source_id = ?", is_active, source_id)
    if is_active:
        # Resumed by a user: failures are reset. A server's Retry-After still applies.
        tx.run("UPDATE progress SET failures_in_a_row = 0 WHERE source_id = ? AND failures_in_a_row > 0", source_id)
        sql = "UPDATE progress SET due_reason = NULL WHERE source_id = ? AND due_reason = ?"
        tx.run(sql, source_id, ON_PROBATION.code)
        row = tx.one("SELECT interval_minutes FROM sources WHERE id = ?", source_id)
        set_pace(tx, source_id, row[0] if row else None)


def set_pace(tx: Transaction, source_id: int, interval_minutes: int | None) -> None:
    """Schedule by its own interval, else its tier's, from the last visit; with neither, its kind's applies."""
    if interval_minutes is None:
        due, reason, values = "CAST(tier_minutes AS BIGINT) * 60000000", "tier_reason", []
    else:
        due, reason, values = "?", "?", [interval_minutes * 60_000_000, OWN_INTERVAL.code]
    sql = f"""
        UPDATE progress SET next_due_at = last_polled_at + {due}, due_reason = {reason}
         WHERE source_id = ? AND (due_reason IS NULL OR due_reason IN (?, tier_reason))
    """
    tx.run(sql, *values, source_id, OWN_INTERVAL.code)


def _claim(
    tx: Transaction, source_ids: Sequence[int], owner_id: int, now: datetime, limit: int | None
) -> list[Claimed]:
    """Claims the first `limit` that exist and are free; in the order given."""
    rows = tx.select_in("SELECT id FROM sources WHERE id IN {values} AND state <> 'removed'", source_ids)
    existing = {source_id for (source_id,) in rows}
    ids = [source_id for source_id in source_ids if source_id in existing]
    taken = leases.claim(tx, "source", ids, owner_id, now, limit)
    # Read after the claim: the previous holder may have changed them.
    sql = f"""
        SELECT {JOINED_COLUMNS}, EXISTS (SELECT 1 FROM follow_ups f WHERE f.source_id = s.id) AS has_follow_ups
          FROM sources s JOIN progress p ON p.source_id = s.id WHERE s.id IN {{values}}
    """
    rows = tx.select_in(sql, list(taken))
    claimed = {
        source.id: Claimed(source, progress, taken[source.id], follow_ups.has_follow_ups)
        for (source, progress), follow_ups in zip(with_progress(tx, rows), tx.as_records(_FollowUps, rows), strict=True)
    }
    return [claimed[source_id] for source_id in dict.fromkeys(source_ids) if source_id in taken]


def _claim_unvisited(
    tx: Transaction, due: Mapping[int, int | None], owner_id: int, now: datetime, limit: int | None = None
) -> list[Claimed]:
    """Claims sources that were not visited between our read and our claim."""
    kept: list[Claimed] = []
    for claim in _claim(tx, list(due), owner_id, now, limit):
        if (
            to_micros(claim.progress.last_polled_at) == due[claim.source.id]
            and claim.source.state == SourceState.ACTIVE
        ):
            kept.append(claim)
        else:
            leases.release(tx, claim.lease)
    return kept


def move_target(tx: Transaction, source: Source, address: str) -> bool:
    """Change the source's address; its key stays. Returns False if another source has that address already."""
    if tx.one("SELECT 1 FROM sources WHERE kind = ? AND target = ?", source.kind, address):
        return False
    tx.run("UPDATE sources SET target = ? WHERE id = ?", address, source.id)
    return True


def keep_paces(tx: Transaction, sources: Sequence[Source]) -> None:
    """Apply intervals that a user changed during the visits."""
    before = {source.id: source.interval_minutes for source in sources}
    for source_id, minutes in tx.select_in("SELECT id, interval_minutes FROM sources WHERE id IN {values}", [*before]):
        if minutes != before[source_id]:
            set_pace(tx, source_id, minutes)


def _read_anew(tx: Transaction, source_id: int) -> None:
    """Makes the next answer be parsed even if it is unchanged: other settings may find other things in it."""
    tx.run(
        "UPDATE progress SET etag = NULL, last_modified = NULL, body_hash = NULL WHERE source_id = ?",
        source_id,
    )


def rename(tx: Transaction, source_id: int, name: str) -> None:
    """Set the name that the source gives itself, unless a user gave one."""
    tx.run("UPDATE sources SET name = ? WHERE id = ? AND is_name_given = ?", name, source_id, False)


def refuse_twice(source: Source, is_new: bool) -> Source:
    if not is_new:
        raise Conflict(
            "{target} is already source {id} ({source})",
            target=source.target,
            id=source.id,
            source=source.name,
        )
    return source
