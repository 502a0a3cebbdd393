"""Compares the figures of two pages of benchmarks: what got worse."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOLERATED = 1.1
"""Figures differ by so much between two runs of the same code."""
_BOLD = re.compile(r"\*\*([0-9.]+)\*\*")
_INDEXED = re.compile(r"The indexer takes ([0-9,]+) items a second")


def worse(before: str, after: str) -> list[str]:
    """Returns what got worse by more than a tenth from one page to the next, in words. Only figures that do not depend
    on the machine are compared, and the indexer's speed, which depends on it."""
    known = dict(_figures(before))
    return [
        f"{name}: {known[name]:g} → {figure:g}"
        for name, figure in _figures(after)
        if name in known and (figure > known[name] * TOLERATED if figure > 0 else figure > known[name] / TOLERATED)
    ]


def _figures(page: str) -> Iterator[tuple[str, float]]:
    """Yields the bold figures of the tables by section and row; of speeds the negative, so that less is better in
    all."""
    section = ""
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif speed := _INDEXED.search(line):
            yield f"{section}, items indexed a second", -float(speed[1].replace(",", ""))
        elif line.startswith("|"):
            label = next((cell.strip() for cell in line.split("|") if re.search(r"[^\W\d]{3}", cell)), "")
            for place, figure in enumerate(_BOLD.findall(line), 1):
                yield f"{section}, {label}" + (f", {place}" if place > 1 else ""), float(figure)
