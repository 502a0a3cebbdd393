"""The distributed engine on real Celery, Redis and PostgreSQL: nothing lost, nothing twice, whoever is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis
from celery import Celery

from catchment.app import open_app
from catchment.clock import micros
from catchment.collect.tasks import request_task
from catchment.engines.distributed.beat import Beat, open_beat_app
from catchment.engines.distributed.child import KILL_SECONDS, Child
from catchment.engines.distributed.limits import VISIBILITY_SECONDS
from catchment.engines.distributed.tasks import make_celery, send_hint
from catchment.errors import CatchmentError
from catchment.jobs import JOBS
from catchment.model import Target
from catchment.settings import read_settings
from catchment.settings.table import QUEUES
from catchment.store.leases import Presence
from catchment.store.sources.sources import SourceRequest
from catchment.store.version import BASELINE, HEAD, mismatch
from tests.engines.deployment import WAIT_SECONDS, Deployment, until
from tests.engines.names import job_table
from tests.forked import Forked
from tests.hostile import reply
from tests.town import TownApp

FEEDS, ENTRIES = 100, 50
STOP_SECONDS = int(os.environ.get("STOP_SECONDS", "2"))
STOPPED_CHILDREN = int(os.environ.get("STOPPED_CHILDREN", "2"))
"""docs/reliability.md has the figure of 4 children and the default of 30 seconds."""


def parent_of(pid: int) -> int:
    return int(psutil.Process(pid).ppid())


def test_a_child_and_a_whole_worker_are_killed_and_nothing_is_lost_or_stored_twice(deployment: Deployment) -> None:
    ids = deployment.follow(FEEDS, ENTRIES)
    # One feed hangs until the child that reads it is dead, another until that whole worker is.
    first, second = deployment.site.feed("f3"), deployment.site.feed("f40")
    first.hold()
    second.hold()
    deployment.beat()
    workers = {worker.pid: worker for worker in (deployment.worker(2), deployment.worker(2))}

    until(lambda: first.requests)
    holder = deployment.app.store.sources.holder(ids[3])
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    first.release()

    until(lambda: second.requests)
    holder = until(lambda: deployment.app.store.sources.holder(ids[40]))
    workers[parent_of(holder.pid)].kill()
    second.release()

    until(lambda: deployment.visited() == FEEDS, "not every source was visited")
    until(
        lambda: deployment.number("SELECT count(*) FROM leases WHERE owner_id IS NOT NULL AND resource = 'source'") == 0
    )
    assert deployment.app.store.items.count() == FEEDS * ENTRIES
    assert deployment.number("SELECT count(DISTINCT external_id) FROM items") == FEEDS * ENTRIES
    assert deployment.number("SELECT count(*) FROM revisions") == 0
    # Whatever still waits has nothing left to visit: of a second visit, a feed would know.
    until(deployment.is_all_taken)
    visits = """
        SELECT source_id, count(*) FROM run_sources WHERE outcome IN ('succeeded', 'unchanged') GROUP BY source_id
    """
    assert dict(deployment.rows(visits)) == dict.fromkeys(ids, 1)
    # The three children that were killed had up to five visits under way each, whose requests were repeated. A visit
    # may have met both kills.
    requests = [feed.requests for feed in deployment.site.feeds.values()]
    assert {1, 2} <= {*requests} <= {1, 2, 3}
    assert sum(requests) <= FEEDS + 3 * 5


def test_a_stop_lets_visits_finish_children_included_and_hanging_ones_are_cut_without_blame(
    deployment: Deployment,
) -> None:
    # Each child has as many visits that hang as it sends requests to one host at once.
    (quick, *hanging) = deployment.follow(2 * STOPPED_CHILDREN)
    feeds = [feed for name, feed in deployment.site.feeds.items() if name != "f0"]
    for feed in feeds:
        feed.hold()
    deployment.beat(CRAWLER_BATCH_SIZE="2")
    # The time for a stop is over before the time for an answer is.
    settings = {"CATCHMENT_STOP_SECONDS": str(STOP_SECONDS), "CATCHMENT_TIMEOUT_SECONDS": "120"}
    worker = deployment.worker(STOPPED_CHILDREN, CRAWLER_BATCH_SIZE="2", **settings)
    until(lambda: all(feed.requests for feed in feeds) and deployment.visited() == 1)
    pids = {child.pid for child in deployment.children()}
    holders = {until(lambda id_=source_id: deployment.app.store.sources.holder(id_)).pid for source_id in hanging}  # type: ignore[misc]
    assert holders == pids
    assert len(pids) == STOPPED_CHILDREN
    began = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.code(WAIT_SECONDS) == 1
    took = time.monotonic() - began
    sys.stderr.write(f"{len(pids)} children with {len(hanging)} hanging visits were gone after {took:.1f} s\n")
    assert took >= STOP_SECONDS
    until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    # On a busy machine, a child may have been killed before it could give back what it had.
    until(lambda: deployment.app.presence.bury(deployment.app.clock.now()) or not held(deployment))
    for source in hanging:
        _, progress = deployment.app.store.sources.with_progress(source)
        assert (progress.failures_in_a_row, progress.last_success_at) == (0, None)
        assert deployment.app.store.sources.holder(source) is None
    assert deployment.app.store.sources.with_progress(quick)[1].last_success_at is not None


@pytest.mark.parametrize(("patience", "signals"), [("3600", 2), ("0", 1)])
def test_a_second_signal_and_a_patience_of_nothing_abort_at_once(
    deployment: Deployment, patience: str, signals: int
) -> None:
    (source,) = deployment.follow(1)
    feed = deployment.site.feed("f0")
    feed.hold()
    worker = deployment.worker(1, CATCHMENT_STOP_SECONDS=patience)
    with closing(deployment.celery()) as celery:
        celery.send_task("tasks.crawler.crawl_community", args=[feed.url], ignore_result=True)
    until(lambda: feed.requests)
    for _ in range(signals):
        worker.signal(signal.SIGTERM)
        # Two signals that are pending at once are one.
        until(lambda: psutil.Process(worker.pid).status() != psutil.STATUS_RUNNING or worker.code(0) is not None)
        time.sleep(0.2)
    assert worker.code(WAIT_SECONDS) == 1
    assert deployment.app.store.sources.with_progress(source)[1].failures_in_a_row == 0


def test_a_message_whose_child_is_killed_is_handed_out_again(deployment: Deployment) -> None:
    """There is no beat, which would send another one."""
    deployment.follow(1, posts=4)
    feed = deployment.site.feed("f0")
    feed.hold()
    deployment.worker(1)
    with closing(deployment.celery()) as celery:
        conf = celery.conf
        assert (conf.task_acks_late, conf.task_reject_on_worker_lost, conf.worker_prefetch_multiplier) == (
            True,
            True,
            1,
        )
        result = celery.send_task("tasks.crawler.crawl_community", args=[feed.url])
        until(lambda: feed.requests == 1)
        (child,) = deployment.children()
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: feed.requests == 2)
        feed.release()
        assert result.get(timeout=300)["new_posts"] == 4


def test_a_child_takes_a_message_only_when_it_is_free_for_it(deployment: Deployment) -> None:
    deployment.follow(2)
    first = deployment.site.feed("f0")
    first.hold()
    deployment.worker(1)
    with closing(deployment.celery()) as celery, deployment.broker() as client:
        results = [
            celery.send_task("tasks.crawler.crawl_community", args=[deployment.site.feed(name).url])
            for name in ("f0", "f1", "f1", "f1")
        ]
        until(lambda: first.requests)
        # The one that is worked on is not answered yet; the others are for anybody.
        until(lambda: client.hlen("unacked") == 1)
        assert client.llen("crawler_queue") == 3
        first.release()
        assert [result.get(timeout=300)["community"] for result in results]


def test_a_task_that_does_not_listen_is_killed_and_its_source_is_free(deployment: Deployment) -> None:
    (source,) = deployment.follow(1)
    feed = deployment.site.feed("f0")
    feed.hold()
    deployment.start_impatient("worker", "--concurrency", "1")
    (child,) = until(deployment.children)
    with closing(deployment.celery()) as celery:
        result = celery.send_task("tasks.crawler.crawl_community", args=[feed.url])
        with pytest.raises(Exception, match="TimeLimitExceeded"):
            result.get(timeout=300)
    until(lambda: not psutil.pid_exists(child.pid))
    until(lambda: [process.pid for process in deployment.children()] not in ([], [child.pid]))
    until(lambda: deployment.app.store.sources.holder(source) is None)
    assert deployment.app.store.sources.with_progress(source)[1].failures_in_a_row == 0


def test_a_child_that_hangs_is_gone_within_five_seconds_after_the_time_for_a_stop(deployment: Deployment) -> None:
    """With the default of 30 seconds, all processes are gone after 35."""
    (source,) = deployment.follow(1)
    feed = deployment.site.feed("f0")
    feed.hold()
    deployment.beat()
    worker = deployment.worker(1, CATCHMENT_STOP_SECONDS="1")
    until(lambda: feed.requests)
    (child,) = deployment.children()
    # Neither a signal nor the end of its worker ends it.
    os.kill(child.pid, signal.SIGSTOP)
    worker.signal(signal.SIGTERM)
    assert worker.code(WAIT_SECONDS) == 1
    until(lambda: not psutil.pid_exists(child.pid))
    assert "did not stop in time" in worker.stderr.read()
    until(lambda: deployment.app.presence.bury(deployment.app.clock.now()) or not held(deployment))
    assert deployment.app.store.sources.with_progress(source)[1].failures_in_a_row == 0


def held(deployment: Deployment) -> int:
    return deployment.number("SELECT count(*) FROM leases WHERE resource = 'source' AND owner_id IS NOT NULL")


def test_the_limits_of_a_stop_leave_35_seconds(tmp_path: Path) -> None:
    seconds = read_settings({"CATCHMENT_HOME": str(tmp_path)}, tmp_path).stop_seconds
    assert seconds + KILL_SECONDS < 35


def test_a_task_whose_time_is_over_begins_nothing_new_and_is_then_aborted(deployment: Deployment) -> None:
    child = Child(deployment.settings(), task_seconds=0.03, clean_seconds=0.02)
    with closing(child):
        for _ in range(2):
            with child.working() as app:
                assert app.stop.wait(WAIT_SECONDS)
                assert app.cut.wait(WAIT_SECONDS)
    child = Child(deployment.settings())
    with closing(child), child.working() as app:
        # The next task has its own time.
        assert not app.stop.is_set()


def test_a_task_is_killed_before_its_message_is_handed_out_again(deployment: Deployment) -> None:
    with closing(deployment.celery()) as celery:
        assert celery.conf.task_time_limit == 300
        assert celery.conf.task_time_limit < VISIBILITY_SECONDS
        assert celery.conf.broker_transport_options["visibility_timeout"] == VISIBILITY_SECONDS


def test_a_worker_with_nothing_to_do_stops_at_once_and_cleanly_and_a_beat_too(deployment: Deployment) -> None:
    beat, worker = deployment.beat(), deployment.worker(2)
    for process in (worker, beat):
        process.signal(signal.SIGTERM)
        assert process.code(WAIT_SECONDS) == 0
    assert deployment.living() == []


def test_tasks_answer_as_specified(deployment: Deployment) -> None:
    deployment.follow(1, posts=4)
    deployment.worker(1)
    name = deployment.site.feed("f0").url
    answer = deployment.ask("tasks.crawler.crawl_community", [name])
    assert answer.pop("duration_seconds") >= 0
    assert answer == {
        "community": name,
        "new_posts": 4,
        "updated_posts": 0,
        "duplicates": 0,
        "watermark_updated": True,
    }
    for wrong in (["r/nobody_follows_this"], [17], [], ["x" * 10_000_000], [name, "too many"]):
        with pytest.raises(Exception, match=r"NOT_FOUND|INVALID_INPUT"):
            deployment.ask("tasks.crawler.crawl_community", wrong)
    assert deployment.ask("tasks.metrics.generate_daily") == {"job": "daily-metrics", "ran": True}
    assert deployment.ask("tasks.crawler.crawl_seed_communities", kwargs={"force_refresh": True})["communities"] == 0
    assert deployment.ask("tasks.crawler.crawl_seed_communities_incremental")["communities"] == 0
    run = deployment.app.store.runs.page()[-1]
    assert (run.job, run.started_by, len(run.request_id or "")) == ("tasks.crawler.crawl_community", "request", 36)
    app = deployment.app
    requested = request_task(app.store, app.platforms, "rss", [name], 10, app.clock.now())
    run_tasks = next(job for job in JOBS if job.name == "run-tasks")
    assert deployment.ask(run_tasks.task_name) == {"job": "run-tasks", "ran": True}
    assert app.store.tasks.get(requested.task_id).state == "completed"


def test_log_lines_of_a_task_name_its_request_and_its_run(deployment: Deployment) -> None:
    deployment.follow(1)
    feed = deployment.site.feed("f0")
    feed.status = 403
    worker = deployment.worker(1)
    with pytest.raises(Exception, match="403"):
        deployment.ask("tasks.crawler.crawl_community", [feed.url], headers={"request_id": "asked by hand"})
    said = next(line for line in iter(worker.stderr.readline, "") if "source failed" in line)
    run = deployment.app.store.runs.page()[0]
    assert {
        "task": "tasks.crawler.crawl_community",
        "request_id": "asked by hand",
        "run": run.id,
    }.items() <= json.loads(said).items()
    assert run.request_id == "asked by hand"


def test_hints_that_are_forged_repeated_or_unknown_harm_nothing(deployment: Deployment) -> None:
    deployment.follow(3)
    celery = deployment.celery()
    for headers in ({"catchment_job": "collect-due"}, {"catchment_job": "daily-metrics"}, {"catchment_job": 7}, {}):
        for _ in range(3):
            celery.send_task("catchment.collect-due", queue="crawler_queue", headers=headers)
    celery.send_task("tasks.crawler.of_another_version", queue="crawler_queue", args=[1])
    celery.send_task("catchment.index-items", queue="crawler_queue", headers={"catchment_job": "index-items"})
    celery.close()
    deployment.worker(2)
    until(lambda: deployment.visited() == 3)
    until(deployment.is_all_answered)
    assert deployment.number("SELECT count(*) FROM run_sources") == 3
    # A job that is not due is not run by a hint.
    assert deployment.ask("tasks.metrics.generate_daily") == {"job": "daily-metrics", "ran": True}
    hinted = deployment.ask("tasks.metrics.generate_daily", headers={"catchment_job": "daily-metrics"})
    assert hinted == {"job": "daily-metrics", "ran": False}
    for forged in (7, "no-such-job", "clear-old", ["daily-metrics"], ""):
        answer = deployment.ask("tasks.metrics.generate_daily", headers={"catchment_job": forged})
        assert answer == {"job": None, "ran": False}


def test_bytes_that_are_no_message_end_no_worker(deployment: Deployment) -> None:
    worker = deployment.worker(1)
    address = {"exchange": "", "routing_key": "crawler_queue"}
    strange = (
        {"properties": {}},
        {"properties": {"delivery_tag": "no address"}},
        {"properties": {"delivery_tag": ["no text"], "delivery_info": address}},
        {"properties": {"delivery_tag": "1", "delivery_info": address, "body_encoding": "base64"}, "body": "%"},
        {"properties": {"delivery_tag": "2", "delivery_info": address, "body_encoding": "rot13"}, "body": "x"},
        {"properties": {"delivery_tag": "3", "delivery_info": address}, "headers": ["task"], "body": "7"},
        {"properties": {"delivery_tag": "4", "delivery_info": address}, "headers": {"task": 7, "id": None}},
        {
            "properties": {"delivery_tag": "5", "delivery_info": address},
            "headers": {"task": "catchment.index-items", "id": 7, "timelimit": 7, "expires": {}, "root_id": []},
            "body": "[[], {}, {}]",
            "content-type": "application/json",
            "content-encoding": "utf-8",
        },
    )
    for message in (
        b"this is no message",
        b"\xff\xfe",
        b"7",
        b"{}",
        *(json.dumps(message_body).encode() for message_body in strange),
    ):
        with deployment.broker() as client:
            client.lpush("crawler_queue", message)
        # One after the other, so that each is met by the same worker.
        assert deployment.ask("tasks.crawler.crawl_seed_communities_incremental")["communities"] == 0, message
    until(deployment.is_all_answered)
    worker.signal(signal.SIGTERM)
    assert worker.code(WAIT_SECONDS) == 0


def test_a_message_that_names_no_queue_goes_to_one_that_is_consumed(deployment: Deployment) -> None:
    def queue_of(consumed: str | None) -> str:
        settings = deployment.settings(**({"CELERY_QUEUE_NAMES": consumed} if consumed else {}))
        with closing(make_celery(settings)) as celery:
            return str(celery.amqp.router.route({}, "tasks.monitoring.of_another_version")["queue"].name)

    assert queue_of(None) == "monitoring_queue"
    assert queue_of("crawler_queue,monitoring_queue") == "monitoring_queue"
    assert queue_of("crawler_queue,cleanup_queue") == "crawler_queue"


def test_a_child_and_a_beat_use_no_more_connections_than_the_doctor_says(deployment: Deployment) -> None:
    deployment.follow(40)
    used: dict[str, int] = {}

    def count() -> bool:
        sql = """
            SELECT application_name, count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name LIKE 'part %' GROUP BY 1
        """
        for name, sessions in deployment.rows(sql):
            used[name] = max(used.get(name, 0), sessions)
        return deployment.visited() == 40

    deployment.beat(PGAPPNAME="part beat")
    deployment.worker(2, PGAPPNAME="part worker")
    until(count)
    assert used.keys() == {"part beat", "part worker"}
    assert used["part beat"] <= 3
    assert used["part worker"] <= 2 * 4


@pytest.mark.parametrize(("part", "most"), [("child", 4), ("beat", 3)])
def test_however_many_threads_want_one_there_are_no_more_connections(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, part: str, most: int
) -> None:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'crowded'"
    until(lambda: deployment.number(sql) == 0)
    monkeypatch.setenv("PGAPPNAME", "crowded")
    child = Child(deployment.settings())
    app = child.app() if part == "child" else open_beat_app(deployment.settings())
    app.presence
    address = deployment.settings().database_url.replace("+psycopg", "")
    with psycopg.connect(address, application_name="gate") as gate:
        gate.execute("SELECT pg_advisory_xact_lock(7)")
        with closing(child), closing(app), ThreadPoolExecutor(12) as pool:
            wait = "SELECT pg_advisory_xact_lock_shared(7)::text"
            waiting = [pool.submit(app.store.database.read, lambda tx: tx.one(wait)) for _ in range(12)]
            until(lambda: deployment.number(sql) >= most)
            # The other threads want one, too, for as long as the gate is closed.
            used = {deployment.number(sql) for _ in range(50)}
            gate.rollback()
            assert used == {most}
            assert all(thread.result(WAIT_SECONDS) for thread in waiting)


def test_communities_are_crawled_by_the_commands_of_the_specification(deployment: Deployment) -> None:
    deployment.environ["CATCHMENT_REDDIT_BASE_URL"] = deployment.site.url
    body = (Path(__file__).parents[1] / "platforms" / "reddit" / "feed.xml").read_bytes()
    for listing in ("new", "hot", "top"):
        deployment.site.server.on(f"/r/webdev/{listing}/.rss", reply(body, content_type="application/atom+xml"))
    now = deployment.app.clock.now()
    near, wanted = (Target("reddit", name) for name in ("r/webdevelopment", "r/webdev"))
    deployment.app.store.sources.follow_many([SourceRequest(near, "c"), SourceRequest(wanted, "c")], now)
    source = deployment.app.store.sources.of_target("reddit", "r/webdev")
    assert source is not None
    deployment.worker(1)
    call = deployment.start_celery("call", "tasks.crawler.crawl_community", '--args=["r/webdev"]')
    task_id = call.stdout.read().strip()
    with closing(deployment.celery()) as celery:
        answer = celery.AsyncResult(task_id).get(timeout=300)
    assert (answer["community"], answer["new_posts"] > 0, answer["watermark_updated"]) == ("r/webdev", True, True)
    again = deployment.ask("tasks.crawler.crawl_community", ["r/webdev"])
    assert (again["new_posts"], again["duplicates"] > 0) == (0, True)

    def change(sql: str, *values: Any) -> None:
        deployment.app.store.database.write(lambda tx: tx.run(f"UPDATE {sql}", *values))

    # The other one is none of these tasks' business.
    change("sources SET state = 'paused' WHERE target = 'r/webdevelopment'")
    change("progress SET is_active = false WHERE source_id <> ?", source.id)
    seeds = "tasks.crawler.crawl_seed_communities"
    assert deployment.ask(seeds)["communities"] == 0
    assert deployment.ask(seeds, kwargs={"force_refresh": True})["communities"] == 1
    incremental = "tasks.crawler.crawl_seed_communities_incremental"
    assert deployment.ask(incremental)["communities"] == 0
    change("progress SET next_due_at = ? WHERE source_id = ?", micros(now), source.id)
    assert deployment.ask(incremental)["communities"] == 1
    low_quality = "tasks.crawler.crawl_low_quality_communities"
    visits = f"SELECT count(*) FROM run_sources WHERE source_id = {source.id}"
    before = deployment.number(visits)
    assert deployment.ask(low_quality) == {"job": "crawl-low-quality", "ran": True}
    assert deployment.number(visits) == before
    long_ago = micros(now - timedelta(days=3))
    change("progress SET average_valid = 0, last_polled_at = ? WHERE source_id = ?", long_ago, source.id)
    assert deployment.ask(low_quality) == {"job": "crawl-low-quality", "ran": True}
    assert deployment.number(visits) == before + 1


def test_a_second_beat_takes_over(deployment: Deployment) -> None:
    first = deployment.beat()
    until(lambda: deployment.app.store.leadership.leader())
    deployment.beat()
    leader = deployment.app.store.leadership.leader()
    assert leader is not None
    assert leader.pid == first.pid
    first.kill()
    until(lambda: (now := deployment.app.store.leadership.leader()) is not None and now.pid != first.pid)


def test_a_beat_that_stands_by_leads_within_a_minute_after_the_leader_fell_silent(
    quick: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock of the one that stands by, which looks as often as it says that it will."""
    app, seconds = quick.app, [1000.0]
    leader = Presence(app.store.database, quick.settings.home, "beat", app.clock.now())
    assert app.store.leadership.claim(leader.owner_id, app.clock.now())
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    beat = Beat(app, Celery(), jobs=())
    while not beat.is_leading and seconds[0] < 1100:
        seconds[0] += beat.tick()
    leader.leave(app.clock.now())
    assert 1030 < seconds[0] < 1060


