"""Forums and work."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "floor_audit_floors",
        sa.Column("audit_thread_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("floor_number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("attempts_before", sa.Integer(), nullable=False),
        sa.Column("attempts_after", sa.Integer(), nullable=True),
        sa.Column("error_category", sa.Text(), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("audit_thread_id", "floor_number", name=op.f("pk_floor_audit_floors")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "floor_audits",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("run_trigger", sa.Text(), nullable=False),
        sa.Column("is_repairing", sa.Boolean(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("thread_count", sa.Integer(), nullable=False),
        sa.Column("missing_thread_count", sa.Integer(), nullable=False),
        sa.Column("repaired_thread_count", sa.Integer(), nullable=False),
        sa.Column("partial_thread_count", sa.Integer(), nullable=False),
        sa.Column("failed_thread_count", sa.Integer(), nullable=False),
        sa.Column("failed_http_count", sa.Integer(), nullable=False),
        sa.Column("failed_parse_count", sa.Integer(), nullable=False),
        sa.Column("failed_db_count", sa.Integer(), nullable=False),
        sa.Column("failed_unknown_count", sa.Integer(), nullable=False),
        sa.Column("missing_floor_count", sa.Integer(), nullable=False),
        sa.Column("repaired_floor_count", sa.Integer(), nullable=False),
        sa.Column("ignored_floor_count", sa.Integer(), nullable=False),
        sa.Column("gap_count", sa.Integer(), nullable=False),
        sa.Column("repaired_gap_count", sa.Integer(), nullable=False),
        sa.Column("partial_gap_count", sa.Integer(), nullable=False),
        sa.Column("failed_gap_count", sa.Integer(), nullable=False),
        sa.Column("unreachable_gap_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_floor_audits")),
    )
    with op.batch_alter_table("floor_audits", schema=None) as batch_op:
        batch_op.create_index(
            "ix_floor_audits_requested",
            ["id"],
            unique=False,
            sqlite_where=sa.text("run_id IS NULL AND finished_at IS NULL"),
            postgresql_where=sa.text("run_id IS NULL AND finished_at IS NULL"),
        )
        batch_op.create_index(batch_op.f("ix_floor_audits_started_at"), ["started_at"], unique=False)
    op.create_table(
        "reply_counts",
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("declared_count", sa.Integer(), nullable=False),
        sa.Column("stored_count", sa.Integer(), nullable=False),
        sa.Column("hole_count", sa.Integer(), nullable=False),
        sa.Column("missing_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("item_id", name=op.f("pk_reply_counts")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("reply_counts", schema=None) as batch_op:
        batch_op.create_index(
            "ix_reply_counts_missing",
            ["missing_count", "item_id"],
            unique=False,
            sqlite_where=sa.text("missing_count > 0"),
            postgresql_where=sa.text("missing_count > 0"),
        )
        batch_op.create_index(
            "ix_reply_counts_missing_of_source",
            ["source_id", "missing_count", "item_id"],
            unique=False,
            sqlite_where=sa.text("missing_count > 0"),
            postgresql_where=sa.text("missing_count > 0"),
        )
    op.create_table(
        "gap_repairs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("gap_id", sa.BigInteger(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("audit_id", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("from_at", sa.BigInteger(), nullable=False),
        sa.Column("to_at", sa.BigInteger(), nullable=False),
        sa.Column("left_to_at", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("stopped_by", sa.Text(), nullable=True),
        sa.Column("page_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("request_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("shown_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("new_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gap_repairs")),
    )
    with op.batch_alter_table("gap_repairs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_gap_repairs_audit_id_id"), ["audit_id", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_gap_repairs_gap_id_id"), ["gap_id", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_gap_repairs_started_at"), ["started_at"], unique=False)
    op.create_table(
        "floor_repairs",
        sa.Column("thread_row_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("floor_number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt_count", sa.Integer(), nullable=False),
        sa.Column("first_attempted_at", sa.BigInteger(), nullable=False),
        sa.Column("last_attempted_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("thread_row_id", "floor_number", name=op.f("pk_floor_repairs")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "thread_holes",
        sa.Column("thread_row_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("floor_number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("noticed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("thread_row_id", "floor_number", name=op.f("pk_thread_holes")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "board_runs",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("run_trigger", sa.Text(), nullable=False),
        sa.Column("window_first_day", sa.Text(), nullable=True),
        sa.Column("window_last_day", sa.Text(), nullable=True),
        sa.Column("scanned_count", sa.Integer(), nullable=False),
        sa.Column("changed_count", sa.Integer(), nullable=False),
        sa.Column("updated_count", sa.Integer(), nullable=False),
        sa.Column("request_count", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_board_runs_run_id")),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_board_runs_source_id")),
        sa.PrimaryKeyConstraint("run_id", "source_id", name=op.f("pk_board_runs")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("board_runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_board_runs_source_id_run_id"), ["source_id", "run_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_board_runs_started_at"), ["started_at"], unique=False)
    op.create_table(
        "floor_audit_threads",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("audit_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("thread_row_id", sa.BigInteger(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("max_floor", sa.Integer(), nullable=False),
        sa.Column("floor_count", sa.Integer(), nullable=False),
        sa.Column("missing_count", sa.Integer(), nullable=False),
        sa.Column("ignored_count", sa.Integer(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("repair_started_at", sa.BigInteger(), nullable=True),
        sa.Column("repair_finished_at", sa.BigInteger(), nullable=True),
        sa.Column("after_max_floor", sa.Integer(), nullable=True),
        sa.Column("after_floor_count", sa.Integer(), nullable=True),
        sa.Column("remaining_count", sa.Integer(), nullable=True),
        sa.Column("error_category", sa.Text(), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["floor_audits.id"], name=op.f("fk_floor_audit_threads_audit_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_floor_audit_threads")),
        sa.UniqueConstraint("audit_id", "thread_row_id", name=op.f("uq_floor_audit_threads_audit_id_thread_row_id")),
    )
    with op.batch_alter_table("floor_audit_threads", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_floor_audit_threads_thread_row_id_id"), ["thread_row_id", "id"], unique=False
        )
    op.create_table(
        "thread_runs",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("thread_row_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("read_reason", sa.Text(), nullable=True),
        sa.Column("last_reply_at", sa.BigInteger(), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=False),
        sa.Column("is_capped", sa.Boolean(), nullable=False),
        sa.Column("new_count", sa.Integer(), nullable=False),
        sa.Column("updated_count", sa.Integer(), nullable=False),
        sa.Column("doubled_floors", sa.Text(), server_default="[]", nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_thread_runs_run_id")),
        sa.PrimaryKeyConstraint("run_id", "thread_row_id", name=op.f("pk_thread_runs")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("thread_runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_thread_runs_started_at"), ["started_at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_thread_runs_thread_row_id_run_id"), ["thread_row_id", "run_id"], unique=False
        )
    op.create_table(
        "threads",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=True),
        sa.Column("first_list_page", sa.Integer(), nullable=True),
        sa.Column("last_list_page", sa.Integer(), nullable=True),
        sa.Column("last_reply_at", sa.BigInteger(), nullable=True),
        sa.Column("read_reply_at", sa.BigInteger(), nullable=True),
        sa.Column("changed_at", sa.BigInteger(), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=True),
        sa.Column("next_page", sa.Integer(), nullable=True),
        sa.Column("truncated_at_page", sa.Integer(), nullable=True),
        sa.Column("max_floor", sa.Integer(), nullable=True),
        sa.Column("max_floor_id", sa.Text(), nullable=True),
        sa.Column("skipped_since", sa.BigInteger(), nullable=True),
        sa.Column("gone_since", sa.BigInteger(), nullable=True),
        sa.Column("stale_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("read_reason", sa.Text(), nullable=True),
        sa.Column("waiting_since", sa.BigInteger(), nullable=True),
        sa.Column("last_read_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_threads_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_threads")),
        sa.UniqueConstraint("source_id", "thread_id", name=op.f("uq_threads_source_id_thread_id")),
    )
    with op.batch_alter_table("threads", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_threads_item_id"), ["item_id"], unique=False)
        batch_op.create_index(
            "ix_threads_pending",
            ["source_id", "id"],
            unique=False,
            sqlite_where=sa.text("next_page IS NOT NULL"),
            postgresql_where=sa.text("next_page IS NOT NULL"),
        )
        batch_op.create_index(batch_op.f("ix_threads_source_id_id"), ["source_id", "id"], unique=False)
        batch_op.create_index(
            "ix_threads_waiting",
            ["source_id", "waiting_since", "id"],
            unique=False,
            sqlite_where=sa.text("read_reason IS NOT NULL"),
            postgresql_where=sa.text("read_reason IS NOT NULL"),
        )
    op.create_table(
        "tasks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("item_limit", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("is_cancelled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("from_change_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("request_id", name=op.f("uq_tasks_request_id")),
        sa.UniqueConstraint("task_id", name=op.f("uq_tasks_task_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tasks_created_at"), ["created_at"], unique=False)
        batch_op.create_index(
            "uq_tasks_unfinished",
            ["kind"],
            unique=True,
            sqlite_where=sa.text("finished_at IS NULL"),
            postgresql_where=sa.text("finished_at IS NULL"),
        )
    op.create_table(
        "task_targets",
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_task_targets_task_id")),
        sa.PrimaryKeyConstraint("task_id", "position", name=op.f("pk_task_targets")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spending",
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("call_count", sa.BigInteger(), nullable=False),
        sa.Column("item_count", sa.BigInteger(), nullable=False),
        sa.Column("profile_count", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("uncertain_amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("period", "service", "credential", "source_id", name=op.f("pk_spending")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("spending", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_spending_period_amount"), ["period", "amount"], unique=False)
        batch_op.create_index(batch_op.f("ix_spending_source_id_period"), ["source_id", "period"], unique=False)
    op.create_table(
        "spending_totals",
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("uncertain_amount", sa.BigInteger(), nullable=False),
        sa.Column("reserved_amount", sa.BigInteger(), nullable=False),
        sa.Column("refused_amount", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("service", "period", name=op.f("pk_spending_totals")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "reservations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reserved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("reservations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reservations_owner_id"), ["owner_id"], unique=False)
    op.create_table(
        "unfinished_walks",
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_unfinished_walks_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_unfinished_walks")),
    )
    op.create_table(
        "shown_entries",
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_shown_entries_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_shown_entries")),
    )
    with op.batch_alter_table("gaps", schema=None) as batch_op:
        batch_op.add_column(sa.Column("to_ids", sa.Text(), server_default="[]", nullable=False))
        batch_op.add_column(sa.Column("repaired_from_at", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("attempt_count", sa.Integer(), server_default="0", nullable=False))
        batch_op.add_column(sa.Column("last_repair_id", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("item_references", schema=None) as batch_op:
        batch_op.add_column(sa.Column("author_display_name", sa.Text(), nullable=True))
        batch_op.add_column(sa.Column("created_at", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("media", sa.Text(), server_default="[]", nullable=False))
    with op.batch_alter_table("items", schema=None) as batch_op:
        batch_op.add_column(sa.Column("title_prefixes", sa.Text(), server_default="[]", nullable=False))
        batch_op.add_column(sa.Column("parent_id", sa.Text(), nullable=True))
        batch_op.create_index(
            "ix_items_floor",
            ["platform", "scope", "thread_id", "floor_number"],
            unique=False,
            sqlite_where=sa.text("floor_number IS NOT NULL"),
            postgresql_where=sa.text("floor_number IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_items_parent",
            ["platform", "scope", "parent_id", "ordered_at", "id"],
            unique=False,
            sqlite_where=sa.text("parent_id IS NOT NULL"),
            postgresql_where=sa.text("parent_id IS NOT NULL"),
        )
    with op.batch_alter_table("progress", schema=None) as batch_op:
        batch_op.add_column(sa.Column("last_fetched_count", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("last_new_count", sa.Integer(), nullable=True))
        batch_op.drop_column("shown_marks")
    with op.batch_alter_table("run_sources", schema=None) as batch_op:
        batch_op.add_column(sa.Column("first_change_number", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("task_id", sa.BigInteger(), nullable=True))
        batch_op.create_index(
            "ix_runs_task_id",
            ["task_id"],
            unique=False,
            sqlite_where=sa.text("task_id IS NOT NULL"),
            postgresql_where=sa.text("task_id IS NOT NULL"),
        )
    with op.batch_alter_table("tags", schema=None) as batch_op:
        batch_op.add_column(sa.Column("origin", sa.Text(), server_default="topic_tag", nullable=False))
        batch_op.drop_constraint(batch_op.f("uq_tags_name"), type_="unique")
        batch_op.create_index(batch_op.f("ix_tags_name"), ["name"], unique=False)
        batch_op.create_unique_constraint(batch_op.f("uq_tags_origin_name"), ["origin", "name"])
    # Not in a batch, which copies the table on SQLite: the copy would reuse ids.
    op.add_column("webhooks", sa.Column("is_notification", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("webhooks", sa.Column("least_severity", sa.Text(), nullable=True))
    op.add_column("webhooks", sa.Column("language", sa.Text(), nullable=True))
    op.execute(
        """
        UPDATE items
           SET parent_id = (SELECT r.external_id FROM item_references r
                             WHERE r.item_id = items.id AND r.relation = 'replied_to' ORDER BY r.position LIMIT 1)
         WHERE id IN (SELECT item_id FROM item_references WHERE relation = 'replied_to')
        """
    )
