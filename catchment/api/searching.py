"""/api/search: what is stored, by its words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from catchment.api.door import TheShop
from catchment.api.shapes import SearchPage
from catchment.api.values import AfterHit, AskedMoment, AskedText, Name, OfSource, limit
from catchment.store.filtering import Filter

router = APIRouter(prefix="/api", tags=["items"])


@router.get("/search", response_model=SearchPage)
def search_items(
    shop: TheShop,
    q: Annotated[
        AskedText, Query(description="Words that must all be there; a phrase in double quotes.", examples=["spring"])
    ],
    order: Annotated[Literal["newest", "best"], Query(description="What comes first.")] = "newest",
    after: AfterHit = None,
    most: Annotated[int, limit(200)] = 30,
    source_id: OfSource = None,
    kind: Annotated[
        Name, Query(description="Of this kind: the item's (`story`), or its first source's (`rss`).")
    ] = None,
    platform: Annotated[Name, Query(description="Of this platform.")] = None,
    author: Annotated[AskedText | None, Query(description="By this author, written as the platform writes it.")] = None,
    tag: Annotated[AskedText | None, Query(description="With this tag.")] = None,
    since: Annotated[AskedMoment | None, Query(description="Listed at this moment (`ordered_at`) or later …")] = None,
    until: Annotated[AskedMoment | None, Query(description="… and before this one.")] = None,
    is_deleted: Annotated[bool | None, Query(description="Deleted by its source, or not.")] = None,
) -> dict[str, Any]:
    """Items by their words: whole words, whatever their case; Chinese, Japanese and Korean by any part.

    `best` compares the newest thousand that answer. A page may be short, even empty, and `next` goes on; null only at
    the end.
    """
    wanted = shop.names.checked(Filter(source_id, kind, platform, author, tag, since, until, is_deleted))
    found = shop.store.search.find(q, wanted, is_best=order == "best", limit=most, after=after)
    return {name: getattr(found, name) for name in found.__struct_fields__}
