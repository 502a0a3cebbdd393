"""HTTP: requests for a source's own page, and pages that are sent instead of it (bot checks, captchas)."""

from __future__ import annotations

import re

from catchment.errors import Refused
from catchment.lazy import pattern
from catchment.messages import Message
from catchment.model import Answer, FailureScope, Identity, JsonObject, Progress, Refusal, Request, Source, WalkPlan
from catchment.platforms._common.urls import is_same_host

# Text that bot checks contain, and pages that merely speak of them do not.
WALLS = pattern(
    rb"<title>\s*(?:just a moment|attention required! \| cloudflare|ddos-guard|verifying your browser"
    rb"|making sure you(?:'|&#39;|\xe2\x80\x99)re not a bot|checking your browser|access denied \| )"
    rb"|_cf_chl_opt|/cdn-cgi/challenge-platform/h/|/\.within\.website/x/cmd/anubis|id=\"anubis_challenge\""
    rb"|_Incapsula_Resource|captcha-delivery\.com|sucuri_cloudproxy_js|id=\"px-captcha\"|awsWafCookieDomainList",
    re.IGNORECASE,
)
# A comment is matched whole or not at all: tried at every length, forty of them would take forever.
PAGE = pattern(rb"(?:(?><!--.*?-->)\s*)*<(?:!doctype\s+html|html|head|meta|title)", re.IGNORECASE | re.DOTALL)
HEAD_BYTES, WALL_BYTES = 4096, 60_000


def page_request(
    source: Source, progress: Progress, plan: WalkPlan, accept: str, parser_version: int, state: JsonObject
) -> Request:
    """Returns the request for the page that is a source's address: with the source's credential, if it has one;
    conditional if this version of the parser has read the last answer."""
    return Request(
        source.target,
        headers={"Accept": accept, **conditions(progress, parser_version)},
        listing=plan.listing,
        state=state,
        identity=Identity.OPTIONAL if source.credential else Identity.NONE,
        credential=source.credential,
    )


def page_elsewhere(request: Request, url: str) -> Request:
    """Returns the request for another page of the same list, whose URL came in an answer: it may be on any host, and
    the credential was given for the requested one."""
    page = request.replace(url=url, params={})
    return page if is_same_host(request.url, url) else page.replace(identity=Identity.NONE, credential=None)


def conditions(progress: Progress, parser_version: int) -> dict[str, str]:
    """Returns headers that let a site answer "nothing changed". Empty after an answer that was not parsed whole, or was
    parsed by an older parser: the whole answer is needed then."""
    was_read = progress.watermark is not None or progress.body_hash is not None
    if not was_read or progress.parser_version != parser_version:
        return {}
    # Verbatim, with W/ and quotes: a server compares characters.
    validators = {"If-None-Match": progress.etag, "If-Modified-Since": progress.last_modified}
    return {name: value for name, value in validators.items() if value}


def is_page(body: bytes) -> bool:
    """Whether it begins like a page for people."""
    return PAGE.match(body[:HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")) is not None


def is_wall(body: bytes) -> bool:
    """Whether a page is a browser check or a captcha instead of the requested page."""
    return bool(body) and is_page(body) and WALLS.search(body[:WALL_BYTES]) is not None


def wall_refusal(answer: Answer, helps: Message | str) -> Refusal | None:
    """Returns the error for a bot check, whatever its status; 429 is handled by its status."""
    if answer.status == 429 or not is_wall(answer.body):
        return None
    error = Refused("the site answered with a bot check", helps, status=answer.status)
    return Refusal(error, blames=FailureScope.HOST)
