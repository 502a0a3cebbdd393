"""Sealed credentials, how each one stands, and hashed API keys. Nothing in here can be read back in plain.

What becomes of a credential is decided elsewhere, by pure functions; here those who decide are alone with a platform's
credentials, and what they decided is written with every change of state that it means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.model import Alarm, Credential, CredentialState, Record
from catchment.store import alerts
from catchment.store.database import Database, Transaction, placeholders
from catchment.store.rows import to_micros, to_moment, with_iso

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_COLUMNS = (
    *("platform", "name", "created_at", "state", "state_since", "priority", "is_shared", "is_from_environment"),
    *("daily_limit", "expires_at", "state_until", "state_reason", "errors_in_a_row", "errors_in_all"),
    *("falls_in_a_row", "last_error_at", "last_error", "used_on", "used_that_day", "use_count", "last_used_at"),
)
_TIMES = frozenset(("created_at", "state_since", "expires_at", "state_until", "last_error_at", "last_used_at"))
_SELECTED = ", ".join(f"c.{name}" for name in ("id", *_COLUMNS))


class Terms(NamedTuple):
    """What a person decides about a credential."""

    priority: int | None = None
    """None: as it was, or 0."""
    daily_limit: int | None = None
    """None: as it was, or without."""
    expires_at: datetime | None = None
    is_shared: bool = False


AS_USUAL = Terms()


class Kept(Record, frozen=True):
    """A credential, and what else is known of it."""

    credential: Credential
    key_id: str
    source_count: int
    """How many sources name it."""


class Decided(NamedTuple, Generic[T_co]):
    """What is to be written of a platform's credentials."""

    result: T_co
    steps: Sequence[Credential] = ()
    """The credentials that are not as they were, as often as their state changed, in this order."""
    alarms: Sequence[Alarm] | None = None
    """What is wrong with them, and nothing else is. None: not looked at."""


CONCERNS = ("refused", "expiring")
"""What alerts about one credential are about."""


def about_pool(platform: str) -> str:
    """The subject of the alert that none of a platform's credentials is usable."""
    return f"pool {platform} exhausted"


def about_credential(name: str, concern: str) -> str:
    return f"credential {name} {concern}"


def _about_credential(name: str) -> list[str]:
    return [about_credential(name, concern) for concern in CONCERNS]


