"""GitHub Trending, read from the web page.

**Access.** No account; GitHub has no API for it. Use `all`, a language by its name or as in the site's addresses
(`Python`, `C++`, `jupyter-notebook`), or the address of a trending page
(`https://github.com/trending/python?since=weekly`). The settings `language` and `since` override the address.

**Limits.** One page per visit, with up to 25 repositories. The list moves slowly: a few visits a day see all of it.

**Blind spots.** A repository is one item; the days on which it was listed, with rank and stars, are kept as a series.
The page has no dates: an item's time is when it was first seen. What was listed only between two visits was never seen.
A repository that leaves the list does not count as deleted; a renamed one is a new item. Stars are those of the last
day on which it was listed. A page without a repository is a failure; for rare languages the error says that GitHub
lists none.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from selectolax.lexbor import LexborNode

from catchment.errors import InvalidInput, Missing, PlatformError, Refused, SlowDown, Unreadable
from catchment.messages import Message, message
from catchment.model import (
    Answer,
    Budget,
    FailureScope,
    Field,
    Item,
    Kind,
    Listing,
    Order,
    Progress,
    Reading,
    Record,
    Refusal,
    Request,
    SettingValues,
    Skipped,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common import html
from catchment.platforms._common.html import text_of
from catchment.platforms._common.http import is_wall
from catchment.text import charset

NAME = "github"
TITLE = "GitHub"
HOSTS: tuple[str, ...] = ("github.com",)
BUDGET: Budget | None = None
IS_SCOPED = False  # owner/repo is unique on the whole site
PARSER_VERSION = 1

PERIODS = ("daily", "weekly", "monthly")
HELPS = "use `all`, a language such as python, or the address of a page, such as https://github.com/trending/python"
SITE = re.compile(r"(?:https?://)?(?:www\.)?github\.com(?=[/?#]|$)", re.IGNORECASE)
PATH = re.compile(r"/trending(?:/([^/]+))?/?")
# As languages are called: C++, C#, F*, Objective-C, Jupyter Notebook, "1C Enterprise", Cap'n Proto, 4D, Q#.
LANGUAGE = re.compile(r"[\w.][\w .+#*'()&-]{0,59}")
SPOKEN = re.compile(r"[a-z]{2,3}")

KINDS = (
    Kind(
        name="github_trending",
        title="GitHub Trending",
        what="Trending repositories on GitHub: all, or those in one language",
        interval_minutes=240,
        example="python",
        listings=(Listing(name="trending", order=Order.SNAPSHOT, reach=25, page_size=25),),
        fields=(
            Field("language", "A language, or `all`; overrides the target"),
            Field("since", "The period in which stars are counted; overrides the target", choices=PERIODS),
        ),
        item_kind="repository",
    ),
)

CHINESE = {
    "GitHub Trending": "GitHub 趋势",
    "Trending repositories on GitHub: all, or those in one language": "GitHub 上的热门仓库：全部，或某种语言",
    "A language, or `all`; overrides the target": "语言名称，或 `all`；优先于目标",
    "The period in which stars are counted; overrides the target": "统计星标的周期；优先于目标",
}

HEAD_BYTES = 20_000
LOGIN_PAGE = re.compile(rb"<title>\s*Sign in to GitHub|<form[^>]+action=\"/session\"", re.IGNORECASE)
SLOW_DOWN_PAGE = re.compile(
    rb"<title>\s*(?:Rate limit|Too many requests)|exceeded a secondary rate limit|Whoa there!", re.IGNORECASE
)
# "It looks like we don't have any trending repositories for X."
NONE_LISTED = re.compile(r"don(?:'|’|&#39;)t have any trending repositories", re.IGNORECASE)


# A page has 25 rows at most; a manipulated one might have a million.
MOST_ROWS = 1_000

REPOSITORY = re.compile(r"(?:https://github\.com)?/([A-Za-z0-9][\w-]{0,99})/([\w.-]{1,100})", re.ASCII)
STARGAZERS = re.compile(REPOSITORY.pattern + r"/stargazers", re.ASCII)

# First path segments that are not owners: a sponsor's link comes before the title in its row.
NO_OWNERS = frozenset(
    (
        "apps", "collections", "contact", "enterprise", "explore", "features", "login", "marketplace", "orgs", "search",
        "sessions", "settings", "site", "sponsors", "stars", "topics", "trending", "users",
    )
)  # fmt: skip
GAINED = re.compile(r"([\d,.]+)\s*([km]?)\s+stars?\s+(?:today|this\s+(?:week|month))", re.IGNORECASE)
NUMBER = re.compile(r"([\d,.]+)\s*([km]?)", re.IGNORECASE)
SIZES = {"": 1, "k": 1_000, "m": 1_000_000}


def understand(text: str, kind: str | None = None) -> Target:
    page = _understood(text)
    return Target(kind="github_trending", address=page.address, name=page.name)


def name_of(address: str, settings: SettingValues) -> str:
    return _page(address, settings).name


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    page = _page(source.target, source.settings)
    return [Request(url=page.address, headers={"Accept": "text/html"}, listing=plan.listing)]


def _page(address: str, settings: SettingValues) -> Trending:
    return _understood(address).but(settings.get("language"), settings.get("since"))


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """Returns the error for a page that comes with status 200 instead of the list: rate limit, login, browser check."""
    head = answer.body[:HEAD_BYTES]
    error: PlatformError | None = None
    if SLOW_DOWN_PAGE.search(head):
        error = SlowDown(
            "GitHub asks for fewer requests", "it will be requested again later; a longer interval avoids this"
        )
    elif answer.url.partition("?")[0].endswith("/login") or LOGIN_PAGE.search(head):
        error = Refused(
            "GitHub shows its login in place of the list", "it does this for a while after too many requests"
        )
    elif answer.status != 429 and is_wall(answer.body):
        error = Refused("GitHub answered with a bot check", "check the page in a browser")
    return Refusal(error, blames=FailureScope.HOST) if error is not None else None


def read(answer: Answer, request: Request) -> Reading:
    text, _ = charset.decode(answer.body, answer.headers.get("content-type"))
    is_torn = "</html" not in text[-1000:].lower()
    # In a truncated page, the rows before the break are whole.
    page = html.parsed(text[: max(0, text.rfind("</article>"))] if is_torn else text)
    items: list[Item] = []
    skipped: list[Skipped] = []
    for rank, row in enumerate(page.css("article")[:MOST_ROWS], start=1):
        name = _repository(row)
        if name is None:
            skipped.append(Skipped("no repository", excerpt=text_of(row)[:100]))
        else:
            items.append(_item(row, *name, rank))
    if items:
        return Reading(items=tuple(items), skipped=tuple(skipped), is_torn=is_torn)
    if NONE_LISTED.search(text):
        raise Missing(
            "GitHub lists no repository for this language and period",
            "check the name of the language; since=monthly may list some",
        )
    raise Unreadable("the page lists no repositories", "GitHub may have changed its page, or blocks programs")


class Trending(Record, frozen=True):
    """One page: of a language, or of all; over a period."""

    language: str | None = None
    """As in URLs, not yet quoted: c++, jupyter-notebook."""
    since: str = "daily"
    spoken: str | None = None

    @property
    def address(self) -> str:
        asked = {"since": self.since if self.since != "daily" else None, "spoken_language_code": self.spoken}
        query = urlencode({name: value for name, value in asked.items() if value})
        path = f"/{quote(self.language, safe='')}" if self.language else ""
        return f"https://github.com/trending{path}{'?' if query else ''}{query}"

    @property
    def name(self) -> str:
        return f"GitHub Trending: {self.language or 'all'}, {self.since}"

    def but(self, language: Any, since: Any) -> Trending:
        """Returns the page that a source's settings ask for; unset ones change nothing."""
        page = self.replace(language=_language(str(language))) if language else self
        return page.replace(since=_period(str(since))) if since else page


