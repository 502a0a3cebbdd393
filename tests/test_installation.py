"""The command that a reader can type, and the optional packages that a message asks for."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from catchment import installation
from catchment.installation import as_typed, command, typed_command


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A virtual environment's script, in a folder of its own."""
    script = tmp_path / "project/.venv/bin/catchment"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script


def test_a_command_that_the_shell_finds_is_called_by_its_name(started: Path, tmp_path: Path) -> None:
    assert typed_command(str(started), tmp_path, str(started.parent)) == "catchment"


def test_a_command_that_the_shell_does_not_find_is_called_by_its_path(started: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    assert typed_command(str(started), project, "/usr/bin") == ".venv/bin/catchment"
    assert typed_command(os.path.relpath(started, project), project, "/usr/bin") in (".venv/bin/catchment", "catchment")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert typed_command(str(started), elsewhere, "/usr/bin") == str(started)


def test_another_command_of_that_name_is_not_taken_for_ours(started: Path, tmp_path: Path) -> None:
    other = tmp_path / "bin/catchment"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    assert typed_command(str(started), tmp_path / "project", str(other.parent)) == ".venv/bin/catchment"


def test_a_module_that_python_runs_is_called_through_that_python(tmp_path: Path) -> None:
    assert typed_command("/somewhere/catchment/__main__.py", tmp_path, None) == f"{sys.executable} -m catchment"


def test_only_commands_between_ticks_are_changed(started: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(started)])
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(started.parents[2])
    command.cache_clear()
    try:
        assert as_typed("catchment keeps items: `catchment items` lists them") == (
            "catchment keeps items: `.venv/bin/catchment items` lists them"
        )
    finally:
        command.cache_clear()


@pytest.mark.parametrize("extra", installation.PACKAGES)
def test_the_command_installs_the_extras_package_into_the_environment_that_runs_this(extra: str) -> None:
    python, *pip, requirement = shlex.split(installation.install_command(extra))
    assert (python, pip) == (sys.executable, ["-m", "pip", "install"])
    assert requirement.startswith(installation.PACKAGES[extra])
    assert "<" in requirement, "the versions that pyproject.toml asks for"


@pytest.mark.parametrize("extra", installation.PACKAGES)
def test_in_an_environment_of_pipx_the_command_is_one_of_pipx(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    pipx, inject, name, requirement = shlex.split(installation.install_command(extra))
    assert (pipx, inject, name) == ("pipx", "inject", "catchment")
    assert requirement.startswith(installation.PACKAGES[extra])
