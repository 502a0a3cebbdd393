"""Requests to X: through its own API (v2), and through TwitterAPI.io."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import quote

from catchment.model import Answer, Gap, Identity, JsonObject, Prices, Progress, Request, Source, Usage, WalkPlan
from catchment.platforms.x.shapes import decoded_documents, tweet_count

X, TWITTERAPI_IO = "x", "twitterapi_io"
X_HOST, X_OLD_HOST, TWITTERAPI_IO_HOST = "api.x.com", "api.twitter.com", "api.twitterapi.io"
FEED, LIST, BOOKMARKS = "twitter_feed", "twitter_list", "twitter_bookmarks"
SERVICES = {FEED: (TWITTERAPI_IO, X), LIST: (TWITTERAPI_IO, X), BOOKMARKS: (X,)}
"""The services that have a kind, the preferred one first."""

PROFILE, ME, TWEETS, SEARCHED = "profile", "me", "tweets", "search"
TIMELINE, WITHOUT_REPLIES, LIST_TWEETS, SAVED = "tweets", "tweets_without_replies", "list_tweets", "bookmarks"
LARGEST_PAGE, SMALLEST_PAGE, SMALLEST_SEARCH = 100, 5, 10
"""What X's own API gives at once; TwitterAPI.io always gives 20 at most."""
FLAT_PAGE = 20
"""Also the least that X's own API is asked for if it gives new posts only: smaller pages would save nothing, and a walk
of 200 pages would not reach all that can be seen."""
PRICES = {
    # Pay per use: $0.005 for a post, $0.01 for a user.
    X: Prices(item=5_000, profile=10_000),
    # 100,000 credits are a dollar: 15 for a post, 18 for a profile, 150 for a page of a list, 15 for any call at least.
    TWITTERAPI_IO: Prices(item=150, profile=180, list_call=1_500, minimum=150),
}
UNCHARGED = (401, 402, 403, 429)
"""Refused before anything was looked up: there is no account to charge, nothing on it, or it was too early."""

# Without these, the API gives id and text alone.
FIELDS = {
    "tweet.fields": (
        "attachments,author_id,conversation_id,created_at,edit_history_tweet_ids,entities,in_reply_to_user_id,lang,"
        "note_tweet,possibly_sensitive,public_metrics,referenced_tweets"
    ),
    "expansions": (
        "author_id,attachments.media_keys,referenced_tweets.id,referenced_tweets.id.author_id,"
        "referenced_tweets.id.attachments.media_keys"
    ),
    "user.fields": "name,protected,username",
    "media.fields": "alt_text,duration_ms,height,media_key,preview_image_url,type,url,variants,width",
}


def first(source: Source, progress: Progress, plan: WalkPlan) -> Request:
    """Returns the first request of a walk: the list itself if its number is known, else the profile that has it."""
    service = service_of(source, plan)
    is_known = {"is_known": True} if progress.watermark is not None else {}
    state = {"service": service, "size": plan.limit, **_most(plan, service), **is_known}
    state |= _since(source, progress, service)
    if source.kind == LIST:
        return timeline(source.kind, source.target, state, listing=LIST_TWEETS)
    if source.settings.get("replies") is False:
        state["replies"] = False
    listing = _listing(source)
    number = progress.cursor.get("user_id")
    if source.kind == BOOKMARKS:
        if isinstance(number, str):
            return timeline(source.kind, number, {**state, "user_id": number}, listing=listing)
        return _request(X, f"{_v2()}/users/me", {}, ME, state, listing)
    name = source.target.removeprefix("@")
    state["name"] = name
    if not isinstance(number, str):
        return profile(service, name, state, listing)
    state |= {"user_id": number, **_of_empty_account(progress)}
    if service == TWITTERAPI_IO and _is_check_due(progress):
        return profile(service, name, state, listing)
    return timeline(source.kind, number, state, listing=listing)


def _most(plan: WalkPlan, service: str) -> JsonObject:
    """Returns how many posts a page may have, if the spending caps do not allow the largest one."""
    most = plan.affordable.get(service, LARGEST_PAGE)
    return {"most": most} if most < LARGEST_PAGE else {}


_CHECKED_EVERY = timedelta(days=1)
"""How often the profile of somebody without posts is read: for TwitterAPI.io, such accounts look like those that are
gone."""


OF_EMPTY_ACCOUNT = ("checked_at", "post_count", "note")
"""What is known about an account that shows no posts: when its profile was read, how many posts that counted, and what
an empty page means."""


def _of_empty_account(progress: Progress) -> JsonObject:
    return {name: progress.cursor[name] for name in OF_EMPTY_ACCOUNT if name in progress.cursor}


