"""Reparses kept answers with the current parser, without sending any request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from threading import Event

import zstandard

from catchment import logs
from catchment.collect.source_client import text_limit_of
from catchment.errors import Unreadable
from catchment.model import (
    Answer,
    Lease,
    Page,
    Platform,
    Reading,
    Record,
    Request,
    Source,
    scope_of,
)
from catchment.platforms import Platforms
from catchment.policy.reparse import decide_reparse
from catchment.store import Store
from catchment.store.items.reparse import KeptAnswer, ReparseCounts, ReparseFilter, StoredAnswer
from catchment.text.clean import FINGERPRINT_RULE, refine

log = logs.logger(__name__)

_UNCLAIMED = Lease("", 0, 0, 0)


class Reparsed(Record, frozen=True):
    """The result of reparsing."""

    answers: int = 0
    """How many answers were examined."""
    unreadable: int = 0
    """How many of these the current parser cannot parse; they are kept for a better one."""
    done: ReparseCounts = ReparseCounts()
    is_cut_off: bool = False


class Reparsing:
    """Goes through the kept answers in order of their time, one transaction each: it can be killed at any point."""

    def __init__(
        self, store: Store, platforms: Platforms, text_limit: int, stop: Event, now: datetime, *, is_dry: bool
    ) -> None:
        self._store, self._platforms, self._text_limit, self._stop = store, platforms, text_limit, stop
        self._now, self._is_dry = now, is_dry
        self._sources: dict[int, Source] = {}
        # In a dry run, every answer that shows an unknown item would count it once more.
        self._told_new: set[tuple[str, str, str]] = set()

    def filter(
        self, source_id: int | None = None, kind: str | None = None, since: datetime | None = None, again: bool = False
    ) -> ReparseFilter:
        return ReparseFilter(
            {platform.NAME: platform.PARSER_VERSION for platform in self._platforms}, source_id, kind, since, again
        )

    def run(self, filter: ReparseFilter, seen: Callable[[Reparsed], None] = lambda _: None) -> Reparsed:
        so_far = Reparsed()
        for kept in self._waiting(filter):
            if self._stop.is_set():
                return so_far.replace(is_cut_off=True)
            so_far = self._reparse(kept, so_far)
            seen(so_far)
        return so_far

    def _waiting(self, filter: ReparseFilter) -> Iterator[StoredAnswer]:
        after = None
        while batch := self._store.reparses.waiting(filter, after):
            yield from batch
            after = batch[-1].answered_at, batch[-1].id

    def _reparse(self, kept: StoredAnswer, so_far: Reparsed) -> Reparsed:
        answer = self._store.reparses.answer(kept.id)
        if answer is None:
            return so_far
        source = self._source(kept.source_id)
        platform = self._platforms.by_name[source.platform]
        so_far = so_far.replace(answers=so_far.answers + 1)
        try:
            reading = platform.read(*_asked_and_answered(answer, kept.answered_at))
        except Exception as error:  # noqa: BLE001 — one answer that breaks the parser must not stop the others
            return self._unreadable(kept, platform, error, so_far)
        return so_far.replace(done=so_far.done + self._apply(kept, source, platform, reading, answer.url))

    def _unreadable(self, kept: StoredAnswer, platform: Platform, error: Exception, so_far: Reparsed) -> Reparsed:
        why = str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
        log.warning("stored answer could not be parsed", answer=kept.id, source=kept.source_id, why=why)
        if not self._is_dry:
            # What an older parser made of it stays; the next parser tries it again, or this one if it was never parsed.
            self._store.reparses.read(kept.id, platform.PARSER_VERSION, is_read=kept.is_read)
        return so_far.replace(unreadable=so_far.unreadable + 1)

    def _apply(
        self, kept: StoredAnswer, source: Source, platform: Platform, reading: Reading, url: str
    ) -> ReparseCounts:
        scope = scope_of(platform, source)
        page = Page(
            source,
            _UNCLAIMED,
            kept.run_id,
            kept.answered_at,
            refine(reading, scope=scope, answer_url=url, text_limit=text_limit_of(platform, self._text_limit)).items,
            FINGERPRINT_RULE,
            may_have_new_ids=platform.IS_SCOPED,
        )
        kind = self._platforms.kind(source.kind)
        decide = partial(
            decide_reparse,
            page.items,
            kept.answered_at,
            is_read=kept.is_read,
            is_stale=kept.is_stale,
            recheck_ages=kind.recheck_ages if kind else (),
            now=self._now,
        )
        mended, new = self._store.reparses.apply(kept, page, platform.PARSER_VERSION, decide, is_dry=self._is_dry)
        if not self._is_dry:
            return mended
        never_told = {(platform.NAME, *row) for row in new} - self._told_new
        self._told_new |= never_told
        return mended.replace(new=len(never_told))

    def _source(self, source_id: int) -> Source:
        if source_id not in self._sources:
            self._sources[source_id] = self._store.sources.get(source_id, even_removed=True)
        return self._sources[source_id]


def _asked_and_answered(kept: KeptAnswer, answered_at: datetime) -> tuple[Answer, Request]:
    asked = kept.request
    request = Request(
        asked.get("url", kept.url),
        method=asked.get("method", "GET"),
        params=asked.get("params", {}),
        step=kept.step,
        service=asked.get("service", ""),
        listing=asked.get("listing", ""),
        state=asked.get("state", {}),
        item_id=asked.get("item_id"),
    )
    body = zstandard.ZstdDecompressor().decompress(kept.body)
    return Answer(kept.http_status, kept.headers, body, kept.url, answered_at), request
