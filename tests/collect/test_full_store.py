"""A database that has no room is our own trouble: no source is blamed for it, or waits longer than a few minutes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from catchment.model import Outcome, Source
from catchment.store.database import Transaction
from tests.town import TownApp

MINUTES = timedelta(minutes=1)
LONG = "words " * 100_000


@contextmanager
def no_room_for_more_than(here: TownApp, pages: int) -> Iterator[None]:
    """As on a full disk: SQLite refuses to let the file grow by more than so many pages."""
    database = here.app.store.database
    used = database.read(lambda tx: tx.one("PRAGMA page_count"))
    assert used is not None

    def limited(most: int) -> type[Transaction]:
        class Limited(Transaction):
            def __init__(self, connection: Any, is_postgres: bool) -> None:
                super().__init__(connection, is_postgres)
                connection.execute(f"PRAGMA max_page_count = {most}")

        return Limited

    database.transaction = limited(used[0] + pages)  # type: ignore[misc]
    try:
        yield
    finally:
        database.transaction = limited(1_000_000)  # type: ignore[misc]


def feeds_with_long_entries(here: TownApp, count: int) -> list[Source]:
    sources = []
    for number in range(count):
        feed = here.town.feed(f"feed{number}")
        feed.post("a", LONG, at=here.clock.now())
        sources.append(here.follow(feed))
    return sources


def test_a_source_that_could_not_be_stored_is_due_again_soon_and_not_blamed(quick: TownApp) -> None:
    sources = feeds_with_long_entries(quick, 4)
    with no_room_for_more_than(quick, pages=60):
        results = quick.collect()
        stopped_at = quick.clock.now()
    failed = [result for result in results if result.error_code == "STORE_ERROR"]
    assert failed
    assert all(result.outcome == Outcome.FAILED and "free some disk space" in (result.error or "") for result in failed)
    for result in failed:
        progress = quick.app.store.sources.with_progress(result.source_id)[1]
        assert (progress.failures_in_a_row, progress.failure_count, progress.last_error) == (0, 0, None)
        assert (progress.next_due_at or stopped_at) <= stopped_at + 5 * MINUTES
    quick.app.presence.heartbeat(quick.clock.now())
    again = quick.collect(after=5 * MINUTES)
    assert {result.source_id for result in again} == {result.source_id for result in failed}
    assert {result.outcome for result in again} == {Outcome.SUCCEEDED}
    assert len(quick.items()) == len(sources)


def test_a_source_that_nothing_at_all_could_be_written_about_stays_due(quick: TownApp) -> None:
    feeds_with_long_entries(quick, 1)
    with no_room_for_more_than(quick, pages=0):
        results = quick.collect()
    assert {result.error_code for result in results} <= {"STORE_ERROR"}
    quick.app.presence.heartbeat(quick.clock.now())
    (again,) = quick.collect(after=5 * MINUTES)
    assert again.outcome == Outcome.SUCCEEDED
