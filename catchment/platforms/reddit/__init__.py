"""Communities of Reddit.

**Access.** A key: Reddit's own interface is open to registered apps only, and new ones need its approval (since
November 2025). Store it as `CLIENT_ID:SECRET`, or `CLIENT_ID:` for an installed app, which has no secret: `catchment
credentials add reddit NAME`; `REDDIT_CLIENT_ID` and `REDDIT_CLIENT_SECRET` in the environment do as well. It needs no
account and no password, and reads what anybody may read. Without a key the community's feed is read, unless the source
says `without_key=refuse`; for as long as that is so, the source says so. Give `r/NAME`, or the community's address;
that of one of its listings (`https://www.reddit.com/r/NAME/top?t=week`) sets `sort` and `time_filter`.

**Limits.** 60 requests a minute for each key (Reddit allows 100), 10 in all without one. A listing shows about 1,000
posts, 100 a request, and no way leads further back: what a lively community posts beyond that between two visits is
recorded as a gap. The newest posts are read one page further than they must, because posts that moderators let through
late stand where their date puts them; the listing that `sort` names is then read beside them. `comments=true` reads the
comments of every post that is new or has changed, with a request for each, and more where Reddit leaves some out.

**Blind spots.** What is removed vanishes from the listings; it is seen when a post is looked at again, after 1 hour, 36
hours, 7 and 30 days, and keeps the text we have. Scores are blurred by Reddit itself, and those of new comments hidden.
Votes in polls are not told. Private, quarantined and banned communities cannot be read. The feed, without a key, shows
25 posts or a little more, without scores, comment counts, flairs and marks; nothing can be looked at again through it,
and Reddit answers few such requests, from data centres hardly any.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from catchment import __version__
from catchment.errors import LoginNeeded
from catchment.model import (
    Answer,
    Ask,
    Budget,
    CredentialSettings,
    Field,
    Kind,
    Listing,
    Look,
    Order,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    Target,
    Token,
)
from catchment.platforms.reddit import atom, logins, reading, refusals, requests, targets

NAME = "reddit"
HOSTS: tuple[str, ...] = (requests.HOST, requests.SITE, requests.OLD_SITE)
# Reddit's own figures are 100 with a key and 10 without one.
BUDGET: Budget | None = Budget(
    NAME, limit=60, window_seconds=60, concurrency=10, is_per_credential=True, strangers_limit=10
)
IS_SCOPED = False  # t3_abc is unique on the whole site
READER_VERSION = 1
USER_AGENT = f"python:catchment:{__version__} (by an operator who gave no name)"
"""In the form that Reddit asks for; REDDIT_USER_AGENT gives a name."""
CREDENTIAL_SETTINGS = CredentialSettings(
    (
        Field("REDDIT_CLIENT_ID", "The id of an app that is registered with Reddit: a key, beside those in the vault."),
        Field("REDDIT_CLIENT_SECRET", "Its secret; none for an installed app.", default=""),
    ),
    basic="{REDDIT_CLIENT_ID}:{REDDIT_CLIENT_SECRET}",
)
# Of no post: it costs little, and only goes with a key.
PROBE = requests.looks(None, ["t3_0"])[0]

FEED_INSTEAD, REFUSE = "atom", "refuse"
REACH = 1_000
"""r/NAME/new and all the others end there, and say no more than that this is the end."""
LISTINGS = (
    # What was let through late stands below what is known: one page more is read.
    Listing(requests.NEWEST, Order.NEWEST_FIRST, reach=REACH, page_size=requests.PAGE_SIZE, overlap=requests.PAGE_SIZE),
    *(
        Listing(name, Order.RANKED, reach=REACH, page_size=requests.PAGE_SIZE)
        for name in targets.SORTS
        if name != requests.NEWEST
    ),
    Listing(requests.ATOM, Order.NEWEST_FIRST, is_window=True),
)


def _truth(value: object) -> bool:
    """True and false, as programs and as people write them."""
    told = str(value).strip().lower()
    if told not in ("true", "false", "yes", "no", "1", "0"):
        raise ValueError("true or false")
    return told in ("true", "yes", "1")


KINDS = (
    Kind(
        name="reddit",
        what="A community of Reddit: r/NAME",
        interval_minutes=60,
        example="r/webdev",
        listings=LISTINGS,
        fields=(
            Field(
                "sort",
                "The listing that is read beside the newest posts, `new`: none; by default its tier decides",
                choices=targets.SORTS,
            ),
            Field(
                "time_filter",
                "How far back `top` and `controversial` look; by default its tier decides",
                choices=targets.TIME_FILTERS,
            ),
            Field(
                "limit", "How many posts are asked for at first; by default its tier decides", minimum=1, maximum=REACH
            ),
            Field("comments", "Whether the comments of its posts are read, too: true or false", False, check=_truth),
            Field(
                "without_key",
                "Where there is no key: read the community's feed (`atom`), or fail and say so (`refuse`)",
                FEED_INSTEAD,
                choices=(FEED_INSTEAD, REFUSE),
            ),
        ),
        base_limit=100,
        item_kind="post",
        more_item_kinds=("comment",),
        look_after=(timedelta(hours=1), timedelta(hours=36), timedelta(days=7), timedelta(days=30)),
        newest=requests.NEWEST,
        is_tiered=True,
    ),
)


def understand(text: str) -> Target:
    return targets.understood(text)


def first(source: Source, progress: Progress, ask: Ask) -> list[Request]:
    """With a key a listing, without one the community's feed; which of them is said, and never guessed."""
    # Who knows that there is no key may ask for the feed by its own name.
    ask = ask.plus(listing=requests.NEWEST) if ask.listing == requests.ATOM else ask
    if ask.has_key:
        return [requests.listing(source, ask, is_known=progress.watermark is not None)]
    if source.settings.get("without_key") == REFUSE:
        raise LoginNeeded("there is no key to read it with", f"{refusals.ADD_A_KEY}; or set without_key=atom")
    return [requests.feed(source, ask)]


def look_again(looks: Sequence[Look]) -> list[Request]:
    """By id, a hundred at a time: what was taken away comes with a mark, what was never there does not come. Nothing
    without a key: then nobody can be asked."""
    ids: dict[str | None, list[str]] = {}
    for look in (one for one in looks if one.has_key):
        ids.setdefault(look.source.credential, []).append(look.external_id)
    return [request for credential, few in ids.items() for request in requests.looks(credential, few)]


def login(secret: logins.Secret) -> Request | None:
    return logins.login(secret)


def token(answer: Answer) -> Token:
    return logins.token(answer)


def read(answer: Answer, request: Request) -> Reading:
    return atom.read(answer, request) if request.step == requests.FEED else reading.read(answer, request)


def refusal(answer: Answer, request: Request) -> Refusal | None:
    return refusals.refusal(answer, request)
