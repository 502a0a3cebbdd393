"""X (formerly Twitter): users, lists and your own bookmarks.

**Access.** A key of one of two services. [TwitterAPI.io](https://twitterapi.io) reads users and lists: `catchment
credentials add twitterapi_io NAME`, or set `TWITTER_BEARER_TOKEN` (it is sent as `X-API-Key`). X's own API reads users,
lists and bookmarks: `catchment credentials add x NAME` with a bearer token, or set `X_BEARER_TOKEN`. Bookmarks need the
token of a user (OAuth 2.0); if X has several credentials, the source must name that one. The setting `service` chooses
between the services; without it, the one that has a key is used. Use `@NAME`, the address of a profile or a list, the
number of a list, or `bookmarks`.

**Limits.** Both services charge for what they return. TwitterAPI.io gives at most 20 posts per request; X's own API
gives up to 100, and is asked only for posts that are newer than the newest stored one. X shows the newest 3,200 posts
of a user, 800 with `replies=false`; what lies beyond is recorded as a gap. On a first visit, the limit (100 by default)
says how many posts are read; later visits first request as many as experience suggests (10 to 300), and read down to
what is stored. Bookmarks have no dates: after the first visit, as many as experience suggests are read, and more as
long as a whole page of them is new. Gaps of users are repaired by search: through TwitterAPI.io for any time; through
X's own API for the last seven days, and for earlier times if the account has full-archive search.

**Blind spots.** Posts that were deleted before the first visit. Edits are noticed when X's own API shows the post
again: all versions are one item, with all their ids. What an earlier version said is stored only if it was collected
before the edit. As far as is known, TwitterAPI.io does not tell which posts are versions of one: if it does not, an
edit read through it is an item of its own. Through TwitterAPI.io, accounts that are gone look like those without posts:
of an account without posts, the profile is read once a day. A referenced post that X withholds (deleted, protected,
suspended) is known by its id only. Posts are not requested again later, because each costs money: counters are those
of the last visit that showed the post. Search does not find native retweets, so those that fell into a gap stay
missing; lists and bookmarks cannot be searched at all.
"""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import urlsplit

