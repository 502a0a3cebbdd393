"""Second looks: items that are asked for again by id, so that edits, removals and growth are seen after they left the
listing. What an answer says is written like any page; the source's progress, watermark and validators stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from threading import Event
from typing import cast

import structlog

from catchment import pace
from catchment.collect.asking import Asking, Means
from catchment.collect.deciding import calmed, counted, points
from catchment.collect.details import Batch, Details
from catchment.errors import (
    CatchmentError,
    CredentialsExhausted,
    Gone,
    Missing,
    PlatformError,
    SlowDown,
    Stopped,
    StoreError,
)
from catchment.hot import keeps_hot
from catchment.judge import judge
from catchment.logs import redact
from catchment.model import (
    Counts,
    Deed,
    Item,
    Judged,
    Known,
    Lease,
    Look,
    Outcome,
    Platform,
    Progress,
    RefinedItem,
    Request,
    Result,
    Source,
    Verdict,
)
from catchment.platforms import Platforms
from catchment.refine import FINGERPRINT_RULE, clean_id, refine
from catchment.store import Presence
from catchment.store.looks import DueLook
from catchment.store.visits import Conclusion, Found, Key, NextLook, Page, RawAnswer
from catchment.store.writing import key_of

log = structlog.get_logger(__name__)

MOST_A_RUN = 300
"""Of each platform: collecting comes first, and shares the budget."""
SURELY_GONE = timedelta(hours=1)
"""So far apart two looks must answer "gone" before it is believed."""

LookAgain = Callable[[Sequence[Look]], list[Request]]


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def after_seeing(look: DueLook, ages: Sequence[timedelta], at: datetime) -> NextLook:
    return NextLook(look.item_id, pace.next_look(ages, look.created_at, at), look.look_count + 1)


def is_surely_gone(look: DueLook, at: datetime) -> bool:
    return look.gone_since is not None and at - look.gone_since >= SURELY_GONE


def after_missing(look: DueLook, ages: Sequence[timedelta], at: datetime) -> NextLook:
    """The platform says that it is gone: believed when it says so again, an hour later."""
    since = look.gone_since or at
    at_next = pace.next_look(ages, look.created_at, at) if is_surely_gone(look, at) else since + SURELY_GONE
    return NextLook(look.item_id, at_next, look.look_count + 1, gone_since=since)


def after_failing(look: DueLook, at: datetime) -> NextLook:
    failures = look.failure_count + 1
    return NextLook(look.item_id, pace.look_put_off(failures, at), look.look_count, failures, look.gone_since)


class LookDeciding:
    """Implements the store's `Deciding` for the answers to some looks: it judges items, and proves nothing."""

    def __init__(self, looks: tuple[NextLook, ...], at: datetime) -> None:
        self._looks, self._at = looks, at

    def recognise(self, strangers: Sequence[RefinedItem], held: Sequence[Known]) -> Mapping[str, Known]:
        return {}

    def judge(self, known: Known | None, item: RefinedItem) -> Verdict:
        if known is None:
            return Verdict(Deed.SAME)
        if item.is_gone:
            reasons = ("marked_deleted_by_source",)
            return Verdict(Deed.SAME) if known.is_deleted else Verdict(Deed.EDITED, reasons, is_content_kept=True)
        # That a listing of ids has shown it since says nothing about its content: only what told of it may be newer.
        return judge(known.plus(applied_at=known.told_at or known.applied_at), item, self._at)

    def conclude(self, found: Found) -> Conclusion:
        # What was forgotten meanwhile stays forgotten.
        held = tuple(_as_held(one, one.known) for one in found.judged if one.known)
        judged = calmed(found.plus(judged=held), self._at)
        counts = counted([one.verdict for one in judged], 0)
        return Conclusion(judged, counts, points=points(judged, found, self._at), looks=self._looks)

    def in_rhythm(self, progress: Progress, newest_first: Sequence[datetime]) -> Progress:
        return progress


