"""What a reader should end up with of each version of a post, form by form."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from catchment.model import Answer, Reading, Request
from catchment.platforms import website as reader
from catchment.playground.voices import Ask, github, website
from catchment.playground.world import Place, Post, Version, World
from catchment.refine import refine
from endure.stored import plain

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


class Texts:
    """The texts of one place."""

    def __init__(self, world: World, place: Place) -> None:
        self.place = place
        self.posts = {post.id: post for post in world.posts(place)}
        self._github = github.Voice(world) if place.form == "github" else None

    def of(self, path: str, name: str, number: int) -> str:
        """What a reader of this path should hold after it saw this version of the post."""
        post = self.posts[name]
        version = next(version for version in post.versions if version.number == number)
        if self.place.form == "github":
            assert self._github is not None
            return plain(self._github.described(post, version))
        if self.place.form == "website":
            is_index = path.endswith("/index")
            return plain(version.title) if is_index else _main_text(self.place, post, version)
        return plain(version.text)


@lru_cache(maxsize=4096)
def _main_text(place: Place, post: Post, version: Version) -> str:
    """Which part of a page is its main text is the reader's guess: it has tests of its own. What is asked here is that
    each guess was stored, and in its order."""
    body, _ = website.page(place, ((post, version),), Ask(place.path, "", {}, WHEN, "http://site.example"))
    address = f"http://site.example{place.path}"
    headers = {"content-type": "text/html; charset=utf-8"}
    reading: Reading = reader.read(Answer(200, headers, body.encode(), address, WHEN), Request(address))
    return plain(refine(reading, scope="", answer_url=address).items[0].item.text)
