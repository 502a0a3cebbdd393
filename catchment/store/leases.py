"""Leases: who may work on what, and the processes that hold them.

A process is present while it holds a lock that the operating system (or PostgreSQL's session) takes away when the
process dies: its leases are then void at once, with nothing to repair. The number of a lease grows with every claim,
so that a process that was thought dead cannot write over its successor.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

from catchment.clock import micros
from catchment.errors import LeaseLost, StoreError
from catchment.model import Lease
from catchment.store.database import Database, Transaction
from catchment.store.rows import with_iso

# Across machines, a process that has not been heard of for so long is given up.
HEARTBEAT_LIMIT = timedelta(seconds=90)


def take(tx: Transaction, resource: str, resource_id: int, owner_id: int, now: datetime) -> Lease | None:
    """Claim it, unless somebody has it."""
    row = tx.one(
        """
        INSERT INTO leases (resource, resource_id, number, owner_id, taken_at) VALUES (?, ?, 1, ?, ?)
        ON CONFLICT (resource, resource_id) DO UPDATE
           SET number = leases.number + 1, owner_id = excluded.owner_id, taken_at = excluded.taken_at
         WHERE leases.owner_id IS NULL
        RETURNING number
        """,
        resource,
        resource_id,
        owner_id,
        micros(now),
    )
    return Lease(resource, resource_id, owner_id, row[0]) if row else None


def is_ours(tx: Transaction, lease: Lease) -> bool:
    """Whether nobody has taken it over. On PostgreSQL it stays so until the transaction ends."""
    row = tx.one(
        f"SELECT number, owner_id FROM leases WHERE resource = ? AND resource_id = ? {tx.lock_rows()}",
        lease.resource,
        lease.resource_id,
    )
    return row == (lease.number, lease.owner_id)


def check(tx: Transaction, lease: Lease) -> None:
    """That the lease is still ours; otherwise nothing may be written."""
    if not is_ours(tx, lease):
        raise LeaseLost(f"{lease.resource} {lease.resource_id} was taken over by another process meanwhile")


def release(tx: Transaction, lease: Lease) -> None:
    tx.run(
        "UPDATE leases SET owner_id = NULL WHERE resource = ? AND resource_id = ? AND number = ? AND owner_id = ?",
        lease.resource,
        lease.resource_id,
        lease.number,
        lease.owner_id,
    )


class Presence:
    """That this process is alive, provably. Close it to leave; dying does the same."""

    def __init__(self, database: Database, home: Path, work: str, now: datetime) -> None:
        self._db, self._locks, self._work = database, locks_of(database, home), work
        self._one_at_a_time = Lock()
        self._owed: list[Lease] = []
        self._enter(now)

    def _enter(self, now: datetime) -> None:
        self.lock_name = uuid.uuid4().hex
        # Locked before the row is visible: a row without its lock means that its process is dead.
        self._held = _SessionLock(self._db, self.lock_name) if self._db.is_postgres else _FileLock(self._path())
        self._held.take()
        try:
            self.owner_id: int = self._db.write(lambda tx: self._registered(tx, now))
        except BaseException:
            self._held.release()
            raise

    def _registered(self, tx: Transaction, now: datetime) -> int:
        row = tx.one(
            """
            INSERT INTO owners (machine, pid, work, lock_name, started_at, heartbeat_at)
            VALUES (?, ?, ?, ?, ?, ?) RETURNING id
            """,
            socket.gethostname(),
            os.getpid(),
            self._work,
            self.lock_name,
            micros(now),
            micros(now),
        )
        assert row is not None
        return int(row[0])

    def _path(self, name: str | None = None) -> Path:
        return self._locks / f"{name or self.lock_name}.lock"

    def heartbeat(self, now: datetime) -> None:
        """Say that we live, and free what the dead have left behind."""
        with self._one_at_a_time:
            said = self._db.write(
                lambda tx: tx.run("UPDATE owners SET heartbeat_at = ? WHERE id = ?", micros(now), self.owner_id)
            )
            if not said or not self._held.is_held():
                # The database server was restarted, or others gave us up: what we held is theirs now; begin anew.
                self._held.release()
                self._enter(now)
            self._release_owed()
        self.bury(now)

    def owe(self, lease: Lease) -> None:
        """A lease whose end could not be written, because the database was away: freed when it is back."""
        with self._one_at_a_time:
            self._owed.append(lease)

    def _release_owed(self) -> None:
        def deed(tx: Transaction) -> None:
            for lease in self._owed:
                release(tx, lease)

        if self._owed:
            self._db.write(deed)
            self._owed = []

    def bury(self, now: datetime) -> int:
        """Void the leases of processes that are gone; gives how many processes were."""
        others = self._db.read(
            lambda tx: tx.all(
                "SELECT id, machine, lock_name, heartbeat_at FROM owners WHERE id <> ? ORDER BY id", self.owner_id
            )
        )
        dead = [row for row in others if _is_dead(self._db, self._locks, row[1:], now)]
        for row in dead:
            self._db.write(lambda tx, gone=row[0]: _forget_owner(tx, gone, now))  # type: ignore[misc]
            self._path(row[2]).unlink(missing_ok=True)
        if self._db.read(_has_strays):
            self._db.write(lambda tx: _free_strays(tx, now))
        return len(dead)

    def leave(self, now: datetime) -> None:
        """Release everything in order. Where the database cannot take it, letting go of the lock says the same."""
        try:
            with suppress(StoreError):
                self._db.write(lambda tx: _forget_owner(tx, self.owner_id, now))
        finally:
            self._held.release()
            self._path().unlink(missing_ok=True)


def locks_of(database: Database, home: Path) -> Path:
    """Where the processes of a database hold their locks: beside the file, since two homes may share one."""
    return (database.file.parent if database.file else home) / "locks"


def living(database: Database, home: Path, now: datetime) -> list[dict[str, Any]]:
    """The processes that are present at this moment. Asks only, and changes nothing."""
    locks = locks_of(database, home)
    rows = database.read(
        lambda tx: tx.dicts("SELECT machine, pid, work, lock_name, started_at, heartbeat_at FROM owners ORDER BY id")
    )
    return [
        {"work": row["work"], "pid": row["pid"], "machine": row["machine"]}
        | with_iso({"started_at": row["started_at"], "heartbeat_at": row["heartbeat_at"]}, "started_at", "heartbeat_at")
        for row in rows
        if not _is_dead(database, locks, (row["machine"], row["lock_name"], row["heartbeat_at"]), now)
    ]


def _is_dead(database: Database, locks: Path, row: tuple[Any, ...], now: datetime) -> bool:
    machine, lock_name, heartbeat_at = row
    if not database.is_postgres:
        return _FileLock(locks / f"{lock_name}.lock").is_free()
    if _SessionLock(database, lock_name).is_free():
        return True
    # A machine that lost power may keep its session open at the server for hours.
    return bool(machine != socket.gethostname() and heartbeat_at < micros(now - HEARTBEAT_LIMIT))


def _forget_owner(tx: Transaction, owner_id: int, now: datetime) -> None:
    """Its leases are free, its unfinished runs are closed as cut off, with what their sources had come to."""
    tx.run("UPDATE leases SET owner_id = NULL WHERE owner_id = ?", owner_id)
    for (run_id,) in tx.all("SELECT id FROM runs WHERE owner_id = ? AND finished_at IS NULL", owner_id):
        close_run(tx, run_id, now, is_cut_off=True)
    tx.run("DELETE FROM owners WHERE id = ?", owner_id)


_STRAY = "owner_id IS NOT NULL AND owner_id NOT IN (SELECT id FROM owners)"


def _has_strays(tx: Transaction) -> bool:
    return bool(
        tx.one(f"SELECT 1 FROM leases WHERE {_STRAY} LIMIT 1")
        or tx.one(f"SELECT 1 FROM runs WHERE finished_at IS NULL AND {_STRAY} LIMIT 1")
    )


def _free_strays(tx: Transaction, now: datetime) -> None:
    """What a process took after it was given up, before it noticed."""
    tx.run(f"UPDATE leases SET owner_id = NULL WHERE {_STRAY}")
    for (run_id,) in tx.all(f"SELECT id FROM runs WHERE finished_at IS NULL AND {_STRAY}"):
        close_run(tx, run_id, now, is_cut_off=True)


def close_run(tx: Transaction, run_id: int, now: datetime, *, is_cut_off: bool) -> None:
    """Sum up what its sources came to: their records were written with their pages, so a kill loses none of it."""
    tx.run(
        """
        UPDATE run_sources SET finished_at = ?, outcome = 'failed', error_code = 'CUT_OFF',
               error = 'the process ended before this visit did; what it had stored is kept', is_retryable = ?
         WHERE run_id = ? AND finished_at IS NULL
        """,
        micros(now),
        True,
        run_id,
    )
    sums = (
        tx.one(
            """
        SELECT count(*),
               coalesce(sum(CASE WHEN outcome IN ('succeeded', 'unchanged') THEN 1 ELSE 0 END), 0),
               coalesce(sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END), 0),
               coalesce(sum(CASE WHEN outcome = 'skipped' THEN 1 ELSE 0 END), 0),
               coalesce(sum(new_count), 0), coalesce(sum(updated_count), 0), coalesce(sum(duplicate_count), 0),
               coalesce(sum(invalid_count), 0), coalesce(sum(request_count), 0)
          FROM run_sources WHERE run_id = ?
        """,
            run_id,
        )
        or (0,) * 9
    )
    tx.run(
        """
        UPDATE runs SET finished_at = ?, is_cut_off = ?, source_count = ?, succeeded = ?, failed = ?, skipped = ?,
               new_count = ?, updated_count = ?, duplicate_count = ?, invalid_count = ?, request_count = ?
         WHERE id = ?
        """,
        micros(now),
        is_cut_off,
        *(int(value) for value in sums),
        run_id,
    )


class _FileLock:
    """A lock on a file, which the kernel frees when its holder dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None

    def take(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        self._file.close()

    def is_held(self) -> bool:
        return not self._file.closed

    def is_free(self) -> bool:
        try:
            with self.path.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return True
        except BlockingIOError:
            return False
        return True


class _SessionLock:
    """An advisory lock of a PostgreSQL session, which the server frees when the session ends."""

    def __init__(self, database: Database, name: str) -> None:
        self._db = database
        self._key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        self._session: Any = None

    def take(self) -> None:
        self._session = self._db.own_session()
        self._session.execute("SELECT pg_advisory_lock(%s)", [self._key])

    def release(self) -> None:
        self._session.close()

    def is_held(self) -> bool:
        try:
            self._session.execute("SELECT 1")
        except Exception:  # noqa: BLE001 — whatever is wrong with the session, the lock is not safely ours
            return False
        return True

    def is_free(self) -> bool:
        def question(tx: Transaction) -> bool:
            # Held for this question's transaction at most: it cannot be left behind on a connection of the pool.
            row = tx.one("SELECT pg_try_advisory_xact_lock(?)", self._key)
            return bool(row and row[0])

        return self._db.read(question)
