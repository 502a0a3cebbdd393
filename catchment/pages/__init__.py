"""The pages for people: from what is known to HTML, in two languages. No rules, no store, no HTTP."""

from catchment.pages.entering import failure, way_in
from catchment.pages.overview import start
from catchment.pages.reading import item_page, items_page, search_page
from catchment.pages.showing import ASSETS, THEMES, Reader
from catchment.pages.words import LANGUAGES, language

__all__ = [
    "ASSETS",
    "LANGUAGES",
    "THEMES",
    "Reader",
    "failure",
    "item_page",
    "items_page",
    "language",
    "search_page",
    "start",
    "way_in",
]
