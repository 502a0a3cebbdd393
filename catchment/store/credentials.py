"""Encrypted credentials and their state. No secret can be read back in plain text from here.

State changes are decided elsewhere, by pure functions; the store runs them with a platform's credentials locked, and
writes the decision together with every state change that it contains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.lazy import lazy_imports
from catchment.messages import Message, encode, message
from catchment.model import AlertRequest, Credential, Record, View
from catchment.store.database import StorePart, Transaction, placeholders, writes
from catchment.store.item_fields import to_json, to_micros
from catchment.store.row_mappers import columns, values
from catchment.store.sources import alerts

with lazy_imports():
    from catchment.store import schema

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_SELECTED = ", ".join(f"c.{name}" for name in columns(Credential))


class Terms(NamedTuple):
    """What a user configures about a credential."""

    priority: int | None = None
    """None: unchanged, or 0."""
    daily_limit: int | None = None
    """None: unchanged, or no limit."""
    expires_at: datetime | None = None
    is_shared: bool = False
    hosts: tuple[str, ...] | None = None
    """Where sources have hosts of their own, or cookies belong to one host: those that it may be sent to. None:
    unchanged, or none yet."""


AS_USUAL = Terms()


class StoredCredential(Record, frozen=True):
    """A credential with its encryption key and its use by sources."""

    credential: Credential
    key_id: str
    source_count: int
    """How many sources name it."""


class CredentialChangeView(View, frozen=True):
    """That a credential changed its state."""

    changed_at: datetime
    from_state: str | None
    """None: it was added."""
    to_state: str | None
    """None: it was removed."""
    reason: Message


class Decided(NamedTuple, Generic[T_co]):
    """What to write about a platform's credentials."""

    result: T_co
    steps: Sequence[Credential] = ()
    """The changed credentials, one entry per state change, in order."""
    alarms: Sequence[AlertRequest] | None = None
    """The problems of these credentials; their other alerts are closed. None: not checked."""


CONCERNS = ("refused", "expiring", "used up")
"""The topics of alerts about one credential."""


def about_pool(platform: str) -> str:
    """The subject of the alert that none of a platform's credentials is usable."""
    return f"pool {platform} exhausted"


def about_credential(name: str, concern: str) -> str:
    return f"credential {name} {concern}"


def _about_credential(name: str) -> list[str]:
    return [about_credential(name, concern) for concern in CONCERNS]


