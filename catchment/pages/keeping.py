"""What is kept ready for running: credentials, watches, settings. From what is known to HTML, and never a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from catchment.pages.showing import Reader, page, plain_error
from catchment.pages.words import Speech

_TONES = {
    "active": "good",
    "cooling": "warn",
    "probation": "warn",
    "banned": "bad",
    "invalid": "bad",
    "paused": "quiet",
}
_FORM = ("name", "words", "kind", "sources", "authors", "any", "edits")


# ── credentials ───────────────────────────────────────────────────────────────────────────────────────────────────


def credentials_page(reader: Reader, rows: Sequence[Mapping[str, Any]]) -> str:
    told = [_credential(reader.speech, one) for one in rows]
    pools = [(platform, list(many)) for platform, many in groupby(told, lambda one: one["platform"])]
    return page("credentials.html", reader, pools=pools)


def credential_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page(
        "credential.html", reader, one=_credential(reader.speech, found["one"]), changes=found["changes"], tones=_TONES
    )


def _credential(say: Speech, one: Mapping[str, Any]) -> dict[str, Any]:
    """How it stands, in a sentence."""
    if one["is_usable"]:
        ready = say("credential_ready")
    elif one["usable_from"]:
        ready = say("credential_ready_from", when=say.when(one["usable_from"]))
    else:
        ready = say("credential_not_ready")
    limit = one["daily_limit"]
    return {**one, "tone": _TONES[one["state"]], "ready": ready, "used": one["used_today"] / limit if limit else None}


# ── watches ───────────────────────────────────────────────────────────────────────────────────────────────────────


def watches_page(reader: Reader, found: Mapping[str, Any]) -> str:
    error = found["error"]
    return page(
        "watches.html",
        reader,
        found=found,
        rows=[{**one, "rule": rule(reader.speech, one)} for one in found["rows"]],
        values=dict.fromkeys(_FORM, "") | dict(found["values"]),
        error=str(error) if error else None,
        error_words=plain_error(reader.speech, error.code, None) if error else None,
        wrong_field=getattr(error, "field", None),
    )


def watch_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page("watch.html", reader, found=found, one=found["one"], rule=rule(reader.speech, found["one"]))


def rule(say: Speech, one: Mapping[str, Any]) -> str:
    """What a watch looks for, in a line."""
    words = (say("watch_or") if one["is_any_enough"] else " ").join(one["words"])
    parts = [
        words,
        say("watch_kinds", kinds=", ".join(say.named("kind", kind) for kind in one["kinds"])) if one["kinds"] else "",
        say("watch_sources", ids=", ".join(map(str, one["source_ids"]))) if one["source_ids"] else "",
        say("watch_authors", authors=", ".join(one["authors"])) if one["authors"] else "",
        say("watch_edits") if one["is_for_edits"] else "",
    ]
    return "; ".join(part for part in parts if part)


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def settings_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page("settings.html", reader, found=found)
