"""Platform client of one source: sends its requests, parses the answers and keeps both; the cooldowns of platforms,
shared by all processes through the database; and which part a failed visit is blamed on."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from threading import Event, Lock
from typing import Any, Protocol

import zstandard

from catchment import cost_limits, logs
from catchment.cache import Cache
from catchment.clock import Clock, micros, moment
from catchment.collect.reading_slot import Effort, ReadingSlot
from catchment.errors import (
    AddressRefused,
    CredentialsExhausted,
    Missing,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
    Stopped,
    StoreError,
    TooLarge,
    Unreadable,
)
from catchment.fetch.paid_calls import CallCosts
from catchment.fetch.responses import keepable_headers
from catchment.fetch.settings import Attempt
from catchment.fetch.throttle import Cooldowns
from catchment.logs import HIDDEN, is_secret_parameter, redact
from catchment.messages import about
from catchment.model import (
    Answer,
    Identity,
    JsonObject,
    Lease,
    Platform,
    RawAnswer,
    Reading,
    Record,
    Refined,
    Request,
    Source,
    options,
    scope_of,
)
from catchment.platforms import Platforms
from catchment.policy.outages import UNREACHABLE, Site, site_of
from catchment.policy.visit import Cause, VisitRules
from catchment.store import Store
from catchment.store.settings import BudgetRows
from catchment.text.clean import refine

log = logs.logger(__name__)


class SharedCooldowns:
    """Stored beside the budgets in the database. Thread-safe."""

    def __init__(self, rows: BudgetRows) -> None:
        self._rows = rows
        self._own = Cooldowns()
        """Cooldowns set in this process; they hold even while the database is unavailable."""

    def start(self, platform: str, until: datetime, now: datetime) -> None:
        """Starts a cooldown. The later end wins: a second answer of a burst must not shorten the first one's."""
        if not self._own.until(platform, now):
            log.info("platform cooldown started", platform=platform, until=until.isoformat())
        self._own.begin(platform, until)

        def later_end(kept: Any | None) -> tuple[Any, None]:
            later = max(until, _believed(kept, now) or until)
            return {"until": micros(later), "told_at": micros(now)}, None

        try:
            self._rows.change(_name(platform), now, later_end)
        except StoreError as error:
            if not error.is_logged:
                log.error(
                    "platform cooldown could not be shared with other processes", platform=platform, error=str(error)
                )

    def until(self, platforms: Iterable[str], now: datetime) -> dict[str, datetime]:
        """Returns those of the given platforms that are in cooldown, with its end."""
        names = list(platforms)
        kept = self._rows.kept([_name(name) for name in names])
        ends = {name: (self._own.until(name, now), _believed(kept.get(_name(name)), now)) for name in names}
        return {text: max(known) for text, both in ends.items() if (known := [end for end in both if end is not None])}


def _name(platform: str) -> str:
    return f"closed {platform}"


def _believed(kept: Any | None, now: datetime) -> datetime | None:
    """Returns the end of a stored cooldown. One set in the future is ignored: the clock was wrong then."""
    if kept is None or not kept["told_at"] <= micros(now) < kept["until"]:
        return None
    return moment(kept["until"])


_LATELY = timedelta(minutes=10)
# Longer than the longest wait before a source of an unresponsive site is tried again.
_MEANWHILE = timedelta(hours=2)
_MOST_SITES = 10_000
_OFTEN = 3
"""A site that failed this often, while others answered in between, fails for a cause of its own."""


class Reachability:
    """Which sites answered or failed lately, in this process. Thread-safe."""

    def __init__(self) -> None:
        self._reached_at: datetime | None = None
        """When any site was last reached, whatever it answered."""
        self._unconnected: set[Site] = set()
        """Sites that could not be reached since then."""
        self._unanswered: set[Site] = set()
        """Sites that failed since any site last answered properly."""
        self._missed: Counter[Site] = Counter()
        """How often a site failed before others answered; reset when it answers itself."""
        self._failing: dict[Site, dict[int, datetime]] = {}
        self._lock = Lock()

    def answered(self, site: Site, now: datetime) -> None:
        with self._lock:
            self._answered(site, now)

    def cause_of(self, error: PlatformError, site: Site, source_id: int, now: datetime) -> Cause:
        """Returns the cause of a source's failure, and records the failure for later decisions about other sources."""
        is_reached = error.status is not None or error.is_contact or isinstance(error, ServerTrouble)
        with self._lock:
            if is_reached and not site.is_local:
                self._reached(now)
            if isinstance(error, SlowDown | CredentialsExhausted):
                return Cause.WAIT
            if error.code not in UNREACHABLE:
                return Cause.SOURCE
            if len(self._failing) > _MOST_SITES:
                self._failing.clear()
                self._missed.clear()
            failing = self._failing.setdefault(site, {})
            failing[source_id] = now
            others = (at for other, at in failing.items() if other != source_id)
            is_shared = any(at > now - _MEANWHILE for at in others)
            if site.is_local:
                # It says nothing about our connection; but without one, it may be out of reach as well.
                if not is_reached and self._unconnected and not self._is_network_up(now):
                    return Cause.NETWORK
            elif self._missed[site] < _OFTEN:
                self._unanswered.add(site)
                is_shared = is_shared or len(self._unanswered) > 1
                if not is_reached:
                    self._unconnected.add(site)
                    if not self._is_network_up(now):
                        return Cause.NETWORK
            return Cause.SITE if is_shared else Cause.SOURCE

    def _answered(self, site: Site, now: datetime) -> None:
        self._failing.pop(site, None)
        if site.is_local:
            return
        self._reached(now)
        self._unanswered.discard(site)
        self._missed.update(self._unanswered)
        self._missed.pop(site, None)
        self._unanswered.clear()

    def _reached(self, now: datetime) -> None:
        self._reached_at = now
        self._unconnected.clear()

    def _is_network_up(self, now: datetime) -> bool:
        """Whether a site was reached lately and at most one could not be reached since."""
        is_lately = self._reached_at is not None and self._reached_at > now - _LATELY
        return is_lately and len(self._unconnected) < 2


MOST_BYTES_A_VISIT = 400_000_000
"""Uncompressed: twenty answers of the largest size, or thousands of ordinary ones."""
_TRY_OTHERWISE = (Missing, Unreadable, Refused, ServerTrouble, AddressRefused)
_compressors = threading.local()

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
                "{subject}: one visit downloaded more than {most:,} bytes",
                "request fewer or smaller pages",
                subject=self.subject,
                most=MOST_BYTES_A_VISIT,
            )
        return Exchange(platform, request, answer, hashlib.sha256(answer.body).digest())

    def read(self, exchange: Exchange) -> Reading:
        """Parses the answer. One that cannot be parsed is kept for a corrected parser."""
        try:
            with self.reading(len(exchange.answer.body)):
                cost_limits.check_size(exchange.answer.body)
                return exchange.platform.read(exchange.answer, exchange.request)
        except Unreadable as error:
            self._keep_unread(exchange)
            if exchange.request.fallback is not None:
                # Sent instead of this one, whose answer is not what was hoped for.
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
                cost_limits.check_size(body)
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
        return Counter((attempt.outcome, attempt.at.replace(second=0, microsecond=0)) for attempt in untold)

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
            reader_version=exchange.platform.PARSER_VERSION,
            is_read=is_read,
            body_hash=exchange.body_hash,
            body=_compressed(exchange.answer.body),
        )


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
