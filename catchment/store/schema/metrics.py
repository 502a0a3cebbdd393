"""The tables of metrics: what visiting came to, and how things stood, hour by hour and day by day."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, Table, Text

from catchment.store.schema.base import Json, Moment, metadata

crawl_metrics = Table(
    "crawl_metrics",
    metadata,
    # hour or day; days begin at 00:00 UTC.
    Column("span", Text, primary_key=True),
    Column("starts_at", Moment, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("source_count", Integer, nullable=False),
    Column("succeeded", Integer, nullable=False),
    Column("empty", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("put_off", Integer, nullable=False),
    Column("skipped", Integer, nullable=False),
    Column("visit_seconds", Float, nullable=False),
    Column("new_count", Integer, nullable=False),
    Column("valid_count", Integer, nullable=False),
    Column("updated_count", Integer, nullable=False),
    Column("duplicate_count", Integer, nullable=False),
    Column("invalid_count", Integer, nullable=False),
    Column("request_count", Integer, nullable=False),
    Column("measured_at", Moment, nullable=False),
    sqlite_with_rowid=False,
)
"""Derived from the records of runs, and written over when they are counted anew. A kind that was not visited in a span
has no row there."""

standings = Table(
    "standings",
    metadata,
    Column("span", Text, primary_key=True),
    Column("starts_at", Moment, primary_key=True, autoincrement=False),
    Column("hit_count", BigInteger, nullable=False),
    Column("miss_count", BigInteger, nullable=False),
    # How many communities were in each tier at its end; null: nobody was there to look.
    Column("tiers", Json),
    sqlite_with_rowid=False,
)
"""What belongs to no kind of sources: reads of the hot store, and the tiers. It cannot be counted anew later."""
