"""Simulates generic JSON APIs: a list of posts, newest first by the API's own clock, in four styles.

The styles differ as APIs do: in paging, the position of the list, the names of fields, and date formats. Each place has
one of them; `settings` returns what a source for it needs.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.sites import Ask, Entry, Page
from catchment.playground.world import (
    Place,
    Post,
    Shown,
    Version,
    World,
)

NAME = "json_api"
PATH = re.compile(r"/json_api/(\d+)(?:/posts\.json)?")
MANNERS = ("cursor", "page", "offset", "link")
PAGE_SIZE, MOST_A_PAGE = 10, 25
WINDOWS_IN_REACH = 4
"""An API shows more than a feed, but not everything that ever existed."""


TOLD: dict[str, dict[str, Any]] = {
    "cursor": {"cursor_param": "after"},
    "page": {"first_page": 0, "size_param": "size", "page_size": PAGE_SIZE},
    "offset": {"offset_param": "skip"},
    "link": {"size_param": "per_page", "page_size": PAGE_SIZE},
}


class Listed(Record, frozen=True):
    """What one page shows, and where the next one starts."""

    shown: Shown
    page: int
    following: str | None
    """The cursor, page number, offset or URL of the next page; None if this is the last."""
    total: int


def manner(place: Place) -> str:
    return MANNERS[place.number % len(MANNERS)]


def reach(place: Place) -> int:
    """How many posts can be reached at all."""
    return WINDOWS_IN_REACH * place.window


def settings(place: Place) -> dict[str, Any]:
    """The settings that a source needs to read all of it. The rest is detected."""
    return {"listing": "newest_first", "paging": manner(place), "reach": reach(place), **TOLD[manner(place)]}


def wire_id(place: Place, post: Post) -> str:
    """Larger than a float can represent exactly."""
    return str(9_007_199_254_740_993_000 + post.number * 7 + place.number % 7)


class JsonApiSimulator:
    """Shows the posts of a world as an API would."""

    def __init__(self, world: World) -> None:
        self.world = world

    def find(self, path: str) -> Place | None:
        found = PATH.fullmatch(path)
        if found is None or int(found[1]) >= len(self.world.places):
            return None
        place = self.world.places[int(found[1])]
        return place if place.form == NAME else None

    def answer(self, place: Place, ask: Ask) -> Page:
        params = dict(parse_qsl(ask.query))
        try:
            listed = self._listed(place, ask, params)
        except ValueError:
            return _page(400, {"error": {"message": "bad parameter"}})
        payloads = [self._told(place, post, version, ask) for post, version in listed.shown]
        headers = {}
        if manner(place) == "link" and listed.following:
            headers["Link"] = f'<{ask.base}{ask.path}?page=1>; rel="first", <{listed.following}>; rel="next"'
        then = ask.at - ask.distortion.ago
        entries = tuple(
            Entry(post.id, version.number, wire_id(place, post), self.world.counters(post, then).score)
            for post, version in listed.shown
        )
        return _page(200, WRAPPED[manner(place)](payloads, listed), headers, entries)

    def _listed(self, place: Place, ask: Ask, params: dict[str, str]) -> Listed:
        shown = self._shown(place, ask.at, params.get("since"))
        size = min(MOST_A_PAGE, int(params.get("size") or params.get("per_page") or PAGE_SIZE))
        begin = 0 if ask.distortion.is_looping else TURNED[manner(place)](params, shown, size)
        if begin < 0 or size < 1:
            raise ValueError("before the first")
        if begin == 0:
            # Only a page that could be requested then can be stale; nobody could have requested these others.
            shown = self._shown(place, ask.at - ask.distortion.ago, params.get("since"))
        part = shown[begin : begin + size]
        has_more = begin + size < len(shown)
        following = _following(manner(place), ask, params, part, begin, size) if has_more else None
        return Listed(_distorted(part, ask), begin // size, following, len(shown))

    def _shown(self, place: Place, at: datetime, since: str | None) -> Shown:
        posts = [
            post for post in reversed(self.world.posts(place)) if post.shown_from <= at and not post.is_removed(at)
        ]
        after = datetime.fromtimestamp(float(since), UTC) if since else None
        return tuple(
            (post, post.version(at)) for post in posts[: reach(place)] if after is None or post.shown_from >= after
        )

    def _told(self, place: Place, post: Post, version: Version, ask: Ask) -> dict[str, Any]:
        counters = self.world.counters(post, ask.at - ask.distortion.ago)
        dated = DATED[place.number % len(DATED)]
        payload: dict[str, Any] = {
            "id": int(wire_id(place, post)),
            "title": version.title,
            "body_html": version.html,
            "permalink": f"https://{place.host}.example/posts/{post.number}",
            "author": {"id": post.author, "username": post.author},
            "created_at": dated(post.shown_from + ask.distortion.skew),
            "likes": str(counters.score) if place.number % 2 else counters.score,
            "commentCount": counters.reply_count,
            "tags": [{"name": tag} for tag in post.tags] if place.number % 2 else list(post.tags),
        }
        if version.number > 1:
            payload["updatedAt"] = dated(version.from_at + ask.distortion.skew)
        if post.picture is not None:
            payload["images"] = [{"url": post.picture, "type": "image/jpeg"}]
        return payload


SIMULATOR = JsonApiSimulator


def _distorted(shown: Shown, ask: Ask) -> Shown:
    entries = list(shown)
    if ask.distortion.is_reordered:
        chance_of(ask.path, ask.query, ask.at).shuffle(entries)
    return tuple(entry for entry in entries for _ in range(2 if ask.distortion.is_repeated else 1))


def _page(status: int, body: Any, headers: dict[str, str] | None = None, entries: tuple[Entry, ...] = ()) -> Page:
    all_headers = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
    return Page(status, all_headers, json.dumps(body, ensure_ascii=False).encode(), entries=entries)


# ── the styles ────────────────────────────────────────────────────────────────────────────────────────────────────


def _twitter(at: datetime) -> str:
    return at.strftime("%a %b %d %H:%M:%S +0000 %Y")


DATED: tuple[Callable[[datetime], Any], ...] = (
    lambda at: at.isoformat().replace("+00:00", "Z"),
    lambda at: int(at.timestamp()),
    lambda at: int(at.timestamp() * 1000),
    _twitter,
    lambda at: at.strftime("%Y-%m-%d %H:%M:%S"),
    lambda at: at.timestamp() + 0.25,
    lambda at: str(int(at.timestamp())),
)
"""Date formats, selected by the place's number."""


