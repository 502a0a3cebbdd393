"""What goes wrong, in one shape: wrong requests are 400 with the field, never 500; a 500 shows no inside."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment import errors
from catchment.errors import CatchmentError
from catchment.web.api.errors import failure_of
from tests.web.desk import Desk

HUGE = "9" * 400
NO_TIMES = ("", "0", "now", "2026-02-30", "2026-01-01T25:00", "99999-01-01", "-1", "%00", "%ED%A0%80", "9" * 400)
FEED = {"kind": "rss", "target": "https://one.example/feed"}


def is_the_shape(body: Any) -> bool:
    error, meta = body["error"], body["meta"]
    return (
        body.keys() == {"error", "meta"}
        and {"code", "message", "retryable"}
        <= error.keys()
        <= {"code", "message", "retryable", "field", "fields", "existing_id", "task_id"}
        and isinstance(error["retryable"], bool)
        and bool(error["message"])
        and meta.keys() == {"request_id"}
    )


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/sources?limit=0", "limit"),
        ("/api/sources?limit=1001", "limit"),
        ("/api/items?limit=201", "limit"),
        (f"/api/items?limit={HUGE}", "limit"),
        ("/api/items?limit=ten", "limit"),
        (f"/api/items?source_id={2**63}", "source_id"),
        ("/api/items?source_id=-1", "source_id"),
        ("/api/items?source_id=%00", "source_id"),
        (f"/api/sources?after={2**63}", "after"),
        ("/api/sources?after=-1", "after"),
        ("/api/sources?after=%00", "after"),
        ("/api/sources?after=%EF%BC%91", "after"),
        ("/api/collector/status?after=x", "after"),
        (f"/api/runs?after={HUGE}", "after"),
        ("/api/runs/0", "run_id"),
        ("/api/runs/1?outcome=fine", "outcome"),
        ("/api/runs/1?after=-1", "after"),
        ("/api/gaps?after=1.5", "after"),
        ("/api/items?after=1-2-3", "after"),
        (f"/api/items?after={2**63}-1", "after"),
        ("/api/items?after=%00-%00", "after"),
        (f"/api/items?after=1-{'1' * 5000}", "after"),
        ("/api/sources?kind=%00", "kind"),
        ("/api/sources?kind=' OR 1=1", "kind"),
        ("/api/sources?state=gone", "state"),
        ("/api/gaps?include_closed=perhaps", "include_closed"),
        (f"/api/sources/{HUGE}", "source_id"),
        ("/api/sources/0", "source_id"),
        ("/api/sources/one", "source_id"),
        ("/api/items/%00", "item_id"),
        (f"/api/items/{2**63}/revisions", "item_id"),
        *((f"/api/items/1?at={at}", "at") for at in NO_TIMES),
        *((f"/api/items?until={at}", "until") for at in NO_TIMES),
        ("/api/items?author=%00", "author"),
        ("/api/items?author=", "author"),
        (f"/api/items?tag={'x' * 501}", "tag"),
        ("/api/items?kind=A", "kind"),
        *((f"/api/{path}kind=nosuchkind", "kind") for path in ("items?", "search?q=a&", "sources?", "metrics?")),
        *((f"/api/{path}platform=nosuchplatform", "platform") for path in ("items?", "search?q=a&", "plan?")),
        ("/api/items?platform=%00", "platform"),
        ("/api/items?is_deleted=perhaps", "is_deleted"),
        ("/api/items?changed_since=-1", "changed_since"),
        (f"/api/items?changed_since={2**63}", "changed_since"),
        *((f"/api/raw-items?since={at}", "since") for at in NO_TIMES),
        ("/api/raw-items?limit=201", "limit"),
        ("/api/raw-items?after=x", "after"),
        ("/api/raw-items/for-digest?limit=501", "limit"),
        ("/api/raw-items/for-digest?since=0", "since"),
        ("/api/raw-items/stats?after=1-2", "after"),
        ("/api/changes?after=-1", "after"),
        ("/api/changes?after=1-x", "after"),
        (f"/api/changes?after={HUGE}", "after"),
        ("/api/changes?after=%ED%A0%80", "after"),
        ("/api/changes?limit=201", "limit"),
        ("/api/changes?counters=perhaps", "counters"),
    ],
)
def test_an_absurd_question_is_400_and_names_the_field(desk: Desk, path: str, field: str) -> None:
    answer = desk.client.get(path)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert is_the_shape(answer.json())
    assert len(answer.text) < 1000


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/items?limit=ten", "limit must be a whole number"),
        ("/api/items?limit=201", "limit must be 200 or less"),
        ("/api/items?author=", "author must not be empty"),
        ("/api/items?order=new", "order must be one of posted, replied"),
        ("/api/gaps?include_closed=perhaps", "include_closed must be true or false"),
        (
            "/api/items?since=never",
            "since is not a time; use one like 2026-03-01, 2026-03-01T00:00:00Z, yesterday or 2d (two days ago)",
        ),
        ("/api/nowhere", "no such endpoint — see /openapi.json"),
    ],
)
def test_a_wrong_question_is_answered_in_our_own_words(desk: Desk, path: str, message: str) -> None:
    assert desk.client.get(path).json()["error"]["message"] == message


def test_a_wrong_body_is_answered_in_our_own_words(desk: Desk) -> None:
    foreign = ("Input should", "Value error", "Field required", "Extra inputs", "String should", "jmespath expression:")
    for body, _ in WRONG_BODIES:
        content = json.dumps(body)
        answer = desk.client.post("/api/sources", content=content, headers={"Content-Type": "application/json"})
        assert [words for words in foreign if words in answer.json()["error"]["message"]] == []
    answer = desk.client.post("/api/sources", content=b"\xff", headers={"Content-Type": "application/json"})
    assert answer.json()["error"]["message"].startswith("the body cannot be read")


def test_items_are_listed_since_a_time_counted_back_from_now(desk: Desk) -> None:
    for path in ("/api/items?since=2d&until=today", "/api/search?q=a&since=yesterday", "/api/raw-items?since=12h"):
        assert desk.client.get(path).status_code == 200


@pytest.mark.parametrize(
    ("path", "methods"), [("/api/sources", "GET, POST"), ("/api/sources/1", "DELETE, GET, PATCH"), ("/api/runs", "GET")]
)
def test_what_may_not_be_done_with_a_path_is_405_and_says_what_may(desk: Desk, path: str, methods: str) -> None:
    answer = desk.client.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)
    assert is_the_shape(answer.json())


WRONG_BODIES: list[tuple[Any, str | None]] = [
    ({"target": "https://one.example/feed"}, "kind"),
    ({"kind": "rss"}, "target"),
    ({"kind": "nothing", "target": "x"}, "kind"),
    ({"kind": 7, "target": "x"}, "kind"),
    (FEED | {"target": "a\0b"}, "target"),
    (FEED | {"target": ""}, "target"),
    (FEED | {"target": "x" * 5000}, "target"),
    (FEED | {"name": "a\0b"}, "name"),
    (FEED | {"name": "\ud800"}, "name"),
    (FEED | {"categories": "news"}, "categories"),
    (FEED | {"categories": ["a\0b"]}, "categories.0"),
    (FEED | {"interval_minutes": 0}, "interval_minutes"),
    (FEED | {"interval_minutes": 10**30}, "interval_minutes"),
    (FEED | {"interval_minutes": "30"}, "interval_minutes"),
    (FEED | {"interval_minutes": True}, "interval_minutes"),
    (FEED | {"interval_minutes": 1.5}, "interval_minutes"),
    (FEED | {"priority": "urgent"}, "priority"),
    (FEED | {"settings": []}, "settings"),
    (FEED | {"settings": {"a": "\0"}}, "settings"),
    (FEED | {"settings": {"a": {"b": ["\ud800"]}}}, "settings"),
    (FEED | {"settings": {"a": 10**30}}, "settings"),
    (FEED | {"settings": {"a": float("inf")}}, "settings"),
    (FEED | {"settings": {"strange": 1}}, "strange"),
    (FEED | {"setings": {}}, "setings"),
    ({"kind": "website", "target": "https://a.example/", "settings": {"links": "a["}}, "links"),
    ({"kind": "custom_api", "target": "https://a.example/", "settings": {"items": "a["}}, "items"),
    ([], None),
    ("rss", None),
    (None, None),
]


def test_a_watch_for_a_kind_that_there_is_not_is_400_and_names_those_that_there_are(desk: Desk) -> None:
    answer = desk.client.post("/api/watches", json={"name": "w", "words": ["a"], "kinds": ["rss", "rsss"]})
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (400, "kinds")
    assert "did you mean rss?" in error["message"]
    assert "website" in error["message"]


@pytest.mark.parametrize(("body", "field"), WRONG_BODIES)
def test_a_wrong_body_is_400_and_names_the_field(desk: Desk, body: Any, field: str | None) -> None:
    content = json.dumps(body)
    answer = desk.client.post("/api/sources", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].get("field") == field
    assert is_the_shape(answer.json())
    assert desk.get("/api/sources")["items"] == []


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b"", b'{"kind": "rss", "target": }'])
def test_a_body_that_is_no_json_is_400(desk: Desk, content: bytes) -> None:
    answer = desk.client.post("/api/sources", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert is_the_shape(answer.json())


def test_a_body_of_another_type_is_400_and_says_which_is_right(desk: Desk) -> None:
    answer = desk.client.post("/api/sources", content=b"kind=rss", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 400
    assert "application/json" in answer.json()["error"]["message"]


def test_null_is_refused_where_it_has_no_meaning(desk: Desk) -> None:
    source = desk.here.follow(desk.here.town.feed("one"))
    for field in ("name", "settings", "categories", "priority"):
        answer = desk.client.patch(f"/api/sources/{source.id}", json={field: None})
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/sources/7", 404, "NOT_FOUND"),
        ("DELETE", "/api/sources/7", 404, "NOT_FOUND"),
        ("POST", "/api/sources/7/run", 404, "NOT_FOUND"),
        ("GET", "/api/items/7", 404, "NOT_FOUND"),
        ("GET", "/api/items/7/revisions", 404, "NOT_FOUND"),
        ("GET", "/api/items/7/counters", 404, "NOT_FOUND"),
        ("GET", "/api/nothing", 404, "NOT_FOUND"),
        ("PUT", "/api/sources", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/health", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/nothing", 404, "NOT_FOUND"),
    ],
)
def test_what_is_not_there_has_the_same_shape(desk: Desk, method: str, path: str, status: int, code: str) -> None:
    answer = desk.client.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert is_the_shape(answer.json())


def test_a_person_gets_a_page_instead(desk: Desk) -> None:
    answer = desk.browser().get("/nothing")
    assert answer.status_code == 404
    assert "<h1>Page not found</h1>" in answer.text
    assert answer.headers["x-request-id"] in answer.text


def test_what_nobody_foresaw_is_a_500_that_shows_no_inside(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> dict[str, int]:
        raise RuntimeError("the inside of it")

    monkeypatch.setattr(desk.here.app, "intervals", broken)
    answer = desk.client.get("/api/sources")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL")
    assert is_the_shape(answer.json())
    assert "inside" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_database_that_fails_is_a_503_that_may_be_tried_again_and_does_not_tell_where_it_lies(desk: Desk) -> None:
    desk.here.app.store.database.write(lambda tx: tx.run("DROP TABLE alerts"))
    answer = desk.client.get("/api/alerts")
    assert answer.status_code == 503
    assert (answer.json()["error"]["code"], answer.json()["error"]["retryable"]) == ("STORE_ERROR", True)
    assert "sqlite" not in answer.text
    assert "alerts" not in answer.json()["error"]["message"]


def test_keys_that_cannot_be_checked_are_a_503_not_a_401(desk: Desk) -> None:
    desk.here.app.store.database.write(lambda tx: tx.run("DROP TABLE api_keys"))
    assert desk.client.get("/api/sources").status_code == 503


def every_error(base: type[CatchmentError] = CatchmentError) -> list[type[CatchmentError]]:
    return [base, *(found for subclass in base.__subclasses__() for found in every_error(subclass))]


EXPECTED = {
    errors.InvalidInput: 400,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.StoreError: 503,
    errors.LeaseLost: 409,
    errors.Stopped: 503,
    errors.PlatformError: 502,
    errors.TimedOut: 504,
    errors.LoginNeeded: 502,
    errors.BadSetting: 400,
    errors.CatchmentError: 500,
}


def test_every_error_of_ours_has_a_status() -> None:
    ours = [error for error in every_error() if error.__module__ == "catchment.errors"]
    statuses = {error: failure_of(error("what happened")).status for error in ours}
    assert {error: statuses[error] for error in EXPECTED} == EXPECTED
    assert all(status >= 400 for status in statuses.values())


words = st.text(max_size=40) | st.integers() | st.floats() | st.booleans() | st.none()
bodies = st.dictionaries(
    st.sampled_from(["kind", "target", "name", "settings", "credential", "interval_minutes", "categories", "priority"]),
    words | st.lists(words, max_size=3) | st.dictionaries(st.text(max_size=5), words, max_size=3),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies, place=st.text(max_size=20), number=st.integers())
def test_nothing_that_can_be_sent_makes_a_500(desk: Desk, body: dict[str, Any], place: str, number: int) -> None:
    content = json.dumps({"kind": "rss", "target": "https://one.example/feed"} | body)
    headers = {"Content-Type": "application/json"}
    answers = [
        desk.client.post("/api/sources", content=content, headers=headers),
        desk.client.patch("/api/sources/1", content=json.dumps(body), headers=headers),
        desk.client.get("/api/items", params={"after": place, "source_id": number}),
        desk.client.get("/api/sources", params={"after": number, "kind": place}),
    ]
    assert [answer.text for answer in answers if answer.status_code >= 500] == []


def test_absurd_bodies_make_no_500_on_either_database(both: Desk) -> None:
    for body, _ in WRONG_BODIES:
        content = json.dumps(body)
        answer = both.client.post("/api/sources", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
    nasty = FEED | {"name": "\u202e\x01'\"\\%s?", "categories": ["?", "%"], "interval_minutes": 525_600}
    assert both.post("/api/sources", nasty, status=201)["name"] == "'\"\\%s?"
