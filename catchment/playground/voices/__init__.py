"""The languages of the playground: one module for one platform's, found by looking, listed nowhere.

A voice is a module with `NAME` and a class `Voice(world)`. It tells of the world in its platform's real wire format; it
opens no socket and looks at no clock. What the moods do to the telling itself (an old snapshot, entries in disorder,
wrong dates) it is told by a `Bend`; what they do to bytes and connections it never learns.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Protocol, cast

from catchment.model import Record
from catchment.playground.world import Place, World


class Bend(Record, frozen=True):
    """How a telling differs from the truth of the moment."""

    ago: timedelta = timedelta()
    """The listing as it was so long ago."""
    skew: timedelta = timedelta()
    """All dates are off by this."""
    is_reordered: bool = False
    is_repeated: bool = False
    """Every entry comes twice."""
    is_looping: bool = False
    """The way to older entries leads back to where it began."""
    is_anchor_gone: bool = False
    """The entry from which to go on is not there any more."""


STRAIGHT = Bend()

ROBOTS = b"User-agent: *\nDisallow: /*/private\nCrawl-delay: 1\n"
"""What every host of the playground asks of programs."""


class Ask(Record, frozen=True):
    """A request, as far as a voice needs to know it."""

    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    at: datetime
    base: str
    """Scheme, host and port, as the asker knows them."""
    bend: Bend = STRAIGHT
    method: str = "GET"
    body: bytes = b""


class Entry(Record, frozen=True, array_like=True):
    """That an answer showed a version of a post, and the id under which it did."""

    post: str
    version: int
    wire_id: str
    score: int | None = None
    """As it was told; None: it was not."""
    is_deleted: bool = False
    """It was told to be gone: of its content nothing was shown."""

    @property
    def place(self) -> int:
        """The number of the place that the post belongs to."""
        return int(self.post[1:].partition("-")[0])


class Page(Record, frozen=True):
    """An answer."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""
    packed: bytes | None = None
    """The body in gzip, where the place can do that."""
    entries: tuple[Entry, ...] = ()


class Voice(Protocol):
    """What every voice can do. Two more verbs are looked up by name where they are used: `who(headers)` tells who asks,
    where that is not plain from the headers; `refused(mood, ask)` refuses in the platform's own words."""

    def find(self, path: str) -> Place | None:
        """The place that a path belongs to, now or at some time; None: it is none of this platform's."""
        ...

    def answer(self, place: Place, ask: Ask) -> Page: ...


class _Module(Protocol):
    NAME: str

    def Voice(self, world: World) -> Voice: ...


def voices(world: World) -> dict[str, Voice]:
    """All voices of this world, by name."""
    return {module.NAME: module.Voice(world) for module in _modules()}


def _modules() -> Iterator[_Module]:
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if hasattr(module, "NAME"):
            yield cast(_Module, module)
