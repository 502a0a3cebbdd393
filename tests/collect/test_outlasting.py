"""What must not follow when something breaks: a round that never ends, a job that never comes back, a lost report."""

from __future__ import annotations

import pytest

from catchment.collect.visit import Visitor
from catchment.errors import StoreError
from catchment.jobs import JOBS, run_if_due
from catchment.model import Answer, Outcome, SourceState
from tests.town import TownApp


def away(*_: object) -> None:
    raise StoreError("the database is unavailable")


def slips(*_: object) -> None:
    raise RuntimeError("unforeseen")


def test_a_job_whose_end_could_not_be_written_runs_again(here: TownApp, monkeypatch: pytest.MonkeyPatch) -> None:
    job = next(job for job in JOBS if job.name == "clear-old")
    here.app.store.jobs.announce(job.name, here.clock.now())
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(here.app.store.jobs, "done", away)
        with pytest.raises(StoreError):
            run_if_due(here.app, job)
    here.clock.advance(2 * 3600)
    here.app.presence.heartbeat(here.clock.now())
    assert run_if_due(here.app, job)


def test_a_visit_that_breaks_in_an_unforeseen_way_ends_and_frees_its_source(
    here: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = here.town.feed()
    feed.post("p", at=here.clock.now())
    source = here.follow(feed)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Visitor, "visit", slips)
        (result,) = here.collect(source)
    assert (result.outcome, "RuntimeError" in (result.error or "")) == (Outcome.FAILED, True)
    here.app.presence.heartbeat(here.clock.now())
    (again,) = here.collect(source)
    assert again.outcome == Outcome.SUCCEEDED


def test_sources_that_could_not_be_claimed_are_not_forgotten_in_the_report(
    here: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = []
    for number in range(30):
        feed = here.town.feed(f"n{number}")
        feed.post("p", at=here.clock.now())
        sources.append(here.follow(feed))
    real, calls = here.app.store.sources.claim, []

    def claim(*given):  # type: ignore[no-untyped-def]
        calls.append(given)
        if len(calls) == 2:
            away()
        return real(*given)

    monkeypatch.setattr(here.app.store.sources, "claim", claim)
    assert sorted(result.source_id for result in here.collect(*sources)) == [source.id for source in sources]


def test_a_source_that_was_removed_meanwhile_is_told_as_such(here: TownApp) -> None:
    from catchment.sources.add import remove

    source = here.follow(here.town.feed())
    remove(here.app.store, source.id, here.clock.now())
    (result,) = here.app.scheduler().these([source.id], "test", "test")
    assert (result.outcome, "removed" in (result.error or "")) == (Outcome.SKIPPED, True)


def test_an_answer_on_which_the_reader_slips_is_kept(here: TownApp, monkeypatch: pytest.MonkeyPatch) -> None:
    from catchment.platforms import feeds

    feed = here.town.feed()
    feed.post("p", at=here.clock.now())
    source = here.follow(feed)
    monkeypatch.setattr(feeds, "read", slips)
    (result,) = here.collect(source)
    assert result.error_code == "INTERNAL"
    kept = here.app.store.database.read(lambda tx: tx.all("SELECT is_read FROM raw_answers"))
    assert [bool(row[0]) for row in kept] == [False]


def test_a_site_whose_feed_is_followed_already_is_retired_and_stores_nothing(here: TownApp) -> None:
    feed = here.town.feed()
    feed.post("p", at=here.clock.now())
    followed = here.follow(feed)
    here.collect()
    page = f'<html><head><link rel="alternate" type="application/rss+xml" href="{feed.url}"></head></html>'.encode()
    site = here.town.feed("site")
    site.says.append(lambda request, now: Answer(200, {"content-type": "text/html"}, page, request.url, now))
    source = here.follow(site)
    (result,) = here.collect(source)
    assert result.outcome == Outcome.SKIPPED
    retired = here.app.store.sources.get(source.id)
    assert retired.state == SourceState.RETIRED
    assert f"source {followed.id}" in (retired.state_reason or "")
    assert len(here.items()) == 1
