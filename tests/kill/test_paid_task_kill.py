"""A task whose runner is killed goes on where the stored pages end: no page that is stored is billed twice."""

from __future__ import annotations

import json
import os
import random
import select
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from catchment.app import App, open_app
from catchment.collect.tasks import request_task
from catchment.credentials.secret import Secret
from catchment.playground.faults import Mood, Moods
from catchment.playground.log import bill_of, read_log
from catchment.playground.server import Playground
from catchment.playground.sites.x import user_name
from catchment.policy.spending import Period
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.forked import Forked
from tests.playground.money_process import paced, run_task
from tests.x.scene import START, WORLD

pytestmark = [pytest.mark.process, pytest.mark.long]

KILLS, USERS, LIMIT = 20, 12, 60


class Bell(Moods):
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
    ) -> Mood | None:
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


def busiest() -> list[str]:
    """The users with the most posts on the first day."""
    now = START + timedelta(days=1)
    shown = {
        user_name(WORLD, place, now): sum(
            post.shown_from <= now and not post.is_removed(now) for post in WORLD.posts(place)
        )
        for place in WORLD.places
    }
    return sorted(shown, key=lambda name: -shown[name])[:USERS]


def stored_pages(app: App) -> Counter[tuple[int, str]]:
    """How often each page of each user is stored."""
    rows = app.store.database.read(
        lambda tx: tx.all("SELECT source_id, request FROM raw_answers WHERE step = 'tweets' ORDER BY id")
    )
    return Counter((source_id, json.loads(request)["params"]["cursor"]) for source_id, request in rows)


def test_no_page_that_is_stored_is_paid_for_again_after_twenty_kills(
    bell: Bell, playground: Playground, tmp_path: Path, database_url: str
) -> None:
    home, chance = str(tmp_path / "home"), random.Random(7)
    settings = paced(home, database_url, playground.url)
    with open_app(settings, "test") as app:
        now = app.clock.now()
        app.secrets.add("twitterapi_io", "key", Secret.parse("a-key"), now, terms=Terms(is_shared=True))
        task_id = request_task(app.store, app.platforms, "twitter_feed", busiest(), LIMIT, now).task_id
    kills = 0
    while kills < KILLS:
        heard = bell.ring_after(1 + chance.randrange(3))
        runner = Forked(run_task, home, database_url, playground.url, task_id)
        try:
            rung, _, _ = select.select([heard, runner.stdout], [], [])
            if heard not in rung:
                break
            runner.kill()
            kills += 1
        finally:
            runner.close()
    last = Forked(run_task, home, database_url, playground.url, task_id)
    assert last.code() == 0, last.stderr.read()
    last.close()
    with open_app(settings, "judge") as app:
        task = app.store.tasks.get(task_id)
        assert (task.state, task.done, task.error) == ("completed", USERS, None)
        stored = {
            target.source_id: app.store.items.newest(1_000, source_id=target.source_id) for target in task.targets
        }
        assert [target.new for target in task.targets] == [len(items) for items in stored.values()]
        assert all(len({item.external_id for item in items}) == len(items) for items in stored.values())
        # A page that is stored was not asked for again.
        pages = stored_pages(app)
        assert set(pages.values()) == {1}
        # By the playground's own bill: what was stored, and what the killed runners had asked for at that moment.
        bill = bill_of(read_log(tmp_path / "asked.jsonl"))
        total = app.store.spending.totals(["twitterapi_io"], "2026-03-03")["twitterapi_io"][Period.MONTH]
        assert total.reserved_amount == 0
        assert total.amount <= bill.amount <= total.amount + total.uncertain_amount
        # Each kill met two users, and of each at most a profile and the page after it.
        assert bill.calls <= len(pages) + USERS + 4 * kills
        assert max(Counter(source for source, _ in pages).values()) > 1
    assert kills >= 10, "it is done before it can be killed"


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

        class Stopping(Moods):
            def of(self, *_: object) -> None:
                """After the profile and the first page, while the second one is read, somebody stops it."""
                if next(asked) == 3:
                    app.stop.set()

        playground._site._moods = Stopping()
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
