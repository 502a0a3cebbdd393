"""`demo`: a made-up internet and a collector that follows it, in one process, to be watched. Keeps nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from catchment.cli import showing
from catchment.cli.given import AsJson
from catchment.cli.stopping import Stopping
from catchment.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from catchment.cli.staging import Stage
    from catchment.cli.watching import Look, Scene
    from catchment.playground.server import Playground
    from catchment.settings import Settings
    from catchment.shop import Shop

HOST, PORT = "127.0.0.1", 8700
_STOP_SECONDS = 5.0
_LOOK_SECONDS = 0.3
_LINE_SECONDS = 3.0


def demo(
    rate: Annotated[float, typer.Option(metavar="N", min=1, max=3600, help="How many times as fast time runs.")] = 60,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help=f"The port for the start page, instead of {PORT}."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="End after so many seconds, instead of at Ctrl-C.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A new folder for the data, which is not removed at the end.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show it at work, on a made-up internet.

    Follows thirty feeds, four communities of Reddit, Hacker News and a forum, which post, edit, fail, move and
    disappear, sixty times as fast as real ones would. Needs no account and no network, reads no settings, and removes
    everything at the end, unless --keep says where to. In a terminal it draws a live view; elsewhere it prints a line
    every few seconds. --json prints the figures at the end.
    """
    began = time.monotonic()
    # A terminal that is closed must leave nothing behind either.
    with Stopping(signal.SIGHUP) as stopping, _home(keep) as home, _on_stage(home, rate) as (shop, playground):
        stopping.watch(shop.stop, shop.cut, _STOP_SECONDS, lambda _: None)
        show = _Show(shop, playground, began, seconds)
        with _serving(shop, _free(port), rate, show.announced.append) as serving, _view(as_json) as view:
            show.go_on(serving, view, rate, keep)
        figures = show.figures() | {"rate": rate, "is_clean": serving.result() == 0}
    if as_json:
        showing.document(figures)
    else:
        showing.say(_farewell(figures, keep))
    return serving.result()


# ── putting it together ───────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with TemporaryDirectory(prefix="catchment-demo-") as folder:
            yield Path(folder)
        return
    if keep.exists() and any(keep.iterdir()):
        raise InvalidInput(f"{keep} is not empty", "give a new folder: every demo begins anew", field="keep")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.resolve()


def _settings(home: Path, clock: str, sites: str) -> Settings:
    """By hand, not from the environment: whatever is set up on this machine is none of the demo's business."""
    from catchment.settings import Settings
    from catchment.vault import new_key

    return Settings(
        home,
        clock=clock,
        # Those who live at one address live here.
        base_urls=dict.fromkeys(("reddit", "hackernews"), sites),
        master_key=new_key(),
        is_private_allowed=True,
        tick_seconds=20.0,
        failures_before_probation=4,
        stop_seconds=_STOP_SECONDS,
        raw_answers_days=1,
    )


@contextmanager
def _on_stage(home: Path, rate: float) -> Iterator[tuple[Shop, Playground]]:
    """The playground, and a shop that follows all of it."""
    from catchment import logs
    from catchment.cli.staging import Stage, start_before
    from catchment.clock import SystemClock, clock_from
    from catchment.playground.server import Playground
    from catchment.shop import open_shop

    stage = Stage(start_before(SystemClock().now()))
    time_there = f"{stage.start.isoformat()},{rate:g}"
    with ExitStack() as leaving:
        # The screen is for the view.
        log = leaving.enter_context((home / "demo.log").open("w", encoding="utf-8"))
        logs.configure("json", "error", log)
        leaving.callback(logs.configure)
        playground = leaving.enter_context(Playground(stage, clock_from(time_there, home), stage.moods()))
        settings = _settings(home, time_there, playground.url)
        shop = leaving.enter_context(open_shop(settings, "demo", may_migrate=True))
        _follow_all(shop, stage, playground)
        yield shop, playground


def _follow_all(shop: Shop, stage: Stage, playground: Playground) -> None:
    from catchment.cli.staging import ROLES
    from catchment.collect.following import wanted
    from catchment.playground.voices.reddit.keys import client
    from catchment.store.credentials import Terms
    from catchment.vault import Secret

    now = shop.clock.now()
    # Made up as well: a key that nobody but the playground knows.
    shop.safe.add("reddit", "a made-up key", Secret(basic=":".join(client())), now, terms=Terms(is_shared=True))
    shop.store.sources.follow_many(
        [
            wanted(
                shop.store,
                shop.safe,
                shop.platforms,
                *stage.target(place, playground.address(place)),
                now,
                name=role.name,
                settings=role.settings,
                interval_minutes=role.interval_minutes,
            )
            for place, role in zip(stage.places, ROLES, strict=True)
        ],
        now,
    )


