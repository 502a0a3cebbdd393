"""What is still to be asked for about items. No foreign keys, as with looks: written with items, and short-lived."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from catchment.store.schema.base import Json, Moment, metadata

owed = Table(
    "owed",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    # Since when, or when something of it was asked for last: whoever waited longest comes first.
    Column("owed_at", Moment, nullable=False),
    Column("asked_count", Integer, nullable=False),
    # As the platform proposed them; no secret is in a request before it is sent.
    Column("requests", Json, nullable=False),
    Index("ix_owed_waiting", "source_id", "owed_at", "item_id"),
    sqlite_with_rowid=False,
)
"""More about an item that a listing showed to be new or changed: its replies. Gone once it is asked for."""
