"""Money: what may be spent is reserved first, what was spent is booked once, and nothing that was reserved is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from catchment.errors import LeaseLost
from catchment.model import Booking, Counts, Page, PageWrite
from catchment.policy.spending import Caps, Period, Total, exceeded
from catchment.store.spending import KeySpent, PaidCall
from tests.store.desk import Desk, opened

DAY, MONTH = "2026-01-31", "2026-01"
NONE = Caps()


@pytest.fixture
def neighbour(desk: Desk, database_url: str, tmp_path: Path) -> Iterator[Desk]:
    other = Desk(opened(database_url, tmp_path), desk.clock)
    yield other
    other.close()


def reserve(desk: Desk, amount: int, caps: Caps = NONE, day: str = DAY, service: str = "paid") -> int | Period | None:
    call = PaidCall(service, "key", 7, day, amount)
    number, period = desk.store.spending.reserve(call, desk.presence.owner_id, desk.now, partial(exceeded, caps=caps))
    return number or period


def booking(number: int | Period | None, amount: int, **more: int) -> Booking:
    assert isinstance(number, int)
    return Booking("paid", "key", 7, DAY, number, amount=amount, **more)


def total(desk: Desk, period: Period = Period.DAY, day: str = DAY) -> Total:
    return desk.store.spending.totals(["paid"], day)["paid"][period]


def test_a_call_that_could_exceed_a_cap_is_refused(desk: Desk) -> None:
    caps = Caps(day=1_000, month=1_500)
    first = reserve(desk, 600, caps)
    assert reserve(desk, 600, caps) == Period.DAY
    assert total(desk) == Total(reserved_amount=600, refused_amount=600)
    # What it really cost leaves room for another one.
    desk.store.spending.settle([booking(first, 150, items=1)])
    assert total(desk).committed == 150
    second = reserve(desk, 850, caps)
    assert isinstance(second, int)
    # The next day has a cap of its own; the month goes on.
    assert isinstance(reserve(desk, 600, caps, day="2026-02-01"), int)
    assert reserve(desk, 600, Caps(month=1_500), day=DAY) == Period.MONTH


def test_what_is_booked_is_in_the_ledger_once(desk: Desk) -> None:
    paid = booking(reserve(desk, 600), 300, items=2, profiles=1)
    lost = booking(reserve(desk, 600), 0, uncertain_amount=600)
    unsent = booking(reserve(desk, 600), 0).replace(is_sent=False)
    desk.store.spending.settle([paid, lost, unsent])
    desk.store.spending.settle([paid, lost])
    for period in (DAY, MONTH):
        assert desk.store.spending.by_credential(period) == [
            KeySpent(2, 2, 1, 300, 600, service="paid", credential="key")
        ]
    for period in Period:
        assert total(desk, period) == Total(300, 600, 0, None)
    assert desk.count("reservations") == 0


def test_a_booking_is_written_with_its_page_or_not_at_all(desk: Desk, neighbour: Desk) -> None:
    source = desk.follow()
    late = neighbour.claim(source)
    paid = booking(reserve(desk, 600), 300, items=2)
    page = Page(source, late.lease, desk.run_id, desk.now, (), 1, bookings=(paid,))
    neighbour.presence.leave(desk.now)
    own = desk.claim(source)
    with pytest.raises(LeaseLost):
        desk.store.page_writer.write(page, lambda facts: PageWrite((), Counts()))
    assert (desk.count("spending"), total(desk).reserved_amount) == (0, 600)
    desk.store.page_writer.write(page.replace(lease=own.lease), lambda facts: PageWrite((), Counts()))
    assert (desk.count("spending"), total(desk)) == (2, Total(300))


def test_what_a_dead_process_had_reserved_counts_as_spent_and_is_called_uncertain(desk: Desk, neighbour: Desk) -> None:
    lost = reserve(neighbour, 400)
    kept = reserve(desk, 100)
    neighbour.presence.leave(desk.now)
    assert total(desk) == Total(0, 400, 100)
    (spent,) = desk.store.spending.by_source(DAY, 10)
    assert (spent.source_id, spent.calls, spent.amount, spent.uncertain_amount) == (7, 1, 0, 400)
    # It was only presumed dead: its own booking comes too late, and changes nothing.
    desk.store.spending.settle([booking(lost, 150), booking(kept, 50)])
    assert total(desk) == Total(50, 400)


def test_a_reservation_that_nobody_booked_ends_after_an_hour(desk: Desk) -> None:
    reserve(desk, 400)
    assert desk.store.spending.recover(desk.now + timedelta(minutes=30)) == 0
    assert desk.store.spending.recover(desk.now + timedelta(minutes=90)) == 1
    assert total(desk) == Total(0, 400)


def test_totals_are_the_sums_of_the_ledger(desk: Desk) -> None:
    for day in ("2026-01-30", DAY, "2026-02-01"):
        for amount in (150, 300, 450):
            paid = booking(reserve(desk, 600, day=day), amount, items=amount // 150).replace(day=day)
            desk.store.spending.settle([paid])
    by_day = {spent.day: spent.amount for spent in desk.store.spending.by_day("2026-01-01")}
    assert by_day == dict.fromkeys(("2026-01-30", DAY, "2026-02-01"), 900)
    assert total(desk, Period.MONTH) == Total(1_800)
    assert total(desk, Period.MONTH, "2026-02-01") == Total(900)
    (by_key,) = desk.store.spending.by_credential(MONTH)
    assert (by_key.credential, by_key.calls, by_key.items, by_key.amount) == ("key", 6, 12, 1_800)
    assert [spent.day for spent in desk.store.spending.of_source(7, DAY)] == [DAY, "2026-02-01"]
