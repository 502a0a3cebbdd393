"""From what is known to HTML. Everything that came from outside is escaped by the templates, always."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from importlib.resources import files
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined

from catchment.clock import EPOCH
from catchment.model import Record
from catchment.pages.words import LANGUAGES, Speech

THEMES = ("auto", "light", "dark")


class Asset(NamedTuple):
    """A file that pages load: from here, never from elsewhere."""

    body: bytes
    media_type: str


def _assets() -> tuple[dict[str, str], dict[str, Asset]]:
    """Addresses by name, and the files by address. An address changes with its contents: browsers may keep it."""
    types = {"css": "text/css", "js": "text/javascript"}
    addresses, found = {}, {}
    for file in (files(__package__) / "static").iterdir():
        name, _, ending = file.name.rpartition(".")
        body = file.read_bytes()
        addresses[file.name] = f"/static/{name}-{hashlib.sha256(body).hexdigest()[:12]}.{ending}"
        found[addresses[file.name]] = Asset(body, types[ending])
    return addresses, found


ADDRESSES, ASSETS = _assets()


class Place(NamedTuple):
    """A page that can be gone to from everywhere."""

    path: str
    key: str
    """Pressed after g."""
    word: str
    group: str


PLACES = (
    Place("/items", "i", "nav_items", "nav_read"),
    Place("/search", "s", "nav_search", "nav_read"),
    Place("/", "o", "nav_overview", "nav_run"),
    Place("/sources", "f", "nav_sources", "nav_run"),
    Place("/runs", "r", "nav_runs", "nav_run"),
    Place("/gaps", "p", "nav_gaps", "nav_run"),
    Place("/alerts", "a", "nav_alerts", "nav_run"),
    Place("/credentials", "c", "nav_credentials", "nav_run"),
    Place("/watches", "w", "nav_watches", "nav_run"),
    Place("/settings", "t", "nav_settings", "nav_run"),
)


class Reader(Record, frozen=True):
    """Who looks at a page: in which language, light or dark, in which zone, at what moment; and where they are."""

    language: str = "en"
    theme: str = "auto"
    zone: str = "UTC"
    now: datetime = EPOCH
    path: str = "/"
    """Of the page itself, with its query: where a choice of language or colours leads back to."""
    token: str = ""
    """Must come back with every change that this reader asks for; empty: they may not change anything."""
    demo_rate: float | None = None
    """How many times as fast time runs in a demonstration; None: this is none."""
    alert_count: int = 0
    """Open ones: shown wherever the reader is."""
    done: str = ""
    """What they have just done, one of `DONE`; empty: nothing that is worth a word."""

    @property
    def speech(self) -> Speech:
        return Speech(self.language, self.now, self.tzinfo)

    @property
    def tzinfo(self) -> tzinfo:
        return UTC if self.zone == "UTC" else ZoneInfo(self.zone)

    @property
    def is_inside(self) -> bool:
        return bool(self.token)

    def is_at(self, path: str) -> bool:
        """Whether this is that page, or one below it."""
        here = self.path.partition("?")[0]
        return here == path or (path != "/" and here.startswith(f"{path}/"))


def plain_error(say: Speech, code: str | None, message: str | None) -> str | None:
    """What went wrong in the reader's language, where we have a word for it; otherwise as it was said."""
    return (say.known("error", code) if code else None) or message


class Templates:
    @cached_property
    def environment(self) -> Environment:
        found = Environment(
            loader=PackageLoader(__package__, "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        found.globals |= {"languages": LANGUAGES, "themes": THEMES, "assets": ADDRESSES, "places": PLACES}
        return found

    def page(self, template: str, reader: Reader, **values: Any) -> str:
        return self.environment.get_template(template).render(**values, reader=reader, say=reader.speech)


page = Templates().page
