"""Pages that come with a status of 200 and are not what was asked for, told by what they say and how little of it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from catchment.errors import Missing, PlatformError, Refused, Unreadable
from catchment.platforms.htmlpage import text_of
from catchment.platforms.website.maintext import LEAST_BYTES

# An article may be about errors, consent or captchas: it has more to say about them than such a page.
FEW_BYTES = 3_000

MARKUP = re.compile(r"<(?:!doctype|html|head|body|title|meta|div|main|article|section|p|h1|table|ul)\b", re.IGNORECASE)
LOOKED_AT = 100_000
BEGUN = re.compile(r"<(?:html|body)\b", re.IGNORECASE)
ENDED = re.compile(r"</(?:html|body)\b", re.IGNORECASE)
# What authors close, even those who leave the end of the page itself out.
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


def check_whole(text: str) -> None:
    """Raise what a body is that is no page, or not all of one."""
    if not text.strip():
        raise Unreadable("the answer is empty", "the server sends no page at present; it is asked again")
    if not MARKUP.search(text[:LOOKED_AT]):
        raise Unreadable("what came is no web page", "give the address of a page; a feed is followed as `rss`")
    if BEGUN.search(text) and not ENDED.search(text) and _is_inside(text):
        raise Unreadable(
            "the page breaks off in the middle", "nothing is stored of it; the next visit may get it whole"
        )


def check(page: LexborHTMLParser, url: str) -> None:
    """Raise what a page is that stands in place of the page. Takes scripts, styles and the like out of it."""
    without_scripts = " ".join(text_of(node) for node in page.css("noscript"))
    page.strip_tags(["script", "style", "noscript", "template", "svg", "iframe"])
    words = text_of(page.body)
    size = len(words.encode())
    if size < FEW_BYTES and (error := _in_place_of_it(page, url, words, without_scripts)):
        raise error
    if size < LEAST_BYTES:
        raise Unreadable(
            f"the page has hardly any words ({size} bytes)", "look at it in a browser; it may need one to be shown"
        )


def _in_place_of_it(page: LexborHTMLParser, url: str, words: str, without_scripts: str) -> PlatformError | None:
    headings = [text_of(node) for node in page.css("title, h1, h2")[:10]]
    if any(NOT_FOUND.search(heading) for heading in headings):
        return Missing("the page says that there is no such page", "check the address; it is asked again")
    if any(CHECK.search(heading) for heading in headings):
        return Refused("the site asks to prove that a browser is reading", "look for a feed of this site")
    if any(CONSENT.search(heading) for heading in headings) or CONSENT_PLACE.search(_place(url)):
        return Refused("the site wants consent before it shows the page", "look for a feed of this site")
    if SCRIPTS.search(without_scripts if len(words.encode()) < LEAST_BYTES else "") or SCRIPTS.search(words[:500]):
        return Refused("the page is shown to browsers only that run its scripts", "look for a feed of this site")
    return None


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"//{parts.netloc}{parts.path}"


def _is_inside(text: str) -> bool:
    """Whether the text ends inside of a block that was begun."""
    depth = 0
    for found in BLOCK.finditer(text):
        if found[3]:
            depth = max(0, depth - 1) if found[2] else depth + 1
        elif not found[0].endswith("-->") and not found[0].rstrip().lower().endswith(("</script", "</style")):
            return True
    return depth > 0
