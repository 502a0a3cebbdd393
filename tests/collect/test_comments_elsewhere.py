"""NGA in JSON: the text of a comment is with the post that it comments on, its number on its own page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import Gone
from catchment.fetch.settings import Attempt
from catchment.model import Answer, Platform, Request
from catchment.platforms import nga
from catchment.sources.add import follow
from tests.clocks import HandClock
from tests.playing import Answering
from tests.town import TownApp

TID, PARENT, COMMENT = 41000010, 824000003, 824000040
REPLY = f"[b]Reply to [pid={PARENT},{TID},1]Reply[/pid] Post by [uid=501]ada[/uid] (2026-02-02 10:40)[/b]"
ON, NUMBER = 3, 40
"""Floor 40 is a comment on floor 3, or on the post that opens the thread."""


class JsonBoard(Answering):
    """A board with one thread, in JSON whatever is requested."""

    def __init__(self, clock: HandClock) -> None:
        self.clock, self.opened_at = clock, clock.now()
        self.count = 41
        """How many floors there are."""
        self.on = ON
        self.is_below_its_post = True
        self.gone_pids: set[str] = set()
        self.asked: list[dict[str, str]] = []

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        self.clock.advance(1)
        at = self.clock.now()
        attempts.append(Attempt(platform.NAME, at, "200", 0.0))
        self.asked.append({name: value for name, value in request.params.items() if name != "__output"})
        if request.params.get("pid") in self.gone_pids:
            raise Gone("there is no such thread or post on NGA")
        return Answer(200, {}, self._body(request).encode("gb18030"), request.url, at)

    def _body(self, request: Request) -> str:
        params = request.params
        if "fid" in params:
            data: dict[str, Any] = {"__T": {"0": self._thread()}, "__ROWS": 1, "__T__ROWS_PAGE": 35}
        elif "pid" in params:
            data = self._page([self._floor(self.on)], 1)
        else:
            page = int(params["page"])
            numbers = range((page - 1) * 20, min(page * 20, self.count))
            data = self._page([self._row(number) for number in numbers], page)
        return json.dumps({"data": data})

    def _thread(self) -> dict[str, Any]:
        opened = int(self.opened_at.timestamp())
        times = {"postdate": opened, "lastpost": opened + self.count, "replies": self.count - 1}
        return {"tid": TID, "fid": -7, "subject": "Locks", "author": "ada", "authorid": 501} | times

    def _page(self, rows: list[dict[str, Any]], page: int) -> dict[str, Any]:
        users = {"501": {"username": "ada"}, "502": {"username": "ben"}}
        shown = {"__T": self._thread(), "__R": dict(enumerate(rows)), "__U": users}
        return shown | {"__ROWS": self.count, "__R__ROWS_PAGE": 20, "__PAGE": page}

    @property
    def _reply(self) -> str:
        return REPLY if self.on else REPLY.replace(f"[pid={PARENT},{TID},1]Reply[/pid]", f"[tid={TID}]Topic[/tid]")

    def _row(self, number: int) -> dict[str, Any]:
        if number != NUMBER:
            return self._floor(number)
        # As in read-47344482-p1.utf8.json: a comment on the opening post, which has no number, is one on -1.
        parent = PARENT if self.on else -1
        subject = f"对回复({PARENT})发表了一条评论" if self.on else "对主题发表了一条评论"
        return {"subject": subject, "lou": number, "authorid": 502, "pid": COMMENT, "comment_to_id": parent}

    def _floor(self, number: int) -> dict[str, Any]:
        is_comment = number == NUMBER
        floor: dict[str, Any] = {
            "pid": COMMENT if is_comment else 824000000 + number if number else 0,
            "tid": TID,
            "lou": number,
            "authorid": 502 if is_comment else 501,
            "content": f"{self._reply}<br/><br/>opened by hand" if is_comment else f"floor {number}",
            "postdatetimestamp": int(self.opened_at.timestamp()) + number,
        }
        if number == self.on and self.is_below_its_post and self.count > NUMBER:
            floor["comment"] = {"0": self._floor(NUMBER)}
        return floor


@pytest.fixture
def town(tmp_path: Path, database_url: str) -> Iterator[TownApp]:
    app = TownApp(tmp_path, database_url)
    yield app
    app.close()


def opened(town: TownApp) -> tuple[JsonBoard, Any]:
    board = JsonBoard(town.clock)
    town.play(board, nga)
    app = town.app
    source, _ = follow(app.store, app.secrets, app.platforms, "nga_forum", "-7", town.clock.now())
    return board, source


def comment(town: TownApp) -> tuple[Any, ...]:
    item = town.item(f"p{COMMENT}")
    last_line = item["text"].splitlines()[-1]
    return last_line, item["floor_number"], item["author"], item["parent_id"], item["version"]


def test_a_comment_on_an_earlier_page_has_text_number_and_author(town: TownApp) -> None:
    board, source = opened(town)
    town.collect(source)
    assert comment(town) == ("opened by hand", 40, "ben", f"p{PARENT}", 1)
    assert town.item(f"p{COMMENT}")["url"].endswith(f"&page=3#pid{COMMENT}Anchor")
    created_at = datetime.fromisoformat(town.item(f"p{COMMENT}")["created_at"])
    assert created_at == board.opened_at.replace(microsecond=0) + timedelta(seconds=40)
    # Read again, both pages say the same.
    board.count += 1
    (result,) = town.collect(source, after=timedelta(hours=12))
    assert (result.counts.new, town.revisions(f"p{COMMENT}")) == (1, [])


def test_the_text_of_a_new_comment_on_a_page_that_was_read_before_is_requested_with_its_post(town: TownApp) -> None:
    board, source = opened(town)
    board.count = 40
    town.collect(source)
    board.count = 43
    town.collect(source, after=timedelta(hours=12))
    assert {"tid": str(TID), "page": "3"} in board.asked
    board.asked.clear()
    town.app.rechecks().run("test")
    assert board.asked == [{"pid": str(PARENT)}]
    assert comment(town) == ("opened by hand", 40, "ben", f"p{PARENT}", 1)
    assert town.revisions(f"p{COMMENT}") == []


def test_the_text_of_a_new_comment_on_the_opening_post_is_requested_with_the_first_page(town: TownApp) -> None:
    board, source = opened(town)
    board.on, board.count = 0, 40
    town.collect(source)
    board.count = 43
    town.collect(source, after=timedelta(hours=12))
    board.asked.clear()
    town.app.rechecks().run("test")
    assert board.asked == [{"tid": str(TID), "page": "1"}]
    assert comment(town) == ("opened by hand", 40, "ben", f"t{TID}", 1)


def test_a_comment_that_its_post_does_not_show_is_not_taken_for_deleted(town: TownApp) -> None:
    board, source = opened(town)
    board.count = 40
    town.collect(source)
    board.count = 43
    town.collect(source, after=timedelta(hours=12))
    board.is_below_its_post = False
    town.app.rechecks().run("test")
    item = town.item(f"p{COMMENT}")
    assert (item["text"], item["is_deleted"], item["floor_number"]) == (None, False, 40)


def test_that_its_post_is_gone_is_no_evidence_that_a_comment_is(town: TownApp) -> None:
    board, source = opened(town)
    board.count = 40
    town.collect(source)
    board.count = 43
    town.collect(source, after=timedelta(hours=12))
    board.gone_pids = {str(PARENT), str(COMMENT)}
    board.asked.clear()
    deleted = []
    for _ in range(3):
        town.app.rechecks().run("test")
        deleted.append(town.item(f"p{COMMENT}")["is_deleted"])
        town.clock.advance(2 * 3600)
    # Only two looks by its own id say that.
    assert board.asked == [{"pid": str(PARENT)}, {"pid": str(COMMENT)}, {"pid": str(COMMENT)}]
    assert deleted == [False, False, True]
