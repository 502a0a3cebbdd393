"""Simulates Reddit: tokens, listings, posts by name, threads and their stubs, communities, and the Atom feed.

All communities share one site: paths start with `/r/NAME`, or belong to the site itself. With a token, everything is
available; without one, only the feed. Each client's requests are counted, reported in headers, and limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from html import escape
from typing import Any
from urllib.parse import parse_qs

from catchment.model import Record
from catchment.playground.faults import Fault
from catchment.playground.rng import chance_of
from catchment.playground.sites import Ask, Entry, Page
from catchment.playground.sites.reddit import errors, names, threads
from catchment.playground.sites.reddit.atom import feed
from catchment.playground.sites.reddit.keys import (
    A_CLIENTS,
    A_STRANGERS,
    FOR_TOKENS,
    TOLD_SECONDS,
    Counter,
    Rate,
    basic,
    holder,
    login,
)
from catchment.playground.sites.reddit.payloads import (
    Glance,
    Told,
    comment_entry,
    comment_told,
    community_told,
    listing,
    post_entry,
    post_told,
    thing,
)
from catchment.playground.sites.reddit.site import USUAL_SPAN, Site
from catchment.playground.sites.reddit.threads import Thread
from catchment.playground.world import Place, Post, World

NAME = "reddit"
TOKENS, SEARCH = "/api/v1/access_token", "/subreddits/search"
LISTINGS = ("new", "hot", "top", "rising", "controversial")
LISTING = re.compile(rf"/r/(\w+)(?:/(?:({'|'.join(LISTINGS)})/?)?)?(\.json)?")
FEED = re.compile(rf"/r/(\w+)/(?:({'|'.join(LISTINGS)})(?:/?\.rss)|\.rss)")
ABOUT = re.compile(r"/r/(\w+)/about/?(\.json)?")
THREAD = re.compile(r"(?:/r/(\w+))?/comments/([0-9a-z]{1,13})(?:/[^/]*(?:/([0-9a-z]{1,13}))?)?/?(\.json)?")
OF_A_COMMUNITY = re.compile(r"/r/(\w+)(?:/.*)?")
OF_THE_SITE = re.compile(rf"{TOKENS}|/api/(?:info|morechildren)/?|/comments/.*|{SEARCH}")
USUAL, MOST, USUAL_IN_A_FEED = 25, 100, 25
MOST_NAMES = 100
LONGEST_ADDRESS = 8_000
NUMBER = re.compile(r"-?[0-9]{1,9}")


class Asked(Record, frozen=True):
    """A parsed request to the site."""

    ask: Ask
    params: dict[str, str]
    glance: Glance

    def number(self, name: str, usual: int, most: int) -> int:
        """The default if it is not a number; if it is too small or too large, the nearest allowed value."""
        text = self.params.get(name, "")
        return min(most, max(1, int(text))) if NUMBER.fullmatch(text) else usual


class RedditSimulator:
    """Shows all places of this form. Counts the requests of each client."""

    def __init__(self, world: World) -> None:
        places = [place for place in world.places if place.form == NAME]
        self.world, self.site, self._first = world, Site(world, places), next(iter(places), None)
        self._by_name = {name.lower(): place for place in places for name in _names(place)}
        self._clients, self._strangers, self._tokens = Counter(A_CLIENTS), Counter(A_STRANGERS), Counter(FOR_TOKENS)

    def find(self, path: str) -> Place | None:
        """A path of no community in particular, or of an unknown one, belongs to the first."""
        if found := OF_A_COMMUNITY.fullmatch(path):
            return self._by_name.get(found[1].lower(), self._first)
        return self._first if OF_THE_SITE.fullmatch(path) else None

    def who(self, headers: Mapping[str, str]) -> str | None:
        """The client, whichever of its tokens it sends."""
        held = holder(self.world, headers)
        return held[0] if held else basic(headers)[0] or None

    def refused(self, fault: Fault, ask: Ask) -> Page:
        """A refusal caused only by a fault, in Reddit's format."""
        self._count(ask)
        return REFUSED[fault.name](ask) if fault.name in REFUSED else _by_status(fault)

    def answer(self, place: Place, ask: Ask) -> Page:
        rate = self._count(ask)
        if ask.path == TOKENS:
            return self._token(ask, rate)
        refusal = self._refusal(place, ask, rate)
        if refusal is not None:
            return refusal
        page = self._told(place, ask)
        # Errors come without rate-limit headers.
        return page.replace(headers=page.headers | rate.headers(is_exact=False)) if page.status == 200 else page

    def _count(self, ask: Ask) -> Rate:
        client_name = self.who(ask.headers)
        if ask.path == TOKENS:
            return self._tokens.add(client_name, ask.at)
        return (self._clients if client_name else self._strangers).add(client_name, ask.at)

    # ── access ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _token(self, ask: Ask, rate: Rate) -> Page:
        if rate.is_exceeded:
            return errors.said(429)
        grant = login(self.world, ask) if ask.method == "POST" else None
        if grant is None or grant.status != 200:
            return errors.said(grant.status if grant else 404)
        if grant.token is None:
            return errors.written({"error": grant.error}, headers=rate.headers())
        payload = {"access_token": grant.token, "token_type": "bearer", "expires_in": TOLD_SECONDS, "scope": "*"}
        return errors.written(payload, headers=rate.headers())

    def _refusal(self, place: Place, ask: Ask, rate: Rate) -> Page | None:
        if len(ask.path) + len(ask.query) > LONGEST_ADDRESS:
            return errors.too_long()
        if not ask.headers.get("user-agent"):
            return errors.blocked()
        if rate.is_exceeded:
            return errors.wait(rate.resets_in)
        if "authorization" in ask.headers:
            held = holder(self.world, ask.headers)
            if held is None or ask.at >= held[1]:
                return errors.invalid_token()
        elif not FEED.fullmatch(ask.path):
            return errors.search_page() if ask.path == SEARCH else errors.blocked()
        return self._moved(place, ask)

    def _moved(self, place: Place, ask: Ask) -> Page | None:
        found = OF_A_COMMUNITY.fullmatch(ask.path)
        if found is None:
            return None
        name, true_name = found[1], names.community(place, ask.at)
        if name.lower() not in self._by_name or (name.lower() != true_name.lower() and not _is_former(place, name)):
            return errors.elsewhere(302, f"{ask.base}{SEARCH}?q={name}")
        if place.gone_at is not None and ask.at >= place.gone_at:
            return errors.said(404, "banned")
        if name.lower() == true_name.lower():
            return None
        target = ask.path.replace(name, true_name, 1)
        return errors.elsewhere(301, f"{ask.base}{target}{'?' if ask.query else ''}{ask.query}")

    # ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _told(self, place: Place, ask: Ask) -> Page:
        body = ask.body.decode("latin-1") if ask.method == "POST" else ""
        params = {name: values[0] for name, values in parse_qs(f"{ask.query}&{body}").items()}
        # Only a page that could be requested then can be stale: nobody could have continued from here, nor requested
        # what was not written yet.
        is_copied = OF_A_COMMUNITY.fullmatch(ask.path) and not params.keys() & {"after", "before"}
        ago = ask.distortion.ago if is_copied else timedelta()
        asked = Asked(ask, params, Glance(self.site, ask.at - ago, ask.distortion.skew))
        path = ask.path
        if found := FEED.fullmatch(path):
            return self._feed(place, found[2] or "hot", asked)
        if found := LISTING.fullmatch(path):
            return self._listing(place, found[2] or "hot", asked)
        if ABOUT.fullmatch(path):
            payload = community_told(asked.glance, place)
            return _written(asked, thing(payload["name"], payload))
        if found := THREAD.fullmatch(path):
            return self._thread(found[2], found[3], asked)
        if path.startswith("/api/info"):
            return self._by_names(asked)
        if path == SEARCH:
            return self._found(asked)
        return self._more(asked) if path.startswith("/api/morechildren") else errors.said(404)

    def _listing(self, place: Place, name: str, asked: Asked) -> Page:
        posts, after = self._page(place, name, asked, USUAL)
        children = [thing(names.post_id(post), post_told(asked.glance, post)) for post in posts]
        return _written(asked, listing(children, after), [post_entry(asked.glance, post) for post in posts])

    def _feed(self, place: Place, name: str, asked: Asked) -> Page:
        posts, _ = self._page(place, name, asked, USUAL_IN_A_FEED)
        entries = tuple(post_entry(asked.glance, post, is_scored=False) for post in posts)
        return feed(asked.glance, place, name, posts, asked.ask).replace(entries=entries)

    def _page(self, place: Place, name: str, asked: Asked, usual: int) -> tuple[list[Post], str | None]:
        """A part of a listing, and the name to continue after; None if there is no more, or nothing to continue after.

        What was removed just now keeps its position: pages may be shorter than requested, and still continue.
        """
        at, distortion = asked.glance.at, asked.ask.distortion
        listed = self.site.listed(place, name, asked.params.get("t", USUAL_SPAN), at)
        limit = asked.number("limit", usual, MOST)
        begin, end = _ends(listed, asked, limit)
        part = listed[begin:end]
        after = names.post_id(part[-1]) if part and end < len(listed) and "before" not in asked.params else None
        there = [post for post in part if not post.is_removed(at)]
        if distortion.is_reordered:
            chance_of(asked.ask.path, asked.ask.query, asked.ask.at).shuffle(there)
        return [post for post in there for _ in range(2 if distortion.is_repeated else 1)], after

    def _by_names(self, asked: Asked) -> Page:
        """Everything with these names, removed or not: here the marks of removal are visible."""
        children: list[Told] = []
        entries: list[Entry] = []
        for name in asked.params.get("id", "").split(",")[:MOST_NAMES]:
            post, comment, glance = self.site.post(name), self.site.comment(name), asked.glance
            if post is None or post.shown_from > glance.at:
                continue
            if comment is None:
                children.append(thing(name, post_told(glance, post)))
                entries.append(post_entry(glance, post))
            elif comment.number <= self.world.counters(post, glance.at).reply_count:
                children.append(thing(name, comment_told(glance, post, comment)))
                entries.append(comment_entry(glance, comment))
        return _written(asked, listing(children), entries)

    def _found(self, asked: Asked) -> Page:
        """Communities whose names contain these letters: a listing like any other, of another type of thing."""
        letters = asked.params.get("q", "").lower()
        places = {place.number: place for name, place in self._by_name.items() if letters and letters in name}
        communities = [community_told(asked.glance, place) for place in places.values()]
        return _written(
            asked,
            listing([thing(payload["name"], payload) for payload in communities[: asked.number("limit", USUAL, MOST)]]),
        )

    def _thread(self, id: str, comment_id: str | None, asked: Asked) -> Page:
        post, glance = self.site.post(names.POST + id), asked.glance
        if post is None or post.shown_from > glance.at:
            return errors.said(404)
        thread = Thread(glance, post)
        limit = asked.number("limit", threads.USUAL, threads.MOST)
        comment = self.site.comment(names.COMMENT + comment_id) if comment_id else None
        below = thread.branch(comment, limit) if comment else thread.nested(limit)
        payload = thing(names.post_id(post), {**post_told(glance, post), "num_duplicates": 0})
        return _written(asked, [listing([payload]), below], [post_entry(glance, post), *thread.entries])

    def _more(self, asked: Asked) -> Page:
        post = self.site.post(asked.params.get("link_id", ""))
        ids = asked.params.get("children", "").split(",")[:MOST_NAMES]
        if post is None or not ids[0]:
            return errors.bad_request()
        thread = Thread(asked.glance, post)
        things = thread.flat(ids)
        return _written(asked, {"json": {"errors": [], "data": {"things": things}}}, thread.entries)


