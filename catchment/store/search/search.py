"""Search: matches in the index and in the backlog, by the same rules, in one list.

The index returns places, newest first; each item's row shows whether it is unchanged since and matches. Newest first
stops at the end of the page, however many matches there are. Best first compares the newest thousand matches. Texts
with too many words for the index are read, a limited number per page: if there are more, the page ends at the last one.

SQLite's FTS5 returns places in their order and stops when no more are read. PostgreSQL's GIN returns all or none: rare
matches are fetched whole and sorted; frequent ones are found soon enough by walking from the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.store.database import Row, StorePart, Transaction
from catchment.store.item_fields import ItemView, extended
from catchment.store.items.views import by_ids
from catchment.store.search.facets import facet_ids
from catchment.store.search.index import ABOUT, IndexMark, facet_term, item_at, place, scan_of, scanned, usable_mark
from catchment.store.search.lists import Filter, Groups, ListFilter, is_match, shown_by
from catchment.text import tokens
from catchment.text.tokens import Query, Snippet

# Cost of one more row, in the same unit: fetched from the index and sorted; or walked past, its terms unpacked.
_TAKING, _WALKING = 1, 5
_LONGEST_WALK = 50_000
_FEW, _PROBED = 2_000, 2_000
"""Up to this many matches are fetched at once; otherwise this many of the newest items are probed before deciding."""


Terms = list[list[str]]
"""One term of each group must match."""


class Match(NamedTuple):
    terms: tuple[str, ...]
    groups: Groups
    """Groups of facets: one of each must match."""
    low: int
    high: int
    """Places from `low` on, and below `high`."""


class Places(NamedTuple):
    places: Iterator[int]
    """Newest first; a lazy iterator."""
    how_many: int
    is_estimated: bool


def places(tx: Transaction, match: Match, most: int, counted: int) -> Places:
    """Returns matching places. `most` is how many will probably be read; the count is exact up to `counted`."""
    ids = facet_ids(tx, {name for group in match.groups for name in group})
    facets = [[facet_term(ids[name]) for name in group if name in ids] for group in match.groups]
    if not all(facets):
        return Places(iter(()), 0, False)
    terms = [*([term] for term in match.terms), *facets]
    return _in_postgres(tx, terms, match, most) if tx.is_postgres else _in_sqlite(tx, terms, match, counted)


def _in_sqlite(tx: Transaction, terms: Terms, match: Match, counted: int) -> Places:
    question = " AND ".join("(" + " OR ".join(f'"{term}"' for term in group) + ")" for group in terms)
    first = _fts(tx, question, match.low, match.high, counted)
    if len(first) < counted:
        return Places(iter(first), len(first), False)
    return Places(chain(first, _more_fts(tx, question, match.low, first[-1])), len(first), True)


def _more_fts(tx: Transaction, question: str, low: int, high: int) -> Iterator[int]:
    while batch := _fts(tx, question, low, high, 5_000):
        yield from batch
        high = batch[-1]


def _fts(tx: Transaction, question: str, low: int, high: int, limit: int) -> list[int]:
    sql = """
        SELECT rowid FROM item_words WHERE item_words MATCH ? AND rowid >= ? AND rowid < ?
         ORDER BY rowid DESC LIMIT ?
    """
    return tx.column(sql, question, low, high, limit)


def _in_postgres(tx: Transaction, terms: Terms, match: Match, most: int) -> Places:
    parts = ["(" + " | ".join(f"'{term}'" for term in group) + ")" for group in terms]
    question = " & ".join(parts)
    # All rows with the rarest term are read, however few of them have the others, too. The planner can only guess how
    # many have all of them, as if words were independent; the newest items tell better.
    rarest = min(_expected(tx, part) for part in parts)
    if rarest <= _FEW:
        return _all_of_them(tx, question, match)
    met = _stretch(tx, question, match.low, match.high, _PROBED, most)
    everything = tx.number("SELECT last_item_id FROM ledger WHERE id = 1")
    walk = most * _PROBED // max(1, len(met))
    if len(met) < most and rarest * _TAKING <= walk * _WALKING:
        return _all_of_them(tx, question, match)
    length = min(4 * walk, _LONGEST_WALK)
    return Places(_walked(tx, question, match, met, length, most), max(1, most * everything // walk), True)


def _all_of_them(tx: Transaction, question: str, match: Match) -> Places:
    matches = _taken(tx, question, match.low, match.high)
    return Places(iter(matches), len(matches), False)


def _walked(tx: Transaction, question: str, match: Match, met: list[int], length: int, most: int) -> Iterator[int]:
    """Yields the first matches, then continues along stretches of the newest items; when matches get sparse, it fetches
    the rest at once."""
    yield from met
    high, is_dense = met[-1] if met else match.high, True
    while is_dense:
        met = _stretch(tx, question, match.low, high, length, most)
        yield from met
        high, is_dense = met[-1] if met else high, len(met) == most
    yield from _taken(tx, question, match.low, high)


def _stretch(tx: Transaction, question: str, low: int, high: int, length: int, most: int) -> list[int]:
    """Returns the matches among the newest `length` items, up to `most`."""
    return tx.column(
        # The inner LIMIT keeps the planner from using the index after all.
        """
        SELECT place FROM (SELECT place, words FROM indexed WHERE place >= ? AND place < ?
                            ORDER BY place DESC LIMIT ?) AS newest
         WHERE words @@ ?::tsquery ORDER BY place DESC LIMIT ?
        """,
        low,
        high,
        length,
        question,
        most,
    )


def _taken(tx: Transaction, question: str, low: int, high: int) -> list[int]:
    sql = """
        WITH found AS MATERIALIZED (SELECT place FROM indexed WHERE words @@ ?::tsquery)
        SELECT place FROM found WHERE place >= ? AND place < ? ORDER BY place DESC
    """
    return tx.column(sql, question, low, high)


def _expected(tx: Transaction, question: str) -> int:
    """Returns the planner's row estimate, from its statistics of the terms."""
    row = tx.one("EXPLAIN (FORMAT JSON) SELECT 1 FROM indexed WHERE words @@ ?::tsquery", question)
    return int(row[0][0]["Plan"]["Plan Rows"]) if row else 0


