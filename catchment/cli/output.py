"""Output: JSON for programs, tables and sentences for people. Only this module writes to stdout and stderr."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias, TypeVar

import msgspec
import typer
from rich.cells import cell_len, chop_cells, set_cell_size

from catchment.installation import as_typed
from catchment.model import as_json as as_json_data
from catchment.text.printable import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

Row = TypeVar("Row")

PIPE_CLOSED = 141
# Lines for `grep` should not be folded at 80 characters, the default width of a pipe.
_PIPE_WIDTH = 200
_RELATIVE = timedelta(days=2)
# The minimum width of a column that is narrowed: less is useless.
_LEAST_WIDTH = 8
_BETWEEN_COLUMNS = "  "
Time: TypeAlias = datetime | str
"""A time, or one in ISO 8601."""
# The lowest bar means zero: the smallest value is one step above it.
_BARS = "▁▂▃▄▅▆▇█"


# ── for programs ──────────────────────────────────────────────────────────────────────────────────────────────────


def document(value: object) -> None:
    """One JSON document; indented on a terminal."""
    encoded = msgspec.json.encode(as_json_data(value))
    stdout().write((msgspec.json.format(encoded, indent=2) if sys.stdout.isatty() else encoded) + b"\n")


def lines(values: Iterable[object]) -> None:
    """One JSON document per line."""
    encode, write = msgspec.json.Encoder().encode, stdout().write
    for value in values:
        write(encode(as_json_data(value)) + b"\n")


def raw(text: str) -> None:
    """Exactly these characters, whatever the terminal's encoding."""
    stdout().write(text.encode("utf-8", "replace"))


def stdout() -> IO[bytes]:
    """Stdout for bytes, with its text buffer flushed."""
    sys.stdout.flush()
    return sys.stdout.buffer


def flushed(code: int) -> int:
    """Flush stdout; returns the exit code, which reports a broken pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED
    if code == PIPE_CLOSED:
        # Python flushes once more at exit; that flush must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


# ── for either ────────────────────────────────────────────────────────────────────────────────────────────────────


def result(as_json: bool, value: object, *sentences: str) -> None:
    """The result of a command that changes something: a JSON document, or sentences."""
    if as_json:
        document(value)
        return
    for sentence in sentences:
        say(sentence)


def listing(
    as_json: bool,
    records: Sequence[Row],
    columns: Sequence[str],
    cells: Callable[[Row], Sequence[object]],
    *,
    empty: tuple[str, str],
    shrink: Sequence[str] = (),
) -> None:
    """A list: a JSON document, or a table, or, if there is nothing to list, what to do next."""
    if as_json:
        document(records)
    elif records:
        table(columns, map(cells, records), shrink=shrink)
    else:
        nothing(*empty)


# ── for people ────────────────────────────────────────────────────────────────────────────────────────────────────


def is_watched() -> bool:
    """Whether the output is a terminal: then progress bars may be drawn."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def say(text: str = "") -> None:
    """A sentence of the result."""
    typer.echo(plain(text))


def note(text: str) -> None:
    """A sentence about the result, on stderr."""
    typer.echo(plain(text, keeps="\n"), err=True)


def nothing(what: str, hint: str) -> None:
    """That a list is empty, and what to do next; on stderr, since it is not a result. Commands are in backticks."""
    note(as_typed(f"{what} — {hint}" if hint else what))


def heading(text: str) -> None:
    typer.echo(_bold(plain(text, keeps="")))


def prose(text: str) -> None:
    """A long text, wrapped at words on a terminal; in a pipe, its lines are unchanged."""
    for line in plain(text).splitlines():
        for part in _wrapped(line, _width()) if _has_width() else [line]:
            typer.echo(part)


def highlighted(text: str, marks: Iterable[Sequence[int]]) -> None:
    """A line of third-party text with its matches highlighted on a terminal."""
    text, end = plain(text, keeps=""), 0
    colour = None if "NO_COLOR" in os.environ else typer.colors.YELLOW
    pieces = ["    "]
    for start, stop in marks:
        pieces += [text[end:start], typer.style(text[start:stop], fg=colour, bold=True)]
        end = stop
    typer.echo("".join([*pieces, text[end:]]))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    shrink: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> None:
    """A table; a leading `#` in a column's name marks numbers. `optional` columns are left out if no row has a value.

    If it is wider than the terminal: with `shrink`, each row stays on one line and these columns are cut; without,
    long cells continue on the next line and nothing is cut off.
    """
    rows = list(rows)
    kept = [
        index
        for index, name in enumerate(columns)
        if name not in optional or any(row[index] not in (None, "") for row in rows)
    ]
    numeric = [columns[index].startswith("#") for index in kept]
    names = [columns[index].lstrip("#") for index in kept]
    cells = [[plain(cell(row[index]), keeps="") for index in kept] for row in rows]
    widths = [max(cell_len(line[index]) for line in [names, *cells]) for index in range(len(names))]
    flexible = [index for index, name in enumerate(names) if (name in shrink if shrink else not numeric[index])]
    while sum(widths) + len(_BETWEEN_COLUMNS) * (len(widths) - 1) > _width() and flexible:
        widest = max(flexible, key=lambda index: widths[index])
        if widths[widest] <= _LEAST_WIDTH:
            break
        widths[widest] -= 1
    for index, line in enumerate([names, *cells]):
        parts = [
            [_cut(text, width)] if shrink else _wrapped(text, width) for text, width in zip(line, widths, strict=True)
        ]
        for height in range(max(len(part) for part in parts)):
            shown = [part[height] if height < len(part) else "" for part in parts]
            text = _BETWEEN_COLUMNS.join(map(_aligned, shown, widths, numeric)).rstrip()
            typer.echo(text if index else _bold(text))


