"""Bring one source up to date: ask, read, refine, write; page by page, until it is caught up."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Mapping
from datetime import datetime
from threading import Lock
from typing import Any

import structlog
import zstandard

from catchment import continuity, pace
from catchment.clock import Clock
from catchment.collect.deciding import MOST_PAGES, PageDeciding, Visiting
from catchment.collect.reachability import Reachability, host_of
from catchment.continuity import Walk
from catchment.errors import (
    AddressRefused,
    CatchmentError,
    Gone,
    LeaseLost,
    LoginNeeded,
    Missing,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
    Stopped,
    Unreadable,
)
from catchment.fetch import Attempt, Fetch, cache_seconds, keepable_headers, may_share, validators
from catchment.logs import redact
from catchment.model import (
    Answer,
    Counts,
    Identity,
    Kind,
    Outcome,
    Platform,
    Progress,
    Reading,
    Record,
    Refined,
    Request,
    Result,
    Source,
)
from catchment.platforms import Platforms, listing_of
from catchment.refine import FINGERPRINT_RULE, clean_text, mark_of, refine, sorted_out
from catchment.store import Store
from catchment.store.pages import Forgotten
from catchment.store.sources import Claimed
from catchment.store.visits import Closing, Conclusion, Ending, Page, RawAnswer

log = structlog.get_logger(__name__)

# A permanent redirect is believed after so many visits: hotel networks redirect everything, once.
REDIRECTS_BELIEVED = 3
_TRY_OTHERWISE = (Missing, Unreadable, Refused, ServerTrouble, AddressRefused)
_CONDITIONS = frozenset(("If-None-Match", "If-Modified-Since"))
_compressors = threading.local()


class Rules(Record, frozen=True):
    """The settings that a visit obeys, as values."""

    intervals: Mapping[str, int]
    failures_before_probation: int = 5
    text_limit: int = 1_000_000
    keeps_raw: bool = True

    def minutes(self, kind: str) -> int:
        return self.intervals.get(kind, pace.UNKNOWN_KIND_MINUTES)


class Visited(Record, frozen=True):
    """What a visit came to. An ending that is not written yet is for the round to write, with others of its sort."""

    result: Result
    unwritten: Closing | None = None


class Visitor:
    """Visits sources. One for a process; safe for threads."""

    def __init__(self, store: Store, platforms: Platforms, fetch: Fetch, clock: Clock, rules: Rules) -> None:
        self.store, self.platforms, self.fetch, self.clock, self.rules = store, platforms, fetch, clock, rules
        self._reachability = Reachability()
        self._warned_kinds: set[str] = set()
        # One page is read at a time. Threads are for waiting; where they think side by side, they only quarrel over
        # the interpreter, and the same work costs a fifth more.
        self.thinking = Lock()

    def visit(self, claimed: Claimed, run_id: int) -> Visited:
        """One source, whatever happens to it: its failure is its own, and is written down."""
        visit = _Visit(self, claimed, run_id)
        return Visited(self._visit(visit, claimed), visit.unwritten)

    def _visit(self, visit: _Visit, claimed: Claimed) -> Result:
        platform, kind = self.platforms.of_kind(claimed.source.kind), self.platforms.kind(claimed.source.kind)
        if platform is None or kind is None:
            return visit.skip(self._unknown_kind(claimed.source))
        try:
            return visit.collect(platform, kind)
        except LeaseLost as error:
            return visit.lost(error)
        except Stopped as error:
            return visit.stopped(error)
        except PlatformError as error:
            return visit.fail(error, self._blames_source(claimed.source, error))
        except CatchmentError as error:
            return visit.fail(error, is_counted=True)
        except Exception as error:  # a bug of ours, met by one source, must not stop the others
            log.error("a visit failed inside", source=claimed.source.id, exc_info=error)
            what = f"an error inside catchment ({type(error).__name__})"
            return visit.fail(CatchmentError(what, "the log of this moment tells more"), is_counted=True)

    def _blames_source(self, source: Source, error: PlatformError) -> bool:
        return self._reachability.blames_source(host_of(source.target), source.id, error, self.clock.now())

    def answered(self, answer: Answer) -> None:
        self._reachability.answered(host_of(answer.url), answer.answered_at)

    def _unknown_kind(self, source: Source) -> str:
        words = f"no platform is installed for kind {source.kind!r}"
        if source.kind not in self._warned_kinds:
            self._warned_kinds.add(source.kind)
            log.warning(words, first_source=source.id)
        return words


class _Visit:
    """One visit: what it has come to so far."""

    def __init__(self, visitor: Visitor, claimed: Claimed, run_id: int) -> None:
        self._by, self._run_id = visitor, run_id
        self._source, self._progress, self._lease = claimed.source, claimed.progress, claimed.lease
        self._minutes = visitor.rules.minutes(claimed.source.kind)
        self._subject = f"{claimed.source.name} (source {claimed.source.id})"
        self._attempts: list[Attempt] = []
        self._attempts_told = 0
        self.unwritten: Closing | None = None
        mark = self._progress.watermark
        self._result = Result(
            claimed.source.id,
            claimed.source.name,
            claimed.source.kind,
            Outcome.FAILED,
            started_at=visitor.clock.now(),
            watermark_before=mark.at if mark else None,
            watermark_after=mark.at if mark else None,
        )

    # ── the good way ──────────────────────────────────────────────────────────────────────────────────────────────

    def collect(self, platform: Platform, kind: Kind) -> Result:
        ask = pace.ask(kind, self._source, self._progress)
        waiting = deque(platform.first(self._source, self._progress, ask))
        walk = Walk(listing_of(kind, ask.listing), self._progress.watermark)
        new_target, pages, answers = None, 0, 0
        # What will be known once the visit is whole. Until then nothing of it counts: with the validators of a first
        # page stored, a visit that broke off on the second would look like "nothing changed" the next time.
        progress = self._progress
        while waiting:
            answer, request = self._ask(waiting.popleft(), platform)
            is_first_page = pages == 0
            body_hash = hashlib.sha256(answer.body).digest()
            if is_first_page and self._is_unchanged(answer, request, body_hash, platform):
                return self._unchanged(answer)
            reading = self._read(answer, request, platform, body_hash)
            answers += 1
            if answers > MOST_PAGES:
                raise Unreadable(
                    f"{self._subject}: it leads on and on without showing anything", "look at it in a browser"
                )
            if not reading.items and reading.follow and is_first_page and not reading.skipped:
                # A page that only points on (a site's page, which names its feed): nothing to write yet.
                waiting.extend(reading.follow)
                continue
            pages += 1
            new_target = self._followable(reading.target) or new_target
            twin = self._by.store.sources.of_target(self._source.kind, new_target) if new_target else None
            if twin is not None and twin.id != self._source.id:
                return self._retire_beside(twin)
            marks: tuple[bytes, ...] = ()
            if is_first_page:
                progress = self._progress_after(answer, body_hash, platform, reading)
                if walk.listing.is_window:
                    marks = tuple(mark_of(item) for item in reading.items)
                    progress = progress.plus(shown_marks=None if reading.is_torn else b"".join(marks))
            visiting = Visiting(
                source=self._source,
                progress=progress,
                polled=self._polled(answer.answered_at),
                walk=walk,
                kind_minutes=self._minutes,
                limit=ask.limit,
                page_number=pages,
                is_queue_empty=not waiting,
                hint_seconds=_longest(
                    reading.hints.min_interval_seconds, cache_seconds(answer.headers, answer.answered_at)
                ),
                before=self._result.plus(
                    requests=len(self._attempts),
                    http_status=answer.status,
                    notes=tuple(dict.fromkeys((*self._result.notes, *reading.notes))),
                ),
                new_target=new_target or self._moved_for_good(answer),
                new_name=self._own_name(reading),
                marks=marks,
            )
            deciding = self._write(platform, answer, request, reading, body_hash, visiting)
            if deciding is None:
                return self._result
            walk = deciding.walk
            if deciding.wanted():
                waiting.extend(reading.follow)
        return self._unchanged(None)

    def _ask(self, request: Request, platform: Platform) -> tuple[Answer, Request]:
        """The answer, and the request that got it: `otherwise` takes over from one that leads nowhere."""
        if request.identity is not Identity.NONE and request.credential is None:
            request = request.plus(credential=self._source.credential)
        try:
            answer = self._by.fetch(request, platform, subject=self._subject, attempts=self._attempts)
        except _TRY_OTHERWISE:
            if request.otherwise is None:
                raise
            return self._ask(request.otherwise, platform)
        self._by.answered(answer)
        return answer, request

    def _is_unchanged(self, answer: Answer, request: Request, body_hash: bytes, platform: Platform) -> bool:
        if answer.status == 304 and not _CONDITIONS.isdisjoint(request.headers):
            # Unasked, it says nothing: taken at its word, a source that was never read would look well for ever.
            return True
        return body_hash == self._progress.body_hash and self._progress.reader_version == platform.READER_VERSION

    def _read(self, answer: Answer, request: Request, platform: Platform, body_hash: bytes) -> Reading:
        try:
            with self._by.thinking:
                return platform.read(answer, request)
        except Unreadable as error:
            self._keep_unread(answer, request, platform, body_hash)
            if request.otherwise is not None:
                # Asked in the place of this one; the answer it would have had is not what was hoped for.
                return Reading(follow=(request.otherwise,))
            raise type(error)(f"{self._subject}: {error.what}", error.helps, status=answer.status) from error
        except Exception:
            # A slip of the reader's is the usual way in which it learns that it is behind: the answer is kept for it.
            self._keep_unread(answer, request, platform, body_hash)
            raise

    def _keep_unread(self, answer: Answer, request: Request, platform: Platform, body_hash: bytes) -> None:
        if self._keeps(request) and answer.body:
            raw = self._raw(answer, request, platform, body_hash, is_read=False)
            self._by.store.pages.keep_raw(self._source, self._lease, self._run_id, answer.answered_at, raw)

    def _write(
        self,
        platform: Platform,
        answer: Answer,
        request: Request,
        reading: Reading,
        body_hash: bytes,
        visiting: Visiting,
    ) -> PageDeciding | None:
        """Write the page; gives what was decided about it, or None if the visit is over."""
        outcomes = self._untold_attempts()
        raw = self._raw(answer, request, platform, body_hash) if self._keeps(request) else None

        def written(last_time: bytes | None) -> tuple[Conclusion, PageDeciding]:
            refined = self._refined(platform, answer, reading, visiting, last_time)
            deciding = PageDeciding(visiting, reading, len(refined.skipped), answer.answered_at)
            newest = continuity.newest_shown(refined.items, answer.answered_at)
            before = visiting.progress.newest_shown_at
            page = Page(
                source=self._source,
                lease=self._lease,
                run_id=self._run_id,
                answered_at=answer.answered_at,
                items=refined.items,
                fingerprint_rule=FINGERPRINT_RULE,
                may_have_new_ids=platform.IS_SCOPED and visiting.walk.watermark is not None,
                suspects_staleness=newest is not None and before is not None and newest < before,
                raw=raw,
                outcomes=outcomes,
            )
            return self._by.store.pages.write(page, deciding), deciding

        try:
            conclusion, deciding = written(self._progress.shown_marks if visiting.page_number == 1 else None)
        except Forgotten:
            conclusion, deciding = written(None)
        if conclusion.ending is not None:
            self._result = conclusion.ending.result
            return None
        self._result = visiting.before.plus(counts=visiting.before.counts + conclusion.counts)
        return deciding

    def _refined(
        self, platform: Platform, answer: Answer, reading: Reading, visiting: Visiting, last_time: bytes | None
    ) -> Refined:
        """The reading, refined; what came to the letter as it came last time is not refined again."""
        scope = self._source.key if platform.IS_SCOPED else ""
        with self._by.thinking:
            same = sorted_out(reading, visiting.marks, last_time, scope) if last_time else []
            ids = {one.item.external_id for one in same}
            rest = tuple(item for item in reading.items if item.external_id not in ids) if same else reading.items
            refined = refine(
                reading.plus(items=rest) if same else reading,
                scope=scope,
                answer_url=answer.url,
                text_limit=self._by.rules.text_limit,
            )
        return refined.plus(items=(*refined.items, *same)) if same else refined

    # ── ends without a page ───────────────────────────────────────────────────────────────────────────────────────

    def _unchanged(self, answer: Answer | None) -> Result:
        """304, or the very bytes of last time."""
        now = self._by.clock.now()
        # What the feed itself asked for (its ttl) stands in the bytes that are not sent, or not read, again.
        hint = _longest(cache_seconds(answer.headers, now) if answer else None, pace.asked_for(self._progress))
        due = pace.next_due(self._source, self._minutes, hint, now)
        progress = self._polled(now).plus(
            last_success_at=now,
            failures_in_a_row=0,
            last_error=None,
            last_error_code=None,
            stale_count=0,
            empty_in_a_row=self._progress.empty_in_a_row + 1,
            next_due_at=due.at,
            due_reason=due.reason,
        )
        if answer is not None:
            etag, last_modified = validators(answer.headers)
            progress = self._with_redirect(progress, answer).plus(
                etag=etag or progress.etag, last_modified=last_modified or progress.last_modified
            )
        shown = self._progress.last_shown_count or 0
        result = self._result.plus(
            outcome=Outcome.UNCHANGED,
            # The bytes came again: what they show was shown again. A 304 shows nothing.
            counts=Counts(duplicate=shown) if answer is not None and answer.status != 304 else Counts(),
            finished_at=now,
            http_status=answer.status if answer else None,
        )
        return self._end(
            Ending(
                result,
                progress,
                is_recovered=self._progress.last_error is not None,
                new_target=self._moved_for_good(answer) if answer else None,
            )
        )

    def _retire_beside(self, twin: Source) -> Result:
        """What this source leads to is followed already: storing it once more would be storing it twice."""
        now = self._by.clock.now()
        words = redact(f"{self._subject}: it leads to what source {twin.id} ({twin.name}) follows already")
        result = self._result.plus(outcome=Outcome.SKIPPED, finished_at=now, error_code="CONFLICT", error=words)
        return self._end(Ending(result, self._polled(now), retire=words))

    def skip(self, words: str) -> Result:
        now = self._by.clock.now()
        result = self._result.plus(outcome=Outcome.SKIPPED, finished_at=now, notes=(words,), error=words)
        due = pace.next_due(self._source, self._minutes, None, now)
        progress = self._polled(now).plus(next_due_at=due.at, due_reason=due.reason)
        return self._end(Ending(result.plus(error=None), progress))

    def stopped(self, error: Stopped) -> Result:
        """Cut off by a stop: nothing is charged, and the source is as due as before."""
        now = self._by.clock.now()
        result = self._result.plus(
            outcome=Outcome.SKIPPED, finished_at=now, error_code=error.code, error=str(error), is_retryable=True
        )
        return self._end(Ending(result, self._progress))

    def lost(self, error: LeaseLost) -> Result:
        """Somebody else has the source now: writing anything would be writing over them."""
        return self._result.plus(
            outcome=Outcome.SKIPPED,
            finished_at=self._by.clock.now(),
            error_code=error.code,
            error=str(error),
            is_retryable=True,
        )

    def fail(self, error: CatchmentError, is_counted: bool) -> Result:
        now = self._by.clock.now()
        # Who fetches says whom it is about; a vault or a store does not know.
        told = str(error) if self._subject in str(error) else f"{self._subject}: {error}"
        words = redact(told)
        failures = self._progress.failures_in_a_row + is_counted
        limit = self._by.rules.failures_before_probation
        if isinstance(error, SlowDown):
            due = pace.next_due_when_told_to_wait(self._source, self._minutes, error.retry_at, now)
        else:
            retry_at = error.retry_at if isinstance(error, PlatformError) else None
            due = pace.next_due_after_failure(self._source, self._minutes, failures, limit, now, retry_at)
        progress = self._polled(now).plus(
            failures_in_a_row=failures,
            failure_count=self._progress.failure_count + (not isinstance(error, SlowDown)),
            # The pages before the one that failed are stored.
            last_new_at=now if self._result.counts.new else self._progress.last_new_at,
            last_error=words,
            last_error_code=error.code,
            next_due_at=due.at,
            due_reason=due.reason,
        )
        result = self._result.plus(
            outcome=Outcome.FAILED,
            finished_at=now,
            http_status=getattr(error, "status", None),
            error_code=error.code,
            error=words,
            is_retryable=error.retryable,
        )
        is_alarming = isinstance(error, LoginNeeded | Gone) or (is_counted and failures >= limit)
        return self._end(
            Ending(
                result,
                progress,
                alert=words if is_alarming else None,
                retire=words if isinstance(error, Gone) else None,
            )
        )

    def _end(self, ending: Ending) -> Result:
        ending = ending.plus(result=ending.result.plus(requests=len(self._attempts)))
        closing = Closing(self._source, self._lease, self._run_id, ending, self._untold_attempts())
        if ending.result.outcome == Outcome.UNCHANGED:
            # Nothing was learnt that a kill could lose: such endings are written many at a time.
            self.unwritten = closing
        elif self._by.store.pages.end([closing]):
            return self.lost(LeaseLost(f"{self._source.name} was taken over by another process meanwhile"))
        return ending.result

    # ── what is known afterwards ──────────────────────────────────────────────────────────────────────────────────

    def _polled(self, now: datetime) -> Progress:
        return self._progress.plus(
            first_polled_at=self._progress.first_polled_at or now,
            last_polled_at=now,
            poll_count=self._progress.poll_count + 1,
        )

    def _progress_after(self, answer: Answer, body_hash: bytes, platform: Platform, reading: Reading) -> Progress:
        progress = self._with_redirect(self._polled(answer.answered_at), answer)
        # Of an answer that broke off nothing is kept that could say "nothing changed" the next time: the rest is owed.
        etag, last_modified = (None, None) if reading.is_torn else validators(answer.headers)
        return progress.plus(
            etag=etag,
            last_modified=last_modified,
            body_hash=None if reading.is_torn else body_hash,
            reader_version=platform.READER_VERSION,
            cursor=progress.cursor if reading.cursor is None else reading.cursor,
            # Of this page, like the hash of its bytes: these many are shown again if they come again.
            last_shown_count=len(reading.items) + len(reading.skipped),
        )

    def _with_redirect(self, progress: Progress, answer: Answer) -> Progress:
        moved_to = self._followable(answer.moved_to)
        if moved_to is None:
            return progress if progress.moved_to is None else progress.plus(moved_to=None, moved_count=0)
        is_same = moved_to == self._progress.moved_to
        return progress.plus(moved_to=moved_to, moved_count=self._progress.moved_count + 1 if is_same else 1)

    def _moved_for_good(self, answer: Answer) -> str | None:
        moved_to = self._followable(answer.moved_to)
        if moved_to is None or moved_to != self._progress.moved_to:
            return None
        return moved_to if self._progress.moved_count + 1 >= REDIRECTS_BELIEVED else None

    def _followable(self, address: str | None) -> str | None:
        """An address that may become the source's own. Where the source has a credential, none of another host, which
        would be sent it from then on, and none with the secret itself in it, which would be stored."""
        if address is None or self._source.credential is None:
            return address
        return address if may_share(self._source.target, address) and redact(address) == address else None

    def _own_name(self, reading: Reading) -> str | None:
        name = " ".join(clean_text(reading.title or "").split())[:200]
        return name if name and name != self._source.name else None

    def _keeps(self, request: Request) -> bool:
        return self._by.rules.keeps_raw and request.is_keepable

    def _raw(
        self, answer: Answer, request: Request, platform: Platform, body_hash: bytes, *, is_read: bool = True
    ) -> RawAnswer:
        return RawAnswer(
            step=request.step,
            request=_shown_request(request),
            url=redact(answer.url),
            http_status=answer.status,
            headers=keepable_headers(answer.headers),
            reader_version=platform.READER_VERSION,
            is_read=is_read,
            body_hash=body_hash,
            body=_compressed(answer.body),
        )

    def _untold_attempts(self) -> dict[tuple[str, datetime], int]:
        untold = self._attempts[self._attempts_told :]
        self._attempts_told = len(self._attempts)
        return Counter((one.outcome, one.at.replace(second=0, microsecond=0)) for one in untold)


def _shown_request(request: Request) -> dict[str, Any]:
    """What a mended reader needs to read the answer again; without headers, which may carry an identity."""
    return {
        "method": request.method,
        "url": redact(request.url),
        "params": {name: redact(value) for name, value in request.params.items()},
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


def _longest(*seconds: int | None) -> int | None:
    return max((one for one in seconds if one is not None), default=None)
