"""Tables about running: credentials and access, event delivery and watches, metrics and rechecks, the cache,
and the search index, which can be rebuilt from the items."""

from __future__ import annotations

from sqlalchemy import (
    DDL,
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
    event,
    false,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

from catchment.store.schema.core import Json, Moment, RowId, metadata, optional, partial_index, required

credentials = Table(
    "credentials",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("name", Text, nullable=False, unique=True),
    # For a secret in the environment: a mark that identifies it, so that a different one is noticed.
    Column("key_id", Text, nullable=False),
    # Empty for a secret in the environment: it is never stored.
    Column("sealed", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("last_used_at", Moment),
    Column("is_from_environment", Boolean, nullable=False, server_default=false()),
    # Any source of the platform may use it; otherwise only sources that name it.
    Column("is_shared", Boolean, nullable=False, server_default=false()),
    *optional(Moment, "state_since", "state_until"),
    Column("state_reason", Text),
    *required(Integer, "errors_in_a_row", "errors_in_all", "falls_in_a_row", server_default="0"),
    Column("last_error_at", Moment),
    Column("last_error", Text),
    Column("daily_limit", Integer),
    # In UTC, as 2026-01-31: the day that `used_that_day` counts.
    Column("used_on", Text),
    Column("used_that_day", Integer, nullable=False, server_default="0"),
    Column("use_count", BigInteger, nullable=False, server_default="0"),
    Column("expires_at", Moment),
    # Where the platform's sources have hosts of their own: those that this secret may be sent to, as a list of `host`
    # or `host:port`. Empty: none yet.
    Column("hosts", Json, nullable=False, server_default="[]"),
)

credential_changes = Table(
    "credential_changes",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("platform", Text, nullable=False),
    # By name: the changes of a credential are kept after it was removed.
    Column("credential", Text, nullable=False),
    Column("changed_at", Moment, nullable=False, index=True),
    # None: it was added.
    Column("from_state", Text),
    # None: it was removed.
    Column("to_state", Text),
    Column("reason", Text, nullable=False),
    Index(None, "credential", "id"),
)


sessions = Table(
    "sessions",
    metadata,
    Column("id", RowId, primary_key=True),
    # The cookie holds the token itself; it is random and long, so a plain hash is safe.
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    *required(Moment, "created_at", "last_used_at", "ends_at"),
    # How it was opened: link or key.
    Column("opened_by", Text, nullable=False),
    # The browser's user agent, shortened: tells one session from another.
    Column("browser", Text, nullable=False),
)

sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("token_hash", LargeBinary, nullable=False, unique=True),
    *required(Moment, "created_at", "ends_at"),
)


webhooks = Table(
    "webhooks",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # As it may be shown. Its secret parts are encrypted with the signing secret.
    Column("url", Text, nullable=False),
    Column("events", Json, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    # A receiver of messages for people, by Apprise; otherwise of signed events for programs.
    Column("is_notification", Boolean, nullable=False, server_default=false()),
    # Of alerts, only these and more urgent ones; null: all.
    Column("least_severity", Text),
    # Of messages for people.
    Column("language", Text),
    # Its id names its lease and its alert: never reused.
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
    # The last event that it is done with: delivered, not wanted, or given up.
    Column("position", BigInteger, nullable=False),
    Column("next_attempt_at", Moment),
    Column("failures_in_a_row", Integer, nullable=False),
    Column("failing_since", Moment),
    Column("last_error", Text),
    Column("last_delivered_at", Moment),
    *required(BigInteger, "delivered_count", "given_up_count"),
    sqlite_autoincrement=True,
)
"""One row per listener: a webhook, a notification, or a Python hook (then without a webhook's id)."""

tasks = Table(
    "tasks",
    metadata,
    Column("id", RowId, primary_key=True),
    # As clients know it.
    Column("task_id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    # pending, running, completed or failed.
    Column("state", Text, nullable=False),
    Column("item_limit", Integer, nullable=False),
    # A client that repeats its request gets the same task.
    Column("request_id", Text, unique=True),
    *required(Moment, "created_at", "updated_at"),
    *optional(Moment, "started_at", "finished_at", "next_attempt_at"),
    Column("is_cancelled", Boolean, nullable=False, server_default=false()),
    *optional(Text, "error_code", "error"),
    # What changed after this may be its work.
    Column("from_change_number", BigInteger, nullable=False),
    # One unfinished task of a kind.
    partial_index("uq_tasks_unfinished", "kind", where="finished_at IS NULL", unique=True),
    Index(None, "created_at"),
    sqlite_autoincrement=True,
)
"""Requested collections of sources. What became of each source is in `run_sources`, by the runs of the task."""

task_targets = Table(
    "task_targets",
    metadata,
    Column("task_id", ForeignKey("tasks.id"), primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    # As the client named it, and as the platform understands it.
    *required(Text, "name", "address"),
    # Null: not begun.
    Column("source_id", BigInteger),
    sqlite_with_rowid=False,
)

watches = Table(
    "watches",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("words", Json, nullable=False),
    Column("is_any_enough", Boolean, nullable=False),
    *required(Json, "kinds", "source_ids", "authors"),
    *required(Boolean, "is_for_edits", "is_active"),
    Column("created_at", Moment, nullable=False),
    Column("from_change_number", BigInteger, nullable=False),
    # The last item that it has seen as new: items are numbered in the order of storing.
    Column("item_position", BigInteger, nullable=False),
    # The last content change that it has checked for edits, and the item within it.
    *required(BigInteger, "edit_position", "edit_position_item_id", "hit_count"),
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


counter_points = Table(
    "counter_points",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Moment, primary_key=True, autoincrement=False),
    *optional(BigInteger, "score", "reply_count", "view_count"),
    sqlite_with_rowid=False,
)
"""Sparse: the current value is always in `items`."""

appearances = Table(
    "appearances",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    # In UTC, as 2026-01-31.
    Column("day", Text, primary_key=True),
    Column("source_id", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Moment, nullable=False),
    Column("rank", Integer),
    *optional(BigInteger, "score", "gained"),
    sqlite_with_rowid=False,
)
"""An item's positions in ranked listings; the last of each day."""

rechecks = Table(
    "rechecks",
    metadata,
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Column("platform", Text, nullable=False),
    Column("source_id", BigInteger, nullable=False),
    # None: no more rechecks.
    Column("next_recheck_at", Moment),
    *required(Integer, "recheck_count", "failure_count"),
    Column("gone_since", Moment),
    partial_index("ix_rechecks_due", "platform", "next_recheck_at", where="next_recheck_at IS NOT NULL"),
    sqlite_with_rowid=False,
)
"""Rechecks of items that can be requested by id."""


crawl_metrics = Table(
    "crawl_metrics",
    metadata,
    # hour or day; days begin at 00:00 UTC.
    Column("span", Text, primary_key=True),
    Column("starts_at", Moment, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("platform", Text, nullable=False),
    *required(Integer, "source_count", "succeeded", "empty", "failed", "deferred", "skipped"),
    Column("visit_seconds", Float, nullable=False),
    *required(
        Integer, "new_count", "valid_count", "updated_count", "duplicate_count", "invalid_count", "request_count"
    ),
    sqlite_with_rowid=False,
)
"""Derived from run records, and overwritten when they are recomputed. A kind that was not visited in a span has no
row."""

global_metrics = Table(
    "global_metrics",
    metadata,
    Column("span", Text, primary_key=True),
    Column("starts_at", Moment, primary_key=True, autoincrement=False),
    *required(BigInteger, "hit_count", "miss_count"),
    # How many communities were in each tier at its end; null: no process was running.
    Column("tiers", Json),
    sqlite_with_rowid=False,
)
"""Metrics that belong to no kind of sources: cache reads and tiers. They cannot be recomputed later."""


hot_sources = Table(
    "hot_sources",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # Changes with everything that changes the source's list. Random, not counted: after a restore, no number may come
    # again that once stood for something else. None: no cached set was ever built.
    Column("stamp", BigInteger),
    Column("last_warmed_at", Moment),
    Column("cached_count", Integer, nullable=False),
)
"""One row per cached source, wherever its entries are stored."""

hot_sets = Table(
    "hot_sets",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # What a cache-only crawl saw is kept beside stored items, and never replaces them.
    Column("is_cached_only", Boolean, primary_key=True),
    # Valid as long as the source still has this stamp.
    Column("stamp", BigInteger, nullable=False),
    Column("entry_count", Integer, nullable=False),
    Column("expires_at", Moment, nullable=False, index=True),
    # One JSON document per line.
    Column("entries", Text, nullable=False),
)

hot_counts = Table(
    "hot_counts",
    metadata,
    Column("minute", Moment, primary_key=True, autoincrement=False),
    *required(BigInteger, "hit_count", "miss_count"),
    # Cached sets that could not be written: nothing is lost, but reads are slower than they could be.
    Column("failure_count", BigInteger, nullable=False),
)


index_mark = Table(
    "index_mark",
    metadata,
    # One row. Everything up to this content change, and this item of it, is indexed by this rule. Writers of the index
    # lock it first.
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("rule", Integer, nullable=False),
    *required(BigInteger, "change_number", "item_id"),
)

indexed = Table(
    "indexed",
    metadata,
    # List time and item id in one number: the newest come last in every part of the index.
    Column("place", RowId, primary_key=True, autoincrement=False),
    # Ids, separated by spaces.
    Column("facets", Text, nullable=False),
    # It has more words than the index takes, and is read by every search.
    Column("is_too_long", Boolean, nullable=False),
    # SQLite: the segments as given to item_words, which needs them again to delete an entry.
    Column("words", Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    partial_index("ix_indexed_too_long", "place", where="is_too_long"),
    Index("ix_indexed_words", "words", postgresql_using="gin").ddl_if(dialect="postgresql"),
)

# Terms without positions: half the size. Whether terms are adjacent is checked in the text itself. The tokenizer splits
# at spaces and changes nothing else: the rules are ours, not SQLite's.
event.listen(
    indexed,
    "after_create",
    DDL(  # type: ignore[no-untyped-call]
        "CREATE VIRTUAL TABLE item_words USING fts5(terms, content='', detail=none, columnsize=0, tokenize='ascii')"
    ).execute_if(dialect="sqlite"),
)

facets = Table(
    "facets", metadata, Column("id", RowId, primary_key=True), Column("name", Text, nullable=False, unique=True)
)

postings = Table(
    "postings",
    metadata,
    # As in sightings: the key doubles as the list of the newest items with this facet.
    Column("facet_id", BigInteger, primary_key=True, autoincrement=False),
    Column("ordered_at", Moment, primary_key=True, autoincrement=False),
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
