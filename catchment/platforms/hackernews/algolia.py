"""Algolia's search API: matching stories, newest first, complete; and the comments of a story."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from catchment.errors import Unreadable
from catchment.messages import message
from catchment.model import Answer, Item, JsonObject, Reading, Request
from catchment.platforms._common.coercion import number
from catchment.platforms._common.json import UnusableEntry, decode_answer, decode_entry, read_each
from catchment.platforms.hackernews import stories
from catchment.text.dates import read_date

HOST = "hn.algolia.com"
PAGE_SIZE = 100
COMMENTS = "comments"
COMMENTS_OF_A_PAGE = 500
"""About a megabyte."""
NAMES = ("title", "story_text", "url", "author", "points", "num_comments")


class AlgoliaPage(msgspec.Struct):
    hits: list[msgspec.Raw]
    """Raw, so that one bad hit cannot break the page."""
    nbHits: Any = None
    hitsPerPage: Any = None
    """The page size the service used: it may give less than was requested."""
    page: Any = None


def request(words: str, until: datetime | None = None, *, with_comments: bool = False) -> Request:
    """Requests matching stories, newest first; those of that second are the newest, if there is one."""
    params = {"query": words, "tags": "(story,poll)", "hitsPerPage": str(PAGE_SIZE)}
    if until is not None:
        params |= {"numericFilters": f"created_at_i<={int(until.timestamp())}"}
    state: JsonObject = {"comments": True} if with_comments else {}
    return Request(f"https://{HOST}/api/v1/search_by_date", params=params, listing="search", state=state)


def comments_of(story: Item, listing: str) -> Request:
    """Requests the comments of a story, newest first; worth sending if the story is new or changed."""
    return Request(
        f"https://{HOST}/api/v1/search_by_date",
        params={"tags": f"comment,story_{story.external_id}", "hitsPerPage": str(COMMENTS_OF_A_PAGE)},
        step=COMMENTS,
        listing=listing,
        state={"story": story.external_id},
        about_item=story.external_id,
    )


_NO_RESULTS = message("the answer is not a page of search results")
_NO_COMMENTS = message("the answer is not a page of comments")
_NEXT_POLL = message("nothing of it was stored; it may be complete in the next collection")


def wants_comments(story: Item, asked: Request) -> bool:
    """Whether the comments of a story are to be requested; jobs have none."""
    return asked.state.get("comments") is True and story.reply_count != 0 and story.kind != "job"


def read(answer: Answer, asked: Request) -> Reading:
    page = decode_answer(answer.body, AlgoliaPage, _NO_RESULTS, _NEXT_POLL)
    items, skipped = read_each(page.hits, _item)
    pages = _older(page, items, asked)
    comments = tuple(comments_of(item, asked.listing) for item in items if wants_comments(item, asked))
    return Reading(items, skipped=skipped, follow=(*pages, *comments), is_end=not pages)


def read_comments(answer: Answer, asked: Request) -> Reading:
    """Parses comments of a story."""
    page = decode_answer(answer.body, AlgoliaPage, _NO_COMMENTS, _NEXT_POLL)
    story_id = stories.identity(asked.state.get("story"))
    items, skipped = read_each(page.hits, lambda raw: _comment(raw, story_id))
    return Reading(items, skipped=skipped, follow=_older(page, items, asked))


def _comment(raw: msgspec.Raw, story_id: str | None) -> Item:
    hit: JsonObject = decode_entry(raw, dict, "a hit")
    external_id, tags = stories.identity(hit.get("objectID")), hit.get("_tags")
    if external_id is None:
        raise UnusableEntry("bad id")
    if isinstance(tags, list) and stories.COMMENT not in tags:
        raise UnusableEntry("not a comment")
    if stories.identity(hit.get("story_id")) not in (None, story_id):
        raise UnusableEntry("of another story")
    item = stories.comment(external_id, story_id, _seconds(hit), hit)
    if item.html is None:
        raise UnusableEntry("no content")
    return item


def _item(raw: msgspec.Raw) -> Item:
    hit: JsonObject = decode_entry(raw, dict, "a hit")
    external_id, tags = stories.identity(hit.get("objectID")), hit.get("_tags")
    if external_id is None:
        raise UnusableEntry("bad id")
    # A hit without any tags was found among stories.
    kind = next((kind for kind in stories.KINDS if kind in tags), None) if isinstance(tags, list) else "story"
    if kind is None:
        raise UnusableEntry("not a story")
    item = stories.story(external_id, kind, _seconds(hit), hit, NAMES)
    if stories.is_empty(item):
        raise UnusableEntry("no content")
    return item


def _seconds(hit: JsonObject) -> int | None:
    seconds, created_at = number(hit.get("created_at_i")), hit.get("created_at")
    if seconds is None and isinstance(created_at, str) and (dated := read_date(created_at)):
        seconds = int(dated.at.astimezone(UTC).timestamp())
    return seconds


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
        raise Unreadable("the page of results contains no dates", "the service may have changed its format")
    bound = f"created_at_i<={int(min(dates).timestamp())}"
    is_stuck = asked.params.get("numericFilters") == bound
    params = {name: value for name, value in asked.params.items() if name != "page"} | {"numericFilters": bound}
    return (asked.replace(params=params | {"page": str(page_number + 1)} if is_stuck else params),)
