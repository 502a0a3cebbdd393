"""Loads `Settings` from the environment and files.

A value comes from the first of these that has it: the environment of the process, `.env` in the working folder,
`catchment.toml` there, `catchment.toml` in CATCHMENT_HOME. An empty value counts as none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from catchment.errors import BadSetting
from catchment.lazy import lazy_imports, pattern
from catchment.settings.formats import line
from catchment.settings.table import DEFINED, Setting, Settings, without_password

with lazy_imports():
    import difflib
    import tomllib

LINE = pattern(r"(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)")
QUOTED = pattern(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?""")
ESCAPES = {"n": "\n", "t": "\t"}


def dotenv(file: Path) -> tuple[dict[str, str], list[str]]:
    """The variables of a `.env` file. A line that is not an assignment gets a warning with its number only: it may
    contain a secret."""
    variables: dict[str, str] = {}
    warnings = []
    for count, text in enumerate(_text(file).splitlines(), start=1):
        match = LINE.fullmatch(text.strip())
        value = _dotenv_value(match[2]) if match else None
        if match and value is not None:
            variables[match[1]] = value
        elif text.strip() and not text.strip().startswith("#"):
            warnings.append(f".env, line {count}: not of the form NAME=VALUE; left out")
    return variables, warnings


def _dotenv_value(text: str) -> str | None:
    """The value after the equals sign; None if its quotes do not close."""
    if not text.strip().startswith(("'", '"')):
        return re.split(r"\s#", text, maxsplit=1)[0].strip()
    quoted = QUOTED.fullmatch(text.strip())
    if quoted is None:
        return None
    if quoted[1] is not None:
        return quoted[1]
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), quoted[2])


def toml(file: Path) -> dict[str, str]:
    """The settings of a `catchment.toml`. The whole file is meant for catchment, so nothing is ignored."""
    if not (text := _text(file)):
        return {}
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line \d+, column \d+", str(error))
        what = "{file} is not TOML: see {at}" if at else "{file} is not TOML"
        raise BadSetting(what, file=str(file), at=at[0] if at else None) from None
    return dict(_flat(table, file))


def _flat(table: Mapping[str, Any], file: Path, before: str = "") -> Iterator[tuple[str, str]]:
    """Names and values; tables are joined to their keys: [catchment] port = 1 is CATCHMENT_PORT."""
    for key, value in table.items():
        name = before + key.upper().replace("-", "_")
        if isinstance(value, dict):
            yield from _flat(value, file, f"{name}_")
        else:
            yield name, _toml_text(value, name, file)


