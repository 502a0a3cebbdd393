"""/api/search: what is stored, by its words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from catchment.api.door import TheShop
from catchment.api.shapes import SearchPage
from catchment.api.values import After, AskedMoment, Keepable, OfSource, limit
from catchment.store.search import Filters

router = APIRouter(prefix="/api", tags=["items"])

Wanted = Annotated[str | None, Query(min_length=1, max_length=500), Keepable]


@router.get("/search", response_model=SearchPage)
def search_items(
    shop: TheShop,
    q: Annotated[
        str,
        Query(
            max_length=500, description="Words that must all be there; a phrase in double quotes.", examples=["spring"]
        ),
        Keepable,
    ],
    kind: Annotated[Wanted, Query(description="Of this kind of source (rss) or of item (entry).")] = None,
    platform: Wanted = None,
    source_id: OfSource = None,
    author: Annotated[Wanted, Query(description="By this author, to the letter.")] = None,
    tag: Annotated[Wanted, Query(description="With this tag, to the letter.")] = None,
    since: Annotated[AskedMoment | None, Query(description="Listed at this moment or later.")] = None,
    until: Annotated[AskedMoment | None, Query(description="Listed before this moment.")] = None,
    is_deleted: Annotated[bool | None, Query(description="What its source deleted, or did not.")] = None,
    order: Annotated[Literal["newest", "best"], Query(description="What comes first.")] = "newest",
    most: Annotated[int, limit(200)] = 30,
    after: After = None,
) -> dict[str, Any]:
    """Items by their words: whole words, whatever their case; Chinese, Japanese and Korean by any part.

    `best` compares the newest thousand that answer.
    """
    filters = Filters(kind, platform, source_id, author, tag, since, until, is_deleted)
    found = shop.store.search.find(q, filters, is_best=order == "best", limit=most, after=after)
    return {name: getattr(found, name) for name in found.__struct_fields__}
