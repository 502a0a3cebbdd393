"""Converts one entry of an answer to an item: by the source's own expressions, and by the usual names where it has
none.

The list is found without settings: at the top; under one key (`items`, `hits`); under two (`data.tweets`,
`rss.channel.item`); each entry inside a wrapper (`children[].data`, `edges[].node`); an object keyed by id; no list at
all, where that means "none". Values are converted as APIs write them: numbers as texts, texts as numbers, dates of
every form, names inside objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any

from catchment.lazy import pattern
from catchment.messages import message
from catchment.model import Item, JsonObject, Media, SettingValues
from catchment.platforms._common import coercion
from catchment.platforms._common.json import UnusableEntry
from catchment.platforms.custom_api.fields import LimitedSearch
from catchment.text.dates import Dated, from_epoch, read_date

LISTS = (
    *("items", "item", "results", "result", "data", "posts", "entries", "articles", "records", "tweets", "statuses"),
    *("hits", "stories", "topics", "threads", "notes", "messages", "comments", "events", "docs", "documents", "rows"),
    *("values", "nodes", "edges", "children", "objects", "list", "content", "elements", "feed", "news", "response"),
)
"""The most frequent names of lists; the first one wins."""
AROUND = frozenset(
    (
        *("meta", "metadata", "paging", "pagination", "page", "pages", "links", "_links", "cursor", "cursors", "info"),
        *("status", "error", "errors", "includes", "included", "response_metadata", "next", "previous", "total"),
        *("count", "result_count", "has_more", "has_next_page", "next_cursor", "ok", "success", "code", "message"),
    )
)
"""Keys next to lists that are not items."""
WRAPPERS = ("data", "node", "_source", "attributes", "post", "item")
CONTENT = frozenset(("title", "text", "body", "content", "url", "link", "name", "description", "html", "message"))
LONGEST_ID = 400
DIGIT = pattern(r"\d")
WHITE = pattern(r"\s")


class NoListFound(Exception):
    """No list can be found, and that does not mean that there is nothing."""


def entries_of(document: Any) -> list[Any]:
    """Returns the entries of an answer, wherever they are. An empty list: the answer says that there are none."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise NoListFound(message("the answer is not a list, and contains none"))
    for candidate in (_named(document), _two_keys_down(document), _only_list(document), _keyed(document)):
        if candidate is not None:
            return candidate
    if all(name.lower() in AROUND for name in document):
        return []
    raise NoListFound(message("no list of items was found in the answer"))


def chosen(value: Any) -> list[Any] | None:
    """Returns the entries in what the source's own expression found; None: nothing was."""
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, dict):
        return _with_ids(value) if all(isinstance(entry, dict) for entry in value.values()) else [value]
    raise NoListFound(message("`items` finds a {type}, not a list", type=type(value).__name__))


def _keyed(document: JsonObject) -> list[Any] | None:
    """Returns the entries of an object whose keys are their ids: each has a digit, and no white space."""
    is_keyed = document and all(
        isinstance(entry, dict) and len(key) <= LONGEST_ID and DIGIT.search(key) and not WHITE.search(key)
        for key, entry in document.items()
    )
    return _with_ids(document) if is_keyed else None


def _with_ids(entries: Mapping[str, JsonObject]) -> list[Any]:
    return [
        entry if any(entry.get(name) for name in ("id", "id_str", "_id")) else {"id": key} | entry
        for key, entry in entries.items()
    ]


def _named(document: JsonObject) -> list[Any] | None:
    return next((document[name] for name in LISTS if _is_list(document.get(name))), None)


def _is_list(value: Any) -> bool:
    """Whether the value can be a list of items: empty, or with an object in it."""
    return isinstance(value, list) and (not value or any(isinstance(entry, dict) for entry in value))


def _two_keys_down(document: JsonObject) -> list[Any] | None:
    """Returns `data.tweets`, `hits.hits`, `response.docs`, `rss.channel.item`; an object keyed by id under one of the
    names."""
    for inner in _objects(document):
        for deeper in (inner, *_objects(inner)):
            if (named := _named(deeper)) is not None:
                return named
    by_id = (_keyed(document[name]) for name in LISTS if isinstance(document.get(name), dict))
    return next((entries for entries in by_id if entries is not None), None)


def _objects(document: JsonObject) -> Iterator[JsonObject]:
    """Yields the objects inside, those under a usual name first."""
    names = [name for name in LISTS if name in document] + [name for name in document if name not in LISTS]
    yield from (document[name] for name in names if name not in AROUND and isinstance(document[name], dict))


def _only_list(document: JsonObject) -> list[Any] | None:
    """Returns a list under an unknown name, if there is just one."""
    lists = [value for name, value in document.items() if name.lower() not in AROUND and value and _is_list(value)]
    return lists[0] if len(lists) == 1 else None