def _toml_text(value: Any, name: str, file: Path) -> str:
    if isinstance(value, list):
        return ",".join(_toml_text(item, name, file) for item in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise BadSetting(
        "{name} ({file}) is not a text, a number, a boolean or a list of these", field=name, name=name, file=file.name
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise BadSetting("{file} cannot be read: {why}", file=str(file), why=error.strerror) from None
    except UnicodeDecodeError:
        raise BadSetting("{file} cannot be read: it is not UTF-8", file=str(file)) from None


OURS = (
    *("CATCHMENT_", "COLLECTOR_", "FETCH_INTERVAL_"),
    *("CRAWLER_", "MONITOR_", "HOT_CACHE_", "XHS_", "SCRAPER_", "CELERY_"),
)
"""A variable with one of these prefixes that is not a setting has no effect and causes a warning: it may be misspelt,
or belong to a part that this version does not have."""
_NEAR = 0.8
"""Similarity from which one name is probably a misspelling of the other."""


class GivenValue(NamedTuple):
    """A value as written, and where it was written."""

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

    Kinds, platforms and jobs are those of the installation: a setting for another one is ignored with a warning. None:
    not known here, so any name is accepted. `declared` are the names that platforms declare in addition to ours. Raises
    BadSetting once, with every problem.
    """
    known = {"kind": kinds, "platform": platforms, "job": jobs}
    names = _names(known, declared)
    alike = _by_prefix(names)
    variables, warnings, files = _gather(environ, folder, lambda name: name in declared or _is_ours(name, known, alike))
    theirs = {name: variables.pop(name) for name in declared if name in variables}
    strangers = {name: why for name in variables if (why := _why_not_ours(name, variables[name], known, names))}
    problems: list[str] = []
    values: dict[str, Any] = {"home": default_home(environ)}
    for attribute, setting in DEFINED.items():
        names = [name for name in _speaking(setting, variables) if name not in strangers]
        read = {setting.member(name): _read(setting, name, variables[name], problems) for name in names}
        if read:
            values[attribute] = read if setting.family else read[None]
    problems += [
        f"{name} ({given_value.origin}): its value is not {line.allowed}"
        for name, given_value in theirs.items()
        if not given_value.text.isprintable()
    ]
    if problems:
        raise _refusal(problems)
    values["home"] = folder / values["home"]
    origins = {name: given_value.origin for name, given_value in (variables | theirs).items() if name not in strangers}
    settings = Settings(
        **values,
        declared={name: given_value.text for name, given_value in theirs.items()},
        warnings=(*warnings, *strangers.values()),
        origins=origins,
        files=files,
        read_again=partial(
            read_settings, environ, folder, kinds=kinds, platforms=platforms, jobs=jobs, declared=declared
        ),
    )
    if wrong := settings.contradictions():
        raise _refusal(wrong)
    return settings


def default_home(environ: Mapping[str, str], system: str = sys.platform) -> Path:
    """The data folder by the operating system's convention."""
    if environ.get("XDG_DATA_HOME"):
        return Path(environ["XDG_DATA_HOME"]) / "catchment"
    user = Path(environ.get("HOME") or Path.home())
    if system == "darwin":
        return user / "Library" / "Application Support" / "catchment"
    return user / ".local" / "share" / "catchment"


def _speaking(setting: Setting, variables: Mapping[str, GivenValue]) -> list[str]:
    """The given variables that set a setting: of its name and its older names, the first that is given."""
    if setting.family:
        return [name for name in variables if owner_of(name) is setting]
    return [name for name in (setting.name, *setting.older) if name in variables][:1]


_BY_NAME = {name: setting for setting in DEFINED.values() for name in (setting.name, *setting.older)}
_FAMILIES = [setting for setting in DEFINED.values() if setting.family]


@lru_cache
def owner_of(name: str) -> Setting | None:
    """The setting that a variable belongs to. A setting's full name takes precedence over a family's pattern."""
    return _BY_NAME.get(name) or next((family for family in _FAMILIES if family.member(name) is not None), None)


def _read(setting: Setting, name: str, variable: GivenValue, problems: list[str]) -> Any:
    try:
        return setting.format.read(variable.text)
    except ValueError:
        shown = "its value" if setting.is_secret else repr(without_password(variable.text))
        problems.append(f"{name} ({variable.origin}): {shown} is not {setting.format.allowed}")
        return None


def _refusal(problems: list[str]) -> BadSetting:
    if len(problems) == 1:
        return BadSetting(problems[0], field=problems[0].split(" ", 1)[0])
    return BadSetting("\n".join([f"{len(problems)} settings cannot be used:", *problems]))


def _why_not_ours(
    name: str, variable: GivenValue, known: Mapping[str, Collection[str] | None], names: Collection[str]
) -> str:
    """The warning for a variable that looks like a setting but is not; empty if it is one."""
    owner = owner_of(name)
    if owner is None:
        near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
        return f"{name} ({variable.origin}) is not a setting" + (f"; did you mean {near[0]}?" if near else "")
    choices = known[owner.family] if owner.family else None
    if choices is None or owner.member(name) in choices:
        return ""
    return f"{name} ({variable.origin}): no {owner.family} of this name; known: {', '.join(sorted(choices))}"


def _names(known: Mapping[str, Collection[str] | None], declared: Collection[str]) -> list[str]:
    """All names that a setting can have in this installation."""
    own = [setting.name for setting in DEFINED.values() if setting.family is None]
    of_families = [
        setting.variable(member)
        for setting in DEFINED.values()
        if setting.family is not None
        for member in known[setting.family] or ()
    ]
    return [*own, *of_families, *declared]


def _by_prefix(names: Collection[str]) -> dict[str, list[str]]:
    """The names by what they have before the first underscore."""
    by_prefix: dict[str, list[str]] = {}
    for name in names:
        by_prefix.setdefault(name.partition("_")[0], []).append(name)
    return by_prefix


def _gather(
    environ: Mapping[str, str], folder: Path, is_ours: Callable[[str], bool]
) -> tuple[dict[str, GivenValue], list[str], tuple[Path, ...]]:
    """Every given value that is ours, from the first place that has it; warnings about the files; and the files."""
    files = [folder / ".env", folder / "catchment.toml"]
    written, warnings = dotenv(files[0])
    local = _given(toml(files[1]), "catchment.toml")
    shared = _given(written, ".env") | _given(environ, "environment")
    variables = local | {name: given_value for name, given_value in shared.items() if is_ours(name)}
    home = (
        Path(variables["CATCHMENT_HOME"].text).expanduser() if "CATCHMENT_HOME" in variables else default_home(environ)
    )
    files.append(folder / home / "catchment.toml")
    at_home = _given(toml(files[2]), "catchment.toml in CATCHMENT_HOME")
    # A file cannot move the folder that it was found in.
    at_home.pop("CATCHMENT_HOME", None)
    return at_home | variables, warnings, tuple(files)


def _given(variables: Mapping[str, str], origin: str) -> dict[str, GivenValue]:
    return {name.upper(): GivenValue(text.strip(), origin) for name, text in variables.items() if text.strip()}


def _is_ours(name: str, known: Mapping[str, Collection[str] | None], alike: Mapping[str, Collection[str]]) -> bool:
    """Whether it is a setting or looks like one: other programs share the environment and `.env` with us."""
    owner = owner_of(name)
    if owner is not None and owner.is_anybodys:
        # A rate limit for an unknown platform belongs to another program, unless the name resembles one of our
        # platforms.
        choices = known[owner.family or ""] or ()
        return bool(difflib.get_close_matches(owner.member(name) or "", choices, n=1, cutoff=_NEAR))
    if owner is not None or name.startswith(OURS):
        return True
    # Other programs have names with the same prefix as ours: GITHUB_TOKEN. Very similar names are meant for us.
    return bool(difflib.get_close_matches(name, alike.get(name.partition("_")[0], ()), n=1, cutoff=_NEAR))
