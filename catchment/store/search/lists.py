"""Filtered lists of items, newest first: indexed items and the backlog in one order; also lists by last reply.

Of the lists that a filter names (a facet's, a source's, everything) the sparsest is walked, and its items are tested
against the filter. A list answers in bounded time for any filter: after a number of steps it returns what was found,
and the cursor to continue with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import NamedTuple, cast

from catchment.clock import micros
from catchment.model import Item, ItemChange, Record
from catchment.store.database import Row, Transaction
from catchment.store.item_fields import to_micros
from catchment.store.search import index
from catchment.store.search.facets import (
    DELETED,
    EDITED,
    KIND,
    PLATFORM,
    THREAD,
    author_facet,
    facet_ids,
    facets_of,
    kind_facet,
    platform_facet,
    sources_in,
    tag_facet,
)
from catchment.store.search.index import ABOUT, Position, Scan, scanned, usable_mark

_BATCH = 1_000
# Several batches: a request tests at most this many batches of items.
_BATCHES = 5
# Lists of up to this many sources are merged; for more, all items are walked, most of which match.
MOST_MERGED = 50
# The date of the item at this position in a list shows how sparse the list is around the cursor.
_PROBE = 1_000

Key = tuple[int, int]
"""An item's position in a list: list time and item id."""
Groups = tuple[tuple[str, ...], ...]
"""Names of facets: an item must have one of each group."""
LARGEST = 2**63 - 1
TOP: Key = (LARGEST, LARGEST)


class ListFilter(Record, frozen=True):
    """A filter resolved to facets and source ids."""

    groups: Groups = ()
    source_id: int | None = None
    since: int | None = None
    """List time from here on (inclusive), by the list's own order."""
    until: int | None = None
    """List time before this (exclusive)."""
    is_deleted: bool | None = None
    changed_since: int | None = None
    """Changed after this change number, in content or flags."""
    is_edited: bool | None = None
    """Has earlier versions."""
    source_ids: frozenset[int] | None = None
    """Shown by one of these sources."""

    @property
    def sources(self) -> frozenset[int] | None:
        """Sources, one of which must have shown an item; None: any."""
        if self.source_id is None:
            return self.source_ids
        own = frozenset((self.source_id,))
        return own if self.source_ids is None else own & self.source_ids

    @property
    def all_groups(self) -> Groups:
        marks = ((DELETED, self.is_deleted), (EDITED, self.is_edited))
        return (*self.groups, *((name,) for name, is_asked in marks if is_asked))


class Filter(Record, frozen=True):
    """Filter of a list of items. Without any condition: all."""

    source_id: int | None = None
    kind: str | None = None
    """Kind of the item, or of the source that showed it first."""
    platform: str | None = None
    author: str | None = None
    tag: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    is_deleted: bool | None = None
    changed_since: int | None = None
    is_edited: bool | None = None
    category: str | None = None
    """Category of a source that showed it."""
    is_thread: bool | None = None
    """Opens a thread of a forum; only True is a condition."""

    @property
    def is_plain(self) -> bool:
        """Whether the only condition is the source."""
        return self == Filter(source_id=self.source_id)

    def as_list_filter(self, tx: Transaction) -> ListFilter:
        return ListFilter(
            tuple(self._groups(tx)),
            self.source_id,
            to_micros(self.since),
            to_micros(self.until),
            self.is_deleted,
            self.changed_since,
            self.is_edited,
            None if self.category is None else sources_in(tx, self.category),
        )

    def _groups(self, tx: Transaction) -> Iterator[tuple[str, ...]]:
        if self.kind is not None:
            yield (kind_facet(self.kind),)
        if self.platform is not None:
            yield (platform_facet(self.platform),)
        if self.author is not None:
            # An author name belongs to a platform: the same name elsewhere may be another person, and all of them
            # match.
            rows = [(self.platform,)] if self.platform is not None else tx.all("SELECT DISTINCT platform FROM sources")
            yield tuple(author_facet(name, self.author) for (name,) in rows)
        if self.tag is not None:
            yield (tag_facet(self.tag),)
        if self.is_thread:
            yield (THREAD,)


class KeyPage(Record, frozen=True):
    """One page of a list. It may be short or even empty although the list continues."""

    keys: list[Key]
    next: Key | None
    """Cursor of the next page; None: this was the end."""


class SortedList(NamedTuple):
    """A list that the database stores in its order."""

    table: str
    column: str | None = None
    value: int | str | None = None

    @property
    def time(self) -> str:
        """The column that it is ordered by."""
        return "last_reply_at" if self.table == "replied" else "ordered_at"


class ListSpan(NamedTuple):
    since: int
    before: Key


def span_of(filter: ListFilter, before: Key | None) -> ListSpan:
    return ListSpan(
        filter.since if filter.since is not None else -LARGEST,
        min(before or TOP, TOP if filter.until is None else (filter.until, 0)),
    )


