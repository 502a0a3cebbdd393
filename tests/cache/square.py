"""A site of communities with two listings, the newest and the top, ten posts a page; and an app that follows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from catchment.errors import PlatformError
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
    Recheck,
    Request,
    Source,
    Target,
    WalkPlan,
)
from tests.clocks import HandClock
from tests.playing import Answering, played
from tests.town import TownApp

PAGE = 10
SITE = "https://square.example"


@dataclass
class Community:
    posts: dict[str, dict[str, Any]] = field(default_factory=dict)
    fails: PlatformError | None = None
    is_circular: bool = False
    """Every page is the first one."""


class Square(Answering):
    """Stands where the fetch client would."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.communities: dict[str, Community] = defaultdict(Community)
        self.asked: list[str] = []

    def post(self, name: str, *keys: str, **more: Any) -> None:
        for key in keys:
            known = self.communities[name].posts.get(key, {"at": self.clock.now().isoformat(), "score": 0})
            self.communities[name].posts[key] = {"text": f"about {key}", **known, **more}

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        attempts.append(Attempt(platform.NAME, self.clock.now(), "200", 0.0))
        self.asked.append(request.url)
        parts = urlsplit(request.url)
        name, listing = parts.path.strip("/").split("/")
        community = self.communities[name]
        if community.fails is not None:
            raise community.fails
        asked = parse_qs(parts.query)
        body = msgspec.json.encode(community.posts if listing == "look" else self._page(community, listing, asked))
        return Answer(200, {}, body, request.url, self.clock.now())

    def _page(self, community: Community, listing: str, asked: dict[str, list[str]]) -> dict[str, Any]:
        by = "at" if listing == "new" else "score"
        order = sorted(community.posts, key=lambda key: (community.posts[key][by], key), reverse=True)
        begin = 0 if community.is_circular else int(asked.get("page", ["0"])[0]) * PAGE
        return {key: community.posts[key] for key in order[begin : begin + PAGE]}


def first(source: Source, progress: Progress, ask: WalkPlan) -> list[Request]:
    window = f"&t={ask.time_filter}" if ask.time_filter else ""
    return [Request(f"{SITE}/{source.target}/{ask.listing}?page=0{window}", listing=ask.listing, state={"page": 0})]


def read(answer: Answer, request: Request) -> Reading:
    posts = msgspec.json.decode(answer.body)
    items = tuple(
        Item(key, created_at=datetime.fromisoformat(told["at"]), title=key, text=told["text"], score=told["score"],
             author=told.get("author"))
        for key, told in posts.items()
    )  # fmt: skip
    if request.step == "look":
        return Reading(items)
    page = request.state["page"] + 1
    url = request.url.replace(f"page={page - 1}", f"page={page}")
    follow = (request.replace(url=url, state={"page": page}),) if len(items) == PAGE else ()
    return Reading(items, follow=follow, is_end=not follow)


def recheck(looks: Sequence[Recheck]) -> list[Request]:
    return [Request(f"{SITE}/{target}/look", step="look") for target in {recheck.source.target for recheck in looks}]


KIND = Kind(
    "square",
    "a community",
    60,
    "one",
    (Listing("new", Order.NEWEST_FIRST), Listing("top", Order.RANKED)),
    base_limit=100,
    recheck_ages=(timedelta(hours=1),),
    newest="new",
    is_tiered=True,
)
PLATFORM: Any = played(
    NAME="square",
    KINDS=(KIND, Kind("corner", "not kept hot", 60, "two", (Listing("new", Order.NEWEST_FIRST),))),
    first=first,
    read=read,
    recheck=recheck,
)


class Village:
    """An app with communities of the square as sources."""

    def __init__(self, here: TownApp) -> None:
        self.here, self.clock, self.store = here, here.clock, here.app.store
        self.square = Square(here.clock)
        here.play(self.square, PLATFORM)
        self.app = here.app

    def follow(self, name: str, kind: str = "square") -> Source:
        return self.store.sources.follow(Target(kind, name), "square", self.clock.now())[0]

    def counts(self, *tables: str) -> dict[str, int]:
        return {
            table: self.store.database.read(lambda tx, table=table: tx.one(f"SELECT count(*) FROM {table}"))[0]  # type: ignore[misc,index]
            for table in tables
        }
