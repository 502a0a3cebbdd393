"""One walk of a visit: down one listing, page by page, until it is caught up."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime

from catchment.collect.asking import Came
from catchment.collect.deciding import MOST_PAGES, PageDeciding, Visiting
from catchment.collect.details import A_BATCH, Batch, Details
from catchment.collect.leaving import Leaving, longest
from catchment.continuity import Walk
from catchment.errors import CatchmentError, Unreadable
from catchment.fetch import cache_seconds, validators
from catchment.hot import keeps_hot
from catchment.model import Ask, Kind, Listing, Order, Platform, Progress, Reading, Record, Refined, Request, Source
from catchment.platforms import listing_of
from catchment.refine import FINGERPRINT_RULE, listed, listed_ids, mark_of, refine, sorted_out
from catchment.store.pages import Forgotten
from catchment.store.visits import Conclusion, Page, RawAnswer

_CONDITIONS = frozenset(("If-None-Match", "If-Modified-Since"))
# Fewer unreadable items than that say nothing about the reader.
_FEW = 3


class Plan(Record, frozen=True):
    """What a walk is to ask for, and its place among the walks of the visit."""

    ask: Ask
    requests: tuple[Request, ...]
    is_beside: bool
    """Another one, down the newest listing, goes before it: what this one shows is stored, and proves nothing."""
    is_last: bool


class Walking:
    """One walk: how far down its listing the visit has come."""

    def __init__(self, visit: Leaving, platform: Platform, kind: Kind, plan: Plan) -> None:
        self._visit, self._platform, self._kind, self._plan = visit, platform, kind, plan
        self._waiting = deque(plan.requests)
        self._known = self._after = visit.progress
        self._is_over = False
        self._pages = 0
        self._new_target: str | None = None
        self._is_unfinished = self._is_cut = False
        self._shortfall: Counter[str] = Counter()
        """Of what was listed and asked for, what did not come, by reason."""
        self._unreadable = 0

    def walk(self) -> None:
        """Ask until nothing more is wanted. What it comes to is written, and stands in the visit."""
        answers = 0
        while self._waiting and not (self._is_over or self._visit.is_over):
            if answers == MOST_PAGES:
                what = f"{self._visit.subject}: it leads on and on without showing anything"
                raise Unreadable(what, "look at it in a browser")
            came = self._visit.asking.ask(self._waiting.popleft(), self._platform)
            answers += 1
            if self._is_unchanged(came):
                self._visit.unchanged(came.answer, is_last_walk=self._plan.is_last and not self._visit.is_owing)
                return
            self._take(came, self._visit.asking.read(came))

    def _is_unchanged(self, came: Came) -> bool:
        # The validators are those of the first page of the newest listing.
        if self._pages or self._plan.is_beside:
            return False
        if came.answer.status == 304 and not _CONDITIONS.isdisjoint(came.request.headers):
            # Unasked, it says nothing: taken at its word, a source that was never read would look well for ever.
            return True
        is_same_reader = self._known.reader_version == came.platform.READER_VERSION
        return is_same_reader and came.body_hash == self._known.body_hash

    def _take(self, came: Came, reading: Reading) -> None:
        if self._only_points_on(reading):
            self._waiting.extend(reading.follow)
            return
        if (twin := self._twin(reading)) is not None:
            self._visit.retire_beside(twin)
            return
        deciding = self._write_page(came, reading)
        if self._is_over:
            return
        self._waiting.extend(deciding.following if deciding.wanted() else ())
        if deciding.details:
            self._fill_in(deciding.details, came)

    def _only_points_on(self, reading: Reading) -> bool:
        """A page that only points on (a site's page, which names its feed): there is nothing to write yet."""
        is_empty = not reading.items and not reading.skipped and not listed_ids(reading)
        return self._pages == 0 and is_empty and bool(reading.follow)

    def _twin(self, reading: Reading) -> Source | None:
        """Another source that follows already what this one leads to."""
        visit = self._visit
        self._new_target = visit.followable(reading.target) or self._new_target
        if self._new_target is None:
            return None
        twin = visit.store.sources.of_target(visit.source.kind, self._new_target)
        return twin if twin is not None and twin.id != visit.source.id else None

    # ── a page ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _write_page(self, came: Came, reading: Reading) -> PageDeciding:
        """Write what one answer showed; gives what was decided about it."""
        self._pages += 1
        if self._pages == 1:
            self._begin(came, reading)
        marks: tuple[bytes, ...] = ()
        if self._pages == 1 and self._walk.listing.is_window:
            marks = tuple(mark_of(item) for item in reading.items)
            self._after = self._after.plus(shown_marks=None if reading.is_torn else b"".join(marks))
        if not self._plan.is_beside:
            self._listen(came, reading)
        self._visit.result = self._visit.result.plus(http_status=came.answer.status)
        visiting = self._visiting(reading, is_last=not self._waiting).plus(marks=marks)
        return self._write(came, reading, came.at, self._visit.asking.raw(came), visiting)

    def _begin(self, came: Came, reading: Reading) -> None:
        # By the listing that was really read: a platform may know of another way where it has no key.
        listing = listing_of(self._kind, came.request.listing or self._plan.ask.listing)
        self._walk = Walk(_as_ranked(listing) if self._plan.is_beside else listing, self._known.watermark)
        self._polled_at = came.at
        # What will be known once the walk is whole. Until then nothing of it counts: with the validators of a first
        # page stored, a visit that broke off on the second would look like "nothing changed" the next time.
        self._after = self._known if self._plan.is_beside else self._progress_after(came, reading)

    def _progress_after(self, came: Came, reading: Reading) -> Progress:
        # Of an answer that broke off nothing is kept that could say "nothing changed" the next time: the rest is owed.
        etag, last_modified = (None, None) if reading.is_torn else validators(came.answer.headers)
        return self._visit.with_redirect(self._known, came.answer).plus(
            etag=etag,
            last_modified=last_modified,
            body_hash=None if reading.is_torn else came.body_hash,
            reader_version=came.platform.READER_VERSION,
            shown_marks=None,
            cursor=self._known.cursor if reading.cursor is None else reading.cursor,
            # Of this page, like the hash of its bytes: these many are shown again if they come again.
            last_shown_count=len(reading.items) + len(reading.skipped),
        )

    def _listen(self, came: Came, reading: Reading) -> None:
        """What the source says about itself."""
        visit = self._visit
        visit.hint = longest(reading.hints.min_interval_seconds, cache_seconds(came.answer.headers, came.at))
        visit.moved_to = self._new_target or visit.moved_for_good(came.answer)
        visit.new_name = visit.own_name(reading)
        visit.is_final = reading.hints.is_final

    # ── what was listed by id alone ───────────────────────────────────────────────────────────────────────────────

    def _fill_in(self, requests: Sequence[Request], came: Came) -> None:
        """Ask for what was listed and is not held, and write it in batches."""
        # The pages that are left bound it: what is beyond them is owed, and the next visit asks for it.
        most = A_BATCH * max(1, MOST_PAGES - self._pages)
        if len(requests) > most:
            self._is_cut = True
            self._visit.note(f"{len(requests) - most} items that were listed are left to the next visit")
        is_last = not self._waiting
        with closing(Details(self._visit.asking, came.platform, requests[:most]).batches()) as batches:
            for batch in batches:
                self._shortfall += Counter(one.reason for one in batch.reading.skipped)
                self._unreadable += batch.unreadable
                broke = batch.broke or self._none_is_readable(requests, batch)
                if batch.details:
                    self._write_batch(batch, came, is_last=is_last and not batch.left and broke is None)
                if broke is not None:
                    raise broke

    def _write_batch(self, batch: Batch, came: Came, *, is_last: bool) -> None:
        self._pages += 1
        reading, at = batch.reading, batch.at or came.at
        visiting = self._visiting(reading, is_last=is_last).plus(last_answer_at=batch.last_at)
        self._write(came, reading, at, batch.raws(self._visit.asking), visiting)

    def _none_is_readable(self, requests: Sequence[Request], batch: Batch) -> CatchmentError | None:
        """One item that cannot be read is the item's fault; if none can, our reader is behind."""
        if batch.left or not self._unreadable == len(requests) >= _FEW:
            return None
        what = f"{self._visit.subject}: none of {len(requests)} items could be read"
        return Unreadable(what, "the platform may have changed its form")

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _visiting(self, reading: Reading, *, is_last: bool) -> Visiting:
        visit, plan = self._visit, self._plan
        self._is_unfinished = self._is_unfinished or reading.is_unfinished
        visit.note(*reading.notes)
        return Visiting(
            source=visit.source,
            known=self._known,
            progress=self._after,
            polled_at=self._polled_at,
            walk=self._walk,
            kind_minutes=visit.minutes,
            limit=plan.ask.limit,
            page_number=self._pages,
            is_queue_empty=is_last,
            hint_seconds=visit.hint,
            before=visit.result.plus(
                requests=visit.asking.requests,
                notes=tuple(dict.fromkeys((*visit.notes, *_said(self._shortfall)))),
            ),
            new_target=visit.moved_to,
            new_name=visit.new_name,
            is_final=visit.is_final,
            look_after=visit.look_after,
            item_kind=self._kind.item_kind,
            tiers=visit.tiers,
            is_unfinished=self._is_unfinished,
            is_cut=self._is_cut,
            is_beside=plan.is_beside,
            is_last_walk=plan.is_last,
            is_owing=visit.is_owing,
        )

    def _write(
        self, came: Came, reading: Reading, at: datetime, raws: tuple[RawAnswer, ...], visiting: Visiting
    ) -> PageDeciding:
        visit = self._visit
        outcomes = visit.asking.untold_attempts()

        def written(last_time: bytes | None) -> tuple[Conclusion, PageDeciding]:
            refined = self._refined(came, reading, visiting, last_time)
            deciding = PageDeciding(visiting, reading, len(refined.skipped), at)
            page = Page(
                source=visit.source,
                lease=visit.lease,
                run_id=visit.run_id,
                answered_at=at,
                items=refined.items,
                fingerprint_rule=FINGERPRINT_RULE,
                may_have_new_ids=came.platform.IS_SCOPED and visiting.walk.watermark is not None,
                suspects_staleness=deciding.suspects_staleness(refined.items),
                raws=raws,
                outcomes=outcomes,
                item_kind=self._kind.item_kind if _brings_replies(reading) else None,
                is_kept_hot=keeps_hot(came.platform),
            )
            return visit.store.pages.write(page, deciding), deciding

        try:
            conclusion, deciding = written(self._known.shown_marks if visiting.marks else None)
        except Forgotten:
            conclusion, deciding = written(None)
        self._walk = deciding.walk
        self._conclude(conclusion, visiting)
        return deciding

    def _conclude(self, conclusion: Conclusion, visiting: Visiting) -> None:
        visit = self._visit
        if conclusion.ending is not None:
            self._is_over = True
            visit.end_with(conclusion.ending.result)
            return
        before = visiting.before
        visit.result = before.plus(counts=before.counts + conclusion.counts, valid=before.valid + conclusion.valid)
        visit.is_owing = visit.is_owing or bool(conclusion.more)
        if conclusion.proven is not None:
            self._is_over = True
            visit.note(*_said(self._shortfall))
            visit.prove(conclusion.proven)

    def _refined(self, came: Came, reading: Reading, visiting: Visiting, last_time: bytes | None) -> Refined:
        """The reading, refined; what came to the letter as it came last time is not refined again."""
        scope = self._visit.source.key if came.platform.IS_SCOPED else ""
        with self._visit.thinking:
            same = sorted_out(reading, visiting.marks, last_time, scope) if last_time else []
            ids = {one.item.external_id for one in same}
            rest = tuple(item for item in reading.items if item.external_id not in ids) if same else reading.items
            refined = refine(
                reading.plus(items=rest) if same else reading,
                scope=scope,
                answer_url=came.answer.url,
                text_limit=self._visit.rules.text_limit,
            )
            ids_alone = listed(reading, scope)
        return refined.plus(items=(*refined.items, *same, *ids_alone)) if same or ids_alone else refined


def _brings_replies(reading: Reading) -> bool:
    return any(one.if_changed is not None for one in reading.follow)


def _as_ranked(listing: Listing) -> Listing:
    """Beside the newest listing, any other is read as a ranked one: its limit ends it, and it proves nothing."""
    return listing.plus(order=Order.RANKED, is_window=False)


def _said(shortfall: Mapping[str, int]) -> tuple[str, ...]:
    """What could not be had of what was listed, in words."""
    if not shortfall:
        return ()
    why = ", ".join(f"{reason} ({count})" for reason, count in sorted(shortfall.items()))
    return (f"{sum(shortfall.values())} of the items that were listed could not be had: {why}",)
