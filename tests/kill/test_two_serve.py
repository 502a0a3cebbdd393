"""Two `serve` processes on one database: every source once an interval, every job once, nobody locked out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.clock import SystemClock, clock_from
from catchment.jobs import JOBS
from catchment.settings import Settings
from catchment.sources.add import follow
from tests.kill.oracle import Oracle

pytestmark = pytest.mark.process

FEEDS = 30
INTERVAL = timedelta(minutes=1)
CLOCK = "2026-06-01T00:00:00+00:00,12"
"""A minute in five seconds. Not faster: whoever gives no sign of life for a minute and a half is taken for dead, and a
busy machine may keep a process from it for seconds."""


def started(environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "catchment", "serve", "--port", "0"],
            env={**os.environ, **environ},
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def visits(app: App) -> dict[int, list[datetime]]:
    rows = app.store.database.read(
        lambda tx: tx.all("SELECT source_id, started_at FROM run_sources ORDER BY source_id, started_at")
    )
    found: dict[int, list[datetime]] = {}
    for source_id, at in rows:
        found.setdefault(source_id, []).append(datetime.fromtimestamp(at / 1e6).astimezone())
    return found


@pytest.fixture
def oracle() -> Any:
    oracle = Oracle(FEEDS, seed=3, fault_rate=0.0)
    yield oracle
    oracle.close()


def test_two_serving_processes_share_the_work_without_doing_any_twice(
    oracle: Oracle, tmp_path: Path, database_url: str
) -> None:
    home = tmp_path / "home"
    settings = Settings(home=home, database_url=database_url, clock=CLOCK)
    environ = {
        "CATCHMENT_HOME": str(home),
        "CATCHMENT_DATABASE_URL": database_url,
        "CATCHMENT_CLOCK": CLOCK,
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "1",
        "FETCH_INTERVAL_RSS": "1",
        # However slow the machine is, what is under way may finish: a stop that cuts something off exits with 1.
        "CATCHMENT_STOP_SECONDS": "240",
    }
    with open_app(settings, "test") as app:
        for number in range(FEEDS):
            follow(app.store, app.secrets, app.platforms, "rss", oracle.url(number), SystemClock().now())
        logs = [tmp_path / "one.log", tmp_path / "two.log"]
        both = [started(environ, log) for log in logs]
        try:
            give_up_at = time.monotonic() + 900
            while min(map(len, visits(app).values()), default=0) < 3 or len(visits(app)) < FEEDS:
                assert time.monotonic() < give_up_at, [log.read_text()[-2000:] for log in logs]
                assert [process.poll() for process in both] == [None, None], [log.read_text()[-2000:] for log in logs]
                time.sleep(0.2)
        finally:
            for process in both:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(900) for process in both]
        assert codes == [0, 0], [log.read_text()[-2000:] for log in logs]
        for times in visits(app).values():
            apart = [later - earlier for earlier, later in pairwise(times)]
            assert min(apart) >= INTERVAL
        lived = clock_from(CLOCK, home).now() - datetime.fromisoformat(CLOCK.split(",")[0])
        runs = {job.name: job.run_count for job in app.store.jobs.all()}
        for job in JOBS:
            if (period := job.period(settings)) is not None:
                assert 1 <= runs[job.name] <= lived / period + 1, job.name
        assert sum(feed.requests for feed in oracle.feeds) == sum(map(len, visits(app).values()))
        held = app.store.database.read(lambda tx: tx.one("SELECT count(*) FROM leases WHERE owner_id IS NOT NULL"))
        assert held == (0,)
    for log in logs:
        assert "locked" not in log.read_text()
        assert "Traceback" not in log.read_text()
