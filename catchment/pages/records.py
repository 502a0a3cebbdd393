"""What happened and what is open: runs, gaps, alerts. From what the store tells to HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from catchment.pages.live import live_told
from catchment.pages.showing import Reader, page, plain_error
from catchment.pages.words import Speech

_SEVERITIES = ("P0", "P1", "P2")
_TONES = {"P0": "bad", "P1": "bad", "P2": "warn"}
_PLACES = {
    "pool": "/credentials",
    "credential": "/credentials",
    "platform": "/sources?order=troubled",
    "collecting": "/runs",
}
"""Where one sees more of what an alert is about, by its first word."""


def runs_page(reader: Reader, found: Mapping[str, Any]) -> str:
    live = live_told(reader, found["live"]) if found["live"] else None
    return page("runs.html", reader, found=found, rows=found["rows"], live=live)


def run_page(reader: Reader, found: Mapping[str, Any]) -> str:
    """One run, and what became of each source in it."""
    return page("run.html", reader, found=found, run=found["run"], rows=results(reader.speech, found["rows"]))


def results(say: Speech, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Visits, each with what went wrong in the reader's language."""
    return [{**one, "plain": plain_error(say, one["error_code"], one["error"])} for one in rows]


def visits(say: Speech, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same of one source, newest first: what goes wrong again and again is said once."""
    told = results(say, rows)
    repeated = {id(older) for newer, older in pairwise(told) if newer["error_code"] == older["error_code"]}
    return [one | {"plain": None} if id(one) in repeated else one for one in told]


def gaps_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page("gaps.html", reader, found=found, rows=found["rows"])


# ── alerts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def alerts_page(reader: Reader, found: Mapping[str, Any]) -> str:
    say = reader.speech
    return page(
        "alerts.html",
        reader,
        found=found,
        rows=alarming(say, found["open"]),
        over=[told_alert(say, one) for one in found["closed"]],
    )


def alarming(say: Speech, alerts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Open alerts in the reader's words, the most urgent first."""
    return sorted((told_alert(say, one) for one in alerts), key=lambda one: _SEVERITIES.index(one["severity"]))


def told_alert(say: Speech, alert: Mapping[str, Any]) -> dict[str, Any]:
    """An alert: whom it is about, what is wrong and what helps in a sentence, and where to go."""
    first, *middle, last = alert["subject"].split()
    sort, name = f"{first} {last}", alert["source_name"]
    what = say.known("alert", sort) or say.known("alert", last)
    return {
        **alert,
        "name": name or _about(say, first, middle) if what else alert["subject"],
        "what": what or "",
        "helps": say.known("alert_helps", sort) or say.known("alert_helps", last),
        "href": f"/sources/{alert['source_id']}" if name else _PLACES.get(first),
        "detail": say.said(without_name(alert["message"], name, alert["source_id"])),
        "tone": _TONES[alert["severity"]],
    }


def _about(say: Speech, first: str, middle: Sequence[str]) -> str:
    """`platform reddit silent` is about Reddit, `reddit warm-up` about communities of Reddit."""
    name = " ".join(middle)
    if first in ("platform", "pool"):
        return say.named("platform", name)
    return name or say.known("kind", first) or ""


def without_name(words: str | None, name: str | None, source_id: int | None) -> str:
    """An error names the source that it is about; where the name stands above it already, once is enough."""
    return (words or "").removeprefix(f"{name} (source {source_id}): ")
