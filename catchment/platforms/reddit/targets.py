"""What a person typed: r/NAME, or the address of a community's page."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qs, urlsplit

from catchment.errors import InvalidInput
from catchment.model import Target

SORTS = ("new", "top", "hot", "rising", "controversial")
TIME_FILTERS = ("hour", "day", "week", "month", "year", "all")
FILTERED = ("top", "controversial")
"""Only these listings know times."""
HELPS = "give r/NAME, or the community's address, as https://www.reddit.com/r/NAME"
# Profiles are communities called u_ and a name; one community is older than the rule.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{1,20}|u_[A-Za-z0-9_-]{3,20}|reddit\.com", re.IGNORECASE)
HOSTS = re.compile(r"(?:[a-z]{1,5}(?:-[a-z]{2})?\.)?reddit\.com")
"""www, old, new, np, m, sh …, and a language's."""
# These lead to another community each time, or to one's own.
NOWHERE = ("random", "randnsfw", "myrandom", "friends", "mod", "contrib")
ABOUT = ("about", "wiki", "w", "submit")
"""Other pages of a community that leave no doubt."""


def understood(typed: str) -> Target:
    """One address for one community, however its name is written."""
    text = typed.strip()
    if not text or not text.isprintable() or len(text) > 2_000:
        raise _wrong("no target was given" if not text else "this is no name of a community")
    parts = _split(text)
    if parts is None:
        return _path(text, "")
    if parts.scheme not in ("http", "https") or not HOSTS.fullmatch((parts.hostname or "").lower()):
        raise _wrong(f"{text[:100]!r} is no address of a community on Reddit")
    return _path(parts.path, parts.query)


def name_of(address: str) -> str:
    """The community's name in a source's address."""
    return address.removeprefix("r/")


def _split(text: str) -> SplitResult | None:
    """The parts of an address; None for what is none."""
    if "://" not in text:
        host = text.partition("/")[0].lower()
        if not HOSTS.fullmatch(host) and not host.endswith("redd.it"):
            return None
        text = f"https://{text}"
    try:
        return urlsplit(text)
    except ValueError:
        raise _wrong("the address is broken") from None


def _path(path: str, query: str) -> Target:
    steps = [step for step in path.split("/") if step]
    first = steps[0].lower() if steps else ""
    if first in ("u", "user"):
        raise _wrong("what one account posts cannot be followed, only communities")
    if first in ("comments", "gallery", "poll", "video"):
        raise _wrong("this is one post, not a community")
    if first != "r" or len(steps) < 2:
        raise _wrong(f"{path[:100]!r} names no community")
    return _community(steps[1], [step.lower() for step in steps[2:]], query)


def _community(name: str, steps: list[str], query: str) -> Target:
    # The feed's and the program's form of a page are the page.
    name, steps = _bare(name), [bare for step in steps if (bare := _bare(step))]
    if "+" in name:
        raise _wrong("several communities at once cannot be followed", "add each of them by itself, as r/NAME")
    if name.lower() in NOWHERE:
        raise _wrong(f"r/{name} is no community: it leads to another one each time")
    if not NAME.fullmatch(name):
        raise _wrong(f"a community cannot be called {name[:40]!r}")
    page = steps[0] if steps else ""
    if page in ("comments", "s"):
        raise _wrong("this is one post, not a community", f"its community is r/{name}: give that")
    if page == "search":
        raise _wrong("searches on Reddit cannot be followed", f"its community is r/{name}: give that")
    if page and page not in SORTS and page not in ABOUT:
        raise _wrong(f"r/{name} has no listing {page[:40]!r}", f"one of {', '.join(SORTS)}; or r/{name} alone")
    return Target("reddit", f"r/{name.lower()}", f"r/{name}", _settings(page, query))


def _bare(step: str) -> str:
    return step if step.lower() == "reddit.com" else re.sub(r"\.(?:rss|json|xml|compact)$", "", step, flags=re.I)


def _settings(page: str, query: str) -> dict[str, str]:
    if page not in SORTS:
        return {}
    told = parse_qs(query).get("t", [""])[0].lower()
    is_told = page in FILTERED and told in TIME_FILTERS
    return {"sort": page, "time_filter": told} if is_told else {"sort": page}


def _wrong(what: str, helps: str = HELPS) -> InvalidInput:
    return InvalidInput(what, helps, field="target")
