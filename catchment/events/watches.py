"""Matching items against watches. Words match as in a search: see `text.tokens`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import groupby
from threading import Event as Flag

from catchment.errors import InvalidInput
from catchment.model import Watch
from catchment.store.delivery.watches import Seen, StoredWatchHit, Watches
from catchment.text.tokens import Query, answers, spoken, understand

_MOST_WORDS = 100
_LONGEST_NAME = 100


def named(watch: Watch) -> Watch:
    """Returns the watch with a name: what it looks for, if the user gave none."""
    if watch.name.strip():
        return watch
    parts = watch.words or (*watch.authors, *watch.kinds, *(f"source {id_}" for id_ in watch.source_ids))
    return watch.replace(name=" ".join(parts)[:_LONGEST_NAME].strip())


def checked(watch: Watch) -> Watch:
    """Returns the watch if it can match anything and has a name; raises InvalidInput otherwise."""
    required, excluded = _split(watch.words)
    if not (required or watch.kinds or watch.source_ids or watch.authors):
        raise InvalidInput(
            "a watch needs at least one condition", "enter words, a source, an author or a kind", "words"
        )
    if not watch.name.strip() or len(watch.name) > _LONGEST_NAME or not watch.name.isprintable():
        raise InvalidInput("a watch needs a name of at most {longest} characters", field="name", longest=_LONGEST_NAME)
    if len(watch.words) > _MOST_WORDS:
        raise InvalidInput(
            "a watch has at most {most_words} words", "split it into several watches", "words", most_words=_MOST_WORDS
        )
    for word in (*required, *excluded):
        try:
            understand(word)
        except InvalidInput as error:
            raise InvalidInput("{word!r} has no letter or digit to search for", field="words", word=word) from error
    return watch


class WatchedItem:
    """An item to be matched: its text is tokenised only if a watch needs it, and once for all watches."""

    def __init__(self, item: Seen) -> None:
        self.item = item

    @cached_property
    def spoken_text(self) -> str:
        return spoken(self.item.title, self.item.text)

    def has(self, word: str) -> bool:
        return answers(self.spoken_text, _understood(word))


# The same few words are parsed for every new item.
_understood: Callable[[str], Query] = lru_cache(maxsize=10_000)(understand)


def fitting(watch: Watch, items: Sequence[WatchedItem], *, are_edits: bool = False) -> list[StoredWatchHit]:
    """Returns which of these items match the watch."""
    matches = ((watched.item, matched(watch, watched)) for watched in items)
    return [StoredWatchHit(item, words, are_edits) for item, words in matches if words is not None]


def matched(watch: Watch, watched: WatchedItem) -> tuple[str, ...] | None:
    """Returns the watch's words that were found in the item; None: it does not match. Cheap conditions come first."""
    item = watched.item
    if item.is_deleted:
        # A deletion is a change, too, but not new text.
        return None
    if watch.kinds and not set(watch.kinds) & set(item.kinds):
        return None
    if watch.source_ids and not set(watch.source_ids) & item.source_ids:
        return None
    if watch.authors and not {author.casefold() for author in watch.authors} & {
        author.casefold() for author in item.authors
    }:
        return None
    required, excluded = _split(watch.words)
    if not required and not excluded:
        return ()
    hits = tuple(word for word in required if watched.has(word))
    is_enough = not required or (bool(hits) if watch.is_any_enough else len(hits) == len(required))
    return hits if is_enough and not any(watched.has(word) for word in excluded) else None


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits into words that must occur and words that must not."""
    return [word for word in words if not word.startswith("-")], [word[1:] for word in words if word.startswith("-")]


# Texts may be long: this many are in memory at once.
BATCH = 200
MOST_BATCHES = 50
"""Limit per run, for new items and for edits each. The rest waits for the next run, so that watches do not block other
work."""


def run_watches(
    watches: Watches, now: Callable[[], datetime], stop: Flag, *, batch: int = BATCH, most: int = MOST_BATCHES
) -> None:
    """Match the items that each watch has not seen yet. New items first: an item not yet seen as new cannot be seen as
    an edit."""
    for match_batch in (_look_at_new, _look_at_edits):
        for _ in range(most):
            if stop.is_set() or not match_batch(watches, now(), batch):
                break


def _look_at_new(watches: Watches, now: datetime, batch: int) -> bool:
    """Match one batch for the watches that are furthest behind; False: all are up to date.

    Usually all of them are at the same position, and one read of the items serves them all.
    """
    waiting = watches.waiting_for_new()
    if not waiting:
        return False
    position, at_position = next(groupby(waiting, key=lambda pending: pending.last_item_id))
    items = watches.stored_after(position, batch)
    if items:
        watched = [WatchedItem(item) for item in items]
        watches.saw_new([(pending, fitting(pending.watch, watched)) for pending in at_position], items[-1].id, now)
    return bool(items)


def _look_at_edits(watches: Watches, now: datetime, batch: int) -> bool:
    waiting = watches.waiting_for_edits()
    if not waiting:
        return False
    position, at_position = next(groupby(waiting, key=lambda pending: pending.last_edit))
    items, end = watches.changed_after(position, batch)
    watched = [WatchedItem(item) for item in items if item.version > 1]
    hits = []
    for pending in at_position:
        # An item that the watch has not seen yet as new does not count as an edit for it.
        edits = [edit for edit in watched if edit.item.id <= pending.last_item_id]
        hits.append((pending, fitting(pending.watch, edits, are_edits=True)))
    watches.saw_edits(hits, end, now)
    return True


def tried(watches: Watches, watch: Watch, among: int) -> tuple[list[StoredWatchHit], int]:
    """Returns which of the latest changed items the watch would have matched, the latest first, and how many were
    checked. Nothing is written."""
    watched = [WatchedItem(item) for item in watches.newest(among)]
    return fitting(watch, watched), len(watched)
