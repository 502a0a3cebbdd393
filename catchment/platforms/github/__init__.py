"""GitHub Trending, read from the site's own page.

**Access.** No account; GitHub has no interface for it. `all`, a language by its name or as the site writes it in
addresses (`Python`, `C++`, `jupyter-notebook`), or the page's own address
(`https://github.com/trending/python?since=weekly`). The settings `language` and `since` win over the address.

**Limits.** One page a visit, 25 repositories at most. The list moves slowly: a few visits a day see all of it.

**Blind spots.** A repository is one item; its days on the list, with rank and stars, are kept as a series. The page has
no dates: an item's time is when it was first seen here. What was on the list between two visits only was never seen. A
repository that left the list is not taken for deleted; one that was renamed is a new item. Stars are those of the last
time it was listed. A page without a single repository is a failure, whatever the reason: for a rare language the error
says that GitHub lists none.
"""

from __future__ import annotations

import re

from catchment import charset
from catchment.errors import Missing, PlatformError, Refused, SlowDown, Unreadable
from catchment.model import (
    Answer,
    Ask,
    Blame,
    Budget,
    Field,
    Kind,
    Listing,
    Order,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    Target,
)
from catchment.platforms import htmlpage
from catchment.platforms.feeds import discovery
from catchment.platforms.github import rows, trending

NAME = "github"
HOSTS: tuple[str, ...] = ("github.com",)
BUDGET: Budget | None = None
IS_SCOPED = False  # owner/repo is unique on the whole site
READER_VERSION = 1

KINDS = (
    Kind(
        name="github_trending",
        what="Repositories that gain stars on GitHub now: all, or those in one language",
        interval_minutes=240,
        example="python",
        listings=(Listing(name="trending", order=Order.SNAPSHOT, reach=25, page_size=25),),
        fields=(
            Field("language", "a language's name, or `all`; wins over the target"),
            Field("since", "the period in which the stars are counted; wins over the target", choices=trending.PERIODS),
        ),
        item_kind="repository",
    ),
)

HEAD_BYTES = 20_000
LOGIN_PAGE = re.compile(rb"<title>\s*Sign in to GitHub|<form[^>]+action=\"/session\"", re.IGNORECASE)
SLOW_DOWN_PAGE = re.compile(
    rb"<title>\s*(?:Rate limit|Too many requests)|exceeded a secondary rate limit|Whoa there!", re.IGNORECASE
)
# "It looks like we don't have any trending repositories for X."
NONE_LISTED = re.compile(r"don(?:'|’|&#39;)t have any trending repositories", re.IGNORECASE)


def understand(text: str) -> Target:
    page = trending.understood(text)
    return Target(kind="github_trending", address=page.address, name=page.name)


def first(source: Source, progress: Progress, ask: Ask) -> list[Request]:
    page = trending.understood(source.target).but(source.settings.get("language"), source.settings.get("since"))
    return [Request(url=page.address, headers={"Accept": "text/html"}, listing=ask.listing)]


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """What comes in place of the list with a status of 200: a request for patience, a login, a check for browsers."""
    head = answer.body[:HEAD_BYTES]
    error: PlatformError | None = None
    if SLOW_DOWN_PAGE.search(head):
        error = SlowDown("GitHub asks for fewer requests", "it is asked again later; a longer interval avoids this")
    elif answer.url.partition("?")[0].endswith("/login") or LOGIN_PAGE.search(head):
        error = Refused("GitHub shows its login in place of the list", "it does so for a while if asked too often")
    elif answer.status != 429 and discovery.is_wall(answer.body):
        error = Refused("GitHub asks to prove that a browser is reading", "look at the page in a browser")
    return Refusal(error, blames=Blame.HOST) if error is not None else None


def read(answer: Answer, request: Request) -> Reading:
    text, _ = charset.decode(answer.body, answer.headers.get("content-type"))
    is_torn = "</html" not in text[-1000:].lower()
    # Of a page that breaks off, the rows before the break are whole.
    page = htmlpage.parsed(text[: max(0, text.rfind("</article>"))] if is_torn else text)
    items, skipped = rows.read(page)
    if not items:
        raise _nothing(text)
    return Reading(items=items, skipped=skipped, is_torn=is_torn)


def _nothing(text: str) -> PlatformError:
    if NONE_LISTED.search(text):
        return Missing(
            "GitHub lists no repository for this language and period",
            "check how the language is called; since=monthly may list some",
        )
    return Unreadable("a page came without a single repository", "GitHub may have changed its page, or blocks programs")
