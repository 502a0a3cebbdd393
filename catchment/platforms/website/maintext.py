"""The main text of a page: what is left without menus, banners, comments and whatever else surrounds it."""

from __future__ import annotations

import logging
from typing import Any

from catchment.errors import CatchmentError, Unreadable
from catchment.platforms import htmlpage

# A tag costs it a fifth of a millisecond, and more the deeper it lies: within these bounds, a few seconds at most.
MOST_TAGS = 20_000
MOST_LABOUR = 600_000

# In bytes: a Chinese character says as much as three letters. Whatever is shorter is a notice in place of the page.
LEAST_BYTES = 200


def of(text: str) -> str:
    """The main text; an error that says so where none can be told from the rest."""
    shape = htmlpage.shape(text)
    if shape.tags > MOST_TAGS or shape.labour > MOST_LABOUR:
        raise Unreadable(
            f"the page has {shape.tags:,} tags, too many or too deep to find its main text",
            "follow the links on it: the setting `links`, a CSS selector",
        )
    found = _extracted(text)
    if len(found.encode()) < LEAST_BYTES:
        raise Unreadable(
            "no main text can be found on the page", "follow the links on it (the setting `links`), or the site's feed"
        )
    return found


def _extracted(text: str) -> str:
    try:
        return (_loaded().extract(text, include_comments=False, include_tables=True) or "").strip()
    except CatchmentError:
        raise
    except Exception as error:  # a stranger's code on a stranger's page: it raises whatever its slips raise
        raise Unreadable("the page is too broken to find its main text", "look at it in a browser") from error


def _loaded() -> Any:
    try:
        import trafilatura  # heavy: loaded when a page is read
    except ImportError as error:
        raise CatchmentError(
            f"main texts cannot be read: a package is missing ({str(error).partition(chr(10))[0]})",
            "install catchment's packages anew, as `make run` does",
        ) from error
    # It complains to the log of everything that it cannot use; we say so ourselves, once.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return trafilatura
