"""Load: one task of many users takes as long as the budget dictates, and asks for nothing twice."""

from __future__ import annotations

import pytest

from bench.x import MOST_DELAY, Load, dictated
from catchment.collect.tasks import request_task
from catchment.platforms import x
from catchment.playground.log import read_log
from catchment.playground.sites.x import fate, user_name
from tests.x.scene import START, WORLD, Scene

USERS, POSTS, PAGE = 15, 60, 20


def names(scene: Scene) -> list[str]:
    """Users with enough posts."""
    now = scene.clock.now()
    enough = [
        place
        for place in WORLD.places
        if fate(WORLD, place)[0] == "usual"
        and sum(post.shown_from <= now and not post.is_removed(now) for post in WORLD.posts(place)) >= POSTS
    ]
    return [user_name(WORLD, place, START) for place in enough[:USERS]]


@pytest.mark.long
def test_a_task_of_many_users_takes_hardly_longer_than_the_budget_dictates(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    # One after the other: on this clock, waits of several threads would add up.
    scene = Scene(tmp_path_factory.mktemp("load"), concurrency=1, rate_limits={})
    try:
        scene.clock.advance(4 * 86_400)
        app, began = scene.app, scene.clock.now()
        task = request_task(app.store, app.platforms, "twitter_feed", names(scene), POSTS, began)
        app.task_runner().run()
        task = app.store.tasks.get(task.task_id)
        seconds = (scene.clock.now() - began).total_seconds()
        asked = read_log(scene.log)
    finally:
        scene.close()
    assert [target.outcome for target in task.targets] == ["succeeded"] * USERS
    # A profile and three pages each, none of them twice.
    assert len(asked) == USERS * (1 + POSTS // PAGE)
    budget = next(service.budget for service in x.SERVICES if service.name == "twitterapi_io")
    floor = (len(asked) - budget.limit) * budget.window_seconds / budget.limit
    assert floor <= seconds <= MOST_DELAY * floor


def test_the_limit_that_takes_longest_is_the_one_that_binds() -> None:
    load = Load(100, 100, 620, 36.0, dictated(620), 1_000, 0.3, 0.05)
    assert (load.limit, load.times, load.broken()) == ("the budget", 1.2, [])
    late = Load(100, 100, 600, 40.0, dictated(600), 1_000, 1.0, 0.05)
    assert len(late.broken()) == 2
    assert "latency" in Load(2, 100, 12, 1.0, dictated(12), 1_000, 0.3, 0.05).text()
