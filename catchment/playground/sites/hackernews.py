"""Simulates Hacker News: the site's own API (lists of ids, single items) and Algolia's search over it.

Every key written here occurs in real answers, with the same type; a test compares. The site dates what arrives: a
story's time is that of its appearance, and its id is higher than all before it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from html import escape
from math import pow
from typing import Any
from urllib.parse import parse_qs, quote

from catchment.playground.rng import chance_of
from catchment.playground.sites import Ask, Entry, Page
from catchment.playground.world import (
    Place,
    Post,
    Version,
    World,
)

NAME = "hackernews"
LISTS = {"new": 500, "top": 500, "best": 500, "ask": 200, "show": 200, "job": 200}
"""The maximum number of ids in each list."""
LIST = re.compile(r"/v0/([a-z]+)stories\.json")
ITEM = re.compile(r"/v0/item/(\d{1,15})\.json")
SITE_PATHS = re.compile(r"/v0/[\w/-]+\.json")
SEARCHES = ("/api/v1/search", "/api/v1/search_by_date")

FIRST_ID, STEP = 48_000_000, 7
"""Between two stories there are comments, which take ids as well."""
SHARES = {"link": 0.6, "ask": 0.18, "show": 0.18, "poll": 0.02, "job": 0.02}
NOT_YET = timedelta(seconds=45)
NOT_YET_SHARE = 0.3
"""Share of stories that are null for a while although they are listed already."""
INDEXED_AFTER = timedelta(minutes=2)
FAREWELLS = {"dead": 0.5, "deleted": 0.4, "null": 0.1}
MOST_KIDS = 30
MOST_RANKED = 1000
"""How many of the newest compete for a rank in a list."""
HITS_OF_A_PAGE, MOST_HITS = 20, 1000
FILTER = re.compile(r"(created_at_i|points)(<=|>=|<|>|=)(-?\d+)")
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<=": lambda number, other: number <= other,
    ">=": lambda number, other: number >= other,
    "<": lambda number, other: number < other,
    ">": lambda number, other: number > other,
    "=": lambda number, other: number == other,
}
SITE_HEADERS = {
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "no-cache",
    "Access-Control-Allow-Origin": "*",
}
SEARCH_HEADERS = {"Content-Type": "application/json; charset=UTF-8", "Access-Control-Allow-Origin": "*"}


class HackerNewsSimulator:
    """Shows the first place of this form: the site has its paths to itself."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.place = next((place for place in world.places if place.form == NAME), None)

    def find(self, path: str) -> Place | None:
        return self.place if path in SEARCHES or SITE_PATHS.fullmatch(path) else None

    def answer(self, place: Place, ask: Ask) -> Page:
        moment = Moment(self.world, place, ask)
        if ask.path in SEARCHES:
            return moment.search()
        if found := LIST.fullmatch(ask.path):
            return moment.listing(found[1])
        if found := ITEM.fullmatch(ask.path):
            return moment.item(int(found[1]))
        return _site(None)


SIMULATOR = HackerNewsSimulator


def wire_id(world: World, place: Place, post: Post) -> int:
    """Ids ascend in the order of appearance."""
    posts = world.posts(place)
    return FIRST_ID + STEP * (bisect_right(posts, _arrival(post), key=_arrival) - 1)


def sort_of(world: World, post: Post) -> str:
    """link, ask, show, poll or job; it never changes."""
    return _drawn(SHARES, world, "sort", post)


def farewell(world: World, post: Post) -> str:
    """How it is shown while it is removed: dead, deleted, or not at all."""
    return _drawn(FAREWELLS, world, "farewell", post)


def listed_before_told(world: World, post: Post) -> timedelta:
    """For how long it is null, although its id is listed."""
    return NOT_YET if chance_of(world.seed, "not yet", post.id).random() < NOT_YET_SHARE else timedelta()


def _drawn(shares: dict[str, float], world: World, what: str, post: Post) -> str:
    return chance_of(world.seed, what, post.id).choices(list(shares), list(shares.values()))[0]


def _arrival(post: Post) -> tuple[datetime, int]:
    return post.shown_from, post.number


# ── the site at one moment ────────────────────────────────────────────────────────────────────────────────────────