class Credentials(StorePart):
    @writes
    def add(
        self,
        tx: Transaction,
        platform: str,
        name: str,
        key_id: str,
        sealed: bytes,
        now: datetime,
        *,
        replace: bool = False,
        terms: Terms = AS_USUAL,
    ) -> None:
        """Add a credential; a new secret resets its state, even under a known name. Raises Conflict without
        `replace`."""
        stored = tx.one("SELECT platform, state FROM credentials WHERE name = ?", name)
        if stored and not replace:
            raise Conflict(
                "there is already a credential named {name!r} (for {platform})",
                "choose another name, or use --replace",
                name=name,
                platform=stored[0],
            )
        if stored:
            _renew(tx, platform, name, key_id, sealed, now, terms)
        else:
            _insert(tx, platform, name, key_id, sealed, now, terms, is_from_environment=False)
        reason = message("credential.replaced" if stored else "credential.added")
        _note(tx, platform, name, stored[1] if stored else None, "active", reason, now)

    def announce(self, platform: str, name: str, mark: str, now: datetime, terms: Terms) -> None:
        """Register a secret from the environment; `mark` identifies it. A new one resets the state."""

        def change(tx: Transaction) -> None:
            stored = tx.one("SELECT key_id, state FROM credentials WHERE name = ?", name)
            if stored is None:
                _insert(tx, platform, name, mark, b"", now, terms, is_from_environment=True)
                _note(tx, platform, name, None, "active", message("credential.in_environment"), now)
            elif stored[0] != mark:
                _renew(tx, platform, name, mark, b"", now, terms)
                _note(tx, platform, name, stored[1], "active", message("credential.replaced_in_environment"), now)

        row = self._one("SELECT key_id FROM credentials WHERE name = ?", name)
        if row is None or row[0] != mark:
            self._db.write(change)

    @writes
    def remove(self, tx: Transaction, name: str, now: datetime) -> str:
        """Returns the platform that it was for. Raises NotFound."""
        row = tx.one("DELETE FROM credentials WHERE name = ? RETURNING platform, state", name)
        if row is None:
            raise _missing(name)
        _note(tx, row[0], name, row[1], None, message("credential.removed"), now)
        for subject in _about_credential(name):
            alerts.close(tx, subject, micros(now))
        return str(row[0])

    def sealed(self, name: str) -> tuple[str, bytes]:
        """Returns (key id, encrypted secret); the secret is empty if it is in the environment. Raises NotFound."""
        row = self._one("SELECT key_id, sealed FROM credentials WHERE name = ?", name)
        if row is None:
            raise _missing(name)
        return row[0], bytes(row[1])

    def get(self, name: str) -> Credential:
        """Returns the credential of that name. Raises NotFound."""
        credential = self._record(Credential, f"SELECT {_SELECTED} FROM credentials c WHERE c.name = ?", name)
        if credential is None:
            raise _missing(name)
        return credential

    def platforms(self) -> frozenset[str]:
        """Returns the platforms whose pool has an encrypted credential, usable or not. Secrets in an environment do not
        count."""
        rows = self._all("SELECT DISTINCT platform FROM credentials WHERE is_shared AND NOT is_from_environment")
        return frozenset(row[0] for row in rows)

    def page(self) -> list[StoredCredential]:
        """Returns all of them, by platform and name."""
        selected = ", ".join(f"c.{name} AS credential_{name}" for name in columns(Credential))
        sql = f"""
            SELECT {selected}, c.key_id,
                   (SELECT count(*) FROM sources s WHERE s.credential = c.name AND s.state <> 'removed')
                       AS source_count
              FROM credentials c ORDER BY c.platform, c.name
        """
        return self._records(StoredCredential, sql)

    def known(self) -> list[Credential]:
        """Returns all credentials in order of id."""
        return self._records(Credential, f"SELECT {_SELECTED} FROM credentials c ORDER BY c.id")

    def changes(self, name: str, limit: int = 100) -> list[CredentialChangeView]:
        """Returns the state changes of one credential, the newest first."""
        sql = """
            SELECT changed_at, from_state, to_state, reason FROM credential_changes
             WHERE credential = ? ORDER BY id DESC LIMIT ?
        """
        return self._records(CredentialChangeView, sql, name, limit)

    def of_platform(self, platform: str, now: datetime, decide: Callable[[list[Credential]], Decided[T]]) -> T:
        """Pass a platform's credentials, locked, to `decide`, and write what it decides."""
        return self._db.write(lambda tx: _decided(tx, platform, now, decide))

    @writes
    def of_name(self, tx: Transaction, name: str, now: datetime, decide: Callable[[list[Credential]], Decided[T]]) -> T:
        """The same, for the platform of the credential of that name. Raises NotFound."""
        row = tx.one("SELECT platform FROM credentials WHERE name = ?", name)
        if row is None:
            raise _missing(name)
        return _decided(tx, row[0], now, decide)


def named(credentials: Sequence[Credential], name: str) -> Credential:
    """Returns the credential of that name. Raises NotFound: it may have been removed in the meantime."""
    credential = next((candidate for candidate in credentials if candidate.name == name), None)
    if credential is None:
        raise _missing(name)
    return credential


