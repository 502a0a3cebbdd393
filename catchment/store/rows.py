"""Between rows and records: the one place that knows how a record lies in its table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from catchment.clock import micros, moment
from catchment.model import Gap, Known, Progress, Source, SourceState, Watermark

encode = msgspec.json.Encoder().encode
decode = msgspec.json.decode


def to_json(value: Any) -> str:
    return encode(value).decode()


def to_micros(value: datetime | None) -> int | None:
    return None if value is None else micros(value)


def to_moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


SOURCE_COLUMNS = (
    "id, key, platform, kind, target, name, created_at, settings, credential, interval_minutes, categories, priority, "
    "quality_score, state, state_reason"
)


def source_from(row: tuple[Any, ...]) -> Source:
    return Source(
        id=row[0],
        key=row[1],
        platform=row[2],
        kind=row[3],
        target=row[4],
        name=row[5],
        created_at=moment(row[6]),
        settings=decode(row[7]),
        credential=row[8],
        interval_minutes=row[9],
        categories=tuple(decode(row[10])),
        priority=row[11],
        quality_score=row[12],
        state=SourceState(row[13]),
        state_reason=row[14],
    )


# In this order in every SELECT and UPDATE of progress.
PROGRESS = (
    "next_due_at",
    "due_reason",
    "first_polled_at",
    "last_polled_at",
    "last_success_at",
    "last_new_at",
    "expected_by",
    "poll_count",
    "failure_count",
    "failures_in_a_row",
    "last_error",
    "last_error_code",
    "watermark_at",
    "watermark_ids",
    "newest_shown_at",
    "etag",
    "last_modified",
    "body_hash",
    "reader_version",
    "shown_marks",
    "cursor",
    "moved_to",
    "moved_count",
    "stale_count",
    "empty_in_a_row",
    "new_share",
    "next_limit",
    "last_shown_count",
    "success_count",
    "empty_count",
    "posts_per_day",
    "reach",
    "recent_valid",
    "average_valid",
    "tier",
    "tier_minutes",
    "tier_reason",
)
_TIMES = frozenset(
    (
        "next_due_at",
        "first_polled_at",
        "last_polled_at",
        "last_success_at",
        "last_new_at",
        "expected_by",
        "newest_shown_at",
    )
)


def progress_from(row: tuple[Any, ...]) -> Progress:
    told: dict[str, Any] = dict(zip(PROGRESS, row, strict=True))
    at, ids = told.pop("watermark_at"), told.pop("watermark_ids")
    told.pop("average_valid")
    for name in _TIMES:
        told[name] = to_moment(told[name])
    told["cursor"] = decode(told["cursor"]) if told["cursor"] != "{}" else {}
    told["recent_valid"] = tuple(decode(told["recent_valid"])) if told["recent_valid"] != "[]" else ()
    watermark = None if at is None else Watermark(moment(at), tuple(decode(ids)))
    return Progress(watermark=watermark, **told)


def progress_values(progress: Progress) -> list[Any]:
    """The values of PROGRESS, in order."""
    mark = progress.watermark
    special = {
        "watermark_at": micros(mark.at) if mark else None,
        "watermark_ids": to_json(mark.ids) if mark else "[]",
        "cursor": to_json(progress.cursor) if progress.cursor else "{}",
        "recent_valid": to_json(progress.recent_valid) if progress.recent_valid else "[]",
    }
    return [
        special[name]
        if name in special
        else to_micros(getattr(progress, name))
        if name in _TIMES
        else getattr(progress, name)
        for name in PROGRESS
    ]


KNOWN_COLUMNS = (
    "i.id, i.external_id, i.fingerprint, i.version, i.ordered_at, i.applied_at, i.title, i.url, i.author, "
    "i.author_display_name, i.edited_at, i.score, i.reply_count, i.view_count, i.rounded, i.is_deleted, i.is_folded, "
    "i.is_pinned, i.is_digest, i.tags, i.volatile_until, i.fingerprint_rule, i.created_at, i.deleted_by, "
    "i.is_adult, i.is_brief, i.is_deleted AND i.text IS NULL AND i.html IS NULL, i.last_reply_at"
)


def known_place(column: str) -> int:
    """Where in such a row that column stands."""
    return [name.strip().removeprefix("i.") for name in KNOWN_COLUMNS.split(",")].index(column)


def known_from(
    row: tuple[Any, ...], last_seen_at: int, is_shown_by_source: bool, is_seen_by_others: bool = False
) -> Known:
    return Known(
        id=row[0],
        external_id=row[1],
        fingerprint=bytes(row[2]),
        version=row[3],
        ordered_at=row[4],
        applied_at=moment(max(row[5], last_seen_at)),
        title=row[6],
        url=row[7],
        author=row[8],
        author_display_name=row[9],
        edited_at=to_moment(row[10]),
        score=row[11],
        reply_count=row[12],
        view_count=row[13],
        rounded=tuple(decode(row[14])) if row[14] != "[]" else (),
        is_deleted=bool(row[15]),
        is_folded=bool(row[16]),
        is_pinned=bool(row[17]),
        is_digest=bool(row[18]),
        tags=tuple(decode(row[19])) if row[19] != "[]" else (),
        volatile_until=to_moment(row[20]),
        is_shown_by_source=is_shown_by_source,
        created_at=to_moment(row[22]),
        is_seen_by_others=is_seen_by_others,
        told_at=moment(row[5]),
        deleted_by=row[23],
        is_adult=bool(row[24]),
        is_brief=bool(row[25]),
        is_withheld=bool(row[26]),
        last_reply_at=to_moment(row[27]),
    )


GAP_COLUMNS = "is_certain, from_at, to_at, cause, from_ids, id"


def gap_from(row: tuple[Any, ...]) -> Gap:
    return Gap(bool(row[0]), moment(row[1]), moment(row[2]), row[3], tuple(decode(row[4])), row[5])


def iso(micro: int | None) -> str | None:
    """For the outside: ISO 8601 with offset."""
    return None if micro is None else moment(micro).isoformat()


def with_iso(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The row with these columns as times for the outside."""
    return {name: iso(value) if name in names else value for name, value in row.items()}
