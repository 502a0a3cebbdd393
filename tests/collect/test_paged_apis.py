"""Paged JSON APIs over real HTTP: where a list ends, parameters that the address has already, pages that repeat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from catchment.app import App, open_app
from catchment.model import VisitResult
from catchment.settings import Settings
from catchment.sources import add
from tests.databases import sqlite_ready
from tests.hostile import Behaviour, Connection, Hostile, Seen, reply

POSTS = [{"id": number, "title": f"Post {number}"} for number in range(1, 71)]


@pytest.fixture
def server() -> Iterator[Hostile]:
    with Hostile() as site:
        yield site


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    url = sqlite_ready(f"sqlite:///{tmp_path / 'c.db'}")
    settings = Settings(home=tmp_path, database_url=url, is_private_allowed=True, retry_waits=())
    with open_app(settings, "test") as app:
        yield app


def collected(app: App, url: str, **settings: Any) -> VisitResult:
    source, _ = add.follow(app.store, app.secrets, app.platforms, "custom_api", url, app.clock.now(), settings=settings)
    (result,) = app.scheduler().these([source.id], "test", "test")
    return result


def answering(answer: Callable[[list[tuple[str, str]]], tuple[int, Any]]) -> Behaviour:
    """A server that answers by the parameters, in their order, with a status and JSON."""

    def behave(connection: Connection, seen: Seen) -> bool:
        code, document = answer(parse_qsl(urlsplit(seen.path).query, keep_blank_values=True))
        return reply(json.dumps(document).encode(), code=code, content_type="application/json")(connection, seen)

    return behave


def first_of(params: list[tuple[str, str]], name: str, default: int) -> int:
    """As many servers do: of a parameter that is given twice, the first one counts."""
    return next((int(value) for each, value in params if each == name), default)


def wordpress(params: list[tuple[str, str]]) -> tuple[int, Any]:
    page, size = first_of(params, "page", 1), first_of(params, "per_page", 10)
    posts = [
        {"id": post["id"], "date_gmt": "2026-01-01T00:00:00", "title": {"rendered": post["title"]}, "author": 7}
        for post in POSTS[(page - 1) * size : page * size]
    ]
    if posts or page == 1:
        return 200, posts
    return 400, {"code": "rest_post_invalid_page_number", "message": "The page number is too large.", "data": {}}


def django(params: list[tuple[str, str]]) -> tuple[int, Any]:
    page = first_of(params, "page", 1)
    posts = POSTS[(page - 1) * 20 : page * 20]
    if not posts:
        return 404, {"detail": "Invalid page."}
    is_last = page * 20 >= len(POSTS)
    return 200, {"count": 70, "next": None if is_last else f"/posts?page={page + 1}", "results": posts}


def by_offset(params: list[tuple[str, str]]) -> tuple[int, Any]:
    offset = first_of(params, "offset", 0)
    return 200, {"items": POSTS[offset : offset + first_of(params, "limit", 10)]}


@pytest.mark.parametrize(
    ("site", "settings"),
    [
        (wordpress, {"paging": "page"}),
        (wordpress, {"preset": "wordpress", "page_size": 20}),
        (django, {"paging": "page"}),
        (django, {"preset": "django_rest"}),
    ],
    ids=["WordPress by page", "WordPress by preset", "Django REST by page", "Django REST by preset"],
)
def test_a_list_is_read_to_its_end_and_the_page_beyond_it_is_no_failure(
    app: App, server: Hostile, site: Any, settings: dict[str, Any]
) -> None:
    result = collected(app, server.on("/posts", answering(site)), **settings)
    assert (result.outcome, result.counts.new, result.error, result.http_status) == ("succeeded", 70, None, 200)


@pytest.mark.parametrize(
    ("page", "code", "document"),
    [
        (1, 404, {"detail": "Invalid page."}),
        (1, 400, {"code": "rest_post_invalid_page_number"}),
        (2, 400, {"message": "the token is malformed"}),
        (2, 403, {"message": "pages are for members"}),
    ],
)
def test_a_first_page_that_is_missing_and_a_refusal_for_another_reason_are_failures(
    app: App, server: Hostile, page: int, code: int, document: Any
) -> None:
    def site(params: list[tuple[str, str]]) -> tuple[int, Any]:
        number = first_of(params, "page", 1)
        return (code, document) if number == page else (200, POSTS[:10])

    result = collected(app, server.on("/posts", answering(site)), paging="page")
    assert (result.outcome, result.counts.new) == ("failed", 10 if page == 2 else 0)


@pytest.mark.parametrize("paging", ["page", "offset"])
@pytest.mark.parametrize(
    "body",
    [
        b"<html><body><h1>404: page not found</h1></body></html>",
        b"",
        b"404 page not found\n",
        b'{"code":"PAGE_NOT_FOUND","message":"404 page not found"}',
    ],
    ids=["HTML", "empty", "plain text", "JSON"],
)
def test_a_404_that_says_nothing_of_a_page_s_number_is_no_end_of_a_list_that_must_reach_what_is_stored(
    app: App, server: Hostile, paging: str, body: bytes
) -> None:
    posts = [{"id": number, "title": f"Post {number}", "created_at": 1_700_000_000 + number} for number in range(40)]
    shown, is_broken = posts[:10], False

    def behave(connection: Connection, seen: Seen) -> bool:
        params = parse_qsl(urlsplit(seen.path).query)
        begin = first_of(params, "offset", 0) or 10 * (first_of(params, "page", 1) - 1)
        if is_broken and begin:
            return reply(body, code=404, content_type="text/html")(connection, seen)
        page = json.dumps({"items": shown[::-1][begin : begin + 10]}).encode()
        return reply(page, content_type="application/json")(connection, seen)

    url = server.on("/posts", behave)
    first = collected(app, url, paging=paging, listing="newest_first")
    shown, is_broken = posts, True
    (broken,) = app.scheduler().these([first.source_id], "test", "test")
    is_broken = False
    (healed,) = app.scheduler().these([first.source_id], "test", "test")
    assert [result.outcome for result in (first, broken, healed)] == ["succeeded", "failed", "succeeded"]
    assert broken.watermark_after == first.watermark_after
    assert first.counts.new + broken.counts.new + healed.counts.new == len(posts)


@pytest.mark.parametrize("query", ["", "?offset=0&limit=20", "?limit=20&offset=0&q=a%20b,c", "?off%73et=0"])
def test_a_parameter_that_the_address_has_already_is_sent_once(app: App, server: Hostile, query: str) -> None:
    result = collected(app, server.on("/posts", answering(by_offset)) + query, paging="offset")
    assert (result.outcome, result.counts.new) == ("succeeded", 70)
    names = [[name for name, _ in parse_qsl(urlsplit(seen.path).query)] for seen in server.seen]
    assert all(len(each) == len(set(each)) for each in names)
    if "q=" in query:
        assert all("q=a%20b,c" in seen.path for seen in server.seen)


def test_an_offset_in_the_address_is_where_reading_begins(app: App, server: Hostile) -> None:
    assert collected(app, server.on("/posts", answering(by_offset)) + "?offset=60", paging="offset").counts.new == 10


def test_a_cursor_in_the_address_of_a_next_page_is_replaced_by_the_next_cursor(app: App, server: Hostile) -> None:
    """Some APIs name the next page by its address first, and by a bare cursor then."""

    def site(params: list[tuple[str, str]]) -> tuple[int, Any]:
        offset = first_of(params, "cursor", 0)
        after = offset + 10
        add = f"{server.url}/posts?cursor={after}" if not offset else str(after)
        return 200, {"items": POSTS[offset:after], "next": add if after < len(POSTS) else None}

    url = server.on("/posts", answering(site))
    result = collected(app, f"{url}?cursor=0", paging="cursor")
    assert (result.outcome, result.counts.new) == ("succeeded", 70)


@pytest.mark.parametrize(
    ("settings", "helps"),
    [
        ({"paging": "page"}, "'page': set page_param"),
        ({"paging": "offset"}, "'offset': set offset_param"),
        ({"paging": "cursor"}, "'cursor': set cursor_param"),
        ({"paging": "link"}, "paging=link"),
    ],
)
def test_a_page_that_repeats_the_one_before_it_is_an_error_in_every_way_to_turn_pages(
    app: App, server: Hostile, settings: dict[str, Any], helps: str
) -> None:
    """Only the views have changed in between: these are the same items."""
    views = iter(range(100))

    def behave(connection: Connection, seen: Seen) -> bool:
        items = [post | {"views": next(views)} for post in POSTS[:20]]
        link = f'</posts?n={len(server.seen)}>; rel="next"'
        body = json.dumps({"items": items, "next_cursor": f"c{len(server.seen)}"}).encode()
        return reply(body, link=link, content_type="application/json")(connection, seen)

    result = collected(app, server.on("/posts", behave), **settings)
    assert (result.outcome, result.error_code, result.counts.new) == ("failed", "UNREADABLE", 20)
    assert "page 2 of the list shows the same items as page 1" in (result.error or "")
    assert helps in (result.error or "")
