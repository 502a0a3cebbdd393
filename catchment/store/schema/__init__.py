"""The tables: one definition for SQLite and PostgreSQL.

Times are whole microseconds since 1970 in UTC (`Moment`), the same on both databases: they sort, compare and index
alike, and a naive time cannot get in. Lists that have no meaning of their own (media, settings) are JSON texts.
Big texts stand last in their row: SQLite then reads the small columns without touching the pages that hold them.
"""

from __future__ import annotations

import importlib
import pkgutil

from catchment.store.schema.base import metadata

__all__ = ["metadata"]

# One module for each part of the archive: whoever asks for the tables gets all of them.
for _part in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_part.name}")
