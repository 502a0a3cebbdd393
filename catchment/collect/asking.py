"""Asking a platform on behalf of one source: the request sent, the answer read, and both kept."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, Protocol

import zstandard

from catchment import pace
from catchment.clock import Clock
from catchment.errors import AddressRefused, Missing, Refused, ServerTrouble, Unreadable
from catchment.fetch import Attempt, Fetch, keepable_headers
from catchment.hot import Hot
from catchment.logs import HIDDEN, is_secret_parameter, redact
from catchment.model import Answer, Ask, Identity, Kind, Platform, Progress, Reading, Record, Request, Source
from catchment.pace import Wish
from catchment.store import Store
from catchment.store.visits import RawAnswer
from catchment.tiers import Tiers

_TRY_OTHERWISE = (Missing, Unreadable, Refused, ServerTrouble, AddressRefused)
_compressors = threading.local()

Keep = Callable[[datetime, RawAnswer], None]
"""Keeps an answer of that time which could not be read."""


class Rules(Record, frozen=True):
    """The settings that a visit obeys, as values."""

    intervals: Mapping[str, int]
    tiers: Tiers
    keyed: frozenset[str] = frozenset()
    """The platforms whose pool has a credential, usable or not."""
    failures_before_probation: int = 5
    text_limit: int = 1_000_000
    keeps_raw: bool = True
    wish: Wish = Wish()
    """What the operator wants to be read beside the newest of a community."""

    def asks(self, kind: Kind, source: Source, progress: Progress) -> tuple[Ask, ...]:
        """The walks of a visit to this source: what its tier says goes before what is wanted of all communities."""
        tier = self.tiers.named(progress.tier) if kind.is_tiered else None
        wish = Wish(tier.sort, tier.time_filter, tier.limit) if tier else self.wish
        return pace.asks(kind, source, progress, wish, has_key=self.has_key(source))

    def has_key(self, source: Source) -> bool:
        """Whether there is a credential to ask with: the source's own, or one in the pool."""
        return source.credential is not None or source.platform in self.keyed

    def minutes(self, kind: str) -> int:
        return self.intervals.get(kind, pace.UNKNOWN_KIND_MINUTES)


class Means(Protocol):
    """What a visit needs of the process that makes it."""

    store: Store
    clock: Clock
    fetch: Fetch
    rules: Rules
    hot: Hot
    thinking: Lock
    """Held by whoever reads or refines."""

    def answered(self, answer: Answer) -> None: ...


class Came(Record, frozen=True):
    """An answer, and the request that got it."""

    platform: Platform
    request: Request
    answer: Answer
    body_hash: bytes

    @property
    def at(self) -> datetime:
        return self.answer.answered_at


class Asking:
    """One source's questions to its platform. Safe for threads: details are asked for side by side."""

    def __init__(self, by: Means, source: Source, keep: Keep) -> None:
        self._by, self._source, self._keep = by, source, keep
        self.subject = subject_of(source)
        self._attempts: list[Attempt] = []
        self._attempts_told = 0

    @property
    def requests(self) -> int:
        """How many exchanges were begun so far."""
        return len(self._attempts)

    def ask(self, request: Request, platform: Platform) -> Came:
        """The answer, and the request that got it: `otherwise` takes over from one that leads nowhere."""
        if request.identity is not Identity.NONE and request.credential is None:
            request = request.plus(credential=self._source.credential)
        try:
            answer = self._by.fetch(request, platform, subject=self.subject, attempts=self._attempts)
        except _TRY_OTHERWISE:
            if request.otherwise is None:
                raise
            return self.ask(request.otherwise, platform)
        self._by.answered(answer)
        return Came(platform, request, answer, hashlib.sha256(answer.body).digest())

    def read(self, came: Came) -> Reading:
        """What the answer says. One that cannot be read is kept for a mended reader."""
        try:
            with self._by.thinking:
                return came.platform.read(came.answer, came.request)
        except Unreadable as error:
            self._keep_unread(came)
            if came.request.otherwise is not None:
                # Asked in the place of this one; the answer it would have had is not what was hoped for.
                return Reading(follow=(came.request.otherwise,))
            raise type(error)(f"{self.subject}: {error.what}", error.helps, status=came.answer.status) from error
        except Exception:
            # A slip of the reader's is the usual way in which it learns that it is behind: the answer is kept for it.
            self._keep_unread(came)
            raise

    def raw(self, came: Came) -> tuple[RawAnswer, ...]:
        """The answer as it is kept beside what it said; none, where it may not be."""
        return (self._raw(came, is_read=True),) if self._keeps(came.request) else ()

    def untold_attempts(self) -> dict[tuple[str, datetime], int]:
        """By outcome and minute, those that were made since the last time this was asked."""
        untold = self._attempts[self._attempts_told :]
        self._attempts_told += len(untold)
        return Counter((one.outcome, one.at.replace(second=0, microsecond=0)) for one in untold)

    def _keep_unread(self, came: Came) -> None:
        if self._keeps(came.request) and came.answer.body:
            self._keep(came.at, self._raw(came, is_read=False))

    def _keeps(self, request: Request) -> bool:
        return self._by.rules.keeps_raw and request.is_keepable

    def _raw(self, came: Came, *, is_read: bool) -> RawAnswer:
        return RawAnswer(
            step=came.request.step,
            request=_shown_request(came.request),
            url=redact(came.answer.url),
            http_status=came.answer.status,
            headers=keepable_headers(came.answer.headers),
            reader_version=came.platform.READER_VERSION,
            is_read=is_read,
            body_hash=came.body_hash,
            body=_compressed(came.answer.body),
        )


def subject_of(source: Source) -> str:
    """Whom an error is about, in words."""
    return f"{source.name} (source {source.id})" if source.id else source.name


def _shown_request(request: Request) -> dict[str, Any]:
    """What a mended reader needs to read the answer again; without headers, which may carry an identity."""
    return {
        "method": request.method,
        "url": redact(request.url),
        "params": {
            name: HIDDEN if is_secret_parameter(name, value) else redact(value)
            for name, value in request.params.items()
        },
        "listing": request.listing,
        "carried": request.carried,
        "asks_for": request.asks_for,
    }


def _compressed(body: bytes) -> bytes:
    compressor = getattr(_compressors, "zstd", None)
    if compressor is None:
        compressor = _compressors.zstd = zstandard.ZstdCompressor(level=1)
    packed: bytes = compressor.compress(body)
    return packed
