"""`demo`: a simulated internet and a collector for it, in one process, with a live view. Stores nothing permanently."""

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
from typing import Annotated, Any, Protocol

import typer

from catchment import logs
from catchment.app import App, open_app
from catchment.cli import output
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson
from catchment.clock import SystemClock, clock_from
from catchment.credentials.cipher import new_key
from catchment.credentials.secret import Secret
from catchment.errors import Conflict, InvalidInput
from catchment.playground.demo_snapshot import Happening, Look, Scene, Watch
from catchment.playground.demo_view import LiveView
from catchment.playground.demo_world import ROLES, Stage, start_before
from catchment.playground.server import Playground
from catchment.playground.sites.reddit.keys import client
from catchment.settings import Settings
from catchment.sources.add import source_request
from catchment.store.credentials import Terms
from catchment.web.server import listening, serve

HOST, PORT = "127.0.0.1", 8700
_STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.3
_LINE_SECONDS = 3.0


def demo(
    rate: Annotated[
        float, typer.Option(metavar="N", min=1, max=3600, help="How many times faster than real time.")
    ] = 60,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help=f"The port of the pages, instead of {PORT}."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="Stop after this many seconds, instead of at Ctrl-C.")
    ] = None,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the data in this new folder.")] = None,
    as_json: AsJson = False,
) -> int:
    """Collects thirty simulated feeds, four Reddit communities, Hacker News and a forum, which post, edit, fail, move
    and disappear sixty times faster than real ones. Needs no account and no network, reads no settings, and deletes its
    data at the end, unless --keep is given. A terminal shows a live view; otherwise it prints a line every few seconds.
    --json prints the figures at the end.
    """
    began = time.monotonic()
    # Closing the terminal must leave nothing behind either.
    with StopSignals(signal.SIGHUP) as stopping, _home(keep) as home, _demo_app(home, rate) as (app, playground):
        if stopping.is_asked:
            # Before the start: there is nothing to finish or report.
            return 0
        stopping.watch(app.stop, app.cut, _STOP_SECONDS, lambda _: None)
        show = _Show(app, playground, began, seconds)
        with _serving(app, _free(port), rate, show.announced.append) as server, _view(as_json) as view:
            show.go_on(server, view, rate, keep)
        figures = show.figures() | {"rate": rate, "is_clean": server.result() == 0}
    if as_json:
        output.document(figures)
    else:
        output.say(_farewell(figures, keep))
    return server.result()


# ── setup ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with TemporaryDirectory(prefix="catchment-demo-") as folder:
            yield Path(folder)
        return
    if keep.exists() and any(keep.iterdir()):
        raise InvalidInput(f"{keep} is not empty", "use a new folder", field="keep")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.resolve()


def _settings(home: Path, clock: str, sites: str) -> Settings:
    """Built by hand, not from the environment: the machine's settings must not affect the demo."""
    return Settings(
        home,
        clock=clock,
        # The platforms with a fixed host are redirected to the playground.
        base_urls=dict.fromkeys(("reddit", "hackernews"), sites),
        master_key=new_key(),
        is_private_allowed=True,
        tick_seconds=20.0,
        failures_before_probation=4,
        stop_seconds=_STOP_SECONDS,
        raw_answers_days=1,
    )


@contextmanager
def _demo_app(home: Path, rate: float) -> Iterator[tuple[App, Playground]]:
    """The playground, and an app that collects all of it."""
    world = Stage(start_before(SystemClock().now()))
    time_there = f"{world.start.isoformat()},{rate:g}"
    with ExitStack() as stack:
        # The screen is for the view.
        log = stack.enter_context((home / "demo.log").open("w", encoding="utf-8"))
        logs.configure("json", "error", log)
        stack.callback(logs.configure)
        playground = stack.enter_context(Playground(world, clock_from(time_there, home), world.faults()))
        settings = _settings(home, time_there, playground.url)
        app = stack.enter_context(open_app(settings, "demo", may_migrate=True))
        _follow_all(app, world, playground)
        yield app, playground


def _follow_all(app: App, stage: Stage, playground: Playground) -> None:
    now = app.clock.now()
    # An invented key, too: only the playground knows it.
    app.secrets.add("reddit", "a made-up key", Secret(basic=":".join(client())), now, terms=Terms(is_shared=True))
    app.store.sources.follow_many(
        [
            source_request(
                app.store,
                app.secrets,
                app.platforms,
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
    """The requested port; else the usual one, or any free port if that is taken."""
    if port is not None:
        return port
    try:
        with listening(HOST, PORT):
            return PORT
    except Conflict:
        return 0


@contextmanager
def _serving(app: App, port: int, rate: float, announce: Callable[[str], None]) -> Iterator[Future[int]]:
    """Serve and collect in a separate thread, which ends with the block."""
    with ThreadPoolExecutor(1, thread_name_prefix="serve") as aside:
        try:
            yield aside.submit(partial(serve, app, HOST, port, collects=True, announce=announce, demo_rate=rate))
        finally:
            app.stop.set()


# ── display ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Display(Protocol):
    def show(self, look: Look, scene: Scene) -> None: ...


@contextmanager
def _view(as_json: bool) -> Iterator[Display]:
    if as_json or not output.is_watched():
        yield _Lines(output.note if as_json else output.say)
        return
    with LiveView(output.console()) as view:
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
        output.counted(look.item_count, "item"),
        output.counted(look.count("edited"), "edit"),
        output.counted(look.count("gap"), "gap"),
        f"{look.failing_count} failing",
        f"{look.count('recovered')} recovered",
        output.counted(len(look.alerts), "alert"),
    )
    latest = next((f" · {event.source} {event.words}" for event in look.events), "")
    return f"{look.at:%a %H:%M} · {', '.join(figures)}{latest}"


class _Show:
    """Shows the app's state until the demo is over."""

    def __init__(self, app: App, playground: Playground, began: float, seconds: float | None) -> None:
        self._app, self._playground, self._began = app, playground, began
        # The demo ends with its world.
        left = app.clock.wall_seconds((playground.world.end - app.clock.now()).total_seconds())
        self._ends = time.monotonic() + (left if seconds is None else min(seconds, left))
        self._watch = Watch(app)
        self._look = self._watch.look()
        self._first_item_seconds: float | None = None
        self.announced: list[str] = []

    def go_on(self, serving: Future[int], view: Display, rate: float, keep: Path | None) -> None:
        """Refresh the view until the server ends or the time is over."""
        scene = Scene(rate, kept=str(keep) if keep else None)
        while not serving.done():
            wait([serving], timeout=_LOOK_SECONDS)
            if time.monotonic() >= self._ends:
                self._app.stop.set()
            self._look = self._watch.look()
            view.show(self._look, scene.replace(announced=tuple(self.announced), is_stopping=self._app.stop.is_set()))
            if self._first_item_seconds is None and self._look.item_count:
                self._first_item_seconds = time.monotonic() - self._began

    def figures(self) -> dict[str, Any]:
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
    summary = (
        f"{output.counted(figures['items'], 'item')} and {output.counted(figures['edits'], 'edit')} stored, "
        f"{output.counted(figures['gaps'], 'gap')} found"
    )
    after = (
        "All data has been deleted."
        if keep is None
        else f"To inspect the data: CATCHMENT_HOME={quote(str(keep))} catchment items"
    )
    return f"{summary} in {figures['simulated_minutes']:,.0f} simulated minutes. {after}"
