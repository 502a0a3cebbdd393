"""Writing items: what an answer changed, carried out in bulk. Every function is a step of one page's transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from catchment.clock import micros, moment
from catchment.model import Counts, Deed, Item, Judged, Known, RefinedItem
from catchment.store import outbox
from catchment.store.database import Transaction
from catchment.store.owing import owe
from catchment.store.replying import held_replies, locked_heads, newest_replies, raise_heads, relist
from catchment.store.rows import to_json, to_micros
from catchment.store.series import add_appearances, add_points
from catchment.store.visits import Conclusion, Key, Page, RawAnswer

_DAY = 24 * 60 * 60 * 1_000_000


def key_of(one: RefinedItem) -> Key:
    return one.item.scope, one.item.external_id


class Written(NamedTuple):
    number: int | None
    """The change number; None: nothing changed."""
    answered: tuple[int, ...] = ()
    """Items that were answered by what is new; the page itself need not show them."""


def write_items(tx: Transaction, page: Page, conclusion: Conclusion, now: int) -> Written:
    """Write what changed."""
    by_deed: dict[Deed, list[Judged]] = {deed: [] for deed in Deed}
    for one in conclusion.judged:
        by_deed[one.verdict.deed].append(one)
    new, edited, counted = by_deed[Deed.NEW], by_deed[Deed.EDITED], by_deed[Deed.COUNTED]
    number, first_id = None, 0
    replies = newest_replies(new, now)
    # Before the ledger, for which whoever holds one of them may wait.
    heads = locked_heads(tx, page.source.platform, replies)
    answered: dict[int, int] = {item_id: replies[thread] for thread, item_id in heads.items()}
    if new or edited or counted:
        row = tx.one(
            """
            UPDATE ledger SET change_number = change_number + 1, last_item_id = last_item_id + ? WHERE id = 1
            RETURNING change_number, last_item_id
            """,
            len(new),
        )
        assert row is not None
        number = int(row[0])
        first_id = row[1] - len(new) + 1
        _insert_items(tx, page, new, first_id, number, now)
        _plan_looks(tx, page, conclusion, first_id, new)
        _revise_items(tx, page, edited, number, now)
        _count_items(tx, [one for one in counted if not one.verdict.is_overtaken], number, now)
        _complete_items(tx, page, [one for one in (*edited, *counted) if one.verdict.is_completed], number)
        answered |= _answered_before(tx, page, first_id, new)
        raise_heads(tx, answered, number)
    if conclusion.is_seen:
        _see_again(tx, page, [one for one in conclusion.judged if one.known and not one.item.is_gone], now)
        _note_appearances(tx, page, conclusion, first_id, new, now)
    _note_points(tx, conclusion, first_id, new, now)
    _note_more(tx, page, conclusion, first_id, new, now)
    _note_aliases(tx, page, [one for one in conclusion.judged if one.is_alias], now)
    relist(tx, {*answered, *_moved(page, conclusion, first_id, new)})
    return Written(number, tuple(answered))


def _answered_before(tx: Transaction, page: Page, first_id: int, new: Sequence[Judged]) -> dict[int, int]:
    """When the new heads among these were last answered, by replies that came before them or with them."""
    heads = {item_id: one.item.item for item_id, one in enumerate(new, first_id) if one.item.item.is_head}
    held = held_replies(tx, page.source.platform, list(heads.values()))
    threads = ((item_id, (item.scope, item.thread_id or "")) for item_id, item in heads.items())
    return {item_id: held[thread] for item_id, thread in threads if thread in held}


def _moved(page: Page, conclusion: Conclusion, first_id: int, new: Sequence[Judged]) -> Iterator[int]:
    """Items whose place in the lists by last reply may be another one, by what the page tells of them."""
    for item_id, one in _numbered(conclusion.judged, first_id, new):
        known, told = one.known, one.item.item.told_reply(page.answered_at)
        if known is None:
            is_moved = told is not None
        elif one.verdict.deed == Deed.SAME:
            is_moved = False
        else:
            is_moved = told not in (None, known.last_reply_at)
        # What another source shows already, stands in the list of this one from now on.
        is_joining = known is not None and known.last_reply_at is not None and not known.is_shown_by_source
        if is_moved or (is_joining and conclusion.is_seen):
            yield item_id


_ITEM_COLUMNS = (
    "id", "platform", "scope", "external_id", "kind", "source_id", "created_at", "is_created_at_guessed",
    "is_zone_guessed", "edited_at", "ordered_at", "first_seen_at", "content_last_changed_at", "applied_at",
    "change_number", "content_change_number", "version", "fingerprint", "fingerprint_rule", "volatile_count", "score",
    "reply_count", "view_count", "rounded", "thread_id", "floor_number", "is_deleted", "deleted_by", "is_folded",
    "is_pinned", "is_digest", "is_adult", "is_text_cut", "is_brief", "language", "author", "author_id",
    "author_display_name", "title", "url", "target_url", "tags", "media", "text", "html",
    "last_reply_at", "is_head",
)  # fmt: skip


def _insert_items(tx: Transaction, page: Page, new: Sequence[Judged], first_id: int, number: int, now: int) -> None:
    rows, seen, tagged, referring = [], [], [], []
    for item_id, one in enumerate(new, first_id):
        item = one.item.item
        created = to_micros(item.created_at)
        # A date in the future must not head the list for ever.
        ordered = now if created is None else min(created, now)
        rows.append(_item_row(item_id, page, one.item, created, ordered, number, now))
        seen.append((page.source.id, ordered, item_id, now, now))
        tagged += [(tag, item_id) for tag in item.tags]
        if item.references:
            referring.append((item_id, item))
    tx.insert("items", _ITEM_COLUMNS, rows)
    see(tx, page, seen)
    _tag(tx, tagged, now)
    refer(tx, referring)


def _plan_looks(tx: Transaction, page: Page, conclusion: Conclusion, first_id: int, new: Sequence[Judged]) -> None:
    looks = ((item_id, conclusion.first_looks.get(key_of(one.item))) for item_id, one in enumerate(new, first_id))
    tx.insert(
        "looks",
        ("item_id", "platform", "source_id", "next_look_at", "look_count", "failure_count"),
        [(item_id, page.source.platform, page.source.id, micros(at), 0, 0) for item_id, at in looks if at is not None],
    )


def _numbered(judged: Sequence[Judged], first_id: int, new: Sequence[Judged]) -> Iterator[tuple[int, Judged]]:
    """Each with its item's id; new ones are numbered in their order."""
    yield from enumerate(new, first_id)
    yield from ((one.known.id, one) for one in judged if one.known)


