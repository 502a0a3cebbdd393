"""Search: what the index finds and what waits to be indexed, by the same rules, in one list.

The index gives places, newest first; whether an item is as it was indexed, and answers, is seen in its row. Newest
first stops at the end of the page, however many there are. Best first compares the newest thousand that answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from catchment import wording
from catchment.clock import micros
from catchment.errors import InvalidInput
from catchment.model import Record
from catchment.store.database import Database, Row, Transaction
from catchment.store.facets import DELETED, author_facet, facets_of, kind_facet, platform_facet, tag_facet
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
_MOST_CHECKED = 2_000
_READ_AT_ONCE = 100


class Filters(Record, frozen=True):
    """What is looked for, words aside. None: whatever it is."""

    kind: str | None = None
    """Of the item (entry, story), or of the source that showed it first (rss, reddit)."""
    platform: str | None = None
    source_id: int | None = None
    """Any source that showed it."""
    author: str | None = None
    tag: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Listed at this time or later, and before that one."""
    is_deleted: bool | None = None

    def facets(self) -> set[str]:
        wanted = {platform_facet(self.platform)} if self.platform else set()
        wanted |= {kind_facet(self.kind)} if self.kind else set()
        wanted |= {author_facet(self.platform, self.author)} if self.author else set()
        wanted |= {tag_facet(self.tag)} if self.tag else set()
        return wanted | ({DELETED} if self.is_deleted else set())


