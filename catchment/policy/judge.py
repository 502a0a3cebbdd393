"""Decides what an observation of an item changes: new, edited, counters only, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from catchment.model import (
    CLOCKS_DIFFER,
    LABELS,
    Change,
    Item,
    ItemChange,
    ItemValues,
    PastContent,
    Point,
    RefinedItem,
    StoredItem,
)
from catchment.policy.page_facts import has_no_own_title
from catchment.policy.schedule import next_recheck
from catchment.text.clean import fingerprint

COUNTERS = ("reply_count", "score", "view_count")
# A point is added to a series on a change of this size, or on any change after this time.
_POINT_SHARE = 0.1
_POINT_LEAST = 2
_POINT_AFTER = timedelta(hours=6)
_FLIPS_A_DAY = 3
# Updated in place if the platform states them: a listing may show less than the item's own page did.
_DETAILS = ("url", "author", "author_display_name", "edited_at")
# What the complete form of an item adds to a short one, besides its content.
_COMPLETING = ("author_id", "thread_id", "floor_number", "is_head", "language")


class Said(Protocol):
    """The current or an earlier content of an item: enough to see what changed."""

    @property
    def fingerprint(self) -> bytes: ...
    @property
    def title(self) -> str | None: ...
    @property
    def is_deleted(self) -> bool: ...
    @property
    def is_folded(self) -> bool: ...


def judge(
    stored: StoredItem | None,
    item: RefinedItem,
    at: datetime,
    *,
    last_point: Point | None = None,
    recheck_ages: Sequence[timedelta] = (),
    retitled: bytes | None = None,
) -> ItemChange:
    """Returns what an item shown by an answer of that time changes. `last_point` is the newest of its history,
    `retitled` the fingerprint of the stored content under the title shown, if that differs and the text is not
    shown."""
    if stored is None:
        return _new(item, at, recheck_ages)
    # Applied later by more than clocks differ: that was a wrong clock, not a newer answer.
    if timedelta() < stored.shown_at - at <= CLOCKS_DIFFER:
        return _overtaken(stored, item)
    if item.item.is_partial or item.item.is_superseded:
        return ItemChange(item, stored, Change.SAME)
    if item.item.lacks_text:
        item = _with_stored_text(stored, item, retitled)
    is_kept = is_withheld(item.item)
    is_completed = stored.is_partial and not is_kept and not item.item.lacks_text
    # Content before counters: an edit usually changes the score as well, and must still write a revision. A short form
    # that says less than the complete item is not an edit; but a row of a list states the whole title.
    is_retitled = is_completed and item.item.is_head and item.item.title not in (None, stored.title)
    # A title of its own that takes the place of a mirror's is no edit, either.
    is_titled = has_no_own_title(stored) and not is_kept and item.fingerprint != stored.fingerprint
    # Whether an item is folded shows with its text: for one whose text was never shown, it is not a change.
    is_first_fold = stored.is_partial and item.item.is_folded and not stored.is_folded
    known = stored.replace(is_folded=True) if is_first_fold else stored
    is_same_content = is_kept or is_completed or is_titled
    reasons = why_changed(known, item, is_same_content, is_retitled=is_retitled and not is_titled)
    if reasons and stored.volatile_until is not None and at < stored.volatile_until:
        return _volatile(stored, item, at, _point(stored, item.item, last_point, at))
    values = _updates(stored, item.item, at) | ({"is_folded": True} if is_first_fold else {})
    is_rewritten = bool(reasons) or is_completed or is_titled
    if not (is_rewritten or values):
        return ItemChange(item, stored, Change.SAME)
    # Changes of the author or the tags write no revision, yet lists and searches show them.
    is_reindexed = is_rewritten or not values.keys().isdisjoint(("author", "tags", "is_folded"))
    if reasons:
        values |= _revised(stored, item.item, at)
    if item.item.lacks_text:
        values |= {"title": item.item.title, "fingerprint": item.fingerprint} if reasons or is_titled else {}
    elif is_completed or (reasons and not is_kept):
        values |= content_of(item)
    if is_completed:
        values |= _completing(item.item)
    return ItemChange(
        item,
        stored,
        Change.EDITED if reasons else Change.COUNTED,
        reasons,
        values | {"applied_at": at},
        is_reindexed=is_reindexed,
        is_completed=is_completed,
        point=_point(stored, item.item, last_point, at),
    )


def _with_stored_text(stored: StoredItem, item: RefinedItem, retitled: bytes | None) -> RefinedItem:
    """Returns what a row without text says about a stored item: its text, and whether it is folded, are as stored. Only
    its own page can say that a deleted item is back."""
    shown = item.item
    return item.replace(
        item=shown.replace(
            title=shown.title or stored.title,
            is_deleted=shown.is_deleted or stored.is_deleted,
            is_folded=shown.is_folded or stored.is_folded,
        ),
        fingerprint=retitled or stored.fingerprint,
    )


def _new(item: RefinedItem, at: datetime, recheck_ages: Sequence[timedelta]) -> ItemChange:
    created_at = item.item.created_at
    values: ItemValues = {
        "created_at": created_at or at,
        "is_created_at_guessed": created_at is None,
        # A future date must not stay at the top of the list.
        "ordered_at": min(created_at or at, at),
        "last_reply_at": item.item.reply_time_as_of(at),
    }
    shown = item.item
    point = Point(at, shown.score, shown.reply_count, shown.view_count) if shown.is_counted else None
    is_floor = shown.floor_number is not None
    recheck_at = next_recheck(recheck_ages, created_at, at, is_floor=is_floor) if recheck_ages else None
    is_text_elsewhere = shown.lacks_text and not shown.is_folded and not shown.is_head
    if recheck_ages and is_text_elsewhere and shown.parent_id is not None:
        recheck_at = at  # its text is with the post that it replies to
    return ItemChange(item, None, Change.NEW, values=values, point=point, recheck_at=recheck_at)


def _overtaken(stored: StoredItem, item: RefinedItem) -> ItemChange:
    """Returns the change of an answer older than the stored state: none, except for its text if that was never seen
    because the platform already withheld it."""
    if not stored.is_withheld or item.item.is_short or not (item.item.text or item.item.html):
        return ItemChange(item, stored, Change.SAME)
    return completion(ItemChange(item, stored, Change.SAME))


def completion(change: ItemChange, *, keeps_title: bool = False) -> ItemChange:
    """Reduces the change to the content that the item lacked. `keeps_title`: the stored title is newer."""
    values, shown, stored = content_of(change.item) | _completing(change.item.item), change.item.item, change.stored
    if shown.is_folded:
        values["is_folded"] = True
    # Of a text that was cut off, only the whole has a fingerprint.
    keeps_title = keeps_title and not change.item.is_text_cut
    if keeps_title and isinstance(stored, StoredItem) and stored.title is not None and not has_no_own_title(stored):
        mark = fingerprint(stored.title, shown.text, shown.target_url, shown.media)
        values |= {"title": stored.title, "fingerprint": mark}
    return ItemChange(change.item, change.stored, Change.COUNTED, values=values, is_reindexed=True, is_completed=True)


def gone(stored: StoredItem, item: RefinedItem, at: datetime) -> ItemChange:
    """Returns the change of an item that does not exist any more: it is marked as deleted, and keeps everything."""
    if stored.is_deleted:
        return ItemChange(item, stored, Change.SAME)
    values = _revision(stored, at) | {"is_deleted": True, "applied_at": at}
    return ItemChange(item, stored, Change.EDITED, ("marked_deleted_by_source",), values, is_reindexed=True)


def calmed(change: ItemChange, earlier: Sequence[PastContent], at: datetime) -> ItemChange:
    """Suppresses an edit that flips between known contents for the fourth time in a day."""
    stored, item = change.stored, change.item
    if change.change != Change.EDITED or not isinstance(stored, StoredItem):
        return change
    contents = [content.fingerprint for content in earlier]
    if item.fingerprint not in contents:
        return change
    contents += [stored.fingerprint, item.fingerprint]
    # Only contents that were left and came back count: trying three wordings and returning to the first is no
    # flip-flop.
    flips = sum(
        1
        for position, content in enumerate(earlier)
        if content.valid_to > at - timedelta(days=1) and content.fingerprint in contents[position + 1 :]
    )
    return _volatile(stored, item, at, change.point) if flips >= _FLIPS_A_DAY else change


def _volatile(stored: StoredItem, item: RefinedItem, at: datetime, point: Point | None) -> ItemChange:
    values = _updates(stored, item.item, at)
    is_reindexed = not values.keys().isdisjoint(("author", "tags"))
    until = stored.volatile_until if stored.volatile_until and stored.volatile_until > at else at + timedelta(days=1)
    values |= {"volatile_count": stored.volatile_count + 1, "volatile_until": until, "applied_at": at}
    return ItemChange(
        item, stored, Change.COUNTED, values=values, is_reindexed=is_reindexed, is_volatile=True, point=point
    )


def is_withheld(item: Item) -> bool:
    """Whether the platform shows the item as deleted without its text: the stored text must not be overwritten."""
    return item.is_deleted and not item.text and not item.html and not item.lacks_text


def is_worth_asking(change: ItemChange) -> bool:
    """Whether the item may have more replies than when they were last requested."""
    reply_count, stored = change.item.item.reply_count, change.stored
    if reply_count == 0:
        return False
    if stored is not None and not stored.is_shown_by_source:
        return True  # the source that stored it may not collect replies
    if change.change == Change.SAME:
        return False
    return (
        stored is None
        or change.change == Change.EDITED
        or (reply_count is not None and isinstance(stored, StoredItem) and reply_count != stored.reply_count)
    )


def why_changed(stored: Said, refined: RefinedItem, is_kept: bool, *, is_retitled: bool = False) -> tuple[str, ...]:
    """Returns the reasons for a revision, in an order that clients may rely on. `is_retitled`: the title differs,
    although the content is only completed."""
    item = refined.item
    is_changed = not is_kept and stored.fingerprint != refined.fingerprint
    checks = (
        # A row without text can only show that the title changed.
        (is_changed and not item.lacks_text, "content_fingerprint_changed"),
        (item.is_deleted and not stored.is_deleted, "marked_deleted_by_source"),
        (item.is_folded and not stored.is_folded, "marked_folded_by_source"),
        (stored.is_deleted and not item.is_deleted, "restored_by_source"),
        (stored.is_folded and not item.is_folded, "unfolded_by_source"),
        (is_retitled or (is_changed and stored.title != item.title), "title_changed"),
    )
    return tuple(reason for applies, reason in checks if applies)


def content_of(refined: RefinedItem) -> ItemValues:
    """Returns the columns that make up an item's content."""
    item = refined.item
    return {
        "fingerprint": refined.fingerprint,
        "title": item.title,
        "text": item.text,
        "html": item.html,
        "target_url": item.target_url,
        "media": item.media,
        "is_text_cut": refined.is_text_cut,
        "is_partial": item.is_short,
    }


