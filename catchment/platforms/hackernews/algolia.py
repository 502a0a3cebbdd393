"""Algolia's search API: matching stories, newest first, complete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import msgspec

from catchment.errors import Unreadable
from catchment.model import Answer, Item, Reading, Request
from catchment.platforms._common.coercion import number
from catchment.platforms._common.json import UnusableEntry, decode_answer, decode_entry, read_each
from catchment.platforms.hackernews import stories
from catchment.text.dates import read_date

HOST = "hn.algolia.com"
PAGE_SIZE = 100


class AlgoliaPage(msgspec.Struct):
    hits: list[msgspec.Raw]
    """Raw, so that one bad hit cannot break the page."""
    nbHits: Any = None
    hitsPerPage: Any = None
    """The page size the service used: it may give less than was requested."""
    page: Any = None


class AlgoliaHit(msgspec.Struct):
    """A hit as received: keys that are not used may be null, or left out."""

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


def request(words: str) -> Request:
    params = {"query": words, "tags": "(story,poll)", "hitsPerPage": str(PAGE_SIZE)}
    return Request(f"https://{HOST}/api/v1/search_by_date", params=params, listing="search")


def read(answer: Answer, asked: Request) -> Reading:
    helps = "nothing is stored of it; the next poll may find it whole"
    page = decode_answer(answer.body, AlgoliaPage, "what came is no page of search results", helps)
    items, skipped = read_each(page.hits, _item)
    follow = _older(page, items, asked)
    return Reading(items, skipped=skipped, follow=follow, is_end=not follow)


def _item(raw: msgspec.Raw) -> Item:
    hit = decode_entry(raw, AlgoliaHit, "a hit")
    external_id, kind = stories.identity(hit.objectID), _kind(hit)
    if external_id is None:
        raise UnusableEntry("bad id")
    if kind is None:
        raise UnusableEntry("not a story")
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
        raise UnusableEntry("no content")
    return item


def _kind(hit: AlgoliaHit) -> str | None:
    """Returns the kind by its tags; a hit without any was found among stories."""
    if not isinstance(hit.tags, list):
        return "story"
    return next((kind for kind in stories.KINDS if kind in hit.tags), None)


def _seconds(hit: AlgoliaHit) -> int | None:
    seconds = number(hit.created_at_i)
    if seconds is not None:
        return seconds
    dated = read_date(hit.created_at) if isinstance(hit.created_at, str) else None
    return int(dated.at.astimezone(UTC).timestamp()) if dated else None


def _older(page: AlgoliaPage, items: Sequence[Item], asked: Request) -> tuple[Request, ...]:
    """Returns the request for older stories: not by pages, which end after 1,000 hits, but from the oldest second
    shown.

    That second is requested again, because more may have been posted in it. Where it fills whole pages, and only
    then, the pages themselves lead on.
    """
    page_number, size = number(page.page) or 0, number(page.hitsPerPage) or PAGE_SIZE
    total = number(page.nbHits)
    if not page.hits or len(page.hits) < size or (total is not None and total <= page_number * size + len(page.hits)):
        return ()
    dates = [item.created_at for item in items if item.created_at is not None]
    if not dates:
        raise Unreadable("a page of hits without a single date came", "the service may have changed its form")
    bound = f"created_at_i<={int(min(dates).timestamp())}"
    is_stuck = asked.params.get("numericFilters") == bound
    params = {name: value for name, value in asked.params.items() if name != "page"} | {"numericFilters": bound}
    return (asked.replace(params=params | {"page": str(page_number + 1)} if is_stuck else params),)
