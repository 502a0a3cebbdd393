"""What each part of a distributed deployment does while another one is down, or misbehaves. docs/scaling.md has the
table."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from catchment.clock import micros
from catchment.status import DeploymentStatus
from tests.engines.deployment import WAIT_SECONDS, Deployment, until
from tests.forked import Forked
from tests.redis_server import RedisServer


@pytest.fixture
def brittle(tmp_path: Path, postgres_url: str, own_redis: RedisServer) -> Iterator[Deployment]:
    """A deployment whose Redis may be stopped."""
    made = Deployment(tmp_path, postgres_url, own_redis)
    with made.site:
        yield made
        made.close()


def due_again(deployment: Deployment) -> None:
    """Make all sources due, once nobody visits one of them: the end of a visit says when a source is due next."""
    until(lambda: held(deployment) == 0)
    now = micros(deployment.app.clock.now())
    deployment.app.store.database.write(lambda tx: tx.run("UPDATE progress SET next_due_at = ?", now))


def held(deployment: Deployment) -> int:
    return deployment.number("SELECT count(*) FROM leases WHERE resource = 'source' AND owner_id IS NOT NULL")


def visits(deployment: Deployment) -> int:
    return deployment.number("SELECT count(*) FROM run_sources WHERE outcome IN ('succeeded', 'unchanged')")


def test_work_goes_on_when_redis_comes_back_empty(brittle: Deployment) -> None:
    brittle.follow(5)
    brittle.beat()
    brittle.worker(1)
    until(lambda: brittle.visited() == 5)
    # Emptied while in use.
    brittle.redis.client.flushall()
    due_again(brittle)
    until(lambda: visits(brittle) >= 10)
    # Gone, and back without anything in it.
    brittle.redis.stop()
    until(lambda: "broker away" in brittle.alerts())
    due_again(brittle)
    brittle.redis.start()
    until(lambda: visits(brittle) >= 15)
    until(lambda: "broker away" not in brittle.alerts())


def test_a_hint_that_is_lost_is_sent_again(deployment: Deployment) -> None:
    deployment.beat()
    with deployment.broker() as client:
        until(lambda: client.llen("maintenance_queue"))
        # Nobody took them.
        client.delete("maintenance_queue")
        until(lambda: client.llen("maintenance_queue"))
    deployment.worker(1)
    until(lambda: deployment.number("SELECT run_count FROM jobs WHERE name = 'index-items'"))


def test_a_broker_that_is_not_there_yet_is_waited_for(brittle: Deployment) -> None:
    brittle.follow(2)
    brittle.redis.stop()
    beat, worker = brittle.beat(), brittle.worker(1)
    brittle.redis.start()
    until(lambda: brittle.visited() == 2)
    for process in (worker, beat):
        process.signal(signal.SIGTERM)
        assert process.code(WAIT_SECONDS) == 0


def test_a_full_redis_ends_nobody_and_work_goes_on_when_it_has_room_again(brittle: Deployment) -> None:
    brittle.follow(3)
    feed = brittle.site.feed("f0")
    feed.hold()
    beat, worker = brittle.beat(CRAWLER_BATCH_SIZE="2"), brittle.worker(1, CRAWLER_BATCH_SIZE="2")
    until(lambda: feed.requests)
    brittle.redis.client.config_set("maxmemory", "1")
    # The work is finished; the third source is left to a message that nobody can send.
    feed.release()
    wait_for_line(worker, "no follow-up was sent")
    wait_for_line(worker, "the message broker refuses this worker")
    wait_for_line(beat, "the message broker does not accept hints")
    assert brittle.visited() == 2
    brittle.redis.client.config_set("maxmemory", "0")
    wait_for_line(beat, "the message broker accepts hints again")
    wait_for_line(worker, "the message broker accepts this worker again")
    until(lambda: brittle.visited() == 3)
    assert visits(brittle) == 3
    for process in (worker, beat):
        process.signal(signal.SIGTERM)
        assert process.code(WAIT_SECONDS) == 0


def wait_for_line(process: Forked, words: str) -> None:
    """Read what it logs until there is a line with these words."""
    while words not in (line := process.stderr.readline()):
        assert line, f"it ended without: {words}"


def test_a_worker_outlasts_a_redis_that_dies_while_it_waits_and_a_message_is_unanswered(brittle: Deployment) -> None:
    """Celery closes the connection twice then, the second time with nothing left to connect with."""
    celery, messages = brittle.celery(), []
    celery.send_task("catchment.collect-due", queue="crawler_queue")
    with celery.connection_for_read() as connection:
        for queue, channel in (("crawler_queue", connection.default_channel), ("cleanup_queue", connection.channel())):
            # The worker listens to the tasks on one channel, and to commands on another.
            connection.Consumer(celery.amqp.queues[queue], channel=channel, on_message=messages.append).consume()
        while not messages:
            connection.drain_events(timeout=WAIT_SECONDS)
        with pytest.raises(TimeoutError):
            # Now it waits for the next one.
            connection.drain_events(timeout=0.1)
        brittle.redis.stop()
        connection.collect(socket_timeout=1)
        connection.close()


def test_a_database_that_goes_away_under_load_and_comes_back_costs_nothing_but_a_repetition(
    deployment: Deployment,
) -> None:
    """As in a restart of PostgreSQL, which other tests of this run share: all sessions end, and for a while nobody can
    connect. Visits that it cut are tried again after some minutes; a minute of the deployment takes a second."""
    url, clock = deployment.environ["CATCHMENT_DATABASE_URL"], {"CATCHMENT_CLOCK": "2026-06-01T00:00:00+00:00,60"}
    quick = Deployment(deployment.folder / "quick", url, deployment.redis, **clock)
    with quick.site:
        quick.follow(40, posts=10)
        feed = quick.site.feed("f20")
        feed.hold()
        beat, worker = quick.beat(), quick.worker(2)
        until(lambda: quick.visited() >= 5 and feed.requests)
        with refusing_connections(url):
            feed.release()
            for process in (worker, beat):
                wait_for_line(process, "the database cannot be reached")
        until(lambda: quick.visited() == 40)
        assert quick.app.store.items.count() == 400
        assert quick.number("SELECT count(*) FROM revisions") == 0
        until(lambda: held(quick) == 0)
        # All are registered again.
        until(lambda: len(quick.living()) >= 3)
        quick.close()


def test_processes_with_nothing_to_do_register_again_when_the_database_is_back(deployment: Deployment) -> None:
    url, clock = deployment.environ["CATCHMENT_DATABASE_URL"], {"CATCHMENT_CLOCK": "2026-06-01T00:00:00+00:00,60"}
    quick = Deployment(deployment.folder / "quick", url, deployment.redis, **clock)
    with quick.site:
        beat, worker = quick.beat(), quick.worker(1)
        registered = {process.pid for process in quick.living()}
        assert len(registered) == 2
        with refusing_connections(url):
            for process in (worker, beat):
                wait_for_line(process, "the database cannot be reached")
        until(lambda: {process.pid for process in quick.living()} == registered)
        quick.close()


@contextmanager
def refusing_connections(url: str) -> Iterator[None]:
    """PostgreSQL ends all sessions of this database, and refuses new ones."""
    name = url.split("?")[0].rsplit("/", 1)[1]
    with psycopg.connect(url.replace("+psycopg", "").replace(f"/{name}", "/postgres"), autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false'.encode())
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true'.encode())


def test_a_child_that_was_stopped_and_wakes_up_after_others_took_over_writes_nothing(deployment: Deployment) -> None:
    """On another machine, as far as the others can tell; a minute of the deployment takes a second."""
    clock = {"CATCHMENT_CLOCK": "2026-06-01T00:00:00+00:00,60"}
    slow = Deployment(
        deployment.folder / "slow", deployment.environ["CATCHMENT_DATABASE_URL"], deployment.redis, **clock
    )
    with slow.site:
        (source,) = slow.follow(1)
        feed = slow.site.feed("f0")
        feed.hold()
        beat = slow.beat()
        slow.worker(1)
        until(lambda: feed.requests == 1)
        holder = until(lambda: slow.app.store.sources.holder(source))
        os.kill(holder.pid, signal.SIGSTOP)
        slow.app.store.database.write(
            lambda tx: tx.run("UPDATE owners SET machine = 'elsewhere' WHERE pid = ?", holder.pid)
        )
        slow.worker(1)
        # The others watch its heartbeat for 90 seconds, then visit the source themselves.
        until(lambda: feed.requests == 2)
        feed.post("f0-1", text="from the successor")
        feed.release()
        until(lambda: slow.visited() == 1)
        items = slow.rows("SELECT external_id, version FROM items ORDER BY id")
        # Without a beat, no other message is unanswered when the woken child has tried to write and answers its own.
        beat.signal(signal.SIGTERM)
        assert beat.code(WAIT_SECONDS) == 0
        with slow.broker() as client:
            until(lambda: client.hlen("unacked") == 1)
        os.kill(holder.pid, signal.SIGCONT)
        until(slow.is_all_answered)
        until(lambda: slow.number("SELECT count(*) FROM owners WHERE work LIKE 'worker%'") == 2)
        until(lambda: held(slow) == 0)
        assert slow.rows("SELECT external_id, version FROM items ORDER BY id") == items
        assert slow.number("SELECT count(*) FROM run_sources WHERE outcome = 'succeeded'") == 1
        slow.close()


def test_a_worker_whose_clock_is_ahead_or_behind_works_as_the_others_do(deployment: Deployment) -> None:
    ids = deployment.follow(6)
    beat = deployment.beat()
    for seconds in (90, -90):
        # A home of its own, as on another machine: it has its own clock there.
        home = deployment.folder / f"home {seconds}"
        home.mkdir()
        start = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() + seconds))
        worker = deployment.worker(1, CATCHMENT_CLOCK=f"{start},1", CATCHMENT_HOME=str(home))
        before = visits(deployment)
        due_again(deployment)
        # The clock that is behind finds them due 90 seconds later: ask for one by name.
        name = deployment.site.feed("f0").url
        assert deployment.ask("tasks.crawler.crawl_community", [name])["community"]
        if seconds > 0:
            until(lambda before=before: visits(deployment) >= before + len(ids))  # type: ignore[misc]
        worker.signal(signal.SIGTERM)
        assert worker.code(WAIT_SECONDS) == 0
    leader = deployment.app.store.leadership.leader()
    assert leader is not None
    assert leader.pid == beat.pid


def test_a_beat_that_hangs_is_replaced_and_stands_down_when_it_wakes(deployment: Deployment) -> None:
    first = deployment.beat()
    until(lambda: deployment.app.store.leadership.leader())
    assert deployment.start("alive", "beat").code(WAIT_SECONDS) == 0
    first.signal(signal.SIGSTOP)
    # As after two minutes. Nobody stands by: the health check and the status say so.
    two_minutes_ago = micros(deployment.app.clock.now()) - 120_000_000
    deployment.app.store.database.write(
        lambda tx: tx.run("UPDATE owners SET heartbeat_at = ? WHERE pid = ?", two_minutes_ago, first.pid)
    )
    assert deployment.start("alive", "beat").code(WAIT_SECONDS) == 1
    health = DeploymentStatus(deployment.app).health()
    assert health.engine is not None
    assert (health.ok, health.engine.has_beat) == (False, False)
    second = deployment.beat()
    until(lambda: (leader := deployment.app.store.leadership.leader()) is not None and leader.pid == second.pid)
    first.signal(signal.SIGCONT)
    wait_for_line(first, "another beat has taken over")
    leader = deployment.app.store.leadership.leader()
    assert leader is not None
    assert leader.pid == second.pid