SIMULATOR = RedditSimulator


def _names(place: Place) -> list[str]:
    """All names that it ever has."""
    return [names.community(place), *([names.community(place, place.moves_at)] if place.moves_at else [])]


def _is_former(place: Place, name: str) -> bool:
    return name.lower() == names.community(place).lower()


def _ends(listed: Sequence[Post], asked: Asked, limit: int) -> tuple[int, int]:
    """Where a page starts and ends. After or before a post that is not listed (any more), there is nothing."""
    after, before = asked.params.get("after"), asked.params.get("before")
    if asked.ask.distortion.is_looping or not (after or before):
        return 0, limit
    meant = names.numbers(after or before or "")
    anchor = next((at for at, post in enumerate(listed) if meant == (post.place, post.number, 0)), None)
    if anchor is None or asked.ask.distortion.is_anchor_gone:
        return 0, 0
    return (anchor + 1, anchor + 1 + limit) if after else (max(0, anchor - limit), anchor)


def _written(asked: Asked, document: Any, entries: Sequence[Entry] = ()) -> Page:
    content = document if asked.params.get("raw_json") == "1" else _escaped(document)
    return errors.written(content).replace(entries=tuple(entries))


def _escaped(value: Any) -> Any:
    """HTML-escaped, for clients that do not ask for raw JSON."""
    if isinstance(value, str):
        return escape(value, quote=False)
    if isinstance(value, dict):
        return {name: _escaped(inner) for name, inner in value.items()}
    return [_escaped(inner) for inner in value] if isinstance(value, list) else value


