"""Entries are found in the bytes of a feed only where there is no doubt about them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from catchment.model import Answer
from catchment.platforms.feeds import pieces

ENTRY = b"<item><guid>1</guid><title>One</title></item>"
OTHER = b"<item a='b'><guid>2</guid><description><![CDATA[<p>Two</p>]]></description></item>"


def rss(*entries: bytes, head: bytes = b"<title>A feed</title>") -> bytes:
    return b'<?xml version="1.0"?><rss version="2.0"><channel>' + head + b"\n".join(entries) + b"</channel></rss>"


def found(body: bytes, content_type: str = "application/rss+xml") -> list[bytes] | None:
    cut = pieces(Answer(200, {"content-type": content_type}, body, "https://a.example/", datetime.now(UTC)))
    return None if cut is None else [body[start:end] for start, end in cut.entries]


def around(body: bytes) -> bytes:
    cut = pieces(Answer(200, {}, body, "https://a.example/", datetime.now(UTC)))
    assert cut is not None
    return cut.around


def test_entries_of_rss_and_atom_are_found() -> None:
    assert found(rss(ENTRY, OTHER)) == [ENTRY, OTHER]
    entry = b"<entry><id>1</id></entry>"
    assert found(b'<feed xmlns="http://www.w3.org/2005/Atom"><title/>' + entry + b"</feed>") == [entry]


def test_sections_and_comments_hide_no_end_of_an_entry() -> None:
    entries = [
        b"<item><title><![CDATA[ </item> ]]></title></item>",
        b"<item><!-- </item> --><title>One!</title></item>",
        b"<item><title><![CDATA[a]]><![CDATA[ ]] > </item>]]></title></item>",
    ]
    assert found(rss(*entries, ENTRY)) == [*entries, ENTRY]


@pytest.mark.parametrize(
    "body",
    [
        rss(),
        rss(b"<item><title><![CDATA[<item>]]></title></item>"),
        rss(b"<item><title>One</item>", b"<title>Two</title>", head=b"<!-- <item> -->"),
        rss(ENTRY, b"<!-- ", ENTRY, b" -->"),
        rss(b"<item><title><![CDATA[</item>"),
        rss(b"<item><title>One</title></item >"),
        rss(b"<items/>"),
        b"<!DOCTYPE rss [<!ENTITY a 'b'>]>" + rss(ENTRY),
        rss(ENTRY).replace(b'"1.0"?', b'"1.0" encoding="gbk"?'),
        rss(ENTRY).decode().encode("utf-16"),
        b"[]",
        b"",
    ],
)
def test_what_is_not_certain_is_not_cut(body: bytes) -> None:
    assert found(body) is None


def test_what_all_entries_depend_on_is_told_without_the_dates_of_the_answer() -> None:
    feed = rss(ENTRY, head=b"<title>A feed</title><lastBuildDate>today</lastBuildDate>")
    other = rss(ENTRY, OTHER, head=b"<title>A feed</title><lastBuildDate>tomorrow</lastBuildDate>")
    assert around(feed) == around(other) != around(rss(ENTRY, head=b"<title>A feed</title><language>en</language>"))
