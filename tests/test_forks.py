"""Tests that are run by forks of the process that has loaded them (`pytest --forks N`)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {
    "test_a.py": """
        import os, warnings
        import pytest
        @pytest.fixture(scope="session")
        def server(tmp_path_factory):
            yield tmp_path_factory.mktemp("server")
            open(os.environ["ENDED"], "a").write("ended ")
        def test_passes(server, tmp_path): assert server.is_dir() and tmp_path.is_dir()
        def test_fails(server): print("its own words"); assert 1 == 2
        def test_warns(): warnings.warn("beware")
        """,
    "test_b.py": """
        import os
        def test_ends_its_process(): os._exit(3)
        """,
    "test_c.py": """
        import pytest
        @pytest.mark.parametrize("number", range(50))
        def test_is_one_of_many(number, tmp_path): assert not list(tmp_path.iterdir())
        def test_skips(): pytest.skip("not here")
        """,
}


@pytest.mark.process
def test_every_test_runs_once_and_a_process_that_dies_fails_its_test_alone(tmp_path: Path) -> None:
    for name, text in FILES.items():
        lines = [line.removeprefix(" " * 8) for line in text.splitlines()]
        (tmp_path / name).write_text("\n".join(lines))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n")
    ended = tmp_path / "ended"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "--forks", "2"],
        cwd=tmp_path,
        env={"ENDED": str(ended), "PATH": "", "PYTHONPATH": str(ROOT), "PYTEST_PLUGINS": "tests.forks"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(r"2 failed, 52 passed, 1 skipped, 1 warning in", ran.stdout), ran.stdout
    assert "its own words" in ran.stdout
    assert "the process that ran it ended with 3" in ran.stdout
    assert ended.read_text() == "ended "
