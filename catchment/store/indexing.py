"""The index: words for search, facets for filtered lists. Filled behind the collector's back, in short transactions.

What is indexed is known by the changes of content: everything up to the mark is, everything behind it is not yet, and
whoever asks looks through that with the same rules. An item that is edited moves behind the mark by itself. The mark is
locked by whoever writes to the index, and moves with what was written: a kill at any point loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from catchment import wording
from catchment.store.database import Database, Row, Transaction
from catchment.store.facets import facet_ids, facets_of

BATCH = 500
MOST_SCANNED = 20_000
_READ_AT_ONCE = 100
_SCANNED_AT_ONCE = 500
_BATCH_CHARACTERS = 2_000_000
# PostgreSQL takes a megabyte of terms for an item.
_MOST_TERM_BYTES = 900_000
# Stands before a facet's id among the terms: no word has it.
_FACET = "¦"

# A place has room for two thousand million items, and for the years 1834 to 2106.
_IDS = 2_147_483_648
_OLDEST, _NEWEST = -4_294_967_296, 4_294_967_295


Position = tuple[int, int]
"""Of a change of content: its number, and which item."""


class Mark(NamedTuple):
    """How far the index has come, and by which rule."""

    change_number: int
    item_id: int
    rule: int

    @property
    def position(self) -> Position:
        return self.change_number, self.item_id


class Indexable(NamedTuple):
    """What the index needs of an item."""

    id: int
    change_number: int
    ordered_at: int
    facets: tuple[str, ...]
    segments: tuple[str, ...]

    @property
    def place(self) -> int:
        return place(self.ordered_at, self.id)


def place(ordered_at: int, item_id: int) -> int:
    """When an item is listed, to the second, and which one it is: newer ones have a larger place."""
    return min(max(ordered_at // 1_000_000, _OLDEST), _NEWEST) * _IDS + item_id


def item_at(at: int) -> int:
    """Which item has this place."""
    return at % _IDS


class Indexing:
    def __init__(self, database: Database) -> None:
        self._db = database

    def advance(self, batch: int = BATCH) -> int:
        """Index what waits longest; gives how many items, 0 if nothing waits (or a newer program sees to it)."""
        mark: Mark = self._db.read(mark_of)
        if mark.rule < wording.RULE:
            mark = self._db.write(_begun_anew)
        if mark.rule > wording.RULE:
            return 0
        waiting = [_indexable(row) for row in self._waiting(mark, batch)]
        if waiting:
            self._db.write(lambda tx: _index(tx, mark, waiting))
        return len(waiting)

    def _waiting(self, mark: Mark, batch: int) -> list[Row]:
        """The next rows, as long as they are not too much to hold: read outside of any transaction."""
        found: list[Row] = []
        characters = 0
        while len(found) < batch and characters < _BATCH_CHARACTERS:
            after = (found[-1][1], found[-1][0]) if found else mark.position
            limit = min(_READ_AT_ONCE, batch - len(found))
            rows = self._db.read(partial(waiting, after=after, limit=limit, columns=f"{ABOUT}, i.title, i.text"))
            found += rows
            characters += sum(len(row[-1] or "") for row in rows)
            if not rows:
                break
        return found

    def behind(self) -> int:
        """How many items are not indexed yet."""
        return self._db.read(lambda tx: count_waiting(tx, mark_of(tx)))

    def settle(self) -> None:
        """After much was indexed: PostgreSQL plans by what it knows of the terms, and learns it when it is told to."""
        if not self._db.is_postgres:
            return
        row = self._db.read(
            lambda tx: tx.one(
                """
                SELECT c.reltuples, l.last_item_id FROM pg_class c, ledger l
                 WHERE c.oid = 'indexed'::regclass AND l.id = 1
                """
            )
        )
        if row and row[1] > 1000 + 1.2 * max(row[0], 0):
            self._db.write(lambda tx: tx.run("ANALYZE indexed"))


# ── what is indexed, and what waits ───────────────────────────────────────────────────────────────────────────────


def mark_of(tx: Transaction) -> Mark:
    row = tx.one("SELECT change_number, item_id, rule FROM index_mark WHERE id = 1")
    return Mark(*row) if row else _beginning()


def _beginning() -> Mark:
    return Mark(0, 0, wording.RULE)


def usable_mark(tx: Transaction) -> Mark:
    """For those who ask: an index by another rule tells them nothing."""
    mark = mark_of(tx)
    return mark if mark.rule == wording.RULE else _beginning()


ABOUT = "i.platform, i.kind, s.kind, i.author, i.tags, i.is_deleted, i.version"
"""What an item's facets are made of."""


