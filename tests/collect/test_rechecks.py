"""Second looks: an item is asked for again by id, and edits, removals and growth are seen after it left the listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.collect.rechecks import MOST_A_RUN
from catchment.errors import (
    LoginNeeded,
    Missing,
    ServerTrouble,
    SlowDown,
    Unreadable,
)
from catchment.jobs import JOBS, run_if_due
from catchment.model import (
    Outcome,
    Recheck,
    Request,
    SourceState,
)
from catchment.policy import schedule
from catchment.store.item_fields import to_moment
from tests.collect.numbers import AGES, START, Numbers
from tests.town import TownApp

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def here(tmp_path: Path, database_url: str) -> Iterator[TownApp]:
    app = TownApp(tmp_path / "home", database_url)
    yield app
    app.close()


@pytest.fixture
def numbers(here: TownApp) -> Numbers:
    """Three posts of a minute ago, stored."""
    numbers = Numbers(here)
    now = here.clock.now()
    numbers.site.dates = dict.fromkeys(range(1000), now)
    numbers.site.post(3)
    numbers.collect()
    return numbers


def planned(numbers: Numbers, key: str) -> Any:
    """When it is looked at next, how often it was, and since when it is gone; None: it is not looked at."""
    here = numbers.here
    row = here.app.store.database.read(
        lambda tx: tx.one(
            "SELECT next_recheck_at, recheck_count, gone_since FROM rechecks WHERE item_id = ?", here.item(key)["id"]
        )
    )
    return row and {"next_recheck_at": to_moment(row[0]), "recheck_count": row[1], "gone_since": to_moment(row[2])}


# ── when ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("age", "after"),
    [(-HOUR, HOUR), (HOUR / 2, HOUR / 2), (HOUR, 35 * HOUR), (2 * DAY, 5 * DAY), (8 * DAY, None)],
)
def test_the_next_look_is_at_the_first_age_that_is_still_to_come(age: timedelta, after: timedelta | None) -> None:
    expected = None if after is None else START + after
    assert schedule.next_recheck(AGES, START - age, START) == expected


def test_floors_wait_for_each_other_for_a_quarter_of_their_age_at_most() -> None:
    def looked_at(hours: float) -> datetime:
        at = schedule.next_recheck((DAY, 8 * DAY), START + hours * HOUR, START + 12 * HOUR, is_floor=True)
        assert at is not None
        return at

    waits = [looked_at(hours) - (START + hours * HOUR) for hours in (0, 0.1, 1, 3, 5.9, 6, 11)]
    assert all(DAY <= wait < 30 * HOUR for wait in waits)
    # Those of the same six hours are looked at together.
    assert len({looked_at(hours) for hours in (0.1, 1, 3, 5.9)}) == 1
    assert schedule.next_recheck((DAY,), START, START + DAY, is_floor=True) is None


def test_a_look_that_fails_is_put_off_longer_each_time_and_a_day_at_most() -> None:
    waits = [schedule.recheck_put_off(failures, START) - START for failures in (1, 2, 3, 100)]
    assert waits == [timedelta(minutes=15), timedelta(minutes=30), HOUR, DAY]


def test_nothing_is_asked_or_recorded_before_its_time(numbers: Numbers) -> None:
    runs = len(numbers.here.app.store.runs.page())
    assert (numbers.look(), numbers.site.asked, len(numbers.here.app.store.runs.page())) == ([], [], runs)


def test_an_item_is_looked_at_at_each_of_its_ages_and_then_no_more(numbers: Numbers) -> None:
    asked = []
    for wait in (HOUR, HOUR, 35 * HOUR, DAY, 6 * DAY, 90 * DAY):
        numbers.look(wait)
        asked.append(len(numbers.site.asked))
    assert asked == [3, 0, 3, 0, 3, 0]
    assert planned(numbers, "1") == {"next_recheck_at": None, "recheck_count": 3, "gone_since": None}


def test_one_run_looks_at_so_many_at_most_and_the_next_goes_on(numbers: Numbers, monkeypatch: Any) -> None:
    assert MOST_A_RUN > 2
    monkeypatch.setattr("catchment.collect.rechecks.MOST_A_RUN", 2)
    numbers.look(HOUR)
    assert len(numbers.site.asked) == 2
    numbers.look()
    assert len(numbers.site.asked) == 1


def test_the_job_runs_when_it_is_due(numbers: Numbers) -> None:
    app = numbers.here.app
    (job,) = [job for job in JOBS if job.name == "recheck"]
    app.store.jobs.announce(job.name, numbers.here.clock.now())
    numbers.here.clock.advance(3600)
    numbers.site.asked.clear()
    assert run_if_due(app, job)
    assert len(numbers.site.asked) == 3


# ── what it sees ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_look_sees_edits_and_growth_and_leaves_the_source_as_it_is(numbers: Numbers) -> None:
    here = numbers.here
    before = here.progress(numbers.source)
    numbers.site.says = {0: {"text": "second thoughts"}, 1: {"score": 9}}
    (result,) = numbers.look(HOUR)
    assert (result.outcome, result.counts.updated, result.counts.duplicate, result.requests) == ("succeeded", 2, 1, 3)
    assert [revision["text"] for revision in here.revisions("0")] == ["post 0"]
    assert (here.item("0")["text"], here.item("1")["score"]) == ("second thoughts", 9)
    assert here.progress(numbers.source) == before
    run = here.app.store.runs.page()[0]
    assert (run.job, run.updated_count, run.request_count) == ("recheck", 2, 3)
    (visit, *_) = here.app.store.runs.of_source(numbers.source.id)
    assert (visit.outcome, visit.notes) == ("succeeded", ("rechecked 3 items",))


def test_an_edit_is_seen_though_a_list_showed_the_id_a_moment_before_it_is_written(numbers: Numbers) -> None:
    """An id in a list tells nothing about the content: it does not make the look's answer an old one."""
    here = numbers.here
    here.clock.advance(3600)
    numbers.site.says = {0: {"text": "second thoughts"}}
    write = here.app.store.page_writer.write

    def after_a_list_was_written(page: Any, deciding: Any) -> Any:
        here.app.store.page_writer.write = write  # type: ignore[method-assign]
        numbers.site.post(1)
        here.collect(numbers.source, after=timedelta(seconds=5))
        return write(page, deciding)

    here.app.store.page_writer.write = after_a_list_was_written  # type: ignore[method-assign]
    numbers.look()
    assert here.item("0")["text"] == "second thoughts"


