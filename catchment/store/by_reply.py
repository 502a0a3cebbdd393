"""Lists by last reply, by any filter: the same items, in another order.

What is answered moves, and so stands in lists of its own, once for each that may be long: of everything, of a platform,
of a kind, of a source. The sparsest of them is walked along. What is asked for otherwise (an author, a tag, what was
edited) has no such list: where it is rare, all of it is taken from the index and put in order; where it is frequent,
the walk meets it soon enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catchment.store.database import Transaction
from catchment.store.facets import KIND, PLATFORM, facet_ids
from catchment.store.filtering import (
    LARGEST,
    TOP,
    Along,
    Groups,
    Key,
    Listed,
    Span,
    Wanted,
    can_be_scanned,
    kept,
    keys_along,
    part,
    span_of,
    sparsest,
    waiting_ones,
    walk,
)
from catchment.store.indexing import usable_mark
from catchment.store.replying import ALL, source_list

# So many of what is rare are put in order at once: as many as a walk looks at.
MOST_TAKEN = 5_000
_EVERYTHING = Span(-LARGEST, TOP)


def replied_with(tx: Transaction, wanted: Wanted, limit: int, before: Key | None = None) -> Listed:
    """The items that were answered last, of those that the filter lets through."""
    span = span_of(wanted, before)
    rare = _changed(tx, wanted)
    if rare is None:
        rare = _rare(tx, wanted)
    if rare is not None:
        return part(kept(tx, wanted, _placed(tx, rare, span)), limit)
    lists = sparsest(tx, [[Along("replied", "list", name)] for name in _lists(wanted)], span)
    found, end = walk(tx, wanted, lists, span, limit)
    return part(found, limit, end)


def _lists(wanted: Wanted) -> list[str]:
    """The lists that hold everything that is wanted."""
    named = [name for group in wanted.groups for name in group if _has_list(group)]
    if wanted.source_id is not None:
        named.append(source_list(wanted.source_id))
    return [*named, ALL]


def _has_list(group: Sequence[str]) -> bool:
    """Whether the items of a group of facets stand in a list by last reply."""
    return len(group) == 1 and group[0].startswith((PLATFORM, KIND))


def _placed(tx: Transaction, item_ids: Iterable[int], span: Span) -> list[Key]:
    """Those of these items that were answered, by when, in that span."""
    rows: list[Key] = tx.among(
        "SELECT last_reply_at, item_id FROM replied WHERE list = ? AND item_id IN {few}",
        sorted(item_ids),
        before=[ALL],
    )
    return [key for key in rows if span.since <= key[0] and key < span.before]


# ── what is rare ──────────────────────────────────────────────────────────────────────────────────────────────────


def _changed(tx: Transaction, wanted: Wanted) -> set[int] | None:
    """What has changed since then and is wanted; None: that is not asked, or too much."""
    if wanted.changed_since is None:
        return None
    after = (wanted.changed_since, LARGEST)
    return _met(waiting_ones(tx, wanted, _EVERYTHING, after)) if can_be_scanned(tx, after) else None


def _rare(tx: Transaction, wanted: Wanted) -> set[int] | None:
    """All that has the rarest of the facets that are asked for and have no list; None: there is none, or none is
    rare."""
    mark = usable_mark(tx).position
    groups = tuple(group for group in wanted.all_groups if not _has_list(group))
    if not groups or not can_be_scanned(tx, mark):
        return None
    taken = [found for found in _taken(tx, groups) if len(found) <= MOST_TAKEN]
    if not taken:
        return None
    # Asked for last: what is edited meanwhile leaves the index and waits, never the other way round.
    return min(taken, key=len) | _met(waiting_ones(tx, wanted, _EVERYTHING, mark))


def _taken(tx: Transaction, groups: Groups) -> list[set[int]]:
    """Which items have one of the facets of each group; one more than is wanted, where there are too many."""
    known = facet_ids(tx, {name for group in groups for name in group})
    return [
        {
            item_id
            for name in group
            if name in known
            for _, item_id in keys_along(tx, Along("postings", "facet_id", known[name]), _EVERYTHING, MOST_TAKEN + 1)
        }
        for group in groups
    ]


def _met(keys: Iterable[Key]) -> set[int]:
    return {item_id for _, item_id in keys}
