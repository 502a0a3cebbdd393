"""/api/sources: what is followed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from catchment.api.door import TheShop
from catchment.api.failures import Followed
from catchment.api.shapes import ChangedSource, Coverage, Failed, NewlyFollowed, NewSource, Page, Pause, Source
from catchment.api.values import After, Name, SourceId, limit, paged, place
from catchment.collect import following, previewing
from catchment.collect.covering import coverage_of
from catchment.collect.telling import shown_source
from catchment.errors import InvalidInput, NotFound
from catchment.model import SourceState
from catchment.shop import Shop

router = APIRouter(prefix="/api/sources", tags=["sources"])

MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Failed, "description": "There is no such source."}}
TAKEN: dict[int | str, dict[str, Any]] = {
    409: {"model": Failed, "description": "It is followed already; `existing_id` says by which source."}
}
UNANSWERED: dict[int | str, dict[str, Any]] = {
    502: {"model": Failed, "description": "`check`: the platform does not answer, or with nothing that can be used."},
    504: {"model": Failed, "description": "`check`: the platform is too slow."},
}
STILL: dict[int | str, dict[str, Any]] = {409: {"model": Failed, "description": "It is paused or retired."}}


@router.get("", response_model=Page[Source])
def list_sources(
    shop: TheShop,
    after: After = None,
    most: Annotated[int, limit(1000)] = 100,
    kind: Annotated[Name, Query(description="Only of this kind.")] = None,
    state: Annotated[SourceState | None, Query(description="Only in this state; removed ones only if asked.")] = None,
) -> dict[str, Any]:
    """What is followed, in order of id."""
    if kind is not None:
        shop.names.source_kind(kind)
    states = [state] if state else []
    rows = shop.store.sources.page(place(after) or 0, most + 1, kind=kind, states=states)
    page = paged(rows, most, lambda one: one[0].id)
    intervals = shop.intervals()
    return page | {"items": [shown_source(source, progress, intervals) for source, progress in page["items"]]}


@router.post("", status_code=201, response_model=NewlyFollowed, responses=TAKEN | UNANSWERED)
def follow_source(shop: TheShop, given: NewSource, response: Response) -> dict[str, Any]:
    """Follow something. Nobody is asked yet, unless `check` wants that: it is visited at the next tick."""
    more = given.model_dump(exclude={"kind", "target", "check"})
    now, preview = shop.clock.now(), None
    with _naming_credential():
        if given.check:
            source, preview = following.follow_checked(shop.visitor, shop.safe, given.kind, given.target, now, **more)
            is_new = preview is not None
        else:
            source, is_new = following.follow(
                shop.store, shop.safe, shop.platforms, given.kind, given.target, now, **more
            )
    if not is_new:
        raise Followed(f"{source.target} is followed already, as source {source.id} ({source.name})", source.id)
    response.headers["Location"] = f"/api/sources/{source.id}"
    return _shown(shop, source.id) | {"preview": previewing.told(preview) if preview else None}


@router.get("/{source_id}", response_model=Source, responses=MISSING)
def show_source(shop: TheShop, source_id: SourceId) -> dict[str, Any]:
    """One source, how it stands, when it is due and why then."""
    return _shown(shop, source_id)


@router.patch("/{source_id}", response_model=Source, responses=MISSING)
def change_source(shop: TheShop, source_id: SourceId, given: ChangedSource) -> dict[str, Any]:
    """Change what is named in the body; the rest stays. Counts from the next tick on."""
    fields = given.model_dump(exclude_unset=True)
    source = shop.store.sources.get(source_id)
    if "settings" in fields:
        fields["settings"] = _merged(shop, source.kind, source.settings, fields["settings"])
    if fields.get("credential") is not None:
        with _naming_credential():
            shop.store.credentials.sealed(fields["credential"])
    shop.store.sources.change(source_id, **fields)
    return _shown(shop, source_id)


@router.delete("/{source_id}", status_code=204, response_class=Response, responses=MISSING)
def remove_source(shop: TheShop, source_id: SourceId) -> None:
    """Follow it no longer. Its items stay; followed again, it goes on with them."""
    following.remove(shop.store, source_id, shop.clock.now())


@router.post("/{source_id}/pause", response_model=Source, responses=MISSING)
def pause_source(shop: TheShop, source_id: SourceId, given: Pause | None = None) -> dict[str, Any]:
    """Visit it no more until it is resumed."""
    following.pause(shop.store, source_id, given.reason if given else None, shop.clock.now())
    return _shown(shop, source_id)


@router.post("/{source_id}/resume", response_model=Source, responses=MISSING)
def resume_source(shop: TheShop, source_id: SourceId) -> dict[str, Any]:
    """Visit it again, with a clean slate: paused, retired or on probation."""
    following.resume(shop.store, source_id, shop.clock.now())
    return _shown(shop, source_id)


@router.post("/{source_id}/run", status_code=202, response_model=Source, responses=MISSING | STILL)
def run_source(shop: TheShop, source_id: SourceId) -> dict[str, Any]:
    """Visit it at the next tick, whatever its schedule says. Answers at once, before the visit."""
    following.ask_now(shop.store, source_id, shop.clock.now())
    return _shown(shop, source_id)


@router.get("/{source_id}/coverage", response_model=Coverage, responses=MISSING)
def show_coverage(
    shop: TheShop,
    source_id: SourceId,
    days: Annotated[int, Query(ge=1, le=3660, description="How far back.")] = 90,
) -> dict[str, Any]:
    """For which stretches of time the source is proven complete, and for which not, and why; and a calendar."""
    return coverage_of(shop.store, shop.platforms, source_id, shop.clock.now(), days)


def _shown(shop: Shop, source_id: int) -> dict[str, Any]:
    return shown_source(*shop.store.sources.with_progress(source_id), shop.intervals())


def _merged(shop: Shop, kind: str, known: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    shop.platforms.needed(kind)
    declared = shop.platforms.kind(kind)
    assert declared is not None
    return following.merged_settings(declared, known, given)


@contextmanager
def _naming_credential() -> Iterator[None]:
    """A credential that is not there is a slip in the body, not a missing page."""
    try:
        yield
    except NotFound as error:
        raise InvalidInput(error.what, error.helps, "credential") from error
