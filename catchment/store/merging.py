"""What a list says about sources that are followed already: taken over, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catchment.model import Record
from catchment.store.database import Transaction
from catchment.store.due import set_precedence
from catchment.store.rows import decode, to_json


class Described(Record, frozen=True):
    """What a list says about one source; None: nothing."""

    categories: tuple[str, ...] = ()
    priority: str | None = None
    quality_score: float | None = None


def merge(tx: Transaction, told: Mapping[int, Described]) -> set[int]:
    """Categories are added to those there are, priority and score take the place of theirs; gives who is changed."""
    rows = tx.among(
        f"SELECT id, categories, priority, quality_score FROM sources WHERE id IN {{few}} ORDER BY id {tx.lock_rows()}",
        list(told),
    )
    merged = {row[0]: _merged(row[1:], told[row[0]]) for row in rows}
    changed = [(row[0], *merged[row[0]]) for row in rows if merged[row[0]] != tuple(row[1:])]
    tx.update("sources", ("id", "categories", "priority", "quality_score"), changed)
    set_precedence(tx, {source_id: priority for source_id, _, priority, _ in changed})
    return {row[0] for row in changed}


def _merged(known: Sequence[Any], told: Described) -> tuple[str, str, float | None]:
    categories, priority, quality_score = known
    united = dict.fromkeys((*decode(categories), *told.categories))
    score = quality_score if told.quality_score is None else told.quality_score
    return to_json(list(united)), told.priority or priority, score
