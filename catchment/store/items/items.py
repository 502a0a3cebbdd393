"""Reads items: lists with cursors, single items, items as of a given time, revisions, counter history and exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from catchment.clock import micros, moment
from catchment.errors import InvalidInput, NotFound
from catchment.model import Ordering, Point, Record, View
from catchment.store.database import Row, StorePart, Transaction, reads
from catchment.store.item_fields import Group, ItemView, extended, names_of
from catchment.store.items import views
from catchment.store.items.views import COLUMNS, AppearanceView, RevisionView, by_ids, revisions, shown
from catchment.store.search.facets import facet_ids, kind_facet
from catchment.store.search.index import MOST_SCANNED, mark_of
from catchment.store.search.lists import Filter, newest_with, replied_with

_KEPT = ("version", *names_of(Group.CONTENT))
"""Fields that a revision keeps under the same name."""
_UNKNOWN = dict.fromkeys(names_of(Group.COUNTER)) | {"rounded": ()}


class PastItemView(ItemView, frozen=True):
    """An item as of a given time."""

    valid_to: datetime | None
    """Until when its content was current; None: it still is."""


def as_it_was(tx: Transaction, item_id: int, at: datetime) -> PastItemView | None:
    """Returns the item with the content and flags of that time; None if there is no such item.

    Counters are updated in place: those from a later answer were not known then, and are null. Raises NotFound if the
    item was not seen yet, or its content is not kept any more.
    """
    row = tx.one("SELECT applied_at FROM items WHERE id = ?", item_id)
    items = by_ids(tx, [item_id])
    if row is None or not items:
        return None
    (item,), (applied_at,) = items, row
    if at < item.first_seen_at:
        raise NotFound(
            "item {item_id} was first seen at {first_seen_at}: its earlier content is unknown",
            "choose that time or a later one",
            item_id=item_id,
            first_seen_at=item.first_seen_at.isoformat(),
        )
    # Read after the item: an edit in between is found here, as it was in the item.
    past = revisions(tx, "item_id = ? AND valid_from <= ? AND valid_to > ?", item_id, micros(at), micros(at))
    if not past and at < item.content_last_changed_at:
        raise NotFound("the version of item {item_id} of {at} is no longer stored", item_id=item_id, at=at.isoformat())
    valid_to = None
    if past:
        revision, valid_to = past[-1], past[-1].valid_to
        item = item.replace(
            **{name: getattr(revision, name) for name in _KEPT},
            edited_at=revision.source_edited_at,
            content_last_changed_at=revision.valid_from,
        )
    if not item.is_deleted:
        # It was deleted, but later.
        item = item.replace(deleted_by=None)
    if at < moment(applied_at):
        item = item.replace(**_UNKNOWN)
    if item.last_seen_at is not None and item.last_seen_at > at:
        item = item.replace(last_seen_at=None)
    return extended(PastItemView, item, valid_to)


class EditView(View, frozen=True):
    """An edit, with the title before it and the current title and text."""

    id: int
    item_id: int
    valid_to: datetime
    title_before: str | None
    title: str | None
    text: str | None
    source_id: int


class ItemPage(Record, frozen=True):
    """One page of a list. It may be short or even empty although the list continues: rare matches are searched in
    steps."""

    items: list[ItemView]
    next: tuple[int, int] | None
    """Cursor of the next page; None: this was the end."""


class Items(StorePart):
    def newest(
        self, limit: int = 30, *, source_id: int | None = None, before: tuple[int, int] | None = None
    ) -> list[ItemView]:
        """Returns the newest items of one source or of all. The next page is `before` the last item's `key_of`."""
        return self._db.read(lambda tx: shown(tx, _newest(tx, limit, source_id, before)))

    @reads
    def listed(
        self,
        tx: Transaction,
        filter: Filter,
        limit: int,
        before: tuple[int, int] | None = None,
        order: Ordering = Ordering.POSTED,
    ) -> ItemPage:
        """Returns the items that match the filter, newest first, by posting time or last reply."""
        if order == Ordering.REPLIED:
            page = replied_with(tx, filter.as_list_filter(tx), limit, before)
        elif filter.is_plain:
            return page_of(shown(tx, _newest(tx, limit + 1, filter.source_id, before)), limit)
        else:
            page = newest_with(tx, filter.as_list_filter(tx), limit, before)
        return ItemPage(by_ids(tx, [item_id for _, item_id in page.keys]), page.next)

    def get(self, item_id: int) -> ItemView:
        items = self._db.read(lambda tx: by_ids(tx, [item_id]))
        if not items:
            raise _missing(item_id)
        return items[0]

    def as_of(self, item_id: int, at: datetime) -> PastItemView:
        """Returns the item as of that time; `valid_to` says until when its content was current (None: still is). Raises
        NotFound."""
        item = self._db.read(lambda tx: as_it_was(tx, item_id, at))
        if item is None:
            raise _missing(item_id)
        return item

    def ids_of(self, platform: str, external_ids: Sequence[str]) -> dict[str, int]:
        """Returns the stored items among these ids, by external id; for platforms whose ids are globally unique."""
        sql = "SELECT external_id, id FROM items WHERE platform = ? AND scope = '' AND external_id IN {values}"
        return self._db.read(lambda tx: dict(tx.select_in(sql, sorted(set(external_ids)), before=[platform])))

    @reads
    def replies(self, tx: Transaction, item_id: int, limit: int, after: tuple[int, int] | None = None) -> ItemPage:
        """Returns the other items of its thread, oldest first; empty if it is not a thread root. Raises NotFound."""
        head = tx.one("SELECT is_head, platform, scope, thread_id FROM items WHERE id = ?", item_id)
        if head is None:
            raise _missing(item_id)
        is_head, *thread = head
        if not is_head:
            return ItemPage([], None)
        sql = f"""
            SELECT {COLUMNS} FROM items i
             WHERE i.platform = ? AND i.scope = ? AND i.thread_id = ? AND i.id <> ? AND (i.ordered_at, i.id) > (?, ?)
             ORDER BY i.ordered_at, i.id LIMIT ?
        """
        rows = tx.all(sql, *thread, item_id, *(after or (-(2**63), 0)), limit + 1)
        items = shown(tx, rows[:limit])
        return ItemPage(items, key_from(key_of(items[-1])) if len(rows) > limit else None)

    def revisions(self, item_id: int) -> list[RevisionView]:
        """Returns earlier versions of the item, oldest first. Raises NotFound."""
        self.get(item_id)
        return self._db.read(lambda tx: revisions(tx, "item_id = ?", item_id))

    def counters(self, item_id: int) -> list[Point]:
        """Returns its counter history, oldest first: a sparse series; the current values are in the item itself."""
        self.get(item_id)
        return self._db.read(lambda tx: views.counters(tx, item_id))

    def appearances(self, item_id: int) -> list[AppearanceView]:
        """Returns its positions in listings by day, oldest first."""
        self.get(item_id)
        return self._db.read(lambda tx: views.appearances(tx, item_id))

    @reads
    def stored_after(self, tx: Transaction, item_id: int, limit: int = 500) -> list[ItemView]:
        """Returns what was stored after this item, in the order of storing, whatever its date."""
        rows = tx.all(f"SELECT {COLUMNS} FROM items i WHERE i.id > ? ORDER BY i.id LIMIT ?", item_id, limit)
        return shown(tx, rows)

    def edits_after(self, revision_id: int, limit: int = 500) -> list[EditView]:
        """Returns the edits after this revision, in order."""
        sql = """
            SELECT r.id, r.item_id, r.valid_to, r.title AS title_before, i.title, i.text, i.source_id
              FROM revisions r JOIN items i ON i.id = r.item_id
             WHERE r.id > ? ORDER BY r.id LIMIT ?
        """
        return self._records(EditView, sql, revision_id, limit)

    @reads
    def has_kind(self, tx: Transaction, kind: str) -> bool:
        """Whether any item is of this kind or was shown by a source of this kind. (May include past items: the index
        remembers.)"""
        if facet_ids(tx, [kind_facet(kind)]):
            return True
        # The indexing backlog, as far as a list scans it.
        sql = f"""
            SELECT 1 FROM (SELECT kind FROM items WHERE (content_change_number, id) > (?, ?)
                            ORDER BY content_change_number, id LIMIT {MOST_SCANNED}) AS few
             WHERE kind = ? LIMIT 1
        """
        row = tx.one(sql, *mark_of(tx).position, kind)
        return row is not None

    def count(self) -> int:
        """Returns how many items were ever stored: from the ledger, without counting rows."""
        return self._number("SELECT last_item_id FROM ledger WHERE id = 1")


