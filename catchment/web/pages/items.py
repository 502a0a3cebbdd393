"""The item pages: list, search, item. The whole query is in the URL, so that it can be shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from catchment.app import App
from catchment.errors import InvalidInput, NotFound
from catchment.model import Ordering
from catchment.store.items.items import ItemPage, key_from, key_text
from catchment.store.search.lists import Filter
from catchment.store.search.search import ResultPage
from catchment.text.dates import asked_time
from catchment.web.api.params import ItemId, whole_number
from catchment.web.dependencies import WebContext, WebContextDep
from catchment.web.middleware import CSP, WITH_IMAGES
from catchment.web.pages import feeds
from catchment.web.pages.feeds import About, AnyReader, format_of
from catchment.web.pages.item_views import (
    Images,
    growth,
    headline,
    history,
    hit_headline,
    readable,
    reference_link,
    web_address,
)
from catchment.web.pages.render import Reader, render
from catchment.web.pages.session import TheReader
from catchment.web.pages.thread_view import ThreadCursors, thread_section

router = APIRouter()

A_PAGE = 30
STATES = ("edited", "deleted", "present")
_FILTERS = ("platform", "kind", "source", "category", "author", "tag", "since", "until", "state")
_GROUPS = {"platform": "platform", "kind": "sort", "state": "shown"}
"""Filters whose values have names in the catalogue, and the group of these names."""
THREADS, ALL_POSTS = "threads", "all"
_LONGEST = 500
_MOST_CHOICES = 30
_MOST_SUGGESTED = 300
LOAD_IMAGES = "pages.load_images."
"""Followed by the id of a source: whether images within its items are loaded."""


@router.get("/items")
def items(request: Request, context: WebContextDep, reader: AnyReader) -> Response:
    app, format = context.app, format_of(request)
    order = Ordering.REPLIED if request.query_params.get("order") == Ordering.REPLIED else Ordering.POSTED
    asked = Asked(request, context, reader, {"order": order} if order != Ordering.POSTED else {})
    filter_ = asked.checked_filter()
    if asked.source_words is None:
        page = app.cache.listed(filter_, format.most if format else A_PAGE, key_from(asked.after), order)
    else:
        page = ItemPage([], None)
    names = app.store.sources.names(item.source_id for item in page.items)
    if format is not None:
        about = asked.about(reader.locale.name("items_title", order), names)
        return feeds.answer(request, format, page.items, about, key_text(page.next) if page.next else None)
    return render(
        "items.html",
        reader,
        rows=[headline(item, names) for item in page.items],
        next=asked.address(after=key_text(page.next)) if page.next else None,
        order=order,
        orders={
            ordering: asked.address(order=ordering if ordering != Ordering.POSTED else None) for ordering in Ordering
        },
        **asked.surroundings(),
    )


@router.get("/search")
def search(request: Request, context: WebContextDep, reader: AnyReader) -> Response:
    app, format = context.app, format_of(request)
    words = request.query_params.get("q", "").strip()[:_LONGEST]
    order = "best" if request.query_params.get("order") == "best" else "newest"
    also = {name: value for name, value in (("q", words), ("order", order)) if value and value != "newest"}
    asked = Asked(request, context, reader, also)
    hits, error, most = ResultPage([], None, 0, None, False), None, format.most if format else A_PAGE
    if words and asked.source_words is None:
        try:
            filter_ = asked.checked_filter()
            hits = app.store.search.find(words, filter_, is_best=order == "best", limit=most, after=asked.after)
        except InvalidInput as invalid:
            if invalid.field == "after":
                # Not typed by the reader, who can do nothing about it.
                raise
            error = str(invalid)
    names = app.store.sources.names(hit.source_id for hit in hits.items)
    if format is not None:
        about = asked.about(reader.locale.gettext("Search"), names)
        return feeds.answer(request, format, hits.items, about, hits.next)
    return render(
        "search.html",
        reader,
        rows=[hit_headline(hit, names) for hit in hits.items],
        words=words,
        order=order,
        orders={text: asked.address(order=text) for text in ("newest", "best")},
        next=asked.address(after=hits.next) if hits.next else None,
        total=hits.count,
        is_estimated=hits.is_count_estimated,
        behind=hits.behind,
        error=error,
        **asked.surroundings(),
    )


@router.get("/items/{item_id}")
def item(
    context: WebContextDep,
    reader: TheReader,
    item_id: ItemId,
    at: Annotated[str, Query(max_length=64)] = "",
    after: Annotated[str, Query(max_length=64)] = "",
    orphans: Annotated[str, Query(max_length=64)] = "",
    floor: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    images: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """One item: its content, earlier versions, growth, origin, references, and the thread around it."""
    app = context.app
    store = app.store.items
    moment = _moment(at, reader, "at") if at else None
    present = store.get(item_id)
    try:
        item = present if moment is None else store.as_of(item_id, moment)
    except NotFound:
        # Before it was first seen, or no longer stored.
        is_before = moment is not None and moment < present.first_seen_at
        return render("item_unknown_then.html", reader, 404, item=present, is_before=is_before)
    external_ids = [reference.external_id for reference in item.references if reference.external_id is not None]
    stored = store.ids_of(item.platform, external_ids) if external_ids else {}
    is_source_loading = bool(app.store.settings.get(f"{LOAD_IMAGES}{item.source_id}"))
    # Only our own page knows this value: a link that somebody has put into a text must not load images, which would
    # tell the author who reads it.
    permit = f"images of item {item_id}"
    loads_images = reader.loads_images or is_source_loading or context.sessions.is_sealed(permit, images)
    how, image_word = Images.LOADED if loads_images else Images.AS_LINKS, reader.locale.name("medium", "image")
    cursors = ThreadCursors(key_from(after or None), key_from(orphans or None), floor)
    thread = thread_section(app, item, lambda html: readable(html, how, image_word), cursors)
    return render(
        "item.html",
        reader,
        headers={CSP: WITH_IMAGES} if loads_images else None,
        item=item,
        at=moment.isoformat() if moment else None,
        source_name=app.store.sources.names([item.source_id]).get(item.source_id),
        body=readable(item.html, how, image_word) if item.html else None,
        has_images="<img" in (item.html or ""),
        is_loading_images=loads_images,
        image_seal=context.sessions.seal(permit),
        source_loads_images=is_source_loading,
        links=[medium.replace(url=web_address(medium.url) or "") for medium in item.media],
        references=[reference_link(reference, stored) for reference in item.references],
        history=history(present, store.revisions(item_id)),
        growth=growth(item, store.counters(item_id), reader),
        appearances=store.appearances(item_id),
        thread=thread,
        url=web_address(item.url),
        target_url=web_address(item.target_url) if item.target_url != item.url else None,
    )


class Asked:
    """The query of a URL: filters and a cursor, and the URLs of the same query with a part changed."""

    def __init__(self, request: Request, context: WebContext, reader: Reader, also: dict[str, str]) -> None:
        """`also`: the other parameters of the URL, besides filters."""
        params = request.query_params
        self._request, self._context, self._app, self.reader, self.also = request, context, context.app, reader, also
        self.filters = {name: value for name in _FILTERS if (value := params.get(name, "").strip()[:_LONGEST])}
        self.after = params.get("after") or None
        self.posts = ALL_POSTS if params.get("posts") == ALL_POSTS else None
        if self.posts is not None:
            self.also = {**also, "posts": ALL_POSTS}
        self.is_of_forums = False
        self.source_words: str | None = None
        """The text given for a source, if it matches none or several …"""
        self.source_choices: list[tuple[int, str]] = []
        """… and the candidates: the user chooses."""
        text = self.filters.get("source")
        if text is not None and not (text.isascii() and text.isdecimal()):
            matches = self._app.store.sources.matching(text, _MOST_CHOICES)
            if len(matches) == 1:
                self.filters["source"] = str(matches[0][0])
            else:
                self.source_words, self.source_choices = self.filters.pop("source"), matches

    def checked_filter(self) -> Filter:
        """The filter. Of forums, only opening posts are listed, unless all posts, or those of an author, are wanted."""
        filter_ = self._app.names.checked(self.filter())
        self.is_of_forums = self._app.names.is_of_forums(filter_)
        is_thread = self.is_of_forums and self.posts != ALL_POSTS and filter_.author is None
        return filter_.replace(is_thread=True) if is_thread else filter_

    def filter(self) -> Filter:
        filters, state = self.filters, self.filters.get("state")
        return Filter(
            source_id=_number(filters.get("source")),
            kind=filters.get("kind"),
            platform=filters.get("platform"),
            author=filters.get("author"),
            tag=filters.get("tag"),
            since=_moment(filters["since"], self.reader, "since") if "since" in filters else None,
            until=_moment(filters["until"], self.reader, "until", is_end=True) if "until" in filters else None,
            is_deleted={"deleted": True, "present": False}.get(state or ""),
            is_edited=True if state == "edited" else None,
            category=filters.get("category"),
        )

    def address(self, **changed: str | None) -> str:
        values = {**self.also, **self.filters, **changed}
        query = urlencode({name: value for name, value in values.items() if value})
        path = self._request.url.path
        return f"{path}?{query}" if query else path

    def about(self, title: str, source_names: Mapping[int, str]) -> About:
        """The metadata of a feed of this list."""
        url = self._request.url
        query = " · ".join(value for value in (self.also.get("q"), *self.filters.values()) if value)
        return About(
            title=f"catchment · {title}: {query}" if query else f"catchment · {title}",
            base=str(self._request.base_url).rstrip("/"),
            path=self.address(),
            feed_path=f"{url.path}?{url.query}",
            updated_at=self.reader.now.isoformat(),
            source_names=source_names,
        )

    def surroundings(self) -> dict[str, Any]:
        """What a list shows about its own query."""
        app, path = self._app, self._request.url.path
        count = Counter(name for _, name in self.source_choices)
        return {
            "path": path,
            "filters": dict.fromkeys(_FILTERS) | self.filters,
            "also": self.also,
            "is_filtered": bool(self.filters),
            "chips": [self._chip(name, value) for name, value in self.filters.items()],
            "platforms": app.names.platforms(),
            "kinds": app.names.kinds(),
            "states": STATES,
            "categories": app.store.sources.categories(),
            "source_options": source_options(app),
            "source_field": self.source_words or source_field(app, self.filters.get("source")),
            "source_words": self.source_words,
            "source_choices": [
                (name if count[name] == 1 else f"{name} ({source_id})", self.address(source=str(source_id)))
                for source_id, name in self.source_choices
            ],
            "days": {name: self._day(name) for name in ("since", "until")},
            "formats": feeds.addresses(self._context, path, {**self.also, **self.filters}),
            "first": self.address() if self.after else None,
            "post_tabs": self._post_tabs() if self.is_of_forums and "author" not in self.filters else {},
            "posts": self.posts or THREADS,
        }

    def _post_tabs(self) -> dict[str, str]:
        """Threads, or all posts: the URLs of either list."""
        return {THREADS: self.address(posts=None), ALL_POSTS: self.address(posts=ALL_POSTS)}

    def _day(self, name: str) -> str:
        """A time of the filter in the format of a date field."""
        if name not in self.filters:
            return ""
        return f"{_moment(self.filters[name], self.reader, name).astimezone(self.reader.tzinfo):%Y-%m-%d}"

    def _chip(self, name: str, value: str) -> Mapping[str, Any]:
        shown = value
        if name == "source" and (source_id := _number(value)) is not None:
            shown = self._app.store.sources.names([source_id]).get(source_id, value)
        return {"word": name, "group": _GROUPS.get(name, ""), "value": shown, "without": self.address(**{name: None})}


def source_options(app: App) -> list[tuple[str, str]]:
    """Suggestions for a field that names a source: what is entered, and the source's name. That is the same, except
    where a name would not be understood. Only the first ones if there are very many."""
    sources = app.store.sources.first_names(_MOST_SUGGESTED)
    of_name = Counter(name.casefold() for _, name in sources)
    options = [
        (name if of_name[name.casefold()] == 1 and not name.isdecimal() else str(source_id), name)
        for source_id, name in sources
    ]
    return sorted(options, key=itemgetter(1))


def source_field(app: App, number: str | None) -> str:
    """A chosen source as its field shows it: its name if that is unique, else its id."""
    if number is None or (source_id := _number(number)) is None:
        return ""
    name = app.store.sources.names([source_id]).get(source_id, "")
    is_clear = bool(name) and "," not in name and app.store.sources.matching(name, 2) == [(source_id, name)]
    return name if is_clear and not name.isdecimal() else number


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    number = whole_number(text)
    if number is None:
        raise InvalidInput(
            "{text!r} is not the id of a source", "the page of a source shows it", "source", text=text[:50]
        )
    return number


def _moment(text: str, reader: Reader, field: str, *, is_end: bool = False) -> datetime:
    """A time in the user's zone, unless it names another. A day that is an end is included."""
    try:
        return asked_time(text).at(reader.now, reader.tzinfo, is_end=is_end)
    except ValueError as error:
        raise InvalidInput("{text!r} is {why}", field=field, text=text[:50], why=str(error)) from None
