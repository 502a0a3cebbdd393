"""Forums and work."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
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
    op.execute(
        """
        UPDATE items
           SET parent_id = (SELECT r.external_id FROM item_references r
                             WHERE r.item_id = items.id AND r.relation = 'replied_to' ORDER BY r.position LIMIT 1)
         WHERE id IN (SELECT item_id FROM item_references WHERE relation = 'replied_to')
        """
    )
    with op.batch_alter_table("progress", schema=None) as batch_op:
        batch_op.add_column(sa.Column("last_fetched_count", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("last_new_count", sa.Integer(), nullable=True))
    with op.batch_alter_table("tags", schema=None) as batch_op:
        batch_op.add_column(sa.Column("origin", sa.Text(), server_default="topic_tag", nullable=False))
        batch_op.drop_constraint(batch_op.f("uq_tags_name"), type_="unique")
        batch_op.create_index(batch_op.f("ix_tags_name"), ["name"], unique=False)
        batch_op.create_unique_constraint(batch_op.f("uq_tags_origin_name"), ["origin", "name"])
