"""Core tables: sources, progress, items, revisions, runs, leases, events and deletions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from catchment.store.item_fields import COLUMNS, TYPES, Group, names_of

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Moment = BigInteger
Json = Text
# SQLite numbers rows automatically only for INTEGER keys; PostgreSQL should have the wide type.
RowId = BigInteger().with_variant(Integer, "sqlite")


_SQL_TYPES: dict[Any, Any] = {
    int: BigInteger, str: Text, bool: Boolean, datetime: Moment, bytes: LargeBinary,
}  # fmt: skip
_ARRAY_TYPES = (
    (Boolean, "boolean[]"), (Integer, "bigint[]"), (Float, "double precision[]"), (LargeBinary, "bytea[]")
)  # fmt: skip


def array_type(table: str, column: str) -> str:
    """Returns PostgreSQL's type of an array with values of this column."""
    sql_type = metadata.tables[table].c[column].type
    return next((name for base, name in _ARRAY_TYPES if isinstance(sql_type, base)), "text[]")


def item_columns(names: Iterable[str]) -> Iterator[Column[Any]]:
    """Yields these columns of items for a table definition."""
    for name in names:
        field = TYPES[name]
        sql_type = Integer if COLUMNS[name].is_small else Json if field.is_list else _SQL_TYPES[field.type]
        yield Column(name, sql_type, nullable=field.is_optional)


VISIT_COUNTS = ("new_count", "updated_count", "duplicate_count", "invalid_count", "request_count")


def required(kind: Any, *names: str, server_default: str | None = None) -> list[Column[Any]]:
    """Columns of one type that always have a value."""
    return [Column(name, kind, nullable=False, server_default=server_default) for name in names]


def optional(kind: Any, *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def partial_index(name: str, *columns: Any, where: str, unique: bool = False) -> Index:
    """An index over the rows that match a condition, on both databases."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


ledger = Table(
    "ledger",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    *required(BigInteger, "change_number", "last_item_id"),
    Column("last_event_id", BigInteger, nullable=False, server_default="0"),
)
"""One row. Its lock makes change numbers and event numbers follow the order of commits."""

sources = Table(
    "sources",
    metadata,
    Column("id", RowId, primary_key=True),
    *required(Text, "key", "platform", "kind", "target", "name"),
    Column("is_name_given", Boolean, nullable=False),
    Column("settings", Json, nullable=False),
    Column("credential", Text),
    Column("interval_minutes", Integer),
    Column("categories", Json, nullable=False),
    Column("priority", Text, nullable=False),
    Column("quality_score", Float),
    Column("state", Text, nullable=False),
    Column("state_reason", Text),
    *required(Moment, "state_changed_at", "created_at"),
    UniqueConstraint("kind", "target"),
    Index(None, "key"),
    Index(None, "state", "id"),
)

progress = Table(
    "progress",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # Copies from `sources`, so that due sources are found with one index, in order.
    Column("kind", Text, nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("next_due_at", Moment),
    Column("due_reason", Text),
    *optional(Moment, "first_polled_at", "last_polled_at", "last_success_at", "last_new_at", "expected_by"),
    *required(Integer, "poll_count", "failure_count", "failures_in_a_row"),
    *optional(Text, "last_error", "last_error_code"),
    Column("watermark_at", Moment),
    Column("watermark_ids", Json, nullable=False),
    Column("newest_shown_at", Moment),
    *optional(Text, "etag", "last_modified"),
    Column("body_hash", LargeBinary),
    Column("parser_version", Integer),
    Column("cursor", Json, nullable=False),
    Column("moved_to", Text),
    *required(Integer, "moved_count", "stale_count", "empty_in_a_row"),
    Column("new_share", Float),
    Column("last_shown_count", Integer),
    *required(Integer, "success_count", "empty_count", server_default="0"),
    Column("posts_per_day", Float),
    Column("reach", Integer),
    Column("recent_valid", Json, nullable=False, server_default="[]"),
    # Derived from `recent_valid`, so that communities can be sorted and filtered by it.
    Column("average_valid", Float),
    Column("tier", Text),
    Column("tier_minutes", Integer),
    Column("tier_reason", Text),
    Column("next_limit", Integer),
    # A copy of its priority: the smaller, the earlier.
    Column("precedence", Integer, nullable=False, server_default="1"),
    *optional(Integer, "last_fetched_count", "last_new_count"),
    partial_index(
        "ix_progress_due_by_kind", "kind", "precedence", "last_polled_at", where="is_active AND next_due_at IS NULL"
    ),
    partial_index(
        "ix_progress_due_by_kind_and_time",
        "kind",
        "precedence",
        "next_due_at",
        where="is_active AND next_due_at IS NOT NULL",
    ),
    partial_index(
        "ix_progress_failing", "failures_in_a_row", "source_id", where="is_active AND last_error IS NOT NULL"
    ),
    partial_index("ix_progress_expected_by", "expected_by", where="is_active AND expected_by IS NOT NULL"),
    partial_index(
        "ix_progress_by_average", "average_valid", "source_id", where="is_active AND average_valid IS NOT NULL"
    ),
    partial_index("ix_progress_left_alone", "kind", "last_polled_at", where="is_active AND average_valid IS NOT NULL"),
)

shown_entries = Table(
    "shown_entries",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # They count as long as the progress names this answer as the last one.
    Column("body_hash", LargeBinary, nullable=False),
    # Three numbers of 64 bits for each entry: the beginning of a hash, its item, and the date that it states.
    Column("entries", LargeBinary, nullable=False),
)
"""The entries of each source's last answer: those that come again byte for byte are not parsed again."""

items = Table(
    "items",
    metadata,
    # Numbered from the ledger, not by the database: all rows of a page get their ids before the first is written.
    Column("id", RowId, primary_key=True, autoincrement=False),
    Column("source_id", ForeignKey("sources.id"), nullable=False),
    *item_columns(name for name in COLUMNS if name not in ("id", "source_id")),
    UniqueConstraint("platform", "scope", "external_id"),
    Index(None, "ordered_at", "id"),
    Index(None, "change_number", "id"),
    Index(None, "content_change_number", "id"),
)

sightings = Table(
    "sightings",
    metadata,
    # ordered_at is a copy of the item's own, which only a reparse changes: the key doubles as the list of a source's
    # newest items. No foreign keys here and in item_tags: these rows are only written with their item, in its
    # transaction, and are many.
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ordered_at", Moment, primary_key=True, autoincrement=False),
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    *required(Moment, "first_seen_at", "last_seen_at"),
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
    *optional(Text, "url", "author", "text", "author_display_name"),
    Column("created_at", Moment),
    Column("media", Json, nullable=False, server_default="[]"),
)

revisions = Table(
    "revisions",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("item_id", ForeignKey("items.id"), nullable=False),
    Column("version", Integer, nullable=False),
    *required(Moment, "valid_from", "valid_to"),
    Column("source_edited_at", Moment),
    Column("reasons", Text, nullable=False),
    Column("run_id", BigInteger),
    *item_columns(names_of(Group.CONTENT)),
    UniqueConstraint("item_id", "version"),
)

tags = Table(
    "tags",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False),
    Column("first_seen_at", Moment, nullable=False),
    # topic_tag: stated by the platform; title_prefix: in brackets at the beginning of a title.
    Column("origin", Text, nullable=False, server_default="topic_tag"),
    UniqueConstraint("origin", "name"),
    Index(None, "name"),
)

