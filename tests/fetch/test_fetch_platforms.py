"""What an operator sets for one platform: its budget, its time-out, and what we call ourselves to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from catchment.app import fetch_settings
from catchment.errors import SlowDown, TimedOut
from catchment.fetch.settings import FetchSettings, PlatformSettings
from catchment.model import Budget
from catchment.platforms import reddit
from catchment.settings import read_settings
from tests.fetch.surroundings import Door, SomePlatform
from tests.hostile import Connection, Hostile, Seen, reply, silent

DECLARED = Budget("reddit", 60, 60.0, concurrency=10, is_per_credential=True)
FEWER = DECLARED.replace(anonymous_limit=10)


class Reddit(SomePlatform):
    NAME = "reddit"


@pytest.fixture
def door_with(new_door: Callable[..., Door], tmp_path: Path) -> Callable[..., Door]:
    """A door to `reddit`, with what these variables set."""

    def make(more: dict[str, object] | None = None, **environ: str) -> Door:
        given = fetch_settings(read_settings(environ, tmp_path, platforms=["reddit"]))
        door = new_door(platforms=given.platforms, retry_waits=(), **more or {})
        door.platform = Reddit(budget=DECLARED)
        return door

    return make


def test_we_call_ourselves_to_a_platform_as_it_is_set_for_that_one(
    door_with: Callable[..., Door], server: Hostile
) -> None:
    door = door_with(REDDIT_USER_AGENT="linux:archive:1.0 (by u/somebody)")
    door.ask(server.on("/", reply()))
    door.platform = SomePlatform()
    door.ask(server.on("/", reply()))
    names = [seen.headers["user-agent"] for seen in server.seen]
    assert names == ["linux:archive:1.0 (by u/somebody)", "catchment-test"]


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, reddit.USER_AGENT),
        ({"CATCHMENT_USER_AGENT": "catchment-test"}, "catchment-test"),
        ({"CATCHMENT_USER_AGENT": "any", "REDDIT_USER_AGENT": "linux:a:1 (by /u/b)"}, "linux:a:1 (by /u/b)"),
    ],
)
def test_reddit_is_told_who_asks_in_its_own_form_unless_the_operator_says_otherwise(
    new_door: Callable[..., Door], tmp_path: Path, server: Hostile, environ: dict[str, str], name: str
) -> None:
    given = fetch_settings(read_settings(environ, tmp_path, platforms=["reddit"]))
    door = new_door(retry_waits=(), platforms=given.platforms, is_user_agent_given=given.is_user_agent_given)
    door.platform = Reddit()
    door.platform.USER_AGENT = reddit.USER_AGENT
    door.ask(server.on("/", reply()))
    assert server.seen[0].headers["user-agent"] == name


def test_reddits_own_form_names_the_platform_the_program_and_its_version() -> None:
    assert re.fullmatch(r"\w+:catchment:[\w.]+ \(by [^()]+\)", reddit.USER_AGENT)


def test_what_robots_txt_says_to_that_name_counts(door_with: Callable[..., Door], server: Hostile) -> None:
    from catchment.errors import Disallowed

    server.on("/robots.txt", reply(b"User-agent: archivist\nDisallow: /"))
    door = door_with(REDDIT_USER_AGENT="archivist")
    door.platform.OBEYS_ROBOTS = True
    with pytest.raises(Disallowed):
        door.ask(server.on("/", reply()))
    usual = door_with()
    usual.platform.OBEYS_ROBOTS = True
    assert usual.ask(server.on("/", reply())).status == 200


def test_an_answer_may_take_as_long_as_it_is_set_for_its_platform(
    door_with: Callable[..., Door], server: Hostile
) -> None:
    door = door_with(REDDIT_REQUEST_TIMEOUT_SECONDS="0.2")
    with pytest.raises(TimedOut):
        door.ask(server.on("/", silent()))


@pytest.mark.parametrize(("environ", "wait"), [({}, 63), ({"REDDIT_RATE_LIMIT_WINDOW_SECONDS": "600"}, 605)])
def test_a_budget_is_as_large_as_it_is_set_and_its_window_as_long(
    door_with: Callable[..., Door], server: Hostile, environ: dict[str, str], wait: int
) -> None:
    door = door_with(REDDIT_RATE_LIMIT="4", **environ)
    for _ in range(4):
        door.ask(server.on("/", reply()))
    with pytest.raises(SlowDown) as refused:
        door.ask(server.on("/", reply()))
    assert refused.value.retry_at is not None
    assert refused.value.retry_at - door.clock.now() >= timedelta(seconds=wait)


def test_no_more_requests_are_under_way_at_once_than_it_is_set(door_with: Callable[..., Door], server: Hostile) -> None:
    door = door_with({"longest_wait_seconds": 0.1}, REDDIT_MAX_CONCURRENCY="1")
    refused: list[BaseException] = []

    def while_one_is_under_way(connection: Connection, seen: Seen) -> bool:
        try:
            door.ask(server.on("/second", reply()))
        except SlowDown as error:
            refused.append(error)
        return reply()(connection, seen)

    door.ask(server.on("/first", while_one_is_under_way))
    assert [seen.path for seen in server.seen] == ["/first"]
    assert "in progress" in str(refused[0])


@pytest.mark.parametrize(
    ("declared", "given", "budget"),
    [
        (None, PlatformSettings(), None),
        (None, PlatformSettings(concurrency=3), None),
        (None, PlatformSettings(limit=30), Budget("reddit", 30, 60.0)),
        (None, PlatformSettings(30, 10.0, 2), Budget("reddit", 30, 10.0, concurrency=2)),
        (DECLARED, PlatformSettings(), DECLARED),
        (DECLARED, PlatformSettings(limit=30), DECLARED.replace(limit=30)),
        (DECLARED, PlatformSettings(window_seconds=10.0), DECLARED.replace(window_seconds=10.0)),
        (DECLARED, PlatformSettings(concurrency=3), DECLARED.replace(concurrency=3)),
        (FEWER, PlatformSettings(limit=30), FEWER.replace(limit=30)),
        (FEWER, PlatformSettings(limit=3), FEWER.replace(limit=3, anonymous_limit=3)),
    ],
)
def test_what_is_not_set_stays_as_the_platform_declares_it(
    declared: Budget | None, given: PlatformSettings, budget: Budget | None
) -> None:
    settings = FetchSettings("test", platforms={"reddit": given})
    assert settings.budget(Reddit(budget=declared)) == budget
    assert settings.budget(SomePlatform(budget=declared)) == declared
