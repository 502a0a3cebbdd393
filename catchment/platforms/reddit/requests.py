"""Requests to Reddit: to its API, which needs an API key, or without one to the feeds of its communities; and logins.

An app with a secret gets a token of its own; an installed app, which has none, gets one as a device.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from msgspec import Struct

from catchment.errors import LoginNeeded
from catchment.lazy import pattern
from catchment.model import Answer, Identity, JsonObject, Request, Source, Token, WalkPlan
from catchment.platforms._common.coercion import number, text
from catchment.platforms._common.json import decoded

HOST, SITE, OLD_SITE = "oauth.reddit.com", "www.reddit.com", "old.reddit.com"
PAGE_SIZE = 100
"""The most that Reddit gives at once; it costs no more than less."""
MOST_COMMENTS = 500
MOST_IDS = 100
"""Per request; with many more the URL itself is refused."""

LIST, FEED, RECHECK, THREAD, STUB, LOGIN = "list", "feed", "recheck", "thread", "stub", "login"
NEWEST, ATOM = "new", "atom"
SORTS = (NEWEST, "top", "hot", "rising", "controversial")
TIME_FILTERS = ("hour", "day", "week", "month", "year", "all")
FILTERED = ("top", "controversial")
"""Only these listings have time filters."""
RAW = {"raw_json": "1"}
LOGIN_HELPS = (
    "check client id and secret at https://www.reddit.com/prefs/apps, and store them again: CLIENT_ID:SECRET, or "
    "CLIENT_ID: for an installed app"
)
# Reddit's own value for a device that does not want to be distinguished; a device id must have 20 characters.
DEVICE = "DO_NOT_TRACK_THIS_DEVICE"
INSTALLED = "https://oauth.reddit.com/grants/installed_client"
_USUAL_LIFE, _LONGEST_LIFE = 3600, 86_400
"""Seconds. A token that claims to live longer is renewed after a day."""
_LARGEST_TOKEN = 100_000
"""Bytes of an answer. A token is a line."""
# What is allowed in a header.
_TOKEN = pattern(r"[!-~]{1,8000}")


def listing(source: Source, plan: WalkPlan, *, is_known: bool) -> Request:
    """Returns the first page of a listing. Of the newest always whole pages: items beyond the limit are read anyway."""
    name = source.target.removeprefix("r/")
    size = PAGE_SIZE if plan.listing == NEWEST else min(PAGE_SIZE, plan.limit)
    return _asked(
        source.credential,
        f"r/{name}/{plan.listing}",
        {"limit": str(size), **_time(plan)},
        LIST,
        {"community": name, "comments": source.settings.get("comments") is True, "is_known": is_known},
        listing=plan.listing,
    )


def feed(source: Source, plan: WalkPlan) -> Request:
    """Returns the same as a feed, without an API key. The newest are then a listing of another sort: a window."""
    name = source.target.removeprefix("r/")
    return Request(
        f"https://{SITE}/r/{quote(name)}/{plan.listing}/.rss",
        params={"limit": str(PAGE_SIZE), **_time(plan)},
        step=FEED,
        listing=ATOM if plan.listing == NEWEST else plan.listing,
        state={"community": name},
    )


def _time(plan: WalkPlan) -> dict[str, str]:
    return {"t": plan.time_filter} if plan.time_filter and plan.listing in FILTERED else {}


def by_id(credential: str | None, ids: Sequence[str]) -> list[Request]:
    """Requests items by id, a hundred at a time; posts and comments alike."""
    return [_asked(credential, "api/info", {"id": batch}, RECHECK) for batch in _batches(ids)]


def thread(post_id: str, asked: Request, comment_id: str | None = None) -> Request:
    """Returns the request for a post with its comments; worth sending if the post is new or changed. With a comment,
    for a thread too deep to be shown at once: from that comment on."""
    path, state = f"comments/{post_id[3:]}", {"post": post_id}
    if comment_id is not None:
        path, state = f"{path}/_/{comment_id[3:]}", {**state, "comment": comment_id}
    request = _asked(asked.credential, path, {"limit": str(MOST_COMMENTS)}, THREAD, state, listing=asked.listing)
    return request.replace(about_item=post_id) if comment_id is None else request


def stubs(post_id: str, ids: Sequence[str], asked: Request) -> list[Request]:
    """Returns the requests for the comments that a thread left out, by their ids."""
    params, state = {"api_type": "json", "link_id": post_id}, {"post": post_id}
    return [
        _asked(asked.credential, "api/morechildren", {**params, "children": batch}, STUB, state, listing=asked.listing)
        for batch in _batches(ids)
    ]


def _batches(ids: Sequence[str]) -> Iterator[str]:
    yield from (",".join(ids[start : start + MOST_IDS]) for start in range(0, len(ids), MOST_IDS))


def next_page(asked: Request, after: str) -> Request:
    return asked.replace(params={**asked.params, "after": after})


def _asked(
    credential: str | None,
    path: str,
    params: dict[str, str],
    step: str,
    state: JsonObject = {},  # noqa: B006 — a value: the state of a request is never changed
    listing: str = "",
) -> Request:
    return Request(
        f"https://{HOST}/{quote(path)}",
        params={**params, **RAW},
        step=step,
        listing=listing,
        state=state,
        identity=Identity.NEEDED,
        credential=credential,
    )


class RedditLogin(Protocol):
    """The parts of a credential that a login needs."""

    @property
    def basic(self) -> str | None: ...


class Granted(Struct):
    access_token: Any = None
    expires_in: Any = None


def login(secret: RedditLogin) -> Request | None:
    """Returns the login request; None if the credential is a token already, and is sent as it is."""
    if secret.basic is None:
        return None
    _, _, password = secret.basic.partition(":")
    form = {"grant_type": "client_credentials"} if password else {"grant_type": INSTALLED, "device_id": DEVICE}
    basic = secret.basic if ":" in secret.basic else f"{secret.basic}:"
    return Request(
        f"https://{SITE}/api/v1/access_token",
        "POST",
        headers={
            "Authorization": f"Basic {b64encode(basic.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        body=urlencode(form).encode(),
        step=LOGIN,
        max_bytes=_LARGEST_TOKEN,
        is_keepable=False,
    )


def granted(answer: Answer) -> Granted | None:
    """Returns what a login grants; None without a token that can be sent."""
    grant = decoded(answer.body, Granted)
    return grant if grant and _TOKEN.fullmatch(text(grant.access_token) or "") else None


def token(answer: Answer) -> Token:
    grant = granted(answer)
    if grant is None:
        raise LoginNeeded("Reddit issued no token for this key", LOGIN_HELPS)
    lives = number(grant.expires_in) or 0
    bearer = {"Authorization": f"Bearer {text(grant.access_token)}"}
    return Token(bearer, min(lives, _LONGEST_LIFE) if lives > 0 else _USUAL_LIFE)
