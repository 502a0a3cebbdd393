"""Kept answers, read again: what they correct in the history of the items that they show.

An answer that is read again by a better reader speaks of its own time. The version that it produced is corrected in
place, and what we had made of it before is kept beside it, as a version that was valid for no time at all (`reasons`
says `parser_mended`): the timeline stays whole, and nothing is dated now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from catchment.clock import micros, moment
from catchment.errors import StaleAnswer
from catchment.model import Counts, Deed, Item, Judged, Record, RefinedItem
from catchment.store import hot, indexing
from catchment.store.database import Database, Transaction, placeholders
from catchment.store.pages import Pages
from catchment.store.removing import hanging
from catchment.store.replying import relist
from catchment.store.rows import decode, to_micros
from catchment.store.schema import metadata
from catchment.store.visits import Conclusion, Deciding, Key, Page
from catchment.store.writing import content_values, is_better, refer, see, short_json, tag_again, write_items

MENDED = "parser_mended"
_COUNTERS = ("score", "reply_count", "view_count")
_COUNTED = {*_COUNTERS, "rounded", "last_reply_at", "is_pinned", "is_digest"}
_DETAILS = ("url", "author", "author_id", "author_display_name", "language", "thread_id", "floor_number", "is_head")
_CONTENT = "fingerprint, is_deleted, is_folded, title, target_url, media, text, html"
# A revision has no room for these of an item.
_ONLY_ITEMS = ("fingerprint_rule", "is_text_cut", "is_brief", "deleted_by")


class Kept(Record, frozen=True):
    """A kept answer that waits to be read again."""

    id: int
    source_id: int
    run_id: int
    answered_at: datetime
    is_read: bool
    is_stale: bool
    """The visit took it for an old copy: it tells of items that were never seen, and of nothing else."""


class KeptAnswer(Record, frozen=True):
    """One of them, with what a reader needs."""

    step: str
    request: dict[str, Any]
    url: str
    http_status: int
    headers: dict[str, str]
    body: bytes


class Version(Record, frozen=True):
    """What an item said from a moment on."""

    since: datetime
    fingerprint: bytes
    title: str | None
    is_deleted: bool
    is_folded: bool
    number: int
    revision_id: int | None
    """None: it says so still."""


class How(StrEnum):
    MENDED = "mended"
    """The version that this answer produced was read wrongly."""
    ADDED = "added"
    """The answer shows a version that the reader had been blind to."""
    EARLIER = "earlier"
    """The first version was shown before we could read it."""


class Correction(Record, frozen=True):
    """What an answer, read again, corrects in the history of one item."""

    how: How
    version: Version
    """Which is corrected, or in which the new one begins; for what was shown before all of them, the first."""
    reasons: tuple[str, ...] = ()
    """Why the version before it ended, where one is added."""
    is_content_kept: bool = False
    """The platform withheld the text: the version before says all that is known."""


Correcting = Callable[[Sequence[Version], RefinedItem, bool], Correction | None]
"""Given the versions of an item, oldest first, what the answer shows, and whether a version may be added."""


class Mended(Record, frozen=True):
    """What one answer, read again, came to."""

    new: int = 0
    mended: int = 0
    details: int = 0
    """Items of which nothing but details (author, date, counters, tags) was corrected."""

    def __add__(self, other: Mended) -> Mended:
        return Mended(self.new + other.new, self.mended + other.mended, self.details + other.details)


class Wanted(Record, frozen=True):
    """Which answers are to be read again."""

    readers: Mapping[str, int]
    """The present version of each platform's reader."""
    source_id: int | None = None
    kind: str | None = None
    since: datetime | None = None
    again: bool = False
    """Those, too, that the present reader has read."""


