"""Who may come in: programs by key, browsers by link and cookie, everyone else is told how."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.api.keys import SESSION_SECONDS, Keys, Sessions, signing_key
from tests.api.desk import Desk, operations
from tests.town import TownShop


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
    assert desk.door.keys.first(desk.here.clock.now()) is None
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or desk.key.encode() not in file.read_bytes()


def test_a_key_from_outside_works_is_not_stored_and_makes_a_first_one_needless(town: TownShop) -> None:
    keys = Keys(town.shop.store.api_keys, "open sesame ü")
    assert keys.first(town.clock.now()) is None
    assert town.shop.store.api_keys.is_empty()
    assert keys.is_valid("open sesame ü".encode())
    assert not keys.is_valid(b"open sesame")


# ── browsers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_link_lets_a_browser_in_and_leaves_no_token_in_the_address(desk: Desk) -> None:
    answer = desk.stranger.get("/login", params={"token": desk.door.sessions.token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert re.search(r"HttpOnly.*SameSite=lax", answer.headers["set-cookie"], re.IGNORECASE)
    assert desk.stranger.get("/").status_code == 200


def test_a_wrong_link_and_no_link_get_a_page_that_says_how_to_come_in(desk: Desk) -> None:
    wrong, none = desk.stranger.get("/login?token=guess"), desk.stranger.get("/")
    assert (wrong.status_code, none.status_code) == (401, 401)
    assert "earlier start" in wrong.text
    assert "catchment serve" in none.text
    assert "set-cookie" not in wrong.headers


def test_a_cookie_opens_pages_only(desk: Desk) -> None:
    assert desk.browser().get("/api/sources").status_code == 401


def test_a_session_outlives_a_restart_and_the_link_does_not(tmp_path: Path) -> None:
    before, after = Sessions(signing_key(tmp_path)), Sessions(signing_key(tmp_path))
    assert after.is_valid(before.new_cookie())
    assert not after.admits(before.token)


def test_a_cookie_that_is_old_changed_or_foreign_is_worth_nothing(tmp_path: Path) -> None:
    now = 1_000_000.0
    sessions = Sessions(signing_key(tmp_path), lambda: now)
    cookie = sessions.new_cookie()
    ends, _, signature = cookie.partition(".")
    later = Sessions(signing_key(tmp_path), lambda: now + SESSION_SECONDS)
    assert sessions.is_valid(cookie)
    assert not later.is_valid(cookie)
    for wrong in (None, "", ".", "x.y", f"{ends}.", f"{int(ends) + 1}.{signature}", f"{ends}.{signature}ÿ"):
        assert not sessions.is_valid(wrong)
    assert not Sessions(b"another key").is_valid(cookie)


def test_the_signing_key_is_for_its_owner_only(tmp_path: Path) -> None:
    signing_key(tmp_path)
    assert (tmp_path / "session-key").stat().st_mode & 0o777 == 0o600
