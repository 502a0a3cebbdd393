"""Reddit's error answers: as JSON, as a page, as a redirect, or empty."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

from catchment.playground.sites import Page

JSON = {"Content-Type": "application/json; charset=UTF-8"}
HTML = {"Content-Type": "text/html; charset=UTF-8"}
DEMAND = 'Bearer realm="reddit", error="{error}"'
QUARANTINED = "This community is quarantined. Are you certain that you want to go on?"
WAIT = """
<!doctype html>
<html>
  <head><title>Too Many Requests</title></head>
  <body>
    <h1>whoa there, pardner!</h1>
    <p>we're sorry, but you appear to be a bot and we've seen too many requests from you lately.</p>
    <p>please wait {seconds} second(s) and try again.</p>
  </body>
</html>
"""
BLOCKED = b"""<!doctype html>
<html>
  <head><title>Blocked</title></head>
  <body>
    <h1>whoa there, pardner!</h1>
    <p>Your request has been blocked due to a network policy.</p>
    <p>Make sure your User-Agent is not empty and is something unique and descriptive and try again.</p>
  </body>
</html>
"""
CHALLENGE = b"""<!DOCTYPE html>
<html lang="en">
  <head><title>Reddit - Please wait for verification</title></head>
  <body><main></main><form method="GET"><input type="hidden" name="solution" value="" /></form></body>
</html>
"""
OVER_18 = b"""<!doctype html><html lang="en"><head><title>reddit.com: over 18?</title></head>
<body><div class="interstitial"><h3>You must be 18+ to view this community</h3></div></body></html>
"""
FOUND = b"""<!doctype html><html lang="en"><head><title>reddit.com: search results</title></head>
<body><div class="content"><p>no communities found</p></div></body></html>
"""


def written(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Page:
    return Page(status, JSON | (headers or {}), msgspec.json.encode(document))


def said(status: int, reason: str | None = None, headers: dict[str, str] | None = None) -> Page:
    """The usual text for a status, optionally with a reason."""
    document: dict[str, Any] = {"reason": reason} if reason else {}
    return written(document | {"message": HTTPStatus(status).phrase, "error": status}, status, headers)


def invalid_token() -> Page:
    return said(401, headers={"www-authenticate": DEMAND.format(error="invalid_token")})


def narrow_scope() -> Page:
    return written({"error": 403}, 403, {"www-authenticate": DEMAND.format(error="insufficient_scope")})


def quarantined() -> Page:
    html = f'<!-- SC_OFF --><div class="md"><p>{QUARANTINED}</p>\n</div><!-- SC_ON -->'
    words = {"quarantine_message_html": html, "quarantine_message": QUARANTINED}
    return written({"reason": "quarantined", **words, "message": "Forbidden", "error": 403}, 403)


def blocked() -> Page:
    return Page(403, HTML, BLOCKED)


def challenge() -> Page:
    return Page(200, HTML, CHALLENGE)


def over_18() -> Page:
    return Page(200, HTML, OVER_18)


def search_page() -> Page:
    """For people, and for redirected clients."""
    return Page(200, HTML, FOUND)


def wait(seconds: int) -> Page:
    """In HTML, with the time to wait."""
    return Page(429, HTML | {"retry-after": str(seconds)}, WAIT.format(seconds=seconds).encode())


def elsewhere(status: int, address: str) -> Page:
    return Page(status, HTML | {"location": address})


def too_long() -> Page:
    return Page(414, {"Content-Type": "text/plain", "Retry-After": "0"}, b"Error: URI Too Long")


def bad_request() -> Page:
    return Page(400, {"Content-Type": "text/html"}, b"<html><body><h1>400 Bad request</h1></body></html>\n")


def legal() -> Page:
    return Page(451, HTML)