def newest_with(tx: Transaction, filter: ListFilter, limit: int, before: Key | None = None) -> KeyPage:
    """Returns the newest items that match the filter."""
    span = span_of(filter, before)
    if filter.changed_since is not None:
        change = (filter.changed_since, LARGEST)
        if can_be_scanned(tx, change):
            return part(backlog_matches(tx, filter, span, change), limit)
    mark = usable_mark(tx).position
    # If the backlog is too large to scan, the index is of no use, and the list is walked without it.
    is_usable = can_be_scanned(tx, mark)
    lists = sparsest(tx, _ways(tx, filter, is_usable), span)
    matches, end = walk(tx, filter, lists, span, limit)
    if all(along.table == "postings" for along in lists):
        # Read last: an item edited meanwhile moves from the index to the backlog, never the other way round.
        waiting = backlog_matches(tx, filter, span if end is None else ListSpan(end[0], span.before), mark)
        matches = matches | {row for row in waiting if end is None or row >= end}
    return part(matches, limit, end)


def can_be_scanned(tx: Transaction, after: Position) -> bool:
    """Whether few enough items changed after that position to scan all of them."""
    sql = f"""
        SELECT 1 FROM items WHERE (content_change_number, id) > (?, ?)
         ORDER BY content_change_number, id LIMIT 1 OFFSET {index.MOST_SCANNED}
    """
    row = tx.one(sql, *after)
    return row is None


def part(matches: Iterable[Key], limit: int, end: Key | None = None) -> KeyPage:
    """Returns the first page of what was found. `end`: how far the list was walked, if not to its end."""
    keys = sorted(matches, reverse=True)
    return KeyPage(keys[:limit], keys[limit - 1]) if len(keys) > limit else KeyPage(keys, end)


# Choice of the list to walk


def _ways(tx: Transaction, filter: ListFilter, is_usable: bool) -> list[list[SortedList]]:
    """Returns the lists that contain all matches: each option is one list, or several to be merged."""
    groups = filter.all_groups if is_usable else ()
    ids = facet_ids(tx, {name for group in groups for name in group})
    ways = [[SortedList("postings", "facet_id", ids[name]) for name in group if name in ids] for group in groups]
    sources = filter.sources
    if sources is not None and len(sources) <= MOST_MERGED:
        ways.append([SortedList("sightings", "source_id", source) for source in sorted(sources)])
    return [*ways, [SortedList("items")]]


def sparsest(tx: Transaction, ways: Sequence[list[SortedList]], span: ListSpan) -> list[SortedList]:
    """Returns the option that gets furthest back with the same number of steps; of short ones the first."""

    best, best_reach = ways[0], None
    for lists in ways if len(ways) > 1 else ():
        probes = [keys_along(tx, along, span, 1, offset=_PROBE) for along in lists]
        reach = max((probe[0] for probe in probes if probe), default=None)
        if reach is None:
            return lists  # a short one: no other can be better
        if best_reach is None or reach < best_reach:
            best, best_reach = lists, reach
    return best


# Walking


def walk(
    tx: Transaction, filter: ListFilter, lists: Sequence[SortedList], span: ListSpan, limit: int
) -> tuple[set[Key], Key | None]:
    """Returns what was found along the lists, at least one more than the limit if possible; and how far they were
    walked, unless to the end."""
    matches: set[Key] = set()
    # The first batch is as small as the page: most lists find everything there.
    for size in (limit + 1, *[_BATCH] * _BATCHES):
        met = list(
            islice(dict.fromkeys(merge(*(keys_along(tx, along, span, size) for along in lists), reverse=True)), size)
        )
        matches |= kept(tx, filter, met)
        if len(met) < size:
            return matches, None
        span = ListSpan(span.since, met[-1])
        if len(matches) > limit:
            break
    return matches, span.before


def keys_along(tx: Transaction, along: SortedList, span: ListSpan, limit: int, offset: int = 0) -> list[Key]:
    item = "id" if along.table == "items" else "item_id"
    of, values = (f"{along.column} = ? AND", [along.value]) if along.column else ("", [])
    sql = f"""
        SELECT {along.time}, {item} FROM {along.table}
         WHERE {of} {along.time} >= ? AND ({along.time}, {item}) < (?, ?)
         ORDER BY {along.time} DESC, {item} DESC LIMIT ? OFFSET ?
    """
    rows: list[Key] = tx.all(sql, *values, span.since, *span.before, limit, offset)
    return rows


# Testing


