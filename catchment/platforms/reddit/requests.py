"""What Reddit is asked: by its own interface, which wants a key, or without one by the feeds of its communities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from catchment.model import Ask, Identity, Request, Source
from catchment.platforms.reddit import targets

HOST, SITE, OLD_SITE = "oauth.reddit.com", "www.reddit.com", "old.reddit.com"
PAGE_SIZE = 100
"""The most that Reddit gives at once; it costs no more than less."""
MOST_COMMENTS = 500
MOST_IDS = 100
"""Of one request; with many more the address itself is refused."""

LIST, FEED, LOOK, THREAD, STUB, LOGIN = "list", "feed", "look", "thread", "stub", "login"
NEWEST, ATOM = "new", "atom"
RAW = {"raw_json": "1"}


def listing(source: Source, ask: Ask, *, is_known: bool) -> Request:
    """The first page of a listing. Of the newest always whole pages: what is beyond the limit is read anyway."""
    name = targets.name_of(source.target)
    size = PAGE_SIZE if ask.listing == NEWEST else min(PAGE_SIZE, ask.limit)
    return _asked(
        source.credential,
        f"r/{name}/{ask.listing}",
        {"limit": str(size), **_time(ask)},
        LIST,
        {"community": name, "comments": source.settings.get("comments") is True, "is_known": is_known},
        listing=ask.listing,
    )


def feed(source: Source, ask: Ask) -> Request:
    """The same as a feed, without a key. The newest are then a listing of another sort: a window."""
    name = targets.name_of(source.target)
    return Request(
        f"https://{SITE}/r/{quote(name)}/{ask.listing}/.rss",
        params={"limit": str(PAGE_SIZE), **_time(ask)},
        step=FEED,
        listing=ATOM if ask.listing == NEWEST else ask.listing,
        carried={"community": name},
    )


def _time(ask: Ask) -> dict[str, str]:
    return {"t": ask.time_filter} if ask.time_filter and ask.listing in targets.FILTERED else {}


def looks(credential: str | None, ids: Sequence[str]) -> list[Request]:
    """By id, a hundred at a time; posts and comments alike."""
    return [_asked(credential, "api/info", {"id": ",".join(few)}, LOOK) for few in _few(ids)]


def thread(post_id: str, asked: Request) -> Request:
    """A post with its comments; worth asking for if the post is new, or not as it was."""
    path, carried = f"comments/{post_id[3:]}", {"post": post_id}
    request = _asked(asked.credential, path, {"limit": str(MOST_COMMENTS)}, THREAD, carried, listing=asked.listing)
    return request.plus(if_changed=post_id)


def stubs(post_id: str, ids: Sequence[str], asked: Request) -> list[Request]:
    """The comments that a thread left out, by their ids."""
    told = {"api_type": "json", "link_id": post_id}
    return [
        _asked(
            asked.credential,
            "api/morechildren",
            {**told, "children": ",".join(few)},
            STUB,
            {"post": post_id},
            listing=asked.listing,
        )
        for few in _few(ids)
    ]


def deeper(post_id: str, comment_id: str, asked: Request) -> Request:
    """Where a thread goes on that became too deep to be shown at once: from one of its comments on."""
    path, carried = f"comments/{post_id[3:]}/_/{comment_id[3:]}", {"post": post_id, "comment": comment_id}
    return _asked(asked.credential, path, {"limit": str(MOST_COMMENTS)}, THREAD, carried, listing=asked.listing)


def _few(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (ids[start : start + MOST_IDS] for start in range(0, len(ids), MOST_IDS))


def next_page(asked: Request, after: str) -> Request:
    return asked.plus(params={**asked.params, "after": after})


def _asked(
    credential: str | None,
    path: str,
    params: dict[str, str],
    step: str,
    carried: dict[str, Any] = {},  # noqa: B006 — a value: nobody changes what a request carries
    listing: str = "",
) -> Request:
    return Request(
        f"https://{HOST}/{quote(path)}",
        params={**params, **RAW},
        step=step,
        listing=listing,
        carried=carried,
        identity=Identity.NEEDED,
        credential=credential,
    )
