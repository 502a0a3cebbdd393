"""Sources: the list, one of them, following something new. From what the store tells to HTML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from catchment.collect.lateness import Lateness, Why
from catchment.model import PRIORITIES, Field, Kind
from catchment.pages import charts
from catchment.pages.reading import web_address
from catchment.pages.records import visits
from catchment.pages.showing import Reader, page, plain_error
from catchment.pages.words import Speech

TONES = {
    Why.PUNCTUAL: "good",
    Why.DUE: "good",
    Why.VISITING: "good",
    Why.FIRST: "quiet",
    Why.PAUSED: "quiet",
    Why.RETIRED: "quiet",
    Why.TOLD: "quiet",
    Why.SILENT: "warn",
    Why.NOBODY: "warn",
    Why.BUDGET: "warn",
    Why.CROWDED: "warn",
    Why.STUCK: "warn",
    Why.PROBATION: "bad",
    Why.FAILING: "bad",
}
_FORM = ("target", "name", "interval", "categories", "priority", "credential")
_FEW_FIELDS = 8
"""More than so many settings are folded away: most people need none of them."""
_DAYS = 7
_HOURS = 24


def sources_page(reader: Reader, found: Mapping[str, Any]) -> str:
    rows = [one | {"tone": TONES[one["why"]], "error": _error(one, reader.speech)} for one in found["rows"]]
    total = sum(count for state, count in found["counts"].items() if state != "removed")
    return page("sources.html", reader, found=found, rows=rows, total=total)


def _error(one: Mapping[str, Any], say: Speech) -> str | None:
    return plain_error(say, one["last_error_code"], one["last_error"]) if one["why"] in _IN_TROUBLE else None


_IN_TROUBLE = frozenset((Why.FAILING, Why.PROBATION, Why.TOLD))


# ── one source ────────────────────────────────────────────────────────────────────────────────────────────────────


def source_page(reader: Reader, known: Mapping[str, Any]) -> str:
    """One source: what it is, how it stands, when it is visited next and why, when it posts, what is missing."""
    say, source, kind, late = reader.speech, known["source"], known["kind"], known["late"]
    return page(
        "source.html",
        reader,
        known=known,
        source=source,
        kind=kind,
        url=web_address(source["target"]),
        tone=TONES[late.why],
        sentence=sentence(say, source, late, known),
        because=say.known("due", source["next_fetch_reason"]) or say.said(source["next_fetch_reason"]),
        error=plain_error(say, source["last_error_code"], source["last_error"]) if source["last_error"] else None,
        heat=heat(known["posted"], reader),
        calendar=calendar(known["coverage"]["calendar"], say),
        standings=_standings(known["coverage"]["seconds"]),
        runs=visits(say, known["runs"]),
        settings=differing(kind, source["settings"]),
        fields=_filled(kind, source["settings"]),
        priorities=PRIORITIES,
    )


def sentence(say: Speech, source: Mapping[str, Any], late: Lateness, known: Mapping[str, Any]) -> str:
    """Why it is late, or that it is not."""
    holder = known["holder"]
    return say(
        f"late_{late.why}",
        at=say.when(late.at.isoformat()) if late.at else "",
        exact=say.day_and_time(late.at.isoformat()) if late.at else "",
        reason=say.named("state_reason", source["state_reason"] or "") or "–",
        failures=say.number(source["failures_in_a_row"]),
        count=say.number(known["waiting_count"]),
        work=holder.work if holder else "",
        platform=say.named("platform", source["platform"]),
        until=say.day_and_time(late.until.isoformat()) if late.until else "",
        new=say.when(source["last_new_at"]),
    )


def heat(posted: Sequence[datetime], reader: Reader) -> charts.Heat | None:
    """How many of its newest items were posted in which hour of which weekday, in the reader's zone."""
    if len(posted) < 2:
        return None
    counts = Counter((at.weekday(), at.hour) for at in (one.astimezone(reader.tzinfo) for one in posted))
    say = reader.speech
    rows = [
        [
            (say("heat_cell", day=say(f"weekday_{day}"), hour=f"{hour:02}", count=counts[day, hour]), counts[day, hour])
            for hour in range(_HOURS)
        ]
        for day in range(_DAYS)
    ]
    return charts.heat(rows)