def waiting(tx: Transaction, after: Position, limit: int, columns: str) -> list[Row]:
    """Id, change number and time of what is not indexed yet, then what is asked for; in the order of the changes."""
    return tx.all(
        f"""
        SELECT i.id, i.content_change_number, i.ordered_at, {columns} FROM items i JOIN sources s ON s.id = i.source_id
         WHERE (i.content_change_number, i.id) > (?, ?) ORDER BY i.content_change_number, i.id LIMIT ?
        """,
        *after,
        limit,
    )


class Scan(NamedTuple):
    """What is looked through because it is not indexed yet."""

    after: Position
    behind: int
    """How many items are neither indexed nor looked through. 0: nothing is missed."""


def scan_of(tx: Transaction, mark: Mark) -> Scan:
    """Everything behind the mark; where that is too much, what changed last."""
    row = tx.one(
        f"""
        SELECT content_change_number, id FROM items WHERE (content_change_number, id) > (?, ?)
         ORDER BY content_change_number DESC, id DESC LIMIT 1 OFFSET {MOST_SCANNED}
        """,
        *mark.position,
    )
    return Scan((row[0], row[1]), count_waiting(tx, mark) - MOST_SCANNED) if row else Scan(mark.position, 0)


def scanned(tx: Transaction, scan: Scan, columns: str) -> Iterator[Row]:
    """Forwards: an item that is edited meanwhile moves ahead, and is met again."""
    after = scan.after
    while rows := waiting(tx, after, _SCANNED_AT_ONCE, columns):
        yield from rows
        after = (rows[-1][1], rows[-1][0])


def count_waiting(tx: Transaction, mark: Mark) -> int:
    row = tx.one("SELECT count(*) FROM items WHERE (content_change_number, id) > (?, ?)", *mark.position)
    return int(row[0]) if row else 0


def _indexable(row: Row) -> Indexable:
    item_id, number, ordered_at, *about, title, text = row
    found = wording.segments(title) + wording.segments(text)
    return Indexable(item_id, number, ordered_at, tuple(facets_of(*about)), tuple(dict.fromkeys(found)))


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _locked_mark(tx: Transaction) -> Mark:
    """The mark, ours until the transaction ends."""
    tx.run(
        """
        INSERT INTO index_mark (id, rule, change_number, item_id) VALUES (1, ?, 0, 0) ON CONFLICT (id) DO NOTHING
        """,
        wording.RULE,
    )
    row = tx.one(f"SELECT change_number, item_id, rule FROM index_mark WHERE id = 1 {tx.lock_rows()}")
    assert row is not None
    return Mark(*row)


def _move_mark(tx: Transaction, mark: Mark) -> None:
    tx.run(
        "UPDATE index_mark SET change_number = ?, item_id = ?, rule = ? WHERE id = 1",
        mark.change_number,
        mark.item_id,
        mark.rule,
    )


def _begun_anew(tx: Transaction) -> Mark:
    """A new rule: nothing that was indexed counts any more."""
    mark = _locked_mark(tx)
    if mark.rule >= wording.RULE:
        return mark
    if tx.is_postgres:
        tx.run("TRUNCATE indexed, postings, facets")
    else:
        tx.run("INSERT INTO item_words (item_words) VALUES ('delete-all')")
        tx.run("DELETE FROM indexed")
        tx.run("DELETE FROM postings")
        tx.run("DELETE FROM facets")
    mark = _beginning()
    _move_mark(tx, mark)
    return mark


def _index(tx: Transaction, mark: Mark, found: Sequence[Indexable]) -> None:
    if _locked_mark(tx) != mark:
        # Another process has indexed these meanwhile.
        return
    # What was deleted since it was read must not come back into the index.
    present = {row[0] for row in tx.among("SELECT id FROM items WHERE id IN {few}", [one.id for one in found])}
    kept = sorted((one for one in found if one.id in present), key=lambda one: one.place)
    had = _take_out(tx, [(one.place, one.ordered_at) for one in kept])
    ids = facet_ids(tx, {name for one in kept for name in one.facets}, is_added=True)
    _put_in(tx, kept, ids)
    _drop_unused(tx, had - set(ids.values()))
    _move_mark(tx, Mark(found[-1].change_number, found[-1].id, mark.rule))


