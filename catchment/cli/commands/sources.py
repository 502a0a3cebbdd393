"""`sources list` and `sources show`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.params import AsJson, OfCategory, OfSourceKind, SourceId
from catchment.installation import as_typed
from catchment.model import Source, SourceState, as_dict
from catchment.platforms import platform_named
from catchment.sources.describe import (
    GapReport,
    SourceView,
    all_sources,
    current_intervals,
    gap_reports,
    health_of,
    source_view,
)

NO_SOURCES_HINT = (
    "run `catchment sources import --starter` to begin with a dozen sources, or `catchment sources add ADDRESS`"
)
_BOARD_RUNS = 5
_NO_MATCH = ("no source matches these filters", "remove one of them")


def list_sources(
    kind: OfSourceKind = None,
    state: Annotated[SourceState | None, typer.Option(help="Only sources in this state.")] = None,
    category: OfCategory = None,
    as_json: AsJson = False,
) -> None:
    """The columns Last and Next show how long ago a source was collected and how soon it will be again. For the full
    error message, run `sources show`.
    """
    settings = context.settings()
    with context.opened_store(settings) as (store, now):
        sources = all_sources(store, kind, state, category)
        intervals = current_intervals(store, settings, [source for source, _ in sources])
    rows = [(source_view(source, progress, intervals), source, progress) for source, progress in sources]
    if as_json:
        output.document([shown for shown, _, _ in rows])
        return
    if not rows:
        is_filtered = kind is not None or state is not None or category is not None
        output.nothing(*(_NO_MATCH if is_filtered else ("no sources yet", NO_SOURCES_HINT)))
        return
    output.table(
        ("#ID", "Name", "Kind", "State", "#Last", "#Next", "Error"),
        (
            (
                str(shown.id),
                shown.name,
                shown.kind,
                health_of(source, progress, settings.failures_before_probation).replace("_", " "),
                output.span(shown.last_fetched_at, now),
                _next(shown, now),
                shown.last_error_code if shown.last_error else "",
            )
            for shown, source, progress in rows
        ),
        shrink=("Name", "Kind", "Error"),
    )
    output.say(output.counted(len(rows), "source"))


def _next(source: SourceView, now: datetime) -> str:
    if not source.is_active or not source.has_platform:
        return "–"
    at = source.next_fetch_at
    return output.span(at, now) if at and at > now else "due"


def show(source_id: SourceId, as_json: AsJson = False) -> None:
    """Its state, when it is due and why, its latest collections and its open gaps."""
    settings = context.settings()
    with context.opened_store(settings) as (store, now):
        stored, progress = store.sources.with_progress(source_id)
        source = source_view(stored, progress, current_intervals(store, settings, [stored]))
        visits, gaps = store.runs.of_source(source_id), gap_reports(store.gaps.page(source_id=source_id))
        board_runs = store.threads.board_runs(source_id, _BOARD_RUNS) if _is_board(stored) else []
    if as_json:
        output.document(as_dict(source) | {"visits": visits, "gaps": gaps, "board_runs": board_runs})
        return
    for title, facts in _facts(source, now).items():
        output.section(title, facts)
    if visits:
        output.table(
            ("Collected", "Outcome", "#New", "#Updated", "#Duplicate", "#Invalid", "#Requests", "Error"),
            (
                (
                    output.when(visit.started_at, now),
                    visit.outcome or "running",
                    *(
                        getattr(visit, f"{name}_count")
                        for name in ("new", "updated", "duplicate", "invalid", "request")
                    ),
                    visit.error_code or "; ".join(visit.notes),
                )
                for visit in visits
            ),
            shrink=("Error",),
        )
        output.say()
    if board_runs:
        output.table(
            ("Board", "Window", "#Scanned", "#Changed", "#Updated", "#Requests"),
            (
                (
                    output.when(run.started_at, now),
                    f"{run.window_first_day} – {run.window_last_day}" if run.window_first_day else "",
                    *(run.scanned_count, run.changed_count, run.updated_count, run.request_count),
                )
                for run in board_runs
            ),
        )
        output.say()
    show_gaps(gaps, now)


def _is_board(source: Source) -> bool:
    platform = platform_named(source.platform)
    return platform is not None and any(kind.name == source.kind and kind.forum for kind in platform.KINDS)


def _facts(source: SourceView, now: datetime) -> dict[str, Sequence[tuple[str, object]]]:
    """Everything about a source, in groups."""

    def when(moment: datetime | None) -> str | None:
        return output.at(moment, now) if moment else None

    own = "its own interval" if source.interval_minutes else "the interval of its kind or tier"
    is_collected = source.is_active and source.has_platform
    error = as_typed(f"{source.last_error} [{source.last_error_code}]") if source.last_error else None
    counts = [
        f"{count:,} {outcome}"
        for count, outcome in (
            (source.success_count, "succeeded"),
            (source.fetch_error_count, "failed"),
            (source.empty_count, "empty"),
        )
        if count
    ]
    return {
        f"Source {source.id}: {source.name}": (
            ("Kind", source.kind),
            ("Platform", source.platform if source.platform != source.kind else None),
            ("Target", source.target),
            ("Categories", source.categories),
            ("Settings", source.settings),
            ("Credential", source.credential),
            ("Priority", source.priority if source.priority != "medium" else None),
            ("Interval", f"{source.fetch_interval_minutes:,} min ({own})"),
            ("Added", when(source.created_at)),
        ),
        "State": (
            ("State", ": ".join(filter(None, (source.state, source.state_reason)))),
            ("Last collected", when(source.last_fetched_at)),
            ("Last success", when(source.last_success_at) if error else None),
            ("Last new item", when(source.last_new_at)),
            ("Next collection", (when(source.next_fetch_at) or "due now") if is_collected else None),
            ("Reason", source.next_fetch_reason if source.has_platform else None),
            ("Error", error),
            ("Failures in a row", source.failures_in_a_row or None),
            ("Note", source.note),
        ),
        "Figures": (
            ("Collections", f"{source.fetch_count:,} ({', '.join(counts)})" if counts else None),
            ("Last collection", _last_fetch(source)),
            ("Share of new items", f"{rate:.0%}" if (rate := source.fetch_stats.avg_new_rate) is not None else None),
            ("Empty in a row", source.fetch_stats.consecutive_empty_fetches or None),
            ("Requests first", source.fetch_stats.next_limit),
            ("Posts per day", source.posts_per_day),
            ("Complete up to", when(source.watermark)),
            ("New item expected by", when(source.expected_by)),
            ("Tier", source.tier),
            ("Average of new items", source.average_valid),
            ("Latest collections", source.recent_valid),
            ("Quality score", source.quality_score),
        ),
    }


def _last_fetch(source: SourceView) -> str | None:
    stats = source.fetch_stats
    if stats.last_fetched_count is None:
        return None
    return f"{stats.last_fetched_count:,} items, {stats.last_new_count or 0:,} of them new"


def show_gaps(gaps: Sequence[GapReport], now: datetime) -> None:
    if not gaps:
        output.say("No open gaps.")
        return
    output.table(
        ("#Gap", "Source", "Certainty", "State", "From", "To", "Cause", "Closed", "Repair"),
        (
            (
                str(gap.id),
                f"{gap.source_id} {gap.source_name}",
                gap.certainty,
                gap.standing,
                output.at(gap.from_at, now),
                output.at(gap.to_at, now),
                gap.cause,
                f"{output.when(gap.closed_at, now)}: {gap.closed_because}" if gap.closed_at else "",
                gap.repair_note,
            )
            for gap in gaps
        ),
    )
