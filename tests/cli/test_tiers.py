"""`catchment tiers` and /api/tiers: as they are, as they would be, and put in order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.sources.intervals import assign_tiers
from tests.cli.conftest import Catchment
from tests.collect.plazas import Plazas
from tests.town import TownApp
from tests.web.desk import Desk

OTHERS = {"CATCHMENT_TIER1": "5,1,new,week,50", "CATCHMENT_TIER2": "4,6,top,week,80"}


@pytest.fixture
def plazas(home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plazas]:
    """Three communities with a tier each, one with too few visits for one, and one that was never visited."""
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)
    here = TownApp(home, database_url)
    plazas = Plazas(here)
    for name, count in {"quiet": 1, "middling": 12, "lively": 30}.items():
        source = plazas.follow(name)
        for _ in range(3):
            plazas.visit(source, count)
    plazas.visit(plazas.follow("new"), 99)
    plazas.follow("unseen")
    yield plazas
    here.close()


def told(catchment: Catchment, *options: str) -> dict[str, Any]:
    said = catchment("tiers", *options, "--json")
    assert said.code == 0
    document: dict[str, Any] = said.json
    return document


def counts(told: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {tier["name"]: (tier["sources"], tier["would_be"]) for tier in told["tiers"]}


def use_other_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, row in OTHERS.items():
        monkeypatch.setenv(name, row)


def test_tiers_are_counted_and_the_liveliest_communities_shown(catchment: Catchment, plazas: Plazas) -> None:
    shown = told(catchment)
    assert counts(shown) == {"tier1": (1, 1), "tier2": (1, 1), "tier3": (1, 1)}
    assert (shown["unassigned"], shown["changes"], shown["is_applied"]) == (1, [], False)
    assert [
        (community["name"], community["average_valid"], community["tier"]) for community in shown["communities"]
    ] == [
        ("new", 61, None),
        ("lively", 30, "tier1"),
        ("middling", 12, "tier2"),
        ("quiet", 1, "tier3"),
    ]
    assert [community["name"] for community in told(catchment, "--limit", "2")["communities"]] == ["new", "lively"]


def test_other_settings_show_who_would_change_and_change_nobody_until_they_are_applied(
    catchment: Catchment, plazas: Plazas, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_other_tiers(monkeypatch)
    before = told(catchment)
    assert counts(before) == {"tier1": (1, 2), "tier2": (1, 0), "tier3": (1, 1)}
    assert [(change["name"], change["tier"], change["would_be"], change["why"]) for change in before["changes"]] == [
        ("lively", "tier1", "tier1", "tier1: every 1 h"),
        ("middling", "tier2", "tier1", "tier1: every 1 h"),
    ]
    applied = told(catchment, "--apply")
    assert (counts(applied)["tier1"], applied["changes"]) == ((2, 2), before["changes"])
    assert told(catchment)["changes"] == []
    middling = plazas.here.app.store.sources.of_target("plaza", "https://plaza.example/middling")
    assert middling is not None
    known = plazas.progress(middling)
    assert known.last_polled_at is not None
    assert (known.next_due_at, known.due_reason) == (known.last_polled_at + timedelta(hours=1), "tier1: every 1 h")


def test_people_see_the_same_as_tables(catchment: Catchment, plazas: Plazas, monkeypatch: pytest.MonkeyPatch) -> None:
    use_other_tiers(monkeypatch)
    out = catchment("tiers").out
    assert "Without a tier, because they were collected too rarely: 1" in out
    assert "Would change" in out
    assert "Use --apply to change them now" in out
    assert "--apply" not in catchment("tiers", "--apply").out


def test_the_api_tells_the_same_page_by_page(plazas: Plazas) -> None:
    desk = Desk(plazas.here)
    first = desk.get("/api/tiers", limit=2)
    assert [item["name"] for item in first["items"]] == ["new", "lively"]
    assert counts(first)["tier1"] == (1, 1)
    second = desk.get("/api/tiers", limit=2, after=first["next"])
    assert ([item["name"] for item in second["items"]], second["next"]) == (["middling", "quiet"], None)
    assert desk.get("/api/sources/1")["tier"] == "tier3"
    assert desk.get("/api/sources/1")["recent_valid"] == [1, 1, 1]


def test_who_waits_by_anothers_word_goes_on_waiting(plazas: Plazas) -> None:
    """Of a server, or of a person."""
    here = plazas.here
    store = here.app.store
    lively = store.sources.get(3)
    store.sources.change(lively.id, interval_minutes=45)
    store.sources.mark_due(2, here.clock.now())
    before = [plazas.progress(store.sources.get(source_id)) for source_id in (2, 3)]
    rules = here.app.tiers
    changed = assign_tiers(store, rules.replace(tiers=tuple(tier.replace(hours=1.0) for tier in rules.tiers)))
    after = [plazas.progress(store.sources.get(source_id)) for source_id in (2, 3)]
    assert {change.source.id for change in changed} == {1, 2, 3}
    assert [(progress.next_due_at, progress.due_reason) for progress in after] == [
        (progress.next_due_at, progress.due_reason) for progress in before
    ]


def test_one_that_was_visited_meanwhile_keeps_what_the_visit_says(plazas: Plazas) -> None:
    store = plazas.here.app.store
    source, progress = store.sources.with_progress(1)
    plazas.visit(source, 50)
    assert (
        store.tier_stats.assign([(source, progress.replace(tier="tier1", tier_minutes=1, tier_reason="wrong"))]) == []
    )
    assert plazas.progress(source).tier == "tier2"
