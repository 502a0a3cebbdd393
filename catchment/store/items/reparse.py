"""Reparse: stored answers are parsed again and correct the history of their items.

An answer that a better parser reads again describes its own time. The version that it produced is corrected in place,
and its former content is kept beside it, as a version with an empty validity period (`reasons` says `parser_mended`):
the timeline stays complete, and nothing is dated now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from catchment.clock import micros, moment
from catchment.errors import StaleAnswer
from catchment.lazy import lazy_imports
from catchment.model import (
    Correction,
    CorrectionKind,
    Counts,
    History,
    ItemCorrection,
    ItemValues,
    Key,
    Page,
    PageWrite,
    Record,
    ReparseFacts,
    ReparseWrite,
    Version,
)
from catchment.policy.reparse import MENDED, is_reindexed
from catchment.store import cache
from catchment.store.database import Database, StorePart, Transaction, placeholders
from catchment.store.item_fields import COLUMNS, Group, names_of, to_micros
from catchment.store.items.deletion import hanging
from catchment.store.items.item_writer import (
    add_sightings,
    set_parents,
    stored_values,
    tag_again,
    write_items,
    write_references,
)
from catchment.store.items.page_writer import PageWriter
from catchment.store.items.threads import lock_floors
from catchment.store.row_mappers import columns
from catchment.store.search import index
from catchment.store.search.lists import relist

with lazy_imports():
    from catchment.store import schema

Decide = Callable[[ReparseFacts], ReparseWrite]
_COUNTERS = names_of(Group.COUNTER)
_CONTENT = ", ".join(names_of(Group.CONTENT))
# Item columns that a revision does not have.
_ONLY_ITEMS = ("fingerprint_rule", "is_text_cut", "is_partial", "deleted_by")


class StoredAnswer(Record, frozen=True):
    """A stored answer that is due for a reparse."""

    id: int
    source_id: int
    run_id: int
    answered_at: datetime
    is_read: bool
    is_stale: bool
    """The visit took it for an old copy: it can only add items that were never seen."""


class KeptAnswer(Record, frozen=True):
    """The content of a stored answer, as a parser needs it."""

    step: str
    request: dict[str, Any]
    url: str
    http_status: int
    headers: dict[str, str]
    body: bytes


class ReparseCounts(Record, frozen=True):
    """The result of reparsing one answer."""

    new: int = 0
    mended: int = 0
    details: int = 0
    """Items of which only details (author, date, counters, tags) were corrected."""

    def __add__(self, other: ReparseCounts) -> ReparseCounts:
        return ReparseCounts(self.new + other.new, self.mended + other.mended, self.details + other.details)


class ReparseFilter(Record, frozen=True):
    """Which answers are parsed again."""

    readers: Mapping[str, int]
    """The current parser version of each platform."""
    source_id: int | None = None
    kind: str | None = None
    since: datetime | None = None
    again: bool = False
    """Include answers that the current parser has read."""


class Reparses(StorePart):
    def __init__(self, database: Database, pages: PageWriter) -> None:
        super().__init__(database)
        self._pages = pages

    def count(self, filter: ReparseFilter) -> int:
        where, values = _where(filter)
        sql = f"SELECT count(*) FROM raw_answers a JOIN sources s ON s.id = a.source_id WHERE {where}"
        return self._number(sql, *values)

    def waiting(
        self, filter: ReparseFilter, after: tuple[datetime, int] | None, limit: int = 200
    ) -> list[StoredAnswer]:
        """Returns answers in order of time; the next page comes `after` the last."""
        where, values = _where(filter)
        if after is not None:
            where, values = f"(a.answered_at, a.id) > (?, ?) AND {where}", [micros(after[0]), after[1], *values]
        sql = f"""
            SELECT a.id, a.source_id, a.run_id, a.answered_at, a.is_read,
                   coalesce(r.error_code = '{StaleAnswer.code}', FALSE) AS is_stale
              FROM raw_answers a JOIN sources s ON s.id = a.source_id
              LEFT JOIN run_sources r ON r.run_id = a.run_id AND r.source_id = a.source_id
             WHERE {where} ORDER BY a.answered_at, a.id LIMIT ?
        """
        return self._records(StoredAnswer, sql, *values, limit)

    def answer(self, answer_id: int) -> KeptAnswer | None:
        """Returns the stored answer; None: it has been cleaned up meanwhile."""
        sql = f"SELECT {', '.join(columns(KeptAnswer))} FROM raw_answers WHERE id = ?"
        return self._record(KeptAnswer, sql, answer_id)

    def read(self, answer_id: int, parser_version: int, *, is_read: bool) -> None:
        """Record that the current parser has read it, or tried to."""
        self._db.write(lambda tx: _note(tx, answer_id, parser_version, is_read))

    def apply(
        self, kept: StoredAnswer, page: Page, parser_version: int, decide: Decide, *, is_dry: bool
    ) -> tuple[ReparseCounts, tuple[Key, ...]]:
        """Apply the corrections of a reparsed page; also returns the scope and id of items that were never seen.

        No lease is needed: the rows are locked, and nothing that a visit carries from page to page is changed.
        """

        def change(tx: Transaction) -> tuple[ReparseCounts, tuple[Key, ...]]:
            result = self._apply(tx, page, decide)
            if is_dry:
                raise _DryRun(*result)
            _note(tx, kept.id, parser_version, is_read=True)
            return result

        try:
            return self._db.write(change)
        except _DryRun as tried:
            return tried.mended, tried.new

    def _apply(self, tx: Transaction, page: Page, decide: Decide) -> tuple[ReparseCounts, tuple[Key, ...]]:
        lock_floors(tx, (page,))
        facts = self._pages.facts(tx, page)
        rows = _rows(tx, [stored.id for stored in (*facts.stored.values(), *facts.lookalikes)])
        write = decide(ReparseFacts(facts, _histories(tx, rows)))
        shown = PageWrite(write.new, Counts(new=len(write.new)), is_seen=False)
        number, answered, _ = write_items(tx, page, shown, micros(page.answered_at))
        mended = _correct_all(tx, page, write, rows, number)
        stored_ids = [correction.stored.id for correction in write.corrections]
        cache.changed_items(tx, [*stored_ids, *answered], [page.source.id])
        return mended + ReparseCounts(new=len(write.new)), tuple(change.item.key for change in write.new)


class _DryRun(Exception):
    def __init__(self, mended: ReparseCounts, new: tuple[Key, ...]) -> None:
        self.mended, self.new = mended, new


def _where(filter: ReparseFilter) -> tuple[str, list[Any]]:
    where = f"s.platform IN ({', '.join('?' * len(filter.readers))})"
    values: list[Any] = [*filter.readers]
    if not filter.again:
        behind = " OR ".join("(s.platform = ? AND a.parser_version <> ?)" for _ in filter.readers)
        where += f" AND (NOT a.is_read OR {behind})"
        values += [part for pair in filter.readers.items() for part in pair]
    for condition, value in (
        ("a.source_id = ?", filter.source_id),
        ("s.kind = ?", filter.kind),
        ("a.answered_at >= ?", to_micros(filter.since)),
    ):
        if value is not None:
            where += f" AND {condition}"
            values.append(value)
    return where, values


def _note(tx: Transaction, answer_id: int, parser_version: int, is_read: bool) -> None:
    tx.run("UPDATE raw_answers SET parser_version = ?, is_read = ? WHERE id = ?", parser_version, is_read, answer_id)


# Stored versions

# A text is long, and written only if it is corrected: there is nothing to compare.
_ROW = tuple(name for name in COLUMNS if name != "text")


def _rows(tx: Transaction, item_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows = tx.select_in(f"SELECT {', '.join(_ROW)} FROM items WHERE id IN {{values}}", item_ids)
    named = [dict(zip(_ROW, row, strict=True)) for row in rows]
    return {row["id"]: row for row in named}


def _histories(tx: Transaction, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, History]:
    """Returns the versions of each item; those with an empty validity period are corrected already."""
    versions: dict[int, list[Version]] = {item_id: [] for item_id in rows}
    sql = """
        SELECT item_id, valid_from, fingerprint, title, is_deleted, is_folded, version, id FROM revisions
         WHERE item_id IN {values} AND valid_from < valid_to ORDER BY item_id, version
    """
    for item_id, since, mark, title, is_deleted, is_folded, version, revision_id in tx.select_in(sql, list(rows)):
        flags = bool(is_deleted), bool(is_folded)
        versions[item_id].append(Version(moment(since), bytes(mark), title, *flags, version, revision_id))
    for item_id, row in rows.items():
        since, mark = moment(row["content_last_changed_at"]), bytes(row["fingerprint"])
        flags = bool(row["is_deleted"]), bool(row["is_folded"])
        versions[item_id].append(Version(since, mark, row["title"], *flags, row["version"], None))
    return {item_id: History(tuple(versions[item_id]), moment(row["first_seen_at"])) for item_id, row in rows.items()}


def _correct_all(
    tx: Transaction, page: Page, write: ReparseWrite, rows: Mapping[int, Mapping[str, Any]], number: int | None
) -> ReparseCounts:
    shown = {item.stored.id: rows[item.stored.id] for item in write.corrections}
    answered = {item_id for item_id, row in shown.items() if row["last_reply_at"] is not None}
    mended = details = 0
    for item in write.corrections:
        row = shown[item.stored.id]
        values = stored_values(item.details, page.fingerprint_rule)
        values = {name: value for name, value in values.items() if name not in row or row[name] != value}
        if item.correction is None and not values:
            continue
        number = _next_number(tx) if number is None else number
        if item.correction is not None:
            _correct(tx, page, item, item.correction, number)
            mended += 1
        else:
            details += 1
        if "ordered_at" in values:
            # The index has it under its old position; it is found again by its change number.
            index.remove(tx, [row["id"]])
        numbers = {"change_number": number}
        if is_reindexed(values, _COUNTERS):
            numbers["content_change_number"] = number
        _set(tx, "items", row["id"], values | numbers)
        _follow(tx, page, item, values)
        if "last_reply_at" in values:
            answered.add(row["id"])
    if write.is_seen:
        _add_past_sightings(tx, page, shown)
    relist(tx, answered)
    return ReparseCounts(mended=mended, details=details)


def _next_number(tx: Transaction) -> int:
    return tx.number("UPDATE ledger SET change_number = change_number + 1 WHERE id = 1 RETURNING change_number")


# Content


def _correct(tx: Transaction, page: Page, item: ItemCorrection, correction: Correction, number: int) -> None:
    item_id, version, at = item.stored.id, correction.version, micros(page.answered_at)
    content = stored_values(item.content, page.fingerprint_rule)
    if correction.how == CorrectionKind.EARLIER:
        _begin(tx, item_id, version, at)
        _set(tx, "items", item_id, {"first_seen_at": at})
    elif correction.how == CorrectionKind.MENDED:
        _renumber(tx, item_id, version.number)
        _copy(tx, item_id, version, at, at, MENDED, page.run_id)
        _replace_content(tx, item_id, version, content)
    else:
        _add(tx, item_id, correction, content, at, page.run_id)
    _set(tx, "items", item_id, {"content_change_number": number})


def _add(tx: Transaction, item_id: int, correction: Correction, content: ItemValues, at: int, run_id: int) -> None:
    """Adds a version that begins with this answer and ends where the version that it falls into ended."""
    version, reasons = correction.version, ";".join(correction.reasons)
    since = micros(version.since)
    _renumber(tx, item_id, version.number)
    if at < since:
        added = _copy(tx, item_id, version, at, since, reasons, run_id)
        _replace_content(tx, item_id, version.replace(revision_id=added), content)
        _set(tx, "items", item_id, {"first_seen_at": at})
    else:
        _copy(tx, item_id, version, since, at, reasons, run_id)
        _replace_content(tx, item_id, version, content)
        _begin(tx, item_id, version, at)


def _begin(tx: Transaction, item_id: int, version: Version, at: int) -> None:
    if version.revision_id is None:
        _set(tx, "items", item_id, {"content_last_changed_at": at})
    else:
        _set(tx, "revisions", version.revision_id, {"valid_from": at})


def _renumber(tx: Transaction, item_id: int, start: int) -> None:
    """Makes room for one more version at this number. From the last one down: no two may share a number meanwhile."""
    later = tx.all("SELECT id FROM revisions WHERE item_id = ? AND version >= ? ORDER BY version DESC", item_id, start)
    tx.many("UPDATE revisions SET version = version + 1 WHERE id = ?", later)
    tx.run("UPDATE items SET version = version + 1 WHERE id = ?", item_id)


def _copy(tx: Transaction, item_id: int, version: Version, since: int, until: int, reasons: str, run_id: int) -> int:
    """Copies a version as a revision with these bounds; returns its id."""
    table, row_id = ("items", item_id) if version.revision_id is None else ("revisions", version.revision_id)
    edited_at = "edited_at" if version.revision_id is None else "source_edited_at"
    sql = f"""
        INSERT INTO revisions (item_id, version, valid_from, valid_to, source_edited_at, reasons, run_id, {_CONTENT})
        SELECT ?, ?, ?, ?, {edited_at}, ?, ?, {_CONTENT} FROM {table} WHERE id = ? RETURNING id
    """
    return tx.number(sql, item_id, version.number, since, until, reasons, run_id, row_id)


def _replace_content(tx: Transaction, item_id: int, version: Version, content: ItemValues) -> None:
    """Replaces the content of a version."""
    if version.revision_id is None:
        _set(tx, "items", item_id, content)
    else:
        columns = {name: value for name, value in content.items() if name not in _ONLY_ITEMS}
        _set(tx, "revisions", version.revision_id, columns)


def _set(tx: Transaction, table: str, row_id: int, values: Mapping[str, Any]) -> None:
    tx.run(f"UPDATE {table} SET {placeholders(values)} WHERE id = ?", *values.values(), row_id)


def _follow(tx: Transaction, page: Page, item: ItemCorrection, values: ItemValues) -> None:
    """Updates what depends on the corrected details."""
    if not values.keys().isdisjoint(("tags", "title_prefixes")):
        tags = cast(tuple[str, ...] | None, item.details.get("tags"))
        tag_again(tx, [(item.stored.id, item.item.item, tags)], micros(page.answered_at))
    if "ordered_at" in values:
        for table in copies_of_the_order():
            tx.run(f"UPDATE {table} SET ordered_at = ? WHERE item_id = ?", values["ordered_at"], item.stored.id)
    if item.replaces_references:
        tx.run("DELETE FROM item_references WHERE item_id = ?", item.stored.id)
        write_references(tx, page.source.platform, [(item.stored.id, item.item.item)])
        set_parents(tx, [(item.stored.id, item.item.item)])


def copies_of_the_order() -> list[str]:
    """Returns the tables that hold an item's list position beside its id."""
    return [name for name in hanging() if "ordered_at" in schema.metadata.tables[name].c]


def _add_past_sightings(tx: Transaction, page: Page, rows: Mapping[int, Mapping[str, Any]]) -> None:
    """Records that the source showed these at that time, too."""
    at = micros(page.answered_at)
    sql = "SELECT item_id, first_seen_at, last_seen_at FROM sightings WHERE source_id = ? AND item_id IN {values}"
    seen = {item_id: (first, last) for item_id, first, last in tx.select_in(sql, list(rows), before=[page.source.id])}
    sql = "SELECT id, ordered_at FROM items WHERE id IN {values}"
    orders: dict[int, int] = dict(tx.select_in(sql, [item_id for item_id in rows if item_id not in seen]))
    add_sightings(tx, page, [(page.source.id, ordered, item_id, at, at) for item_id, ordered in orders.items()])
    sql = "UPDATE sightings SET first_seen_at = ?, last_seen_at = ? WHERE source_id = ? AND item_id = ?"
    tx.many(
        sql,
        [
            (min(first, at), max(last, at), page.source.id, item_id)
            for item_id, (first, last) in seen.items()
            if not first <= at <= last
        ],
    )
