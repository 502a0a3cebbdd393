"""API keys, browser sessions and sign-in links. All of them are stored as hashes: none can be read back.

They are long and random, so a plain hash keeps them safe.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.model import Record, View
from catchment.store.database import StorePart, Transaction, writes

TOUCHED_EVERY = timedelta(minutes=1)
"""The last use of a key or session is written at most this often: a read must not become a write."""


class Session(Record, frozen=True):
    """A session that is valid now."""

    id: int
    is_stale: bool
    """Its last use was written long enough ago to be written again."""


class ApiKeyView(View, frozen=True):
    """A key without the key itself."""

    id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


class SessionView(View, frozen=True):
    """A signed-in browser."""

    id: int
    created_at: datetime
    last_used_at: datetime
    ends_at: datetime
    opened_by: str
    browser: str


class ApiKeys(StorePart):
    """Keys of our own API."""

    def add(self, name: str, key: str, now: datetime) -> None:
        """Raises Conflict if there is a key of that name."""

        sql = "INSERT INTO api_keys (name, key_hash, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
        if not self._run(sql, name, _hash(key), micros(now)):
            raise Conflict(
                "there is already an API key named {name!r}", "choose another name, or revoke that one", name=name
            )

    def is_known(self, key: str, now: datetime) -> bool:
        """Whether the key is valid. Its last use is recorded at most once a minute."""
        row = self._one("SELECT id, last_used_at FROM api_keys WHERE key_hash = ?", _hash(key))
        if row is None:
            return False
        if row[1] is None or row[1] <= micros(now - TOUCHED_EVERY):
            self._run("UPDATE api_keys SET last_used_at = ? WHERE id = ?", micros(now), row[0])
        return True

    def is_empty(self) -> bool:
        return self._one("SELECT 1 FROM api_keys LIMIT 1") is None

    def page(self) -> list[ApiKeyView]:
        """Returns all keys by name."""
        return self._records(ApiKeyView, "SELECT id, name, created_at, last_used_at FROM api_keys ORDER BY name")

    def revoke(self, name: str) -> None:
        if not self._run("DELETE FROM api_keys WHERE name = ?", name):
            raise NotFound("there is no API key named {name!r}", "`catchment keys list` shows them", name=name)


class Sessions(StorePart):
    """Browser sessions. The cookie holds a random token; the table has its hash."""

    @writes
    def open(self, tx: Transaction, token: str, now: datetime, ends_at: datetime, opened_by: str, browser: str) -> None:
        tx.run("DELETE FROM sessions WHERE ends_at <= ?", micros(now))
        sql = """
            INSERT INTO sessions (token_hash, created_at, last_used_at, ends_at, opened_by, browser)
            VALUES (?, ?, ?, ?, ?, ?)
        """
        tx.run(sql, _hash(token), micros(now), micros(now), micros(ends_at), opened_by, browser)

    def find(self, token: str, now: datetime) -> Session | None:
        """Returns the session of that token; None: there is none, or it has ended."""
        row = self._one("SELECT id, last_used_at, ends_at FROM sessions WHERE token_hash = ?", _hash(token))
        if row is None or row[2] <= micros(now):
            return None
        return Session(row[0], is_stale=row[1] <= micros(now - TOUCHED_EVERY))

    def touch(self, session_id: int, now: datetime) -> None:
        self._run("UPDATE sessions SET last_used_at = ? WHERE id = ?", micros(now), session_id)

    def page(self, now: datetime) -> list[SessionView]:
        """Returns the valid sessions, the last opened first."""
        sql = """
            SELECT id, created_at, last_used_at, ends_at, opened_by, browser FROM sessions
             WHERE ends_at > ? ORDER BY id DESC
        """
        return self._records(SessionView, sql, micros(now))

    def end(self, session_id: int) -> None:
        if not self._run("DELETE FROM sessions WHERE id = ?", session_id):
            raise NotFound(
                "there is no session {session_id}", "`catchment sessions list` shows them", session_id=session_id
            )

    def end_all(self, but: int | None = None) -> int:
        """End all sessions, except one; returns how many there were."""
        return self._run("DELETE FROM sessions WHERE id <> ?", but or 0)


class SignInLinks(StorePart):
    """Single-use links that sign a browser in; valid for a short time."""

    @writes
    def add(self, tx: Transaction, token: str, now: datetime, ends_at: datetime) -> None:
        tx.run("DELETE FROM sign_in_links WHERE ends_at <= ?", micros(now))
        sql = "INSERT INTO sign_in_links (token_hash, created_at, ends_at) VALUES (?, ?, ?)"
        tx.run(sql, _hash(token), micros(now), micros(ends_at))

    def use(self, token: str, now: datetime) -> bool:
        """Whether the link is valid. This uses it up."""
        link = self._one("SELECT 1 FROM sign_in_links WHERE token_hash = ?", _hash(token))
        if link is None:
            # A wrong guess costs a read and never a write.
            return False
        row = self._db.write(
            lambda tx: tx.one("DELETE FROM sign_in_links WHERE token_hash = ? RETURNING ends_at", _hash(token))
        )
        return row is not None and row[0] > micros(now)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
