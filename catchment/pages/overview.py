"""The start page: what runs, what came in, what needs a look; or how to begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.pages.reading import headline
from catchment.pages.records import without_name
from catchment.pages.showing import Reader, page

_SHOWN = 8
"""Of each list of troubles; the rest is counted."""


def start(known: Mapping[str, Any], reader: Reader) -> str:
    # A failing source with an alert is one thing to look at, not two.
    alarmed = {alert["source_id"] for alert in known["alerts"]}
    quiet = [source for source in known["failing"] if source["id"] not in alarmed]
    quiet_count = known["failing_count"] - len(known["failing"]) + len(quiet)
    job_count = sum(1 for job in known["jobs"] if job["is_late"] or job["last_error"])
    return page(
        "start.html",
        reader,
        known=known,
        troubles=len(known["alerts"]) + quiet_count + known["gap_count"] + job_count,
        failing=quiet[:_SHOWN],
        failing_count=quiet_count,
        is_empty=not sum(known["sources"].values()) and not known["item_count"],
        headlines=[headline(item, item["source_name"]) for item in known["items"]],
        shown=_SHOWN,
        without_name=without_name,
    )
