"""Web pages: the main text of one and how it changes, or the links that it lists.

**Access.** No account. Give the page's address. Without settings, the page is one item: its main text, without menus,
banners and comments, with title, author and date as the page tells them; every change of it is a revision. With
`links`, a CSS selector such as `main h2 a`, each link that it matches is an item of its own, in the page's order.
Encodings are found out as for feeds. A feed, where there is one, is the better source: see `rss`.

**Limits.** One polite request a visit, conditional where the server gave an ETag or a date. The site's robots.txt is
asked for once a day and obeyed (its first 500 KiB), its Crawl-delay too, up to a minute. Of a page with more than 5,000
such links, the rest is counted as invalid. Pages of more than 20,000 tags are too much to find a main text in; their
links can be followed.

**Blind spots.** What a page shows only to browsers that run its scripts. What stood there between two visits. Which
part is the main text is a guess, though a good one; when the site is laid out anew, the guess may change, and leaves a
revision. Checks for browsers, walls of consent, pages that say "not found" with a status of 200, pages that break off
and pages of hardly any words are failures, never a new text. A link that is no longer listed is not taken for deleted.
"""

from __future__ import annotations

from catchment import charset
from catchment.errors import Refused, Unreadable
from catchment.model import (
    Answer,
    Ask,
    Blame,
    Budget,
    Field,
    Identity,
    Item,
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
from catchment.platforms.conditions import conditions
from catchment.platforms.feeds import address, discovery
from catchment.platforms.website import about, links, maintext, nopage

NAME = "website"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = True
READER_VERSION = 1
OBEYS_ROBOTS = True

KINDS = (
    Kind(
        name="website",
        what="A web page: its main text and how it changes, or the links that match a selector",
        interval_minutes=240,
        example="https://example.com/news",
        listings=(Listing(name="page", order=Order.SNAPSHOT),),
        fields=(
            Field(
                "links",
                "a CSS selector: the links that it matches are followed in place of the main text",
                check=links.checked,
            ),
        ),
        item_kind="page",
        more_item_kinds=("link",),
    ),
)

THE_PAGE = "page"
"""The id of the one item of a page: whatever it says, and wherever it moves, it stays the same thing."""
HELPS = "give the address of a page, as https://example.com/news"


def understand(text: str) -> Target:
    return Target(kind="website", address=links.normalised(address.canonical(text, HELPS)))


def first(source: Source, progress: Progress, ask: Ask) -> list[Request]:
    """One request, conditional if this very reader has read the last answer: else there may be more to see in it."""
    return [
        Request(
            url=source.target,
            headers={
                "Accept": "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
                **conditions(progress, READER_VERSION),
            },
            listing=ask.listing,
            carried={"links": source.settings["links"]} if source.settings.get("links") else {},
            identity=Identity.OPTIONAL if source.credential else Identity.NONE,
            credential=source.credential,
        )
    ]


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """A wall in front of the page, whatever its status says; 429 speaks for itself."""
    if answer.status == 429 or not discovery.is_wall(answer.body):
        return None
    error = Refused(
        "the site asks to prove that a browser is reading",
        "look for a feed of this site, or ask it to let programs in",
        status=answer.status,
    )
    return Refusal(error, blames=Blame.HOST)


def read(answer: Answer, request: Request) -> Reading:
    text, _ = charset.decode(answer.body, answer.headers.get("content-type"))
    nopage.check_whole(text)
    selector = request.carried.get("links")
    return _links(text, answer.url, str(selector)) if selector else _page(text, answer.url)


def _links(text: str, url: str, selector: str) -> Reading:
    page = htmlpage.parsed(text)
    title = about.told(page, url).title
    items, skipped = links.read(page, url, selector)
    if not items:
        nopage.check(page, url)
        raise Unreadable(
            f"no link on the page matches {selector!r}",
            "the page may have changed: look at it, and mend the setting `links`",
        )
    return Reading(items=items, skipped=skipped, title=title)


def _page(text: str, url: str) -> Reading:
    page = htmlpage.parsed(text)
    told = about.told(page, url)
    nopage.check(page, url)
    item = Item(
        external_id=THE_PAGE,
        kind="page",
        created_at=told.created_at,
        is_zone_guessed=told.is_zone_guessed,
        edited_at=told.edited_at,
        title=told.title,
        text=maintext.of(text),
        url=told.url,
        author=told.author,
        tags=told.tags,
        language=told.language,
    )
    return Reading(items=(item,), title=told.title)