def key_of(item: ItemView, order: Ordering = Ordering.POSTED) -> str:
    """Returns the cursor of the page after this item, in a list of that order; opaque to clients."""
    at = item.ordered_at if order == Ordering.POSTED else item.last_reply_at
    assert at is not None, "a list by last reply has only items with one"
    return key_text((micros(at), item.id))


def key_text(key: tuple[int, int]) -> str:
    """Formats a cursor of time and id."""
    return f"{key[0]}-{key[1]}"


def key_from(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        ordered_at, item_id = text.split("-")
        key = int(ordered_at), int(item_id)
        if not all(0 <= part < 2**63 for part in key):
            raise ValueError
    except ValueError:
        raise InvalidInput("{text!r} is not a cursor", "use `next` of the previous page", "after", text=text) from None
    return key


def _missing(item_id: int) -> NotFound:
    return NotFound("there is no item {id}", "`catchment items` lists the stored items", id=item_id)


def _newest(tx: Transaction, limit: int, source_id: int | None, before: tuple[int, int] | None) -> list[Row]:
    # A row value comparison uses the index: page 1,000 costs as much as page 1.
    if source_id is None:
        where = "WHERE (i.ordered_at, i.id) < (?, ?)" if before else ""
        sql = f"SELECT {COLUMNS} FROM items i {where} ORDER BY i.ordered_at DESC, i.id DESC LIMIT ?"
        return tx.all(sql, *(before or ()), limit)
    where = "AND (s.ordered_at, s.item_id) < (?, ?)" if before else ""
    sql = f"""
        SELECT {COLUMNS} FROM sightings s JOIN items i ON i.id = s.item_id
         WHERE s.source_id = ? {where} ORDER BY s.ordered_at DESC, s.item_id DESC LIMIT ?
    """
    return tx.all(sql, source_id, *(before or ()), limit)


def page_of(items: list[ItemView], limit: int) -> ItemPage:
    """Returns a page of `limit` items, given one more than that if there is one."""
    return ItemPage(items[:limit], key_from(key_of(items[limit - 1])) if len(items) > limit else None)


_KEYS = 2000


class ExportFilter(Record, frozen=True):
    """Which items are exported: all, unless restricted."""

    source_id: int | None = None
    """Items that this source showed."""
    kind: str | None = None
    """Items first shown by a source of this kind."""
    since: datetime | None = None
    """Items from this time on, by their position in the lists."""

    @property
    def is_all(self) -> bool:
        return self == ExportFilter()


class Exports(StorePart):
    def of(self, chosen: ExportFilter, batch: int = 500) -> Iterator[ItemView]:
        """Yields the chosen items as views."""
        of_kind = self._of_kind(chosen.kind) if chosen.kind is not None else None
        for keys in self._keys(chosen):
            ids = [item_id for _, item_id, source_id in keys if of_kind is None or source_id in of_kind]
            for start in range(0, len(ids), batch):
                # An item that was removed since its key was read is left out.
                yield from self._db.read(lambda tx, part=ids[start : start + batch]: by_ids(tx, part))  # type: ignore[misc]

    def _keys(self, chosen: ExportFilter) -> Iterator[list[Row]]:
        """Yields (time, id, first source) of candidate items, a few thousand at a time."""
        cursor: tuple[int, int] = (0 if chosen.since is None else micros(chosen.since), 0)
        while rows := self._db.read(lambda tx, cursor=cursor: _keys(tx, chosen, cursor)):  # type: ignore[misc]
            yield rows
            cursor = rows[-1][0], rows[-1][1]

    def _of_kind(self, kind: str) -> set[int]:
        return set(self._column("SELECT id FROM sources WHERE kind = ?", kind))


def _keys(tx: Transaction, chosen: ExportFilter, cursor: tuple[int, int]) -> list[Row]:
    if chosen.source_id is not None:
        sql = f"""
            SELECT s.ordered_at, s.item_id, i.source_id FROM sightings s JOIN items i ON i.id = s.item_id
             WHERE s.source_id = ? AND (s.ordered_at, s.item_id) > (?, ?)
             ORDER BY s.ordered_at, s.item_id LIMIT {_KEYS}
        """
        return tx.all(sql, chosen.source_id, *cursor)
    if chosen.since is not None:
        sql = f"""
            SELECT ordered_at, id, source_id FROM items
             WHERE (ordered_at, id) > (?, ?) ORDER BY ordered_at, id LIMIT {_KEYS}
        """
        return tx.all(sql, *cursor)
    # By id, which never changes.
    return tx.all(f"SELECT 0, id, source_id FROM items WHERE id > ? ORDER BY id LIMIT {_KEYS}", cursor[1])