RANKED = 1_000
"""The newest matches that are compared for "best first"."""
COUNTED = 1_000
"""Matches are counted up to here; beyond, the count is an estimate."""
MOST_READ = 5_000
"""A source with at most this many items is read through: it may have none of the many matches of a frequent word."""
LONG_READ = 50
"""Texts with too many words for the index that are read for one page."""
_MOST_CHECKED = 2_000
_READ_AT_ONCE = 100


class SearchHit(ItemView, frozen=True):
    """An item that was found."""

    snippet: Snippet
    title_marks: tuple[tuple[int, int], ...]
    key: str
    """Its position in the list, as a cursor."""


class ResultPage(Record, frozen=True):
    """A page of search results."""

    items: list[SearchHit]
    next: str | None
    """Cursor of the next page; None: this was the end. A page may be short or even empty although the list
    continues."""
    behind: int
    """How many items were not searched because the index is too far behind. 0: nothing is missing."""
    count: int | None
    """Total number of results; given with the first page only."""
    is_count_estimated: bool


class Search(StorePart):
    def find(
        self,
        question: str,
        filter: Filter | None = None,
        *,
        is_best: bool = False,
        limit: int = 30,
        after: str | None = None,
    ) -> ResultPage:
        """Returns results newest first, or best first. The next page is `after` the `next` of this one."""
        query = tokens.understand(question)
        begin = _FIRST
        if after is not None:
            begin = _Hit(*_numbers(after, 2)) if is_best else _Hit(0, *_numbers(after, 1))
        return self._db.read(lambda tx: _SearchRun(tx, query, filter or Filter()).page(is_best, limit, begin))


