"""`spending`: what paid services cost."""

from __future__ import annotations

from datetime import datetime

from catchment.app import spending_caps
from catchment.cli import context, output
from catchment.cli.params import AsJson, Limit
from catchment.health.spending import SpendingView, spending_report
from catchment.policy.spending import dollars


def spending(limit: Limit = 20, as_json: AsJson = False) -> None:
    """Today, this month, and a forecast for the month. Days and months are UTC; with --json, amounts are millionths of
    a US dollar. "Uncertain" is the most that calls without an answer may have cost; it counts towards the caps.
    """
    settings = context.settings()
    with context.opened_store(settings) as (store, now):
        report = spending_report(store, (), spending_caps(settings), now, limit)
    if as_json:
        output.document(report)
    elif report.services:
        _show_spending(report)
    else:
        output.say("Nothing has been spent: no paid service has been used.")


def _show_spending(report: SpendingView) -> None:
    output.table(
        ("Service", "#Today", "#Cap", "#This month", "#Uncertain", "#Cap", "#Forecast", "Waits until"),
        (
            (
                row.service,
                dollars(row.today.amount),
                None if row.today.cap is None else dollars(row.today.cap),
                dollars(row.this_month.amount),
                dollars(row.this_month.uncertain_amount) if row.this_month.uncertain_amount else None,
                None if row.this_month.cap is None else dollars(row.this_month.cap),
                dollars(row.forecast),
                _until(row.this_month.waits_until or row.today.waits_until),
            )
            for row in report.services
        ),
    )
    amounts = {spent.day: 0 for spent in report.days}
    for spent in report.days:
        amounts[spent.day] += spent.amount
    output.say(f"\nBy day: {output.spark(list(amounts.values()))}  {min(amounts, default='')} to {report.day}\n")
    for title, rows in (
        ("Credential", [(spent.credential, spent) for spent in report.credentials]),
        ("Source", [(f"{spent.name or 'none'} ({spent.source_id})", spent) for spent in report.sources]),
    ):
        output.table(
            (f"{title}, this month", "Service", "#Cost", "#Uncertain", "#Calls", "#Items", "#Profiles"),
            (
                (
                    name,
                    spent.service,
                    dollars(spent.amount),
                    dollars(spent.uncertain_amount) if spent.uncertain_amount else None,
                    spent.calls,
                    spent.items,
                    spent.profiles,
                )
                for name, spent in rows
            ),
        )
        output.say()


def _until(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%d %H:%M} UTC"
