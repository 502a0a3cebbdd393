"""The spine: sources, items, revisions, runs, leases."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
        sa.UniqueConstraint("name", name=op.f("uq_api_keys_name")),
    )
    op.create_table(
        "attempts",
        sa.Column("minute", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("minute", "platform", "outcome", name=op.f("pk_attempts")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "budgets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("blocks", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_budgets")),
    )
    op.create_table(
        "credentials",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
        sa.UniqueConstraint("name", name=op.f("uq_credentials_name")),
    )
    op.create_table(
        "item_tags",
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tag_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("item_id", "tag_id", name=op.f("pk_item_tags")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("next_run_at", sa.BigInteger(), nullable=False),
        sa.Column("last_started_at", sa.BigInteger(), nullable=True),
        sa.Column("last_finished_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("run_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("name", name=op.f("uq_jobs_name")),
    )
    op.create_table(
        "leases",
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=True),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("resource", "resource_id", name=op.f("pk_leases")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_leases_held",
        "leases",
        ["owner_id"],
        unique=False,
        sqlite_where=sa.text("owner_id IS NOT NULL"),
        postgresql_where=sa.text("owner_id IS NOT NULL"),
    )
    op.create_table(
        "ledger",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("change_number", sa.BigInteger(), nullable=False),
        sa.Column("last_item_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("attempt_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_created_at"), "outbox", ["created_at"], unique=False)
    op.create_index(
        "ix_outbox_waiting",
        "outbox",
        ["id"],
        unique=False,
        sqlite_where=sa.text("delivered_at IS NULL"),
        postgresql_where=sa.text("delivered_at IS NULL"),
    )
    op.create_table(
        "owners",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("work", sa.Text(), nullable=False),
        sa.Column("lock_name", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_owners")),
        sa.UniqueConstraint("lock_name", name=op.f("uq_owners_lock_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("started_by", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("is_cut_off", sa.Boolean(), nullable=False),
        sa.Column("source_count", sa.Integer(), nullable=False),
        sa.Column("succeeded", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("new_count", sa.Integer(), nullable=False),
        sa.Column("updated_count", sa.Integer(), nullable=False),
        sa.Column("duplicate_count", sa.Integer(), nullable=False),
        sa.Column("invalid_count", sa.Integer(), nullable=False),
        sa.Column("request_count", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_started_at"), "runs", ["started_at"], unique=False)
    op.create_index(
        "ix_runs_unfinished",
        "runs",
        ["owner_id"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )
    op.create_table(
        "sightings",
        sa.Column("source_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ordered_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source_id", "ordered_at", "item_id", name=op.f("pk_sightings")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_sightings_item_id_source_id"), "sightings", ["item_id", "source_id"], unique=False)
    op.create_table(
        "sources",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("is_name_given", sa.Boolean(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=True),
        sa.Column("interval_minutes", sa.Integer(), nullable=True),
        sa.Column("categories", sa.Text(), nullable=False),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("quality_score", sa.Float(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=True),
        sa.Column("state_changed_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("kind", "target", name=op.f("uq_sources_kind_target")),
    )
    op.create_index(op.f("ix_sources_key"), "sources", ["key"], unique=False)
    op.create_index(op.f("ix_sources_state_id"), "sources", ["state", "id"], unique=False)
    op.create_table(
        "tags",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tags")),
        sa.UniqueConstraint("name", name=op.f("uq_tags_name")),
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_alerts_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
    )
    op.create_index(
        "ix_alerts_open",
        "alerts",
        ["id"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index(
        "uq_alerts_open",
        "alerts",
        ["subject"],
        unique=True,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_table(
        "gaps",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("is_certain", sa.Boolean(), nullable=False),
        sa.Column("from_at", sa.BigInteger(), nullable=False),
        sa.Column("to_at", sa.BigInteger(), nullable=False),
        sa.Column("from_ids", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("opened_run_id", sa.BigInteger(), nullable=True),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_run_id", sa.BigInteger(), nullable=True),
        sa.Column("closed_because", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_gaps_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gaps")),
    )
    op.create_index(
        "ix_gaps_open",
        "gaps",
        ["id"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index(
        "ix_gaps_open_of_source",
        "gaps",
        ["source_id", "id"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index(op.f("ix_gaps_source_id_id"), "gaps", ["source_id", "id"], unique=False)
    op.create_table(
        "items",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("is_created_at_guessed", sa.Boolean(), nullable=False),
        sa.Column("is_zone_guessed", sa.Boolean(), nullable=False),
        sa.Column("edited_at", sa.BigInteger(), nullable=True),
        sa.Column("ordered_at", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("content_last_changed_at", sa.BigInteger(), nullable=False),
        sa.Column("applied_at", sa.BigInteger(), nullable=False),
        sa.Column("change_number", sa.BigInteger(), nullable=False),
        sa.Column("content_change_number", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("fingerprint_rule", sa.Integer(), nullable=False),
        sa.Column("volatile_until", sa.BigInteger(), nullable=True),
        sa.Column("volatile_count", sa.Integer(), nullable=False),
        sa.Column("score", sa.BigInteger(), nullable=True),
        sa.Column("reply_count", sa.BigInteger(), nullable=True),
        sa.Column("view_count", sa.BigInteger(), nullable=True),
        sa.Column("rounded", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=True),
        sa.Column("floor_number", sa.BigInteger(), nullable=True),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.Column("is_folded", sa.Boolean(), nullable=False),
        sa.Column("is_pinned", sa.Boolean(), nullable=False),
        sa.Column("is_digest", sa.Boolean(), nullable=False),
        sa.Column("is_adult", sa.Boolean(), nullable=False),
        sa.Column("is_text_cut", sa.Boolean(), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("author_id", sa.Text(), nullable=True),
        sa.Column("author_display_name", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("target_url", sa.Text(), nullable=True),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("media", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("html", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_items_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sa.UniqueConstraint("platform", "scope", "external_id", name=op.f("uq_items_platform_scope_external_id")),
    )
    op.create_index(op.f("ix_items_change_number_id"), "items", ["change_number", "id"], unique=False)
    op.create_index(op.f("ix_items_content_change_number_id"), "items", ["content_change_number", "id"], unique=False)
    op.create_index(op.f("ix_items_ordered_at_id"), "items", ["ordered_at", "id"], unique=False)
    op.create_table(
        "progress",
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("next_due_at", sa.BigInteger(), nullable=True),
        sa.Column("due_reason", sa.Text(), nullable=True),
        sa.Column("first_polled_at", sa.BigInteger(), nullable=True),
        sa.Column("last_polled_at", sa.BigInteger(), nullable=True),
        sa.Column("last_success_at", sa.BigInteger(), nullable=True),
        sa.Column("last_new_at", sa.BigInteger(), nullable=True),
        sa.Column("expected_by", sa.BigInteger(), nullable=True),
        sa.Column("poll_count", sa.Integer(), nullable=False),
        sa.Column("failure_count", sa.Integer(), nullable=False),
        sa.Column("failures_in_a_row", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_code", sa.Text(), nullable=True),
        sa.Column("watermark_at", sa.BigInteger(), nullable=True),
        sa.Column("watermark_ids", sa.Text(), nullable=False),
        sa.Column("newest_shown_at", sa.BigInteger(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("body_hash", sa.LargeBinary(), nullable=True),
        sa.Column("reader_version", sa.Integer(), nullable=True),
        sa.Column("shown_marks", sa.LargeBinary(), nullable=True),
        sa.Column("cursor", sa.Text(), nullable=False),
        sa.Column("moved_to", sa.Text(), nullable=True),
        sa.Column("moved_count", sa.Integer(), nullable=False),
        sa.Column("stale_count", sa.Integer(), nullable=False),
        sa.Column("empty_in_a_row", sa.Integer(), nullable=False),
        sa.Column("new_share", sa.Float(), nullable=True),
        sa.Column("last_shown_count", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_progress_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_progress")),
    )
    op.create_index(
        "ix_progress_due_by_kind",
        "progress",
        ["kind", "last_polled_at"],
        unique=False,
        sqlite_where=sa.text("is_active AND next_due_at IS NULL"),
        postgresql_where=sa.text("is_active AND next_due_at IS NULL"),
    )
    op.create_index(
        "ix_progress_due_by_time",
        "progress",
        ["next_due_at"],
        unique=False,
        sqlite_where=sa.text("is_active AND next_due_at IS NOT NULL"),
        postgresql_where=sa.text("is_active AND next_due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_progress_expected_by",
        "progress",
        ["expected_by"],
        unique=False,
        sqlite_where=sa.text("is_active AND expected_by IS NOT NULL"),
        postgresql_where=sa.text("is_active AND expected_by IS NOT NULL"),
    )
    op.create_index(
        "ix_progress_failing",
        "progress",
        ["failures_in_a_row", "source_id"],
        unique=False,
        sqlite_where=sa.text("is_active AND last_error IS NOT NULL"),
        postgresql_where=sa.text("is_active AND last_error IS NOT NULL"),
    )
    op.create_table(
        "raw_answers",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("reader_version", sa.Integer(), nullable=False),
        sa.Column("is_read", sa.Boolean(), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_raw_answers_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_raw_answers")),
    )
    op.create_index(op.f("ix_raw_answers_answered_at"), "raw_answers", ["answered_at"], unique=False)
    op.create_index(op.f("ix_raw_answers_source_id_body_hash"), "raw_answers", ["source_id", "body_hash"], unique=False)
    op.create_table(
        "run_sources",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("new_count", sa.Integer(), nullable=False),
        sa.Column("updated_count", sa.Integer(), nullable=False),
        sa.Column("duplicate_count", sa.Integer(), nullable=False),
        sa.Column("invalid_count", sa.Integer(), nullable=False),
        sa.Column("request_count", sa.Integer(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("is_retryable", sa.Boolean(), nullable=True),
        sa.Column("watermark_before", sa.BigInteger(), nullable=True),
        sa.Column("watermark_after", sa.BigInteger(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_sources_run_id")),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_run_sources_source_id")),
        sa.PrimaryKeyConstraint("run_id", "source_id", name=op.f("pk_run_sources")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_run_sources_source_id_started_at"), "run_sources", ["source_id", "started_at"], unique=False
    )
    op.create_index(op.f("ix_run_sources_started_at"), "run_sources", ["started_at"], unique=False)
    op.create_table(
        "aliases",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("noticed_at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_aliases_item_id")),
        sa.PrimaryKeyConstraint("platform", "scope", "external_id", name=op.f("pk_aliases")),
    )
    op.create_index(op.f("ix_aliases_item_id"), "aliases", ["item_id"], unique=False)
    op.create_table(
        "item_references",
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_item_references_item_id")),
        sa.PrimaryKeyConstraint("item_id", "position", name=op.f("pk_item_references")),
    )
    op.create_index(op.f("ix_item_references_external_id"), "item_references", ["external_id"], unique=False)
    op.create_table(
        "revisions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("valid_from", sa.BigInteger(), nullable=False),
        sa.Column("valid_to", sa.BigInteger(), nullable=False),
        sa.Column("source_edited_at", sa.BigInteger(), nullable=True),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.Column("is_folded", sa.Boolean(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("target_url", sa.Text(), nullable=True),
        sa.Column("media", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("html", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_revisions_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_revisions")),
        sa.UniqueConstraint("item_id", "version", name=op.f("uq_revisions_item_id_version")),
    )
    op.execute("INSERT INTO ledger (id, change_number, last_item_id) VALUES (1, 0, 0)")
