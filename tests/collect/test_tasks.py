"""Tasks: requested once, run to the end by whoever is alive, and told exactly."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from catchment import logs
from catchment.collect.tasks import request_task
from catchment.errors import (
    Conflict,
    InvalidInput,
    LoginNeeded,
    Missing,
    NotFound,
    ServerTrouble,
    SlowDown,
    SpendingCapReached,
    Stopped,
)
from catchment.jobs import JOBS, clear_old, run_if_due
from catchment.model import SourceState
from catchment.store.items import change_feed
from catchment.store.sources.tasks import TaskRunning, TaskView
from tests.town import Feed, TownApp
from tests.web.desk import Desk

RUN_TASKS = next(job for job in JOBS if job.name == "run-tasks")


@pytest.fixture
def town(tmp_path: Path, database_url: str) -> Iterator[TownApp]:
    here = TownApp(tmp_path / "home", database_url, is_ready_told=True)
    yield here
    here.close()


def feeds(here: TownApp, count: int) -> list[Feed]:
    """Feeds that nobody follows, each with three posts."""
    made = [here.town.feed(f"f{number}") for number in range(count)]
    for feed in made:
        for key in range(3):
            feed.post(f"{feed.url}-{key}", at=here.clock.now() - timedelta(minutes=key))
    return made


def request(here: TownApp, *feeds: Feed, **more: Any) -> TaskView:
    names = [feed.url for feed in feeds]
    return request_task(here.app.store, here.app.platforms, "rss", names, 100, here.clock.now(), **more)


def task(here: TownApp, requested: TaskView) -> TaskView:
    return here.app.store.tasks.get(requested.task_id)


def run(here: TownApp) -> None:
    here.app.task_runner().run()


def test_every_log_line_of_a_task_names_it_and_its_request(town: TownApp) -> None:
    (feed,) = feeds(town, 1)
    requested = request(town, feed, request_id="r-4711")
    lines = io.StringIO()
    logs.configure("json", "info", lines)
    try:
        run(town)
    finally:
        logs.configure()
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [event["event"] for event in told] == ["source collected", "task ended"]
    assert [(event.get("task"), event.get("request_id")) for event in told] == [(requested.task_id, "r-4711")] * 2


def test_a_task_collects_its_targets_and_says_what_became_of_each(town: TownApp) -> None:
    first, second = feeds(town, 2)
    requested = request(town, first, second)
    assert (requested.state, requested.done, requested.total) == ("pending", 0, 2)
    run(town)
    done = task(town, requested)
    assert (done.state, done.done, done.new, done.error) == ("completed", 2, 6, None)
    assert [(target.name, target.outcome, target.new, target.requests) for target in done.targets] == [
        (first.url, "succeeded", 3, 1),
        (second.url, "succeeded", 3, 1),
    ]
    assert town.app.store.tasks.waiting(town.clock.now()) == []


def test_a_target_that_is_not_followed_gets_a_paused_source_that_says_why(town: TownApp) -> None:
    known, unknown = feeds(town, 2)
    followed = town.follow(known)
    requested = request(town, known, unknown)
    run(town)
    ids = [target.source_id for target in task(town, requested).targets]
    assert ids[0] == followed.id
    states = [(source.state, source.state_reason) for source in map(town.app.store.sources.get, ids)]
    assert states[0] == ("active", None)
    assert states[1][0] == "paused"
    assert "task" in str(states[1][1])
    town.clock.advance(86_400)
    assert ids[1] not in [result.source_id for result in town.collect()]


def test_one_unfinished_task_of_a_kind_and_the_same_request_is_the_same_task(town: TownApp) -> None:
    first, second = feeds(town, 2)
    requested = request(town, first, request_id="a")
    assert request(town, second, request_id="a").task_id == requested.task_id
    with pytest.raises(TaskRunning) as refused:
        request(town, second, request_id="b")
    assert refused.value.task_id == requested.task_id
    run(town)
    assert request(town, first, request_id="a").task_id == requested.task_id
    assert request(town, second, request_id="b").task_id != requested.task_id


@pytest.mark.parametrize("is_same_key", [True, False])
def test_of_twenty_requests_at_once_one_makes_the_task(town: TownApp, is_same_key: bool) -> None:
    (feed,) = feeds(town, 1)
    starting = Barrier(20)
    answers: list[str] = []
    refused: list[str] = []

    def ask(number: int) -> None:
        starting.wait()
        try:
            answers.append(request(town, feed, request_id="same" if is_same_key else f"{number}").task_id)
        except TaskRunning as error:
            refused.append(error.task_id)

    threads = [Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*answers, *refused}) == 1
    assert (len(answers), len(refused)) == ((20, 0) if is_same_key else (1, 19))
    assert len(town.app.store.tasks.page()) == 1


def test_every_bad_name_is_named_and_nothing_is_kept(town: TownApp) -> None:
    (feed,) = feeds(town, 1)
    store, platforms, now = town.app.store, town.app.platforms, town.clock.now()
    with pytest.raises(InvalidInput, match=r"not a feed.*also not") as refused:
        request_task(store, platforms, "rss", [feed.url, "not a feed", "also not"], 100, now, field="usernames")
    assert refused.value.field == "usernames"
    for names, limit, field in (([" "], 100, "targets"), ([feed.url], 0, "limit"), ([feed.url], 1_001, "limit")):
        with pytest.raises(InvalidInput) as refused:
            request_task(store, platforms, "rss", names, limit, now)
        assert refused.value.field == field
    assert store.tasks.page() == []


def test_a_bad_target_costs_itself_alone(town: TownApp) -> None:
    good, gone = feeds(town, 2)
    gone.says.append(Missing("not there", status=404))
    requested = request(town, good, gone)
    run(town)
    done = task(town, requested)
    assert (done.state, done.new) == ("completed", 3)
    assert [(target.outcome, target.error_code) for target in done.targets] == [
        ("succeeded", None),
        ("failed", "MISSING"),
    ]
    assert town.app.store.alerts.open() == []


def test_a_refused_credential_ends_the_task_at_once_with_an_alert(town: TownApp) -> None:
    many = feeds(town, 30)
    many[0].says.append(LoginNeeded("no", status=401))
    town.settings = replace(town.settings, concurrency=1)
    town.restart()
    requested = request(town, *many)
    run(town)
    done = task(town, requested)
    assert (done.state, done.error_code) == ("failed", "LOGIN_NEEDED")
    assert done.done < 30
    assert any(alert.subject == "task rss failing" for alert in town.app.store.alerts.open())
    again = request(town, many[1])
    run(town)
    assert task(town, again).state == "completed"
    assert not any(alert.subject == "task rss failing" for alert in town.app.store.alerts.open())


def test_a_server_that_keeps_failing_is_an_alert_and_the_task_goes_on(town: TownApp) -> None:
    good, broken = feeds(town, 2)
    broken.says.append(ServerTrouble("503", status=503))
    requested = request(town, broken, good)
    run(town)
    assert task(town, requested).state == "completed"
    (alert,) = [alert for alert in town.app.store.alerts.open() if alert.subject == "task rss failing"]
    assert "1 of 2" in str(alert.message)


def test_a_task_whose_targets_all_failed_has_failed(town: TownApp) -> None:
    (broken,) = feeds(town, 1)
    broken.says.append(ServerTrouble("503", status=503))
    requested = request(town, broken)
    run(town)
    assert (task(town, requested).state, task(town, requested).error_code) == ("failed", "SERVER_TROUBLE")
    assert town.app.store.tasks.counts() == {"pending": 0, "running": 0, "completed": 0, "failed": 1}


def test_what_our_own_limits_defer_is_done_later_and_the_rest_is_not_repeated(town: TownApp) -> None:
    good, waits = feeds(town, 2)
    later = town.clock.now() + timedelta(minutes=3)
    waits.says.append(SlowDown("the budget is used up", retry_at=later, is_own_limit=True))
    requested = request(town, good, waits)
    run(town)
    waiting = task(town, requested)
    assert (waiting.state, waiting.done) == ("running", 1)
    assert waiting.next_attempt_at is not None
    town.clock.advance(1)
    run(town)
    assert task(town, requested).done == 1
    town.clock.advance(600)
    run(town)
    done = task(town, requested)
    assert (done.state, [target.requests for target in done.targets]) == ("completed", [1, 1])


def test_a_stop_in_the_middle_leaves_it_pending_and_another_process_finishes_it(town: TownApp) -> None:
    many = feeds(town, 4)
    requested = request(town, *many)

    def stops(*_: object) -> None:
        town.app.stop.set()
        raise Stopped("a stop was requested")

    many[2].says.append(stops)
    town.settings = replace(town.settings, concurrency=1)
    town.restart()
    run(town)
    stopped = task(town, requested)
    assert stopped.state == "pending"
    assert 0 < stopped.done < 4
    town.app.presence.leave(town.clock.now())
    town.restart()
    run(town)
    done = task(town, requested)
    assert (done.state, done.done, done.new) == ("completed", 4, 12)
    assert [target.new for target in done.targets] == [3, 3, 3, 3]


def test_cancelling_ends_it_and_what_is_over_cannot_be_cancelled(town: TownApp) -> None:
    many = feeds(town, 4)
    requested = request(town, *many)
    town.app.store.tasks.cancel(requested.task_id, town.clock.now())
    run(town)
    done = task(town, requested)
    assert (done.state, done.error_code, done.done) == ("failed", "CANCELLED", 0)
    assert town.app.store.alerts.open() == []
    with pytest.raises(Conflict):
        town.app.store.tasks.cancel(requested.task_id, town.clock.now())
    with pytest.raises(NotFound):
        town.app.store.tasks.cancel("nobody", town.clock.now())


def test_a_task_ends_when_its_time_is_over_however_long_it_was_to_wait(town: TownApp) -> None:
    (waits,) = feeds(town, 1)
    later = town.clock.now() + timedelta(hours=20)
    waits.says.append(SlowDown("the budget is used up", retry_at=later, is_own_limit=True))
    requested = request(town, waits)
    run(town)
    town.clock.advance(3_599)
    run(town)
    waiting = task(town, requested)
    assert (waiting.state, waiting.targets[0].outcome) == ("running", None)
    # What it waits for is said meanwhile, and afterwards.
    assert "the budget is used up" in str(waiting.targets[0].error)
    town.clock.advance(1)
    run(town)
    late = task(town, requested)
    assert (late.state, late.error_code) == ("failed", "TIMEOUT_ERROR")
    assert (late.targets[0].outcome, late.targets[0].error_code) == (None, "SLOW_DOWN")
    # The next one is accepted at once.
    assert request(town, waits).task_id != requested.task_id


def test_a_target_that_a_spending_cap_stopped_has_failed_and_the_task_goes_on(town: TownApp) -> None:
    good, dear = feeds(town, 2)
    tomorrow = town.clock.now() + timedelta(hours=20)
    dear.says.append(SpendingCapReached("the daily cap is reached", retry_at=tomorrow, is_own_limit=True))
    requested = request(town, dear, good)
    run(town)
    done = task(town, requested)
    assert done.state == "completed"
    assert [(target.outcome, target.error_code) for target in done.targets] == [
        ("failed", "SPENDING_CAP"),
        ("succeeded", None),
    ]
    assert "the daily cap is reached" in str(done.targets[0].error)
    # An operator can raise the cap.
    (alert,) = [alert for alert in town.app.store.alerts.open() if alert.subject == "task rss failing"]
    assert "the daily cap is reached" in str(alert.message)


def test_a_source_that_is_removed_meanwhile_has_failed_and_the_task_goes_on(town: TownApp) -> None:
    waits, good = feeds(town, 2)
    later = town.clock.now() + timedelta(minutes=3)
    waits.says.append(SlowDown("the budget is used up", retry_at=later, is_own_limit=True))
    requested = request(town, waits, good)
    run(town)
    source_id = task(town, requested).targets[0].source_id
    assert source_id is not None
    town.app.store.sources.set_state(source_id, SourceState.REMOVED, "removed by a person", town.clock.now())
    town.clock.advance(600)
    run(town)
    done = task(town, requested)
    assert done.state == "completed"
    assert [(target.outcome, target.error_code) for target in done.targets] == [
        ("failed", "NOT_FOUND"),
        ("succeeded", None),
    ]
    assert "removed" in str(done.targets[0].error)
    # A source that was collected keeps its result, although it is removed later.
    assert done.targets[1].source_id is not None
    town.app.store.sources.set_state(
        done.targets[1].source_id, SourceState.REMOVED, "removed by a person", town.clock.now()
    )
    assert task(town, requested).targets == done.targets


def test_its_end_is_told_once_with_the_items_that_it_brought(town: TownApp) -> None:
    first, second = feeds(town, 2)
    requested = request(town, first, second)
    run(town)
    run(town)
    events = [(event.name, event.data) for event in town.app.store.outbox.after(0, 1_000)[0]]
    (finished,) = [data for name, data in events if name == "task.finished"]
    assert (finished["task_id"], finished["state"], finished["new"]) == (requested.task_id, "completed", 6)
    ready = [data for name, data in events if name == "items.ready"]
    assert len(ready) == 3
    whole = ready[-1]
    assert whole["task_id"] == requested.task_id
    assert sorted(whole["item_ids"]) == sorted(item["id"] for item in town.items())
    assert sorted(ready[0]["item_ids"] + ready[1]["item_ids"]) == sorted(whole["item_ids"])
    assert (whole["is_every_id"], whole["from_change_number"]) == (True, 0)


def test_beyond_so_many_ids_the_change_numbers_lead_to_all_items(
    town: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "MOST_IDS", 4)
    stranger = town.town.feed("another")
    stranger.post("of-another-source")
    town.collect(town.follow(stranger))
    first, second = feeds(town, 2)
    requested = request(town, first, second)
    run(town)
    ready = [event.data for event in town.app.store.outbox.after(0, 1_000)[0] if event.name == "items.ready"]
    whole = next(data for data in ready if data.get("task_id") == requested.task_id)
    assert (len(whole["item_ids"]), whole["is_every_id"], whole["new"]) == (4, False, 6)
    desk = Desk(town)
    changed, after = [], f"{whole['from_change_number']}"
    while True:
        page = desk.get(f"/api/changes?after={after}&limit=2")
        changed += page["items"]
        if page["is_end"]:
            break
        after = page["next"]
    source_ids = {target.source_id for target in task(town, requested).targets}
    brought = [item["id"] for item in changed if item["source_id"] in source_ids]
    assert len(brought) == len({*brought}) == 6
    assert brought[:4] == whole["item_ids"]
    assert max(item["content_change_number"] for item in changed) <= whole["to_change_number"]


def test_a_task_is_gone_after_a_day(town: TownApp) -> None:
    requested = request(town, *feeds(town, 1))
    run(town)
    town.clock.advance(23 * 3_600)
    clear_old(town.app)
    assert task(town, requested).state == "completed"
    town.clock.advance(2 * 3_600)
    clear_old(town.app)
    with pytest.raises(NotFound):
        task(town, requested)


def test_a_task_is_a_job_that_any_engine_runs(town: TownApp) -> None:
    town.app.store.jobs.announce("run-tasks", town.clock.now())
    requested = request(town, *feeds(town, 1))
    assert run_if_due(town.app, RUN_TASKS)
    assert task(town, requested).state == "completed"
