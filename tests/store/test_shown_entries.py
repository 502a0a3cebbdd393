"""The entries of a source's last answer are kept with its page, and count for that answer alone."""

from __future__ import annotations

from datetime import UTC, datetime

from catchment.model import ShownEntries, StoredEntry
from catchment.store.items.shown_entries import keep_shown
from tests.store.desk import Desk


def test_entries_are_those_of_the_last_answer(desk: Desk) -> None:
    source = desk.follow()
    entries = {-(2**63): StoredEntry(1, datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)), 2**63 - 1: StoredEntry(2, None)}
    for body_hash in (b"first", b"second"):
        shown = ShownEntries(body_hash, {}, entries)
        desk.store.database.write(lambda tx, shown=shown: keep_shown(tx, source, shown, (), {}))
    assert desk.store.shown_entries.of_answer(source.id, b"second") == entries
    assert desk.store.shown_entries.of_answer(source.id, b"first") == {}
    assert desk.store.shown_entries.of_answer(source.id + 1, b"second") == {}
