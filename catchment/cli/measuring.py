"""`metrics`: what visiting came to, hour by hour or day by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson
from catchment.errors import InvalidInput

_HOURS = 24
_HOUR_FORM, _DAY_FORM = slice(0, 16), slice(0, 10)


def metrics(
    hours: Annotated[int | None, typer.Option(metavar="N", min=1, max=2160, help="The last N hours.")] = None,
    days: Annotated[int | None, typer.Option(metavar="N", min=1, max=3660, help="The last N days, in UTC.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only of this kind of sources.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what visiting came to, by the hour or by the day.

    The last 24 hours, unless something else is asked for; the one under way comes last. A visit that went well and
    brought nothing new is empty; one that our own budget ended is put off, and not a failure.
    """
    from catchment.health.measuring import Measuring
    from catchment.store.metrics import Span

    if hours and days:
        raise InvalidInput("hours or days?", "give --hours or --days, and not both", field="days")
    span = Span.DAY if days else Span.HOUR
    settings = doors.settings()
    with doors.opened_store(settings) as (store, now), doors.opened_hot(settings, store) as hot:
        if kind is not None:
            doors.names(store).source_kind(kind)
        measuring = Measuring(store.metrics, hot.counts, store.tiering.counts)
        found = measuring.told(span, days or hours or _HOURS, now, kind)
    if as_json:
        showing.document(found)
    else:
        _show(found, _DAY_FORM if days else _HOUR_FORM)


def _show(found: Sequence[dict[str, Any]], form: slice) -> None:
    showing.facts(
        (
            ("new items", _chart(found, "new_count")),
            ("visits", _chart(found, "succeeded")),
            ("success", f"{showing.spark([one['success_rate'] for one in found], most=1.0)}  {_overall(found)}"),
            ("requests", _chart(found, "request_count")),
            ("hot store", f"{showing.spark([one['hit_rate'] for one in found], most=1.0)}  of reads answered"),
            ("valid posts", f"{found[-1]['valid_24h']:,} in 24 hours"),
            ("tiers", found[-1]["tiers"]),
        )
    )
    showing.table(
        ("UTC", "#sources", "#well", "#empty", "#failed", "#put off", "#success", "#seconds",
         "#new", "#updated", "#same", "#requests"),
        (_row(one, form) for one in found),
    )  # fmt: skip


def _chart(found: Sequence[dict[str, Any]], name: str) -> str:
    figures = [one[name] for one in found]
    return f"{showing.spark(figures)}  {sum(figures):,}"


def _overall(found: Sequence[dict[str, Any]]) -> str:
    well, failed = (sum(one[name] for one in found) for name in ("succeeded", "failed"))
    return showing.share(well / (well + failed) if well + failed else None)


def _row(one: dict[str, Any], form: slice) -> tuple[object, ...]:
    return (
        one["starts_at"].replace("T", " ")[form] + ("" if one["is_over"] else " …"),
        one["source_count"],
        one["succeeded"],
        one["empty"],
        one["failed"],
        one["put_off"],
        showing.share(one["success_rate"]),
        None if one["mean_seconds"] is None else f"{one['mean_seconds']:.1f}",
        one["new_count"],
        one["updated_count"],
        one["duplicate_count"],
        one["request_count"],
    )
