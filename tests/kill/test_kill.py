"""`kill -9` at any moment loses nothing, stores nothing twice, and leaves nothing for a hand to repair."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.clock import SystemClock
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.sources.gaps import GapView
from tests.kill.oracle import Oracle, OracleFeed

pytestmark = pytest.mark.process

FEEDS = 100
KILLS = 50
FAULT_RATE = 0.2
ROOT = Path(__file__).parents[2]


class Collector:
    """`catchment collect --all`, again and again, each time as a process of its own."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.forker = subprocess.Popen(
            [sys.executable, "-m", "endure.forker"],
            cwd=ROOT,
            env={**os.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self) -> int:
        """Let it finish; gives the exit code."""
        return int(self.said(f"wait {self._start()}"))

    def run_and_kill(self, bell: int) -> int:
        """Kill it as soon as the bell rings; gives the exit code, -9 unless it was done before that."""
        pid = self._start()
        print(f"wait {pid}", file=self.forker.stdin, flush=True)
        rung, _, _ = select.select([self.forker.stdout, bell], [], [])
        if bell in rung:
            os.kill(pid, signal.SIGKILL)
        return int(self.forker.stdout.readline())

    def _start(self) -> int:
        return int(self.said("start collect --all --json"))

    def said(self, words: str) -> str:
        print(words, file=self.forker.stdin, flush=True)
        return self.forker.stdout.readline()

    def close(self) -> None:
        self.forker.stdin.close()
        self.forker.wait()
        self.forker.stdout.close()


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    oracle = Oracle(FEEDS, seed=7, fault_rate=FAULT_RATE)
    yield oracle
    oracle.close()


def test_fifty_kills_while_a_hundred_feeds_are_collected(oracle: Oracle, tmp_path: Path, database_url: str) -> None:
    home = tmp_path / "home"
    settings = Settings(home=home, database_url=database_url, is_private_allowed=True)
    with open_app(settings, "test") as app:
        for number in range(FEEDS):
            follow(app.store, app.secrets, app.platforms, "rss", oracle.url(number), SystemClock().now())
    collector = Collector(
        {
            "CATCHMENT_HOME": str(home),
            "CATCHMENT_DATABASE_URL": database_url,
            "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "1",
            "CATCHMENT_RETRY_WAITS": "0.01,0.02",
            "CATCHMENT_LOG_LEVEL": "error",
        }
    )
    chance, kills, runs = random.Random(11), 0, 0
    while kills < KILLS:
        # By what it has done, not by the clock: after the first request, after the last, and anywhere between.
        kills += collector.run_and_kill(oracle.ring_after(1 + int(FEEDS * chance.random() ** 2))) == -signal.SIGKILL
        runs += 1
        assert runs < 10 * KILLS, "it is always done before it can be killed"
    oracle.fault_rate = 0.0
    assert collector.run() == 0
    collector.close()
    with open_app(settings, "judge") as app:
        verdict = judged(oracle, app)
    print(json.dumps({"kills": kills, "faults": oracle.faults, **verdict}))  # noqa: T201 — the figures, with `-s`
    assert (verdict["lost"], verdict["twice"], verdict["made_up"], verdict["outdated"]) == ([], [], [], [])
    assert (verdict["leases_held"], verdict["runs_unfinished"]) == (0, 0)
    assert verdict["gaps"] > 0, "bursts beyond the window must leave gaps"
    # Where exactly a window full of entries is new, nothing is missing, but nobody can know. How often that happens is
    # a matter of chance among these few gaps; below 5 % is promised of many (`make endure`).
    assert verdict["unfounded"] == []


def judged(oracle: Oracle, app: App) -> dict[str, Any]:
    """What the store holds, held against all that was ever said."""
    lost, twice, made_up, outdated, found, unfounded = [], [], [], [], [], []
    for number, feed in enumerate(oracle.feeds):
        (source_id,) = first_row(app, "SELECT id FROM sources WHERE target = ?", oracle.url(number))
        gaps = app.store.gaps.page(source_id=source_id, include_closed=True)
        found += gaps
        items = app.store.items.newest(100_000, source_id=source_id)
        held = {item.external_id: item for item in items}
        twice += [number] if len(held) != len(items) else []
        # What left the window before the first visit that was stored whole is not owed: following begins with that.
        began = min(feed.entries[key].at for key in held)
        for key, entry in feed.entries.items():
            is_owed = entry.at >= began and key not in held
            if is_owed and not any(_covers(gap, entry.at) for gap in gaps):
                lost.append((number, key))
            if key in held:
                told = [revision.text for revision in app.store.items.revisions(held[key].id)] + [held[key].text]
                made_up += [] if _is_in_order(told, entry.versions) else [(number, key, told)]
        outdated += [(number, key) for key in feed.shown() if held[key].text != feed.entries[key].versions[-1]]
        unfounded += [gap for gap in gaps if not _missed(gap, feed, held) and gap.to_at not in feed.ends]
    return {
        "items": app.store.items.count(),
        "gaps": len(found),
        "lost": lost,
        "twice": twice,
        "made_up": made_up,
        "outdated": outdated,
        "unfounded": unfounded,
        "leases_held": first_row(app, "SELECT count(*) FROM leases WHERE owner_id IS NOT NULL")[0],
        "runs_unfinished": first_row(app, "SELECT count(*) FROM runs WHERE finished_at IS NULL")[0],
    }


def first_row(app: App, sql: str, *values: Any) -> tuple[Any, ...]:
    row = app.store.database.read(lambda tx: tx.one(sql, *values))
    assert row is not None
    return row


def _covers(gap: GapView, at: datetime) -> bool:
    return gap.from_at <= at <= gap.to_at


def _is_in_order(told: list[str], versions: list[str]) -> bool:
    """Whether what was stored is what was said, in that order, perhaps with some that nobody saw left out."""
    left = iter(versions)
    return all(text in left for text in told)


def _missed(gap: GapView, feed: OracleFeed, held: dict[str, Any]) -> list[str]:
    return [key for key, entry in feed.entries.items() if key not in held and _covers(gap, entry.at)]
