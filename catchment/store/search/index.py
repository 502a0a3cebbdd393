"""Search index: words for search, facets for filtered lists. Filled in the background, in short transactions.

The index follows content changes: everything up to the mark is indexed, everything after it is not yet, and queries
scan that part with the same rules. An edited item moves behind the mark automatically. Every writer of the index locks
the mark, and moves it with what was written: a kill at any point loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from catchment.store.database import Row, StorePart, Transaction
from catchment.store.search.facets import facet_ids, facets_of
from catchment.text import tokens

BATCH = 500
MOST_SCANNED = 20_000
_READ_AT_ONCE = 100
# Index pages that one merge step writes; fewer changes than the second number mean that there was nothing to merge.
_MERGED_PAGES, _LEAST_CHANGES = 500, 2
_SCANNED_AT_ONCE = 500
_BATCH_CHARACTERS = 2_000_000
# PostgreSQL takes a megabyte of terms per item.
_MOST_TERM_BYTES = 900_000
# Prefix of a facet's id among the terms: no word contains it.
_FACET = "¦"

# A place has room for two thousand million items, and for the years 1834 to 2106.
_IDS = 2_147_483_648
_OLDEST, _NEWEST = -4_294_967_296, 4_294_967_295


Position = tuple[int, int]
"""Position in the content changes: change number and item id."""


class IndexMark(NamedTuple):
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
    place: int
    facets: tuple[str, ...]
    words: str
    """Its segments, separated by spaces; none if they are too long for the index."""
    terms: str
    is_too_long: bool


def place(ordered_at: int, item_id: int) -> int:
    """Returns an item's list time, to the second, and its id in one number: newer items have a larger one."""
    return min(max(ordered_at // 1_000_000, _OLDEST), _NEWEST) * _IDS + item_id


def item_at(at: int) -> int:
    """Returns the item id of this place."""
    return at % _IDS


class SearchIndex(StorePart):
    def advance(self, batch: int = BATCH) -> int:
        """Index the oldest part of the backlog; returns how many items, 0 if there is none (or a newer version does the
        indexing)."""
        mark: IndexMark = self._db.read(mark_of)
        if mark.rule < tokens.RULE:
            mark = self._db.write(_begun_anew)
        if mark.rule > tokens.RULE:
            return 0
        waiting = [_indexable(row) for row in self._waiting(mark, batch)]
        if waiting:
            self._db.write(lambda tx: _index(tx, mark, waiting))
        return len(waiting)

    def _waiting(self, mark: IndexMark, batch: int) -> list[Row]:
        """Returns the next rows, up to what fits into memory: read outside of any transaction."""
        waiting_rows: list[Row] = []
        characters = 0
        while len(waiting_rows) < batch and characters < _BATCH_CHARACTERS:
            after = (waiting_rows[-1][1], waiting_rows[-1][0]) if waiting_rows else mark.position
            limit = min(_READ_AT_ONCE, batch - len(waiting_rows))
            rows = self._db.read(partial(waiting, after=after, limit=limit, columns=f"{ABOUT}, i.title, i.text"))
            waiting_rows += rows
            characters += sum(len(row[-1] or "") for row in rows)
            if not rows:
                break
        return waiting_rows

    def behind(self) -> int:
        """Returns the size of the indexing backlog."""
        return self._db.read(lambda tx: count_waiting(tx, mark_of(tx)))

    def purge(self) -> None:
        """Make SQLite's index drop the words of deleted items: a deletion is only a mark until segments are merged.

        In steps, so that a collector never waits for long. PostgreSQL removes them when it vacuums.
        """
        while not self._db.is_postgres and self._db.write(_merge_some):
            pass

    def update_planner_statistics(self) -> None:
        """Update PostgreSQL's statistics after much was indexed: its planner depends on them."""
        if not self._db.is_postgres:
            return
        sql = """
            SELECT c.reltuples, l.last_item_id FROM pg_class c, ledger l
             WHERE c.oid = 'indexed'::regclass AND l.id = 1
        """
        row = self._one(sql)
        if row and row[1] > 1000 + 1.2 * max(row[0], 0):
            self._run("ANALYZE indexed")


# Indexed items and the backlog


def mark_of(tx: Transaction) -> IndexMark:
    row = tx.one("SELECT change_number, item_id, rule FROM index_mark WHERE id = 1")
    return IndexMark(*row) if row else _beginning()


def _beginning() -> IndexMark:
    return IndexMark(0, 0, tokens.RULE)


def usable_mark(tx: Transaction) -> IndexMark:
    """Returns the mark for queries: an index built by another rule is of no use to them."""
    mark = mark_of(tx)
    return mark if mark.rule == tokens.RULE else _beginning()


ABOUT = (
    "i.platform, i.kind, s.kind, i.author, i.tags, i.is_head AND i.floor_number IS NOT NULL, i.is_deleted, i.version"
)
"""The columns that an item's facets are made of."""


def waiting(tx: Transaction, after: Position, limit: int, columns: str) -> list[Row]:
    """Returns id, change number, time and the given columns of items in the backlog, in the order of changes."""
    sql = f"""
        SELECT i.id, i.content_change_number, i.ordered_at, {columns} FROM items i JOIN sources s ON s.id = i.source_id
         WHERE (i.content_change_number, i.id) > (?, ?) ORDER BY i.content_change_number, i.id LIMIT ?
    """
    return tx.all(sql, *after, limit)


class Scan(NamedTuple):
    """The part of the backlog that a query scans."""

    after: Position
    behind: int
    """How many items are neither indexed nor scanned. 0: nothing is missed."""


def scan_of(tx: Transaction, mark: IndexMark) -> Scan:
    """Returns everything after the mark; if that is too much, the latest changes."""
    sql = f"""
        SELECT content_change_number, id FROM items WHERE (content_change_number, id) > (?, ?)
         ORDER BY content_change_number DESC, id DESC LIMIT 1 OFFSET {MOST_SCANNED}
    """
    row = tx.one(sql, *mark.position)
    return Scan((row[0], row[1]), count_waiting(tx, mark) - MOST_SCANNED) if row else Scan(mark.position, 0)


def scanned(tx: Transaction, scan: Scan, columns: str) -> Iterator[Row]:
    """Yields rows forwards: an item that is edited meanwhile moves ahead, and is met again."""
    after = scan.after
    while rows := waiting(tx, after, _SCANNED_AT_ONCE, columns):
        yield from rows
        after = (rows[-1][1], rows[-1][0])


def count_waiting(tx: Transaction, mark: IndexMark) -> int:
    return tx.number("SELECT count(*) FROM items WHERE (content_change_number, id) > (?, ?)", *mark.position)


def _indexable(row: Row) -> Indexable:
    item_id, change_number, ordered_at, *about, title, text = row
    segments = list(dict.fromkeys(tokens.segments(title) + tokens.segments(text)))
    words, terms = " ".join(segments), tokens.terms(segments)
    is_too_long = _is_too_long(terms)
    if is_too_long:
        words = terms = ""
    at = place(ordered_at, item_id)
    return Indexable(item_id, change_number, ordered_at, at, tuple(facets_of(*about)), words, terms, is_too_long)


def _is_too_long(terms: str) -> bool:
    # A character has at most four bytes, and a term at least one character and a space.
    if 4 * len(terms) + 2 * len(terms) <= _MOST_TERM_BYTES:
        return False
    return sum(len(term.encode()) + 4 for term in set(terms.split())) > _MOST_TERM_BYTES


# Writing


def _locked_mark(tx: Transaction) -> IndexMark:
    """Returns the mark, locked until the transaction ends."""
    sql = """
        INSERT INTO index_mark (id, rule, change_number, item_id) VALUES (1, ?, 0, 0) ON CONFLICT (id) DO NOTHING
    """
    tx.run(sql, tokens.RULE)
    row = tx.one(f"SELECT change_number, item_id, rule FROM index_mark WHERE id = 1 {tx.lock_rows()}")
    assert row is not None
    return IndexMark(*row)


def _move_mark(tx: Transaction, mark: IndexMark) -> None:
    sql = "UPDATE index_mark SET change_number = ?, item_id = ?, rule = ? WHERE id = 1"
    tx.run(sql, mark.change_number, mark.item_id, mark.rule)


def _begun_anew(tx: Transaction) -> IndexMark:
    """A new rule: everything has to be indexed again."""
    mark = _locked_mark(tx)
    if mark.rule >= tokens.RULE:
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


def _merge_some(tx: Transaction) -> bool:
    """Merges a part of the segments; False: there is only one left."""
    count = "SELECT total_changes()"
    before = tx.all(count)[0][0]
    # Negative: segments of all sizes are merged, not only those of one size.
    tx.run(f"INSERT INTO item_words (item_words, rank) VALUES ('merge', -{_MERGED_PAGES})")
    return bool(tx.all(count)[0][0] - before >= _LEAST_CHANGES)


def _index(tx: Transaction, mark: IndexMark, batch: Sequence[Indexable]) -> None:
    if _locked_mark(tx) != mark:
        # Another process has indexed these meanwhile.
        return
    # Items that were deleted since they were read must not come back into the index.
    ids = [item.id for item in batch]
    present = {row[0] for row in tx.select_in("SELECT id FROM items WHERE id IN {values}", ids)}
    # SQLite's index writes a separate segment wherever the order of places breaks.
    items = sorted((item for item in batch if item.id in present), key=lambda item: item.place)
    if items:
        _put_in(tx, items)
    _move_mark(tx, IndexMark(batch[-1].change_number, batch[-1].id, mark.rule))


def _put_in(tx: Transaction, items: Sequence[Indexable]) -> None:
    facets = facet_ids(tx, {name for item in items for name in item.facets}, is_added=True)
    facet_lists = [" ".join([str(facets[name]) for name in item.facets]) for item in items]
    terms = [_with_facets(numbers, item.terms) for numbers, item in zip(facet_lists, items, strict=True)]
    places = [item.place for item in items]
    before = _entries(tx, places)
    if tx.is_postgres:
        _write_postgres(tx, items, facet_lists, terms)
    else:
        sql = """
            INSERT INTO indexed (place, facets, is_too_long, words) VALUES (?, ?, ?, ?)
            ON CONFLICT (place) DO UPDATE
               SET facets = excluded.facets, is_too_long = excluded.is_too_long, words = excluded.words
        """
        tx.many(
            sql,
            [
                (item.place, numbers, item.is_too_long, item.words)
                for numbers, item in zip(facet_lists, items, strict=True)
            ],
        )
        _write_fts(tx, before, zip(places, terms, strict=True))
    postings = {
        (int(facet_id), item.ordered_at, item.id)
        for numbers, item in zip(facet_lists, items, strict=True)
        for facet_id in numbers.split()
    }
    stored = _postings(before, {item.place: item.ordered_at for item in items})
    tx.insert("postings", _POSTING, sorted(postings - stored))
    _delete_postings(tx, stored - postings)


def _write_postgres(
    tx: Transaction, items: Sequence[Indexable], facet_lists: Sequence[str], terms: Sequence[str]
) -> None:
    if len(items) >= BATCH:
        # A backlog: GIN collects more entries before it sorts them in, which halves the work. Searches read through
        # the collected ones; the next small batch brings them back to the usual number.
        tx.run("SELECT set_config('gin_pending_list_limit', '16MB', true), set_config('work_mem', '64MB', true)")
    sql = r"""
        INSERT INTO indexed (place, facets, is_too_long, words)
        SELECT place, facets, is_too_long, array_to_tsvector(array_remove(string_to_array(terms, ' '), ''))
          FROM unnest(string_to_array(?, ' ')::bigint[], string_to_array(?, ' ')::boolean[],
                      string_to_array(?, E'\n'), string_to_array(?, E'\n')) AS new (place, is_too_long, facets, terms)
        ON CONFLICT (place) DO UPDATE
           SET facets = excluded.facets, is_too_long = excluded.is_too_long, words = excluded.words
    """
    tx.run(
        sql,
        " ".join([str(item.place) for item in items]),
        " ".join([str(item.is_too_long) for item in items]),
        "\n".join(facet_lists),
        "\n".join(terms),
    )


def terms_of(facets: str, words: str) -> str:
    """Returns the text for the database's own index: facet ids and segment terms, separated by spaces."""
    return _with_facets(facets, tokens.terms(words.split()))


def _with_facets(facets: str, terms: str) -> str:
    return " ".join([*map(facet_term, facets.split()), terms])


def facet_term(facet_id: int | str) -> str:
    return f"{_FACET}{facet_id}"


_POSTING = ("facet_id", "ordered_at", "item_id")
_Entry = tuple[int, str, str]
"""Place, facet ids and segments of an indexed item."""


def _entries(tx: Transaction, places: Sequence[int]) -> list[_Entry]:
    """Returns what the index has at these places, in order. PostgreSQL removes the words of an entry by itself."""
    words = "''" if tx.is_postgres else "words"
    rows = tx.select_in(f"SELECT place, facets, {words} FROM indexed WHERE place IN {{values}}", places)
    return sorted((at, facets, words) for at, facets, words in rows)


def _postings(entries: Iterable[_Entry], ordered_at: Mapping[int, int]) -> set[tuple[int, int, int]]:
    """Returns the postings of these entries; `ordered_at`: the list time of each, by place."""
    return {(int(facet_id), ordered_at[at], item_at(at)) for at, facets, _ in entries for facet_id in facets.split()}


def _write_fts(tx: Transaction, before: Iterable[_Entry], after: Iterable[tuple[int, str]] = ()) -> None:
    """Replaces entries of SQLite's index, which needs the terms of an entry to remove it. By place, so that all of it
    becomes one segment."""
    rows: list[tuple[str | None, int, str]] = [("delete", at, terms_of(facets, words)) for at, facets, words in before]
    rows += [(None, at, terms) for at, terms in after]
    sql = "INSERT INTO item_words (item_words, rowid, terms) VALUES (?, ?, ?)"
    tx.many(sql, sorted(rows, key=lambda row: (row[1], row[0] is None)) if before else rows)


def _delete_postings(tx: Transaction, postings: Iterable[tuple[int, int, int]]) -> None:
    """Deletes postings, and the facets without items: a name may be that of an author who is deleted permanently."""
    postings = sorted(postings)
    tx.many("DELETE FROM postings WHERE facet_id = ? AND ordered_at = ? AND item_id = ?", postings)
    sql = "DELETE FROM facets WHERE id = ? AND NOT EXISTS (SELECT 1 FROM postings WHERE facet_id = ?)"
    tx.many(sql, [(facet_id, facet_id) for facet_id in sorted({posting[0] for posting in postings})])


def remove(tx: Transaction, item_ids: Iterable[int]) -> None:
    """Remove items from the index that are about to be deleted: in the same transaction, before they are deleted."""
    ids = sorted(set(item_ids))
    if not ids:
        return
    _locked_mark(tx)
    rows = tx.select_in("SELECT id, ordered_at FROM items WHERE id IN {values}", ids)
    if len(rows) < len(ids):
        raise ValueError("items leave the index before they are deleted: afterwards nobody knows their places")
    ordered_at = {place(at, item_id): at for item_id, at in rows}
    entries = _entries(tx, list(ordered_at))
    if not tx.is_postgres:
        _write_fts(tx, entries)
    tx.many("DELETE FROM indexed WHERE place = ?", [(at,) for at, _, _ in entries])
    _delete_postings(tx, _postings(entries, ordered_at))