def _as_held(one: Judged, known: Known) -> Judged:
    """Of what is gone nothing is told but that: its other marks stay as they are."""
    if not one.item.is_gone:
        return one
    told = ("is_folded", "is_pinned", "is_digest", "is_adult")
    marks = {name: getattr(known, name) for name in told}
    return one.plus(item=one.item.plus(item=one.item.item.plus(**marks)))


# ── doing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Looking:
    """Looks again at what is due, platform by platform, for one process."""

    def __init__(self, by: Means, platforms: Platforms, presence: Presence, stop: Event) -> None:
        self._by, self._platforms, self._presence, self._stop = by, platforms, presence, stop
        self._store, self._clock = by.store, by.clock

    def run(self, job: str, started_by: str) -> list[Result]:
        """Everything that is due, as far as one run goes. Silent, and without a trace, if nothing is."""
        able = [one for one in self._platforms if hasattr(one, "look_again")]
        if self._stop.is_set() or not self._store.looks.is_any_due([one.NAME for one in able], self._clock.now()):
            return []
        run_id = self._store.runs.begin(job, started_by, self._presence.owner_id, self._clock.now())
        try:
            return [result for platform in able for result in self._look_at(platform, run_id)]
        finally:
            self._store.runs.finish(run_id, self._clock.now(), is_cut_off=self._stop.is_set())

    def _look_at(self, platform: Platform, run_id: int) -> list[Result]:
        with self._claimed(platform) as lease:
            if lease is None:
                return []
            due = self._store.looks.due(lease, platform.NAME, self._clock.now(), MOST_A_RUN)
            results: list[Result] = []
            for looks in _by_source(due):
                if self._stop.is_set():
                    break
                look = _SourceLooks(self._by, platform, self._ages(looks[0].source), lease, run_id, looks)
                results.append(look.look())
                self._by.hot.refresh(looks[0].source.id, self._platforms.kind(looks[0].source.kind))
                if look.is_told_to_wait:
                    break
            return results

    def _ages(self, source: Source) -> tuple[timedelta, ...]:
        kind = self._platforms.kind(source.kind)
        return kind.look_after if kind else ()

    @contextmanager
    def _claimed(self, platform: Platform) -> Iterator[Lease | None]:
        lease = self._store.looks.claim(platform.NAME, self._presence.owner_id, self._clock.now())
        try:
            yield lease
        finally:
            if lease is not None:
                self._release(lease)

    def _release(self, lease: Lease) -> None:
        try:
            self._store.looks.release(lease)
        except StoreError:
            self._presence.owe(lease)


def _by_source(due: Sequence[DueLook]) -> list[list[DueLook]]:
    """Together what one source is asked for: it has its own credential, and its own line in the run's record."""
    groups: dict[int, list[DueLook]] = {}
    for one in due:
        groups.setdefault(one.source.id, []).append(one)
    return list(groups.values())


