"""What NGA really sent: rows, floors, ids, users and times as recorded; HTML and JSON of one page say the same."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from catchment.errors import CatchmentError, Gone, Missing, Unreadable
from catchment.model import Answer, Item, Reading, Request, Source
from catchment.platforms import nga
from catchment.platforms.nga import html_form, json_form, requests
from catchment.text.clean import refine
from tests.conftest import CAPTURES

FOLDER = CAPTURES / "nga"
NOW = datetime(2026, 8, 20, tzinfo=UTC)
SOURCE = Source(1, "key", "nga", "nga_forum", "-7", "Chat", NOW)

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no recorded answers beside the repository")

LISTS = {
    # rows in the answer, those that are denied, threads in the others, first and last tid, pages, board
    "list-fid-7neg-output8.gbk.json": (51, 0, 51, 44191387, 47319503, 285_959, "网事杂谈"),
    "list-fid414-output11.gbk.json": (100, 0, 100, 47314939, 47368493, 9_853, "游戏综合讨论"),
    "search-key-output8.gbk.json": (34, 4, 28, 47332920, 47283193, 1_315, None),
    "list-user205511-p1.utf8.json": (35, 28, 7, 44627932, 27778411, 2, None),
    "list-user205511-p1.utf8.html": (35, 28, 7, 44627932, 27778411, 2, "用户发布的主题"),
    "list-fid-7neg-2019.utf8.html": (40, 0, 40, 17556126, 17620341, 111_128, "网事杂谈"),
    # One thread in which a user replied ten times; the number of rows is an empty text.
    "user-replies-output8.gbk.json": (18, 8, 1, 45150945, 45150945, None, None),
}
THREADS = {
    # floors, those that are missing, the last pid, pages, replies
    "read-44191387-p1-output8.gbk.json": (19, (19,), 824931876, 27, 529),
    "read-44191387-p1.gbk.html": (19, (19,), 824931876, 27, 529),
    "read-46186286-p1-output8.gbk.json": (19, (7,), 857844135, 13, 241),
    "read-46186286-p1.gbk.html": (19, (7,), 857844135, 15, 283),
    "read-3593852-output8-deleted-floors.gbk.json": (2, (1, 2, 3, 4, 5, 7), 135487042, 1, 7),
    "read-45150945-p1-litejs.gbk.js.txt": (20, (), 847064090, 2, 31),
    "read-46425481-p1.utf8.html": (19, (11,), 863221396, 12, 220),
    "read-46425481-p1.utf8.json": (19, (11,), 863221396, 12, 220),
    "read-47307683-p1.utf8.html": (20, (), 877458305, 3, 40),
    "read-47307683-p1.utf8.json": (20, (), 877458305, 3, 40),
    "read-47344482-p1.utf8.html": (20, (), 877984384, 3, 49),
    "read-47344482-p1.utf8.json": (20, (), 877984384, 3, 49),
}
TWINS = [
    ("list-user205511-p1.utf8.html", "list-user205511-p1.utf8.json"),
    ("read-44191387-p1.gbk.html", "read-44191387-p1-output8.gbk.json"),
    ("read-46186286-p1.gbk.html", "read-46186286-p1-output8.gbk.json"),
    ("read-46425481-p1.utf8.html", "read-46425481-p1.utf8.json"),
    ("read-47307683-p1.utf8.html", "read-47307683-p1.utf8.json"),
    ("read-47344482-p1.utf8.html", "read-47344482-p1.utf8.json"),
]


def raw(name: str) -> bytes:
    """A body as the site sends it; some were recorded after they had been decoded."""
    body = (FOLDER / name).read_bytes()
    return body.decode().encode("gb18030") if ".utf8." in name else body


def request_for(name: str) -> Request:
    if not name.startswith("read"):
        return requests.board(SOURCE)
    found = re.match(r"read-(\d+)", name)
    return requests.thread_page(SOURCE, int(found[1]) if found else 1, 1)


def answer_of(body: bytes, request: Request) -> Answer:
    return Answer(200, {"content-type": "text/html"}, body, request.url, NOW)


def read(name: str, body: bytes | None = None) -> Reading:
    request = request_for(name)
    answer = answer_of(raw(name) if body is None else body, request)
    assert nga.refusal(answer, request) is None
    return nga.read(answer, request)


def document(name: str) -> dict[str, Any]:
    text = raw(name).decode("gb18030")
    return dict(json.loads(text[text.index("{") :], strict=False)["data"])


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_the_rows_that_were_recorded(name: str) -> None:
    rows, denied, seen, first, last, pages, board = LISTS[name]
    page = html_form.read_list(raw(name).decode("gb18030")) if "html" in name else json_form.read_list(document(name))
    assert (len(page.rows), sum(row.is_denied for row in page.rows), page.pages, page.unreadable) == (
        *(rows, denied, pages, 0),
    )
    reading = read(name)
    assert (len(reading.items), reading.items[0].external_id, reading.items[-1].external_id) == (
        seen,
        f"t{first}",
        f"t{last}",
    )
    assert [row.thread_id for row in reading.threads] == [item.external_id for item in reading.items]
    assert (reading.title, bool(reading.notes), reading.skipped) == (board, denied > 0, ())
    assert [follow.params["page"] for follow in reading.follow] == ["2"]
    for item in reading.items:
        assert item.title
        assert item.author
        assert item.author_id
        assert item.created_at
        assert item.last_reply_at
        assert item.reply_count is not None
        assert "�" not in f"{item.title}{item.author}"


@pytest.mark.parametrize("name", [name for name in LISTS if name.endswith(".json")])
def test_a_row_says_what_its_json_says(name: str) -> None:
    threads = document(name)["__T"]
    rows = threads if isinstance(threads, list) else list(threads.values())
    shown: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if not row.get("denied"):
            shown.setdefault(f"t{row['quote_from'] or row['tid']}", []).append(row)
    items = read(name).items
    assert [item.external_id for item in items] == list(shown)
    for item in items:
        # The thread itself rather than one that mirrors it.
        row = min(shown[item.external_id], key=lambda row: row["quote_from"])
        assert (item.created_at, item.last_reply_at) == (
            datetime.fromtimestamp(row["postdate"], UTC),
            datetime.fromtimestamp(row["lastpost"], UTC),
        )
        assert (item.author_id, item.reply_count) == (str(row["authorid"]), row["replies"])
        assert item.aliases == tuple(f"t{row['tid']}" for row in shown[item.external_id] if row["quote_from"])
        parent = (row["parent"]["2"],) if isinstance(row.get("parent"), dict) else ()
        own_board = document(name).get("__F") or {}
        # A thread of another board keeps that board.
        board = (f"fid={row['fid']}",) if row["fid"] != own_board.get("fid") and not row["quote_from"] else ()
        assert item.tags == (*parent, *board)


def test_a_row_of_the_oldest_recorded_page_says_what_its_script_says() -> None:
    name = "list-fid-7neg-2019.utf8.html"
    calls = re.findall(r"topicArg\.add\(([^)]*)\)", raw(name).decode("gb18030"))
    items = read(name).items
    assert len(items) == len(calls) == 40
    for item, call in zip(items, calls, strict=True):
        values = [value.strip(" '\"") for value in call.split(",")]
        posted, replied = (datetime.fromtimestamp(int(values[index]), UTC) for index in (12, 13))
        assert (item.external_id, item.created_at, item.last_reply_at, item.reply_count) == (
            *(f"t{values[8]}", posted, replied, int(values[14])),
        )


def test_most_rows_of_some_boards_are_of_others() -> None:
    for name, count in (("list-fid-7neg-output8.gbk.json", 36), ("list-fid414-output11.gbk.json", 69)):
        tags = [item.tags for item in read(name).items]
        assert sum(any(tag.startswith("fid=") for tag in of_item) for of_item in tags) == count


@pytest.mark.parametrize("name", THREADS)
def test_a_thread_has_the_floors_that_were_recorded(name: str) -> None:
    count, holes, last, pages, replies = THREADS[name]
    reading = read(name)
    assert reading.thread_page is not None
    assert (reading.thread_page.number, reading.thread_page.page_count) == (1, pages)
    assert reading.thread_page.holes == holes
    assert (len(reading.items), reading.items[-1].external_id) == (count, f"p{last}")
    head, *floors = reading.items
    assert (head.external_id, head.floor_number, head.is_head) == (reading.thread_page.thread_id, 0, True)
    assert (head.reply_count, bool(head.title)) == (replies, True)
    assert len({item.external_id for item in reading.items}) == len({item.floor_number for item in floors}) + 1
    for item in reading.items:
        assert (bool(item.author), bool(item.author_id), bool(item.created_at), bool(item.html)) == (True,) * 4
        assert not (item.author_id or "-").startswith("-")
        assert "�" not in f"{item.html}{item.author}"


@pytest.mark.parametrize("name", [name for name in THREADS if "html" not in name])
def test_a_floor_says_what_its_json_says(name: str) -> None:
    data = document(name)
    by_number = {item.floor_number: item for item in read(name).items}
    for row in data["__R"].values():
        item = by_number[row["lou"]]
        assert item.external_id == (f"p{row['pid']}" if row["pid"] else f"t{data['__T']['tid']}")
        if "content" in row:
            assert item.created_at == datetime.fromtimestamp(row["postdatetimestamp"], UTC)
        assert item.author == data["__U"][str(row["authorid"])]["username"]


def content(item: Item) -> tuple[Any, ...]:
    """All that makes a revision, and what identifies it."""
    refined = refine(Reading((item,)), scope="", answer_url="https://bbs.nga.cn/").items[0]
    shown = refined.item
    names = (
        "external_id",
        "html",
        "title",
        "author",
        "author_id",
        "created_at",
        "edited_at",
        "floor_number",
        "media",
        "tags",
    )
    return (refined.fingerprint, shown.title_prefixes, *(getattr(shown, name) for name in names))


@pytest.mark.parametrize(("html", "json_name"), TWINS)
def test_html_and_json_of_one_page_agree(html: str, json_name: str) -> None:
    of_html, other = read(html), read(json_name)
    assert [content(item) for item in of_html.items] == [content(item) for item in other.items]
    assert [row.replace(page_count=None) for row in of_html.threads] == [
        row.replace(page_count=None) for row in other.threads
    ]


@pytest.mark.parametrize("name", [*LISTS, *THREADS])
def test_a_body_that_was_decoded_on_the_way_reads_the_same(name: str) -> None:
    assert read(name, raw(name).decode("gb18030").encode()) == read(name)


def test_a_comment_is_one_floor_with_the_text_that_stands_below_its_post() -> None:
    for name in ("read-44191387-p1.gbk.html", "read-44191387-p1-output8.gbk.json"):
        (comment,) = (item for item in read(name).items if item.floor_number == 7)
        assert comment.external_id == "p824921555"
        assert "不是啦" in (comment.html or "")
        assert [reference.external_id for reference in comment.references] == ["p824921217"]


def test_the_title_of_a_row_that_is_only_a_mirror_is_not_the_threads_own() -> None:
    foreign = {
        item.external_id: (item.title or "", item.title_prefixes)
        for name in LISTS
        for item in read(name).items
        if item.is_title_foreign
    }
    assert foreign.keys() == {"t47358712", "t47326784"}
    assert {prefixes for _, prefixes in foreign.values()} == {()}
    assert foreign["t47326784"][0].startswith("[炉石传说][蓝贴] 36.2.1")
    # Where the thread has a row as well, the title is that of the thread.
    real = {item.external_id: item for item in read("search-key-output8.gbk.json").items}["t47330445"]
    assert (real.title_prefixes, real.aliases) == (("新闻资讯",), ("t47330488",))


def test_anonymous_authors_are_known_by_the_name_that_the_site_makes() -> None:
    head, *_ = read("read-46186286-p1.gbk.html").items
    assert head.author_id == "#anony_c26f8c0c44685c40baff70f6c803f001"
    listed = {item.external_id: item for item in read("list-fid-7neg-output8.gbk.json").items}
    assert listed["t46186286"].author_id == head.author_id


def test_a_digest_is_known_from_its_json() -> None:
    head, *_ = read("read-3593852-output8-deleted-floors.gbk.json").items
    assert (head.is_digest, read("read-44191387-p1-output8.gbk.json").items[0].is_digest) == (True, False)
    assert read("read-44191387-p1.gbk.html").items[0].is_digest is None


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("read-notfound-output8.gbk.json", Gone),
        ("read-notfound.gbk.html", Gone),
        ("user-replies-past-end.gbk.json", Missing),
        ("ad-interstitial-2019.utf8.html", Unreadable),
        ("list-fid414-output8-BROKEN.gbk.json", Unreadable),
    ],
)
def test_an_error_is_one(name: str, error: type[CatchmentError]) -> None:
    request = request_for(name)
    refusal = nga.refusal(answer_of((FOLDER / name).read_bytes(), request), request)
    assert refusal is not None
    assert type(refusal.error) is error


def test_the_end_of_a_list_is_none() -> None:
    later = requests.next_page(requests.board(SOURCE), 500, 0)
    answer = answer_of(raw("user-replies-past-end.gbk.json"), later)
    assert nga.refusal(answer, later) is None
    assert nga.read(answer, later) == Reading()


def test_broken_json_is_requested_from_the_other_serializer() -> None:
    request = requests.in_form(requests.board(SOURCE), requests.JSON)
    refusal = nga.refusal(answer_of((FOLDER / "list-fid414-output8-BROKEN.gbk.json").read_bytes(), request), request)
    assert refusal is not None
    assert refusal.cure is not None
    assert refusal.cure.repeat is not None
    assert refusal.cure.repeat.params["__output"] == "11"


@pytest.mark.parametrize("name", [*LISTS, *THREADS])
def test_a_page_without_its_markers_is_a_failure(name: str) -> None:
    body = raw(name)
    for mark in (b"topicrows", b"topicArg.add", b"postArg.proc", b'"__T"', b'"__R"'):
        body = body.replace(mark, mark[:1] + b"x" + mark[2:])
    for request in (request_for(name), requests.next_page(requests.board(SOURCE), 2, 0)):
        with pytest.raises(Unreadable):
            nga.read(answer_of(body, request), request)


@pytest.mark.parametrize("name", ["home-category.gbk.json", "ad-interstitial-2019.utf8.html", "user-notfound.gbk.json"])
def test_what_is_no_list_is_never_an_empty_one(name: str) -> None:
    request = requests.next_page(requests.board(SOURCE), 2, 0)
    with pytest.raises(Unreadable):
        nga.read(answer_of(raw(name), request), request)
