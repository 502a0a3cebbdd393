"""The site's own API (Firebase): lists of ids, and one item at a time."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from catchment.errors import Unreadable
from catchment.model import Answer, Item, Reading, Request, Skipped
from catchment.platforms._common.coercion import from_seconds, text
from catchment.platforms._common.json import EXCERPT, decode_answer
from catchment.platforms.hackernews import stories

HOST = "hacker-news.firebaseio.com"
# Lists that are never empty: an empty one is a failure of the service, not a quiet day.
NEVER_EMPTY = ("new", "top", "best")
DETAIL, RECHECK = "item", "recheck"
ASKED = re.compile(r"/item/(\d+)\.json$")


class FirebaseItem(msgspec.Struct):
    """An item as received. Only the id is certain; a value of the wrong type is unknown."""

    id: Any = None
    type: Any = None
    by: Any = None
    time: Any = None
    title: Any = None
    text: Any = None
    url: Any = None
    score: Any = None
    descendants: Any = None
    deleted: Any = None
    dead: Any = None


def list_request(listing: str) -> Request:
    return Request(f"https://{HOST}/v0/{listing}stories.json", listing=listing)


def item_request(external_id: str, step: str, listing: str = "") -> Request:
    url = f"https://{HOST}/v0/item/{external_id}.json"
    return Request(url, step=step, listing=listing, item_id=external_id)


def read_list(answer: Answer, request: Request) -> Reading:
    """Returns the ids, in the list's order; each one's story is a request of its own."""
    entries = _decoded(answer.body, list[Any], "a list of stories")
    ids = dict.fromkeys(id for entry in entries if (id := stories.identity(entry)) is not None)
    if not ids and (entries or request.listing in NEVER_EMPTY):
        raise Unreadable("a list without a single story came", "the service is out of order; it is asked again")
    return Reading(
        listed=tuple(ids),
        skipped=tuple(Skipped("bad id", str(entry)[:EXCERPT]) for entry in entries if stories.identity(entry) is None),
        follow=tuple(item_request(id, DETAIL, request.listing) for id in ids),
    )


def read_item(answer: Answer, request: Request) -> Reading:
    asked = ASKED.search(request.url)
    item = _decoded(answer.body, FirebaseItem | None, "a story")
    if item is None:
        return _absent(request, asked[1] if asked else "")
    external_id = stories.identity(item.id)
    if external_id is None or (asked and external_id != asked[1]):
        raise Unreadable("another item came than was asked for", "the service is out of order; it is asked again")
    if item.deleted is True or item.dead is True:
        return _withdrawn(external_id, item, request)
    return _alive(external_id, item)


def _absent(request: Request, external_id: str) -> Reading:
    """Handles null: a listed story is not there yet; one that was there is gone."""
    return Reading(gone=(external_id,)) if request.step == RECHECK else Reading(is_unfinished=True)


def _withdrawn(external_id: str, item: FirebaseItem, request: Request) -> Reading:
    """Dead or deleted: marks the stored copy; where there is none, nothing is stored."""
    if request.step != RECHECK:
        return Reading(skipped=(Skipped("deleted" if item.deleted is True else "dead", external_id),))
    mark = Item(
        external_id=external_id,
        kind=_kind(item) or "story",
        created_at=from_seconds(item.time),
        url=stories.address(external_id),
        author=text(item.by),
        is_deleted=True,
    )
    return Reading(items=(mark,))


def _alive(external_id: str, received: FirebaseItem) -> Reading:
    kind = _kind(received)
    if kind is None:
        return Reading(skipped=(Skipped("not a story", f"{external_id} {received.type}"[:EXCERPT]),))
    item = stories.story(
        external_id,
        kind=kind,
        at=received.time,
        title=received.title,
        html=received.text,
        url=received.url,
        author=received.by,
        score=received.score,
        reply_count=received.descendants,
    )
    if stories.is_empty(item):
        return Reading(skipped=(Skipped("no content", external_id),))
    return Reading(items=(item,))


def _kind(item: FirebaseItem) -> str | None:
    return item.type if item.type in stories.KINDS else None


def _decoded(body: bytes, shape: Any, what: str) -> Any:
    helps = "nothing is stored of it; it is asked again, and may come whole then"
    return decode_answer(body, shape, f"what came is not {what}", helps)
