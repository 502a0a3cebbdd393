"""Lists by any filter, newest first: what the index has, and what waits to be indexed, in one order.

Of the lists that a filter names (a facet's, a source's, everything) the sparsest is walked along, and what is met is
tested against the items themselves. A list answers in bounded time whatever is asked: after so many steps it gives what
was found, and where to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import NamedTuple

from catchment.model import Record
from catchment.store import indexing
from catchment.store.database import Row, Transaction
from catchment.store.facets import (
    DELETED,
    EDITED,
    author_facet,
    facet_ids,
    facets_of,
    kind_facet,
    platform_facet,
    tag_facet,
)
from catchment.store.indexing import ABOUT, Position, Scan, scanned, usable_mark
from catchment.store.rows import to_micros

_BATCH = 1_000
# Several batches: what is asked of a list costs at most so many looks at an item.
_BATCHES = 5
# How far back the so-manieth item of a list is dated tells how sparse the list is, here and now.
_PROBE = 1_000

Key = tuple[int, int]
"""Where an item stands in a list: when it is listed, and which one it is."""
Groups = tuple[tuple[str, ...], ...]
"""Names of facets: an item must have one of each group."""
LARGEST = 2**63 - 1
TOP: Key = (LARGEST, LARGEST)


class Wanted(Record, frozen=True):
    """A filter, as the lists know it."""

    groups: Groups = ()
    source_id: int | None = None
    since: int | None = None
    """Listed at this time or later, by what the list is ordered by …"""
    until: int | None = None
    """… and before that one."""
    is_deleted: bool | None = None
    changed_since: int | None = None
    """Changed after this change number, in content or marks."""
    is_edited: bool | None = None
    """Has said something else before."""

    @property
    def all_groups(self) -> Groups:
        marks = ((DELETED, self.is_deleted), (EDITED, self.is_edited))
        return (*self.groups, *((name,) for name, is_asked in marks if is_asked))


class Filter(Record, frozen=True):
    """Which items are asked for. Without any condition: all."""

    source_id: int | None = None
    kind: str | None = None
    """Of the item, or of the source that showed it first."""
    platform: str | None = None
    author: str | None = None
    tag: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    is_deleted: bool | None = None
    changed_since: int | None = None
    is_edited: bool | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked but of which source."""
        return self == Filter(source_id=self.source_id)

    def wanted(self, tx: Transaction) -> Wanted:
        return Wanted(
            tuple(self._groups(tx)),
            self.source_id,
            to_micros(self.since),
            to_micros(self.until),
            self.is_deleted,
            self.changed_since,
            self.is_edited,
        )

    def _groups(self, tx: Transaction) -> Iterator[tuple[str, ...]]:
        if self.kind is not None:
            yield (kind_facet(self.kind),)
        if self.platform is not None:
            yield (platform_facet(self.platform),)
        if self.author is not None:
            # A name means somebody on a platform: on each it may be somebody else, and all of them are meant.
            platforms = [self.platform] if self.platform is not None else _platforms(tx)
            yield tuple(author_facet(one, self.author) for one in platforms)
        if self.tag is not None:
            yield (tag_facet(self.tag),)


def _platforms(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.all("SELECT DISTINCT platform FROM sources")]


class Listed(Record, frozen=True):
    """A part of a list. It may be short, even empty, and go on all the same."""

    keys: list[Key]
    next: Key | None
    """Where to go on; None: this was the end."""


class Along(NamedTuple):
    """A list that lies in the database in its order."""

    table: str
    column: str | None = None
    value: int | str | None = None

    @property
    def time(self) -> str:
        """The column that it is ordered by."""
        return "last_reply_at" if self.table == "replied" else "ordered_at"


class Span(NamedTuple):
    since: int
    before: Key


def span_of(wanted: Wanted, before: Key | None) -> Span:
    return Span(
        wanted.since if wanted.since is not None else -LARGEST,
        min(before or TOP, TOP if wanted.until is None else (wanted.until, 0)),
    )


def newest_with(tx: Transaction, wanted: Wanted, limit: int, before: Key | None = None) -> Listed:
    """The newest items that the filter lets through."""
    span = span_of(wanted, before)
    if wanted.changed_since is not None:
        change = (wanted.changed_since, LARGEST)
        if can_be_scanned(tx, change):
            return part(waiting_ones(tx, wanted, span, change), limit)
    mark = usable_mark(tx).position
    # Where too much waits to be looked through, the index is of no use, and the list is walked without it.
    is_usable = can_be_scanned(tx, mark)
    lists = sparsest(tx, _ways(tx, wanted, is_usable), span)
    found, end = walk(tx, wanted, lists, span, limit)
    if all(one.table == "postings" for one in lists):
        # Asked for last: what is edited meanwhile leaves the former and enters the latter, never the other way round.
        waiting = waiting_ones(tx, wanted, span if end is None else Span(end[0], span.before), mark)
        found = found | {one for one in waiting if end is None or one >= end}
    return part(found, limit, end)


def can_be_scanned(tx: Transaction, after: Position) -> bool:
    """Whether so few items changed after that position that all of them can be looked at."""
    row = tx.one(
        f"""
        SELECT 1 FROM items WHERE (content_change_number, id) > (?, ?)
         ORDER BY content_change_number, id LIMIT 1 OFFSET {indexing.MOST_SCANNED}
        """,
        *after,
    )
    return row is None


