"""Bring one source up to date: ask, read, refine, write; page by page, until it is caught up."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from threading import Lock

import structlog

from catchment import pace
from catchment.clock import Clock
from catchment.collect.asking import Came, Rules
from catchment.collect.deciding import MOST_PAGES, PageDeciding, Visiting
from catchment.collect.details import A_BATCH, Batch, Details
from catchment.collect.leaving import Leaving, longest
from catchment.collect.reachability import Reachability, host_of
from catchment.continuity import Walk
from catchment.errors import CatchmentError, LeaseLost, PlatformError, Stopped, Unreadable
from catchment.fetch import Fetch, cache_seconds
from catchment.model import Answer, Kind, Platform, Reading, Record, Refined, Request, Result, Source
from catchment.platforms import Platforms, listing_of
from catchment.refine import FINGERPRINT_RULE, listed, listed_ids, mark_of, refine, sorted_out
from catchment.store import Store
from catchment.store.pages import Forgotten
from catchment.store.sources import Claimed
from catchment.store.visits import Closing, Conclusion, Page, RawAnswer

log = structlog.get_logger(__name__)

_CONDITIONS = frozenset(("If-None-Match", "If-Modified-Since"))
# Fewer unreadable items than that say nothing about the reader.
_FEW = 3


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


class _Visit(Leaving):
    """One visit: what it has come to so far."""

    def __init__(self, by: Visitor, claimed: Claimed, run_id: int) -> None:
        super().__init__(by, claimed, run_id)
        self._thinking = by.thinking
        self._pages = 0
        self._new_target: str | None = None
        self._moved_to: str | None = None
        self._new_name: str | None = None
        self._hint: int | None = None
        self._after = claimed.progress
        self._notes: tuple[str, ...] = ()
        self._is_unfinished = self._is_cut = False
        self._shortfall: Counter[str] = Counter()
        """Of what was listed and asked for, what did not come, by reason."""
        self._unreadable = 0

    # ── the good way ──────────────────────────────────────────────────────────────────────────────────────────────

    def collect(self, platform: Platform, kind: Kind) -> Result:
        ask = pace.ask(kind, self._source, self._progress)
        # Only who can be asked by id is asked again.
        self._look_after = kind.look_after if hasattr(platform, "look_again") else ()
        self._limit, self._walk = ask.limit, Walk(listing_of(kind, ask.listing), self._progress.watermark)
        waiting = deque(platform.first(self._source, self._progress, ask))
        answers = 0
        while waiting:
            if answers == MOST_PAGES:
                what = f"{self._subject}: it leads on and on without showing anything"
                raise Unreadable(what, "look at it in a browser")
            came = self._asking.ask(waiting.popleft(), platform)
            answers += 1
            if self._pages == 0 and self._is_unchanged(came):
                return self._unchanged(came.answer)
            reading = self._asking.read(came)
            if self._only_points_on(reading):
                waiting.extend(reading.follow)
                continue
            if (twin := self._twin(reading)) is not None:
                return self._retire_beside(twin)
            deciding = self._write_page(came, reading, is_last=not waiting)
            if deciding is None:
                return self._result
            waiting.extend(deciding.following if deciding.wanted() else ())
            if deciding.details and self._fill_in(deciding.details, came, is_last=not waiting):
                return self._result
        return self._unchanged(None)

    def _is_unchanged(self, came: Came) -> bool:
        if came.answer.status == 304 and not _CONDITIONS.isdisjoint(came.request.headers):
            # Unasked, it says nothing: taken at its word, a source that was never read would look well for ever.
            return True
        is_same_reader = self._progress.reader_version == came.platform.READER_VERSION
        return is_same_reader and came.body_hash == self._progress.body_hash

    def _only_points_on(self, reading: Reading) -> bool:
        """A page that only points on (a site's page, which names its feed): there is nothing to write yet."""
        is_empty = not reading.items and not reading.skipped and not listed_ids(reading)
        return self._pages == 0 and is_empty and bool(reading.follow)

    def _twin(self, reading: Reading) -> Source | None:
        """Another source that follows already what this one leads to."""
        self._new_target = self._followable(reading.target) or self._new_target
        if self._new_target is None:
            return None
        twin = self._store.sources.of_target(self._source.kind, self._new_target)
        return twin if twin is not None and twin.id != self._source.id else None

    def _write_page(self, came: Came, reading: Reading, *, is_last: bool) -> PageDeciding | None:
        """Write what one answer showed; gives what was decided about it, or None if the visit is over."""
        self._pages += 1
        marks: tuple[bytes, ...] = ()
        if self._pages == 1:
            # What will be known once the visit is whole. Until then nothing of it counts: with the validators of a
            # first page stored, a visit that broke off on the second would look like "nothing changed" the next time.
            self._after = self._progress_after(came, reading)
            if self._walk.listing.is_window:
                marks = tuple(mark_of(item) for item in reading.items)
                self._after = self._after.plus(shown_marks=None if reading.is_torn else b"".join(marks))
        self._hint = longest(reading.hints.min_interval_seconds, cache_seconds(came.answer.headers, came.at))
        self._moved_to = self._new_target or self._moved_for_good(came.answer)
        self._new_name = self._own_name(reading)
        self._result = self._result.plus(http_status=came.answer.status)
        visiting = self._visiting(reading, came.at, is_last=is_last).plus(marks=marks)
        return self._write(came, reading, came.at, self._asking.raw(came), visiting)

    def _fill_in(self, requests: Sequence[Request], came: Came, *, is_last: bool) -> bool:
        """Ask for what was listed and is not held, and write it in batches; gives whether the visit is over."""
        # The pages that are left bound it: what is beyond them is owed, and the next visit asks for it.
        most = A_BATCH * max(1, MOST_PAGES - self._pages)
        if len(requests) > most:
            self._is_cut = True
            self._notes = (*self._notes, f"{len(requests) - most} items that were listed are left to the next visit")
        is_over = False
        with closing(Details(self._asking, came.platform, requests[:most]).batches()) as batches:
            for batch in batches:
                self._shortfall += Counter(one.reason for one in batch.reading.skipped)
                self._unreadable += batch.unreadable
                broke = batch.broke or self._none_is_readable(requests, batch)
                if batch.details:
                    is_over = self._write_batch(batch, came, is_last=is_last and not batch.left and broke is None)
                if broke is not None:
                    raise broke
        return is_over

    def _write_batch(self, batch: Batch, came: Came, *, is_last: bool) -> bool:
        self._pages += 1
        reading, at = batch.reading, batch.at or came.at
        visiting = self._visiting(reading, at, is_last=is_last).plus(last_answer_at=batch.last_at)
        return self._write(came, reading, at, batch.raws(self._asking), visiting) is None

    def _none_is_readable(self, requests: Sequence[Request], batch: Batch) -> CatchmentError | None:
        """One item that cannot be read is the item's fault; if none can, our reader is behind."""
        if batch.left or not self._unreadable == len(requests) >= _FEW:
            return None
        what = f"{self._subject}: none of {len(requests)} items could be read"
        return Unreadable(what, "the platform may have changed its form")

    def _visiting(self, reading: Reading, at: datetime, *, is_last: bool) -> Visiting:
        self._is_unfinished = self._is_unfinished or reading.is_unfinished
        self._notes = (*self._notes, *reading.notes)
        return Visiting(
            source=self._source,
            progress=self._after,
            polled=self._polled(at),
            walk=self._walk,
            kind_minutes=self._minutes,
            limit=self._limit,
            page_number=self._pages,
            is_queue_empty=is_last,
            hint_seconds=self._hint,
            before=self._result.plus(
                requests=self._asking.requests,
                notes=tuple(dict.fromkeys((*self._notes, *_said(self._shortfall)))),
            ),
            new_target=self._moved_to,
            new_name=self._new_name,
            look_after=self._look_after,
            is_unfinished=self._is_unfinished,
            is_cut=self._is_cut,
        )

    def _write(
        self, came: Came, reading: Reading, at: datetime, raws: tuple[RawAnswer, ...], visiting: Visiting
    ) -> PageDeciding | None:
        """Write a page; gives what was decided about it, or None if the visit is over."""
        outcomes = self._asking.untold_attempts()

        def written(last_time: bytes | None) -> tuple[Conclusion, PageDeciding]:
            refined = self._refined(came, reading, visiting, last_time)
            deciding = PageDeciding(visiting, reading, len(refined.skipped), at)
            page = Page(
                source=self._source,
                lease=self._lease,
                run_id=self._run_id,
                answered_at=at,
                items=refined.items,
                fingerprint_rule=FINGERPRINT_RULE,
                may_have_new_ids=came.platform.IS_SCOPED and visiting.walk.watermark is not None,
                suspects_staleness=deciding.suspects_staleness(refined.items),
                raws=raws,
                outcomes=outcomes,
            )
            return self._store.pages.write(page, deciding), deciding

        try:
            conclusion, deciding = written(self._progress.shown_marks if visiting.page_number == 1 else None)
        except Forgotten:
            conclusion, deciding = written(None)
        self._walk = deciding.walk
        if conclusion.ending is not None:
            self._result = conclusion.ending.result
            return None
        self._result = visiting.before.plus(counts=visiting.before.counts + conclusion.counts)
        return deciding

    def _refined(self, came: Came, reading: Reading, visiting: Visiting, last_time: bytes | None) -> Refined:
        """The reading, refined; what came to the letter as it came last time is not refined again."""
        scope = self._source.key if came.platform.IS_SCOPED else ""
        with self._thinking:
            same = sorted_out(reading, visiting.marks, last_time, scope) if last_time else []
            ids = {one.item.external_id for one in same}
            rest = tuple(item for item in reading.items if item.external_id not in ids) if same else reading.items
            refined = refine(
                reading.plus(items=rest) if same else reading,
                scope=scope,
                answer_url=came.answer.url,
                text_limit=self._rules.text_limit,
            )
            ids_alone = listed(reading, scope)
        return refined.plus(items=(*refined.items, *same, *ids_alone)) if same or ids_alone else refined


def _said(shortfall: Mapping[str, int]) -> tuple[str, ...]:
    """What could not be had of what was listed, in words."""
    if not shortfall:
        return ()
    why = ", ".join(f"{reason} ({count})" for reason, count in sorted(shortfall.items()))
    return (f"{sum(shortfall.values())} of the items that were listed could not be had: {why}",)
