"""Platform client of one source: sends its requests, parses the answers and keeps both; and its pages, on their way
into the store."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from threading import Event
from typing import Any, Protocol, TypeVar

import zstandard

from catchment import logs, work_limits
from catchment.cache import Cache
from catchment.clock import Clock
from catchment.collect.cooldowns import SharedCooldowns
from catchment.collect.reading_slot import Effort, ReadingSlot
from catchment.errors import (
    AddressRefused,
    CatchmentError,
    Missing,
    PlatformError,
    Refused,
    ServerTrouble,
    Stopped,
    StoreError,
    TooLarge,
    Unreadable,
)
from catchment.fetch.paid_calls import CallCosts
from catchment.fetch.responses import keepable_headers
from catchment.fetch.settings import Attempt
from catchment.health.reachability import Reachability
from catchment.logs import HIDDEN, is_secret_parameter, redact
from catchment.messages import Message, about
from catchment.model import (
    Answer,
    Counts,
    Identity,
    JsonObject,
    Kind,
    Lease,
    Outcome,
    Page,
    PageFacts,
    PageWrite,
    Platform,
    RawAnswer,
    Reading,
    Record,
    Refined,
    RefinedItem,
    Request,
    Source,
    VisitResult,
    options,
    scope_of,
)
from catchment.platforms import Platforms
from catchment.policy.outages import Site, site_of
from catchment.policy.visit import VisitRules, failed_with
from catchment.store import Store
from catchment.text.clean import FINGERPRINT_RULE, refine

log = logs.logger(__name__)

MOST_BYTES_A_VISIT = 400_000_000
"""Uncompressed: twenty answers of the largest size, or thousands of ordinary ones."""
_TRY_OTHERWISE = (Missing, Unreadable, Refused, ServerTrouble, AddressRefused)
_compressors = threading.local()

Written = TypeVar("Written", bound=PageWrite)
Keep = Callable[[datetime, RawAnswer], None]
"""Keeps an answer of that time that could not be parsed."""


class Send(Protocol):
    """Sends a request to a platform: `fetch.Fetch`."""

    def __call__(
        self,
        request: Request,
        platform: Platform,
        *,
        subject: str,
        attempts: list[Attempt],
        costs: CallCosts | None = None,
    ) -> Answer: ...


class CollectContext:
    """What collecting needs from its process: one per process, shared by its threads."""

    def __init__(
        self, store: Store, platforms: Platforms, fetch: Send, clock: Clock, cache: Cache, stop: Event
    ) -> None:
        self.store, self.platforms, self.fetch, self.clock, self.cache = store, platforms, fetch, clock, cache
        self.stop = stop
        self.reading_slot = ReadingSlot(stop)
        self.unreleased_leases: deque[Lease] = deque()
        """Leases of threads that could not be released because the database was unavailable."""
        self.reachability = Reachability()
        self.cooldowns = SharedCooldowns(store.budgets)
        self._warned_kinds: set[str] = set()

    def retry_releases(self) -> None:
        """Releases what could not be released before."""
        while self.unreleased_leases:
            self.store.threads.release(self.unreleased_leases[0])
            self.unreleased_leases.popleft()

    def is_first_warning(self, kind: str) -> bool:
        """Whether this process warns about the kind for the first time."""
        is_first = kind not in self._warned_kinds
        self._warned_kinds.add(kind)
        return is_first

    def site(self, source: Source) -> Site:
        return site_of(source, self.platforms.of_one_site)


class Exchange(Record, frozen=True):
    """An answer, and the request that got it."""

    platform: Platform
    request: Request
    answer: Answer
    body_hash: bytes

    @property
    def at(self) -> datetime:
        return self.answer.answered_at


class SourceClient:
    """One source's requests to its platform. Thread-safe: details are requested in parallel."""

    def __init__(self, context: CollectContext, rules: VisitRules, source: Source, *, keep: Keep | None = None) -> None:
        """`keep` stores an answer that could not be parsed; None: no answer is kept."""
        self._context, self._source, self._text_limit = context, source, rules.text_limit
        self._keep = keep if rules.keeps_raw else None
        self.subject = subject_of(source)
        self._attempts: list[Attempt] = []
        self._attempts_told = 0
        self.costs = CallCosts(source.id or None)
        self._effort = Effort()
        self._bytes = 0
        self.service = source.platform
        """The platform, or its service, that the last request was sent to."""

    @property
    def requests(self) -> int:
        """How many exchanges were begun so far."""
        return len(self._attempts)

    def send(self, request: Request, platform: Platform) -> Exchange:
        """Returns the answer and the request that got it: where a request leads nowhere, its `fallback` is sent."""
        if request.identity is not Identity.NONE and request.credential is None:
            request = request.replace(credential=self._source.credential)
        try:
            recipient = self._context.platforms.recipient(platform, request)
            self.service = recipient.NAME
            answer = self._context.fetch(
                request, recipient, subject=self.subject, attempts=self._attempts, costs=self.costs
            )
        except _TRY_OTHERWISE as error:
            if request.fallback is None or error.is_final:
                raise self._nothing_found(request, platform) or error from error
            return self.send(request.fallback, platform)
        self._context.reachability.answered(self._context.site(self._source), answer.answered_at)
        self._bytes += len(answer.body)
        if self._bytes > MOST_BYTES_A_VISIT:
            raise TooLarge(
                "{subject}: a single collection downloaded more than {most:,} bytes",
                "request fewer or smaller pages",
                subject=self.subject,
                most=MOST_BYTES_A_VISIT,
            )
        return Exchange(platform, request, answer, hashlib.sha256(answer.body).digest())

    def read(self, exchange: Exchange) -> Reading:
        """Parses the answer. One that cannot be parsed is kept for a corrected parser."""
        try:
            with self.reading(len(exchange.answer.body)):
                work_limits.check_size(exchange.answer.body)
                return exchange.platform.read(exchange.answer, exchange.request)
        except Unreadable as error:
            self._keep_unread(exchange)
            if exchange.request.fallback is not None:
                # Sent instead of this one, whose answer is not what was expected.
                return Reading(follow=(exchange.request.fallback,))
            if (nothing := self._nothing_found(exchange.request, exchange.platform)) is not None:
                raise nothing from error
            raise type(error)(about(self.subject, error.what), error.helps, status=exchange.answer.status) from error
        except Stopped:
            raise
        except Exception:
            # A parser bug is usually how a change of the platform shows first: the answer is kept for a corrected
            # parser.
            self._keep_unread(exchange)
            raise

    def read_part(self, exchange: Exchange, body: bytes) -> Reading | None:
        """Parses a part of the answer; None: it cannot be parsed alone."""
        try:
            with self.reading(len(body)):
                work_limits.check_size(body)
                return exchange.platform.read(exchange.answer.replace(body=body), exchange.request)
        except Stopped:
            raise
        except Exception:  # noqa: BLE001 - the whole answer will show whether the parser is at fault
            return None

    def clean(self, reading: Reading, platform: Platform, url: str, size: int) -> Refined:
        """Returns what was read from an answer of `size` bytes, cleaned for storage."""
        scope = scope_of(platform, self._source)
        with self.reading(size):
            return refine(reading, scope=scope, answer_url=url, text_limit=text_limit_of(platform, self._text_limit))

    def _nothing_found(self, request: Request, platform: Platform) -> PlatformError | None:
        """Returns the platform's error for the case that the last of several requests led nowhere, too."""
        error = options(platform).nothing_found(request) if hasattr(platform, "nothing_found") else None
        if error is None or self.subject in error.what:
            return error
        return type(error)(about(self.subject, error.what), error.helps)

    def reading(self, size: int) -> AbstractContextManager[None]:
        """Holds the reading slot while an answer of `size` bytes is parsed or cleaned: one at a time, and within
        limits."""
        return self._context.reading_slot.taken(size, self._effort)

    def room_for(self, exchange: Exchange) -> AbstractContextManager[None]:
        """Reserves memory for a large answer and what is made of it: one of them at a time."""
        return self._context.reading_slot.room_for(len(exchange.answer.body), self._effort)

    def raw(self, exchange: Exchange) -> tuple[RawAnswer, ...]:
        """Returns the answer as it is kept beside its items; empty where it may not be kept."""
        return (self._raw(exchange, is_read=True),) if self._keep and exchange.request.is_keepable else ()

    def new_attempts(self) -> dict[tuple[str, datetime], int]:
        """Returns the attempts since the last call, by outcome and minute."""
        untold = self._attempts[self._attempts_told :]
        self._attempts_told += len(untold)
        counts: dict[tuple[str, datetime], int] = {}
        for attempt in untold:
            outcome = attempt.outcome, attempt.at.replace(second=0, microsecond=0)
            counts[outcome] = counts.get(outcome, 0) + 1
        return counts

    def book(self) -> None:
        """Books calls that led to no page."""
        if bookings := tuple(self.costs.unbooked):
            try:
                self._context.store.spending.settle(bookings)
            except StoreError as error:
                # Their reservations stay, and are booked as uncertain later.
                log.error("costs could not be booked", source=self._source.id, error=str(error))
            self.costs.forget(bookings)

    def _keep_unread(self, exchange: Exchange) -> None:
        if self._keep and exchange.request.is_keepable and exchange.answer.body:
            self._keep(exchange.at, self._raw(exchange, is_read=False))

    def _raw(self, exchange: Exchange, *, is_read: bool) -> RawAnswer:
        return RawAnswer(
            step=exchange.request.step,
            request=_shown_request(exchange.request),
            url=redact(exchange.answer.url),
            http_status=exchange.answer.status,
            headers=keepable_headers(exchange.answer.headers),
            parser_version=exchange.platform.PARSER_VERSION,
            is_read=is_read,
            body_hash=exchange.body_hash,
            body=_compressed(exchange.answer.body),
        )


