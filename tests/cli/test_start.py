"""Commands start fast: each loads its own module, and no library that it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Catchment

HEAVY = {
    "alembic",
    "celery",
    "cryptography",
    "fastapi",
    "feedparser",
    "pyarrow",
    "pycurl",
    "pydantic",
    "rich.console",
    "structlog",
    "trafilatura",
    "uvicorn",
}
"""Libraries that take long to import, and that a command which lists what is stored never needs."""

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


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    [
        ("items",),
        ("items", "--json"),
        ("items", "--source", "1"),
        ("sources", "list"),
        ("sources", "show", "1"),
        ("search", "tide"),
        ("changes",),
        ("gaps",),
        ("alerts",),
        ("watches", "list"),
    ],
    ids=" ".join,
)
def test_a_command_that_lists_loads_no_heavy_library(catchment: Catchment, command: tuple[str, ...]) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    _, modules = started(*command)
    assert HEAVY & modules == set()


@pytest.mark.process
def test_items_are_listed_without_loading_a_platform(catchment: Catchment) -> None:
    catchment("sources", "add", "rss", "https://a.example/feed")
    _, modules = started("items")
    assert {name for name in modules if name.startswith(("catchment.platforms.", "lxml"))} == set()


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