class Mending:
    def __init__(self, database: Database, pages: Pages) -> None:
        self._db, self._pages = database, pages

    def count(self, wanted: Wanted) -> int:
        where, values = _where(wanted)
        sql = f"SELECT count(*) FROM raw_answers a JOIN sources s ON s.id = a.source_id WHERE {where}"
        row = self._db.read(lambda tx: tx.one(sql, *values))
        return int(row[0]) if row else 0

    def waiting(self, wanted: Wanted, after: tuple[datetime, int] | None, limit: int = 200) -> list[Kept]:
        """In order of answer time; the next ones come `after` the last."""
        where, values = _where(wanted)
        if after is not None:
            where, values = f"(a.answered_at, a.id) > (?, ?) AND {where}", [micros(after[0]), after[1], *values]
        rows = self._db.read(
            lambda tx: tx.all(
                f"""
                SELECT a.id, a.source_id, a.run_id, a.answered_at, a.is_read, r.error_code
                  FROM raw_answers a JOIN sources s ON s.id = a.source_id
                  LEFT JOIN run_sources r ON r.run_id = a.run_id AND r.source_id = a.source_id
                 WHERE {where} ORDER BY a.answered_at, a.id LIMIT ?
                """,
                *values,
                limit,
            )
        )
        return [Kept(row[0], row[1], row[2], moment(row[3]), bool(row[4]), row[5] == StaleAnswer.code) for row in rows]

    def answer(self, answer_id: int) -> KeptAnswer | None:
        """None: its time was over meanwhile."""
        row = self._db.read(
            lambda tx: tx.one(
                "SELECT step, request, url, http_status, headers, body FROM raw_answers WHERE id = ?", answer_id
            )
        )
        if row is None:
            return None
        return KeptAnswer(row[0], decode(row[1]), row[2], row[3], decode(row[4]), bytes(row[5]))

    def read(self, answer_id: int, reader_version: int, *, is_read: bool) -> None:
        """Note that the present reader has read it, or tried to."""
        self._db.write(lambda tx: _note(tx, answer_id, reader_version, is_read))

    def apply(
        self,
        kept: Kept,
        page: Page,
        reader_version: int,
        deciding: Deciding,
        correcting: Correcting,
        *,
        first_looks: Mapping[Key, datetime],
        is_dry: bool,
    ) -> tuple[Mended, tuple[tuple[str, str], ...]]:
        """Correct what the page, read again, shows to be wrong; gives also the scope and id of what was never seen.
        `first_looks` says when each of its items is looked at again, should it be new.

        No lease is needed: the rows are locked, and nothing that a visit carries from page to page is touched.
        """

        def deed(tx: Transaction) -> tuple[Mended, tuple[tuple[str, str], ...]]:
            done = self._apply(tx, kept, page, deciding, correcting, first_looks)
            if is_dry:
                raise _OnlyTried(*done)
            _note(tx, kept.id, reader_version, is_read=True)
            return done

        try:
            return self._db.write(deed)
        except _OnlyTried as tried:
            return tried.mended, tried.new

    def _apply(
        self,
        tx: Transaction,
        kept: Kept,
        page: Page,
        deciding: Deciding,
        correcting: Correcting,
        first_looks: Mapping[Key, datetime],
    ) -> tuple[Mended, tuple[tuple[str, str], ...]]:
        at = micros(page.answered_at)
        judged = self._pages.judged(tx, page, deciding)
        new = tuple(one for one in judged if one.verdict.deed == Deed.NEW)
        held = [one for one in judged if one.known is not None]
        shown = Conclusion(new, Counts(new=len(new)), is_seen=False, first_looks=first_looks)
        number, answered = write_items(tx, page, shown, at)
        mended = _mend_all(tx, kept, page, held, correcting, number)
        hot.changed_items(tx, [*(one.known.id for one in held if one.known), *answered], page.source.id)
        ids = tuple((one.item.item.scope, one.item.item.external_id) for one in new)
        return mended + Mended(new=len(new)), ids


class _OnlyTried(Exception):
    def __init__(self, mended: Mended, new: tuple[tuple[str, str], ...]) -> None:
        self.mended, self.new = mended, new


