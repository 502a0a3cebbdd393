"""A store of either sort, and a desk to work at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.desk import Desk, opened


@pytest.fixture
def desk(database_url: str, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(opened(database_url, tmp_path))
    yield desk
    desk.close()
