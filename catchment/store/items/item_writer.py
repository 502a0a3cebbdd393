"""Writes items, revisions, sightings and tags in bulk. Every function is a step of one page's transaction.

What to write is decided beforehand (`ItemChange`, `PageWrite`); here it only becomes rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from catchment.clock import micros, moment
from catchment.model import (
    Change,
    Counts,
    Item,
    ItemChange,
    ItemValues,
    Key,
    Page,
    PageWrite,
    RawAnswer,
    Reference,
    StoredItem,
    UnchangedEntries,
    floor_key,
)
from catchment.policy.item_relations import (
    Tag,
    aliases_of,
    may_move_in_lists,
    tags_of,
    writes_references,
)
from catchment.store.database import Transaction
from catchment.store.delivery import events
from catchment.store.item_fields import BARE_ROWS, WHOLE_ROWS, is_bare, to_json
from catchment.store.items.deletion import forgotten_names
from catchment.store.items.follow_ups import queue_follow_ups
from catchment.store.items.views import add_appearances, add_points
from catchment.store.row_mappers import encode
from catchment.store.search.lists import (
    held_replies,
    locked_heads,
    newest_replies,
    raise_heads,
    relist,
)


class Written(NamedTuple):
    number: int | None
    """The change number; None: nothing changed."""
    answered: tuple[int, ...] = ()
    """Items that got new replies; the page itself need not show them."""
    ids: Mapping[Key, int] = {}
    """The ids of the page's items."""


def lock_threads(tx: Transaction, page: Page, write: PageWrite) -> None:
    """Lock the threads that the page has replies to: before the ledger, because a transaction that holds one of these
    rows may be waiting for it."""
    new = [change for change in write.changes if change.change == Change.NEW]
    locked_heads(tx, page.source.platform, newest_replies(new))


def write_items(tx: Transaction, page: Page, write: PageWrite, now: int) -> Written:
    """Write all changes of a page."""
    new = [change for change in write.changes if change.change == Change.NEW]
    changed = [change for change in write.changes if change.change in (Change.EDITED, Change.COUNTED)]
    number, first_id = None, 0
    replies = newest_replies(new)
    heads = locked_heads(tx, page.source.platform, replies)
    answered: dict[int, int] = {item_id: replies[thread] for thread, item_id in heads.items()}
    if new or changed:
        row = tx.one(
            """
            UPDATE ledger SET change_number = change_number + 1, last_item_id = last_item_id + ? WHERE id = 1
            RETURNING change_number, last_item_id
            """,
            len(new),
        )
        assert row is not None
        number, first_id = int(row[0]), row[1] - len(new) + 1
        _insert_items(tx, page, list(enumerate(new, first_id)), number, now)
        _revise_items(tx, page, changed, now)
        _update_items(tx, page, changed, number, now)
        answered |= _answered_before(tx, page, first_id, new)
        raise_heads(tx, answered, number)
    rows = [*enumerate(new, first_id), *((change.stored.id, change) for change in write.changes if change.stored)]
    if write.is_seen:
        _see_again(
            tx,
            page,
            [change.stored for change in write.changes if change.stored and not change.item.is_gone],
            write.unchanged,
            now,
        )
        _note_appearances(tx, page, rows, now)
    points = ((item_id, change.point) for item_id, change in rows if change.point)
    add_points(tx, [(item_id, now, point.score, point.reply_count, point.view_count) for item_id, point in points])
    queue_follow_ups(
        tx, page.source, [(item_id, change.follow_ups) for item_id, change in rows if change.follow_ups], now
    )
    _note_aliases(tx, page, rows, now)
    write_references(
        tx,
        page.source.platform,
        [
            (item_id, change.item.item)
            for item_id, change in rows
            if change.item.item.references and writes_references(change)
        ],
    )
    relist(tx, {*answered, *(item_id for item_id, change in rows if may_move_in_lists(change, is_seen=write.is_seen))})
    ids = {change.item.key: item_id for item_id, change in rows} if write.threads or page.shown else {}
    return Written(number, tuple(answered), ids)


def _answered_before(tx: Transaction, page: Page, first_id: int, new: Sequence[ItemChange]) -> dict[int, int]:
    """Returns when the new thread roots were last replied to, by replies stored before them or with them."""
    heads = {item_id: change.item.item for item_id, change in enumerate(new, first_id) if change.item.item.is_head}
    reply_times = held_replies(tx, page.source.platform, list(heads.values()))
    threads = ((item_id, (item.scope, item.thread_id or "")) for item_id, item in heads.items())
    return {item_id: reply_times[thread] for item_id, thread in threads if thread in reply_times}


