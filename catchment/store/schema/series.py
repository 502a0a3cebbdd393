"""What becomes of items: how their counters grew, where they appeared, when they are looked at again.

No foreign keys, as with sightings: these rows are only ever written with their item, and are many.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, text

from catchment.store.schema.base import Moment, metadata

counter_points = Table(
    "counter_points",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Moment, primary_key=True, autoincrement=False),
    Column("score", BigInteger),
    Column("reply_count", BigInteger),
    Column("view_count", BigInteger),
    sqlite_with_rowid=False,
)
"""Sparse: the present value is always in `items`."""

appearances = Table(
    "appearances",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    # In UTC, as 2026-01-31.
    Column("day", Text, primary_key=True),
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Moment, nullable=False),
    Column("rank", Integer),
    Column("score", BigInteger),
    Column("gained", BigInteger),
    sqlite_with_rowid=False,
)
"""An item's places in listings whose places are worth keeping; the last of each day."""

looks = Table(
    "looks",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("platform", Text, nullable=False),
    Column("source_id", BigInteger, nullable=False),
    # None: there is none to come.
    Column("next_look_at", Moment),
    Column("look_count", Integer, nullable=False),
    Column("failure_count", Integer, nullable=False),
    Column("gone_since", Moment),
    Index(
        "ix_looks_due",
        "platform",
        "next_look_at",
        sqlite_where=text("next_look_at IS NOT NULL"),
        postgresql_where=text("next_look_at IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)
"""Items of kinds that can be asked for again by id."""
