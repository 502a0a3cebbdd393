"""Every home of the hot store, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hot.keeper import Keeper
from tests.store.conftest import empty_url, standing_postgres
from tests.store.desk import Desk, opened

__all__ = ["empty_url", "standing_postgres"]


@pytest.fixture
def keeper(empty_url: str, tmp_path: Path) -> Iterator[Keeper]:
    """A desk that keeps communities hot."""
    desk = Desk(opened(empty_url, tmp_path))
    desk.is_kept_hot = True
    yield Keeper(desk, desk.store.hot_home)
    desk.close()


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Keeper]:
    """The same on SQLite alone, for what takes many steps."""
    desk = Desk(opened(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path))
    desk.is_kept_hot = True
    yield Keeper(desk, desk.store.hot_home)
    desk.close()
