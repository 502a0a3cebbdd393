"""The tables of credentials: what is sealed, how each one stands, and every change of that."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, Table, Text, false

from catchment.store.schema.base import Moment, RowId, metadata

credentials = Table(
    "credentials",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("name", Text, nullable=False, unique=True),
    # Of one that stands in the environment: a mark of what stands there, by which another one is noticed.
    Column("key_id", Text, nullable=False),
    # Empty for one that stands in the environment: its secret is never written down.
    Column("sealed", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("last_used_at", Moment),
    Column("is_from_environment", Boolean, nullable=False, server_default=false()),
    # Any source of the platform may be asked with it; otherwise only those that name it.
    Column("is_shared", Boolean, nullable=False, server_default=false()),
    Column("state_since", Moment),
    Column("state_until", Moment),
    Column("state_reason", Text),
    Column("errors_in_a_row", Integer, nullable=False, server_default="0"),
    Column("errors_in_all", Integer, nullable=False, server_default="0"),
    Column("falls_in_a_row", Integer, nullable=False, server_default="0"),
    Column("last_error_at", Moment),
    Column("last_error", Text),
    Column("daily_limit", Integer),
    # In UTC, as 2026-01-31: the day that `used_that_day` is about.
    Column("used_on", Text),
    Column("used_that_day", Integer, nullable=False, server_default="0"),
    Column("use_count", BigInteger, nullable=False, server_default="0"),
    Column("expires_at", Moment),
)

credential_changes = Table(
    "credential_changes",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("platform", Text, nullable=False),
    # By name: what became of a credential is known after it was removed, too.
    Column("credential", Text, nullable=False),
    Column("changed_at", Moment, nullable=False, index=True),
    # None: it was added.
    Column("from_state", Text),
    # None: it was removed.
    Column("to_state", Text),
    Column("reason", Text, nullable=False),
    Index(None, "credential", "id"),
)