def kept(tx: Transaction, filter: ListFilter, met: Sequence[Key]) -> set[Key]:
    """Returns those of these items that match in their current state: the index may have an older one."""
    keys = {item_id: (ordered_at, item_id) for ordered_at, item_id in met}
    sql = f"""
        SELECT i.id, i.content_change_number, i.ordered_at, {ABOUT} FROM items i JOIN sources s ON s.id = i.source_id
         WHERE i.id IN {{values}}
    """
    rows = tx.select_in(sql, list(keys))
    return _shown_by_source(tx, filter, {keys[row[0]] for row in rows if is_match(filter, row)})


def backlog_matches(tx: Transaction, filter: ListFilter, span: ListSpan, after: Position) -> set[Key]:
    """Returns the matches among the items that changed after that position."""
    matches: dict[int, Key | None] = {}
    for row in scanned(tx, Scan(after, 0), ABOUT):
        key = (row[2], row[0])
        is_listed = span.since <= key[0] and key < span.before and is_match(filter, row)
        # Met again, it was edited meanwhile: its latest state counts.
        matches[row[0]] = key if is_listed else None
    return _shown_by_source(tx, filter, {key_ for key_ in matches.values() if key_})


def is_match(filter: ListFilter, row: Row) -> bool:
    """Whether an item matches the filter, apart from time and source. `row`: id, change number, time, then `ABOUT`."""
    _, change_number, _, *about = row
    if filter.changed_since is not None and change_number <= filter.changed_since:
        return False
    *_, is_deleted, version = about
    if filter.is_deleted is not None and bool(is_deleted) != filter.is_deleted:
        return False
    if filter.is_edited is not None and (version > 1) != filter.is_edited:
        return False
    facets = set(facets_of(*about))
    return all(not facets.isdisjoint(group) for group in filter.groups)


def _shown_by_source(tx: Transaction, filter: ListFilter, matches: set[Key]) -> set[Key]:
    sources = filter.sources
    if sources is None or not matches:
        return matches
    shown = shown_by(tx, sources, [item_id for _, item_id in matches])
    return {key for key in matches if key[1] in shown}


def shown_by(tx: Transaction, source_ids: Collection[int], item_ids: Sequence[int]) -> set[int]:
    """Returns which of these items one of those sources showed."""
    rows = tx.select_in("SELECT item_id, source_id FROM sightings WHERE item_id IN {values}", item_ids)
    return {item_id for item_id, source_id in rows if source_id in source_ids}


ALL = "all"
"""The list of all items with replies."""

Thread = tuple[str, str]
"""Identifies a thread within a platform: scope and thread id."""


def source_list(source_id: int) -> str:
    """Returns the name of a source's list by last reply; facets use their own names."""
    return f"source:{source_id}"


def newest_replies(new: Sequence[ItemChange]) -> dict[Thread, int]:
    """Returns when each thread was last replied to by one of these items; replies that were deleted before they were
    seen do not count."""
    times: dict[Thread, int] = {}
    for change in new:
        item = change.item.item
        if item.thread_id is not None and not item.is_head and not item.is_deleted:
            thread, ordered_at = (item.scope, item.thread_id), micros(cast(datetime, change.values["ordered_at"]))
            times[thread] = max(times.get(thread, ordered_at), ordered_at)
    return times


def locked_heads(tx: Transaction, platform: str, threads: Collection[Thread]) -> dict[Thread, int]:
    """Returns the stored thread roots of these threads, locked until the transaction ends."""
    heads: dict[Thread, int] = {}
    for scope in sorted({scope for scope, _ in threads}):
        sql = f"""
            SELECT id, thread_id FROM items
             WHERE is_head AND platform = ? AND scope = ? AND thread_id IN {{values}} ORDER BY id {tx.lock_rows()}
        """
        rows = tx.select_in(
            sql, sorted(thread_id for of, thread_id in threads if of == scope), before=[platform, scope]
        )
        heads |= {(scope, thread_id): item_id for item_id, thread_id in rows}
    return heads


def held_replies(tx: Transaction, platform: str, heads: Sequence[Item]) -> dict[Thread, int]:
    """Returns when each of these was last replied to, by the stored replies. For thread roots that come after their
    replies."""
    threads = [(item.scope, item.thread_id) for item in heads if item.thread_id is not None and item.reply_count != 0]
    times: dict[Thread, int] = {}
    for scope in sorted({scope for scope, _ in threads}):
        sql = """
            SELECT thread_id, max(ordered_at) FROM items
             WHERE platform = ? AND scope = ? AND thread_id IN {values} AND NOT is_head AND NOT is_deleted
             GROUP BY thread_id
        """
        rows = tx.select_in(sql, [thread_id for of, thread_id in threads if of == scope], before=[platform, scope])
        times |= {(scope, thread_id): at for thread_id, at in rows}
    return times


