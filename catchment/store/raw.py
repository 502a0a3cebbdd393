"""Raw items: what each source brought, in the order of fetching, newest first.

`since` is about fetching, not about dates: who asks for what came since his last digest must not miss an old post that
was found late.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment.clock import micros
from catchment.model import Record
from catchment.store.database import Database, Transaction
from catchment.store.rows import iso, with_iso
from catchment.store.shown import by_ids

_BATCH = 500
# So many items at most are looked at for one answer: with every source paused there may be nothing to find.
_STEPS = 5_000
_METADATA = (
    "platform", "external_id", "kind", "target_url", "score", "reply_count", "view_count", "tags", "media", "language",
    "is_deleted", "version",
)  # fmt: skip
Place = tuple[int, int]
"""When an item was fetched, and its id."""
_TOP: Place = (2**63 - 1, 2**63 - 1)


class Brought(Record, frozen=True):
    """That a source brought an item, and when."""

    fetched_at: int
    item_id: int
    source_id: int


class RawPage(Record, frozen=True):
    """Some raw items. It may hold fewer than were asked for, even none, and go on all the same."""

    items: list[dict[str, Any]]
    next: Place | None
    """Where to go on; None: this was the end."""


class RawItems:
    def __init__(self, database: Database) -> None:
        self._db = database

    def page(
        self, limit: int, *, source_id: int | None = None, since: datetime | None = None, before: Place | None = None
    ) -> RawPage:
        """Of one source all that it showed; of all sources each item once, under the first that showed it."""

        def question(tx: Transaction) -> RawPage:
            walk = (before or _TOP, _from(since), limit + 1)
            found = _of_all(tx, *walk) if source_id is None else _of_source(tx, source_id, *walk)
            return _page(tx, found, limit)

        return self._db.read(question)

    def for_digest(self, limit: int, *, since: datetime | None = None, before: Place | None = None) -> RawPage:
        """Of the sources that are active: each item once, under the first of them that showed it."""
        return self._db.read(lambda tx: _for_digest(tx, limit, _from(since), before or _TOP))

    def stats(self, now: datetime, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """For each source that is followed how much it has brought, in all and lately. In order of id.

        The totals are kept, not counted; what is counted is the last day's, along an index.
        """
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT s.id AS source_id, s.name, s.kind AS type, coalesce(c.item_count, 0) AS total_items,
                       (SELECT max(g.first_seen_at) FROM sightings g WHERE g.source_id = s.id) AS last_item_at,
                       (SELECT count(*) FROM sightings g WHERE g.source_id = s.id AND g.first_seen_at >= ?)
                           AS items_24h
                  FROM sources s LEFT JOIN source_counts c ON c.source_id = s.id
                 WHERE s.id > ? AND s.state <> 'removed' ORDER BY s.id LIMIT ?
                """,
                micros(now - timedelta(days=1)),
                after,
                limit,
            )
        )
        return [with_iso(row, "last_item_at") for row in rows]


def _from(since: datetime | None) -> int:
    return -(2**63) if since is None else micros(since)


def _of_all(tx: Transaction, before: Place, since: int, limit: int) -> list[Brought]:
    rows = tx.all(
        """
        SELECT first_seen_at, id, source_id FROM items
         WHERE first_seen_at >= ? AND (first_seen_at, id) < (?, ?) ORDER BY first_seen_at DESC, id DESC LIMIT ?
        """,
        since,
        *before,
        limit,
    )
    return [Brought(*row) for row in rows]


def _of_source(tx: Transaction, source_id: int, before: Place, since: int, limit: int) -> list[Brought]:
    rows = tx.all(
        """
        SELECT first_seen_at, item_id, source_id FROM sightings
         WHERE source_id = ? AND first_seen_at >= ? AND (first_seen_at, item_id) < (?, ?)
         ORDER BY first_seen_at DESC, item_id DESC LIMIT ?
        """,
        source_id,
        since,
        *before,
        limit,
    )
    return [Brought(*row) for row in rows]


def _page(tx: Transaction, found: Sequence[Brought], limit: int) -> RawPage:
    """A page of what was asked for with one more than it holds."""
    shown = found[:limit]
    return RawPage(_told(tx, shown), _place(shown[-1]) if len(found) > limit else None)


def _for_digest(tx: Transaction, limit: int, since: int, before: Place) -> RawPage:
    found: list[Brought] = []
    for _ in range(_STEPS // _BATCH):
        walked = _of_all(tx, before, since, _BATCH)
        found += _by_active(tx, walked)
        if len(found) > limit or len(walked) < _BATCH:
            return _page(tx, found, limit)
        before = _place(walked[-1])
    return RawPage(_told(tx, found), before)


def _by_active(tx: Transaction, walked: Sequence[Brought]) -> list[Brought]:
    """Those that an active source has shown, each under the first of these."""
    rows = tx.among(
        """
        SELECT g.item_id, g.source_id FROM sightings g JOIN sources s ON s.id = g.source_id
         WHERE g.item_id IN {few} AND s.state = 'active' ORDER BY g.item_id, g.first_seen_at DESC, g.source_id DESC
        """,
        [one.item_id for one in walked],
    )
    first: dict[int, int] = dict(rows)
    return [one.plus(source_id=first[one.item_id]) for one in walked if one.item_id in first]


def _place(one: Brought) -> Place:
    return one.fetched_at, one.item_id


def _told(tx: Transaction, brought: Sequence[Brought]) -> list[dict[str, Any]]:
    items = {item["id"]: item for item in by_ids(tx, [one.item_id for one in brought])}
    sources = {
        source_id: (name, kind)
        for source_id, name, kind in tx.among(
            "SELECT id, name, kind FROM sources WHERE id IN {few}", sorted({one.source_id for one in brought})
        )
    }
    return [_one_told(one, items[one.item_id], *sources[one.source_id]) for one in brought if one.item_id in items]


def _one_told(one: Brought, item: dict[str, Any], source_name: str, source_type: str) -> dict[str, Any]:
    return {
        "id": item["id"],
        "source_id": one.source_id,
        "source_name": source_name,
        "source_type": source_type,
        "title": item["title"],
        "url": item["url"],
        "author": item["author"],
        "content": item["text"],
        "published_at": None if item["is_created_at_guessed"] else item["created_at"],
        "fetched_at": iso(one.fetched_at),
        "dedup_key": ":".join((item["platform"], item["scope"], item["external_id"])),
        "metadata": {name: item[name] for name in _METADATA},
    }
