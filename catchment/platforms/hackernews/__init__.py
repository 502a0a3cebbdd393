"""Stories of Hacker News: its lists, and searches; with their comments, if wanted.

**Access.** No account. Use a list (`top`, `new`, `best`, `ask`, `show`, `job`), a search (`search:WORDS`), or the
address of either: https://news.ycombinator.com/newest, https://hn.algolia.com/?q=WORDS. Lists come from the site's own
API (Firebase), searches from Algolia's. A story that both show is one item.

**Limits.** A list takes one request, and one more for each story that is not stored yet. `new`, `top` and `best` show
up to 500 stories, the others 200. A search is read newest first, 100 stories per request, as far back as necessary:
Algolia ends a query after 1,000 hits, so the next one begins at the oldest of them. Algolia allows 10,000 requests per
hour; both APIs together stay below that. `comments=true` reads the comments of every story that is new or has another
number of comments, 500 per request, by search: when the story is first seen, whenever a search shows it again, and when
it is rechecked.

**Blind spots.** Poll options are not read, and comments only with `comments=true`. Stories that were dead or deleted
before they were first seen are counted, not stored. Those that die later are marked when they are rechecked (after 1
hour, 36 hours, 7 and 30 days), and keep their stored text. Dead and deleted comments are not shown by search: the place
of the replies to them is unknown, and a comment that is removed later is not noticed. `top`, `best`, `ask`, `show` and
`job` are ranked, so they cannot prove that nothing is missing; `new` and searches can. Their gaps are repaired by
search, which does not show stories that have been removed since. The search index shows a story a few minutes after the
site, and its edits even later.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from catchment.errors import InvalidInput, Refused, ServerTrouble, SlowDown
from catchment.messages import Message, message
from catchment.model import (
    Answer,
    Budget,
    FailureScope,
    Field,
    Gap,
    Kind,
    Listing,
    Order,
    PlanPart,
    Progress,
    Reading,
    Recheck,
    Refusal,
    Request,
    SettingValues,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common.coercion import boolean, text
from catchment.platforms._common.json import decoded
from catchment.platforms.hackernews import algolia, firebase, stories

NAME = "hackernews"
TITLE = "Hacker News"
HOSTS: tuple[str, ...] = (firebase.HOST, algolia.HOST)
# Algolia's own figure. The other service states none; what is gentle for one is gentle for both.
BUDGET: Budget | None = Budget(NAME, limit=10_000, window_seconds=3600, concurrency=8)
IS_SCOPED = False
PARSER_VERSION = 1

SEARCH = "search"
PREFIX = "search:"
# By the paths of the site's own pages.
PAGES = {"": "top", "news": "top", "newest": "new", "best": "best", "ask": "ask", "show": "show", "jobs": "job"}
LISTS = ("top", "new", "best", "ask", "show", "job")
# Algolia cuts a query there.
LONGEST_QUERY = 512
HELPS = (
    "use top, new, best, ask, show, job or search:WORDS, or the address of such a page: "
    "https://news.ycombinator.com/newest or https://hn.algolia.com/?q=WORDS"
)
LONGEST_COMPLAINT = 200
LIMITED = ("rate limit", "too many", "quota")
ON_THE_WAY = (
    "something in between answers instead of Hacker News: check the network, the proxy and "
    "CATCHMENT_HACKERNEWS_BASE_URL"
)

SEARCHED = Listing(
    SEARCH,
    Order.NEWEST_FIRST,
    page_size=algolia.PAGE_SIZE,
    # Stories are not indexed in the order in which they were posted: late ones are among known ones.
    overlap=20,
)
LISTINGS = (
    Listing("new", Order.NEWEST_FIRST, reach=500, page_size=500),
    *(Listing(name, Order.RANKED, reach=500, page_size=500) for name in ("top", "best")),
    *(Listing(name, Order.RANKED, reach=200, page_size=200) for name in ("ask", "show", "job")),
    SEARCHED,
)
BY_SEARCH = "Repaired by search, which does not show stories that were removed meanwhile."
KINDS = (
    Kind(
        name="hackernews",
        title="Hacker News",
        what="Hacker News stories: a list (top, new, best, ask, show, job), or search:WORDS",
        interval_minutes=60,
        example="new",
        listings=LISTINGS,
        fields=(
            Field(
                "listing",
                "The list to read, if not the one named by the target; `search` is for search:WORDS",
                choices=tuple(listing.name for listing in LISTINGS),
                decides=PlanPart.LISTING,
            ),
            Field("comments", "Whether to read the comments of stories: true or false", False, check=boolean),
        ),
        item_kind=stories.KINDS[0],
        more_item_kinds=(*stories.KINDS[1:], stories.COMMENT),
        recheck_ages=(timedelta(hours=1), timedelta(hours=36), timedelta(days=7), timedelta(days=30)),
        gap_repair=BY_SEARCH,
    ),
)

CHINESE = {
    BY_SEARCH: "通过搜索修复；期间被删除的文章搜索不到。",
    "Hacker News stories: a list (top, new, best, ask, show, job), or search:WORDS": (
        "Hacker News 的文章：某个列表（top、new、best、ask、show、job），或 search:关键词"
    ),
    "The list to read, if not the one named by the target; `search` is for search:WORDS": (
        "读取哪个列表（若与目标不同）；`search` 用于 search:关键词"
    ),
    "Whether to read the comments of stories: true or false": "是否也读取文章的评论：true 或 false",
}


def understand(text: str, kind: str | None = None) -> Target:
    """Returns the canonical target: the list's name, or `search:` and the words."""
    typed = " ".join(text.split())
    if any(not char.isprintable() for char in typed):
        raise _wrong(message("a target cannot contain control characters"))
    if typed.lower().startswith(PREFIX):
        return _search(typed[len(PREFIX) :])
    if "/" in typed:
        return _page(typed if "://" in typed else f"https://{typed}")
    name = typed.lower()
    if not name or (name not in LISTS and name not in PAGES):
        raise _wrong(
            message("Hacker News has no list {name!r}", name=typed[:40]) if typed else message("no target was given")
        )
    listing = name if name in LISTS else PAGES[name]
    return _target(listing, listing)


