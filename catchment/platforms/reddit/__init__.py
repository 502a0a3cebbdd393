"""Reddit communities.

**Access.** An API key. Reddit gives keys to registered apps only, and new apps need its approval (since November 2025).
Store the key as `CLIENT_ID:SECRET`, or `CLIENT_ID:` for an installed app, which has no secret: `catchment credentials
add reddit NAME`; or set `REDDIT_CLIENT_ID` and `REDDIT_CLIENT_SECRET`. It needs no account and no password, and reads
only what is public. Without a key the community's feed is read instead, and the source says so; with
`without_key=refuse` the source fails. Use `r/NAME` or the community's address; the address of a listing
(`https://www.reddit.com/r/NAME/top?t=week`) also sets `sort` and `time_filter`.

**Limits.** 60 requests per minute for each key (Reddit allows 100), 10 in total without one. A listing shows about
1,000 posts, 100 per request; older ones cannot be reached. What a busy community posts beyond that between two visits
is recorded as a gap. The newest posts are read one page further than necessary, because posts that moderators approve
late are listed by their date; then the listing that `sort` names is read in addition. `comments=true` reads the
comments of every new or changed post, with at least one request per post.

**Blind spots.** Removed posts disappear from the listings; the removal is noticed when a post is rechecked, after 1
hour, 36 hours, 7 and 30 days, and the stored text is kept. Reddit blurs scores, and hides those of new comments. Poll
votes are not shown. Private, quarantined and banned communities cannot be read. The feed, without a key, shows little
more than 25 posts, without scores, comment counts, flairs and marks; nothing can be rechecked through it, and Reddit
answers few such requests, from data centres hardly any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from catchment import __version__
from catchment.errors import InvalidInput, LoginNeeded
from catchment.lazy import pattern
from catchment.messages import Message, message
from catchment.model import (
    Budget,
    CredentialSettings,
    Field,
    Kind,
    Listing,
    Order,
    PlanPart,
    Progress,
    Recheck,
    Request,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common.coercion import boolean
from catchment.platforms.reddit import errors, parser, requests

NAME = "reddit"
TITLE = "Reddit"
HOSTS: tuple[str, ...] = (requests.HOST, requests.SITE, requests.OLD_SITE)
# Reddit's own figures are 100 with an API key and 10 without one.
BUDGET: Budget | None = Budget(
    NAME, limit=60, window_seconds=60, concurrency=10, is_per_credential=True, anonymous_limit=10
)
IS_SCOPED = False  # t3_abc is unique on the whole site
PARSER_VERSION = 1
USER_AGENT = f"python:catchment:{__version__} (by an operator who gave no name)"
"""In the form that Reddit asks for; REDDIT_USER_AGENT gives a name."""
CREDENTIAL_SETTINGS = CredentialSettings(
    (
        Field("REDDIT_CLIENT_ID", "The id of an app that is registered with Reddit: a key, beside those in the vault."),
        Field("REDDIT_CLIENT_SECRET", "Its secret; none for an installed app.", default=""),
    ),
    basic="{REDDIT_CLIENT_ID}:{REDDIT_CLIENT_SECRET}",
)
# For a post that does not exist: it costs little, and only works with an API key.
PROBE = requests.by_id(None, ["t3_0"])[0]

HELPS = message("use r/NAME, or the community's address, such as https://www.reddit.com/r/NAME")
# Profiles are communities called u_ and a name; one community is older than the rule.
COMMUNITY = pattern(r"[A-Za-z0-9][A-Za-z0-9_]{1,20}|u_[A-Za-z0-9_-]{3,20}|reddit\.com", re.IGNORECASE)
SITES = pattern(r"(?:[a-z]{1,5}(?:-[a-z]{2})?\.)?reddit\.com")
"""www, old, new, np, m, sh …, and a language's."""
# These lead to another community each time, or to one's own.
NOWHERE = ("random", "randnsfw", "myrandom", "friends", "mod", "contrib")
ABOUT = ("about", "wiki", "w", "submit")
"""Other pages that clearly belong to a community."""

FEED_INSTEAD, REFUSE = "atom", "refuse"
REACH = 1_000
"""r/NAME/new and all the others end there, without saying that it is a limit."""
LISTINGS = (
    # Posts approved late are below known ones: one page more is read.
    Listing(requests.NEWEST, Order.NEWEST_FIRST, reach=REACH, page_size=requests.PAGE_SIZE, overlap=requests.PAGE_SIZE),
    *(
        Listing(name, Order.RANKED, reach=REACH, page_size=requests.PAGE_SIZE)
        for name in requests.SORTS
        if name != requests.NEWEST
    ),
    Listing(requests.ATOM, Order.NEWEST_FIRST, is_window=True),
)


KINDS = (
    Kind(
        name="reddit",
        title="Reddit community",
        what="A Reddit community: r/NAME",
        interval_minutes=60,
        example="r/webdev",
        listings=LISTINGS,
        fields=(
            Field(
                "sort",
                "The listing to read besides the newest posts (`new`: none); by default the tier decides",
                choices=requests.SORTS,
                decides=PlanPart.LISTING,
            ),
            Field(
                "time_filter",
                "The period of `top` and `controversial`; by default the tier decides",
                choices=requests.TIME_FILTERS,
                decides=PlanPart.TIME_FILTER,
            ),
            Field(
                "limit",
                "Number of posts to request first; by default the tier decides",
                minimum=1,
                maximum=REACH,
                decides=PlanPart.LIMIT,
            ),
            Field("comments", "Whether to read the comments of posts: true or false", False, check=boolean),
            Field(
                "without_key",
                "Without an API key: read the community's feed (`atom`), or fail (`refuse`)",
                FEED_INSTEAD,
                choices=(FEED_INSTEAD, REFUSE),
            ),
        ),
        base_limit=100,
        item_kind="post",
        more_item_kinds=("comment",),
        recheck_ages=(timedelta(hours=1), timedelta(hours=36), timedelta(days=7), timedelta(days=30)),
        newest=requests.NEWEST,
        is_tiered=True,
    ),
)

