"""/api/spending: what paid services cost."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from catchment.health.spending import PeriodSpending, ServiceSpending, SpendingView
from catchment.store.spending import DaySpent, KeySpent, SourceSpent
from catchment.web.api.params import limit
from catchment.web.api.schemas.common import Resource, shows
from catchment.web.dependencies import AppDep

_COUNTS = {
    "calls": "Calls that were answered, or may have been.",
    "amount": "Charged for answers, in millionths of a US dollar.",
    "uncertain_amount": "The most that calls without an answer may have cost.",
}


@shows(
    PeriodSpending,
    amount=_COUNTS["amount"],
    uncertain_amount=_COUNTS["uncertain_amount"],
    reserved_amount="The most that calls in progress may cost.",
    cap="Null: no limit.",
    waits_until="Set if the cap allowed no further call: when the period ends.",
)
class PeriodSpendingSchema(Resource):
    """What a service has cost in a day or a month (UTC), in millionths of a US dollar."""


@shows(ServiceSpending, forecast="The forecast for the month, based on the last seven days.")
class ServiceSpendingSchema(Resource):
    """What a paid service costs."""


@shows(DaySpent, day="UTC.", amount=_COUNTS["amount"], uncertain_amount=_COUNTS["uncertain_amount"])
class DaySpentSchema(Resource):
    """What a service cost on one day."""


@shows(KeySpent, credential="Empty: without a credential.", **_COUNTS)
class KeySpentSchema(Resource):
    """What calls with one credential cost."""


@shows(SourceSpent, source_id="0: for no source.", name="Null: no source, or it no longer exists.", **_COUNTS)
class SourceSpentSchema(Resource):
    """What calls for one source cost with one credential."""


@shows(
    SpendingView,
    day="Today, UTC.",
    days="The last 31 days, by service.",
    credentials="This month, the most expensive first.",
    sources="This month, the most expensive first.",
)
class SpendingSchema(Resource):
    """What paid services cost. Amounts are millionths of a US dollar; days and months are UTC."""


router = APIRouter(prefix="/api", tags=["records"])


@router.get("/spending", response_model=SpendingSchema)
def get_spending(app: AppDep, most: Annotated[int, limit(1000)] = 20) -> SpendingView:
    """What paid services cost today and this month, with a forecast, by service, credential and source. `limit` is the
    number of sources."""
    return app.spending(most)
