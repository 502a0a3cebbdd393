"""A task whose runner is killed goes on where the stored pages end: no page that is stored is billed twice."""

from __future__ import annotations

import json
import os
import random
import select
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from catchment.app import App, open_app
from catchment.collect.tasks import request_task
from catchment.credentials.secret import Secret
from catchment.playground.faults import Fault, FaultPlan
from catchment.playground.log import bill_of, read_log
from catchment.playground.server import Playground
from catchment.playground.sites.x import fate, user_name
from catchment.policy.spending import Period
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.forked import Forked
from tests.playground.money_process import paced, run_task
from tests.x.scene import START, WORLD

pytestmark = [pytest.mark.process, pytest.mark.long]

KILLS, USERS, LIMIT = 20, 6, 60


class Bell(FaultPlan):
    """No fault at all; tells when so many requests have come."""

    def __init__(self) -> None:
        super().__init__()
        self.heard, self._rings = os.pipe()
        self._left = 0

    def ring_after(self, requests: int) -> int:
        while select.select([self.heard], [], [], 0)[0]:
            os.read(self.heard, 1)
        self._left = requests
        return self.heard

    def of(
        self, path: str, credential: str | None, request_number: int, at: datetime, host: str = "127.0.0.1"
    ) -> Fault | None:
        self._left -= 1
        if self._left == 0:
            os.write(self._rings, b"!")
        return None


@pytest.fixture
def bell() -> Iterator[Bell]:
    made = Bell()
    yield made
    os.close(made.heard)
    os.close(made._rings)


@pytest.fixture
def playground(bell: Bell, tmp_path: Path) -> Iterator[Playground]:
    with Playground(WORLD, HandClock(START + timedelta(days=1)), bell, log=tmp_path / "asked.jsonl") as made:
        yield made


@cache
def busiest() -> list[str]:
    """The users, those with the most posts on the first day first."""
    now = START + timedelta(days=1)
    shown = {
        user_name(WORLD, place, now): sum(
            post.shown_from <= now and not post.is_removed(now) for post in WORLD.posts(place)
        )
        for place in WORLD.places
        if fate(WORLD, place)[0] in ("usual", "renamed")
    }
    return sorted(shown, key=lambda name: -shown[name])


def stored_pages(app: App) -> Counter[tuple[str, str]]:
    """How often each page of each user is stored: by the user's number and the cursor."""
    rows = app.store.database.read(
        lambda tx: tx.all("SELECT request FROM raw_answers WHERE step = 'tweets' ORDER BY id")
    )
    params = [json.loads(request)["params"] for (request,) in rows]
    return Counter((asked["userId"], asked["cursor"]) for asked in params)


def asked_pages(log: Path) -> list[tuple[int, tuple[str, str]]]:
    """The pages that were asked for, each with the number of its request."""
    found = []
    for line in read_log(log):
        path, _, query = line.path.partition("?")
        if path.endswith("last_tweets"):
            params = dict(parse_qsl(query, keep_blank_values=True))
            found.append((line.number, (params["userId"], params.get("cursor", ""))))
    return found


def test_no_page_that_is_stored_is_paid_for_again_after_twenty_kills(
    bell: Bell, playground: Playground, tmp_path: Path, database_url: str
) -> None:
    home, log, chance = str(tmp_path / "home"), tmp_path / "asked.jsonl", random.Random(7)
    settings = paced(home, database_url, playground.url)
    tasks: list[str] = []
    snapshots: list[tuple[int, set[tuple[str, str]]]] = []
    with open_app(settings, "judge") as app:
        app.secrets.add("twitterapi_io", "key", Secret.parse("a-key"), app.clock.now(), terms=Terms(is_shared=True))
        while len(snapshots) < KILLS:
            if not tasks or app.store.tasks.get(tasks[-1]).finished_at is not None:
                names = busiest()[USERS * len(tasks) :][:USERS]
                task = request_task(app.store, app.platforms, "twitter_feed", names, LIMIT, app.clock.now())
                tasks.append(task.task_id)
            heard = bell.ring_after(1 + chance.randrange(10))
            runner = Forked(run_task, home, database_url, playground.url, tasks[-1])
            try:
                rung, _, _ = select.select([heard, runner.stdout], [], [])
                if heard in rung:
                    # Anywhere between one request and the next: while a page is read, cleaned or written.
                    time.sleep(chance.uniform(0, 0.04))
                    runner.kill()
                    stored = set(stored_pages(app))
                    # The log has a line before the client has the answer: later ones are later requests.
                    snapshots.append((max((number for number, _ in asked_pages(log)), default=0), stored))
            finally:
                runner.close()
        last = Forked(run_task, home, database_url, playground.url, tasks[-1])
        assert last.code() == 0, last.stderr.read()
        last.close()
        found = [app.store.tasks.get(task_id) for task_id in tasks]
        assert [(task.state, task.done, task.error) for task in found] == [("completed", USERS, None)] * len(tasks)
        targets = [target for task in found for target in task.targets]
        held = {target.source_id: app.store.items.newest(1_000, source_id=target.source_id) for target in targets}
        assert [target.new for target in targets] == [len(items) for items in held.values()]
        assert all(len({item.external_id for item in items}) == len(items) for items in held.values())
        # What was stored when a runner was killed was not asked for again, by whichever came after it.
        asked = asked_pages(log)
        assert any(stored for _, stored in snapshots)
        for number, stored in snapshots:
            assert [page for later, page in asked if later > number and page in stored] == []
        pages = stored_pages(app)
        assert set(pages.values()) == {1}
        assert {page for _, page in asked} >= set(pages)
        assert max(Counter(user for user, _ in pages).values()) > 1
        # By the playground's own bill: what was stored, and what the killed runners had asked for at that moment.
        bill = bill_of(read_log(log))
        total = app.store.spending.totals(["twitterapi_io"], "2026-03-03")["twitterapi_io"][Period.MONTH]
        assert total.reserved_amount == 0
        assert total.amount <= bill.amount <= total.amount + total.uncertain_amount


def test_a_task_that_is_stopped_in_the_middle_stays_pending_and_goes_on_below_the_stored_pages(
    playground: Playground, tmp_path: Path
) -> None:
    home, url = str(tmp_path / "home"), f"sqlite:///{tmp_path / 'catchment.db'}"
    settings = paced(home, url, playground.url)
    with open_app(settings, "test") as app:
        now = app.clock.now()
        app.secrets.add("twitterapi_io", "key", Secret.parse("a-key"), now, terms=Terms(is_shared=True))
        task_id = request_task(app.store, app.platforms, "twitter_feed", busiest()[:1], LIMIT, now).task_id

        asked = count(1)

        class Stopping(FaultPlan):
            def of(self, *_: object) -> None:
                """After the profile and the first page, while the second one is read, somebody stops it."""
                if next(asked) == 3:
                    app.stop.set()

        playground._site._faults = Stopping()
        app.task_runner().run()
        stopped = app.store.tasks.get(task_id)
        assert (stopped.state, stopped.done) == ("pending", 0)
        before = stored_pages(app)
        assert len(before) == 2
    with open_app(settings, "test") as app:
        app.task_runner().run()
        task = app.store.tasks.get(task_id)
        assert (task.state, task.done) == ("completed", 1)
        pages = stored_pages(app)
        assert set(pages.values()) == {1}
        assert len(pages) > len(before)
        bill = bill_of(read_log(tmp_path / "asked.jsonl"))
        assert bill.amount == 180 + 150 * task.targets[0].new
