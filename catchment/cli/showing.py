"""Showing results: JSON for programs, tables and sentences for people. Only this module writes to stdout and stderr."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

PIPE_CLOSED = 141
# Lines for `grep` should not be folded at the 80 characters that a pipe is taken for.
_PIPE_WIDTH = 200
_RELATIVE = timedelta(days=2)
# The lowest is for nothing at all: the least that there is stands a step above it.
_BARS = "▁▂▃▄▅▆▇█"


# ── for programs ──────────────────────────────────────────────────────────────────────────────────────────────────


def document(value: object) -> None:
    """One JSON document; indented where a person looks at it."""
    import msgspec

    encoded = msgspec.json.encode(value)
    stdout().write((msgspec.json.format(encoded, indent=2) if sys.stdout.isatty() else encoded) + b"\n")


def lines(values: Iterable[object]) -> None:
    """One JSON document a line."""
    import msgspec

    encode, write = msgspec.json.Encoder().encode, stdout().write
    for value in values:
        write(encode(value) + b"\n")


def raw(text: str) -> None:
    """These very characters, whatever the terminal's encoding."""
    stdout().write(text.encode("utf-8", "replace"))


def stdout() -> IO[bytes]:
    """Stdout for bytes, with nothing left waiting in front of it."""
    sys.stdout.flush()
    return sys.stdout.buffer


def flushed(code: int) -> int:
    """Empty what is still to be written; the exit code says if nobody was there to read it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED
    if code == PIPE_CLOSED:
        # Python flushes once more when it ends; that one must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


# ── for people ────────────────────────────────────────────────────────────────────────────────────────────────────


def is_watched() -> bool:
    """Whether a person sits in front of it: then bars may move."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def console(*, is_error: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if is_error else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def say(text: str = "") -> None:
    """A sentence of the result."""
    typer.echo(plain(text))


def note(text: str) -> None:
    """A sentence about the result, on stderr."""
    typer.echo(plain(text, keeps="\n"), err=True)


def plain(text: object, keeps: str = "\n") -> str:
    """Text from strangers, harmless for a terminal: no escape sequences, no signs that turn the writing around."""
    return "".join(char if char.isprintable() or char in keeps else " " for char in str(text))


def marked(text: str, marks: Iterable[Sequence[int]], indent: str = "    ") -> None:
    """A line of a stranger's text with its hits standing out, on a terminal."""
    from rich.text import Text

    line = Text(plain(text, keeps=""), overflow="fold")
    for start, end in marks:
        line.stylize("bold yellow", start, end)
    console().print(Text(indent) + line, soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """A table; columns of numbers are named with a leading `#`. Long cells are folded, nothing is cut away."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for name in columns:
        is_number = name.startswith("#")
        shown.add_column(name.lstrip("#"), justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for row in rows:
        shown.add_row(*(Text(plain(cell(value), keeps="")) for value in row))
    console().print(shown)


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, Text(plain(cell(value), keeps="")))
    console().print(grid)


def cell(value: object) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        value = [f"{name}={one}" for name, one in value.items()]
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value) or "–"
    return str(value)


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def share(part: float | None) -> str:
    """A part of a whole, as people say it; rounded towards the worse, so that 100 % is all of it."""
    return "–" if part is None else f"{math.floor(round(part * 1000, 6)) / 10:g} %"


def spark(figures: Sequence[float | None], most: float | None = None) -> str:
    """A line of bars as high as the figures, from 0 to the largest (or `most`); a dot where nothing is known."""
    top = most or max((one for one in figures if one is not None), default=0) or 1
    return "".join("·" if one is None else _BARS[min(math.ceil(one / top * 7), 7)] for one in figures)


def when(moment: str | None, now: datetime) -> str:
    """How long ago, or how soon; further away than two days, the date itself."""
    if moment is None:
        return "–"
    at = datetime.fromisoformat(moment)
    return _distance(at, now) or f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def at(moment: str | None, now: datetime) -> str:
    """The time itself, and how far away it is."""
    if moment is None:
        return "–"
    at = datetime.fromisoformat(moment)
    distance = _distance(at, now)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" + (f" ({distance})" if distance else "")


def _distance(at: datetime, now: datetime) -> str | None:
    """In words, while it is short enough to say more than the date."""
    if abs(at - now) >= _RELATIVE:
        return None
    seconds = int(abs(at - now).total_seconds())
    if seconds == 0:
        return "now"
    minutes = round(seconds / 60)
    span = f"{seconds} s" if seconds < 90 else f"{minutes} min" if minutes < 90 else f"{round(minutes / 60)} h"
    return f"in {span}" if at > now else f"{span} ago"


# ── bars ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bar:
    """How far a long piece of work is. Without a watcher it does nothing."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress, self._task = progress, task

    def move(self, count: int, words: str = "") -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=count, words=plain(words))


@contextmanager
def bar(what: str, total: int | None, *, is_shown: bool) -> Iterator[Bar]:
    """A bar on stderr while the block runs. Other lines on stderr pass above it."""
    if not is_shown:
        yield Bar(None, None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        *((BarColumn(),) if total is not None else ()),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(is_error=True), transient=True) as progress:
        yield Bar(progress, progress.add_task(what, total=total, words=""))


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is whole; its folder is made, as for a backup."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