def _completing(item: Item) -> ItemValues:
    # What shows the text of a floor does not always show its number.
    is_placed = item.floor_number is not None
    return {name: getattr(item, name) for name in _COMPLETING if is_placed or name != "floor_number"}


def _revision(stored: StoredItem, at: datetime) -> ItemValues:
    return {"version": stored.version + 1, "content_last_changed_at": at}


def _revised(stored: StoredItem, item: Item, at: datetime) -> ItemValues:
    return _revision(stored, at) | {
        "is_deleted": item.is_deleted,
        "deleted_by": (item.deleted_by or stored.deleted_by) if item.is_deleted else None,
        "is_folded": item.is_folded,
    }


def _updates(stored: StoredItem, item: Item, at: datetime) -> ItemValues:
    """Returns the columns that are updated in place. What the platform did not state stays as it was."""
    values = new_counters(stored, item)
    # In either direction: an earlier time says that the last reply was deleted.
    if (replied_at := item.reply_time_as_of(at)) not in (None, stored.last_reply_at):
        values["last_reply_at"] = replied_at
    for name in LABELS:
        if (mark := getattr(item, name)) not in (None, getattr(stored, name)):
            values[name] = mark
    for name in _DETAILS:
        if (detail := getattr(item, name)) and detail != getattr(stored, name):
            values[name] = detail
    if stored.is_deleted and item.deleted_by not in (None, stored.deleted_by):
        values["deleted_by"] = item.deleted_by
    # A post that was moved follows its thread. A row of a list does not know its floor.
    if item.thread_id not in (None, stored.thread_id) and not item.is_short:
        values |= {"thread_id": item.thread_id, "floor_number": item.floor_number}
    elif item.floor_number not in (None, stored.floor_number):
        values["floor_number"] = item.floor_number
    return values | new_tags(stored, item)