def part(found: Iterable[Key], limit: int, end: Key | None = None) -> Listed:
    """The first of what was found. `end`: how far was looked, if not to the end of the list."""
    keys = sorted(found, reverse=True)
    return Listed(keys[:limit], keys[limit - 1]) if len(keys) > limit else Listed(keys, end)


# ── which way to go ───────────────────────────────────────────────────────────────────────────────────────────────


def _ways(tx: Transaction, wanted: Wanted, is_usable: bool) -> list[list[Along]]:
    """The lists that hold everything that is wanted: each way is one list, or several to be merged."""
    groups = wanted.all_groups if is_usable else ()
    known = facet_ids(tx, {name for group in groups for name in group})
    ways = [[Along("postings", "facet_id", known[name]) for name in group if name in known] for group in groups]
    if wanted.source_id is not None:
        ways.append([Along("sightings", "source_id", wanted.source_id)])
    return [*ways, [Along("items")]]


def sparsest(tx: Transaction, ways: Sequence[list[Along]], span: Span) -> list[Along]:
    """The way that gets furthest back with as many steps; of short ones the first."""
    return min(ways, key=lambda lists: _reach(tx, lists, span)) if len(ways) > 1 else ways[0]


def _reach(tx: Transaction, lists: Sequence[Along], span: Span) -> Key:
    probes = [keys_along(tx, one, span, 1, offset=_PROBE) for one in lists]
    return max((probe[0] for probe in probes if probe), default=(-LARGEST, 0))


# ── walking ───────────────────────────────────────────────────────────────────────────────────────────────────────


def walk(
    tx: Transaction, wanted: Wanted, lists: Sequence[Along], span: Span, limit: int
) -> tuple[set[Key], Key | None]:
    """What was found along the lists, at least one more than the limit if there is; and how far was looked, unless it
    was to the end."""
    found: set[Key] = set()
    # The first batch is as small as the page: most lists find all they want there.
    for size in (limit + 1, *[_BATCH] * _BATCHES):
        met = list(
            islice(dict.fromkeys(merge(*(keys_along(tx, one, span, size) for one in lists), reverse=True)), size)
        )
        found |= kept(tx, wanted, met)
        if len(met) < size:
            return found, None
        span = Span(span.since, met[-1])
        if len(found) > limit:
            break
    return found, span.before


def keys_along(tx: Transaction, along: Along, span: Span, limit: int, offset: int = 0) -> list[Key]:
    item = "id" if along.table == "items" else "item_id"
    of, values = (f"{along.column} = ? AND", [along.value]) if along.column else ("", [])
    rows: list[Key] = tx.all(
        f"""
        SELECT {along.time}, {item} FROM {along.table}
         WHERE {of} {along.time} >= ? AND ({along.time}, {item}) < (?, ?)
         ORDER BY {along.time} DESC, {item} DESC LIMIT ? OFFSET ?
        """,
        *values,
        span.since,
        *span.before,
        limit,
        offset,
    )
    return rows


# ── testing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def kept(tx: Transaction, wanted: Wanted, met: Sequence[Key]) -> set[Key]:
    """Of these items those that are wanted, by what they are now: the index may remember what they were."""
    keys = {item_id: (ordered_at, item_id) for ordered_at, item_id in met}
    rows = tx.among(
        f"""
        SELECT i.id, i.content_change_number, i.ordered_at, {ABOUT} FROM items i JOIN sources s ON s.id = i.source_id
         WHERE i.id IN {{few}}
        """,
        list(keys),
    )
    return _shown_by_source(tx, wanted, {keys[row[0]] for row in rows if is_wanted(wanted, row)})


def waiting_ones(tx: Transaction, wanted: Wanted, span: Span, after: Position) -> set[Key]:
    """What is wanted of the items that changed after that position."""
    found: dict[int, Key | None] = {}
    for row in scanned(tx, Scan(after, 0), ABOUT):
        key = (row[2], row[0])
        is_listed = span.since <= key[0] and key < span.before and is_wanted(wanted, row)
        # Met again, it has been edited meanwhile: its last word counts.
        found[row[0]] = key if is_listed else None
    return _shown_by_source(tx, wanted, {one for one in found.values() if one})


def is_wanted(wanted: Wanted, row: Row) -> bool:
    """Whether the filter lets an item through, time and source aside. `row`: id, change number, time, then `ABOUT`."""
    _, number, _, *about = row
    if wanted.changed_since is not None and number <= wanted.changed_since:
        return False
    *_, is_deleted, version = about
    if wanted.is_deleted is not None and bool(is_deleted) != wanted.is_deleted:
        return False
    if wanted.is_edited is not None and (version > 1) != wanted.is_edited:
        return False
    facets = set(facets_of(*about))
    return all(not facets.isdisjoint(group) for group in wanted.groups)


def _shown_by_source(tx: Transaction, wanted: Wanted, found: set[Key]) -> set[Key]:
    if wanted.source_id is None or not found:
        return found
    shown = shown_by(tx, wanted.source_id, [item_id for _, item_id in found])
    return {key for key in found if key[1] in shown}


def shown_by(tx: Transaction, source_id: int, item_ids: Sequence[int]) -> set[int]:
    """Which of these items that source showed."""
    rows = tx.among(
        "SELECT item_id FROM sightings WHERE source_id = ? AND item_id IN {few}", item_ids, before=[source_id]
    )
    return {row[0] for row in rows}
