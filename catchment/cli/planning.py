"""`plan`: whether the budgets suffice for what is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, Limit

if TYPE_CHECKING:
    from catchment.plan import Plan


def plan(
    platform: Annotated[str | None, typer.Option(metavar="NAME", help="Only this platform.")] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """Show whether the budgets suffice for what is followed.

    What the sources of each platform need in a minute, at their intervals and by what visits took lately; what the
    platform allows, with the credentials that are usable now; and, where that does not suffice, who will be how late.
    """
    with doors.opened_shop("plan") as shop:
        from catchment.collect.planning import shown

        if platform is not None:
            shop.names.platform(platform)
        found = [one for one in shop.plans() if platform in (None, one.platform)]
    if as_json:
        showing.document([shown(one, limit) for one in found])
        return
    if not found:
        showing.say("nothing is followed there yet" if platform else "nothing is followed yet")
    for one in found:
        _show(one, limit)


def _show(plan: Plan, limit: int) -> None:
    from catchment.collect.planning import said, said_late

    share = "" if plan.share is None else f" ({showing.share(plan.share)})"
    showing.say(f"{said(plan)}{share}")
    if plan.besides:
        showing.say(f"  {plan.besides:.3g} of them for second looks and extra rounds")
    for one in plan.late[:limit]:
        showing.say(f"  {said_late(one)} ({one.need.priority}, every {one.need.interval_minutes:,} min)")
    if len(plan.late) > limit:
        showing.say(f"  and {len(plan.late) - limit:,} more: a larger --limit shows them")
