"""What both services say of a story, as one item: whoever tells it, it has the same words, links and date.

A missing key, null, "" and a value of the wrong sort all mean: unknown.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

from catchment.model import Item

SITE = "https://news.ycombinator.com/"
KINDS = ("story", "job", "poll")
# Beyond it, numbers in JSON are no longer what was written.
LARGEST = 2**53
# Some titles come with characters encoded, by one service or by both, or twice. Whole entities only: "Q&AMP" has
# none.
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
MOST_ENCODINGS = 3
# Only what stands around words: a title may speak of <i>, and must keep it.
FORMATTED = re.compile(r"<(i|b|em|strong|code|p)>([^<]*)</\1>", re.IGNORECASE)
PREFIX = re.compile(r"(ask|show|tell|launch) hn\b", re.IGNORECASE)


def story(
    external_id: str,
    *,
    kind: str,
    at: Any,
    title: Any,
    html: Any,
    url: Any,
    author: Any,
    score: Any,
    reply_count: Any,
) -> Item:
    line = plain(title)
    return Item(
        external_id=external_id,
        kind=kind,
        created_at=moment(at),
        title=line,
        html=words(html),
        # A few old stories link to pages of the site itself, by their bare names.
        base_url=SITE,
        url=address(external_id),
        target_url=words(url),
        author=words(author),
        score=number(score),
        reply_count=number(reply_count),
        tags=_tags(line),
    )


def is_empty(item: Item) -> bool:
    return not (item.title or item.html or item.target_url)


def address(external_id: str) -> str:
    return f"{SITE}item?id={external_id}"


def plain(title: Any) -> str | None:
    """A title without encodings and formatting."""
    text = words(title)
    if text is None:
        return None
    for _ in range(MOST_ENCODINGS):
        text = ENTITY.sub(lambda found: unescape(found[0]), text)
    return FORMATTED.sub(r"\2", text)


def _tags(title: str | None) -> tuple[str, ...]:
    """By the title, not by the search service's own tags: the other one has none."""
    found = PREFIX.match(title or "")
    return (f"{found[1].capitalize()} HN",) if found else ()


def words(value: Any) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST else None


def identity(value: Any) -> str | None:
    """An id, which comes as a number from one service and as a text from the other."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 17:
        value = int(value)
    found = number(value)
    return str(found) if found is not None and found > 0 else None


def moment(value: Any) -> datetime | None:
    seconds = number(value)
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None
