"""Reddit's errors: refusals of the API, bot checks and truncated answers.

Decided by the content, not by the status alone: errors hide in answers of 200, and pages for people come with any.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Raw, Struct

from catchment.errors import Gone, LoginNeeded, Missing, NetworkError, PlatformError, Refused, ServerTrouble, SlowDown
from catchment.lazy import pattern
from catchment.messages import Message, message
from catchment.model import Answer, FailureScope, Refusal, Request
from catchment.platforms._common.coercion import number, text
from catchment.platforms._common.http import is_page, is_wall
from catchment.platforms._common.json import decoded, without_half_pairs
from catchment.platforms.reddit import requests, shapes

BLOCKED_FOR = timedelta(hours=1)
"""A blocked client that keeps sending requests stays blocked."""
LONGEST_WINDOW = timedelta(hours=1)
"""Reddit counts for ten minutes. A longer time is a mistake, and must not silence a credential for days."""
AGAIN = "it will be requested again"
ADD_A_KEY = message(
    "add a key: `catchment credentials add reddit NAME` (Reddit gives new ones on request only, see "
    "https://www.reddit.com/wiki/api)"
)
_CANNOT_AGREE = "the key of an app cannot give that consent: pause the source, or remove it"
CLOSED: dict[str, tuple[type[PlatformError], str, str]] = {
    "banned": (Gone, "banned: Reddit has closed it permanently", "its stored items are kept"),
    "private": (Refused, "private: only approved members can read it", "pause the source, or remove it"),
    "quarantined": (Refused, "quarantined: Reddit shows it only to accounts that agreed to see it", _CANNOT_AGREE),
    "gated": (Refused, "gated: Reddit shows it only to accounts that agreed to see it", _CANNOT_AGREE),
}
"""Reasons why a community cannot be read."""
TELL_WHO = message("set REDDIT_USER_AGENT to something that identifies you; whole data centres are often blocked")
_LONGEST_WORDS = 200
_HEAD_BYTES = 60_000
_TOO_MANY = pattern(rb"seen too many requests|<title>\s*too many requests", re.IGNORECASE)
_BLOCKED = pattern(rb"whoa there, pardner|blocked due to a network policy|<title>\s*blocked\s*<", re.IGNORECASE)
_CHALLENGE = pattern(rb"please wait for verification", re.IGNORECASE)
_ADULT = pattern(rb"<title>[^<]{0,100}over 18\?|you must be 18\+ to view this community", re.IGNORECASE)
_COMMUNITY = pattern(r"/r/([^/]+?)(?:\.rss|\.json)?(?:/|$)")


class RedditErrorBody(Struct):
    """Reddit's error body. A valid answer has a kind, or a token, and no error."""

    error: Any = None
    reason: Any = None
    explanation: Any = None
    error_description: Any = None
    json: Any = None

    @property
    def is_one(self) -> bool:
        return any(value not in (None, "", []) for value in (self.error, self.reason, self._errors))

    @property
    def _errors(self) -> Any:
        """Errors of requests that were sent as a form."""
        return shapes.inner(self.json, "errors")

    @property
    def words(self) -> str:
        """Reddit's own words, as far as they say more than the status does."""
        values = (self.explanation, self.error_description, self.reason, self.error, *shapes.entries(self._errors))
        spoken = (" ".join(map(str, group)) if isinstance(group, list) else group for group in values)
        return next((" ".join(value.split())[:_LONGEST_WORDS] for value in spoken if text(value)), "")


def refusal(answer: Answer, asked: Request) -> Refusal | None:
    """Returns the error; None where the answer is valid, and where its status says everything."""
    if answer.status == 429:
        return _too_many(answer, asked)
    if is_page(answer.body):
        return _page(answer, asked)
    if answer.status < 300:
        # Empty or truncated: something on the way failed, and may not fail again.
        if not answer.body.strip():
            return Refusal(ServerTrouble("the answer is empty", AGAIN))
        # The feed's parser can handle a truncated feed.
        if asked.step != requests.FEED and decoded(without_half_pairs(answer.body), Raw) is None:
            return Refusal(NetworkError("the answer is truncated", AGAIN))
    complaint = decoded(answer.body, RedditErrorBody) or RedditErrorBody()
    if asked.step == requests.LOGIN:
        return _of_login(answer, complaint)
    return _elsewhere(answer, asked) or _of_key(answer, complaint, asked) or _of_community(answer, complaint, asked)


def _too_many(answer: Answer, asked: Request) -> Refusal:
    """Returns the rate-limit error: without an API key Reddit blocks soon; with one, it counts by the key."""
    helps = "it is retried later"
    if asked.step == requests.FEED:
        helps = "it is retried later; without a key Reddit answers few requests: {add_a_key}"
    # Reddit's own time at which its window resets, where nothing better is known.
    seconds = answer.headers.get("x-ratelimit-reset", "")
    is_best = "retry-after" not in answer.headers and re.fullmatch(r"\d{1,6}(?:\.\d*)?", seconds) is not None
    retry_at = answer.answered_at + min(timedelta(seconds=float(seconds)), LONGEST_WINDOW) if is_best else None
    error = SlowDown("Reddit has received too many requests from us", helps, retry_at=retry_at, add_a_key=ADD_A_KEY)
    return Refusal(error, blames=FailureScope.CREDENTIAL)