def _after_cursor(params: dict[str, str], shown: Shown, size: int) -> int:
    """After the post that the cursor names; if it was removed meanwhile, after its former position."""
    if not params.get("after"):
        return 0
    at, _, number = urlsafe_b64decode(params["after"]).decode().partition(" ")
    key = (datetime.fromisoformat(at), int(number))
    return sum(1 for post, _ in shown if (post.shown_from, post.number) >= key)


TURNED: dict[str, Callable[[dict[str, str], Shown, int], int]] = {
    "cursor": _after_cursor,
    "page": lambda params, shown, size: int(params.get("page", "0")) * size,
    "offset": lambda params, shown, size: int(params.get("skip", "0")),
    "link": lambda params, shown, size: (int(params.get("page", "1")) - 1) * size,
}
"""Where a page starts."""


def _following(manner: str, ask: Ask, params: dict[str, str], part: Shown, begin: int, size: int) -> str:
    if manner == "cursor":
        last = part[-1][0]
        return urlsafe_b64encode(f"{last.shown_from.isoformat()} {last.number}".encode()).decode()
    if manner == "link":
        return f"{ask.base}{ask.path}?{urlencode({**params, 'page': begin // size + 2})}"
    return str(begin // size + 1) if manner == "page" else str(begin + size)


WRAPPED: dict[str, Callable[[list[dict[str, Any]], Listed], Any]] = {
    "cursor": lambda told, listed: {"items": told, "meta": {"next_cursor": listed.following}},
    "page": lambda told, listed: {"data": {"posts": told}, "page": listed.page, "total": listed.total},
    "offset": lambda told, listed: {"count": listed.total, "results": told},
    "link": lambda told, listed: told,
}
"""Where the list is in the document."""
