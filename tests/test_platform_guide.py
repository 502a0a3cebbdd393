"""The platform in docs/adding-a-platform.md is clean, typed, follows the protocol and passes its own case."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from catchment.errors import SlowDown, Unreadable
from catchment.model import Answer, Request
from catchment.platforms import protocol_faults
from tests.platforms.cases import Case

REPOSITORY = Path(__file__).parents[1]
GUIDE = (REPOSITORY / "docs" / "adding-a-platform.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
BODY, EXPECTED = re.findall(r"^```json\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def wall() -> Iterator[Any]:
    module = ModuleType("wall")
    # msgspec looks up the types of a record in its module.
    sys.modules["wall"] = module
    exec(compile(CODE, "docs/adding-a-platform.md", "exec"), module.__dict__)
    yield module
    del sys.modules["wall"]


@pytest.mark.process
@pytest.mark.parametrize("tool", [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)], ids=" ".join)
def test_the_example_is_as_clean_as_our_own_code(tmp_path: Path, tool: tuple[str, ...]) -> None:
    module, settings = tmp_path / "wall.py", REPOSITORY / "pyproject.toml"
    module.write_text(CODE, encoding="utf-8")
    option = "--config-file" if tool[0] == "mypy" else "--config"
    command = [sys.executable, "-m", *tool, option, str(settings), str(module)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_follows_the_protocol(wall: Any) -> None:
    assert protocol_faults(wall) == []
    address = wall.understand(wall.KINDS[0].example).address
    assert wall.understand(address).address == address


def test_the_case_of_the_example_passes_and_is_what_the_tool_writes(wall: Any, tmp_path: Path) -> None:
    case = Case(tmp_path / "notes.json", wall)
    case.path.write_text(BODY)
    case.beside.write_text(EXPECTED)
    case.check()
    case.write()
    assert case.beside.read_text() == EXPECTED


def test_the_example_refuses_what_is_no_page_of_its_own(wall: Any) -> None:
    request = Request(url="https://wall.example/api/harbour")

    def answer(body: bytes) -> Answer:
        return Answer(200, {}, body, request.url, datetime(2026, 1, 1, tzinfo=UTC))

    for body in (b"", b"null", b"<html>", b"[" * 50_000):
        assert wall.refusal(answer(body), request) is None
        with pytest.raises(Unreadable):
            wall.read(answer(body), request)
    assert isinstance(wall.refusal(answer(json.dumps({"error": "busy"}).encode()), request).error, SlowDown)
