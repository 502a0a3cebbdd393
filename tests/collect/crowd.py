"""Many communities of one platform, sources of another, and an app that collects all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from threading import Lock
from typing import Any

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
from tests.playing import Answering, played
from tests.town import TownApp


class Crowd(Answering):
    """Two platforms: `crowd`, whose sources are communities, and `others`. Stands where the fetch client would."""

    def __init__(self, here: TownApp) -> None:
        self.here = here
        self.asked: list[str] = []
        self.at_once: Counter[str] = Counter()
        self.most_at_once: Counter[str] = Counter()
        """By platform."""
        self.before_answering: Callable[[Request], object] = lambda request: None
        """May raise what comes instead of an answer."""
        self.before_reading: Callable[[str], object] = lambda name: None
        self._lock = Lock()
        here.play(self, self._platform("crowd", newest="new"), self._platform("others", newest=None))

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        with self._lock:
            self.asked.append(request.params["name"])
            self.at_once[platform.NAME] += 1
            self.most_at_once |= self.at_once
        try:
            self.before_answering(request)
            return Answer(200, {}, request.params["name"].encode(), request.url, self.here.clock.now())
        finally:
            with self._lock:
                self.at_once[platform.NAME] -= 1

    def follow(self, kind: str, count: int, **more: Any) -> list[Source]:
        store, now = self.here.app.store, self.here.clock.now()
        return [store.sources.follow(Target(kind, f"{kind} {number}"), kind, now, **more)[0] for number in range(count)]

    def collect(self, *sources: Source, after: float = 60) -> list[VisitResult]:
        self.asked.clear()
        return self.here.collect(*sources, after=timedelta(seconds=after))

    def _platform(self, name: str, newest: str | None) -> Any:
        def first(source: Source, progress: Progress, ask: WalkPlan) -> list[Request]:
            return [Request(f"https://{name}.example/", params={"name": source.target}, listing=ask.listing)]

        def read(answer: Answer, request: Request) -> Reading:
            self.before_reading(answer.body.decode())
            return Reading((Item(answer.body.decode(), text="said"),))

        listings = (Listing("new", Order.NEWEST_FIRST),)
        return played(
            NAME=name,
            KINDS=(Kind(name, "a source", 60, "one", listings, newest=newest),),
            first=first,
            read=read,
        )