CHINESE = {
    parser.FEED_NOTE: "没有 API 密钥，读取社区的订阅源：没有评分和评论数，看不到编辑和删除",
    "Reddit community": "Reddit 社区",
    "A Reddit community: r/NAME": "Reddit 社区：r/名称",
    "The listing to read besides the newest posts (`new`: none); by default the tier decides": (
        "除最新帖子外还读取的列表，`new` 表示不读；默认由活跃层级决定"
    ),
    "The period of `top` and `controversial`; by default the tier decides": (
        "`top` 和 `controversial` 回看的时间范围；默认由活跃层级决定"
    ),
    "Number of posts to request first; by default the tier decides": "首先请求的帖子数；默认由活跃层级决定",
    "Whether to read the comments of posts: true or false": "是否也读取帖子的评论：true 或 false",
    "Without an API key: read the community's feed (`atom`), or fail (`refuse`)": (
        "没有 API 密钥时：读取社区的订阅源（`atom`），或报告失败（`refuse`）"
    ),
}


def understand(text: str, kind: str | None = None) -> Target:
    """Returns the canonical target of a community, however its name is written."""
    text = text.strip()
    if not text or not text.isprintable() or len(text) > 2_000:
        raise _wrong(message("no target was given" if not text else "this is not the name of a community"))
    host = text.partition("/")[0].lower()
    if "://" not in text and not SITES.fullmatch(host) and not host.endswith("redd.it"):
        return _target(text, "")
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
    except ValueError:
        raise _wrong(message("the address is malformed")) from None
    if parts.scheme not in ("http", "https") or not SITES.fullmatch((parts.hostname or "").lower()):
        raise _wrong(message("{text!r} is not the address of a community on Reddit", text=text[:100]))
    return _target(parts.path, parts.query)


def _target(path: str, query: str) -> Target:
    steps = [step for step in path.split("/") if step]
    first = steps[0].lower() if steps else ""
    if first in ("u", "user"):
        raise _wrong(message("posts of a single account are not supported, only communities"))
    if first in ("comments", "gallery", "poll", "video"):
        raise _wrong(message("this is one post, not a community"))
    if first != "r" or len(steps) < 2:
        raise _wrong(message("{path!r} does not name a community", path=path[:100]))
    # The feed's and the JSON form of a page are the page.
    name, *pages = [_bare(step) for step in steps[1:]]
    page = next(filter(None, pages), "").lower()
    if "+" in name:
        raise _wrong(message("a source cannot be several communities"), message("add each one separately, as r/NAME"))
    if name.lower() in NOWHERE:
        raise _wrong(message("r/{name} is not a community: it redirects to a different one each time", name=name))
    if not COMMUNITY.fullmatch(name):
        raise _wrong(message("{name!r} is not a valid name of a community", name=name[:40]))
    own_community = message("its community is r/{name}: add that instead", name=name)
    if page in ("comments", "s"):
        raise _wrong(message("this is one post, not a community"), own_community)
    if page == "search":
        raise _wrong(message("searches on Reddit are not supported"), own_community)
    if page and page not in requests.SORTS and page not in ABOUT:
        raise _wrong(
            message("r/{name} has no listing {listing!r}", name=name, listing=page[:40]),
            message("one of {listings}; or r/{name} alone", listings=", ".join(requests.SORTS), name=name),
        )
    settings = {"sort": page} if page in requests.SORTS else {}
    period = parse_qs(query).get("t", [""])[0].lower()
    if page in requests.FILTERED and period in requests.TIME_FILTERS:
        settings["time_filter"] = period
    return Target("reddit", f"r/{name.lower()}", f"r/{name}", settings)


def _bare(step: str) -> str:
    return step if step.lower() == "reddit.com" else re.sub(r"\.(?:rss|json|xml|compact)$", "", step, flags=re.I)


def _wrong(what: Message, helps: Message = HELPS) -> InvalidInput:
    return InvalidInput(what, helps, field="target")


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    """Requests a listing with an API key, and the community's feed without one; the plan says which, it is never
    guessed."""
    # A caller that knows there is no API key may ask for the feed by its own name.
    plan = plan.replace(listing=requests.NEWEST) if plan.listing == requests.ATOM else plan
    if plan.has_key:
        return [requests.listing(source, plan, is_known=progress.watermark is not None)]
    if source.settings.get("without_key") == REFUSE:
        raise LoginNeeded(
            "there is no API key to read it with", "{add_a_key}; or set without_key=atom", add_a_key=errors.ADD_A_KEY
        )
    return [requests.feed(source, plan)]


def recheck(rechecks: Sequence[Recheck]) -> list[Request]:
    """Requests items by id, a hundred at a time: removed ones come with a mark, ones that never existed do not come.
    Returns nothing without an API key: there is no other way to request them."""
    ids: dict[str | None, list[str]] = {}
    for item in (item for item in rechecks if item.has_key):
        ids.setdefault(item.source.credential, []).append(item.external_id)
    return [request for credential, post_ids in ids.items() for request in requests.by_id(credential, post_ids)]


login = requests.login
token = requests.token
read = parser.read
refusal = errors.refusal
