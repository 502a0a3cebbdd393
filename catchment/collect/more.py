"""More about items that a listing showed to be new or changed: their replies, most likely.

What is to be asked was noted down with the page that showed the change, so that a kill loses none of it. When its walks
are over, a visit asks for some of it; the rest stays owed, and the visits to come ask for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import islice

from catchment.collect.deciding import calmed, counted, points
from catchment.collect.details import A_BATCH, Batch, Detail, Details
from catchment.collect.leaving import Leaving
from catchment.errors import SlowDown
from catchment.judge import judge
from catchment.model import Known, Platform, Progress, Reading, RefinedItem, Request, Verdict
from catchment.refine import FINGERPRINT_RULE, refine
from catchment.store.visits import Conclusion, Found, Owed, Page

MOST_A_VISIT = 30
"""Requests: half of what Reddit allows in a minute. One lively community must not keep the others waiting."""
MOST_ABOUT_ONE = 100
"""Requests: a thread of some ten thousand replies. One that leads on and on is given up there, and it is said."""


def after_answer(owed: Owed, detail: Detail) -> tuple[Owed, int]:
    """How it stands once one of its requests was asked, and how many of them are given up.

    What failed for a moment, or broke off, is asked for again; what cannot be had at all is let go.
    """
    asked, left = owed.asked_count + 1, owed.requests
    if not _is_to_come(detail):
        follow = (one.plus(if_changed=owed.external_id) for one in detail.reading.follow)
        left = tuple(one for one in (*left, *follow) if one != detail.request)
    kept = left[: max(0, MOST_ABOUT_ONE - asked)]
    return owed.plus(requests=kept, asked_count=asked), len(left) - len(kept)


def _is_to_come(detail: Detail) -> bool:
    return detail.reading.is_unfinished or detail.reading.is_torn


class MoreDeciding:
    """Implements the store's `Deciding` for answers about single items: it judges items, and proves nothing."""

    def __init__(self, settled: tuple[Owed, ...], skipped: int, at: datetime) -> None:
        self._settled, self._skipped, self._at = settled, skipped, at

    def recognise(self, strangers: Sequence[RefinedItem], held: Sequence[Known]) -> Mapping[str, Known]:
        return {}

    def judge(self, known: Known | None, item: RefinedItem) -> Verdict:
        return judge(known, item, self._at)

    def conclude(self, found: Found) -> Conclusion:
        judged = calmed(found, self._at)
        counts = counted([one.verdict for one in judged], self._skipped)
        # No second looks at what came along with an item: it is seen again whenever that item is asked about again.
        return Conclusion(judged, counts, points=points(judged, found, self._at), settled=self._settled)

    def in_rhythm(self, progress: Progress, newest_first: Sequence[datetime]) -> Progress:
        return progress


class More:
    """The last part of a visit: what is owed about items, as far as one visit goes."""

    def __init__(self, visit: Leaving, platform: Platform) -> None:
        self._visit, self._platform = visit, platform
        self._owed: dict[str, Owed] = {}
        self._put_off: set[str] = set()
        """About whom nothing more is asked in this visit."""
        self._shortfall: Counter[str] = Counter()

    def ask(self) -> None:
        source, owing = self._visit.source, self._visit.store.owing
        self._owed = {one.external_id: _named(one) for one in owing.of_source(source.id, MOST_A_VISIT)}
        left = MOST_A_VISIT
        while left and self._visit.told_to_wait is None and (few := self._next(min(left, A_BATCH))):
            left -= len(few)
            self._bring(few)
        self._say(owing.count(source.id))

    def _next(self, most: int) -> list[Request]:
        waiting = (one for one in self._owed.values() if one.external_id not in self._put_off)
        return list(islice((request for one in waiting for request in one.requests), most))

    def _bring(self, requests: Sequence[Request]) -> None:
        """Ask for these, and write what came."""
        with closing(Details(self._visit.asking, self._platform, requests).batches()) as batches:
            for batch in batches:
                if batch.details:
                    self._write(batch)
                if isinstance(batch.broke, SlowDown):
                    # Nothing is lost by waiting, and the source itself is well: it is no failure of the visit.
                    self._visit.told_to_wait = batch.broke
                elif batch.broke is not None:
                    raise batch.broke

    def _write(self, batch: Batch) -> None:
        visit, at = self._visit, batch.at or self._visit.clock.now()
        with visit.thinking:
            refined = refine(
                Reading(batch.items, skipped=tuple(one for detail in batch.details for one in detail.reading.skipped)),
                scope=visit.source.key if self._platform.IS_SCOPED else "",
                answer_url=visit.source.target,
                text_limit=visit.rules.text_limit,
            )
        page = Page(
            source=visit.source,
            lease=visit.lease,
            run_id=visit.run_id,
            answered_at=at,
            items=refined.items,
            fingerprint_rule=FINGERPRINT_RULE,
            may_have_new_ids=False,
            suspects_staleness=False,
            raws=batch.raws(visit.asking),
            outcomes=visit.asking.untold_attempts(),
        )
        deciding = MoreDeciding(self._settled(batch), len(refined.skipped), at)
        conclusion = visit.store.pages.write(page, deciding)
        visit.result = visit.result.plus(counts=visit.result.counts + conclusion.counts)

    def _settled(self, batch: Batch) -> tuple[Owed, ...]:
        """How those stand that the batch is about."""
        about: dict[str, Owed] = {}
        for one in batch.details:
            key = one.request.if_changed or ""
            self._owed[key], given_up = after_answer(self._owed[key], one)
            about[key] = self._owed[key]
            if given_up:
                self._shortfall["it leads on and on"] += given_up
            if one.error is not None and not _is_to_come(one):
                self._shortfall[one.error.code] += 1
            if _is_to_come(one):
                self._put_off.add(key)
            self._visit.note(*one.reading.notes)
        return tuple(about.values())

    def _say(self, owed: int) -> None:
        if owed:
            self._visit.note(f"more about {owed} items is still to be asked for")
        if self._shortfall:
            why = ", ".join(f"{reason} ({count})" for reason, count in sorted(self._shortfall.items()))
            self._visit.note(f"of what was asked about items, this could not be had: {why}")


def _named(owed: Owed) -> Owed:
    """With each request saying whom it is about; those that a platform proposed to follow need not."""
    return owed.plus(requests=tuple(one.plus(if_changed=owed.external_id) for one in owed.requests))
