"""Fetches details of single items: a few requests in parallel, returned in batches that are written like pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime

from catchment import logs
from catchment.collect.source_client import Exchange, SourceClient
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
from catchment.model import (
    Item,
    Platform,
    RawAnswer,
    Reading,
    Record,
    Request,
    Skipped,
)

log = logs.logger(__name__)

HANDS = 4
# One slow answer leaves no worker idle; one bad host does not get many more requests.
_AHEAD = 2 * HANDS
A_BATCH = 30
"""Written in one transaction: a kill costs at most this many answers."""
# After this many failures in a row, the host is in trouble, not the item.
_MOST_TROUBLES = 3

_BATCH_BYTES = 4_000_000
_DETAIL_BYTES = 4_000_000
"""The answers of a batch are in memory together; an answer about a single item has a few kilobytes."""

_BAD = (Missing, Gone, Unreadable, Refused, AddressRefused)
"""Errors of one item that say nothing about the others."""
_TROUBLE = (NetworkError, TimedOut, ServerTrouble)
"""Temporary errors: the item is requested again at the next visit."""


class Detail(Record, frozen=True):
    """The result of one request: a parsed answer, or the error that was raised instead."""

    request: Request
    came: Exchange | None = None
    reading: Reading = Reading()
    error: PlatformError | None = None

    @property
    def size(self) -> int:
        """Size of the answer in bytes."""
        return len(self.came.answer.body) if self.came else 0


class DetailBatch(Record, frozen=True):
    """Some details, in the listing's order: written together, like one page."""

    details: tuple[Detail, ...]
    left: int = 0
    """How many are still to be requested or returned."""
    broke: CatchmentError | None = None
    """The error that ended the requests. What came before it is written anyway."""

    @property
    def at(self) -> datetime | None:
        """Time of the earliest answer: anything stored since then is newer. None: no answer came."""
        return min((detail.came.at for detail in self.details if detail.came), default=None)

    @property
    def last_at(self) -> datetime | None:
        """Time of the latest answer. None: no answer came."""
        return max((detail.came.at for detail in self.details if detail.came), default=None)

    @property
    def size(self) -> int:
        """Size of the answers in bytes."""
        return sum(detail.size for detail in self.details)

    @property
    def items(self) -> tuple[Item, ...]:
        """The items, each with the URL it came from."""
        return tuple(
            _placed(item, detail.came) for detail in self.details if detail.came for item in detail.reading.items
        )

    @property
    def reading(self) -> Reading:
        """All details as one reading."""
        return Reading(
            self.items,
            skipped=tuple(skipped for detail in self.details for skipped in _skipped(detail)),
            follow=tuple(
                more for detail in self.details for more in detail.reading.follow if more.about_item is not None
            ),
            is_unfinished=any(detail.reading.is_unfinished or detail.reading.is_torn for detail in self.details),
            notes=tuple(note for detail in self.details for note in detail.reading.notes),
        )

    @property
    def unreadable(self) -> int:
        return sum(1 for detail in self.details if isinstance(detail.error, Unreadable))

    def raws(self, client: SourceClient) -> tuple[RawAnswer, ...]:
        return tuple(raw for detail in self.details if detail.came for raw in client.raw(detail.came))


