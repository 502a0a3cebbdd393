"""`tiers` and `hot`: how active communities are, and the cache of their newest posts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from catchment.app import tiers_of
from catchment.cache import CacheReads
from catchment.cli import context, output
from catchment.cli.params import AsJson, Limit, SourceId
from catchment.collect.cache_warmup import warmable
from catchment.model import View
from catchment.platforms import installed
from catchment.sources.describe import SourceView, current_intervals, source_view
from catchment.sources.intervals import TierChangeView, TierView, assign_tiers, tier_change_view, tier_tally, tier_views


def tiers(
    apply: Annotated[
        bool, typer.Option("--apply", help="Store the computed tiers; without this option, nothing changes.")
    ] = False,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """Lists current and recomputed tiers. A tier follows from the average number of valid posts (new,
    not deleted, not pinned) in the latest collections; see CATCHMENT_TIER1. It is assigned after each collection and
    once a day; --apply does it now, for example after a change of settings. The most active communities are listed
    below.
    """
    settings = context.settings()
    with context.opened_store(settings) as (store, now):
        rules = tiers_of(settings)
        changed = assign_tiers(store, rules) if apply else []
        tally, most_active = tier_tally(store, rules), store.tier_stats.by_average(limit)
        intervals = current_intervals(store, settings, [source for source, _ in most_active])
        report = TierReport(
            tier_views(rules, tally),
            tally.are[None],
            apply,
            [tier_change_view(change) for change in changed or tally.changes],
            [source_view(source, progress, intervals) for source, progress in most_active],
        )
    if as_json:
        output.document(report)
    else:
        _show_tiers(report, now)


class TierReport(View, frozen=True):
    tiers: Sequence[TierView]
    unassigned: int
    is_applied: bool
    changes: Sequence[TierChangeView]
    communities: Sequence[SourceView]


def _show_tiers(report: TierReport, now: datetime) -> None:
    output.table(
        ("Tier", "#Average", "Interval", "Listing", "Period", "#Limit", "#Communities", "#Would be"),
        [
            (
                tier.name,
                f"{tier.least_valid:g}",
                f"{tier.hours:g} h",
                tier.sort,
                tier.time_filter,
                tier.limit,
                tier.sources,
                tier.would_be,
            )
            for tier in report.tiers
        ],
    )
    if report.unassigned:
        output.say(f"Without a tier, because they were collected too rarely: {report.unassigned:,}")
    if report.changes:
        output.say()
        output.heading("Changed" if report.is_applied else "Would change")
        output.table(
            ("#ID", "Community", "#Average", "From", "To", "Reason"),
            [
                (
                    str(change.id),
                    change.name,
                    change.average_valid,
                    change.tier,
                    change.would_be,
                    change.why,
                )
                for change in report.changes
            ],
        )
        if not report.is_applied:
            output.say("Use --apply to change them now; otherwise each changes with its next collection.")
    output.say()
    if not report.communities:
        output.say("No community has been collected yet.")
        return
    output.table(
        ("#ID", "Community", "#Average", "Tier", "Last", "Next", "Reason", "#Succeeded", "#Empty", "#Failed"),
        [
            (
                str(community.id),
                community.name,
                community.average_valid,
                community.tier,
                output.when(community.last_fetched_at, now),
                output.when(community.next_fetch_at, now),
                community.next_fetch_reason,
                community.success_count,
                community.empty_count,
                community.fetch_error_count,
            )
            for community in report.communities
        ],
    )


def cache_status(as_json: AsJson = False) -> None:
    """Also shows how many communities are warm: cached within the time to live, by a collection or a cache-only run."""
    settings = context.settings()
    with context.opened_store(settings) as (store, now), context.opened_cache(settings, store) as cache:
        report = cache.report(warmable(installed()))
    if as_json:
        output.document(report)
        return
    warmth = report["warmth"]
    output.facts(
        (
            ("Backend", report["home"]),
            ("Entries", report["entries"]),
            ("Last hour", _reads(report["last_hour"])),
            ("Last 24 hours", _reads(report["last_24_hours"])),
            ("Warm", f"{warmth['warm']:,} of {warmth['communities']:,} communities"),
            ("Last warm-up", f"{output.when(warmth['last_warmed_at'], now)}, {warmth['cached_posts']:,} posts"),
        )
    )


def _reads(reads: CacheReads) -> str:
    if reads["hit_rate"] is None:
        return "no reads"
    failed = f", {output.counted(reads['failed_writes'], 'failed write')}" if reads["failed_writes"] else ""
    return f"{reads['hits']:,} hits, {reads['misses']:,} misses ({reads['hit_rate']:.0%}){failed}"


def cached_items(source_id: SourceId, limit: Limit = 30, as_json: AsJson = False) -> None:
    """Lists what cache-only runs have seen, newest first, stored or not; `catchment items` lists stored items. With
    --json, prints one object per line.
    """
    settings = context.settings()
    with context.opened_store(settings) as (store, now), context.opened_cache(settings, store) as cache:
        items = cache.cached(store.sources.get(source_id), limit)
        cached = store.cached_sources.of_source(source_id)
    if as_json:
        output.lines(items)
        return
    output.table(
        ("Posted", "Author", "Title", "#Score", "#Replies"),
        (
            (
                output.when(item["created_at"], now),
                item["author"],
                item["title"] or item["text"],
                item["score"],
                item["reply_count"],
            )
            for item in items
        ),
    )
    output.note(f"last warm-up: {output.when(cached['last_warmed_at'], now)}, {cached['cached_count']:,} posts")


def clear_cache(as_json: AsJson = False) -> None:
    """The job `clear-expired` does this every six hours. Expired entries are never read."""
    settings = context.settings()
    with context.opened_store(settings) as (store, _), context.opened_cache(settings, store) as cache:
        count = cache.clear_expired()
    output.result(as_json, {"cleared": count}, f"{count:,} expired entries removed.")