WORDS_INSIDE = ("rendered", "text", "plain", "value", "name", "title", "label", "raw", "html", "content")
"""The keys under which an object has its text: `{"rendered": "A title"}`."""
PEOPLE_INSIDE = ("username", "name", "login", "screen_name", "screenName", "userName", "display_name", "nickname")
TAGS_INSIDE = ("name", "title", "text", "label", "slug", "tag", "id")
ADDRESSES_INSIDE = (
    *("url", "src", "href", "link", "media_url_https", "media_url", "source_url", "content_url", "image"),
    *("original", "large", "preview_url"),
)
NUMBER = pattern(r"[+-]?\d{1,3}(?:,\d{3}){1,5}|[+-]?\d{1,18}(?:\.0{1,6})?")
ROUNDED = pattern(r"([+-]?\d{1,9}(?:\.\d{1,6})?)\s?([kKmM万亿])\+?")
ROUND = {"k": 1_000, "m": 1_000_000, "万": 10_000, "亿": 100_000_000}
EPOCH = pattern(r"-?\d{9,19}(?:\.\d{1,9})?")
_MICROSECONDS, _NANOSECONDS, _ABSURD = 1e14, 1e17, 1e20
"""Beyond these, milliseconds since 1970 would be absurd; and so, beyond all, nanoseconds."""
_DEEPEST = 3
UNKNOWN: tuple[Any, ...] = (None, "", [], {})
"""Zero and false are known values."""
MOST_LISTED = 500


