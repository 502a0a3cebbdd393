"""The ways in which a visit ends without a page, and what is known after it."""

from __future__ import annotations

from datetime import datetime

from catchment import pace
from catchment.collect.asking import Asking, Came, Means, subject_of
from catchment.errors import CatchmentError, Gone, LeaseLost, LoginNeeded, PlatformError, SlowDown, Stopped
from catchment.fetch import cache_seconds, may_share, validators
from catchment.logs import redact
from catchment.model import Answer, Counts, Outcome, Progress, Reading, Result, Source
from catchment.refine import clean_text
from catchment.store.sources import Claimed
from catchment.store.visits import Closing, Ending, RawAnswer

# A permanent redirect is believed after so many visits: hotel networks redirect everything, once.
REDIRECTS_BELIEVED = 3


class Leaving:
    """A visit, as far as its end is concerned: whose it is, what was known before, what it has come to."""

    def __init__(self, by: Means, claimed: Claimed, run_id: int) -> None:
        self._store, self._clock, self._rules = by.store, by.clock, by.rules
        self._run_id = run_id
        self._source, self._progress, self._lease = claimed.source, claimed.progress, claimed.lease
        self._minutes = by.rules.minutes(claimed.source.kind)
        self._subject = subject_of(claimed.source)
        self._asking = Asking(by, claimed.source, self._keep)
        self.unwritten: Closing | None = None
        mark = self._progress.watermark
        self._result = Result(
            claimed.source.id,
            claimed.source.name,
            claimed.source.kind,
            Outcome.FAILED,
            started_at=by.clock.now(),
            watermark_before=mark.at if mark else None,
            watermark_after=mark.at if mark else None,
        )

    def _keep(self, at: datetime, raw: RawAnswer) -> None:
        self._store.pages.keep_raw(self._source, self._lease, self._run_id, at, raw)

    # ── ends without a page ───────────────────────────────────────────────────────────────────────────────────────

    def _unchanged(self, answer: Answer | None) -> Result:
        """304, or the very bytes of last time."""
        now = self._clock.now()
        # What the feed itself asked for (its ttl) stands in the bytes that are not sent, or not read, again.
        hint = longest(cache_seconds(answer.headers, now) if answer else None, pace.asked_for(self._progress))
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
        now = self._clock.now()
        words = redact(f"{self._subject}: it leads to what source {twin.id} ({twin.name}) follows already")
        result = self._result.plus(outcome=Outcome.SKIPPED, finished_at=now, error_code="CONFLICT", error=words)
        return self._end(Ending(result, self._polled(now), retire=words))

    def skip(self, words: str) -> Result:
        now = self._clock.now()
        result = self._result.plus(outcome=Outcome.SKIPPED, finished_at=now, notes=(words,), error=words)
        due = pace.next_due(self._source, self._minutes, None, now)
        progress = self._polled(now).plus(next_due_at=due.at, due_reason=due.reason)
        return self._end(Ending(result.plus(error=None), progress))

    def stopped(self, error: Stopped) -> Result:
        """Cut off by a stop: nothing is charged, and the source is as due as before."""
        now = self._clock.now()
        result = self._result.plus(
            outcome=Outcome.SKIPPED, finished_at=now, error_code=error.code, error=str(error), is_retryable=True
        )
        return self._end(Ending(result, self._progress))

    def lost(self, error: LeaseLost) -> Result:
        """Somebody else has the source now: writing anything would be writing over them."""
        return self._result.plus(
            outcome=Outcome.SKIPPED,
            finished_at=self._clock.now(),
            error_code=error.code,
            error=str(error),
            is_retryable=True,
        )

    def fail(self, error: CatchmentError, is_counted: bool) -> Result:
        now = self._clock.now()
        # Who fetches says whom it is about; a vault or a store does not know.
        told = str(error) if self._subject in str(error) else f"{self._subject}: {error}"
        words = redact(told)
        failures = self._progress.failures_in_a_row + is_counted
        limit = self._rules.failures_before_probation
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
        ending = ending.plus(result=ending.result.plus(requests=self._asking.requests))
        closing = Closing(self._source, self._lease, self._run_id, ending, self._asking.untold_attempts())
        if ending.result.outcome == Outcome.UNCHANGED:
            # Nothing was learnt that a kill could lose: such endings are written many at a time.
            self.unwritten = closing
        elif self._store.pages.end([closing]):
            return self.lost(LeaseLost(f"{self._source.name} was taken over by another process meanwhile"))
        return ending.result

    # ── what is known afterwards ──────────────────────────────────────────────────────────────────────────────────

    def _polled(self, now: datetime) -> Progress:
        return self._progress.plus(
            first_polled_at=self._progress.first_polled_at or now,
            last_polled_at=now,
            poll_count=self._progress.poll_count + 1,
        )

    def _progress_after(self, came: Came, reading: Reading) -> Progress:
        progress = self._with_redirect(self._polled(came.at), came.answer)
        # Of an answer that broke off nothing is kept that could say "nothing changed" the next time: the rest is owed.
        etag, last_modified = (None, None) if reading.is_torn else validators(came.answer.headers)
        return progress.plus(
            etag=etag,
            last_modified=last_modified,
            body_hash=None if reading.is_torn else came.body_hash,
            reader_version=came.platform.READER_VERSION,
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


def longest(*seconds: int | None) -> int | None:
    return max((one for one in seconds if one is not None), default=None)
