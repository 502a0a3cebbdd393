"""X: one task of many users against the playground, to what latency and budget dictate; and a thousand posts of one
user, to the cost of the same bytes when they are only downloaded, decoded and inserted.

The playground runs in a process of its own, and so does the rest: `python -m bench.x USERS POSTS` prints the figures as
JSON, `python -m bench.x world` serves.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

from bench.processes import run

SERVICE = "twitterapi_io"
LIMIT, WINDOW_SECONDS = 20, 1.0
"""Twenty requests a second, as TwitterAPI.io allows those with a large balance. With the default, three a second,
waiting would hide everything else."""
CONCURRENCY = 10
SECONDS_AN_ANSWER = 0.1
PAGE = 20
WRITTEN = 1_000
MOST_DELAY = 1.3
MOST_WRITING_SECONDS = 1.0
START, DAYS = datetime(2026, 3, 2, tzinfo=UTC), 12.0
END = START + timedelta(days=DAYS)


@dataclass(frozen=True)
class Load:
    """What X cost."""

    users: int
    posts: int
    """Of each user."""
    requests: int
    wall_seconds: float
    dictated: dict[str, float]
    """Seconds, by the limit that dictates them."""
    written: int
    writing_seconds: float
    """CPU: requested, read, cleaned and stored, with everything that a visit does."""
    floor_seconds: float
    """CPU: the same answers downloaded, decoded and inserted into one table."""

    @property
    def limit(self) -> str:
        return max(self.dictated, key=lambda limit: self.dictated[limit])

    @property
    def times(self) -> float:
        return self.wall_seconds / self.dictated[self.limit]

    def text(self) -> str:
        return (
            "## X\n\n| | | at most |\n|---|---|---|\n"
            f"| a task of {self.users} users with {self.posts} posts each: {self.requests} requests in "
            f"{self.wall_seconds:.1f} s, to the {self.dictated[self.limit]:.1f} s that {self.limit} dictates "
            f"| **{self.times:.2f}** × | {MOST_DELAY} |\n"
            f"| {self.written:,} posts of one user, requested, read and stored: CPU, s "
            f"| **{self.writing_seconds:.2f}** | {MOST_WRITING_SECONDS:.0f} |\n"
            f"| the same, to downloading, decoding and inserting them | "
            f"**{self.writing_seconds / self.floor_seconds:.1f}** × | |"
        )

    def broken(self) -> list[str]:
        broken = []
        if self.times > MOST_DELAY:
            broken.append(f"a task takes {self.times:.2f} × what {self.limit} dictates; promised are {MOST_DELAY}")
        if self.writing_seconds >= MOST_WRITING_SECONDS:
            broken.append(
                f"{self.written:,} posts take {self.writing_seconds:.2f} s; promised is less than "
                f"{MOST_WRITING_SECONDS:.0f}"
            )
        return broken


def measure(users: int, posts: int) -> Load:
    answer, _ = run([sys.executable, "-m", "bench.x", str(users), str(posts)], weighs=False)
    return Load(**json.loads(answer))


def dictated(requests: int, concurrency: int = CONCURRENCY) -> dict[str, float]:
    """Returns the seconds that each limit alone dictates for so many requests."""
    return {
        # The first window's requests may come at once.
        "the budget": max(0.0, (requests - LIMIT) * WINDOW_SECONDS / LIMIT),
        "latency": requests * SECONDS_AN_ANSWER / concurrency,
    }


# In a process of its own. Imported there: the benchmark itself must stay smaller than what it weighs.


class Still:
    """A clock that shows one moment."""

    def now(self) -> datetime:
        return END

    def wait(self, seconds: float, stop: Event) -> bool:
        return stop.wait(seconds)

    def wall_seconds(self, seconds: float) -> float:
        return seconds


def _world() -> Any:
    from catchment.playground.world import Habits, World

    habits = Habits(edited=0.0, reverted=0.0, removed=0.0, restored=0.0, late=0.0, future=0.0, hostile=0.0)
    return World(11, START, 0, DAYS, habits, busy=8.0, others={"x": 260})


def _names(world: Any, posts: int) -> list[str]:
    """Users with at least so many posts, the busiest last."""
    from catchment.playground.sites.x import fate, user_name

    usual = [place for place in world.places if fate(world, place)[0] == "usual"]
    counts = {place.number: sum(post.shown_from <= END for post in world.posts(place)) for place in usual}
    busy = sorted((place for place in usual if counts[place.number] >= posts), key=lambda place: counts[place.number])
    return [user_name(world, place, END) for place in busy]


def serve(seconds: float) -> None:
    """Serve until the standard input is closed; every answer takes so many seconds."""
    from catchment.playground.faults import Cue, FaultPlan
    from catchment.playground.server import Playground

    script = [Cue("slow_first_byte")] if seconds else []
    with Playground(_world(), Still(), FaultPlan(11, 0.0, script, 0.0), slow_seconds=seconds) as playground:
        print(playground.url, flush=True)
        sys.stdin.read()


@contextmanager
def served(seconds: float) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.x", "world", str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as world:
        assert world.stdin
        assert world.stdout
        try:
            yield world.stdout.readline().strip()
        finally:
            world.stdin.close()


@contextmanager
def installed(base: str, home: Path) -> Iterator[Any]:
    from catchment.app import open_app
    from catchment.credentials.secret import Secret
    from catchment.settings import Settings
    from catchment.store.credentials import Terms

    settings = Settings(
        home=home,
        database_url=f"sqlite:///{home / 'catchment.db'}",
        master_key="a key for benchmarks",
        base_urls={"x": base, SERVICE: base},
        rate_limits={"x": 100_000, SERVICE: LIMIT},
        rate_windows={SERVICE: WINDOW_SECONDS},
        concurrency=CONCURRENCY,
        host_concurrency=CONCURRENCY,
        host_requests_per_second=100_000,
    )
    with open_app(settings, "bench") as app:
        for service in ("x", SERVICE):
            secret = Secret.parse(f"key-of-{service}")
            app.secrets.add(service, service, secret, app.clock.now(), terms=Terms(is_shared=True))
        yield app


def collect(base: str, names: list[str], posts: int) -> tuple[int, float]:
    """Returns the requests of one task for these users, and the seconds until it was over."""
    from catchment.collect.tasks import request_task

    with tempfile.TemporaryDirectory() as folder, installed(base, Path(folder)) as app:
        # The world makes up a user's posts when they are asked for; that is not ours to pay.
        _warm(base, names)
        began = time.perf_counter()
        task = request_task(app.store, app.platforms, "twitter_feed", names, posts, app.clock.now())
        while not (task := app.store.tasks.get(task.task_id)).finished_at:
            app.task_runner().run()
            app.clock.wait(0.2, Event())
        seconds = time.perf_counter() - began
        results = [target.outcome for target in task.targets]
        row = app.store.database.read(lambda tx: tx.one("SELECT count(*) FROM items"))
        assert results == ["succeeded"] * len(names), results
        assert row == (len(names) * posts,), row
        row = app.store.database.read(lambda tx: tx.one("SELECT sum(request_count) FROM run_sources"))
        return int(row[0]), seconds


def _warm(base: str, names: list[str]) -> None:
    import pycurl

    curl = pycurl.Curl()
    curl.setopt(pycurl.HTTPHEADER, ["X-API-Key: warm"])
    for name in names:
        profile = _Body()
        curl.setopt(pycurl.URL, f"{base}/twitter/user/info?userName={name}")
        curl.setopt(pycurl.WRITEFUNCTION, profile)
        curl.perform()
        number = json.loads(bytes(profile.body))["data"]["id"]
        curl.setopt(pycurl.URL, f"{base}/twitter/user/last_tweets?userId={number}&includeReplies=true")
        curl.setopt(pycurl.WRITEFUNCTION, _Body())
        curl.perform()
    curl.close()


class _Body:
    def __init__(self) -> None:
        self.body = bytearray()

    def __call__(self, part: bytes) -> None:
        self.body += part


def write(base: str, name: str) -> tuple[float, float]:
    """Returns the CPU seconds of a visit that brings a thousand posts, and of the least that anybody can do."""
    from catchment.sources.add import follow

    with tempfile.TemporaryDirectory() as folder, installed(base, Path(folder)) as app:
        settings = {"service": "x", "limit": WRITTEN}
        source, _ = follow(
            app.store, app.secrets, app.platforms, "twitter_feed", f"@{name}", app.clock.now(), settings=settings
        )
        scheduler = app.scheduler()
        began = time.process_time()
        (result,) = scheduler.these([source.id], "bench", "bench")
        seconds = time.process_time() - began
        assert (result.counts.new, result.error) == (WRITTEN, None), result
        number = app.store.sources.with_progress(source.id)[1].cursor["user_id"]
        return seconds, _floor(base, number, Path(folder))


def _floor(base: str, number: str, folder: Path) -> float:
    import pycurl

    began = time.process_time()
    database = sqlite3.connect(folder / "floor.db")
    database.executescript(
        """
        PRAGMA journal_mode = WAL;
        CREATE TABLE tweets (id TEXT PRIMARY KEY, text, created_at, author, media, referenced);
        CREATE INDEX by_time ON tweets (author, created_at);
        """
    )
    curl, token = pycurl.Curl(), ""
    curl.setopt(pycurl.HTTPHEADER, ["Authorization: Bearer floor"])
    for _ in range(WRITTEN // 100):
        body = _Body()
        curl.setopt(pycurl.URL, f"{base}/2/users/{number}/tweets?max_results=100&pagination_token={token}")
        curl.setopt(pycurl.WRITEFUNCTION, body)
        curl.perform()
        page = json.loads(bytes(body.body))
        rows = [
            (
                tweet["id"],
                tweet["text"],
                tweet["created_at"],
                tweet["author_id"],
                json.dumps(tweet.get("attachments")),
                json.dumps(tweet.get("referenced_tweets")),
            )
            for tweet in page["data"]
        ]
        database.executemany("INSERT INTO tweets VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)
        database.commit()
        token = page["meta"].get("next_token", "")
    database.close()
    return time.process_time() - began


def report(users: int, posts: int) -> Load:
    world = _world()
    busy = _names(world, WRITTEN)
    names = _names(world, posts)[:users]
    assert busy, "nobody has posted so much"
    assert len(names) == users, len(names)
    with served(0.0) as base:
        writing, floor = min(write(base, busy[0]) for _ in range(3))
    with served(SECONDS_AN_ANSWER) as base:
        requests, seconds = collect(base, names, posts)
    return Load(users, posts, requests, seconds, dictated(requests), WRITTEN, writing, floor)


if __name__ == "__main__":
    if sys.argv[1] == "world":
        serve(float(sys.argv[2]))
    else:
        print(json.dumps(asdict(report(int(sys.argv[1]), int(sys.argv[2])))))
