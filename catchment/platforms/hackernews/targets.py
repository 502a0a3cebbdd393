"""What a person typed: one of the site's lists, a search, or the address of either."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qs, urlsplit

from catchment.errors import InvalidInput
from catchment.model import Target

SEARCH = "search"
PREFIX = "search:"
# As the site's own pages are called.
PAGES = {"": "top", "news": "top", "newest": "new", "best": "best", "ask": "ask", "show": "show", "jobs": "job"}
LISTS = ("top", "new", "best", "ask", "show", "job")
# Algolia cuts a query there.
LONGEST_QUERY = 512
HELPS = (
    "give top, new, best, ask, show or job, search:WORDS, or the address of such a page, as "
    "https://news.ycombinator.com/newest or https://hn.algolia.com/?q=WORDS"
)


def understood(text: str) -> Target:
    """One address for one thing: the list's name, or `search:` and the words."""
    typed = " ".join(text.split())
    if any(not char.isprintable() for char in typed):
        raise _wrong("a target has no control characters in it")
    if typed.lower().startswith(PREFIX):
        return _search(typed[len(PREFIX) :])
    if "/" in typed:
        return _page(_split(typed if "://" in typed else f"https://{typed}"))
    name = typed.lower()
    if not name or (name not in LISTS and name not in PAGES):
        raise _wrong(f"Hacker News has no list {typed[:40]!r}" if typed else "no target was given")
    return _list(name if name in LISTS else PAGES[name])


def words_of(address: str) -> str | None:
    """What a search looks for; None: the address is a list's."""
    return address[len(PREFIX) :] if address.startswith(PREFIX) else None


def _list(name: str) -> Target:
    return Target("hackernews", name, f"Hacker News: {name}", {"listing": name})


def _search(words: str) -> Target:
    words = " ".join(words.split())
    if not words:
        raise _wrong("the search has no words")
    if len(words.encode()) > LONGEST_QUERY:
        raise _wrong(f"the search has more than {LONGEST_QUERY} bytes")
    return Target("hackernews", PREFIX + words, f"Hacker News: {words}", {"listing": SEARCH})


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise _wrong("the address is broken") from None


def _page(url: SplitResult) -> Target:
    host, path = url.netloc.lower().removeprefix("www."), url.path.strip("/").lower()
    is_web = url.scheme in ("http", "https")
    if is_web and host == "news.ycombinator.com" and path in PAGES:
        return _list(PAGES[path])
    if is_web and host == "hn.algolia.com" and not path:
        return _searched(url.query)
    raise _wrong(f"{url.geturl()[:100]!r} is no list of Hacker News")


def _searched(query: str) -> Target:
    asked = parse_qs(query)
    if asked.get("type", ["story"])[0] not in ("story", "all"):
        raise _wrong("of searches, only stories can be followed")
    return _search((asked.get("q") or asked.get("query") or [""])[0])


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(what, HELPS, field="target")