def _insert_items(tx: Transaction, page: Page, new: Sequence[tuple[int, ItemChange]], number: int, now: int) -> None:
    shape = BARE_ROWS if all(is_bare(change.item.item) for _, change in new) else WHOLE_ROWS
    shared = {
        "platform": page.source.platform,
        "source_id": page.source.id,
        "first_seen_at": now,
        "content_last_changed_at": now,
        "applied_at": now,
        "change_number": number,
        "content_change_number": number,
        "fingerprint_rule": page.fingerprint_rule,
    }
    rows, seen, rechecks = [], [], []
    tagged: list[tuple[Tag, int]] = []
    for item_id, change in new:
        refined, item = change.item, change.item.item
        decided = {name: encode(value) for name, value in change.values.items()}
        decided["id"] = item_id
        decided["is_text_cut"] = refined.is_text_cut
        decided["fingerprint"] = refined.fingerprint
        if shape is WHOLE_ROWS:
            decided["is_partial"] = item.is_short
            decided["parent_id"] = item.parent_id
        if item.title_prefixes:
            item = item.replace(tags=item.all_tags)
        rows.append(shape.row(item, decided, shared))
        seen.append((page.source.id, decided["ordered_at"], item_id, now, now))
        if item.tags:
            tagged += [(tag, item_id) for tag in tags_of(item.tags, refined.item)]
        if change.recheck_at is not None:
            rechecks.append((item_id, page.source.platform, page.source.id, micros(change.recheck_at), 0, 0))
    tx.insert("items", shape.columns, rows, literals=shape.literals)
    _link_floors(tx, page.source.platform, [(item_id, change.item.item) for item_id, change in new], number)
    add_sightings(tx, page, seen)
    _tag(tx, tagged, now)
    tx.insert(
        "rechecks", ("item_id", "platform", "source_id", "next_recheck_at", "recheck_count", "failure_count"), rechecks
    )


def _revise_items(tx: Transaction, page: Page, changed: Sequence[ItemChange], now: int) -> None:
    """Keep the previous content of edited items as a revision, valid until this answer."""
    tx.many(
        """
        INSERT INTO revisions (item_id, version, fingerprint, valid_from, valid_to, source_edited_at, reasons, run_id,
                               is_deleted, is_folded, title, target_url, media, text, html)
        SELECT id, version, fingerprint, content_last_changed_at, ?, edited_at, ?, ?, is_deleted, is_folded, title,
               target_url, media, text, html
          FROM items WHERE id = ?
        """,
        [
            (now, ";".join(change.reasons), page.run_id, change.stored.id)
            for change in changed
            if change.stored and change.reasons
        ],
    )


def _update_items(tx: Transaction, page: Page, changed: Sequence[ItemChange], number: int, now: int) -> None:
    """Write the changed columns; items with the same ones together."""
    by_columns: dict[tuple[str, ...], list[list[Any]]] = {}
    for change in changed:
        assert change.stored is not None
        values = {"id": change.stored.id} | stored_values(change.values, page.fingerprint_rule)
        values["change_number"] = number
        if change.is_reindexed:
            values["content_change_number"] = number
        by_columns.setdefault(tuple(values), []).append(list(values.values()))
    for columns, rows in by_columns.items():
        tx.update("items", columns, rows)
    tag_again(
        tx,
        [
            (change.stored.id, change.item.item, cast(tuple[str, ...] | None, change.values.get("tags")))
            for change in changed
            if change.stored and not change.values.keys().isdisjoint(("tags", "title_prefixes"))
        ],
        now,
    )
    completed = [change.stored.id for change in changed if change.stored and change.is_completed]
    tx.many("DELETE FROM item_references WHERE item_id = ?", [(item_id,) for item_id in completed])
    set_parents(
        tx,
        [
            (change.stored.id, change.item.item)
            for change in changed
            # In another thread, it replies to another post.
            if change.stored and (change.is_completed or "thread_id" in change.values)
        ],
    )


def stored_values(values: ItemValues, fingerprint_rule: int) -> dict[str, Any]:
    """Returns the columns of changed values, as they are stored."""
    columns = {name: encode(value) for name, value in values.items()}
    return columns | ({"fingerprint_rule": fingerprint_rule} if "fingerprint" in columns else {})


