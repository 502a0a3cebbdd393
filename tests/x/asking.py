"""Sources of X, their first requests, and what an answer to these gives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from catchment.model import Answer, Identity, Progress, Reading, Request, Source, WalkPlan
from catchment.platforms import x

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FEED, LIST, BOOKMARKS = "twitter_feed", "twitter_list", "twitter_bookmarks"


def source_of(kind: str, target: str, **settings: Any) -> Source:
    return Source(1, "key", "x", kind, target, target, NOW, settings=settings)


def first(source: Source, progress: Progress | None = None, *keyed: str) -> Request:
    [request] = x.first(source, progress or Progress(), WalkPlan("tweets", 100, keyed=frozenset(keyed)))
    assert request.identity is Identity.NEEDED
    return request


def read(body: bytes, source: Source) -> Reading:
    request = first(source, Progress(cursor={"user_id": "783214"}))
    answer = Answer(200, {}, body, request.url, NOW)
    assert x.refusal(answer, request) is None
    return x.read(answer, request)
