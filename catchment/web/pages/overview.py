"""The overview page: open problems and performance; or how to start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median, quantiles
from typing import NamedTuple

from catchment.collect.budget_plan import is_tight
from catchment.errors import SlowDown
from catchment.fetch import Level
from catchment.health.metrics import MetricPoint
from catchment.messages import without_subject
from catchment.model import Record
from catchment.policy.budget_plan import Late, PlatformPlan
from catchment.policy.outages import OFFLINE, CommonCause, OutageLevel
from catchment.status import MOST_WAITING, BudgetStatus, CacheFigures, JobStatus
from catchment.store.sources.gaps import SourceGaps
from catchment.store.sources.metrics import MetricSpan
from catchment.store.sources.runs import DayView
from catchment.store.sources.stats import FailingSource
from catchment.web.dependencies import WebContext, seen_in
from catchment.web.pages import charts
from catchment.web.pages.item_views import headline
from catchment.web.pages.items import names_of_sources
from catchment.web.pages.locale import Locale
from catchment.web.pages.render import Reader, live_view, page, plain_error
from catchment.web.pages.runs import AlertRow, alert_rows, most_urgent_first

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
    detail: str
    since: datetime | None
    names: Sequence[tuple[str, str]] = ()
    """The affected sources, if there are several, each with its page."""


class Overview(Record, frozen=True):
    """The data of the page. Every part is bounded, so its cost does not grow with the archive."""

    is_collecting: bool
    """This process collects."""
    is_collected: bool
    """Some process collects."""
    sources: Mapping[str, int]
    """By state."""
    failing: Sequence[FailingSource]
    causes: Sequence[CommonCause]
    late_count: int
    late: Mapping[int, str]
    """Ids and names of the first late sources."""
    item_count: int
    day: DayView
    alerts: Sequence[AlertRow]
    recovered: Sequence[AlertRow]
    gap_count: int
    gaps: Sequence[SourceGaps]
    jobs: Sequence[JobStatus]
    budgets: Sequence[BudgetStatus]


def _overview(context: WebContext, locale: Locale) -> Overview:
    status, app = context.status(), context.app
    store, late = app.store, status.overdue(MOST_WAITING)
    # Of the alerts opened last, those that closed within a day.
    lately = store.alerts.closed(_MOST_RECOVERED)
    closed = [alert for alert in lately if alert.closed_at and alert.closed_at > status.now - _DAY]
    return Overview(
        is_collecting=status.is_collecting,
        is_collected=status.is_collected,
        sources={state: status.source_counts[state] for state in ("active", "paused", "retired")},
        failing=status.failing,
        causes=status.causes,
        late_count=len(late),
        late=store.sources.names(late[:_FEW]),
        item_count=status.item_count,
        day=status.day,
        alerts=most_urgent_first(alert_rows(app, locale, store.alerts.open(_MOST_PROBLEMS))),
        recovered=[alert.replace(name=alert.source_name or alert.subject) for alert in alert_rows(app, locale, closed)],
        gap_count=status.open_gap_count,
        gaps=store.gaps.by_source(_MOST_PROBLEMS),
        jobs=status.jobs,
        budgets=status.budgets(),
    )


def overview_page(context: WebContext, reader: Reader) -> str:
    app, locale = context.app, reader.locale
    overview = _overview(context, locale)
    needs = list(_needs(overview, locale))
    all_hours = app.measuring.latest(MetricSpan.HOUR, _CHART_HOURS, app.clock.now())
    all_delays = app.store.rhythm_stats.delays([hour.starts_at for hour in all_hours], _HOUR)
    hours, delays = _telling(all_hours, all_delays)
    items = app.store.items.newest(12)
    names = names_of_sources(app, items)
    return page(
        "overview.html",
        reader,
        known=overview,
        needs=needs[:_SHOWN],
        need_count=len(needs),
        is_empty=not sum(overview.sources.values()) and not overview.item_count,
        headlines=[headline(item, names) for item in items],
        recovered=overview.recovered,
        pace=_pace(hours, locale),
        success=_success(hours, locale),
        delay=_delay(hours, delays, locale),
        labels=_labels(hours, locale),
        jobs_wrong=sum(1 for job in overview.jobs if job.is_late or job.last_error),
        budgets=[_budget(budget, locale) for budget in overview.budgets],
        hot=_hot(context.status().cache(), hours, locale),
        live=live_view(reader, seen_in(app)),
    )


# ── problems ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _needs(overview: Overview, locale: Locale) -> Iterator[OverviewProblem]:
    """The problems, the most urgent first. A failing source with an alert is one problem, not two."""
    for alert in overview.alerts:
        yield OverviewProblem(
            alert.tone, alert.name, alert.href, alert.what, alert.helps, alert.detail, alert.opened_at
        )
    yield from _late(overview, locale)
    # The sources whose failures are reported already: by an alert, or as one common cause.
    explained = {source_id for cause in overview.causes for source_id in cause.source_ids}
    reported_ids = {alert.source_id for alert in overview.alerts} | explained
    yield from _causes(overview, locale)
    for source in overview.failing:
        # A source that was asked to wait has not failed.
        if source.id not in reported_ids and source.last_error_code != SlowDown.code:
            yield _failing(source, locale)
    yield from _budgets(overview, locale)
    for job in overview.jobs:
        if job.is_late or job.last_error:
            what = locale.gettext("failed") if job.last_error else locale.gettext("is late")
            yield OverviewProblem("bad", locale.name("job", job.name), None, what, None, job.last_error or "", None)
    yield from _missing(overview, locale)


def _late(overview: Overview, locale: Locale) -> Iterator[OverviewProblem]:
    names = [(name, f"/sources/{source_id}") for source_id, name in overview.late.items()]
    if not overview.is_collected:
        helps = locale.gettext("Start `catchment serve` without --no-collect, or `catchment collect --loop`.")
        what = (
            locale.ngettext("{count} source is waiting", "{count} sources are waiting", overview.late_count)
            if names
            else locale.gettext("at the moment")
        )
        yield OverviewProblem("bad", locale.gettext("No process is collecting"), None, what, helps, "", None, names)
    elif names:
        title = locale.ngettext("{count} source is late", "{count} sources are late", overview.late_count)
        yield OverviewProblem(
            "warn",
            title,
            "/sources?order=troubled",
            "",
            locale.gettext(
                "The page of each source says why. Longer intervals or a higher COLLECTOR_CONCURRENCY help."
            ),
            "",
            None,
            names,
        )


def _causes(overview: Overview, locale: Locale) -> Iterator[OverviewProblem]:
    """Common causes of the failures of several sources, unless an alert reports them already."""
    subjects = {alert.subject for alert in overview.alerts}
    names = {source.id: source.name for source in overview.failing}
    for cause in overview.causes:
        if cause.subject in subjects:
            continue
        affected = [(names[id_], f"/sources/{id_}") for id_ in cause.source_ids[:_SHOWN]]
        if cause.level is OutageLevel.NETWORK:
            title, what = (
                locale.known("alert", OFFLINE) or "",
                locale.gettext("None of {count} hosts can be reached", count=locale.number(cause.site_count)),
            )
        else:
            is_platform = cause.level is OutageLevel.PLATFORM
            title = locale.name("platform", cause.name) if is_platform else cause.name
            what = locale.ngettext(
                "does not answer: {count} source", "does not answer: {count} sources", len(cause.source_ids)
            )
        helps = locale.known("alert_helps", f"{cause.level} {cause.subject.split()[-1]}")
        yield OverviewProblem("bad", title, "/sources?order=troubled", what, helps, "", None, affected)


def _failing(row: FailingSource, locale: Locale) -> OverviewProblem:
    what = locale.ngettext("last collection failed", "failing ({count} in a row)", row.failures_in_a_row or 1)
    helps = plain_error(locale, row.last_error_code, None)
    detail = locale.message(without_subject(row.last_error))
    return OverviewProblem("warn", row.name, f"/sources/{row.id}", what, helps, detail, row.last_polled_at)


def _budgets(overview: Overview, locale: Locale) -> Iterator[OverviewProblem]:
    for budget in overview.budgets:
        if budget.used >= _USED_UP:
            helps = (
                locale.gettext("It continues automatically. If this persists, use fewer sources or add a credential.")
                if budget.is_per_credential
                else locale.gettext(
                    "It continues automatically. If this persists, use fewer sources or longer intervals."
                )
            )
            yield OverviewProblem(
                "warn",
                locale.name("platform", budget.platform),
                None,
                locale.gettext("has used its request budget"),
                helps,
                "",
                None,
            )


def _missing(overview: Overview, locale: Locale) -> Iterator[OverviewProblem]:
    if not overview.gaps:
        return
    yield OverviewProblem(
        "bad" if any(gap.certain for gap in overview.gaps) else "warn",
        locale.ngettext("{count} gap is open", "{count} gaps are open", overview.gap_count),
        "/gaps",
        locale.ngettext("in {count} source", "in {count} sources", len(overview.gaps)),
        locale.gettext("More was posted between two collections than the platform shows. A shorter interval helps."),
        "",
        None,
        [(row.source_name, f"/gaps?source={row.source_id}") for row in overview.gaps[:_SHOWN]],
    )


# ── performance ───────────────────────────────────────────────────────────────────────────────────────────────────


def _telling(
    hours: Sequence[MetricPoint], delays: Sequence[Sequence[float]]
) -> tuple[Sequence[MetricPoint], Sequence[Sequence[float]]]:
    """The hours since the first visit, with a minimum: a new deployment fills its charts, too."""
    first = next((index for index, hour in enumerate(hours) if hour.kinds), len(hours))
    start = min(first, len(hours) - _LEAST_HOURS)
    return hours[start:], delays[start:]


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
    columns = [
        (
            _hour_said(locale, hour, _counted(locale, counts)),
            [*(counts[name] for name in own), sum(counts[name] for name in others)],
        )
        for hour, counts in zip(hours, each, strict=True)
    ]
    names = [(index, locale.name("platform", name), totals[name]) for index, name in enumerate(own, 1)]
    if others:
        names.append((_MOST_SERIES, locale.gettext("others"), sum(totals[name] for name in others)))
    return Pace(charts.stacked(columns), names, totals.total())


def _counted(locale: Locale, counts: Counter[str]) -> str:
    parts = [f"{locale.name('platform', name)} {locale.number(count)}" for name, count in counts.most_common() if count]
    return ", ".join(parts) or "0"


class Trend(NamedTuple):
    chart: charts.Lines
    now: str
    """The figure for the whole period, as text."""
    top: str


def _success(hours: Sequence[MetricPoint], locale: Locale) -> Trend | None:
    """The success rate of visits."""
    well, failed = sum(hour.succeeded for hour in hours), sum(hour.failed for hour in hours)
    if not well + failed:
        return None
    shares = [hour.success_rate for hour in hours]
    words = [
        _hour_said(locale, hour, "–" if share is None else locale.share(share))
        for hour, share in zip(hours, shares, strict=True)
    ]
    return Trend(charts.lines(words, [shares], 1.0), locale.share(well / (well + failed)), locale.share(1.0))


def _delay(hours: Sequence[MetricPoint], delays: Sequence[Sequence[float]], locale: Locale) -> Trend | None:
    """Capture delay, from post to capture: median and 90th percentile."""
    everything = [delay for sequence in delays for delay in sequence]
    if not everything:
        return None
    halves = [median(delay) if delay else None for delay in delays]
    tenths = [_nine_of_ten(delay) for delay in delays]
    words = [
        _hour_said(locale, hour, _delay_said(locale, half, tenth))
        for hour, half, tenth in zip(hours, halves, tenths, strict=True)
    ]
    most = max(value for value in (*halves, *tenths, 60.0) if value is not None)
    return Trend(charts.lines(words, [halves, tenths], most), locale.span(median(everything)), locale.span(most))


def _nine_of_ten(delays: Sequence[float]) -> float | None:
    return quantiles(delays, n=10)[-1] if len(delays) >= _LEAST_FOR_TENTHS else None


def _delay_said(locale: Locale, half: float | None, tenth: float | None) -> str:
    if half is None:
        return "–"
    text = locale.gettext("median {span}", span=locale.span(half))
    return text if tenth is None else f"{text}, {locale.gettext('90th percentile {span}', span=locale.span(tenth))}"


def _hour_said(locale: Locale, hour: MetricPoint, words: str) -> str:
    return f"{locale.day_and_time(hour.starts_at)}: {words}"


def _labels(hours: Sequence[MetricPoint], locale: Locale) -> list[str]:
    """Some of the hours, from left to right."""
    last = len(hours) - 1
    chosen = [hours[round(index * last / (_LABELS - 1))] for index in range(_LABELS)]
    return [locale.hour(hour.starts_at) for hour in chosen]


# ── budgets ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Forecast(NamedTuple):
    """The expected use of a budget, and whether it suffices."""

    share: float
    needs: str
    verdict: str
    is_enough: bool
    late: list[tuple[str, str, str]]
    """The sources that will be late, the worst first: name, page, and by how much."""
    more: int
    """How many more will be late."""


class BudgetRow(NamedTuple):
    """The use of a platform's budget in words."""

    name: str
    share: float
    window: str
    day: str
    keys: list[str]
    """One line per credential, if there are several."""
    more_keys: int
    forecast: Forecast


