"""The tables of forgetting: that something was forgotten, and by which marks it is known when it comes again."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text

from catchment.store.schema.base import Moment, RowId, metadata
from catchment.store.schema.spine import alerts

forgotten = Table(
    "forgotten",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("what", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("forgotten_at", Moment, nullable=False),
    Column("forgotten_by", Text, nullable=False),
    Column("reason", Text),
    Column("item_count", Integer, nullable=False),
    Column("revision_count", Integer, nullable=False),
    Column("answer_count", Integer, nullable=False),
    Column("event_count", Integer, nullable=False),
    Column("is_finished", Boolean, nullable=False),
)

forgotten_marks = Table(
    "forgotten_marks",
    metadata,
    # A keyed hash of an identity: who holds the database alone cannot read it back, only try names.
    Column("mark", LargeBinary, primary_key=True),
    Column("forgotten_id", ForeignKey("forgotten.id"), nullable=False, index=True),
    sqlite_with_rowid=False,
)

# Those that are over are cleared by their end.
Index(
    "ix_alerts_closed",
    alerts.c.closed_at,
    alerts.c.id,
    sqlite_where=text("closed_at IS NOT NULL"),
    postgresql_where=text("closed_at IS NOT NULL"),
)
