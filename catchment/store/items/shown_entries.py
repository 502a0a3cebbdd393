"""The entries of each source's last answer, by the hashes of their bytes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from catchment.clock import micros, moment
from catchment.model import ItemChange, Key, ShownEntries, Source, StoredEntry
from catchment.store.database import StorePart, Transaction

_NO_DATE = -(2**63)


class ShownEntryRows(StorePart):
    def of_answer(self, source_id: int, body_hash: bytes) -> dict[int, StoredEntry]:
        """Returns the entries of a source's last answer, by their marks; none if that was not this answer."""
        row = self._one("SELECT body_hash, entries FROM shown_entries WHERE source_id = ?", source_id)
        if row is None or bytes(row[0]) != body_hash:
            return {}
        numbers = array("q", bytes(row[1]))
        return {
            mark: StoredEntry(item_id, None if at == _NO_DATE else moment(at))
            for mark, item_id, at in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
        }


def keep_shown(
    tx: Transaction, source: Source, shown: ShownEntries, changes: Sequence[ItemChange], ids: Mapping[Key, int]
) -> None:
    """Keep the entries of an answer, replacing those of the last one."""
    numbers: list[int] = []
    for mark, entry in shown.repeated.items():
        numbers += (mark, entry.item_id, _NO_DATE if entry.stated_at is None else micros(entry.stated_at))
    for change in changes if shown.new else ():
        item = change.item.item
        mark_of_new = shown.new.get(item.external_id)
        # An item that is stored under another id than it is shown with has to be found by the latter, each time.
        is_under_its_id = change.stored is None or change.stored.external_id == item.external_id
        if mark_of_new is not None and is_under_its_id and (item_id := ids.get(change.item.key)) is not None:
            numbers += (mark_of_new, item_id, _NO_DATE if item.created_at is None else micros(item.created_at))
    tx.run(
        """
        INSERT INTO shown_entries (source_id, body_hash, entries) VALUES (?, ?, ?)
        ON CONFLICT (source_id) DO UPDATE SET body_hash = excluded.body_hash, entries = excluded.entries
        """,
        source.id,
        shown.body_hash,
        array("q", numbers).tobytes(),
    )