class _SourceLooks:
    """The looks at what one source has shown."""

    def __init__(
        self,
        by: Means,
        platform: Platform,
        ages: tuple[timedelta, ...],
        lease: Lease,
        run_id: int,
        looks: Sequence[DueLook],
    ) -> None:
        self._by, self._platform, self._ages, self._lease, self._run_id = by, platform, ages, lease, run_id
        self._source = looks[0].source
        self._waiting = {one.key: one for one in looks}
        self._asking = Asking(by, self._source, self._keep)
        self._counts, self._began = Counts(), by.clock.now()
        self.is_told_to_wait = False

    def look(self) -> Result:
        """All of them, whatever happens: what could not be asked for is put off, and never lost."""
        broke: CatchmentError | None = None
        asked = len(self._waiting)
        try:
            self._look()
        except CatchmentError as error:
            broke = error
        except Exception as error:  # a bug of ours, or the platform's module, met by one source
            log.error("a second look failed inside", source=self._source.id, exc_info=error)
            broke = CatchmentError(f"an error inside catchment ({type(error).__name__})")
        is_wait = isinstance(broke, SlowDown | CredentialsExhausted) and self._is_one_site
        self.is_told_to_wait = isinstance(broke, Stopped) or is_wait
        if self._waiting and not self.is_told_to_wait:
            now = self._by.clock.now()
            self._by.store.looks.put_off(self._lease, [after_failing(one, now) for one in self._waiting.values()])
        result = self._result(asked, broke)
        self._by.store.looks.note(self._lease, self._run_id, self._source, result, self._asking.untold_attempts())
        return result

    @property
    def _is_one_site(self) -> bool:
        """Whether all sources of the platform are asked at the same place. Where each has its own, one that wants to be
        left alone must not keep the others waiting, now or the next time."""
        return bool(self._platform.HOSTS)

    def _look(self) -> None:
        look_again = cast(LookAgain, getattr(self._platform, "look_again"))  # noqa: B009 — optional, so not of the protocol
        has_key = self._by.rules.has_key(self._source)
        requests = look_again(
            [Look(one.external_id, one.scope, one.url, self._source, has_key) for one in self._waiting.values()]
        )
        with closing(Details(self._asking, self._platform, requests).batches()) as batches:
            for batch in batches:
                self._write(batch)
                if batch.broke is not None:
                    raise batch.broke

    def _write(self, batch: Batch) -> None:
        reading, at = batch.reading, batch.at or self._by.clock.now()
        scope = self._source.key if self._platform.IS_SCOPED else ""
        with self._by.thinking:
            refined = refine(reading, scope=scope, answer_url=self._source.target, text_limit=self._by.rules.text_limit)
        items = [one for one in refined.items if key_of(one) in self._waiting]
        seen = [self._waiting.pop(key_of(one)) for one in items]
        missing = [self._waiting.pop(key) for key in self._missing(batch, scope) if key in self._waiting]
        gone = [_gone(one) for one in missing if is_surely_gone(one, at)]
        page = Page(
            source=self._source,
            lease=self._lease,
            run_id=self._run_id,
            answered_at=at,
            items=(*items, *gone),
            fingerprint_rule=FINGERPRINT_RULE,
            may_have_new_ids=False,
            suspects_staleness=False,
            raws=batch.raws(self._asking),
            outcomes=self._asking.untold_attempts(),
            is_kept_hot=keeps_hot(self._platform),
        )
        looks = (
            *(after_seeing(one, self._ages, at) for one in seen),
            *(after_missing(one, self._ages, at) for one in missing),
        )
        self._counts += self._by.store.pages.write(page, LookDeciding(looks, at)).counts

    def _missing(self, batch: Batch, scope: str) -> list[Key]:
        """The ids of which the platform says that there is no such item: in the answer, or by 404 or 410 for it."""
        told = [one for detail in batch.details for one in detail.reading.gone]
        missing = [one.request.asks_for for one in batch.details if isinstance(one.error, Missing | Gone)]
        by_status = [one for one in missing if one is not None]
        return [(scope, clean_id(one)) for one in (*told, *by_status)]

    def _result(self, asked: int, broke: CatchmentError | None) -> Result:
        left = len(self._waiting)
        notes = [f"second looks at {asked} items"] + ([f"{left} of them are put off"] if left else [])
        result = Result(
            self._source.id,
            self._source.name,
            self._source.kind,
            Outcome.SUCCEEDED,
            self._counts,
            self._asking.requests,
            started_at=self._began,
            finished_at=self._by.clock.now(),
            notes=tuple(notes),
        )
        if broke is None:
            return result
        return result.plus(
            outcome=Outcome.SKIPPED if isinstance(broke, Stopped) else Outcome.FAILED,
            error_code=broke.code,
            error=redact(str(broke)),
            is_retryable=broke.retryable,
            http_status=broke.status if isinstance(broke, PlatformError) else None,
        )

    def _keep(self, at: datetime, raw: RawAnswer) -> None:
        self._by.store.pages.keep_raw(self._source, self._lease, self._run_id, at, raw)


def _gone(look: DueLook) -> RefinedItem:
    return RefinedItem(Item(look.external_id, scope=look.scope, is_deleted=True), b"", is_gone=True)
