"""A task whose runner is killed ends completed; two posts at once from several processes are one task."""

from __future__ import annotations

import random
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.app import open_app
from catchment.collect.tasks import request_task
from tests.forked import Forked
from tests.kill.oracle import Oracle
from tests.kill.task_process import THREADS, post_at_once, run_tasks, settings_of

pytestmark = pytest.mark.process

FEEDS, KILLS = 25, 20


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    made = Oracle(FEEDS, seed=3, fault_rate=0.0)
    yield made
    made.close()


def test_a_task_whose_runner_is_killed_twenty_times_ends_completed_and_stores_nothing_twice(
    oracle: Oracle, tmp_path: Path, database_url: str
) -> None:
    home, chance = str(tmp_path / "home"), random.Random(5)
    names = [oracle.url(number) for number in range(FEEDS)]
    with open_app(settings_of(home, database_url), "test") as app:
        task_id = request_task(app.store, app.platforms, "rss", names, 100, app.clock.now()).task_id
    kills = 0
    while kills < KILLS:
        bell = oracle.ring_after(1 + chance.randrange(2))
        runner = Forked(run_tasks, home, database_url)
        try:
            # Its output ends when it does: then it was faster than the bell.
            rung, _, _ = select.select([bell, runner.stdout], [], [])
            if bell not in rung:
                break
            runner.kill()
            kills += 1
        finally:
            runner.close()
    last = Forked(run_tasks, home, database_url)
    assert last.code() == 0, last.stderr.read()
    last.close()
    with open_app(settings_of(home, database_url), "judge") as app:
        task = app.store.tasks.get(task_id)
        assert (task.state, task.done, task.error) == ("completed", FEEDS, None)
        # Every item of a target was new once, over all runs together.
        stored = {
            target.source_id: app.store.items.newest(1_000, source_id=target.source_id) for target in task.targets
        }
        assert [target.new for target in task.targets] == [len(items) for items in stored.values()]
        assert all(len({item.external_id for item in items}) == len(items) for items in stored.values())
        # Who was done was not asked again: each kill cuts off two at most, and each of those is asked once more.
        assert oracle.requests <= FEEDS + 2 * kills
    assert kills >= 5, "it is done before it can be killed"


@pytest.mark.parametrize("key", ["the same", ""], ids=["one key", "many keys"])
def test_posts_at_once_from_twenty_threads_in_two_processes_make_one_task(
    oracle: Oracle, tmp_path: Path, database_url: str, key: str
) -> None:
    home = str(tmp_path / "home")
    open_app(settings_of(home, database_url), "test").close()
    clients = [Forked(post_at_once, home, database_url, oracle.url(0), key) for _ in range(2)]
    for client in clients:
        assert client.stdout.readline() == "ready\n"
    for client in clients:
        client.stdin.write("go\n")
        client.stdin.flush()
    answers = [line.split() for client in clients for line in client.stdout.read().splitlines()]
    for client in clients:
        client.close()
    assert len(answers) == 2 * THREADS
    assert len({task_id for _, task_id in answers}) == 1
    assert sum(word == "accepted" for word, _ in answers) == (2 * THREADS if key else 1)