def calendar(days: Sequence[Mapping[str, Any]], say: Speech) -> charts.Calendar | None:
    """Day by day, in columns of weeks: how sure we are that nothing is missing."""
    if not days:
        return None
    told = {date.fromisoformat(one["day"]): one for one in days}
    first, last = min(told), max(told)
    start = first - timedelta(days=first.weekday())
    cells = []
    for number in range((last - start).days + 1):
        day = start + timedelta(days=number)
        if day in told:
            one = told[day]
            words = f"{day}: {say('standing_' + one['standing'])} ({one['share']:.0%})"
            cells.append(charts.Cell(number // _DAYS, number % _DAYS, one["standing"], words))
    return charts.calendar(cells, start, last)


def _standings(seconds: Mapping[str, int]) -> list[tuple[str, float]]:
    whole = sum(seconds.values()) or 1
    return [(name, count / whole) for name, count in seconds.items() if count]


def differing(kind: Kind | None, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The settings of a source that are not as its kind has them."""
    fields = {field.name: field for field in kind.fields} if kind else {}
    return [
        {
            "name": name,
            "value": _text(value),
            "default": _text(fields[name].default) if name in fields else "",
            "what": fields[name].what if name in fields else "",
        }
        for name, value in settings.items()
        if name not in fields or value != fields[name].default
    ]


# ── following something new ───────────────────────────────────────────────────────────────────────────────────────


def choose_kind_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page("choose_kind.html", reader, found=found)


def add_source_page(reader: Reader, found: Mapping[str, Any]) -> str:
    """The form of a kind, as it was filled in; what is wrong with it; and what a first visit would bring."""
    error, values, prefix = found["error"], found["values"], found["prefix"]
    given = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    fields = _filled(found["kind"], given)
    return page(
        "add_source.html",
        reader,
        found=found,
        kind=found["kind"],
        values=dict.fromkeys(_FORM, "") | values,
        fields=fields,
        is_folded=len(fields) > _FEW_FIELDS and not any(one["value"] for one in fields),
        priorities=PRIORITIES,
        error=str(error) if error else None,
        error_words=plain_error(reader.speech, error.code, None) if error else None,
        wrong_field=getattr(error, "field", None),
        items=[_previewed(one) for one in found["preview"]["items"]] if found["preview"] else [],
    )


def _filled(kind: Kind | None, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The settings of a kind as parts of a form."""
    return [_part(field, given.get(field.name)) for field in (kind.fields if kind else ())]


def _part(field: Field, value: Any) -> dict[str, Any]:
    is_truth = isinstance(field.default, bool)
    return {
        "name": field.name,
        "what": field.what,
        "value": _text(value),
        "default": _text(field.default),
        "choices": field.choices or (("true", "false") if is_truth else ()),
        "is_number": field.minimum is not None or field.maximum is not None,
        "minimum": field.minimum,
        "maximum": field.maximum,
    }


def _text(value: Any) -> str:
    """A setting as a person would type it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _previewed(item: Mapping[str, Any]) -> dict[str, Any]:
    text = " ".join((item.get("text") or "").split())
    return {
        "title": item.get("title") or text[:120],
        "excerpt": text[:200] if item.get("title") else "",
        "author": item.get("author_display_name") or item.get("author"),
        "at": item.get("created_at"),
        "url": web_address(item.get("url")) or web_address(item.get("target_url")),
    }


def import_page(reader: Reader, found: Mapping[str, Any]) -> str:
    return page("import.html", reader, found=found, done=found["done"], error=found["error"])
