"""Web pages: the main text of a page and its changes, or the links on it.

**Access.** No account. Use the address of a page. Without settings, the page is one item: its main text, without
menus, banners and comments, with the title, author and date that the page states. Every change is a revision. With
`links`, a CSS selector such as `main h2 a`, each matching link is an item, in the order of the page. Encodings are
detected as for feeds. If the site has a feed, that is the better source: see `rss`.

**Limits.** One polite request per visit, conditional if the server gave an ETag or a date. The site's robots.txt is
requested once a day and obeyed (its first 500 KiB), including Crawl-delay, up to a minute. Links beyond 5,000 on a page
are counted as invalid. No main text is extracted from pages with more than 20,000 tags; links can be followed on pages
with up to 200,000 tags. A selector that might be slow runs in a process of its own, for three seconds at most: simple
selectors (tags, classes, attributes) work on larger pages than those with `~` or `nth-child`.

**Blind spots.** Content that needs JavaScript, and what was on the page only between two visits. Which part is the main
text is a guess, usually a good one; after a redesign the guess may change, which leaves a revision. Bot checks, consent
walls, "not found" pages with status 200, truncated pages and pages with almost no text are failures, never a new text.
A link that is no longer listed does not count as deleted.
"""

from __future__ import annotations

import logging
import re
from itertools import islice
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from catchment import child_processes
from catchment.errors import CatchmentError, Missing, PlatformError, Refused, TooComplex, Unreadable
from catchment.messages import message
from catchment.model import (
    Answer,
    Budget,
    Field,
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
    WalkPlan,
)
from catchment.platforms._common import html, urls
from catchment.platforms._common.html import text_of
from catchment.platforms._common.http import page_request, wall_refusal
from catchment.platforms.website import links, metadata
from catchment.text import charset

NAME = "website"
TITLE = "Web pages"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = True
PARSER_VERSION = 1
OBEYS_ROBOTS = True

KINDS = (
    Kind(
        name="website",
        title="Web page",
        what="A web page: its main text and its changes, or the links that match a selector",
        interval_minutes=240,
        example="https://example.com/news",
        listings=(Listing(name="page", order=Order.SNAPSHOT),),
        fields=(
            Field(
                "links",
                "A CSS selector: the matching links are collected instead of the main text",
                check=links.checked,
            ),
        ),
        item_kind="page",
        more_item_kinds=("link",),
    ),
)

CHINESE = {
    "Web pages": "网页",
    "Web page": "网页",
    "A web page: its main text and its changes, or the links that match a selector": (
        "网页：正文及其变化，或与选择器匹配的链接"
    ),
    "A CSS selector: the matching links are collected instead of the main text": (
        "CSS 选择器：采集与其匹配的链接，而不是正文"
    ),
}

THE_PAGE = "page"
"""The id of the one item of a page: whatever it says, and wherever it moves, it stays the same item."""
# A tag costs a fifth of a millisecond, and more the deeper it is: within these bounds, a few seconds at most.
MAIN_TEXT_TAGS = 20_000
MAIN_TEXT_LABOUR = 600_000
QUICK_CHARACTERS = 1_000_000
ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
HELPS = message("enter the address of a page, such as https://example.com/news")
ASK_SITE = message("look for a feed of this site, or ask its operator to allow programs")
LOOK_FOR_FEED = "look for a feed of this site"
FOLLOW_LINKS = "collect the pages that it links to: set `links` to a CSS selector"


def understand(text: str, kind: str | None = None) -> Target:
    return Target(kind="website", address=links.normalised(urls.canonical(text, HELPS)))


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    state = {"links": source.settings["links"]} if source.settings.get("links") else {}
    return [page_request(source, progress, plan, ACCEPT, PARSER_VERSION, state)]


def refusal(answer: Answer, request: Request) -> Refusal | None:
    return wall_refusal(answer, ASK_SITE)


