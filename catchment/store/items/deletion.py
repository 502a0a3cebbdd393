"""Deletes items or authors permanently: all stored data is removed, a record stays, and they are not collected again.

The record holds no content, and identities only as keyed hashes. The key is in the same database: it keeps names from
being read, not from being guessed. `Retention` deletes old items, `Cleanup` old operational records.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment.clock import micros
from catchment.errors import NotFound
from catchment.lazy import lazy_imports
from catchment.model import Event, Record, View
from catchment.policy.retention import Sighting, still_shown_since, unwanted
from catchment.store.database import Row, StorePart, Transaction, writes
from catchment.store.item_fields import decode, to_json
from catchment.store.items.reply_counts import count_replies
from catchment.store.search import index
from catchment.store.search.index import SearchIndex
from catchment.store.sources.metrics import MetricSpan
from catchment.store.sources.tasks import Tasks

with lazy_imports():
    from catchment.store import cache, schema

TASKS_KEPT = timedelta(hours=24)

ELSEWHERE = {"index_mark": "how far the index is; no item's own", "postings": "of the index, which lets go of items"}
"""Tables with an item id that are not cleared by it, and why."""


def hanging() -> list[str]:
    """Returns the tables whose rows belong to one item each, found in the schema, so that a new table is included
    automatically."""
    return [name for name, table in schema.metadata.tables.items() if "item_id" in table.c and name not in ELSEWHERE]


def remove_items(tx: Transaction, item_ids: Sequence[int]) -> int:
    """Delete these items and all dependent rows, in this transaction; returns how many there were."""
    ids = [
        row[0]
        for row in tx.select_in(f"SELECT id FROM items WHERE id IN {{values}} ORDER BY id {tx.lock_rows()}", item_ids)
    ]
    index.remove(tx, ids)
    shown = tx.select_in("SELECT source_id, count(*) FROM sightings WHERE item_id IN {values} GROUP BY source_id", ids)
    sql = "UPDATE source_counts SET item_count = item_count - ? WHERE source_id = ?"
    tx.many(sql, [(count, source_id) for source_id, count in sorted(shown)])
    cache.gone_items(tx, [source_id for source_id, _ in sorted(shown)])
    sql = """
        SELECT DISTINCT platform, scope, thread_id FROM items
         WHERE id IN {values} AND thread_id IS NOT NULL AND NOT is_head
    """
    threads = tx.select_in(sql, ids)
    for table in hanging():
        tx.many(f"DELETE FROM {table} WHERE item_id = ?", [(item_id,) for item_id in ids])
    tx.many("DELETE FROM items WHERE id = ?", [(item_id,) for item_id in ids])
    for platform, scope in sorted({(platform, scope) for platform, scope, _ in threads}):
        of_scope = [thread_id for *place, thread_id in threads if place == [platform, scope]]
        count_replies(tx, platform, scope, of_scope, is_known=True)
    return len(ids)


_KEY = "forgetting_key"
_LOCK_KEY = 0x666F7267  # "forg"
_BATCH = 200
# Authors are found by scanning: this many items per read.
_WINDOW = 5_000

Name = tuple[str, ...]
"""An identity: ("item", platform, scope, id) or ("author", platform, name)."""


class Forget(Record, frozen=True):
    """What to delete permanently, why, and who asked for it."""

    what: str
    """item or author"""
    platform: str
    by: str
    reason: str | None = None
    item_id: int | None = None
    author: str | None = None


class ForgottenView(View, frozen=True):
    """The record of a deletion; it says nothing about what was deleted."""

    id: int
    what: str
    platform: str
    forgotten_at: datetime
    forgotten_by: str
    reason: str | None
    item_count: int
    revision_count: int
    answer_count: int
    event_count: int
    is_finished: bool


class Deletion(StorePart):
    def records(self, limit: int = 100, before: int | None = None) -> list[ForgottenView]:
        """Returns the records of deletions, the latest first."""
        columns = ", ".join(ForgottenView.__struct_fields__)
        sql = f"SELECT {columns} FROM forgotten WHERE id < ? ORDER BY id DESC LIMIT ?"
        return self._records(ForgottenView, sql, before or 2**62, limit)

    def platform_of(self, item_id: int) -> str:
        row = self._one("SELECT platform FROM items WHERE id = ?", item_id)
        if row is None:
            raise NotFound("there is no item {id}", "`catchment items` lists the stored items", id=item_id)
        return str(row[0])

    def followed_on(self, platform: str) -> tuple[str, ...]:
        """Returns the platform, if it ever had a source: its package may be uninstalled, but its items are still
        stored."""
        row = self._one("SELECT platform FROM sources WHERE platform = ? LIMIT 1", platform)
        return (str(row[0]),) if row else ()

    def count(self, request: Forget) -> int:
        """Returns how many items it affects."""
        return sum(len(ids) for ids in self._found(request))

    def forget(self, request: Forget, now: datetime, seen: Callable[[int], None] = lambda _: None) -> ForgottenView:
        """Delete everything, batch by batch; returns the record. Repeated after a kill, it finishes.

        The marks are written first: from then on it is not collected again, whatever happens to the rest.
        """
        with self._db.overwriting():
            record_id = self._db.write(lambda tx: _begun(tx, request, micros(now)))
            batches = list(self._found(request))
            # Before the items: once these are gone, their events cannot be found any more.
            self._forget_events(record_id, {item_id for ids in batches for item_id in ids})
            gone = 0
            for ids in batches:
                gone += self._db.write(lambda tx, ids=ids: _forget_items(tx, record_id, ids))  # type: ignore[misc]
                seen(gone)
            if request.author is not None:
                self._forget_quotes(request.platform, request.author)
            SearchIndex(self._db).purge()
            self._run("UPDATE forgotten SET is_finished = ? WHERE id = ?", True, record_id)
        (record,) = self.records(1, record_id + 1)
        return record

    def _found(self, request: Forget) -> Iterator[list[int]]:
        """Yields the ids of the affected items, a few at a time."""
        if request.item_id is not None:
            yield [request.item_id]
            return
        assert request.author is not None
        for rows in self._windows(
            "SELECT id, author, author_id FROM items WHERE id > ? AND id <= ? AND platform = ?", request.platform
        ):
            ids = [row[0] for row in rows if _is_named(request.author, *row[1:])]
            yield from (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))

    def _forget_events(self, record_id: int, about: set[int]) -> None:
        """Deletes the content of events about one of the items."""
        sql = "SELECT id, body FROM outbox WHERE id > ? AND id <= ? AND body LIKE '%\"item%'"
        for rows in self._windows(sql, last="SELECT max(id) FROM outbox"):
            events = [(event_id,) for event_id, body in rows if _item_told(decode(body)) in about]
            if events:
                self._clear_events(record_id, events)

    @writes
    def _clear_events(self, tx: Transaction, record_id: int, events: Sequence[tuple[int]]) -> None:
        # Its id stays: a hole would look like an event that was not delivered in time.
        tx.many(f"UPDATE outbox SET event = '{Event.FORGOTTEN}', body = '{{}}' WHERE id = ?", events)
        tx.run("UPDATE forgotten SET event_count = event_count + ? WHERE id = ?", len(events), record_id)

    def _windows(
        self, sql: str, *values: Any, last: str = "SELECT last_item_id FROM ledger WHERE id = 1"
    ) -> Iterator[list[Row]]:
        """Yields the rows that `sql` finds between two ids, up to the `last` one, a window of ids per read."""
        row = self._one(last)
        for start in range(0, int(row[0] or 0) if row else 0, _WINDOW):
            yield self._all(sql, start, start + _WINDOW, *values)

    def _forget_quotes(self, platform: str, author: str) -> None:
        """Anonymises quotes of the author in other items: the reference stays, author and text do not."""
        sql = """
            SELECT r.item_id, r.position, r.author FROM item_references r JOIN items i ON i.id = r.item_id
             WHERE r.item_id > ? AND r.item_id <= ? AND i.platform = ? AND r.author IS NOT NULL
            """
        for rows in self._windows(sql, platform):
            keys = [(item_id, position) for item_id, position, name in rows if _is_named(author, name)]
            self._db.write(lambda tx, keys=keys: _unquote(tx, keys))  # type: ignore[misc]


# Filtering on collection


def forgotten_names(
    tx: Transaction, platform: str, named: Sequence[tuple[str, str, str | None, str | None]]
) -> set[tuple[str, str]]:
    """The same, for scope, id, and the author's name and id."""
    if not named:
        return set()
    _hold_off(tx, "pg_advisory_xact_lock_shared")
    key = _key(tx)
    if key is None:
        return set()
    by_mark: dict[bytes, set[tuple[str, str]]] = {}
    for scope, external_id, *authors in named:
        for mark in _marks(key, platform, scope, external_id, *authors):
            by_mark.setdefault(mark, set()).add((scope, external_id))
    rows = tx.select_in("SELECT mark FROM forgotten_marks WHERE mark IN {values}", list(by_mark))
    return {item_key for row in rows for item_key in by_mark[bytes(row[0])]}


