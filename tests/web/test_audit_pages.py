"""Audits, threads that lack replies, and the runs of boards, in a browser; threads before their floors in lists."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.errors import ServerTrouble
from tests.forum import ForumApp
from tests.web.browser import opened, plain
from tests.web.desk import Desk


class ForumDesk(Desk):
    here: ForumApp

    def item_id(self, external_id: str) -> int:
        return int(self.here.item(external_id)["id"])


@pytest.fixture
def desk(tmp_path: Path, database_url: str) -> Iterator[ForumDesk]:
    """A board with two threads, one of which has two holes."""
    forum = ForumApp(tmp_path, database_url, pages_per_run=100)
    thread = forum.board.thread(7, pages=2, title="Tides & <harbours>")
    forum.board.thread(8, title="Lighthouses")
    del thread.floors[11], thread.floors[12]
    forum.run()
    forum.app.store.index.advance()
    yield ForumDesk(forum)
    forum.close()


def test_an_audit_is_shown_with_its_threads_and_floors(desk: ForumDesk) -> None:
    assert "No audits yet" in opened(desk, "/audits")
    desk.here.take_out(7, 5, 25)
    desk.here.board.says["thread 7 1"] = deque([ServerTrouble("out of order", status=500)])
    audit = desk.here.app.floor_audit().run("test", is_repairing=True)
    assert f'href="/audits/{audit.id}"' in opened(desk, "/audits")
    page = plain(opened(desk, f"/audits/{audit.id}"))
    assert "Missing floors 2" in page
    assert "Tides & <harbours>" in page
    assert "HTTP (500): out of order" in page
    assert "#5 failed · attempts: 1" in page
    assert "#25 repaired · attempts: 1" in page
    assert "缺失楼层" in opened(desk, f"/audits/{audit.id}", language="zh")


def test_a_board_s_runs_lead_to_their_threads_and_say_why_each_was_read(desk: ForumDesk) -> None:
    page = opened(desk, f"/sources/{desk.here.source.id}/board-runs")
    (href,) = re.findall(r'href="(/runs/\d+/threads)"', page)
    assert "2 2 2 4" in plain(page)
    threads = plain(opened(desk, href))
    assert "Lighthouses" in threads
    assert "new thread" in threads
    assert f'href="{href}"' in opened(desk, href.removesuffix("/threads"))
    assert "board-runs" in opened(desk, f"/sources/{desk.here.source.id}")


def test_holes_of_the_forum_are_told_from_posts_that_are_not_stored(desk: ForumDesk) -> None:
    desk.here.take_out(7, 10, 13, 14)
    page = plain(opened(desk, f"/items/{desk.item_id('t7')}"))
    assert "#10: not stored yet" in page
    assert "#11–#12: removed by the forum" in page
    assert "#13–#14: not stored yet" in page


def test_threads_with_missing_replies_are_listed_worst_first(desk: ForumDesk) -> None:
    assert "No replies are missing" in opened(desk, "/audits/replies")
    desk.here.take_out(7, 5, 25, 26)
    page = plain(opened(desk, "/audits/replies"))
    assert "Tides & <harbours> board:1 3 39 34 2" in page
    (row,) = desk.get("/api/missing-replies")["items"]
    assert (row["declared_count"], row["stored_count"], row["hole_count"], row["missing_count"]) == (39, 34, 2, 3)


@pytest.mark.parametrize("path", ["/items?source={source}", "/items?platform=forum", "/search?q=of&kind=forum_board"])
def test_a_forum_s_lists_show_threads_first_and_all_posts_if_asked(desk: ForumDesk, path: str) -> None:
    path = path.format(source=desk.here.source.id)
    threads = {desk.item_id("t7"), desk.item_id("t8")}
    assert shown(opened(desk, path)) == threads
    assert len(shown(opened(desk, f"{path}&posts=all"))) == 30
    # Who asks for an author wants all that they said.
    assert len(shown(opened(desk, f"{path}&author=ada"))) == 30


def shown(page: str) -> set[int]:
    return {int(number) for number in re.findall(r'class="headline" dir="auto" href="/items/(\d+)"', page)}


def test_the_api_lists_everything_or_threads_only(desk: ForumDesk) -> None:
    assert len(desk.get("/api/items", limit=200)["items"]) == 58
    assert {item["external_id"] for item in desk.get("/api/items", threads=True)["items"]} == {"t7", "t8"}
