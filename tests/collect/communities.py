"""A community, and an app that follows it: a newest listing, ranked ones beside it, a feed for those without a key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

import msgspec

from catchment.fetch.settings import Attempt
from catchment.model import (
    Answer,
    Item,
    Kind,
    Listing,
    Order,
    Platform,
    Progress,
    Reading,
    Request,
    Source,
    Target,
    VisitResult,
    WalkPlan,
)
from tests.playing import DECIDING, Answering, played
from tests.town import TownApp

PAGE, REACH, WINDOW = 10, 100, 5
SITE = "https://square.example"
START = datetime(2025, 6, 1, tzinfo=UTC)
LISTINGS = (
    Listing("new", Order.NEWEST_FIRST, reach=REACH, page_size=PAGE),
    Listing("top", Order.RANKED, page_size=PAGE),
    Listing("hot", Order.RANKED, page_size=PAGE),
    Listing("rising", Order.NEWEST_FIRST, page_size=PAGE),
    Listing("feed", Order.NEWEST_FIRST, is_window=True),
)


class Square(Answering):
    """One community: posts by number, each a minute after the one before. Stands where the fetch client would."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.count = 0
        self.scores: dict[int, int] = {}
        self.texts: dict[int, str] = {}
        self.top: list[int] | None = None
        """In this order; None: by score."""
        self.asked: list[str] = []
        """What was asked for, as in `new 0`, `top 10`."""
        self.time_filters: list[str | None] = []
        """How far back each of that was to look."""
        self.keys: list[bool] = []
        """Whether there was a key to ask with, walk by walk."""
        self.fails: dict[str, Callable[[], BaseException]] = {}
        """What comes instead, by what was asked for."""
        self.torn: set[str] = set()
        self.old: bytes | None = None
        """An answer that a cache on the way gives for the first page of the newest."""
        self.moved_to: str | None = None
        """Where permanent redirects led on the way to its pages."""
        self.has_ranked = True
        self.replies: dict[int, int] = {}
        """How many replies posts have; they are shown three at a time."""
        self.replies_asked: list[str] = []
        """Whose replies were asked for, as in `7`, and `7 from 3`."""
        self.shown_as: dict[str, str] = {}
        """Other ids of replies than those that they have by themselves."""
        self._lock = Lock()

    def post(self, count: int) -> None:
        self.count += count

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        asked = _asked(request)
        with self._lock:
            (self.replies_asked if request.step == "replies" else self.asked).append(asked)
            self.time_filters.append(request.params.get("t"))
        attempts.append(Attempt(platform.NAME, self.now(), "200", 0.0))
        if asked in self.fails:
            raise self.fails[asked]()
        if request.step == "replies":
            return Answer(200, {}, self._replies(request), request.url, self.now())
        body = self.old if self.old and asked == "new 0" else self.page(request)
        return Answer(200, {"etag": f'"{hash(body)}"'}, body, request.url, self.now(), self.moved_to)

    def page(self, request: Request) -> bytes:
        start, size = int(request.params["from"]), WINDOW if request.listing == "feed" else PAGE
        numbers = self._ranked() if request.listing in ("top", "hot") else list(range(self.count))[::-1][:REACH]
        few, is_more = numbers[start : start + size], start + size < len(numbers) and request.listing != "feed"
        posts = [
            {
                "id": number,
                "text": self.texts.get(number, f"post {number}"),
                "score": self.scores.get(number, 0),
                "replies": self.replies.get(number, 0),
            }
            for number in few
        ]
        return msgspec.json.encode({"posts": posts, "is_more": is_more})

    def _replies(self, request: Request) -> bytes:
        number, start = int(request.state["post"]), int(request.params.get("from", "from 0").split()[1])
        few = range(self.replies.get(number, 0))[start : start + 3]
        return msgspec.json.encode(
            {"replies": [f"{number}-{comment_id}" for comment_id in few], "from": start + len(few)}
        )

    def _ranked(self) -> list[int]:
        return (
            sorted(range(self.count), key=lambda post_number: -self.scores.get(post_number, 0))
            if self.top is None
            else self.top
        )

    # ── the platform ──────────────────────────────────────────────────────────────────────────────────────────────

    def first(self, source: Source, progress: Progress, ask: WalkPlan) -> list[Request]:
        self.keys.append(ask.has_key)
        if ask.listing != "new" and not self.has_ranked:
            return []
        if not ask.has_key:
            return [Request(f"{SITE}/feed", params={"from": "0"}, listing="feed")] if ask.listing == "new" else []
        params = {"t": ask.time_filter} if ask.time_filter else {}
        state = {"replies": source.settings.get("replies", False)}
        return [Request(f"{SITE}/{ask.listing}", params={**params, "from": "0"}, listing=ask.listing, state=state)]

    def read(self, answer: Answer, request: Request) -> Reading:
        told = msgspec.json.decode(answer.body)
        if request.step == "replies":
            return self._read_replies(told, request)
        items = tuple(_item(post) for post in told["posts"])
        following = {**request.params, "from": str(int(request.params["from"]) + PAGE)}
        pages = (request.replace(params=following),) if told["is_more"] else ()
        replies = tuple(_replies_to(post["id"]) for post in told["posts"]) if request.state.get("replies") else ()
        is_torn = _asked(request) in self.torn
        follow = (*pages, *replies)
        return Reading(items[:3] if is_torn else items, follow=follow, is_end=not pages, is_torn=is_torn)

    def _read_replies(self, told: dict[str, Any], request: Request) -> Reading:
        items = tuple(Item(self.shown_as.get(key, key), kind="reply", text=key) for key in told["replies"])
        is_more = told["from"] < self.replies.get(int(request.state["post"]), 0)
        follow = request.replace(params={**request.params, "from": f"from {told['from']}"}, about_item=None)
        return Reading(items, follow=(follow,) if is_more else ())

    def platform(self) -> Any:
        kind = Kind("square", "a community", 60, "new", LISTINGS, base_limit=20, newest="new", fields=DECIDING)
        return played(
            NAME="square",
            KINDS=(kind,),
            first=self.first,
            read=self.read,
        )


