"""One entry of an answer, as an item: by the source's own expressions, and by the usual names where it has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from catchment.model import Item, Media, Skipped
from catchment.platforms.custom_api import shapes, values
from catchment.platforms.custom_api.expressions import Searching
from catchment.platforms.feeds import pieces

MOST_ENTRIES = 20_000
_EXCERPT = 200

USUAL: dict[str, tuple[str, ...]] = {
    part: tuple(names.split())
    for part, names in {
        # The text of an id before its number: programs that know no large numbers have spoilt the number.
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
"""For each part of an item the names under which it usually stands, without capitals and marks."""


class Unusable(Exception):
    """An entry that cannot be an item, and why."""


def read_each(
    entries: list[Any], settings: Mapping[str, Any], search: Searching, url: str
) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    """All that can be read; an entry that is broken is skipped, and the rest goes on."""
    items: list[Item] = []
    skipped: list[Skipped] = []
    for entry in entries[:MOST_ENTRIES]:
        try:
            items.append(_item(entry, settings, search, url))
        except Unusable as reason:
            skipped.append(Skipped(str(reason), excerpt(entry)))
    skipped += [Skipped("too many items")] * (len(entries) - MOST_ENTRIES)
    return tuple(items), tuple(skipped)


def excerpt(entry: Any) -> str:
    try:
        return str(entry)[:_EXCERPT]
    except (RecursionError, ValueError):
        return "too deep, or too large a number, to be shown"


def _item(entry: Any, settings: Mapping[str, Any], search: Searching, url: str) -> Item:
    if not isinstance(entry, dict):
        raise Unusable("not an object")
    part = _parts(entry, settings, search)
    created, edited, replied = (values.moment(part(name)) for name in ("created_at", "edited_at", "last_reply_at"))
    text, html = _text(part)
    counters = {name: values.count(part(name)) for name in ("score", "reply_count", "view_count")}
    item = Item(
        external_id=values.words(part("id")) or "",
        created_at=created.at if created else None,
        is_zone_guessed=bool(created and created.is_zone_guessed),
        edited_at=edited.at if edited and (created is None or edited.at > created.at) else None,
        title=pieces.plain_title(values.words(part("title"))),
        text=text,
        html=html,
        url=pieces.resolved(values.words(part("url"), values.ADDRESSES_INSIDE), url),
        target_url=pieces.resolved(values.words(part("target_url"), values.ADDRESSES_INSIDE), url),
        author=values.person(part("author")),
        author_id=values.words(part("author_id")) or _id_of(part("author")),
        score=counters["score"][0],
        reply_count=counters["reply_count"][0],
        view_count=counters["view_count"][0],
        last_reply_at=replied.at if replied else None,
        rounded=tuple(name for name, (_, is_rounded) in counters.items() if is_rounded),
        is_pinned=values.truth(part("is_pinned")),
        is_deleted=values.truth(part("is_deleted")),
        media=_media(part("media"), url),
        tags=values.several(part("tags")),
        language=pieces.language(values.words(part("language"))),
    )
    if not (item.title or item.text or item.html or item.url or item.target_url or item.media):
        raise Unusable("no content")
    return item


def _parts(entry: shapes.Object, settings: Mapping[str, Any], search: Searching) -> Callable[[str], Any]:
    """How to look a part of this entry up: by the source's expression, over the entry as it came; else by its name."""
    by_name: dict[str, Any] = {}
    for name, value in shapes.unwrapped(entry).items():
        by_name.setdefault(name.replace("_", "").replace("-", "").lower(), value)

    def part(name: str) -> Any:
        expression = settings[name]
        if expression is None:
            return next((by_name[usual] for usual in USUAL[name] if _is_said(by_name.get(usual))), None)
        try:
            return search(expression, entry)
        except ValueError:
            raise Unusable(f"`{name}` cannot be used on it") from None

    return part


def _is_said(value: Any) -> bool:
    """A missing key, null, an empty text and an empty list are the same: unknown. Zero and false are not."""
    return value is not None and value != "" and value != [] and value != {}


def _text(part: Callable[[str], Any]) -> tuple[str | None, str | None]:
    """The text and the HTML. What stands under a name for texts and has tags in it is HTML all the same."""
    html, text = values.words(part("html")), values.words(part("text"))
    if html is None and text is not None and pieces.has_html_tag(text):
        return None, text
    return (None if html else text), html


def _id_of(author: Any) -> str | None:
    return values.words(author.get("id_str") or author.get("id")) if isinstance(author, dict) else None


def _media(value: Any, url: str) -> tuple[Media, ...]:
    found: dict[str, Media] = {}
    for address, sort, alt in values.addresses(value):
        whole = pieces.resolved(address, url)
        if whole is not None:
            mime = sort if sort and "/" in sort else None
            found.setdefault(whole, Media(whole, _sort(mime, whole, sort), mime=mime, alt=alt))
    return tuple(found.values())


def _sort(mime: str | None, address: str, said: str | None) -> str:
    """What the API calls a photo is an image, whatever its address ends with."""
    medium = "image" if said in ("photo", "picture", "image") else said
    return pieces.media_kind(mime, address, medium)