def _marks(key: bytes, platform: str, scope: str, external_id: str, *authors: str | None) -> Iterator[bytes]:
    yield _mark(key, ("item", platform, scope, external_id))
    for name in authors:
        if name:
            yield _mark(key, ("author", platform, name.casefold()))


def _mark(key: bytes, name: Name) -> bytes:
    return hmac.digest(key, "\x1f".join(name).encode("utf-8", "surrogatepass"), hashlib.sha256)


def _key(tx: Transaction) -> bytes | None:
    row = tx.one("SELECT value FROM settings WHERE name = ?", _KEY)
    return None if row is None else bytes.fromhex(decode(row[0]))


def _is_named(author: str, *names: str | None) -> bool:
    return any(name is not None and name.casefold() == author.casefold() for name in names)


# Deletion steps


def _hold_off(tx: Transaction, lock: str) -> None:
    """Makes page writes and the start of a deletion wait for each other: a page that does not know of the deletion yet
    is committed before the deletion searches for items. SQLite has only one writer."""
    if tx.is_postgres:
        tx.run(f"SELECT {lock}(?)", _LOCK_KEY)


def _begun(tx: Transaction, request: Forget, now: int) -> int:
    _hold_off(tx, "pg_advisory_xact_lock")
    key = _key(tx)
    if key is None:
        key = secrets.token_bytes(32)
        tx.run("INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)", _KEY, to_json(key.hex()), now)
    sql = """
        INSERT INTO forgotten (what, platform, forgotten_at, forgotten_by, reason, item_count, revision_count,
                               answer_count, event_count, is_finished)
        VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, ?) RETURNING id
    """
    record_id = tx.number(sql, request.what, request.platform, now, request.by, request.reason, False)
    if request.author is not None:
        _remember(tx, record_id, [_mark(key, ("author", request.platform, request.author.casefold()))])
    return record_id


