"""Sealed credentials and hashed API keys. Nothing in here can be read back in plain."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.store.database import Database, Transaction
from catchment.store.rows import with_iso


class Credentials:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self, platform: str, name: str, key_id: str, sealed: bytes, now: datetime, *, replace: bool = False
    ) -> None:
        def deed(tx: Transaction) -> None:
            known = tx.one("SELECT platform FROM credentials WHERE name = ?", name)
            if known and not replace:
                raise Conflict(f"there is a credential named {name!r} already (for {known[0]})", "remove it first")
            if known:
                tx.run(
                    "UPDATE credentials SET platform = ?, key_id = ?, sealed = ? WHERE name = ?",
                    platform,
                    key_id,
                    sealed,
                    name,
                )
                return
            tx.run(
                """
                INSERT INTO credentials (platform, name, key_id, sealed, state, priority, created_at)
                VALUES (?, ?, ?, ?, 'active', 0, ?)
                """,
                platform,
                name,
                key_id,
                sealed,
                micros(now),
            )

        self._db.write(deed)

    def sealed(self, name: str) -> tuple[str, bytes]:
        """(key id, sealed secret)"""
        row = self._db.read(lambda tx: tx.one("SELECT key_id, sealed FROM credentials WHERE name = ?", name))
        if row is None:
            raise NotFound(f"there is no credential named {name!r}", "`catchment credentials list` shows them")
        return row[0], bytes(row[1])

    def page(self) -> list[dict[str, Any]]:
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT c.platform, c.name, c.state, c.priority, c.key_id, c.created_at, c.last_used_at,
                       (SELECT count(*) FROM sources s WHERE s.credential = c.name AND s.state <> 'removed')
                           AS source_count
                  FROM credentials c ORDER BY c.platform, c.name
                """
            )
        )
        return [with_iso(row, "created_at", "last_used_at") for row in rows]

    def remove(self, name: str) -> None:
        if not self._db.write(lambda tx: tx.run("DELETE FROM credentials WHERE name = ?", name)):
            raise NotFound(f"there is no credential named {name!r}", "`catchment credentials list` shows them")


class ApiKeys:
    """Keys of the API. They are long and random, so a plain hash keeps them safe; none can be read back."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, name: str, key: str, now: datetime) -> None:
        self._db.write(
            lambda tx: tx.run(
                """
                INSERT INTO api_keys (name, key_hash, created_at) VALUES (?, ?, ?)
                ON CONFLICT (name) DO UPDATE SET key_hash = excluded.key_hash, created_at = excluded.created_at
                """,
                name,
                _hash(key),
                micros(now),
            )
        )

    def is_known(self, key: str) -> bool:
        return self._db.read(lambda tx: tx.one("SELECT 1 FROM api_keys WHERE key_hash = ?", _hash(key))) is not None

    def is_empty(self) -> bool:
        return self._db.read(lambda tx: tx.one("SELECT 1 FROM api_keys LIMIT 1")) is None


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