def _free(port: int | None) -> int:
    """The port that was asked for; else the usual one, or any if somebody listens there already."""
    from catchment.api.serving import listening

    if port is not None:
        return port
    try:
        with listening(HOST, PORT):
            return PORT
    except Conflict:
        return 0


@contextmanager
def _serving(shop: Shop, port: int, rate: float, announce: Callable[[str], None]) -> Iterator[Future[int]]:
    """Serve and collect in a thread of its own; once the block is left, it is over."""
    from catchment.api.serving import serve

    with ThreadPoolExecutor(1, thread_name_prefix="serve") as aside:
        try:
            yield aside.submit(partial(serve, shop, HOST, port, collects=True, announce=announce, demo_rate=rate))
        finally:
            shop.stop.set()


# ── showing it ────────────────────────────────────────────────────────────────────────────────────────────────────


class View(Protocol):
    def show(self, look: Look, scene: Scene) -> None: ...


@contextmanager
def _view(as_json: bool) -> Iterator[View]:
    if as_json or not showing.is_watched():
        yield _Lines(showing.note if as_json else showing.say)
        return
    from catchment.cli.viewing import LiveView

    with LiveView(showing.console()) as view:
        yield view


class _Lines:
    """For a pipe: a line every few seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told = 0
        self._next_at = 0.0

    def show(self, look: Look, scene: Scene) -> None:
        for line in scene.announced[self._told :]:
            self._say(line)
        self._told = len(scene.announced)
        if look.item_count and time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + _LINE_SECONDS
            self._say(_line(look))


def _line(look: Look) -> str:
    figures = (
        showing.counted(look.item_count, "item"),
        showing.counted(look.count("edited"), "edit"),
        showing.counted(look.count("gap"), "gap"),
        f"{look.failing_count} failing",
        f"{look.count('recovered')} recovered",
        showing.counted(len(look.alerts), "alert"),
    )
    latest = next((f" · {one.source} {one.words}" for one in look.events), "")
    return f"{look.at:%a %H:%M} · {', '.join(figures)}{latest}"


class _Show:
    """Looks at the shop until it is over."""

    def __init__(self, shop: Shop, playground: Playground, began: float, seconds: float | None) -> None:
        from catchment.cli.watching import Watch

        self._shop, self._playground, self._began = shop, playground, began
        # When its world ends, so does the demo.
        left = shop.clock.wall_seconds((playground.world.end - shop.clock.now()).total_seconds())
        self._ends = time.monotonic() + (left if seconds is None else min(seconds, left))
        self._watch = Watch(shop)
        self._look = self._watch.look()
        self._first_item_seconds: float | None = None
        self.announced: list[str] = []

    def go_on(self, serving: Future[int], view: View, rate: float, keep: Path | None) -> None:
        """Look again and again until the serving ends, or the time is over."""
        from catchment.cli.watching import Scene

        scene = Scene(rate, kept=str(keep) if keep else None)
        while not serving.done():
            wait([serving], timeout=_LOOK_SECONDS)
            if time.monotonic() >= self._ends:
                self._shop.stop.set()
            self._look = self._watch.look()
            view.show(self._look, scene.plus(announced=tuple(self.announced), is_stopping=self._shop.stop.is_set()))
            if self._first_item_seconds is None and self._look.item_count:
                self._first_item_seconds = time.monotonic() - self._began

    def figures(self) -> dict[str, Any]:
        from catchment.cli.watching import Happening

        look, counts, first = self._look, self._playground.counts, self._first_item_seconds
        return {
            "seconds": round(time.monotonic() - self._began, 1),
            "simulated_minutes": round((look.at - self._playground.world.start).total_seconds() / 60, 1),
            "first_item_seconds": None if first is None else round(first, 2),
            "sources": len(look.sources),
            "items": look.item_count,
            "visits": look.visit_count,
            "requests": counts.requests,
            "faults": counts.faults,
            "edits": look.count(Happening.EDITED),
            "late_arrivals": look.count(Happening.LATE),
            "gaps": look.count(Happening.GAP),
            "failures": look.count(Happening.FAILED),
            "recoveries": look.count(Happening.RECOVERED),
            "moved": look.count(Happening.MOVED),
            "retired": look.count(Happening.RETIRED),
            "failing": look.failing_count,
            "alerts": len(look.alerts),
        }


def _farewell(figures: dict[str, Any], keep: Path | None) -> str:
    told = (
        f"{showing.counted(figures['items'], 'item')} and {showing.counted(figures['edits'], 'edit')} kept, "
        f"{showing.counted(figures['gaps'], 'gap')} found"
    )
    after = (
        "Nothing is left behind."
        if keep is None
        else f"Look at it with: CATCHMENT_HOME={quote(str(keep))} catchment items"
    )
    return f"{told} in {figures['simulated_minutes']:,.0f} minutes of a made-up world. {after}"