# ── refusals caused by faults ─────────────────────────────────────────────────────────────────────────────────────


def _by_status(fault: Fault) -> Page:
    seconds = int(fault.retry_after.total_seconds()) if fault.retry_after is not None else None
    if fault.status == 429:
        return errors.said(429) if seconds is None else errors.wait(seconds)
    if fault.status == 401:
        return errors.invalid_token()
    if fault.status == 503:
        return Page(503, errors.JSON | ({"retry-after": str(seconds)} if seconds is not None else {}))
    return errors.said(fault.status or 500)


REFUSED: dict[str, Callable[[Ask], Page]] = {
    "forbidden": lambda _: errors.written({"error": 403}, 403),
    "private": lambda _: errors.said(403, "private"),
    "banned": lambda _: errors.said(404, "banned"),
    "quarantined": lambda _: errors.quarantined(),
    "narrow_scope": lambda _: errors.narrow_scope(),
    "blocked": lambda _: errors.blocked(),
    "challenge": lambda _: errors.challenge(),
    "over_18": lambda _: errors.over_18(),
    "unknown_name": lambda ask: errors.elsewhere(302, f"{ask.base}{SEARCH}?q=nothing"),
    "legal": lambda _: errors.legal(),
    "login_refused": lambda _: errors.written({"error": "invalid_grant"}),
}
