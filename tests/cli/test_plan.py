"""`plan`, and its line in `status`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Catchment


@pytest.fixture(autouse=True)
def _database(database_url: str, monkeypatch: pytest.MonkeyPatch, home: object) -> None:
    """All of this holds on SQLite and on PostgreSQL."""
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)
    # With a key Reddit allows 60 a minute.
    monkeypatch.setenv("REDDIT_CLIENT_ID", "a-client-id")


def follow(catchment: Catchment, count: int, interval: int) -> None:
    rows = [{"kind": "reddit", "target": f"r/name{number}", "interval_minutes": interval} for number in range(count)]
    assert catchment("sources", "import", "-", stdin=json.dumps(rows).encode()).code == 0


def test_the_plan_says_who_needs_how_much_and_who_will_be_late(catchment: Catchment) -> None:
    catchment("migrate")
    assert catchment("plan").err.startswith("no sources yet — ")
    catchment("sources", "add", "rss", "https://news.example/feed")
    follow(catchment, 90, 2)
    told = {plan["platform"]: plan for plan in catchment("plan", "--json").json}
    assert (told["reddit"]["needed_per_minute"], told["reddit"]["allowed_per_minute"]) == (90.0, 60.0)
    assert (told["reddit"]["late_count"], len(told["reddit"]["late"])) == (90, 20)
    assert told["reddit"]["late"][0]["late_minutes"] == 1
    assert told["feeds"]["allowed_per_minute"] is None
    shown = catchment("plan", "--limit", 2).out
    assert "reddit: 90 sources need 90 of 60 requests per minute (150 %)" in shown
    assert "r/name0 will be 1 min late (medium, every 2 min)" in shown
    assert "and 88 more" in shown
    assert "feeds: 1 source needs" in shown
    assert "feeds" not in catchment("plan", "--platform", "reddit").out
    assert catchment("plan", "--platform", "myspace", "--json").failure == (2, "INVALID_INPUT")


def test_without_a_key_it_is_planned_with_what_a_stranger_is_allowed(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDDIT_CLIENT_ID")
    follow(catchment, 4, 1)
    assert "reddit: 4 sources need 8 of 10 requests per minute (80 %)" in catchment("plan").out


def test_status_has_a_line_for_a_budget_only_while_it_is_tight(catchment: Catchment) -> None:
    follow(catchment, 12, 1)
    assert catchment("status", "--json").json["tight_budgets"] == []
    assert "budget" not in catchment("status").out.lower()
    follow(catchment, 29, 1)
    (tight,) = catchment("status", "--json").json["tight_budgets"]
    assert (tight["platform"], tight["share"]) == ("reddit", 0.9667)
    shown = catchment("status").out
    assert "budget" in shown.lower()
    assert "reddit: 29 sources need 58 of 60 requests per minute (96.6 %)" in shown
