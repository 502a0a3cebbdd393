"""Many requests about single items: asked one by one, a few side by side, and brought home in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime

import structlog

from catchment.collect.asking import Asking, Came
from catchment.errors import (
    AddressRefused,
    CatchmentError,
    Gone,
    Missing,
    NetworkError,
    PlatformError,
    Refused,
    ServerTrouble,
    TimedOut,
    Unreadable,
)
from catchment.model import Item, Platform, Reading, Record, Request, Skipped
from catchment.store.visits import RawAnswer

log = structlog.get_logger(__name__)

HANDS = 4
# One slow answer keeps no hand idle; one bad host is not asked for much more.
_AHEAD = 2 * HANDS
A_BATCH = 30
"""Written in one transaction: a kill costs at most so many answers."""
# So many in a row that did not come at all: it is not the item that has trouble, it is the host.
_MOST_TROUBLES = 3

_BAD = (Missing, Gone, Unreadable, Refused, AddressRefused)
"""What one item may come to without any other being worse for it."""
_TROUBLE = (NetworkError, TimedOut, ServerTrouble)
"""What passes: such an item is asked for again at the next visit."""


class Detail(Record, frozen=True):
    """What became of one request: an answer that was read, or the error that came instead."""

    request: Request
    came: Came | None = None
    reading: Reading = Reading()
    error: PlatformError | None = None


class Batch(Record, frozen=True):
    """Some details, in the listing's order: written together, like one page."""

    details: tuple[Detail, ...]
    left: int = 0
    """How many are still to be asked for, or to be brought."""
    broke: CatchmentError | None = None
    """What ended the asking. What came before it is to be written all the same."""

    @property
    def at(self) -> datetime | None:
        """The earliest of its answers: whatever was told since then is newer. None: no answer came."""
        return min((one.came.at for one in self.details if one.came), default=None)

    @property
    def last_at(self) -> datetime | None:
        """The latest of its answers. None: no answer came."""
        return max((one.came.at for one in self.details if one.came), default=None)

    @property
    def items(self) -> tuple[Item, ...]:
        """Each with the address that it came from."""
        return tuple(_placed(item, one.came) for one in self.details if one.came for item in one.reading.items)

    @property
    def reading(self) -> Reading:
        """All of them as one reading."""
        return Reading(
            self.items,
            skipped=tuple(skipped for one in self.details for skipped in _skipped(one)),
            follow=tuple(more for one in self.details for more in one.reading.follow if more.if_changed is not None),
            is_unfinished=any(one.reading.is_unfinished or one.reading.is_torn for one in self.details),
            notes=tuple(note for one in self.details for note in one.reading.notes),
        )

    @property
    def unreadable(self) -> int:
        return sum(1 for one in self.details if isinstance(one.error, Unreadable))

    def raws(self, asking: Asking) -> tuple[RawAnswer, ...]:
        return tuple(raw for one in self.details if one.came for raw in asking.raw(one.came))


class Details:
    """The asking for what single items have to say: those that a listing showed by id alone, or more about some."""

    def __init__(self, asking: Asking, platform: Platform, requests: Sequence[Request]) -> None:
        self._asking, self._platform, self._requests = asking, platform, requests
        self._troubles_in_a_row = 0

    def batches(self) -> Generator[Batch]:
        """Ends early with a batch that `broke`."""
        with ThreadPoolExecutor(HANDS, thread_name_prefix="detail") as hands:
            for start in range(0, len(self._requests), A_BATCH):
                few = self._requests[start : start + A_BATCH]
                details, broke = self._brought(hands, few)
                left = len(self._requests) - start - len(few)
                *earlier, last = _apart(details)
                for unlike in earlier:
                    yield Batch(unlike, left + len(few))
                yield Batch(last, left, broke)
                if broke is not None:
                    return

    def _brought(
        self, hands: ThreadPoolExecutor, requests: Sequence[Request]
    ) -> tuple[tuple[Detail, ...], CatchmentError | None]:
        details: list[Detail] = []
        broke: CatchmentError | None = None
        left, under_way = deque(requests), deque[Future[Detail]]()
        # Those that are under way when it breaks are waited for: they are paid for, and may bring something.
        while under_way or (left and broke is None):
            while left and broke is None and len(under_way) < _AHEAD:
                under_way.append(hands.submit(_detail, self._asking, left.popleft(), self._platform))
            try:
                details.append(under_way.popleft().result())
            except CatchmentError as error:
                broke = broke or error
            else:
                broke = broke or self._host_trouble(details[-1])
        return tuple(details), broke

    def _host_trouble(self, detail: Detail) -> CatchmentError | None:
        self._troubles_in_a_row = self._troubles_in_a_row + 1 if isinstance(detail.error, _TROUBLE) else 0
        return detail.error if self._troubles_in_a_row >= _MOST_TROUBLES else None


def _apart(details: Sequence[Detail]) -> list[tuple[Detail, ...]]:
    """So divided that nothing is told of twice within one part: two tellings are two states of one item, and neither
    must pass for an item of its own."""
    parts: list[list[Detail]] = [[]]
    told: set[str] = set()
    for one in details:
        ids = {item.external_id for item in one.reading.items}
        if ids & told:
            parts.append([])
            told = set()
        parts[-1].append(one)
        told |= ids
    return [tuple(part) for part in parts]


def _detail(asking: Asking, request: Request, platform: Platform) -> Detail:
    """One item. Raises what is no matter of this item alone."""
    try:
        return _answered(asking, request, platform)
    except (*_BAD, *_TROUBLE) as error:
        if error.is_beyond_request:
            raise
        return Detail(request, reading=Reading(is_unfinished=isinstance(error, _TROUBLE)), error=error)
    except CatchmentError:
        raise
    except Exception as error:  # a slip of the reader's, met by one item, must not cost the others
        item = request.asks_for or request.if_changed
        log.error("an item could not be read", item=item, subject=asking.subject, exc_info=error)
        return Detail(request, error=Unreadable(f"{asking.subject}: the reader failed ({type(error).__name__})"))


def _answered(asking: Asking, request: Request, platform: Platform) -> Detail:
    came = asking.ask(request, platform)
    reading = asking.read(came)
    if came.request.otherwise is not None and reading.follow == (came.request.otherwise,):
        return _answered(asking, came.request.otherwise, platform).plus(request=request)
    return Detail(request, came, reading)


def _placed(item: Item, came: Came) -> Item:
    return item if item.base_url else item.plus(base_url=came.answer.url)


def _skipped(detail: Detail) -> tuple[Skipped, ...]:
    """Every id that was asked for is counted: what brought no item was shown, and is invalid."""
    if detail.reading.items or detail.reading.skipped:
        return detail.reading.skipped
    if detail.error is not None:
        return (Skipped(detail.error.code),)
    return (Skipped("not there yet" if detail.reading.is_unfinished else "not there"),)