def test_every_job_has_a_task_and_every_task_a_queue(deployment: Deployment) -> None:
    celery = deployment.celery()
    names = {job.task_name for job in JOBS} | {"tasks.crawler.crawl_community"}
    assert {name for name in celery.tasks if not name.startswith("celery.")} == names
    assert {celery.amqp.router.route({}, name)["queue"].name for name in names} <= set(
        deployment.settings().queue_names
    )


def test_the_documented_names_queues_and_periods_are_those_of_the_table_of_jobs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    assert job_table() in text


MODULES = {
    "D": "tests.engines.test_distributed",
    "F": "tests.engines.test_distributed_faults",
    "S": "tests.engines.test_engine_seen",
    "L": "tests.store.test_leases",
    "M": "tests.store.test_migrate",
}


def test_every_row_of_the_table_of_faults_names_tests_that_exist() -> None:
    text = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| .+ \| (.+) \|$", text.partition("## When a part is down")[2], re.MULTILINE)
    assert len(rows) > 10
    previous = ""
    for what, tests in rows[1:]:
        tests = previous if tests == "the same" else tests
        letter, named = "", re.findall(r"([DFSLM] )?`(test_\w+)`", tests)
        assert named, what
        for module, name in named:
            letter = module.strip() or letter
            assert hasattr(import_module(MODULES[letter]), name), (what, name)
        previous = tests