def _note_points(tx: Transaction, conclusion: Conclusion, first_id: int, new: Sequence[Judged], now: int) -> None:
    if not conclusion.points:
        return
    told = [one for one in _numbered(conclusion.judged, first_id, new) if key_of(one[1].item) in conclusion.points]
    add_points(tx, [(item_id, now, *_best_counters(one).values()) for item_id, one in told])


def _note_more(
    tx: Transaction, page: Page, conclusion: Conclusion, first_id: int, new: Sequence[Judged], now: int
) -> None:
    if not conclusion.more:
        return
    shown = ((item_id, key_of(one.item)) for item_id, one in _numbered(conclusion.judged, first_id, new))
    owe(tx, page.source, [(item_id, conclusion.more[key]) for item_id, key in shown if key in conclusion.more], now)


def _note_appearances(
    tx: Transaction, page: Page, conclusion: Conclusion, first_id: int, new: Sequence[Judged], now: int
) -> None:
    day = f"{moment(now):%Y-%m-%d}"
    shown = ((item_id, one.item.item) for item_id, one in _numbered(conclusion.judged, first_id, new))
    add_appearances(
        tx,
        [
            (item_id, day, page.source.id, now, item.rank, item.score, item.gained)
            for item_id, item in shown
            if item.rank is not None or item.gained is not None
        ],
    )


