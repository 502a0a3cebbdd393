"""The pages for people: from what is known to HTML, in two languages. No rules, no store, no script."""

from catchment.pages.showing import STYLE, STYLE_PATH, failure, start, way_in
from catchment.pages.words import language

__all__ = ["STYLE", "STYLE_PATH", "failure", "language", "start", "way_in"]
