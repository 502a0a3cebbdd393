"""The simulated platforms: one module each, found automatically, registered nowhere.

A site module has `NAME` and `SIMULATOR`, a class that is created with the world. It shows the world in its platform's
real wire format; it opens no socket and reads no clock. Faults in the content (an old snapshot, entries in disorder,
wrong dates) are passed to it as a `Distortion`; it does not see faults of bytes and connections.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Protocol, cast

from catchment.model import Record
from catchment.playground.world import Place, World


class Distortion(Record, frozen=True):
    """How an answer differs from the truth at that moment."""

    ago: timedelta = timedelta()
    """The listing as it was this long ago."""
    skew: timedelta = timedelta()
    """All dates are off by this."""
    is_reordered: bool = False
    is_repeated: bool = False
    """Every entry occurs twice."""
    is_looping: bool = False
    """Paging leads back to the start."""
    is_anchor_gone: bool = False
    """The entry that the cursor names is gone."""


STRAIGHT = Distortion()

ROBOTS = b"User-agent: *\nDisallow: /*/private\nCrawl-delay: 1\n"
"""The robots.txt of every host of the playground."""


class Ask(Record, frozen=True):
    """A request, as far as a site needs it."""

    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    at: datetime
    base: str
    """Scheme, host and port, as the client knows them."""
    distortion: Distortion = STRAIGHT
    method: str = "GET"
    body: bytes = b""


class Entry(Record, frozen=True, array_like=True):
    """That an answer showed a version of a post, and the id under which it did."""

    post: str
    version: int
    wire_id: str
    score: int | None = None
    """As shown; None if it was not."""
    is_deleted: bool = False
    """It was shown as deleted, without its content."""
    is_withheld: bool = False
    """It was shown with a notice instead of its content."""

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
    """The body in gzip, if the place supports that."""
    entries: tuple[Entry, ...] = ()


class SiteSimulator(Protocol):
    """The interface of every site. Four optional methods are looked up by name: `who(headers)` returns the client, if
    that is not plain from the headers; `refused(fault, ask)` refuses in the platform's own format; `board(query)`
    returns the place, where the path alone does not name it; `charge(ask, page)` returns what an answer costs, in
    millionths of a dollar."""

    def find(self, path: str) -> Place | None:
        """The place that a path belongs to, now or at some time; None if it belongs to another platform."""
        ...

    def answer(self, place: Place, ask: Ask) -> Page: ...


class _Module(Protocol):
    NAME: str

    def SIMULATOR(self, world: World) -> SiteSimulator: ...


def simulators(world: World) -> dict[str, SiteSimulator]:
    """All sites of this world, by name."""
    return {module.NAME: module.SIMULATOR(world) for module in _modules()}


def _modules() -> Iterator[_Module]:
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if hasattr(module, "NAME"):
            yield cast(_Module, module)
