"""Changing the key: everything that is sealed is sealed anew with the first of the master keys, while others go on
using it. In small batches, each of them whole: whoever is interrupted begins again, and does the rest."""

from __future__ import annotations

from collections.abc import Callable

from catchment.errors import VaultError
from catchment.model import Record
from catchment.store.sealed import SealedRow, SealedThings, tables
from catchment.vault.box import Box, Sealed

_BATCH = 50


class Rotated(Record, frozen=True):
    """What came of it."""

    key_id: str
    """Of the key that everything is sealed with now, but for what could not be opened."""
    resealed: int
    locked: tuple[str, ...] = ()
    """What no given key opens, and why, in words."""


def rotate(things: SealedThings, box: Box, told: Callable[[int], None] = lambda count: None) -> Rotated:
    """Reseal all that is sealed with another key. One that was given anew meanwhile is as it was given."""
    key_id, count, locked = box.key_id, 0, list[str]()
    for table in tables():
        after = 0
        while rows := things.others(table, key_id, after, _BATCH):
            after = rows[-1].id
            pairs = [(row, new) for row in rows if (new := _resealed(row, box, locked)) is not None]
            count += things.exchange(pairs)
            told(count)
    return Rotated(key_id, count, tuple(locked))


def _resealed(row: SealedRow, box: Box, locked: list[str]) -> SealedRow | None:
    try:
        sealed = box.reseal(Sealed(row.key_id, row.sealed.decode()))
    except VaultError as error:
        locked.append(f"{row.name} ({row.table}): {error.what}")
        return None
    return row.plus(key_id=sealed.key_id, sealed=sealed.token.encode())
