"""Running the watches: every item is looked at once by each, in bounded batches, whatever is killed when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import groupby
from threading import Event as Flag

from catchment.model import Watch
from catchment.store.watches import Hit, Watches
from catchment.tell.rules import Look, edited, fitting

# Texts may be long: so many are in memory at once.
BATCH = 200
MOST_BATCHES = 50
"""A tick's share, for new items and for edits. What is left waits for the next one: watches never take over."""


def run_watches(
    watches: Watches, now: Callable[[], datetime], stop: Flag, *, batch: int = BATCH, most: int = MOST_BATCHES
) -> None:
    """Look at what each watch has not seen yet. New items first: what is not seen as new cannot be seen as an edit."""
    for look in (_look_at_new, _look_at_edits):
        for _ in range(most):
            if stop.is_set() or not look(watches, now(), batch):
                break


def _look_at_new(watches: Watches, now: datetime, batch: int) -> bool:
    """One batch for those who are furthest behind; false: all have seen everything.

    Usually all of them are at the same place, and one look at the items serves them all.
    """
    waiting = watches.waiting_for_new()
    if not waiting:
        return False
    place, same = next(groupby(waiting, key=lambda one: one.last_item_id))
    items = watches.stored_after(place, batch)
    if items:
        looks = [Look(item) for item in items]
        watches.saw_new([(one, fitting(one.watch, looks)) for one in same], items[-1].id, now)
    return bool(items)


def _look_at_edits(watches: Watches, now: datetime, batch: int) -> bool:
    waiting = watches.waiting_for_edits()
    if not waiting:
        return False
    place, same = next(groupby(waiting, key=lambda one: one.last_edit))
    items, end = watches.changed_after(place, batch)
    looks = [Look(item) for item in items]
    looked = [(one, fitting(one.watch, edited(one, looks), are_edits=True)) for one in same]
    watches.saw_edits(looked, end, now)
    return True


def tried(watches: Watches, watch: Watch, among: int) -> tuple[list[Hit], int]:
    """What of the items that changed last the watch would have told of, the latest first, and how many were looked at.
    Nothing is written."""
    looks = [Look(item) for item in watches.newest(among)]
    return fitting(watch, looks), len(looks)
