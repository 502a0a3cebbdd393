"""NGA of the playground: our own reader reads back exactly what the world says, in every form; as real answers do."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from catchment.errors import CatchmentError, Gone, LoginNeeded, Missing, Refused, Unreadable
from catchment.model import Answer, Item, Reading, Request, Source
from catchment.platforms import nga
from catchment.platforms.nga import requests
from catchment.playground.sites import Ask, Distortion
from catchment.playground.sites.nga import COOKIE, NgaSimulator
from catchment.playground.sites.nga.threads import PENALTY, SUB_BOARDS, BoardThread, fid_of
from catchment.playground.world import Habits, World
from catchment.text.clean import refine
from tests.conftest import CAPTURES

START = datetime(2026, 1, 5, tzinfo=UTC)
AT = START + timedelta(days=6, hours=2)
FORMS = ("", "8", "11")


@pytest.fixture(scope="module")
def world() -> World:
    habits = Habits(edited=0.2, hostile=0.1, removed=0.1, pictured=0.1)
    return World(6, START, 0, 7, habits=habits, others={"nga": 2})


class Guest:
    """Asks as a guest or with an account, the way fetching does: what a refusal proposes is done."""

    def __init__(
        self, world: World, cookies: str = "", at: datetime = AT, distortion: Distortion | None = None
    ) -> None:
        self.simulator, self.cookies, self.at, self.distortion = (
            NgaSimulator(world),
            cookies,
            at,
            distortion or Distortion(),
        )
        self.place = world.places[0]
        self.source = Source(1, "key", "nga", "nga_forum", str(fid_of(self.place)), "x", START)
        self.statuses: list[int] = []

    def ask(self, request: Request) -> Ask:
        path, query = urlsplit(request.url).path, urlencode(request.params)
        headers = {"cookie": self.cookies} if self.cookies else {}
        return Ask(path, query, headers, self.at, "http://x", self.distortion)

    def send(self, request: Request) -> Answer:
        page = self.simulator.answer(self.place, self.ask(request))
        self.statuses.append(page.status)
        told = {name.lower(): value for name, value in page.headers.items()}
        return Answer(page.status, told, page.body, request.url, self.at)

    def read(self, request: Request) -> Reading:
        for _ in range(5):
            answer = self.send(request)
            refusal = nga.refusal(answer, request)
            if refusal is None:
                return nga.read(answer, request)
            if refusal.cure is None:
                raise refusal.error
            # Where no wait is asked for, the budget has one.
            self.at += timedelta(seconds=refusal.cure.wait_seconds or 1.1)
            if refusal.cure.cookies:
                self.cookies = "; ".join(f"{name}={value}" for name, value in refusal.cure.cookies.items())
            request = refusal.cure.repeat or request
        raise refusal.error

    def board(self, form: str = "") -> tuple[list[Item], list[Reading]]:
        """All threads of the board, page by page."""
        waiting, items, readings = [requests.in_form(requests.board(self.source), form)], [], []
        while waiting:
            reading = self.read(waiting.pop(0))
            readings.append(reading)
            items += reading.items
            waiting += reading.follow
        return items, readings


def account(world: World, **more: Any) -> Guest:
    return Guest(world, "ngaPassportUid=5; ngaPassportCid=abc", **more)


def cleaned(items: list[Item] | tuple[Item, ...]) -> list[Item]:
    refined = refine(Reading(tuple(items)), scope="", answer_url="https://bbs.nga.cn/read.php")
    return [item.item for item in refined.items]


def squeezed(text: str | None) -> str:
    return "".join((text or "").split())


@pytest.mark.parametrize("form", FORMS)
def test_a_board_is_read_back_whole_and_newest_first(world: World, form: str) -> None:
    guest = account(world)
    items, readings = guest.board(form)
    there = [thread for thread in reversed(guest.simulator.threads(guest.place)) if thread.is_there(AT)]
    assert len(readings) > 1
    # The oldest one is pinned: it stands on top as well.
    there.insert(0, there[-1])
    assert [item.external_id for item in items] == [f"t{thread.tid}" for thread in there]
    assert [bool(item.is_pinned) for item in items] == [bool(form) and thread == there[0] for thread in there]
    assert sum(thread.is_mirrored for thread in there) > 0
    for item, thread in zip(cleaned(items[1:]), there[1:], strict=True):
        assert squeezed(item.title) == squeezed(thread.head.version(AT).title)
        assert (item.created_at, item.last_reply_at) == (thread.head.shown_from, thread.last_reply_at(AT))
        assert item.reply_count == thread.replies(AT)
        fid, name = SUB_BOARDS[thread.sub_board] if thread.sub_board is not None else (None, "")
        assert item.tags == ((name, f"fid={fid}") if fid else ())
        # A mirror gives the thread another id, and no other title.
        assert item.aliases == ((f"t{thread.tid + 1}",) if thread.is_mirrored else ())
        assert thread.is_anonymous == (item.author_id or "").startswith("#anony_")
    assert {row.is_out_of_order for reading in readings for row in reading.threads} == {False, True}


def longest(guest: Guest) -> BoardThread:
    threads = [thread for thread in guest.simulator.threads(guest.place) if thread.is_there(AT)]
    return max(threads, key=lambda thread: len(thread.floors))


def pages(thread: BoardThread) -> range:
    return range(1, thread.replies(AT) // 20 + 2)


@pytest.mark.parametrize("form", FORMS)
def test_threads_are_read_back_whole_with_their_holes(world: World, form: str) -> None:
    guest = account(world)
    holes = folded = edited = comments = hidden = elsewhere = 0
    for thread in guest.simulator.threads(guest.place):
        if not thread.is_there(AT):
            continue
        for number in pages(thread):
            request = requests.in_form(requests.thread_page(guest.source, thread.tid, number), form)
            if thread.is_hidden:
                with pytest.raises(Refused):
                    guest.read(request)
                hidden += 1
                continue
            begin = 20 * (number - 1)
            appeared = [floor for floor in thread.appeared(AT) if begin <= floor.number < begin + 20]
            if not any(floor.is_there(AT) for floor in appeared):
                with pytest.raises(Gone):
                    guest.read(request)
                continue
            reading = guest.read(request)
            page = reading.thread_page
            assert page is not None
            assert (page.number, page.page_count) == (number, len(pages(thread)))
            assert page.holes == tuple(floor.number for floor in appeared if not floor.is_there(AT))
            there = [floor for floor in appeared if floor.is_there(AT)]
            floors = [item for item in reading.items if item.floor_number is not None]
            assert [item.floor_number for item in floors] == [floor.number for floor in there]
            numbers = {floor.number for floor in there}
            below = [
                floor
                for floor in thread.floors
                if form and floor.comments_on in numbers and floor.is_there(AT) and floor.number not in numbers
            ]
            elsewhere += len(below)
            for item, floor in zip(cleaned(reading.items), [*there, *below], strict=True):
                is_whole = not item.lacks_text
                assert item.external_id == (f"p{floor.pid}" if floor.number else f"t{thread.tid}")
                # In JSON the text of a comment stands below its post, which may be on another page, or deleted.
                assert is_whole or (form and floor.comments_on is not None and floor.comments_on not in numbers)
                if is_whole:
                    text = squeezed(item.text).replace(squeezed(re.sub(r"\[/?\w+\]", "", PENALTY)), "")
                    assert text == squeezed(floor.post.version(AT).text)
                    assert item.created_at == floor.post.shown_from
                    assert item.edited_at == floor.edited_at(AT)
                    assert item.is_folded == (floor.folded_at is not None and floor.folded_at <= AT)
                holes, folded = holes + len(page.holes), folded + item.is_folded
                edited, comments = edited + bool(item.edited_at), comments + (floor.comments_on is not None)
    assert min(holes, folded, edited, comments, hidden) > 0
    assert bool(form) == bool(elsewhere)


def test_some_pages_in_compact_json_are_broken_and_whole_from_the_other_serializer(world: World) -> None:
    guest = account(world)
    broken = 0
    for thread in guest.simulator.threads(guest.place):
        if thread.is_there(AT) and not thread.is_hidden:
            request = requests.in_form(requests.thread_page(guest.source, thread.tid, 1), "8")
            refusal = nga.refusal(guest.send(request), request)
            broken += isinstance(refusal and refusal.error, Unreadable)
            assert guest.read(request).items
    assert broken > 0


def test_all_forms_of_a_page_say_the_same(world: World) -> None:
    guest = account(world)
    thread = longest(guest)
    asked = requests.thread_page(guest.source, thread.tid, 1)
    html, compact, verbose = (cleaned(guest.read(requests.in_form(asked, form)).items) for form in FORMS)
    assert [item.replace(is_digest=None) for item in compact] == [item.replace(is_digest=None) for item in html]
    assert verbose == compact


def test_a_guest_needs_a_cookie_first_and_an_account_none(world: World) -> None:
    guest = Guest(world)
    assert guest.read(requests.board(guest.source)).items
    assert guest.statuses[0] == 403
    assert guest.statuses[-1] == 200
    known = len(guest.statuses)
    assert guest.read(requests.in_form(requests.board(guest.source), "8")).items
    assert guest.statuses[known:] == [200]
    member = account(world)
    assert member.read(requests.board(member.source)).items
    assert member.statuses == [200]


def test_a_guest_who_does_not_wait_is_refused_and_one_refresh_helps_against_a_slow_cookie(world: World) -> None:
    hasty = Guest(world)
    answer = hasty.send(requests.board(hasty.source))
    cookie = COOKIE.search(answer.body.decode("gb18030"))
    assert cookie is not None
    hasty.cookies = cookie[0]
    assert hasty.send(requests.board(hasty.source)).status == 403
    tries = []
    for second in range(60):
        guest = Guest(world, at=AT + timedelta(seconds=second))
        guest.read(requests.board(guest.source))
        tries.append(guest.statuses.count(403))
    assert set(tries) == {1, 2}


def test_json_refuses_guests_in_its_own_form_and_the_page_lets_them_in(world: World) -> None:
    guest = Guest(world)
    request = requests.in_form(requests.board(guest.source), "8")
    refusal = nga.refusal(guest.send(request), request)
    assert refusal is not None
    assert isinstance(refusal.error, LoginNeeded)
    assert Guest(world).read(request).items


def test_guests_meet_advertisements_and_get_past_them(world: World) -> None:
    advertised = 0
    for second in range(200):
        guest = Guest(world, "guestJs=1_0r", at=AT + timedelta(seconds=second))
        assert guest.read(requests.board(guest.source)).items
        advertised += len(guest.statuses) - 1
    assert advertised > 0


def missing_thread(guest: Guest) -> Request:
    return requests.thread_page(guest.source, 1, 1)


def missing_board(guest: Guest) -> Request:
    return requests.board(guest.source.replace(target="99999"))


def removed_post(guest: Guest) -> Request:
    floors = [floor for thread in guest.simulator.threads(guest.place) for floor in thread.floors[1:]]
    pid = next(floor.pid for floor in floors if floor.post.is_removed(AT))
    return requests.post(guest.source, pid, f"p{pid}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("asked", "error"), [(missing_thread, Gone), (missing_board, Missing), (removed_post, Gone)])
def test_what_is_not_there_is_said_as_the_site_says_it(world: World, form: str, asked: Any, error: Any) -> None:
    guest = account(world)
    with pytest.raises(error):
        guest.read(requests.in_form(asked(guest), form))


@pytest.mark.parametrize("form", FORMS)
def test_one_post_is_read_by_its_id(world: World, form: str) -> None:
    guest = account(world)
    floors = longest(guest).floors[1:]
    floor = next(floor for floor in floors if floor.is_there(AT) and floor.comments_on is None)
    request = requests.in_form(requests.post(guest.source, floor.pid, f"p{floor.pid}"), form)
    (item,) = guest.read(request).items
    assert (item.external_id, item.floor_number) == (f"p{floor.pid}", floor.number)


@pytest.mark.parametrize("form", FORMS)
def test_of_a_comment_that_is_requested_by_its_id_json_tells_neither_text_nor_score(world: World, form: str) -> None:
    guest = account(world)
    floors = (floor for thread in guest.simulator.threads(guest.place) for floor in thread.floors)
    comment = next(floor for floor in floors if floor.is_there(AT) and floor.comments_on is not None)
    request = requests.in_form(requests.post(guest.source, comment.pid, f"p{comment.pid}"), form)
    entry = guest.simulator.answer(guest.place, guest.ask(request)).entries[0]
    item = guest.read(request).items[0]
    assert item.score == entry.score
    assert (item.score is None, entry.is_withheld) == (bool(form), bool(form))


def test_a_list_that_leads_back_to_its_start_ends(world: World) -> None:
    guest = account(world, distortion=Distortion(is_looping=True))
    _, readings = guest.board()
    assert [len(reading.items) > 0 for reading in readings] == [True, False]
    assert readings[-1].notes


def test_a_damaged_page_is_an_error_or_read_whole(world: World) -> None:
    guest = account(world)
    for request in (requests.board(guest.source), requests.in_form(requests.board(guest.source), "8")):
        answer = guest.send(request)
        whole = nga.read(answer, request)
        for part in range(1, 40):
            torn = answer.replace(body=answer.body[: len(answer.body) * part // 40])
            refusal = nga.refusal(torn, request)
            if refusal is None:
                with suppress(CatchmentError):
                    assert nga.read(torn, request) == whole


# ── as real answers do ────────────────────────────────────────────────────────────────────────────────────────────

needs_captures = pytest.mark.skipif(not (CAPTURES / "nga").is_dir(), reason="no recorded answers beside the repository")


def recorded(name: str) -> str:
    body = (CAPTURES / "nga" / name).read_bytes()
    return body.decode() if ".utf8." in name else body.decode("gb18030")


def keys(value: Any) -> set[str]:
    return {key for entry in (value.values() if isinstance(value, dict) else value) for key in entry}


@needs_captures
@pytest.mark.parametrize(
    ("name", "asked"),
    [("list-fid-7neg-output8.gbk.json", "board"), ("read-44191387-p1-output8.gbk.json", "thread")],
)
def test_its_json_has_no_field_that_real_answers_do_not_have(world: World, name: str, asked: str) -> None:
    guest = account(world)
    thread = next(thread for thread in guest.simulator.threads(guest.place) if thread.is_there(AT))
    request = requests.board(guest.source) if asked == "board" else requests.thread_page(guest.source, thread.tid, 1)
    body = guest.send(requests.in_form(request, "8")).body.decode("gb18030")
    ours, real = json.loads(body, strict=False)["data"], json.loads(recorded(name), strict=False)["data"]
    assert ours.keys() <= real.keys()
    if asked == "board":
        denied = {"attachs", "content", "denied", "error", "parent"}
        assert keys(ours["__T"]) <= keys(real["__T"]) | denied
    else:
        hot = json.loads(recorded("read-46186286-p1-output8.gbk.json"), strict=False)["data"]
        assert keys(ours["__R"]) <= keys(real["__R"]) | keys(hot["__R"])
        assert ours["__T"].keys() <= real["__T"].keys()


@needs_captures
def test_its_pages_have_the_elements_and_calls_of_real_ones(world: World) -> None:
    guest = account(world)
    thread = longest(guest)
    ours = guest.send(requests.thread_page(guest.source, thread.tid, 1)).body.decode("gb18030")
    real = recorded("read-44191387-p1.gbk.html") + recorded("read-46186286-p1.gbk.html")
    shape = re.compile(r"\b(?:id='[a-z_A-Z]+|class='[a-z0-9 ]+'|commonui\.[a-zA-Z.]+)")
    assert set(shape.findall(ours)) <= set(shape.findall(real))
    ours = guest.send(requests.board(guest.source)).body.decode("gb18030")
    assert set(shape.findall(ours)) <= set(shape.findall(recorded("list-user205511-p1.utf8.html")))
