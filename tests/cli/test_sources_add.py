"""`sources add` with a target alone: it is recognised, looked at, shown and added; or not, if it does not answer."""

from __future__ import annotations

import socket

import pytest

from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite
from tests.hostile import Hostile, reply, status

PAGE = b"<!doctype html><html><head><title>Tea</title></head><body><p>We sell tea.</p></body></html>"


def targets(catchment: Catchment) -> list[tuple[str, str]]:
    return [(source["kind"], source["target"]) for source in catchment("sources", "list", "--json").json]


def test_an_address_alone_is_looked_at_shown_and_added(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news", posts=3)
    said = catchment("sources", "add", feed.url)
    assert said.code == 0, said.err
    assert "[rss]" in said.out
    assert "It answers with 3 items:" in said.out
    assert said.out.endswith(f"Added source 1: {feed.url} (rss)\n")
    assert targets(catchment) == [("rss", feed.url)]


def test_the_page_of_a_site_leads_to_its_feed(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news", posts=2)
    link = f'<link rel="alternate" type="application/rss+xml" href="{feed.url}"></head>'.encode()
    page = site.server.on("/", reply(PAGE.replace(b"</head>", link), content_type="text/html"))
    found = catchment("sources", "add", page, "--json").json
    assert (found["kind"], found["preview"]["shown"], found["preview"]["title"]) == ("rss", 2, feed.title)


def test_a_site_whose_feed_is_added_already_is_not_added_again(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news", posts=2)
    link = f'<link rel="alternate" type="application/rss+xml" href="{feed.url}"></head>'.encode()
    page = site.server.on("/", reply(PAGE.replace(b"</head>", link), content_type="text/html"))
    assert catchment("sources", "add", feed.url).code == 0
    said = catchment("sources", "add", page)
    assert (said.code, "is already source 1" in said.err) == (5, True)
    assert targets(catchment) == [("rss", feed.url)]


def test_a_page_without_a_feed_is_said_with_the_command_that_adds_it_as_a_page(
    catchment: Catchment, site: FeedSite
) -> None:
    page = site.server.on("/", reply(PAGE, content_type="text/html"))
    said = catchment("sources", "add", page)
    assert said.code == 3
    assert f"no feed was found at {page}" in said.err
    assert f"catchment sources add website {page}" in said.err
    assert targets(catchment) == []


def test_a_target_that_begins_with_a_minus_is_no_option(catchment: Catchment) -> None:
    assert catchment("sources", "add", "nga_forum", "-7", "--interval", "30", "--json").json["target"] == "-7"
    assert catchment("sources", "add", "--name", "Chat", "nga_forum", "-1459709").code == 0
    assert targets(catchment) == [("nga_forum", "-7"), ("nga_forum", "-1459709")]
    said = catchment("sources", "add", "nga_forum", "7", "--nmae", "Chat")
    assert (said.code, "--nmae" in said.err) == (2, True)


def test_a_host_that_is_dead_is_said_before_anything_is_added(catchment: Catchment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = catchment("sources", "add", f"http://127.0.0.1:{port}/feed")
    assert said.code == 3
    assert "check how the address is written" in said.err
    assert targets(catchment) == []


def test_what_is_no_feed_may_be_another_kind(catchment: Catchment) -> None:
    with Hostile() as server:
        url = server.on("/posts", reply(b'[{"id": 1, "title": "One"}]', content_type="application/json"))
        said = catchment("sources", "add", url)
    assert said.code == 3
    assert "custom_api" in said.err
    assert targets(catchment) == []


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("r/webdev", "reddit", "r/webdev"),
        ("https://www.reddit.com/r/webdev/", "reddit", "r/webdev"),
        ("reddit.com/r/webdev", "reddit", "r/webdev"),
        ("search:tea", "hackernews", "search:tea"),
        ("https://news.example/feed", "rss", "https://news.example/feed"),
        ("news.example", "rss", "https://news.example/"),
    ],
)
def test_without_a_look_the_form_of_the_target_decides_and_nobody_is_asked(
    catchment: Catchment, text: str, kind: str, target: str
) -> None:
    assert catchment("sources", "add", text, "--no-check").code == 0
    assert targets(catchment) == [(kind, target)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("top", ["catchment sources add hackernews top", "catchment sources add github_trending top"]),
        ("!!", ["no platform recognises", "the kind before the target"]),
        ("rss", ["its target is missing", "catchment sources add rss https://"]),
    ],
)
def test_what_may_be_several_things_or_none_is_refused_with_what_to_type(
    catchment: Catchment, text: str, says: list[str]
) -> None:
    said = catchment("sources", "add", text)
    assert said.code == 2
    for words in says:
        assert words in said.err
    assert targets(catchment) == []


def test_with_a_kind_nobody_is_asked_unless_that_is_wanted(catchment: Catchment, site: FeedSite) -> None:
    missing = site.server.on("/missing", status(404))
    for more in ((), ("--no-check",)):
        assert catchment("sources", "add", "rss", missing, *more).code == (0 if not more else 5)
    assert site.server.seen == []
    assert catchment("sources", "add", "website", missing, "--check").code == 3
    assert targets(catchment) == [("rss", missing)]