def _decided(tx: Transaction, platform: str, now: datetime, decide: Callable[[list[Credential]], Decided[T]]) -> T:
    sql = f"SELECT {_SELECTED} FROM credentials c WHERE c.platform = ? ORDER BY c.id {tx.lock_rows()}"
    credentials = {credential.id: credential for credential in tx.records(Credential, sql, platform)}
    decided = decide([*credentials.values()])
    written = dict(credentials)
    for step in decided.steps:
        before = written[step.id]
        if step.state != before.state:
            _note(tx, platform, step.name, before.state, step.state, step.state_reason or Message(""), step.state_since)
        written[step.id] = step
    for credential in written.values():
        if credential != credentials[credential.id]:
            names = placeholders(columns(Credential))
            tx.run(f"UPDATE credentials SET {names} WHERE id = ?", *values(credential), credential.id)
    if decided.alarms is not None:
        for alarm in decided.alarms:
            alerts.raise_alert(tx, alarm, micros(now))
        subjects = [*map(_about_credential, [credential.name for credential in credentials.values()])]
        over = {about_pool(platform)}.union(*subjects) - {alarm.subject for alarm in decided.alarms}
        for (subject,) in tx.all("SELECT subject FROM alerts WHERE closed_at IS NULL"):
            if subject in over:
                alerts.close(tx, subject, micros(now))
    return decided.result


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
    sql = """
        INSERT INTO credentials (platform, name, key_id, sealed, state, created_at, state_since, priority, daily_limit,
                                 expires_at, is_shared, is_from_environment, hosts)
        VALUES (?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?)
    """
    tx.run(
        sql,
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
        to_json(list(terms.hosts or ())),
    )


def _renew(tx: Transaction, platform: str, name: str, key_id: str, sealed: bytes, now: datetime, terms: Terms) -> None:
    tx.run(
        """
        UPDATE credentials
           SET platform = ?, key_id = ?, sealed = ?, state = 'active', state_since = ?, state_until = NULL,
               state_reason = NULL, errors_in_a_row = 0, errors_in_all = 0, falls_in_a_row = 0, last_error_at = NULL,
               last_error = NULL, priority = coalesce(?, priority), daily_limit = coalesce(?, daily_limit),
               expires_at = ?, is_shared = ?,
               hosts = coalesce(?, CASE WHEN platform = ? THEN hosts ELSE '[]' END)
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
        None if terms.hosts is None else to_json(list(terms.hosts)),
        # Under another platform it starts without hosts: the old ones were given for the other platform.
        platform,
        name,
    )


def _note(
    tx: Transaction, platform: str, name: str, before: str | None, after: str | None, reason: Message, at: datetime
) -> None:
    sql = """
        INSERT INTO credential_changes (platform, credential, changed_at, from_state, to_state, reason)
        VALUES (?, ?, ?, ?, ?, ?)
    """
    tx.run(sql, platform, name, micros(at), before, after, encode(reason))


def _missing(name: str) -> NotFound:
    return NotFound("there is no credential named {name!r}", "`catchment credentials list` shows them", name=name)


def tables() -> list[str]:
    """Returns the tables with encrypted columns, found in the schema, so that a new table is included automatically."""
    return sorted(name for name, table in schema.metadata.tables.items() if {"key_id", "sealed"} <= {*table.c.keys()})


class SealedRow(Record, frozen=True):
    """An encrypted value, and where it is stored."""

    table: str
    id: int
    name: str
    key_id: str
    sealed: bytes


class EncryptedValues(StorePart):
    def count(self, key_id: str) -> int:
        """Returns how many are encrypted with another key."""
        sql = "SELECT count(*) FROM {table} WHERE key_id <> ? AND length(sealed) > 0"
        return sum(self._number(sql.format(table=table), key_id) for table in tables())

    def others(self, table: str, key_id: str, after: int, limit: int) -> list[SealedRow]:
        """Returns a table's rows encrypted with another key, in order of id. Empty values are not encrypted."""
        sql = f"""
            SELECT '{table}' AS "table", id, name, key_id, sealed FROM {table}
             WHERE id > ? AND key_id <> ? AND length(sealed) > 0 ORDER BY id LIMIT ?
        """
        return self._records(SealedRow, sql, after, key_id, limit)

    @writes
    def exchange(self, tx: Transaction, pairs: Sequence[tuple[SealedRow, SealedRow]]) -> int:
        """Replace the first of each pair by the second, if the first is still stored; returns how many were
        replaced."""
        return sum(
            tx.run(
                f"UPDATE {old.table} SET key_id = ?, sealed = ? WHERE id = ? AND sealed = ?",
                new.key_id,
                new.sealed,
                old.id,
                old.sealed,
            )
            for old, new in pairs
        )
