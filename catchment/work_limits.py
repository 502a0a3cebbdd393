"""Limits on the work that one answer may cost. Pure: amounts are counted, not measured.

Code that parses and cleans answers announces its work (`current().spend(...)`) and regularly checks whether to continue
(`current().check()`). The limit of the answer that a thread is working on is ambient, so that the functions in between
need not pass it on. Outside of a visit each call gets a new limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from catchment.errors import TooComplex
from catchment.messages import Message, message

MOST_WORK = 4_000_000
"""For cleaning one answer, in units of about a microsecond. Twenty megabytes of normal HTML need half of it."""
UNINSPECTED = 1_000_000
"""Work accepted at its worst-case estimate, before the content is inspected for the real cost."""
MOST_HEAVY = 20
"""Items of one answer that are too expensive to parse. A normal feed may contain a few from third parties."""

# Values of a JSON document (at most 250 bytes each), and tags and attributes of XML (550, including the text after
# them).
MOST_JSON_VALUES = 500_000
MOST_XML_NODES = 250_000
_HARMLESS_BYTES = 1_000_000
"""Below this size, any content takes little memory."""


def _go_on() -> None:
    pass


class WorkLimit:
    """The work left for one answer. Belongs to one thread."""

    def __init__(
        self,
        check: Callable[[], None] = _go_on,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        most: int = MOST_WORK,
    ) -> None:
        """`check` raises to end the work: on a requested stop, or at a time limit. Inside `waiting`, another process
        does the work, and this thread blocks no others."""
        self.check, self.waiting = check, waiting
        self._left, self._uninspected, self._heavy = most, UNINSPECTED, 0

    def spend(self, work: int) -> None:
        """Subtract this much work; raises TooComplex if less is left."""
        self._left -= work
        if self._left < 0:
            raise TooComplex("cleaning the HTML of the answer takes too much work", _HELPS)

    def takes_uninspected(self, work: int) -> bool:
        """Whether to accept work whose worst-case cost is this, and whose real cost is probably far lower."""
        self._uninspected -= work
        return self._uninspected >= 0

    def count_heavy(self) -> None:
        """Count an item that is too expensive to parse; raises TooComplex if there are too many."""
        self._heavy += 1
        if self._heavy > MOST_HEAVY:
            what = "more than {most} items of the answer have HTML too deeply nested to be cleaned"
            raise TooComplex(what, _HELPS, most=MOST_HEAVY)


_HELPS = "check the address in a browser: it may be broken, or designed to waste a crawler's resources"
_JSON_VALUES, _XML_NODES = message("values"), message("tags and attributes")
_CURRENT: ContextVar[WorkLimit | None] = ContextVar("work limit", default=None)


def current() -> WorkLimit:
    """The limit of the answer that this thread is working on."""
    return _CURRENT.get() or WorkLimit()


@contextmanager
def limited(limit: WorkLimit) -> Iterator[WorkLimit]:
    """Within this block, `current()` returns this limit."""
    token = _CURRENT.set(limit)
    try:
        yield limit
    finally:
        _CURRENT.reset(token)


def check_size(body: bytes) -> None:
    """Raise TooComplex for an answer whose tree, as JSON or as XML, would take too much memory.

    Counts the bytes that precede values and nodes, which takes a few milliseconds for the largest answer.
    """
    if len(body) > _HARMLESS_BYTES:
        check_json_size(body)
        if _first(body) == b"<" and _nodes(body) > MOST_XML_NODES:
            _refuse_more(_XML_NODES, _nodes_outside_of_sections(body), MOST_XML_NODES)


def check_json_size(body: bytes) -> None:
    """The same check for JSON only."""
    if len(body) > _HARMLESS_BYTES and _first(body) in (b"{", b"["):
        _refuse_more(_JSON_VALUES, body.count(b",") + body.count(b"[") + body.count(b"{"), MOST_JSON_VALUES)


def _first(body: bytes) -> bytes:
    return body[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]


def _refuse_more(of_what: Message, count: int, most: int) -> None:
    if count > most:
        raise TooComplex(
            "the answer has {count:,} {of_what}; at most {most:,} are read",
            _HELPS,
            count=count,
            of_what=of_what,
            most=most,
        )


def _nodes(body: bytes) -> int:
    return body.count(b"<") - body.count(b"</") + body.count(b"=")


def _nodes_outside_of_sections(body: bytes) -> int:
    """The number of nodes outside CDATA sections, where markup is only text."""
    count, at = 0, 0
    while (begin := body.find(b"<![CDATA[", at)) >= 0:
        count += 1 + _nodes(body[at:begin])
        end = body.find(b"]]>", begin)
        if end < 0:
            return count
        at = end
    return count + _nodes(body[at:])