def new_tags(stored: StoredItem, item: Item) -> ItemValues:
    """Returns the tags, and those of them that stand before the title, if they change."""
    if not item.tags and item.title is None:
        return {}
    prefixes = item.title_prefixes if item.title is not None else stored.title_prefixes
    topics = item.tags or tuple(tag for tag in stored.tags if tag not in stored.title_prefixes)
    tags = tuple(dict.fromkeys((*topics, *prefixes))) if prefixes else topics
    values: ItemValues = {"tags": tags} if set(tags) != set(stored.tags) else {}
    return values | ({"title_prefixes": prefixes} if set(prefixes) != set(stored.title_prefixes) else {})


# Counters


def new_counters(stored: StoredItem, item: Item) -> ItemValues:
    """Returns all counters, and which are rounded, if any of them changes; else nothing.

    An unknown counter changes nothing, and a rounded one never replaces an exact one. An exact one that replaces a
    rounded one is a change even if the number is equal.
    """
    if not item.is_counted:
        return {}
    better = better_counters(stored, item)
    is_same = all(getattr(stored, name) == count for name, count in better.items())
    if is_same and not (stored.rounded or item.rounded):
        return {}
    rounded = tuple(name for name in COUNTERS if name in (item if name in better else stored).rounded)
    if is_same and set(rounded) == set(stored.rounded):
        return {}
    return {**_merged(stored, better), "rounded": rounded}


def better_counters(stored: StoredItem, item: Item) -> dict[str, int]:
    """Returns the counters of the item that replace the stored ones."""
    return {
        name: count
        for name in COUNTERS
        if (count := getattr(item, name)) is not None
        and (name not in item.rounded or name in stored.rounded or getattr(stored, name) is None)
    }


def _merged(stored: StoredItem, better: Mapping[str, int]) -> dict[str, int | None]:
    return {name: better.get(name, getattr(stored, name)) for name in COUNTERS}


def _point(stored: StoredItem, item: Item, last: Point | None, at: datetime) -> Point | None:
    """Returns a point for the history, if the counters are worth one.

    The first ones are; then a change by a tenth, or any change after some hours. In between, only the item itself has
    them.
    """
    if not item.is_counted:
        return None
    better = better_counters(stored, item)
    if last is not None:
        moved = [(before, count) for name, count in better.items() if (before := getattr(last, name)) != count]
        if not moved or not (at - last.at >= _POINT_AFTER or any(_is_much(*change) for change in moved)):
            return None
    return Point(at, **_merged(stored, better))


def _is_much(before: int | None, now: int) -> bool:
    return before is None or abs(now - before) >= max(_POINT_LEAST, abs(before) * _POINT_SHARE)