def _is_check_due(progress: Progress) -> bool:
    checked_at, polled_at = progress.cursor.get("checked_at"), progress.last_polled_at
    if not isinstance(checked_at, int) or polled_at is None:
        return False
    return polled_at - datetime.fromtimestamp(checked_at, UTC) >= _CHECKED_EVERY


_RECENT = timedelta(days=7)
"""How far back X's search for everybody goes; beyond it, only some accounts may search."""
_SOON = timedelta(minutes=5)
"""So long before that limit, it counts as reached: the request takes its time."""
_BELOW = timedelta(days=7)
"""How much further down than a gap a search goes, so that it meets a post below it. What is below is read to the end of
one page at most."""


def search(source: Source, gap: Gap, plan: WalkPlan, now: datetime) -> Request:
    """Returns the request for a user's posts of a stretch of time, newest first."""
    service = service_of(source, plan)
    state: JsonObject = {"service": service, "kind": FEED, "name": source.target.removeprefix("@")}
    state |= _most(plan, service)
    if source.settings.get("replies") is False:
        state["replies"] = False
    state["since"] = int((gap.from_at - _BELOW).timestamp())
    if state["service"] == X:
        oldest = now - _RECENT + _SOON
        state["is_recent"] = gap.from_at > oldest
        if state["is_recent"]:
            state["since"] = max(state["since"], int(oldest.timestamp()))
    # Up to the end of the second: what has its time may be missing, too.
    state["until"] = int(gap.open_to_at.timestamp()) + 1
    return search_page(state, _listing(source))


def search_page(state: JsonObject, listing: str, cursor: str = "") -> Request:
    query = f"from:{state['name']}"
    if state["service"] == X:
        params = {
            "query": f"{query} -is:reply" if state.get("replies") is False else query,
            "start_time": _rfc3339(state["since"]),
            "end_time": _rfc3339(state["until"]),
            "max_results": str(max(SMALLEST_SEARCH, state.get("most", LARGEST_PAGE))),
            **FIELDS,
            **({"next_token": cursor} if cursor else {}),
        }
        path = "recent" if state["is_recent"] else "all"
        return _request(X, f"{_v2()}/tweets/search/{path}", params, SEARCHED, state, listing)
    query += f" since_time:{state['since']} until_time:{state['until']}"
    query += " -filter:replies" if state.get("replies") is False else ""
    params = {"query": query, "queryType": "Latest", "cursor": cursor}
    return _request(
        TWITTERAPI_IO,
        f"https://{TWITTERAPI_IO_HOST}/twitter/tweet/advanced_search",
        params,
        SEARCHED,
        state,
        listing,
    )


