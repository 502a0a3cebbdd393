"""Communities: tiers, the pool of credentials, the hot store, metrics, what is owed, threads."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "crawl_metrics",
        sa.Column("span", sa.Text(), nullable=False),
        sa.Column("starts_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("source_count", sa.Integer(), nullable=False),
        sa.Column("succeeded", sa.Integer(), nullable=False),
        sa.Column("empty", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("put_off", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("visit_seconds", sa.Float(), nullable=False),
        sa.Column("new_count", sa.Integer(), nullable=False),
        sa.Column("valid_count", sa.Integer(), nullable=False),
        sa.Column("updated_count", sa.Integer(), nullable=False),
        sa.Column("duplicate_count", sa.Integer(), nullable=False),
        sa.Column("invalid_count", sa.Integer(), nullable=False),
        sa.Column("request_count", sa.Integer(), nullable=False),
        sa.Column("measured_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("span", "starts_at", "kind", name=op.f("pk_crawl_metrics")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "credential_changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=True),
        sa.Column("to_state", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credential_changes")),
    )
    op.create_index(op.f("ix_credential_changes_changed_at"), "credential_changes", ["changed_at"], unique=False)
    op.create_index(
        op.f("ix_credential_changes_credential_id"), "credential_changes", ["credential", "id"], unique=False
    )
    op.create_table(
        "hot_counts",
        sa.Column("minute", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hit_count", sa.BigInteger(), nullable=False),
        sa.Column("miss_count", sa.BigInteger(), nullable=False),
        sa.Column("failure_count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("minute", name=op.f("pk_hot_counts")),
    )
    op.create_table(
        "hot_items",
        sa.Column("source_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("is_cached_only", sa.Boolean(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("ordered_at", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source_id", "is_cached_only", "scope", "external_id", name=op.f("pk_hot_items")),
    )
    op.create_index(op.f("ix_hot_items_expires_at"), "hot_items", ["expires_at"], unique=False)
    op.create_index(
        op.f("ix_hot_items_source_id_is_cached_only_ordered_at_item_id"),
        "hot_items",
        ["source_id", "is_cached_only", "ordered_at", "item_id"],
        unique=False,
    )
    op.create_table(
        "owed",
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owed_at", sa.BigInteger(), nullable=False),
        sa.Column("asked_count", sa.Integer(), nullable=False),
        sa.Column("requests", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("item_id", "source_id", name=op.f("pk_owed")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_owed_waiting", "owed", ["source_id", "owed_at", "item_id"], unique=False)
    op.create_table(
        "standings",
        sa.Column("span", sa.Text(), nullable=False),
        sa.Column("starts_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hit_count", sa.BigInteger(), nullable=False),
        sa.Column("miss_count", sa.BigInteger(), nullable=False),
        sa.Column("tiers", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("span", "starts_at", name=op.f("pk_standings")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "hot_sets",
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.Column("entry_count", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_hot_sets_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_hot_sets")),
    )
    op.create_index(op.f("ix_hot_sets_expires_at"), "hot_sets", ["expires_at"], unique=False)
    op.create_table(
        "hot_sources",
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("stamp", sa.BigInteger(), nullable=True),
        sa.Column("last_warmed_at", sa.BigInteger(), nullable=True),
        sa.Column("cached_count", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_hot_sources_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_hot_sources")),
    )
    op.add_column(
        "credentials", sa.Column("is_from_environment", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("credentials", sa.Column("is_shared", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("credentials", sa.Column("state_since", sa.BigInteger(), nullable=True))
    op.add_column("credentials", sa.Column("state_until", sa.BigInteger(), nullable=True))
    op.add_column("credentials", sa.Column("state_reason", sa.Text(), nullable=True))
    op.add_column("credentials", sa.Column("errors_in_a_row", sa.Integer(), server_default="0", nullable=False))
    op.add_column("credentials", sa.Column("errors_in_all", sa.Integer(), server_default="0", nullable=False))
    op.add_column("credentials", sa.Column("falls_in_a_row", sa.Integer(), server_default="0", nullable=False))
    op.add_column("credentials", sa.Column("last_error_at", sa.BigInteger(), nullable=True))
    op.add_column("credentials", sa.Column("last_error", sa.Text(), nullable=True))
    op.add_column("credentials", sa.Column("daily_limit", sa.Integer(), nullable=True))
    op.add_column("credentials", sa.Column("used_on", sa.Text(), nullable=True))
    op.add_column("credentials", sa.Column("used_that_day", sa.Integer(), server_default="0", nullable=False))
    op.add_column("credentials", sa.Column("use_count", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("credentials", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    op.add_column("items", sa.Column("deleted_by", sa.Text(), nullable=True))
    op.add_column("items", sa.Column("is_brief", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index(
        "ix_items_thread",
        "items",
        ["platform", "thread_id", "ordered_at", "id"],
        unique=False,
        sqlite_where=sa.text("thread_id IS NOT NULL"),
        postgresql_where=sa.text("thread_id IS NOT NULL"),
    )
    op.add_column("progress", sa.Column("success_count", sa.Integer(), server_default="0", nullable=False))
    op.add_column("progress", sa.Column("empty_count", sa.Integer(), server_default="0", nullable=False))
    op.add_column("progress", sa.Column("posts_per_day", sa.Float(), nullable=True))
    op.add_column("progress", sa.Column("reach", sa.Integer(), nullable=True))
    op.add_column("progress", sa.Column("recent_valid", sa.Text(), server_default="[]", nullable=False))
    op.add_column("progress", sa.Column("average_valid", sa.Float(), nullable=True))
    op.add_column("progress", sa.Column("tier", sa.Text(), nullable=True))
    op.add_column("progress", sa.Column("tier_minutes", sa.Integer(), nullable=True))
    op.add_column("progress", sa.Column("tier_reason", sa.Text(), nullable=True))
    op.add_column("progress", sa.Column("next_limit", sa.Integer(), nullable=True))
    op.add_column("progress", sa.Column("precedence", sa.Integer(), server_default="1", nullable=False))
    op.drop_index(
        op.f("ix_progress_due_by_time"),
        table_name="progress",
        sqlite_where=sa.text("is_active AND next_due_at IS NOT NULL"),
    )
    op.drop_index(
        op.f("ix_progress_due_by_kind"),
        table_name="progress",
        sqlite_where=sa.text("is_active AND next_due_at IS NULL"),
    )
    op.create_index(
        "ix_progress_due_by_kind",
        "progress",
        ["kind", "precedence", "last_polled_at"],
        unique=False,
        sqlite_where=sa.text("is_active AND next_due_at IS NULL"),
        postgresql_where=sa.text("is_active AND next_due_at IS NULL"),
    )
    op.create_index(
        "ix_progress_by_average",
        "progress",
        ["average_valid", "source_id"],
        unique=False,
        sqlite_where=sa.text("is_active AND average_valid IS NOT NULL"),
        postgresql_where=sa.text("is_active AND average_valid IS NOT NULL"),
    )
    op.create_index(
        "ix_progress_due_by_kind_and_time",
        "progress",
        ["kind", "precedence", "next_due_at"],
        unique=False,
        sqlite_where=sa.text("is_active AND next_due_at IS NOT NULL"),
        postgresql_where=sa.text("is_active AND next_due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_progress_left_alone",
        "progress",
        ["kind", "last_polled_at"],
        unique=False,
        sqlite_where=sa.text("is_active AND average_valid IS NOT NULL"),
        postgresql_where=sa.text("is_active AND average_valid IS NOT NULL"),
    )
    op.add_column("run_sources", sa.Column("valid_count", sa.Integer(), server_default="0", nullable=False))
    # So far only failures were counted.
    op.execute("UPDATE progress SET success_count = poll_count - failure_count WHERE poll_count > failure_count")
    op.execute(
        """
        UPDATE progress SET precedence = (
            SELECT CASE s.priority WHEN 'high' THEN 0 WHEN 'low' THEN 2 ELSE 1 END FROM sources s
             WHERE s.id = progress.source_id
        )
        """
    )
