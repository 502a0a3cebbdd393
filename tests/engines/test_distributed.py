"""The distributed engine on real Celery, Redis and PostgreSQL: nothing lost, nothing twice, whoever is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import redis

from catchment.collect.tasks import request_task
from catchment.engines.distributed.child import KILL_SECONDS, Child
from catchment.engines.distributed.limits import VISIBILITY_SECONDS
from catchment.engines.distributed.tasks import make_celery
from catchment.errors import CatchmentError
from catchment.jobs import JOBS
from catchment.settings import read_settings
from catchment.store.version import BASELINE, HEAD, mismatch
from tests.engines.deployment import Deployment, until
from tests.engines.names import job_table
from tests.forked import Forked

FEEDS, ENTRIES = 100, 50


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
    succeeded = "SELECT source_id, count(*) FROM run_sources WHERE outcome = 'succeeded' GROUP BY source_id"
    assert dict(deployment.rows(succeeded)) == dict.fromkeys(ids, 1)


def test_a_stop_lets_visits_finish_children_included_and_a_hanging_one_is_cut_without_blame(
    deployment: Deployment,
) -> None:
    (hanging, quick) = deployment.follow(2)
    feed = deployment.site.feed("f0")
    feed.hold()
    deployment.beat()
    worker = deployment.worker(1, CATCHMENT_STOP_SECONDS="3")
    until(lambda: feed.requests and deployment.visited() == 1)
    (child,) = deployment.children()
    began = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.code(60) == 1
    assert time.monotonic() - began >= 3
    assert not psutil.pid_exists(child.pid)
    _, progress = deployment.app.store.sources.with_progress(hanging)
    assert (progress.failures_in_a_row, progress.last_success_at) == (0, None)
    assert deployment.app.store.sources.holder(hanging) is None
    assert deployment.app.store.sources.with_progress(quick)[1].last_success_at is not None


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
    assert worker.code(60) == 1
    until(lambda: not psutil.pid_exists(child.pid))
    assert "did not end in time" in worker.stderr.read()
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
                assert app.stop.wait(60)
                assert app.cut.wait(60)
    child = Child(deployment.settings())
    with closing(child), child.working() as app:
        # The next task has its own time.
        assert not app.stop.is_set()


def test_a_task_that_does_not_listen_is_killed_before_its_message_is_handed_out_again(deployment: Deployment) -> None:
    with closing(deployment.celery()) as celery:
        assert celery.conf.task_time_limit == 300
        assert celery.conf.task_time_limit < VISIBILITY_SECONDS
        assert celery.conf.broker_transport_options["visibility_timeout"] == VISIBILITY_SECONDS


def test_a_worker_with_nothing_to_do_stops_at_once_and_cleanly_and_a_beat_too(deployment: Deployment) -> None:
    beat, worker = deployment.beat(), deployment.worker(2)
    for process in (worker, beat):
        process.signal(signal.SIGTERM)
        assert process.code(60) == 0
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
    deployment.redis.client.select(1)
    deployment.redis.client.lpush("crawler_queue", b"this is no message")
    deployment.redis.client.select(0)
    deployment.worker(2)
    until(lambda: deployment.visited() == 3)
    visits = "SELECT count(*) FROM run_sources"
    assert deployment.number(visits) == 3
    # A job that is not due is not run by a hint.
    assert deployment.ask("tasks.metrics.generate_daily") == {"job": "daily-metrics", "ran": True}
    hinted = deployment.ask("tasks.metrics.generate_daily", headers={"catchment_job": "daily-metrics"})
    assert hinted == {"job": "daily-metrics", "ran": False}


def test_a_second_beat_takes_over_within_a_minute(deployment: Deployment) -> None:
    first = deployment.beat()
    until(lambda: deployment.app.store.leadership.leader())
    deployment.beat()
    leader = deployment.app.store.leadership.leader()
    assert leader is not None
    assert leader.pid == first.pid
    first.kill()
    began = time.monotonic()
    until(lambda: (now := deployment.app.store.leadership.leader()) is not None and now.pid != first.pid)
    assert time.monotonic() - began < 60


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


@pytest.mark.parametrize("command", ["worker", "beat"])
@pytest.mark.parametrize("version", [BASELINE if BASELINE < HEAD else "0001", "9999"])
def test_a_database_of_an_older_or_newer_version_is_refused_with_what_helps(
    deployment: Deployment, command: str, version: str
) -> None:
    deployment.app.store.database.write(lambda tx: tx.run("UPDATE alembic_version SET version_num = ?", version))
    said = _ends(deployment.start(command))
    helps = mismatch(version)
    assert helps is not None
    assert helps.helps in said


def _ends(process: Forked) -> str:
    assert process.code(60) not in (0, None)
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
    assert "wrong-password" not in said.replace("'wrong-password'", "")


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
    assert serving.code(60) == 0
    assert "this process only serves" in serving.stderr.read()
    assert (deployment.app.store.jobs.all(), deployment.visited()) == ([], 0)


def test_without_a_broker_worker_and_beat_say_what_to_set(deployment: Deployment) -> None:
    for command in ("worker", "beat"):
        assert "CELERY_BROKER_URL" in _ends(deployment.start(command, CELERY_BROKER_URL=""))
    with pytest.raises(CatchmentError, match="some of"):
        deployment.settings(CELERY_QUEUE_NAMES="crawler_queue,other")


def test_the_program_celery_works_as_the_specification_uses_it(deployment: Deployment) -> None:
    (source,) = deployment.follow(1)
    deployment.start_celery("beat", "--loglevel", "warning")
    worker = deployment.start_celery("worker", "--loglevel", "warning", "--concurrency", "1")
    until(lambda: deployment.visited() == 1)
    inspect = deployment.start_celery("inspect", "registered", "--timeout", "60")
    listed = inspect.stdout.read()
    assert all(name in listed for name in ("tasks.crawler.crawl_community", "tasks.metrics.generate_daily"))
    name = deployment.site.feed("f0").url
    call = deployment.start_celery("call", "tasks.crawler.crawl_community", f'--args=["{name}"]')
    task_id = call.stdout.read().strip()
    with closing(deployment.celery()) as celery:
        assert celery.AsyncResult(task_id).get(timeout=300)["new_posts"] == 0
    assert deployment.app.store.sources.with_progress(source)[1].poll_count == 2
    worker.signal(signal.SIGTERM)
    assert worker.code(60) == 0


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
            assert deployment.processes[0].code(60) == 0
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
