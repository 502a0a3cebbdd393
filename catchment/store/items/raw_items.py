"""Raw items: items of each source in the order of fetching, newest first.

`since` is the time of fetching, not the item's date: a client that asks for everything since its last digest must not
miss an old post that was found late.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from catchment.clock import micros, moment
from catchment.model import Media, Record, View
from catchment.store.database import StorePart, Transaction, reads
from catchment.store.item_fields import ItemView
from catchment.store.items.views import by_ids

_BATCH = 500
# Most items scanned for one page: with every source paused there may be nothing to find.
_STEPS = 5_000
Place = tuple[int, int]
"""A cursor: when an item was fetched, and its id."""
_TOP: Place = (2**63 - 1, 2**63 - 1)


class FirstSighting(Record, frozen=True):
    """Which source showed an item, and when."""

    fetched_at: int
    item_id: int
    source_id: int


class RawMetadata(View, frozen=True):
    """Fields of the item, as they are now."""

    platform: str
    external_id: str
    kind: str
    target_url: str | None
    score: int | None
    reply_count: int | None
    view_count: int | None
    tags: tuple[str, ...]
    media: tuple[Media, ...]
    language: str | None
    is_deleted: bool
    version: int


class RawItemView(View, frozen=True):
    """An item as a source showed it."""

    id: int
    source_id: int
    source_name: str
    source_type: str
    title: str | None
    url: str | None
    author: str | None
    content: str | None
    published_at: datetime | None
    """None: it has no date of its own."""
    fetched_at: datetime
    dedup_key: str
    metadata: RawMetadata


class RawStatsView(View, frozen=True):
    """Number of items of a source."""

    source_id: int
    name: str
    type: str
    total_items: int
    last_item_at: datetime | None
    items_24h: int


class RawPage(Record, frozen=True):
    """A page of raw items. It may be short or even empty although the list continues."""

    items: list[RawItemView]
    next: Place | None
    """Cursor of the next page; None: this was the end."""


class RawItems(StorePart):
    @reads
    def page(
        self,
        tx: Transaction,
        limit: int,
        *,
        source_id: int | None = None,
        since: datetime | None = None,
        before: Place | None = None,
    ) -> RawPage:
        """Returns everything that one source showed; or, for all sources, each item once, with the first source that
        showed it."""
        return _page(tx, _brought(tx, before or _TOP, _from(since), limit + 1, source_id), limit)

    def for_digest(self, limit: int, *, since: datetime | None = None, before: Place | None = None) -> RawPage:
        """Returns items of active sources: each once, with the first of them that showed it."""
        return self._db.read(lambda tx: _for_digest(tx, limit, _from(since), before or _TOP))

    def stats(self, now: datetime, after: int = 0, limit: int = 1000) -> list[RawStatsView]:
        """Returns the number of items of each source, in total and in the last day, in order of id.

        The totals are stored, not counted; only the last day is counted, along an index.
        """
        sql = """
            SELECT s.id AS source_id, s.name, s.kind AS type, coalesce(c.item_count, 0) AS total_items,
                   (SELECT max(g.first_seen_at) FROM sightings g WHERE g.source_id = s.id) AS last_item_at,
                   (SELECT count(*) FROM sightings g WHERE g.source_id = s.id AND g.first_seen_at >= ?)
                       AS items_24h
              FROM sources s LEFT JOIN source_counts c ON c.source_id = s.id
             WHERE s.id > ? AND s.state <> 'removed' ORDER BY s.id LIMIT ?
        """
        return self._records(RawStatsView, sql, micros(now - timedelta(days=1)), after, limit)


def _from(since: datetime | None) -> int:
    return -(2**63) if since is None else micros(since)


def _brought(
    tx: Transaction, before: Place, since: int, limit: int, source_id: int | None = None
) -> list[FirstSighting]:
    """Returns what a source showed, or all items with their first sources; newest first."""
    table, item, where = ("items", "id", "") if source_id is None else ("sightings", "item_id", "source_id = ? AND")
    sql = f"""
        SELECT first_seen_at, {item}, source_id FROM {table}
         WHERE {where} first_seen_at >= ? AND (first_seen_at, {item}) < (?, ?)
         ORDER BY first_seen_at DESC, {item} DESC LIMIT ?
    """
    rows = tx.all(sql, *([] if source_id is None else [source_id]), since, *before, limit)
    return [FirstSighting(*row) for row in rows]


def _page(tx: Transaction, sightings: Sequence[FirstSighting], limit: int) -> RawPage:
    """Returns a page, given one item more than it holds."""
    shown = sightings[:limit]
    return RawPage(_raw_items(tx, shown), _place(shown[-1]) if len(sightings) > limit else None)


def _for_digest(tx: Transaction, limit: int, since: int, before: Place) -> RawPage:
    sightings: list[FirstSighting] = []
    for _ in range(_STEPS // _BATCH):
        walked = _brought(tx, before, since, _BATCH)
        sightings += _by_active(tx, walked)
        if len(sightings) > limit or len(walked) < _BATCH:
            return _page(tx, sightings, limit)
        before = _place(walked[-1])
    return RawPage(_raw_items(tx, sightings), before)


def _by_active(tx: Transaction, walked: Sequence[FirstSighting]) -> list[FirstSighting]:
    """Returns those that an active source has shown, each with the first of these."""
    sql = """
        SELECT g.item_id, g.source_id FROM sightings g JOIN sources s ON s.id = g.source_id
         WHERE g.item_id IN {values} AND s.state = 'active' ORDER BY g.item_id, g.first_seen_at DESC, g.source_id DESC
    """
    rows = tx.select_in(sql, [brought.item_id for brought in walked])
    first: dict[int, int] = dict(rows)
    return [brought.replace(source_id=first[brought.item_id]) for brought in walked if brought.item_id in first]


def _place(brought: FirstSighting) -> Place:
    return brought.fetched_at, brought.item_id


def _raw_items(tx: Transaction, brought: Sequence[FirstSighting]) -> list[RawItemView]:
    items = {item.id: item for item in by_ids(tx, [sighting.item_id for sighting in brought])}
    sql = "SELECT id, name, kind FROM sources WHERE id IN {values}"
    sources = {
        source_id: (name, kind)
        for source_id, name, kind in tx.select_in(sql, sorted({sighting.source_id for sighting in brought}))
    }
    return [
        _raw_item(sighting, items[sighting.item_id], *sources[sighting.source_id])
        for sighting in brought
        if sighting.item_id in items
    ]


def _raw_item(brought: FirstSighting, item: ItemView, source_name: str, source_type: str) -> RawItemView:
    return RawItemView(
        id=item.id,
        source_id=brought.source_id,
        source_name=source_name,
        source_type=source_type,
        title=item.title,
        url=item.url,
        author=item.author,
        content=item.text,
        published_at=None if item.is_created_at_guessed else item.created_at,
        fetched_at=moment(brought.fetched_at),
        dedup_key=f"{item.platform}:{item.scope}:{item.external_id}",
        metadata=RawMetadata(*(getattr(item, name) for name in RawMetadata.__struct_fields__)),
    )