class Moment:
    """The site at the time of one request, with the changes of a fault."""

    def __init__(self, world: World, place: Place, ask: Ask) -> None:
        self.world, self.place, self.ask = world, place, ask
        self.at = ask.at - ask.distortion.ago

    def listing(self, name: str) -> Page:
        if name not in LISTS:
            return _site(None)
        # Ids only: they show no post.
        return _site([self._id(post) for post in self._distorted(self._listed(name)[: LISTS[name]])])

    def item(self, number: int) -> Page:
        (index, rest), posts = divmod(number - FIRST_ID, STEP), self.world.posts(self.place)
        post = posts[index] if rest == 0 and 0 <= index < len(posts) else None
        if post is None or post.shown_from + listed_before_told(self.world, post) > self.at:
            return _site(None)
        if post.is_removed(self.at):
            payload = self._farewell(post)
            gone = Entry(post.id, post.version(self.at).number, str(number), is_deleted=True)
            return _site(payload, (gone,) if payload else ())
        version = post.version(self.at)
        return _site(self._item(post, version), (self._entry(post, version),))

    def search(self) -> Page:
        asked = {name: values[0] for name, values in parse_qs(self.ask.query).items()}
        found = [post for post in self._indexed() if self._matches(post, asked)]
        key = self._date if self.ask.path.endswith("_by_date") else self._score
        found.sort(key=lambda post: (key(post), self._id(post)), reverse=True)
        size = min(MOST_HITS, _number(asked, "hitsPerPage", HITS_OF_A_PAGE)) or HITS_OF_A_PAGE
        page = 0 if self.ask.distortion.is_looping else _number(asked, "page", 0)
        shown = self._distorted(found[:MOST_HITS][page * size : (page + 1) * size])
        versions = [(post, post.version(self.at)) for post in shown]
        hits = [self._hit(post, version, asked.get("query", "")) for post, version in versions]
        entries = tuple(self._entry(post, version) for post, version in versions)
        return Page(200, SEARCH_HEADERS, _written(self._results(hits, len(found), page, size, asked)), entries=entries)

    # ── which posts ───────────────────────────────────────────────────────────────────────────────────────────────

    def _living(self, at: datetime) -> list[Post]:
        posts = self.world.posts(self.place)
        came = posts[: bisect_right(posts, at, key=lambda post: post.shown_from)]
        return [post for post in reversed(came) if not post.is_removed(self.at)]

    def _listed(self, name: str) -> list[Post]:
        living = self._living(self.at)[:MOST_RANKED]
        if name == "new":
            return [post for post in living if sort_of(self.world, post) != "job"]
        if name in ("ask", "show", "job"):
            living = [post for post in living if sort_of(self.world, post) == name]
        return sorted(living, key=self._score if name == "best" else self._heat, reverse=True)

    def _heat(self, post: Post) -> float:
        """The site's own ranking, as it was published once: the score, which counts less with every hour."""
        hours = (self.at - post.shown_from).total_seconds() / 3600
        return (self._score(post) - 1) / pow(hours + 2, 1.8)

    def _indexed(self) -> list[Post]:
        """What the search index contains: it gets stories some time after the site."""
        return self._living(self.at - INDEXED_AFTER)

    def _matches(self, post: Post, asked: dict[str, str]) -> bool:
        version = post.version(self.at)
        text = f"{version.title} {version.text} {post.author}".casefold()
        is_meant = all(word in text for word in asked.get("query", "").casefold().replace('"', " ").split())
        return is_meant and _is_tagged(self._tags(post), asked.get("tags", "")) and self._passes(post, asked)

    def _passes(self, post: Post, asked: dict[str, str]) -> bool:
        if self.ask.distortion.is_looping:
            return True
        values = {"created_at_i": self._date(post), "points": self._score(post)}
        filters = FILTER.findall(asked.get("numericFilters", ""))
        return all(COMPARED[sign](values[name], int(bound)) for name, sign, bound in filters)

    def _distorted(self, posts: Sequence[Post]) -> list[Post]:
        distorted = [post for post in posts for _ in range(2 if self.ask.distortion.is_repeated else 1)]
        if self.ask.distortion.is_reordered:
            chance_of(self.ask.path, self.ask.at).shuffle(distorted)
        return distorted

    # ── formats ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _id(self, post: Post) -> int:
        return wire_id(self.world, self.place, post)

    def _date(self, post: Post) -> int:
        return int((post.shown_from + self.ask.distortion.skew).timestamp())

    def _score(self, post: Post) -> int:
        return max(1, self.world.counters(post, self.at).score)

    def _entry(self, post: Post, version: Version) -> Entry:
        return Entry(post.id, version.number, str(self._id(post)), self._score(post))

    def _item(self, post: Post, version: Version) -> dict[str, Any]:
        sort, id = sort_of(self.world, post), self._id(post)
        replies = self.world.counters(post, self.at).reply_count
        payload = {
            "by": post.author,
            "id": id,
            "score": self._score(post),
            "text": _markup(version.text),
            "time": self._date(post),
            "title": escape(version.title, quote=False),
            "type": sort if sort in ("poll", "job") else "story",
        }
        if sort != "job":
            payload["descendants"] = replies
            if replies:
                # Only replies to the story itself; the others are below them.
                payload["kids"] = [id + 1 + STEP * index for index in range(min(MOST_KIDS, (replies + 1) // 2))]
        if sort == "poll":
            payload["parts"] = [id + 2, id + 3]
        if sort in ("link", "show", "job"):
            payload["url"] = self._link(post, sort)
        return dict(sorted(payload.items()))

    def _link(self, post: Post, sort: str) -> str:
        return "" if sort == "job" else f"https://{self.place.host}.example/{post.number}?from=hn&n={post.number}"

    def _farewell(self, post: Post) -> dict[str, Any] | None:
        as_what, id, time = farewell(self.world, post), self._id(post), self._date(post)
        if as_what == "null":
            return None
        if as_what == "deleted":
            return {"deleted": True, "id": id, "time": time, "type": "story"}
        return {"by": post.author, "dead": True, "id": id, "score": 1, "time": time, "type": "story"}

    def _tags(self, post: Post) -> list[str]:
        sort = sort_of(self.world, post)
        kind = sort if sort in ("poll", "job") else "story"
        special = [f"{sort}_hn"] if sort in ("ask", "show") else []
        return [kind, f"author_{post.author}", f"story_{self._id(post)}", *special]

    def _hit(self, post: Post, version: Version, query: str) -> dict[str, Any]:
        sort, id = sort_of(self.world, post), self._id(post)
        shown = {"author": post.author, "title": version.title}
        payload = {
            "_tags": self._tags(post),
            "author": post.author,
            "created_at": f"{post.shown_from + self.ask.distortion.skew:%Y-%m-%dT%H:%M:%SZ}",
            "created_at_i": self._date(post),
            "num_comments": self.world.counters(post, self.at).reply_count,
            "objectID": str(id),
            "points": self._score(post),
            "story_id": id,
            "story_text": _markup(version.text),
            "title": version.title,
            "updated_at": f"{self.at:%Y-%m-%dT%H:%M:%SZ}",
        }
        if sort in ("link", "show"):
            payload["url"] = shown["url"] = self._link(post, sort)
        payload["_highlightResult"] = {name: _highlighted(text, query) for name, text in shown.items()}
        return dict(sorted(payload.items()))

    def _results(
        self, hits: list[dict[str, Any]], found: int, page: int, size: int, asked: dict[str, str]
    ) -> dict[str, Any]:
        return {
            "exhaustive": {"nbHits": True, "typo": True},
            "exhaustiveNbHits": True,
            "exhaustiveTypo": True,
            "hits": hits,
            "hitsPerPage": size,
            "nbHits": found,
            "nbPages": -(-min(found, MOST_HITS) // size),
            "page": page,
            "params": "&".join(f"{name}={quote(value)}" for name, value in asked.items()),
            "processingTimeMS": 3,
            "processingTimingsMS": {
                "_request": {"roundTrip": 29},
                "fetch": {"scanning": 2, "total": 3},
                "total": 3,
            },
            "query": asked.get("query", ""),
            "serverTimeMS": 4,
        }


def _is_tagged(tags: list[str], wanted: str) -> bool:
    """A comma means "and"; between parentheses, "or"."""
    groups = re.findall(r"\(([^()]*)\)|([^(),]+)", wanted)
    return all(any(tag in tags for tag in (either or single).split(",")) for either, single in groups)


def _number(asked: dict[str, str], name: str, fallback: int) -> int:
    value = asked.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else fallback


def _markup(text: str) -> str:
    """The site's markup for typed text: paragraphs start with <p>, and even slashes are encoded."""
    return "<p>".join(escape(paragraph).replace("/", "&#x2F;") for paragraph in text.split("\n\n"))


def _highlighted(text: str, query: str) -> dict[str, Any]:
    matched = [word for word in query.casefold().split() if word in text.casefold()]
    return {"matchLevel": "full" if matched else "none", "matchedWords": matched, "value": text}


def _written(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _site(document: Any, entries: tuple[Entry, ...] = ()) -> Page:
    return Page(200, SITE_HEADERS, _written(document), entries=entries)
