"""Report on spending: what paid services cost today and this month, by service, credential and source."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from catchment.model import View
from catchment.policy.spending import Caps, Period, Total, day_of, ends_at, exceeded, forecast
from catchment.store import Store
from catchment.store.spending import DaySpent, KeySpent, SourceSpent

DAYS = 31
"""Of the chart: a month at least."""
MOST_SOURCES = 20


class PeriodSpending(View, frozen=True):
    """What a service has cost in a day or a month (UTC). Amounts are millionths of a US dollar."""

    amount: int
    """Charged for answers."""
    uncertain_amount: int
    """The most that calls without an answer may have cost."""
    reserved_amount: int
    """The most that calls in progress may cost."""
    cap: int | None
    """None: no limit."""
    waits_until: datetime | None
    """Set if the cap allowed no further call: when the period ends."""


class ServiceSpending(View, frozen=True):
    service: str
    today: PeriodSpending
    this_month: PeriodSpending
    forecast: int
    """The forecast for the month, based on the last seven days."""


class SpendingView(View, frozen=True):
    """What paid services cost. Amounts are millionths of a US dollar; days and months are UTC."""

    day: str
    services: tuple[ServiceSpending, ...]
    days: tuple[DaySpent, ...]
    """The last 31 days, by service."""
    credentials: tuple[KeySpent, ...]
    """This month, the most expensive first."""
    sources: tuple[SourceSpent, ...]
    """This month, the most expensive first. Source 0: calls for no source, such as checks of credentials."""


def spending_report(
    store: Store, services: Collection[str], caps: Mapping[str, Caps], now: datetime, most_sources: int = MOST_SOURCES
) -> SpendingView:
    """Returns what these services and all others in the ledger cost."""
    day, ledger = day_of(now), store.spending
    month = day[:7]
    days = ledger.by_day(day_of(now - timedelta(days=DAYS - 1)))
    totals = ledger.totals(sorted({*services, *caps, *(spent.service for spent in days)}), day)
    return SpendingView(
        day,
        tuple(_service(name, totals[name], caps.get(name, Caps()), days, day, now) for name in sorted(totals)),
        tuple(days),
        tuple(ledger.by_credential(month)),
        tuple(ledger.by_source(month, most_sources)),
    )


def _service(
    name: str, totals: Mapping[Period, Total], caps: Caps, days: list[DaySpent], day: str, now: datetime
) -> ServiceSpending:
    by_day = {spent.day: spent.amount for spent in days if spent.service == name}
    periods = {period: _period(period, totals.get(period, Total()), caps, day) for period in Period}
    month = periods[Period.MONTH]
    return ServiceSpending(name, periods[Period.DAY], month, forecast(month.amount, by_day, now))


def _period(period: Period, total: Total, caps: Caps, day: str) -> PeriodSpending:
    refused = total.refused_amount
    is_over = refused is not None and exceeded({period: total}, refused, Caps(**{str(period): caps.of(period)}))
    return PeriodSpending(
        total.amount,
        total.uncertain_amount,
        total.reserved_amount,
        caps.of(period),
        ends_at(period, day) if is_over else None,
    )