def test_what_the_platform_marks_as_deleted_is_deleted_at_once_and_keeps_its_text(numbers: Numbers) -> None:
    numbers.site.says = {0: {"text": None, "is_deleted": True}}
    numbers.look(HOUR)
    item = numbers.here.item("0")
    assert (item["is_deleted"], item["text"]) == (True, "post 0")


def by_the_answer(numbers: Numbers) -> None:
    numbers.site.gone = {0}


def by_404(numbers: Numbers) -> None:
    numbers.site.fails[0] = lambda: Missing("404", status=404)


@pytest.mark.parametrize("vanishes", [by_the_answer, by_404])
def test_what_is_gone_is_deleted_when_a_second_look_an_hour_later_says_so_again(
    numbers: Numbers, vanishes: Callable[[Numbers], None]
) -> None:
    here = numbers.here
    vanishes(numbers)
    numbers.look(HOUR)
    first_missed = here.clock.now()
    assert not here.item("0")["is_deleted"]
    assert planned(numbers, "0")["next_recheck_at"] == first_missed + HOUR
    numbers.look(HOUR / 2)
    assert numbers.site.asked == []
    numbers.look(HOUR / 2)
    assert (numbers.site.asked, here.item("0")["is_deleted"], here.item("0")["text"]) == ([0], True, "post 0")
    assert [revision["reasons"] for revision in here.revisions("0")] == [["marked_deleted_by_source"]]
    assert planned(numbers, "0")["next_recheck_at"] is not None


