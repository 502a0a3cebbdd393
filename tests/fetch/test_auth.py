"""Platforms that trade a credential for a token: when a login happens, how long it lasts, who sees what."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest

from catchment.credentials.secret import Secret
from catchment.errors import InvalidInput, LoginNeeded, SlowDown
from catchment.logs import redact
from catchment.model import Token
from tests.hostile import reply, status


def logins(server) -> int:
    return sum(seen.path == "/login" for seen in server.seen)


def test_one_login_serves_many_requests_and_is_an_attempt_itself(logged_door, server):
    url = server.on("/", reply())
    for _ in range(3):
        logged_door.ask(url, credential="app")
    login, *others = server.seen
    assert (login.method, login.body, login.headers["x-basic"]) == (
        "POST",
        b"grant_type=client_credentials",
        "id:s3cret",
    )
    assert [seen.headers["authorization"] for seen in others] == ["Bearer first-token"] * 3
    assert "x-basic" not in others[0].headers
    assert len(logged_door.attempts) == 4


def test_a_token_is_renewed_before_it_ends(logged_door, server):
    url = server.on("/", reply())
    for seconds, expected in ((0, 1), (899, 1), (1, 2)):
        logged_door.clock.advance(seconds)
        logged_door.ask(url, credential="app")
        assert logins(server) == expected


def test_a_refused_token_is_renewed_once(logged_door, server):
    url = server.on("/", reply(), status(401), reply())
    logged_door.ask(url, credential="app")
    assert logged_door.ask(url, credential="app").status == 200
    assert server.seen[-1].headers["authorization"] == "Bearer second-token"


def test_a_new_token_that_is_refused_too_means_that_a_person_must_act(logged_door, server):
    url = server.on("/", status(401))
    with pytest.raises(LoginNeeded):
        logged_door.ask(url, credential="app")
    assert (logins(server), len(server.seen)) == (1, 2)


def test_an_error_hidden_in_the_logins_answer_is_seen(logged_door, server):
    server.on("/login", reply(b'{"error": "unauthorized_client"}'))
    with pytest.raises(LoginNeeded, match=r"a source \(source 1\): the login failed: unauthorized_client"):
        logged_door.ask(server.on("/", reply()), credential="app")
    assert len(server.seen) == 1


def test_a_login_that_is_throttled_is_not_repeated(logged_door, server):
    server.on("/login", status(429, retry_after="60"))
    for _ in range(2):
        with pytest.raises(SlowDown):
            logged_door.ask(server.on("/", reply()), credential="app")
    assert len(server.seen) == 1


def test_a_secret_that_needs_no_login_is_sent_as_it_is(logged_door, server):
    logged_door.secrets["ready"] = Secret(headers={"Authorization": "Bearer ready"})
    logged_door.ask(server.on("/", reply()), credential="ready")
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer ready"]


def test_threads_that_need_the_same_token_log_in_once(logged_door, server):
    url, together = server.on("/", reply()), Barrier(4)

    def action() -> None:
        together.wait()
        logged_door.ask(url, credential="app")

    threads = [Thread(target=action) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (logins(server), len(server.seen)) == (1, 5)


def test_a_token_is_shown_nowhere(logged_door, server):
    logged_door.ask(server.on("/", reply()), credential="app")
    assert "first-token" not in repr(Token({"Authorization": "Bearer first-token"}, 5))
    assert "first-token" not in redact("it said first-token")


def test_a_header_cannot_smuggle_in_another(door, server):
    with pytest.raises(InvalidInput, match="line break"):
        door.ask(server.on("/", reply()), headers={"X-Name": "value\r\nX-Evil: yes"})
    assert server.seen == []
