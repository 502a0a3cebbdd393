"""What a row of a board's list says about its thread: whether it is read, and since when it waits for that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catchment.model import Forum, ReadReason, Source, ThreadRow, ThreadSeen, ThreadState
from catchment.policy.threads import begin_board, seen_thread

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
REPLIED, EARLIER = NOW - HOUR, NOW - 5 * HOUR
BOARD = begin_board(Forum(most_pages=10), Source(1, "k", "nga", "nga_board", "7", "Board", NOW), None, NOW)


def stored(**more: Any) -> ThreadState:
    """A thread that was read to its end, and got no reply since."""
    usual: dict[str, Any] = dict.fromkeys(ThreadState.__struct_fields__)
    usual |= {"id": 3, "source_id": 1, "thread_id": "7", "stale_count": 0, "created_at": EARLIER, "page_count": 2}
    usual |= {"last_reply_at": REPLIED, "read_reply_at": REPLIED, "changed_at": EARLIER, "last_read_at": EARLIER}
    return ThreadState(**usual | more)


def seen(known: ThreadState | None, *, page_count: int = 2, last_reply_at: datetime = REPLIED) -> ThreadSeen:
    row = ThreadRow("7", last_reply_at=last_reply_at, page_count=page_count)
    return seen_thread(BOARD, row, ("", "t7"), known, NOW)


def waits(thread: ThreadSeen) -> tuple[ReadReason | None, datetime | None, datetime | None]:
    return thread.read_reason, thread.waiting_since, thread.skipped_since


def test_a_new_thread_waits_from_now_on() -> None:
    assert waits(seen(None)) == (ReadReason.NEW, NOW, None)
    assert seen(None).changed_at == NOW


def test_a_thread_without_another_reply_is_not_read_and_has_not_changed() -> None:
    thread = seen(stored())
    assert (waits(thread), thread.is_changed, thread.changed_at) == ((None, None, None), False, EARLIER)


@pytest.mark.parametrize("replied_at", [NOW, EARLIER])
def test_another_time_of_the_last_reply_changes_a_thread_in_either_direction(replied_at: datetime) -> None:
    thread = seen(stored(), last_reply_at=replied_at)
    assert (waits(thread), thread.changed_at) == ((ReadReason.REPLIED, NOW, None), NOW)


def test_a_thread_that_waits_keeps_its_place_although_another_reply_came() -> None:
    waiting = stored(read_reason=ReadReason.REPLIED, waiting_since=EARLIER)
    assert waits(seen(waiting, last_reply_at=NOW)) == (ReadReason.REPLIED, EARLIER, None)


def test_a_thread_that_waits_is_read_although_the_list_gives_no_reason_any_more() -> None:
    waiting = stored(read_reason=ReadReason.REPLIED, waiting_since=EARLIER)
    assert waits(seen(waiting)) == (ReadReason.REPLIED, EARLIER, None)


def test_a_thread_with_too_many_pages_is_skipped_even_while_it_waits() -> None:
    assert waits(seen(None, page_count=11)) == (None, None, NOW)
    waiting = stored(read_reason=ReadReason.REPLIED, waiting_since=EARLIER)
    assert waits(seen(waiting, page_count=11, last_reply_at=NOW)) == (None, None, NOW)


def test_a_thread_stays_skipped_since_the_first_time_and_is_read_once_it_is_shorter() -> None:
    skipped = stored(skipped_since=EARLIER, read_reply_at=None)
    assert waits(seen(skipped, page_count=11)) == (None, None, EARLIER)
    assert waits(seen(skipped)) == (ReadReason.REPLIED, NOW, None)
