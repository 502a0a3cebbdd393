"""What somebody adds or asks for is collected at once by the process that collects, whichever process was asked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from catchment.app import App, open_app, settings_from
from catchment.collect.tasks import request_task
from catchment.engines.embedded import Embedded
from catchment.jobs import NAMES, Job
from catchment.model import Source
from catchment.sources.add import follow, request_collection, resume
from tests.feedsite import FeedSite

WAIT_SECONDS = 600


@pytest.fixture
def site() -> Iterator[FeedSite]:
    with FeedSite() as site:
        yield site


@pytest.fixture
def opened(tmp_path: Path, database_url: str) -> Callable[[str], App]:
    """A process of one deployment whose next tick is a day away."""
    environ = {
        "CATCHMENT_HOME": str(tmp_path),
        "CATCHMENT_DATABASE_URL": database_url,
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "true",
        "CATCHMENT_RETRY_WAITS": "none",
        "COLLECTOR_TICK": "86400",
    }
    return lambda work: open_app(settings_from(environ, tmp_path, NAMES), work)


@contextmanager
def collecting(app: App) -> Iterator[None]:
    engine = Embedded(app)
    engine.start()
    try:
        until(lambda: all(job.run_count for job in app.store.jobs.all() if job.name.startswith("collect-")))
        yield
    finally:
        engine.stop(WAIT_SECONDS)


def until(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < give_up_at, "it did not come about"
        time.sleep(0.02)


def added(app: App, url: str) -> Source:
    source, _ = follow(app.store, app.secrets, app.platforms, "rss", url, app.clock.now())
    return source


def visits(app: App, source: Source) -> int:
    return app.store.sources.with_progress(source.id)[1].poll_count


def test_what_another_process_adds_or_asks_for_is_collected_without_waiting_for_the_tick(
    opened: Callable[[str], App], site: FeedSite
) -> None:
    feed = site.feed("news", posts=1)
    with opened("serve") as serving, opened("sources add") as other, collecting(serving):
        source = added(other, feed.url)
        until(lambda: visits(serving, source) == 1)
        request_collection(other.store, source.id, other.clock.now())
        until(lambda: visits(serving, source) == 2)
        assert serving.store.items.count() == 1


def test_a_task_that_another_process_requests_is_run_without_waiting_for_the_tick(
    opened: Callable[[str], App], site: FeedSite
) -> None:
    feed = site.feed("news", posts=2)
    with opened("serve") as serving, opened("other") as other, collecting(serving):
        requested = request_task(other.store, other.platforms, "rss", [feed.url], 10, other.clock.now())
        until(lambda: other.store.tasks.get(requested.task_id).finished_at is not None)
        task = other.store.tasks.get(requested.task_id)
        assert (task.state, task.new) == ("completed", 2)


def test_a_slow_source_does_not_keep_those_waiting_that_are_asked_for_meanwhile(
    opened: Callable[[str], App], site: FeedSite
) -> None:
    slow, quick = site.feed("slow", posts=1), site.feed("quick", posts=1)
    slow.hold()
    with opened("serve") as serving, collecting(serving):
        added(serving, slow.url)
        until(lambda: slow.requests == 1)
        source = added(serving, quick.url)
        until(lambda: visits(serving, source) == 1)
        slow.release()


def test_what_is_asked_for_while_its_job_ends_is_not_forgotten(opened: Callable[[str], App]) -> None:
    """The job was woken after it looked for the last time, and before it wrote down when it runs next."""
    name, day = "collect-requested", timedelta(days=1)
    with opened("serve") as app:
        jobs, now = app.store.jobs, app.clock.now()
        jobs.announce(name, now)
        lease = jobs.claim(name, app.presence.owner_id, now, day)
        assert lease is not None
        jobs.wake(name, now + timedelta(seconds=1))
        jobs.done(lease, now, now + day, now + timedelta(seconds=2), None)
        assert jobs.claim(name, app.presence.owner_id, now + timedelta(seconds=3), day) is not None


def test_a_request_ends_with_the_visit_and_what_is_paused_is_not_collected(opened: Callable[[str], App]) -> None:
    from catchment.sources.add import pause

    with opened("test") as app:
        source, now = added(app, "http://127.0.0.1:9/feed"), app.clock.now()
        assert list(app.store.sources.requested(app.clock.now(), 5)) == [source.id]
        pause(app.store, source.id, None, now)
        assert not app.store.sources.requested(app.clock.now(), 5)
        resume(app.store, source.id, now)
        assert [result.source_id for result in app.scheduler().requested("test", "request")] == [source.id]
        assert not app.store.sources.requested(app.clock.now(), 5)


def test_what_another_process_visits_meanwhile_is_not_visited_again(opened: Callable[[str], App]) -> None:
    with opened("test") as app:
        source = added(app, "http://127.0.0.1:9/feed")
        requested = app.store.sources.requested(app.clock.now(), 5)
        assert list(requested) == [source.id]
        app.scheduler().these([source.id], "test", "test")
        assert app.store.sources.claim_requested(requested, app.presence.owner_id, app.clock.now()) == []
        assert app.store.sources.holder(source.id) is None


def test_a_job_that_takes_long_or_fails_keeps_no_other_from_running(opened: Callable[[str], App]) -> None:
    runs: Counter[str] = Counter()
    go_on = Event()

    def slow(app: App) -> None:
        runs["slow"] += 1
        go_on.wait(WAIT_SECONDS)

    def quick(app: App) -> None:
        runs["quick"] += 1

    def failing(app: App) -> None:
        runs["failing"] += 1
        raise ValueError("this was wrong")

    table = tuple(Job(work.__name__, timedelta(milliseconds=10), work, "", "") for work in (slow, failing, quick))
    with opened("serve") as app:
        engine = Embedded(app, table)
        engine.start()
        until(lambda: runs["quick"] >= 3 and runs["failing"] >= 3)
        assert runs["slow"] == 1
        go_on.set()
        until(lambda: runs["slow"] >= 2)
        assert engine.stop(WAIT_SECONDS) is True
        errors = {job.name: job.last_error for job in app.store.jobs.all()}
        assert errors == {"slow": None, "quick": None, "failing": "ValueError: this was wrong"}


def test_a_job_that_another_process_runs_is_left_to_it_and_taken_up_when_that_process_has_gone(
    opened: Callable[[str], App],
) -> None:
    ran = Event()
    table = (Job("job", timedelta(days=1), lambda app: ran.set(), "", ""), Job("other", None, lambda app: None, "", ""))
    with opened("serve") as app:
        engine = Embedded(app, table)
        with opened("serve") as neighbour:
            neighbour.store.jobs.announce("job", neighbour.clock.now())
            assert neighbour.store.jobs.claim(
                "job", neighbour.presence.owner_id, neighbour.clock.now(), timedelta(days=1)
            )
            engine.start()
            until(lambda: any(job.name == "other" and job.run_count for job in app.store.jobs.all()))
            assert not ran.is_set()
        assert ran.wait(WAIT_SECONDS)
        assert engine.stop(WAIT_SECONDS) is True
