"""A platform of a third party, built and installed as a package of its own, works in every door.

The package is the example of docs/adding-a-platform.md, word for word. It is built without the network: a backend of a
few lines stands where setuptools would.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.databases import sqlite_ready
from tests.hostile import Hostile, reply

REPOSITORY = Path(__file__).parents[1]
BACKEND = '''
"""Builds a wheel out of pyproject.toml and the folders beside it."""

import base64, hashlib, pathlib, tomllib, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    name = project["name"].replace("-", "_")
    info, wheel = f"{name}-{project['version']}.dist-info", f"{name}-{project['version']}-py3-none-any.whl"
    files = {str(path): path.read_bytes() for path in sorted(pathlib.Path().glob("catchment_*/*.py"))}
    groups = "".join(
        f"[{group}]\\n" + "".join(f"{key} = {value}\\n" for key, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    metadata = f"Metadata-Version: 2.1\\nName: {project['name']}\\nVersion: {project['version']}\\n"
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[f"{info}/entry_points.txt"] = groups.encode()
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\\n"
        for path, data in files.items()
    )
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\\n").encode()
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w") as made:
        for path, data in files.items():
            made.writestr(path, data)
    return wheel
'''
pytestmark = pytest.mark.process

NOTES = {
    "notes": [{"id": 2, "at": 1770026400, "text": "The ferry is late.", "author": "ada"}, {"id": "x"}],
    "older": None,
}


def example(language: str, contains: str) -> str:
    """The block of the guide that has these words in it."""
    page = (REPOSITORY / "docs" / "adding-a-platform.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if contains in block]
    return str(found)


def installed(folder: Path, site: Path, project: str, module: str) -> None:
    """Build a wheel of the package, and install it into a folder of its own."""
    package = folder / "catchment_wall"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "wall.py").write_text(module, encoding="utf-8")
    ours = 'requires = []\nbuild-backend = "backend"\nbackend-path = ["."]'
    (folder / "pyproject.toml").write_text(
        re.sub(r"requires = .*\nbuild-backend = .*", ours, project, count=1), encoding="utf-8"
    )
    (folder / "backend.py").write_text(BACKEND, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    quiet = ["--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *quiet, "-w", str(folder / "dist"), str(folder)], check=True, timeout=900)
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([*pip, "install", *quiet, "--target", str(site), str(wheel)], check=True, timeout=900)


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Surroundings:
    """A home, and an interpreter that has the package on its path."""

    def __init__(self, folder: Path, site: Path, **more: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CATCHMENT_", "FETCH_"))}
        self.environment = kept | {
            "CATCHMENT_HOME": str(folder / "home"),
            "CATCHMENT_RETRY_WAITS": "none",
            "PYTHONPATH": f"{site}{os.pathsep}{REPOSITORY}",
            **more,
        }
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)

    def __call__(self, *arguments: object) -> Said:
        command = [sys.executable, "-m", "catchment", *map(str, arguments)]
        done = subprocess.run(
            command, env=self.environment, cwd=self.work, capture_output=True, text=True, check=False, timeout=900
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def serve(self, port: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "catchment", "serve", "--port", str(port)]
        return subprocess.Popen(
            command, env=self.environment, cwd=self.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


WALL = example("python", 'NAME = "wall"')


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("third-party")
    installed(folder / "package", folder / "site", example("toml", "catchment-wall"), WALL)
    return folder / "site"


@pytest.fixture
def wall() -> Iterator[Hostile]:
    with Hostile() as server:
        server.on("/api/harbour", reply(json.dumps(NOTES).encode(), content_type="application/json"))
        yield server


def test_a_platform_in_a_package_of_its_own_works_in_every_command(tmp_path: Path, site: Path, wall: Hostile) -> None:
    catchment = Surroundings(tmp_path, site, CATCHMENT_WALL_BASE_URL=wall.url, FETCH_INTERVAL_WALL="7")
    added = catchment("sources", "add", "wall", "wall:harbour", "--check", "--json").json
    assert (added["kind"], added["platform"], added["name"], added["fetch_interval_minutes"]) == (
        "wall",
        "wall",
        "harbour",
        7,
    )
    assert [item["text"] for item in added["preview"]["items"]] == ["The ferry is late."]
    assert [skipped_entry["reason"] for skipped_entry in added["preview"]["skipped"]] == ["not a note"]
    assert [source["target"] for source in catchment("sources", "list", "--kind", "wall", "--json").json] == [
        "wall:harbour"
    ]
    collected = catchment("collect", "--kind", "wall", "--json").json
    assert (collected["succeeded"], collected["new"], collected["invalid"]) == (1, 1, 1)
    (item,) = [json.loads(line) for line in catchment("items", "--json").out.splitlines()]
    assert (item["platform"], item["kind"], item["external_id"], item["url"]) == (
        "wall",
        "note",
        "2",
        "https://wall.example/n/2",
    )
    assert catchment("status", "--json").json["sources"]["active"] == 1
    assert "CATCHMENT_WALL_BASE_URL" not in catchment("doctor").err
    refused = catchment("sources", "add", "wall", "harbour")
    assert (refused.code, "use wall:NAME" in refused.err) == (2, True)
    unknown = catchment("sources", "add", "wal", "wall:harbour")
    assert (unknown.code, "wall" in unknown.err) == (2, True)


def test_a_platform_in_a_package_of_its_own_works_in_the_api(
    tmp_path: Path, site: Path, wall: Hostile, free_port: int
) -> None:
    catchment = Surroundings(
        tmp_path, site, CATCHMENT_WALL_BASE_URL=wall.url, CATCHMENT_API_KEY="k" * 40, COLLECTOR_TICK="1"
    )

    def call(path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{free_port}{path}",
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {'k' * 40}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    server = catchment.serve(free_port)
    try:
        _until(lambda: bool(call("/api/sources")))
        made = call("/api/sources", {"kind": "wall", "target": "wall:harbour", "check": True})
        assert (made["platform"], made["preview"]["items"][0]["author"]) == ("wall", "ada")
        assert [item["kind"] for item in call("/api/sources?kind=wall")["items"]] == ["wall"]
        call(f"/api/sources/{made['id']}/run", {})
        _until(lambda: bool(call("/api/items")["items"]))
        assert call("/api/items")["items"][0]["text"] == "The ferry is late."
    finally:
        server.terminate()
        server.wait(600)


def _until(is_so: Any) -> None:
    """Wait for something that will be so; ten minutes are for ever."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        try:
            if is_so():
                return
        except OSError:
            pass
        time.sleep(0.1)
    pytest.fail("it never was so")


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("raise RuntimeError('out of paint')", "cannot be loaded: out of paint"),
        ("NAME = 'wall'", "is left out: it has no KINDS; it has no HOSTS"),
        (f"{WALL}\n\ndef rechecks(items): ...", "the protocol has no rechecks (did you mean recheck?)"),
        (WALL.replace("refusal(answer: Answer, request: Request)", "refusal(answer: Answer)"), "refusal does not take"),
    ],
)
def test_a_broken_package_is_said_so_and_left_out(tmp_path: Path, site: Path, module: str, says: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(site, broken, ignore=shutil.ignore_patterns("__pycache__"))
    (broken / "catchment_wall" / "wall.py").write_text(module, encoding="utf-8")
    catchment = Surroundings(tmp_path, broken)
    sqlite_ready(f"sqlite:///{tmp_path / 'home' / 'catchment.db'}")
    listed = catchment("sources", "list", "--json")
    # It lists no source of that platform, so it loads none.
    assert (listed.code, listed.json) == (0, [])
    refused = catchment("sources", "add", "wall", "wall:harbour")
    assert (refused.code, "unknown kind 'wall'" in refused.err) == (2, True)
    assert says in refused.err
    assert catchment("sources", "add", "rss", "https://example.com/feed").code == 0