from catchment.errors import InvalidInput
from catchment.messages import Message, message
from catchment.model import (
    Budget,
    CredentialSettings,
    Field,
    Gap,
    Kind,
    Listing,
    Order,
    PlanPart,
    Progress,
    Request,
    Service,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common.coercion import boolean
from catchment.platforms.x import errors, parser, requests, tweets

NAME = "x"
TITLE = "X"
HOSTS: tuple[str, ...] = (requests.X_HOST, requests.X_OLD_HOST, requests.TWITTERAPI_IO_HOST)
BUDGET: Budget | None = None
IS_SCOPED = False  # a post's number is unique on the whole site
PARSER_VERSION = 1
TEXT_LIMIT = 25_000
"""The longest post that X allows."""
SERVICES = (
    Service(
        requests.X,
        (requests.X_HOST, requests.X_OLD_HOST),
        # X counts for 15 minutes; what it really allows depends on the plan, and is in its answers.
        Budget(requests.X, limit=900, window_seconds=900, concurrency=10, is_per_credential=True),
        CredentialSettings(
            (Field("X_BEARER_TOKEN", "A bearer token of X's own API: a key, beside those in the vault."),),
            headers={"Authorization": "Bearer {X_BEARER_TOKEN}"},
        ),
        requests.PROBES[requests.X],
        requests.PRICES[requests.X],
    ),
    Service(
        requests.TWITTERAPI_IO,
        (requests.TWITTERAPI_IO_HOST,),
        # The rate grows with the balance: 3 per second is the lowest of accounts that have paid. Counted by the second,
        # as the service does: 15 at once would be refused, and the wait after them would end a visit.
        Budget(requests.TWITTERAPI_IO, limit=3, window_seconds=1, concurrency=10, is_per_credential=True),
        CredentialSettings(
            (
                Field(
                    "TWITTER_BEARER_TOKEN",
                    "A key of TwitterAPI.io, sent as X-API-Key: a key, beside those in the vault.",
                ),
            ),
            headers={"X-API-Key": "{TWITTER_BEARER_TOKEN}"},
        ),
        requests.PROBES[requests.TWITTERAPI_IO],
        requests.PRICES[requests.TWITTERAPI_IO],
    ),
)

REACH, REACH_WITHOUT_REPLIES = 3_200, 800
MOST_AT_FIRST = 1_000
_LIMIT = Field(
    "limit",
    "Number of posts to read on the first visit; later ones are learnt",
    minimum=1,
    maximum=MOST_AT_FIRST,
    decides=PlanPart.FIRST_LIMIT,
)
BY_SEARCH = "Repaired by search, which does not find native retweets."
_SERVICE = "The service to read it through; by default one that has a key"
KINDS = (
    Kind(
        name=requests.FEED,
        title="X user",
        what="The posts of a user on X: @NAME",
        interval_minutes=30,
        example="@nasa",
        listings=(
            Listing(requests.TIMELINE, Order.NEWEST_FIRST, reach=REACH, page_size=20),
            Listing(requests.WITHOUT_REPLIES, Order.NEWEST_FIRST, reach=REACH_WITHOUT_REPLIES, page_size=20),
        ),
        fields=(
            Field("service", _SERVICE, choices=requests.SERVICES[requests.FEED]),
            Field("replies", "Whether to read replies to others, too: true or false", True, check=boolean),
            _LIMIT,
        ),
        item_kind=tweets.KIND,
        gap_repair=BY_SEARCH,
    ),
    Kind(
        name=requests.LIST,
        title="X list",
        what="The posts of a list on X: its number or address",
        interval_minutes=30,
        example="https://x.com/i/lists/84839422",
        listings=(Listing(requests.LIST_TWEETS, Order.NEWEST_FIRST, reach=REACH_WITHOUT_REPLIES, page_size=20),),
        fields=(Field("service", _SERVICE, choices=requests.SERVICES[requests.LIST]), _LIMIT),
        item_kind=tweets.KIND,
    ),
    Kind(
        name=requests.BOOKMARKS,
        title="X bookmarks",
        what="The bookmarks of the user whose credential the source names: bookmarks",
        interval_minutes=60,
        example="bookmarks",
        listings=(Listing(requests.SAVED, Order.RANKED, reach=REACH_WITHOUT_REPLIES, page_size=100, is_stacked=True),),
        fields=(Field("service", _SERVICE, choices=requests.SERVICES[requests.BOOKMARKS]), _LIMIT),
        item_kind=tweets.KIND,
        is_personal=True,
    ),
)

CHINESE = {
    BY_SEARCH: "通过搜索修复；搜索找不到原生转推。",
    parser.NOTHING_YET: "该账号还没有发过帖子",
    parser.NOTHING_BUT_REPLIES: "该账号目前只发过回复，而此来源不采集回复",
    parser.NOTHING_LEFT: "该账号已不再显示任何帖子",
    "X user": "X 用户",
    "X list": "X 列表",
    "X bookmarks": "X 书签",
    "The posts of a user on X: @NAME": "X 用户的帖子：@用户名",
    "The posts of a list on X: its number or address": "X 列表的帖子：填写列表编号或网址",
    "The bookmarks of the user whose credential the source names: bookmarks": (
        "来源所指定凭据的用户的书签：填写 bookmarks"
    ),
    _SERVICE: "读取所用的服务；默认使用已有密钥的那个",
    "Whether to read replies to others, too: true or false": "是否也读取对他人的回复：true 或 false",
    "Number of posts to read on the first visit; later ones are learnt": "首次采集读取的帖子数；以后的数量由系统学习",
    "A bearer token of X's own API: a key, beside those in the vault.": (
        "X 官方 API 的 Bearer 令牌：凭据库之外的一个密钥。"
    ),
    "A key of TwitterAPI.io, sent as X-API-Key: a key, beside those in the vault.": (
        "TwitterAPI.io 的密钥，以 X-API-Key 发送：凭据库之外的一个密钥。"
    ),
}

HELPS = {
    None: "use @NAME, or the address of a profile or a list, such as https://x.com/NAME",
    requests.FEED: "use @NAME, or the address of the profile, such as https://x.com/NAME",
    requests.LIST: "use the number of the list, or its address, such as https://x.com/i/lists/84839422",
    requests.BOOKMARKS: "use the word bookmarks",
}
SITES = re.compile(r"(?:(?:www|m|mobile)\.)?(?:x|twitter)\.com")
USER = re.compile(r"[A-Za-z0-9_]{1,15}")
NUMBER = re.compile(r"[1-9][0-9]{0,19}")
# Pages of the site itself that look like a user's.
NOBODY = frozenset(
    [
        "compose",
        "explore",
        "hashtag",
        "home",
        "i",
        "intent",
        "jobs",
        "login",
        "logout",
        "messages",
        "notifications",
        "privacy",
        "search",
        "settings",
        "share",
        "signup",
        "tos",
    ]
)


def understand(text: str, kind: str | None = None) -> Target:
    """Returns the canonical target of a user, a list, or one's bookmarks, however it is written."""
    text = text.strip()
    if not text or not text.isprintable() or len(text) > 2_000:
        raise _wrong(message("no target was given" if not text else "there is nothing like this on X"), kind)
    host = text.partition("/")[0].lower()
    if "://" in text or SITES.fullmatch(host):
        target = _of_url(text if "://" in text else f"https://{text}", kind)
    else:
        target = _of_name(text, kind)
    if kind not in (None, target.kind):
        raise _wrong(message("this is another kind of source ({found})", found=target.kind), kind)
    return target


def _of_name(text: str, kind: str | None) -> Target:
    if kind == requests.LIST and NUMBER.fullmatch(text):
        return _list(text)
    if kind == requests.BOOKMARKS:
        if text.lower() == "bookmarks":
            return _bookmarks()
        raise _wrong(message("every user has only one list of bookmarks"), kind)
    # A bare word could be anything: it is a user's name only if one was asked for.
    name = text.removeprefix("@") if text.startswith("@") or kind == requests.FEED else ""
    if kind == requests.LIST or not USER.fullmatch(name):
        raise _wrong(
            message("there is nothing like this on X" if kind is None else "this is not a valid name or number"), kind
        )
    return _user(name)


def _of_url(url: str, kind: str | None) -> Target:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _wrong(message("the address is malformed"), kind) from None
    if parts.scheme not in ("http", "https") or not SITES.fullmatch((parts.hostname or "").lower()):
        raise _wrong(message("this is not an address on X"), kind)
    steps = [step for step in parts.path.split("/") if step]
    match steps:
        case ["i", "lists", number, *_] if NUMBER.fullmatch(number):
            return _list(number)
        case ["i", "bookmarks", *_]:
            return _bookmarks()
        case [_, "status" | "statuses", *_]:
            raise _wrong(message("this is one post, not a user or a list"), kind)
        case [_, "lists", *_]:
            raise _wrong(message("this address does not have the number of a list"), kind or requests.LIST)
        case [name, *_] if name.lower() not in NOBODY and USER.fullmatch(name.removeprefix("@")):
            return _user(name.removeprefix("@"))
    raise _wrong(message("this address is neither a user's nor a list's"), kind)


def _user(name: str) -> Target:
    # Its name follows from the posts, which have the present one.
    return Target(requests.FEED, f"@{name.lower()}")


def _list(number: str) -> Target:
    return Target(requests.LIST, number, f"X list {number}")


def _bookmarks() -> Target:
    return Target(requests.BOOKMARKS, "bookmarks", "X bookmarks")


def _wrong(what: Message, kind: str | None) -> InvalidInput:
    return InvalidInput(what, HELPS.get(kind, HELPS[None]), field="target")


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    return [requests.first(source, progress, plan)]


def reach(source: Source, gap: Gap, plan: WalkPlan, now: datetime) -> list[Request]:
    """Requests a user's posts of that time by search; lists and bookmarks cannot be searched."""
    return [requests.search(source, gap, plan, now)] if source.kind == requests.FEED else []


def dress(request: Request, secret: requests.XKey | None, now: datetime, nonce: str) -> Request:
    """Adds the key in the header that the service expects."""
    return requests.dressed(request, secret) if secret is not None else request


read = parser.read
refusal = errors.refusal
usage = requests.usage
