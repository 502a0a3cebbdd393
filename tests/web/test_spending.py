"""What paid services cost, in the API, on its page, and in Prometheus; and the alerts about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from catchment.jobs import JOBS
from catchment.model import Booking, Source
from catchment.policy.spending import Caps, day_of, exceeded
from catchment.store.spending import PaidCall
from tests.web.browser import opened, plain
from tests.web.desk import Desk

SERVICE = "twitterapi_io"


def spend(desk: Desk, amount: int, source: Source | None = None, *, days_ago: int = 0, uncertain: int = 0) -> None:
    """A call that was answered."""
    app, now = desk.here.app, desk.here.clock.now()
    day = day_of(now - timedelta(days=days_ago))
    call = PaidCall(SERVICE, "key", source.id if source else None, day, amount + uncertain)
    number, _ = app.store.spending.reserve(call, app.presence.owner_id, now, lambda totals, cost: None)
    app.store.spending.settle(
        [Booking(SERVICE, "key", call.source_id, day, number, amount // 150, 0, amount, uncertain)]
    )


def refuse(desk: Desk, amount: int, caps: Caps) -> None:
    """A call that a cap does not allow."""
    app, now = desk.here.app, desk.here.clock.now()
    call = PaidCall(SERVICE, "key", None, day_of(now), amount)
    assert app.store.spending.reserve(call, app.presence.owner_id, now, partial(exceeded, caps=caps))[0] is None


def with_caps(desk: Desk, **caps: Any) -> None:
    desk.here.app.settings = replace(desk.here.app.settings, **caps)


def test_the_api_says_what_was_spent_by_service_key_and_source(both: Desk) -> None:
    source = both.here.follow(both.here.town.feed("one"), name="An expensive one")
    with_caps(both, daily_caps={SERVICE: 1_000_000}, monthly_caps={SERVICE: 4_000_000})
    spend(both, 300_000, source)
    spend(both, 150_000, uncertain=3_000)
    report = both.get("/api/spending", limit=5)
    (service,) = report["services"]
    assert service["today"] == {
        "amount": 450_000,
        "uncertain_amount": 3_000,
        "reserved_amount": 0,
        "cap": 1_000_000,
        "waits_until": None,
    }
    assert (service["service"], service["this_month"]["cap"]) == (SERVICE, 4_000_000)
    assert service["forecast"] > 450_000
    assert [(row["source_id"], row["name"], row["amount"]) for row in report["sources"]] == [
        (source.id, "An expensive one", 300_000),
        (0, None, 150_000),
    ]
    assert [(row["credential"], row["calls"], row["items"]) for row in report["credentials"]] == [("key", 2, 3_000)]
    figures = both.client.get("/metrics").text
    assert f'catchment_spent_today_dollars{{service="{SERVICE}"}} 0.45' in figures
    assert f'catchment_spent_month_cap_dollars{{service="{SERVICE}"}} 4.0' in figures
    assert f'catchment_spent_today_uncertain_dollars{{service="{SERVICE}"}} 0.003' in figures


@pytest.mark.parametrize(("language", "words"), [("en", ("Spending", "Forecast")), ("zh", ("支出", "本月预测"))])
def test_the_page_shows_costs_caps_and_a_chart(desk: Desk, language: str, words: tuple[str, str]) -> None:
    page = desk.browser(language).get("/spending").text
    assert words[0] in page
    assert 'class="part-1"' not in page
    source = desk.here.follow(desk.here.town.feed("one"), name="An <expensive> one")
    with_caps(desk, daily_caps={SERVICE: 500_000})
    for days_ago in range(3):
        spend(desk, 450_000, source, days_ago=days_ago)
    refuse(desk, 90_000, Caps(day=500_000))
    page = desk.browser(language).get("/spending").text
    assert "$0.45" in page
    assert "An &lt;expensive&gt; one" in page
    assert 'class="part-1"' in page
    assert all(word in page for word in words)
    assert 'class="warn"' in page


def test_alerts_open_near_and_at_a_cap_and_close_when_it_is_raised_or_its_time_is_over(both: Desk) -> None:
    here, caps = both.here, {"daily_caps": {SERVICE: 1_000_000}}

    def alerts() -> list[tuple[str, str]]:
        next(job for job in JOBS if job.name == "monitor-spending").run(here.app)
        return [(alert.subject, str(alert.severity)) for alert in here.app.store.alerts.open()]

    with_caps(both, **caps)
    spend(both, 700_000)
    assert alerts() == []
    spend(both, 150_000)
    assert alerts() == [(f"service {SERVICE} day nearly spending", "P1")]
    refuse(both, 150_001, Caps(day=1_000_000))
    assert alerts() == [(f"service {SERVICE} day cap spending", "P0")]
    said = plain(opened(both, "/alerts"))
    assert "the daily spending cap of $1.00 is reached" in said or "is near or at its spending cap" in said
    with_caps(both, daily_caps={SERVICE: 2_000_000})
    assert alerts() == []
    with_caps(both, **caps)
    assert len(alerts()) == 1
    here.clock.advance(86_400)
    assert alerts() == []