def _understood(text: str) -> Trending:
    text = text.strip()
    if not text:
        raise _wrong(message("no language was given"))
    site = SITE.match(text)
    if site is None:
        return Trending(_language(text))
    try:
        parts = urlsplit(f"https://github.com{text[site.end() :]}")
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    except ValueError:
        raise _wrong(message("this is not an address")) from None
    match = PATH.fullmatch(parts.path)
    if match is None:
        raise _wrong(message("only GitHub's trending pages are supported"))
    spoken = asked.get("spoken_language_code", "").lower()
    return Trending(
        language=_language(unquote(match[1])) if match[1] else None,
        since=_period(asked.get("since") or "daily"),
        spoken=spoken if SPOKEN.fullmatch(spoken) else None,
    )


def _language(name: str) -> str | None:
    slug = " ".join(name.lower().split()).replace(" ", "-")
    if slug == "all":
        return None
    if slug == "developers":
        raise _wrong(message("trending developers are not supported, only repositories"))
    if not LANGUAGE.fullmatch(slug):
        raise _wrong(message("{name!r} is not a language", name=name[:60]))
    return slug


def _period(since: str) -> str:
    if since.lower() not in PERIODS:
        raise InvalidInput(
            "since={since!r}", "one of {periods}", field="since", since=since[:40], periods=", ".join(PERIODS)
        )
    return since.lower()


def _wrong(what: Message) -> InvalidInput:
    return InvalidInput(what, HELPS, field="target")


def _item(row: LexborNode, owner: str, repository: str, rank: int) -> Item:
    stars = NUMBER.fullmatch(text_of(row.css_first('a[href$="/stargazers"]')))
    score, is_rounded = _number(stars) if stars else (None, False)
    # Old pages do not show the stars of the period, which does not mean 0.
    gained = next((match for span in row.css("span") if (match := GAINED.fullmatch(text_of(span)))), None)
    tags = [*row.css('[itemprop="programmingLanguage"]')[:1], *row.css('a[href^="/topics/"]')]
    return Item(
        external_id=f"{owner}/{repository}".lower(),
        kind="repository",
        title=f"{owner}/{repository}",
        text=text_of(row.css_first("p")) or None,
        url=f"https://github.com/{owner}/{repository}",
        author=owner,
        score=score,
        rounded=("score",) if is_rounded else (),
        tags=tuple(words for tag in tags if (words := text_of(tag))),
        rank=rank,
        gained=_number(gained)[0] if gained else None,
    )


def _repository(row: LexborNode) -> tuple[str, str] | None:
    """Returns owner and name from the URL of the title; from that of the stars, should titles change once more."""
    for selector, pattern in (("h1 a, h2 a, h3 a, h4 a", REPOSITORY), ('a[href$="/stargazers"]', STARGAZERS)):
        for link in row.css(selector):
            # Not the text of the link: it is broken over lines, with spaces around the slash.
            match = pattern.fullmatch((link.attributes.get("href") or "").partition("?")[0].rstrip("/"))
            if match and match[1].lower() not in NO_OWNERS:
                return match[1], match[2]
    return None


def _number(match: re.Match[str]) -> tuple[int | None, bool]:
    """Parses 11,139 and 1.2k; also returns whether it is only an approximation."""
    size = SIZES[match[2].lower()]
    digits = match[1].replace(",", "") if size > 1 else re.sub("[,.]", "", match[1])
    try:
        return round(float(digits) * size), size > 1
    except (ValueError, OverflowError):
        return None, False
