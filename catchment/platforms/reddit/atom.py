"""A community's feed: what Reddit tells without a key.

An entry is a short form of its post: title, words, link, author, date; no counters, no marks. Its content is a table
made for feed readers, of which only the words and the link are the post's own.
"""

from __future__ import annotations

import re
from html import unescape

from catchment.model import Answer, Item, Media, Reading, Request, Skipped
from catchment.platforms import feeds
from catchment.platforms.reddit import media, posts, wire

NOTE = "read without a key, from the community's feed: no scores, no comment counts, no edits, no removals"
# What stands around a post's own words.
_BEFORE, _AFTER = "<!-- SC_OFF -->", "<!-- SC_ON -->"
_TAG = re.compile(r"<[^<>]*>")
_LINK = re.compile(r'<a href="([^"<>]{1,4000})">\[link\]</a>')
_THREAD = re.compile(r"/comments/([0-9a-z]{1,13})(?:/|$)")


def read(answer: Answer, asked: Request) -> Reading:
    reading = feeds.read(answer, asked)
    items = [_item(one) for one in reading.items]
    skipped = [
        Skipped("bad id", told.external_id) for told, item in zip(reading.items, items, strict=True) if item is None
    ]
    return Reading(
        tuple(item for item in items if item is not None),
        skipped=(*reading.skipped, *skipped),
        is_torn=reading.is_torn,
        cursor={"note": NOTE},
        notes=(NOTE, *reading.notes),
    )


def _item(entry: Item) -> Item | None:
    """None: the entry is neither a post nor a comment."""
    if not wire.FULLNAME.fullmatch(entry.external_id):
        return None
    is_post, html = entry.external_id.startswith(wire.POST), entry.html or ""
    target = _target(html, entry.url) if is_post else None
    thread = _THREAD.search(entry.url or "")
    return Item(
        entry.external_id,
        kind="post" if is_post else "comment",
        created_at=entry.created_at,
        # A comment's title only says whose it is.
        title=entry.title if is_post else None,
        html=_words(html),
        base_url=posts.SITE,
        url=entry.url,
        target_url=target,
        author=_name(entry.author),
        thread_id=f"{wire.POST}_{thread[1]}" if thread else None,
        is_head=is_post and thread is not None,
        is_brief=True,
        media=(Media(target),) if target and media.is_image(target) else (),
    )


def _words(html: str) -> str | None:
    """The post's own; none where only a mark says that there were some."""
    told, is_ended, _ = html.partition(_BEFORE)[2].partition(_AFTER)
    words = told.strip() if is_ended else ""
    return None if posts.marked_by(_TAG.sub("", words)) else words or None


def _target(html: str, url: str | None) -> str | None:
    """What the post points to, if that is not itself."""
    found = _LINK.search(html)
    target = unescape(found[1]) if found else None
    return None if target == url else target


def _name(author: str | None) -> str | None:
    return wire.name_of((author or "").removeprefix("/u/"))