def _best_counters(one: Judged) -> dict[str, int | None]:
    """Each counter as it is held after this answer."""
    item, known = one.item.item, one.known
    return {
        name: getattr(item if known is None or is_better(item, known, name) else known, name)
        for name in ("score", "reply_count", "view_count")
    }


def _item_row(
    item_id: int, page: Page, one: RefinedItem, created: int | None, ordered: int, number: int, now: int
) -> tuple[Any, ...]:
    item = one.item
    return (
        item_id, page.source.platform, item.scope, item.external_id, item.kind, page.source.id,
        now if created is None else created, created is None, item.is_zone_guessed, to_micros(item.edited_at), ordered,
        now, now, now, number, number, 1, one.fingerprint, page.fingerprint_rule, 0, item.score, item.reply_count,
        item.view_count, short_json(item.rounded), item.thread_id, item.floor_number, item.is_deleted, item.deleted_by,
        item.is_folded, item.is_pinned, item.is_digest, item.is_adult, one.is_text_cut, item.is_brief, item.language,
        item.author, item.author_id, item.author_display_name, item.title, item.url, item.target_url,
        short_json(item.tags), short_json(item.media), item.text, item.html,
        to_micros(item.told_reply(page.answered_at)), item.is_head,
    )  # fmt: skip


def short_json(values: Sequence[Any]) -> str:
    return to_json(values) if values else "[]"


def _tag(tx: Transaction, tagged: Sequence[tuple[str, int]], now: int) -> None:
    """`tagged`: (tag, item id)."""
    names = sorted({tag for tag, _ in tagged})
    if not names:
        return
    known: dict[str, int] = dict(tx.among("SELECT name, id FROM tags WHERE name IN {few}", names))
    if missing := [(name, now) for name in names if name not in known]:
        tx.insert("tags", ("name", "first_seen_at"), missing, "ON CONFLICT (name) DO NOTHING")
        known = dict(tx.among("SELECT name, id FROM tags WHERE name IN {few}", names))
    tx.insert(
        "item_tags",
        ("item_id", "tag_id", "first_seen_at"),
        [(item_id, known[tag], now) for tag, item_id in tagged],
        "ON CONFLICT DO NOTHING",
    )


def refer(tx: Transaction, referring: Sequence[tuple[int, Item]]) -> None:
    tx.insert(
        "item_references",
        ("item_id", "position", "relation", "external_id", "url", "author", "text"),
        [
            (item_id, position, to.relation, to.external_id, to.url, to.author, to.text)
            for item_id, item in referring
            for position, to in enumerate(item.references)
        ],
    )


def _revise_items(tx: Transaction, page: Page, edited: Sequence[Judged], number: int, now: int) -> None:
    """What an item said before becomes a revision, valid until this answer; then the item says the new."""
    tx.many(
        """
        INSERT INTO revisions (item_id, version, fingerprint, valid_from, valid_to, source_edited_at, reasons, run_id,
                               is_deleted, is_folded, title, target_url, media, text, html)
        SELECT id, version, fingerprint, content_last_changed_at, ?, edited_at, ?, ?, is_deleted, is_folded, title,
               target_url, media, text, html
          FROM items WHERE id = ?
        """,
        [(now, ";".join(one.verdict.reasons), page.run_id, one.known.id) for one in edited if one.known],
    )
    said = [one for one in edited if not one.verdict.is_content_kept]
    withheld = [one for one in edited if one.verdict.is_content_kept]
    _update(tx, [_revised_values(one, number, now) | content_values(one.item, page.fingerprint_rule) for one in said])
    _update(tx, [_revised_values(one, number, now) for one in withheld])
    tag_again(tx, edited, now)


