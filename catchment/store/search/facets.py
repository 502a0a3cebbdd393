"""Facets: what lists can be filtered by. Each has a name (`tag:foo`) and a list of its items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from catchment.store.database import Transaction
from catchment.store.item_fields import decode
from catchment.text.tokens import folded

DELETED = "is:deleted"
EDITED = "is:edited"
THREAD = "is:thread"
"""Opens a thread whose posts have numbers."""
KIND = "kind:"
PLATFORM = "platform:"


def kind_facet(kind: str) -> str:
    """The kind of the item itself (entry, story), or of the source that showed it first (rss, reddit)."""
    return f"{KIND}{kind}"


def platform_facet(platform: str) -> str:
    return f"{PLATFORM}{platform}"


def author_facet(platform: str, author: str) -> str:
    return f"author:{platform}:{author}"


def tag_facet(tag: str) -> str:
    return f"tag:{tag}"


def facets_of(
    platform: str,
    kind: str,
    source_kind: str,
    author: str | None,
    tags: str,
    is_thread: bool,
    is_deleted: bool,
    version: int,
) -> Iterator[str]:
    """Yields the facets of an item, each once. `tags` as they are stored."""
    yield platform_facet(platform)
    yield from map(kind_facet, dict.fromkeys((kind, source_kind)))
    if author:
        yield author_facet(platform, author)
    if tags != "[]":
        yield from map(tag_facet, dict.fromkeys(decode(tags)))
    if is_thread:
        yield THREAD
    if is_deleted:
        yield DELETED
    if version > 1:
        yield EDITED


def facet_ids(tx: Transaction, names: Iterable[str], *, is_added: bool = False) -> dict[str, int]:
    """Returns facet ids by name; names without items are left out, unless they are to be added."""
    sorted_names = sorted(set(names))
    ids: dict[str, int] = dict(tx.select_in("SELECT name, id FROM facets WHERE name IN {values}", sorted_names))
    missing = [(name,) for name in sorted_names if name not in ids]
    if missing and is_added:
        tx.insert("facets", ("name",), missing)
        ids = dict(tx.select_in("SELECT name, id FROM facets WHERE name IN {values}", sorted_names))
    return ids


_SOURCES_AT_ONCE = 1000


def sources_in(tx: Transaction, category: str) -> frozenset[int]:
    """Returns the sources of a category, ignoring case; removed ones too: their items stay."""
    folded_category = folded(category)
    return frozenset(
        source_id
        for source_id, _, categories in _with_categories(tx)
        if any(folded(name) == folded_category for name in categories)
    )


def category_counts(tx: Transaction) -> dict[str, int]:
    """Returns how many sources, without removed ones, each category has; the largest first. Names that differ only in
    case are one category, spelled as the first source spells it."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for _, state, categories in _with_categories(tx):
        if state != "removed":
            counts.update({names.setdefault(folded(name), name) for name in categories})
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _with_categories(tx: Transaction) -> Iterator[tuple[int, str, list[str]]]:
    """Scans all sources in short steps: a list in a column has no index, and there are thousands at most."""
    after = 0
    while rows := tx.all(
        "SELECT id, state, categories FROM sources WHERE id > ? ORDER BY id LIMIT ?", after, _SOURCES_AT_ONCE
    ):
        for source_id, state, categories in rows:
            if categories != "[]":
                yield source_id, state, decode(categories)
        after = rows[-1][0]