def _rfc3339(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def service_of(source: Source, plan: WalkPlan) -> str:
    """Returns the service that a source is read through: the one it names, else the first that has a key."""
    choices = SERVICES[source.kind]
    named = source.settings.get("service")
    keyed = [service for service in choices if service in plan.keyed]
    return named if isinstance(named, str) else (keyed or choices)[0]


def _listing(source: Source) -> str:
    if source.kind == BOOKMARKS:
        return SAVED
    return WITHOUT_REPLIES if source.settings.get("replies") is False else TIMELINE


def _since(source: Source, progress: Progress, service: str) -> JsonObject:
    """Returns the newest known id: X's own API is asked only for what is newer, which costs less."""
    ids = progress.watermark.ids if progress.watermark and source.kind == FEED and service == X else ()
    numbers = [int(external_id) for external_id in ids if external_id.isascii() and external_id.isdigit()]
    return {"since": str(max(numbers))} if numbers else {}


def profile(service: str, name: str, state: JsonObject, listing: str) -> Request:
    if service == X:
        params = {"user.fields": FIELDS["user.fields"]}
        return _request(X, f"{_v2()}/users/by/username/{quote(name)}", params, PROFILE, state, listing)
    url = f"https://{TWITTERAPI_IO_HOST}/twitter/user/info"
    return _request(TWITTERAPI_IO, url, {"userName": name}, PROFILE, state, listing)


def check(asked: Request) -> Request:
    """Returns the request for the profile of a user whose posts are gone: for TwitterAPI.io, that is an empty page."""
    state = {name: value for name, value in asked.state.items() if name not in ("kind", "number")}
    return profile(asked.service or X, str(state["name"]), {**state, "is_check": True}, asked.listing)


def timeline(kind: str, number: str, state: JsonObject, listing: str, cursor: str = "") -> Request:
    """Returns the request for a page of the tweets of a user or a list, or of one's own bookmarks, by its number."""
    state = {**state, "kind": kind, "number": number}
    if state["service"] == X:
        path = {FEED: f"users/{number}/tweets", LIST: f"lists/{number}/tweets", BOOKMARKS: f"users/{number}/bookmarks"}
        least = SMALLEST_PAGE if "since" not in state else FLAT_PAGE
        size = min(max(least, state["size"]), state.get("most", LARGEST_PAGE), LARGEST_PAGE)
        params = {"max_results": str(max(SMALLEST_PAGE, size)), **FIELDS}
        if kind == FEED:
            params |= {"exclude": "replies"} if state.get("replies") is False else {}
            params |= {"since_id": state["since"]} if "since" in state else {}
        params |= {"pagination_token": cursor} if cursor else {}
        return _request(X, f"{_v2()}/{path[kind]}", params, TWEETS, state, listing)
    if kind == LIST:
        path_, params = "list/tweets_timeline", {"listId": number, "cursor": cursor}
    else:
        replies = "false" if state.get("replies") is False else "true"
        path_, params = "user/last_tweets", {"userId": number, "includeReplies": replies, "cursor": cursor}
    return _request(TWITTERAPI_IO, f"https://{TWITTERAPI_IO_HOST}/twitter/{path_}", params, TWEETS, state, listing)


def next_page(asked: Request, cursor: str, oldest: datetime | None = None) -> Request:
    """Returns the request for the page after this one, whose oldest post has that time."""
    state = asked.state
    if asked.step == SEARCHED:
        return _next_search_page(asked, cursor, oldest)
    return timeline(
        state["kind"], state["number"], {**state, "cursors": [*_seen(asked), cursor]}, asked.listing, cursor
    )


def _next_search_page(asked: Request, cursor: str, oldest: datetime | None) -> Request:
    """By cursor at X. Cursors of TwitterAPI.io lead in circles at older times: there the next page begins with the
    oldest second shown, and only if this one began there, too, the cursor leads on."""
    state = {**asked.state, "cursors": [*_seen(asked), cursor]}
    until = int(oldest.timestamp()) + 1 if oldest is not None and state["service"] != X else state["until"]
    if until >= state["until"]:
        return search_page(state, asked.listing, cursor)
    return search_page({**state, "until": until, "cursors": []}, asked.listing)


_MOST_CURSORS = 50


def _seen(asked: Request) -> list[str]:
    cursors = asked.state.get("cursors")
    return list(cursors)[-_MOST_CURSORS:] if isinstance(cursors, list) else []


def is_loop(asked: Request, cursor: str) -> bool:
    """Whether this walk was at that place before."""
    return cursor in _seen(asked)


def _v2() -> str:
    return f"https://{X_HOST}/2"


def _request(
    service: str, url: str, params: dict[str, str], step: str, state: JsonObject, listing: str = ""
) -> Request:
    return Request(
        url, params=params, step=step, listing=listing, state=state, service=service, identity=Identity.NEEDED
    )


class XKey(Protocol):
    """The parts of a credential in which a key may have been stored."""

    @property
    def basic(self) -> str | None: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def cookies(self) -> str | None: ...


def dressed(request: Request, secret: XKey) -> Request:
    """Returns the request with the key where the service expects it, in whatever form it was stored."""
    stored = secret.basic or next(iter(secret.headers.values()), "") or secret.cookies or ""
    key = stored.removeprefix("Bearer ").strip()
    header = {"Authorization": f"Bearer {key}"} if request.service == X else {"X-API-Key": key}
    return request.replace(headers={**request.headers, **header})


def usage(request: Request, answer: Answer | None) -> Usage | None:
    """Returns what an answer is charged for, or the most that a request may be charged for.

    X charges for the posts and users that it returns, and for nothing else. TwitterAPI.io charges a minimum even for
    errors and empty pages; not for calls that it refuses before it looks at them, and not for the balance.
    """
    if request.step == ME and request.service == TWITTERAPI_IO:
        return Usage(is_free=True)
    if answer is not None and answer.status in UNCHARGED:
        return Usage(is_free=True)
    is_list = request.state.get("kind") == LIST
    if answer is None:
        most = int(request.params.get("max_results", LARGEST_PAGE)) if request.service == X else FLAT_PAGE
        return Usage(profiles=1) if request.step in (PROFILE, ME) else Usage(items=most, is_list=is_list)
    if answer.status >= 300:
        return Usage(is_free=request.service == X)
    documents, broken = decoded_documents(answer.body)
    if broken or not documents:
        return None
    if request.step in (PROFILE, ME):
        data = documents[0].get("data") if isinstance(documents[0], dict) else None
        return Usage(profiles=1 if isinstance(data, dict) and data else 0)
    return Usage(items=tweet_count(documents), is_list=is_list)


PROBES = {
    X: _request(X, f"{_v2()}/users/by/username/x", {}, PROFILE, {"service": X, "size": 5, "name": "x"}),
    # Free of charge.
    TWITTERAPI_IO: _request(TWITTERAPI_IO, f"https://{TWITTERAPI_IO_HOST}/oapi/my/info", {}, ME, {}),
}
