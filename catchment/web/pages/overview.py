"""The overview page: open problems and performance; or how to start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from statistics import median, quantiles
from typing import NamedTuple

from fastapi import Response

from catchment.app import App
from catchment.collect.budget_plan import is_tight
from catchment.errors import SlowDown
from catchment.fetch.budgets import Level
from catchment.health.metrics import MetricPoint
from catchment.messages import without_subject
from catchment.policy.budget_plan import PlannedDelay
from catchment.policy.outages import OFFLINE, OutageLevel
from catchment.status import MOST_WAITING, BudgetStatus, CacheFigures, DeploymentStatus
from catchment.store.sources.gaps import SourceGaps
from catchment.store.sources.metrics import MetricSpan
from catchment.web.dependencies import WebContext, seen_in
from catchment.web.pages import charts
from catchment.web.pages.item_views import headline
from catchment.web.pages.locale import Locale
from catchment.web.pages.render import Reader, live_view, render
from catchment.web.pages.runs import AlertRow, alert_rows, open_alert_rows

_MOST_PROBLEMS = 50
_MOST_RECOVERED = 4
_FEW = 6
_CHART_HOURS = 48
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_SHOWN = 8
"""Problems shown; the rest is counted."""
_MOST_SERIES = 6
"""Platforms with their own colour; the smallest share the last one."""
_USED_UP = 0.97
_LABELS = 5
_MOST_KEYS = 6
_FEW_LATE = 3
_DAY_MINUTES = 24 * 60
_LEAST_HOURS = 12
_LEAST_FOR_TENTHS = 10
"""With fewer values there is no 90th percentile."""


class OverviewProblem(NamedTuple):
    """A problem that needs attention: what it is, what helps, and the page to go to."""

    tone: str
    title: str
    href: str | None
    what: str
    helps: str | None
    detail: str = ""
    since: datetime | None = None
    names: Sequence[tuple[str, str]] = ()
    """The affected sources, if there are several, each with its page."""


def overview_page(context: WebContext, reader: Reader) -> Response:
    """The overview. Every part of it is bounded, so its cost does not grow with the archive."""
    app, status, locale = context.app, context.status(), reader.locale
    store = app.store
    # Of the alerts opened last, those that closed within a day.
    lately = store.alerts.closed(_MOST_RECOVERED)
    closed = [alert for alert in lately if alert.closed_at and alert.closed_at > status.now - _DAY]
    gaps, budgets = store.gaps.by_source(_MOST_PROBLEMS), status.budgets()
    needs = list(_needs(app, status, gaps, budgets, locale))
    hours = app.metrics_recorder.latest(MetricSpan.HOUR, _CHART_HOURS, app.clock.now())
    delays = store.rhythm_stats.delays([hour.starts_at for hour in hours], _HOUR)
    # The hours since the first visit, with a minimum: a new deployment fills its charts, too.
    first = next((index for index, hour in enumerate(hours) if hour.kinds), len(hours))
    start = min(first, len(hours) - _LEAST_HOURS)
    hours, delays = hours[start:], delays[start:]
    items = store.items.newest(12)
    names = store.sources.names(item.source_id for item in items)
    sources = {state: status.source_counts[state] for state in ("active", "paused", "retired")}
    return render(
        "overview.html",
        reader,
        is_empty=not sum(sources.values()) and not status.item_count,
        is_collecting=status.is_collecting,
        is_collected=status.is_collected,
        needs=needs[:_SHOWN],
        need_count=len(needs),
        sources=sources,
        item_count=status.item_count,
        day=status.day,
        gap_count=status.open_gap_count,
        gaps=gaps,
        pace=_pace(hours, locale),
        success=_success(hours, locale),
        delay=_delay(hours, delays, locale),
        hot=_hot(status.cache(), hours, locale),
        # Some of the hours, from left to right.
        labels=[
            locale.hour(hours[round(index * (len(hours) - 1) / (_LABELS - 1))].starts_at) for index in range(_LABELS)
        ],
        budgets=[_budget(budget, locale) for budget in budgets],
        headlines=[headline(item, names) for item in items],
        live=live_view(reader, seen_in(app)),
        recovered=[alert.replace(name=alert.source_name or alert.subject) for alert in alert_rows(app, locale, closed)],
        engine=status.engine,
        jobs=status.jobs,
        jobs_wrong=sum(1 for job in status.jobs if job.is_late or job.last_error),
    )


def _needs(
    app: App, status: DeploymentStatus, gaps: Sequence[SourceGaps], budgets: Sequence[BudgetStatus], locale: Locale
) -> Iterator[OverviewProblem]:
    """The problems, the most urgent first. A failing source with an alert is one problem, not two."""
    alerts = open_alert_rows(app, locale, _MOST_PROBLEMS)
    for alert in alerts:
        yield OverviewProblem(
            alert.tone, alert.name, alert.href, alert.what, alert.helps, alert.detail, alert.opened_at
        )
    yield from _late(app, status, locale)
    yield from _failures(status, alerts, locale)
    for budget in budgets:
        if budget.used >= _USED_UP:
            name, what = locale.name("platform", budget.platform), locale.gettext("has used its request budget")
            helps = locale.gettext(
                "It continues automatically. If this persists, use fewer sources or add a credential."
                if budget.is_per_credential
                else "It continues automatically. If this persists, use fewer sources or longer intervals."
            )
            yield OverviewProblem("warn", name, None, what, helps)
    for job in status.jobs:
        if job.is_late or job.last_error:
            what = locale.gettext("failed" if job.last_error else "is late")
            yield OverviewProblem("bad", locale.name("job", job.name), None, what, None, job.last_error or "")
    if gaps:
        yield OverviewProblem(
            "bad" if any(gap.certain for gap in gaps) else "warn",
            locale.ngettext("{count} gap is open", "{count} gaps are open", status.open_gap_count),
            "/gaps",
            locale.ngettext("in {count} source", "in {count} sources", len(gaps)),
            locale.gettext(
                "More was posted between two collections than the platform shows. A shorter interval helps."
            ),
            names=[(row.source_name, f"/gaps?source={row.source_id}") for row in gaps[:_SHOWN]],
        )


def _late(app: App, status: DeploymentStatus, locale: Locale) -> Iterator[OverviewProblem]:
    source_ids = status.overdue(MOST_WAITING)
    count, first = len(source_ids), app.store.sources.names(source_ids[:_FEW])
    names = [(name, f"/sources/{source_id}") for source_id, name in first.items()]
    if not status.is_collected:
        helps = locale.gettext("Start `catchment serve` without --no-collect, or `catchment collect --loop`.")
        if status.engine is not None:
            helps = locale.gettext("Start `catchment worker`.")
        what = locale.gettext("at the moment")
        if names:
            what = locale.ngettext("{count} source is waiting", "{count} sources are waiting", count)
        yield OverviewProblem("bad", locale.gettext("No process is collecting"), None, what, helps, names=names)
    elif names:
        title = locale.ngettext("{count} source is late", "{count} sources are late", count)
        helps = locale.gettext(
            "The page of each source says why. Longer intervals or a higher COLLECTOR_CONCURRENCY help."
        )
        yield OverviewProblem("warn", title, "/sources?order=troubled", "", helps, names=names)


def _failures(status: DeploymentStatus, alerts: Sequence[AlertRow], locale: Locale) -> Iterator[OverviewProblem]:
    """Common causes of failures, and other failing sources, unless an alert reports them already."""
    subjects, reported_ids = {alert.subject for alert in alerts}, {alert.source_id for alert in alerts}
    names = {source.id: source.name for source in status.failing}
    for cause in status.causes:
        reported_ids |= set(cause.source_ids)
        if cause.subject in subjects:
            continue
        affected = [(names[id_], f"/sources/{id_}") for id_ in cause.source_ids[:_SHOWN]]
        if cause.level is OutageLevel.NETWORK:
            title = locale.lookup("alert", OFFLINE) or ""
            what = locale.gettext("None of {count} hosts can be reached", count=locale.number(cause.site_count))
        else:
            is_platform = cause.level is OutageLevel.PLATFORM
            title = locale.name("platform", cause.name) if is_platform else cause.name
            what = locale.ngettext(
                "does not answer: {count} source", "does not answer: {count} sources", len(cause.source_ids)
            )
        helps = locale.lookup("alert_helps", f"{cause.level} {cause.subject.split()[-1]}")
        yield OverviewProblem("bad", title, "/sources?order=troubled", what, helps, names=affected)
    for source in status.failing:
        # A source that was asked to wait has not failed.
        if source.id not in reported_ids and source.last_error_code != SlowDown.code:
            count, href = source.failures_in_a_row or 1, f"/sources/{source.id}"
            what = locale.ngettext("last collection failed", "failing ({count} in a row)", count)
            helps, detail = locale.error(source.last_error_code, None), without_subject(source.last_error)
            yield OverviewProblem("warn", source.name, href, what, helps, locale.message(detail), source.last_polled_at)


class Pace(NamedTuple):
    """New items per hour, by platform."""

    chart: charts.Stacked
    names: list[tuple[int, str, int]]
    """The index of the series, its name, and its total."""
    total: int


def _pace(hours: Sequence[MetricPoint], locale: Locale) -> Pace:
    each = [Counter[str]() for _ in hours]
    for counts, hour in zip(each, hours, strict=True):
        for kind in hour.kinds:
            counts[kind.platform] += kind.new_count
    totals: Counter[str] = sum(each, Counter())
    ranked = [name for name, _ in totals.most_common()]
    own, others = ranked[: _MOST_SERIES - 1], ranked[_MOST_SERIES - 1 :]
    columns = []
    for hour, counts in zip(hours, each, strict=True):
        parts = [
            f"{locale.name('platform', name)} {locale.number(count)}" for name, count in counts.most_common() if count
        ]
        values = [*(counts[name] for name in own), sum(counts[name] for name in others)]
        columns.append((f"{locale.day_and_time(hour.starts_at)}: {', '.join(parts) or '0'}", values))
    names = [(index, locale.name("platform", name), totals[name]) for index, name in enumerate(own, 1)]
    if others:
        names.append((_MOST_SERIES, locale.gettext("others"), sum(totals[name] for name in others)))
    return Pace(charts.stacked(columns), names, totals.total())


class Trend(NamedTuple):
    chart: charts.Lines
    now: str
    """The figure for the whole period, as text."""
    top: str


def _success(hours: Sequence[MetricPoint], locale: Locale) -> Trend | None:
    """The success rate of visits."""
    succeeded, failed = sum(hour.succeeded for hour in hours), sum(hour.failed for hour in hours)
    if not succeeded + failed:
        return None
    share = locale.share(succeeded / (succeeded + failed))
    return _share_trend(hours, [hour.success_rate for hour in hours], share, locale)


def _share_trend(hours: Sequence[MetricPoint], shares: Sequence[float | None], now: str, locale: Locale) -> Trend:
    texts = ["–" if share is None else locale.share(share) for share in shares]
    return Trend(charts.lines(_by_hour(hours, texts, locale), [shares], 1.0), now, locale.share(1.0))


def _delay(hours: Sequence[MetricPoint], delays: Sequence[Sequence[float]], locale: Locale) -> Trend | None:
    """Capture delay, from post to capture: median and 90th percentile."""
    everything = [delay for sequence in delays for delay in sequence]
    if not everything:
        return None
    halves = [median(delay) if delay else None for delay in delays]
    tenths = [quantiles(delay, n=10)[-1] if len(delay) >= _LEAST_FOR_TENTHS else None for delay in delays]
    texts = []
    for half, tenth in zip(halves, tenths, strict=True):
        text = "–" if half is None else locale.gettext("median {span}", span=locale.span(half))
        if tenth is not None:
            text += f", {locale.gettext('90th percentile {span}', span=locale.span(tenth))}"
        texts.append(text)
    most = max(value for value in (*halves, *tenths, 60.0) if value is not None)
    chart = charts.lines(_by_hour(hours, texts, locale), [halves, tenths], most)
    return Trend(chart, locale.span(median(everything)), locale.span(most))


def _by_hour(hours: Sequence[MetricPoint], texts: Sequence[str], locale: Locale) -> list[str]:
    return [f"{locale.day_and_time(hour.starts_at)}: {text}" for hour, text in zip(hours, texts, strict=True)]


def _hot(cache: CacheFigures | None, hours: Sequence[MetricPoint], locale: Locale) -> dict[str, object] | None:
    """The cache's hit rate, in a day and by hour."""
    if cache is None:
        return None
    reads = cache.hits + cache.misses
    text, trend = locale.gettext("No reads in the last 24 hours"), None
    if reads:
        share, count = locale.share(cache.hits / reads), locale.number(reads)
        text = locale.gettext("Hit rate {share} of {count} reads", share=share, count=count)
        trend = _share_trend(hours, [hour.hit_rate for hour in hours], text, locale)
    return {"home": cache.home, "entries": cache.entries, "text": text, "trend": trend}


