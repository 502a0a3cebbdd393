"""The starter set: sources in English and Chinese that allow polling, for a first look at what catchment does."""

from __future__ import annotations

from importlib.resources import files

from catchment.collect import lists
from catchment.collect.lists import Listed, SourceList
from catchment.platforms import Platforms

FILE = files(__package__) / "starter.json"


def starter(platforms: Platforms) -> tuple[SourceList, tuple[Listed, ...]]:
    """The set, and what of it is left out because this installation does not know its kind."""
    whole = lists.read(FILE.read_bytes())
    unknown = tuple(one for one in whole.entries if platforms.of_kind(one.kind) is None)
    return whole.plus(entries=tuple(one for one in whole.entries if one not in unknown)), unknown
