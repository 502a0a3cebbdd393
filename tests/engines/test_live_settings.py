"""What runs when can be changed without a restart: in a file, or in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from catchment.app import App, open_app, settings_from
from catchment.engines.embedded import Embedded
from catchment.engines.live_settings import LiveSettings
from catchment.jobs import JOBS, NAMES, Job
from tests.engines.deployment import Deployment, until

ENVIRON = {"CATCHMENT_JOB_CLEAR_OLD": "5"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    environ = ENVIRON | {"CATCHMENT_HOME": str(tmp_path / "home")}
    with open_app(settings_from(environ, tmp_path, NAMES), "serve") as app:
        yield app


def period(app: App, name: str) -> timedelta | None:
    return next(job for job in JOBS if job.name == name).period(app.settings)


@pytest.mark.parametrize(
    ("file", "write"),
    [
        (".env", "{name}={value}\n".format),
        ("catchment.toml", '{name} = "{value}"\n'.format),
        ("home/catchment.toml", '{name} = "{value}"\n'.format),
    ],
)
def test_a_changed_file_changes_what_runs_when_and_nothing_else(
    app: App, tmp_path: Path, file: str, write: Callable[..., str]
) -> None:
    live, before, url = LiveSettings(app), app.intervals(), app.settings.database_url
    lines = {
        "CATCHMENT_JOB_WARM_UP": "7",
        "COLLECTOR_TICK": "11",
        "CRAWLER_BATCH_SIZE": "3",
        "FETCH_INTERVAL_RSS": "9",
        "CATCHMENT_DATABASE_URL": "sqlite:////elsewhere.db",
    }
    (tmp_path / file).write_text("".join(write(name=name, value=value) for name, value in lines.items()))
    live.refresh()
    assert period(app, "warm-up") == timedelta(minutes=7)
    assert period(app, "collect-due") == timedelta(seconds=11)
    assert (app.settings.crawler_batch_size, app.settings.database_url) == (3, url)
    assert app.intervals() == before | {"rss": 9}
    (tmp_path / file).unlink()
    live.refresh()
    assert (period(app, "warm-up"), app.intervals()) == (None, before)


def test_the_environment_wins_over_a_changed_file(app: App, tmp_path: Path) -> None:
    live = LiveSettings(app)
    (tmp_path / ".env").write_text("CATCHMENT_JOB_CLEAR_OLD=9\nCOLLECTOR_TICK=3\n")
    live.refresh()
    assert (period(app, "clear-old"), app.settings.tick_seconds) == (timedelta(minutes=5), 3)


def test_a_file_that_cannot_be_used_changes_nothing_until_it_is_mended(app: App, tmp_path: Path) -> None:
    live = LiveSettings(app)
    for wrong in ("COLLECTOR_TICK=soon\nCRAWLER_BATCH_SIZE=3\n", "CATCHMENT_JOB_WARM_UP=never again\n"):
        (tmp_path / ".env").write_text(wrong)
        live.refresh()
        assert (app.settings.tick_seconds, app.settings.crawler_batch_size) == (60, 12)
    (tmp_path / ".env").write_text("COLLECTOR_TICK=30\n")
    live.refresh()
    assert app.settings.tick_seconds == 30


def test_a_serving_process_runs_a_job_that_is_switched_on_and_leaves_one_that_is_switched_off(
    app: App, tmp_path: Path
) -> None:
    ran = Event()
    engine = Embedded(app, (Job("warm-up", timedelta(minutes=1), lambda _: ran.set(), "", "", is_off=True),))
    engine.start()
    (tmp_path / ".env").write_text("CATCHMENT_JOB_WARM_UP=1\n")
    assert ran.wait(300)
    (tmp_path / ".env").write_text("CATCHMENT_JOB_WARM_UP=off\n")
    until(lambda: period(app, "warm-up") is None)
    engine.stop(60)


def test_beat_and_workers_follow_files_and_the_database(deployment: Deployment) -> None:
    deployment.follow(2)
    deployment.beat()
    deployment.worker(1)
    until(lambda: deployment.visited() == 2)
    assert runs(deployment, "warm-up") == 0
    (deployment.folder / ".env").write_text("CATCHMENT_JOB_WARM_UP=60\n")
    until(lambda: runs(deployment, "warm-up") == 1)
    # Visited hours from now by the default; by the database's setting, within a minute.
    polls = "SELECT min(poll_count) FROM progress"
    now = deployment.app.clock.now()
    long_ago = int((now - timedelta(minutes=3)).timestamp() * 1_000_000)
    deployment.app.store.database.write(lambda tx: tx.run("UPDATE progress SET last_polled_at = ?", long_ago))
    assert deployment.number(polls) == 1
    deployment.app.store.settings.put_interval("rss", 2, now)
    until(lambda: deployment.number(polls) == 2)


def runs(deployment: Deployment, job: str) -> int:
    return next((state.run_count for state in deployment.app.store.jobs.all() if state.name == job), 0)
