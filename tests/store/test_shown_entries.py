"""The entries of a source's last answer are kept with its page, and count for that answer alone."""

from __future__ import annotations

from catchment.model import NONE_REPEATED, UNDATED, ShownEntries, StoredEntries
from catchment.store.items.shown_entries import keep_shown
from tests.store.desk import Desk


def test_entries_are_those_of_the_last_answer(desk: Desk) -> None:
    source = desk.follow()
    entries = StoredEntries([-(2**63), 2**63 - 1, 0], [1, 2, 2**62], [1_767_323_045_678_901, UNDATED, -1])
    for body_hash in (b"first", b"second"):
        shown = ShownEntries(body_hash, {}, entries)
        desk.store.database.write(lambda tx, shown=shown: keep_shown(tx, source, shown, (), {}))
    kept = desk.store.shown_entries.of_answer(source.id, b"second")
    assert kept.at(range(len(kept))) == entries
    assert kept.at([2, 0]) == StoredEntries([0, -(2**63)], [2**62, 1], [-1, 1_767_323_045_678_901])
    assert desk.store.shown_entries.of_answer(source.id, b"first") == NONE_REPEATED
    assert desk.store.shown_entries.of_answer(source.id + 1, b"second") == NONE_REPEATED