def _remember(tx: Transaction, record_id: int, marks: Iterable[bytes]) -> None:
    rows = [(mark, record_id) for mark in sorted(set(marks))]
    tx.insert("forgotten_marks", ("mark", "forgotten_id"), rows, "ON CONFLICT DO NOTHING")


def _forget_items(tx: Transaction, record_id: int, ids: Sequence[int]) -> int:
    """Deletes the items and everything else that contains parts of them, in one transaction."""
    key = _key(tx)
    assert key is not None
    names = [
        *tx.select_in("SELECT platform, scope, external_id FROM items WHERE id IN {values}", ids),
        *tx.select_in("SELECT platform, scope, external_id FROM aliases WHERE item_id IN {values}", ids),
    ]
    _remember(tx, record_id, [_mark(key, ("item", *name)) for name in names])
    revisions = tx.select_in("SELECT count(*) FROM revisions WHERE item_id IN {values}", ids)
    # Every stored answer of the sources that showed them: only a parser could tell which answer shows what.
    sources = {row[0] for row in tx.select_in("SELECT source_id FROM sightings WHERE item_id IN {values}", ids)}
    counts: dict[str, int] = {
        "revision_count": sum(row[0] for row in revisions),
        "answer_count": sum(
            tx.run("DELETE FROM raw_answers WHERE source_id = ?", source_id) for source_id in sorted(sources)
        ),
    }
    _unquote(tx, _quotes_of(tx, names))
    counts["item_count"] = remove_items(tx, ids)
    added = ", ".join(f"{name} = {name} + ?" for name in counts)
    tx.run(f"UPDATE forgotten SET {added} WHERE id = ?", *counts.values(), record_id)
    return counts["item_count"]


