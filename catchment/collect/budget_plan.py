"""Request budget plan of each platform: built from the sources and their recent requests, with alerts and summaries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean

from catchment.fetch.budgets import AIM
from catchment.health.monitors import BUDGET
from catchment.messages import Message, message
from catchment.model import AlertRequest, Budget, Severity, View
from catchment.platforms import Platforms
from catchment.policy.budget_plan import (
    Need,
    PlannedDelay,
    PlatformPlan,
    planned,
)
from catchment.store import Store
from catchment.store.sources.stats import BudgetedSource, RequestsUsed

COLLECT_DUE = "collect-due"
"""The job that visits sources at the intervals planned here; requests of other jobs come on top."""
TIGHT = 0.8
"""From this share on, a budget is reported as tight."""
_LOOKED_AT = timedelta(days=3)
_BESIDES_LOOKED_AT = timedelta(days=1)
_DAY_MINUTES = 24 * 60


def taken_lately(store: Store, now: datetime) -> RequestsUsed:
    """Counts the requests in the visits of the last few days."""
    return RequestsUsed(
        store.plan_stats.requests_per_visit(now - _LOOKED_AT),
        store.plan_stats.requests_besides(COLLECT_DUE, now - _BESIDES_LOOKED_AT),
    )


def keep_taken(store: Store, now: datetime) -> RequestsUsed:
    """Counts the requests and stores the result, which is needed often: an open page refreshes every few seconds."""
    taken = taken_lately(store, now)
    store.plan_stats.keep(taken, now)
    return taken


def taken_of_late(store: Store, now: datetime) -> RequestsUsed:
    """Returns the stored count; counts now if none is stored yet, when there are few visits to go through."""
    return store.plan_stats.kept() or taken_lately(store, now)


def plans(
    store: Store,
    platforms: Platforms,
    minutes: Callable[[str], int],
    budgets: Mapping[str, Budget],
    taken: RequestsUsed,
) -> list[PlatformPlan]:
    """Returns the plan of each platform that has sources. `minutes` are the intervals per kind."""
    followed = store.plan_stats.followed()
    took = _requests(followed, taken.a_visit, platforms)
    needs: dict[str, list[Need]] = defaultdict(list)
    for budgeted in followed:
        interval = budgeted.interval_minutes or minutes(budgeted.kind)
        needs[budgeted.platform].append(
            Need(budgeted.id, budgeted.name, budgeted.priority, interval, took[budgeted.id])
        )
    return [
        planned(name, of_it, budgets.get(name), taken.besides.get(name, 0) / _DAY_MINUTES, AIM)
        for name, of_it in sorted(needs.items())
    ]


def _requests(followed: Sequence[BudgetedSource], took: Mapping[int, float], platforms: Platforms) -> dict[int, float]:
    """Returns the requests per visit of each source: its recent average, else its kind's, else one per listing."""
    of_kind: dict[str, list[float]] = defaultdict(list)
    for budgeted in followed:
        if budgeted.id in took:
            of_kind[budgeted.kind].append(took[budgeted.id])
    means = {kind: fmean(taken) for kind, taken in of_kind.items()}
    return {
        budgeted_source.id: took.get(
            budgeted_source.id, means.get(budgeted_source.kind, _at_first(budgeted_source.kind, platforms))
        )
        for budgeted_source in followed
    }


def _at_first(kind_name: str, platforms: Platforms) -> float:
    kind = platforms.kind(kind_name)
    return 2.0 if kind is not None and kind.newest is not None else 1.0


def budget_alerts(plans: Sequence[PlatformPlan]) -> list[AlertRequest]:
    """Returns alerts for insufficient budgets: nothing fails, but some sources are late, and that does not end by
    itself."""
    return [AlertRequest(f"platform {plan.platform}{BUDGET}", _alert(plan), Severity.P2) for plan in plans if plan.late]


def _alert(plan: PlatformPlan) -> Message:
    never = sum(1 for late_source in plan.late if late_source.minutes is None)
    late = len(plan.late) - never
    code = "budget.late_never" if late and never else "budget.late" if late else "budget.never"
    needs = message("budget.needs", count=plan.source_count, needed=_figure(plan.needed + plan.besides))
    allowed = _figure(plan.allowed or 0)
    return message(
        "alert.budget", platform=plan.platform, needs=needs, allowed=allowed, late=message(code, late=late, never=never)
    )


def is_tight(plan: PlatformPlan) -> bool:
    """Whether the plan uses more than `TIGHT` of the budget."""
    return plan.share is not None and plan.share > TIGHT


def summary(plan: PlatformPlan) -> str:
    """Returns a plan as one line of text."""
    needed = _figure(plan.needed + plan.besides)
    of = "requests per minute; no budget is declared"
    if plan.allowed is not None:
        of = f"of {_figure(plan.allowed)} requests per minute"
    sources = "1 source needs" if plan.source_count == 1 else f"{plan.source_count:,} sources need"
    return f"{plan.platform}: {sources} {needed} {of}"


def late_summary(late: PlannedDelay) -> str:
    """Returns how late a source will be, as text."""
    if late.minutes is None:
        return f"{late.need.name} will not be collected: sources of higher priority use the whole budget"
    return f"{late.need.name} will be {_span(late.minutes)} late"


def _span(minutes: int) -> str:
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60):,} h"


def _figure(number: float) -> str:
    """Formats a number with its significant digits only."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


class LateSourceView(View, frozen=True):
    """A source for which the budget does not suffice."""

    source_id: int
    name: str
    priority: str
    interval_minutes: int
    requests_per_visit: float
    late_minutes: int | None
    """None: never visited, while sources of higher priority use the whole budget."""
    summary: str


class PlanView(View, frozen=True):
    """What the sources of one platform need of its budget."""

    platform: str
    source_count: int
    needed_per_minute: float
    besides_per_minute: float
    allowed_per_minute: float | None
    share: float | None
    summary: str
    late_count: int
    late: tuple[LateSourceView, ...]
    """The worst of them."""


def plan_view(plan: PlatformPlan, limit: int) -> PlanView:
    """Returns the plan with at most `limit` of the sources that will be late."""
    return PlanView(
        platform=plan.platform,
        source_count=plan.source_count,
        needed_per_minute=round(plan.needed, 4),
        besides_per_minute=round(plan.besides, 4),
        allowed_per_minute=plan.allowed,
        share=None if plan.share is None else round(plan.share, 4),
        summary=summary(plan),
        late_count=len(plan.late),
        late=tuple(
            LateSourceView(
                late.need.source_id,
                late.need.name,
                late.need.priority,
                late.need.interval_minutes,
                round(late.need.requests, 2),
                late.minutes,
                late_summary(late),
            )
            for late in plan.late[:limit]
        ),
    )
