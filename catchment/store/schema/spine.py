"""The tables of the spine: what is followed, what was seen and said, what runs."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from catchment.store.schema.base import Json, Moment, RowId, metadata

ledger = Table(
    "ledger",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("change_number", BigInteger, nullable=False),
    Column("last_item_id", BigInteger, nullable=False),
    Column("last_event_id", BigInteger, nullable=False, server_default="0"),
)
"""One row. Its lock is what makes change numbers, and the numbers of events, follow the order of commits."""

sources = Table(
    "sources",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("key", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("is_name_given", Boolean, nullable=False),
    Column("settings", Json, nullable=False),
    Column("credential", Text),
    Column("interval_minutes", Integer),
    Column("categories", Json, nullable=False),
    Column("priority", Text, nullable=False),
    Column("quality_score", Float),
    Column("state", Text, nullable=False),
    Column("state_reason", Text),
    Column("state_changed_at", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    UniqueConstraint("kind", "target"),
    Index(None, "key"),
    Index(None, "state", "id"),
)

progress = Table(
    "progress",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # Copies of the source's own, so that what is due is found by one index.
    Column("kind", Text, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("next_due_at", Moment),
    Column("due_reason", Text),
    Column("first_polled_at", Moment),
    Column("last_polled_at", Moment),
    Column("last_success_at", Moment),
    Column("last_new_at", Moment),
    Column("expected_by", Moment),
    Column("poll_count", Integer, nullable=False),
    Column("failure_count", Integer, nullable=False),
    Column("failures_in_a_row", Integer, nullable=False),
    Column("last_error", Text),
    Column("last_error_code", Text),
    Column("watermark_at", Moment),
    Column("watermark_ids", Json, nullable=False),
    Column("newest_shown_at", Moment),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("body_hash", LargeBinary),
    Column("reader_version", Integer),
    Column("shown_marks", LargeBinary),
    Column("cursor", Json, nullable=False),
    Column("moved_to", Text),
    Column("moved_count", Integer, nullable=False),
    Column("stale_count", Integer, nullable=False),
    Column("empty_in_a_row", Integer, nullable=False),
    Column("new_share", Float),
    Column("last_shown_count", Integer),
    Column("success_count", Integer, nullable=False, server_default="0"),
    Column("empty_count", Integer, nullable=False, server_default="0"),
    Column("posts_per_day", Float),
    Column("reach", Integer),
    Column("recent_valid", Json, nullable=False, server_default="[]"),
    # Derived from the one before, so that communities can be ordered and chosen by it.
    Column("average_valid", Float),
    Column("tier", Text),
    Column("tier_minutes", Integer),
    Column("tier_reason", Text),
    Index(
        "ix_progress_due_by_kind",
        "kind",
        "last_polled_at",
        sqlite_where=text("is_active AND next_due_at IS NULL"),
        postgresql_where=text("is_active AND next_due_at IS NULL"),
    ),
    Index(
        "ix_progress_due_by_time",
        "next_due_at",
        sqlite_where=text("is_active AND next_due_at IS NOT NULL"),
        postgresql_where=text("is_active AND next_due_at IS NOT NULL"),
    ),
    Index(
        "ix_progress_failing",
        "failures_in_a_row",
        "source_id",
        sqlite_where=text("is_active AND last_error IS NOT NULL"),
        postgresql_where=text("is_active AND last_error IS NOT NULL"),
    ),
    Index(
        "ix_progress_expected_by",
        "expected_by",
        sqlite_where=text("is_active AND expected_by IS NOT NULL"),
        postgresql_where=text("is_active AND expected_by IS NOT NULL"),
    ),
    Index(
        "ix_progress_by_average",
        "average_valid",
        "source_id",
        sqlite_where=text("is_active AND average_valid IS NOT NULL"),
        postgresql_where=text("is_active AND average_valid IS NOT NULL"),
    ),
    Index(
        "ix_progress_left_alone",
        "kind",
        "last_polled_at",
        sqlite_where=text("is_active AND average_valid IS NOT NULL"),
        postgresql_where=text("is_active AND average_valid IS NOT NULL"),
    ),
)

items = Table(
    "items",
    metadata,
    # Numbered from the ledger, not by the database: all rows of a page get their ids before the first is written.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("platform", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("is_created_at_guessed", Boolean, nullable=False),
    Column("is_zone_guessed", Boolean, nullable=False),
    Column("edited_at", Moment),
    Column("ordered_at", Moment, nullable=False),
    Column("first_seen_at", Moment, nullable=False),
    Column("content_last_changed_at", Moment, nullable=False),
    Column("applied_at", Moment, nullable=False),
    Column("change_number", BigInteger, nullable=False),
    Column("content_change_number", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("fingerprint_rule", Integer, nullable=False),
    Column("volatile_until", Moment),
    Column("volatile_count", Integer, nullable=False),
    Column("score", BigInteger),
    Column("reply_count", BigInteger),
    Column("view_count", BigInteger),
    Column("rounded", Json, nullable=False),
    Column("thread_id", Text),
    Column("floor_number", BigInteger),
    Column("is_deleted", Boolean, nullable=False),
    Column("is_folded", Boolean, nullable=False),
    Column("is_pinned", Boolean, nullable=False),
    Column("is_digest", Boolean, nullable=False),
    Column("is_adult", Boolean, nullable=False),
    Column("is_text_cut", Boolean, nullable=False),
    Column("language", Text),
    Column("author", Text),
    Column("author_id", Text),
    Column("author_display_name", Text),
    Column("title", Text),
    Column("url", Text),
    Column("target_url", Text),
    Column("tags", Json, nullable=False),
    Column("media", Json, nullable=False),
    Column("text", Text),
    Column("html", Text),
    Column("deleted_by", Text),
    Column("is_brief", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("platform", "scope", "external_id"),
    Index(None, "ordered_at", "id"),
    Index(None, "change_number", "id"),
    Index(None, "content_change_number", "id"),
)

sightings = Table(
    "sightings",
    metadata,
    # ordered_at is the item's own and never changes: the key is at once the list of a source's newest. No foreign keys
    # here and in item_tags: these rows are only ever written with their item, in its transaction, and are many.
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ordered_at", Moment, primary_key=True, autoincrement=False),
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("first_seen_at", Moment, nullable=False),
    Column("last_seen_at", Moment, nullable=False),
    Index(None, "item_id", "source_id"),
    sqlite_with_rowid=False,
)

aliases = Table(
    "aliases",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("item_id", ForeignKey("items.id"), nullable=False, index=True),
    Column("noticed_at", Moment, nullable=False),
    Column("reason", Text, nullable=False),
)

item_references = Table(
    "item_references",
    metadata,
    Column("item_id", ForeignKey("items.id"), primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("relation", Text, nullable=False),
    Column("external_id", Text, index=True),
    Column("url", Text),
    Column("author", Text),
    Column("text", Text),
)

revisions = Table(
    "revisions",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("valid_from", Moment, nullable=False),
    Column("valid_to", Moment, nullable=False),
    Column("source_edited_at", Moment),
    Column("reasons", Text, nullable=False),
    Column("run_id", BigInteger),
    Column("is_deleted", Boolean, nullable=False),
    Column("is_folded", Boolean, nullable=False),
    Column("title", Text),
    Column("target_url", Text),
    Column("media", Json, nullable=False),
    Column("text", Text),
    Column("html", Text),
    UniqueConstraint("item_id", "version"),
)

tags = Table(
    "tags",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("first_seen_at", Moment, nullable=False),
)

item_tags = Table(
    "item_tags",
    metadata,
    # By item: rows are only ever added at the end. Ordered by tag, each page would dirty a hundred others.
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("tag_id", BigInteger, primary_key=True, autoincrement=False),
    Column("first_seen_at", Moment, nullable=False),
    sqlite_with_rowid=False,
)

gaps = Table(
    "gaps",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("is_certain", Boolean, nullable=False),
    Column("from_at", Moment, nullable=False),
    Column("to_at", Moment, nullable=False),
    Column("from_ids", Json, nullable=False),
    Column("cause", Text, nullable=False),
    Column("opened_at", Moment, nullable=False),
    Column("opened_run_id", BigInteger),
    Column("closed_at", Moment),
    Column("closed_run_id", BigInteger),
    Column("closed_because", Text),
    Index(None, "source_id", "id"),
    Index(
        "ix_gaps_open",
        "id",
        sqlite_where=text("closed_at IS NULL"),
        postgresql_where=text("closed_at IS NULL"),
    ),
    Index(
        "ix_gaps_open_of_source",
        "source_id",
        "id",
        sqlite_where=text("closed_at IS NULL"),
        postgresql_where=text("closed_at IS NULL"),
    ),
)

runs = Table(
    "runs",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("job", Text, nullable=False),
    Column("started_by", Text, nullable=False),
    Column("owner_id", BigInteger),
    Column("request_id", Text),
    Column("started_at", Moment, nullable=False, index=True),
    Column("finished_at", Moment),
    Column("is_cut_off", Boolean, nullable=False),
    Column("source_count", Integer, nullable=False),
    Column("succeeded", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("skipped", Integer, nullable=False),
    Column("new_count", Integer, nullable=False),
    Column("updated_count", Integer, nullable=False),
    Column("duplicate_count", Integer, nullable=False),
    Column("invalid_count", Integer, nullable=False),
    Column("request_count", Integer, nullable=False),
    Column("error", Text),
    Index(
        "ix_runs_unfinished",
        "owner_id",
        sqlite_where=text("finished_at IS NULL"),
        postgresql_where=text("finished_at IS NULL"),
    ),
)

run_sources = Table(
    "run_sources",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    Column("started_at", Moment, nullable=False),
    Column("finished_at", Moment),
    Column("outcome", Text),
    Column("new_count", Integer, nullable=False),
    Column("updated_count", Integer, nullable=False),
    Column("duplicate_count", Integer, nullable=False),
    Column("invalid_count", Integer, nullable=False),
    Column("request_count", Integer, nullable=False),
    Column("http_status", Integer),
    Column("error_code", Text),
    Column("error", Text),
    Column("is_retryable", Boolean),
    Column("watermark_before", Moment),
    Column("watermark_after", Moment),
    Column("notes", Json, nullable=False),
    Column("valid_count", Integer, nullable=False, server_default="0"),
    Index(None, "source_id", "started_at"),
    Index(None, "started_at"),
    sqlite_with_rowid=False,
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("next_run_at", Moment, nullable=False),
    Column("last_started_at", Moment),
    Column("last_finished_at", Moment),
    Column("last_error", Text),
    Column("run_count", Integer, nullable=False),
)

owners = Table(
    "owners",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("machine", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("work", Text, nullable=False),
    Column("lock_name", Text, nullable=False, unique=True),
    Column("started_at", Moment, nullable=False),
    Column("heartbeat_at", Moment, nullable=False),
    # Never given twice: a lease of a dead owner must not look like one of a living one.
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("resource", Text, primary_key=True),
    Column("resource_id", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
    Column("owner_id", BigInteger),
    Column("taken_at", Moment, nullable=False),
    Index(
        "ix_leases_held",
        "owner_id",
        sqlite_where=text("owner_id IS NOT NULL"),
        postgresql_where=text("owner_id IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)

budgets = Table(
    "budgets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("blocks", Json, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("minute", Moment, primary_key=True, autoincrement=False),
    Column("platform", Text, primary_key=True),
    Column("outcome", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    sqlite_with_rowid=False,
)

raw_answers = Table(
    "raw_answers",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    Column("run_id", BigInteger),
    Column("answered_at", Moment, nullable=False),
    Column("step", Text, nullable=False),
    Column("request", Json, nullable=False),
    Column("url", Text, nullable=False),
    Column("http_status", Integer, nullable=False),
    Column("headers", Json, nullable=False),
    Column("reader_version", Integer, nullable=False),
    Column("is_read", Boolean, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "source_id", "body_hash"),
    Index(None, "answered_at", "id"),
)

outbox = Table(
    "outbox",
    metadata,
    # Numbered from the ledger: without holes, in the order of commits, and never twice, even once all rows are cleared.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("event", Text, nullable=False),
    Column("body", Json, nullable=False),
    Column("created_at", Moment, nullable=False, index=True),
)

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Json, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("key_hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
)

alerts = Table(
    "alerts",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("source_id", ForeignKey("sources.id")),
    Column("message", Text, nullable=False),
    Column("opened_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Index(
        "ix_alerts_open",
        "id",
        sqlite_where=text("closed_at IS NULL"),
        postgresql_where=text("closed_at IS NULL"),
    ),
    Index(
        "uq_alerts_open",
        "subject",
        unique=True,
        sqlite_where=text("closed_at IS NULL"),
        postgresql_where=text("closed_at IS NULL"),
    ),
)
