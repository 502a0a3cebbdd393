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


class Growth(NamedTuple):
    width: int
    height: int
    begin: str
    end: str
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
    times = [at for _, points in series for at, _ in points]
    first, last = min(times), max(times)
    seconds = max((last - first).total_seconds(), 1.0)
    lines = []
    for name, points in series:
        most = max(max(value for _, value in points), 1)
        marks = [
            ChartMark(
                round((at - first).total_seconds() / seconds * width, 1),
                round(height - value / most * (height - 8), 1),
                6,
                6,
                f"{value:,.0f} {words[name]}",
            )
            for at, value in points
        ]
        path = _path([(mark.x, mark.y) for mark in marks])
        area = f"{path}L{marks[-1].x:g},{height}L{marks[0].x:g},{height}Z"
        lines.append(ChartLine(name, path, area, marks, points[-1][1]))
    return Growth(width, height, first.isoformat(), last.isoformat(), lines)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in points)


class Column(NamedTuple):
    """A bar with one part per series, and the area of its tooltip with its text."""

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
        bars.append(Column(parts, ChartMark(round(index * step, 2), 0, round(step, 2), height, words)))
    return Stacked(width, height, most, bars)


def lines(
    words: Sequence[str], series: Sequence[Sequence[float | None]], most: float, *, width: int = 480, height: int = 100
) -> Lines:
    step = width / max(len(words), 1)

    def place(number: int, value: float) -> tuple[float, float]:
        return round((number + 0.5) * step, 1), round(height - min(value / most, 1) * height, 1)

    runs = []
    for values in series:
        points = [None if value is None else place(at, value) for at, value in enumerate(values)]
        # Runs of neighbouring points that have a value.
        groups = groupby(points, lambda point: point is not None)
        runs.append([[point for point in group if point is not None] for is_there, group in groups if is_there])
    return Lines(
        width,
        height,
        most,
        ["".join(_path(run) for run in group if len(run) > 1) for group in runs],
        [[run[0] for run in group if len(run) == 1] for group in runs],
        [ChartMark(round(at * step, 2), 0, round(step, 2), height, text) for at, text in enumerate(words)],
    )


def ceiling(value: float) -> float:
    """The next round number that is not less: 1, 2, 5, 10, 20 …"""
    if value <= 1:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(float(step * power) for step in (1, 2, 5, 10) if step * power >= value)


STEP = 16
"""From one square to the next: 14 for the square, 2 for the gap."""


class Square(NamedTuple):
    """A square, its strength from 0 to 1 or its sort, and its text."""

    x: int
    y: int
    strength: float
    sort: str
    words: str


class Squares(NamedTuple):
    width: int
    height: int
    squares: list[Square]
    months: Sequence[tuple[int, date]] = ()
    """Where a month starts, and which."""


def heat(rows: Sequence[Sequence[tuple[str, float]]]) -> Squares:
    """Rows of squares: the higher the value, the stronger."""
    most = max((value for row in rows for _, value in row), default=0) or 1
    squares = [
        # Square root: otherwise one busy hour makes all others look empty.
        Square(x * STEP, y * STEP, round(math.sqrt(value / most), 2), "", words)
        for y, row in enumerate(rows)
        for x, (words, value) in enumerate(row)
    ]
    return Squares(max(map(len, rows), default=0) * STEP, len(rows) * STEP, squares)


def calendar(days: Sequence[tuple[date, str, str]]) -> Squares:
    """Days, each with its sort and its text: weeks from left to right, their days from top to bottom."""
    first, last = min(day for day, _, _ in days), max(day for day, _, _ in days)
    start = first - timedelta(days=first.weekday())
    squares = [
        Square((day - start).days // 7 * STEP, day.weekday() * STEP, 1.0, sort, words) for day, sort, words in days
    ]
    weeks = (last - start).days // 7 + 1
    mondays = [start + timedelta(days=7 * week) for week in range(weeks)]
    months = [(week, day) for week, day in enumerate(mondays) if week == 0 or day.day <= 7]
    # Of names that would overlap, the later one stays.
    apart = [month for month, after in zip_longest(months, months[1:]) if after is None or after[0] - month[0] > 3]
    return Squares(weeks * STEP, 7 * STEP, squares, [(week * STEP, day) for week, day in apart])