SPECIFIED = """
    auto-crawl-incremental  tasks.crawler.crawl_seed_communities_incremental  crawler_queue     30    1800
    crawl-low-quality       tasks.crawler.crawl_low_quality_communities       crawler_queue     240   3600
    warm-up                 tasks.crawler.crawl_seed_communities              crawler_queue     120   off
    crawl-seed-communities  tasks.crawler.crawl_seed_communities              crawler_queue     30    off
    monitor-warmup-metrics  tasks.monitoring.monitor_warmup_metrics           monitoring_queue  15    -
    monitor-api-calls       tasks.monitoring.monitor_api_calls                monitoring_queue  1     -
    monitor-cache-health    tasks.monitoring.monitor_cache_health             monitoring_queue  5     -
    monitor-crawler-health  tasks.monitoring.monitor_crawler_health           monitoring_queue  5     -
    daily-metrics           tasks.metrics.generate_daily                      monitoring_queue  1440  -
    clear-expired           tasks.maintenance.cleanup_expired_posts_hot       cleanup_queue     360   -
"""
"""Job, task, queue, period in minutes, and after how many seconds a message expires, or that the job is off."""


def test_names_queues_periods_and_expiry_are_those_of_the_specification(tmp_path: Path) -> None:
    settings = read_settings({"CATCHMENT_HOME": str(tmp_path)}, tmp_path)
    found = {
        (
            job.name,
            job.task_name,
            job.queue_name,
            f"{job.every.total_seconds() / 60:g}" if job.every else "tick",
            "off" if job.period(settings) is None else f"{job.expires.total_seconds():g}" if job.expires else "-",
        )
        for job in JOBS
        if not job.task_name.startswith("catchment.")
    }
    assert found == {tuple(line.split()) for line in SPECIFIED.strip().splitlines()}
    on_the_clock = {job.name for job in JOBS if job.is_on_the_clock}
    assert on_the_clock >= {"auto-crawl-incremental", "crawl-low-quality", "warm-up", "crawl-seed-communities"}
    assert {job.queue_name for job in JOBS if job.queue == "events"} == {"analysis_queue"}
    queues = ("analysis_queue", "maintenance_queue", "cleanup_queue", "crawler_queue", "monitoring_queue")
    assert settings.queue_names == queues
    assert {job.queue_name for job in JOBS} == {*queues}


