"""The two files that settings may stand in: `.env` and `catchment.toml`. Both give plain names and texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from catchment.errors import BadSetting

LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)")
QUOTED = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?""")
ESCAPES = {"n": "\n", "t": "\t"}


def dotenv(file: Path) -> tuple[dict[str, str], list[str]]:
    """The variables of a `.env` file; a line that is none is warned of by its number: it may hold a secret."""
    found: dict[str, str] = {}
    warnings = []
    for count, text in enumerate(_text(file).splitlines(), start=1):
        match = LINE.fullmatch(text.strip())
        value = _dotenv_value(match[2]) if match else None
        if match and value is not None:
            found[match[1]] = value
        elif text.strip() and not text.strip().startswith("#"):
            warnings.append(f".env, line {count}: not of the form NAME=VALUE; left out")
    return found, warnings


def _dotenv_value(text: str) -> str | None:
    """The value behind the equals sign; None: its quotes do not close."""
    if not text.strip().startswith(("'", '"')):
        return re.split(r"\s#", text, maxsplit=1)[0].strip()
    quoted = QUOTED.fullmatch(text.strip())
    if quoted is None:
        return None
    if quoted[1] is not None:
        return quoted[1]
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), quoted[2])


def toml(file: Path) -> dict[str, str]:
    """The settings of a `catchment.toml`. All that is in it is meant for us, so nothing is passed over."""
    try:
        table = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{file} is not TOML: {error}") from None
    return dict(_flat(table, file))


def _flat(table: Mapping[str, Any], file: Path, before: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, tables joined to their keys: [catchment] port = 1 is CATCHMENT_PORT."""
    for key, value in table.items():
        name = before + key.upper().replace("-", "_")
        if isinstance(value, dict):
            yield from _flat(value, file, f"{name}_")
        else:
            yield name, _toml_text(value, name, file)


def _toml_text(value: Any, name: str, file: Path) -> str:
    if isinstance(value, list):
        return ",".join(_toml_text(one, name, file) for one in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise BadSetting(f"{name} ({file.name}): is neither text nor number, truth nor a list of these", field=name)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file} cannot be read: {error}") from None
