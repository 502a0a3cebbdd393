"""The spending page: what paid services cost, by day, service, credential and source."""

from __future__ import annotations

from datetime import date, timedelta

from fastapi import APIRouter, Response

from catchment.health.spending import DAYS, SpendingView
from catchment.policy.spending import dollars
from catchment.web.dependencies import AppDep
from catchment.web.pages import charts
from catchment.web.pages.render import render
from catchment.web.pages.session import TheReader

router = APIRouter()


@router.get("/spending")
def spending(app: AppDep, reader: TheReader) -> Response:
    report = app.spending()
    return render(
        "spending.html",
        reader,
        report=report,
        chart=_chart(report) if report.days else None,
        first_day=(date.fromisoformat(report.day) - timedelta(days=DAYS - 1)).isoformat(),
        names=[service.service for service in report.services],
        dollars=dollars,
        shares={
            (service.service, period): (spent.amount + spent.uncertain_amount + spent.reserved_amount) / spent.cap
            for service in report.services
            for period, spent in (("day", service.today), ("month", service.this_month))
            if spent.cap
        },
    )


def _chart(report: SpendingView) -> charts.Stacked:
    """Bars by day, a part for each service. Uncertain amounts are not in it."""
    amounts = {(spent.day, spent.service): spent.amount for spent in report.days}
    names = [service.service for service in report.services]
    today = date.fromisoformat(report.day)
    columns = []
    for back in range(DAYS - 1, -1, -1):
        day = (today - timedelta(days=back)).isoformat()
        parts = [amounts.get((day, name), 0) for name in names]
        words = ", ".join(f"{name} {dollars(amount)}" for name, amount in zip(names, parts, strict=True) if amount)
        columns.append((f"{day}: {words or dollars(0)}", [float(part) for part in parts]))
    return charts.stacked(columns, height=120)
