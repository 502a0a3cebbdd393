"""Entries that an answer repeats from the last one. They are recognised by a hash of their bytes, or of their item
where the platform cannot cut its answers, and are not parsed or cleaned again.

Whatever is not certain is read as if it were new: `read_page` then returns no repeated entry.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import NamedTuple

from catchment.clock import moment
from catchment.collect.source_client import Exchange, SourceClient
from catchment.model import NONE_REPEATED, UNDATED, Item, Pieces, Reading, ShownEntries, StoredEntries, options
from catchment.text.clean import CLEANING_VERSION, listed_ids, mark_of, marks_from


class ReadPage(NamedTuple):
    """An answer with all its entries."""

    reading: Reading
    """Its items in the answer's order. Of a repeated one, only the date is known."""
    marks: Sequence[int] = ()
    """One for each item; none where they cannot be distinguished."""
    repeated: StoredEntries = NONE_REPEATED
    """Those that are as last time, in the answer's order."""
    positions: Collection[int] = ()
    """Where the answer shows these."""

    def rest(self) -> tuple[Item, ...]:
        """Returns the items that have to be cleaned and compared with what is stored."""
        items = self.reading.items
        return tuple(item for at, item in enumerate(items) if at not in self.positions) if self.positions else items

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
        return ShownEntries(body_hash, new, self.repeated)


def read_page(client: SourceClient, exchange: Exchange, stored: StoredEntries) -> ReadPage:
    """Parses an answer except for the entries repeated from the last one."""
    pieces = options(exchange.platform).pieces(exchange.answer) if hasattr(exchange.platform, "pieces") else None
    marks = _marks(exchange, pieces) if pieces is not None else ()
    if pieces is not None and (repeated := _repeated(marks, stored)):
        page = _read_rest(client, exchange, pieces, marks, repeated, stored.at(repeated.values()))
        if page is not None:
            return page
    reading = client.read(exchange)
    if not _are_told_apart(reading):
        return ReadPage(reading)
    if _is_cut_right(reading, len(marks)):
        return ReadPage(reading, marks)
    marks = [mark_of(item) for item in reading.items]
    repeated = _repeated(marks, stored)
    return ReadPage(reading, marks, stored.at(repeated.values()), repeated)


def _marks(exchange: Exchange, pieces: Pieces) -> Sequence[int]:
    """Returns a mark for each entry; none if two are the same."""
    answer, version = exchange.answer, exchange.platform.PARSER_VERSION
    context = sha256(f"{CLEANING_VERSION} {version} {answer.url} ".encode() + pieces.around).digest()
    marks = marks_from([sha256(context + answer.body[start:end]).digest() for start, end in pieces.entries])
    return marks if len({*marks}) == len(marks) else ()


def _repeated(marks: Sequence[int], stored: StoredEntries) -> dict[int, int]:
    """Returns the positions of the repeated entries in the answer, each with its place among the stored ones."""
    places = {mark: place for place, mark in enumerate(stored.marks)}
    return {at: places[mark] for at, mark in enumerate(marks) if mark in places} if places else {}


def _read_rest(
    client: SourceClient,
    exchange: Exchange,
    pieces: Pieces,
    marks: Sequence[int],
    positions: Collection[int],
    repeated: StoredEntries,
) -> ReadPage | None:
    """Returns the page, parsed without the repeated entries; None: it has to be read as a whole."""
    body, kept, at = exchange.answer.body, [], 0
    for position in positions:
        start, end = pieces.entries[position]
        kept.append(body[at:start])
        at = end
    reading = client.read_part(exchange, b"".join((*kept, body[at:])))
    if reading is None or not _is_cut_right(reading, len(marks) - len(repeated)) or not _are_told_apart(reading):
        return None
    rest = iter(reading.items)
    stated = dict(zip(positions, repeated.stated_at, strict=True))
    items = tuple(
        Item("", created_at=None if stated[at] == UNDATED else moment(stated[at])) if at in stated else next(rest)
        for at in range(len(marks))
    )
    return ReadPage(reading.replace(items=items), marks, repeated, positions)


def _is_cut_right(reading: Reading, count: int) -> bool:
    """Whether each of this many entries is one item, and nothing had to be repaired or decoded by a guess."""
    is_as_sent = not (reading.skipped or reading.notes or reading.is_torn or reading.is_transcoded)
    return is_as_sent and len(reading.items) == count


def _are_told_apart(reading: Reading) -> bool:
    """Whether each item has an id of its own. Otherwise cleaning has to tell them apart, by all that the page shows.
    Nor may there be items that are listed by their ids alone: they have their places between the others."""
    items, ids = reading.items, {item.external_id for item in reading.items}
    is_own = len(ids) == len(items) and "" not in ids and not any(item.scope for item in items)
    return is_own and not listed_ids(reading)
