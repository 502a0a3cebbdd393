"""The rows of a trending page, found by what they mean: the site's class names change every year or two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from catchment.model import Item, Skipped
from catchment.platforms.htmlpage import text_of

# A page has 25 rows at most; a stranger's might have a million.
MOST_ROWS = 1_000

REPOSITORY = re.compile(r"(?:https://github\.com)?/([A-Za-z0-9][\w-]{0,99})/([\w.-]{1,100})", re.ASCII)
STARGAZERS = re.compile(REPOSITORY.pattern + r"/stargazers", re.ASCII)

# What stands before a second part in addresses and is no owner: a sponsor's link comes before the title in its row.
NO_OWNERS = frozenset(
    (
        "apps", "collections", "contact", "enterprise", "explore", "features", "login", "marketplace", "orgs", "search",
        "sessions", "settings", "site", "sponsors", "stars", "topics", "trending", "users",
    )
)  # fmt: skip
GAINED = re.compile(r"([\d,.]+)\s*([km]?)\s+stars?\s+(?:today|this\s+(?:week|month))", re.IGNORECASE)
NUMBER = re.compile(r"([\d,.]+)\s*([km]?)", re.IGNORECASE)
SIZES = {"": 1, "k": 1_000, "m": 1_000_000}


def read(page: LexborHTMLParser) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    """The repositories in their order, and the rows that name none."""
    items: list[Item] = []
    skipped: list[Skipped] = []
    for rank, row in enumerate(page.css("article")[:MOST_ROWS], start=1):
        name = _repository(row)
        if name is None:
            skipped.append(Skipped("no repository", excerpt=text_of(row)[:100]))
        else:
            items.append(_item(row, *name, rank))
    return tuple(items), tuple(skipped)


def _item(row: LexborNode, owner: str, repository: str, rank: int) -> Item:
    score, is_rounded = _stars(row)
    return Item(
        external_id=f"{owner}/{repository}".lower(),
        kind="repository",
        title=f"{owner}/{repository}",
        text=text_of(row.css_first("p")) or None,
        url=f"https://github.com/{owner}/{repository}",
        author=owner,
        score=score,
        rounded=("score",) if is_rounded else (),
        tags=tuple(_tags(row)),
        rank=rank,
        gained=_gained(row),
    )


def _repository(row: LexborNode) -> tuple[str, str] | None:
    """Owner and name by the address of the title; by that of the stars, should titles change once more."""
    found = [REPOSITORY.fullmatch(href) for href in _addresses(row.css("h1 a, h2 a, h3 a, h4 a"))]
    found += [STARGAZERS.fullmatch(href) for href in _addresses(row.css('a[href$="/stargazers"]'))]
    return next(((one[1], one[2]) for one in found if one and one[1].lower() not in NO_OWNERS), None)


def _addresses(links: Iterable[LexborNode]) -> Iterator[str]:
    # Not the text of the link: it is broken over lines, with spaces around the slash.
    yield from ((link.attributes.get("href") or "").partition("?")[0].rstrip("/") for link in links)


def _stars(row: LexborNode) -> tuple[int | None, bool]:
    found = NUMBER.fullmatch(text_of(row.css_first('a[href$="/stargazers"]')))
    return _number(found) if found else (None, False)


def _gained(row: LexborNode) -> int | None:
    """Stars of the period; None where the page does not tell (old ones), which is not 0."""
    found = (GAINED.fullmatch(text_of(span)) for span in row.css("span"))
    return next((_number(one)[0] for one in found if one), None)


def _number(found: re.Match[str]) -> tuple[int | None, bool]:
    """11,139 and 1.2k; and whether it is only an approximation."""
    size = SIZES[found[2].lower()]
    digits = found[1].replace(",", "") if size > 1 else re.sub("[,.]", "", found[1])
    try:
        return round(float(digits) * size), size > 1
    except (ValueError, OverflowError):
        return None, False


def _tags(row: LexborNode) -> Iterator[str]:
    for node in [*row.css('[itemprop="programmingLanguage"]')[:1], *row.css('a[href^="/topics/"]')]:
        if words := text_of(node):
            yield words