@pytest.mark.parametrize("rate", [1, 60])
def test_messages_expire_by_wall_time_and_tolerate_clocks_that_differ(deployment: Deployment, rate: int) -> None:
    settings = deployment.settings(
        CATCHMENT_CLOCK=f"2026-06-01T00:00:00+00:00,{rate}", CATCHMENT_HOME=str(deployment.folder / "other home")
    )
    sent = [job for job in JOBS if job.name in ("auto-crawl-incremental", "crawl-low-quality", "monitor-api-calls")]
    began = datetime.now(UTC)
    with open_app(settings, "beat") as app, closing(make_celery(settings)) as celery:
        for job in sent:
            send_hint(celery, app, job)
    ended = datetime.now(UTC)
    with deployment.broker() as client:
        messages = [json.loads(text) for queue in QUEUES for text in client.lrange(queue, 0, -1)]
    for message in messages:
        expires = datetime.fromisoformat(message["headers"]["expires"])
        seconds = {
            "auto-crawl-incremental": 1800 / rate,
            "crawl-low-quality": 3600 / rate,
            # A period, during which a machine whose clock is 90 seconds ahead must still accept it.
            "monitor-api-calls": 60 / rate + 120,
        }[message["headers"]["catchment_job"]]
        assert began <= expires - timedelta(seconds=seconds) <= ended
    assert len(messages) == len(sent)


