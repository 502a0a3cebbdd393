"""What is seen of the distributed engine: who works, what waits, and what is missing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.cli.main import run
from catchment.doctor import examine
from catchment.engines.distributed.beat import Beat
from catchment.engines.distributed.beat_watch import BeatWatch, watched_beat
from catchment.engines.distributed.tasks import make_celery
from catchment.jobs import JOBS, run_if_due
from catchment.model import Severity
from catchment.redis import RedisLink
from catchment.status import DeploymentStatus
from tests.redis_server import RedisServer
from tests.town import TownApp
from tests.web.desk import Desk

MONITORS = sum(job.queue == "monitoring" for job in JOBS)
QUEUES = ("crawler", "maintenance", "analysis", "monitoring", "cleanup")


@pytest.fixture
def town(tmp_path: Path, redis_server: RedisServer) -> Iterator[TownApp]:
    url = f"redis://127.0.0.1:{redis_server.port}/1"
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}", broker_url=url)
    yield here
    here.close()


def beat_of(town: TownApp) -> Beat:
    return Beat(town.another("beat"), make_celery(town.settings))


def test_status_health_metrics_and_the_overview_show_who_works_and_what_waits(
    town: TownApp, redis_server: RedisServer
) -> None:
    desk = Desk(town, collects=False)
    assert desk.client.get("/health").json()["engine"] == {
        "ok": False,
        "is_broker_available": True,
        "has_beat": False,
        "workers": 0,
        "unconsumed": ["analysis_queue", "maintenance_queue", "cleanup_queue", "crawler_queue", "monitoring_queue"],
    }
    assert desk.stranger.get("/health").status_code == 503
    worker = town.another("worker " + ",".join(QUEUES))
    beat = beat_of(town)
    beat.tick()
    beat.tick()
    assert (worker.presence.owner_id > 0, beat.is_leading) == (True, True)
    view = DeploymentStatus(town.app).engine
    assert view is not None
    assert view.beat is not None
    assert (view.is_working, view.beat.work, len(view.workers)) == (True, "beat", 1)
    waiting = {queue.name: queue.waiting for queue in view.queues}
    # Nothing is due, so nobody is told to collect; the other jobs were hinted at once each.
    assert waiting["monitoring_queue"] == MONITORS
    assert desk.client.get("/health").json()["engine"]["ok"] is True
    metrics = desk.client.get("/metrics").text
    assert f'catchment_queue_messages{{queue="monitoring_queue"}} {MONITORS}.0' in metrics
    assert "catchment_beat_alive 1.0" in metrics
    town.follow(town.town.feed("https://a.example/feed"))
    page = desk.browser().get("/").text
    assert "monitoring_queue" in page
    assert "last heartbeat" in page
    for app in (worker, beat._app):
        app.close()


def test_the_command_status_shows_who_works_where_since_when_and_what_waits(
    town: TownApp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CATCHMENT_HOME", str(town.settings.home))
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", town.settings.database_url)
    monkeypatch.setenv("CELERY_BROKER_URL", town.settings.broker_url or "")
    # By the machine's time, as the command has it.
    town.clock.advance((datetime.now(UTC) - town.clock.now()).total_seconds())
    assert re.search("Beat +not running, or not responding", said(capsys, "status"))
    worker, beat = town.another("worker crawler"), beat_of(town)
    worker.presence
    beat.tick()
    text = said(capsys, "status")
    process = rf"process {os.getpid()} on {os.uname().nodename}, started .*, last heartbeat .*"
    assert re.search(rf"Beat +{process}", text)
    assert re.search(rf"Worker +{process}", text)
    assert re.search(rf"Queue +monitoring_queue: {MONITORS} waiting, 0 worker processes", text)
    assert re.search(r"Queue +crawler_queue: \d+ waiting, 1 worker process\b", text)
    engine = json.loads(said(capsys, "status", "--json"))["engine"]
    assert engine["is_broker_available"] is True
    assert engine["beat"].keys() >= {"pid", "machine", "started_at", "heartbeat_at"}
    assert [worker["work"] for worker in engine["workers"]] == ["worker crawler"]
    assert {queue["name"]: queue["waiting"] for queue in engine["queues"]}["monitoring_queue"] == MONITORS
    for app in (worker, beat._app):
        app.close()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(arguments) == 0
    return capsys.readouterr().out


def test_without_a_beat_a_child_and_a_server_open_an_alert_which_a_beat_closes(town: TownApp) -> None:
    def open_alerts() -> list[str]:
        return [alert.subject for alert in town.app.store.alerts.open()]

    watch = BeatWatch(seconds=0)
    watch.look(town.app)
    assert open_alerts() == ["beat missing"]
    beat = beat_of(town)
    beat.tick()
    assert open_alerts() == []
    watch.look(town.app)
    assert open_alerts() == []
    # It leads on, but its heartbeat does not move any more.
    assert beat.is_leading
    watch.look(town.app)
    assert open_alerts() == ["beat missing"]
    town.clock.advance(20)
    beat._heartbeat_at = 0.0
    beat.tick()
    assert open_alerts() == []
    with watched_beat(town.app, every=0.01):
        watch.look(town.app)
    beat._app.close()


def test_a_queue_that_no_worker_consumes_opens_an_alert_until_one_does(town: TownApp) -> None:
    def unconsumed() -> list[str]:
        beat._heartbeat_at = 0.0
        beat.tick()
        return sorted(alert.subject for alert in town.app.store.alerts.open() if alert.subject.endswith("unconsumed"))

    worker = town.another("worker " + ",".join(QUEUES[1:]))
    worker.presence
    beat = Beat(town.another("beat"), make_celery(town.settings), missing_seconds=0)
    # It may be starting.
    assert unconsumed() == []
    assert unconsumed() == ["queue crawler_queue unconsumed"]
    (alert,) = town.app.store.alerts.open()
    assert alert.severity == Severity.P1
    other = town.another("worker crawler")
    other.presence
    assert unconsumed() == []
    for app in (worker, other, beat._app):
        app.close()


def test_a_missing_beat_a_missing_worker_and_a_missing_broker_open_alerts_that_close(town: TownApp) -> None:
    town.follow(town.town.feed("https://a.example/feed"))
    monitors = town.app.monitors()
    monitors.beat(is_missing=True)
    monitors.queues({"crawler_queue": ["collect-due"]})
    monitors.broker("ConnectionError: refused")
    severities = {alert.subject: alert.severity for alert in town.app.store.alerts.open()}
    assert severities == {
        "beat missing": Severity.P0,
        "queue crawler_queue unconsumed": Severity.P1,
        "broker away": Severity.P1,
    }
    page = Desk(town, collects=False).browser().get("/").text
    assert "No beat is running" in page
    assert "crawler_queue" in page
    monitors.beat(is_missing=False)
    monitors.queues({})
    monitors.broker(None)
    assert town.app.store.alerts.open() == []


def test_a_queue_is_never_filled_further_and_a_lost_hint_is_repeated(town: TownApp, redis_server: RedisServer) -> None:
    beat, client = beat_of(town), town.app.broker
    assert client is not None
    beat.tick()
    beat.tick()
    first = client.ask(lambda redis: redis.llen("maintenance_queue"))
    assert first == 3
    beat.tick()
    assert client.ask(lambda redis: redis.llen("maintenance_queue")) == first
    client.ask(lambda redis: [redis.delete("maintenance_queue"), redis.rpush("monitoring_queue", *["x"] * 200)])
    # As if the time for a repetition had come.
    beat._hinted_at.clear()
    beat.tick()
    assert client.ask(lambda redis: redis.llen("maintenance_queue")) == first
    assert client.ask(lambda redis: redis.llen("monitoring_queue")) == MONITORS + 200
    beat._app.close()


def test_periods_that_were_missed_while_nobody_led_run_once(town: TownApp) -> None:
    job = next(job for job in JOBS if job.name == "plan-budgets")
    first, worker, broker = beat_of(town), town.another("worker monitoring"), town.app.broker
    assert broker is not None

    def told(beat: Beat) -> int:
        """How many messages about the job wait after the beat has looked twice."""
        beat._hinted_at.clear()
        beat.tick()
        beat.tick()
        waiting = broker.ask(lambda redis: redis.lrange("monitoring_queue", 0, -1))
        broker.ask(lambda redis: redis.delete("monitoring_queue"))
        return sum(job.task_name.encode() in message for message in waiting)

    assert told(first) == 1
    assert run_if_due(worker, job)
    assert told(first) == 0
    first.leave()
    first._app.close()
    # Ten of its periods.
    town.clock.advance(10 * 3600)
    second = beat_of(town)
    assert told(second) == 1
    assert [run_if_due(worker, job) for _ in range(3)] == [True, False, False]
    assert told(second) == 0
    for app in (worker, second._app):
        app.close()


def test_a_full_redis_keeps_no_beat_from_trying_again(town: TownApp, redis_server: RedisServer) -> None:
    beat, client = beat_of(town), redis_server.client
    client.config_set("maxmemory", "1")
    try:
        beat.tick()
        beat.tick()
        assert beat.is_leading
    finally:
        client.config_set("maxmemory", "0")
    assert town.app.broker is not None
    assert town.app.broker.ask(lambda redis: redis.llen("maintenance_queue")) == 0
    # As if the time for a repetition had come.
    beat._hinted_at.clear()
    beat.tick()
    assert town.app.broker.ask(lambda redis: redis.llen("maintenance_queue")) == 3
    beat._app.close()


def test_as_many_collectors_are_told_as_there_is_work_and_no_more_than_there_are(town: TownApp) -> None:
    for number in range(30):
        town.follow(town.town.feed(f"https://{number}.example/feed"))
    workers = [town.another("worker crawler") for _ in range(2)]
    for worker in workers:
        worker.presence
    beat, broker = beat_of(town), town.app.broker
    assert broker is not None

    def told() -> int:
        beat.tick()
        found: int = broker.ask(
            lambda redis: sum(b"catchment.collect-due" in message for message in redis.lrange("crawler_queue", 0, -1))
        )
        return found

    assert told() == 2
    town.clock.advance(61)
    # They are still waiting: no more are sent.
    assert told() == 2
    for app in (*workers, beat._app):
        app.close()


def test_a_job_has_one_hint_however_long_its_workers_are_busy_and_collectors_do_not_wait_behind_others(
    town: TownApp,
) -> None:
    worker, beat, broker = town.another("worker crawler"), beat_of(town), town.app.broker
    assert broker is not None
    worker.presence
    beat.tick()
    jobs = sorted(waiting_jobs(broker))
    assert len(jobs) == len({*jobs}) > 20
    for _ in range(3):
        # As if the time for a repetition had come.
        beat._hinted_at.clear()
        beat.tick()
    assert sorted(waiting_jobs(broker)) == jobs
    town.follow(town.town.feed("https://a.example/feed"))
    town.clock.advance(61)
    beat.tick()
    assert sorted(waiting_jobs(broker)) == sorted([*jobs, "collect-due"])
    for app in (worker, beat._app):
        app.close()


def waiting_jobs(broker: RedisLink) -> list[str]:
    """The jobs of all hints that wait."""
    return [
        json.loads(message)["headers"]["catchment_job"]
        for queue in QUEUES
        for message in broker.ask(lambda client, queue=queue: client.lrange(f"{queue}_queue", 0, -1))  # type: ignore[misc]
    ]


def test_the_doctor_adds_up_the_connections(town: TownApp, tmp_path: Path, postgres_url: str) -> None:
    from catchment.settings import Settings

    settings = Settings(
        home=tmp_path / "other", database_url=postgres_url, broker_url=town.settings.broker_url, worker_count=16
    )
    (check,) = [check for check in examine(settings) if check.about == "connections"]
    assert check.verdict == "fine"
    assert "a worker uses up to 64 (16 children), a server 18, beat 3: 85 with one of each" in check.what
    crowded = Settings(
        home=tmp_path / "other", database_url=postgres_url, broker_url=town.settings.broker_url, worker_count=64
    )
    (check,) = [check for check in examine(crowded) if check.about == "connections"]
    assert check.verdict == "wrong"
