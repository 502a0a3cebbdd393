"""Last replies: when items were last answered, and lists by it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "replied",
        sa.Column("list", sa.Text(), nullable=False),
        sa.Column("last_reply_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("list", "last_reply_at", "item_id", name=op.f("pk_replied")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_replied_item_id_list_last_reply_at"), "replied", ["item_id", "list", "last_reply_at"], unique=False
    )
    op.add_column("items", sa.Column("last_reply_at", sa.BigInteger(), nullable=True))
    op.add_column("items", sa.Column("is_head", sa.Boolean(), server_default=sa.false(), nullable=False))
    # So far the head of a thread was the item whose name the thread has; forums that count posts and topics apart had
    # none that could be found by a reply.
    op.execute(
        """
        UPDATE items SET is_head = TRUE
         WHERE thread_id = external_id OR (platform = 'discourse' AND thread_id IS NOT NULL AND floor_number = 1)
        """
    )
    op.drop_index(op.f("ix_items_thread"), table_name="items", sqlite_where=sa.text("thread_id IS NOT NULL"))
    op.create_index(
        "ix_items_thread",
        "items",
        ["platform", "scope", "thread_id", "ordered_at", "id"],
        unique=False,
        sqlite_where=sa.text("thread_id IS NOT NULL"),
        postgresql_where=sa.text("thread_id IS NOT NULL"),
    )
    op.create_index(
        "ix_items_heads",
        "items",
        ["platform", "scope", "thread_id"],
        unique=False,
        sqlite_where=sa.text("is_head"),
        postgresql_where=sa.text("is_head"),
    )
    # By the replies that are held: what platforms tell comes with the next visits.
    op.execute(
        """
        UPDATE items SET last_reply_at = (
            SELECT max(r.ordered_at) FROM items r
             WHERE r.platform = items.platform AND r.scope = items.scope AND r.thread_id = items.thread_id
               AND NOT r.is_head AND NOT r.is_deleted
        )
         WHERE is_head
        """
    )
    for name, joined in (
        ("'all'", ""),
        ("'platform:' || i.platform", ""),
        ("'kind:' || i.kind", ""),
        ("'kind:' || s.kind", "JOIN sources s ON s.id = i.source_id AND s.kind <> i.kind"),
        ("'source:' || g.source_id", "JOIN sightings g ON g.item_id = i.id"),
    ):
        op.execute(
            f"""
            INSERT INTO replied (list, last_reply_at, item_id)
            SELECT {name}, i.last_reply_at, i.id FROM items i {joined} WHERE i.is_head AND i.last_reply_at IS NOT NULL
            """
        )
