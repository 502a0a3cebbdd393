"""The verbs of the website platform: what is understood, asked and read, and what only looks like a page."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.collect.source_settings import checked_settings
from catchment.errors import (
    CatchmentError,
    InvalidInput,
    Missing,
    PlatformError,
    Refused,
    Unreadable,
)
from catchment.model import (
    Answer,
    FailureScope,
    Item,
    Progress,
    Reading,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import website
from catchment.platforms.website import metadata
from catchment.platforms.website.links import normalised
from catchment.text.clean import refine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://site.example/news/ferry?utm_source=feed"
SAMPLES = Path(__file__).parent / "website"
PAGE = Request(URL)
LINKS = Request(URL, state={"links": "main h2 a"})
WORDS = "The harbour was quiet on that morning, and whoever came early could hear the ropes work against the bollards. "


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def answer(body: bytes | str, url: str = URL, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, body.encode() if isinstance(body, str) else body, url, NOW)


def read(body: bytes | str, request: Request = PAGE, **more: Any) -> Reading:
    return website.read(answer(body, **more), request)


def item(head: str = "", body: str = f"<p>{WORDS * 4}</p>", **more: Any) -> Item:
    (found,) = read(f"<html><head>{head}</head><body><article>{body}</article></body></html>", **more).items
    return found


def asked(progress: Progress | None = None, **settings: str) -> Request:
    source = Source(1, "key", "website", "website", URL, "Site", NOW, settings=settings)
    (request,) = website.first(source, progress or Progress(), WalkPlan("page", 100))
    return request


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("https://example.com/news", "https://example.com/news"),
        ("example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com:443/News?a=1&utm_source=x#top", "https://example.com/News?a=1"),
        ("https://example.com/news/", "https://example.com/news/"),
        ("http://127.0.0.1:8900/website/1", "http://127.0.0.1:8900/website/1"),
    ],
)
def test_a_page_has_one_address_however_it_was_typed(typed, address):
    assert website.understand(typed).address == address
    assert website.understand(address).address == address


def test_what_is_no_address_is_answered_with_what_would_be_right():
    with pytest.raises(InvalidInput) as failure:
        website.understand("harbour gazette")
    assert "https://example.com/news" in failure.value.helps


def test_a_page_that_was_read_is_asked_for_conditionally():
    read_before = Progress(
        etag='W/"x"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT", body_hash=b"h", parser_version=1
    )
    assert asked(read_before).headers["If-None-Match"] == 'W/"x"'
    assert asked(read_before).headers["If-Modified-Since"] == "Thu, 01 Jan 2026 00:00:00 GMT"


@pytest.mark.parametrize(
    "progress",
    [
        Progress(etag="x"),
        Progress(etag="x", body_hash=b"h", parser_version=website.PARSER_VERSION + 1),
    ],
    ids=["never read", "read by another reader"],
)
def test_a_page_that_was_not_read_so_is_asked_for_whole(progress):
    assert "If-None-Match" not in asked(progress).headers


def test_robots_are_obeyed():
    assert website.OBEYS_ROBOTS


def test_the_id_of_a_page_does_not_depend_on_anything_that_may_change():
    first = item("<title>One</title>")
    other = item(
        "<title>Two</title><link rel=canonical href=/elsewhere>", f"<p>{WORDS[::-1] * 4}</p>", url="https://x.example/"
    )
    assert first.external_id == other.external_id == "page"


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ('<title>T</title><meta property="og:title" content="OG">', "OG"),
        ('<title>T</title><meta name="title" content="M">', "M"),
        ("<title>T &amp; more</title>", "T & more"),
        ("", None),
        ('<script type="application/ld+json">{"@type": "Article", "headline": "L"}</script><title>T</title>', "L"),
        (
            '<script type="application/ld+json">[{"@type": "BlogPosting", "headline": "L"}]</script><title>T</title>',
            "L",
        ),
        ('<script type="application/ld+json">{"@type": "Product", "headline": "L"}</script><title>T</title>', "T"),
        ('<script type="application/ld+json">{"@type": ["Article"], "headline": 3}</script><title>T</title>', "T"),
        ('<script type="application/ld+json">{broken</script><title>T</title>', "T"),
        ('<script type="application/ld+json">' + "[" * 100_000 + "</script><title>T</title>", "T"),
    ],
)
def test_a_title_is_taken_from_where_it_is_most_carefully_written(head, title):
    assert item(head).title == title


@pytest.mark.parametrize(
    ("head", "author"),
    [
        ('<meta name="author" content="Ada">', "Ada"),
        ('<meta property="article:author" content="https://x.example/ada"><meta name="author" content="Ada">', "Ada"),
        ('<script type="application/ld+json">{"@type": "Article", "author": "Ada"}</script>', "Ada"),
        ('<script type="application/ld+json">{"@type": "Article", "author": {"name": ["x"]}}</script>', None),
        ("", None),
    ],
)
def test_an_author_is_a_name(head, author):
    assert item(head).author == author


@pytest.mark.parametrize(
    ("head", "body", "created_at"),
    [
        (
            '<meta property="article:published_time" content="2026-01-02T03:04:05+01:00">',
            "",
            "2026-01-02T02:04:05+00:00",
        ),
        ('<meta name="date" content="2026-01-02">', "", "2026-01-02T00:00:00+00:00"),
        ("", '<time datetime="2026-01-02T03:04:05Z">today</time>', "2026-01-02T03:04:05+00:00"),
        ('<meta name="date" content="some day">', '<time datetime="2026-01-02">x</time>', "2026-01-02T00:00:00+00:00"),
        ("", "", None),
    ],
)
def test_a_date_is_the_first_that_can_be_read(head, body, created_at):
    found = item(head, f"{body}<p>{WORDS * 4}</p>").created_at
    assert (found.isoformat() if found else None) == created_at


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/canonical#x", "https://site.example/canonical"),
        ("https://www.site.example/canonical", "https://www.site.example/canonical"),
        ("https://elsewhere.example/canonical", "https://site.example/news/ferry"),
        ("javascript:alert(1)", "https://site.example/news/ferry"),
    ],
)
def test_a_canonical_address_counts_if_it_is_of_the_same_site(href, url):
    assert item(f'<link href="{href}" rel="Canonical">').url == url


def test_the_encoding_is_what_the_bytes_are():
    body = "<html><head><meta charset=gb2312><title>渡船</title></head><body><article><p>{}</p></article></body></html>"
    text = "十一个星期之后，渡船在星期六早上又一次横渡港口，船上有两百个人和一支铜管乐队。" * 8
    (found,) = read(body.format(text).encode("gb18030"), content_type="text/html; charset=utf-8").items
    assert (found.title, "铜管乐队" in (found.text or "")) == ("渡船", True)


class Counted(list[Any]):
    """A list that counts what is taken from it."""

    taken = 0

    def __iter__(self):
        for element in super().__iter__():
            self.taken += 1
            yield element


def test_however_much_a_page_tells_about_itself_so_many_nodes_are_looked_at():
    many = Counted([{"@type": "Thing"}] * 50_000)
    found = list(metadata.objects({"@graph": [[many]]}))
    assert len(found) == many.taken + 1 < metadata.MOST_NODES


def test_objects_are_found_in_their_order_however_they_lie():
    document = [{"n": 1, "@graph": [{"n": 2, "mainEntity": {"n": 3}}, [[{"n": 4}]]]}, {"n": 5}, 7, []]
    assert [node["n"] for node in metadata.objects(document)] == [1, 2, 3, 4, 5]


def test_a_wall_without_such_a_link_is_called_a_wall():
    with pytest.raises(Refused, match="consent"):
        read(sample("consent.html"), LINKS)


@pytest.mark.parametrize("selector", ["a[", "a,,b", "p::before", "> > a"])
def test_a_selector_that_is_none_is_said_so(selector):
    with pytest.raises(InvalidInput, match="not a CSS selector") as failure:
        read(sample("index.html"), Request(URL, state={"links": selector}))
    assert failure.value.field == "links"


@pytest.mark.parametrize("selector", ["a[", "a,,b", "", " ", 7, ["a"], "\ud800", "a " * 501])
def test_a_selector_that_is_none_is_refused_before_any_page_is_asked_for(selector):
    with pytest.raises(InvalidInput, match=r"CSS selector.*main h2 a") as failure:
        checked_settings(website.KINDS[0], {"links": selector})
    assert failure.value.field == "links"


def test_a_selector_is_kept_as_it_was_typed():
    assert checked_settings(website.KINDS[0], {"links": "main > h2 a[href]"}) == {"links": "main > h2 a[href]"}


def test_links_beyond_the_most_are_counted():
    many = "".join(f"<h2><a href=/{number}>{number}</a></h2>" for number in range(5_003))
    reading = read(f"<html><body><main>{many}</main></body></html>", LINKS)
    assert (len(reading.items), [skipped.reason for skipped in reading.skipped]) == (5_000, ["too many links"] * 3)


def test_the_ids_of_links_survive_refining():
    refined = refine(read(sample("index.html"), LINKS), scope="key", answer_url=URL)
    assert [item.item.external_id for item in refined.items] == [
        "https://site.example/news/ferry?page=1",
        "https://other.example/Lighthouse",
        "http://other.example:8080/x",
    ]


@pytest.mark.parametrize(
    ("url", "one_form"),
    [
        ("https://A.example:443/x?b=2&utm_a=1&a=1#f", "https://a.example/x?b=2&a=1"),
        ("http://a.example:443/", "http://a.example:443/"),
        ("https://a.example", "https://a.example/"),
        ("https://a.example/x/", "https://a.example/x/"),
        ("https://a.example/x?UTM_Source=1", "https://a.example/x"),
        ("https://[bad", "https://[bad"),
        ("https://a.example:99999/", "https://a.example:99999/"),
    ],
)
def test_an_address_has_one_form(url, one_form):
    assert normalised(url) == one_form


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (b"", Unreadable, "empty"),
        (b"%PDF-1.7 ...", Unreadable, "not a web page"),
        (b'{"a": 1}', Unreadable, "not a web page"),
        (f"<html><title>Access denied</title><body><p>{WORDS * 3}</p></body></html>".encode(), Refused, "a bot check"),
        (f"<html><title>页面不存在</title><body><p>{WORDS * 3}</p></body></html>".encode(), Missing, "does not exist"),
        (f"<html><body>{'<div>' * 900}{WORDS * 3}{'</div>' * 900}</body></html>".encode(), Unreadable, "no main text"),
    ],
)
def test_what_comes_in_place_of_a_page_is_called_what_it_is(body, error, words):
    with pytest.raises(error, match=words) as failure:
        read(body)
    assert type(failure.value) is error
    assert failure.value.helps


def test_an_article_about_such_pages_is_none_of_them():
    found = item("<title>How we handle 404: page not found</title>", f"<p>{WORDS * 40}</p>")
    assert found.title == "How we handle 404: page not found"


def test_a_page_whose_author_leaves_the_ends_out_is_whole():
    (found,) = read(f"<html><head><title>T</title><body><article><p>{WORDS * 4}</p></article>").items
    assert found.title == "T"


def test_a_check_for_browsers_is_refused_whatever_its_status():
    wall = b"<html><head><title>Just a moment...</title></head><body></body></html>"
    for status in (200, 403, 503):
        refusal = website.refusal(answer(wall, status=status), PAGE)
        assert refusal is not None
        assert (type(refusal.error), refusal.blames) == (Refused, FailureScope.HOST)
    assert website.refusal(answer(wall, status=429), PAGE) is None
    assert website.refusal(answer(sample("article.html")), PAGE) is None


def test_without_a_package_that_it_needs_it_says_which(monkeypatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(CatchmentError, match=r"a package is missing \(.*trafilatura.*\)"):
        read(sample("article.html"))


@pytest.mark.parametrize(
    "inside",
    [
        "<div>" * 1_000_000,
        "<div></b>" * 200_000,
        ("<div>" * 100 + WORDS + "</div>" * 100) * 300,
        "<p>words and words</p>" * 30_000,
        "<a " + "".join(f"x{number} " for number in range(300_000)),
        "<table><tr><td>" * 3_000,
        "<b id=1><p>" * 20_000,
        "<ul><li>" * 5_000,
        "<script>" * 300_000,
        "<!--" * 500_000,
        " " * 2_000_000 + WORDS,
        "<p>" + "a@a." * 200_000,
        "&" * 1_000_000,
        "<time datetime='" + "1" * 500_000 + "'>",
        "<meta name=date content='" + "2026-" * 100_000 + "'>",
    ],
    ids=lambda inside: inside[:12],
)
@pytest.mark.parametrize("request_", [PAGE, LINKS], ids=["page", "links"])
def test_a_page_made_to_keep_us_busy_does_not(inside, request_):
    begun = time.process_time()
    with suppress(PlatformError):
        read(f"<html><body><main>{inside}</main></body></html>", request_)
    assert time.process_time() - begun < 10


def test_a_page_of_too_many_tags_says_that_its_links_can_be_followed():
    with pytest.raises(Unreadable, match="too many or too deep") as failure:
        read(f"<html><body><p>{WORDS * 5}</p>{'<p>words</p>' * (website.MAIN_TEXT_TAGS + 1)}</body></html>")
    assert "`links`" in failure.value.helps
