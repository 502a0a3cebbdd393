from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment import logs
from tests.town import TownApp
from tests.web.desk import Desk


@pytest.fixture
def both(tmp_path: Path, database_url: str) -> Iterator[Desk]:
    """The API on either database."""
    here = TownApp(tmp_path / "home", database_url)
    yield Desk(here)
    here.close()


@pytest.fixture
def town(tmp_path: Path) -> Iterator[TownApp]:
    here = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}")
    yield here
    here.close()


@pytest.fixture
def desk(town: TownApp) -> Desk:
    """The API on SQLite only, for what does not depend on the database."""
    return Desk(town)


@pytest.fixture(autouse=True)
def lines() -> Iterator[io.StringIO]:
    """What is logged, one JSON document a line."""
    root, stream = logging.getLogger(), io.StringIO()
    before = (root.handlers[:], root.level)
    logs.configure("json", "debug", stream)
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)
