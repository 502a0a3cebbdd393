"""What a reader should end up with of each version of a post, form by form."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from catchment.model import Answer, Item, Reading, Request
from catchment.platforms import website as reader
from catchment.platforms.nga.bbcode import render
from catchment.playground.log import Asked
from catchment.playground.sites import (
    Ask,
    Entry,
    github,
    nga,
    reddit,
    website,
    x,
)
from catchment.playground.sites.reddit.fates import WORDLESS
from catchment.playground.sites.reddit.site import Site
from catchment.playground.world import (
    Place,
    Post,
    Version,
    World,
)
from catchment.text.clean import refine
from endure.missing import STALE
from endure.stored import plain

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


class Texts:
    """The texts of one place."""

    def __init__(self, world: World, place: Place) -> None:
        self.place = place
        self.posts = {post.id: post for post in world.posts(place)}
        self._x = x.XSimulator(world) if place.form == x.NAME else None
        self._github = github.GitHubSimulator(world) if place.form == "github" else None
        self._reddit = reddit.RedditSimulator(world).site if place.form == "reddit" else None
        threads = nga.NgaSimulator(world).threads(place) if place.form == "nga" else ()
        self._floors = {floor.post.id: floor for thread in threads for floor in thread.floors}

    def is_own(self, name: str) -> bool:
        """Whether it says what the post says: a retweet says what another one says, or said."""
        return self._x is None or self._x.relation(self.posts[name]) != "retweeted"

    def of(self, asked: Asked, entry: Entry) -> tuple[str, ...]:
        """What a reader should hold after this answer showed it the post: one of these texts."""
        if self.place.form != "nga":
            return (self._of_version(asked.path, entry.post, entry.version),)
        # A moderator's penalty changes the text, too. Of an old copy, only its version is known.
        floor = self._floors[entry.post]
        is_folded = floor.folded_at is not None and floor.folded_at <= asked.at
        version = next(version for version in floor.post.versions if version.number == entry.version)
        folds = (False, True) if is_folded and asked.fault == STALE else (is_folded,)
        return tuple(_rendered(floor.content_of(version, is_folded=folded)) for folded in folds)

    def _of_version(self, path: str, name: str, number: int) -> str:
        if self._reddit is not None:
            return plain(self._in_community(self._reddit, path, name, number))
        post = self.posts[name]
        version = next(version for version in post.versions if version.number == number)
        if self.place.form == "github":
            assert self._github is not None
            return plain(self._github.described(post, version))
        if self.place.form == "website":
            is_index = path.endswith("/index")
            return plain(version.title) if is_index else _main_text(self.place, post, version)
        return plain(version.text or (version.title if self.place.form == x.NAME else ""))

    def _in_community(self, site: Site, path: str, name: str, number: int) -> str:
        name, _, comment = name.partition("/")
        post = self.posts[name]
        if comment:
            return site.comments(post)[int(comment) - 1].text(number)
        sort = site.nature(post).sort
        words = "" if sort in WORDLESS else post.versions[number - 1].text
        if sort != "poll":
            return words
        # What can be chosen is told to those who have a key.
        return f"{words} View Poll" if is_partial(path) else f"{words} View Poll Yes No"


@lru_cache(maxsize=4096)
def _rendered(content: str) -> str:
    """How BBCode becomes text has tests of its own."""
    reading = Reading((Item("x", html=render(content).html),))
    return plain(refine(reading, scope="", answer_url="http://site.example").items[0].item.text)


def is_partial(path: str) -> bool:
    """A community's feed: of what is held already it says nothing but that it is there."""
    return path.endswith(".rss")


@lru_cache(maxsize=4096)
def _main_text(place: Place, post: Post, version: Version) -> str:
    """Which part of a page is its main text is the reader's guess: it has tests of its own. What is asked here is that
    each guess was stored, and in its order."""
    body, _ = website.page(place, ((post, version),), Ask(place.path, "", {}, WHEN, "http://site.example"))
    address = f"http://site.example{place.path}"
    headers = {"content-type": "text/html; charset=utf-8"}
    reading: Reading = reader.read(Answer(200, headers, body.encode(), address, WHEN), Request(address))
    return plain(refine(reading, scope="", answer_url=address).items[0].item.text)