def _target(address: str, listing: str) -> Target:
    settings = {"listing": listing}
    return Target("hackernews", address, name_of(address, settings), settings)


def _search(words: str) -> Target:
    words = " ".join(words.split())
    if not words:
        raise _wrong(message("the search has no words"))
    if len(words.encode()) > LONGEST_QUERY:
        raise _wrong(message("the search has more than {most} bytes", most=LONGEST_QUERY))
    return _target(PREFIX + words, SEARCH)


def _page(address: str) -> Target:
    try:
        url = urlsplit(address)
    except ValueError:
        raise _wrong(message("the address is malformed")) from None
    host, path = url.netloc.lower().removeprefix("www."), url.path.strip("/").lower()
    is_web = url.scheme in ("http", "https")
    if is_web and host == "news.ycombinator.com" and path in PAGES:
        return _target(PAGES[path], PAGES[path])
    if not is_web or host != "hn.algolia.com" or path:
        raise _wrong(message("{url!r} is not a list on Hacker News", url=url.geturl()[:100]))
    asked = parse_qs(url.query)
    if asked.get("type", ["story"])[0] not in ("story", "all"):
        raise _wrong(message("only stories can be searched for"))
    return _search((asked.get("q") or asked.get("query") or [""])[0])


def _wrong(what: Message) -> InvalidInput:
    return InvalidInput(what, HELPS, field="target")


def name_of(address: str, settings: SettingValues) -> str:
    is_search = address.startswith(PREFIX)
    return f"Hacker News: {address[len(PREFIX) :] if is_search else settings.get('listing') or address}"


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    is_search = source.target.startswith(PREFIX)
    if (plan.listing == SEARCH) != is_search:
        raise InvalidInput(
            "{target!r} cannot be read as the listing {listing!r}",
            "set `listing` to `search` for a search, or to the name of a list",
            field="listing",
            target=source.target,
            listing=plan.listing,
        )
    with_comments = _has_comments(source)
    if is_search:
        return [algolia.request(source.target[len(PREFIX) :], with_comments=with_comments)]
    return [firebase.list_request(plan.listing, with_comments=with_comments)]


def _has_comments(source: Source) -> bool:
    return source.settings.get("comments") is True


def reach(source: Source, gap: Gap, plan: WalkPlan, now: datetime) -> list[Request]:
    """Requests the stories of that time by search, for lists and searches alike; ranked lists have no gaps."""
    is_search = source.target.startswith(PREFIX)
    if not is_search and plan.listing != "new":
        return []
    words = source.target[len(PREFIX) :] if is_search else ""
    return [algolia.request(words, until=gap.open_to_at, with_comments=_has_comments(source))]


def recheck(rechecks: Sequence[Recheck]) -> list[Request]:
    """Returns one request for each: the site returns one item at a time, and it alone says that a story died. Comments
    that came since the story was read are requested, too."""
    return [
        firebase.item_request(
            item.external_id, firebase.RECHECK, state={"comments": True} if _has_comments(item.source) else {}
        )
        for item in rechecks
    ]


def read(answer: Answer, request: Request) -> Reading:
    if request.step == algolia.COMMENTS:
        return algolia.read_comments(answer, request)
    if request.step != "list":
        return firebase.read_item(answer, request)
    return algolia.read(answer, request) if request.listing == SEARCH else firebase.read_list(answer, request)


class HackerNewsErrorBody(msgspec.Struct):
    """`message` is Algolia's word for an error, `error` the other service's; a page of hits has neither."""

    message: Any = None
    error: Any = None
    hits: msgspec.Raw | None = None


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """Returns the error; None where the answer is valid, and where its status says everything."""
    if answer.status == 429 or answer.status >= 500 or answer.status == 404:
        return None
    beginning = answer.body[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if answer.status < 300 and beginning == b"<":
        return Refusal(Refused("a web page was returned instead of data", ON_THE_WAY), FailureScope.HOST)
    error_body = decoded(answer.body, HackerNewsErrorBody) if beginning == b"{" else None
    complaint = (text(error_body.message) or text(error_body.error)) if error_body and error_body.hits is None else None
    if complaint is None:
        if answer.status != 401:
            return None
        return Refusal(Refused("a login is required where none should be needed", ON_THE_WAY), FailureScope.HOST)
    words = " ".join(complaint.split())[:LONGEST_COMPLAINT]
    what = message("the service answers: {words}", words=words)
    if any(sign in words.lower() for sign in LIMITED):
        return Refusal(SlowDown(what, "it will be requested again later"), FailureScope.HOST)
    if answer.status < 300:
        return Refusal(ServerTrouble(what, "it will be requested again"), FailureScope.REQUEST)
    helps = "check the target: a search may contain words that the service does not accept"
    return Refusal(Refused(what, helps), FailureScope.REQUEST)
