"""What is running at this moment: as a page shows it at first, and as it is told while it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.pages.showing import Reader, plain_error
from catchment.pages.words import Speech


def live_told(reader: Reader, seen: Mapping[str, Any]) -> dict[str, Any]:
    """In the reader's words, ready to be put in its place: texts and addresses of ours, no markup."""
    say = reader.speech
    count = seen["visit_count"]
    return {
        "said": say.counted("live_visits", count) if count else say("live_none"),
        "visits": [_visit(say, one) for one in seen["visits"]],
        "results": [_result(say, one) for one in seen["results"]],
    }


def _visit(say: Speech, one: Mapping[str, Any]) -> dict[str, str]:
    words = say("live_since", when=say.when(one["taken_at"]))
    if one["new_count"]:
        words += f" · {say.counted('live_new', one['new_count'])}"
    return {"name": one["source_name"], "href": f"/sources/{one['source_id']}", "words": words, "tone": "live"}


def _result(say: Speech, one: Mapping[str, Any]) -> dict[str, str]:
    if one["outcome"] == "failed":
        words, tone = plain_error(say, one["error_code"], one["error"]) or say("outcome:failed"), "bad"
    elif one["new_count"]:
        words, tone = say.counted("live_new", one["new_count"]), "good"
    else:
        words, tone = say.named("outcome", one["outcome"]), "quiet"
    words = f"{words} · {say.when(one['finished_at'])}"
    return {"name": one["source_name"], "href": f"/sources/{one['source_id']}", "words": words, "tone": tone}
