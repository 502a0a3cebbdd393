"""`coverage`: for which time a source is proven complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, SourceId

SIGNS = {"verified": "■", "repaired": "+", "unproven": "·", "suspect": "?", "unreachable": "x"}
_WEEK = 7


def coverage(
    source_id: SourceId,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=3660, help="How far back.")] = 90,
    as_json: AsJson = False,
) -> None:
    """Show for which time a source is proven complete.

    Verified, repaired (a gap was closed), unproven, suspect (a possible gap) or unreachable (something is missing, or
    cannot be asked for); stretch by stretch with the reason, and as a calendar, a line a week.
    """
    from catchment.collect.covering import coverage_of
    from catchment.platforms import installed

    with doors.opened_store(doors.settings()) as (store, now):
        found = coverage_of(store, installed(), source_id, now, days)
    if as_json:
        showing.document(found)
    else:
        _show(found, now)


def _show(found: dict[str, Any], now: datetime) -> None:
    showing.say(f"{found['source_name']} (source {found['source_id']}, {found['order']})")
    showing.say("week of     M T W T F S S")
    for line in weeks(found["calendar"]):
        showing.say(line)
    showing.say("  ".join(f"{sign} {standing}" for standing, sign in SIGNS.items()))
    showing.table(
        ("from", "to", "standing", "why", "#gap"),
        (
            (
                showing.at(one["from_at"], now),
                showing.at(one["to_at"], now),
                one["standing"],
                one["why"],
                one["gap_id"],
            )
            for one in found["stretches"]
        ),
    )


def weeks(calendar: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line a week, from Monday; days of which nothing is known stay empty."""
    signs = {date.fromisoformat(one["day"]): SIGNS[one["standing"]] for one in calendar}
    if not signs:
        return
    monday = min(signs) - timedelta(days=min(signs).weekday())
    while monday <= max(signs):
        week = [signs.get(monday + timedelta(days=day), " ") for day in range(_WEEK)]
        yield f"{monday}  {' '.join(week)}".rstrip()
        monday += timedelta(days=_WEEK)