@pytest.mark.parametrize("program", ["catchment", "celery"])
@pytest.mark.parametrize("command", ["worker", "beat"])
@pytest.mark.parametrize("version", [BASELINE if BASELINE < HEAD else "0001", "9999"])
def test_a_database_of_an_older_or_newer_version_is_refused_with_what_helps(
    deployment: Deployment, program: str, command: str, version: str
) -> None:
    deployment.app.store.database.write(lambda tx: tx.run("UPDATE alembic_version SET version_num = ?", version))
    said = _ends((deployment.start if program == "catchment" else deployment.start_celery)(command))
    helps = mismatch(version)
    assert helps is not None
    assert helps.helps in said


@pytest.mark.parametrize("command", ["worker", "beat"])
def test_an_empty_database_is_refused_with_the_command_that_sets_it_up(
    deployment: Deployment, blank_postgres_url: str, command: str
) -> None:
    assert "catchment migrate" in _ends(deployment.start(command, CATCHMENT_DATABASE_URL=blank_postgres_url))


def _ends(process: Forked) -> str:
    assert process.code(WAIT_SECONDS) not in (0, None)
    return process.stderr.read()


@pytest.mark.parametrize("command", ["worker", "beat"])
@pytest.mark.parametrize(
    "url", ["redis://:wrong-password@127.0.0.1:no-port/1", "amqp://user:wrong-password@127.0.0.1/1", "wrong-password"]
)
def test_a_wrong_url_of_the_broker_is_refused_without_its_password(
    deployment: Deployment, command: str, url: str
) -> None:
    said = _ends(deployment.start(command, CELERY_BROKER_URL=url))
    assert "CELERY_BROKER_URL" in said
    if url != "wrong-password":
        # That one is no URL: there is no telling what is a password in it.
        assert "wrong-password" not in said


