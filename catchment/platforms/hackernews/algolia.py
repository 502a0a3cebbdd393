"""The search service: stories that match, newest first, with all they say."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import msgspec

from catchment.dates import read_date
from catchment.errors import Unreadable
from catchment.model import Answer, Item, Reading, Request, Skipped
from catchment.platforms.hackernews import stories
from catchment.platforms.halfpairs import without_half_pairs

HOST = "hn.algolia.com"
PAGE_SIZE = 100
EXCERPT = 200


class Page(msgspec.Struct):
    hits: list[msgspec.Raw]
    """Raw, so that one bad hit cannot sink the page."""
    nbHits: Any = None
    hitsPerPage: Any = None
    """As the service has it: it may give less than was asked for."""
    page: Any = None


class Hit(msgspec.Struct):
    """A hit as it comes: keys that are not used may be null, or left out."""

    objectID: Any = None
    created_at: Any = None
    created_at_i: Any = None
    title: Any = None
    story_text: Any = None
    url: Any = None
    author: Any = None
    points: Any = None
    num_comments: Any = None
    tags: Any = msgspec.field(default=None, name="_tags")


class Unusable(Exception):
    """A hit that cannot be used, and why."""


def request(words: str) -> Request:
    params = {"query": words, "tags": "(story,poll)", "hitsPerPage": str(PAGE_SIZE)}
    return Request(f"https://{HOST}/api/v1/search_by_date", params=params, listing="search")


def read(answer: Answer, asked: Request) -> Reading:
    page = _page(answer.body)
    items: list[Item] = []
    skipped: list[Skipped] = []
    for raw in page.hits:
        try:
            items.append(_item(raw))
        except Unusable as reason:
            skipped.append(Skipped(str(reason), bytes(raw)[:EXCERPT].decode(errors="replace")))
    follow = _older(page, items, asked)
    return Reading(tuple(items), skipped=tuple(skipped), follow=follow, is_end=not follow)


def _page(body: bytes) -> Page:
    try:
        return msgspec.json.decode(without_half_pairs(body), type=Page)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise Unreadable(
            "what came is no page of search results", "nothing is stored of it; the next poll may find it whole"
        ) from None


def _item(raw: msgspec.Raw) -> Item:
    try:
        hit = msgspec.json.decode(raw, type=Hit)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise Unusable("not a hit") from None
    external_id, kind = stories.identity(hit.objectID), _kind(hit)
    if external_id is None:
        raise Unusable("bad id")
    if kind is None:
        raise Unusable("not a story")
    item = stories.story(
        external_id,
        kind=kind,
        at=_seconds(hit),
        title=hit.title,
        html=hit.story_text,
        url=hit.url,
        author=hit.author,
        score=hit.points,
        reply_count=hit.num_comments,
    )
    if stories.is_empty(item):
        raise Unusable("no content")
    return item


def _kind(hit: Hit) -> str | None:
    """By its tags; a hit without any was found among stories."""
    if not isinstance(hit.tags, list):
        return "story"
    return next((kind for kind in stories.KINDS if kind in hit.tags), None)


def _seconds(hit: Hit) -> int | None:
    seconds = stories.number(hit.created_at_i)
    if seconds is not None:
        return seconds
    dated = read_date(hit.created_at) if isinstance(hit.created_at, str) else None
    return int(dated.at.astimezone(UTC).timestamp()) if dated else None


def _older(page: Page, items: list[Item], asked: Request) -> tuple[Request, ...]:
    """The way further back: not by pages, which end after 1,000 hits, but from the oldest second that was shown.

    That second is asked for again, because more may have been posted in it. Where it fills whole pages, and only then,
    the pages themselves lead on.
    """
    number, size = stories.number(page.page) or 0, stories.number(page.hitsPerPage) or PAGE_SIZE
    total = stories.number(page.nbHits)
    if not page.hits or len(page.hits) < size or (total is not None and total <= number * size + len(page.hits)):
        return ()
    dates = [item.created_at for item in items if item.created_at is not None]
    if not dates:
        raise Unreadable("a page of hits without a single date came", "the service may have changed its form")
    bound = f"created_at_i<={int(min(dates).timestamp())}"
    is_stuck = asked.params.get("numericFilters") == bound
    params = {name: value for name, value in asked.params.items() if name != "page"} | {"numericFilters": bound}
    return (asked.plus(params=params | {"page": str(number + 1)} if is_stuck else params),)
