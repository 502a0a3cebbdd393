"""Follow-ups: further requests about items that a listing showed to be new or changed, most often for their replies.

They are stored with the page that showed the change, so that a kill loses none of them. After its walks, a visit sends
some of them; the rest stays pending for later visits.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import partial
from itertools import islice

from catchment.collect.detail_fetch import A_BATCH, Detail, DetailBatch, Details
from catchment.collect.walk import Visit
from catchment.errors import SlowDown
from catchment.messages import counted_reasons, message
from catchment.model import FollowUp, Platform, Reading
from catchment.policy.page import decide_follow_ups

MOST_A_VISIT = 30
"""Requests: half of what Reddit allows in a minute. One busy community must not keep the others waiting."""
MOST_ABOUT_ONE = 100
"""Requests: a thread of some ten thousand replies. Reading a longer one stops there, and the visit's record says so."""


def send_follow_ups(visit: Visit, platform: Platform) -> None:
    """Sends the pending follow-ups of a source, up to the limit of one visit, and writes the answers."""
    pending = {
        follow_up.external_id: _named(follow_up)
        for follow_up in visit.store.follow_ups.of_source(visit.source.id, MOST_A_VISIT)
    }
    put_off: set[str] = set()
    """Items about which this visit sends no more requests."""
    shortfall: Counter[str] = Counter()
    left = MOST_A_VISIT
    while left and visit.wait is None:
        waiting = (follow_up for follow_up in pending.values() if follow_up.external_id not in put_off)
        requests = list(
            islice((request for follow_up in waiting for request in follow_up.requests), min(left, A_BATCH))
        )
        if not requests:
            break
        left -= len(requests)
        with closing(Details(visit.client, platform, requests).batches()) as batches:
            for batch in batches:
                if batch.details:
                    _write(visit, platform, batch, _settled(visit, batch, pending, put_off, shortfall))
                if isinstance(batch.broke, SlowDown):
                    # Waiting loses nothing, and the source itself works: this is not a failure of the visit.
                    visit.wait = batch.broke
                elif batch.broke is not None:
                    raise batch.broke
    if still_pending := visit.store.follow_ups.count(visit.source.id):
        visit.state = visit.state.noted(message("visit.follow_ups_pending", count=still_pending))
    if shortfall:
        visit.state = visit.state.noted(message("visit.follow_ups_failed", why=counted_reasons(shortfall)))


def _named(follow_up: FollowUp) -> FollowUp:
    """Returns the follow-up with the item set on each request; those a platform proposed may lack it."""
    requests = (request.replace(about_item=follow_up.external_id) for request in follow_up.requests)
    return follow_up.replace(requests=tuple(requests))


def _settled(
    visit: Visit, batch: DetailBatch, pending: dict[str, FollowUp], put_off: set[str], shortfall: Counter[str]
) -> tuple[FollowUp, ...]:
    """Returns the new state of the follow-ups that the batch is about."""
    about: dict[str, FollowUp] = {}
    for detail in batch.details:
        key = detail.request.about_item or ""
        pending[key], given_up = after_answer(pending[key], detail)
        about[key] = pending[key]
        if given_up:
            shortfall[message("visit.too_many_pages")] += given_up
        if _is_to_come(detail):
            put_off.add(key)
        elif detail.error is not None:
            shortfall[detail.error.code] += 1
        visit.state = visit.state.noted(*detail.reading.notes)
    return tuple(about.values())


def after_answer(follow_up: FollowUp, detail: Detail) -> tuple[FollowUp, int]:
    """Returns the follow-up after one of its requests was sent, and how many requests are given up.

    What failed temporarily or was cut off is requested again; what cannot be fetched at all is dropped.
    """
    asked, left = follow_up.asked_count + 1, follow_up.requests
    if not _is_to_come(detail):
        follow = (request.replace(about_item=follow_up.external_id) for request in detail.reading.follow)
        left = tuple(request for request in (*left, *follow) if request != detail.request)
    kept = left[: max(0, MOST_ABOUT_ONE - asked)]
    return follow_up.replace(requests=kept, asked_count=asked), len(left) - len(kept)


def _is_to_come(detail: Detail) -> bool:
    return detail.reading.is_unfinished or detail.reading.is_torn


def _write(visit: Visit, platform: Platform, batch: DetailBatch, follow_ups: tuple[FollowUp, ...]) -> None:
    at = batch.at or visit.clock.now()
    skipped = tuple(skipped for detail in batch.details for skipped in detail.reading.skipped)
    clean = visit.client.clean(Reading(batch.items, skipped=skipped), platform, visit.source.target, batch.size)
    page = visit.pages.page(at, clean.items, raws=batch.raws(visit.client))
    decide = partial(decide_follow_ups, clean.items, len(clean.skipped), follow_ups, at)
    written = visit.pages.write(page, decide)
    result = visit.state.result
    visit.state = visit.state.replace(result=result.replace(counts=result.counts + written.counts))
