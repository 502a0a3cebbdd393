"""From what is known to HTML. Everything that came from outside is escaped by the templates, always."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from catchment.pages.words import LANGUAGES, Speech

STYLE = (files(__package__) / "style.css").read_bytes()
STYLE_PATH = f"/style-{hashlib.sha256(STYLE).hexdigest()[:12]}.css"
"""Changes with its contents: browsers may keep it for ever."""

_EXCERPT = 140
_SHOWN = 8
"""Of each list of troubles; the rest is counted."""

_templates = Environment(
    loader=PackageLoader(__package__, ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def start(known: Mapping[str, Any], language: str, now: datetime) -> str:
    """The start page: what runs, what came in, what needs a look; or how to begin."""
    # A failing source with an alert is one thing to look at, not two.
    alarmed = {alert["source_id"] for alert in known["alerts"]}
    quiet = [source for source in known["failing"] if source["id"] not in alarmed]
    quiet_count = known["failing_count"] - len(known["failing"]) + len(quiet)
    job_count = sum(1 for job in known["jobs"] if job["is_late"] or job["last_error"])
    return _page(
        "start.html",
        Speech(language, now),
        known=known,
        troubles=len(known["alerts"]) + quiet_count + known["gap_count"] + job_count,
        failing=quiet[:_SHOWN],
        failing_count=quiet_count,
        is_empty=not sum(known["sources"].values()) and not known["item_count"],
        headlines=[headline(item) for item in known["items"]],
        shown=_SHOWN,
        without_name=without_name,
    )


def without_name(words: str | None, name: str | None, source_id: int | None) -> str:
    """An error names the source that it is about; where the name stands above it already, once is enough."""
    return (words or "").removeprefix(f"{name} (source {source_id}): ")


def headline(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item in one line; its address only if it is one that a browser may be sent to."""
    text = item["title"] or " ".join((item["text"] or "")[: _EXCERPT * 4].split())
    url = item["url"] or item["target_url"] or ""
    return {
        "text": text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}…",
        "url": url if url.startswith(("http://", "https://")) else None,
        "source": item["source_name"] or item["platform"],
        "at": item["ordered_at"],
        "edits": item["version"] - 1,
    }


def way_in(language: str, *, is_link_wrong: bool = False) -> str:
    """How to get in."""
    return _page("way_in.html", Speech(language), is_link_wrong=is_link_wrong)


def failure(status: int, message: str, request_id: str, language: str) -> str:
    speech = Speech(language)
    return _page("failure.html", speech, is_missing=status == 404, message=message, request_id=request_id)


def _page(template: str, speech: Speech, **values: Any) -> str:
    return _templates.get_template(template).render(**values, say=speech, languages=LANGUAGES, style_path=STYLE_PATH)