def _asked(request: Request) -> str:
    return " ".join((request.listing, *(value for name, value in request.params.items() if name != "t")))


def _item(post: dict[str, Any]) -> Item:
    number = post["id"]
    at = START + timedelta(minutes=number)
    return Item(str(number), text=post["text"], score=post["score"], reply_count=post["replies"], created_at=at)


def _replies_to(number: int) -> Request:
    about = str(number)
    return Request(f"{SITE}/replies", params={"to": about}, step="replies", state={"post": number}, about_item=about)


class Community:
    """An app with the square as a source."""

    def __init__(self, here: TownApp, *, has_key: bool = True, **settings: Any) -> None:
        self.here = here
        self.square = Square(lambda: here.clock.now())
        here.play(self.square, self.square.platform())
        self.source, _ = here.app.store.sources.follow(
            Target("square", "square"),
            "square",
            here.clock.now(),
            settings={"sort": "top", "limit": 20, **settings},
            credential="ours" if has_key else None,
        )

    def collect(self, *sources: Source) -> VisitResult:
        self.square.asked.clear()
        self.square.replies_asked.clear()
        (result,) = self.here.collect(self.source)
        return result

    def stored(self) -> set[int]:
        return {int(item["external_id"]) for item in self.here.items() if item["kind"] != "reply"}

    def replies(self) -> set[str]:
        return {item["external_id"] for item in self.here.items() if item["kind"] == "reply"}

    @property
    def progress(self) -> Progress:
        progress: Progress = self.here.progress(self.source)
        return progress

    def mark(self) -> int | None:
        watermark = self.progress.watermark
        return int(watermark.ids[0]) if watermark else None
