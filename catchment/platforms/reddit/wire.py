"""What Reddit answers, as far as it is read. A missing key, null, "" and a value of a wrong sort all mean: unknown.

Everything is a thing: {kind, data}. Things come in listings, in pairs of listings (a thread: the post, its comments),
nested into each other (replies), or in a flat list (what "more" led to).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from catchment.errors import Unreadable
from catchment.platforms.halfpairs import without_half_pairs

POST, COMMENT, MORE = "t3", "t1", "more"
FULLNAME = re.compile(r"t[13]_[0-9a-z]{1,13}")
DELETED = "[deleted]"
"""In the place of a name: the account is gone. That says nothing about what it wrote."""
MOST_THINGS = 5_000
"""Of one answer: ten times what Reddit sends at once."""
DEEPEST = 40
"""How far replies to replies are read: four times as deep as Reddit shows them. Every level is read once more."""
# A value of HTML begins with a tag; unless <, > and & of every value came encoded, as without `raw_json=1`.
_ENCODED = re.compile(rb'"(?:selftext|body)_html"\s*:\s*"&lt;')
# Beyond it, numbers in JSON are no longer what was written.
_LARGEST = 2**53

Shape = TypeVar("Shape")


class Thing(Struct):
    kind: str
    data: Raw


class Inside(Struct):
    children: list[Raw]
    """Raw, so that one bad thing cannot sink the page."""
    after: Any = None


class Listing(Struct):
    data: Inside


class Things(Struct):
    things: list[Raw]


class MoreData(Struct):
    data: Things


class MoreThings(Struct):
    """What a stub led to."""

    json: MoreData


class Post(Struct):
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
    is_video: Any = None
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


class More(Struct):
    """What stands where comments are left out: their ids, or none of them where the thread only goes on elsewhere."""

    id: Any = None
    parent_id: Any = None
    count: Any = None
    children: Any = None


# ── things of an answer ───────────────────────────────────────────────────────────────────────────────────────────


class Page(Struct):
    """The things of one answer in their order, and where the listing goes on."""

    things: list[Raw]
    after: str | None = None


def page(body: bytes) -> Page:
    """Whatever of Reddit's shapes it is. Raises what says that it is none."""
    body = plain(without_half_pairs(body))
    beginning = body.lstrip()[:1]
    if beginning == b"[":
        listings = [_listing(raw) for raw in _needed(body, list[Raw])]
        return Page([thing for listing in listings for thing in listing.children])
    if (more := decoded(body, MoreThings)) is not None:
        return Page(more.json.data.things)
    listing = _listing(Raw(body))
    return Page(listing.children, text(listing.after))


def plain(body: bytes) -> bytes:
    """The answer as `raw_json=1` has it, should something on the way have lost that."""
    if not _ENCODED.search(body):
        return body
    # None of these characters means anything to JSON: a value is decoded where it stands.
    return body.replace(b"&lt;", b"<").replace(b"&gt;", b">").replace(b"&amp;", b"&")


def _listing(raw: Raw) -> Inside:
    return _needed(raw, Listing).data


def _needed(raw: bytes | Raw, shape: type[Shape]) -> Shape:
    found = decoded(raw, shape)
    if found is None:
        raise Unreadable("what came is none of Reddit's listings", "Reddit may have changed its form; it is kept")
    return found


def decoded(raw: bytes | Raw, shape: type[Shape]) -> Shape | None:
    """None for what is broken, or something else."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def replies(comment: Comment) -> Sequence[Raw] | None:
    """What answers a comment; none where "" stands for it; None where it cannot be told."""
    if bytes(comment.replies) in (b"", b'""', b"null"):
        return ()
    listing = decoded(comment.replies, Listing)
    return None if listing is None else listing.data.children


Read = tuple[Raw, Post | Comment | More | None]
"""A thing as it came, and what it is; None: neither post, comment nor stub."""


def flat(raws: Sequence[Raw]) -> tuple[list[Read], dict[str, int]]:
    """All things, each before its replies; and how many were left out, by reason."""
    found: list[Read] = []
    too_deep = 0
    waiting = [(raw, 1) for raw in reversed(raws)]
    while waiting and len(found) < MOST_THINGS:
        raw, depth = waiting.pop()
        found.append((raw, thing := _thing(raw)))
        below = (replies(thing) or ()) if isinstance(thing, Comment) else ()
        if depth < DEEPEST:
            waiting += [(one, depth + 1) for one in reversed(below)]
        else:
            too_deep += len(below)
    return found, {"too many in one answer": len(waiting), "nested too deep": too_deep}


def _thing(raw: Raw) -> Post | Comment | More | None:
    thing = decoded(raw, Thing)
    shape = SHAPES.get(thing.kind) if thing else None
    return decoded(thing.data, shape) if thing and shape else None


SHAPES: dict[str, type[Post | Comment | More]] = {POST: Post, COMMENT: Comment, MORE: More}


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────


def text(value: Any) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST else None


def inner(value: Any, *names: str) -> Any:
    """What stands under these names, one inside the other; None where one of them is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def moment(value: Any) -> datetime | None:
    """Seconds since 1970, whole or not."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < _LARGEST:
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def fullname(prefix: str, name: Any, id36: Any) -> str | None:
    """t3_abc; by its parts, where only they are told."""
    told = text(name) or (f"{prefix}_{id36}" if isinstance(id36, str) else "")
    return told if FULLNAME.fullmatch(told) and told.startswith(prefix) else None


def name_of(author: Any) -> str | None:
    told = text(author)
    return None if told == DELETED else told
