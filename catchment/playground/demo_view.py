"""The live view of the demo: renders a snapshot as a screen. Pure, except for the class that draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from catchment.playground.demo_snapshot import (
    Event,
    Happening,
    Look,
    Scene,
    Sighted,
)
from catchment.store.item_fields import ItemView
from catchment.text.printable import plain

WATER = "cyan"
MARKS = {
    Happening.EDITED: ("✎", "yellow"),
    Happening.LATE: ("↷", "blue"),
    Happening.GAP: ("░", "magenta"),
    Happening.FAILED: ("✗", "red"),
    Happening.RECOVERED: ("✓", "green"),
    Happening.MOVED: ("→", "cyan"),
    Happening.RETIRED: ("∎", "red"),
}
_HEALTH = {
    "ok": ("●", "green"),
    "waiting": ("○", "dim"),
    "failing": ("✗", "red"),
    "probation": ("✗", "bold red"),
    "retired": ("∎", "dim"),
    "paused": ("‖", "dim"),
}
_HEAD, _FIGURES, _FOOT, _FRAME = 3, 4, 1, 2
"""Lines that each of them takes."""
_FREQUENT = (Happening.EDITED, Happening.LATE)
_WORDS = {"probation": "failing"}
_NARROW = 96
"""With fewer columns the lists stand one above the other rather than side by side."""


class LiveView:
    """Draws on the whole terminal while it is open, and restores it afterwards."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(Text(" opening …"), console=console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, look: Look, scene: Scene) -> None:
        self._live.update(screen(look, scene, *self._console.size), refresh=True)


