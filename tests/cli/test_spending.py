"""`catchment spending`: what paid services cost."""

from __future__ import annotations

from pathlib import Path

from catchment.model import Booking
from catchment.policy.spending import day_of
from catchment.store.spending import PaidCall
from tests.cli.conftest import Catchment
from tests.store.desk import Desk, opened


def test_the_command_shows_amounts_caps_and_what_waits(catchment: Catchment, home: Path) -> None:
    assert catchment("sources", "add", "rss", "https://one.example/feed").code == 0
    assert catchment("spending").out == "Nothing has been spent: no paid service has been used.\n"
    (file,) = home.rglob("catchment.db")
    desk = Desk(opened(f"sqlite:///{file}", file.parent))
    report = catchment("spending", "--json").json
    day = report["day"]
    number, _ = desk.store.spending.reserve(
        PaidCall("paid", "key", 1, day, 3_000), desk.presence.owner_id, desk.now, lambda totals, cost: None
    )
    desk.store.spending.settle([Booking("paid", "key", 1, day, number, items=3, amount=450)])
    desk.close()
    said = catchment("spending").out
    assert "paid" in said
    assert said.count("$0.00045") >= 4
    (service,) = catchment("spending", "--json").json["services"]
    assert (service["today"]["amount"], service["this_month"]["amount"], service["today"]["cap"]) == (450, 450, None)
    assert day_of(desk.now) <= day
