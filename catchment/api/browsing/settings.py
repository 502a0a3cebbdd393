"""The settings: those that differ from the default first, with their meaning; of a secret only that it is set."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

from catchment import __version__
from catchment.api.browsing.readers import TheReader
from catchment.api.door import TheShop
from catchment.pages import settings_page
from catchment.settings import DEFINED, owner_of

router = APIRouter()


@router.get("/settings")
def settings(shop: TheShop, reader: TheReader) -> Response:
    known = shop.settings
    differing = known.differing()
    names = {name for name, _, _ in differing}
    found = {
        "version": __version__,
        "database": "PostgreSQL" if shop.store.database.is_postgres else "SQLite",
        "home": str(known.home),
        "differing": [
            {
                "name": name,
                "value": value,
                "default": default,
                "what": owner.what if (owner := owner_of(name)) and name not in known.declared else None,
                "origin": known.origins.get(name),
            }
            for name, value, default in differing
        ],
        "stored": shop.store.settings.intervals(),
        "warnings": known.warnings,
        "others": [
            {"name": one.name, "default": "" if one.family else one.shown_default(), "what": one.what}
            for one in DEFINED.values()
            if one.name not in names
        ],
    }
    return HTMLResponse(settings_page(reader, found))
