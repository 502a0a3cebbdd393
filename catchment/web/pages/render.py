"""Renders pages with Jinja templates, which escape everything that came from outside."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from fastapi import Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from catchment.clock import EPOCH
from catchment.installation import as_typed, command
from catchment.model import Record
from catchment.platforms import Platforms
from catchment.store.sources.runs import ActiveVisit, VisitView
from catchment.web.dependencies import Activity
from catchment.web.pages.locale import LANGUAGES, Locale

THEMES = ("auto", "light", "dark")


class Asset(NamedTuple):
    """A file that pages load: always from this server."""

    body: bytes
    media_type: str


def _assets() -> tuple[dict[str, str], dict[str, Asset]]:
    """URLs by name, and the files by URL. A URL changes with the file's contents, so browsers may cache it."""
    types = {"css": "text/css", "js": "text/javascript"}
    addresses, assets = {}, {}
    for file in (files(__package__) / "static").iterdir():
        name, _, ending = file.name.rpartition(".")
        body = file.read_bytes()
        addresses[file.name] = f"/static/{name}-{hashlib.sha256(body).hexdigest()[:12]}.{ending}"
        assets[addresses[file.name]] = Asset(body, types[ending])
    return addresses, assets


ADDRESSES, ASSETS = _assets()


class NavLink(NamedTuple):
    """A link of the main navigation."""

    path: str
    key: str
    """The keyboard shortcut, pressed after g."""
    word: str
    group: str


PLACES = (
    NavLink("/items", "i", "items", "read"),
    NavLink("/search", "s", "search", "read"),
    NavLink("/", "o", "overview", "run"),
    NavLink("/sources", "f", "sources", "run"),
    NavLink("/runs", "r", "runs", "run"),
    NavLink("/tasks", "k", "tasks", "run"),
    NavLink("/gaps", "p", "gaps", "run"),
    NavLink("/audits", "u", "audits", "run"),
    NavLink("/alerts", "a", "alerts", "run"),
    NavLink("/credentials", "c", "credentials", "run"),
    NavLink("/spending", "m", "spending", "run"),
    NavLink("/watches", "w", "watches", "run"),
    NavLink("/notifications", "n", "notifications", "run"),
    NavLink("/settings", "t", "settings", "run"),
)


class Reader(Record, frozen=True):
    """The user of a page and their context: language, theme, time zone, current time and URL."""

    language: str = "en"
    theme: str = "auto"
    zone: str = "UTC"
    now: datetime = EPOCH
    path: str = "/"
    """Of the page itself, with its query: a change of language or theme returns there."""
    token: str = ""
    """The CSRF token that every change must send back; empty if the user may not change anything."""
    demo_rate: float | None = None
    """How many times faster time runs in a demo; None outside of one."""
    alert_count: int = 0
    """Open alerts, shown on every page."""
    loads_images: bool = False
    """Whether images within texts are loaded from other sites, for every source."""
    done: str = ""
    """What the user has just done, one of the names of `done`; empty if there is nothing to confirm."""
    platforms: Platforms | None = None
    """Whose names for kinds and other texts are shown."""

    @property
    def locale(self) -> Locale:
        return Locale(self.language, self.now, self.tzinfo, self.platforms)

    @property
    def tzinfo(self) -> tzinfo:
        return UTC if self.zone == "UTC" else ZoneInfo(self.zone)

    @property
    def is_inside(self) -> bool:
        return bool(self.token)

    def is_at(self, path: str) -> bool:
        """Whether this is that page, or one below it."""
        path_only = self.path.partition("?")[0]
        return path_only == path or (path != "/" and path_only.startswith(f"{path}/"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value.isoformat() if isinstance(value, datetime) else value,
    )
    environment.globals |= {"languages": LANGUAGES, "themes": THEMES, "assets": ADDRESSES, "places": PLACES}
    environment.globals["command"] = command()
    # A name or command from between backticks, in the form in which it can be typed.
    environment.filters["as_typed"] = lambda code: as_typed(f"`{code}").removeprefix("`")
    environment.filters["without_ticks"] = _without_ticks
    return environment


def _without_ticks(text: str) -> str:
    """A text for places in which nothing can be set off, with its commands in the form in which they can be typed."""
    return as_typed(text).replace("`", "")


def render(
    template: str, reader: Reader, status: int = 200, /, *, headers: Mapping[str, str] | None = None, **values: Any
) -> Response:
    """The response with a page for this user."""
    locale = reader.locale
    page = _environment().get_template(template)
    values |= {"reader": reader, "locale": locale, "_": locale.gettext, "ngettext": locale.ngettext}
    return HTMLResponse(page.render(values), status, headers)


def redirect(path: str) -> Response:
    """Where a submitted form leads."""
    return RedirectResponse(path, 303)


def live_view(reader: Reader, activity: Activity) -> dict[str, object]:
    """The current activity in the user's language: texts and URLs of ours, no markup."""
    locale, count = reader.locale, activity.visit_count
    text = locale.gettext("No collection in progress.")
    if count:
        text = locale.ngettext("{count} collection in progress", "{count} collections in progress", count)
    return {
        "said": text,
        "visits": [_live_row(visit, *_progress(locale, visit)) for visit in activity.visits],
        "results": [_live_row(visit, *_result(locale, visit)) for visit in activity.results],
    }


def _live_row(visit: ActiveVisit | VisitView, words: str, tone: str) -> dict[str, str]:
    return {"name": visit.source_name, "href": f"/sources/{visit.source_id}", "words": words, "tone": tone}


def _progress(locale: Locale, visit: ActiveVisit) -> tuple[str, str]:
    words = locale.gettext("started {when}", when=locale.when(visit.taken_at))
    if visit.new_count:
        words += f" · {locale.ngettext('{count} new item', '{count} new items', visit.new_count)}"
    return words, "live"


def _result(locale: Locale, visit: VisitView) -> tuple[str, str]:
    if visit.outcome == "failed":
        words = _without_ticks(locale.error(visit.error_code, visit.error) or locale.gettext("failed"))
        tone = "bad"
    elif visit.new_count:
        words, tone = locale.ngettext("{count} new item", "{count} new items", visit.new_count), "good"
    else:
        words, tone = locale.name("outcome", visit.outcome or "under_way"), "quiet"
    return f"{words} · {locale.when(visit.finished_at)}", tone
