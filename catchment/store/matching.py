"""Asking the database's own index: which places have these terms, newest first.

SQLite's FTS5 keeps them in the order of places, and stops when nobody wants more. PostgreSQL's GIN gives all or none:
what is rare is taken whole and sorted; what is frequent is met soon enough by walking down from the newest.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from catchment.store.database import Transaction
from catchment.store.facets import facet_ids
from catchment.store.filtering import Groups
from catchment.store.indexing import facet_term

# What one more row costs, in the same unit: taken from the index and sorted; walked past, its terms unpacked.
_TAKING, _WALKING = 1, 5
_LONGEST_WALK = 50_000
_FEW, _PROBED = 2_000, 2_000
"""So few are taken at once; so many of the newest are looked at otherwise, before anything else is decided."""


Terms = list[list[str]]
"""One of each group."""


class Match(NamedTuple):
    terms: tuple[str, ...]
    groups: Groups
    """Of facets: one of each."""
    low: int
    high: int
    """Places from `low` on, and below `high`."""


class Places(NamedTuple):
    places: Iterator[int]
    """Newest first; read as far as it is wanted."""
    how_many: int
    is_estimated: bool


def places(tx: Transaction, match: Match, wanted: int, counted: int) -> Places:
    """`wanted`: how many will most likely be read; up to `counted` the count is exact."""
    known = facet_ids(tx, {name for group in match.groups for name in group})
    facets = [[facet_term(known[name]) for name in group if name in known] for group in match.groups]
    if not all(facets):
        return Places(iter(()), 0, False)
    terms = [*([one] for one in match.terms), *facets]
    return _in_postgres(tx, terms, match, wanted) if tx.is_postgres else _in_sqlite(tx, terms, match, counted)


def _in_sqlite(tx: Transaction, terms: Terms, match: Match, counted: int) -> Places:
    question = " AND ".join("(" + " OR ".join(f'"{term}"' for term in group) + ")" for group in terms)
    first = _fts(tx, question, match.low, match.high, counted)
    if len(first) < counted:
        return Places(iter(first), len(first), False)
    return Places(chain(first, _more_fts(tx, question, match.low, first[-1])), len(first), True)


def _more_fts(tx: Transaction, question: str, low: int, high: int) -> Iterator[int]:
    while found := _fts(tx, question, low, high, 5_000):
        yield from found
        high = found[-1]


def _fts(tx: Transaction, question: str, low: int, high: int, limit: int) -> list[int]:
    rows = tx.all(
        """
        SELECT rowid FROM item_words WHERE item_words MATCH ? AND rowid >= ? AND rowid < ?
         ORDER BY rowid DESC LIMIT ?
        """,
        question,
        low,
        high,
        limit,
    )
    return [row[0] for row in rows]


def _in_postgres(tx: Transaction, terms: Terms, match: Match, wanted: int) -> Places:
    parts = ["(" + " | ".join(f"'{term}'" for term in group) + ")" for group in terms]
    question = " & ".join(parts)
    # All that have the rarest term are gone through, however few of them have the others, too. How many have all of
    # them, the planner can only guess, as if words kept no company; the newest tell better.
    rarest = min(_expected(tx, part) for part in parts)
    if rarest <= _FEW:
        return _all_of_them(tx, question, match)
    met = _stretch(tx, question, match.low, match.high, _PROBED, wanted)
    everything = _how_many(tx)
    walk = wanted * _PROBED // max(1, len(met))
    if len(met) < wanted and rarest * _TAKING <= walk * _WALKING:
        return _all_of_them(tx, question, match)
    length = min(4 * walk, _LONGEST_WALK)
    return Places(_walked(tx, question, match, met, length, wanted), max(1, wanted * everything // walk), True)


def _all_of_them(tx: Transaction, question: str, match: Match) -> Places:
    found = _taken(tx, question, match.low, match.high)
    return Places(iter(found), len(found), False)


def _walked(tx: Transaction, question: str, match: Match, met: list[int], length: int, wanted: int) -> Iterator[int]:
    """What was met, and on from there along stretches of the newest; who wants more when there is little left gets all
    the rest at once."""
    yield from met
    high, is_dense = met[-1] if met else match.high, True
    while is_dense:
        met = _stretch(tx, question, match.low, high, length, wanted)
        yield from met
        high, is_dense = met[-1] if met else high, len(met) == wanted
    yield from _taken(tx, question, match.low, high)


def _stretch(tx: Transaction, question: str, low: int, high: int, length: int, wanted: int) -> list[int]:
    """What answers among so many of the newest, up to as many as are wanted."""
    rows = tx.all(
        # The inner LIMIT keeps the planner from asking the index after all.
        """
        SELECT place FROM (SELECT place, words FROM indexed WHERE place >= ? AND place < ?
                            ORDER BY place DESC LIMIT ?) AS newest
         WHERE words @@ ?::tsquery ORDER BY place DESC LIMIT ?
        """,
        low,
        high,
        length,
        question,
        wanted,
    )
    return [row[0] for row in rows]


def _taken(tx: Transaction, question: str, low: int, high: int) -> list[int]:
    rows = tx.all(
        """
        WITH found AS MATERIALIZED (SELECT place FROM indexed WHERE words @@ ?::tsquery)
        SELECT place FROM found WHERE place >= ? AND place < ? ORDER BY place DESC
        """,
        question,
        low,
        high,
    )
    return [row[0] for row in rows]


def _expected(tx: Transaction, question: str) -> int:
    """What the planner thinks, by what it has learnt of the terms."""
    row = tx.one("EXPLAIN (FORMAT JSON) SELECT 1 FROM indexed WHERE words @@ ?::tsquery", question)
    return int(row[0][0]["Plan"]["Plan Rows"]) if row else 0


def _how_many(tx: Transaction) -> int:
    row = tx.one("SELECT last_item_id FROM ledger WHERE id = 1")
    return int(row[0]) if row else 0
