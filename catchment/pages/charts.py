"""Charts as plain SVG: drawn here, so that they need no script, follow the page's colours, and print. Pure geometry.

Each gives what a template draws; every mark has words of its own, for the pointer and for those who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import zip_longest
from typing import NamedTuple


class Mark(NamedTuple):
    """A point or a bar, and what it says."""

    x: float
    y: float
    width: float
    height: float
    words: str


class Line(NamedTuple):
    """A series over time."""

    name: str
    path: str
    area: str
    marks: list[Mark]
    last: float


class Chart(NamedTuple):
    width: int
    height: int
    top: str
    """What the upper edge stands for."""
    begin: str
    end: str


class Growth(NamedTuple):
    chart: Chart
    lines: list[Line]


class Bars(NamedTuple):
    chart: Chart
    marks: list[Mark]


def growth(
    series: Sequence[tuple[str, Sequence[tuple[datetime, float]]]],
    words: dict[str, str],
    *,
    width: int = 560,
    height: int = 120,
) -> Growth | None:
    """Lines that share their time, each on a scale of its own from 0; None: there is nothing to draw a line through."""
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
            Mark(x, y, 6, 6, f"{value:,.0f} {words[name]}") for (x, y), (_, value) in zip(places, points, strict=True)
        ]
        lines.append(Line(name, path, area, marks, points[-1][1]))
    begin = min(at for _, points in series for at, _ in points)
    end = max(at for _, points in series for at, _ in points)
    return Growth(Chart(width, height, "", begin.isoformat(), end.isoformat()), lines)


def bars(values: Sequence[tuple[str, float]], *, width: int = 560, height: int = 96, gap: float = 1.5) -> Bars:
    """One bar for each value, from left to right; the words of each are given with it."""
    most = ceiling(max((value for _, value in values), default=0))
    step = width / max(len(values), 1)
    marks = [
        Mark(
            round(place * step + gap / 2, 2),
            round(height - _tall(value, most, height), 2),
            round(max(step - gap, 1), 2),
            round(_tall(value, most, height), 2),
            words,
        )
        for place, (words, value) in enumerate(values)
    ]
    return Bars(Chart(width, height, f"{most:,.0f}", "", ""), marks)


def stacked(
    columns: Sequence[Sequence[tuple[str, float]]], *, width: int = 560, height: int = 120, gap: float = 1.5
) -> list[list[Mark]]:
    """Bars made of parts: for each column its parts from the bottom, in the order given."""
    most = ceiling(max((sum(value for _, value in column) for column in columns), default=0))
    step = width / max(len(columns), 1)
    found = []
    for place, column in enumerate(columns):
        y, marks = float(height), []
        for words, value in column:
            tall = value / most * height
            y -= tall
            marks.append(
                Mark(round(place * step + gap / 2, 2), round(y, 2), round(max(step - gap, 1), 2), round(tall, 2), words)
            )
        found.append(marks)
    return found


def ceiling(value: float) -> float:
    """A round number that is not less: 1, 2, 5, 10, 20 …"""
    if value <= 1:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(float(step * power) for step in (1, 2, 5, 10) if step * power >= value)


def _tall(value: float, most: float, height: int) -> float:
    # What is not nothing can be seen.
    return max(value / most * height, 2.0) if value else 0.0


# ── by hour and weekday, by day ───────────────────────────────────────────────────────────────────────────────────

CELL, SPACE = 14, 2
"""How large a square is, and how far it is from the next."""


class Square(NamedTuple):
    """A square, how strong it is from 0 to 1 or what sort, and what it says."""

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


class Cell(NamedTuple):
    """What stands in which column and row."""

    column: int
    row: int
    sort: str
    words: str


class Calendar(NamedTuple):
    width: int
    height: int
    squares: list[Square]
    months: list[tuple[int, date]]
    """Where a month begins, and which."""


def heat(rows: Sequence[Sequence[tuple[str, float]]]) -> Heat:
    """Rows of squares: the stronger, the more."""
    most = max((value for row in rows for _, value in row), default=0) or 1
    step = CELL + SPACE
    squares = [
        # By the root: otherwise one loud hour makes all others look silent.
        Square(x * step, y * step, round(math.sqrt(value / most), 2), "", words)
        for y, row in enumerate(rows)
        for x, (words, value) in enumerate(row)
    ]
    return Heat(max(map(len, rows), default=0) * step, len(rows) * step, squares, most)


def calendar(cells: Sequence[Cell], start: date, end: date) -> Calendar:
    """Weeks from left to right, their days from top to bottom."""
    step = CELL + SPACE
    squares = [Square(cell.column * step, cell.row * step, 1.0, cell.sort, cell.words) for cell in cells]
    weeks = (end - start).days // 7 + 1
    firsts = [start + timedelta(days=7 * week) for week in range(weeks)]
    months = [(week, day) for week, day in enumerate(firsts) if week == 0 or day.day <= 7]
    # Names that would run into each other: the later one stays.
    kept = [one for one, after in zip_longest(months, months[1:]) if after is None or after[0] - one[0] > 2]
    return Calendar(weeks * step, 7 * step, squares, [(week * step, day) for week, day in kept])
