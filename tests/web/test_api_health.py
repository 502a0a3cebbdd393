"""What the API tells about running: metrics, and alerts with their past."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.parser import text_string_to_metric_families

from catchment.errors import LoginNeeded, Missing, SlowDown
from catchment.jobs import JOBS, run_if_due
from catchment.store.cache import CacheCounts
from tests.town import TownApp
from tests.web.desk import Desk

HOUR = timedelta(hours=1)


def test_metrics_are_told_by_the_hour_and_by_the_day_and_of_one_kind(both: Desk) -> None:
    here = both.here
    good, bad = here.town.feed("good"), here.town.feed("bad")
    good.post("a", at=here.clock.now())
    bad.says.append(Missing("not there", status=404))
    here.collect(here.follow(good), here.follow(bad))
    here.clock.advance(3600)
    hours = both.get("/api/metrics")["items"]
    assert len(hours) == 24
    assert [(hour["succeeded"], hour["failed"], hour["success_rate"]) for hour in hours[-2:]] == [
        (1, 1, 0.5),
        (0, 0, None),
    ]
    assert [hour["is_over"] for hour in hours[-2:]] == [True, False]
    (kind,) = hours[-2]["kinds"]
    assert (kind["kind"], kind["platform"], kind["new_count"]) == ("rss", "feeds", 1)
    (day,) = both.get("/api/metrics", span="day", limit=1)["items"]
    assert (day["starts_at"], day["source_count"]) == ("2026-01-01T00:00:00+00:00", 2)
    assert both.get("/api/metrics", kind="reddit", limit=2)["items"][0]["source_count"] == 0


def test_alerts_are_told_page_by_page_and_those_that_are_over_if_asked_for(both: Desk) -> None:
    here = both.here
    feeds = [here.town.feed(name) for name in ("one", "two", "three")]
    sources = [here.follow(feed) for feed in feeds]
    for feed in feeds:
        feed.says.append(LoginNeeded("who are you?", status=401))
    # One after the other: side by side, any of them may be the first.
    for source in (*sources, sources[0]):
        here.collect(source)
    assert [alert["source_id"] for page in both.pages("/api/alerts", limit=1) for alert in page] == [3, 2]
    everything = [alert for page in both.pages("/api/alerts", limit=2, include_closed=True) for alert in page]
    assert [(alert["source_id"], alert["closed_at"] is None) for alert in everything] == [
        (3, True),
        (2, True),
        (1, False),
    ]


# ── for Prometheus ────────────────────────────────────────────────────────────────────────────────────────────────


class Scrape:
    """What Prometheus reads: the value of each name with its labels."""

    def __init__(self, text: str) -> None:
        found = [sample for metric in text_string_to_metric_families(text) for sample in metric.samples]
        self.samples = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in found}
        assert len(self.samples) == len(found)

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]

    def of(self, name: str) -> list[float]:
        return [value for (other, _), value in self.samples.items() if other == name]


def scraped(desk: Desk) -> Scrape:
    answer = desk.client.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, CONTENT_TYPE_PLAIN_0_0_4)
    return Scrape(answer.text)


def test_prometheus_reads_what_is_due_what_came_and_what_is_open(both: Desk) -> None:
    here = both.here
    good, bad = here.town.feed("good"), here.town.feed("bad")
    good.post("a", at=here.clock.now())
    bad.says.append(LoginNeeded("who are you?", status=401))
    limited = here.town.feed("limited")
    limited.says.append(SlowDown("the budget is used up", retry_at=here.clock.now() + timedelta(hours=1)))
    here.collect(here.follow(good), here.follow(bad), here.follow(limited))
    here.follow(here.town.feed("waiting"))
    here.clock.advance(1200)
    here.app.store.cached_sources.count(here.clock.now(), CacheCounts(hits=3, misses=1))
    for job in JOBS:
        here.app.store.jobs.announce(job.name, here.clock.now())
    run_if_due(here.app, JOBS[-1])
    here.clock.advance(60)
    found = scraped(both)
    rss = {"platform": "feeds", "kind": "rss"}
    assert found.value("catchment_attempts_total", platform="feeds", outcome="200") == 1
    assert found.value("catchment_attempts_total", platform="feeds", outcome="LOGIN_NEEDED") == 1
    assert found.value("catchment_visits_total", **rss, outcome="succeeded") == 1
    assert found.value("catchment_visits_total", **rss, outcome="failed") == 1
    assert found.value("catchment_visits_total", **rss, outcome="deferred") == 1
    assert found.value("catchment_items_total", **rss, deed="new") == 1
    assert found.value("catchment_visit_seconds_count", **rss) == 2
    assert (found.value("catchment_sources_due", kind="rss"), found.value("catchment_sources_late", kind="rss")) == (
        1,
        1,
    )
    assert found.value("catchment_sources_due_seconds", kind="rss") == 1260
    assert found.value("catchment_sources", state="active") == 4
    assert (found.value("catchment_gaps_open"), found.value("catchment_items")) == (0, 1)
    assert [found.value("catchment_alerts_open", severity=severity) for severity in ("P0", "P1", "P2")] == [0, 1, 0]
    assert found.value("catchment_hot_reads_total", result="hit") == 3
    assert found.value("catchment_hot_hit_ratio") == 0.75
    # So many a minute has who comes without a key.
    assert found.value("catchment_budget_requests", platform="reddit") == 10
    assert found.value("catchment_budget_used_ratio", platform="reddit") == 0
    assert found.value("catchment_job_age_seconds", job=JOBS[-1].name) == 60
    assert found.value("catchment_job_failed", job=JOBS[-1].name) == 0


def test_counters_grow_from_scrape_to_scrape_and_unknown_is_not_told(desk: Desk) -> None:
    here = desk.here
    source = here.follow(here.town.feed())
    first = scraped(desk)
    assert first.of("catchment_hot_hit_ratio") == []
    for expected in (1, 2):
        here.collect(source)
        assert (
            scraped(desk).value("catchment_visits_total", platform="feeds", kind="rss", outcome="succeeded") == expected
        )


def test_there_are_no_more_figures_for_a_hundred_sources_than_for_one(desk: Desk) -> None:
    here = desk.here
    here.collect(here.follow(here.town.feed()))
    before = len(scraped(desk).samples)
    here.collect(*(here.follow(here.town.feed(f"feed{number}")) for number in range(100)))
    assert len(scraped(desk).samples) == before


@pytest.mark.parametrize("is_open", [False, True])
def test_prometheus_needs_a_key_unless_its_figures_are_opened(town: TownApp, is_open: bool) -> None:
    town.app.settings = replace(town.app.settings, is_metrics_open=is_open)
    desk = Desk(town)
    assert desk.stranger.get("/metrics").status_code == (200 if is_open else 401)
    assert desk.caller({"X-API-Key": str(desk.key)}).get("/metrics").status_code == 200
    assert desk.stranger.get("/api/metrics").status_code == 401


def test_no_figure_is_told_while_the_database_is_away(desk: Desk) -> None:
    desk.here.app.store.database.write(lambda tx: tx.run("DROP TABLE attempts"))
    answer = desk.client.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "STORE_ERROR")
