"""Facets: what lists are filtered by. Each has a name (`tag:foo`), and the items that have it are listed by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catchment.store.database import Transaction
from catchment.store.rows import decode

DELETED = "is:deleted"
EDITED = "is:edited"
KIND = "kind:"
PLATFORM = "platform:"


def kind_facet(kind: str) -> str:
    """Of the item itself (entry, story), or of the source that showed it first (rss, reddit)."""
    return f"{KIND}{kind}"


def platform_facet(platform: str) -> str:
    return f"{PLATFORM}{platform}"


def author_facet(platform: str, author: str) -> str:
    return f"author:{platform}:{author}"


def tag_facet(tag: str) -> str:
    return f"tag:{tag}"


def facets_of(
    platform: str, kind: str, source_kind: str, author: str | None, tags: str, is_deleted: bool, version: int
) -> Iterator[str]:
    """The facets of an item, each once. `tags` as they are stored."""
    yield platform_facet(platform)
    yield from map(kind_facet, dict.fromkeys((kind, source_kind)))
    if author:
        yield author_facet(platform, author)
    if tags != "[]":
        yield from map(tag_facet, dict.fromkeys(decode(tags)))
    if is_deleted:
        yield DELETED
    if version > 1:
        yield EDITED


def facet_ids(tx: Transaction, names: Iterable[str], *, is_added: bool = False) -> dict[str, int]:
    """By name; a name that no item has is not among them, unless it is to be added."""
    wanted = sorted(set(names))
    known: dict[str, int] = dict(tx.among("SELECT name, id FROM facets WHERE name IN {few}", wanted))
    missing = [(name,) for name in wanted if name not in known]
    if missing and is_added:
        tx.insert("facets", ("name",), missing)
        known = dict(tx.among("SELECT name, id FROM facets WHERE name IN {few}", wanted))
    return known
