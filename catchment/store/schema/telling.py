"""The tables of telling: who listens to events and how far each one is, and the watches that make events of items."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, LargeBinary, Table, Text

from catchment.store.schema.base import Json, Moment, RowId, metadata

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # As it may be shown. What is secret in it lies with the signing secret, sealed.
    Column("url", Text, nullable=False),
    Column("events", Json, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    # Its number names its lease and its alert: never given twice.
    sqlite_autoincrement=True,
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("listener", Text, nullable=False, unique=True),
    Column("webhook_id", ForeignKey("webhooks.id"), unique=True),
    Column("is_active", Boolean, nullable=False),
    Column("off_because", Text),
    # The last event that it is done with: delivered, not asked for, or given up.
    Column("position", BigInteger, nullable=False),
    Column("next_attempt_at", Moment),
    Column("failures_in_a_row", Integer, nullable=False),
    Column("failing_since", Moment),
    Column("last_error", Text),
    Column("last_delivered_at", Moment),
    Column("delivered_count", BigInteger, nullable=False),
    Column("given_up_count", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)
"""One row for each listener: a webhook, or a Python hook (then without a webhook's id)."""

watches = Table(
    "watches",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("words", Json, nullable=False),
    Column("is_any_enough", Boolean, nullable=False),
    Column("kinds", Json, nullable=False),
    Column("source_ids", Json, nullable=False),
    Column("authors", Json, nullable=False),
    Column("is_for_edits", Boolean, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("from_change_number", BigInteger, nullable=False),
    # The last item that it has looked at as a new one: items are numbered in the order in which they are stored.
    Column("item_position", BigInteger, nullable=False),
    # The last content change that it has looked at for edits, and the item within it.
    Column("edit_position", BigInteger, nullable=False),
    Column("edit_position_item_id", BigInteger, nullable=False),
    Column("hit_count", BigInteger, nullable=False),
    Column("last_hit_at", Moment),
)

watch_hits = Table(
    "watch_hits",
    metadata,
    Column("watch_id", ForeignKey("watches.id"), primary_key=True, autoincrement=False),
    Column("change_number", BigInteger, primary_key=True, autoincrement=False),
    Column("item_id", BigInteger, primary_key=True, autoincrement=False, index=True),
    Column("words", Json, nullable=False),
    Column("is_edit", Boolean, nullable=False),
    Column("matched_at", Moment, nullable=False),
    sqlite_with_rowid=False,
)
"""The latest hits of each watch; older ones are only counted."""
