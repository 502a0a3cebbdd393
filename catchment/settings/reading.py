"""From what is written down to `Settings`.

A value comes from the first of these that has it: the environment of the process, `.env` in the working folder,
`catchment.toml` there, `catchment.toml` in CATCHMENT_HOME. An empty value counts as none.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from catchment.errors import BadSetting
from catchment.settings import files
from catchment.settings.forms import line
from catchment.settings.table import DEFINED, Setting, Settings, without_password

OURS = ("CATCHMENT_", "COLLECTOR_", "FETCH_INTERVAL_")
"""A variable that begins so and is no setting is most likely a slip of the pen, and is warned of."""


class Given(NamedTuple):
    """A value as somebody wrote it, and where."""

    text: str
    origin: str


def read_settings(
    environ: Mapping[str, str],
    folder: Path,
    *,
    kinds: Collection[str] | None = None,
    platforms: Collection[str] | None = None,
    jobs: Collection[str] | None = None,
    declared: Collection[str] = (),
) -> Settings:
    """The settings of a process with this environment, started in this folder.

    Kinds, platforms and jobs are those of the installation: a setting about another one is warned of and left out.
    None: not known here, so anything goes. `declared` are the names that platforms declare beside ours. Raises
    BadSetting once, with everything that cannot be used.
    """
    known = {"kind": kinds, "platform": platforms, "job": jobs}
    given, warnings = _gather(environ, folder, lambda name: name in declared or _is_ours(name, known))
    theirs = {name: given.pop(name) for name in declared if name in given}
    strangers = {name: why for name in given if (why := _why_not_ours(name, given[name], known))}
    problems: list[str] = []
    values: dict[str, Any] = {"home": default_home(environ)}
    for attribute, setting in DEFINED.items():
        names = [name for name in _speaking(setting, given) if name not in strangers]
        read = {setting.member(name): _read(setting, name, given[name], problems) for name in names}
        if read:
            values[attribute] = read if setting.family else read[None]
    problems += [
        f"{name} ({one.origin}): its value is not {line.allowed}"
        for name, one in theirs.items()
        if not one.text.isprintable()
    ]
    if problems:
        raise _refusal(problems)
    values["home"] = folder / values["home"]
    origins = {name: one.origin for name, one in (given | theirs).items() if name not in strangers}
    settings = Settings(
        **values,
        declared={name: one.text for name, one in theirs.items()},
        warnings=(*warnings, *strangers.values()),
        origins=origins,
    )
    if wrong := settings.contradictions():
        raise _refusal(wrong)
    return settings


def default_home(environ: Mapping[str, str], system: str = sys.platform) -> Path:
    """Where the platform's own rule puts data."""
    if environ.get("XDG_DATA_HOME"):
        return Path(environ["XDG_DATA_HOME"]) / "catchment"
    user = Path(environ.get("HOME") or Path.home())
    if system == "darwin":
        return user / "Library" / "Application Support" / "catchment"
    return user / ".local" / "share" / "catchment"


def _speaking(setting: Setting, given: Mapping[str, Given]) -> list[str]:
    """Which of the given variables speak for a setting: of its own name and the older ones, the first."""
    if setting.family:
        return [name for name in given if owner_of(name) is setting]
    return [name for name in (setting.name, *setting.older) if name in given][:1]


def owner_of(name: str) -> Setting | None:
    """The setting that a variable is about. A setting's whole name goes before a family's pattern."""
    owners = [setting for setting in DEFINED.values() if setting.owns(name)]
    return min(owners, key=lambda setting: setting.family is not None, default=None)


def _read(setting: Setting, name: str, one: Given, problems: list[str]) -> Any:
    try:
        return setting.form.read(one.text)
    except ValueError:
        shown = "its value" if setting.is_secret else repr(without_password(one.text))
        problems.append(f"{name} ({one.origin}): {shown} is not {setting.form.allowed}")
        return None


def _refusal(problems: list[str]) -> BadSetting:
    if len(problems) == 1:
        return BadSetting(problems[0], field=problems[0].split(" ", 1)[0])
    return BadSetting("\n".join([f"{len(problems)} settings cannot be used:", *problems]))


def _why_not_ours(name: str, one: Given, known: Mapping[str, Collection[str] | None]) -> str:
    """What is to be said about a variable that looks like a setting and is none; empty: it is one."""
    owner = owner_of(name)
    if owner is None:
        near = difflib.get_close_matches(name, [setting.name for setting in DEFINED.values()], n=1, cutoff=0.8)
        return f"{name} ({one.origin}) is not a setting" + (f"; did you mean {near[0]}?" if near else "")
    choices = known[owner.family] if owner.family else None
    if choices is None or owner.member(name) in choices:
        return ""
    return f"{name} ({one.origin}): no {owner.family} of this name; known: {', '.join(sorted(choices))}"


def _gather(
    environ: Mapping[str, str], folder: Path, is_ours: Callable[[str], bool]
) -> tuple[dict[str, Given], list[str]]:
    """Every given value that is ours, the first place that has it winning; and what is odd about the files."""
    written, warnings = files.dotenv(folder / ".env")
    here = _given(files.toml(folder / "catchment.toml"), "catchment.toml")
    shared = _given(written, ".env") | _given(environ, "environment")
    given = here | {name: one for name, one in shared.items() if is_ours(name)}
    home = Path(given["CATCHMENT_HOME"].text).expanduser() if "CATCHMENT_HOME" in given else default_home(environ)
    at_home = _given(files.toml(folder / home / "catchment.toml"), "catchment.toml in CATCHMENT_HOME")
    # A file cannot move the folder that it was found in.
    at_home.pop("CATCHMENT_HOME", None)
    return at_home | given, warnings


def _given(variables: Mapping[str, str], origin: str) -> dict[str, Given]:
    return {name.upper(): Given(text.strip(), origin) for name, text in variables.items() if text.strip()}


def _is_ours(name: str, known: Mapping[str, Collection[str] | None]) -> bool:
    """Whether it is a setting, or looks like one: many others share the environment and `.env` with us."""
    owner = owner_of(name)
    if owner is None or not owner.is_anybodys:
        return owner is not None or name.startswith(OURS)
    # A rate limit of something that is no platform here is somebody else's.
    return owner.member(name) in (known[owner.family or ""] or ())
