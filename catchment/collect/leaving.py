"""What the walks of a visit share, and the ways in which a visit ends without a page."""

from __future__ import annotations

from datetime import datetime, timedelta

from catchment import pace, tiers
from catchment.collect.asking import Asking, Means, subject_of
from catchment.collect.deciding import FINAL, polled
from catchment.errors import (
    CatchmentError,
    CredentialsExhausted,
    Gone,
    LeaseLost,
    LoginNeeded,
    PlatformError,
    SlowDown,
    Stopped,
    VaultError,
)
from catchment.fetch import cache_seconds, may_share, validators
from catchment.logs import redact
from catchment.model import Answer, Counts, Outcome, Progress, Reading, Result, Source
from catchment.refine import clean_text
from catchment.store.sources import Claimed
from catchment.store.visits import Closing, Ending, RawAnswer
from catchment.tiers import Tiers

# A permanent redirect is believed after so many visits: hotel networks redirect everything, once.
REDIRECTS_BELIEVED = 3


class Leaving:
    """A visit, as its walks find and leave it: whose it is, what is known, what it has come to."""

    def __init__(self, by: Means, claimed: Claimed, run_id: int) -> None:
        self.store, self.clock, self.rules, self.thinking = by.store, by.clock, by.rules, by.thinking
        self.source, self.progress, self.lease, self.run_id = claimed.source, claimed.progress, claimed.lease, run_id
        self.minutes = by.rules.minutes(claimed.source.kind)
        self.subject = subject_of(claimed.source)
        self.asking = Asking(by, claimed.source, self._keep)
        self.look_after: tuple[timedelta, ...] = ()
        """The ages at which what it shows is asked for again."""
        self.tiers: Tiers | None = None
        """Where a source of this kind is judged by how lively it is."""
        self.hint: int | None = None
        """The seconds for which the source asks to be left alone."""
        self.moved_to: str | None = None
        self.new_name: str | None = None
        self.is_final = False
        """The source says that it will never change again."""
        self.notes: tuple[str, ...] = ()
        self.is_owing = claimed.is_owing
        """Something is still to be asked for about items that it showed."""
        self.told_to_wait: SlowDown | None = None
        self.is_over = False
        self.unwritten: Closing | None = None
        self._is_proven = False
        mark = self.progress.watermark
        self.result = Result(
            claimed.source.id,
            claimed.source.name,
            claimed.source.kind,
            Outcome.FAILED,
            started_at=by.clock.now(),
            watermark_before=mark.at if mark else None,
            watermark_after=mark.at if mark else None,
        )

    def _keep(self, at: datetime, raw: RawAnswer) -> None:
        self.store.pages.keep_raw(self.source, self.lease, self.run_id, at, raw)

    def note(self, *words: str) -> None:
        """Say so in the visit's record."""
        self.notes = (*self.notes, *words)

    def prove(self, progress: Progress) -> None:
        """A walk is over, and another one follows: whatever becomes of that, this much is known."""
        self.progress, self._is_proven = progress, True
        mark = progress.watermark
        self.result = self.result.plus(watermark_after=mark.at if mark else None)

    # ── ends without a page ───────────────────────────────────────────────────────────────────────────────────────

    def unchanged(self, answer: Answer | None, *, is_last_walk: bool = True) -> None:
        """304, or the very bytes of last time: a walk is over before it began."""
        now = self.clock.now()
        shown = self.progress.last_shown_count or 0
        self.result = self.result.plus(
            # The bytes came again: what they show was shown again. A 304 shows nothing.
            counts=Counts(duplicate=shown) if answer is not None and answer.status != 304 else Counts(),
            http_status=answer.status if answer else None,
        )
        # What the feed itself asked for (its ttl) stands in the bytes that are not sent, or not read, again.
        self.hint = longest(cache_seconds(answer.headers, now) if answer else None, pace.asked_for(self.progress))
        self.moved_to = self.moved_for_good(answer) if answer else None
        if is_last_walk:
            self._end_unchanged(self._as_before(answer, now), now)
        else:
            self.prove(self._as_before(answer, now))

    def _as_before(self, answer: Answer | None, now: datetime) -> Progress:
        progress = self.progress.plus(last_success_at=now, failures_in_a_row=0, stale_count=0)
        if answer is None:
            return progress
        etag, last_modified = validators(answer.headers)
        return self.with_redirect(progress, answer).plus(
            etag=etag or progress.etag, last_modified=last_modified or progress.last_modified
        )

    def _end_unchanged(self, proven: Progress, now: datetime) -> None:
        self._end(
            Ending(
                self.result.plus(outcome=Outcome.UNCHANGED, finished_at=now),
                self._after_success(proven, self.result.counts, now),
                is_recovered=self.progress.last_error is not None,
                new_target=self.moved_to,
            )
        )

    def end_well(self) -> None:
        """All that was wanted was asked for, and is written."""
        now, notes = self.clock.now(), tuple(dict.fromkeys((*self.result.notes, *self.notes)))
        self._end(
            Ending(
                self.result.plus(outcome=Outcome.SUCCEEDED, finished_at=now, notes=notes),
                self._after_success(self.progress, self.result.counts, now),
                is_recovered=self.progress.last_error is not None,
                retire=FINAL if self.is_final else None,
                new_target=self.moved_to,
                new_name=self.new_name,
            )
        )

    def retire_beside(self, twin: Source) -> None:
        """What this source leads to is followed already: storing it once more would be storing it twice."""
        now = self.clock.now()
        words = redact(f"{self.subject}: it leads to what source {twin.id} ({twin.name}) follows already")
        result = self.result.plus(outcome=Outcome.SKIPPED, finished_at=now, error_code="CONFLICT", error=words)
        self._end(Ending(result, polled(self.progress, now), retire=words))

    def skip(self, words: str) -> None:
        now = self.clock.now()
        result = self.result.plus(outcome=Outcome.SKIPPED, finished_at=now, notes=(words,), error=words)
        due = pace.next_due(self._interval(self.progress), None, now)
        progress = polled(self.progress, now).plus(next_due_at=due.at, due_reason=due.reason)
        self._end(Ending(result.plus(error=None), progress))

    def stopped(self, error: Stopped) -> None:
        """Cut off by a stop: nothing is charged, and the source is as due as before."""
        now = self.clock.now()
        result = self.result.plus(
            outcome=Outcome.SKIPPED, finished_at=now, error_code=error.code, error=str(error), is_retryable=True
        )
        self._end(Ending(result, self.progress))

    def lost(self, error: LeaseLost) -> None:
        """Somebody else has the source now: writing anything would be writing over them."""
        self.end_with(
            self.result.plus(
                outcome=Outcome.SKIPPED,
                finished_at=self.clock.now(),
                error_code=error.code,
                error=str(error),
                is_retryable=True,
            )
        )

    def fail(self, error: CatchmentError, is_counted: bool) -> None:
        now = self.clock.now()
        # The source itself is well if its newest items were read: no failure beside that may slow it down.
        is_counted = is_counted and not self._is_proven
        # Who fetches says whom it is about; a vault or a store does not know.
        told = str(error) if self.subject in str(error) else f"{self.subject}: {error}"
        words = redact(told)
        failures = self.progress.failures_in_a_row + is_counted
        limit = self.rules.failures_before_probation
        progress = polled(self.progress, now)
        progress = self._judged_by(progress) if self._is_proven else progress
        interval = self._interval(progress)
        if isinstance(error, SlowDown):
            self.told_to_wait = error
        if isinstance(error, SlowDown | CredentialsExhausted):
            due = pace.next_due_when_told_to_wait(interval, error.retry_at, now)
        else:
            retry_at = error.retry_at if isinstance(error, PlatformError) else None
            due = pace.next_due_after_failure(interval, failures, limit, now, retry_at)
        progress = progress.plus(
            failures_in_a_row=failures,
            failure_count=self.progress.failure_count + (not isinstance(error, SlowDown | CredentialsExhausted)),
            # The pages before the one that failed are stored.
            last_new_at=now if self.result.counts.new else self.progress.last_new_at,
            last_error=words,
            last_error_code=error.code,
            next_due_at=due.at,
            due_reason=due.reason,
        )
        result = self.result.plus(
            outcome=Outcome.FAILED,
            finished_at=now,
            http_status=getattr(error, "status", None),
            error_code=error.code,
            error=words,
            is_retryable=error.retryable,
        )
        is_alarming = isinstance(error, LoginNeeded | Gone | VaultError) or (is_counted and failures >= limit)
        self._end(
            Ending(
                result,
                progress,
                alert=words if is_alarming else None,
                retire=words if isinstance(error, Gone) else None,
            )
        )

    def _end(self, ending: Ending) -> None:
        ending = ending.plus(result=ending.result.plus(requests=self.asking.requests))
        closing = Closing(self.source, self.lease, self.run_id, ending, self.asking.untold_attempts())
        if ending.result.outcome == Outcome.UNCHANGED:
            # Nothing was learnt that a kill could lose: such endings are written many at a time.
            self.unwritten = closing
        elif self.store.pages.end([closing]):
            self.lost(LeaseLost(f"{self.source.name} was taken over by another process meanwhile"))
            return
        self.end_with(ending.result)

    def end_with(self, result: Result) -> None:
        self.is_over, self.result = True, result

    # ── what is known afterwards ──────────────────────────────────────────────────────────────────────────────────

    def _after_success(self, proven: Progress, counts: Counts, now: datetime) -> Progress:
        progress = self._judged_by(pace.after_success(polled(proven, now), counts))
        due = pace.next_due(self._interval(progress), self.hint, now)
        return progress.plus(last_error=None, last_error_code=None, next_due_at=due.at, due_reason=due.reason)

    def _judged_by(self, progress: Progress) -> Progress:
        """A community is judged by what the visit found; where it broke off, its newest items had been read."""
        return tiers.after_visit(progress, self.result.valid, self.tiers) if self.tiers else progress

    def _interval(self, progress: Progress) -> pace.Interval:
        return pace.interval(self.source, progress, self.minutes)

    def with_redirect(self, progress: Progress, answer: Answer) -> Progress:
        moved_to = self._led_to(answer)
        if moved_to is None:
            return progress if progress.moved_to is None else progress.plus(moved_to=None, moved_count=0)
        is_same = moved_to == self.progress.moved_to
        return progress.plus(moved_to=moved_to, moved_count=self.progress.moved_count + 1 if is_same else 1)

    def moved_for_good(self, answer: Answer) -> str | None:
        moved_to = self._led_to(answer)
        if moved_to is None or moved_to != self.progress.moved_to:
            return None
        return moved_to if self.progress.moved_count + 1 >= REDIRECTS_BELIEVED else None

    def _led_to(self, answer: Answer) -> str | None:
        """The address that takes the place of the source's own, if that is one: of a name (r/webdev), only its platform
        knows where it is."""
        return self.followable(answer.moved_to) if "://" in self.source.target else None

    def followable(self, address: str | None) -> str | None:
        """An address that may become the source's own. Where the source has a credential, none of another host, which
        would be sent it from then on, and none with the secret itself in it, which would be stored."""
        if address is None or self.source.credential is None:
            return address
        return address if may_share(self.source.target, address) and redact(address) == address else None

    def own_name(self, reading: Reading) -> str | None:
        name = " ".join(clean_text(reading.title or "").split())[:200]
        return name if name and name != self.source.name else None


def longest(*seconds: int | None) -> int | None:
    return max((one for one in seconds if one is not None), default=None)