def screen(look: Look, scene: Scene, width: int, height: int) -> RenderableType:
    """Everything on one screen of that size."""
    body_height = height - _HEAD - _FIGURES - _FOOT
    log_height = max(5, body_height * 2 // 5)
    page = Layout()
    page.split_column(
        Layout(_head(look, scene), size=_HEAD),
        Layout(_figures(look), size=_FIGURES),
        _lists(look, is_narrow=width < _NARROW, height=body_height - log_height),
        Layout(_panel("recent events", _log(look.events, log_height - _FRAME), subtitle=_legend())),
        Layout(_foot(scene), size=_FOOT),
    )
    return page


def _lists(look: Look, *, is_narrow: bool, height: int) -> Layout:
    rows = max(1, (height // 2 if is_narrow else height) - _FRAME)
    latest = Layout(_panel("latest items", _latest(look, rows)), ratio=3)
    sources = Layout(_panel(f"sources · {_healths(look)}", _sources(look, rows)), ratio=3 if is_narrow else 2)
    lists = Layout(size=height)
    if is_narrow:
        lists.split_column(latest, sources)
    else:
        lists.split_row(latest, sources)
    return lists


def _panel(title: str, content: RenderableType, subtitle: Text | None = None) -> Panel:
    return Panel(content, title=title, subtitle=subtitle, title_align="left", border_style=WATER)


def _head(look: Look, scene: Scene) -> RenderableType:
    # Without the words before it: it must fit on one line, so that it can be clicked.
    link = next((line.partition(": ")[2] for line in scene.announced if "/login?" in line), "opening …")
    lines = (
        Text.assemble(
            (" catchment ", f"bold reverse {WATER}"), " archives the conversations you follow: posts, edits, gaps"
        ),
        Text.assemble(
            (" demo", "bold"),
            f" on a simulated internet, {scene.rate:g} × real time; time there: ",
            (f"{look.at:%a %d %b %H:%M}", "bold"),
        ),
        Text.assemble(" ▸ ", (link, WATER)),
    )
    return Group(*(_one_line(line) for line in lines))


def _one_line(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _figures(look: Look) -> RenderableType:
    figures = (
        (len(look.sources), "sources", ""),
        (look.item_count, "items", ""),
        (look.count(Happening.EDITED), "edits", "yellow"),
        (look.count(Happening.GAP), "gaps", "magenta"),
        (look.failing_count, "failing now", "red"),
        (look.count(Happening.RECOVERED), "recovered", "green"),
        (len(look.alerts), "alerts", "red"),
    )
    grid = Table.grid(expand=True)
    for _ in figures:
        grid.add_column(justify="center", ratio=1)
    grid.add_row(*(Text(f"{count:,}", style=f"bold {style}" if count else "dim") for count, _, style in figures))
    grid.add_row(*(Text(name, style="dim") for _, name, _ in figures))
    return Panel(grid, border_style="dim")


def _latest(look: Look, rows: int) -> RenderableType:
    table = _rows(None, 18, 1)
    for item in look.newest[:rows]:
        table.add_row(
            Text(f"{item.ordered_at:%H:%M}", style="dim"),
            Text(plain(look.name(item.source_id), keeps=""), style=WATER),
            _title(item),
        )
    return table


def _title(item: ItemView) -> Text:
    words = Text(plain(item.title or item.text or "", keeps=""))
    return Text.assemble(("✎ ", "yellow"), words) if item.version > 1 else words


def _sources(look: Look, rows: int) -> RenderableType:
    # Sources with problems first; then those with the newest items.
    ordered = sorted(look.sources, key=lambda source: (source.is_well, -_seconds(source.progress.last_new_at)))
    table = _rows(1, 18, 1)
    for sighted in ordered[:rows]:
        mark, style = _HEALTH.get(sighted.health, ("?", "dim"))
        table.add_row(Text(mark, style=style), Text(plain(sighted.source.name, keeps="")), _state(sighted, look.at))
    return table


def _seconds(at: datetime | None) -> float:
    return at.timestamp() if at else 0.0


def _healths(look: Look) -> str:
    healths = Counter("ok" if source.is_well else _WORDS.get(source.health, source.health) for source in look.sources)
    return " · ".join(f"{count} {health}" for health, count in healths.most_common())


def _state(sighted: Sighted, now: datetime) -> Text:
    progress = sighted.progress
    if sighted.health in ("failing", "probation"):
        count = progress.failures_in_a_row
        return Text(f"failed {count} times in a row" if count > 1 else "failed just now", style="red")
    if not sighted.is_well:
        return Text(_WORDS.get(sighted.health, sighted.health), style="dim")
    if progress.last_new_at is None:
        return Text("visited" if progress.last_polled_at else "first in line", style="dim")
    return Text(f"new {_ago(progress.last_new_at, now)}", style="dim")


def _worth_telling(events: Sequence[Event], rows: int) -> list[Event]:
    """The latest events; frequent edits must not displace rare events."""
    rare = [event for event in events if event.what not in _FREQUENT][: rows * 2 // 3]
    kept = set(rare) | set([event for event in events if event.what in _FREQUENT][: rows - len(rare)])
    return [event for event in events if event in kept]


def _log(events: Sequence[Event], rows: int) -> RenderableType:
    table = _rows(None, 1, 18, 1)
    for event in _worth_telling(events, rows):
        mark, style = MARKS[event.what]
        table.add_row(
            Text(f"{event.at:%H:%M}", style="dim"),
            Text(mark, style=style),
            Text(plain(event.source, keeps=""), style=WATER),
            Text(plain(event.words, keeps=""), style=style),
        )
    return table


def _legend() -> Text:
    marks = (Text.assemble((mark, style), f" {what}") for what, (mark, style) in MARKS.items())
    return Text("  ").join(marks)


def _foot(scene: Scene) -> RenderableType:
    after = f"the data is kept in {scene.kept}" if scene.kept else "no data is kept"
    return _one_line(Text(" stopping …" if scene.is_stopping else f" Ctrl-C stops it; {after}", style="bold"))


def _rows(*widths: int | None) -> Table:
    """A table without borders, one line per row; the last column takes the rest of the width and is cut at the edge."""
    table = Table.grid(padding=(0, 1), expand=True)
    for width in widths[:-1]:
        table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    table.add_column(ratio=widths[-1], no_wrap=True, overflow="ellipsis")
    return table


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _ago(at: datetime, now: datetime) -> str:
    minutes = int((now - at).total_seconds() // 60)
    return "just now" if minutes < 1 else f"{minutes} min ago" if minutes < 90 else f"{minutes // 60} h ago"
