"""Decides which old items are removed. Pure. Times are microseconds, as stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

# A visit of many pages takes a while: what its first page showed is still shown.
_ONE_VISIT = timedelta(hours=1) // timedelta(microseconds=1)


class Sighting(NamedTuple):
    """A record that a source showed an item."""

    item_id: int
    source_id: int
    kind: str
    """Of the source."""
    ordered_at: int
    last_seen_at: int


def still_shown_since(last_seen_at: int) -> int:
    """Returns about when the last visit that showed anything began: what was seen since then is still shown."""
    return last_seen_at - _ONE_VISIT


def unwanted(
    item_ids: Sequence[int],
    sightings: Sequence[Sighting],
    keep_from: Mapping[str, int],
    shown_since: Mapping[int, int],
) -> list[int]:
    """Returns the items that no source keeps any more. A source keeps what is younger than the retention time of its
    kind (`keep_from`; a kind without one keeps everything), and what it still shows (`shown_since`, by source; one that
    is not collected shows nothing)."""
    kept = {
        sighting.item_id
        for sighting in sightings
        if sighting.kind not in keep_from
        or sighting.ordered_at >= keep_from[sighting.kind]
        or (sighting.source_id in shown_since and sighting.last_seen_at >= shown_since[sighting.source_id])
    }
    return [item_id for item_id in item_ids if item_id not in kept]
