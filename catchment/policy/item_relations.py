"""How a changed item relates to others: tags, aliases, references, lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.model import Item, ItemChange, StoredItem

Tag = tuple[str, str]
"""Origin and name."""


def tags_of(names: Sequence[str], item: Item) -> list[Tag]:
    """Returns these tags with their origins. One that is both a topic tag and a title's prefix has two."""
    prefixes = [("title_prefix", name) for name in item.title_prefixes]
    return prefixes + [("topic_tag", name) for name in names if name in item.tags or name not in item.title_prefixes]


def aliases_of(change: ItemChange) -> list[tuple[str, str]]:
    """Returns the ids that become aliases of the item, with the reasons."""
    item = change.item.item
    aliases = [(item.external_id, "ids changed")] if change.is_alias else []
    if item.aliases:
        own = change.stored.external_id if change.stored else item.external_id
        others = (other for other in (item.external_id, *item.aliases) if other != own)
        aliases += [(other, "stated by the platform") for other in others]
    return aliases


def writes_references(change: ItemChange) -> bool:
    """Whether its references may have to be written. Those of a stored item can be matched by their ids only."""
    is_first = change.stored is None or change.is_completed
    return is_first or any(reference.external_id for reference in change.item.item.references)


def may_move_in_lists(change: ItemChange, *, is_seen: bool) -> bool:
    """Whether the item's position in the lists by last reply may have changed."""
    stored = change.stored
    # An item that another source showed already is now in this source's list, too.
    is_joining = isinstance(stored, StoredItem) and stored.last_reply_at is not None and not stored.is_shown_by_source
    return change.values.get("last_reply_at") is not None or (is_joining and is_seen)
