"""Who may come in: programs by key, browsers by link and cookie, everyone else is told how."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from catchment.clock import SystemClock
from catchment.web.auth import (
    LINK_MINUTES,
    SESSION_SECONDS,
    BrowserSessions,
    Keys,
    new_link,
    signing_key,
)
from tests.town import TownApp
from tests.web.desk import Desk, operations


def test_without_a_key_every_call_is_refused_in_the_one_shape(desk: Desk) -> None:
    for method, path in [*operations(desk), ("GET", "/api/nothing"), ("GET", "/api")]:
        answer = desk.stranger.request(method, path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path
        assert answer.json()["error"]["code"] == "UNAUTHORIZED"
        assert answer.json()["meta"]["request_id"] == answer.headers["x-request-id"]


def test_a_body_that_is_no_json_is_not_even_read_without_a_key(desk: Desk) -> None:
    assert desk.stranger.post("/api/sources", content=b"{").status_code == 401


@pytest.mark.parametrize(
    "header", ["Authorization: Bearer {key}", "authorization: bearer {key}", "X-API-Key: {key}", "x-api-key: {key}"]
)
def test_a_key_is_taken_from_either_header(desk: Desk, header: str) -> None:
    name, _, value = header.format(key=desk.key).partition(": ")
    assert desk.caller({name: value}).get("/api/sources").status_code == 200


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer ", "Bearer wrong", "Basic {key}", "{key}", "Bearer {key}x", "Bearer ÿ"]
)
def test_anything_else_is_not_a_key(desk: Desk, value: str) -> None:
    header = value.format(key=desk.key).encode("latin-1")
    assert desk.stranger.get("/api/sources", headers={b"Authorization": header}).status_code == 401  # type: ignore[dict-item]


def test_the_first_key_is_made_once_and_stored_only_as_a_hash(desk: Desk, tmp_path: Path) -> None:
    assert desk.key is not None
    assert desk.context.keys.first(desk.here.clock.now()) is None
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or desk.key.encode() not in file.read_bytes()


def test_a_key_from_outside_works_is_not_stored_and_makes_a_first_one_needless(town: TownApp) -> None:
    keys = Keys(town.app.store.api_keys, "open sesame ü", town.clock.now)
    assert keys.first(town.clock.now()) is None
    assert town.app.store.api_keys.is_empty()
    assert keys.is_outside("open sesame ü".encode())
    assert not keys.is_outside(b"open sesame")
    assert not keys.is_stored("open sesame ü".encode())


# ── browsers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_link_lets_a_browser_in_and_leaves_no_token_in_the_address(desk: Desk) -> None:
    answer = desk.stranger.get("/login", params={"token": desk.context.sessions.token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert re.search(r"HttpOnly.*SameSite=lax", answer.headers["set-cookie"], re.IGNORECASE)
    assert desk.stranger.get("/").status_code == 200


def test_a_wrong_link_and_no_link_get_a_page_that_says_how_to_come_in(desk: Desk) -> None:
    wrong, none = desk.stranger.get("/login?token=guess"), desk.stranger.get("/")
    assert (wrong.status_code, none.status_code) == (401, 401)
    assert "before a restart" in wrong.text
    assert "catchment login-link" in none.text
    assert "set-cookie" not in wrong.headers


def test_a_cookie_opens_pages_only(desk: Desk) -> None:
    assert desk.browser().get("/api/sources").status_code == 401


def sessions_of(town: TownApp, now: datetime | None = None) -> BrowserSessions:
    """Those of another process on the same database and home."""
    store = town.app.store
    key = signing_key(town.app.settings.home)
    return BrowserSessions(key, store.sessions, store.sign_in_links, lambda: now or town.clock.now())


def test_a_session_outlives_a_restart_and_the_link_does_not(town: TownApp) -> None:
    before, after = sessions_of(town), sessions_of(town)
    assert after.find(before.open("link", "a browser")) is not None
    assert not after.admits(before.token)


def test_a_cookie_that_is_old_or_foreign_is_worth_nothing(town: TownApp) -> None:
    sessions, now = sessions_of(town), town.clock.now()
    cookie = sessions.open("link", "a browser")
    assert sessions.find(cookie) is not None
    for wrong in (None, "", ".", cookie[:-1], f"{cookie}x", "ÿ", "\ud800"):
        assert sessions.find(wrong) is None
    assert sessions_of(town, now + timedelta(seconds=SESSION_SECONDS)).find(cookie) is None


def test_no_cookie_can_be_read_from_the_database(desk: Desk, tmp_path: Path) -> None:
    browser = desk.browser()
    cookie = browser.cookies[desk.context.sessions.cookie_name]
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or cookie.encode() not in file.read_bytes()


def test_signing_out_ends_the_session_on_the_server(both: Desk) -> None:
    browser, other = both.browser(), both.browser()
    name = both.context.sessions.cookie_name
    cookie = browser.cookies[name]
    assert cookie != other.cookies[name]
    assert browser.post("/logout", data={"token": both.context.sessions.token_of(cookie)}).status_code == 303
    stolen = both.caller({"Accept": "text/html", "Cookie": f"{name}={cookie}"})
    assert (stolen.get("/sources").status_code, other.get("/sources").status_code) == (401, 200)


def test_sessions_are_listed_and_ended_by_the_api(both: Desk) -> None:
    first, second = both.browser(), both.browser()
    listed = both.get("/api/sessions")["items"]
    assert [session["opened_by"] for session in listed] == ["link", "link"]
    assert both.client.delete(f"/api/sessions/{listed[1]['id']}").status_code == 204
    assert (first.get("/sources").status_code, second.get("/sources").status_code) == (401, 200)
    assert both.client.delete(f"/api/sessions/{listed[1]['id']}").status_code == 404


def test_the_settings_page_lists_sessions_and_ends_all_others(desk: Desk) -> None:
    own, other = desk.browser(), desk.browser()
    page = own.get("/settings").text
    assert (page.count("signed in with a link"), page.count("this browser")) == (2, 1)
    token = desk.context.sessions.token_of(own.cookies[desk.context.sessions.cookie_name])
    assert own.post("/sessions/end-others", data={"token": token}).status_code == 303
    assert (own.get("/settings").status_code, other.get("/settings").status_code) == (200, 401)


def test_a_link_made_later_signs_in_once_and_only_for_a_while(both: Desk) -> None:
    links, now = both.here.app.store.sign_in_links, SystemClock().now()
    token, late = new_link(links, now), new_link(links, now - timedelta(minutes=LINK_MINUTES))
    statuses = [both.caller().get("/login", params={"token": attempt}).status_code for attempt in (token, token, late)]
    assert statuses == [303, 401, 401]


def test_the_signing_key_is_for_its_owner_only(tmp_path: Path) -> None:
    signing_key(tmp_path)
    assert (tmp_path / "session-key").stat().st_mode & 0o777 == 0o600