def _page(answer: Answer, asked: Request) -> Refusal | None:
    """Returns the error for an HTML page where data was requested."""
    head = answer.body[:_HEAD_BYTES]
    if _TOO_MANY.search(head):
        return _too_many(answer, asked)
    if _BLOCKED.search(head):
        return _in_the_way(message("Reddit blocks us"), answer, asked)
    if _CHALLENGE.search(head) or is_wall(answer.body):
        return _in_the_way(message("Reddit answered with a bot check"), answer, asked)
    if _ADULT.search(head):
        what = "the community is for adults, and Reddit asks for the visitor's age first"
        return Refusal(Refused(what, "there is no such check with an API key: {add_a_key}", add_a_key=ADD_A_KEY))
    if answer.status >= 300:
        return _of_community(answer, RedditErrorBody(), asked)
    return _elsewhere(answer, asked) or Refusal(
        Refused("a web page was returned instead of data", "check the address in a browser")
    )


def _in_the_way(what: Message, answer: Answer, asked: Request) -> Refusal:
    helps = "{add_a_key}; or {tell_who}" if asked.step == requests.FEED else TELL_WHO
    retry_at = answer.answered_at + BLOCKED_FOR
    error = Refused(what, helps, retry_at=retry_at, add_a_key=ADD_A_KEY, tell_who=TELL_WHO)
    return Refusal(error, blames=FailureScope.HOST)


def _of_login(answer: Answer, complaint: RedditErrorBody) -> Refusal | None:
    """Returns the login error: no token is a failure, whatever the status says."""
    is_answered = answer.status < 300
    if answer.status >= 500 or (is_answered and requests.granted(answer)):
        return None
    what = "Reddit issued no token for this key" if is_answered else "Reddit does not recognise this key"
    if complaint.words:
        what = (
            "Reddit issued no token for this key: {words}"
            if is_answered
            else "Reddit does not recognise this key: {words}"
        )
    return Refusal(LoginNeeded(what, requests.LOGIN_HELPS, words=complaint.words), blames=FailureScope.CREDENTIAL)


def _of_key(answer: Answer, complaint: RedditErrorBody, asked: Request) -> Refusal | None:
    if "insufficient_scope" in answer.headers.get("www-authenticate", ""):
        what, helps = "the key may not read this", "it needs the scope `read`: create a new one and store it"
        return Refusal(LoginNeeded(what, helps), blames=FailureScope.CREDENTIAL)
    if _meant(answer, complaint) != 401:
        return None
    if asked.credential is None:
        return Refusal(LoginNeeded("Reddit requires an API key", ADD_A_KEY))
    return Refusal(
        LoginNeeded("Reddit does not accept the token of this key", requests.LOGIN_HELPS),
        blames=FailureScope.CREDENTIAL,
    )


def _meant(answer: Answer, complaint: RedditErrorBody) -> int:
    """Returns the real status: a proxy on the way may have turned it into a 200."""
    status = number(complaint.error) or 0
    return status if answer.status < 300 and 400 <= status < 600 else answer.status


def _elsewhere(answer: Answer, asked: Request) -> Refusal | None:
    """Returns the error for followed redirects: to the search, from a name that does not exist, or to another
    community."""
    name = _community(asked)
    if name is None:
        return None
    path = unquote(urlsplit(answer.url).path).lower()
    if path.startswith("/subreddits/search"):
        return _no_such(name)
    match = _COMMUNITY.match(path)
    if match is None or match[1] == name:
        return None
    helps = "add r/{target} instead, and remove this source"
    return Refusal(Missing("r/{name} now redirects to r/{target}", helps, name=name, target=match[1]))


def _community(asked: Request) -> str | None:
    """Returns the community whose listing was requested."""
    name = asked.state.get("community") if asked.step in (requests.LIST, requests.FEED) else None
    return name if isinstance(name, str) else None


def _no_such(name: str) -> Refusal:
    return Refusal(
        Missing("there is no community r/{name}", "check the spelling of its name; it may have been closed", name=name)
    )


def _of_community(answer: Answer, complaint: RedditErrorBody, asked: Request) -> Refusal | None:
    """Returns what is wrong with the community itself, or else with the request."""
    name = _community(asked)
    if isinstance(complaint.reason, str) and complaint.reason in CLOSED:
        error_type, what, helps = CLOSED[complaint.reason]
        community = f"r/{name}" if name else message("the community")
        return Refusal(
            error_type(
                message("{community} is {state}", community=community, state=message(what)),
                helps,
            )
        )
    status = _meant(answer, complaint)
    if status == 404 and name is not None:
        return _no_such(name)
    if answer.status >= 500 or not complaint.is_one:
        return None
    if status == 429:
        return _too_many(answer, asked)
    if status >= 500:
        return Refusal(ServerTrouble("Reddit reports a server error", AGAIN))
    # The status itself says enough, except for Reddit's own words.
    is_news = bool(complaint.words) or answer.status < 300
    error = Refused(
        "Reddit says: {words}", "check the source's target and settings", words=complaint.words or f"error {status}"
    )
    return Refusal(error) if is_news else None
