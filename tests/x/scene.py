"""X of the playground over real HTTP, and a collector that reads it through either service."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from catchment.app import App, open_app
from catchment.credentials.secret import Secret
from catchment.model import Source, VisitResult, as_json
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites.x import fate
from catchment.playground.world import Habits, Place, World
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.databases import sqlite_ready

START = datetime(2026, 3, 2, tzinfo=UTC)
SERVICES = ("x", "twitterapi_io")
HABITS = Habits(edited=0.2, reverted=0.0, removed=0.05, restored=0.0, late=0.0, future=0.0, hostile=0.0)
WORLD = World(5, START, 0, 6.0, HABITS, busy=6.0, others={"x": 150})


def somebody(what: str, least: int = 30) -> Place:
    """A user of that fate, with some posts on the first day."""
    return next(
        place
        for place in WORLD.places
        if fate(WORLD, place)[0] == what
        and sum(post.shown_from < START + timedelta(days=1) for post in WORLD.posts(place)) >= least
    )


class Scene:
    def __init__(
        self, folder: Path, key: str = "a-key-for-", script: Sequence[Cue] = (), world: World = WORLD, **more: Any
    ) -> None:
        """`more`: settings."""
        self.clock = HandClock(START + timedelta(days=1))
        self.log = folder / "asked.jsonl"
        self.playground = Playground(world, self.clock, FaultPlan(5, 0.0, script), log=self.log)
        self.playground.start()
        settings = Settings(
            **{"rate_limits": dict.fromkeys(SERVICES, 10_000), **more},
            home=folder,
            database_url=sqlite_ready(f"sqlite:///{folder / 'catchment.db'}"),
            base_urls=dict.fromkeys(SERVICES, self.playground.url),
            master_key="a key for tests",
        )
        self.app: App = open_app(settings, "test", clock=self.clock)
        for service in SERVICES:
            secret = Secret.parse(f"{key}{service}")
            self.app.secrets.add(service, f"key-{service}", secret, self.clock.now(), terms=Terms(is_shared=True))

    def follow(
        self, target: str, service: str, kind: str = "twitter_feed", credential: str | None = None, **settings: Any
    ) -> Source:
        app, now = self.app, self.clock.now()
        given = {"service": service, **settings}
        known = (app.store, app.secrets, app.platforms)
        return follow(*known, kind, target, now, settings=given, credential=credential)[0]

    def visit(self, source: Source) -> VisitResult:
        (result,) = self.app.scheduler().these([source.id], "test", "test")
        return result

    def items(self, source: Source) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = as_json(self.app.store.items.newest(1000, source_id=source.id))
        return items

    def progress(self, source: Source) -> Any:
        return self.app.store.sources.with_progress(source.id)[1]

    def asked(self) -> list[str]:
        return [line.path.partition("?")[0] for line in read_log(self.log)]

    def close(self) -> None:
        self.app.close()
        self.playground.close()
