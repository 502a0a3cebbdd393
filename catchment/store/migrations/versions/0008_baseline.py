"""The baseline. Nothing leads here: new databases get their tables from `store/schema/`, older ones are refused."""

revision = "0008"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    raise AssertionError("the baseline is never migrated to")
