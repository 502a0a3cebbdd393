"""`hot`: what is kept ready to be shown, and how often that helped."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson

if TYPE_CHECKING:
    from catchment.hot import Hot

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The hot store: how it stands, clear it …")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show how the hot store stands.

    How many entries there are, and of the reads of a community's newest, how many it answered.
    """
    settings = doors.settings()
    with doors.opened_store(settings) as (store, now), doors.opened_hot(settings, store) as hot:
        told = _told(hot, now)
    if as_json:
        showing.document(told)
    else:
        _show(told)


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


def _told(hot: Hot, now: datetime) -> dict[str, Any]:
    spans = {"last_hour": timedelta(hours=1), "last_24_hours": timedelta(days=1)}
    home, entries = hot.standing()
    return {"home": home, "entries": entries, **{name: _reads(hot, now - span) for name, span in spans.items()}}


def _reads(hot: Hot, since: datetime) -> dict[str, Any]:
    counts = hot.counts(since)
    return {
        "hits": counts.hits,
        "misses": counts.misses,
        "hit_rate": hot.hit_rate(since),
        "failed_writes": counts.failures,
    }


def _show(told: dict[str, Any]) -> None:
    showing.facts(
        (
            ("home", told["home"]),
            ("entries", told["entries"]),
            ("last hour", _said(told["last_hour"])),
            ("last 24 hours", _said(told["last_24_hours"])),
        )
    )


def _said(reads: dict[str, Any]) -> str:
    if reads["hit_rate"] is None:
        return "no reads"
    failed = f", {showing.counted(reads['failed_writes'], 'failed write')}" if reads["failed_writes"] else ""
    return f"{reads['hits']:,} hits, {reads['misses']:,} misses ({reads['hit_rate']:.0%}){failed}"
