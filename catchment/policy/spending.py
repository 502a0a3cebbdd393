"""Spending on paid services: periods, caps, forecasts and alerts. Pure. Amounts are millionths of a US dollar.

Days and months are those of UTC. A call counts for the day on which it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from catchment.messages import MessageParam, message
from catchment.model import AlertRequest, Prices, Record, Severity

DOLLAR = 1_000_000
NEARLY = 0.8
"""From this share of a cap on, an alert says that it is nearly used up."""
ENDING = " spending"
"""The subject suffix of the alerts."""
_LOOKED_AT = 7
"""Days from which the rest of the month is forecast."""


class Period(StrEnum):
    DAY = "day"
    MONTH = "month"


class Caps(Record, frozen=True):
    """The most that may be spent on a service; None: no limit."""

    day: int | None = None
    month: int | None = None

    def of(self, period: Period) -> int | None:
        return self.day if period is Period.DAY else self.month


class Total(Record, frozen=True):
    """What a service has cost in one period, and what calls in progress may cost yet."""

    amount: int = 0
    uncertain_amount: int = 0
    reserved_amount: int = 0
    refused_amount: int | None = None
    """What the last call would have cost that a cap did not allow."""

    @property
    def committed(self) -> int:
        """All that counts against a cap."""
        return self.amount + self.uncertain_amount + self.reserved_amount


Totals = Mapping[Period, Total]


def day_of(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def names_of(day: str) -> dict[Period, str]:
    """Returns the day, as 2026-01-31, and its month, as 2026-01."""
    return {Period.DAY: day, Period.MONTH: day[:7]}


def ends_at(period: Period, day: str) -> datetime:
    """Returns when the period of that day is over."""
    begin = date.fromisoformat(day)
    after = (
        begin + timedelta(days=1)
        if period is Period.DAY
        else (begin.replace(day=28) + timedelta(days=4)).replace(day=1)
    )
    return datetime(after.year, after.month, after.day, tzinfo=UTC)


def exceeded(totals: Totals, cost: int, caps: Caps) -> Period | None:
    """Returns the period whose cap a call of that cost could exceed, the longer of two; None: it may be made."""
    for period in (Period.MONTH, Period.DAY):
        cap = caps.of(period)
        if cap is not None and totals.get(period, Total()).committed + cost > cap:
            return period
    return None


def affordable_items(totals: Totals, caps: Caps, prices: Prices) -> int | None:
    """Returns how many items a call may still ask for within the caps, after a call for a profile; None: any number."""
    limits = [(cap, totals.get(period, Total())) for period in Period if (cap := caps.of(period)) is not None]
    if not limits or not prices.item:
        return None
    left = min(cap - total.committed for cap, total in limits) - prices.call - prices.profile
    return max(left, 0) // prices.item


def forecast(spent_in_month: int, by_day: Mapping[str, int], now: datetime) -> int:
    """Returns the forecast for the month if spending continues as in the last days, whose amounts are in
    `by_day`."""
    today = now.astimezone(UTC).date()
    first = min((date.fromisoformat(day) for day in by_day), default=today)
    since = max(first, today - timedelta(days=_LOOKED_AT - 1))
    begin = datetime(since.year, since.month, since.day, tzinfo=UTC)
    lately = sum(amount for day, amount in by_day.items() if since <= date.fromisoformat(day) <= today)
    # The first hours of the first day say little about the other thirty.
    span = max(now - begin, timedelta(hours=1))
    return spent_in_month + round(lately * ((ends_at(Period.MONTH, today.isoformat()) - now) / span))


def alarms(totals: Mapping[str, Totals], caps: Mapping[str, Caps], day: str) -> list[AlertRequest]:
    """Returns the alerts: P1 from 80 % of a cap on, P0 where it allows no further call. One for each cap."""
    alerts = []
    for service, limits in sorted(caps.items()):
        for period in Period:
            cap, total = limits.of(period), totals.get(service, {}).get(period, Total())
            if cap is not None and (severity := _severity(total, cap)) is not None:
                facts: dict[str, MessageParam] = {
                    "service": service,
                    "period": message(f"period.{period}"),
                    "spent": dollars(total.committed),
                    "cap": dollars(cap),
                    "until": f"{ends_at(period, day):%Y-%m-%d %H:%M} UTC",
                }
                word, code = ("cap", "alert.cap_reached") if severity is Severity.P0 else ("nearly", "alert.cap_near")
                if (total.refused_amount or 0) > cap:
                    code, facts["cost"] = "alert.cap_too_low", dollars(total.refused_amount or 0)
                subject = f"service {service} {period} {word}{ENDING}"
                alerts.append(AlertRequest(subject, message(code, **facts), severity))
    return alerts


def _severity(total: Total, cap: int) -> Severity | None:
    refused = total.refused_amount
    if total.committed >= cap or (refused is not None and total.committed + refused > cap):
        return Severity.P0
    return Severity.P1 if total.committed >= NEARLY * cap else None


def dollars(amount: int) -> str:
    """Returns an amount in US dollars: in whole cents, or with all of its digits if there are more."""
    sign, whole = "-" if amount < 0 else "", abs(amount)
    digits = f"{whole % DOLLAR:06}".rstrip("0").ljust(2, "0")
    return f"{sign}${whole // DOLLAR:,}.{digits}"