def _put_in(tx: Transaction, found: Sequence[Indexable], ids: dict[str, int]) -> None:
    """In the order of their places: SQLite's index writes a piece of its own wherever the order breaks."""
    rows = []
    for one in found:
        numbers = " ".join(str(ids[name]) for name in one.facets)
        known = wording.terms(one.segments)
        is_too_long = sum(len(term.encode()) + 4 for term in known) > _MOST_TERM_BYTES
        rows.append((one.place, numbers, is_too_long, "" if is_too_long else " ".join(one.segments)))
    if tx.is_postgres:
        tx.run(
            """
            INSERT INTO indexed (place, facets, is_too_long, words)
            SELECT place, facets, is_too_long, array_to_tsvector(string_to_array(terms, ' '))
              FROM unnest(?::bigint[], ?::text[], ?::boolean[], ?::text[]) AS told (place, facets, is_too_long, terms)
            """,
            *([*column] for column in zip(*((*row[:3], terms_of(row[1], row[3])) for row in rows), strict=True)),
        )
    else:
        tx.many("INSERT INTO indexed (place, facets, is_too_long, words) VALUES (?, ?, ?, ?)", rows)
        tx.many(
            "INSERT INTO item_words (rowid, terms) VALUES (?, ?)",
            [(at, terms_of(numbers, words)) for at, numbers, _, words in rows],
        )
    postings = sorted((ids[name], one.ordered_at, one.id) for one in found for name in one.facets)
    tx.insert("postings", ("facet_id", "ordered_at", "item_id"), postings)


def terms_of(facets: str, words: str) -> str:
    """What the database's own index is given: the facets' ids and the segments' terms, with spaces between."""
    return " ".join([*(f"{_FACET}{number}" for number in facets.split()), *wording.terms(words.split(" ")) - {""}])


def facet_term(facet_id: int) -> str:
    return f"{_FACET}{facet_id}"


def _take_out(tx: Transaction, places: Sequence[tuple[int, int]]) -> set[int]:
    """Out of the index, if they are in it; gives the facets that they had. `places`: with the time each is listed at,
    in the order of places."""
    ordered_at = dict(places)
    told = tx.among("SELECT place, facets, words FROM indexed WHERE place IN {few} ORDER BY place", list(ordered_at))
    if not told:
        return set()
    if not tx.is_postgres:
        tx.many(
            "INSERT INTO item_words (item_words, rowid, terms) VALUES ('delete', ?, ?)",
            [(at, terms_of(facets, words)) for at, facets, words in sorted(told)],
        )
    tx.many(
        "DELETE FROM postings WHERE facet_id = ? AND ordered_at = ? AND item_id = ?",
        [(int(number), ordered_at[at], item_at(at)) for at, facets, _ in told for number in facets.split()],
    )
    tx.many("DELETE FROM indexed WHERE place = ?", [(at,) for at, _, _ in told])
    return {int(number) for _, facets, _ in told for number in facets.split()}


def _drop_unused(tx: Transaction, facets: Iterable[int]) -> None:
    """A facet that no item has any more leaves: its name may be that of somebody who is to be forgotten."""
    tx.many(
        "DELETE FROM facets WHERE id = ? AND NOT EXISTS (SELECT 1 FROM postings WHERE facet_id = ?)",
        [(one, one) for one in sorted(facets)],
    )


def remove(tx: Transaction, item_ids: Iterable[int]) -> None:
    """Take items that are about to be deleted out of the index: in the same transaction, before they are deleted."""
    wanted = set(item_ids)
    if not wanted:
        return
    _locked_mark(tx)
    rows: list[tuple[Any, ...]] = tx.among("SELECT id, ordered_at FROM items WHERE id IN {few}", sorted(wanted))
    if len(rows) < len(wanted):
        raise ValueError("items leave the index before they are deleted: afterwards nobody knows their places")
    _drop_unused(tx, _take_out(tx, [(place(ordered_at, item_id), ordered_at) for item_id, ordered_at in rows]))