def section(title: str, pairs: Iterable[tuple[str, object]]) -> None:
    """A heading over the facts that have a value; nothing if none has."""
    stated = [(name, value) for name, value in pairs if value is not None and value not in ("", [], {}, ())]
    if stated:
        heading(title)
        facts(stated, indent="  ")
        say()


def facts(pairs: Iterable[tuple[str, object]], *, omit_empty: bool = False, indent: str = "") -> None:
    """Names and values, one per line."""
    shown = [
        (name, plain(cell(value), keeps=""))
        for name, value in pairs
        if not omit_empty or (value is not None and value not in ("", [], {}, ()))
    ]
    widest = max((cell_len(name) for name, _ in shown), default=0)
    room = max(_width() - len(indent) - widest - len(_BETWEEN_COLUMNS), _LEAST_WIDTH)
    for name, value in shown:
        for height, line in enumerate(_wrapped(value, room)):
            label = _aligned(name if height == 0 else "", widest, False)
            typer.echo(f"{indent}{_bold(label)}{_BETWEEN_COLUMNS}{line}".rstrip())


def _has_width() -> bool:
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def _width() -> int:
    return shutil.get_terminal_size().columns if _has_width() else _PIPE_WIDTH


def _bold(text: str) -> str:
    return typer.style(text, bold=True)


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _aligned(text: str, width: int, is_number: bool) -> str:
    room = " " * (width - cell_len(text))
    return room + text if is_number else text + room


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most this width, broken between words where possible."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines += chop_cells(word, width)
    return lines[1:] if len(lines) > 1 and not lines[0] else lines


def cell(value: object) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        value = [f"{name}={item}" for name, item in value.items()]
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "–"
    return str(value)


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def share(part: float | None) -> str:
    """A percentage; rounded towards the worse, so that 100 % means all."""
    return "–" if part is None else f"{math.floor(round(part * 1000, 6)) / 10:g} %"


def spark(figures: Sequence[float | None], most: float | None = None) -> str:
    """A sparkline from 0 to the largest figure (or `most`); a dot where nothing is known."""
    top = most or max((figure for figure in figures if figure is not None), default=0) or 1
    return "".join("·" if figure is None else _BARS[min(math.ceil(figure / top * 7), 7)] for figure in figures)


def when(moment: Time | None, now: datetime) -> str:
    """A relative time; beyond two days, the date."""
    if moment is None:
        return "–"
    at = _moment(moment)
    return _distance(at, now) or f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def span(moment: Time | None, now: datetime) -> str:
    """The distance in as few characters as possible: 5 min, 3 h, 12 d."""
    if moment is None:
        return "–"
    minutes = round(abs(_moment(moment) - now).total_seconds() / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{round(minutes / 60)} h" if minutes < 48 * 60 else f"{round(minutes / 1440)} d"


def at(moment: Time | None, now: datetime) -> str:
    """The time, and how far away it is."""
    if moment is None:
        return "–"
    at = _moment(moment)
    distance = _distance(at, now)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" + (f" ({distance})" if distance else "")


def _moment(time: Time) -> datetime:
    return time if isinstance(time, datetime) else datetime.fromisoformat(time)


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


# ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Bar:
    """The progress of long work. Does nothing if no bar is shown."""

    def __init__(self, progress: Progress | None = None, task: TaskID | None = None) -> None:
        self._progress, self._task = progress, task

    def move(self, count: int, words: str = "") -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=count, words=plain(words))


@contextmanager
def bar(what: str, total: int | None, *, as_json: bool = False) -> Iterator[Bar]:
    """A progress bar on stderr while the block runs, if the output is a terminal. Other lines appear above it."""
    if as_json or not is_watched():
        yield Bar()
        return
    # Only terminals need it.
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


def console(*, is_error: bool = False) -> Console:
    """For what is redrawn in place: bars and the demo's live view."""
    from rich.console import Console

    return Console(stderr=is_error, highlight=False, markup=False, emoji=False)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete, readable by its owner only; its folder is created,
    as for a backup."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # An unused name: neither a file of the user's nor one that another process is writing is lost.
    part = path.with_name(f"{path.name}.{os.urandom(4).hex()}.part")
    part.touch(mode=0o600, exist_ok=False)
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
