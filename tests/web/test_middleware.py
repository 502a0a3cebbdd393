"""What holds for every answer: an id, safe headers, the right host, a bounded body; and health."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from catchment.clock import SystemClock
from catchment.web.middleware import (
    MOST_BYTES,
    host_name,
    hosts_for,
    request_id_from,
)
from tests.town import TownApp
from tests.web.desk import Desk


@pytest.mark.parametrize(
    "path", ["/", "/health", "/openapi.json", "/api/sources", "/api/sources/x", "/nothing", "/login"]
)
def test_every_answer_has_the_headers_that_keep_browsers_safe(desk: Desk, path: str) -> None:
    for caller in (desk.stranger, desk.client):
        headers = caller.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy


def test_no_other_site_may_read_an_answer(desk: Desk) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    answers = [desk.client.get("/health", headers=headers), desk.client.options("/api/sources", headers=headers)]
    assert not [name for answer in answers for name in answer.headers if name.startswith("access-control")]


# ── the request's id ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_id_that_came_in_is_in_the_answer_and_in_every_line_about_it(desk: Desk, lines: io.StringIO) -> None:
    desk.here.app.store.database.write(lambda tx: tx.run("DROP TABLE alerts"))
    answer = desk.client.get("/api/alerts", headers={"X-Request-ID": "flow-7"})
    assert answer.headers["x-request-id"] == "flow-7"
    assert answer.json()["meta"]["request_id"] == "flow-7"
    written = lines.getvalue().splitlines()
    ours = [line for line in written if '"catchment.' in line]
    assert len(ours) == 2
    assert all('"request_id": "flow-7"' in line for line in ours)


def test_no_line_holds_the_key_the_link_or_what_was_asked_for_in_a_query(desk: Desk, lines: io.StringIO) -> None:
    desk.browser().get("/")
    desk.client.get("/api/sources", params={"kind": "secretive"})
    written = lines.getvalue()
    assert '"path": "/api/sources"' in written
    assert desk.key is not None
    for secret in (desk.key, desk.context.sessions.token, "secretive"):
        assert not [line for line in written.splitlines() if secret in line and '"catchment.' in line]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1.2:3_4", "abc-1.2:3_4"), ("a b\r\nX: y", "abX:y"), ("x" * 100, "x" * 64), ("<script>", "script")],
)
def test_a_given_id_is_kept_as_far_as_it_is_harmless(given: str, kept: str) -> None:
    assert request_id_from(given) == kept


@pytest.mark.parametrize("given", [None, "", "  ", "中文", "\n"])
def test_without_one_an_id_is_made(given: str | None) -> None:
    assert request_id_from(given) != request_id_from(given)


# ── the host ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8700", "127.0.0.1:8700", "[::1]:8700", "LOCALHOST", "localhost."]
)
def test_bound_to_loopback_it_answers_to_its_own_names(desk: Desk, host: str) -> None:
    assert desk.stranger.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost@evil.example", "10.0.0.1"]
)
def test_bound_to_loopback_it_answers_to_no_other_name(desk: Desk, host: str) -> None:
    for caller in (desk.stranger, desk.client):
        answer = caller.get("/health", headers={"Host": host})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "WRONG_HOST")


def test_bound_to_more_than_loopback_any_name_will_do(town: TownApp) -> None:
    assert Desk(town, host="0.0.0.0").stranger.get("/health", headers={"Host": "box.lan"}).status_code == 200


def test_the_configured_name_is_one_of_its_own() -> None:
    assert hosts_for("127.0.0.5") == {"localhost", "127.0.0.1", "::1", "127.0.0.5"}
    assert hosts_for("::") is None
    assert host_name("Box.Lan.:80") == "box.lan"


# ── bodies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_too_large_is_refused_whether_or_not_it_says_so(desk: Desk) -> None:
    def drip() -> Iterator[bytes]:
        for _ in range(3):
            yield b" " * (MOST_BYTES // 2)

    json = {"Content-Type": "application/json"}
    told = desk.client.post("/api/sources", content=b" " * (MOST_BYTES + 1), headers=json)
    untold = desk.client.post("/api/sources", content=drip(), headers=json)
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in (told, untold)] == [
        (413, "TOO_LARGE")
    ] * 2


# ── health ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_health_tells_a_stranger_only_whether_all_is_well(both: Desk) -> None:
    assert both.stranger.get("/health").json() == {"ok": True}
    assert both.caller({"X-API-Key": "wrong"}).get("/health").json() == {"ok": True}
    assert both.stranger.head("/health").status_code == 200
    told = both.get("/health")
    assert told.keys() == {"ok", "version", "database", "scheduler", "last_runs", "collecting", "failed_tasks"}
    assert "collect-due" in [job["name"] for job in told["scheduler"]["jobs"]]


def test_health_is_503_when_the_database_is_away_even_for_keys_it_cannot_check(desk: Desk) -> None:
    desk.here.app.store.database.write(lambda tx: (tx.run("DROP TABLE jobs"), tx.run("DROP TABLE api_keys")))
    for caller in (desk.stranger, desk.client):
        answer = caller.get("/health")
        assert (answer.status_code, answer.json()) == (503, {"ok": False})


def late(desk: Desk, job: str) -> None:
    """The process has been there for an hour, and the job should have run just as long ago."""
    now = SystemClock().now()
    desk.here.app.clock = SystemClock()
    object.__setattr__(desk.context, "opened_at", now - timedelta(hours=1))
    desk.here.app.store.jobs.announce(job, now - timedelta(hours=1))


def test_a_scheduler_that_is_stuck_is_not_well_where_it_is_this_process_duty(tmp_path: Path) -> None:
    for collects, status in ((True, 503), (False, 200)):
        here = TownApp(tmp_path / str(collects), f"sqlite:///{tmp_path / str(collects)}.db")
        desk = Desk(here, collects=collects)
        late(desk, "notice-silence")
        answer = desk.client.get("/health")
        assert answer.status_code == status
        assert "notice-silence" in [job["name"] for job in answer.json()["scheduler"]["jobs"] if job["is_late"]]
        here.close()


def test_a_round_that_takes_long_is_under_way_not_late(desk: Desk) -> None:
    late(desk, "collect-due")
    app = desk.here.app
    app.store.runs.begin("collect-due", "schedule", app.presence.owner_id, app.clock.now())
    jobs = desk.client.get("/health").json()["scheduler"]["jobs"]
    assert not next(job for job in jobs if job["name"] == "collect-due")["is_late"]
