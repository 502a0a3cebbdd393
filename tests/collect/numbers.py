"""A site of numbered posts whose listings show ids alone, and an app that follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

import msgspec

from catchment.fetch.settings import Attempt
from catchment.model import (
    Answer,
    Field,
    Item,
    Kind,
    Listing,
    Order,
    PlanPart,
    Platform,
    Progress,
    Reading,
    Recheck,
    Request,
    Source,
    Target,
    VisitResult,
    WalkPlan,
)
from tests.playing import Answering, played
from tests.town import TownApp

REACH = 50
SITE = "https://numbers.example"
NEW, TOP = f"{SITE}/new", f"{SITE}/top"
FIELDS = (Field("sort", "which", decides=PlanPart.LISTING), Field("limit", "how much", decides=PlanPart.LIMIT))
AGES = (timedelta(hours=1), timedelta(hours=36), timedelta(days=7))
START = datetime(2025, 6, 1, tzinfo=UTC)


class Site(Answering):
    """Posts by number; two listings of their ids. Stands where the fetch client would."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.count = 0
        self.dates: dict[int, datetime] = {}
        self.top: list[int] = []
        self.hidden: set[int] = set()
        """They answer null for the moment."""
        self.fails: dict[int, Callable[[], Exception]] = {}
        self.listed: list[str] = []
        """Listings asked for."""
        self.asked: list[int] = []
        """Posts asked for."""
        self.before_answering: Callable[[int], object] = lambda number: None
        self.at_once = self.most_at_once = 0
        self.old_list: bytes | None = None
        self.says: dict[int, dict[str, Any]] = {}
        """What posts say, if not the usual: text, score …"""
        self.gone: set[int] = set()
        """They are no more, asked by number."""
        self._lock = Lock()

    def post(self, count: int) -> None:
        self.count += count

    def at(self, number: int) -> datetime:
        return self.dates.get(number, START + timedelta(minutes=number))

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            attempts.append(Attempt(platform.NAME, self.now(), "200", 0.0))
            body = self._said(request)
            return Answer(200, {"etag": f'"{hash(body)}"'}, body, request.url, self.now())
        finally:
            with self._lock:
                self.at_once -= 1

    def _said(self, request: Request) -> bytes:
        if request.item_id is None:
            self.listed.append(request.url)
            return self.old_list or msgspec.json.encode(self.shown(request.url))
        number = int(request.item_id)
        self.before_answering(number)
        with self._lock:
            self.asked.append(number)
        if number in self.fails:
            raise self.fails[number]()
        if number in self.hidden or number in self.gone:
            return b"null"
        return msgspec.json.encode({"id": number, "text": f"post {number}", **self.says.get(number, {})})

    def shown(self, url: str) -> list[int]:
        return self.top if url == TOP else list(range(self.count))[::-1][:REACH]


def first(source: Source, progress: Progress, ask: WalkPlan) -> list[Request]:
    return [Request(NEW if ask.listing == "new" else TOP, listing=ask.listing)]


def platform_of(site: Site, limit: int, newest: str | None) -> Any:
    def read(answer: Answer, request: Request) -> Reading:
        told = msgspec.json.decode(answer.body)
        if isinstance(told, list):
            ids = tuple(str(number) for number in told)
            return Reading(
                listed=ids, follow=tuple(Request(f"{SITE}/{item_id}", step="item", item_id=item_id) for item_id in ids)
            )
        if told is None:
            assert request.item_id
            return Reading(gone=(request.item_id,)) if request.step == "look" else Reading(is_unfinished=True)
        number = told.pop("id")
        return Reading((Item(str(number), created_at=site.at(number), url=f"{number}.html", **told),))

    def recheck(looks: Sequence[Recheck]) -> list[Request]:
        return [Request(f"{SITE}/{recheck.external_id}", step="look", item_id=recheck.external_id) for recheck in looks]

    listings = (Listing("new", Order.NEWEST_FIRST, reach=REACH), Listing("top", Order.RANKED))
    return played(
        NAME="numbers",
        KINDS=(
            Kind(
                "numbers",
                "posts by number",
                60,
                "new",
                listings,
                base_limit=limit,
                recheck_ages=AGES,
                newest=newest,
                fields=FIELDS,
            ),
        ),
        first=first,
        read=read,
        recheck=recheck,
    )


class Numbers:
    def __init__(self, here: TownApp, limit: int = 10, newest: str | None = None, **settings: Any) -> None:
        settings = {"limit": limit, **settings} if newest else settings
        self.here = here
        self.site = Site(lambda: here.clock.now())
        here.play(self.site, platform_of(self.site, limit, newest))
        self.source = self.follow("new", **settings)

    def follow(self, listing: str, **settings: Any) -> Source:
        target = Target("numbers", listing, settings={"sort": listing, **settings})
        return self.here.app.store.sources.follow(target, "numbers", self.here.clock.now())[0]

    def collect(self, source: Source | None = None) -> VisitResult:
        self.site.asked.clear()
        (result,) = self.here.collect(source or self.source)
        return result

    def stored(self, source: Source | None = None) -> set[int]:
        return {int(item["external_id"]) for item in self.here.items(source)}

    def look(self, after: timedelta = timedelta()) -> list[VisitResult]:
        """Second looks, some time later."""
        self.site.asked.clear()
        self.here.clock.advance(after.total_seconds())
        return self.here.app.rechecks().run("test")

    def mark(self) -> tuple[str, ...] | None:
        watermark = self.here.progress(self.source).watermark
        return watermark.ids if watermark else None
