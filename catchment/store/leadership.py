"""Leadership: of several processes of one kind, one leads, and the others stand by."""

from __future__ import annotations

from datetime import datetime

from catchment.clock import micros
from catchment.model import Lease, Record
from catchment.store import leases
from catchment.store.database import StorePart, Transaction, writes

_RESOURCE, _ID = "beat", 1


class Leader(Record, frozen=True):
    """The process that leads; changes with each of its heartbeats."""

    owner_id: int
    machine: str
    pid: int
    heartbeat_at: datetime


class Leadership(StorePart):
    """Which beat sends the hints of the distributed engine."""

    def leader(self) -> Leader | None:
        """Returns the process that holds the lease; whether it is alive is for the caller to find out."""
        sql = """
            SELECT l.owner_id, o.machine, o.pid, o.heartbeat_at FROM leases l JOIN owners o ON o.id = l.owner_id
             WHERE l.resource = ? AND l.resource_id = ?
        """
        return self._record(Leader, sql, _RESOURCE, _ID)

    @writes
    def claim(self, tx: Transaction, owner_id: int, now: datetime, *, is_forced: bool = False) -> Lease | None:
        """Become the leader if there is none, or (`is_forced`) in any case: the number of the old leader's lease is
        superseded."""
        if is_forced:
            tx.run("UPDATE leases SET owner_id = NULL WHERE resource = ? AND resource_id = ?", _RESOURCE, _ID)
        return leases.claim_one(tx, _RESOURCE, _ID, owner_id, now)

    @writes
    def confirm(self, tx: Transaction, lease: Lease, now: datetime) -> None:
        """Record that this process leads since it was last asked. Raises LeaseLost if another one does."""
        leases.check(tx, lease)
        tx.run("UPDATE leases SET taken_at = ? WHERE resource = ? AND resource_id = ?", micros(now), _RESOURCE, _ID)

    def leave(self, lease: Lease) -> None:
        self._db.write(lambda tx: leases.release(tx, lease))
