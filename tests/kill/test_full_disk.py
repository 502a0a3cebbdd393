"""A disk that runs full in the middle of collecting: told plainly, nothing torn, and all is well once there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.app import open_app
from catchment.settings import Settings
from catchment.sources.add import follow
from tests.feedsite import FeedSite

pytestmark = pytest.mark.process

FEEDS = 12
POSTS = 40


class SmallDisk:
    """A file system of a few megabytes, in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resize(self, megabytes: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={megabytes}M", str(self.folder)], check=True)


@contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}M", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("this machine does not let us mount a small disk: only root may")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(os.name != "posix" or not Path("/proc/mounts").exists(), reason="small disks are Linux's tmpfs")
def test_a_disk_that_runs_full_loses_nothing_and_holds_nothing(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", 2) as disk, FeedSite() as site:
        home = disk.folder / "home"
        settings = Settings(home=home, database_url=f"sqlite:///{home / 'c.db'}", is_private_allowed=True)
        with open_app(settings, "test") as app:
            sources = []
            for number in range(FEEDS):
                feed = site.feed(f"f{number}", posts=0)
                for post in range(POSTS):
                    feed.post(f"p{post}", text=f"{number} {post} " + "words " * 200)
                now = datetime.now(UTC)
                sources.append(follow(app.store, app.secrets, app.platforms, "rss", feed.url, now)[0])
            ids = [source.id for source in sources]
            full = app.scheduler().these(ids, "test", "test")
            errors = {result.error_code: result.error or "" for result in full if result.error_code}
            assert "free some disk space" in errors.pop("STORE_ERROR")
            # The claim itself may be what no longer fits: such a source was not visited and stays due.
            assert set(errors) <= {"NOT_VISITED"}
            before = app.store.items.count()
            assert before < FEEDS * POSTS
            disk.resize(64)
            app.presence.heartbeat(app.clock.now())
            again = app.scheduler().these(ids, "test", "test")
            assert [result.error for result in again if result.error] == []
            assert app.store.items.count() == FEEDS * POSTS
            held = app.store.database.read(lambda tx: tx.one("SELECT count(*) FROM leases WHERE owner_id IS NOT NULL"))
            sound = app.store.database.read(lambda tx: tx.one("PRAGMA integrity_check"))
            assert (held, sound) == ((0,), ("ok",))
