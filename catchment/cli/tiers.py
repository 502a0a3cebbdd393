"""`tiers`: how lively communities are, and how often they are visited for that."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, Limit
from catchment.cli.sources import intervals_of


def tiers(
    apply: Annotated[
        bool, typer.Option("--apply", help="Store the tiers as they would be; otherwise nothing is changed.")
    ] = False,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """Show how lively communities are, and their tiers.

    As they are, and as they would be: a tier comes from the average of valid posts (new, there, not pinned) of the last
    visits; see CATCHMENT_TIER1. Each visit assigns it anew, and so does a job once a day; --apply does it now, as after
    a change of settings. Below the counts the liveliest communities are listed.
    """
    settings = doors.settings()
    with doors.opened_store(settings) as (store, now):
        from catchment.collect import tiering
        from catchment.collect.telling import shown_source
        from catchment.shop import tiers_of

        rules, intervals = tiers_of(settings), intervals_of(store, settings)
        changed = tiering.assign_tiers(store, rules) if apply else []
        tally, liveliest = tiering.tally(store, rules), store.tiering.by_average(limit)
        told: dict[str, Any] = {
            "tiers": tiering.shown_tiers(rules, tally),
            "unassigned": tally.are[None],
            "is_applied": apply,
            "changes": [tiering.shown_change(one) for one in changed or tally.changes],
            "communities": [shown_source(source, progress, intervals) for source, progress in liveliest],
        }
    if as_json:
        showing.document(told)
    else:
        _show(told, now)


def _show(told: dict[str, Any], now: datetime) -> None:
    showing.table(
        ("tier", "#from average", "every", "listing", "looks back", "#limit", "#communities", "#would be"),
        [
            (
                one["name"],
                f"{one['least_valid']:g}",
                f"{one['hours']:g} h",
                one["sort"],
                one["time_filter"],
                one["limit"],
                one["sources"],
                one["would_be"],
            )
            for one in told["tiers"]
        ],
    )
    if told["unassigned"]:
        showing.say(f"without a tier, because of too few visits: {told['unassigned']:,}")
    if told["changes"]:
        did = ("changed", "was", "is") if told["is_applied"] else ("would change", "is", "would be")
        showing.table(
            ("#id", did[0], "#average", *did[1:]),
            [(str(one["id"]), one["name"], one["average_valid"], one["tier"], one["why"]) for one in told["changes"]],
        )
        if not told["is_applied"]:
            showing.say("--apply makes it so; the next visit of each does, too")
    _show_communities(told["communities"], now)


def _show_communities(communities: list[dict[str, Any]], now: datetime) -> None:
    if not communities:
        showing.say("no community has been visited yet")
        return
    showing.table(
        ("#id", "community", "#average", "tier", "last visit", "next visit", "why then", "#well", "#empty", "#failed"),
        [
            (
                str(one["id"]),
                one["name"],
                one["average_valid"],
                one["tier"],
                showing.when(one["last_fetched_at"], now),
                showing.when(one["next_fetch_at"], now),
                one["next_fetch_reason"],
                one["success_count"],
                one["empty_count"],
                one["fetch_error_count"],
            )
            for one in communities
        ],
    )