class Found(Record, frozen=True):
    """A page of what was found."""

    items: list[dict[str, Any]]
    """Each with its `snippet`, the `title_marks`, and its `key`."""
    next: str | None
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
        filters: Filters | None = None,
        *,
        is_best: bool = False,
        limit: int = 30,
        after: str | None = None,
    ) -> Found:
        """Newest first, or best first. The next page is `after` the `next` of this one."""
        query = wording.understand(question)
        begin = _best_from(after) if is_best else _newest_from(after)
        return self._db.read(lambda tx: _Asking(tx, query, filters or Filters()).page(is_best, limit, begin))


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

    def __init__(self, tx: Transaction, query: Query, filters: Filters) -> None:
        self._tx, self._query, self._filters = tx, query, filters
        self._facets = filters.facets()
        self._since = micros(filters.since) if filters.since else None
        self._until = micros(filters.until) if filters.until else None
        self._mark: Mark = usable_mark(tx)

    def page(self, is_best: bool, limit: int, begin: _Hit) -> Found:
        match = self._match(begin.place if not is_best else _FIRST.place)
        wanted = RANKED if is_best else limit + 1
        found = self._indexed(match, wanted)
        indexed = list(islice(found.places, wanted))
        # Asked for last: what is edited meanwhile leaves the former and enters the latter, never the other way round.
        scan = scan_of(self._tx, self._mark)
        read = {*self._read(self._too_long(match)), *self._among(scanned(self._tx, scan, _READ))}
        waiting = {one for one in read if match.low <= one < match.high}
        newest = sorted(waiting.union(indexed), reverse=True)[:wanted]
        ranked = sorted(self._ranked(newest), reverse=True) if is_best else [_Hit(0, one) for one in newest]
        hits = [one for one in ranked if one < begin][: limit + 1]
        is_first = begin == _FIRST
        return Found(
            self._shown(hits[:limit]),
            hits[limit - 1].key if len(hits) > limit else None,
            scan.behind,
            found.how_many + len(waiting.difference(indexed)) if is_first else None,
            found.is_estimated,
        )

    def _indexed(self, match: Match, wanted: int) -> Places:
        """The places of what is indexed and answers."""
        own = self._places_of_source(match)
        if own is not None:
            return Places(self._read(iter(own)), len(own), True)
        found = places(self._tx, match, wanted, COUNTED)
        is_decided = self._query.is_exact and self._filters.source_id is None and self._filters.is_deleted is not False
        return Places(self._checked(found.places), found.how_many, found.is_estimated or not is_decided)

    def _match(self, before: int) -> Match:
        low = -(2**63) if self._since is None else place(self._since, 0)
        high = before if self._until is None else min(before, place(self._until, 0) + 2**31)
        return Match(self._query.terms, tuple(sorted(self._facets)), low, high)

    def _places_of_source(self, match: Match) -> list[int] | None:
        """All that the source showed; None: of all sources, or of one that shows too much to be read through."""
        if self._filters.source_id is None:
            return None
        rows = self._tx.all(
            f"SELECT ordered_at, item_id FROM sightings WHERE source_id = ? LIMIT {MOST_READ + 1}",
            self._filters.source_id,
        )
        if len(rows) > MOST_READ:
            return None
        return sorted((one for row in rows if match.low <= (one := place(*row)) < match.high), reverse=True)

    def _too_long(self, match: Match) -> Iterator[int]:
        """Those that have too many words for the index."""
        rows = self._tx.all(
            "SELECT place FROM indexed WHERE is_too_long AND place >= ? AND place < ? ORDER BY place DESC",
            match.low,
            match.high,
        )
        return (row[0] for row in rows)

    # ── whether an item answers ───────────────────────────────────────────────────────────────────────────────────

    def _checked(self, found: Iterator[int]) -> Iterator[int]:
        """Of the places that the index gives those whose items are as they were indexed, and answer."""
        count = 50
        while chunk := list(islice(found, count)):
            columns = "i.ordered_at, i.is_deleted" + ("" if self._query.is_exact else ", i.title, i.text")
            rows = self._tx.among(
                f"SELECT i.id, i.content_change_number, {columns} FROM items i WHERE i.id IN {{few}}",
                [item_at(one) for one in chunk],
            )
            good = {row[0] for row in rows if (row[1], row[0]) <= self._mark.position and self._answers(*row[2:])}
            shown = self._shown_by_source(good)
            yield from (one for one in chunk if item_at(one) in shown)
            # Few answers so far: larger steps. But texts have to be held in memory.
            count = min(count * 4, _MOST_CHECKED if self._query.is_exact else 200)

    def _answers(self, ordered_at: int, is_deleted: bool, *texts: str | None) -> bool:
        if self._since is not None and ordered_at < self._since:
            return False
        if self._until is not None and ordered_at >= self._until:
            return False
        if self._filters.is_deleted is not None and bool(is_deleted) != self._filters.is_deleted:
            return False
        return not texts or wording.is_answered(self._query, *texts)

    def _among(self, rows: Iterable[Row]) -> list[int]:
        """The places of those that answer, of rows that were read whole."""
        good: dict[int, int | None] = {}
        for item_id, _, ordered_at, *about, title, text in rows:
            has = self._facets <= set(facets_of(*about)) and self._answers(ordered_at, about[-1], title, text)
            # Met twice, it was edited meanwhile: what it says now counts.
            good[item_id] = place(ordered_at, item_id) if has else None
        shown = self._shown_by_source({item_id for item_id, at in good.items() if at is not None})
        return [at for item_id, at in good.items() if at is not None and item_id in shown]

    def _read(self, found: Iterator[int]) -> Iterator[int]:
        """Of these places those whose items answer, seen by reading them."""
        while chunk := list(islice(found, _READ_AT_ONCE)):
            rows = self._tx.among(
                f"""
                SELECT i.id, i.content_change_number, i.ordered_at, {_READ} FROM items i
                  JOIN sources s ON s.id = i.source_id WHERE i.id IN {{few}}
                """,
                [item_at(one) for one in chunk],
            )
            yield from sorted(self._among(row for row in rows if (row[1], row[0]) <= self._mark.position), reverse=True)

    def _shown_by_source(self, item_ids: set[int]) -> set[int]:
        if self._filters.source_id is None:
            return item_ids
        rows = self._tx.among(
            "SELECT item_id FROM sightings WHERE item_id IN {few} AND source_id = ?",
            sorted(item_ids),
            after=[self._filters.source_id],
        )
        return {row[0] for row in rows}

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