item_tags = Table(
    "item_tags",
    metadata,
    # By item: rows are only added at the end. Ordered by tag, each page would dirty a hundred others.
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
    *required(Moment, "from_at", "to_at"),
    Column("from_ids", Json, nullable=False),
    Column("cause", Text, nullable=False),
    Column("opened_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("closed_because", Text),
    Column("to_ids", Json, nullable=False, server_default="[]"),
    Column("repaired_from_at", Moment),
    # Since the last one that made progress; only a few are made.
    Column("attempt_count", Integer, nullable=False, server_default="0"),
    Column("last_repair_id", BigInteger),
    Index(None, "source_id", "id"),
    partial_index("ix_gaps_open", "id", where="closed_at IS NULL"),
    partial_index("ix_gaps_open_of_source", "source_id", "id", where="closed_at IS NULL"),
)

gap_repairs = Table(
    "gap_repairs",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("gap_id", BigInteger, nullable=False),
    Column("source_id", BigInteger, nullable=False),
    *optional(BigInteger, "audit_id", "run_id"),
    # What was missing when it began, and the upper edge of what is missing since.
    *required(Moment, "from_at", "to_at"),
    Column("left_to_at", Moment),
    # repaired, partial, failed or deferred; none: under way, or cut off
    Column("result", Text),
    # Why it ended above the lower edge: error, ended, repeats, torn, cap or unreachable
    Column("stopped_by", Text),
    *required(Integer, "page_count", "request_count", "shown_count", "new_count", server_default="0"),
    Column("http_status", Integer),
    *optional(Text, "error_code", "error"),
    Column("started_at", Moment, nullable=False),
    Column("finished_at", Moment),
    Index(None, "gap_id", "id"),
    Index(None, "audit_id", "id"),
    Index(None, "started_at"),
)
"""Attempts to repair a gap."""

runs = Table(
    "runs",
    metadata,
    Column("id", RowId, primary_key=True),
    *required(Text, "job", "started_by"),
    Column("owner_id", BigInteger),
    Column("request_id", Text),
    Column("started_at", Moment, nullable=False, index=True),
    Column("finished_at", Moment),
    Column("is_cut_off", Boolean, nullable=False),
    *required(Integer, "source_count", "succeeded", "failed", "skipped", *VISIT_COUNTS),
    Column("error", Text),
    # The task that it runs for.
    Column("task_id", BigInteger),
    partial_index("ix_runs_task_id", "task_id", where="task_id IS NOT NULL"),
    partial_index("ix_runs_unfinished", "owner_id", where="finished_at IS NULL"),
)

run_sources = Table(
    "run_sources",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    Column("started_at", Moment, nullable=False),
    Column("finished_at", Moment),
    Column("outcome", Text),
    *required(Integer, *VISIT_COUNTS),
    Column("http_status", Integer),
    *optional(Text, "error_code", "error"),
    Column("is_retryable", Boolean),
    *optional(Moment, "watermark_before", "watermark_after"),
    Column("notes", Json, nullable=False),
    Column("valid_count", Integer, nullable=False, server_default="0"),
    # The first change of items that the visit made, if events tell which items it changed.
    Column("first_change_number", BigInteger),
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
    *optional(Moment, "last_started_at", "last_finished_at"),
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
    *required(Moment, "started_at", "heartbeat_at"),
    # Ids are never reused: a lease of a dead owner must not look like one of a living one.
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
    partial_index("ix_leases_held", "owner_id", where="owner_id IS NOT NULL"),
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
    Column("parser_version", Integer, nullable=False),
    Column("is_read", Boolean, nullable=False),
    *required(LargeBinary, "body_hash", "body"),
    Index(None, "source_id", "body_hash"),
    Index(None, "answered_at", "id"),
)

outbox = Table(
    "outbox",
    metadata,
    # Numbered from the ledger: without holes, in the order of commits, and never reused, even once all rows are
    # deleted.
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
    Column("last_used_at", Moment),
)

alerts = Table(
    "alerts",
    metadata,
    Column("id", RowId, primary_key=True),
    *required(Text, "subject", "severity"),
    Column("source_id", ForeignKey("sources.id")),
    Column("message", Text, nullable=False),
    Column("opened_at", Moment, nullable=False),
    Column("closed_at", Moment),
    partial_index("ix_alerts_open", "id", where="closed_at IS NULL"),
    partial_index("uq_alerts_open", "subject", where="closed_at IS NULL", unique=True),
)


# In the order of fetching, for all sources and for each: what came since the last digest, whatever its date.
Index(None, items.c.first_seen_at, items.c.id)
Index(None, sightings.c.source_id, sightings.c.first_seen_at, sightings.c.item_id)

# The items of a thread, oldest first.
partial_index(
    "ix_items_thread",
    items.c.platform,
    items.c.scope,
    items.c.thread_id,
    items.c.ordered_at,
    items.c.id,
    where="thread_id IS NOT NULL",
)

# The replies to an item, oldest first.
partial_index(
    "ix_items_parent",
    items.c.platform,
    items.c.scope,
    items.c.parent_id,
    items.c.ordered_at,
    items.c.id,
    where="parent_id IS NOT NULL",
)

# The floors of a thread, by number.
partial_index(
    "ix_items_floor",
    items.c.platform,
    items.c.scope,
    items.c.thread_id,
    items.c.floor_number,
    where="floor_number IS NOT NULL",
)

# The root of a thread.
partial_index("ix_items_heads", items.c.platform, items.c.scope, items.c.thread_id, where="is_head")

replied = Table(
    "replied",
    metadata,
    # As in sightings: the key doubles as the list. Its name: all, a facet's name (platform:…, kind:…), or a source's
    # (source:…).
    Column("list", Text, primary_key=True),
    Column("last_reply_at", Moment, primary_key=True, autoincrement=False),
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Index(None, "item_id", "list", "last_reply_at"),
    sqlite_with_rowid=False,
)
"""Items whose last reply is known, by its time: each is in every list that contains it, and moves in all of them at
once. Always written with the item's own `last_reply_at`."""

# How many sources use a credential.
partial_index("ix_sources_credential", sources.c.credential, where="credential IS NOT NULL")

# The existing platforms.
Index(None, sources.c.platform)

source_counts = Table(
    "source_counts",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    Column("item_count", BigInteger, nullable=False),
)
"""How many items each source has shown: equal to its number of sightings, and always written with them."""


forgotten = Table(
    "forgotten",
    metadata,
    Column("id", RowId, primary_key=True),
    *required(Text, "what", "platform"),
    Column("forgotten_at", Moment, nullable=False),
    Column("forgotten_by", Text, nullable=False),
    Column("reason", Text),
    *required(Integer, "item_count", "revision_count", "answer_count", "event_count"),
    Column("is_finished", Boolean, nullable=False),
)

forgotten_marks = Table(
    "forgotten_marks",
    metadata,
    # A keyed hash of an identity: it cannot be read back from the database, only guessed.
    Column("mark", LargeBinary, primary_key=True),
    Column("forgotten_id", ForeignKey("forgotten.id"), nullable=False, index=True),
    sqlite_with_rowid=False,
)

# Closed alerts are cleaned up by their closing time.
partial_index("ix_alerts_closed", alerts.c.closed_at, alerts.c.id, where="closed_at IS NOT NULL")


follow_ups = Table(
    "follow_ups",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    # When it was queued, or when a part of it was last requested: the longest waiting comes first.
    Column("waiting_since", Moment, nullable=False),
    Column("asked_count", Integer, nullable=False),
    # As the platform proposed them; a request contains no secret before it is sent.
    Column("requests", Json, nullable=False),
    Index("ix_follow_ups_waiting", "source_id", "waiting_since", "item_id"),
    sqlite_with_rowid=False,
)
"""Follow-up requests about an item that a listing showed as new or changed: its replies. Removed once they were
sent."""