def _budget(row: BudgetStatus, locale: Locale) -> BudgetRow:
    levels = row.levels
    used, limit = sum(level.used for level in levels), sum(level.limit for level in levels)
    return BudgetRow(
        name=locale.name("platform", row.platform),
        share=used / limit,
        window=locale.gettext(
            "{used} of {count} requests in {span}",
            used=locale.number(used),
            count=locale.number(limit),
            span=locale.span(row.window_seconds),
        ),
        day=locale.ngettext("{count} in 24 hours", "{count} in 24 hours", row.day_used),
        keys=[_level(level, locale) for level in levels[:_MOST_KEYS]] if len(levels) > 1 else [],
        more_keys=max(0, len(levels) - _MOST_KEYS),
        forecast=_forecast(row.plan, locale),
    )


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


def _forecast(plan: PlatformPlan, locale: Locale) -> Forecast:
    needs = locale.ngettext(
        "{count} source needs {pace}.", "{count} sources need {pace}.", plan.source_count, pace=_pace_said(plan, locale)
    )
    late = [
        (late_source.need.name, f"/sources/{late_source.need.source_id}", _gives_way(late_source, locale))
        for late_source in plan.late[:_FEW_LATE]
    ]
    more = len(plan.late) - len(late)
    return Forecast(plan.share or 0.0, needs, _verdict(plan, locale), not plan.late, late, more)


