"""Sources: the list, one of them with all that is known of its visits, and what a person may do with it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from catchment import pages
from catchment.api.browsing.filling import changed_settings, lines, minutes_from, settings_given
from catchment.api.browsing.readers import TheForm, TheReader
from catchment.api.door import Door, TheDoor, TheShop
from catchment.api.standing import around, overdue
from catchment.api.values import SourceId, place
from catchment.collect import following
from catchment.collect.covering import coverage_of
from catchment.collect.lateness import lateness
from catchment.collect.telling import interval_of, shown_source
from catchment.model import Progress, Source, SourceState
from catchment.shop import Shop
from catchment.wording import folded

router = APIRouter()

A_PAGE = 50
STATES = ("active", "paused", "retired")
_GIVEN = ("q", "kind", "state", "order")
_LONGEST = 200
_DAY = timedelta(days=1)
_CALENDAR_DAYS = 17 * 7
_MOST_RUNS = 12

Followed = tuple[Source, Progress]


# ── the list ──────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/sources")
def sources(request: Request, door: TheDoor, reader: TheReader) -> Response:
    shop, params = door.shop, request.query_params
    given = {name: value for name in _GIVEN if (value := params.get(name, "").strip()[:_LONGEST])}
    after = place(params.get("after") or None)
    listed = _listed(shop, given, after or 0)
    troubled = _troubled(shop) if given.get("order") == "troubled" else []
    first = _chosen(shop, troubled, given) if after is None else []
    shown = [one for one in listed[:A_PAGE] if one[0].id not in troubled]
    found = {
        "rows": _rows(door, [*first, *shown]),
        "given": dict.fromkeys(_GIVEN, "") | given,
        "is_filtered": bool(given.keys() - {"order"}),
        "kinds": sorted(kind.name for kind in shop.platforms.kinds()),
        "states": STATES,
        "counts": shop.store.sources.counts(),
        "next": _address(given, after=str(listed[A_PAGE - 1][0].id)) if len(listed) > A_PAGE else None,
        "first": _address(given) if after is not None else None,
    }
    return HTMLResponse(pages.sources_page(reader, found))


def _listed(shop: Shop, given: dict[str, str], after: int) -> list[Followed]:
    """One more than a page: it tells whether there is a next."""
    states = [SourceState(given["state"])] if given.get("state") in STATES else []
    store, kind = shop.store.sources, given.get("kind")
    if kind is not None:
        shop.names.source_kind(kind)
    if "q" in given:
        return store.called(given["q"], after, A_PAGE + 1, kind=kind, states=states)
    return store.page(after, A_PAGE + 1, kind=kind, states=states)


def _troubled(shop: Shop) -> list[int]:
    """Those that fail, the longest first; then those that are late, or silent."""
    failing = [one["id"] for one in shop.store.troubles.failing(A_PAGE)]
    silent = [one[0] for one in shop.store.alerts.late_sources(shop.clock.now(), A_PAGE)]
    return list(dict.fromkeys([*failing, *overdue(shop, A_PAGE), *silent]))


def _chosen(shop: Shop, source_ids: Sequence[int], given: dict[str, str]) -> list[Followed]:
    """Of these, what the rest of the list is filtered by, too."""
    words, kind, state = folded(given.get("q", "")).split(), given.get("kind"), given.get("state")
    return [
        (source, progress)
        for source, progress in shop.store.sources.these(source_ids)
        if kind in (None, source.kind)
        and (state not in STATES or state == source.state)
        and all(word in folded(f"{source.name}\n{source.target}") for word in words)
    ]


def _rows(door: Door, followed: Sequence[Followed]) -> list[dict[str, Any]]:
    shop, intervals = door.shop, door.shop.intervals()
    visits = shop.store.runs.visits_since([source.id for source, _ in followed], shop.clock.now() - _DAY)
    held = {one["source_id"] for one in shop.store.runs.under_way()}
    here = around(door)

    def row(source: Source, progress: Progress) -> dict[str, Any]:
        minutes = interval_of(source, progress, intervals)
        late = lateness(source, progress, minutes, here.plus(is_held=source.id in held))
        return shown_source(source, progress, intervals) | {
            "why": late.why,
            "visits": visits.get(source.id, (0, 0, 0)),
        }

    return [row(source, progress) for source, progress in followed]


def _address(given: dict[str, str], **more: str) -> str:
    query = urlencode({**given, **more})
    return f"/sources?{query}" if query else "/sources"


# ── one of them ───────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/sources/{source_id}")
def source(door: TheDoor, reader: TheReader, source_id: SourceId) -> Response:
    shop = door.shop
    one, progress = shop.store.sources.with_progress(source_id)
    now, intervals = shop.clock.now(), shop.intervals()
    holder = shop.store.sources.holder(source_id)
    here = around(door).plus(is_held=holder is not None)
    late = lateness(one, progress, interval_of(one, progress, intervals), here)
    known = {
        "source": shown_source(one, progress, intervals),
        "late": late,
        "waiting_count": here.waiting_count,
        "holder": holder,
        "kind": shop.platforms.kind(one.kind),
        "credentials": credential_names(shop, one.platform),
        "visits": shop.store.runs.visits_since([source_id], now - _DAY).get(source_id, (0, 0, 0)),
        "runs": shop.store.runs.of_source(source_id, _MOST_RUNS),
        "gaps": shop.store.gaps.newest(6, source_id=source_id),
        "coverage": coverage_of(shop.store, shop.platforms, source_id, now, _CALENDAR_DAYS),
        "posted": shop.store.rhythm.posted(source_id),
    }
    return HTMLResponse(pages.source_page(reader, known))


def credential_names(shop: Shop, platform: str) -> list[str]:
    return [one.credential.name for one in shop.store.credentials.page() if one.credential.platform == platform]


# ── what a person may do ──────────────────────────────────────────────────────────────────────────────────────────


@router.post("/sources/{source_id}/pause")
def pause(shop: TheShop, source_id: SourceId, form: TheForm) -> Response:
    following.pause(shop.store, source_id, form["reason"][:_LONGEST] or None, shop.clock.now())
    return done(source_id, "paused")


@router.post("/sources/{source_id}/resume")
def resume(shop: TheShop, source_id: SourceId, form: TheForm) -> Response:
    following.resume(shop.store, source_id, shop.clock.now())
    return done(source_id, "resumed")


@router.post("/sources/{source_id}/run")
def run_now(shop: TheShop, source_id: SourceId, form: TheForm) -> Response:
    following.ask_now(shop.store, source_id, shop.clock.now())
    return done(source_id, "asked")


@router.post("/sources/{source_id}/remove")
def remove(shop: TheShop, source_id: SourceId, form: TheForm) -> Response:
    following.remove(shop.store, source_id, shop.clock.now())
    return RedirectResponse("/sources?done=removed", 303)


@router.post("/sources/{source_id}/change")
def change(shop: TheShop, source_id: SourceId, form: TheForm) -> Response:
    """Name, pace, categories, priority, credential, and the settings of its kind; what is left empty is the default."""
    one = shop.store.sources.get(source_id)
    interval, priority = minutes_from(form["interval"]), form["priority"] or one.priority
    following.check_pace(interval, priority)
    fields: dict[str, Any] = {
        "interval_minutes": interval,
        "priority": priority,
        "categories": lines(form["categories"]),
        "credential": form["credential"] or None,
    }
    if form["name"] and form["name"] != one.name:
        fields["name"] = form["name"][:_LONGEST]
    if fields["credential"] is not None:
        shop.store.credentials.sealed(fields["credential"])
    kind = shop.platforms.kind(one.kind)
    if kind is not None:
        settings = following.merged_settings(kind, one.settings, changed_settings(kind, settings_given(form)))
        # What stays as it was is not written: new settings have the next answer read anew.
        fields |= {"settings": settings} if settings != one.settings else {}
    shop.store.sources.change(source_id, **fields)
    return done(source_id, "changed")


def done(source_id: int, deed: str) -> Response:
    return RedirectResponse(f"/sources/{source_id}?done={deed}", 303)
