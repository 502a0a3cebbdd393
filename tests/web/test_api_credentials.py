"""Credentials through the API: how each one stands, and never its secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catchment.credentials.cipher import Cipher
from catchment.credentials.secret import Secret
from catchment.errors import LoginNeeded
from catchment.store.credentials import Terms
from catchment.web.api.credentials import CredentialSchema, CredentialStory
from tests.web.browser import sent
from tests.web.desk import Desk

SECRET = "sesame-open-7731"


def keep(desk: Desk, name: str = "main") -> None:
    app = desk.here.app
    app.__dict__["cipher"] = Cipher("a master key for tests")
    secret = Secret(basic=f"client:{SECRET}")
    app.secrets.add("reddit", name, secret, desk.here.clock.now(), terms=Terms(is_shared=True))


def refuse(desk: Desk, times: int) -> None:
    pool = desk.here.app.pool
    for _ in range(times):
        desk.here.clock.advance(1)
        use = pool.take("reddit")
        assert use is not None
        pool.failed(use, LoginNeeded(f"not accepted: {SECRET}"))


def only_credential(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = desk.get("/api/credentials")["items"][0]
    return found


def test_how_one_stands_is_told_whole_and_without_its_secret(both: Desk) -> None:
    keep(both)
    refuse(both, 3)
    answer = both.client.get("/api/credentials")
    told = answer.json()["items"][0]
    assert told.keys() == CredentialSchema.model_fields.keys()
    assert (told["state"], told["is_usable"], told["errors_in_all"], told["use_count"]) == ("cooling", False, 3, 3)
    assert (told["usable_from"], told["state_until"]) == ("2026-01-01T00:30:03+00:00", "2026-01-01T00:30:03+00:00")
    assert told["last_error"] == "not accepted: ***REDACTED***"
    assert SECRET not in answer.text
    both.here.clock.advance(1800)
    assert (only_credential(both)["state"], only_credential(both)["is_usable"]) == ("active", True)


def test_its_story_is_told(both: Desk) -> None:
    keep(both)
    refuse(both, 3)
    story = both.get("/api/credentials/1")
    assert story.keys() == CredentialStory.model_fields.keys()
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
    assert both.post("/api/credentials/1/pause")["state_reason"] == "paused by a user"


def test_one_that_is_not_there_is_not_there(desk: Desk) -> None:
    for path in ("/api/credentials/9/pause", "/api/credentials/9/resume"):
        assert desk.post(path, status=404)["error"]["code"] == "NOT_FOUND"
    assert desk.client.get("/api/credentials/9").status_code == 404


# ── where it may be named ─────────────────────────────────────────────────────────────────────────────────────────


def given_for_good_example(desk: Desk) -> None:
    terms = Terms(hosts=("good.example",))
    desk.here.app.store.credentials.add("feeds", "of-good", "key", b"sealed", desk.here.clock.now(), terms=terms)
    desk.here.app.store.credentials.add("reddit", "of-reddit", "key", b"sealed", desk.here.clock.now())


@pytest.mark.parametrize("name", ["of-good", "of-reddit"])
def test_no_request_names_a_credential_for_another_host_or_platform(both: Desk, name: str) -> None:
    given_for_good_example(both)
    source = both.here.follow(both.here.town.feed("evil"))
    body = {"kind": "rss", "target": "https://evil.example/other", "credential": name}
    answers = [
        both.client.post("/api/sources", json=body),
        both.client.post("/api/sources", json=body | {"check": True}),
        both.client.patch(f"/api/sources/{source.id}", json={"credential": name}),
    ]
    assert [(answer.status_code, answer.json()["error"]["field"]) for answer in answers] == [(400, "credential")] * 3
    assert both.here.town.asked == {}


@pytest.mark.parametrize("name", ["of-good", "of-reddit"])
def test_no_form_names_a_credential_for_another_host_or_platform(desk: Desk, name: str) -> None:
    given_for_good_example(desk)
    source = desk.here.follow(desk.here.town.feed("evil"))
    fields = {"kind": "rss", "target": "https://evil.example/other", "credential": name}
    answers = [
        sent(desk, "/sources/add", **fields),
        sent(desk, "/sources/add", intent="try", **fields),
        sent(desk, f"/sources/{source.id}/change", credential=name),
        sent(desk, "/sources/import", list=json.dumps([fields])),
        sent(desk, "/sources/import", list=json.dumps([fields]), allow_credentials="yes"),
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 400, 200, 200]
    assert "it specifies a credential" in answers[3].text
    assert f"the credential &#39;{name}&#39; is for" in answers[4].text
    assert desk.here.app.store.sources.get(source.id).credential is None
    assert [source.id for source, _ in desk.here.app.store.sources.page(0, 9)] == [source.id]


# ── what only looks like a secret ─────────────────────────────────────────────────────────────────────────────────

UNSURE = "hT7gQ2LmZx9Wc4Rb8NvK"
"""Long and random, in a parameter whose name says nothing."""


def vault(desk: Desk) -> None:
    desk.here.app.__dict__["cipher"] = Cipher("a master key for tests")


def test_the_form_asks_about_what_looks_like_a_secret_and_stores_it_encrypted_if_that_is_wanted(desk: Desk) -> None:
    vault(desk)
    given = {"kind": "rss", "target": f"https://a.example/feed?u={UNSURE}", "intent": "follow"}
    # A form comes back because of something else in it.
    form = sent(desk, "/sources/add", **given, interval="0").text
    assert 'name="keep_secret" value="yes">' in form
    assert "u looks like a secret" in form
    ticked = sent(desk, "/sources/add", **given, interval="0", keep_secret="yes").text
    assert 'name="keep_secret" value="yes" checked>' in ticked
    harmless = sent(desk, "/sources/add", **given | {"target": "https://a.example/feed?u=news"}, interval="0").text
    assert "keep_secret" not in harmless
    assert sent(desk, "/sources/add", **given, keep_secret="yes").status_code == 303
    (source,) = desk.get("/api/sources")["items"]
    assert source["target"] == "https://a.example/feed"
    assert source["credential"]
    assert UNSURE not in desk.browser().get("/sources/1").text


@pytest.mark.parametrize("keeps", [True, False])
def test_the_api_encrypts_what_only_looks_like_a_secret_if_that_is_wanted(desk: Desk, keeps: bool) -> None:
    vault(desk)
    address = f"https://a.example/feed?u={UNSURE}"
    added = desk.client.post("/api/sources", json={"kind": "rss", "target": address, "keep_secret": keeps})
    assert added.status_code == 201
    source = added.json()
    assert (source["target"], source["credential"] is not None) == (
        address.partition("?")[0] if keeps else address,
        keeps,
    )
    assert (UNSURE in added.text) is not keeps
