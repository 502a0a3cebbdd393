"""Periods, caps, forecasts and alerts of spending."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from catchment.model import Prices, Severity, Usage
from catchment.policy.spending import (
    Caps,
    Period,
    Total,
    affordable_items,
    alarms,
    day_of,
    dollars,
    ends_at,
    exceeded,
    forecast,
)

FLAT = Prices(item=150, profile=180, list_call=1_500, minimum=150)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(items=20), 3_000),
        (Usage(items=0), 150),
        (Usage(profiles=1), 180),
        (Usage(items=20, is_list=True), 1_500),
        (Usage(items=20, is_free=True), 0),
    ],
)
def test_a_call_costs_what_it_returns_and_the_minimum_at_least(usage: Usage, cost: int) -> None:
    assert FLAT.cost(usage) == cost
    assert Prices(item=5_000, call=100).cost(Usage(items=3, is_list=True)) == 15_100


def test_days_and_months_are_those_of_utc() -> None:
    east = datetime.fromisoformat("2026-02-01T00:30:00+08:00")
    assert day_of(east) == "2026-01-31"
    assert ends_at(Period.DAY, "2026-01-31") == datetime(2026, 2, 1, tzinfo=UTC)
    assert ends_at(Period.MONTH, "2026-01-31") == datetime(2026, 2, 1, tzinfo=UTC)
    assert ends_at(Period.MONTH, "2025-12-01") == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_cap_may_be_reached_and_not_exceeded() -> None:
    totals = {Period.DAY: Total(500, 100, 200), Period.MONTH: Total(900)}
    assert exceeded(totals, 200, Caps(day=1_000)) is None
    assert exceeded(totals, 201, Caps(day=1_000)) is Period.DAY
    assert exceeded(totals, 201, Caps(day=1_000, month=1_000)) is Period.MONTH
    assert exceeded(totals, 10**12, Caps()) is None


@pytest.mark.parametrize(
    ("caps", "items"),
    [(Caps(), None), (Caps(day=1_000), 6), (Caps(day=1_000, month=1_300), 4), (Caps(day=400), 0), (Caps(day=0), 0)],
)
def test_what_is_left_of_the_lowest_cap_says_how_many_items_a_call_may_ask_for(caps: Caps, items: int | None) -> None:
    totals = {Period.DAY: Total(100, 50, 50), Period.MONTH: Total(600, 50, 50)}
    assert affordable_items(totals, caps, Prices(item=100, call=50, profile=100)) == items
    assert affordable_items(totals, caps, Prices(call=100)) is None


def test_the_forecast_goes_on_as_the_last_days_did() -> None:
    now = datetime(2026, 1, 11, tzinfo=UTC)
    by_day = {f"2026-01-{day:02}": 100 for day in range(1, 11)}
    # Of seven days, this one has not begun: 600 in six days, and 21 days to go.
    assert forecast(1_000, by_day, now) == 1_000 + 2_100
    # Spending that began this noon says so.
    assert forecast(50, {"2026-01-11": 50}, datetime(2026, 1, 11, 12, tzinfo=UTC)) == 50 + round(50 * 20.5 / 0.5)
    assert forecast(0, {}, now) == 0


@pytest.mark.parametrize(
    ("total", "severity"),
    [
        (Total(799), None),
        (Total(700, 50, 50), Severity.P1),
        (Total(950, refused_amount=50), Severity.P1),
        (Total(951, refused_amount=50), Severity.P0),
        (Total(1_000), Severity.P0),
    ],
)
def test_alerts_open_at_four_fifths_of_a_cap_and_where_it_allows_no_call(
    total: Total, severity: Severity | None
) -> None:
    found = alarms({"paid": {Period.DAY: total}}, {"paid": Caps(day=1_000), "other": Caps(month=5)}, "2026-01-31")
    assert [alarm.severity for alarm in found] == ([severity] if severity else [])
    word = {Severity.P0: "cap", Severity.P1: "nearly"}
    assert all(alarm.subject == f"service paid day {word[alarm.severity]} spending" for alarm in found)


def test_an_alert_about_a_cap_below_the_price_of_a_call_says_that_waiting_does_not_help() -> None:
    def said(cap: int) -> str:
        total = Total(180, refused_amount=3_000)
        (alarm,) = alarms({"paid": {Period.DAY: total}}, {"paid": Caps(day=cap)}, "2026-01-31")
        return str(alarm.message)

    assert "waiting does not help" in said(2_999)
    assert "can cost $0.003" in said(2_999)
    assert "before 2026-02-01" in said(3_000)


def test_dollars_have_cents_and_more_digits_where_there_are_more() -> None:
    assert [dollars(amount) for amount in (0, 150, 2_500_000, 1_234_567_890_000)] == [
        "$0.00",
        "$0.00015",
        "$2.50",
        "$1,234,567.89",
    ]