@pytest.mark.parametrize("command", ["worker", "beat"])
def test_a_broker_that_refuses_the_password_ends_the_start_without_showing_it(
    deployment: Deployment, command: str
) -> None:
    deployment.redis.client.config_set("requirepass", "right-password")
    try:
        said = _ends(
            deployment.start(
                command, CELERY_BROKER_URL=deployment.environ["CELERY_BROKER_URL"].replace("//", "//:wrong-password@")
            )
        )
    finally:
        deployment.redis.client.execute_command("AUTH", "right-password")
        deployment.redis.client.config_set("requirepass", "")
    assert "refuses us" in said
    assert "wrong-password" not in said


def test_with_a_broker_serve_only_serves_and_says_so(deployment: Deployment) -> None:
    deployment.follow(1)
    serving = deployment.start("serve", "--port", "0")
    assert "catchment listens on" in serving.stdout.readline()
    serving.signal(signal.SIGTERM)
    assert serving.code(WAIT_SECONDS) == 0
    assert "this process only serves" in serving.stderr.read()
    assert (deployment.app.store.jobs.all(), deployment.visited()) == ([], 0)


def test_without_a_broker_worker_and_beat_say_what_to_set(deployment: Deployment) -> None:
    for command in ("worker", "beat"):
        assert "CELERY_BROKER_URL" in _ends(deployment.start(command, CELERY_BROKER_URL=""))
    with pytest.raises(CatchmentError, match="some of"):
        deployment.settings(CELERY_QUEUE_NAMES="crawler_queue,other")


