"""The pages for people: from what is known to HTML, in two languages. No rules, no store, no HTTP."""

from catchment.pages.entering import failure, way_in
from catchment.pages.keeping import credential_page, credentials_page, settings_page, watch_page, watches_page
from catchment.pages.live import live_told
from catchment.pages.overview import start
from catchment.pages.reading import item_page, items_page, search_page
from catchment.pages.records import alerts_page, gaps_page, run_page, runs_page
from catchment.pages.showing import ASSETS, THEMES, Reader
from catchment.pages.sources import add_source_page, choose_kind_page, import_page, source_page, sources_page
from catchment.pages.words import DONE, LANGUAGES, language

__all__ = [
    "ASSETS",
    "DONE",
    "LANGUAGES",
    "THEMES",
    "Reader",
    "add_source_page",
    "alerts_page",
    "choose_kind_page",
    "credential_page",
    "credentials_page",
    "failure",
    "gaps_page",
    "import_page",
    "item_page",
    "items_page",
    "language",
    "live_told",
    "run_page",
    "runs_page",
    "search_page",
    "settings_page",
    "source_page",
    "sources_page",
    "start",
    "watch_page",
    "watches_page",
    "way_in",
]
