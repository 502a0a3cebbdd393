"""The entries of each source's last answer, by the hashes of their bytes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import chain

from catchment.clock import micros
from catchment.model import NONE_REPEATED, UNDATED, ItemChange, Key, ShownEntries, Source, StoredEntries
from catchment.store.database import StorePart, Transaction


class ShownEntryRows(StorePart):
    def of_answer(self, source_id: int, body_hash: bytes) -> StoredEntries:
        """Returns the entries of a source's last answer; none if that was not this answer."""
        row = self._one("SELECT body_hash, entries FROM shown_entries WHERE source_id = ?", source_id)
        if row is None or bytes(row[0]) != body_hash:
            return NONE_REPEATED
        numbers = array("q", bytes(row[1]))
        return StoredEntries(numbers[::3], numbers[1::3], numbers[2::3])


def keep_shown(
    tx: Transaction, source: Source, shown: ShownEntries, changes: Sequence[ItemChange], ids: Mapping[Key, int]
) -> None:
    """Keep the entries of an answer, replacing those of the last one."""
    repeated = shown.repeated
    numbers = [*chain.from_iterable(zip(repeated.marks, repeated.item_ids, repeated.stated_at, strict=True))]
    for change in changes if shown.new else ():
        item = change.item.item
        mark_of_new = shown.new.get(item.external_id)
        # An item that is stored under another id than it is shown with has to be found by the latter, each time.
        is_under_its_id = change.stored is None or change.stored.external_id == item.external_id
        if mark_of_new is not None and is_under_its_id and (item_id := ids.get(change.item.key)) is not None:
            numbers += (mark_of_new, item_id, UNDATED if item.created_at is None else micros(item.created_at))
    tx.run(
        """
        INSERT INTO shown_entries (source_id, body_hash, entries) VALUES (?, ?, ?)
        ON CONFLICT (source_id) DO UPDATE SET body_hash = excluded.body_hash, entries = excluded.entries
        """,
        source.id,
        shown.body_hash,
        array("q", numbers).tobytes(),
    )