def test_the_program_celery_works_as_the_specification_uses_it(deployment: Deployment) -> None:
    (source,) = deployment.follow(1)
    beat = deployment.start_celery("beat", "--loglevel", "warning")
    worker = deployment.start_celery("worker", "--loglevel", "warning", "--concurrency", "1")
    until(lambda: deployment.visited() == 1)

    def is_listed() -> bool:
        """Workers have a second to answer."""
        listed = deployment.start_celery("inspect", "registered").stdout.read()
        return all(name in listed for name in ("tasks.crawler.crawl_community", "tasks.metrics.generate_daily"))

    until(is_listed)
    name = deployment.site.feed("f0").url
    call = deployment.start_celery("call", "tasks.crawler.crawl_community", f'--args=["{name}"]')
    task_id = call.stdout.read().strip()
    with closing(deployment.celery()) as celery:
        assert celery.AsyncResult(task_id).get(timeout=300)["new_posts"] == 0
        # The same from Python.
        assert celery.tasks["tasks.crawler.crawl_community"].delay(name).get(timeout=300)["new_posts"] == 0
        refreshed = celery.tasks["tasks.crawler.crawl_seed_communities"].delay(force_refresh=True).get(timeout=300)
        assert refreshed["communities"] == 0
    assert deployment.app.store.sources.with_progress(source)[1].poll_count == 3
    for process in (worker, beat):
        process.signal(signal.SIGTERM)
        assert process.code(WAIT_SECONDS) == 0
    # Another beat may lead at once.
    assert deployment.app.store.leadership.leader() is None


