"""The shapes in which APIs wrap their lists, told apart without a word from anybody.

A list at the top; under one key (`items`, `hits`); under two (`data.tweets`, `rss.channel.item`); each entry inside a
wrapper (`children[].data`, `edges[].node`); an object keyed by id; no list at all, where that means "none".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Object = dict[str, Any]

LISTS = (
    *("items", "item", "results", "result", "data", "posts", "entries", "articles", "records", "tweets", "statuses"),
    *("hits", "stories", "topics", "threads", "notes", "messages", "comments", "events", "docs", "documents", "rows"),
    *("values", "nodes", "edges", "children", "objects", "list", "content", "elements", "feed", "news", "response"),
)
"""Under these names lists are found most often; the first one wins."""
AROUND = frozenset(
    (
        *("meta", "metadata", "paging", "pagination", "page", "pages", "links", "_links", "cursor", "cursors", "info"),
        *("status", "error", "errors", "includes", "included", "response_metadata", "next", "previous", "total"),
        *("count", "result_count", "has_more", "has_next_page", "next_cursor", "ok", "success", "code", "message"),
    )
)
"""What stands beside lists, and is no item."""
WRAPPERS = ("data", "node", "_source", "attributes", "post", "item")
CONTENT = frozenset(("title", "text", "body", "content", "url", "link", "name", "description", "html", "message"))
ID = re.compile(r"[^\s]{0,200}\d[^\s]{0,200}")


class Shapeless(Exception):
    """No list can be found, and that does not mean that there is nothing."""


def entries(document: Any) -> list[Any]:
    """The entries of an answer, wherever they stand. An empty list: it says that there are none."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise Shapeless("what came is no list, and holds none")
    for found in (_named(document), _two_keys_down(document), _only_list(document), keyed(document)):
        if found is not None:
            return found
    if all(name.lower() in AROUND for name in document):
        return []
    raise Shapeless("no list of items was found in the answer")


def chosen(found: Any) -> list[Any] | None:
    """The entries in what a person's own expression found; None: nothing was."""
    if found is None or isinstance(found, list):
        return found
    if isinstance(found, dict):
        return _keyed(found) if _are_objects(found.values()) else [found]
    raise Shapeless(f"`items` finds a {type(found).__name__}, not a list")


def unwrapped(entry: Object) -> Object:
    """The entry itself, where it stands inside a wrapper (`{"kind": "t3", "data": {…}}`); the wrapper's id stays."""
    if CONTENT & entry.keys():
        return entry
    inner = next((entry[name] for name in WRAPPERS if isinstance(entry.get(name), dict)), None)
    return entry if inner is None else entry | inner


def keyed(document: Object) -> list[Any] | None:
    """The entries of an object whose keys are their ids."""
    if not document or not _are_objects(document.values()) or not all(map(ID.fullmatch, document)):
        return None
    return _keyed(document)


def _keyed(found: Mapping[str, Any]) -> list[Any]:
    return [one if _has_id(one) else {"id": key} | one for key, one in found.items()]


def _has_id(entry: Object) -> bool:
    return any(entry.get(name) for name in ("id", "id_str", "_id"))


def _are_objects(values: Any) -> bool:
    return all(isinstance(one, dict) for one in values)


def _named(document: Object) -> list[Any] | None:
    return next((document[name] for name in LISTS if _is_list(document.get(name))), None)


def _is_list(value: Any) -> bool:
    """A list that can be one of items: empty, or with an object in it."""
    return isinstance(value, list) and (not value or any(isinstance(one, dict) for one in value))


def _two_keys_down(document: Object) -> list[Any] | None:
    """`data.tweets`, `hits.hits`, `response.docs`, `rss.channel.item`; an object keyed by id under one of the names."""
    for inner in _objects(document):
        for deeper in (inner, *_objects(inner)):
            if (found := _named(deeper)) is not None:
                return found
    found_keyed = (keyed(document[name]) for name in LISTS if isinstance(document.get(name), dict))
    return next((found for found in found_keyed if found is not None), None)


def _objects(document: Object) -> Iterator[Object]:
    """The objects inside, those under a usual name first."""
    names = [name for name in LISTS if name in document] + [name for name in document if name not in LISTS]
    yield from (document[name] for name in names if name not in AROUND and isinstance(document[name], dict))


def _only_list(document: Object) -> list[Any] | None:
    """A list under a name that nobody could guess, if there is just one."""
    found = [value for name, value in document.items() if name.lower() not in AROUND and value and _is_list(value)]
    return found[0] if len(found) == 1 else None
