"""Credentials through the API: how each one stands, and never its secret."""

from __future__ import annotations

from typing import Any

from catchment.api import shapes
from catchment.errors import LoginNeeded
from catchment.store.credentials import Terms
from catchment.vault import Box, Secret
from tests.api.desk import Desk

SECRET = "sesame-open-7731"


def keep(desk: Desk, name: str = "main") -> None:
    shop = desk.here.shop
    shop.__dict__["box"] = Box("a master key for tests")
    secret = Secret(basic=f"client:{SECRET}")
    shop.safe.add("reddit", name, secret, desk.here.clock.now(), terms=Terms(is_shared=True))


def refuse(desk: Desk, times: int) -> None:
    pool = desk.here.shop.pool
    for _ in range(times):
        desk.here.clock.advance(1)
        use = pool.take("reddit")
        assert use is not None
        pool.failed(use, LoginNeeded(f"not accepted: {SECRET}"))


def one(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = desk.get("/api/credentials")["items"][0]
    return found


def test_how_one_stands_is_told_whole_and_without_its_secret(both: Desk) -> None:
    keep(both)
    refuse(both, 3)
    answer = both.client.get("/api/credentials")
    told = answer.json()["items"][0]
    assert told.keys() == shapes.Credential.model_fields.keys()
    assert (told["state"], told["is_usable"], told["errors_in_all"], told["use_count"]) == ("cooling", False, 3, 3)
    assert (told["usable_from"], told["state_until"]) == ("2026-01-01T00:30:03+00:00", "2026-01-01T00:30:03+00:00")
    assert told["last_error"] == "not accepted: ***REDACTED***"
    assert SECRET not in answer.text
    both.here.clock.advance(1800)
    assert (one(both)["state"], one(both)["is_usable"]) == ("active", True)


def test_its_story_is_told(both: Desk) -> None:
    keep(both)
    refuse(both, 3)
    story = both.get("/api/credentials/1")
    assert story.keys() == shapes.CredentialStory.model_fields.keys()
    assert [(each["from_state"], each["to_state"]) for each in story["changes"]] == [
        ("active", "cooling"),
        (None, "active"),
    ]
    assert SECRET not in str(story)


def test_a_person_pauses_and_resumes_it(both: Desk) -> None:
    keep(both)
    paused = both.post("/api/credentials/1/pause", {"reason": "on leave"})
    assert (paused["state"], paused["state_reason"], paused["usable_from"]) == ("paused", "on leave", None)
    assert [each["subject"] for each in both.get("/api/alerts")["items"]] == ["pool reddit exhausted"]
    assert both.post("/api/credentials/1/resume")["state"] == "active"
    assert both.get("/api/alerts")["items"] == []
    assert both.post("/api/credentials/1/pause")["state_reason"] == "paused by a person"


def test_one_that_is_not_there_is_not_there(desk: Desk) -> None:
    for path in ("/api/credentials/9/pause", "/api/credentials/9/resume"):
        assert desk.post(path, status=404)["error"]["code"] == "NOT_FOUND"
    assert desk.client.get("/api/credentials/9").status_code == 404
