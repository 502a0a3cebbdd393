"""Converts a story or a comment of either API to an item: with the same text, links and date from both.

A missing key, null, "" and a value of the wrong type all mean: unknown.
"""

from __future__ import annotations

import re
from typing import Any

from catchment.lazy import pattern
from catchment.model import Item, JsonObject, Reference
from catchment.platforms._common.coercion import from_seconds, number, text
from catchment.text.printable import unescape

SITE = "https://news.ycombinator.com/"
KINDS = ("story", "job", "poll")
COMMENT = "comment"
# Some titles come with characters encoded, by one service or by both, or twice. Whole entities only: "Q&AMP" has none.
ENTITY = pattern(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
MOST_ENCODINGS = 3
# Only tags around words: a title may speak of <i>, and must keep it.
FORMATTED = pattern(r"<(i|b|em|strong|code|p)>([^<]*)</\1>", re.IGNORECASE)
Names = tuple[str, str, str, str, str, str]
"""Of title, HTML, URL, author, score and number of comments."""
PREFIX = pattern(r"(ask|show|tell|launch) hn\b", re.IGNORECASE)


def story(external_id: str, kind: str, at: Any, fields: JsonObject, names: Names) -> Item:
    """Returns a story; `names` are the names of its fields in the service's answer."""
    title, html, url, author, score, reply_count = (fields.get(name) for name in names)
    plain_title = plain(title)
    prefix = PREFIX.match(plain_title or "")
    return Item(
        external_id=external_id,
        kind=kind,
        created_at=from_seconds(at),
        title=plain_title,
        html=text(html),
        # A few old stories link to pages of the site itself, by their bare names.
        base_url=SITE,
        url=address(external_id),
        target_url=text(url),
        author=text(author),
        score=number(score),
        reply_count=number(reply_count),
        thread_id=external_id,
        is_head=True,
        # By the title, not by the search service's own tags: the other one has none.
        tags=(f"{prefix[1].capitalize()} HN",) if prefix else (),
    )


def comment(external_id: str, story_id: str | None, at: Any, fields: JsonObject) -> Item:
    """Returns a comment, in the form of the search service."""
    parent_id = identity(fields.get("parent_id"))
    return Item(
        external_id=external_id,
        kind=COMMENT,
        created_at=from_seconds(at),
        html=text(fields.get("comment_text")),
        base_url=SITE,
        url=address(external_id),
        author=text(fields.get("author")),
        thread_id=story_id,
        references=(Reference("replied_to", parent_id, url=address(parent_id)),) if parent_id else (),
    )


def is_empty(item: Item) -> bool:
    return not (item.title or item.html or item.target_url)


def address(external_id: str) -> str:
    return f"{SITE}item?id={external_id}"


def plain(title: Any) -> str | None:
    """Returns a title without encodings and formatting."""
    encoded = text(title)
    if encoded is None:
        return None
    for _ in range(MOST_ENCODINGS):
        encoded = ENTITY.sub(lambda entity: unescape(entity[0]), encoded)
    return FORMATTED.sub(r"\2", encoded)


def identity(value: Any) -> str | None:
    """Returns an id, which comes as a number from one service and as a text from the other."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 17:
        value = int(value)
    whole = number(value)
    return str(whole) if whole is not None and whole > 0 else None
