"""Leases on work, and the processes that hold them.

A process is present while it holds a lock that the operating system (or PostgreSQL's session) releases when the process
dies: its leases are then void at once, with nothing to repair. The number of a lease grows with every claim, so that a
process that was presumed dead cannot overwrite its successor's work.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

from catchment.clock import Clock, micros, moment
from catchment.errors import Conflict, LeaseLost, StoreError
from catchment.model import EndCode, Lease, Record, View
from catchment.store import spending
from catchment.store.connections import is_connection_error
from catchment.store.database import Database, Row, Transaction
from catchment.store.version import refuse_other

HEARTBEAT_LIMIT = timedelta(seconds=90)
"""Across machines, the leases of a process without a heartbeat are free after this time."""
HEARTBEAT = timedelta(seconds=20)
"""Between two heartbeats of a process."""
_SILENCE = HEARTBEAT_LIMIT - 2 * HEARTBEAT
"""How long a process watches a heartbeat that does not change. It looks once per heartbeat of its own, so up to two of
them pass in addition. Clocks of two machines may differ: the time in a heartbeat cannot be compared with ours."""
_SILENT_SECONDS, _SKEW_SECONDS = 90.0, 120.0
"""Wall time: a process that has sent no heartbeat for so long hangs; on another machine, clocks may differ, too."""
_REGISTERED = "EXISTS (SELECT 1 FROM owners WHERE owners.id = ?)"
_CLOCKS_DIFFER = timedelta(hours=1)
"""A heartbeat that is older than this needs no watching."""


def claim(
    tx: Transaction,
    resource: str,
    resource_ids: Sequence[int],
    owner_id: int,
    now: datetime,
    limit: int | None = None,
) -> dict[int, Lease]:
    """Claim up to `limit` of these resources, the first of them first; returns the leases by id, without those that
    another process holds or is claiming at this moment. No process waits for another.

    The only way to claim work of any kind: sources, jobs, webhooks, candidates, threads. `resource` names the kind, and
    `resource_ids` are ids of its rows. To use it for another kind:

    1. Read the ids of what is due, in order, more than are needed: `… WHERE NOT EXISTS (a lease with an owner)`.
    2. In a writing transaction, `claim` them, then read the rows again: what another process did between the two reads
       shows only now. `release` what is no longer due.
    3. Each transaction that writes results begins with `check`, and the last one ends with `release`.

    `announce` the resource when its row is made. A process that dies needs no repair: `Presence` voids its leases.
    """
    ids = list(dict.fromkeys(resource_ids))
    most = len(ids) if limit is None else limit
    is_choice = most < len(ids)
    # A process that was given up (it was buried, or the schema was migrated without it) claims nothing until its next
    # heartbeat, which registers it again: `_REGISTERED`.
    numbers = _claim_existing(tx, resource, ids, owner_id, now, most, is_choice) if tx.is_postgres else {}
    if len(numbers) < min(most, len(ids)):
        others = [resource_id for resource_id in ids if resource_id not in numbers]
        numbers |= _claim_new(tx, resource, others, owner_id, now, most - len(numbers))
    if tx.is_postgres and is_choice and len(numbers) < most:
        others = [resource_id for resource_id in ids if resource_id not in numbers]
        numbers |= _claim_existing(tx, resource, others, owner_id, now, most - len(numbers), False)
    return {resource_id: Lease(resource, resource_id, owner_id, number) for resource_id, number in numbers.items()}


def _claim_existing(
    tx: Transaction,
    resource: str,
    ids: Sequence[int],
    owner_id: int,
    now: datetime,
    limit: int,
    stops_at_new: bool,
) -> dict[int, int]:
    """Claims resources that were announced or claimed before, on PostgreSQL. `stops_at_new`: only those in front of the
    first that was not; otherwise it would wait forever behind those that come up again and again."""
    first_new = """
        SELECT min(w.place) FROM wanted w LEFT JOIN leases n ON n.resource = ? AND n.resource_id = w.value
         WHERE n.resource_id IS NULL
    """
    rows = tx.all(
        f"""
        WITH wanted AS (SELECT * FROM unnest(?::bigint[]) WITH ORDINALITY AS w (value, place))
        UPDATE leases SET number = leases.number + 1, owner_id = ?, taken_at = ?
          FROM (SELECT l.resource, l.resource_id FROM wanted
                  JOIN leases l ON l.resource = ? AND l.resource_id = wanted.value
                 WHERE l.owner_id IS NULL AND {_REGISTERED}
                   {f"AND wanted.place < coalesce(({first_new}), wanted.place + 1)" if stops_at_new else ""}
                 ORDER BY wanted.place LIMIT ? FOR UPDATE OF l SKIP LOCKED) AS free
         WHERE leases.resource = free.resource AND leases.resource_id = free.resource_id
        RETURNING leases.resource_id, leases.number
        """,
        list(ids),
        owner_id,
        micros(now),
        resource,
        owner_id,
        *([resource] if stops_at_new else []),
        limit,
    )
    return dict(rows)


def _claim_new(
    tx: Transaction, resource: str, ids: Sequence[int], owner_id: int, now: datetime, limit: int
) -> dict[int, int]:
    """Claims resources that may have no row yet; SQLite, where only one writes at a time, claims all of them so. It
    reads lists in their order."""
    if tx.is_postgres:
        # There is no row to lock. The process with this lock may insert it; no other process waits for it.
        free = f"""
            SELECT ?, free.value, 1, ?, ?
              FROM (SELECT wanted.value FROM unnest(?::bigint[]) WITH ORDINALITY AS wanted (value, place)
                      LEFT JOIN leases l ON l.resource = ? AND l.resource_id = wanted.value
                     WHERE l.resource_id IS NULL ORDER BY wanted.place) AS free
             WHERE {_REGISTERED} AND pg_try_advisory_xact_lock(hashtext(?), free.value::integer) LIMIT ?
        """
        values = [list(ids), resource, owner_id, resource, limit]
    else:
        free = f"""
            SELECT ?, wanted.value, 1, ?, ? FROM json_each(?) AS wanted
              LEFT JOIN leases l ON l.resource = ? AND l.resource_id = wanted.value
             WHERE l.owner_id IS NULL AND {_REGISTERED} LIMIT ?
        """
        values = [json.dumps(ids), resource, owner_id, limit]
    rows = tx.all(
        f"""
        INSERT INTO leases (resource, resource_id, number, owner_id, taken_at) {free}
        ON CONFLICT (resource, resource_id) DO UPDATE
           SET number = leases.number + 1, owner_id = excluded.owner_id, taken_at = excluded.taken_at
         WHERE leases.owner_id IS NULL
        RETURNING resource_id, number
        """,
        resource,
        owner_id,
        micros(now),
        *values,
    )
    return dict(rows)


def announce(tx: Transaction, resource: str, resource_ids: Sequence[int], now: datetime) -> None:
    """Prepare the leases of new resources, where many claimers may meet: an existing row can be skipped while another
    process claims it."""
    rows = [(resource, resource_id, 0, micros(now)) for resource_id in resource_ids]
    tail = "ON CONFLICT (resource, resource_id) DO NOTHING"
    tx.insert("leases", ("resource", "resource_id", "number", "taken_at"), rows, tail)


def claim_one(tx: Transaction, resource: str, resource_id: int, owner_id: int, now: datetime) -> Lease | None:
    """Claim the resource; returns None if it is taken."""
    return claim(tx, resource, [resource_id], owner_id, now).get(resource_id)


def lost(tx: Transaction, leases: Sequence[Lease]) -> set[Lease]:
    """Returns those that were taken over. On PostgreSQL the others stay ours until the transaction ends."""
    ours: set[tuple[str, int, int, int | None]] = set()
    for resource in sorted({lease.resource for lease in leases}):
        rows = tx.select_in(
            f"""
            SELECT resource_id, number, owner_id FROM leases
             WHERE resource = ? AND resource_id IN {{values}} ORDER BY resource_id {tx.lock_rows()}
            """,
            [lease.resource_id for lease in leases if lease.resource == resource],
            before=[resource],
        )
        ours |= {(resource, *row) for row in rows}
    return {lease for lease in leases if (lease.resource, lease.resource_id, lease.number, lease.owner_id) not in ours}


def check(tx: Transaction, *leases: Lease) -> None:
    """Raises LeaseLost if one of the leases was taken over: nothing may be written then."""
    for lease in lost(tx, leases):
        raise LeaseLost(
            "another process has taken over {resource} {resource_id}",
            resource=lease.resource,
            resource_id=lease.resource_id,
        )


def release(tx: Transaction, *leases: Lease) -> None:
    tx.many(
        "UPDATE leases SET owner_id = NULL WHERE resource = ? AND resource_id = ? AND number = ? AND owner_id = ?",
        [(lease.resource, lease.resource_id, lease.number, lease.owner_id) for lease in leases],
    )


class Presence:
    """Registers this process as alive. Call `leave` at the end; dying has the same effect."""

    def __init__(self, database: Database, home: Path, work: str, now: datetime, version: str | None = None) -> None:
        """`version`: the schema that this process works with; None: any."""
        self._db, self._locks, self._work, self._version = database, locks_of(database, home), work, version
        self._one_at_a_time = Lock()
        self._release_queue: list[Lease] = []
        self._heard: dict[int, tuple[datetime, datetime]] = {}
        """The last heartbeat of each process on another machine, and since when it is the last."""
        self._enter(now)

    def _enter(self, now: datetime) -> None:
        self.lock_name = uuid.uuid4().hex
        # Locked before the row is visible: a row without its lock means that its process is dead.
        self._held = _SessionLock(self._db, self.lock_name) if self._db.is_postgres else _FileLock(self._path())
        with self._db.said_plainly():
            # If this fails, the next heartbeat finds that nothing is held, and enters again.
            self._held.take()
        try:
            self.owner_id: int = self._db.write(lambda tx: self._registered(tx, now))
        except BaseException:
            self._held.release()
            self._path().unlink(missing_ok=True)
            raise

    def _registered(self, tx: Transaction, now: datetime) -> int:
        row = tx.one(
            """
            INSERT INTO owners (machine, pid, work, lock_name, started_at, heartbeat_at)
            VALUES (?, ?, ?, ?, ?, ?) RETURNING id
            """,
            os.uname().nodename,
            os.getpid(),
            self._work,
            self.lock_name,
            micros(now),
            micros(now),
        )
        assert row is not None
        if self._version is not None:
            # After the insertion, which waits for a migration. Whoever hung while the schema was migrated wakes up
            # unregistered, and does not work with the new one.
            refuse_other(tx, self._version)
        return int(row[0])

    def _path(self, name: str | None = None) -> Path:
        return self._locks / f"{name or self.lock_name}.lock"

    def heartbeat(self, now: datetime, *, buries: bool = True) -> None:
        """Record that this process is alive, and free the leases of dead ones, unless others do (`buries`).
        Processes of other machines that have fallen silent are noticed in any case: whoever else looks may have died
        with them."""
        with self._one_at_a_time:
            if not self._beats(now):
                # The database server was restarted, or this process was presumed dead: its leases are gone; register
                # again.
                self._held.release()
                self._enter(now)
            self._drain_release_queue()
            is_silence = not buries and self._listen(now)
        if buries or is_silence:
            self.bury(now)

    def _beats(self, now: datetime) -> bool:
        """Records the heartbeat; returns whether this process is registered, and holds its lock."""
        sql, values = "UPDATE owners SET heartbeat_at = ? WHERE id = ?", (micros(now), self.owner_id)
        if isinstance(self._held, _SessionLock):
            # In the session that holds the lock: one statement says both, and most processes of a deployment have
            # nothing else to say for hours.
            with self._db.said_plainly():
                return self._held.run(sql.replace("?", "%s"), values) == 1
        return bool(self._db.write(lambda tx: tx.run(sql, *values))) and self._held.is_held()

    def _listen(self, now: datetime) -> bool:
        """Notes the heartbeats of other machines; returns whether one has not changed for too long. Locks tell at once
        which processes of this machine are dead, and all of them on SQLite, which other machines do not use."""
        if not isinstance(self._held, _SessionLock):
            return False
        here = os.uname().nodename
        with self._db.said_plainly():
            rows = self._held.read("SELECT id, heartbeat_at FROM owners WHERE machine <> %s", [here])
        return bool(self._silent({owner_id: moment(at) for owner_id, at in rows}, now))

    def _silent(self, heartbeats: Mapping[int, datetime], now: datetime) -> set[int]:
        """Notes these heartbeats; returns those processes whose heartbeat has not changed for too long."""
        heard = self._heard
        self._heard = {
            key: heard[key] if key in heard and heard[key][0] == at else (at, now) for key, at in heartbeats.items()
        }
        return {key for key, (_, since) in self._heard.items() if now - since > _SILENCE}

    def release_later(self, lease: Lease) -> None:
        """Queue a lease that could not be released because the database was unavailable; released when it is back."""
        with self._one_at_a_time:
            self._release_queue.append(lease)

    def _drain_release_queue(self) -> None:
        if self._release_queue:
            self._db.write(lambda tx: release(tx, *self._release_queue))
            self._release_queue = []

    def bury(self, now: datetime) -> int:
        """Void the leases of dead processes; returns how many processes there were."""
        others = self._db.read(
            lambda tx: tx.records(
                _Owner,
                "SELECT id, machine, lock_name, heartbeat_at FROM owners WHERE id <> ? ORDER BY id",
                self.owner_id,
            )
        )
        here = os.uname().nodename
        silent = self._silent({owner.id: owner.heartbeat_at for owner in others if owner.machine != here}, now)
        dead = _dead(self._db, self._locks, others, now, silent)
        for owner in dead:
            self._db.write(lambda tx, gone=owner.id: _forget_owner(tx, gone, now))  # type: ignore[misc]
            self._path(owner.lock_name).unlink(missing_ok=True)
        if self._db.read(_has_strays):
            self._db.write(lambda tx: _free_strays(tx, now))
        return len(dead)

    def leave(self, now: datetime) -> None:
        """Release everything in order. If the database cannot be written, releasing the lock has the same effect."""
        try:
            with suppress(StoreError):
                self._db.write(lambda tx: _forget_owner(tx, self.owner_id, now))
        finally:
            self._held.release()
            self._path().unlink(missing_ok=True)


def locks_of(database: Database, home: Path) -> Path:
    """Returns the folder of the process locks: beside the database file, since two homes may share one database."""
    return (database.file.parent if database.file else home) / "locks"


class ProcessView(View, frozen=True):
    """A process that may hold leases."""

    work: str
    pid: int
    machine: str
    started_at: datetime
    heartbeat_at: datetime


def living(database: Database, home: Path, now: datetime) -> list[ProcessView]:
    """Returns the processes that are currently alive. Changes nothing."""

    def query(tx: Transaction) -> tuple[list[_Owner], list[ProcessView]]:
        rows = tx.all("SELECT id, machine, pid, work, lock_name, started_at, heartbeat_at FROM owners ORDER BY id")
        return tx.as_records(_Owner, rows), tx.as_records(ProcessView, rows)

    owners, processes = database.read(query)
    dead = {owner.id for owner in _dead(database, locks_of(database, home), owners, now)}
    return [process for owner, process in zip(owners, processes, strict=True) if owner.id not in dead]


def is_silent(process: ProcessView, clock: Clock) -> bool:
    """Whether the process hangs, by its last heartbeat: it lives, since it holds its lock, but does nothing. Clocks of
    two machines may differ."""
    patience = _SILENT_SECONDS if process.machine == os.uname().nodename else _SILENT_SECONDS + _SKEW_SECONDS
    return clock.wall_seconds((clock.now() - process.heartbeat_at).total_seconds()) > patience


def refuse_while_in_use(database: Database, home: Path, now: datetime) -> None:
    """Raises Conflict if another process works with this database."""
    if not database.is_there:
        return
    try:
        processes = living(database, home, now)
    except StoreError:
        # Damaged, which may be the reason to restore it.
        return
    for process in processes:
        raise Conflict(
            "the database is in use by {work} (process {pid} on {machine})",
            "stop it first",
            work=process.work,
            pid=process.pid,
            machine=process.machine,
        )


class _Owner(Record, frozen=True):
    """What shows whether a process is alive."""

    id: int
    machine: str
    lock_name: str
    heartbeat_at: datetime


def _dead(
    database: Database, locks: Path, owners: Sequence[_Owner], now: datetime, silent: Collection[int] = ()
) -> list[_Owner]:
    """Returns those that are not alive. `silent`: processes whose heartbeat has not changed for long."""
    if not database.is_postgres:
        return [owner for owner in owners if _FileLock(locks / f"{owner.lock_name}.lock").is_free()]
    if not owners:
        return []
    # Held for this statement at most: none can be left behind on a pooled connection.
    sql = "SELECT id FROM unnest(?::bigint[], ?::bigint[]) AS o (id, key) WHERE pg_try_advisory_xact_lock(key)"
    ids, keys = [owner.id for owner in owners], [_lock_key(owner.lock_name) for owner in owners]
    gone = set(database.read(lambda tx: tx.column(sql, ids, keys)))
    # A machine that lost power may keep its session open at the server for hours; so does a stopped process.
    here = os.uname().nodename
    return [
        owner
        for owner in owners
        if owner.id in gone
        or (owner.machine != here and (owner.id in silent or owner.heartbeat_at < now - _CLOCKS_DIFFER))
    ]


def _forget_owner(tx: Transaction, owner_id: int, now: datetime) -> None:
    """Frees its leases and closes its unfinished runs as cut off, with the results of their sources so far."""
    tx.run("UPDATE leases SET owner_id = NULL WHERE owner_id = ?", owner_id)
    for (run_id,) in tx.all("SELECT id FROM runs WHERE owner_id = ? AND finished_at IS NULL", owner_id):
        close_run(tx, run_id, now, is_cut_off=True)
    spending.void_of(tx, owner_id)
    tx.run("DELETE FROM owners WHERE id = ?", owner_id)


def forget_all(tx: Transaction, locks: Path, now: datetime) -> None:
    """Forget all processes, when none is alive, in the transaction of a migration. A machine that hung meanwhile finds
    on waking that it is not registered: it writes and claims nothing."""
    for owner_id, lock_name in tx.all("SELECT id, lock_name FROM owners"):
        _forget_owner(tx, owner_id, now)
        (locks / f"{lock_name}.lock").unlink(missing_ok=True)


_STRAY = "owner_id IS NOT NULL AND owner_id NOT IN (SELECT id FROM owners)"


def _has_strays(tx: Transaction) -> bool:
    return bool(
        tx.one(f"SELECT 1 FROM leases WHERE {_STRAY} LIMIT 1")
        or tx.one(f"SELECT 1 FROM runs WHERE finished_at IS NULL AND {_STRAY} LIMIT 1")
    )


def _free_strays(tx: Transaction, now: datetime) -> None:
    """Frees leases that a process claimed after it was declared dead."""
    tx.run(f"UPDATE leases SET owner_id = NULL WHERE {_STRAY}")
    for (run_id,) in tx.all(f"SELECT id FROM runs WHERE finished_at IS NULL AND {_STRAY}"):
        close_run(tx, run_id, now, is_cut_off=True)


def close_run(tx: Transaction, run_id: int, now: datetime, *, is_cut_off: bool) -> None:
    """Sum up the results of its sources: their records were written with their pages, so a kill loses none."""
    sql = """
        UPDATE run_sources SET finished_at = ?, outcome = 'failed', error_code = ?, error = ?, is_retryable = ?
         WHERE run_id = ? AND finished_at IS NULL
    """
    tx.run(sql, micros(now), str(EndCode.CUT_OFF), "visit.cut_off", True, run_id)
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
    """A file lock, which the kernel releases when its holder dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None

    def take(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self.path.open("a")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        if self._file is not None:
            self._file.close()

    def is_held(self) -> bool:
        return self._file is not None and not self._file.closed

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
    """An advisory lock of a PostgreSQL session, which the server releases when the session ends."""

    def __init__(self, database: Database, name: str) -> None:
        self._db, self._key = database, _lock_key(name)
        self._session: Any = None

    def take(self) -> None:
        self._session = self._db.own_session()
        self._session.execute("SELECT pg_advisory_lock(%s)", [self._key])

    def release(self) -> None:
        if self._session is not None:
            self._session.close()

    def run(self, sql: str, values: Sequence[Any]) -> int:
        """Runs a statement in the session; returns how many rows it changed. 0 if the session has ended, and the lock
        with it."""
        if self._session is None:
            return 0
        try:
            return int(self._session.execute(sql, values).rowcount)
        except Exception as error:
            if is_connection_error(error) or self._session.closed:
                return 0
            raise

    def read(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """Runs a query in the session; returns its rows. None if the session has ended: the next heartbeat notices."""
        if self._session is None:
            return []
        try:
            return list(self._session.execute(sql, values).fetchall())
        except Exception as error:
            if is_connection_error(error) or self._session.closed:
                return []
            raise


def _lock_key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