def read(answer: Answer, request: Request) -> Reading:
    text, _ = charset.decode(answer.body, answer.headers.get("content-type"))
    _check_whole(text)
    page, selector = html.parsed(text), request.state.get("links")
    about = metadata.read(page, answer.url)
    if selector:
        items, skipped = links.read(text, answer.url, str(selector))
        if items:
            return Reading(items=items, skipped=skipped, title=about.title)
        _check_is_page(page, answer.url)
        raise Unreadable(
            "no link on the page matches {selector!r}",
            "the page may have changed: check it, and correct the setting `links`",
            selector=str(selector),
        )
    _check_is_page(page, answer.url)
    item = Item(
        external_id=THE_PAGE,
        kind="page",
        created_at=about.created_at,
        is_zone_guessed=about.is_zone_guessed,
        edited_at=about.edited_at,
        title=about.title,
        text=_main_text(text),
        url=about.url,
        author=about.author,
        tags=about.tags,
        language=about.language,
    )
    return Reading(items=(item,), title=about.title)


def _main_text(text: str) -> str:
    """Returns the main text; raises an error if it cannot be distinguished from the rest. A large page is parsed in a
    child process, which can be killed and frees its memory."""
    shape = html.shape(text)
    if shape.tags > MAIN_TEXT_TAGS or shape.labour > MAIN_TEXT_LABOUR:
        raise Unreadable(
            "the page has {tags:,} tags, too many or too deeply nested to find its main text",
            FOLLOW_LINKS,
            tags=shape.tags,
        )
    if len(text) <= QUICK_CHARACTERS:
        extracted = _extract(text)
    else:
        try:
            answer = child_processes.run(__name__, _extract_encoded.__name__, text.encode("utf-8", "replace"))
        except child_processes.JobKilled:
            what = "extracting the main text of the page takes too much time or memory"
            raise TooComplex(what, FOLLOW_LINKS) from None
        if not answer:
            raise _too_broken()
        extracted = answer[1:].decode()
    if len(extracted.encode()) < LEAST_BYTES:
        raise Unreadable(
            "no main text can be found on the page",
            "collect the pages that it links to (setting `links`), or add the site's feed",
        )
    return extracted


def _extract_encoded(page: bytes) -> bytes:
    """`_extract`, in a child process; empty if the page is too broken."""
    try:
        return b"+" + _extract(page.decode()).encode("utf-8", "replace")
    except Unreadable:
        return b""


def _extract(text: str) -> str:
    try:
        import trafilatura  # heavy: loaded when a page is parsed
    except ImportError as error:
        raise CatchmentError(
            "main texts cannot be extracted: a package is missing ({why})",
            "reinstall catchment's packages, as `make run` does",
            why=str(error).partition(chr(10))[0],
        ) from error
    # It logs everything that it cannot use; we report it ourselves, once.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        return (trafilatura.extract(text, include_comments=False, include_tables=True) or "").strip()
    except (CatchmentError, MemoryError):
        raise
    except Exception as error:  # third-party code on an untrusted page: its bugs may raise anything
        raise _too_broken() from error


def _too_broken() -> Unreadable:
    return Unreadable("the page is too broken to find its main text", "check it in a browser")


LEAST_BYTES = 200
"""A Chinese character says as much as three letters. A shorter text is a notice instead of the page."""
# An article may be about errors, consent or captchas: it has more to say about them than such a page.
FEW_BYTES = 3_000
WORD = re.compile(r"\S+")

MARKUP = re.compile(r"<(?:!doctype|html|head|body|title|meta|div|main|article|section|p|h1|table|ul)\b", re.IGNORECASE)
LOOKED_AT = 100_000
BEGUN = re.compile(r"<(?:html|body)\b", re.IGNORECASE)
ENDED = re.compile(r"</(?:html|body)\b", re.IGNORECASE)
# Blocks that authors close, even those who leave out the end of the page itself.
BLOCK = re.compile(
    r"<!--(?:.*?-->|.*)|<(script|style)\b(?:.*?</\1\b|.*)|<(/?)(div|main|article|section|header|footer|nav|table|ul|ol)\b",
    re.DOTALL | re.IGNORECASE,
)

