"""Entries that an answer repeats from the last one. They are recognised by a hash of their bytes, or of their item
where the platform cannot cut its answers, and are not parsed or cleaned again.

Whatever is not certain is read as if it were new: `read_page` then returns no repeated entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from catchment.collect.source_client import Exchange, SourceClient
from catchment.model import Item, Pieces, Reading, RefinedItem, ShownEntries, StoredEntry, options
from catchment.text.clean import CLEANING_VERSION, mark_of, marks_from

Stored = Mapping[int, StoredEntry]
"""The entries of the last answer, by their marks."""


class ReadPage(NamedTuple):
    """An answer with all its entries."""

    reading: Reading
    """Its items in the answer's order. Of a repeated one, only the date is known."""
    marks: Sequence[int] = ()
    """One for each item; none where they cannot be distinguished."""
    repeated: Mapping[int, StoredEntry] = {}
    """Those that are as last time, by their position."""

    def unchanged(self, scope: str) -> tuple[RefinedItem, ...]:
        return tuple(
            RefinedItem(Item("", scope=scope, created_at=entry.stated_at), b"", unchanged_id=entry.item_id)
            for entry in self.repeated.values()
        )

    def rest(self) -> tuple[Item, ...]:
        """Returns the items that have to be cleaned and compared with what is stored."""
        items = self.reading.items
        return tuple(item for at, item in enumerate(items) if at not in self.repeated) if self.repeated else items

    def shown(self, body_hash: bytes) -> ShownEntries | None:
        """Returns what the next visit is to know."""
        if not self.marks:
            return None
        # Items that say more than their date are read every time; and those with ids that cleaning will change.
        new = {
            item.external_id: mark
            for mark, item in zip(self.marks, self.reading.items, strict=True)
            if item.external_id and not (item.is_pinned or item.rank is not None or item.gained is not None)
        }
        return ShownEntries(body_hash, new, {self.marks[at]: entry for at, entry in self.repeated.items()})


def read_page(client: SourceClient, exchange: Exchange, stored: Stored) -> ReadPage:
    """Parses an answer except for the entries repeated from the last one."""
    pieces = options(exchange.platform).pieces(exchange.answer) if hasattr(exchange.platform, "pieces") else None
    marks = _marks(exchange, pieces) if pieces is not None else ()
    if pieces is not None and (repeated := _repeated(marks, stored)):
        page = _read_rest(client, exchange, pieces, marks, repeated)
        if page is not None:
            return page
    reading = client.read(exchange)
    if not _are_told_apart(reading.items):
        return ReadPage(reading)
    if _is_cut_right(reading, len(marks)):
        return ReadPage(reading, marks)
    marks = [mark_of(item) for item in reading.items]
    return ReadPage(reading, marks, _repeated(marks, stored))


def _marks(exchange: Exchange, pieces: Pieces) -> Sequence[int]:
    """Returns a mark for each entry; none if two are the same."""
    answer, version = exchange.answer, exchange.platform.PARSER_VERSION
    context = sha256(f"{CLEANING_VERSION} {version} {answer.url} ".encode() + pieces.around).digest()
    marks = marks_from([sha256(context + answer.body[start:end]).digest() for start, end in pieces.entries])
    return marks if len({*marks}) == len(marks) else ()


def _repeated(marks: Sequence[int], stored: Stored) -> dict[int, StoredEntry]:
    return {at: stored[mark] for at, mark in enumerate(marks) if mark in stored} if stored else {}


def _read_rest(
    client: SourceClient, exchange: Exchange, pieces: Pieces, marks: Sequence[int], repeated: dict[int, StoredEntry]
) -> ReadPage | None:
    """Returns the page, parsed without the repeated entries; None: it has to be read as a whole."""
    body, kept, at = exchange.answer.body, [], 0
    for place in repeated:
        start, end = pieces.entries[place]
        kept.append(body[at:start])
        at = end
    reading = client.read_part(exchange, b"".join((*kept, body[at:])))
    if reading is None or not _is_cut_right(reading, len(marks) - len(repeated)) or not _are_told_apart(reading.items):
        return None
    rest = iter(reading.items)
    items = tuple(
        Item("", created_at=repeated[place].stated_at) if place in repeated else next(rest)
        for place in range(len(marks))
    )
    return ReadPage(reading.replace(items=items), marks, repeated)


def _is_cut_right(reading: Reading, count: int) -> bool:
    """Whether each of this many entries is one item, and nothing had to be repaired or decoded by a guess."""
    is_as_sent = not (reading.skipped or reading.notes or reading.is_torn or reading.is_transcoded)
    return is_as_sent and len(reading.items) == count


def _are_told_apart(items: Sequence[Item]) -> bool:
    """Whether each has an id of its own. Otherwise cleaning has to tell them apart, by all that the page shows."""
    ids = {item.external_id for item in items}
    return len(ids) == len(items) and "" not in ids and not any(item.scope for item in items)
