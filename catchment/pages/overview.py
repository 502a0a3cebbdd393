"""The overview: what needs somebody now, and how it runs; or how to begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, quantiles
from typing import Any, NamedTuple

from catchment.collect.planning import is_tight
from catchment.errors import SlowDown
from catchment.fetch import Level
from catchment.pages import charts
from catchment.pages.live import live_told
from catchment.pages.reading import headline
from catchment.pages.records import alarming, without_name
from catchment.pages.showing import Reader, page, plain_error
from catchment.pages.words import Speech
from catchment.plan import Late, Plan

_SHOWN = 8
"""Of those that need a look; the rest is counted."""
_MOST_SERIES = 6
"""Platforms that have a colour of their own; the smallest share the last one."""
_USED_UP = 0.97
_LABELS = 5
_MOST_KEYS = 6
_FEW_LATE = 3
_DAY_MINUTES = 24 * 60
_LEAST_HOURS = 12
_LEAST_FOR_TENTHS = 10
"""With fewer values, nine of ten cannot be told."""


class Need(NamedTuple):
    """Something that somebody should look at: what it is, what helps, and where to go."""

    tone: str
    title: str
    href: str | None
    what: str
    helps: str | None
    detail: str
    since: str | None
    names: Sequence[tuple[str, str]] = ()
    """Whom it concerns, where it concerns several, each with its page."""


def start(known: Mapping[str, Any], reader: Reader) -> str:
    say = reader.speech
    needs = list(_needs(known, say))
    hours, delays = _telling(known["hours"], known["delays"])
    return page(
        "overview.html",
        reader,
        known=known,
        needs=needs[:_SHOWN],
        need_count=len(needs),
        is_empty=not sum(known["sources"].values()) and not known["item_count"],
        headlines=[headline(item, item["source_name"]) for item in known["items"]],
        recovered=[one | {"name": one["source_name"] or one["subject"]} for one in known["recovered"]],
        pace=_pace(hours, say),
        success=_success(hours, say),
        delay=_delay(hours, delays, say),
        labels=_labels(hours, say),
        jobs_wrong=sum(1 for one in known["jobs"] if one["is_late"] or one["last_error"]),
        budgets=[_budget(one, say) for one in known["budgets"]],
        hot=_hot(known["hot"], hours, say),
        live=live_told(reader, known["live"]),
    )


# ── what needs a look ─────────────────────────────────────────────────────────────────────────────────────────────


def _needs(known: Mapping[str, Any], say: Speech) -> Iterator[Need]:
    """The most urgent first. A failing source with an alert is one thing to look at, not two."""
    for one in alarming(say, known["alerts"]):
        yield Need(one["tone"], one["name"], one["href"], one["what"], one["helps"], one["detail"], one["opened_at"])
    yield from _late(known, say)
    alarmed = {alert["source_id"] for alert in known["alerts"]}
    for one in known["failing"]:
        # Who was asked to wait waits: that is nobody's failure.
        if one["id"] not in alarmed and one["last_error_code"] != SlowDown.code:
            yield _failing(one, say)
    yield from _budgets(known, say)
    for one in known["jobs"]:
        if one["is_late"] or one["last_error"]:
            what = say("need_job_failed" if one["last_error"] else "need_job_late")
            yield Need("bad", say.named("job", one["name"]), None, what, None, one["last_error"] or "", None)
    yield from _missing(known, say)


def _late(known: Mapping[str, Any], say: Speech) -> Iterator[Need]:
    names = [(name, f"/sources/{source_id}") for source_id, name in known["late"].items()]
    if not known["is_collected"]:
        helps = say("need_nobody_helps")
        what = say.counted("need_nobody", known["late_count"]) if names else say("need_nobody_idle")
        yield Need("bad", say("need_nobody_title"), None, what, helps, "", None, names)
    elif names:
        title = say.counted("need_late", known["late_count"])
        yield Need("warn", title, "/sources?order=troubled", "", say("need_late_helps"), "", None, names)


def _failing(one: Mapping[str, Any], say: Speech) -> Need:
    what = say.counted("failing_times", one["failures_in_a_row"] or 1)
    helps = plain_error(say, one["last_error_code"], None)
    detail = without_name(one["last_error"], one["name"], one["id"])
    return Need("warn", one["name"], f"/sources/{one['id']}", what, helps, detail, one["last_polled_at"])


def _budgets(known: Mapping[str, Any], say: Speech) -> Iterator[Need]:
    for one in known["budgets"]:
        if one["used"] >= _USED_UP:
            helps = say("need_budget_helps_key" if one["is_per_credential"] else "need_budget_helps")
            yield Need("warn", say.named("platform", one["platform"]), None, say("need_budget"), helps, "", None)


def _missing(known: Mapping[str, Any], say: Speech) -> Iterator[Need]:
    if not known["gaps"]:
        return
    certain = sum(one["certain"] for one in known["gaps"])
    yield Need(
        "bad" if certain else "warn",
        say.counted("need_gaps", known["gap_count"]),
        "/gaps",
        say.counted("need_gaps_in", len(known["gaps"])),
        say("need_gaps_helps"),
        "",
        None,
        [(one["source_name"], f"/gaps?source={one['source_id']}") for one in known["gaps"][:_SHOWN]],
    )


# ── how it runs ───────────────────────────────────────────────────────────────────────────────────────────────────


def _telling(
    hours: Sequence[Mapping[str, Any]], delays: Sequence[Sequence[float]]
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Sequence[float]]]:
    """The hours since something was first visited, and not too few: a young deployment fills its charts, too."""
    first = next((place for place, hour in enumerate(hours) if hour["kinds"]), len(hours))
    start = min(first, len(hours) - _LEAST_HOURS)
    return hours[start:], delays[start:]


class Pace(NamedTuple):
    """New items hour by hour, by platform."""

    chart: charts.Stacked
    names: list[tuple[int, str, int]]
    """The series by its place, its name, and what it came to in all."""
    total: int


def _pace(hours: Sequence[Mapping[str, Any]], say: Speech) -> Pace:
    each = [Counter[str]() for _ in hours]
    for counts, hour in zip(each, hours, strict=True):
        for kind in hour["kinds"]:
            counts[kind["platform"]] += kind["new_count"]
    totals: Counter[str] = sum(each, Counter())
    ranked = [name for name, _ in totals.most_common()]
    own, others = ranked[: _MOST_SERIES - 1], ranked[_MOST_SERIES - 1 :]
    columns = [
        (
            _hour_said(say, hour, _counted(say, counts)),
            [*(counts[name] for name in own), sum(counts[name] for name in others)],
        )
        for hour, counts in zip(hours, each, strict=True)
    ]
    names = [(place, say.named("platform", name), totals[name]) for place, name in enumerate(own, 1)]
    if others:
        names.append((_MOST_SERIES, say("pace_others"), sum(totals[name] for name in others)))
    return Pace(charts.stacked(columns), names, totals.total())


def _counted(say: Speech, counts: Counter[str]) -> str:
    parts = [f"{say.named('platform', name)} {say.number(count)}" for name, count in counts.most_common() if count]
    return ", ".join(parts) or "0"


class Trend(NamedTuple):
    chart: charts.Lines
    now: str
    """The figure of the whole time, in words."""
    top: str


def _success(hours: Sequence[Mapping[str, Any]], say: Speech) -> Trend | None:
    """The share of visits that went well."""
    well, failed = (sum(hour[name] for hour in hours) for name in ("succeeded", "failed"))
    if not well + failed:
        return None
    shares = [hour["success_rate"] for hour in hours]
    words = [
        _hour_said(say, hour, "–" if share is None else say.share(share))
        for hour, share in zip(hours, shares, strict=True)
    ]
    return Trend(charts.lines(words, [shares], 1.0), say.share(well / (well + failed)), say.share(1.0))


def _delay(hours: Sequence[Mapping[str, Any]], delays: Sequence[Sequence[float]], say: Speech) -> Trend | None:
    """How long it takes from a post to its capture: half of them, and nine of ten, are faster."""
    everything = [delay for one in delays for delay in one]
    if not everything:
        return None
    halves = [median(one) if one else None for one in delays]
    tenths = [_nine_of_ten(one) for one in delays]
    words = [
        _hour_said(say, hour, _delay_said(say, half, tenth))
        for hour, half, tenth in zip(hours, halves, tenths, strict=True)
    ]
    most = max(value for value in (*halves, *tenths, 60.0) if value is not None)
    return Trend(charts.lines(words, [halves, tenths], most), say.span(median(everything)), say.span(most))


def _nine_of_ten(delays: Sequence[float]) -> float | None:
    return quantiles(delays, n=10)[-1] if len(delays) >= _LEAST_FOR_TENTHS else None


def _delay_said(say: Speech, half: float | None, tenth: float | None) -> str:
    if half is None:
        return "–"
    said = say("delay_half", span=say.span(half))
    return said if tenth is None else f"{said}, {say('delay_tenth', span=say.span(tenth))}"


def _hour_said(say: Speech, hour: Mapping[str, Any], words: str) -> str:
    return f"{say.day_and_time(hour['starts_at'])}: {words}"


def _labels(hours: Sequence[Mapping[str, Any]], say: Speech) -> list[str]:
    """A few of the hours, from left to right."""
    last = len(hours) - 1
    chosen = [hours[round(place * last / (_LABELS - 1))] for place in range(_LABELS)]
    return [say.hour(one["starts_at"]) for one in chosen]


# ── budgets ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Forecast(NamedTuple):
    """What will be needed of a budget, and whether that is there."""

    share: float
    needs: str
    verdict: str
    is_enough: bool
    late: list[tuple[str, str, str]]
    """Who gives way, the worst first: its name, its page, and by how much."""
    more: int
    """So many more do."""


def _budget(one: Mapping[str, Any], say: Speech) -> dict[str, Any]:
    levels = one["levels"]
    used, limit = sum(level.used for level in levels), sum(level.limit for level in levels)
    return {
        "name": say.named("platform", one["platform"]),
        "share": used / limit,
        "window": say(
            "budget_of", used=say.number(used), count=say.number(limit), span=say.span(one["window_seconds"])
        ),
        "day": say.counted("budget_day", one["day_used"]),
        "keys": [_level(level, say) for level in levels[:_MOST_KEYS]] if len(levels) > 1 else [],
        "more_keys": max(0, len(levels) - _MOST_KEYS),
        "forecast": _forecast(one["plan"], say),
    }


def _level(level: Level, say: Speech) -> str:
    said = say("budget_key", name=level.credential, used=say.number(level.used), count=say.number(level.limit))
    if level.opens_at is None:
        return said
    return f"{said} – {say('budget_opens', when=say.next(level.opens_at.isoformat()))}"


def _forecast(plan: Plan, say: Speech) -> Forecast:
    needs = say.counted("forecast_needs", plan.source_count, pace=_pace_said(plan, say))
    late = [(one.need.name, f"/sources/{one.need.source_id}", _gives_way(one, say)) for one in plan.late[:_FEW_LATE]]
    more = len(plan.late) - len(late)
    return Forecast(plan.share or 0.0, needs, _verdict(plan, say), not plan.late, late, more)


def _verdict(plan: Plan, say: Speech) -> str:
    if plan.late:
        return say.counted("forecast_late", len(plan.late))
    return say("forecast_tight" if is_tight(plan) else "forecast_suffices")


def _pace_said(plan: Plan, say: Speech) -> str:
    """By the minute, or by the day where a minute needs less than one request."""
    needed, allowed = plan.needed + plan.besides, plan.allowed or 0.0
    name, times = ("forecast_minute", 1) if needed >= 1 else ("forecast_day", _DAY_MINUTES)
    return say(name, needed=say.number(round(needed * times)), allowed=say.number(round(allowed * times)))


def _gives_way(one: Late, say: Speech) -> str:
    return say("forecast_never") if one.minutes is None else say("forecast_by", span=say.span(one.minutes * 60))


def _hot(known: Mapping[str, Any] | None, hours: Sequence[Mapping[str, Any]], say: Speech) -> dict[str, Any] | None:
    """How much of what was asked for lay ready, in a day and hour by hour."""
    if known is None:
        return None
    reads = known["hits"] + known["misses"]
    share = known["hits"] / reads if reads else None
    rates = [hour["hit_rate"] for hour in hours]
    words = [
        _hour_said(say, hour, "–" if rate is None else say.share(rate)) for hour, rate in zip(hours, rates, strict=True)
    ]
    told = say("hot_unread") if share is None else say("hot_share", share=say.share(share), count=say.number(reads))
    return {
        **known,
        "told": told,
        "trend": Trend(charts.lines(words, [rates], 1.0), told, say.share(1.0)) if reads else None,
    }
