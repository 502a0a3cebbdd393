"""The tables of the hot store: whether a source's list has changed, and hot sets where no Redis holds them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text

from catchment.store.schema.base import Json, Moment, metadata

hot_sources = Table(
    "hot_sources",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # Another one after everything that changes what the source's list says. Drawn, not counted: after a restore, no
    # number may come again that once stood for something else. None: no hot set was ever made.
    Column("stamp", BigInteger),
    Column("last_warmed_at", Moment),
    Column("cached_count", Integer, nullable=False),
)
"""One row for each source that is kept hot, wherever its entries lie."""

hot_sets = Table(
    "hot_sets",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # Whole as long as the source still has this stamp.
    Column("stamp", BigInteger, nullable=False),
    Column("entry_count", Integer, nullable=False),
    Column("expires_at", Moment, nullable=False, index=True),
)

hot_items = Table(
    "hot_items",
    metadata,
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    # What a cache-only crawl saw lies beside what is stored, and never takes its place.
    Column("is_cached_only", Boolean, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("ordered_at", Moment, nullable=False),
    # None: it is not stored.
    Column("item_id", BigInteger),
    Column("expires_at", Moment, nullable=False, index=True),
    Column("item", Json, nullable=False),
    Index(None, "source_id", "is_cached_only", "ordered_at", "item_id"),
)

hot_counts = Table(
    "hot_counts",
    metadata,
    Column("minute", Moment, primary_key=True, autoincrement=False),
    Column("hit_count", BigInteger, nullable=False),
    Column("miss_count", BigInteger, nullable=False),
    # Hot sets that could not be written: nothing is lost by that, but reads are slower than they could be.
    Column("failure_count", BigInteger, nullable=False),
)
