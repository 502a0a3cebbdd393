"""An app that emits events, and a receiver on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.events.teller import Teller
from tests.hostile import Hostile


@pytest.fixture
def receiver() -> Iterator[Hostile]:
    with Hostile() as server:
        yield server


@pytest.fixture
def both(tmp_path: Path, database_url: str) -> Iterator[Teller]:
    """On either database."""
    teller = Teller(tmp_path / "home", database_url)
    yield teller
    teller.close()


@pytest.fixture
def teller(tmp_path: Path) -> Iterator[Teller]:
    """On SQLite only, for rules that do not depend on the database."""
    teller = Teller(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}")
    yield teller
    teller.close()
