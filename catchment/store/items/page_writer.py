"""Writes a page in one transaction: the items of an answer, and the progress that it proves.

    check the lease ▸ lock the known rows ▸ read the facts ▸ decide(facts) ▸ take the change number ▸
    items, revisions, sightings, tags, references, gaps, raw answer, progress, run record, outbox

`decide` is a pure function that the caller passes in; this module reads what it needs and writes what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from catchment.clock import micros, moment
from catchment.decoders import json_decoder
from catchment.model import (
    FinishedVisit,
    Gap,
    Key,
    Lease,
    Media,
    Page,
    PageFacts,
    PageWrite,
    PastContent,
    RawAnswer,
    RefinedItem,
    Source,
    StoredItem,
    UnchangedRow,
)
from catchment.policy.page_facts import (
    all_keys,
    believed_aliases,
    lookalikes,
    needs_last_point,
    needs_past_contents,
    needs_title_fingerprint,
    possible_keys,
)
from catchment.store import cache, leases
from catchment.store.database import Database, Row, Transaction, is_database_down
from catchment.store.item_fields import STORED_COLUMNS, column_index, stored_item
from catchment.store.items.deletion import forgotten_names
from catchment.store.items.follow_ups import update_follow_ups
from catchment.store.items.item_writer import (
    keep_raw,
    lock_threads,
    tell_collected,
    write_items,
)
from catchment.store.items.rechecks import set_rechecks
from catchment.store.items.reply_counts import write_reply_counts
from catchment.store.items.shown_entries import keep_shown
from catchment.store.items.threads import (
    floor_holders,
    held_floors,
    lock_floors,
    note_boards,
    stored_threads,
    write_threads,
)
from catchment.store.items.views import last_points
from catchment.store.row_mappers import columns
from catchment.store.sources.gaps import write_gaps
from catchment.store.sources.metrics import count_all_attempts
from catchment.store.sources.runs import note_change, note_page, set_progress, write_ends
from catchment.store.spending import keep_walk, settle
from catchment.store.write_group import WriteGroup

# How many of a source's newest items are compared when a feed may have changed all its ids.
LOOKALIKES = 300
# A rhythm needs this many posts; where each post has fifty replies, they are among this many items.
_RHYTHM, _RHYTHM_AMONG = 50, 2_500
_ALIASES_KEY = 0x616C6961  # "alia": PostgreSQL's advisory lock for pages whose items have other ids
_FINGERPRINT, _RULE = column_index("fingerprint"), column_index("fingerprint_rule")

Written = TypeVar("Written", bound=PageWrite)
Decide = Callable[[PageFacts], PageWrite]
PageTask = tuple[Page, Decide]
Fingerprint = Callable[[str | None, str | None, str | None, Sequence[Media]], bytes]


class OverlappingPages(Exception):
    """Pages of a group show the same item: the second must be decided after the first is written."""


class PageWriter:
    def __init__(self, database: Database, fingerprint: Fingerprint, *, tells_ready: bool = False) -> None:
        self._db, self._fingerprint, self._tells_ready = database, fingerprint, tells_ready
        self.group = WriteGroup[PageTask, PageWrite](
            lambda tasks: database.write(lambda tx: self.write_in(tx, tasks)), is_everyones=is_database_down
        )

    def write(self, page: Page, decide: Callable[[PageFacts], Written]) -> Written:
        """Write the page whole or not at all, perhaps in one transaction with pages of other threads. Raises LeaseLost
        if the lease was superseded.

        `decide` is called once per attempt: a transaction that hits a deadlock is repeated as a whole.
        """
        return cast(Written, self.group.write((page, decide)))

    def end(self, finished: Sequence[FinishedVisit]) -> list[FinishedVisit]:
        """End visits that had nothing (more) to store, in one transaction; returns those whose lease was lost."""

        def change(tx: Transaction) -> list[FinishedVisit]:
            lost = leases.lost(tx, [visit.lease for visit in finished])
            kept = [visit for visit in finished if visit.lease not in lost]
            write_ends(tx, kept, tells_ready=self._tells_ready)
            count_all_attempts(tx, [(visit.source, visit.outcomes) for visit in kept])
            note_boards(tx, kept)
            return [visit for visit in finished if visit.lease in lost]

        return self._db.write(change)

    def keep_raw(self, source: Source, lease: Lease, run_id: int, answered_at: datetime, raw: RawAnswer) -> None:
        """Store an answer that could not be parsed: a fixed parser will read it again."""

        def change(tx: Transaction) -> None:
            leases.check(tx, lease)
            keep_raw(tx, source.id, run_id, micros(answered_at), raw)

        self._db.write(change)

    def write_in(self, tx: Transaction, tasks: Sequence[PageTask]) -> list[PageWrite]:
        """Write the pages as a part of this transaction. Raises OverlappingPages.

        All rows of items are locked before the ledger, and what pages of different sources share comes last: no
        transaction waits for another one's rows while it holds those.
        """
        leases.check(tx, *(page.lease for page, _ in tasks))
        if tx.is_postgres and any(item.item.aliases for page, _ in tasks for item in page.items):
            # Two ids of one item have no key in common on which two transactions would meet.
            tx.all("SELECT pg_advisory_xact_lock(?)", _ALIASES_KEY)
        lock_floors(tx, (page for page, _ in tasks))
        facts = [self.facts(tx, page) for page, _ in tasks]
        if len(tasks) > 1:
            _refuse_overlap([page for page, _ in tasks], facts)
        written = [(page, decide(page_facts)) for (page, decide), page_facts in zip(tasks, facts, strict=True)]
        # A single page locks its own before it takes the ledger.
        for page, write in written if len(written) > 1 else ():
            lock_threads(tx, page, write)
        answered: list[int] = []
        numbers: dict[tuple[int, int], int] = {}
        for page, write in written:
            number, with_replies = self._write_page(tx, page, write)
            answered += with_replies
            if number is not None:
                numbers[page.run_id, page.source.id] = number
        write_ends(
            tx,
            [FinishedVisit(page.source, page.lease, page.run_id, write.end) for page, write in written if write.end],
            tells_ready=self._tells_ready,
            change_numbers=numbers,
        )
        count_all_attempts(tx, [(page.source, page.outcomes) for page, _ in tasks])
        settle(tx, [booking for page, _ in tasks for booking in page.bookings])
        if hot := [(page, write) for page, write in written if page.invalidates_cache]:
            # A process that starts to cache a source waits for this one, and this one waits for no lock after it.
            shown = [change.stored.id for _, write in hot for change in write.changes if change.stored]
            shown += [item_id for _, write in hot for item_id in write.unchanged.item_ids]
            cache.changed_items(tx, [*shown, *answered], [page.source.id for page, _ in hot])
        return [write for _, write in written]

    def _write_page(self, tx: Transaction, page: Page, write: PageWrite) -> tuple[int | None, tuple[int, ...]]:
        """Returns the change number, if anything changed, and the stored items that got new replies."""
        now = micros(page.answered_at)
        change_number, answered, ids = write_items(tx, page, write, now)
        write_threads(tx, page, write, ids, now)
        write_reply_counts(tx, page, write)
        set_rechecks(tx, write.rechecks)
        update_follow_ups(tx, page.source, write.follow_ups, page.answered_at)
        for raw in page.raws if write.is_raw_kept else ():
            keep_raw(tx, page.source.id, page.run_id, now, raw)
        write_gaps(tx, page, write, now)
        if page.shown is not None:
            keep_shown(tx, page.source, page.shown, write.changes, ids)
        if page.is_continuable:
            keep_walk(tx, page.source.id, write.unfinished_walk, now)
        if change_number is not None:
            tell_collected(tx, page, write.counts, change_number, now)
        if write.end is None:
            note_page(tx, page, write.counts, write.valid, now)
            if self._tells_ready and change_number is not None:
                note_change(tx, page, change_number)
            if write.progress is not None:
                set_progress(tx, [(page.source, write.progress)])
        return change_number, tuple(answered)

    def facts(self, tx: Transaction, page: Page) -> PageFacts:
        """Returns what is stored about a page; the rows of its items are locked."""
        candidates = [(key, item) for item in page.items for key in possible_keys(item)]
        stored = self._stored(tx, page, [key for key, _ in candidates])
        unknown = [(key, item) for key, item in candidates if key not in stored]
        names = [(*key, item.item.author, item.item.author_id) for key, item in unknown]
        is_any_new = any(not item.is_listed for _, item in unknown)
        shown = [(item, stored[key]) for key, item in candidates if key in stored and not item.is_listed]
        return PageFacts(
            stored,
            _unchanged(tx, page, page.repeated.item_ids),
            self._lookalikes(tx, page, stored.values(), unknown) if page.may_have_new_ids and is_any_new else (),
            frozenset(forgotten_names(tx, page.source.platform, names)),
            _earlier(tx, [before.id for item, before in shown if needs_past_contents(item, before)]),
            last_points(tx, [before.id for item, before in shown if needs_last_point(item, before)]),
            self._retitled(tx, {before.id: item for item, before in shown if needs_title_fingerprint(item, before)}),
            stored_threads(tx, page.source.id, page.thread_ids),
            held_floors(tx, page.source.platform, page.floors) if page.floors else {},
            floor_holders(tx, page.source.platform, [item.item for _, item in candidates]),
            _open_gaps(tx, page.source.id) if page.items or page.repeated else (),
            page.suspects_staleness and _is_seen_before(tx, page.source.id, page.raws),
            _newest_times(tx, page) if page.needs_rhythm or is_any_new else None,
        )

    def _stored(self, tx: Transaction, page: Page, keys: Sequence[Key]) -> dict[Key, StoredItem]:
        """Returns the stored items with these keys."""
        rows: dict[Key, Row] = {}
        scopes: dict[str, dict[str, None]] = {}
        for scope, external_id in keys:
            scopes.setdefault(scope, {})[external_id] = None
        aliased = [item for item in page.items if item.item.aliases]
        for item in aliased:
            scopes[item.item.scope] |= dict.fromkeys(item.item.aliases)
        for scope, ids in scopes.items():
            rows |= {(scope, row[1]): row for row in _rows_by_id(tx, page, scope, list(ids))}
            if renamed := _rows_by_alias(tx, page, scope, [id_ for id_ in ids if (scope, id_) not in rows]):
                shown = {row[0] for row in rows.values()}
                believed = believed_aliases(shown, [(alias, row[0]) for *row, alias in renamed])
                rows |= {(scope, alias): tuple(row) for *row, alias in renamed if believed.get(alias) == row[0]}
        for item in aliased:
            aliases = ((item.item.scope, alias) for alias in item.item.aliases)
            if item.key not in rows and (aliased_row := next((rows[key] for key in aliases if key in rows), None)):
                rows[item.key] = aliased_row
        seen = _seen(tx, page, [row[0] for row in rows.values()])
        nowhere = 0, False, False
        return {key: stored_item(row, *seen.get(row[0], nowhere)) for key, row in self._current(tx, page, rows).items()}

    def _lookalikes(
        self,
        tx: Transaction,
        page: Page,
        stored: Iterable[StoredItem],
        unknown: Sequence[tuple[Key, RefinedItem]],
    ) -> tuple[StoredItem, ...]:
        """Returns the newest items of the source that share their content or link with an unknown item.

        The columns that identify them are read first: usually there are none, and whole rows of all would cost more
        than the rest of the page.
        """
        shown = {*page.repeated.item_ids, *(earlier.id for earlier in stored)}
        # Most of the newest items are usually shown again: their rows are not looked at.
        newest = tx.select_in(
            f"""
            SELECT i.id, i.fingerprint, i.fingerprint_rule, i.url, few.last_seen_at
              FROM (SELECT item_id, last_seen_at FROM sightings WHERE source_id = ?
                     ORDER BY ordered_at DESC, item_id DESC LIMIT {LOOKALIKES}) few
              JOIN items i ON i.id = few.item_id
             WHERE NOT (few.item_id IN {{values}})
            """,
            [*shown] or [0],
            before=[page.source.id],
        )
        strangers = [item for _, item in unknown if not item.is_listed]
        alike = lookalikes(strangers, shown, [row[:-1] for row in newest], page.fingerprint_rule)
        seen_at = {row[0]: row[-1] for row in newest if row[0] in alike}
        whole = tx.select_in(f"SELECT {STORED_COLUMNS} FROM items i WHERE i.id IN {{values}}", list(seen_at))
        rows = {(page.source.key, row[1]): row for row in whole}
        return tuple(stored_item(row, seen_at[row[0]], True) for row in self._current(tx, page, rows).values())

    def _current(self, tx: Transaction, page: Page, rows: dict[Key, Row]) -> dict[Key, Row]:
        """Returns the rows with fingerprints by the current rule: a new rule writes no revisions."""
        old = {row[0]: key for key, row in rows.items() if row[_RULE] != page.fingerprint_rule}
        if not old:
            return rows
        shown = {item.key: item for item in page.items}
        current = dict(rows)
        marks = []
        for item_id, is_cut, *content in tx.select_in(
            "SELECT id, is_text_cut, title, text, target_url, media FROM items WHERE id IN {values}", list(old)
        ):
            key = old[item_id]
            mark = self._mark(shown.get(key) if is_cut else None, *content)
            marks.append((item_id, mark, page.fingerprint_rule))
            current[key] = (*rows[key][:_FINGERPRINT], mark, *rows[key][_FINGERPRINT + 1 :])
        tx.update("items", ("id", "fingerprint", "fingerprint_rule"), marks)
        cache.changed_items(tx, list(old))
        return current

    def _retitled(self, tx: Transaction, shown: Mapping[int, RefinedItem]) -> dict[int, bytes]:
        """Returns the fingerprints of stored contents under the titles shown."""
        rows = tx.select_in("SELECT id, text, target_url, media FROM items WHERE id IN {values}", list(shown))
        return {item_id: self._mark(None, shown[item_id].item.title, *content) for item_id, *content in rows}

    def _mark(
        self, whole: RefinedItem | None, title: str | None, text: str | None, target_url: str | None, media: str
    ) -> bytes:
        """Returns the fingerprint of a stored content. If that was truncated, only the complete item, shown again, can
        give it."""
        if whole is not None and (whole.item.title, whole.item.text) == (title, text):
            return whole.fingerprint
        return self._fingerprint(title, text, target_url, json_decoder(tuple[Media, ...]).decode(media))


def _refuse_overlap(pages: Sequence[Page], facts: Sequence[PageFacts]) -> None:
    keys = [{(page.source.platform, *key) for item in page.items for key in all_keys(item)} for page in pages]
    ids = [
        {*page.repeated.item_ids, *(stored.id for stored in page_facts.stored.values())}
        for page, page_facts in zip(pages, facts, strict=True)
    ]
    for sets in (keys, ids):
        if len(set[Any]().union(*sets)) < sum(map(len, sets)):
            raise OverlappingPages


def _rows_by_id(tx: Transaction, page: Page, scope: str, ids: Sequence[str]) -> list[Row]:
    return tx.select_in(
        f"""
        SELECT {STORED_COLUMNS} FROM items i
         WHERE i.platform = ? AND i.scope = ? AND i.external_id IN {{values}} ORDER BY i.id {tx.lock_rows()}
        """,
        ids,
        before=[page.source.platform, scope],
    )


def _unchanged(tx: Transaction, page: Page, ids: Sequence[int]) -> dict[int, UnchangedRow]:
    """Returns the stored items with these ids that this source has shown, and no other since. Their rows are locked."""
    # The order is that of taking the locks; where there are none, sorting costs a fifth of the statement.
    in_order = f"ORDER BY id {tx.lock_rows()}" if tx.is_postgres else ""
    rows = tx.select_in(
        f"SELECT id, external_id, ordered_at, created_at FROM items WHERE id IN {{values}} {in_order}", ids
    )
    # Nearly always, no other source has shown any of them: to see that, the index is enough, a third of the cost.
    counted = tx.select_in(
        "SELECT count(*), min(source_id), max(source_id) FROM sightings WHERE item_id IN {values}", ids
    )
    if counted != [(len(rows), page.source.id, page.source.id)]:
        seen = _seen(tx, page, [row[0] for row in rows])
        rows = [row for row in rows if seen.get(row[0], (0, False, False))[1:] == (True, False)]
    return {row[0]: cast(UnchangedRow, row) for row in rows}


def _rows_by_alias(tx: Transaction, page: Page, scope: str, ids: Sequence[str]) -> list[Row]:
    return tx.select_in(
        f"""
        SELECT {STORED_COLUMNS}, a.external_id FROM aliases a JOIN items i ON i.id = a.item_id
         WHERE a.platform = ? AND a.scope = ? AND a.external_id IN {{values}}
         ORDER BY i.id, a.noticed_at {tx.lock_rows()}
        """,
        ids,
        before=[page.source.platform, scope],
    )


def _seen(tx: Transaction, page: Page, item_ids: Sequence[int]) -> dict[int, tuple[int, bool, bool]]:
    """Returns when each was last seen by any source, whether by this one, and whether by another one since.

    A separate query: run after the rows are locked, it sees what the previous holders of the lock have written.
    """
    rows = tx.select_in(
        """
        SELECT item_id, max(last_seen_at), max(CASE WHEN source_id = ? THEN last_seen_at END),
               max(CASE WHEN source_id <> ? THEN last_seen_at END)
          FROM sightings WHERE item_id IN {values} GROUP BY item_id
        """,
        item_ids,
        before=[page.source.id, page.source.id],
    )
    return {
        item_id: (last, ours is not None, theirs is not None and theirs >= (ours or 0))
        for item_id, last, ours, theirs in rows
    }


def _earlier(tx: Transaction, item_ids: Sequence[int]) -> dict[int, tuple[PastContent, ...]]:
    earlier: dict[int, tuple[PastContent, ...]] = {}
    for item_id, fingerprint, valid_to in tx.select_in(
        "SELECT item_id, fingerprint, valid_to FROM revisions WHERE item_id IN {values} ORDER BY item_id, version",
        item_ids,
    ):
        earlier[item_id] = (*earlier.get(item_id, ()), PastContent(bytes(fingerprint), moment(valid_to)))
    return earlier


def _open_gaps(tx: Transaction, source_id: int) -> tuple[Gap, ...]:
    sql = f"SELECT {', '.join(columns(Gap))} FROM gaps WHERE source_id = ? AND closed_at IS NULL ORDER BY id"
    return tuple(tx.records(Gap, sql, source_id))


def _newest_times(tx: Transaction, page: Page) -> tuple[datetime, ...]:
    """Returns when the newest items of the source were posted; for a kind with replies, of its posts only."""
    newest = "SELECT ordered_at, item_id FROM sightings WHERE source_id = ? ORDER BY ordered_at DESC, item_id DESC"
    if page.item_kind is None:
        rows = tx.all(f"{newest} LIMIT {_RHYTHM}", page.source.id)
    else:
        rows = tx.all(
            f"""
            SELECT s.ordered_at FROM ({newest} LIMIT {_RHYTHM_AMONG}) s JOIN items i ON i.id = s.item_id
             WHERE i.kind = ? ORDER BY s.ordered_at DESC LIMIT {_RHYTHM}
            """,
            page.source.id,
            page.item_kind,
        )
    return tuple(moment(row[0]) for row in rows)


def _is_seen_before(tx: Transaction, source_id: int, raws: Sequence[RawAnswer]) -> bool:
    sql = "SELECT 1 FROM raw_answers WHERE source_id = ? AND body_hash = ?"
    return any(tx.one(sql, source_id, raw.body_hash) is not None for raw in raws)
