"""Walk: pages down one listing of a source until it is caught up. Request, read, clean, write the page, next."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from typing import TypedDict

import msgspec

from catchment.cache import has_cached_kinds
from catchment.collect.detail_fetch import A_BATCH, DetailBatch, Details
from catchment.collect.shown_entries import ReadPage, read_page
from catchment.collect.source_client import CollectContext, Exchange, SourcePages
from catchment.decoders import json_decoder
from catchment.errors import LeaseLost, SlowDown, SpendingCapReached, Unreadable
from catchment.fetch.responses import cache_seconds, clock_lag, validators
from catchment.fetch.urls import may_share
from catchment.logs import redact
from catchment.messages import about, message
from catchment.model import (
    NONE_REPEATED,
    FinishedVisit,
    Kind,
    Listing,
    ListNote,
    Outcome,
    Page,
    PageFacts,
    Platform,
    Reading,
    Record,
    Request,
    WalkPlan,
    scope_of,
)
from catchment.platforms import listing_of
from catchment.policy.page import (
    StaleEntryMark,
    VisitPage,
    decide_page,
    decide_spending_cap_end,
    ends_without_money,
    needs_rhythm,
    suspects_staleness,
)
from catchment.policy.visit import (
    MOST_PAGES,
    AnswerHead,
    UnfinishedWalk,
    VisitRules,
    VisitState,
    after_answer,
    after_details,
    after_error,
    after_unchanged,
    begin,
    begin_walk,
    continue_walk,
    continues,
    is_same_answer,
    pause,
    retire_as_twin,
    unfinished,
    with_cursor,
)
from catchment.store.sources.sources import Claimed
from catchment.text.clean import (
    clean_text,
    listed,
    listed_ids,
)
from catchment.text.printable import one_line

_UNFINISHED = json_decoder(UnfinishedWalk)
_CONDITIONS = frozenset(("If-None-Match", "If-Modified-Since"))
# Fewer unreadable items than this say nothing about the parser.
_FEW = 3


class Visit:
    """A visit under way: its lease and client, and its state, which every step replaces."""

    def __init__(self, context: CollectContext, rules: VisitRules, claimed: Claimed, run_id: int) -> None:
        self.store, self.clock, self.rules = context.store, context.clock, rules
        self.source, self.lease, self.run_id = claimed.source, claimed.lease, run_id
        kind = context.platforms.kind(claimed.source.kind)
        self.pages = SourcePages(context, rules, claimed.source, kind, run_id, claimed.lease)
        self.client = self.pages.client
        self.state = begin(
            claimed.source,
            claimed.progress,
            rules,
            context.site(claimed.source),
            context.clock.now(),
            has_follow_ups=claimed.has_follow_ups,
        )
        self.wait: SlowDown | None = None
        """Somebody asked us to wait."""
        self.unwritten: FinishedVisit | None = None
        self.board: ListNote | None = None
        """The window of a board, once its list is read."""
        self.is_continuing = False
        """The walk continues where an earlier visit was cut short, and no page of it was written yet."""
        self.is_paid = claimed.source.platform in context.platforms.paid
        """Its platform charges for what it answers."""

    def counted(self) -> VisitState:
        """Returns the state with the number of requests so far."""
        return self.state.replace(result=self.state.result.replace(requests=self.client.requests))

    def finish(self, state: VisitState) -> None:
        """Goes on with this state; writes the end of the visit, if it has one."""
        self.state = state
        if state.end is None:
            return
        attempts = self.client.new_attempts()
        finished = FinishedVisit(self.source, self.lease, self.run_id, state.end, attempts, self.board)
        if state.result.outcome == Outcome.UNCHANGED:
            # Nothing was learnt that a kill could lose: such ends are written many at a time.
            self.unwritten = finished
        elif self.store.page_writer.end([finished]):
            self.lose(LeaseLost("another process has taken over {source}", source=self.source.name))

    def lose(self, error: LeaseLost) -> None:
        """Ends without writing: another process holds the lease now, and its data would be overwritten."""
        self.state = after_error(self.counted(), error, str(error), None, self.clock.now())


class PlannedWalk(Record, frozen=True):
    """What a walk requests, and its position among the walks of the visit."""

    plan: WalkPlan
    requests: tuple[Request, ...]
    is_beside: bool
    is_last: bool
    until: datetime | None = None
    """From then on, the visit ends with the next page, and the next one continues there; None: it takes as long as it
    takes."""


def walk(visit: Visit, platform: Platform, kind: Kind, planned: PlannedWalk) -> None:
    """Requests pages until no more are wanted. Every page is written with the progress that it proves."""
    visit.state = begin_walk(visit.state, planned.plan.limit, is_beside=planned.is_beside, is_last=planned.is_last)
    is_resumable = visit.is_paid or planned.until is not None
    waiting = deque(_continued(visit, platform, planned) if is_resumable else planned.requests)
    for _ in range(MOST_PAGES):
        try:
            exchange = visit.client.send(waiting.popleft(), platform)
        except SpendingCapReached as error:
            if not ends_without_money(visit.state):
                raise
            _end_without_money(visit, error)
            return
        head = answer_head(visit, exchange)
        if _is_not_modified(visit.state, exchange) or is_same_answer(visit.state, head):
            visit.finish(after_unchanged(visit.counted(), head, visit.clock.now()))
            return
        # Other visits wait for this one's page only now: a server may take its time to answer.
        with visit.store.page_writer.group.member(), visit.client.room_for(exchange):
            listing = listing_of(kind, exchange.request.listing or planned.plan.listing)
            read = _read_page(visit, exchange, listing)
            reading = read.reading
            if _only_leads_on(visit.state, reading):
                if reading.cursor is not None:
                    # Stored permanently, however the walk ends: a user's number is paid for once.
                    visit.state = with_cursor(visit.state, reading.cursor)
                waiting.extend(reading.follow)
                continue
            if _is_twin(visit, reading):
                return
            is_time_over = planned.until is not None and visit.clock.now() >= planned.until
            page = _write_page(visit, exchange, head, read, listing, waiting, is_paused=is_time_over)
        waiting.extend(page.next_pages if not page.is_walk_over else ())
        if page.details:
            page = _write_details(visit, exchange, page.details, is_queue_empty=not waiting)
        if page.is_walk_over or not waiting:
            return
        if is_time_over:
            visit.finish(pause(visit.counted(), visit.clock.now()))
            return
    raise Unreadable(
        "{subject}: several pages in a row contain no items",
        "check it in a browser",
        subject=visit.client.subject,
    )


def _continued(visit: Visit, platform: Platform, planned: PlannedWalk) -> tuple[Request, ...]:
    """Returns the first requests of the walk. Where pages cost money, an interrupted walk continues after its last
    stored page: no stored page is paid for twice."""
    if planned.is_beside:
        return planned.requests
    return continued(visit, platform, planned.plan.listing, planned.requests)


def continued(
    visit: Visit, platform: Platform, listing_name: str, requests: tuple[Request, ...], within: timedelta | None = None
) -> tuple[Request, ...]:
    """Returns the requests with which a stored walk continues, if it is not older than that; else those given."""
    stored = visit.store.unfinished_walks.of_source(visit.source.id)
    if stored is None:
        return requests
    try:
        saved = _UNFINISHED.decode(stored)
    except msgspec.MsgspecError:
        # Of another version.
        return requests
    listing, version, now = requests[0].listing or listing_name, platform.PARSER_VERSION, visit.clock.now()
    is_old = within is not None and now - saved.saved_at > within
    if is_old or not continues(visit.state, saved, listing, requests, version, now):
        return requests
    visit.state, visit.is_continuing = continue_walk(visit.state, saved), True
    return saved.requests


def _end_without_money(visit: Visit, error: SpendingCapReached) -> None:
    at = visit.clock.now()
    decide = partial(decide_spending_cap_end, visit.counted(), error, redact(error.message), at)
    visit.state = visit.pages.write(visit.pages.page(at, is_continuable=True), decide).state


def answer_head(visit: Visit, exchange: Exchange) -> AnswerHead:
    """Returns what an answer says besides its items."""
    answer = exchange.answer
    etag, last_modified = validators(answer.headers)
    return AnswerHead(
        exchange.at,
        answer.status,
        exchange.body_hash,
        exchange.platform.PARSER_VERSION,
        etag,
        last_modified,
        cache_seconds(answer.headers, exchange.at),
        # For a name (r/webdev), only the platform knows where it is.
        _followable(visit, answer.moved_to) if "://" in visit.source.target else None,
    )


def _followable(visit: Visit, address: str | None) -> str | None:
    """Returns the URL if it may become the source's own. If the source has a credential, refuses one of another host,
    which would receive the credential from then on, and one that contains the secret, which would be stored."""
    if address is None or visit.source.credential is None:
        return address
    return address if may_share(visit.source.target, address) and redact(address) == address else None


def _is_not_modified(state: VisitState, exchange: Exchange) -> bool:
    # Only in answer to a conditional request: else a source that was never read would look healthy forever.
    is_conditional = not _CONDITIONS.isdisjoint(exchange.request.headers)
    return exchange.answer.status == 304 and is_conditional and not (state.walk.pages or state.walk.is_beside)


def _only_leads_on(state: VisitState, reading: Reading) -> bool:
    """Whether the page only links to the real source (a site that names its feed): there is nothing to write yet."""
    is_empty = not reading.items and not reading.skipped and not listed_ids(reading)
    return state.walk.pages == 0 and is_empty and bool(reading.follow)


def _is_twin(visit: Visit, reading: Reading) -> bool:
    """Whether another source already covers what this one leads to; then this one is retired."""
    if (target := _followable(visit, reading.target)) is not None:
        visit.state = visit.state.replace(walk=visit.state.walk.replace(new_target=target))
    target = visit.state.walk.new_target
    twin = visit.store.sources.of_target(visit.source.kind, target) if target else None
    if twin is None or twin.id == visit.source.id:
        return False
    what = about(visit.client.subject, message("source.twin", id=twin.id, name=twin.name))
    visit.finish(retire_as_twin(visit.counted(), redact(what), visit.clock.now()))
    return True


def _read_page(visit: Visit, exchange: Exchange, listing: Listing) -> ReadPage:
    """Parses the answer. On the first page of a window, entries that are as last time are left out."""
    is_window = visit.state.walk.pages == 0 and listing.is_window and not visit.state.walk.is_beside
    if not is_window:
        return ReadPage(visit.client.read(exchange))
    body_hash = visit.state.progress.body_hash
    stored = visit.store.shown_entries.of_answer(visit.source.id, body_hash) if body_hash else NONE_REPEATED
    return read_page(visit.client, exchange, stored)


def _write_page(
    visit: Visit,
    exchange: Exchange,
    head: AnswerHead,
    read: ReadPage,
    listing: Listing,
    waiting: Collection[Request],
    *,
    is_paused: bool,
) -> VisitPage:
    name = one_line(clean_text(read.reading.title or ""))[:200]
    state = after_answer(visit.counted(), head, read.reading, listing, name)
    page = visit.pages.page(
        exchange.at,
        raws=visit.client.raw(exchange),
        shown=read.shown(head.body_hash),
        **_page_flags(state, exchange.platform),
    )
    try:
        return _write(visit, state, page, exchange, read, waiting, is_paused=is_paused)
    except StaleEntryMark:
        whole = ReadPage(visit.client.read(exchange))
        return _write(visit, state, page.replace(shown=None), exchange, whole, waiting, is_paused=is_paused)


def _write_details(visit: Visit, exchange: Exchange, requests: Sequence[Request], *, is_queue_empty: bool) -> VisitPage:
    """Requests listed items that are not stored, and writes them in batches; returns the last of them."""
    # The remaining pages limit it: the next visit requests what is beyond them.
    most = A_BATCH * max(1, MOST_PAGES - visit.state.walk.pages)
    if len(requests) > most:
        left = message("visit.details_left", count=len(requests) - most)
        visit.state = visit.state.replace(walk=visit.state.walk.replace(is_cut=True)).noted(left)
    unreadable = 0
    with closing(Details(visit.client, exchange.platform, requests[:most]).batches()) as batches:
        for batch in batches:
            unreadable += batch.unreadable
            broke = batch.broke
            if not batch.left and unreadable == len(requests) >= _FEW:
                # One unreadable item is the item's fault, all of them are the parser's.
                broke = broke or Unreadable(
                    "{subject}: none of {total} items could be read",
                    "the platform may have changed its format",
                    subject=visit.client.subject,
                    total=len(requests),
                )
            if batch.details:
                is_last = is_queue_empty and not batch.left and broke is None
                page = _write_batch(visit, exchange, batch, is_queue_empty=is_last)
            if broke is not None:
                raise broke
    return page


def _write_batch(visit: Visit, exchange: Exchange, batch: DetailBatch, *, is_queue_empty: bool) -> VisitPage:
    reading, at = batch.reading, batch.at or exchange.at
    state = after_details(visit.counted(), reading)
    page = visit.pages.page(at, raws=batch.raws(visit.client), **_page_flags(state, exchange.platform))
    waiting = () if is_queue_empty else None
    return _write(visit, state, page, exchange, ReadPage(reading), waiting, last_answer_at=batch.last_at)


class PageFlags(TypedDict):
    """Fields of a page that follow from the state of the visit."""

    may_have_new_ids: bool
    item_kind: str | None
    needs_rhythm: bool
    invalidates_cache: bool


def _page_flags(state: VisitState, platform: Platform) -> PageFlags:
    position = state.walk.position
    return {
        "may_have_new_ids": platform.IS_SCOPED and position is not None and position.watermark is not None,
        "item_kind": state.walk.rhythm_kind,
        "needs_rhythm": needs_rhythm(state),
        "invalidates_cache": has_cached_kinds(platform),
    }


def _write(
    visit: Visit,
    state: VisitState,
    page: Page,
    exchange: Exchange,
    read: ReadPage,
    waiting: Collection[Request] | None,
    *,
    last_answer_at: datetime | None = None,
    is_paused: bool = False,
) -> VisitPage:
    """Cleans what was read, writes it, and sets the state after it. `waiting`: requests for further pages; None: there
    are some. `is_paused`: the visit ends with this page, wherever the listing ends."""
    state = state.replace(walk=state.walk.replace(is_queue_empty=waiting is not None and not waiting))
    reading, scope = read.reading, scope_of(exchange.platform, visit.source)
    rest = reading.replace(items=read.rest()) if read.positions else reading
    clean = visit.client.clean(rest, exchange.platform, exchange.answer.url, len(exchange.answer.body))
    items = (*clean.items, *listed(reading, scope))
    at, skipped = page.answered_at, len(clean.skipped)
    lag = clock_lag(exchange.answer.headers, exchange.at)
    decide = partial(
        decide_page,
        *(state, reading, items, skipped, at),
        repeated=read.repeated,
        last_answer_at=last_answer_at,
        clock_lag=lag,
    )
    # What an earlier visit left of another listing stays, unless this walk is left in the middle, too.
    is_continuable = (visit.is_paid or is_paused) and waiting is not None and not state.walk.is_beside

    def decide_and_keep(facts: PageFacts) -> VisitPage:
        decided = decide(facts)
        if not is_continuable or decided.is_walk_over or decided.details:
            return decided
        requests = (*(waiting or ()), *decided.next_pages)
        saved = unfinished(decided.state, requests, exchange.platform.PARSER_VERSION, at)
        return decided.replace(unfinished_walk=msgspec.json.encode(saved))

    written = visit.pages.write(
        page.replace(
            items=items,
            suspects_staleness=suspects_staleness(state, reading, items, at, read.repeated),
            is_continuable=is_continuable,
        ),
        decide_and_keep,
    )
    visit.state, visit.is_continuing = written.state, False
    return written
