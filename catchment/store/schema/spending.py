"""Tables about money: what paid services charge, what is reserved for calls in progress, and walks to be continued."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text

from catchment.store.schema.core import Json, Moment, RowId, metadata, required

spending = Table(
    "spending",
    metadata,
    # When the call was sent, in UTC: its day, as 2026-01-31; and once more its month, as 2026-01.
    Column("period", Text, primary_key=True),
    Column("service", Text, primary_key=True),
    # Empty: without one.
    Column("credential", Text, primary_key=True),
    # 0: for no source.
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    *required(BigInteger, "call_count", "item_count", "profile_count"),
    # Millionths of a US dollar: what answers were charged for …
    Column("amount", BigInteger, nullable=False),
    # … and the most that calls may have cost whose answers never came.
    Column("uncertain_amount", BigInteger, nullable=False),
    Index(None, "source_id", "period"),
    Index(None, "period", "amount"),
    sqlite_with_rowid=False,
)
"""The ledger. It is never cleared."""

spending_totals = Table(
    "spending_totals",
    metadata,
    Column("service", Text, primary_key=True),
    # A day (2026-01-31) or a month (2026-01), in UTC.
    Column("period", Text, primary_key=True),
    *required(BigInteger, "amount", "uncertain_amount", "reserved_amount"),
    # What the last call would have cost that the cap of this period did not allow.
    Column("refused_amount", BigInteger),
    sqlite_with_rowid=False,
)
"""Sums of the ledger, with what is reserved: their rows are locked to hold a cap over all processes."""

reservations = Table(
    "reservations",
    metadata,
    Column("id", RowId, primary_key=True),
    # The process that makes the call. Once it is dead, the reserved amount counts as spent.
    Column("owner_id", BigInteger, nullable=False, index=True),
    *required(Text, "service", "credential", "day"),
    Column("source_id", BigInteger, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("reserved_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)
"""The highest possible costs of calls whose answers are not booked yet."""

unfinished_walks = Table(
    "unfinished_walks",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    Column("updated_at", Moment, nullable=False),
    # The requests that come next, and what the pages so far have proven.
    Column("state", Json, nullable=False),
)
"""Walks down listings that cost money, as of their last stored page: the next visit continues there."""