def words(value: Any, inside: Iterable[str] = WORDS_INSIDE) -> str | None:
    """Returns a text that is not empty; None for nothing. Of an object, the text under one of the usual names."""
    for _ in range(_DEEPEST):
        if not isinstance(value, dict):
            break
        value = next((value[name] for name in inside if value.get(name)), None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return coercion.text(value)
    try:
        # 1234.0 is how some programs write 1234; an id must not come and go with it.
        return str(int(value) if value == int(value) else value)
    except (ValueError, OverflowError):
        return None


def several(value: Any, inside: Iterable[str] = TAGS_INSIDE) -> tuple[str, ...]:
    """Returns the texts of a list, of texts or of objects, each once."""
    texts = (words(entry, inside) for entry in _listed(value))
    return tuple(dict.fromkeys(text for text in texts if text))


def _listed(value: Any) -> list[Any]:
    return (value if isinstance(value, list) else [value])[:MOST_LISTED]


def count(value: Any) -> tuple[int | None, bool]:
    """Returns a whole number, and whether it is rounded ("1.2k")."""
    if isinstance(value, bool):
        return None, False
    if isinstance(value, int | float):
        return (int(value), False) if abs(value) < 2**63 else (None, False)
    if not isinstance(value, str):
        return None, False
    text = value.strip()
    if NUMBER.fullmatch(text):
        return int(text.replace(",", "").partition(".")[0]), False
    if match := ROUNDED.fullmatch(text):
        return round(float(match[1]) * ROUND[match[2].lower()]), True
    return None, False


def truth(value: Any) -> bool:
    """Returns the value as a boolean. "false", "0" and "no" are false, though they are texts."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "0", "false", "no", "null", "none")
    return bool(value)


def moment(value: Any) -> Dated | None:
    """Parses seconds, milliseconds, microseconds or nanoseconds since 1970, whole or not, as a number or as text; or a
    date in any common form."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not EPOCH.fullmatch(text):
            return read_date(text) if text else None
        value = float(text)
    # Zero is how programs write "none"; NaN fails every comparison.
    if not isinstance(value, int | float) or not 0 < abs(value) < _ABSURD:
        return None
    number, size = float(value), abs(value)
    at = from_epoch(number / 1e9 if size >= _NANOSECONDS else number / 1e6 if size >= _MICROSECONDS else number)
    return Dated(at.astimezone(UTC)) if at else None


USUAL: dict[str, tuple[str, ...]] = {
    part: tuple(names.split())
    for part, names in {
        # The text of an id before its number: programs without large integers have rounded the number.
        "id": "idstr id uuid guid objectid rowid uid pk key shortcode slug",
        "title": "title headline subject name label",
        "text": "fulltext text body content message selftext description summary excerpt caption snippet",
        "html": "html contenthtml bodyhtml texthtml htmlcontent htmlbody descriptionhtml selftexthtml cooked",
        "url": "url link permalink htmlurl weburl href uri canonicalurl shorturl",
        "target_url": "externalurl targeturl linkurl",
        "author": "author authors user username screenname creator by owner account poster postedby login nickname",
        "author_id": "authorid userid creatorid ownerid",
        "created_at": (
            "createdat publishedat published datepublished pubdate created createdutc postedat createtime publishtime "
            "dategmt date timestamp time createdati ts"
        ),
        "edited_at": "editedat updatedat datemodified modifiedat modifiedgmt modified edited updated lastmodified",
        "score": "score points likecount likes favoritecount upvotes ups votes stars reactioncount",
        "reply_count": "replycount commentcount commentscount numcomments repliescount answercount replies comments",
        "view_count": "viewcount views impressioncount impressions reads playcount",
        "last_reply_at": "lastreplyat lastreplytime lastreplied lastcommentat lastpostedat lastanswerat",
        "tags": "tags keywords categories labels topics hashtags",
        "media": "media images photos attachments enclosures image imageurl thumbnail picture video",
        "language": "lang language locale",
        "is_pinned": "ispinned pinned stickied sticky",
        "is_deleted": "isdeleted deleted",
    }.items()
}
"""For each part of an item its usual names, without capitals and punctuation."""


def read_item(settings: SettingValues, search: LimitedSearch, url: str, entry: Any) -> Item:
    """Parses one entry of the list. Raises `UnusableEntry`."""
    if not isinstance(entry, dict):
        raise UnusableEntry("not an object")
    part = _parts(entry, settings, search)
    created, edited, replied = (moment(part(name)) for name in ("created_at", "edited_at", "last_reply_at"))
    html, text = words(part("html")), words(part("text"))
    if html is None and text is not None and coercion.has_html_tag(text):
        # A value under a name for texts that contains tags is still HTML.
        html = text
    counters = {name: count(part(name)) for name in ("score", "reply_count", "view_count")}
    author, tags = part("author"), part("tags")
    author_id = (author.get("id_str") or author.get("id")) if isinstance(author, dict) else None
    item = Item(
        external_id=words(part("id")) or "",
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        edited_at=edited.at if edited and (created is None or edited.at > created.at) else None,
        title=coercion.plain_title(words(part("title"))),
        text=None if html else text,
        html=html,
        url=coercion.resolved(words(part("url"), ADDRESSES_INSIDE), url),
        target_url=coercion.resolved(words(part("target_url"), ADDRESSES_INSIDE), url),
        author=", ".join(several(author, PEOPLE_INSIDE)) or None,
        author_id=words(part("author_id")) or words(author_id),
        score=counters["score"][0],
        reply_count=counters["reply_count"][0],
        view_count=counters["view_count"][0],
        last_reply_at=replied.at if replied else None,
        rounded=tuple(name for name, (_, is_rounded) in counters.items() if is_rounded),
        is_pinned=truth(part("is_pinned")),
        is_deleted=truth(part("is_deleted")),
        media=coercion.each_once(_media(part("media"), url)),
        tags=several(tags.split(",") if isinstance(tags, str) else tags),
        language=coercion.language(words(part("language"))),
    )
    if not (item.title or item.text or item.html or item.url or item.target_url or item.media):
        raise UnusableEntry("no content")
    return item


def _parts(entry: JsonObject, settings: SettingValues, search: LimitedSearch) -> Callable[[str], Any]:
    """Returns a function that looks up a part of this entry: by the source's expression, over the entry as received;
    else by its name."""
    content = entry
    if not CONTENT & entry.keys():
        # The entry is inside a wrapper (`{"kind": "t3", "data": {…}}`), whose id stays.
        content = entry | next((entry[name] for name in WRAPPERS if isinstance(entry.get(name), dict)), {})
    by_name: JsonObject = {}
    for name, value in content.items():
        by_name.setdefault(name.replace("_", "").replace("-", "").lower(), value)

    def part(name: str) -> Any:
        expression = settings[name]
        if expression is None:
            return next((by_name[usual] for usual in USUAL[name] if by_name.get(usual) not in UNKNOWN), None)
        try:
            return search(expression, entry)
        except ValueError:
            raise UnusableEntry(f"`{name}` cannot be used on it") from None

    return part


def _media(value: Any, url: str) -> Iterator[Media]:
    """Yields each medium in the value: texts, objects, lists of both."""
    for entry in _listed(value):
        address = coercion.resolved(words(entry, ADDRESSES_INSIDE), url) if isinstance(entry, str | dict) else None
        if address is None:
            continue
        fields = entry if isinstance(entry, dict) else {}
        sort = _first(fields, ("mime_type", "mime", "type", "medium"))
        mime = sort if sort and "/" in sort else None
        # What the API calls a photo is an image, whatever its URL ends with.
        medium = "image" if sort in ("photo", "picture", "image") else sort
        alt = _first(fields, ("alt", "description", "caption"))
        yield Media(address, coercion.media_kind(mime, address, medium), mime=mime, alt=alt)


def _first(fields: JsonObject, names: Iterable[str]) -> str | None:
    return next((value for name in names if (value := words(fields.get(name)))), None)
