from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.town import TownShop


@pytest.fixture
def here(tmp_path: Path, database_url: str) -> Iterator[TownShop]:
    """A shop and its town, on either database."""
    shop = TownShop(tmp_path / "home", database_url)
    yield shop
    shop.close()


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[TownShop]:
    """The same on SQLite only, for rules that do not depend on the database."""
    shop = TownShop(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}")
    yield shop
    shop.close()
