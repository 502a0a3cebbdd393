"""What a person typed, as the address of one of GitHub's trending pages."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from catchment.errors import InvalidInput
from catchment.model import Record

PERIODS = ("daily", "weekly", "monthly")
HELPS = "give `all`, a language such as python, or the address of a page, as https://github.com/trending/python"
SITE = re.compile(r"(?:https?://)?(?:www\.)?github\.com(?=[/?#]|$)", re.IGNORECASE)
PATH = re.compile(r"/trending(?:/([^/]+))?/?")
# As languages are called: C++, C#, F*, Objective-C, Jupyter Notebook, "1C Enterprise", Cap'n Proto, 4D, Q#.
LANGUAGE = re.compile(r"[\w.][\w .+#*'()&-]{0,59}")
SPOKEN = re.compile(r"[a-z]{2,3}")


class Trending(Record, frozen=True):
    """One page: of a language, or of all; over a period."""

    language: str | None = None
    """As in addresses, not yet quoted: c++, jupyter-notebook."""
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
        """The page that a source's settings ask for; what they leave open stays."""
        wanted = self.plus(language=_language(str(language))) if language else self
        return wanted.plus(since=_period(str(since))) if since else wanted


def understood(text: str) -> Trending:
    text = text.strip()
    if not text:
        raise _wrong("no language was given")
    site = SITE.match(text)
    return _page(f"https://github.com{text[site.end() :]}") if site else Trending(_language(text))


def _page(url: str) -> Trending:
    try:
        parts = urlsplit(url)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    except ValueError:
        raise _wrong("that is no address") from None
    found = PATH.fullmatch(parts.path)
    if found is None:
        raise _wrong("only the trending pages of GitHub are followed")
    spoken = asked.get("spoken_language_code", "").lower()
    return Trending(
        language=_language(unquote(found[1])) if found[1] else None,
        since=_period(asked.get("since") or "daily"),
        spoken=spoken if SPOKEN.fullmatch(spoken) else None,
    )


def _language(name: str) -> str | None:
    slug = " ".join(name.lower().split()).replace(" ", "-")
    if slug == "all":
        return None
    if slug == "developers":
        raise _wrong("developers who trend are not followed, repositories are")
    if not LANGUAGE.fullmatch(slug):
        raise _wrong(f"{name[:60]!r} is not a language")
    return slug


def _period(since: str) -> str:
    if since.lower() not in PERIODS:
        raise InvalidInput(f"since={since[:40]!r}", f"one of {', '.join(PERIODS)}", field="since")
    return since.lower()


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(what, HELPS, field="target")