def _where(wanted: Wanted) -> tuple[str, list[Any]]:
    where = f"s.platform IN ({', '.join('?' * len(wanted.readers))})"
    values: list[Any] = [*wanted.readers]
    if not wanted.again:
        behind = " OR ".join("(s.platform = ? AND a.reader_version <> ?)" for _ in wanted.readers)
        where += f" AND (NOT a.is_read OR {behind})"
        values += [one for pair in wanted.readers.items() for one in pair]
    for condition, value in (
        ("a.source_id = ?", wanted.source_id),
        ("s.kind = ?", wanted.kind),
        ("a.answered_at >= ?", to_micros(wanted.since)),
    ):
        if value is not None:
            where += f" AND {condition}"
            values.append(value)
    return where, values


def _note(tx: Transaction, answer_id: int, reader_version: int, is_read: bool) -> None:
    tx.run("UPDATE raw_answers SET reader_version = ?, is_read = ? WHERE id = ?", reader_version, is_read, answer_id)


# ── what is held ──────────────────────────────────────────────────────────────────────────────────────────────────

_ROW = (
    "id", "version", "content_last_changed_at", "fingerprint", "title", "is_deleted", "is_folded", "volatile_count",
    "first_seen_at", "created_at", "is_created_at_guessed", "ordered_at", "edited_at", "html", "media", "is_pinned",
    "is_digest", "is_adult", "deleted_by", "rounded", "last_reply_at", *_COUNTERS, *_DETAILS,
)  # fmt: skip


def _mend_all(
    tx: Transaction, kept: Kept, page: Page, held: Sequence[Judged], correcting: Correcting, number: int | None
) -> Mended:
    ids = [one.known.id for one in held if one.known]
    columns = ", ".join(_ROW)
    rows = {
        row[0]: dict(zip(_ROW, row, strict=True))
        for row in tx.among(f"SELECT {columns} FROM items WHERE id IN {{few}}", ids)
    }
    versions = _versions(tx, rows)
    answered = {item_id for item_id, row in rows.items() if row["last_reply_at"] is not None}
    mended = details = 0
    for one in held:
        assert one.known is not None
        if one.item.item.is_brief and not one.known.is_brief:
            # The whole form has been told since.
            continue
        row = rows[one.known.id]
        may_add = not kept.is_stale and not row["volatile_count"]
        correction = correcting(versions[row["id"]], one.item, may_add)
        values = {} if kept.is_stale else _details(row, one, page, correction)
        if correction is None and not values:
            continue
        number = _next_number(tx) if number is None else number
        if correction is not None:
            _correct(tx, page, one, correction, number)
            mended += 1
        else:
            details += 1
        if "ordered_at" in values:
            # The index knows it by its place, and finds it anew by its change.
            indexing.remove(tx, [row["id"]])
        numbers = {"change_number": number} | ({"content_change_number": number} if values.keys() - _COUNTED else {})
        _set(tx, "items", row["id"], values | numbers)
        _follow(tx, row, one, page, values)
        if "last_reply_at" in values:
            answered.add(row["id"])
    if not kept.is_stale:
        _see_then(tx, page, rows)
    relist(tx, answered)
    return Mended(mended=mended, details=details)


def _versions(tx: Transaction, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, list[Version]]:
    """The versions of each item, oldest first; those that were valid for no time are corrected already."""
    found: dict[int, list[Version]] = {item_id: [] for item_id in rows}
    for item_id, since, mark, title, is_deleted, is_folded, number, revision_id in tx.among(
        """
        SELECT item_id, valid_from, fingerprint, title, is_deleted, is_folded, version, id FROM revisions
         WHERE item_id IN {few} AND valid_from < valid_to ORDER BY item_id, version
        """,
        list(rows),
    ):
        flags = bool(is_deleted), bool(is_folded)
        found[item_id].append(Version(moment(since), bytes(mark), title, *flags, number, revision_id))
    for item_id, row in rows.items():
        since, mark = moment(row["content_last_changed_at"]), bytes(row["fingerprint"])
        flags = bool(row["is_deleted"]), bool(row["is_folded"])
        found[item_id].append(Version(since, mark, row["title"], *flags, row["version"], None))
    return found