NOT_FOUND = re.compile(
    r"\b404\b|(?:page|file|site|article)\b.{0,20}\bnot (?:be )?found|^not found|no longer (?:available|exists)"
    r"|(?:seite|artikel)\b.{0,20}\bnicht gefunden|page introuvable|página no encontrada|страница не найдена"
    r"|(?:页面|頁面|网页|文章).{0,6}(?:不存在|未找到|没有找到|找不到)|找不到.{0,6}(?:页面|頁面|网页|文章)|ページが見つかりません",
    re.IGNORECASE,
)
CHECK = re.compile(
    r"captcha|are you (?:a )?(?:human|robot)|not a (?:ro)?bot|access denied|security check|unusual traffic"
    r"|(?:verify|verifying|checking) (?:your browser|you are human|that you)|ddos protection"
    r"|人机验证|安全验证|安全检查",
    re.IGNORECASE,
)
CONSENT = re.compile(
    r"before you continue|we value your privacy|your privacy (?:choices|matters)|cookie consent|privacy (?:wall|gate)"
    r"|accept (?:all )?cookies to|consent (?:required|to (?:the )?use)|bevor sie .{0,30}weiter|einwilligung|zustimmung"
    r"|avant de continuer|antes de continuar",
    re.IGNORECASE,
)
CONSENT_PLACE = re.compile(
    r"//(?:consent|guce|privacy-?gate|cmp)\.|/(?:consent|privacy-?gate|cookie-?wall)\b", re.IGNORECASE
)
SCRIPTS = re.compile(
    r"(?:enable|activate|turn on|needs?|requires?|without) java-?script"
    r"|java-?script (?:is |must be )?(?:not )?(?:required|disabled|enabled|needed)"
    r"|(?:启用|開啟|开启|打开).{0,6}java-?script|java-?script.{0,20}(?:aktivier|activ)",
    re.IGNORECASE,
)


def _check_whole(text: str) -> None:
    """Raises an error for a body that is not a page, or not a complete one."""
    if not text.strip():
        raise Unreadable("the answer is empty", "the server sends no page at the moment; the request will be retried")
    if not MARKUP.search(text[:LOOKED_AT]):
        raise Unreadable("the answer is not a web page", "enter the address of a page; for a feed, use the kind `rss`")
    if BEGUN.search(text) and not ENDED.search(text) and _is_inside(text):
        raise Unreadable("the page is truncated", "nothing of it was stored; it may be complete in the next collection")


def _check_is_page(page: LexborHTMLParser, url: str) -> None:
    """Raises an error for a page that came instead of the requested one. Removes scripts, styles and the like from
    it."""
    without_scripts = " ".join(text_of(node) for node in page.css("noscript"))
    page.strip_tags(["script", "style", "noscript", "template", "svg", "iframe"])
    # Of a long page, no more words than are looked at: all of them would take hundreds of megabytes.
    text = page.body.text(deep=True, skip_empty=True) if page.body is not None else ""
    words = " ".join(word[0] for word in islice(WORD.finditer(text), FEW_BYTES))
    size = len(words.encode())
    if size < FEW_BYTES and (error := _in_place_of_it(page, url, words, without_scripts)):
        raise error
    if size < LEAST_BYTES:
        raise Unreadable(
            "the page has hardly any text ({size} bytes)",
            "check it in a browser; it may need JavaScript",
            size=size,
        )


def _in_place_of_it(page: LexborHTMLParser, url: str, words: str, without_scripts: str) -> PlatformError | None:
    headings = [text_of(node) for node in page.css("title, h1, h2")[:10]]
    parts = urlsplit(url)
    if any(NOT_FOUND.search(heading) for heading in headings):
        return Missing("the page says that it does not exist", "check the address; the request will be retried")
    if any(CHECK.search(heading) for heading in headings):
        return Refused("the site answered with a bot check", LOOK_FOR_FEED)
    if any(CONSENT.search(heading) for heading in headings) or CONSENT_PLACE.search(f"//{parts.netloc}{parts.path}"):
        return Refused("the site wants consent before it shows the page", LOOK_FOR_FEED)
    if SCRIPTS.search(without_scripts if len(words.encode()) < LEAST_BYTES else "") or SCRIPTS.search(words[:500]):
        return Refused("the page is shown only to browsers that run its scripts", LOOK_FOR_FEED)
    return None


def _is_inside(text: str) -> bool:
    """Whether the text ends inside of an open block."""
    depth = 0
    for match in BLOCK.finditer(text):
        if match[3]:
            depth = max(0, depth - 1) if match[2] else depth + 1
        elif not match[0].endswith("-->") and not match[0].rstrip().lower().endswith(("</script", "</style")):
            return True
    return depth > 0