def _revised_values(one: Judged, number: int, now: int) -> dict[str, Any]:
    assert one.known is not None
    return _counted_values(one, number, now) | {
        "version": one.known.version + 1,
        "content_change_number": number,
        "content_last_changed_at": now,
        "is_deleted": one.item.item.is_deleted,
        "deleted_by": (one.item.item.deleted_by or one.known.deleted_by) if one.item.item.is_deleted else None,
        "is_folded": one.item.item.is_folded,
    }


def content_values(one: RefinedItem, rule: int) -> dict[str, Any]:
    item = one.item
    return {
        "fingerprint": one.fingerprint,
        "fingerprint_rule": rule,
        "title": item.title,
        "text": item.text,
        "html": item.html,
        "target_url": item.target_url,
        "media": short_json(item.media),
        "is_text_cut": one.is_text_cut,
        "is_brief": item.is_brief,
    }


def _count_items(tx: Transaction, counted: Sequence[Judged], number: int, now: int) -> None:
    relabelled = [one for one in counted if _is_relabelled(one)]
    _update(tx, [_counted_values(one, number, now) for one in counted if not _is_relabelled(one)])
    # No revision, yet more than a counter: whoever reads by changes, as the index does, must learn of it.
    _update(tx, [_counted_values(one, number, now) | {"content_change_number": number} for one in relabelled])
    tx.many(
        """
        UPDATE items SET volatile_count = volatile_count + 1,
               volatile_until = CASE WHEN volatile_until > ? THEN volatile_until ELSE ? END
         WHERE id = ?
        """,
        [(now, now + _DAY, one.known.id) for one in counted if one.known and one.verdict.is_volatile],
    )
    tag_again(tx, counted, now)


def _complete_items(tx: Transaction, page: Page, completed: Sequence[Judged], number: int) -> None:
    """What was told in brief is now told whole: as if it had been so from the first."""
    whole = [(one.known.id, one.item) for one in completed if one.known]
    names = ("author_id", "thread_id", "floor_number", "is_head", "language")
    _update(
        tx,
        [
            {"id": item_id, "change_number": number, "content_change_number": number}
            | {name: getattr(one.item, name) for name in names}
            | content_values(one, page.fingerprint_rule)
            for item_id, one in whole
        ],
    )
    tx.many("DELETE FROM item_references WHERE item_id = ?", [(item_id,) for item_id, _ in whole])
    refer(tx, [(item_id, one.item) for item_id, one in whole])


def _is_relabelled(one: Judged) -> bool:
    """Whether its author or its tags are told in other words."""
    item, known = one.item.item, one.known
    assert known is not None
    return (item.author or known.author) != known.author or set(item.tags or known.tags) != set(known.tags)


def _update(tx: Transaction, values: Sequence[Mapping[str, Any]]) -> None:
    """Items that all get values for the same columns, `id` first."""
    if values:
        tx.update("items", list(values[0]), [list(one.values()) for one in values])


def _counted_values(one: Judged, number: int, now: int) -> dict[str, Any]:
    """What is updated in place. What the platform did not tell now stays as it was told before."""
    item, known = one.item.item, one.known
    assert known is not None
    # Whose word counts, for each counter.
    best = {name: item if is_better(item, known, name) else known for name in ("reply_count", "score", "view_count")}
    return {
        "id": known.id,
        **{name: getattr(by, name) for name, by in best.items()},
        "rounded": short_json([name for name, by in best.items() if name in by.rounded]),
        "is_pinned": item.is_pinned,
        "is_digest": item.is_digest,
        "is_adult": item.is_adult,
        "deleted_by": (item.deleted_by or known.deleted_by) if known.is_deleted else None,
        "url": item.url or known.url,
        "author": item.author or known.author,
        "author_display_name": item.author_display_name or known.author_display_name,
        "edited_at": to_micros(item.edited_at or known.edited_at),
        "last_reply_at": to_micros(item.told_reply(moment(now)) or known.last_reply_at),
        "tags": short_json(item.tags or known.tags),
        "applied_at": now,
        "change_number": number,
    }


