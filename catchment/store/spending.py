"""Money: reserves the highest possible cost of a call before it is sent, and books what its answer was charged for.

A cap holds for any number of processes: reserving locks the totals of the service's day and month. A reservation ends
with the booking, in the transaction of the page that the call led to. What a dead process had reserved may have been
charged: it is booked as uncertain, and counts against the caps of its day and month.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from catchment.clock import micros
from catchment.model import Booking, Record, View
from catchment.policy.spending import Period, Total, Totals, names_of
from catchment.store.database import StorePart, Transaction, reads, writes

_LONGEST_CALL = timedelta(hours=1)
"""An older reservation was not booked by a living process, because the database was unavailable at the time."""
_TOTAL = "amount, uncertain_amount, reserved_amount, refused_amount"


class PaidCall(Record, frozen=True):
    """A call that is about to be sent."""

    service: str
    credential: str | None
    source_id: int | None
    day: str
    amount: int
    """The most that it may cost."""


class DaySpent(View, frozen=True):
    """What a service cost on one day."""

    day: str
    service: str
    amount: int
    uncertain_amount: int


class Spent(View, frozen=True):
    """What some calls cost."""

    calls: int
    items: int
    profiles: int
    amount: int
    uncertain_amount: int


class KeySpent(Spent, frozen=True, kw_only=True):
    service: str
    credential: str


class SourceSpent(KeySpent, frozen=True, kw_only=True):
    source_id: int
    name: str | None


class SourceDaySpent(KeySpent, frozen=True, kw_only=True):
    day: str


_COUNTS = "call_count AS calls, item_count AS items, profile_count AS profiles, amount, uncertain_amount"
_SUMS = """
    sum(call_count) AS calls, sum(item_count) AS items, sum(profile_count) AS profiles,
    sum(amount) AS amount, sum(uncertain_amount) AS uncertain_amount