class SourcePages:
    """The pages of one source in one run: every page is assembled and written here."""

    def __init__(
        self,
        context: CollectContext,
        rules: VisitRules,
        source: Source,
        kind: Kind | None,
        run_id: int,
        lease: Lease | None = None,
    ) -> None:
        self._writer, self._source, self._kind, self._run_id = context.store.page_writer, source, kind, run_id
        self.lease = lease
        """Of the source, or of the thread or gap that is being read; None: nothing is claimed yet."""
        self.client = SourceClient(context, rules, source, keep=self._keep_raw)
        self.counts = Counts()
        """Of all pages written so far."""

    def page(self, at: datetime, items: Sequence[RefinedItem] = (), **more: Any) -> Page:
        """Returns a page of these items, with the attempts and costs that led to it."""
        assert self.lease is not None
        return Page(
            self._source,
            self.lease,
            self._run_id,
            at,
            tuple(items),
            FINGERPRINT_RULE,
            outcomes=self.client.new_attempts(),
            bookings=tuple(self.client.costs.unbooked),
            counts_replies=self._kind is not None and self._kind.collects_replies(self._source.settings),
            **more,
        )

    def write(self, page: Page, decide: Callable[[PageFacts], Written]) -> Written:
        """Writes the page as decided; its costs are booked with it."""
        written = self._writer.write(page, decide)
        self.client.costs.forget(page.bookings)
        self.counts += written.counts
        return written

    def result(
        self, began: datetime, ended: datetime, notes: Iterable[Message], error: CatchmentError | None
    ) -> VisitResult:
        """Returns what all pages came to, and the error that ended them, for the record of the run."""
        source = self._source
        result = VisitResult(
            *(source.id, source.name, source.kind, Outcome.SUCCEEDED, self.counts, self.client.requests),
            started_at=began,
            finished_at=ended,
            notes=tuple(notes),
        )
        return result if error is None else failed_with(result, error, redact(error.message))

    def _keep_raw(self, at: datetime, raw: RawAnswer) -> None:
        if self.lease is not None:
            self._writer.keep_raw(self._source, self.lease, self._run_id, at, raw)


def text_limit_of(platform: Platform, operators: int) -> int:
    """Returns how many characters of a text are stored: the operator's limit, or the platform's own if that is less."""
    return min(operators, options(platform).TEXT_LIMIT) if hasattr(platform, "TEXT_LIMIT") else operators


def subject_of(source: Source) -> str:
    """Returns the subject of an error about this source."""
    return f"{source.name} (source {source.id})" if source.id else source.name


def _shown_request(request: Request) -> JsonObject:
    """Returns what a corrected parser needs to reparse the answer; no headers, which may carry an identity."""
    return {
        "method": request.method,
        "url": redact(request.url),
        "params": {
            name: HIDDEN if is_secret_parameter(name, value) else redact(value)
            for name, value in request.params.items()
        },
        "service": request.service,
        "listing": request.listing,
        "state": request.state,
        "item_id": request.item_id,
    }


def _compressed(body: bytes) -> bytes:
    compressor = getattr(_compressors, "zstd", None)
    if compressor is None:
        compressor = _compressors.zstd = zstandard.ZstdCompressor(level=1)
    packed: bytes = compressor.compress(body)
    return packed
