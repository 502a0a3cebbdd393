"""Fixtures of the distributed engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.deployment import Deployment
from tests.redis_server import RedisServer


@pytest.fixture
def deployment(tmp_path: Path, postgres_url: str, redis_server: RedisServer) -> Iterator[Deployment]:
    """PostgreSQL, Redis and a site of feeds; no process is running yet."""
    made = Deployment(tmp_path, postgres_url, redis_server)
    with made.site:
        yield made
        made.close()
