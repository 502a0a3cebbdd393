"""Answers that are none: what Reddit says against a request, and what stands in the way of it.

Told apart by what came, not by the status alone: errors hide in answers of 200, and pages for people come with any.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Raw, Struct

from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    NetworkError,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
)
from catchment.model import Answer, Blame, Refusal, Request
from catchment.platforms.feeds import discovery
from catchment.platforms.halfpairs import without_half_pairs
from catchment.platforms.reddit import logins, requests, wire

BLOCKED_FOR = timedelta(hours=1)
"""Who is blocked and goes on asking stays blocked."""
LONGEST_WINDOW = timedelta(hours=1)
"""Reddit counts for ten minutes. What names more than this is a slip, and must not silence a key for days."""
AGAIN = "it is asked again"
ADD_A_KEY = (
    "add a key: catchment credentials add reddit NAME (Reddit gives new ones on request only, see "
    "https://www.reddit.com/wiki/api)"
)
TELL_WHO = "set REDDIT_USER_AGENT to something that tells who you are; data centres are often blocked as a whole"
_LONGEST_WORDS = 200
_HEAD_BYTES = 60_000
_TOO_MANY = re.compile(rb"seen too many requests|<title>\s*too many requests", re.IGNORECASE)
_BLOCKED = re.compile(rb"whoa there, pardner|blocked due to a network policy|<title>\s*blocked\s*<", re.IGNORECASE)
_CHALLENGE = re.compile(rb"please wait for verification", re.IGNORECASE)
_ADULT = re.compile(rb"<title>[^<]{0,100}over 18\?|you must be 18\+ to view this community", re.IGNORECASE)
_COMMUNITY = re.compile(r"/r/([^/]+?)(?:\.rss|\.json)?(?:/|$)")


class Complaint(Struct):
    """What Reddit says where it refuses something. An answer has a kind, or a token, and no complaint."""

    error: Any = None
    reason: Any = None
    explanation: Any = None
    error_description: Any = None
    json: Any = None

    @property
    def is_one(self) -> bool:
        return any(told not in (None, "", []) for told in (self.error, self.reason, self._errors))

    @property
    def _errors(self) -> Any:
        """Of what was asked for as a form is."""
        return wire.inner(self.json, "errors")

    @property
    def words(self) -> str:
        """Reddit's own, as far as they say more than the status does."""
        told = (self.explanation, self.error_description, self.reason, self.error, *wire.entries(self._errors))
        spoken = (" ".join(map(str, one)) if isinstance(one, list) else one for one in told)
        return next((" ".join(one.split())[:_LONGEST_WORDS] for one in spoken if wire.text(one)), "")


def refusal(answer: Answer, asked: Request) -> Refusal | None:
    """None where the answer is one, and where its status says everything."""
    if answer.status == 429:
        return _too_many(answer, asked)
    if discovery.is_page(answer.body):
        return _page(answer, asked)
    if answer.status < 300 and (trouble := _trouble(answer.body, asked)):
        return Refusal(trouble)
    complaint = wire.decoded(answer.body, Complaint) or Complaint()
    if asked.step == requests.LOGIN:
        return _of_login(answer, complaint)
    return _elsewhere(answer, asked) or _of_key(answer, complaint, asked) or _of_community(answer, complaint, asked)


def _trouble(body: bytes, asked: Request) -> PlatformError | None:
    """An answer of 200 that is empty, or breaks off: something on the way failed, and may not fail again."""
    if not body.strip():
        return ServerTrouble("an empty answer came", AGAIN)
    # What a feed that breaks off still tells, its reader knows.
    if asked.step == requests.FEED or wire.decoded(without_half_pairs(body), Raw) is not None:
        return None
    return NetworkError("the answer breaks off in the middle", AGAIN)


# ── patience, pages ───────────────────────────────────────────────────────────────────────────────────────────────


def _too_many(answer: Answer, asked: Request) -> Refusal:
    """Without a key Reddit soon has enough; with one, it counts by the key."""
    helps = f"{AGAIN} later"
    if asked.step == requests.FEED:
        helps = f"{helps}; without a key Reddit answers few requests: {ADD_A_KEY}"
    return Refusal(
        SlowDown("Reddit has too many requests from us", helps, retry_at=_reset(answer)), blames=Blame.CREDENTIAL
    )


def _reset(answer: Answer) -> datetime | None:
    """When Reddit begins to count anew, where it says nothing better."""
    told = answer.headers.get("x-ratelimit-reset", "")
    is_best = "retry-after" not in answer.headers and re.fullmatch(r"\d{1,6}(?:\.\d*)?", told) is not None
    return answer.answered_at + min(timedelta(seconds=float(told)), LONGEST_WINDOW) if is_best else None