def _verdict(plan: PlatformPlan, locale: Locale) -> str:
    if plan.late:
        return locale.ngettext(
            "The budget is not sufficient: high-priority sources go first; {count} source will be late.",
            "The budget is not sufficient: high-priority sources go first; {count} sources will be late.",
            len(plan.late),
        )
    return locale.gettext("The budget is just sufficient." if is_tight(plan) else "The budget is sufficient.")


def _pace_said(plan: PlatformPlan, locale: Locale) -> str:
    """Per minute, or per day if a minute needs less than one request."""
    needed, allowed = plan.needed + plan.besides, plan.allowed or 0.0
    times = 1 if needed >= 1 else _DAY_MINUTES
    return locale.gettext(
        "{needed} of {allowed} requests per minute" if times == 1 else "{needed} of {allowed} requests per day",
        needed=locale.number(round(needed * times)),
        allowed=locale.number(round(allowed * times)),
    )


def _gives_way(late: Late, locale: Locale) -> str:
    return (
        locale.gettext("never collected")
        if late.minutes is None
        else locale.gettext("{span} late", span=locale.span(late.minutes * 60))
    )


class CacheRow(NamedTuple):
    home: str
    entries: int
    told: str
    trend: Trend | None


def _hot(cache: CacheFigures | None, hours: Sequence[MetricPoint], locale: Locale) -> CacheRow | None:
    """The cache's hit rate, in a day and by hour."""
    if cache is None:
        return None
    reads = cache.hits + cache.misses
    share = cache.hits / reads if reads else None
    rates = [hour.hit_rate for hour in hours]
    words = [
        _hour_said(locale, hour, "–" if rate is None else locale.share(rate))
        for hour, rate in zip(hours, rates, strict=True)
    ]
    text = (
        locale.gettext("No reads in the last 24 hours")
        if share is None
        else locale.gettext("Hit rate {share} of {count} reads", share=locale.share(share), count=locale.number(reads))
    )
    trend = Trend(charts.lines(words, [rates], 1.0), text, locale.share(1.0)) if reads else None
    return CacheRow(cache.home, cache.entries, text, trend)