def _budget(row: BudgetStatus, locale: Locale) -> dict[str, object]:
    """The use of a platform's budget in words, the expected use, and whether it suffices."""
    levels, plan = row.levels, row.plan
    used, limit = sum(level.used for level in levels), sum(level.limit for level in levels)
    if plan.allowed is None:
        # Its sources are read through services with a budget each; every collection chooses one.
        verdict = ""
    elif plan.late:
        verdict = locale.ngettext(
            "The budget is not sufficient: high-priority sources go first; {count} source will be late.",
            "The budget is not sufficient: high-priority sources go first; {count} sources will be late.",
            len(plan.late),
        )
    else:
        verdict = locale.gettext("The budget is just sufficient." if is_tight(plan) else "The budget is sufficient.")
    # Per minute, or per day if a minute needs less than one request.
    needed = plan.needed + plan.besides
    times = 1 if needed >= 1 else _DAY_MINUTES
    count = locale.number(round(needed * times))
    if plan.allowed is None:
        pace = locale.gettext(
            "{needed} requests per minute" if times == 1 else "{needed} requests per day", needed=count
        )
    else:
        pace = locale.gettext(
            "{needed} of {allowed} requests per minute" if times == 1 else "{needed} of {allowed} requests per day",
            needed=count,
            allowed=locale.number(round(plan.allowed * times)),
        )
    return {
        "name": locale.name("platform", row.platform),
        "share": used / limit,
        "window": locale.gettext(
            "{used} of {count} requests in {span}",
            used=locale.number(used),
            count=locale.number(limit),
            span=locale.span(row.window_seconds),
        ),
        "day": locale.ngettext("{count} in 24 hours", "{count} in 24 hours", row.day_used),
        # One line per credential, if there are several.
        "credentials": [_level(level, locale) for level in levels[:_MOST_KEYS]] if len(levels) > 1 else [],
        "more_credentials": max(0, len(levels) - _MOST_KEYS),
        "planned_share": plan.share,
        "needs": locale.ngettext(
            "{count} source needs {pace}.", "{count} sources need {pace}.", plan.source_count, pace=pace
        ),
        "verdict": verdict,
        # The worst first: name, page, and by how much.
        "late": [
            (late.need.name, f"/sources/{late.need.source_id}", _lateness(late, locale))
            for late in plan.late[:_FEW_LATE]
        ],
        "more_late": max(0, len(plan.late) - _FEW_LATE),
    }


def _level(level: Level, locale: Locale) -> str:
    text = locale.gettext(
        "{name}: {used} of {count}",
        name=level.credential,
        used=locale.number(level.used),
        count=locale.number(level.limit),
    )
    if level.opens_at is None:
        return text
    return f"{text} – {locale.gettext('used up; next request {when}', when=locale.next(level.opens_at))}"


def _lateness(late: PlannedDelay, locale: Locale) -> str:
    if late.minutes is None:
        return locale.gettext("never collected")
    return locale.gettext("{span} late", span=locale.span(late.minutes * 60))