def _page(answer: Answer, asked: Request) -> Refusal | None:
    """A page for people, where data was asked for."""
    head = answer.body[:_HEAD_BYTES]
    if _TOO_MANY.search(head):
        return _too_many(answer, asked)
    if _BLOCKED.search(head):
        return _in_the_way("Reddit blocks us", answer, asked)
    if _CHALLENGE.search(head) or discovery.is_wall(answer.body):
        return _in_the_way("Reddit asks to prove that a browser is reading", answer, asked)
    if _ADULT.search(head):
        what = "the community is for adults, and Reddit asks for the reader's age first"
        return Refusal(Refused(what, f"with a key it does not: {ADD_A_KEY}"))
    if answer.status >= 300:
        return _of_community(answer, Complaint(), asked)
    return _elsewhere(answer, asked) or Refusal(
        Refused("a page for people came where data was expected", "look at the address in a browser")
    )


def _in_the_way(what: str, answer: Answer, asked: Request) -> Refusal:
    helps = f"{ADD_A_KEY}; or {TELL_WHO}" if asked.step == requests.FEED else TELL_WHO
    return Refusal(Refused(what, helps, retry_at=answer.answered_at + BLOCKED_FOR), blames=Blame.HOST)


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_login(answer: Answer, complaint: Complaint) -> Refusal | None:
    """No token is a failure, whatever the status says."""
    is_answered = answer.status < 300
    if answer.status >= 500 or (is_answered and logins.is_token(answer)):
        return None
    said = f": {complaint.words}" if complaint.words else ""
    what = f"Reddit gives no token for this key{said}" if is_answered else f"Reddit does not know this key{said}"
    return Refusal(LoginNeeded(what, logins.HELPS), blames=Blame.CREDENTIAL)


def _of_key(answer: Answer, complaint: Complaint, asked: Request) -> Refusal | None:
    if "insufficient_scope" in answer.headers.get("www-authenticate", ""):
        what, helps = "the key may not read this", "it needs the scope `read`: make it anew, and store it"
        return Refusal(LoginNeeded(what, helps), blames=Blame.CREDENTIAL)
    if _meant(answer, complaint) != 401:
        return None
    if asked.credential is None:
        return Refusal(LoginNeeded("Reddit asks for a key", ADD_A_KEY))
    return Refusal(LoginNeeded("Reddit does not accept the token of this key", logins.HELPS), blames=Blame.CREDENTIAL)


def _meant(answer: Answer, complaint: Complaint) -> int:
    """The status that is meant: something on the way may have made a 200 of it."""
    told = wire.number(complaint.error) or 0
    return told if answer.status < 300 and 400 <= told < 600 else answer.status


# ── communities ───────────────────────────────────────────────────────────────────────────────────────────────────


def _elsewhere(answer: Answer, asked: Request) -> Refusal | None:
    """Redirects were followed: to the search, from a name that nobody bears, or to another community."""
    name = _community(asked)
    if name is None:
        return None
    path = unquote(urlsplit(answer.url).path).lower()
    if path.startswith("/subreddits/search"):
        return _no_such(name)
    found = _COMMUNITY.match(path)
    if found is None or found[1] == name:
        return None
    what = f"r/{name} leads to r/{found[1]} now"
    return Refusal(Missing(what, f"follow r/{found[1]} instead, and remove this source"))


def _community(asked: Request) -> str | None:
    """Whose listing was asked for."""
    name = asked.carried.get("community") if asked.step in (requests.LIST, requests.FEED) else None
    return name if isinstance(name, str) else None


def _no_such(name: str) -> Refusal:
    return Refusal(Missing(f"there is no community r/{name}", "check how its name is written; it may have been closed"))


def _of_community(answer: Answer, complaint: Complaint, asked: Request) -> Refusal | None:
    """What is wrong with the community itself, or else with the request."""
    name = _community(asked)
    if error := _closed(f"r/{name}" if name else "the community", complaint.reason):
        return Refusal(error)
    status = _meant(answer, complaint)
    if status == 404 and name is not None:
        return _no_such(name)
    if answer.status >= 500 or not complaint.is_one:
        return None
    if status == 429:
        return _too_many(answer, asked)
    if status >= 500:
        return Refusal(ServerTrouble("Reddit has trouble of its own", AGAIN))
    # A status of its own says enough, but for Reddit's words.
    is_news = bool(complaint.words) or answer.status < 300
    error = Refused(f"Reddit says: {complaint.words or f'error {status}'}", "check the source's target and settings")
    return Refusal(error) if is_news else None


def _closed(name: str, reason: Any) -> PlatformError | None:
    if reason == "banned":
        return Gone(f"{name} is banned: Reddit has closed it for good", "what is stored of it stays")
    if reason == "private":
        what = f"{name} is private: only those may read it whom it lets in"
        return Refused(what, "pause the source, or remove it")
    if reason in ("quarantined", "gated"):
        what = f"{name} is {reason}: Reddit shows it to accounts only that agreed to see it"
        return Refused(what, "the key of an app cannot agree: pause the source, or remove it")
    return None