def _next_number(tx: Transaction) -> int:
    row = tx.one("UPDATE ledger SET change_number = change_number + 1 WHERE id = 1 RETURNING change_number")
    assert row is not None
    return int(row[0])


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _correct(tx: Transaction, page: Page, one: Judged, correction: Correction, number: int) -> None:
    assert one.known is not None
    item_id, version, at = one.known.id, correction.version, micros(page.answered_at)
    item = one.item.item
    content: dict[str, Any] = {
        "is_deleted": item.is_deleted,
        "is_folded": item.is_folded,
        "deleted_by": item.deleted_by,
    }
    if not correction.is_content_kept:
        content |= content_values(one.item, page.fingerprint_rule)
    if correction.how == How.EARLIER:
        _begin(tx, item_id, version, at)
        _set(tx, "items", item_id, {"first_seen_at": at})
    elif correction.how == How.MENDED:
        _renumber(tx, item_id, version.number)
        _copy(tx, item_id, version, at, at, MENDED, page.run_id)
        _say(tx, item_id, version, content)
    else:
        _add(tx, item_id, correction, content, at, page.run_id)
    _set(tx, "items", item_id, {"content_change_number": number})


def _add(tx: Transaction, item_id: int, correction: Correction, content: dict[str, Any], at: int, run_id: int) -> None:
    """A version that begins with this answer, and ends where the one did in whose time the answer fell."""
    version, reasons = correction.version, ";".join(correction.reasons)
    since = micros(version.since)
    _renumber(tx, item_id, version.number)
    if at < since:
        added = _copy(tx, item_id, version, at, since, reasons, run_id)
        _say(tx, item_id, version.plus(revision_id=added), content)
        _set(tx, "items", item_id, {"first_seen_at": at})
    else:
        _copy(tx, item_id, version, since, at, reasons, run_id)
        _say(tx, item_id, version, content)
        _begin(tx, item_id, version, at)


def _begin(tx: Transaction, item_id: int, version: Version, at: int) -> None:
    if version.revision_id is None:
        _set(tx, "items", item_id, {"content_last_changed_at": at})
    else:
        _set(tx, "revisions", version.revision_id, {"valid_from": at})


def _renumber(tx: Transaction, item_id: int, start: int) -> None:
    """Make room for one more version at this number. From the last one down: no two may share a number meanwhile."""
    later = tx.all("SELECT id FROM revisions WHERE item_id = ? AND version >= ? ORDER BY version DESC", item_id, start)
    tx.many("UPDATE revisions SET version = version + 1 WHERE id = ?", later)
    tx.run("UPDATE items SET version = version + 1 WHERE id = ?", item_id)


def _copy(tx: Transaction, item_id: int, version: Version, since: int, until: int, reasons: str, run_id: int) -> int:
    """What a version says, once more as a revision with these bounds; gives its id."""
    table, row_id = ("items", item_id) if version.revision_id is None else ("revisions", version.revision_id)
    edited_at = "edited_at" if version.revision_id is None else "source_edited_at"
    row = tx.one(
        f"""
        INSERT INTO revisions (item_id, version, valid_from, valid_to, source_edited_at, reasons, run_id, {_CONTENT})
        SELECT ?, ?, ?, ?, {edited_at}, ?, ?, {_CONTENT} FROM {table} WHERE id = ? RETURNING id
        """,
        item_id,
        version.number,
        since,
        until,
        reasons,
        run_id,
        row_id,
    )
    assert row is not None
    return int(row[0])


def _say(tx: Transaction, item_id: int, version: Version, content: dict[str, Any]) -> None:
    """Have the version say this instead."""
    if version.revision_id is None:
        _set(tx, "items", item_id, content)
    else:
        told = {name: value for name, value in content.items() if name not in _ONLY_ITEMS}
        _set(tx, "revisions", version.revision_id, told)


def _set(tx: Transaction, table: str, row_id: int, values: Mapping[str, Any]) -> None:
    tx.run(f"UPDATE {table} SET {placeholders(values)} WHERE id = ?", *values.values(), row_id)


