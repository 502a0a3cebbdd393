"""What platforms say does not depend on the database: simulations run on SQLite, and a few of them on both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.databases import sqlite_ready


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLite; for tests with `ON_BOTH`, PostgreSQL as well."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return sqlite_ready(f"sqlite:///{tmp_path / 'catchment.db'}")
    address: str = request.getfixturevalue("postgres_url")
    return address
