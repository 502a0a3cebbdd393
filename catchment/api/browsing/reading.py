"""Reading: the list, the search, the item. Everything that is asked stands in the address, so that it can be shared."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from catchment import pages
from catchment.api.browsing import outgoing
from catchment.api.browsing.outgoing import AnyReader, format_of
from catchment.api.browsing.readers import TheReader
from catchment.api.door import Door, TheDoor, TheShop
from catchment.api.standing import with_source_names
from catchment.api.values import LARGEST, ItemId
from catchment.dates import asked_moment
from catchment.errors import InvalidInput
from catchment.model import Ordering
from catchment.pages import Reader
from catchment.pages.feeds import About
from catchment.shop import Shop
from catchment.store.filtering import Filter
from catchment.store.items import key_from, key_text

router = APIRouter()

A_PAGE = 30
STATES = ("edited", "deleted", "present")
_GIVEN = ("platform", "kind", "source", "author", "tag", "since", "until", "state")
_GROUPS = {"platform": "platform", "kind": "sort", "state": "shown"}
"""Filters whose values have names of our own, and in which group of words."""
_LONGEST = 500


@router.get("/items")
def items(request: Request, door: TheDoor, reader: AnyReader) -> Response:
    shop, asked, format = door.shop, Asked(request, reader), format_of(request)
    order = Ordering.REPLIED if request.query_params.get("order") == Ordering.REPLIED else Ordering.POSTED
    asked.also = {"order": order} if order != Ordering.POSTED else {}
    wanted = shop.names.checked(asked.filter())
    page = shop.hot.listed(wanted, format.most if format else A_PAGE, key_from(asked.after), order)
    if format is not None:
        following = asked.onwards(request, key_text(page.next) if page.next else None)
        rows = with_source_names(shop, page.items)
        return outgoing.answer(request, format, rows, asked.about(request, f"items_{order}_title"), following)
    found = asked.surroundings(door) | {
        "items": with_source_names(shop, page.items),
        "next": asked.address(after=key_text(page.next)) if page.next else None,
        "order": order,
        "orders": {one: asked.address(order=one if one != Ordering.POSTED else None) for one in Ordering},
    }
    return HTMLResponse(pages.items_page(reader, found))


@router.get("/search")
def search(request: Request, door: TheDoor, reader: AnyReader) -> Response:
    shop, asked, format = door.shop, Asked(request, reader), format_of(request)
    words = request.query_params.get("q", "").strip()[:_LONGEST]
    order = "best" if request.query_params.get("order") == "best" else "newest"
    asked.also = {name: value for name, value in (("q", words), ("order", order)) if value and value != "newest"}
    if format is not None:
        hits = _hits(shop, asked, words, order, format.most)
        following = asked.onwards(request, hits["after"])
        return outgoing.answer(request, format, hits["items"], asked.about(request, "search_title"), following)
    found = asked.surroundings(door) | {
        "asked": words,
        "order": order,
        "orders": {one: asked.address(order=one) for one in ("newest", "best")},
    }
    return HTMLResponse(pages.search_page(reader, found | _hits(shop, asked, words, order, A_PAGE)))


def _hits(shop: Shop, asked: Asked, words: str, order: str, most: int) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "items": [],
        "next": None,
        "after": None,
        "total": None,
        "is_estimated": False,
        "behind": 0,
        "error": None,
    }
    if not words:
        return nothing
    try:
        wanted = shop.names.checked(asked.filter())
        hits = shop.store.search.find(words, wanted, is_best=order == "best", limit=most, after=asked.after)
    except InvalidInput as error:
        return nothing | {"error": str(error)}
    return nothing | {
        "items": with_source_names(shop, hits.items),
        "next": asked.address(after=hits.next) if hits.next else None,
        "after": hits.next,
        "total": hits.count,
        "is_estimated": hits.is_count_estimated,
        "behind": hits.behind,
    }


@router.get("/items/{item_id}")
def item(
    shop: TheShop,
    reader: TheReader,
    item_id: ItemId,
    at: Annotated[str, Query(max_length=64)] = "",
    after: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    store = shop.store.items
    moment = _moment(at, reader) if at else None
    found = store.get(item_id) if moment is None else store.as_of(item_id, moment)
    replies = store.replies(item_id, A_PAGE, key_from(after or None))
    named = [one["external_id"] for one in found["references"] if "external_id" in one]
    known = {
        "item": found,
        "at": moment.isoformat() if moment else None,
        "source_name": shop.store.sources.names([found["source_id"]]).get(found["source_id"]),
        "revisions": store.revisions(item_id) if moment is None else [],
        "counters": store.counters(item_id),
        "appearances": store.appearances(item_id),
        "held": store.held(found["platform"], named) if named else {},
        "replies": replies.items,
        "onwards": {
            "next": f"/items/{item_id}?after={key_text(replies.next)}#replies" if replies.next else None,
            "first": f"/items/{item_id}#replies" if after else None,
        },
    }
    return HTMLResponse(pages.item_page(reader, known))


class Asked:
    """What an address asks for: filters and a place in the list, and the addresses of the same with a part changed."""

    def __init__(self, request: Request, reader: Reader) -> None:
        params = request.query_params
        self.reader, self.path = reader, request.url.path
        self.given = {name: value for name in _GIVEN if (value := params.get(name, "").strip()[:_LONGEST])}
        self.after = params.get("after") or None
        self.also: dict[str, str] = {}
        """What else stands in the address, filters aside."""

    def filter(self) -> Filter:
        given, state = self.given, self.given.get("state")
        return Filter(
            source_id=_number(given.get("source")),
            kind=given.get("kind"),
            platform=given.get("platform"),
            author=given.get("author"),
            tag=given.get("tag"),
            since=_moment(given["since"], self.reader) if "since" in given else None,
            until=_moment(given["until"], self.reader, is_end=True) if "until" in given else None,
            is_deleted={"deleted": True, "present": False}.get(state or ""),
            is_edited=True if state == "edited" else None,
        )

    def address(self, **changed: str | None) -> str:
        values = {**self.also, **self.given, **changed}
        query = urlencode({name: value for name, value in values.items() if value})
        return f"{self.path}?{query}" if query else self.path

    def onwards(self, request: Request, after: str | None) -> str | None:
        """The whole address of what follows, for programs; None: nothing does."""
        if after is None:
            return None
        return str(request.url.include_query_params(after=after))

    def about(self, request: Request, word: str) -> About:
        """What a feed of this list says of itself."""
        named = " · ".join(value for value in (self.also.get("q"), *self.given.values()) if value)
        title = f"catchment · {self.reader.speech(word)}"
        return About(
            title=f"{title}: {named}" if named else title,
            base=str(request.base_url).rstrip("/"),
            path=self.address(),
            feed_path=f"{request.url.path}?{request.url.query}",
            updated_at=self.reader.now.isoformat(),
        )

    def surroundings(self, door: Door) -> dict[str, Any]:
        """What a list shows of its own address."""
        shop = door.shop
        return {
            "path": self.path,
            "given": dict.fromkeys(_GIVEN) | self.given,
            "also": self.also,
            "is_filtered": bool(self.given),
            "chips": [self._chip(shop, name, value) for name, value in self.given.items()],
            "platforms": shop.names.platforms(),
            "kinds": shop.names.kinds(),
            "states": STATES,
            "formats": outgoing.addresses(door, self.path, {**self.also, **self.given}),
            "first": self.address() if self.after else None,
        }

    def _chip(self, shop: Shop, name: str, value: str) -> Mapping[str, Any]:
        shown = value
        if name == "source" and (number := _number(value)) is not None:
            shown = shop.store.sources.names([number]).get(number, value)
        return {
            "word": f"filter_{name}",
            "group": _GROUPS.get(name, ""),
            "value": shown,
            "without": self.address(**{name: None}),
        }


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) <= LARGEST):
        raise InvalidInput(f"{text[:50]!r} is not the number of a source", "the page of a source shows it", "source")
    return int(text)


def _moment(text: str, reader: Reader, *, is_end: bool = False) -> datetime:
    """A day or a moment, as the reader means it: in their own zone, unless they say another. A day that ends something
    belongs to it."""
    try:
        if len(text) == len("2026-03-01"):
            day = date.fromisoformat(text) + timedelta(days=int(is_end))
            return datetime.combine(day, time(), reader.tzinfo)
        at = datetime.fromisoformat(text.replace(" ", "+") if text[-6:-5] == " " else text)
        return at.replace(tzinfo=reader.tzinfo) if at.tzinfo is None else asked_moment(at.isoformat())
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text[:50]!r} is not a time", "give one like 2026-03-01 or 2026-03-01T12:00") from None