class Details:
    """Requests details of items that a listing showed by id alone, or more about some items."""

    def __init__(self, client: SourceClient, platform: Platform, requests: Sequence[Request]) -> None:
        self._client, self._platform, self._requests = client, platform, requests
        self._troubles_in_a_row = 0

    def batches(self) -> Generator[DetailBatch]:
        """Yields batches; ends early with a batch that has `broke` set."""
        with ThreadPoolExecutor(HANDS, thread_name_prefix="detail") as hands:
            waiting = deque(self._requests)
            while waiting:
                before = len(waiting)
                details, broke = self._brought(hands, waiting)
                *earlier, last = apart(details)
                for unlike in earlier:
                    yield DetailBatch(unlike, before)
                yield DetailBatch(last, len(waiting), broke)
                if broke is not None:
                    return

    def _brought(
        self, hands: ThreadPoolExecutor, waiting: deque[Request]
    ) -> tuple[tuple[Detail, ...], CatchmentError | None]:
        """Returns the next batch: up to a number of answers, or of bytes."""
        details: list[Detail] = []
        broke: CatchmentError | None = None
        under_way = deque[Future[Detail]]()
        asked = size = 0
        while True:
            is_full = asked >= A_BATCH or size >= _BATCH_BYTES
            while waiting and broke is None and not is_full and len(under_way) < _AHEAD:
                under_way.append(hands.submit(_detail, self._client, waiting.popleft(), self._platform))
                asked += 1
                is_full = asked >= A_BATCH
            # On a break, requests in flight are waited for: they count against the budget, and may bring something.
            if not under_way:
                break
            try:
                details.append(under_way.popleft().result())
            except CatchmentError as error:
                broke = broke or error
            else:
                broke = broke or self._host_trouble(details[-1])
                size += details[-1].size
        return tuple(details), broke

    def _host_trouble(self, detail: Detail) -> CatchmentError | None:
        self._troubles_in_a_row = self._troubles_in_a_row + 1 if isinstance(detail.error, _TROUBLE) else 0
        return detail.error if self._troubles_in_a_row >= _MOST_TROUBLES else None


def apart(details: Sequence[Detail]) -> list[tuple[Detail, ...]]:
    """Splits the details so that no part shows an item twice: two observations are two states of one item, and neither
    must pass for an item of its own. Parts are in the order of their answers, so that the later state is written as the
    later one; without a repeated item, the listing's order stays."""
    shown = [item.external_id for detail in details for item in detail.reading.items]
    if len(shown) == len(set(shown)):
        return [tuple(details)]
    parts: list[list[Detail]] = [[]]
    seen_ids: set[str] = set()
    for detail in sorted(details, key=lambda detail: (detail.came is None, detail.came and detail.came.at)):
        ids = {item.external_id for item in detail.reading.items}
        if ids & seen_ids:
            parts.append([])
            seen_ids = set()
        parts[-1].append(detail)
        seen_ids |= ids
    return [tuple(part) for part in parts]


def _detail(client: SourceClient, request: Request, platform: Platform) -> Detail:
    """Fetches one item. Raises errors that do not concern this item alone."""
    try:
        return _answered(client, request, platform)
    except (*_BAD, *_TROUBLE) as error:
        if error.is_beyond_request:
            raise
        return Detail(request, reading=Reading(is_unfinished=isinstance(error, _TROUBLE)), error=error)
    except CatchmentError:
        raise
    except Exception as error:  # a parser bug that one item triggers must not cost the others
        item = request.item_id or request.about_item
        log.error("an item could not be read", item=item, subject=client.subject, exc_info=error)
        return Detail(
            request,
            error=Unreadable(
                "{subject}: the parser failed ({error_type})", subject=client.subject, error_type=type(error).__name__
            ),
        )


def _answered(client: SourceClient, request: Request, platform: Platform) -> Detail:
    exchange = client.send(request if request.max_bytes else request.replace(max_bytes=_DETAIL_BYTES), platform)
    reading = client.read(exchange)
    if exchange.request.fallback is not None and reading.follow == (exchange.request.fallback,):
        return _answered(client, exchange.request.fallback, platform).replace(request=request)
    return Detail(request, exchange, reading)


def _placed(item: Item, exchange: Exchange) -> Item:
    return item if item.base_url else item.replace(base_url=exchange.answer.url)


def _skipped(detail: Detail) -> tuple[Skipped, ...]:
    """Counts every requested id: an id without an item counts as shown and invalid."""
    if detail.reading.items or detail.reading.skipped:
        return detail.reading.skipped
    if detail.error is not None:
        return (Skipped(detail.error.code),)
    return (Skipped("not there yet" if detail.reading.is_unfinished else "not there"),)
