"""Lists by facets, newest first: what the index has, and what waits to be indexed, in one order."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from catchment.store.database import Transaction
from catchment.store.facets import facet_ids, facets_of
from catchment.store.indexing import ABOUT, Mark, Scan, scan_of, scanned, usable_mark

# Up to here it is counted which facet is the rarest.
_COUNTED = 5_000

Key = tuple[int, int]
"""Where an item stands in a list: when it is listed, and which one it is."""
Groups = Sequence[Sequence[str]]
"""Names of facets: an item must have one of each group."""


class Listed(NamedTuple):
    keys: list[Key]
    behind: int
    """How many items were not looked at, because the index is so far behind. 0: nothing is missing."""


def newest_with(
    tx: Transaction, groups: Groups, limit: int, *, before: Key | None = None, since: int | None = None
) -> Listed:
    """The newest items that have a facet of every group. `since`: not those listed earlier than then."""
    mark = usable_mark(tx)
    span = (since if since is not None else -(2**63), before or (2**63 - 1, 2**63 - 1))
    found = _indexed(tx, groups, limit, span, mark)
    # Asked for last: what is edited meanwhile leaves the former and enters the latter, never the other way round.
    scan = scan_of(tx, mark)
    waiting = _scanned(tx, groups, span, scan)
    keys = islice(
        merge(sorted(waiting, reverse=True), (one for one in found if one not in waiting), reverse=True), limit
    )
    return Listed(list(keys), scan.behind)


Span = tuple[int, Key]


def _indexed(tx: Transaction, groups: Groups, limit: int, span: Span, mark: Mark) -> list[Key]:
    known = facet_ids(tx, {name for group in groups for name in group})
    by_id = [[known[name] for name in group if name in known] for group in groups]
    if not all(by_id):
        return []
    # The fewest are walked along; for each of these the others are asked.
    rarest, *others = sorted(by_id, key=lambda group: _count(tx, group))
    walks = [_walk(tx, facet_id, others, limit, span, mark) for facet_id in rarest]
    return list(dict.fromkeys(islice(merge(*walks, reverse=True), limit * len(walks))))


def _count(tx: Transaction, group: Sequence[int]) -> int:
    counts = (
        tx.one(f"SELECT count(*) FROM (SELECT 1 FROM postings WHERE facet_id = ? LIMIT {_COUNTED}) AS few", one)
        for one in group
    )
    return sum(row[0] for row in counts if row)


def _walk(
    tx: Transaction, facet_id: int, others: Sequence[Sequence[int]], limit: int, span: Span, mark: Mark
) -> list[Key]:
    since, before = span
    also = "".join(
        f"""
           AND EXISTS (SELECT 1 FROM postings o WHERE o.facet_id IN ({", ".join("?" * len(group))})
                                                  AND o.ordered_at = p.ordered_at AND o.item_id = p.item_id)"""
        for group in others
    )
    rows: list[Any] = tx.all(
        f"""
        SELECT p.ordered_at, p.item_id FROM postings p JOIN items i ON i.id = p.item_id
         WHERE p.facet_id = ? AND p.ordered_at >= ? AND (p.ordered_at, p.item_id) < (?, ?)
           AND (i.content_change_number, i.id) <= (?, ?){also}
         ORDER BY p.ordered_at DESC, p.item_id DESC LIMIT ?
        """,
        facet_id,
        since,
        *before,
        *mark.position,
        *(one for group in others for one in group),
        limit,
    )
    return rows


def _scanned(tx: Transaction, groups: Groups, span: Span, scan: Scan) -> set[Key]:
    since, before = span
    wanted = [set(group) for group in groups]
    found: dict[int, Key | None] = {}
    for item_id, _, ordered_at, *about in scanned(tx, scan, ABOUT):
        has = since <= ordered_at and (ordered_at, item_id) < before and _has(set(facets_of(*about)), wanted)
        found[item_id] = (ordered_at, item_id) if has else None
    return {one for one in found.values() if one}


def _has(facets: set[str], wanted: Sequence[set[str]]) -> bool:
    return all(not group.isdisjoint(facets) for group in wanted)