def _tag(tx: Transaction, tagged: Sequence[tuple[Tag, int]], now: int) -> None:
    """Attaches tags to items, by id."""
    names = sorted({name for (_, name), _ in tagged})
    if not names:
        return

    def ids_by_tag() -> dict[Tag, int]:
        rows = tx.select_in("SELECT origin, name, id FROM tags WHERE name IN {values}", names)
        return {(origin, name): tag_id for origin, name, tag_id in rows}

    ids = ids_by_tag()
    if missing := sorted({tag for tag, _ in tagged if tag not in ids}):
        rows = [(*tag, now) for tag in missing]
        tx.insert("tags", ("origin", "name", "first_seen_at"), rows, "ON CONFLICT (origin, name) DO NOTHING")
        ids = ids_by_tag()
    tx.insert(
        "item_tags",
        ("item_id", "tag_id", "first_seen_at"),
        [(item_id, ids[tag], now) for tag, item_id in tagged],
        "ON CONFLICT DO NOTHING",
    )


def tag_again(tx: Transaction, retagged: Sequence[tuple[int, Item, Sequence[str] | None]], now: int) -> None:
    """Replace the tags of these items, by id, by the names; None: only their origins change."""
    if not retagged:
        return
    stored_tags: dict[int, dict[Tag, int]] = {}
    for item_id, origin, name, tag_id in tx.select_in(
        """
        SELECT m.item_id, t.origin, t.name, m.tag_id FROM item_tags m JOIN tags t ON t.id = m.tag_id
         WHERE m.item_id IN {values}
        """,
        [item_id for item_id, _, _ in retagged],
    ):
        stored_tags.setdefault(item_id, {})[origin, name] = tag_id
    added, removed = [], []
    for item_id, item, names in retagged:
        before = stored_tags.get(item_id, {})
        after = set(tags_of(list(dict.fromkeys(name for _, name in before)) if names is None else names, item))
        added += [(tag, item_id) for tag in sorted(after - before.keys())]
        removed += [(item_id, tag_id) for tag, tag_id in before.items() if tag not in after]
    tx.many("DELETE FROM item_tags WHERE item_id = ? AND tag_id = ?", removed)
    _tag(tx, added, now)


def set_parents(tx: Transaction, referring: Sequence[tuple[int, Item]]) -> None:
    """Write which items stored items reply to, where that was not known before."""
    parents = ((item.parent_id, item_id) for item_id, item in referring)
    tx.many("UPDATE items SET parent_id = ? WHERE id = ?", [row for row in parents if row[0] is not None])
    _resolve_parents(tx, referring)


def _link_floors(tx: Transaction, platform: str, new: Sequence[tuple[int, Item]], number: int) -> None:
    """Replace parents that are known by number by their ids: of new replies whose parent is stored, and of stored
    replies whose parent is new. Replies are also shown before what they answer."""
    tx.many(
        "UPDATE items SET parent_id = ?, change_number = ? WHERE platform = ? AND scope = ? AND parent_id = ?",
        [
            (item.external_id, number, platform, item.scope, floor_key(item.thread_id, item.floor_number))
            for _, item in new
            if item.parent_floor is not None and item.thread_id is not None and item.floor_number is not None
        ],
    )
    _resolve_parents(tx, new)


def _resolve_parents(tx: Transaction, referring: Sequence[tuple[int, Item]]) -> None:
    """Replace the numbers of the parents of these items by their ids, if they are stored."""
    tx.many(
        """
        UPDATE items
           SET parent_id = COALESCE((SELECT min(p.external_id) FROM items p
                                      WHERE p.platform = items.platform AND p.scope = items.scope
                                        AND p.thread_id = items.thread_id AND p.floor_number = ?), parent_id)
         WHERE id = ? AND parent_id = ?
        """,
        [
            (item.parent_floor, item_id, item.parent_id)
            for item_id, item in referring
            if item.parent_floor is not None
            and item.thread_id is not None
            and item.parent_id == floor_key(item.thread_id, item.parent_floor)
        ],
    )


_REFERENCE = Reference.__struct_fields__
_STATED = ("url", "author", "text", "author_display_name", "created_at")
"""What a later answer may add to a reference; and its media."""


def write_references(tx: Transaction, platform: str, referring: Sequence[tuple[int, Item]]) -> None:
    """Write references, and add to stored ones what was not known of them before; what is known stays.

    In SQL: decided in Python, it would take one more statement a page, to read the stored ones.
    """
    missing = [f"(item_references.{name} IS NULL AND excluded.{name} IS NOT NULL)" for name in _STATED]
    missing.append("(item_references.media = '[]' AND excluded.media <> '[]')")
    updates = [f"{name} = COALESCE(item_references.{name}, excluded.{name})" for name in _STATED]
    updates.append("media = CASE item_references.media WHEN '[]' THEN excluded.media ELSE item_references.media END")
    tx.insert(
        "item_references",
        ("item_id", "position", *_REFERENCE),
        _reference_rows(tx, platform, referring),
        f"""
        ON CONFLICT (item_id, position) DO UPDATE SET {", ".join(updates)}
         WHERE item_references.relation = excluded.relation AND item_references.external_id = excluded.external_id
           AND ({" OR ".join(missing)})
        """,
    )


