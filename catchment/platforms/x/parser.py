"""Reads answers: profiles, and pages of tweets of either service."""

from __future__ import annotations

from datetime import datetime

from catchment.errors import Missing, PlatformError, Refused, Unreadable
from catchment.model import Answer, Item, JsonObject, Reading, Request, Skipped
from catchment.platforms._common.coercion import number as number_of
from catchment.platforms._common.coercion import text
from catchment.platforms._common.json import read_each
from catchment.platforms.x import requests, tweets
from catchment.platforms.x.shapes import Json, TweetPage, decoded_documents, id_of, page_of

NOTHING_YET = "this account has not posted anything yet"
NOTHING_BUT_REPLIES = "this account has posted only replies so far, which this source leaves out"
NOTHING_LEFT = "this account shows no posts any more"
_NO_PROFILE = ("the answer is not a profile", "the service may have changed its format")


def read(answer: Answer, request: Request) -> Reading:
    if request.step in (requests.PROFILE, requests.ME):
        return _profile(answer, request)
    return _tweets(answer, request)


def _profile(answer: Answer, request: Request) -> Reading:
    """Reads who a user is. The number stays when the name changes, so it is asked for once; and again as long as the
    account shows no posts."""
    documents, _ = decoded_documents(answer.body)
    document = documents[0] if documents and isinstance(documents[0], dict) else {}
    data = document.get("data")
    if not isinstance(data, dict):
        raise Unreadable(*_NO_PROFILE)
    name = text(data.get("username")) or text(data.get("userName")) or ""
    number = id_of(data.get("id"))
    if (error := unreachable(data, name or str(request.state.get("name", "")))) is not None:
        raise error
    if not number or "kind" in request.state:
        raise Unreadable(*_NO_PROFILE)
    if number != request.state.get("user_id", number):
        # The user is gone, and somebody else has the name now.
        raise no_such_user(str(request.state.get("name", "")))
    post_count = number_of(data.get("statusesCount")) or 0
    cursor: JsonObject = {"user_id": number}
    if request.service == requests.TWITTERAPI_IO:
        cursor |= {"checked_at": int(answer.answered_at.timestamp()), "post_count": post_count}
    if request.state.get("is_check") is True:
        _check_emptiness(request.state, post_count)
        return Reading(cursor={**cursor, "note": _note({**request.state, "post_count": post_count})})
    kind = requests.BOOKMARKS if request.step == requests.ME else requests.FEED
    state = {**request.state, **cursor, "name": name or request.state.get("name", "")}
    note = {"note": state["note"]} if "note" in state else {}
    follow = requests.timeline(kind, number, state, request.listing)
    return Reading(follow=(follow,), is_end=False, cursor={**cursor, **note})


def _note(state: JsonObject) -> str:
    """Returns what an empty page means if there is such a user."""
    if state.get("is_known"):
        return NOTHING_LEFT
    # With replies, an empty page would not be believed.
    return NOTHING_BUT_REPLIES if state.get("post_count") else NOTHING_YET


def _check_emptiness(state: JsonObject, post_count: int) -> None:
    """Raises an error if a user's page is empty although there are posts: they are withheld, or the profile is a copy
    from before the user was lost. To believe that there is nothing would end the reading without a word."""
    # Without replies, nothing may be left to show.
    if post_count and state.get("replies") is not False:
        raise withheld(str(state.get("name", "")), post_count)


def unreachable(profile: Json, name: str) -> PlatformError | None:
    """Returns why a user's posts cannot be read, by the profile."""
    reason = f"{profile.get('unavailableReason') or ''} {profile.get('message') or ''}".lower()
    if "suspend" in reason:
        return suspended(name)
    if profile.get("unavailable") is True:
        return no_such_user(name)
    return protected(name) if profile.get("protected") is True else None


def no_such_user(name: str) -> Missing:
    return Missing(
        "there is no user @{name} on X", "check the spelling of the name; it may have been changed", name=name
    )


def suspended(name: str) -> Refused:
    return Refused(
        "X has suspended the account @{name}", "stored items are kept; the account is requested again later", name=name
    )


def protected(name: str) -> Refused:
    return Refused(
        "@{name} protects its posts: only approved followers may read them", "pause the source, or remove it", name=name
    )


def withheld(name: str, count: int) -> Refused:
    return Refused(
        "no posts of @{name} are shown, although the profile counts {count}",
        "the account may be protected, or withheld for now; it is requested again later",
        name=name,
        count=count,
    )


