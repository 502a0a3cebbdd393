"""Search: what the index finds and what waits to be indexed, by the same rules, in one list.

The index gives places, newest first; whether an item is as it was indexed, and answers, is seen in its row. Newest
first stops at the end of the page, however many there are. Best first compares the newest thousand that answer. Texts
that have too many words for the index are read, so many for a page: where there are more, the page ends at the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from catchment import wording
from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.store.database import Database, Row, Transaction
from catchment.store.filtering import Filter, Wanted, is_wanted, shown_by
from catchment.store.indexing import ABOUT, Mark, item_at, place, scan_of, scanned, usable_mark
from catchment.store.matching import Match, Places, places
from catchment.store.shown import by_ids
from catchment.wording import Query

RANKED = 1_000
"""So many that answer, the newest, are compared where the best are asked for."""
COUNTED = 1_000
"""So many are counted; beyond, the count is an estimate."""
MOST_READ = 5_000
"""A source with no more items than these is read through: it may have none of the many that have a word."""
LONG_READ = 50
"""So many of the texts that have too many words for the index are read for one page."""
_MOST_CHECKED = 2_000
_READ_AT_ONCE = 100


class Found(Record, frozen=True):
    """A page of what was found."""

    items: list[dict[str, Any]]
    """Each with its `snippet`, the `title_marks`, and its `key`."""
    next: str | None
    """Where to go on; None: this was the end. A page may be short, even empty, and go on all the same."""
    behind: int
    """How many items were not looked at, because the index is so far behind. 0: nothing is missing."""
    count: int | None
    """How many there are in all; told with the first page."""
    is_count_estimated: bool


class Search:
    def __init__(self, database: Database) -> None:
        self._db = database

    def find(
        self,
        question: str,
        wanted: Filter | None = None,
        *,
        is_best: bool = False,
        limit: int = 30,
        after: str | None = None,
    ) -> Found:
        """Newest first, or best first. The next page is `after` the `next` of this one."""
        query = wording.understand(question)
        begin = _best_from(after) if is_best else _newest_from(after)
        return self._db.read(lambda tx: _Asking(tx, query, wanted or Filter()).page(is_best, limit, begin))


class _Hit(NamedTuple):
    worth: int
    """In thousandths; 0 where nothing is compared."""
    place: int

    @property
    def key(self) -> str:
        return f"{self.worth}_{self.place}" if self.worth else f"{self.place}"


_FIRST = _Hit(2**62, 2**63 - 1)


class _Asking:
    """One question to one state of the database."""

    def __init__(self, tx: Transaction, query: Query, wanted: Filter) -> None:
        self._tx, self._query = tx, query
        self._wanted: Wanted = wanted.wanted(tx)
        self._mark: Mark = usable_mark(tx)

    def page(self, is_best: bool, limit: int, begin: _Hit) -> Found:
        match = self._match(begin.place if not is_best else _FIRST.place)
        wanted = RANKED if is_best else limit + 1
        found = self._indexed(match, wanted)
        indexed = list(islice(found.places, wanted))
        # Asked for last: what is edited meanwhile leaves the former and enters the latter, never the other way round.
        scan = scan_of(self._tx, self._mark)
        long, end = self._too_long(match)
        read = {*self._read(iter(long)), *self._among(scanned(self._tx, scan, _READ))}
        waiting = {one for one in read if match.low <= one < match.high}
        newest = sorted(waiting.union(indexed), reverse=True)[:wanted]
        if not is_best:
            # What is older than the last long text that was read may have more between it: that is the next page's.
            newest = [one for one in newest if end is None or one >= end]
        ranked = sorted(self._ranked(newest), reverse=True) if is_best else [_Hit(0, one) for one in newest]
        hits = [one for one in ranked if one < begin][: limit + 1]
        is_first = begin == _FIRST
        return Found(
            self._shown(hits[:limit]),
            hits[limit - 1].key if len(hits) > limit else None if is_best or end is None else _Hit(0, end).key,
            scan.behind,
            found.how_many + len(waiting.difference(indexed)) if is_first else None,
            found.is_estimated or end is not None,
        )

    def _indexed(self, match: Match, wanted: int) -> Places:
        """The places of what is indexed and answers."""
        own = self._places_of_source(match)
        if own is not None:
            return Places(self._read(iter(own)), len(own), True)
        found = places(self._tx, match, wanted, COUNTED)
        # Whether the index alone decides; times it knows to the second.
        is_decided = self._query.is_exact and self._wanted == Wanted(self._wanted.groups)
        return Places(self._checked(found.places), found.how_many, found.is_estimated or not is_decided)

    def _match(self, before: int) -> Match:
        since, until = self._wanted.since, self._wanted.until
        low = -(2**63) if since is None else place(since, 0)
        high = before if until is None else min(before, place(until + 999_999, 0))
        return Match(self._query.terms, self._wanted.all_groups, low, high)

    def _places_of_source(self, match: Match) -> list[int] | None:
        """All that the source showed; None: of all sources, or of one that shows too much to be read through."""
        if self._wanted.source_id is None:
            return None
        rows = self._tx.all(
            f"SELECT ordered_at, item_id FROM sightings WHERE source_id = ? LIMIT {MOST_READ + 1}",
            self._wanted.source_id,
        )
        if len(rows) > MOST_READ:
            return None
        return sorted((one for row in rows if match.low <= (one := place(*row)) < match.high), reverse=True)

    def _too_long(self, match: Match) -> tuple[list[int], int | None]:
        """The newest of those that have too many words for the index, and the last of them; None: these are all."""
        rows = self._tx.all(
            f"""
            SELECT place FROM indexed WHERE is_too_long AND place >= ? AND place < ?
             ORDER BY place DESC LIMIT {LONG_READ + 1}
            """,
            match.low,
            match.high,
        )
        found = [row[0] for row in rows]
        return found[:LONG_READ], found[LONG_READ - 1] if len(found) > LONG_READ else None

    # ── whether an item answers ───────────────────────────────────────────────────────────────────────────────────

    def _checked(self, found: Iterator[int]) -> Iterator[int]:
        """Of the places that the index gives those whose items are as they were indexed, and answer."""
        count = 50
        while chunk := list(islice(found, count)):
            rows = self._rows(chunk, ABOUT if self._query.is_exact else _READ)
            good = {row[0] for row in rows if self._is_good(row)}
            shown = self._shown_by_source(good)
            yield from (one for one in chunk if item_at(one) in shown)
            # Few answers so far: larger steps. But texts have to be held in memory.
            count = min(count * 4, _MOST_CHECKED if self._query.is_exact else 200)

    def _rows(self, found: Sequence[int], columns: str) -> list[Row]:
        """The items of these places that are as they were indexed: the others are met among those that wait."""
        rows = self._tx.among(
            f"""
            SELECT i.id, i.content_change_number, i.ordered_at, {columns} FROM items i
              JOIN sources s ON s.id = i.source_id WHERE i.id IN {{few}}
            """,
            [item_at(one) for one in found],
        )
        return [row for row in rows if (row[1], row[0]) <= self._mark.position]

    def _is_good(self, row: Row) -> bool:
        """Whether it is wanted, its source aside, and answers; without texts, that is known already."""
        since, until = self._wanted.since, self._wanted.until
        if (since is not None and row[2] < since) or (until is not None and row[2] >= until):
            return False
        about, texts = row[:_TEXTS], row[_TEXTS:]
        return is_wanted(self._wanted, about) and (not texts or wording.is_answered(self._query, *texts))

    def _among(self, rows: Iterable[Row]) -> list[int]:
        """The places of those that are good, of rows that were read whole."""
        good: dict[int, int | None] = {}
        for row in rows:
            # Met twice, it was edited meanwhile: what it says now counts.
            good[row[0]] = place(row[2], row[0]) if self._is_good(row) else None
        shown = self._shown_by_source({item_id for item_id, at in good.items() if at is not None})
        return [at for item_id, at in good.items() if at is not None and item_id in shown]

    def _read(self, found: Iterator[int]) -> Iterator[int]:
        """Of these places those whose items answer, seen by reading them."""
        while chunk := list(islice(found, _READ_AT_ONCE)):
            yield from sorted(self._among(self._rows(chunk, _READ)), reverse=True)

    def _shown_by_source(self, item_ids: set[int]) -> set[int]:
        if self._wanted.source_id is None:
            return item_ids
        return shown_by(self._tx, self._wanted.source_id, sorted(item_ids))

    # ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _ranked(self, found: Sequence[int]) -> Iterator[_Hit]:
        for start in range(0, len(found), _READ_AT_ONCE):
            chunk = {item_at(one): one for one in found[start : start + _READ_AT_ONCE]}
            for item_id, title, text in self._tx.among(
                "SELECT id, title, text FROM items WHERE id IN {few}", list(chunk)
            ):
                yield _Hit(max(1, round(1000 * wording.worth(self._query, title, text))), chunk[item_id])

    def _shown(self, hits: Sequence[_Hit]) -> list[dict[str, Any]]:
        keys = {item_at(one.place): one.key for one in hits}
        return [one | self._marked(one) | {"key": keys[one["id"]]} for one in by_ids(self._tx, list(keys))]

    def _marked(self, item: dict[str, Any]) -> dict[str, Any]:
        piece = wording.snippet(self._query, item["text"])
        return {
            "snippet": {"text": piece.text, "marks": [list(one) for one in piece.marks]},
            "title_marks": [list(one) for one in wording.marks(self._query, item["title"])],
        }


_READ = f"{ABOUT}, i.title, i.text"
_TEXTS = 3 + len(ABOUT.split(","))


def _newest_from(after: str | None) -> _Hit:
    return _FIRST if after is None else _Hit(0, _numbers(after, 1)[0])


def _best_from(after: str | None) -> _Hit:
    return _FIRST if after is None else _Hit(*_numbers(after, 2))


def _numbers(after: str, count: int) -> list[int]:
    try:
        numbers = [int(part) for part in after.split("_")]
        if len(numbers) != count or not all(-(2**63) <= one < 2**63 for one in numbers):
            raise ValueError
    except ValueError:
        raise InvalidInput("this is not a place in the list", "use the `next` of the page before", "after") from None
    return numbers
