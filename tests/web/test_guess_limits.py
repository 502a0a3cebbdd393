"""Guessing keys and links is slow, is noticed, and locks nobody out who has a right one."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from catchment.health.monitors import GUESSING
from catchment.jobs import watch_credentials
from catchment.web.auth import (
    FORGOTTEN_AFTER,
    FREE_TRIES,
    FREE_TRIES_OVERALL,
    LONGEST_WAIT,
    Guesses,
)
from tests.town import TownApp
from tests.web.desk import Desk

OUTSIDE = "a key given from outside"
FAR, NEAR = "203.0.113.7", "127.0.0.1"


class Seconds:
    """A clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# ── the waits ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_wait_grows_with_every_wrong_try_and_is_forgotten_in_time() -> None:
    seconds = Seconds()
    guesses = Guesses(seconds=seconds)
    waits = [guesses.failed(FAR) for _ in range(FREE_TRIES + 12)]
    assert waits == [0.0] * (FREE_TRIES - 1) + [1, 2, 4, 8, 16, 32, 64, 128, 256, *[LONGEST_WAIT] * 4]
    assert guesses.wait("203.0.113.8") == 0
    seconds.now += FORGOTTEN_AFTER + 1
    assert (guesses.wait(FAR), guesses.failed(FAR)) == (0, 0)


def test_many_addresses_together_are_reported_and_have_to_wait_but_not_where_somebody_signed_in() -> None:
    reported: list[tuple[str, int]] = []
    guesses = Guesses(lambda address, count: reported.append((address, count)), Seconds())
    guesses.succeeded("203.0.113.200")
    for number in range(FREE_TRIES_OVERALL + 50):
        guesses.failed(f"198.51.100.{number}")
    assert reported == [(f"198.51.100.{FREE_TRIES_OVERALL - 1}", FREE_TRIES_OVERALL)]
    assert guesses.wait("192.0.2.1") > 0
    assert (guesses.wait("203.0.113.200"), guesses.wait(NEAR), guesses.wait("::1")) == (0, 0, 0)


def test_all_addresses_of_an_ipv6_network_are_one() -> None:
    guesses = Guesses(seconds=Seconds())
    for number in range(FREE_TRIES):
        guesses.failed(f"2001:db8::{number:x}")
    assert guesses.wait("2001:db8::ffff") > 0
    assert guesses.wait("2001:db8:1::1") == 0


# ── over HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def guarded(town: TownApp) -> Desk:
    """A deployment with a stored key and with one from outside."""
    desk = Desk(town)
    town.app.settings = replace(town.app.settings, api_key=OUTSIDE)
    again = Desk(town)
    again.key = desk.key
    return again


def tries(desk: Desk, address: str, key: str, times: int = 1) -> list[int]:
    caller = desk.caller({"Authorization": f"Bearer {key}"}, address=address)
    return [caller.get("/api/sources").status_code for _ in range(times)]


@pytest.mark.parametrize("address", [FAR, NEAR])
def test_wrong_keys_are_answered_with_a_wait_and_a_stored_key_still_gets_through(guarded: Desk, address: str) -> None:
    assert tries(guarded, address, "wrong", FREE_TRIES + 3) == [401] * (FREE_TRIES - 1) + [429] * 4
    answer = guarded.caller({"X-API-Key": "wrong"}, address=address).get("/api/sources")
    assert (answer.json()["error"]["code"], int(answer.headers["retry-after"]) > 0) == ("TOO_MANY_TRIES", True)
    assert tries(guarded, address, guarded.key or "") == [200]


@pytest.mark.parametrize("address", [FAR, NEAR])
def test_a_weaker_key_is_not_even_looked_at_during_the_wait_nor_on_this_machine(guarded: Desk, address: str) -> None:
    """Behind a reverse proxy, everybody comes from this machine."""
    assert tries(guarded, address, OUTSIDE) == [200]
    tries(guarded, address, "wrong", FREE_TRIES)
    assert tries(guarded, address, OUTSIDE) == [429]
    assert tries(guarded, "203.0.113.8", OUTSIDE) == [200]


@pytest.mark.parametrize(("key", "status"), [("6f1d0c27b94e8a350f7c62d19be4a083", 200), ("a" * 40, 429)])
def test_a_key_of_the_settings_that_nobody_can_guess_is_accepted_during_the_wait(
    town: TownApp, key: str, status: int
) -> None:
    town.app.settings = replace(town.app.settings, api_key=key)
    desk = Desk(town)
    tries(desk, NEAR, "wrong", FREE_TRIES)
    assert tries(desk, NEAR, key) == [status]


def test_signing_in_is_slowed_down_too_and_the_right_link_still_gets_through(guarded: Desk) -> None:
    caller = guarded.caller({"Accept": "text/html"}, address=FAR)
    links = [caller.get("/login", params={"token": f"guess{number}"}).status_code for number in range(FREE_TRIES)]
    assert links == [401] * (FREE_TRIES - 1) + [429]
    answer = caller.post("/login", data={"key": "wrong"})
    assert (answer.status_code, "Try again in" in answer.text) == (429, True)
    assert caller.get("/login", params={"token": guarded.context.sessions.token}).status_code == 303


def test_health_is_no_way_around_it(guarded: Desk) -> None:
    caller = guarded.caller({"X-API-Key": "wrong"}, address=FAR)
    assert {caller.get("/health").status_code for _ in range(FREE_TRIES)} <= {200, 503}
    assert tries(guarded, FAR, "wrong") == [429]


def test_five_hundred_guesses_make_one_log_line_and_one_alert_which_closes_by_itself(
    guarded: Desk, lines: io.StringIO
) -> None:
    statuses = tries(guarded, FAR, "wrong", 500)
    assert statuses.count(429) == 500 - FREE_TRIES + 1
    assert lines.getvalue().count("wrong keys or links") == 1
    app = guarded.here.app
    (alert,) = [row for row in app.store.alerts.page() if row.subject == GUESSING]
    assert FAR in alert.message
    watch_credentials(app)
    assert app.store.alerts.count_open() == 1
    guarded.here.clock.advance(3601)
    watch_credentials(app)
    assert app.store.alerts.count_open() == 0
