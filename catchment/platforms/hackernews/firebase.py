"""The site's own service: lists of ids, and one item at a time."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from catchment.errors import Unreadable
from catchment.model import Answer, Item, Reading, Request, Skipped
from catchment.platforms.hackernews import stories
from catchment.platforms.halfpairs import without_half_pairs

HOST = "hacker-news.firebaseio.com"
# Of which there are always some: an empty one is a failure of the service, not a quiet day.
NEVER_EMPTY = ("new", "top", "best")
DETAIL, LOOK = "item", "look"
EXCERPT = 200
ASKED = re.compile(r"/item/(\d+)\.json$")


class Told(msgspec.Struct):
    """An item as it comes. Only the id is certain; what is of the wrong sort counts as not told."""

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
    return Request(url, step=step, listing=listing, asks_for=external_id)


def read_list(answer: Answer, request: Request) -> Reading:
    """The ids, in the list's order; each one's story is a request of its own."""
    told = _decoded(answer.body, list[Any], "a list of stories")
    ids = dict.fromkeys(id for one in told if (id := stories.identity(one)) is not None)
    if not ids and (told or request.listing in NEVER_EMPTY):
        raise Unreadable("a list without a single story came", "the service is out of order; it is asked again")
    return Reading(
        listed=tuple(ids),
        skipped=tuple(Skipped("bad id", str(one)[:EXCERPT]) for one in told if stories.identity(one) is None),
        follow=tuple(item_request(id, DETAIL, request.listing) for id in ids),
    )


def read_item(answer: Answer, request: Request) -> Reading:
    asked = ASKED.search(request.url)
    told = _decoded(answer.body, Told | None, "a story")
    if told is None:
        return _absent(request, asked[1] if asked else "")
    external_id = stories.identity(told.id)
    if external_id is None or (asked and external_id != asked[1]):
        raise Unreadable("another item came than was asked for", "the service is out of order; it is asked again")
    if told.deleted is True or told.dead is True:
        return _withdrawn(external_id, told, request)
    return _alive(external_id, told)


def _absent(request: Request, external_id: str) -> Reading:
    """null: of a list's story, that it is not there yet; of one that was there, that it is there no more."""
    return Reading(gone=(external_id,)) if request.step == LOOK else Reading(is_unfinished=True)


def _withdrawn(external_id: str, told: Told, request: Request) -> Reading:
    """Dead or deleted: a mark on the copy that is held, and nothing to hold where there is none."""
    if request.step != LOOK:
        return Reading(skipped=(Skipped("deleted" if told.deleted is True else "dead", external_id),))
    mark = Item(
        external_id=external_id,
        kind=_kind(told) or "story",
        created_at=stories.moment(told.time),
        url=stories.address(external_id),
        author=stories.words(told.by),
        is_deleted=True,
    )
    return Reading(items=(mark,))


def _alive(external_id: str, told: Told) -> Reading:
    kind = _kind(told)
    if kind is None:
        return Reading(skipped=(Skipped("not a story", f"{external_id} {told.type}"[:EXCERPT]),))
    item = stories.story(
        external_id,
        kind=kind,
        at=told.time,
        title=told.title,
        html=told.text,
        url=told.url,
        author=told.by,
        score=told.score,
        reply_count=told.descendants,
    )
    if stories.is_empty(item):
        return Reading(skipped=(Skipped("no content", external_id),))
    return Reading(items=(item,))


def _kind(told: Told) -> str | None:
    return told.type if told.type in stories.KINDS else None


def _decoded(body: bytes, form: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(without_half_pairs(body), type=form)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise Unreadable(
            f"what came is not {what}", "nothing is stored of it; it is asked again, and may come whole then"
        ) from None
