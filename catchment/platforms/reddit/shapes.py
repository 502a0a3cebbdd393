"""Reddit's answers as structs, with the fields that are used. A missing key, null, "" and a value of a wrong type all
mean: unknown.

Everything is a thing: {kind, data}. Things come in listings, in pairs of listings (a thread: the post, its
comments), nested into each other (replies), or in a flat list (what "more" led to).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Raw, Struct

from catchment.errors import Unreadable
from catchment.lazy import pattern
from catchment.platforms._common.coercion import text
from catchment.platforms._common.json import decoded, without_half_pairs

POST, COMMENT, MORE = "t3", "t1", "more"
FULLNAME = pattern(r"t[13]_[0-9a-z]{1,13}")
DELETED = "[deleted]"
"""In place of a name: the account is gone. That says nothing about what it wrote."""
MOST_THINGS = 5_000
"""Per answer: ten times what Reddit sends at once."""
DEEPEST = 40
"""How far replies to replies are parsed: four times as deep as Reddit shows them. Every level is parsed once more."""
# A value of HTML begins with a tag; unless <, > and & of every value came encoded, as without `raw_json=1`.
_ENCODED = pattern(rb'"(?:selftext|body)_html"\s*:\s*"&lt;')

Shape = TypeVar("Shape")


class Thing(Struct):
    kind: str
    data: Raw


class Inside(Struct):
    children: list[Raw]
    """Raw, so that one bad thing cannot break the page."""
    after: Any = None


class RedditListing(Struct):
    data: Inside


class Things(Struct):
    things: list[Raw]


class MoreData(Struct):
    data: Things


class MoreThings(Struct):
    """The answer to a request for omitted comments."""

    json: MoreData


class RedditPost(Struct):
    name: Any = None
    id: Any = None
    title: Any = None
    selftext: Any = None
    selftext_html: Any = None
    author: Any = None
    author_fullname: Any = None
    created_utc: Any = None
    edited: Any = None
    score: Any = None
    num_comments: Any = None
    view_count: Any = None
    over_18: Any = None
    stickied: Any = None
    is_self: Any = None
    post_hint: Any = None
    permalink: Any = None
    url: Any = None
    url_overridden_by_dest: Any = None
    subreddit: Any = None
    link_flair_text: Any = None
    removed_by_category: Any = None
    media: Any = None
    secure_media: Any = None
    preview: Any = None
    gallery_data: Any = None
    media_metadata: Any = None
    poll_data: Any = None
    crosspost_parent: Any = None
    crosspost_parent_list: Any = None


class Comment(Struct):
    name: Any = None
    id: Any = None
    body: Any = None
    body_html: Any = None
    author: Any = None
    author_fullname: Any = None
    created_utc: Any = None
    edited: Any = None
    score: Any = None
    score_hidden: Any = None
    stickied: Any = None
    permalink: Any = None
    link_id: Any = None
    parent_id: Any = None
    media_metadata: Any = None
    replies: Raw = Raw(b"")


class MoreComments(Struct):
    """Stub in place of omitted comments: with their ids, or without any where the thread continues elsewhere."""

    id: Any = None
    parent_id: Any = None
    count: Any = None
    children: Any = None


class RedditPage(Struct):
    """The things of one answer in their order, and where the listing continues."""

    things: list[Raw]
    after: str | None = None


def page(body: bytes) -> RedditPage:
    """Parses any of Reddit's shapes. Raises an error if it has none of them."""
    body = plain(without_half_pairs(body))
    if body.lstrip()[:1] == b"[":
        listings = [_needed(raw, RedditListing) for raw in _needed(body, list[Raw])]
        return RedditPage([thing for listing in listings for thing in listing.data.children])
    if (more := decoded(body, MoreThings)) is not None:
        return RedditPage(more.json.data.things)
    listing = _needed(body, RedditListing).data
    return RedditPage(listing.children, text(listing.after))


def plain(body: bytes) -> bytes:
    """Returns the answer as with `raw_json=1`, should a proxy on the way have lost that parameter."""
    if not _ENCODED.search(body):
        return body
    # None of these characters means anything to JSON: a value is decoded in place.
    return body.replace(b"&lt;", b"<").replace(b"&gt;", b">").replace(b"&amp;", b"&")


def _needed(raw: bytes | Raw, shape: type[Shape]) -> Shape:
    value = decoded(raw, shape)
    if value is None:
        raise Unreadable("the answer is not a Reddit listing", "Reddit may have changed its format; the answer is kept")
    return value


def replies(comment: Comment) -> Sequence[Raw] | None:
    """Returns the replies to a comment; empty where Reddit says ""; None where they are unknown."""
    if bytes(comment.replies) in (b"", b'""', b"null"):
        return ()
    listing = decoded(comment.replies, RedditListing)
    return None if listing is None else listing.data.children


Read = tuple[Raw, RedditPost | Comment | MoreComments | None]
"""A thing as received, and what it is; None: neither post, comment nor stub."""


def flat(raws: Sequence[Raw]) -> tuple[list[Read], dict[str, int]]:
    """Returns all things, each before its replies; and how many were left out, by reason."""
    things: list[Read] = []
    too_deep = 0
    waiting = [(raw, 1) for raw in reversed(raws)]
    while waiting and len(things) < MOST_THINGS:
        raw, depth = waiting.pop()
        received = decoded(raw, Thing)
        shape = SHAPES.get(received.kind) if received else None
        thing = decoded(received.data, shape) if received and shape else None
        things.append((raw, thing))
        below = (replies(thing) or ()) if isinstance(thing, Comment) else ()
        if depth < DEEPEST:
            waiting += [(reply, depth + 1) for reply in reversed(below)]
        else:
            too_deep += len(below)
    return things, {"too many in one answer": len(waiting), "nested too deep": too_deep}


SHAPES: dict[str, type[RedditPost | Comment | MoreComments]] = {POST: RedditPost, COMMENT: Comment, MORE: MoreComments}


def inner(value: Any, *names: str) -> Any:
    """Returns the value under these nested names; None where one of them is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def fullname(prefix: str, name: Any, id36: Any) -> str | None:
    """Returns t3_abc; built from its parts, where only they are given."""
    full = text(name) or (f"{prefix}_{id36}" if isinstance(id36, str) else "")
    return full if FULLNAME.fullmatch(full) and full.startswith(prefix) else None


def name_of(author: Any) -> str | None:
    name = text(author)
    return None if name == DELETED else name
