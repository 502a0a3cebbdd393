"""How this installation is used: the command as a user can type it, and the extras that are or can be installed.

Messages quote commands in backticks, always as `catchment …`; code that shows a message passes it through `as_typed`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

NAME = "catchment"


def typed_command(started_as: str, folder: Path, search_path: str | None) -> str:
    """The command for a shell in that folder. `started_as`: the first word of this process's command line."""
    started = Path(started_as)
    if started.name == "__main__.py" and started.parent.name == NAME:
        return f"{shlex.quote(_short(Path(sys.executable), folder))} -m {NAME}"
    if started.name != NAME or not started.is_file():
        # Started by something else, such as a test or a server: nothing better is known.
        return NAME
    path = shutil.which(NAME, path=search_path)
    if path is not None and Path(path).samefile(started):
        return NAME
    return shlex.quote(_short(started, folder))


def _short(path: Path, folder: Path) -> str:
    """The path relative to the folder, if it is below it."""
    # Not resolved: the interpreter of a virtual environment is a link to one outside.
    path = Path(os.path.normpath(folder / path))
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


@cache
def command() -> str:
    """The command of this process. Computed once: a later change of folder does not change how it was started."""
    return typed_command(sys.argv[0], Path.cwd(), os.environ.get("PATH"))


def as_typed(text: str) -> str:
    """The text with its commands in the form in which the user can type them."""
    return text.replace(f"`{NAME} ", f"`{command()} ") if command() != NAME else text


PACKAGES = {
    "distributed": "celery",
    "notify": "apprise",
    "parquet": "pyarrow",
    "postgres": "psycopg",
    "redis": "redis",
}
"""The package that an extra installs, by the extra's name."""


def is_installed(extra: str) -> bool:
    return find_spec(PACKAGES[extra]) is not None


def install_command(extra: str) -> str:
    """The command that installs the extra's package into the environment of this program."""
    requirement = shlex.quote(_requirement(extra))
    # pipx leaves this file in environments that it creates. pip works in them as well, but pipx would not know about
    # it.
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f"pipx inject catchment {requirement}"
    return f"{shlex.quote(sys.executable)} -m pip install {requirement}"


def _requirement(extra: str) -> str:
    """With the version range that our own package declares, if it is installed."""
    from importlib.metadata import PackageNotFoundError, requires  # slow to import, and hardly ever needed

    package = PACKAGES[extra]
    try:
        requirements = requires("catchment") or []
    except PackageNotFoundError:
        requirements = []
    parts = (line.partition(";") for line in requirements)
    return next(
        (name.strip() for name, _, marker in parts if f"extra == '{extra}'" in marker.replace('"', "'")), package
    )
