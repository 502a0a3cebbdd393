"""`hot`: what is kept ready to be shown, and how often that helped."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, Limit, SourceId

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The hot store: how it stands, clear it …")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show how the hot store stands.

    Where it lives and how many entries there are; of the reads of a community's newest, how many it answered; and how
    many communities are warm: read within the time to live, by a visit or by a cache-only crawl.
    """
    from catchment.collect.warming import standing
    from catchment.platforms import installed

    settings = doors.settings()
    with doors.opened_store(settings) as (store, now), doors.opened_hot(settings, store) as hot:
        told = standing(hot, installed(), now)
    if as_json:
        showing.document(told)
    else:
        _show(told, now)


@app.command(name="list")
def list_cached(source_id: SourceId, limit: Limit = 30, as_json: AsJson = False) -> None:
    """List what cache-only crawls saw of a community.

    Newest first; whether it is stored or not. What is stored is listed by `items`. With --json one object a line.
    """
    settings = doors.settings()
    with doors.opened_store(settings) as (store, now), doors.opened_hot(settings, store) as hot:
        found = hot.cached(store.sources.get(source_id), limit)
        told = store.warming.of_source(source_id)
    if as_json:
        showing.lines(found)
        return
    showing.table(
        ("posted", "author", "title", "#score", "#replies"),
        (
            (
                showing.when(one["created_at"], now),
                one["author"],
                one["title"] or one["text"],
                one["score"],
                one["reply_count"],
            )
            for one in found
        ),
    )
    showing.note(f"last warmed: {showing.when(told['last_warmed_at'], now)}, {told['cached_count']:,} posts")


@app.command()
def clear(as_json: AsJson = False) -> None:
    """Clear what is no longer hot.

    As the job `clear-expired` does every six hours. Expired entries are never read, cleared or not.
    """
    settings = doors.settings()
    with doors.opened_store(settings) as (store, _), doors.opened_hot(settings, store) as hot:
        gone = hot.clear_expired()
    if as_json:
        showing.document({"cleared": gone})
    else:
        showing.say(f"entries cleared: {gone:,}")


def _show(told: dict[str, Any], now: datetime) -> None:
    warmth = told["warmth"]
    showing.facts(
        (
            ("home", told["home"]),
            ("entries", told["entries"]),
            ("last hour", _said(told["last_hour"])),
            ("last 24 hours", _said(told["last_24_hours"])),
            ("warm", f"{warmth['warm']:,} of {warmth['communities']:,} communities"),
            ("last warm-up", f"{showing.when(warmth['last_warmed_at'], now)}, {warmth['cached_posts']:,} posts"),
        )
    )


def _said(reads: dict[str, Any]) -> str:
    if reads["hit_rate"] is None:
        return "no reads"
    failed = f", {showing.counted(reads['failed_writes'], 'failed write')}" if reads["failed_writes"] else ""
    return f"{reads['hits']:,} hits, {reads['misses']:,} misses ({reads['hit_rate']:.0%}){failed}"
