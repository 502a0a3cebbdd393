"""Commands start fast: each imports its own module, and only the libraries and parts of catchment that it uses."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.conftest import Catchment

LIBRARIES = {"annotated_doc", "msgspec", "rich", "shellingham", "typer", "typing_extensions"}
"""What every command may import: the parser of the command line and what it needs, and the codec of records."""
START = {"cli", "errors", "installation", "lazy", "logs", "messages", "model", "settings", "text"}
"""The parts of catchment that every command may import."""
READS = START | {"clock", "decoders", "platforms", "policy", "sources", "store"}
OF_THE_CLIENT = {"_brotli", "brotli", "certifi", "idna", "jmespath", "nh3", "pycurl", "selectolax", "zstandard"}
PARTS = {"app", "cache", "child_processes", "collect", "work_limits", "credentials", "events", "fetch", "health"}
PARTS |= {"jobs", "redis", "status"}

ALLOWED: dict[tuple[str, ...], tuple[set[str], set[str]]] = {
    ("--help",): (LIBRARIES, START),
    ("items",): (LIBRARIES, READS | {"cache", "redis"}),
    ("items", "--json"): (LIBRARIES, READS | {"cache", "redis"}),
    ("items", "--source", "1"): (LIBRARIES, READS | {"cache", "redis"}),
    ("search", "tide"): (LIBRARIES, READS),
    ("changes",): (LIBRARIES, READS),
    ("gaps",): (LIBRARIES, READS),
    ("alerts",): (LIBRARIES, READS | {"health"}),
    # It asks every part of the deployment, and so has them all: the budgets of the client, the credentials, the jobs.
    ("status",): (LIBRARIES | OF_THE_CLIENT, READS | PARTS),
    ("status", "--json"): (LIBRARIES | OF_THE_CLIENT, READS | PARTS),
    ("watches", "list"): (LIBRARIES, READS | {"credentials", "events"}),
    # They show when a source is due, which its platform's kinds decide: that platform is loaded, without its parsers.
    ("sources", "list"): (LIBRARIES | {"idna", "selectolax"}, READS | {"work_limits"}),
    ("sources", "show", "1"): (LIBRARIES | {"idna", "selectolax"}, READS | {"work_limits"}),
}
"""Which libraries, and which parts of catchment, a command may import."""
SLOW = {"asyncio", "concurrent", "ctypes", "multiprocessing", "ssl", "xml"}
"""Packages of the standard library that take long to import; no command that lists needs them."""
NEEDED = {"status": {"concurrent", "ctypes", "xml"}}
"""Those of them that a command needs nevertheless."""

IMPORTED = """
import sys
from catchment.cli.main import run
code = run(sys.argv[1:])
print(" ".join(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def started(*arguments: str) -> tuple[str, set[str]]:
    """What a command writes, and what is imported when it has ended."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def own_parts(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("catchment.")}


@cache
def interpreter_packages() -> frozenset[str]:
    """What is imported before any program of ours."""
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return frozenset(packages(set(bare.stdout.split())))


def libraries(modules: set[str]) -> set[str]:
    """The packages that are neither ours nor Python's; what starts the interpreter itself is left out."""
    compiled = {"cython_runtime"} | {
        name for name in packages(modules) if name.startswith(("_cython", "_sysconfigdata"))
    }
    return packages(modules) - interpreter_packages() - sys.stdlib_module_names - {"catchment"} - compiled


@pytest.mark.process
@pytest.mark.parametrize("command", ALLOWED, ids=" ".join)
def test_a_command_imports_only_what_it_uses(catchment: Catchment, command: tuple[str, ...]) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    _, modules = started(*command)
    allowed_libraries, allowed_parts = ALLOWED[command]
    assert libraries(modules) - allowed_libraries == set()
    assert own_parts(modules) - allowed_parts == set()
    assert packages(modules) & SLOW == NEEDED.get(command[0], set())
    assert "rich.console" not in modules


@pytest.mark.process
def test_items_are_listed_without_loading_a_platform(catchment: Catchment) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    _, modules = started("items")
    assert {name for name in modules if name.startswith("catchment.platforms.")} == set()


@pytest.mark.process
def test_sources_are_listed_with_their_own_platform_only(catchment: Catchment) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    _, modules = started("sources", "list")
    loaded = {name.split(".")[2] for name in modules if name.startswith("catchment.platforms.")}
    assert loaded == {"_common", "feeds"}


@pytest.mark.process
def test_help_and_completion_load_no_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    help_text, with_help = started("--help")
    assert "Commands:" in help_text
    monkeypatch.setenv("_CATCHMENT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "catchment sou")
    monkeypatch.setenv("COMP_CWORD", "1")
    completed, with_completion = started()
    assert completed.split() == ["sources"]
    own = ("catchment.cli.commands", "catchment.store")
    assert {name for name in with_help | with_completion if name.startswith(own)} == set()


WITHOUT_CELERY = """
import sys

# As if they were not installed.
sys.modules.update(dict.fromkeys(("billiard", "celery", "kombu", "vine")))
import catchment.app
import catchment.engines.embedded
import catchment.web.server
from catchment.cli.main import commands, run
commands(is_loaded=True)
print(*(run([command]) for command in ("collect", "status", "worker", "beat")))
"""


def test_without_the_extra_of_workers_everything_else_works(home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_CELERY], capture_output=True, text=True, check=True)
    assert done.stderr.count("the distributed engine is not installed") == 2
    assert done.stdout.splitlines()[-1].split() == ["0", "0", "2", "2"]
