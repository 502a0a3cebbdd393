"""Breadth: the index of words and facets, looks and series, events and watches, forgetting."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "appearances",
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("score", sa.BigInteger(), nullable=True),
        sa.Column("gained", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("item_id", "day", "source_id", name=op.f("pk_appearances")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "counter_points",
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("score", sa.BigInteger(), nullable=True),
        sa.Column("reply_count", sa.BigInteger(), nullable=True),
        sa.Column("view_count", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("item_id", "at", name=op.f("pk_counter_points")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "facets",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_facets")),
        sa.UniqueConstraint("name", name=op.f("uq_facets_name")),
    )
    op.create_table(
        "forgotten",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("forgotten_at", sa.BigInteger(), nullable=False),
        sa.Column("forgotten_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("item_count", sa.Integer(), nullable=False),
        sa.Column("revision_count", sa.Integer(), nullable=False),
        sa.Column("answer_count", sa.Integer(), nullable=False),
        sa.Column("event_count", sa.Integer(), nullable=False),
        sa.Column("is_finished", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_forgotten")),
    )
    op.create_table(
        "index_mark",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rule", sa.Integer(), nullable=False),
        sa.Column("change_number", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_index_mark")),
    )
    op.create_table(
        "indexed",
        sa.Column("place", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("facets", sa.Text(), nullable=False),
        sa.Column("is_too_long", sa.Boolean(), nullable=False),
        sa.Column("words", sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql"), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_indexed")),
    )
    op.create_index(
        "ix_indexed_too_long",
        "indexed",
        ["place"],
        unique=False,
        sqlite_where=sa.text("is_too_long"),
        postgresql_where=sa.text("is_too_long"),
    )
    if is_postgres:
        op.create_index("ix_indexed_words", "indexed", ["words"], unique=False, postgresql_using="gin")
    else:
        op.execute(
            "CREATE VIRTUAL TABLE item_words USING fts5(terms, content='', detail=none, columnsize=0, tokenize='ascii')"
        )
    op.create_table(
        "looks",
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("next_look_at", sa.BigInteger(), nullable=True),
        sa.Column("look_count", sa.Integer(), nullable=False),
        sa.Column("failure_count", sa.Integer(), nullable=False),
        sa.Column("gone_since", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("item_id", name=op.f("pk_looks")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_looks_due",
        "looks",
        ["platform", "next_look_at"],
        unique=False,
        sqlite_where=sa.text("next_look_at IS NOT NULL"),
        postgresql_where=sa.text("next_look_at IS NOT NULL"),
    )
    op.create_table(
        "postings",
        sa.Column("facet_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ordered_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("facet_id", "ordered_at", "item_id", name=op.f("pk_postings")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "watches",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("is_any_enough", sa.Boolean(), nullable=False),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("source_ids", sa.Text(), nullable=False),
        sa.Column("authors", sa.Text(), nullable=False),
        sa.Column("is_for_edits", sa.Boolean(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("from_change_number", sa.BigInteger(), nullable=False),
        sa.Column("item_position", sa.BigInteger(), nullable=False),
        sa.Column("edit_position", sa.BigInteger(), nullable=False),
        sa.Column("edit_position_item_id", sa.BigInteger(), nullable=False),
        sa.Column("hit_count", sa.BigInteger(), nullable=False),
        sa.Column("last_hit_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_watches")),
        sa.UniqueConstraint("name", name=op.f("uq_watches_name")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("name", name=op.f("uq_webhooks_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("listener", sa.Text(), nullable=False),
        sa.Column("webhook_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("off_because", sa.Text(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("failures_in_a_row", sa.Integer(), nullable=False),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("delivered_count", sa.BigInteger(), nullable=False),
        sa.Column("given_up_count", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], name=op.f("fk_deliveries_webhook_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("listener", name=op.f("uq_deliveries_listener")),
        sa.UniqueConstraint("webhook_id", name=op.f("uq_deliveries_webhook_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "forgotten_marks",
        sa.Column("mark", sa.LargeBinary(), nullable=False),
        sa.Column("forgotten_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["forgotten_id"], ["forgotten.id"], name=op.f("fk_forgotten_marks_forgotten_id")),
        sa.PrimaryKeyConstraint("mark", name=op.f("pk_forgotten_marks")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_forgotten_marks_forgotten_id"), "forgotten_marks", ["forgotten_id"], unique=False)
    op.create_table(
        "source_counts",
        sa.Column(
            "source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("item_count", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_source_counts_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_source_counts")),
    )
    op.create_table(
        "watch_hits",
        sa.Column(
            "watch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("change_number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("is_edit", sa.Boolean(), nullable=False),
        sa.Column("matched_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["watch_id"], ["watches.id"], name=op.f("fk_watch_hits_watch_id")),
        sa.PrimaryKeyConstraint("watch_id", "change_number", "item_id", name=op.f("pk_watch_hits")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_watch_hits_item_id"), "watch_hits", ["item_id"], unique=False)
    op.create_index(
        "ix_alerts_closed",
        "alerts",
        ["closed_at", "id"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NOT NULL"),
        postgresql_where=sa.text("closed_at IS NOT NULL"),
    )
    op.create_index(op.f("ix_items_first_seen_at_id"), "items", ["first_seen_at", "id"], unique=False)
    op.add_column("ledger", sa.Column("last_event_id", sa.BigInteger(), server_default="0", nullable=False))
    op.drop_index(op.f("ix_outbox_waiting"), table_name="outbox", sqlite_where=sa.text("delivered_at IS NULL"))
    op.drop_column("outbox", "delivered_at")
    op.drop_column("outbox", "attempt_count")
    op.drop_index(op.f("ix_raw_answers_answered_at"), table_name="raw_answers")
    op.create_index(op.f("ix_raw_answers_answered_at_id"), "raw_answers", ["answered_at", "id"], unique=False)
    op.create_index(
        op.f("ix_sightings_source_id_first_seen_at_item_id"),
        "sightings",
        ["source_id", "first_seen_at", "item_id"],
        unique=False,
    )
    op.create_index(
        "ix_sources_credential",
        "sources",
        ["credential"],
        unique=False,
        sqlite_where=sa.text("credential IS NOT NULL"),
        postgresql_where=sa.text("credential IS NOT NULL"),
    )
    op.create_index(op.f("ix_sources_platform"), "sources", ["platform"], unique=False)
    # Events are numbered from the ledger now, so that none is skipped by those who read on.
    op.execute("UPDATE ledger SET last_event_id = (SELECT coalesce(max(id), 0) FROM outbox)")
    if is_postgres:
        op.execute("ALTER TABLE outbox ALTER COLUMN id DROP DEFAULT")
        op.execute("DROP SEQUENCE outbox_id_seq")
    op.execute("INSERT INTO source_counts SELECT source_id, count(*) FROM sightings GROUP BY source_id")