def _item_told(body: dict[str, Any]) -> object:
    item = body.get("item")
    return item.get("id") if isinstance(item, dict) else body.get("item_id")


def _quotes_of(tx: Transaction, names: Sequence[Row]) -> list[tuple[int, int]]:
    """Returns where other items quote these."""
    platforms = {platform for platform, _, _ in names}
    sql = """
        SELECT r.item_id, r.position, i.platform FROM item_references r JOIN items i ON i.id = r.item_id
         WHERE r.external_id IN {values}
    """
    rows = tx.select_in(sql, sorted({external_id for _, _, external_id in names}))
    return [(item_id, position) for item_id, position, platform in rows if platform in platforms]


def _unquote(tx: Transaction, keys: Sequence[tuple[int, int]]) -> None:
    tx.many(
        """
        UPDATE item_references
           SET author = NULL, text = NULL, author_display_name = NULL, created_at = NULL, url = NULL, media = '[]'
         WHERE item_id = ? AND position = ?
        """,
        keys,
    )
    cache.changed_items(tx, [item_id for item_id, _ in keys])


# Sightings per transaction and items per run; the rest waits for the next run.
MOST = 50_000
_NEWEST = 300


class Retention(StorePart):
    """Removes items that are older than their kind's retention time and no longer shown.

    Items that a source still shows stay: removed, they would come back as new with the next visit. Items that several
    sources showed stay as long as one of them keeps them.
    """

    def clear(
        self, days: Mapping[str, int], now: datetime, is_over: Callable[[], bool] = lambda: False, most: int = MOST
    ) -> int:
        """Remove expired items, oldest first; returns how many were removed."""
        before = {kind: micros(now - timedelta(days=kept)) for kind, kept in days.items()}
        gone = 0
        # Removed sources too.
        sql = "SELECT id, kind FROM sources WHERE kind IN {values} ORDER BY kind, id"
        for source_id, kind in self._select_in(sql, list(days)):
            for removed in self._of_source(source_id, before[kind], before):
                gone += removed
                if gone >= most or is_over():
                    return gone
        return gone

    def _of_source(self, source_id: int, until: int, before: Mapping[str, int]) -> Iterator[int]:
        sql = f"""
            SELECT ordered_at, item_id FROM sightings
             WHERE source_id = ? AND (ordered_at, item_id) > (?, ?) AND ordered_at < ?
             ORDER BY ordered_at, item_id LIMIT {_BATCH}
        """
        cursor = (-(2**62), 0)
        while rows := self._all(sql, source_id, *cursor, until):
            ids = [item_id for _, item_id in rows]
            yield self._db.write(lambda tx, ids=ids: remove_items(tx, _expired(tx, ids, before)))  # type: ignore[misc]
            cursor = rows[-1][0], rows[-1][1]


def _expired(tx: Transaction, ids: list[int], before: Mapping[str, int]) -> list[int]:
    """Returns those that no source keeps any more."""
    sql = """
        SELECT g.item_id, g.source_id, s.kind, g.ordered_at, g.last_seen_at, p.is_active
          FROM sightings g JOIN sources s ON s.id = g.source_id LEFT JOIN progress p ON p.source_id = s.id
         WHERE g.item_id IN {values}
    """
    rows = [(Sighting(*values), is_active) for *values, is_active in tx.select_in(sql, ids)]
    active = sorted({sighting.source_id for sighting, is_active in rows if is_active})
    seen_at = {source_id: _last_seen_at(tx, source_id) for source_id in active}
    shown_since = {source_id: still_shown_since(at) for source_id, at in seen_at.items() if at is not None}
    return unwanted(ids, [sighting for sighting, _ in rows], before, shown_since)