def is_better(item: Item, known: Known, name: str) -> bool:
    """Whether a counter that was told now takes the place of the one we hold: not if it is unknown, or less exact."""
    if getattr(item, name) is None:
        return False
    return getattr(known, name) is None or name not in item.rounded or name in known.rounded


def tag_again(tx: Transaction, judged: Sequence[Judged], now: int) -> None:
    """What the platform told now, in the place of what it told before; where it told nothing, that stays."""
    retagged = [(one.known, set(one.item.item.tags)) for one in judged if one.known and one.item.item.tags]
    tx.many(
        "DELETE FROM item_tags WHERE item_id = ? AND tag_id = (SELECT id FROM tags WHERE name = ?)",
        [(known.id, tag) for known, told in retagged for tag in known.tags if tag not in told],
    )
    _tag(tx, [(tag, known.id) for known, told in retagged for tag in told - set(known.tags)], now)


def _see_again(tx: Transaction, page: Page, known: Sequence[Judged], now: int) -> None:
    tx.many(
        """
        UPDATE sightings SET last_seen_at = ?
         WHERE source_id = ? AND ordered_at = ? AND item_id = ? AND last_seen_at < ?
        """,
        [
            (now, page.source.id, one.known.ordered_at, one.known.id, now)
            for one in known
            if one.known and one.known.is_shown_by_source
        ],
    )
    first_shown = [one.known for one in known if one.known and not one.known.is_shown_by_source]
    see(tx, page, [(page.source.id, one.ordered_at, one.id, now, now) for one in first_shown])


def see(tx: Transaction, page: Page, seen: Sequence[tuple[int, ...]]) -> None:
    """What the page's source shows for the first time; and how many items it has shown by now."""
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


def _note_aliases(tx: Transaction, page: Page, renamed: Sequence[Judged], now: int) -> None:
    tx.insert(
        "aliases",
        ("platform", "scope", "external_id", "item_id", "noticed_at", "reason"),
        [
            (page.source.platform, one.item.item.scope, one.item.item.external_id, one.known.id, now, "ids changed")
            for one in renamed
            if one.known
        ],
        "ON CONFLICT DO NOTHING",
    )


def write_gaps(tx: Transaction, page: Page, conclusion: Conclusion, now: int) -> None:
    if conclusion.gap is not None:
        gap = conclusion.gap
        tx.run(
            """
            INSERT INTO gaps (source_id, is_certain, from_at, to_at, from_ids, cause, opened_at, opened_run_id)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            page.source.id,
            gap.is_certain,
            micros(gap.from_at),
            micros(gap.to_at),
            to_json(gap.from_ids),
            gap.cause,
            now,
            page.run_id,
        )
    for gap_id, because in conclusion.closed:
        tx.run(
            "UPDATE gaps SET closed_at = ?, closed_run_id = ?, closed_because = ? WHERE id = ?",
            now,
            page.run_id,
            because,
            gap_id,
        )


def keep_raw(tx: Transaction, source_id: int, run_id: int, now: int, raw: RawAnswer) -> None:
    tx.run(
        """
        INSERT INTO raw_answers (source_id, run_id, answered_at, step, request, url, http_status, headers,
                                 reader_version, is_read, body_hash, body)
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
        raw.reader_version,
        raw.is_read,
        raw.body_hash,
        raw.body,
    )


def tell_collected(tx: Transaction, page: Page, counts: Counts, number: int, now: int) -> None:
    """The event for what comes next leaves from the outbox, so that a kill cannot lose it."""
    outbox.tell(
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


def count_attempts(tx: Transaction, platform: str, outcomes: Mapping[tuple[str, datetime], int]) -> None:
    tx.insert(
        "attempts",
        ("minute", "platform", "outcome", "count"),
        [(micros(minute), platform, outcome, count) for (outcome, minute), count in sorted(outcomes.items())],
        "ON CONFLICT (minute, platform, outcome) DO UPDATE SET count = attempts.count + excluded.count",
    )
