"""The base of all records and views, their JSON form, and a limit that several of them share."""

from __future__ import annotations

from datetime import date, timedelta
from enum import Enum
from functools import cache
from typing import Any, Self, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from catchment.messages import Message

JsonObject: TypeAlias = dict[str, Any]
"""A decoded JSON object."""


class Record(Struct, frozen=True):
    """An immutable value. `replace(field=…)` returns a changed copy."""

    def replace(self, **changes: Any) -> Self:
        return replace(self, **changes)


class View(Record, frozen=True):
    """A stored thing as it is shown. Its JSON form has its fields and its properties."""


@cache
def shown_names(record: type[Struct]) -> tuple[str, ...]:
    """Returns the names of what a record shows: its fields and, of a view, its properties."""
    properties = [
        name
        for base in (record.__mro__ if issubclass(record, View) else ())
        for name, value in vars(base).items()
        if isinstance(value, property) and not name.startswith("_")
    ]
    return tuple(dict.fromkeys((*record.__struct_fields__, *properties))) if properties else record.__struct_fields__


def as_dict(record: Struct) -> dict[str, Any]:
    """Returns the values of a record by name, of a view its properties, too; records within it stay as they are."""
    names = shown_names(type(record))
    return asdict(record) if names is record.__struct_fields__ else {name: getattr(record, name) for name in names}


_AS_THEY_ARE = frozenset((str, int, float, bool, type(None)))


def as_json(value: Any) -> Any:
    """Returns records, lists and dictionaries of them as JSON data: times in ISO 8601 with offset, bytes in hexadecimal
    digits."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, Message):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Struct):
        if value.__struct_config__.omit_defaults:
            return to_builtins(value)
        # Most values are plain: a call for each would take longer than all the rest.
        return {
            name: field if type(field) in _AS_THEY_ARE else as_json(field) for name, field in as_dict(value).items()
        }
    if isinstance(value, dict):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.value if isinstance(value, Enum) else value


CLOCKS_DIFFER = timedelta(hours=1)
"""The largest plausible difference between two clocks; beyond it, one of them is wrong."""