def _last_seen_at(tx: Transaction, source_id: int) -> int | None:
    """Returns when the source last showed any of its newest items."""
    sql = f"""
        SELECT max(last_seen_at) FROM
               (SELECT last_seen_at FROM sightings WHERE source_id = ?
                 ORDER BY ordered_at DESC, item_id DESC LIMIT {_NEWEST}) newest
    """
    row = tx.one(sql, source_id)
    return None if row is None or row[0] is None else int(row[0])


# Deleted in batches of this size: clearing must never lock the database for long.
_RECORDS_AT_ONCE = 500


class Cleanup(StorePart):
    """Bounds operational records: raw answers, runs, attempts, metrics, closed alerts, credential changes and events.

    An event is kept for its days, and after that for listeners that have not received it yet; but never longer than
    runs are kept.
    """

    def clear(
        self, now: datetime, *, raw_days: int, run_days: int, attempt_days: int, event_days: int, metrics_days: int
    ) -> dict[str, int]:
        """Delete what is older; returns how many rows of each were deleted."""
        run_before, attempt_before = micros(now - timedelta(days=run_days)), micros(now - timedelta(days=attempt_days))
        event_before = micros(now - timedelta(days=event_days))
        position = self._one("SELECT min(position) FROM deliveries WHERE is_active")
        delivered = position[0] if position and position[0] is not None else 2**62
        unused_runs = """
            started_at < ? AND finished_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM run_sources s WHERE s.run_id = runs.id)
        """
        return {
            "tasks": Tasks(self._db).clear(now - TASKS_KEPT),
            "raw_answers": self._delete("raw_answers", "answered_at < ?", micros(now - timedelta(days=raw_days))),
            "run_sources": self._delete("run_sources", "started_at < ?", run_before, key="run_id, source_id"),
            "board_runs": self._delete("board_runs", "started_at < ?", run_before, key="run_id, source_id"),
            "thread_runs": self._delete("thread_runs", "started_at < ?", run_before, key="run_id, thread_row_id"),
            "floor_audits": self._delete_audits(run_before),
            "gap_repairs": self._delete("gap_repairs", "started_at < ?", run_before),
            "runs": self._delete("runs", unused_runs, run_before),
            "attempts": self._delete("attempts", "minute < ?", attempt_before, key="minute"),
            "metrics": self._delete_metrics(MetricSpan.HOUR, run_before)
            + self._delete_metrics(MetricSpan.DAY, micros(now - timedelta(days=metrics_days))),
            "alerts": self._delete("alerts", "closed_at < ?", run_before),
            "credential_changes": self._delete("credential_changes", "changed_at < ?", run_before),
            "outbox": self._delete("outbox", "created_at < ? AND id <= ?", event_before, delivered)
            + self._delete("outbox", "created_at < ?", run_before),
        }

    def _delete_audits(self, before: int) -> int:
        old = "SELECT id FROM floor_audits WHERE started_at < ?"
        threads = f"SELECT id FROM floor_audit_threads WHERE audit_id IN ({old})"
        key = "audit_thread_id, floor_number"
        self._delete("floor_audit_floors", f"audit_thread_id IN ({threads})", before, key=key)
        self._delete("floor_audit_threads", f"audit_id IN ({old})", before)
        return self._delete("floor_audits", "started_at < ?", before)

    def _delete_metrics(self, span: MetricSpan, before: int) -> int:
        where, key = "span = ? AND starts_at < ?", "span, starts_at"
        return sum(
            self._delete(table, where, str(span), before, key=key) for table in ("crawl_metrics", "global_metrics")
        )

    def _delete(self, table: str, where: str, *values: Any, key: str = "id") -> int:
        """Deletes in batches; returns how many rows."""
        sql = f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {where} LIMIT {_RECORDS_AT_ONCE})"
        total = 0
        while deleted := self._run(sql, *values):
            total += deleted
        return total
