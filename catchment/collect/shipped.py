"""Lists that come with catchment: a few sources to begin with, and a pool of communities as an example of one."""

from __future__ import annotations

from importlib.resources import files

from catchment.collect import lists
from catchment.collect.lists import Listed, SourceList
from catchment.platforms import Platforms

STARTER, COMMUNITIES = "starter", "communities"


def shipped(name: str, platforms: Platforms) -> tuple[SourceList, tuple[Listed, ...]]:
    """The list, and what of it is left out because this installation does not know its kind."""
    whole = lists.read((files(__package__) / f"{name}.json").read_bytes())
    unknown = tuple(one for one in whole.entries if platforms.of_kind(one.kind) is None)
    return whole.plus(entries=tuple(one for one in whole.entries if one not in unknown)), unknown