def test_what_shows_up_again_is_restored(numbers: Numbers) -> None:
    numbers.site.gone = {0}
    numbers.look(HOUR)
    numbers.look(HOUR)
    numbers.site.gone = set()
    numbers.look(36 * HOUR)
    reasons = [revision["reasons"] for revision in numbers.here.revisions("0")]
    assert reasons == [["marked_deleted_by_source"], ["restored_by_source"]]
    assert (numbers.here.item("0")["is_deleted"], planned(numbers, "0")["gone_since"]) == (False, None)


def test_gone_once_and_back_is_no_deletion(numbers: Numbers) -> None:
    numbers.site.gone = {0}
    numbers.look(HOUR)
    numbers.site.gone = set()
    numbers.look(HOUR)
    assert (numbers.here.revisions("0"), planned(numbers, "0")["gone_since"]) == ([], None)


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────────────────────────


def trouble() -> Exception:
    return ServerTrouble("500", status=500)


def unreadable() -> Exception:
    return Unreadable("no item")


@pytest.mark.parametrize("error", [trouble, unreadable])
def test_a_look_that_fails_is_put_off_and_not_lost(numbers: Numbers, error: Callable[[], Exception]) -> None:
    numbers.site.fails[0] = error
    (result,) = numbers.look(HOUR)
    assert (result.outcome, result.notes[-1]) == ("succeeded", "1 of them deferred")
    assert planned(numbers, "1")["recheck_count"] == 1
    numbers.look(timedelta(minutes=14))
    assert numbers.site.asked == []
    numbers.site.fails.clear()
    numbers.look(timedelta(minutes=1))
    assert (numbers.site.asked, planned(numbers, "0")["recheck_count"]) == ([0], 1)


@pytest.mark.parametrize("error", [trouble, unreadable])
def test_rechecks_with_nothing_but_failures_have_failed_and_are_no_visits(
    here: TownApp, error: Callable[[], Exception]
) -> None:
    numbers = Numbers(here)
    numbers.site.dates = dict.fromkeys(range(1000), here.clock.now())
    numbers.site.post(2)
    numbers.collect()
    store, now = here.app.store, here.clock.now
    before = store.runs.last_day(now())
    numbers.site.fails = dict.fromkeys(range(2), error)
    (result,) = numbers.look(HOUR)
    assert (result.outcome, result.error_code) == (Outcome.FAILED, error().code)  # type: ignore[attr-defined]
    day = store.runs.last_day(now())
    assert (day.fetches, day.errors) == (before.fetches, before.errors)
    assert day.requests == before.requests + 2
    recent = store.runs.visits_since([numbers.source.id], now() - DAY)[numbers.source.id]
    assert (recent.visits, recent.failed) == (1, 0)
    assert not store.metrics.has_visited(now())


def test_told_to_wait_the_looks_stay_due(numbers: Numbers) -> None:
    for number in range(3):
        numbers.site.fails[number] = lambda: SlowDown("429", status=429)
    (result,) = numbers.look(HOUR)
    assert (result.outcome, result.error_code) == (Outcome.FAILED, "SLOW_DOWN")
    numbers.site.fails.clear()
    numbers.look()
    assert len(numbers.site.asked) == 3


def test_a_site_that_wants_to_be_left_alone_does_not_keep_the_others_waiting(numbers: Numbers) -> None:
    numbers.here.app.platforms.by_name["numbers"].HOSTS = ()
    numbers.site.top = [500]
    numbers.collect(numbers.follow("top"))
    for number in range(3):
        numbers.site.fails[number] = lambda: SlowDown("429", status=429)
    results = numbers.look(HOUR)
    assert [result.outcome for result in results] == [Outcome.FAILED, Outcome.SUCCEEDED]
    assert planned(numbers, "500")["recheck_count"] == 1
    # Nor do its looks stand first again the next time: it may have more of them than one run makes.
    assert numbers.look() == []


