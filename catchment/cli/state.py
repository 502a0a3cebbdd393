"""`status`: how everything stands, on one page."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from catchment.cli import doors, showing
from catchment.cli.given import AsJson
from catchment.settings.table import without_password

if TYPE_CHECKING:
    from catchment.settings import Settings
    from catchment.store import Store

_SHOWN = 10
_LATEST = 3


def status(as_json: AsJson = False) -> None:
    """Show how everything stands.

    Sources, items, gaps, alerts, the last 24 hours, the jobs, and who is collecting.
    """
    with doors.opened_shop("status") as shop:
        from catchment.collect import planning
        from catchment.store import leases
        from catchment.store.opening import HEAD, engine_version

        store, settings, now = shop.store, shop.settings, shop.clock.now()
        processes = leases.living(store.database, settings.home, now)
        told: dict[str, Any] = {
            "sources": dict.fromkeys(("active", "paused", "retired"), 0) | store.sources.counts(),
            "failing": store.troubles.failing(_SHOWN),
            "failing_count": store.troubles.counts(settings.failures_before_probation)["failing"],
            "items": store.items.count(),
            "open_gaps": store.gaps.count_open(),
            "alerts": store.alerts.open(),
            "credentials": _credentials(settings, store, now),
            "last_24_hours": store.runs.last_day(now),
            "tight_budgets": [planning.shown(one, _LATEST) for one in shop.plans() if planning.is_tight(one)],
            "jobs": store.jobs.all(),
            "collector": {"is_running": bool(processes), "processes": processes},
            "database": {
                "url": without_password(store.database.shown_url),
                "engine": engine_version(store.database),
                "schema": HEAD,
                "home": str(settings.home),
            },
        }
    if as_json:
        showing.document(told)
    else:
        _show(told, now)


def _show(told: dict[str, Any], now: datetime) -> None:
    day, database = told["last_24_hours"], told["database"]
    showing.facts(
        (
            ("sources", ", ".join(f"{count:,} {state}" for state, count in told["sources"].items())),
            ("failing", told["failing_count"]),
            ("items", told["items"]),
            ("open gaps", told["open_gaps"]),
            ("open alerts", len(told["alerts"])),
            ("credentials", _said(told["credentials"])),
            (
                "last 24 hours",
                f"{showing.counted(day['fetches'], 'visit')}, {day['errors']:,} failed, "
                f"{showing.counted(day['items'], 'new item')}, {showing.counted(day['requests'], 'request')}",
            ),
            *(("budget", _budget(one)) for one in told["tight_budgets"]),
            ("collector", _collector(told["collector"]["processes"])),
            ("database", f"{database['url']} ({database['engine']}, schema {database['schema']})"),
        )
    )
    if told["failing"]:
        showing.table(
            ("failing", "since", "why"),
            [(one["id"], f"{one['failures_in_a_row'] or 1} ×", one["last_error"]) for one in told["failing"]],
        )
    if told["alerts"]:
        rows = [(one["severity"], showing.when(one["opened_at"], now), one["message"]) for one in told["alerts"]]
        showing.table(("alert", "since", "what"), rows)
    if told["jobs"]:
        showing.table(
            ("job", "next run", "last run", "#runs", "trouble"),
            (
                (
                    one["name"],
                    showing.when(one["next_run_at"], now),
                    showing.when(one["last_started_at"], now),
                    one["run_count"],
                    one["last_error"],
                )
                for one in told["jobs"]
            ),
        )


def _credentials(settings: Settings, store: Store, now: datetime) -> dict[str, Any]:
    from catchment.vault import rules_from, shown

    rules = rules_from(settings)
    pool = [one for kept in store.credentials.page() if (one := shown(kept, rules, now))["is_shared"]]
    helped = {one["platform"] for one in pool if one["is_usable"]}
    exhausted = sorted({one["platform"] for one in pool} - helped)
    return {"shared": len(pool), "usable": sum(one["is_usable"] for one in pool), "exhausted": exhausted}


def _said(told: dict[str, Any]) -> str:
    words = f"{told['usable']} of {told['shared']} in pools usable"
    return words + (f"; none of {', '.join(told['exhausted'])}" if told["exhausted"] else "")


def _budget(plan: dict[str, Any]) -> str:
    late = "".join(f"; {one['summary']}" for one in plan["late"][:1])
    return f"{plan['summary']} ({showing.share(plan['share'])}){late}"


def _collector(processes: list[dict[str, Any]]) -> str:
    if not processes:
        return "not running; `catchment serve` or `catchment collect --loop` starts one"
    return ", ".join(f"{one['work']} (process {one['pid']} on {one['machine']})" for one in processes)