"""


class SpendingLedger(StorePart):
    @writes
    def reserve(
        self,
        tx: Transaction,
        call: PaidCall,
        owner_id: int,
        now: datetime,
        exceeded: Callable[[Totals, int], Period | None],
    ) -> tuple[int | None, Period | None]:
        """Reserve what the call may cost; returns the reservation, or the period whose cap does not allow it."""
        names = names_of(call.day)
        totals = _locked(tx, call.service, names)
        if (period := exceeded(totals, call.amount)) is not None:
            if totals[period].refused_amount != call.amount:
                sql = "UPDATE spending_totals SET refused_amount = ? WHERE service = ? AND period = ?"
                tx.run(sql, call.amount, call.service, names[period])
            return None, period
        tx.run(
            "UPDATE spending_totals SET reserved_amount = reserved_amount + ? WHERE service = ? AND period IN (?, ?)",
            call.amount,
            call.service,
            *names.values(),
        )
        number = tx.number(
            """
            INSERT INTO reservations (owner_id, service, credential, day, source_id, amount, reserved_at)
            VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id
            """,
            owner_id,
            call.service,
            call.credential or "",
            call.day,
            call.source_id or 0,
            call.amount,
            micros(now),
        )
        return number, None

    @writes
    def settle(self, tx: Transaction, bookings: Sequence[Booking]) -> None:
        """Book these calls, and end their reservations."""
        settle(tx, bookings)

    def recover(self, now: datetime) -> int:
        """Book what was reserved long ago, or by processes that do not exist any more; returns how many calls."""
        before = micros(now - _LONGEST_CALL)
        stray = "owner_id NOT IN (SELECT id FROM owners) OR reserved_at < ?"
        if self._one(f"SELECT 1 FROM reservations WHERE {stray} LIMIT 1", before) is None:
            return 0
        return self._db.write(lambda tx: _void(tx, stray, before))

    @reads
    def totals(self, tx: Transaction, services: Sequence[str], day: str) -> dict[str, dict[Period, Total]]:
        """Returns what each service has cost on that day and in its month."""
        names = {name: period for period, name in names_of(day).items()}
        rows = tx.all(f"SELECT service, period, {_TOTAL} FROM spending_totals WHERE period IN (?, ?)", *names)
        totals: dict[str, dict[Period, Total]] = {
            service: {period: Total() for period in Period} for service in services
        }
        for service, name, *amounts in rows:
            totals.setdefault(service, {})[names[name]] = Total(*amounts)
        return totals

    def by_day(self, since: str) -> list[DaySpent]:
        """Returns what each service cost from that day on, day by day."""
        sql = """
            SELECT period AS day, service, amount, uncertain_amount FROM spending_totals
             WHERE period >= ? AND length(period) = 10 ORDER BY period, service
        """
        return self._records(DaySpent, sql, since)

    def by_credential(self, period: str) -> list[KeySpent]:
        """Returns what each credential cost in a day or a month, the most first."""
        sql = f"SELECT service, credential, {_SUMS} FROM spending WHERE period = ? GROUP BY service, credential"
        return sorted(self._records(KeySpent, sql, period), key=lambda spent: (-spent.amount, spent.service))

    def by_source(self, period: str, limit: int) -> list[SourceSpent]:
        """Returns what the sources cost in a day or a month with each credential, the most first."""
        sql = f"""
            SELECT p.service, p.credential, p.source_id, s.name, {_COUNTS}
              FROM spending p LEFT JOIN sources s ON s.id = p.source_id
             WHERE p.period = ? ORDER BY p.amount DESC LIMIT ?
        """
        return self._records(SourceSpent, sql, period, limit)

    def of_source(self, source_id: int, since: str) -> list[SourceDaySpent]:
        """Returns what one source cost from that day on, day by day."""
        sql = f"""
            SELECT period AS day, service, credential, {_COUNTS} FROM spending
             WHERE source_id = ? AND period >= ? AND length(period) = 10 ORDER BY period
        """
        return self._records(SourceDaySpent, sql, source_id, since)


class UnfinishedWalks(StorePart):
    """Walks that were cut short, as of their last stored page."""

    def of_source(self, source_id: int) -> bytes | None:
        row = self._one("SELECT state FROM unfinished_walks WHERE source_id = ?", source_id)
        return row[0].encode() if row else None

    def forget(self, source_id: int) -> None:
        """The next visit begins with the first page."""
        self._run("DELETE FROM unfinished_walks WHERE source_id = ?", source_id)


def keep_walk(tx: Transaction, source_id: int, state: bytes | None, now: int) -> None:
    """Store the position of the walk with the page that it has reached; None: it has ended."""
    if state is None:
        tx.run("DELETE FROM unfinished_walks WHERE source_id = ?", source_id)
        return
    tx.run(
        """
        INSERT INTO unfinished_walks (source_id, updated_at, state) VALUES (?, ?, ?)
        ON CONFLICT (source_id) DO UPDATE SET updated_at = excluded.updated_at, state = excluded.state
        """,
        source_id,
        now,
        state.decode(),
    )


def settle(tx: Transaction, bookings: Sequence[Booking]) -> None:
    """Book these calls as a part of this transaction, and end their reservations. Booking one again does nothing."""
    if not bookings:
        return
    ids = [booking.reservation_id for booking in bookings if booking.reservation_id is not None]
    reserved: dict[int, int] = dict(
        tx.select_in("DELETE FROM reservations WHERE id IN {values} RETURNING id, amount", ids)
    )
    kept = [booking for booking in bookings if booking.reservation_id is None or booking.reservation_id in reserved]
    _book(tx, [(booking, reserved.get(booking.reservation_id or 0, 0)) for booking in kept])


def void_of(tx: Transaction, owner_id: int) -> None:
    """Book what a dead process had reserved: its calls may have been charged."""
    _void(tx, "owner_id = ?", owner_id)


def _void(tx: Transaction, condition: str, value: int) -> int:
    rows = tx.all(
        f"DELETE FROM reservations WHERE {condition} RETURNING id, service, credential, day, source_id, amount", value
    )
    _book(
        tx,
        [
            (Booking(service, credential, source_id, day, number, uncertain_amount=amount), amount)
            for number, service, credential, day, source_id, amount in sorted(rows)
        ],
    )
    return len(rows)


def _book(tx: Transaction, bookings: Sequence[tuple[Booking, int]]) -> None:
    """Adds calls to the ledger; each comes with the amount that was reserved for it."""
    totals: dict[tuple[str, str], Counter[str]] = {}
    rows: dict[tuple[str, str, str, int], Counter[str]] = {}
    for booking, reserved in bookings:
        for name in names_of(booking.day).values():
            totals.setdefault((booking.service, name), Counter()).update(
                amount=booking.amount, uncertain=booking.uncertain_amount, reserved=reserved
            )
        for name in names_of(booking.day).values() if booking.is_sent else ():
            key = (name, booking.service, booking.credential or "", booking.source_id or 0)
            rows.setdefault(key, Counter()).update(
                calls=1,
                items=booking.items,
                profiles=booking.profiles,
                amount=booking.amount,
                uncertain=booking.uncertain_amount,
            )
    # Always in the same order: two processes that book for several services must not wait for each other.
    for (service, period), sums in sorted(totals.items()):
        _ensure(tx, service, [period])
        tx.run(
            """
            UPDATE spending_totals SET amount = amount + ?, uncertain_amount = uncertain_amount + ?,
                   reserved_amount = reserved_amount - ?
             WHERE service = ? AND period = ?
            """,
            sums["amount"],
            sums["uncertain"],
            sums["reserved"],
            service,
            period,
        )
    tx.insert(
        "spending",
        (
            *("period", "service", "credential", "source_id"),
            *("call_count", "item_count", "profile_count", "amount", "uncertain_amount"),
        ),
        [
            (*key, sums["calls"], sums["items"], sums["profiles"], sums["amount"], sums["uncertain"])
            for key, sums in sorted(rows.items())
        ],
        """
        ON CONFLICT (period, service, credential, source_id) DO UPDATE SET
               call_count = spending.call_count + excluded.call_count,
               item_count = spending.item_count + excluded.item_count,
               profile_count = spending.profile_count + excluded.profile_count,
               amount = spending.amount + excluded.amount,
               uncertain_amount = spending.uncertain_amount + excluded.uncertain_amount
        """,
    )


def _locked(tx: Transaction, service: str, names: Mapping[Period, str]) -> dict[Period, Total]:
    """Returns the totals of a day and its month; their rows are locked, in the order in which bookings take them."""
    sql = f"""
        SELECT period, {_TOTAL} FROM spending_totals WHERE service = ? AND period IN (?, ?)
         ORDER BY period {tx.lock_rows()}
    """
    rows = tx.all(sql, service, *names.values())
    if len(rows) < len(names):
        _ensure(tx, service, list(names.values()))
        rows = tx.all(sql, service, *names.values())
    totals = {name: Total(*amounts) for name, *amounts in rows}
    return {period: totals[name] for period, name in names.items()}


def _ensure(tx: Transaction, service: str, periods: Sequence[str]) -> None:
    tx.insert(
        "spending_totals",
        ("service", "period", "amount", "uncertain_amount", "reserved_amount"),
        [(service, period, 0, 0, 0) for period in sorted(periods)],
        "ON CONFLICT (service, period) DO NOTHING",
    )
