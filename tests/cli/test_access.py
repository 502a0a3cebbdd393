"""Keys, sessions and links, from the command line."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Catchment


def test_a_key_is_made_shown_once_listed_and_revoked(catchment: Catchment) -> None:
    made = catchment("keys", "add", "n8n", "--json").json
    assert (made["name"], made["key"].startswith("catchment_")) == ("n8n", True)
    (listed,) = catchment("keys", "list", "--json").json
    assert (listed["name"], listed["last_used_at"]) == ("n8n", None)
    assert made["key"] not in catchment("keys", "list").out
    assert "never" in catchment("keys", "list").out
    assert catchment("keys", "add", "n8n", "--json").failure == (5, "CONFLICT")
    assert catchment("keys", "revoke", "n8n", "--json").code == 0
    assert catchment("keys", "revoke", "n8n", "--json").failure == (4, "NOT_FOUND")


def test_lists_of_keys_and_sessions_that_are_empty_say_what_to_do_next(catchment: Catchment) -> None:
    catchment("migrate")
    assert "run `catchment keys add NAME`" in catchment("keys", "list").err
    assert "run `catchment login-link`" in catchment("sessions", "list").err


def test_a_lost_link_is_made_anew(catchment: Catchment) -> None:
    assert catchment("login-link", "--json").failure == (4, "NOT_FOUND")
    catchment("keys", "add", "first")
    assert catchment("login-link").out.startswith("http://127.0.0.1:8700/login?token=")
    other = catchment("login-link", "--port", "9000", "--json").json
    assert (other["url"].startswith("http://127.0.0.1:9000/login?token="), other["valid_minutes"]) == (True, 15)


def test_sessions_are_ended_by_number_or_all_at_once(catchment: Catchment) -> None:
    catchment("keys", "add", "first")
    assert catchment("sessions", "list", "--json").json == []
    assert catchment("sessions", "end", "7", "--json").failure == (4, "NOT_FOUND")
    assert catchment("sessions", "end", "--json").failure == (2, "INVALID_INPUT")
    assert catchment("sessions", "end", "--all", "--json").json == {"ended": 0}


def test_a_key_that_can_be_guessed_is_refused(catchment: Catchment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_API_KEY", "a")
    said = catchment("status", "--json")
    assert said.failure == (2, "BAD_SETTING")
    assert "at least 12 characters" in said.json["error"]["message"]
