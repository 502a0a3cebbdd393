"""The site's own API (Firebase): lists of ids, and one item at a time."""

from __future__ import annotations

from typing import Any

from catchment.errors import Unreadable
from catchment.lazy import pattern
from catchment.messages import Message, message
from catchment.model import Answer, Item, JsonObject, Reading, Request, Skipped
from catchment.platforms._common.coercion import from_seconds, text
from catchment.platforms._common.json import EXCERPT, decode_answer
from catchment.platforms.hackernews import stories
from catchment.platforms.hackernews.algolia import comments_of, wants_comments

HOST = "hacker-news.firebaseio.com"
# Lists that are never empty: an empty one is a failure of the service, not a quiet day.
NEVER_EMPTY = ("new", "top", "best")
DETAIL, RECHECK = "item", "recheck"
_NO_LIST = message("the answer is not a list of stories")
_NO_STORY = message("the answer is not a story")
_ASKED_AGAIN = message("nothing of it was stored; it will be requested again and may then be complete")
ASKED = pattern(r"/item/(\d+)\.json$")
NAMES = ("title", "text", "url", "by", "score", "descendants")


def list_request(listing: str, *, with_comments: bool = False) -> Request:
    state: JsonObject = {"comments": True} if with_comments else {}
    return Request(f"https://{HOST}/v0/{listing}stories.json", listing=listing, state=state)


def item_request(external_id: str, step: str, listing: str = "", state: JsonObject | None = None) -> Request:
    url = f"https://{HOST}/v0/item/{external_id}.json"
    return Request(url, step=step, listing=listing, item_id=external_id, state=state or {})


def read_list(answer: Answer, request: Request) -> Reading:
    """Returns the ids, in the list's order; each one's story is a request of its own."""
    entries = _decoded(answer.body, list[Any], _NO_LIST)
    ids = dict.fromkeys(id for entry in entries if (id := stories.identity(entry)) is not None)
    if not ids and (entries or request.listing in NEVER_EMPTY):
        raise Unreadable(
            "the answer is a list without any story", "the service has a problem; the request will be retried"
        )
    return Reading(
        listed=tuple(ids),
        skipped=tuple(Skipped("bad id", str(entry)[:EXCERPT]) for entry in entries if stories.identity(entry) is None),
        follow=tuple(item_request(id, DETAIL, request.listing, request.state) for id in ids),
    )


def read_item(answer: Answer, request: Request) -> Reading:
    asked = ASKED.search(request.url)
    fields = _decoded(answer.body, JsonObject | None, _NO_STORY)
    is_recheck = request.step == RECHECK
    if fields is None:
        # A listed story is not there yet; one that was there is gone.
        return Reading(gone=(asked[1] if asked else "",)) if is_recheck else Reading(is_unfinished=True)
    external_id = stories.identity(fields.get("id"))
    if external_id is None or (asked and external_id != asked[1]):
        raise Unreadable(
            "the answer contains a different item from the one requested",
            "the service has a problem; the request will be retried",
        )
    is_deleted, kind = fields.get("deleted") is True, fields.get("type")
    is_story = kind in stories.KINDS
    if is_deleted or fields.get("dead") is True:
        if not is_recheck:
            return Reading(skipped=(Skipped("deleted" if is_deleted else "dead", external_id),))
        mark = Item(
            external_id=external_id,
            kind=kind if is_story else "story",
            created_at=from_seconds(fields.get("time")),
            url=stories.address(external_id),
            author=text(fields.get("by")),
            is_deleted=True,
        )
        return Reading(items=(mark,))
    if not is_story:
        return Reading(skipped=(Skipped("not a story", f"{external_id} {kind}"[:EXCERPT]),))
    item = stories.story(external_id, kind, fields.get("time"), fields, NAMES)
    if stories.is_empty(item):
        return Reading(skipped=(Skipped("no content", external_id),))
    comments = (comments_of(item, request.listing),) if wants_comments(item, request) else ()
    return Reading(items=(item,), follow=comments)


def _decoded(body: bytes, shape: Any, what: Message) -> Any:
    return decode_answer(body, shape, what, _ASKED_AGAIN)