class _Hit(NamedTuple):
    worth: int
    """Score in thousandths; 0 if results are not compared."""
    place: int

    @property
    def key(self) -> str:
        return f"{self.worth}_{self.place}" if self.worth else f"{self.place}"


_FIRST = _Hit(2**62, 2**63 - 1)


class _SearchRun:
    """One query against one state of the database."""

    def __init__(self, tx: Transaction, query: Query, filter: Filter) -> None:
        self._tx, self._query = tx, query
        self._filter: ListFilter = filter.as_list_filter(tx)
        self._sources = self._filter.sources
        self._mark: IndexMark = usable_mark(tx)

    def page(self, is_best: bool, limit: int, begin: _Hit) -> ResultPage:
        match = self._match(begin.place if not is_best else _FIRST.place)
        most = RANKED if is_best else limit + 1
        matches = self._indexed(match, most)
        indexed = list(islice(matches.places, most))
        # Read last: an item edited meanwhile moves from the index to the backlog, never the other way round.
        scan = scan_of(self._tx, self._mark)
        long, end = self._too_long(match)
        read = {*self._read(iter(long)), *self._among(scanned(self._tx, scan, _READ))}
        waiting = {at for at in read if match.low <= at < match.high}
        newest = sorted(waiting.union(indexed), reverse=True)[:most]
        if not is_best:
            # Below the last long text that was read there may be others: those results belong to the next page.
            newest = [at for at in newest if end is None or at >= end]
        ranked = sorted(self._ranked(newest), reverse=True) if is_best else [_Hit(0, at) for at in newest]
        hits = [hit for hit in ranked if hit < begin][: limit + 1]
        is_first = begin == _FIRST
        return ResultPage(
            self._shown(hits[:limit]),
            hits[limit - 1].key if len(hits) > limit else None if is_best or end is None else _Hit(0, end).key,
            scan.behind,
            matches.how_many + len(waiting.difference(indexed)) if is_first else None,
            matches.is_estimated or end is not None,
        )

    def _indexed(self, match: Match, most: int) -> Places:
        """Returns the places of indexed matches."""
        own = self._places_of_source(match)
        if own is not None:
            return Places(self._read(iter(own)), len(own), True)
        matches = places(self._tx, match, most, COUNTED)
        # Whether the index alone decides; it knows times only to the second.
        is_decided = self._query.is_exact and self._filter == ListFilter(self._filter.groups)
        return Places(self._checked(matches.places), matches.how_many, matches.is_estimated or not is_decided)

    def _match(self, before: int) -> Match:
        since, until = self._filter.since, self._filter.until
        low = -(2**63) if since is None else place(since, 0)
        high = before if until is None else min(before, place(until + 999_999, 0))
        return Match(self._query.terms, self._filter.all_groups, low, high)

    def _places_of_source(self, match: Match) -> list[int] | None:
        """Returns all items of the requested sources; None: no source filter, or too many items to read through."""
        if self._sources is None:
            return None
        rows = self._tx.select_in(
            f"SELECT ordered_at, item_id FROM sightings WHERE source_id IN {{values}} LIMIT {MOST_READ + 1}",
            sorted(self._sources),
        )
        if len(rows) > MOST_READ:
            return None
        in_span = {at for row in rows if match.low <= (at := place(*row)) < match.high}
        return sorted(in_span, reverse=True)

    def _too_long(self, match: Match) -> tuple[list[int], int | None]:
        """Returns the newest items with too many words for the index, and the last of them; None: these are all."""
        rows = self._tx.all(
            f"""
            SELECT place FROM indexed WHERE is_too_long AND place >= ? AND place < ?
             ORDER BY place DESC LIMIT {LONG_READ + 1}
            """,
            match.low,
            match.high,
        )
        long_places = [row[0] for row in rows]
        return long_places[:LONG_READ], long_places[LONG_READ - 1] if len(long_places) > LONG_READ else None

    def _checked(self, indexed: Iterator[int]) -> Iterator[int]:
        """Yields the places whose items are unchanged since they were indexed, and match."""
        count = 50
        while chunk := list(islice(indexed, count)):
            rows = self._rows(chunk, ABOUT if self._query.is_exact else _READ)
            good = {row[0] for row in rows if self._is_good(row)}
            shown = self._shown_by_source(good)
            yield from (at for at in chunk if item_at(at) in shown)
            # Few matches so far: larger steps. But texts have to fit into memory.
            count = min(count * 4, _MOST_CHECKED if self._query.is_exact else 200)

    def _rows(self, chunk: Sequence[int], columns: str) -> list[Row]:
        """Returns the items of these places that are unchanged since they were indexed: the others are in the
        backlog."""
        rows = self._tx.select_in(
            f"""
            SELECT i.id, i.content_change_number, i.ordered_at, {columns} FROM items i
              JOIN sources s ON s.id = i.source_id WHERE i.id IN {{values}}
            """,
            [item_at(at) for at in chunk],
        )
        return [row for row in rows if (row[1], row[0]) <= self._mark.position]

    def _is_good(self, row: Row) -> bool:
        """Whether a row matches the filter, apart from its source, and the query; without texts, the query is known to
        match."""
        since, until = self._filter.since, self._filter.until
        if (since is not None and row[2] < since) or (until is not None and row[2] >= until):
            return False
        about, texts = row[:_TEXTS], row[_TEXTS:]
        return is_match(self._filter, about) and (not texts or tokens.is_answered(self._query, *texts))

    def _among(self, rows: Iterable[Row]) -> list[int]:
        """Returns the places of the matches among fully read rows."""
        good: dict[int, int | None] = {}
        for row in rows:
            # Met twice, it was edited meanwhile: its current state counts.
            good[row[0]] = place(row[2], row[0]) if self._is_good(row) else None
        shown = self._shown_by_source({item_id for item_id, at in good.items() if at is not None})
        return [at for item_id, at in good.items() if at is not None and item_id in shown]

    def _read(self, unread: Iterator[int]) -> Iterator[int]:
        """Yields the places whose items match, tested by reading them."""
        while chunk := list(islice(unread, _READ_AT_ONCE)):
            yield from sorted(self._among(self._rows(chunk, _READ)), reverse=True)

    def _shown_by_source(self, item_ids: set[int]) -> set[int]:
        return item_ids if self._sources is None else shown_by(self._tx, self._sources, sorted(item_ids))

    def _ranked(self, matches: Sequence[int]) -> Iterator[_Hit]:
        for start in range(0, len(matches), _READ_AT_ONCE):
            chunk = {item_at(at): at for at in matches[start : start + _READ_AT_ONCE]}
            for item_id, title, text in self._tx.select_in(
                "SELECT id, title, text FROM items WHERE id IN {values}", list(chunk)
            ):
                yield _Hit(max(1, round(1000 * tokens.worth(self._query, title, text))), chunk[item_id])

    def _shown(self, hits: Sequence[_Hit]) -> list[SearchHit]:
        keys = {item_at(hit.place): hit.key for hit in hits}
        return [
            extended(
                SearchHit,
                item,
                tokens.snippet(self._query, item.text),
                tokens.marks(self._query, item.title),
                keys[item.id],
            )
            for item in by_ids(self._tx, list(keys))
        ]


_READ = f"{ABOUT}, i.title, i.text"
_TEXTS = 3 + len(ABOUT.split(","))


def _numbers(after: str, count: int) -> list[int]:
    try:
        numbers = [int(part) for part in after.split("_")]
        if len(numbers) != count or not all(-(2**63) <= number < 2**63 for number in numbers):
            raise ValueError
    except ValueError:
        raise InvalidInput("this is not a valid cursor", "use `next` of the previous page", "after") from None
    return numbers
