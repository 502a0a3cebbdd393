"""A source as the outside sees it: what it is, how it stands, when it is due, and why then."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from catchment.model import Progress, Source, SourceState
from catchment.pace import UNKNOWN_KIND_MINUTES, interval


def shown_source(source: Source, progress: Progress, intervals: Mapping[str, int]) -> dict[str, Any]:
    """One shape for the command line, the API and the pages."""
    minutes = interval_of(source, progress, intervals)
    return {
        "id": source.id,
        "kind": source.kind,
        "platform": source.platform,
        "target": source.target,
        "name": source.name,
        "state": str(source.state),
        "state_reason": source.state_reason,
        "is_active": source.state == SourceState.ACTIVE,
        "settings": source.settings,
        "credential": source.credential,
        "interval_minutes": source.interval_minutes,
        "fetch_interval_minutes": minutes,
        "categories": list(source.categories),
        "priority": source.priority,
        "quality_score": source.quality_score,
        "created_at": source.created_at.isoformat(),
        "last_fetched_at": _iso(progress.last_polled_at),
        "last_success_at": _iso(progress.last_success_at),
        "last_new_at": _iso(progress.last_new_at),
        "next_fetch_at": _iso(next_fetch_at(source, progress, minutes)),
        "next_fetch_reason": _why(source, progress),
        "note": progress.note,
        "fetch_count": progress.poll_count,
        "fetch_error_count": progress.failure_count,
        "success_count": progress.success_count,
        "empty_count": progress.empty_count,
        "failures_in_a_row": progress.failures_in_a_row,
        "last_error": progress.last_error,
        "last_error_code": progress.last_error_code,
        "watermark": _iso(progress.watermark.at) if progress.watermark else None,
        "expected_by": _iso(progress.expected_by),
        "posts_per_day": _rounded(progress.posts_per_day),
        "tier": progress.tier,
        "average_valid": _rounded(progress.average_valid),
        "recent_valid": list(progress.recent_valid),
    }


def interval_of(source: Source, progress: Progress, intervals: Mapping[str, int]) -> int:
    return interval(source, progress, intervals.get(source.kind, UNKNOWN_KIND_MINUTES)).minutes


def next_fetch_at(source: Source, progress: Progress, minutes: int) -> datetime | None:
    """The real due time; None while it is not followed actively, or was never visited (then it is due now)."""
    if source.state != SourceState.ACTIVE:
        return None
    if progress.next_due_at is not None:
        return progress.next_due_at
    return progress.last_polled_at + timedelta(minutes=minutes) if progress.last_polled_at else None


def health_of(source: Source, progress: Progress, failures_limit: int) -> str:
    """In one word: ok, waiting (never visited), failing, probation, paused, retired."""
    if source.state != SourceState.ACTIVE:
        return str(source.state)
    if progress.failures_in_a_row >= failures_limit:
        return "probation"
    if progress.last_error is not None:
        return "failing"
    return "ok" if progress.last_polled_at else "waiting"


def _why(source: Source, progress: Progress) -> str:
    if source.state != SourceState.ACTIVE:
        return f"not due: {source.state} ({source.state_reason})" if source.state_reason else f"not due: {source.state}"
    if progress.next_due_at is None:
        return "the interval of its kind" if progress.last_polled_at else "never visited: first in line"
    return progress.due_reason or "own interval"


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)
