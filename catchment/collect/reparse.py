"""Read kept answers again with the present reader, without asking anybody again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from threading import Event

import structlog
import zstandard

from catchment.collect.mending import ReadingAgain
from catchment.errors import Unreadable
from catchment.model import Answer, Lease, Platform, Reading, Record, Request, Source
from catchment.pace import next_look
from catchment.platforms import Platforms
from catchment.refine import FINGERPRINT_RULE, refine
from catchment.store import Store
from catchment.store.mending import Kept, KeptAnswer, Mended, Wanted
from catchment.store.visits import Key, Page
from catchment.store.writing import key_of

log = structlog.get_logger(__name__)

_UNCLAIMED = Lease("", 0, 0, 0)


class Reparsed(Record, frozen=True):
    """What reading again came to."""

    answers: int = 0
    """How many were looked at."""
    unreadable: int = 0
    """Of these, the present reader cannot read; they are kept for a better one."""
    done: Mended = Mended()
    is_cut_off: bool = False


class Reparsing:
    """Goes through the kept answers in order of their time, one transaction each: kill it anywhere."""

    def __init__(
        self, store: Store, platforms: Platforms, text_limit: int, stop: Event, now: datetime, *, is_dry: bool
    ) -> None:
        self._store, self._platforms, self._text_limit, self._stop = store, platforms, text_limit, stop
        self._now, self._is_dry = now, is_dry
        self._sources: dict[int, Source] = {}
        # Where nothing is written, every answer that shows an unknown item would count it once more.
        self._told_new: set[tuple[str, str, str]] = set()

    def wanted(
        self, source_id: int | None = None, kind: str | None = None, since: datetime | None = None, again: bool = False
    ) -> Wanted:
        return Wanted({one.NAME: one.READER_VERSION for one in self._platforms}, source_id, kind, since, again)

    def run(self, wanted: Wanted, seen: Callable[[Reparsed], None] = lambda _: None) -> Reparsed:
        so_far = Reparsed()
        for kept in self._waiting(wanted):
            if self._stop.is_set():
                return so_far.plus(is_cut_off=True)
            so_far = self._one(kept, so_far)
            seen(so_far)
        return so_far

    def _waiting(self, wanted: Wanted) -> Iterator[Kept]:
        after = None
        while batch := self._store.mending.waiting(wanted, after):
            yield from batch
            after = batch[-1].answered_at, batch[-1].id

    def _one(self, kept: Kept, so_far: Reparsed) -> Reparsed:
        answer = self._store.mending.answer(kept.id)
        if answer is None:
            return so_far
        source = self._source(kept.source_id)
        platform = self._platforms.by_name[source.platform]
        so_far = so_far.plus(answers=so_far.answers + 1)
        try:
            reading = platform.read(*_asked_and_answered(answer, kept.answered_at))
        except Exception as error:  # noqa: BLE001 — one answer that the reader stumbles over must not keep the others
            return self._unreadable(kept, platform, error, so_far)
        return so_far.plus(done=so_far.done + self._apply(kept, source, platform, reading, answer.url))

    def _unreadable(self, kept: Kept, platform: Platform, error: Exception, so_far: Reparsed) -> Reparsed:
        why = str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
        log.warning("a kept answer cannot be read", answer=kept.id, source=kept.source_id, why=why)
        if not self._is_dry:
            # What an older reader made of it stands; it is tried again by the next reader, or if it was never read.
            self._store.mending.read(kept.id, platform.READER_VERSION, is_read=kept.is_read)
        return so_far.plus(unreadable=so_far.unreadable + 1)

    def _apply(self, kept: Kept, source: Source, platform: Platform, reading: Reading, url: str) -> Mended:
        scope = source.key if platform.IS_SCOPED else ""
        page = Page(
            source=source,
            lease=_UNCLAIMED,
            run_id=kept.run_id,
            answered_at=kept.answered_at,
            items=refine(reading, scope=scope, answer_url=url, text_limit=self._text_limit).items,
            fingerprint_rule=FINGERPRINT_RULE,
            may_have_new_ids=platform.IS_SCOPED,
            suspects_staleness=False,
        )
        again = ReadingAgain(kept)
        mended, new = self._store.mending.apply(
            kept,
            page,
            platform.READER_VERSION,
            again,
            again.correct,
            first_looks=self._first_looks(source, page),
            is_dry=self._is_dry,
        )
        if not self._is_dry:
            return mended
        never_told = {(platform.NAME, *one) for one in new} - self._told_new
        self._told_new |= never_told
        return mended.plus(new=len(never_told))

    def _first_looks(self, source: Source, page: Page) -> dict[Key, datetime]:
        """When what is new is looked at again: at the first of its ages that is still to come. A visit would have seen
        to those that are over."""
        kind = self._platforms.kind(source.kind)
        if kind is None or not kind.look_after:
            return {}
        born = {key_of(one): min(one.item.created_at or page.answered_at, page.answered_at) for one in page.items}
        planned = {key: next_look(kind.look_after, at, self._now) for key, at in born.items()}
        return {key: at for key, at in planned.items() if at is not None}

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
        listing=asked.get("listing", ""),
        carried=asked.get("carried", {}),
        asks_for=asked.get("asks_for"),
    )
    body = zstandard.ZstdDecompressor().decompress(kept.body)
    return Answer(kept.http_status, kept.headers, body, kept.url, answered_at), request
