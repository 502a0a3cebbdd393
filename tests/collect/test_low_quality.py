"""The low-quality round: quiet communities that nobody has visited for long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from catchment.jobs import JOBS, assign_tiers, crawl_low_quality
from catchment.model import Source, SourceState
from tests.collect.plazas import Plazas
from tests.town import TownApp

EIGHT_HOURS = timedelta(hours=8)


@pytest.fixture
def plazas(tmp_path: Path, database_url: str) -> Iterator[Plazas]:
    """One visit at a time: so their order can be told."""
    here = TownApp(tmp_path / "home", database_url, concurrency=1)
    yield Plazas(here)
    here.close()


@pytest.fixture
def plaza(quick: TownApp) -> Plazas:
    """On SQLite only."""
    return Plazas(quick)


def quiet(plazas: Plazas, name: str, **more: object) -> Source:
    """A community of the last tier, visited just now."""
    source = plazas.follow(name, **more)
    for _ in range(3):
        plazas.visit(source, 1, after=timedelta(minutes=1))
    return source


def visited(plazas: Plazas, after: timedelta = EIGHT_HOURS + timedelta(seconds=1)) -> list[str]:
    """Whom the round visits, in which order, so long after all of them were."""
    plazas.clock.advance(after.total_seconds())
    plazas.names.clear()
    crawl_low_quality(plazas.here.app)
    return list(dict.fromkeys(plazas.names))


def test_what_was_not_visited_for_eight_hours_is_visited_the_oldest_first(plazas: Plazas) -> None:
    for name in ("b", "a", "c"):
        quiet(plazas, name)
    assert visited(plazas, EIGHT_HOURS - timedelta(minutes=3)) == ["b"]
    assert visited(plazas, timedelta(hours=1)) == ["a", "c"]
    assert visited(plazas, timedelta(hours=1)) == []


def test_only_communities_below_the_average_that_are_active_are_visited(plazas: Plazas) -> None:
    names = ("quiet", "lively", "paused", "unseen")
    sources = {name: plazas.follow(name) for name in names}
    plazas.visit(sources["quiet"], 49)
    plazas.visit(sources["lively"], 50)
    plazas.visit(sources["paused"], 1)
    plazas.here.app.store.sources.set_state(sources["paused"].id, SourceState.PAUSED, None, plazas.clock.now())
    assert visited(plazas) == ["quiet"]


def test_no_more_than_fifty_are_visited_at_once(plaza: Plazas) -> None:
    for number in range(53):
        plaza.visit(plaza.follow(f"{number}"), after=timedelta(seconds=1))
    assert sorted(visited(plaza), key=int) == [f"{number}" for number in range(50)]
    assert sorted(visited(plaza, timedelta()), key=int) == ["50", "51", "52"]


def test_it_is_a_run_of_its_own_and_what_is_empty_or_fails_is_counted(plazas: Plazas) -> None:
    empty, failing, full = (quiet(plazas, name) for name in ("empty", "failing", "full"))
    plazas.fails.add("failing")
    plazas.clock.advance(EIGHT_HOURS.total_seconds())
    plazas.post("full", 2)
    assert visited(plazas) == ["empty", "failing", "full"]
    (run,) = plazas.here.app.store.runs.page(1)
    assert (run.job, run.started_by) == ("crawl-low-quality", "schedule")
    assert (run.source_count, run.succeeded, run.failed, run.new_count) == (3, 2, 1, 2)
    assert plazas.progress(empty).empty_count == 1
    assert plazas.progress(failing).failure_count == 1
    assert (plazas.progress(full).empty_count, plazas.progress(full).failure_count) == (0, 0)


def test_it_comes_back_every_four_hours_and_the_tiers_are_put_in_order_daily(plaza: Plazas) -> None:
    app = plaza.here.app
    periods = {job.name: job.period(app.settings) for job in JOBS}
    assert periods["crawl-low-quality"] == timedelta(hours=4)
    assert periods["assign-tiers"] == timedelta(days=1)
    source = quiet(plaza, "a")
    app.tiers = app.tiers.replace(tiers=tuple(tier.replace(hours=3.0) for tier in app.tiers.tiers))
    assign_tiers(app)
    assert plaza.progress(source).due_reason == "tier3: every 3 h"


def test_without_anybody_left_alone_it_leaves_no_trace(plaza: Plazas) -> None:
    quiet(plaza, "a")
    before = plaza.here.app.store.runs.page(100)
    assert visited(plaza, timedelta(hours=1)) == []
    assert plaza.here.app.store.runs.page(100) == before


def test_whom_a_person_or_probation_makes_wait_is_not_hurried(plaza: Plazas) -> None:
    patient, failing = quiet(plaza, "patient", interval_minutes=10_000), quiet(plaza, "failing")
    plaza.fails.add("failing")
    for _ in range(5):
        # Its host answers others: the failure is its own.
        plaza.visit(patient)
        plaza.visit(failing, after=timedelta(minutes=1))
    assert plaza.progress(failing).due_reason == "probation"
    assert visited(plaza) == []


def test_its_figures_are_settings(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catchment.db'}"
    here = TownApp(tmp_path, url, low_quality_below=3.0, low_quality_hours=1.0, low_quality_sources=1)
    plazas = Plazas(here)
    for name, count in {"a": 3, "b": 2, "c": 2}.items():
        plazas.visit(plazas.follow(name), count, after=timedelta(minutes=1))
    assert visited(plazas, timedelta(hours=1)) == ["b"]
    here.close()