def test_a_login_that_is_needed_puts_the_looks_off_and_says_so(numbers: Numbers) -> None:
    for number in range(3):
        numbers.site.fails[number] = lambda: LoginNeeded("401", status=401)
    (result,) = numbers.look(HOUR)
    assert (result.outcome, result.error_code) == (Outcome.FAILED, "LOGIN_NEEDED")
    assert (numbers.look(), numbers.site.asked) == ([], [])
    numbers.site.fails.clear()
    numbers.look(timedelta(minutes=15))
    assert len(numbers.site.asked) == 3


def test_where_a_platform_needs_a_key_and_there_is_none_the_looks_wait_without_an_error(numbers: Numbers) -> None:
    app, told = numbers.here.app, []

    def recheck(looks: Sequence[Recheck]) -> list[Request]:
        told.append({look.has_key for look in looks})
        return []

    app.platforms.by_name["numbers"].recheck = recheck  # type: ignore[attr-defined]
    (result,) = numbers.look(HOUR)
    assert (told, numbers.site.asked) == ([{False}], [])
    assert (result.outcome, result.notes) == (
        Outcome.SUCCEEDED,
        ("rechecked 3 items", "3 of them deferred"),
    )
    assert numbers.look() == []


def test_a_stop_ends_the_looking_and_leaves_all_as_due_as_before(numbers: Numbers) -> None:
    app = numbers.here.app
    numbers.site.before_answering = lambda number: app.stop.set()
    numbers.look(HOUR)
    app.stop.clear()
    numbers.site.before_answering = lambda number: None
    done = len(numbers.site.asked)
    numbers.look()
    assert len(numbers.site.asked) == 3 - done
    assert app.store.database.read(lambda tx: tx.all("SELECT 1 FROM leases WHERE owner_id IS NOT NULL")) == []


def test_two_processes_do_not_look_at_the_same_time(numbers: Numbers) -> None:
    here = numbers.here
    other = here.another("another")
    taken = here.app.store.rechecks.claim("numbers", other.presence.owner_id, here.clock.now())
    assert (numbers.look(HOUR), numbers.site.asked) == ([], [])
    assert taken
    here.app.store.rechecks.release(taken)
    numbers.look()
    assert len(numbers.site.asked) == 3
    other.close()


# ── whose items are left alone ────────────────────────────────────────────────────────────────────────────────────


def test_items_of_a_removed_source_are_not_looked_at_unless_another_shows_them(numbers: Numbers) -> None:
    here = numbers.here
    top = numbers.follow("top")
    numbers.site.top = [1]
    numbers.collect(top)
    here.app.store.sources.set_state(numbers.source.id, SourceState.REMOVED, "enough", here.clock.now())
    (result,) = numbers.look(HOUR)
    assert (numbers.site.asked, result.source_id) == ([1], top.id)
    assert planned(numbers, "0")["next_recheck_at"] is None


def test_items_of_a_paused_source_wait(numbers: Numbers) -> None:
    here = numbers.here
    here.app.store.sources.set_state(numbers.source.id, SourceState.PAUSED, "on leave", here.clock.now())
    numbers.look(HOUR)
    assert numbers.site.asked == []
    here.app.store.sources.set_state(numbers.source.id, SourceState.ACTIVE, None, here.clock.now())
    numbers.look(DAY)
    assert len(numbers.site.asked) == 3


def test_an_old_item_is_only_looked_at_at_the_ages_that_are_left(here: TownApp) -> None:
    numbers = Numbers(here)
    now: datetime = here.clock.now()
    numbers.site.dates = {0: now - 2 * DAY, 1: now - 30 * DAY}
    numbers.site.post(2)
    numbers.collect()
    assert planned(numbers, "0")["next_recheck_at"] == now + 5 * DAY
    assert planned(numbers, "1") is None