def _reference_rows(tx: Transaction, platform: str, referring: Sequence[tuple[int, Item]]) -> list[tuple[Any, ...]]:
    """Returns the rows of references. Of what was deleted permanently, only the id is kept."""
    rows = [(item_id, item.scope, pair) for item_id, item in referring for pair in enumerate(item.references)]
    named = [(scope, to.external_id, to.author, None) for _, scope, (_, to) in rows if to.external_id]
    forgotten = forgotten_names(tx, platform, named)
    return [
        (item_id, position, *(encode(getattr(to, name)) for name in _REFERENCE))
        for item_id, scope, (position, reference) in rows
        for to in (
            Reference(reference.relation, reference.external_id)
            if (scope, reference.external_id or "") in forgotten
            else reference,
        )
    ]


def _note_appearances(tx: Transaction, page: Page, rows: Sequence[tuple[int, ItemChange]], now: int) -> None:
    day = f"{moment(now):%Y-%m-%d}"
    shown = ((item_id, change.item.item) for item_id, change in rows)
    add_appearances(
        tx,
        [
            (item_id, day, page.source.id, now, item.rank, item.score, item.gained)
            for item_id, item in shown
            if item.rank is not None or item.gained is not None
        ],
    )


def _see_again(
    tx: Transaction, page: Page, stored: Sequence[StoredItem], unchanged: UnchangedEntries, now: int
) -> None:
    shown = [item.id for item in stored if item.is_shown_by_source]
    # The sign keeps SQLite from going through all that the source has ever shown, instead of the index on items.
    tx.run_in(
        "UPDATE sightings SET last_seen_at = ? WHERE item_id IN {values} AND +source_id = ? AND last_seen_at < ?",
        [*shown, *unchanged.item_ids],
        before=[now],
        after=[page.source.id, now],
    )
    first_shown = [item for item in stored if not item.is_shown_by_source]
    add_sightings(tx, page, [(page.source.id, item.ordered_at, item.id, now, now) for item in first_shown])


def add_sightings(tx: Transaction, page: Page, seen: Sequence[tuple[int, ...]]) -> None:
    """Add items that the source shows for the first time, and update its item count."""
    columns = ("source_id", "ordered_at", "item_id", "first_seen_at", "last_seen_at")
    if count := tx.insert("sightings", columns, seen, "ON CONFLICT DO NOTHING"):
        tx.run(
            """
            INSERT INTO source_counts (source_id, item_count) VALUES (?, ?)
            ON CONFLICT (source_id) DO UPDATE SET item_count = source_counts.item_count + excluded.item_count
            """,
            page.source.id,
            count,
        )


def _note_aliases(tx: Transaction, page: Page, rows: Sequence[tuple[int, ItemChange]], now: int) -> None:
    renamed = ((item_id, change) for item_id, change in rows if change.is_alias or change.item.item.aliases)
    tx.insert(
        "aliases",
        ("platform", "scope", "external_id", "item_id", "noticed_at", "reason"),
        [
            (page.source.platform, change.item.item.scope, alias, item_id, now, reason)
            for item_id, change in renamed
            for alias, reason in aliases_of(change)
        ],
        "ON CONFLICT DO NOTHING",
    )


def keep_raw(tx: Transaction, source_id: int, run_id: int, now: int, raw: RawAnswer) -> None:
    tx.run(
        """
        INSERT INTO raw_answers (source_id, run_id, answered_at, step, request, url, http_status, headers,
                                 parser_version, is_read, body_hash, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        source_id,
        run_id,
        now,
        raw.step,
        to_json(raw.request),
        raw.url,
        raw.http_status,
        to_json(raw.headers),
        raw.parser_version,
        raw.is_read,
        raw.body_hash,
        raw.body,
    )


def tell_collected(tx: Transaction, page: Page, counts: Counts, number: int, now: int) -> None:
    """Write the event to the outbox, so that a kill cannot lose it."""
    events.tell(
        tx,
        "items.collected",
        {
            "source_id": page.source.id,
            "run_id": page.run_id,
            "change_number": number,
            "new": counts.new,
            "updated": counts.updated,
        },
        now,
    )
