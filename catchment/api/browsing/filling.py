"""What people fill into forms: texts that become minutes, lists and settings; what is left empty is no word at all."""

from __future__ import annotations

from typing import Any

from catchment.api.browsing.readers import Form
from catchment.errors import InvalidInput
from catchment.model import Kind

SETTING = "set."
"""Before the name of a setting of the source's kind."""
_MOST_WORDS = 100
_LONGEST_WORD = 100


def minutes_from(text: str) -> int | None:
    """None: it is left to the kind."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise InvalidInput(f"{text[:50]!r} is not a number of minutes", "give a whole number, as 60", field="interval")
    return int(text)


def lines(text: str) -> list[str]:
    """What is separated by commas or line ends, each once."""
    words = [word.strip()[:_LONGEST_WORD] for word in text.replace("，", ",").replace("\n", ",").split(",")]
    return list(dict.fromkeys(word for word in words if word))[:_MOST_WORDS]


def settings_given(form: Form) -> dict[str, str]:
    return {name: value.strip() for name, value in form.starting(SETTING).items()}


def changed_settings(kind: Kind, given: dict[str, str]) -> dict[str, Any]:
    """What the settings of a source are to become: a field that was emptied goes back to its default."""
    names = {field.name for field in kind.fields}
    return {name: value or None for name, value in given.items() if name in names}


def new_settings(given: dict[str, str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value}
