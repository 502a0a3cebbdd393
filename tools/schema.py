"""For whoever changes the tables: `python -m tools.schema NUMBER WORDS` writes the next migration.

It leads from the migrations there are to the tables as they are now, and is a draft: read it, and add what has to
happen to the rows. Then raise HEAD in catchment/store/opening.py, and keep a dump of the new schema for the tests:
`python -m tests.store.sample`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from alembic import command
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine

from catchment.store.opening import MIGRATIONS, alembic_config
from catchment.store.schema import metadata

ROOT = Path(__file__).parents[1]


def write_migration(number: str, words: str) -> Path:
    """The difference between the migrations and the tables, as the next migration."""
    file = MIGRATIONS / "versions" / f"{number}_{words.replace(' ', '_')}.py"
    before = sorted(path.name[:4] for path in file.parent.glob("[0-9]*.py"))
    with create_engine("sqlite://").connect() as connection:
        if before:
            command.upgrade(alembic_config(connection), "head")
        body = _difference(connection)
    file.write_text(
        f'"""{words.capitalize()}."""\n\n'
        "import sqlalchemy as sa\nfrom alembic import op\n\n"
        f'revision = "{number}"\ndown_revision = {f"{before[-1]!r}" if before else None}\n'
        "branch_labels = None\ndepends_on = None\n\n\n"
        f"def upgrade() -> None:\n{body}\n"
    )
    return file


def _difference(connection: Connection) -> str:
    options = {"target_metadata": metadata, "sqlalchemy_module_prefix": "sa.", "alembic_module_prefix": "op."}
    context = MigrationContext.configure(connection, opts=options)
    upgrade = produce_migrations(context, metadata).upgrade_ops
    assert upgrade is not None
    lines = render_python_code(upgrade, migration_context=context).splitlines()
    return "\n".join(f"    {line.removeprefix('    ')}" for line in lines if line.strip() and "###" not in line)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [number, *words] if words:
            made = write_migration(number, " ".join(words))
        case _:
            sys.exit(__doc__)
    sys.stdout.write(f"wrote {made.relative_to(ROOT)}\n")
