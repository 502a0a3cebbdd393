"""The plan of all budgets: gathered from what is followed and from what visits took lately, and told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from catchment.fetch import AIM
from catchment.health.monitors import BUDGET
from catchment.model import Alarm, Budget, Severity
from catchment.plan import Late, Need, Plan, planned
from catchment.platforms import Platforms
from catchment.store import Store
from catchment.store.planning import Followed, Taken

COLLECT_DUE = "collect-due"
"""The job that visits at the intervals that are planned here; what others ask comes besides."""
TIGHT = 0.8
"""From this share on, a budget is worth a word."""
_LOOKED_AT = timedelta(days=3)
_BESIDES_LOOKED_AT = timedelta(days=1)
_DAY_MINUTES = 24 * 60


def taken_lately(store: Store, now: datetime) -> Taken:
    """Goes through the visits of a few days."""
    return Taken(
        store.planning.requests_per_visit(now - _LOOKED_AT),
        store.planning.requests_besides(COLLECT_DUE, now - _BESIDES_LOOKED_AT),
    )


def keep_taken(store: Store, now: datetime) -> Taken:
    """Count it, for all who need it soon and often: a page that is open renews itself every few seconds."""
    taken = taken_lately(store, now)
    store.planning.keep(taken, now)
    return taken


def taken_of_late(store: Store, now: datetime) -> Taken:
    """As it was counted last; counted now, as long as nobody has: then there is little to go through."""
    return store.planning.kept() or taken_lately(store, now)


def plans(
    store: Store, platforms: Platforms, minutes: Callable[[str], int], budgets: Mapping[str, Budget], taken: Taken
) -> list[Plan]:
    """The plan of each platform on which something is followed. `minutes` are those of a kind."""
    followed = store.planning.followed()
    took = _requests(followed, taken.a_visit, platforms)
    needs: dict[str, list[Need]] = defaultdict(list)
    for one in followed:
        interval = one.interval_minutes or minutes(one.kind)
        needs[one.platform].append(Need(one.id, one.name, one.priority, interval, took[one.id]))
    return [
        planned(name, of_it, budgets.get(name), taken.besides.get(name, 0) / _DAY_MINUTES, AIM)
        for name, of_it in sorted(needs.items())
    ]


def _requests(followed: Sequence[Followed], took: Mapping[int, float], platforms: Platforms) -> dict[int, float]:
    """What a visit to each takes: as it did lately, else as others of its kind, else a request for each listing."""
    of_kind: dict[str, list[float]] = defaultdict(list)
    for one in followed:
        if one.id in took:
            of_kind[one.kind].append(took[one.id])
    means = {kind: fmean(taken) for kind, taken in of_kind.items()}
    return {one.id: took.get(one.id, means.get(one.kind, _at_first(one.kind, platforms))) for one in followed}


def _at_first(kind_name: str, platforms: Platforms) -> float:
    kind = platforms.kind(kind_name)
    return 2.0 if kind is not None and kind.newest is not None else 1.0


# ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────────


def alarms_of(plans: Sequence[Plan]) -> list[Alarm]:
    """Budgets that do not suffice: nothing fails, but some are late, and it will not get better by itself."""
    return [
        Alarm(f"platform {one.platform}{BUDGET}", f"{said(one)}: {_said_late(one)} — {_HELPS}", Severity.P2)
        for one in plans
        if one.late
    ]


_HELPS = "follow less of it, less often, or add a credential; `catchment plan` shows who is late"


def is_tight(plan: Plan) -> bool:
    """Whether it is worth a word beside all that is well."""
    return plan.share is not None and plan.share > TIGHT


def said(plan: Plan) -> str:
    """A plan in one line."""
    needed = _figure(plan.needed + plan.besides)
    of = "requests a minute; no budget is declared"
    if plan.allowed is not None:
        of = f"of {_figure(plan.allowed)} requests a minute"
    sources = "1 source needs" if plan.source_count == 1 else f"{plan.source_count:,} sources need"
    return f"{plan.platform}: {sources} {needed} {of}"


def _said_late(plan: Plan) -> str:
    never = sum(1 for one in plan.late if one.minutes is None)
    late = len(plan.late) - never
    words = [f"{late:,} will be late"] * bool(late) + [f"{never:,} will not be visited at all"] * bool(never)
    return " and ".join(words)


def said_late(one: Late) -> str:
    """How late one source will be, in words."""
    if one.minutes is None:
        return f"{one.need.name} will not be visited: those of higher priority use the whole budget"
    return f"{one.need.name} will be {_span(one.minutes)} late"


def _span(minutes: int) -> str:
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60):,} h"


def _figure(number: float) -> str:
    """With as many digits as say something."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def shown(plan: Plan, limit: int) -> dict[str, Any]:
    """For programs; of those that will be late, so many."""
    return {
        "platform": plan.platform,
        "source_count": plan.source_count,
        "needed_per_minute": round(plan.needed, 4),
        "besides_per_minute": round(plan.besides, 4),
        "allowed_per_minute": plan.allowed,
        "share": None if plan.share is None else round(plan.share, 4),
        "summary": said(plan),
        "late_count": len(plan.late),
        "late": [_shown_late(one) for one in plan.late[:limit]],
    }


def _shown_late(one: Late) -> dict[str, Any]:
    return {
        "source_id": one.need.source_id,
        "name": one.need.name,
        "priority": one.need.priority,
        "interval_minutes": one.need.interval_minutes,
        "requests_per_visit": round(one.need.requests, 2),
        "late_minutes": one.minutes,
        "summary": said_late(one),
    }
