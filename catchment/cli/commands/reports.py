"""`metrics`, `coverage` and `alerts`: reports on collecting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.params import AsJson, Limit, OfSourceKind, SourceId
from catchment.errors import InvalidInput
from catchment.health.metrics import MetricPoint, MetricsRecorder
from catchment.platforms import installed
from catchment.policy.coverage import Day
from catchment.sources.describe import CoverageView, coverage_of
from catchment.store.sources.alerts import AlertView
from catchment.store.sources.metrics import MetricSpan

_HOURS = 24
_HOUR_FORM, _DAY_FORM = "%Y-%m-%d %H:%M", "%Y-%m-%d"


def metrics(
    hours: Annotated[int | None, typer.Option(metavar="N", min=1, max=2160, help="The last N hours.")] = None,
    days: Annotated[int | None, typer.Option(metavar="N", min=1, max=3660, help="The last N days, in UTC.")] = None,
    kind: OfSourceKind = None,
    as_json: AsJson = False,
) -> None:
    """By default the last 24 hours; the current hour or day comes last. A collection without new items is empty; one
    that had to wait for our own limits is deferred, and counts neither as a success nor as a failure.
    """
    if hours and days:
        raise InvalidInput("--hours and --days exclude each other", "use only one of them", field="days")
    span = MetricSpan.DAY if days else MetricSpan.HOUR
    settings = context.settings()
    with context.opened_store(settings) as (store, now), context.opened_cache(settings, store) as cache:
        if kind is not None:
            context.names(store).source_kind(kind)
        measuring = MetricsRecorder(store.metrics, cache.counts, store.tier_stats.counts)
        points = measuring.latest(span, days or hours or _HOURS, now, kind)
    if as_json:
        output.document(points)
    else:
        _show_metrics(points, _DAY_FORM if days else _HOUR_FORM)


def _show_metrics(points: Sequence[MetricPoint], form: str) -> None:
    output.facts(
        (
            ("New items", _chart([point.new_count for point in points])),
            ("Collections", _chart([point.succeeded + point.failed for point in points])),
            ("Success rate", _rates([point.success_rate for point in points], _success_rate(points))),
            ("Requests", _chart([point.request_count for point in points])),
            ("Cache", _rates([point.hit_rate for point in points], "hit rate")),
            ("Valid posts", f"{points[-1].valid_24h:,} in 24 hours"),
            ("Tiers", points[-1].tiers),
        )
    )
    output.say()
    output.table(
        ("UTC", "#Sources", "#Succeeded", "#Empty", "#Failed", "#Deferred", "#Success", "#Seconds",
         "#New", "#Updated", "#Duplicate", "#Requests"),
        (_row(point, form) for point in points),
    )  # fmt: skip


def _chart(figures: Sequence[int]) -> str:
    return f"{output.spark(figures)}  {sum(figures):,}"


def _rates(rates: Sequence[float | None], label: str) -> str:
    return f"{output.spark(rates, most=1.0)}  {label}"


def _success_rate(points: Sequence[MetricPoint]) -> str:
    succeeded, failed = sum(point.succeeded for point in points), sum(point.failed for point in points)
    return output.share(succeeded / (succeeded + failed) if succeeded + failed else None)


def _row(point: MetricPoint, form: str) -> tuple[object, ...]:
    return (
        point.starts_at.strftime(form) + ("" if point.is_over else " …"),
        point.source_count,
        point.succeeded,
        point.empty,
        point.failed,
        point.deferred,
        output.share(point.success_rate),
        None if point.mean_seconds is None else f"{point.mean_seconds:.1f}",
        point.new_count,
        point.updated_count,
        point.duplicate_count,
        point.request_count,
    )


SIGNS = {"verified": "■", "repaired": "+", "unproven": "·", "suspect": "?", "unreachable": "x"}
_WEEK = 7


def coverage(
    source_id: SourceId,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=3660, help="How many days back.")] = 90,
    as_json: AsJson = False,
) -> None:
    """Each period is verified, repaired (a gap was closed), unproven, suspect (a possible gap) or unreachable (items
    are missing, or can no longer be requested). Shown as a calendar with one line per week, and as a list with reasons.
    """
    with context.opened_store(context.settings()) as (store, now):
        report = coverage_of(store, installed(), source_id, now, days)
    if as_json:
        output.document(report)
    else:
        _show_coverage(report, now)


def _show_coverage(report: CoverageView, now: datetime) -> None:
    output.say(f"{report.source_name} (source {report.source_id}, {report.order})")
    output.say("Week of     M T W T F S S")
    for line in weeks(report.calendar):
        output.say(line)
    output.say("  ".join(f"{sign} {standing}" for standing, sign in SIGNS.items()))
    output.say()
    output.table(
        ("From", "To", "State", "Reason", "#Gap"),
        (
            (
                output.at(stretch.from_at, now),
                output.at(stretch.to_at, now),
                stretch.standing,
                stretch.why,
                stretch.gap_id,
            )
            for stretch in report.stretches
        ),
    )


def weeks(calendar: Sequence[Day]) -> Iterator[str]:
    """One line per week, from Monday; days without data stay empty."""
    signs = {day.day: SIGNS[day.standing] for day in calendar}
    if not signs:
        return
    monday = min(signs) - timedelta(days=min(signs).weekday())
    while monday <= max(signs):
        week = [signs.get(monday + timedelta(days=day), " ") for day in range(_WEEK)]
        yield f"{monday}  {' '.join(week)}".rstrip()
        monday += timedelta(days=_WEEK)


def alerts(
    everything: Annotated[bool, typer.Option("--all", help="Include closed alerts.")] = False,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """P0 needs attention now: a part of the work has stopped; P1 today; P2 when there is time. An alert opens once, and
    closes automatically when the problem ends.
    """
    with context.opened_store(context.settings()) as (store, now):
        rows = store.alerts.page(limit, include_closed=everything)
    if as_json:
        output.document(rows)
    elif rows:
        _show_alerts(rows, now)
        if len(rows) == limit:
            output.note(f"these are the newest {limit:,}; a larger --limit shows more")
    else:
        output.say("No alerts." if everything else "No open alerts.")


def _show_alerts(rows: Sequence[AlertView], now: datetime) -> None:
    output.table(
        ("Severity", "Opened", "Closed", "Alert"),
        (
            (
                alert.severity,
                output.when(alert.opened_at, now),
                output.when(alert.closed_at, now),
                alert.message,
            )
            for alert in rows
        ),
    )
