"""Communities that a test fills by hand: a platform whose one kind is tiered, and an app that follows it."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

import msgspec

from catchment.errors import PlatformError, ServerTrouble
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

SITE = "https://plaza.example"
LISTINGS = (Listing("new", Order.NEWEST_FIRST, reach=1000), Listing("top", Order.RANKED))


def platform_of(**kind: Any) -> Any:
    def first(source: Source, progress: Progress, ask: WalkPlan) -> list[Request]:
        params = {"sort": ask.listing, "t": ask.time_filter or "", "limit": str(ask.limit)}
        return [Request(source.target, params=params, listing=ask.listing)]

    def read(answer: Answer, request: Request) -> Reading:
        return Reading(tuple(msgspec.convert(document, Item) for document in msgspec.json.decode(answer.body)))

    declared = {"listings": LISTINGS, "newest": "new", "item_kind": "post", "is_tiered": True} | kind
    return played(
        NAME="plaza",
        KINDS=(Kind("plaza", "a community", 60, "plaza", fields=DECIDING, **declared),),
        understand=lambda text, kind=None: Target("plaza", f"{SITE}/{text}", name=text),
        first=first,
        read=read,
    )


class Plazas(Answering):
    """The communities by name, and what they show. Stands where the fetch client would."""

    def __init__(self, here: TownApp, **kind: Any) -> None:
        self.here, self.clock = here, here.clock
        here.play(self, platform_of(**kind))
        self.posts: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.fails: set[str] = set()
        self.asked: list[str] = []
        """What was asked for, as in `top week 80`."""
        self.names: list[str] = []
        """Of whom."""
        self.fails_beside = False
        """What is read beside the newest does not answer."""

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        name = request.url.removeprefix(f"{SITE}/")
        self.names.append(name)
        self.asked.append(" ".join(value for value in request.params.values() if value))
        attempts.append(Attempt(platform.NAME, self.clock.now(), "200", 0.0))
        if name in self.fails or (self.fails_beside and request.listing != "new"):
            raise self.trouble(name)
        return Answer(200, {}, msgspec.json.encode(self.posts[name][::-1][:100]), request.url, self.clock.now())

    @staticmethod
    def trouble(name: str) -> PlatformError:
        return ServerTrouble(f"{name} is down")

    def follow(self, name: str, **more: Any) -> Source:
        app = self.here.app
        target = app.platforms.needed("plaza").understand(name, "plaza")
        return app.store.sources.follow(target, "plaza", self.clock.now(), **more)[0]

    def post(self, name: str, count: int = 1, **more: Any) -> None:
        """So many posts, one a minute, the last of them now."""
        for number in range(count):
            at = self.clock.now() - timedelta(minutes=count - 1 - number)
            known = self.posts[name]
            known.append({"external_id": f"{name}{len(known)}", "kind": "post", "created_at": at, "text": "x"} | more)

    def visit(self, source: Source, count: int = 0, after: timedelta = timedelta(hours=1), **more: Any) -> VisitResult:
        """Visited some time later, with so many posts since."""
        self.asked.clear()
        self.clock.advance(after.total_seconds())
        self.post(source.name, count, **more)
        (result,) = self.here.collect(source, after=timedelta())
        return result

    def progress(self, source: Source) -> Progress:
        progress: Progress = self.here.progress(source)
        return progress
