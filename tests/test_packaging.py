"""The package as people install it: a wheel in an environment of its own, without the source tree."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections import Counter, deque
from html import unescape
from http.cookiejar import CookieJar
from importlib.metadata import Distribution, distribution
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import pytest
from packaging.requirements import Requirement

from tests.town import TownApp
from tests.web.desk import Desk
from tests.web.whole_deployment import a_whole_deployment, browsing_paths

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def requirements() -> dict[str, Requirement]:
    """Everything that pyproject.toml asks for, ourselves excepted, by the line it stands in."""
    project = PROJECT["project"]
    lines = [
        *PROJECT["build-system"]["requires"],
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ]
    return {line: Requirement(line) for line in lines if not line.startswith("catchment[")}


@pytest.mark.parametrize("line", requirements())
def test_every_dependency_has_a_lower_and_an_upper_bound(line: str) -> None:
    operators = {specifier.operator for specifier in requirements()[line].specifier}
    assert operators & {">=", "=="}
    assert operators & {"<", "<=", "=="}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources: what an earlier build left in the source tree cannot get into it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(
        REPOSITORY / "catchment", source / "catchment", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, f"{built.stderr}\nIs setuptools too old? `make lint` installs what tests need."
    return folder / built.stdout.splitlines()[-1]


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        # Compiled code is there only where there is a compiler.
        packed = {name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith(".so")}
    here = {
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "catchment").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    assert packed == here


# ── installed ─────────────────────────────────────────────────────────────────────────────────────────────────────


def needed_by(name: str) -> dict[str, Distribution]:
    """The distributions that one needs, and those that they need."""
    found: dict[str, Distribution] = {}
    waiting = deque([Requirement(line) for line in PROJECT["project"]["dependencies"]])
    while waiting:
        requirement = waiting.popleft()
        if requirement.marker is not None and not any(
            requirement.marker.evaluate({"extra": extra}) for extra in (requirement.extras or {""})
        ):
            continue
        key = requirement.name.lower().replace("_", "-")
        if key in found:
            continue
        found[key] = distribution(requirement.name)
        for line in found[key].requires or []:
            needed = Requirement(line)
            needed.extras = requirement.extras
            waiting.append(needed)
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and the dependencies that it names: these are linked, not downloaded."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(folder, symlinks=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    for package in needed_by("catchment").values():
        for top in {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(package.locate_file(top))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    return folder


def surroundings(folder: Path) -> dict[str, str]:
    """What a person's shell has set who never saw the source tree."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "CATCHMENT_HOME": str(folder / "home")}


def test_what_is_installed_comes_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    question = "import catchment, sys; print(catchment.__file__); print([p for p in sys.path if 'site-packages' in p])"
    answer = subprocess.run(
        [installed / "bin" / "python", "-c", question],
        cwd=tmp_path, env=surroundings(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(installed) in answer.stdout.splitlines()[0]
    assert str(REPOSITORY) not in answer.stdout


def test_installed_from_the_wheel_it_serves_every_page_style_and_script(installed: Path, tmp_path: Path) -> None:
    a_deployment_with_something_of_everything(Path(surroundings(tmp_path)["CATCHMENT_HOME"]))
    log = tmp_path / "serve.log"
    with log.open("w") as errors:
        serving = subprocess.Popen(
            [installed / "bin" / "catchment", "serve", "--port", "0", "--no-collect"],
            cwd=tmp_path, env=surroundings(tmp_path), stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    try:
        link = sign_in_link(serving)
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        seen = everything_reachable(browser, link)
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.communicate()
    assert serving.returncode == 0, log.read_text()
    assert {path: status for path, (status, _) in seen.items() if status != 200} == {}
    shown = {path.partition("?")[0] for path in seen}
    expected = {path for path in browsing_paths("GET") if not path.startswith(("/login", "/static", "/live"))}
    assert expected - {shape_of(path) for path in shown} == set()
    static = {file.name for file in (REPOSITORY / "catchment" / "web" / "pages" / "static").iterdir()}
    # Their addresses change with their contents: style-0123456789ab.css
    assert {re.sub(r"-[0-9a-f]{12}", "", Path(path).name) for path in shown if path.startswith("/static/")} == static


def sign_in_link(serving: subprocess.Popen[str]) -> str:
    assert serving.stdout is not None
    for line in serving.stdout:
        if found := re.search(r"http://\S+/login\?token=\S+", line):
            return found[0]
    pytest.fail("it ended without a link")


def a_deployment_with_something_of_everything(home: Path) -> None:
    """Made by the source tree; what serves it is the wheel."""
    town = TownApp(home, f"sqlite:///{home / 'catchment.db'}")
    a_whole_deployment(Desk(town))
    town.close()


def shape_of(path: str) -> str:
    return re.sub(r"\d+", "1", path.partition("?")[0])


def everything_reachable(browser: OpenerDirector, link: str) -> dict[str, tuple[int, str]]:
    """Signed in by the link: every page, style and script that can be reached from there, with status and text; of
    pages that differ in a number or a filter only, a few."""
    base = link.partition("/login")[0]
    seen, shapes = {"/": opened(browser, link)}, Counter[str]()
    waiting = deque(["/"])
    while waiting:
        for path in addresses_in(seen[waiting.popleft()][1]):
            if path not in seen and shapes[shape_of(path)] < 4:
                shapes[shape_of(path)] += 1
                seen[path] = opened(browser, base + path)
                waiting.append(path)
    return seen


def opened(browser: OpenerDirector, url: str) -> tuple[int, str]:
    try:
        with browser.open(url, timeout=900) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def addresses_in(page: str) -> list[str]:
    found = re.findall(r'<(?:a|link|script)\b[^>]*?(?:href|src)="(/[^"]*)"', page)
    return [unescape(link).partition("#")[0] for link in found]
