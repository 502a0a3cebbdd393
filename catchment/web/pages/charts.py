"""Charts as plain SVG, drawn on the server: they need no script, follow the page's colours, and print. Pure geometry.

Each function returns what a template draws; every mark has a text, for the tooltip and for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import groupby, zip_longest
from typing import NamedTuple


class ChartMark(NamedTuple):
    """A point or a bar, and its text."""

    x: float
    y: float
    width: float
    height: float
    words: str


class ChartLine(NamedTuple):
    """A series over time."""

    name: str
    path: str
    area: str
    marks: list[ChartMark]
    last: float


class Chart(NamedTuple):
    width: int
    height: int
    top: str
    """The value at the upper edge."""
    begin: str
    end: str


class Growth(NamedTuple):
    chart: Chart
    lines: list[ChartLine]


def growth(
    series: Sequence[tuple[str, Sequence[tuple[datetime, float]]]],
    words: dict[str, str],
    *,
    width: int = 560,
    height: int = 120,
) -> Growth | None:
    """Lines with a common time axis, each on its own scale from 0; None if there are too few points for a line."""
    series = [(name, points) for name, points in series if len(points) > 1]
    if not series:
        return None
    times = [at.timestamp() for _, points in series for at, _ in points]
    first, span = min(times), max(max(times) - min(times), 1.0)
    lines = []
    for name, points in series:
        most = max(max(value for _, value in points), 1)
        places = [
            (round((at.timestamp() - first) / span * width, 1), round(height - value / most * (height - 8), 1))
            for at, value in points
        ]
        path = "M" + "L".join(f"{x:g},{y:g}" for x, y in places)
        area = f"{path}L{places[-1][0]:g},{height}L{places[0][0]:g},{height}Z"
        marks = [
            ChartMark(x, y, 6, 6, f"{value:,.0f} {words[name]}")
            for (x, y), (_, value) in zip(places, points, strict=True)
        ]
        lines.append(ChartLine(name, path, area, marks, points[-1][1]))
    begin = min(at for _, points in series for at, _ in points)
    end = max(at for _, points in series for at, _ in points)
    return Growth(Chart(width, height, "", begin.isoformat(), end.isoformat()), lines)


# ── hour by hour ──────────────────────────────────────────────────────────────────────────────────────────────────


class Column(NamedTuple):
    """A bar with one part per series; its tooltip; and the area of the tooltip."""

    words: str
    parts: list[tuple[int, ChartMark]]
    whole: ChartMark


class Stacked(NamedTuple):
    width: int
    height: int
    most: float
    columns: list[Column]


class Lines(NamedTuple):
    """Series over the same steps, on one scale; a step without a value breaks the line."""

    width: int
    height: int
    most: float
    paths: list[str]
    dots: list[list[tuple[float, float]]]
    """Values without neighbours, which no line could show."""
    columns: list[ChartMark]
    """The areas of the tooltips, with their texts."""


def stacked(
    columns: Sequence[tuple[str, Sequence[float]]], *, width: int = 960, height: int = 160, gap: float = 2.0
) -> Stacked:
    """Stacked bars: for each column its text and its parts, from the bottom, in the order of the series."""
    most = ceiling(max((sum(parts) for _, parts in columns), default=0))
    step = width / max(len(columns), 1)
    bars = []
    for index, (words, values) in enumerate(columns):
        x, y, parts = round(index * step + gap / 2, 2), float(height), []
        for series, value in enumerate(values):
            if value:
                tall = value / most * height
                y -= tall
                parts.append((series, ChartMark(x, round(y, 2), round(step - gap, 2), round(tall, 2), "")))
        bars.append(Column(words, parts, ChartMark(round(index * step, 2), 0, round(step, 2), height, words)))
    return Stacked(width, height, most, bars)


def lines(
    words: Sequence[str], series: Sequence[Sequence[float | None]], most: float, *, width: int = 480, height: int = 100
) -> Lines:
    step = width / max(len(words), 1)

    def place(number: int, value: float) -> tuple[float, float]:
        return round((number + 0.5) * step, 1), round(height - min(value / most, 1) * height, 1)

    runs = [_runs([None if value is None else place(at, value) for at, value in enumerate(point)]) for point in series]
    return Lines(
        width,
        height,
        most,
        ["".join("M" + "L".join(f"{x:g},{y:g}" for x, y in run) for run in group if len(run) > 1) for group in runs],
        [[run[0] for run in group if len(run) == 1] for group in runs],
        [ChartMark(round(at * step, 2), 0, round(step, 2), height, text) for at, text in enumerate(words)],
    )


def _runs(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Runs of neighbouring points that have a value."""
    groups = groupby(points, lambda point: point is not None)
    return [[point for point in group if point is not None] for is_there, group in groups if is_there]


def ceiling(value: float) -> float:
    """The next round number that is not less: 1, 2, 5, 10, 20 …"""
    if value <= 1:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(float(step * power) for step in (1, 2, 5, 10) if step * power >= value)


# ── by hour and weekday, by day ───────────────────────────────────────────────────────────────────────────────────

CELL, SPACE = 14, 2
"""Size of a square, and the gap between two."""


class Square(NamedTuple):
    """A square, its strength from 0 to 1 or its sort, and its text."""

    x: int
    y: int
    strength: float
    sort: str
    words: str


class Heat(NamedTuple):
    width: int
    height: int
    squares: list[Square]
    most: float


class ChartCell(NamedTuple):
    """The content of one column and row."""

    column: int
    row: int
    sort: str
    words: str


class Calendar(NamedTuple):
    width: int
    height: int
    squares: list[Square]
    months: list[tuple[int, date]]
    """Where a month starts, and which."""


def heat(rows: Sequence[Sequence[tuple[str, float]]]) -> Heat:
    """Rows of squares: the higher the value, the stronger."""
    most = max((value for row in rows for _, value in row), default=0) or 1
    step = CELL + SPACE
    squares = [
        # Square root: otherwise one busy hour makes all others look empty.
        Square(x * step, y * step, round(math.sqrt(value / most), 2), "", words)
        for y, row in enumerate(rows)
        for x, (words, value) in enumerate(row)
    ]
    return Heat(max(map(len, rows), default=0) * step, len(rows) * step, squares, most)


def calendar(cells: Sequence[ChartCell], start: date, end: date) -> Calendar:
    """Weeks from left to right, their days from top to bottom."""
    step = CELL + SPACE
    squares = [Square(cell.column * step, cell.row * step, 1.0, cell.sort, cell.words) for cell in cells]
    weeks = (end - start).days // 7 + 1
    firsts = [start + timedelta(days=7 * week) for week in range(weeks)]
    months = [(week, day) for week, day in enumerate(firsts) if week == 0 or day.day <= 7]
    # Of names that would overlap, the later one stays.
    kept = [month for month, after in zip_longest(months, months[1:]) if after is None or after[0] - month[0] > 3]
    return Calendar(weeks * step, 7 * step, squares, [(week * step, day) for week, day in kept])
