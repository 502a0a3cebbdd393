"""Telling new from edited from merely counted. Pure: looks at what is known and what came, at nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from catchment.model import CLOCKS_DIFFER, Deed, Item, Judged, Known, Point, RefinedItem, Verdict

_COUNTERS = ("score", "reply_count", "view_count")
# A point in a series: so much more or less than the one before, or anything else after so long.
_POINT_SHARE = 0.1
_POINT_LEAST = 2
_POINT_AFTER = timedelta(hours=6)
_DETAILS = ("url", "author", "author_display_name", "edited_at", "deleted_by")


class Said(Protocol):
    """What an item says, or said: enough to tell what changed."""

    @property
    def fingerprint(self) -> bytes: ...
    @property
    def title(self) -> str | None: ...
    @property
    def is_deleted(self) -> bool: ...
    @property
    def is_folded(self) -> bool: ...


def judge(known: Known | None, one: RefinedItem, answered_at: datetime) -> Verdict:
    """What is to be done about one item that an answer of that time showed."""
    if known is None:
        return Verdict(Deed.NEW)
    # Applied later by more than clocks differ: a wrong clock said so, not a newer answer.
    if timedelta() < known.applied_at - answered_at <= CLOCKS_DIFFER:
        return _overtaken(known, one.item)
    if one.item.is_brief:
        return Verdict(Deed.SAME)
    is_kept = is_withheld(one.item)
    is_completed = known.is_brief and not is_kept
    # Content before counters: an edit usually moves the score as well, and must still leave a revision. That a short
    # form says less than the whole one is no edit.
    reasons = why_changed(known, one, is_kept or is_completed)
    if reasons and known.volatile_until is not None and answered_at < known.volatile_until:
        return Verdict(Deed.COUNTED, is_volatile=True)
    if reasons:
        return Verdict(Deed.EDITED, reasons, is_content_kept=is_kept, is_completed=is_completed)
    if is_completed:
        return Verdict(Deed.COUNTED, is_completed=True)
    return Verdict(Deed.COUNTED if _is_counted(known, one.item, answered_at) else Deed.SAME)


def _overtaken(known: Known, item: Item) -> Verdict:
    """An answer that was overtaken by a newer one has nothing to tell about an item we hold; but for its text, if by
    then the platform showed nothing of it any more."""
    if known.is_withheld and not item.is_brief and (item.text or item.html):
        return Verdict(Deed.COUNTED, is_completed=True, is_overtaken=True)
    return Verdict(Deed.SAME)


def is_withheld(item: Item) -> bool:
    """The platform shows that the item is gone and no longer its text: what we hold must not be overwritten."""
    return item.is_deleted and not item.text and not item.html


def is_worth_a_point(known: Known | None, item: Item, last: Point | None, now: datetime) -> bool:
    """Whether the counters that were told now are worth a point in the item's series; `last` is its newest one.

    The first ones are; then a change by a tenth, or any change after some hours. In between the item itself has them.
    """
    if not item.is_counted:
        return False
    if known is None or last is None:
        return True
    moved = [(getattr(last, name), getattr(item, name)) for name in _COUNTERS if _is_taken(known, item, name)]
    changes = [(before, told) for before, told in moved if before != told]
    return bool(changes) and (now - last.at >= _POINT_AFTER or any(_is_much(*change) for change in changes))


def is_worth_asking(one: Judged) -> bool:
    """Whether there may be more to be had about an item than it was when it was asked about last: replies."""
    told, known = one.item.item.reply_count, one.known
    if one.verdict.deed == Deed.SAME or told == 0:
        return False
    return known is None or one.verdict.deed == Deed.EDITED or (told is not None and told != known.reply_count)


def _is_taken(known: Known, item: Item, name: str) -> bool:
    """Whether what was told takes the place of what is held: a rounded counter not that of an exact one."""
    if getattr(item, name) is None:
        return False
    return name not in item.rounded or name in known.rounded or getattr(known, name) is None


def _is_much(before: int | None, told: int) -> bool:
    return before is None or abs(told - before) >= max(_POINT_LEAST, abs(before) * _POINT_SHARE)


def why_changed(known: Said, one: RefinedItem, is_kept: bool) -> tuple[str, ...]:
    """In the order that every reader of revisions may rely on."""
    item = one.item
    is_changed = not is_kept and known.fingerprint != one.fingerprint
    told = (
        (is_changed, "content_fingerprint_changed"),
        (item.is_deleted and not known.is_deleted, "marked_deleted_by_source"),
        (item.is_folded and not known.is_folded, "marked_folded_by_source"),
        (known.is_deleted and not item.is_deleted, "restored_by_source"),
        (known.is_folded and not item.is_folded, "unfolded_by_source"),
        (is_changed and known.title != item.title, "title_changed"),
    )
    return tuple(reason for is_so, reason in told if is_so)


def _is_counted(known: Known, item: Item, answered_at: datetime) -> bool:
    return (
        any(_counter_moved(known, item, name) for name in _COUNTERS)
        # In either direction: an earlier one says that the last reply was taken away.
        or item.told_reply(answered_at) not in (None, known.last_reply_at)
        or known.is_pinned != item.is_pinned
        or known.is_digest != item.is_digest
        or known.is_adult != item.is_adult
        # Untold is not changed: a listing may show less than the item's own page did.
        or any(getattr(item, name) not in (None, getattr(known, name)) for name in _DETAILS)
        or (bool(item.tags) and set(item.tags) != set(known.tags))
    )


def _counter_moved(known: Known, item: Item, name: str) -> bool:
    told, held = getattr(item, name), getattr(known, name)
    if told is None:
        return False
    # A rounded counter never overwrites an exact one; an exact one is news even where it looks the same.
    if name in item.rounded:
        return told != held and (held is None or name in known.rounded)
    return told != held or name in known.rounded
