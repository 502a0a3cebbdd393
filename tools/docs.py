"""Writes the pages that are built from the code's own words: `make docs`. A test fails when one of them is behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from catchment.credentials.secret_store import declared
from catchment.model import Field
from catchment.platforms import Platforms
from catchment.settings import DEFINED, Setting
from catchment.settings.formats import line
from tools.commands import commands_page
from tools.errors import errors_page
from tools.http import api_page
from tools.platforms import ours, platforms_page

REPOSITORY = Path(__file__).parents[1]

SETTINGS_HEAD = """\
# Settings

<!-- Built by `make docs` from catchment/settings/table.py, and from what platforms declare; change it there. -->

A setting comes from the first of these that has it:

1. the environment of the process,
2. `.env` in the working folder: one `NAME=value` a line, with or without quotes,
3. `catchment.toml` in the working folder, or else in `CATCHMENT_HOME`. The names may be written in small letters, and
   tables are joined to their keys: `port` in the table `[catchment]` is `CATCHMENT_PORT`.

An empty value counts as none. A value that is not allowed is refused at the start, all of them together; a name that
looks like a setting and is none is warned of. `catchment doctor` shows what differs from the defaults.

Settings are read at the start. Those marked with * say what runs when: `serve`, `beat`, `worker` and `collect --loop`
apply a change in one of the files within a second or two, without a restart.
"""

ENV_HEAD = """\
# Copy this file to .env and take away the # before what you want to change.
# Built by `make docs` from catchment/settings/table.py; docs/settings.md says the same at more length.
"""


def settings_page() -> str:
    return SETTINGS_HEAD + "\n" + "\n".join(_table())


def _table() -> Iterator[str]:
    yield "| name | meaning | allowed | default |"
    yield "|---|---|---|---|"
    for setting in DEFINED.values():
        older = "".join(f", or the older `{name}`" for name in setting.older)
        live = " *" if setting.is_live else ""
        yield f"| `{setting.name}`{live}{older} | {setting.what} | {setting.format.allowed} | {_default(setting)} |"
    for field in _declared():
        yield f"| `{field.name}` | {field.what} | {line.allowed} | none |"
    yield ""


def _declared() -> list[Field]:
    """The settings that platforms declare, and that make a credential."""
    return [
        field for service in declared(Platforms(tuple(ours())).services.values()).values() for field in service.fields
    ]


def _default(setting: Setting) -> str:
    if setting.family:
        return "each one's own"
    return setting.default_words or (f"`{setting.shown_default()}`" if setting.shown_default() else "none")


def env_example() -> str:
    theirs = [f"# {field.what}\n# Allowed: {line.allowed}.\n#{field.name}=\n" for field in _declared()]
    return "\n".join([ENV_HEAD, *(_env_lines(setting) for setting in DEFINED.values()), *theirs])


def _env_lines(setting: Setting) -> str:
    default = "" if setting.default_words or setting.family else setting.shown_default()
    words = f" Default: {setting.default_words}." if setting.default_words else ""
    return f"# {setting.what}{words}\n# Allowed: {setting.format.allowed}.\n#{setting.name}={default}\n"


PAGES: dict[str, Callable[[], str]] = {
    "docs/settings.md": settings_page,
    "docs/commands.md": commands_page,
    "docs/api.md": api_page,
    "docs/platforms.md": platforms_page,
    "docs/errors.md": errors_page,
    ".env.example": env_example,
}
"""Every built page, by its path in the repository."""


def main() -> None:
    for path, page in PAGES.items():
        (REPOSITORY / path).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
