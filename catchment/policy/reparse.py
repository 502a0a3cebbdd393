"""Decides what a stored answer corrects when it is parsed again. Pure; the store writes the result.

The answer describes its own time: it corrects the version that it produced, adds one that the old parser missed, or
adds items. It never makes a revision dated now.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from catchment.model import (
    LABELS,
    Correction,
    CorrectionKind,
    History,
    Item,
    ItemCorrection,
    ItemValues,
    RefinedItem,
    ReparseFacts,
    ReparseWrite,
    StoredItem,
    Version,
)
from catchment.policy.judge import COUNTERS, better_counters, content_of, is_withheld, judge, new_tags, why_changed
from catchment.policy.page import identified, on_free_floors, recognised
from catchment.policy.schedule import next_recheck

MENDED = "parser_mended"
_DETAILS = ("url", "author", "author_id", "author_display_name", "language", "thread_id", "floor_number", "is_head")
# Labels that say nothing about another time than that of the answer.
_OF_THE_MOMENT = ("is_pinned", "is_digest")


def decide_reparse(
    items: Sequence[RefinedItem],
    at: datetime,
    facts: ReparseFacts,
    *,
    is_read: bool,
    is_stale: bool,
    recheck_ages: Sequence[timedelta],
    now: datetime,
) -> ReparseWrite:
    """Decides what an answer of that time changes.

    `is_read`: an older parser has read it and found no more than is stored; what is found now it could not see.
    `is_stale`: the visit took it for an old copy; it can only add items that were never seen.
    """
    items = on_free_floors(identified(items, facts.page), facts.page)
    renamed = recognised(items, facts.page)
    new, corrections = [], []
    for item in items:
        stored = facts.page.stored.get(item.key) or renamed.get(item.item.external_id)
        if stored is not None:
            if item.item.is_partial and not stored.is_partial:
                # The complete form has been seen since.
                continue
            history = facts.histories[stored.id]
            may_add = not is_stale and not stored.volatile_count
            # A row without text says nothing about a content that was completed since, except for the title that it
            # changed itself.
            if item.item.lacks_text and not stored.is_partial:
                title = _title_of_row(history, item, facts.page.retitled.get(stored.id), at)
                corrected = Correction(CorrectionKind.MENDED, history.versions[-1]) if title else None
                whole = _item_correction(stored, item, history, corrected, at, is_stale=is_stale)
                corrections.append(whole.replace(content=title))
                continue
            corrected = correction(history.versions, item, at, may_add=may_add, is_read=is_read)
            corrections.append(_item_correction(stored, item, history, corrected, at, is_stale=is_stale))
        elif item.key not in facts.page.forgotten:
            # Rechecked at the first of its ages that is still to come: a visit would have handled the earlier ones.
            born = min(item.item.created_at or at, at)
            recheck_at = next_recheck(recheck_ages, born, now, is_floor=item.item.floor_number is not None)
            change = judge(None, item, at).replace(point=None, recheck_at=recheck_at)
            new.append(change)
    return ReparseWrite(tuple(new), tuple(corrections), is_seen=not is_stale)


def _title_of_row(history: History, item: RefinedItem, retitled: bytes | None, at: datetime) -> ItemValues:
    """Returns the title of a row and the fingerprint of the stored text under it, if this row made the current version,
    by another title; else nothing."""
    is_own = history.content_last_changed_at == at and len(history.versions) > 1
    return {"title": item.item.title, "fingerprint": retitled} if is_own and retitled is not None else {}


def correction(
    versions: Sequence[Version], item: RefinedItem, answered_at: datetime, *, may_add: bool, is_read: bool
) -> Correction | None:
    """Returns what the answer of that time corrects in an item with these versions, oldest first."""
    is_kept = is_withheld(item.item)
    begun = [version for version in versions if version.since <= answered_at]
    if not begun:
        return _before_all(versions[0], item, is_kept)
    version = begun[-1]
    reasons = why_changed(version, item, is_kept)
    # A partial item corrects the version it created itself, and no other.
    if not reasons or (item.item.is_short and version.since != answered_at):
        return None
    if version.since == answered_at:
        return Correction(CorrectionKind.MENDED, version, is_content_kept=is_kept)
    # A flicker that was left out on purpose, or an old copy, must not get in this way.
    all_reasons = (*reasons, MENDED) if is_read else reasons
    return Correction(CorrectionKind.ADDED, version, all_reasons, is_content_kept=is_kept) if may_add else None


def _before_all(first: Version, item: RefinedItem, is_withheld: bool) -> Correction | None:
    """Returns the version that was shown before any part of it could be parsed."""
    if is_withheld:
        return None
    reasons = () if item.item.is_short else why_changed(first, item, False)
    return Correction(CorrectionKind.ADDED, first, reasons) if reasons else Correction(CorrectionKind.EARLIER, first)


def _item_correction(
    stored: StoredItem,
    item: RefinedItem,
    history: History,
    corrected: Correction | None,
    at: datetime,
    *,
    is_stale: bool,
) -> ItemCorrection:
    shown = item.item
    content: ItemValues = {
        "is_deleted": shown.is_deleted,
        "is_folded": shown.is_folded,
        "deleted_by": shown.deleted_by,
    }
    if corrected is not None and not corrected.is_content_kept:
        content |= content_of(item)
    details = {} if is_stale else _details(stored, item, history, corrected, at)
    replaces_references = bool(shown.references) and at == history.content_last_changed_at
    return ItemCorrection(stored, item, corrected, content, details, replaces_references)


def _details(
    stored: StoredItem, item: RefinedItem, history: History, corrected: Correction | None, at: datetime
) -> ItemValues:
    """Returns other values that are better now. Values from later answers stay."""
    shown, is_newest = item.item, at >= stored.shown_at
    values: ItemValues = {
        name: count
        for name, count in better_counters(stored, shown).items()
        if is_newest or getattr(stored, name) is None
    }
    if values:
        rounded = set(stored.rounded) - values.keys() | (set(shown.rounded) & values.keys())
        values["rounded"] = tuple(name for name in COUNTERS if name in rounded)
    replied_at = shown.reply_time_as_of(at)
    if replied_at is not None and (is_newest or stored.last_reply_at is None):
        values["last_reply_at"] = replied_at
    if is_newest or at == history.content_last_changed_at:
        values |= _stated(shown, _DETAILS)
        values |= _stated(shown, [name for name in LABELS if name not in _OF_THE_MOMENT])
        if shown.is_deleted and stored.is_deleted and shown.deleted_by is not None:
            values["deleted_by"] = shown.deleted_by
        if shown.edited_at is not None:
            values["edited_at"] = shown.edited_at
        if corrected is None and item.fingerprint == stored.fingerprint:
            values |= {"html": shown.html, "media": shown.media}
        values |= new_tags(stored, shown)
    if is_newest:
        values |= _stated(shown, _OF_THE_MOMENT)
    created_at = shown.created_at
    if created_at is not None and (stored.is_created_at_guessed or at == history.first_seen_at):
        ordered_at = min(created_at, history.first_seen_at)
        values |= {"created_at": created_at, "is_created_at_guessed": False, "ordered_at": ordered_at}
    return values


def is_reindexed(corrected: Collection[str], counters: Collection[str]) -> bool:
    """Whether corrected columns have to be seen by the search index and by clients that read changes: all but counters
    and labels of the moment."""
    return not {*counters, *_OF_THE_MOMENT}.issuperset(corrected)


def _stated(item: Item, names: Sequence[str]) -> ItemValues:
    return {name: value for name in names if (value := getattr(item, name)) is not None}