def raise_heads(tx: Transaction, answered: Mapping[int, int], number: int) -> None:
    """Set the last reply time of these items, unless a newer one is known."""
    sql = """
        UPDATE items SET last_reply_at = ?, change_number = ?
         WHERE id = ? AND (last_reply_at IS NULL OR last_reply_at < ?)
    """
    tx.many(sql, [(at, number, item_id, at) for item_id, at in sorted(answered.items())])


def relist(tx: Transaction, item_ids: Collection[int]) -> None:
    """Put each of these into its current position in the lists by last reply."""
    ids = sorted(item_ids)
    tx.many("DELETE FROM replied WHERE item_id = ?", [(item_id,) for item_id in ids])
    sql = """
        SELECT i.id, i.last_reply_at, i.platform, i.kind, s.kind FROM items i JOIN sources s ON s.id = i.source_id
         WHERE i.id IN {values} AND i.last_reply_at IS NOT NULL
    """
    rows = tx.select_in(sql, ids)
    showing: dict[int, list[int]] = {}
    for item_id, source_id in tx.select_in("SELECT item_id, source_id FROM sightings WHERE item_id IN {values}", ids):
        showing.setdefault(item_id, []).append(source_id)
    listed = sorted((name, row[1], row[0]) for row in rows for name in _lists(row, showing.get(row[0], ())))
    tx.insert("replied", ("list", "last_reply_at", "item_id"), listed)


def _lists(row: Row, source_ids: Sequence[int]) -> Iterator[str]:
    _, _, platform, kind, source_kind = row
    yield ALL
    yield platform_facet(platform)
    yield from map(kind_facet, dict.fromkeys((kind, source_kind)))
    yield from map(source_list, source_ids)


# Up to this many rare matches are sorted at once: as many as a walk tests.
MOST_TAKEN = 5_000
_EVERYTHING = ListSpan(-LARGEST, TOP)


def replied_with(tx: Transaction, filter: ListFilter, limit: int, before: Key | None = None) -> KeyPage:
    """Returns the items that match the filter, by last reply, newest first."""
    span = span_of(filter, before)
    rare = _changed(tx, filter)
    if rare is None:
        rare = _rare(tx, filter)
    if rare is not None:
        sql = "SELECT last_reply_at, item_id FROM replied WHERE list = ? AND item_id IN {values}"
        replies: list[Key] = tx.select_in(sql, sorted(rare), before=[ALL])
        met = [key for key in replies if span.since <= key[0] and key < span.before]
        return part(kept(tx, filter, met), limit)
    lists = sparsest(
        tx, [[SortedList("replied", "list", name) for name in names] for names in _lists_by_reply(filter)], span
    )
    matches, end = walk(tx, filter, lists, span, limit)
    return part(matches, limit, end)


def _lists_by_reply(filter: ListFilter) -> list[list[str]]:
    """Returns the lists that contain all matches: each option is one list, or several to be merged."""
    ways = [[name] for group in filter.groups for name in group if _has_list(group)]
    sources = filter.sources
    if sources is not None and len(sources) <= MOST_MERGED:
        ways.append([source_list(source) for source in sorted(sources)])
    return [*ways, [ALL]]


def _has_list(group: Sequence[str]) -> bool:
    """Whether a group of facets has a list by last reply."""
    return len(group) == 1 and group[0].startswith((PLATFORM, KIND))


# Rare matches


def _changed(tx: Transaction, filter: ListFilter) -> set[int] | None:
    """Returns matches that changed since then; None: not asked for, or too many."""
    if filter.changed_since is None:
        return None
    after = (filter.changed_since, LARGEST)
    return _met(backlog_matches(tx, filter, _EVERYTHING, after)) if can_be_scanned(tx, after) else None


def _rare(tx: Transaction, filter: ListFilter) -> set[int] | None:
    """Returns all items with the rarest requested facet that has no list; None: there is no such facet, or none is
    rare."""
    mark = usable_mark(tx).position
    groups = tuple(group for group in filter.all_groups if not _has_list(group))
    if not groups or not can_be_scanned(tx, mark):
        return None
    taken = [item_ids for item_ids in _taken(tx, groups) if len(item_ids) <= MOST_TAKEN]
    if not taken:
        return None
    # Read last: an item edited meanwhile moves from the index to the backlog, never the other way round.
    return min(taken, key=len) | _met(backlog_matches(tx, filter, _EVERYTHING, mark))


def _taken(tx: Transaction, groups: Groups) -> list[set[int]]:
    """Returns the items that have one of the facets of each group; one more than the limit, if there are too many."""
    ids = facet_ids(tx, {name for group in groups for name in group})
    return [
        {
            item_id
            for name in group
            if name in ids
            for _, item_id in keys_along(tx, SortedList("postings", "facet_id", ids[name]), _EVERYTHING, MOST_TAKEN + 1)
        }
        for group in groups
    ]


def _met(keys: Iterable[Key]) -> set[int]:
    return {item_id for _, item_id in keys}