class Credentials:
    def __init__(self, database: Database) -> None:
        self._db = database

    # ── keeping ───────────────────────────────────────────────────────────────────────────────────────────────────

    def add(
        self,
        platform: str,
        name: str,
        key_id: str,
        sealed: bytes,
        now: datetime,
        *,
        replace: bool = False,
        terms: Terms = AS_USUAL,
    ) -> None:
        """A new secret begins a new life, also under a name that is known."""

        def deed(tx: Transaction) -> None:
            known = tx.one("SELECT platform, state FROM credentials WHERE name = ?", name)
            if known and not replace:
                what = f"there is a credential named {name!r} already (for {known[0]})"
                raise Conflict(what, "choose another name, or give --replace to put this one in its place")
            if known:
                _renew(tx, platform, name, key_id, sealed, now, terms)
            else:
                _insert(tx, platform, name, key_id, sealed, now, terms, is_from_environment=False)
            _note(tx, platform, name, known[1] if known else None, "active", "replaced" if known else "added", now)

        self._db.write(deed)

    def announce(self, platform: str, name: str, mark: str, now: datetime, terms: Terms) -> None:
        """That a secret stands in the environment; `mark` tells one from another. A new one begins a new life."""

        def deed(tx: Transaction) -> None:
            known = tx.one("SELECT key_id, state FROM credentials WHERE name = ?", name)
            if known is None:
                _insert(tx, platform, name, mark, b"", now, terms, is_from_environment=True)
                _note(tx, platform, name, None, "active", "found in the environment", now)
            elif known[0] != mark:
                _renew(tx, platform, name, mark, b"", now, terms)
                _note(tx, platform, name, known[1], "active", "another one stands in the environment", now)

        row = self._db.read(lambda tx: tx.one("SELECT key_id FROM credentials WHERE name = ?", name))
        if row is None or row[0] != mark:
            self._db.write(deed)

    def remove(self, name: str, now: datetime) -> str:
        """Gives the platform that it was for."""

        def deed(tx: Transaction) -> str:
            row = tx.one("DELETE FROM credentials WHERE name = ? RETURNING platform, state", name)
            if row is None:
                raise _missing(name)
            _note(tx, row[0], name, row[1], None, "removed", now)
            for subject in _about_credential(name):
                alerts.close(tx, subject, micros(now))
            return str(row[0])

        return self._db.write(deed)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def sealed(self, name: str) -> tuple[str, bytes]:
        """(key id, sealed secret); the secret is empty where it stands in the environment."""
        row = self._db.read(lambda tx: tx.one("SELECT key_id, sealed FROM credentials WHERE name = ?", name))
        if row is None:
            raise _missing(name)
        return row[0], bytes(row[1])

    def platforms(self) -> frozenset[str]:
        """Those whose pool has a sealed credential, usable or not. What stands in an environment is not among them."""
        rows = self._db.read(
            lambda tx: tx.all("SELECT DISTINCT platform FROM credentials WHERE is_shared AND NOT is_from_environment")
        )
        return frozenset(row[0] for row in rows)

    def page(self) -> list[Kept]:
        """All of them, by platform and name."""
        rows = self._db.read(
            lambda tx: tx.all(
                f"""
                SELECT {_SELECTED}, c.key_id,
                       (SELECT count(*) FROM sources s WHERE s.credential = c.name AND s.state <> 'removed')
                  FROM credentials c ORDER BY c.platform, c.name
                """
            )
        )
        return [Kept(_credential(row), row[-2], row[-1]) for row in rows]

    def known(self) -> list[Credential]:
        """All of them, as they stand."""
        rows = self._db.read(lambda tx: tx.all(f"SELECT {_SELECTED} FROM credentials c ORDER BY c.id"))
        return [_credential(row) for row in rows]

    def changes(self, name: str, limit: int = 100) -> list[dict[str, Any]]:
        """What became of one, the newest first."""
        rows = self._db.read(
            lambda tx: tx.dicts(
                """
                SELECT changed_at, from_state, to_state, reason FROM credential_changes
                 WHERE credential = ? ORDER BY id DESC LIMIT ?
                """,
                name,
                limit,
            )
        )
        return [with_iso(row, "changed_at") for row in rows]

    # ── deciding ──────────────────────────────────────────────────────────────────────────────────────────────────

    def of_platform(self, platform: str, now: datetime, decide: Callable[[list[Credential]], Decided[T]]) -> T:
        """Alone with a platform's credentials: they are given to `decide`, and what it decides is written."""
        return self._db.write(lambda tx: _decided(tx, platform, now, decide))

    def of_name(self, name: str, now: datetime, decide: Callable[[list[Credential]], Decided[T]]) -> T:
        """The same, for the platform that the credential of that name belongs to."""

        def deed(tx: Transaction) -> T:
            row = tx.one("SELECT platform FROM credentials WHERE name = ?", name)
            if row is None:
                raise _missing(name)
            return _decided(tx, row[0], now, decide)

        return self._db.write(deed)


def named(known: Sequence[Credential], name: str) -> Credential:
    """Of these the one of that name. It may have been removed in the moment before they were looked at."""
    one = next((one for one in known if one.name == name), None)
    if one is None:
        raise _missing(name)
    return one


