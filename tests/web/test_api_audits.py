"""Audits, and the runs of boards and threads, through the API: requested, run by the job, read page by page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forum import ForumApp
from tests.web.desk import Desk


class ForumDesk(Desk):
    here: ForumApp


@pytest.fixture
def desk(tmp_path: Path, database_url: str) -> Iterator[ForumDesk]:
    """A board with three threads, the first of which has two pages."""
    forum = ForumApp(tmp_path, database_url, pages_per_run=100)
    forum.board.thread(7, pages=2)
    forum.board.thread(8)
    forum.board.thread(9)
    forum.run()
    yield ForumDesk(forum)
    forum.close()


def test_an_audit_is_requested_run_by_its_job_and_read_with_every_floor(desk: ForumDesk) -> None:
    desk.here.take_out(7, 5, 25)
    desk.here.take_out(8, 3)
    requested = desk.post("/api/audits", {"source_id": desk.here.source.id, "repair": True}, status=202)
    assert (requested["is_repairing"], requested["run_trigger"], requested["finished_at"]) == (True, "manual", None)
    assert desk.get(f"/api/audits/{requested['id']}")["threads"] == []
    desk.here.app.floor_audit().requested()
    audit = desk.get(f"/api/audits/{requested['id']}")
    assert (audit["missing_floor_count"], audit["repaired_floor_count"], audit["next"]) == (3, 3, None)
    assert results(audit["threads"]) == {"7": {5: "repaired", 25: "repaired"}, "8": {3: "repaired"}}
    assert [(row["id"], row["finished_at"]) for row in desk.get("/api/audits")["items"]] == [
        (requested["id"], audit["finished_at"])
    ]
    # The threads have pages, and so have the floors of one.
    first = desk.get(f"/api/audits/{audit['id']}", limit=1)
    second = desk.get(f"/api/audits/{audit['id']}", limit=1, after=first["next"])
    assert results(first["threads"] + second["threads"]) == results(audit["threads"])
    assert second["next"] is None
    (of_seven,) = (thread["id"] for thread in audit["threads"] if thread["thread_id"] == "7")
    floors = f"/api/audits/{audit['id']}/threads/{of_seven}/floors"
    assert [[floor["floor_number"] for floor in page] for page in desk.pages(floors, limit=1)] == [[5], [25]]
    assert desk.pages(f"/api/audits/{audit['id']}/gap-repairs") == [[]]


def results(threads: list[dict[str, Any]]) -> dict[str, dict[int, str]]:
    assert all(thread["floors_next"] is None for thread in threads)
    return {
        thread["thread_id"]: {floor["floor_number"]: floor["result"] for floor in thread["floors"]}
        for thread in threads
    }


def test_of_more_than_a_thousand_floors_the_answer_says_where_to_go_on(desk: ForumDesk) -> None:
    thread = desk.here.board.threads[9]
    desk.here.board.reply(thread, 1040, at=desk.here.clock.now())
    desk.here.run()
    desk.here.take_out(9, *range(10, 1050))
    audit = desk.here.app.floor_audit().run("test", is_repairing=False)
    (found,) = desk.get(f"/api/audits/{audit.id}")["threads"]
    assert (found["missing_count"], len(found["floors"]), found["floors_next"]) == (1040, 1000, "1009")
    rest = desk.get(f"/api/audits/{audit.id}/threads/{found['id']}/floors", after=found["floors_next"], limit=1000)
    assert [floor["floor_number"] for floor in rest["items"]] == list(range(1010, 1050))
    assert rest["next"] is None


def test_what_cannot_be_audited_or_is_not_there_is_refused(desk: ForumDesk) -> None:
    assert desk.post("/api/audits", {"source_id": 99}, status=404)["error"]["code"] == "NOT_FOUND"
    assert desk.post("/api/audits", {"repair": "yes"}, status=400)
    assert desk.get("/api/audits")["items"] == []
    audit = desk.here.app.floor_audit().run("test", is_repairing=False)
    for path in ("/api/audits/99", f"/api/audits/{audit.id}/threads/1/floors", "/api/audits/99/gap-repairs"):
        assert desk.client.get(path).status_code == 404


def test_runs_of_boards_and_threads_are_listed_page_by_page(desk: ForumDesk) -> None:
    desk.here.board.reply(desk.here.board.threads[8], 3)
    desk.here.run()
    path = f"/api/sources/{desk.here.source.id}/board-runs"
    (newest,), (oldest,) = desk.pages(path, limit=1)
    shown = ("run_trigger", "scanned_count", "changed_count", "updated_count", "request_count")
    assert [[run[name] for name in shown] for run in (newest, oldest)] == [
        ["manual", 3, 1, 1, 3],
        ["manual", 3, 3, 3, 5],
    ]
    threads = [run for page in desk.pages(f"/api/runs/{oldest['run_id']}/threads", limit=2) for run in page]
    told = ("thread_id", "read_reason", "page_count", "new_count", "is_capped", "http_status", "error")
    assert sorted([run[name] for name in told] for run in threads) == [
        ["7", "new", 2, 39, False, 200, None],
        ["8", "new", 1, 19, False, 200, None],
        ["9", "new", 1, 19, False, 200, None],
    ]
    (again,) = desk.get(f"/api/runs/{newest['run_id']}/threads")["items"]
    assert (again["thread_id"], again["read_reason"], again["new_count"]) == ("8", "last_reply_changed", 3)
    assert desk.client.get("/api/runs/99/threads").status_code == 404
    assert desk.client.get("/api/sources/99/board-runs").status_code == 404
