"""Tables of forums: how far threads are captured, what runs did with boards and threads, and audits of their floors.

Titles, authors, times and counters of a thread are those of its opening item; floors are items, too.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from catchment.store.schema.core import Json, Moment, RowId, metadata, optional, partial_index, required

threads = Table(
    "threads",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("item_id", BigInteger, index=True),
    *optional(Integer, "first_list_page", "last_list_page"),
    *optional(Moment, "last_reply_at", "read_reply_at", "changed_at"),
    *optional(Integer, "page_count", "next_page", "truncated_at_page", "max_floor"),
    Column("max_floor_id", Text),
    *optional(Moment, "skipped_since", "gone_since"),
    Column("stale_count", Integer, nullable=False, server_default="0"),
    Column("read_reason", Text),
    *optional(Moment, "waiting_since", "last_read_at"),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("source_id", "thread_id"),
    Index(None, "source_id", "id"),
    # Threads that wait to be read in the current round, in the order of waiting.
    partial_index("ix_threads_waiting", "source_id", "waiting_since", "id", where="read_reason IS NOT NULL"),
    # Threads with pages that later rounds read.
    partial_index("ix_threads_pending", "source_id", "id", where="next_page IS NOT NULL"),
)

thread_holes = Table(
    "thread_holes",
    metadata,
    # No foreign keys: these rows are written with their thread.
    Column("thread_row_id", BigInteger, primary_key=True, autoincrement=False),
    Column("floor_number", Integer, primary_key=True, autoincrement=False),
    Column("noticed_at", Moment, nullable=False),
    sqlite_with_rowid=False,
)
"""Floors that the platform itself does not have (any more)."""

board_runs = Table(
    "board_runs",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # schedule_12h or manual
    Column("run_trigger", Text, nullable=False),
    # Days in the forum's zone, as 2026-01-31; none if the run only read threads.
    *optional(Text, "window_first_day", "window_last_day"),
    *required(Integer, "scanned_count", "changed_count", "updated_count", "request_count"),
    *required(Moment, "started_at", "updated_at"),
    Index(None, "source_id", "run_id"),
    Index(None, "started_at"),
    sqlite_with_rowid=False,
)

thread_runs = Table(
    "thread_runs",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    Column("thread_row_id", BigInteger, primary_key=True, autoincrement=False),
    Column("source_id", BigInteger, nullable=False),
    Column("read_reason", Text),
    Column("last_reply_at", Moment),
    Column("page_count", Integer, nullable=False),
    Column("is_capped", Boolean, nullable=False),
    *required(Integer, "new_count", "updated_count"),
    # Floor numbers that another item has already: the second one is stored without its number.
    Column("doubled_floors", Json, nullable=False, server_default="[]"),
    Column("http_status", Integer),
    *optional(Text, "error_code", "error"),
    Column("started_at", Moment, nullable=False),
    Column("finished_at", Moment),
    Index(None, "thread_row_id", "run_id"),
    Index(None, "started_at"),
    sqlite_with_rowid=False,
)

reply_counts = Table(
    "reply_counts",
    metadata,
    # The item that opens the thread. No foreign keys: these rows are written with their items.
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("source_id", BigInteger, nullable=False),
    *required(Integer, "declared_count", "stored_count", "hole_count", "missing_count"),
    partial_index("ix_reply_counts_missing", "missing_count", "item_id", where="missing_count > 0"),
    partial_index(
        "ix_reply_counts_missing_of_source", "source_id", "missing_count", "item_id", where="missing_count > 0"
    ),
    sqlite_with_rowid=False,
)
"""Replies of a thread by the platform's own count, and those stored; only where replies are collected."""

floor_audits = Table(
    "floor_audits",
    metadata,
    Column("id", RowId, primary_key=True),
    # None: all forums.
    Column("source_id", BigInteger),
    # None: requested, and not begun yet.
    Column("run_id", BigInteger),
    # manual or cron
    Column("run_trigger", Text, nullable=False),
    Column("is_repairing", Boolean, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("finished_at", Moment),
    *required(
        Integer,
        *("thread_count", "missing_thread_count", "repaired_thread_count", "partial_thread_count"),
        *("failed_thread_count", "failed_http_count", "failed_parse_count", "failed_db_count", "failed_unknown_count"),
        *("missing_floor_count", "repaired_floor_count", "ignored_floor_count"),
        *("gap_count", "repaired_gap_count", "partial_gap_count", "failed_gap_count", "unreachable_gap_count"),
    ),
    Index(None, "started_at"),
    partial_index("ix_floor_audits_requested", "id", where="run_id IS NULL AND finished_at IS NULL"),
)

floor_audit_threads = Table(
    "floor_audit_threads",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("audit_id", ForeignKey("floor_audits.id"), nullable=False),
    Column("thread_row_id", BigInteger, nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("source_id", BigInteger, nullable=False),
    *required(Integer, "max_floor", "floor_count", "missing_count", "ignored_count"),
    # missing, repaired, partial, failed or skipped
    Column("result", Text, nullable=False),
    *optional(Moment, "repair_started_at", "repair_finished_at"),
    *optional(Integer, "after_max_floor", "after_floor_count", "remaining_count"),
    # http, parse, db or unknown
    Column("error_category", Text),
    Column("http_status", Integer),
    Column("error", Text),
    UniqueConstraint("audit_id", "thread_row_id"),
    Index(None, "thread_row_id", "id"),
)

floor_audit_floors = Table(
    "floor_audit_floors",
    metadata,
    Column("audit_thread_id", BigInteger, primary_key=True, autoincrement=False),
    Column("floor_number", Integer, primary_key=True, autoincrement=False),
    # missing, ignored, repaired, still_missing or failed
    Column("result", Text, nullable=False),
    Column("attempts_before", Integer, nullable=False),
    Column("attempts_after", Integer),
    Column("error_category", Text),
    Column("http_status", Integer),
    Column("error", Text),
    sqlite_with_rowid=False,
)

floor_repairs = Table(
    "floor_repairs",
    metadata,
    Column("thread_row_id", BigInteger, primary_key=True, autoincrement=False),
    Column("floor_number", Integer, primary_key=True, autoincrement=False),
    Column("attempt_count", Integer, nullable=False),
    *required(Moment, "first_attempted_at", "last_attempted_at"),
    sqlite_with_rowid=False,
)
"""How often a missing floor was requested, ever."""
