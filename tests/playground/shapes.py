"""The shape of a JSON document: its fields, and what is in them. What we say is compared with what real sites say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Field = tuple[str, ...]


def fields(value: Any, above: Field = ()) -> Iterator[Field]:
    """Every field of a document with those above it, and its type."""
    yield (*above, type(value).__name__)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from fields(inner, (*above, name))
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, (*above, "[]"))
