"""Paid calls: reserves what a call may cost before it is sent, and works out what its answer was charged for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from catchment.clock import Clock
from catchment.errors import SpendingCapReached
from catchment.fetch.settings import FetchPlatform, FetchSettings
from catchment.messages import MessageParam, message
from catchment.model import Answer, Booking, Prices, Record, Request, Usage, options
from catchment.policy.spending import Period, Totals, day_of, dollars, ends_at, exceeded
from catchment.store.spending import PaidCall


class CallCosts:
    """The costs of calls made for one source that are not booked yet. Thread-safe."""

    def __init__(self, source_id: int | None) -> None:
        self.source_id = source_id
        self.unbooked: list[Booking] = []
        """In the order of the calls. Others may add to it at any time."""

    def forget(self, bookings: Sequence[Booking]) -> None:
        """Removes those that were booked: the first ones."""
        del self.unbooked[: len(bookings)]

    def bound(self, bookings: Sequence[Booking], amount: int) -> None:
        """Bounds what these calls may have cost, if they are not booked yet: the same call came to this amount when it
        was repeated a moment later, and a list does not get shorter meanwhile."""
        for position, booking in enumerate(self.unbooked):
            if any(booking is doubtful for doubtful in bookings):
                bounded = min(booking.uncertain_amount, amount)
                self.unbooked[position] = booking.replace(uncertain_amount=bounded)


class Ledger(Protocol):
    """Where costs are reserved and booked: `store.spending`."""

    def reserve(
        self, call: PaidCall, owner_id: int, now: datetime, exceeded: Callable[[Totals, int], Period | None]
    ) -> tuple[int | None, Period | None]: ...

    def settle(self, bookings: Sequence[Booking]) -> None: ...


class Reservation(Record, frozen=True):
    """A call that may be sent now."""

    call: PaidCall
    prices: Prices
    number: int | None
    """None: it costs nothing, whatever comes."""

    def booking(self, usage: Usage | None) -> Booking:
        """Returns what the call cost; None: the answer did not come, or does not tell."""
        booking = Booking(
            self.call.service, self.call.credential, self.call.source_id, self.call.day, reservation_id=self.number
        )
        if usage is None:
            return booking.replace(uncertain_amount=self.call.amount)
        return booking.replace(items=usage.items, profiles=usage.profiles, amount=self.prices.cost(usage))

    def unsent(self) -> Booking:
        """Returns that the call cost nothing, because the service was not reached."""
        return self.booking(Usage(is_free=True)).replace(is_sent=False)


class PaidCalls:
    """The paid calls of one process. Thread-safe."""

    def __init__(self, ledger: Ledger, owner_id: Callable[[], int], settings: FetchSettings, clock: Clock) -> None:
        """`owner_id`: this process, as leases know it."""
        self._ledger, self._owner_id, self._settings, self._clock = ledger, owner_id, settings, clock

    def reserve(self, platform: FetchPlatform, request: Request, source_id: int | None) -> Reservation | None:
        """Reserves what the call may cost; None: the service charges nothing for it. Raises SpendingCapReached."""
        prices = self._settings.prices(platform)
        if prices is None:
            return None
        usage = _usage(platform, request, None) or Usage()
        if usage.is_free:
            return None
        now = self._clock.now()
        call = PaidCall(platform.NAME, request.credential, source_id, day_of(now), prices.cost(usage))
        if not call.amount:
            return Reservation(call, prices, None)
        caps = self._settings.of(platform).caps
        number, period = self._ledger.reserve(call, self._owner_id(), now, partial(exceeded, caps=caps))
        if period is not None:
            raise _cap_reached(call, period, caps.of(period) or 0)
        return Reservation(call, prices, number)

    def book(self, booking: Booking, costs: CallCosts | None) -> None:
        """Leaves a booking to the caller, who books it with the page that the call leads to; without `costs`, books it
        at once."""
        if costs is not None:
            costs.unbooked.append(booking)
        else:
            self._ledger.settle([booking])


def _usage(platform: FetchPlatform, request: Request, answer: Answer | None) -> Usage | None:
    if hasattr(platform, "usage"):
        return options(platform).usage(request, answer)
    return Usage(is_free=answer is not None and answer.status >= 400)


def charged(platform: FetchPlatform, request: Request, answer: Answer, reservation: Reservation) -> Booking:
    """Returns what an answer cost."""
    return reservation.booking(_usage(platform, request, answer))


def _cap_reached(call: PaidCall, period: Period, cap: int) -> SpendingCapReached:
    until = ends_at(period, call.day)
    facts: dict[str, MessageParam] = {
        "period": message(f"period.{period}"),
        "service": call.service,
        "cap": dollars(cap),
    }
    if call.amount > cap:
        cost = dollars(call.amount)
        what, helps = message("spending.cap_too_low", cost=cost, **facts), message("spending.raise", cost=cost)
    else:
        what = message("spending.cap", until=f"{until:%Y-%m-%d %H:%M}", **facts)
        helps = message("spending.wait_or_raise")
    return SpendingCapReached(what, helps, retry_at=until)