def _decided(tx: Transaction, platform: str, now: datetime, decide: Callable[[list[Credential]], Decided[T]]) -> T:
    rows = tx.all(
        f"SELECT {_SELECTED} FROM credentials c WHERE c.platform = ? ORDER BY c.id {tx.lock_rows()}", platform
    )
    known = {row[0]: _credential(row) for row in rows}
    decided = decide([*known.values()])
    written = dict(known)
    for one in decided.steps:
        before = written[one.id]
        if one.state != before.state:
            _note(tx, platform, one.name, before.state, one.state, one.state_reason or "", one.state_since)
        written[one.id] = one
    for one in written.values():
        if one != known[one.id]:
            values = [_value(one, column) for column in _COLUMNS]
            tx.run(f"UPDATE credentials SET {placeholders(_COLUMNS)} WHERE id = ?", *values, one.id)
    if decided.alarms is not None:
        _have_open(tx, platform, [one.name for one in known.values()], decided.alarms, micros(now))
    return decided.result


def _have_open(tx: Transaction, platform: str, names: Sequence[str], alarms: Sequence[Alarm], now: int) -> None:
    for alarm in alarms:
        alerts.raise_alert(tx, alarm, now)
    still = {alarm.subject for alarm in alarms}
    for subject in _open_subjects(tx, platform, names):
        if subject not in still:
            alerts.close(tx, subject, now)


def _open_subjects(tx: Transaction, platform: str, names: Sequence[str]) -> list[str]:
    """Of the alerts about a platform's pool, and about these of its credentials."""
    ours = {about_pool(platform), *(subject for name in names for subject in _about_credential(name))}
    rows = tx.all("SELECT subject FROM alerts WHERE closed_at IS NULL")
    return [row[0] for row in rows if row[0] in ours]


def _insert(
    tx: Transaction,
    platform: str,
    name: str,
    key_id: str,
    sealed: bytes,
    now: datetime,
    terms: Terms,
    *,
    is_from_environment: bool,
) -> None:
    tx.run(
        """
        INSERT INTO credentials (platform, name, key_id, sealed, state, created_at, state_since, priority, daily_limit,
                                 expires_at, is_shared, is_from_environment)
        VALUES (?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?)
        """,
        platform,
        name,
        key_id,
        sealed,
        micros(now),
        micros(now),
        terms.priority or 0,
        terms.daily_limit,
        to_micros(terms.expires_at),
        terms.is_shared,
        is_from_environment,
    )


def _renew(tx: Transaction, platform: str, name: str, key_id: str, sealed: bytes, now: datetime, terms: Terms) -> None:
    tx.run(
        """
        UPDATE credentials
           SET platform = ?, key_id = ?, sealed = ?, state = 'active', state_since = ?, state_until = NULL,
               state_reason = NULL, errors_in_a_row = 0, errors_in_all = 0, falls_in_a_row = 0, last_error_at = NULL,
               last_error = NULL, priority = coalesce(?, priority), daily_limit = coalesce(?, daily_limit),
               expires_at = ?, is_shared = ?
         WHERE name = ?
        """,
        platform,
        key_id,
        sealed,
        micros(now),
        terms.priority,
        terms.daily_limit,
        to_micros(terms.expires_at),
        terms.is_shared,
        name,
    )


def _note(
    tx: Transaction, platform: str, name: str, before: str | None, after: str | None, reason: str, at: datetime
) -> None:
    tx.run(
        """
        INSERT INTO credential_changes (platform, credential, changed_at, from_state, to_state, reason)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        platform,
        name,
        micros(at),
        before,
        after,
        reason,
    )


def _credential(row: Sequence[Any]) -> Credential:
    told: dict[str, Any] = dict(zip(("id", *_COLUMNS), row, strict=False))
    # One that was kept before its changes were noted down stands as it was added.
    told["state_since"] = told["created_at"] if told["state_since"] is None else told["state_since"]
    for name in _TIMES:
        told[name] = to_moment(told[name])
    told["state"] = CredentialState(told["state"])
    told["is_shared"], told["is_from_environment"] = bool(told["is_shared"]), bool(told["is_from_environment"])
    return Credential(**told)


def _value(one: Credential, column: str) -> Any:
    value = getattr(one, column)
    return to_micros(value) if column in _TIMES else value


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no credential named {name!r}", "`catchment credentials list` shows them")


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