def _tweets(answer: Answer, request: Request) -> Reading:
    page = page_of(answer.body)
    state = request.state
    if not page.tweets and page.has_data and _looks_gone(request):
        return Reading(follow=(requests.check(request),), is_end=False)
    if not page.has_data and not page.cursor and not _is_empty_page(answer.body):
        raise Unreadable("the answer is not a page of posts", "the service may have changed its format")
    user = (
        (str(state.get("user_id", "")), str(state.get("name", ""))) if state.get("kind") == requests.FEED else ("", "")
    )
    is_first = not state.get("cursors")
    if not page.tweets and is_first:
        _check_emptiness(state, int(state.get("post_count", 0)))
    items, skipped = read_each(page.tweets, lambda tweet: tweets.item_of(tweet, page, user), "tweets")
    kept = tweets.each_once(items)
    if is_first and user[0] and request.service == requests.TWITTERAPI_IO:
        kept = _with_pinned(kept)
    skipped += (Skipped("repeated in the answer"),) * (len(items) - len(kept))
    skipped += (Skipped("a broken line"),) * page.broken
    follow = _next(page, request, min((item.created_at for item in kept if item.created_at), default=None))
    name = next((item.author for item in kept if user[0] and item.author_id == user[0] and item.author), "")
    return Reading(
        kept,
        skipped=skipped,
        follow=follow,
        # A cursor that was followed before leads nowhere: there is more, and it cannot be reached.
        is_end=not follow and not (page.cursor and page.tweets),
        is_end_doubtful=_is_doubtful(page, request),
        title=f"@{name}" if name else None,
        # The user may have another name now.
        target=f"@{name.lower()}" if name and name.lower() != user[1].lower() else None,
        # With errors or a further page, posts were left out: the account has posted something.
        cursor=_cursor(user, state, is_empty=not (page.tweets or page.errors or follow)) if is_first else None,
    )


def _with_pinned(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Returns the posts, the first one as pinned if it is older than the next: TwitterAPI.io does not mark all pinned
    posts. Taken for the end of what is new, it would hide the pages below."""
    if len(items) < 2 or items[0].created_at is None or items[1].created_at is None:
        return items
    return (items[0].replace(is_pinned=True), *items[1:]) if items[0].created_at < items[1].created_at else items


def _looks_gone(request: Request) -> bool:
    """Whether an empty page may mean that the user is gone: TwitterAPI.io shows unknown users, and those who are
    suspended or protected, like users who never posted. The profile tells, and is not asked for at every visit."""
    state = request.state
    is_first_of_user = state.get("kind") == requests.FEED and not state.get("cursors")
    return is_first_of_user and request.service == requests.TWITTERAPI_IO and "checked_at" not in state


def _is_empty_page(body: bytes) -> bool:
    """Whether the answer says that there is nothing: a v2 page without results has no `data`."""
    documents, _ = decoded_documents(body)
    document = documents[0] if documents and isinstance(documents[0], dict) else {}
    meta = document.get("meta")
    return isinstance(meta, dict) and meta.get("result_count") == 0


def _next(page: TweetPage, request: Request, oldest: datetime | None) -> tuple[Request, ...]:
    # TwitterAPI.io announces pages that do not exist: an empty one is the last. X leaves out tweets, even a whole page.
    is_over = not page.tweets and request.service != requests.X
    if not page.cursor or is_over or requests.is_loop(request, page.cursor) or "kind" not in request.state:
        return ()
    return (requests.next_page(request, page.cursor, oldest),)


def _is_doubtful(page: TweetPage, request: Request) -> bool:
    """Whether a page was announced and shows nothing: TwitterAPI.io announces pages that do not exist, and shows none
    of users who have become unreadable meanwhile."""
    is_later_page = request.step == requests.TWEETS and bool(request.state.get("cursors"))
    return not page.tweets and is_later_page and request.service == requests.TWITTERAPI_IO


def _cursor(user: tuple[str, str], state: JsonObject, *, is_empty: bool) -> JsonObject | None:
    number = user[0] or str(state.get("user_id", ""))
    if not number:
        return None
    if not is_empty or state.get("kind") != requests.FEED:
        return {"user_id": number}
    if state.get("service") == requests.TWITTERAPI_IO:
        known = {name: state[name] for name in requests.OF_EMPTY_ACCOUNT if name in state}
        return {"user_id": number, **known, "note": _note(state)}
    # X's own API is asked for newer posts only: if there are none, that says nothing about the others.
    return {"user_id": number} if state.get("is_known") else {"user_id": number, "note": NOTHING_YET}
