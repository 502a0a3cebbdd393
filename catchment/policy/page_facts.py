"""Which facts the decision about a page needs: under which ids an item may be stored, and what has to be read besides
its row. Pure; the store reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from catchment.model import Key, RefinedItem, StoredItem
from catchment.text.clean import NO_CONTENT


def possible_keys(item: RefinedItem) -> list[Key]:
    """Returns the ids that an item may have; one without id and link is known by its content, with or without date."""
    if not item.content_id:
        return [item.key]
    return list(dict.fromkeys((item.key, (item.item.scope, item.content_id), (item.item.scope, item.dated_id))))


def all_keys(item: RefinedItem) -> list[Key]:
    """Returns the ids that an item may have, and its other ones: two versions of a tweet name each other."""
    return [*possible_keys(item), *((item.item.scope, alias) for alias in item.item.aliases)]


def believed_aliases(shown: Collection[int], aliases: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Returns which stored items the answer shows under an alias; `shown` are those that it shows under their own ids.
    Two ids in one answer are two items, whatever an earlier alias said."""
    taken, believed = set(shown), {}
    for alias, item_id in aliases:
        if item_id not in taken:
            taken.add(item_id)
            believed[alias] = item_id
    return believed


def lookalikes(
    strangers: Sequence[RefinedItem],
    shown: Collection[int],
    newest: Iterable[tuple[int, bytes, int, str | None]],
    fingerprint_rule: int,
) -> set[int]:
    """Returns which of the source's newest items (id, fingerprint, the rule that made it, URL) the unknown items of an
    answer may be, under new ids. An item that the answer shows under a known id is a different one, however similar; a
    fingerprint by another rule says nothing yet."""
    fingerprints, urls = {item.fingerprint for item in strangers}, {item.item.url for item in strangers} - {None}
    return {
        item_id
        for item_id, fingerprint, rule, url in newest
        if (bytes(fingerprint) in fingerprints or url in urls or rule != fingerprint_rule) and item_id not in shown
    }


def needs_past_contents(item: RefinedItem, stored: StoredItem) -> bool:
    """Whether the item may write a revision: earlier contents show whether it flips between known ones."""
    shown = item.fingerprint, item.item.is_deleted, item.item.is_folded
    return shown != (stored.fingerprint, stored.is_deleted, stored.is_folded)


def has_no_own_title(stored: StoredItem) -> bool:
    """Whether only mirrors of the item have been seen: the stored title, if there is one, is theirs."""
    return stored.is_partial and stored.fingerprint == NO_CONTENT


def needs_title_fingerprint(item: RefinedItem, stored: StoredItem) -> bool:
    """Whether a row without text shows another title, or the first one that is not a mirror's: the stored text under
    it has another fingerprint."""
    return item.item.lacks_text and (item.item.title not in (None, stored.title) or has_no_own_title(stored))


def needs_last_point(item: RefinedItem, stored: StoredItem) -> bool:
    """Whether the item may add a point to the history of its counters."""
    shown = item.item
    return shown.is_counted and (
        (shown.score, shown.reply_count, shown.view_count) != (stored.score, stored.reply_count, stored.view_count)
        or needs_past_contents(item, stored)
    )
