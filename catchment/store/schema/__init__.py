"""Table definitions, shared by SQLite and PostgreSQL.

Times are whole microseconds since 1970 in UTC (`Moment`), the same on both databases: they sort, compare and index
alike, and a naive time cannot get in. Lists without meaning of their own (media, settings) are JSON texts.

Big texts are last in their row: SQLite then reads the small columns without touching the pages that hold them.
"""

from __future__ import annotations

import importlib
import pkgutil

from catchment.store.schema.core import array_type, metadata

__all__ = ["array_type", "metadata"]

# One module per part of the archive; importing the package imports all of them.
for _part in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_part.name}")
