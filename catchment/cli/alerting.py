"""`alerts`: what a person should look at."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, Limit


def alerts(
    everything: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List what a person should look at, newest first.

    P0: now, a part of the work stands still; P1: today; P2: when there is time. An alert opens once and closes by
    itself when what it tells of is over.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        found = store.alerts.page(limit, include_closed=everything)
    if as_json:
        showing.document(found)
    elif found:
        _show(found, now)
        if len(found) == limit:
            showing.note(f"these are the newest {limit:,}: a larger --limit shows more")
    else:
        showing.say("there is no alert" if everything else "no alert is open")


def _show(found: list[dict[str, Any]], now: datetime) -> None:
    showing.table(
        ("alert", "since", "over", "what"),
        (
            (
                one["severity"],
                showing.when(one["opened_at"], now),
                showing.when(one["closed_at"], now),
                one["message"],
            )
            for one in found
        ),
    )
