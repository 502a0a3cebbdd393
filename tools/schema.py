"""`python -m tools.schema NUMBER WORDS` drafts the migration from the last released schema to the present tables.

Read the draft and add what has to happen to the rows; then raise HEAD in catchment/store/version.py. The last released
schema is the newest dump in tests/store/schemas, written by `python -m tests.store.sample` when it was released.
"""

from __future__ import annotations

import sys
from pathlib import Path

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from catchment.store.migrate import CURRENT, Schema

ROOT = Path(__file__).parents[1]


def write_migration(number: str, words: str, dump: Path, schema: Schema = CURRENT) -> Path:
    """Writes the difference between a dump and the tables as the next migration; returns its path."""
    options = {
        "target_metadata": schema.tables,
        "sqlalchemy_module_prefix": "sa.",
        "alembic_module_prefix": "op.",
        # SQLite's tables of the full-text index, and PostgreSQL's index in its place: only one database has them.
        "include_object": lambda _, name, *__: not name.startswith(("item_words", "ix_indexed_words")),
    }
    with create_engine("sqlite://").connect() as connection:
        connection.connection.executescript(dump.read_text())
        context = MigrationContext.configure(connection, opts=options)
        upgrade = produce_migrations(context, schema.tables).upgrade_ops
        assert upgrade is not None
        lines = render_python_code(upgrade, render_as_batch=True, migration_context=context).splitlines()
    body = "\n".join(f"    {line.removeprefix('    ')}" for line in lines if line.strip() and "###" not in line)
    file = schema.migrations / "versions" / f"{number}_{words.replace(' ', '_')}.py"
    file.write_text(
        f'"""{words.capitalize()}."""\n\n'
        "import sqlalchemy as sa\nfrom alembic import op\n\n"
        f'revision = "{number}"\ndown_revision = "{dump.name.partition(".")[0]}"\n'
        "branch_labels = None\ndepends_on = None\n\n\n"
        f"def upgrade() -> None:\n{body}\n"
    )
    return file


if __name__ == "__main__":
    dumps = sorted((ROOT / "tests" / "store" / "schemas").glob("*.sqlite.sql"))
    match sys.argv[1:]:
        case [number, *words] if words and dumps:
            made = write_migration(number, " ".join(words), dumps[-1])
        case _:
            sys.exit(__doc__)
    sys.stdout.write(f"wrote {made.relative_to(ROOT)}\n")
