"""`credentials`: what a person does with them, on the command line, against a Reddit that is played on this machine."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Catchment
from tests.hostile import Behaviour, Connection, Hostile, Seen, reply, status

SECRET, OTHER = "sesame-open-7731", "sesame-close-1377"
NOTHING = reply(json.dumps({"kind": "Listing", "data": {"children": [], "after": None}}).encode())


def token(connection: Connection, seen: Seen) -> bool:
    body = json.dumps({"access_token": "a-token-1234567", "token_type": "bearer", "expires_in": 3600}).encode()
    answer: Behaviour = reply(body, content_type="application/json")
    return answer(connection, seen)


@pytest.fixture
def reddit(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    """Reddit, with one community in which nothing was ever posted."""
    monkeypatch.setenv("COOKIE_MASTER_KEY", "a master key for tests")
    with Hostile() as server:
        monkeypatch.setenv("CATCHMENT_REDDIT_BASE_URL", server.url)
        server.on("/api/v1/access_token", token)
        server.on("/api/info", NOTHING)
        server.on("/r/webdev/new", NOTHING)
        yield server


def added(catchment: Catchment, name: str = "main", *more: str, secret: str = SECRET) -> None:
    said = catchment("credentials", "add", "reddit", name, *more, stdin=f"client-of-{name}:{secret}".encode())
    assert said.code == 0, said.err


def listed(catchment: Catchment) -> dict[str, dict[str, Any]]:
    return {credential["name"]: credential for credential in catchment("credentials", "list", "--json").json}


def followed(catchment: Catchment, *more: str) -> int:
    source: int = catchment("sources", "add", "reddit", "r/webdev", "--set", "sort=new", *more, "--json").json["id"]
    return source


def collected(catchment: Catchment, source: int) -> dict[str, Any]:
    result: dict[str, Any] = catchment("collect", "--source", source, "--json").json["results"][0]
    return result


# ── keeping ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("reddit")
def test_what_a_person_decides_about_one_is_kept_and_can_be_changed(catchment: Catchment) -> None:
    added(catchment, "main", "--priority", "5", "--daily-limit", "1000", "--expires", "2099-01-01")
    credential = listed(catchment)["main"]
    told = (
        credential["priority"],
        credential["daily_limit"],
        credential["expires_at"],
        credential["state"],
        credential["is_usable"],
        credential["is_shared"],
    )
    assert told == (5, 1000, "2099-01-01T00:00:00+00:00", "active", True, True)
    changed = catchment("credentials", "change", "main", "--daily-limit", "0", "--priority", "-1", "--json").json
    assert (changed["daily_limit"], changed["priority"], changed["expires_at"]) == (None, -1, credential["expires_at"])
    assert catchment("credentials", "show", "main").out.count("2099-01-01")


@pytest.mark.usefixtures("reddit")
def test_one_that_has_ended_already_is_refused(catchment: Catchment) -> None:
    said = catchment("credentials", "add", "reddit", "main", "--expires", "2020-01-01", "--json", stdin=b"a:b-secret")
    assert said.failure == (2, "INVALID_INPUT")


@pytest.mark.usefixtures("reddit")
def test_where_sources_bring_their_own_hosts_a_credential_is_for_those_that_name_it(catchment: Catchment) -> None:
    said = catchment("credentials", "add", "feeds", "mine", stdin=SECRET.encode())
    assert "sources that name it" in said.out
    added(catchment, "apart", "--reserved")
    assert [(credential["name"], credential["is_shared"]) for credential in listed(catchment).values()] == [
        ("mine", False),
        ("apart", False),
    ]


@pytest.mark.usefixtures("reddit")
def test_pausing_and_resuming_are_told_with_the_reason(catchment: Catchment) -> None:
    added(catchment)
    assert catchment("credentials", "pause", "main", "--reason", "on leave", "--json").json["state"] == "paused"
    alerts = catchment("status", "--json").json["alerts"]
    assert [(alert["subject"], alert["severity"]) for alert in alerts] == [("pool reddit exhausted", "P0")]
    assert catchment("status", "--json").json["credentials"] == {"shared": 1, "usable": 0, "exhausted": ["reddit"]}
    doctor = catchment("doctor", "--json")
    assert (doctor.code, "main is paused: on leave" in doctor.out) == (1, True)
    assert catchment("credentials", "resume", "main", "--json").json["state"] == "active"
    assert catchment("status", "--json").json["alerts"] == []
    changes = catchment("credentials", "show", "main", "--json").json["changes"]
    assert [(change["to_state"], change["reason"]) for change in changes] == [
        ("active", "resumed by a user"),
        ("paused", "on leave"),
        ("active", "added"),
    ]


@pytest.mark.usefixtures("reddit")
def test_a_change_says_what_holds_now_and_a_change_of_nothing_is_a_mistake(catchment: Catchment) -> None:
    added(catchment)
    said = catchment("credentials", "change", "main", "--daily-limit", "1500", "--priority", "7").out
    assert "Priority 7 · 1,500 uses per day · expires: never" in said
    assert catchment("credentials", "change", "main", "--json").failure == (2, "INVALID_INPUT")


@pytest.mark.usefixtures("reddit")
def test_a_name_that_is_taken_says_how_to_take_its_place(catchment: Catchment) -> None:
    added(catchment)
    said = catchment("credentials", "add", "reddit", "main", stdin=b"another:secret-of-mine")
    assert (said.code, "--replace" in said.err) == (5, True)
    added(catchment, "main", "--replace")


@pytest.mark.usefixtures("reddit")
def test_people_are_shown_times_they_can_read(catchment: Catchment) -> None:
    added(catchment)
    said = catchment("credentials", "show", "main").out
    assert "UTC (" in said
    assert "T00:00" not in said
    # It can be used: there is no moment from which on it can.
    assert [line.split()[-1] for line in said.splitlines() if line.startswith("Usable from")] == ["–"]


@pytest.mark.usefixtures("reddit")
@pytest.mark.parametrize("action", ["show", "pause", "resume", "test", "remove", "change"])
def test_one_that_is_not_there_is_said_to_be_not_there(catchment: Catchment, action: str) -> None:
    how = ("--priority", "1") if action == "change" else ()
    assert catchment("credentials", action, "nobody", *how, "--json").failure == (4, "NOT_FOUND")


# ── using ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_community_is_read_with_a_credential_of_the_pool(catchment: Catchment, reddit: Hostile) -> None:
    added(catchment)
    assert collected(catchment, followed(catchment))["outcome"] == "succeeded"
    assert [seen.path.partition("?")[0] for seen in reddit.seen] == ["/api/v1/access_token", "/r/webdev/new"]
    assert reddit.seen[1].headers["authorization"] == "Bearer a-token-1234567"
    assert (listed(catchment)["main"]["used_today"], listed(catchment)["main"]["source_count"]) == (1, 0)


def test_one_of_the_environment_works_alike_and_is_stored_nowhere(
    catchment: Catchment, reddit: Hostile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catchment("migrate")
    monkeypatch.setenv("REDDIT_CLIENT_ID", "a-client-id")
    monkeypatch.setenv("REDDIT_CLIENT_SECRET", SECRET)
    monkeypatch.delenv("COOKIE_MASTER_KEY")
    credential = listed(catchment)["reddit-environment"]
    assert (credential["is_from_environment"], credential["is_shared"], credential["state"]) == (True, True, "active")
    assert collected(catchment, followed(catchment))["outcome"] == "succeeded"
    assert "client_credentials" in reddit.seen[0].body.decode()
    assert catchment("credentials", "test", "reddit-environment", "--json").json["is_accepted"] is True
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    settings = {setting["name"]: setting["value"] for setting in catchment("doctor", "--json").json["settings"]}
    assert (settings["REDDIT_CLIENT_ID"], settings["REDDIT_CLIENT_SECRET"]) == ("set", "set")


def test_half_of_what_makes_one_is_warned_of(catchment: Catchment, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDDIT_CLIENT_SECRET", SECRET)
    said = catchment("doctor", "--json")
    assert "REDDIT_CLIENT_SECRET is of no use without REDDIT_CLIENT_ID" in said.out
    assert SECRET not in said.out + said.err


def test_an_exhausted_pool_says_when_to_come_back_and_charges_no_source(catchment: Catchment, reddit: Hostile) -> None:
    added(catchment)
    source = followed(catchment)
    reddit.on("/api/v1/access_token", status(401))
    codes = [collected(catchment, source)["error"]["code"] for _ in range(4)]
    assert codes == ["LOGIN_NEEDED"] * 3 + ["COOKIE_EXHAUSTED"]
    error = collected(catchment, source)["error"]
    assert (error["retryable"], "the next one is usable from" in error["message"]) == (False, True)
    shown = catchment("sources", "show", source, "--json").json
    assert shown["failures_in_a_row"] == 0
    assert listed(catchment)["main"]["state"] == "cooling"
    assert "pool reddit exhausted" in catchment("status", "--json").out


@pytest.mark.usefixtures("reddit")
def test_one_whose_uses_of_the_day_are_over_says_so_in_a_sentence(catchment: Catchment) -> None:
    added(catchment, "main", "--daily-limit", "1")
    source = followed(catchment)
    assert collected(catchment, source)["error"] is None
    words = collected(catchment, source)["error"]["message"]
    assert "main is used up for today: its limit is 1 a day — the next one is usable from" in words


def test_a_source_that_names_one_is_charged_and_goes_on_with_it(catchment: Catchment, reddit: Hostile) -> None:
    added(catchment)
    added(catchment, "spare")
    source = followed(catchment, "--credential", "spare")
    reddit.on("/api/v1/access_token", status(401))
    assert [collected(catchment, source)["error"]["code"] for _ in range(4)] == ["LOGIN_NEEDED"] * 4
    assert catchment("sources", "show", source, "--json").json["failures_in_a_row"] == 4
    # The fourth was sent while it should have rested.
    assert {name: credential["state"] for name, credential in listed(catchment).items()} == {
        "main": "active",
        "spare": "banned",
    }


# ── testing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_test_really_asks_and_what_comes_counts(catchment: Catchment, reddit: Hostile) -> None:
    added(catchment)
    said = catchment("credentials", "test", "main", "--json")
    assert (said.code, said.json["is_accepted"], said.json["state"]) == (0, True, "active")
    assert [seen.path.partition("?")[0] for seen in reddit.seen] == ["/api/v1/access_token", "/api/info"]
    reddit.on("/api/v1/access_token", reply(b'{"error": "invalid_grant"}', content_type="application/json"))
    for _ in range(4):
        said = catchment("credentials", "test", "main", "--json")
    assert (said.code, said.json["is_accepted"], said.json["state"]) == (1, False, "banned")
    reddit.on("/api/v1/access_token", token)
    assert catchment("credentials", "test", "main", "--json").json["state"] == "active"


def test_whom_a_refusal_is_about_is_said_once(catchment: Catchment, reddit: Hostile) -> None:
    added(catchment)
    reddit.on("/api/v1/access_token", reply(b'{"error": "invalid_grant"}', content_type="application/json"))
    assert catchment("credentials", "test", "main").out.startswith("Credential main: Reddit issued no token")


def test_people_are_told_that_a_community_is_read_without_a_key(catchment: Catchment, reddit: Hostile) -> None:
    entry = "<entry><id>t3_a{0}</id><title>Boat {0}</title><updated>2026-01-0{0}T00:00:00Z</updated></entry>"
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom">{"".join(entry.format(number) for number in (1, 2))}</feed>'
    reddit.on("/r/webdev/new/.rss", reply(feed.encode(), content_type="application/atom+xml"))
    source = followed(catchment)
    assert "r/webdev: read from the community" in catchment("collect", "--source", source).out
    assert "without an API key" in catchment("sources", "show", source, "--json").json["note"]


def test_a_platform_in_trouble_says_nothing_about_a_credential(catchment: Catchment, reddit: Hostile) -> None:
    added(catchment)
    reddit.on("/api/info", status(503))
    assert catchment("credentials", "test", "main", "--json").failure == (3, "SERVER_TROUBLE")
    assert listed(catchment)["main"]["errors_in_all"] == 0


@pytest.mark.usefixtures("reddit")
def test_where_there_is_nothing_to_test_with_that_is_said(catchment: Catchment) -> None:
    catchment("credentials", "add", "feeds", "mine", stdin=SECRET.encode())
    said = catchment("credentials", "test", "mine", "--json")
    assert (said.code, said.json["is_accepted"]) == (0, None)
    assert "nothing to test a credential with" in said.json["message"]


# ── changing the key ──────────────────────────────────────────────────────────────────────────────────────────────


def test_after_the_key_was_changed_the_old_one_is_needed_no_more(
    catchment: Catchment, reddit: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(catchment)
    catchment("webhooks", "add", "n8n", "https://n8n.example/a-secret-path", stdin=b"a-signing-secret-of-some-length")
    source, before = followed(catchment), listed(catchment)["main"]["key_id"]
    monkeypatch.setenv("COOKIE_MASTER_KEY", "the new master key,a master key for tests")
    done = catchment("credentials", "rotate-key", "--json").json
    assert (done["resealed"], done["key_id"] != before) == (2, True)
    assert catchment("credentials", "rotate-key", "--json").json == done | {"resealed": 0}
    monkeypatch.setenv("COOKIE_MASTER_KEY", "the new master key")
    assert collected(catchment, source)["outcome"] == "succeeded"
    assert catchment("doctor").code == 0


@pytest.mark.usefixtures("reddit")
def test_what_no_given_key_opens_is_named_and_the_rest_is_done(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(catchment)
    monkeypatch.setenv("COOKIE_MASTER_KEY", "another master key")
    added(catchment, "second")
    monkeypatch.setenv("COOKIE_MASTER_KEY", "the new master key,another master key")
    said = catchment("credentials", "rotate-key", "--json")
    assert said.failure == (7, "VAULT_ERROR")
    assert "1 secret encrypted again; no available key decrypts main (credentials)" in said.err
    # What helps is no secret, and is not hidden as one.
    assert ("set COOKIE_MASTER_KEY to the new key" in said.err, "REDACTED" in said.err) == (True, False)
    monkeypatch.delenv("COOKIE_MASTER_KEY")
    assert "new-key" in catchment("credentials", "rotate-key").err


def test_a_process_that_lacks_the_new_key_says_what_to_do_and_charges_no_source(
    catchment: Catchment, reddit: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(catchment)
    source = followed(catchment)
    monkeypatch.setenv("COOKIE_MASTER_KEY", "the new master key,a master key for tests")
    catchment("credentials", "rotate-key")
    monkeypatch.setenv("COOKIE_MASTER_KEY", "a master key for tests")
    error = collected(catchment, source)["error"]
    assert error["code"] == "VAULT_ERROR"
    assert "restart with that key added to COOKIE_MASTER_KEY" in error["message"]
    assert catchment("sources", "show", source, "--json").json["failures_in_a_row"] == 0
    assert reddit.seen == []


def test_a_collector_that_runs_with_both_keys_never_notices_the_change(
    catchment: Catchment, reddit: Hostile, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        added(catchment, name)
    source = followed(catchment, "--interval", "1")
    monkeypatch.setenv("COOKIE_MASTER_KEY", "the new master key,a master key for tests")
    # An hour a second, from after the source was added: it is due again and again.
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    fast = {"CATCHMENT_CLOCK": f"{tomorrow},3600", "COLLECTOR_TICK": "60"}
    process = start("collect", "--loop", **fast)
    wait_for(reddit, "/r/webdev/new", 5)
    assert catchment("credentials", "rotate-key", "--json").json["resealed"] == 3
    wait_for(reddit, "/r/webdev/new", len(reddit.seen) + 30)
    process.signal(signal.SIGTERM)
    assert process.said().code == 0
    shown = catchment("sources", "show", source, "--json").json
    assert (shown["last_error"], shown["fetch_error_count"]) == (None, 0)
    assert all(seen.headers["authorization"] for seen in reddit.seen)
    monkeypatch.setenv("COOKIE_MASTER_KEY", "the new master key")
    assert collected(catchment, source)["error"] is None


def wait_for(server: Hostile, path: str, count: int) -> None:
    """Until it was asked for that so often."""
    while sum(seen.path.startswith(path) for seen in list(server.seen)) < count:
        server.arrived.clear()
        assert server.arrived.wait(600), "nobody asks any more"


# ── the operator's figures ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "errors", "state"),
    [
        ({}, 2, "active"),
        ({"XHS_MAX_CONSECUTIVE_ERRORS": "2"}, 2, "cooling"),
        ({"XHS_MAX_TOTAL_ERRORS": "2"}, 2, "invalid"),
        ({"CATCHMENT_CREDENTIAL_REST_HOURS": "0", "XHS_MAX_TOTAL_ERRORS": "1"}, 1, "invalid"),
    ],
)
def test_how_much_is_borne_is_a_setting(
    catchment: Catchment,
    reddit: Hostile,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    errors: int,
    state: str,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    added(catchment)
    reddit.on("/api/v1/access_token", status(401))
    for _ in range(errors):
        catchment("credentials", "test", "main")
    credential = listed(catchment)["main"]
    assert credential["state"] == state
    rests = "CATCHMENT_CREDENTIAL_REST_HOURS" not in settings
    assert (credential["usable_from"] is not None) == rests


def test_for_how_long_it_rests_is_a_setting(
    catchment: Catchment, reddit: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XHS_COOLING_DURATION_MINUTES", "7")
    monkeypatch.setenv("XHS_MAX_CONSECUTIVE_ERRORS", "1")
    added(catchment)
    reddit.on("/api/v1/access_token", status(401))
    catchment("credentials", "test", "main")
    credential = listed(catchment)["main"]
    rests = datetime.fromisoformat(credential["state_until"]) - datetime.fromisoformat(credential["state_since"])
    assert rests == timedelta(minutes=7)


@pytest.mark.usefixtures("reddit")
@pytest.mark.parametrize(("days", "is_told"), [(7, False), (30, True)])
def test_how_long_before_its_end_one_is_warned_of_is_a_setting(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch, days: int, is_told: bool
) -> None:
    monkeypatch.setenv("CATCHMENT_CREDENTIAL_EXPIRY_DAYS", str(days))
    ends = datetime.now(UTC) + timedelta(days=20)
    added(catchment, "main", "--expires", ends.isoformat())
    assert ("credential main expiring" in catchment("status", "--json").out) is is_told