def test_the_settings_of_workers_say_how_many_children_take_which_tasks_and_where_results_are(
    deployment: Deployment,
) -> None:
    deployment.start("worker", CELERY_WORKER_COUNT="2", CELERY_QUEUE_NAMES="crawler_queue,cleanup_queue")
    until(lambda: len(deployment.children()) == 2)
    assert {child.work for child in deployment.children()} == {"worker crawler,cleanup"}
    task = "tasks.maintenance.cleanup_expired_posts_hot"
    elsewhere = f"redis://127.0.0.1:{deployment.redis.port}/5"
    for backend, number in ((None, 2), (elsewhere, 5)):
        settings = {"CELERY_RESULT_BACKEND": backend} if backend else {}
        if backend:
            # Where a result is put is the worker's setting, where it is looked for the caller's.
            deployment.start("worker", "--concurrency", "1", "--queues", "cleanup_queue", **settings)
            deployment.processes[0].signal(signal.SIGTERM)
            assert deployment.processes[0].code(WAIT_SECONDS) == 0
        with closing(make_celery(deployment.settings(**settings))) as celery:
            result = celery.send_task(task)
            assert result.get(timeout=300)["ran"] is True
        with redis.Redis(port=deployment.redis.port, db=number) as client:
            assert client.exists(f"celery-task-meta-{result.id}")


def test_only_json_is_accepted(deployment: Deployment) -> None:
    with closing(deployment.celery()) as celery:
        assert (celery.conf.accept_content, celery.conf.task_serializer) == (["json"], "json")
        celery.send_task("catchment.index-items", queue="crawler_queue", serializer="pickle")
    worker = deployment.worker(1)
    while "ContentDisallowed" not in (line := worker.stderr.readline()):
        assert line
    assert deployment.ask("tasks.metrics.generate_daily") == {"job": "daily-metrics", "ran": True}