# ── details ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _details(row: Mapping[str, Any], one: Judged, page: Page, correction: Correction | None) -> dict[str, Any]:
    """What else is told better now. What later answers said of it stands."""
    assert one.known is not None
    item, at = one.item.item, micros(page.answered_at)
    is_newest = page.answered_at >= one.known.applied_at
    values = {name: getattr(item, name) for name in _COUNTERS if _is_told_better(item, one, name, is_newest)}
    if values:
        rounded = set(one.known.rounded) - values.keys() | (set(item.rounded) & values.keys())
        values["rounded"] = short_json([name for name in sorted(_COUNTERS) if name in rounded])
    told = to_micros(item.told_reply(page.answered_at))
    if told is not None and (is_newest or row["last_reply_at"] is None):
        values["last_reply_at"] = told
    if is_newest or at == row["content_last_changed_at"]:
        values |= {name: value for name in _DETAILS if (value := getattr(item, name)) is not None}
        values |= {"is_adult": item.is_adult}
        if item.is_deleted and row["is_deleted"] and item.deleted_by is not None:
            values["deleted_by"] = item.deleted_by
        if item.edited_at is not None:
            values["edited_at"] = to_micros(item.edited_at)
        if correction is None and one.item.fingerprint == bytes(row["fingerprint"]):
            values |= {"html": item.html, "media": short_json(item.media)}
        if item.tags and set(item.tags) != set(one.known.tags):
            values["tags"] = short_json(item.tags)
    if is_newest:
        values |= {"is_pinned": item.is_pinned, "is_digest": item.is_digest}
    created = to_micros(item.created_at)
    if created is not None and (row["is_created_at_guessed"] or at == row["first_seen_at"]):
        ordered = min(created, row["first_seen_at"])
        values |= {"created_at": created, "is_created_at_guessed": False, "ordered_at": ordered}
    return {name: value for name, value in values.items() if name not in row or row[name] != value}


def _is_told_better(item: Item, one: Judged, name: str, is_newest: bool) -> bool:
    assert one.known is not None
    return is_better(item, one.known, name) and (is_newest or getattr(one.known, name) is None)


def _follow(tx: Transaction, row: Mapping[str, Any], one: Judged, page: Page, values: Mapping[str, Any]) -> None:
    """What hangs on the details that were corrected."""
    at = micros(page.answered_at)
    if "tags" in values:
        tag_again(tx, [one], at)
    if "ordered_at" in values:
        for table in copies_of_the_order():
            tx.run(f"UPDATE {table} SET ordered_at = ? WHERE item_id = ?", values["ordered_at"], row["id"])
    if one.item.item.references and at == row["content_last_changed_at"]:
        tx.run("DELETE FROM item_references WHERE item_id = ?", row["id"])
        refer(tx, [(row["id"], one.item.item)])


def copies_of_the_order() -> list[str]:
    """The tables that hold, beside an item's number, its place in the lists."""
    return [name for name in hanging() if "ordered_at" in metadata.tables[name].c]


def _see_then(tx: Transaction, page: Page, rows: Mapping[int, Mapping[str, Any]]) -> None:
    """That the source showed these at that time, too."""
    at = micros(page.answered_at)
    seen = {
        item_id: (first, last)
        for item_id, first, last in tx.among(
            "SELECT item_id, first_seen_at, last_seen_at FROM sightings WHERE source_id = ? AND item_id IN {few}",
            list(rows),
            before=[page.source.id],
        )
    }
    orders: dict[int, int] = dict(
        tx.among("SELECT id, ordered_at FROM items WHERE id IN {few}", [one for one in rows if one not in seen])
    )
    see(tx, page, [(page.source.id, ordered, item_id, at, at) for item_id, ordered in orders.items()])
    tx.many(
        "UPDATE sightings SET first_seen_at = ?, last_seen_at = ? WHERE source_id = ? AND item_id = ?",
        [
            (min(first, at), max(last, at), page.source.id, item_id)
            for item_id, (first, last) in seen.items()
            if not first <= at <= last
        ],
    )
