"""A child of a worker, looked at from inside: what it does with a message, and how a stop reaches it."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from catchment.app import App
from catchment.engines.distributed import tasks
from catchment.engines.distributed.child import Child, StopPipes
from catchment.engines.distributed.tasks import crawl_community, make_celery
from catchment.errors import NotFound
from tests.redis_server import RedisServer
from tests.town import TownApp


@pytest.fixture
def town(tmp_path: Path, redis_server: RedisServer) -> Iterator[TownApp]:
    url = f"redis://127.0.0.1:{redis_server.port}/1"
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}", broker_url=url)
    yield here
    here.close()


def test_a_community_is_visited_only_under_its_own_name(town: TownApp) -> None:
    source = town.follow(town.town.feed("ride-along", title="Entrepreneur ride along"))
    for near in ("ride-along", "https://ride-along.example/", "example feed", str(source.id)):
        with pytest.raises(NotFound):
            crawl_community(town.app, near)
    assert not town.town.asked
    for name in ("https://ride-along.example/feed", " HTTPS://RIDE-ALONG.example/feed "):
        crawl_community(town.app, name)
    assert len(town.town.asked["https://ride-along.example/feed"]) == 2


def test_a_bug_in_a_task_is_not_called_an_error_of_the_caller(town: TownApp, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(app: App, name: str) -> None:
        len(17)  # type: ignore[arg-type]

    monkeypatch.setattr(tasks, "crawl_community", broken)
    celery = make_celery(town.settings)
    with closing(celery), closing(celery.catchment_child):
        task = celery.tasks[tasks.CRAWL_COMMUNITY]
        assert isinstance(task.apply(args=["r/webdev"]).result, TypeError)
        refused = task.apply(args=[]).result
        assert isinstance(refused, tasks.TaskFailed)
        assert str(refused).startswith("INVALID_INPUT")


def test_an_abort_that_comes_while_a_task_begins_is_not_lost(town: TownApp) -> None:
    """As with CATCHMENT_STOP_SECONDS=0, or a second signal right after the first."""
    child = Child(town.settings)
    with closing(child):
        stop = child.app().stop
        clear = stop.clear

        def clear_late() -> None:
            child.stop()
            child.cut()
            clear()

        stop.clear = clear_late  # type: ignore[method-assign]
        with child.working() as app:
            assert app.stop.is_set()
            assert app.cut.is_set()


@pytest.mark.parametrize("line", range(1, 4))
def test_a_signal_that_comes_while_a_pipe_is_being_closed_does_not_close_it_again(line: int) -> None:
    pipes = StopPipes()
    lines = itertools.count(1)

    def interrupt(frame: FrameType, event: str, _: object) -> Any:
        """What a handler of a signal does that arrives in front of this line."""
        if frame.f_code is not StopPipes._close.__code__:
            return None
        if event == "line" and next(lines) == line:
            pipes.tell_cut()
        return interrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        pipes.tell_cut()
    finally:
        sys.settrace(before)
    assert next(lines) > line
    pipes.wait_for_cut()
    pipes.tell_stop()
    for end in (pipes._stop, pipes._cut):
        os.close(end)
