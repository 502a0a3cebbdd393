"""Reddit's posts: by name, by date, by score; and its listings, each up to a thousand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from math import log10

from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.comments import Comment, comments_of
from catchment.playground.sites.reddit.fates import Nature, nature
from catchment.playground.world import Place, Post, World

REACH = 1_000
"""No listing goes further."""
SPANS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=30),
    "year": timedelta(days=365),
    "all": timedelta(days=40_000),
}
USUAL_SPAN = "day"
RISING = timedelta(hours=6)
LATELY = timedelta(minutes=10)
"""How long a removed post keeps its position in listings, although nothing is shown there."""
FEW = 1_500
"""How many posts can be ranked for one answer; of more, only those with the highest scores compete."""


class Site:
    """Caches what it has computed: a world does not change."""

    def __init__(self, world: World, places: Sequence[Place]) -> None:
        self.world = world
        self._places = {place.number: place for place in places}
        self._shelves: dict[int, Shelf] = {}
        self._natures: dict[str, Nature] = {}
        self._comments: dict[str, tuple[Comment, ...]] = {}

    def place(self, post: Post) -> Place:
        return self._places[post.place]

    def shelf(self, place: Place) -> Shelf:
        if place.number not in self._shelves:
            self._shelves[place.number] = Shelf(self.world, place)
        return self._shelves[place.number]

    def nature(self, post: Post) -> Nature:
        if post.id not in self._natures:
            self._natures[post.id] = nature(self.world, post)
        return self._natures[post.id]

    def comments(self, post: Post) -> tuple[Comment, ...]:
        """All that it will ever have, in the order of writing."""
        if post.id not in self._comments:
            self._comments[post.id] = comments_of(self.world, post)
        return self._comments[post.id]

    def post(self, name: str) -> Post | None:
        """The post that a name means, be it the post's own or that of a comment on it."""
        found = names.numbers(name)
        place = self._places.get(found[0]) if found else None
        post = self.shelf(place).by_number.get(found[1]) if found and place else None
        return post if post and found and (not found[2] or found[2] <= len(self.comments(post))) else None

    def comment(self, name: str) -> Comment | None:
        post, found = self.post(name), names.numbers(name)
        return self.comments(post)[found[2] - 1] if post and found and found[2] else None

    def listed(self, place: Place, listing: str, span: str, at: datetime) -> list[Post]:
        """The content of a listing at a moment, in its order."""
        shelf = self.shelf(place)
        if listing == "new":
            return shelf.newest(at)
        if listing == "hot":
            ranked = sorted(shelf.newest(at), key=self._heat(at), reverse=True)
            pinned = [post for post in map(shelf.by_number.get, range(2)) if post and self._leads(post, at)]
            return (pinned + [post for post in ranked if post not in pinned])[:REACH]
        since = at - (RISING if listing == "rising" else SPANS.get(span, SPANS[USUAL_SPAN]))
        return sorted(shelf.since(since, at), key=self._rank(listing, at), reverse=True)[:REACH]

    def _leads(self, post: Post, at: datetime) -> bool:
        return self.nature(post).is_pinned and post.shown_from <= at and not post.is_removed(at)

    def _heat(self, at: datetime) -> Callable[[Post], tuple[float, int]]:
        """The site's own ranking, as it was published once: ten times the score counts as much as half a day."""

        def key(post: Post) -> tuple[float, int]:
            score = self.world.counters(post, at).score
            return log10(max(1, score)) + post.began_at.timestamp() / 45_000, post.number

        return key

    def _rank(self, listing: str, at: datetime) -> Callable[[Post], tuple[float, int]]:
        def key(post: Post) -> tuple[float, int]:
            counters = self.world.counters(post, at)
            if listing == "top":
                return counters.score, post.number
            if listing == "controversial":
                return counters.reply_count / max(1, counters.score), post.number
            hours = (at - post.shown_from).total_seconds() / 3600
            return counters.score / (hours + 1), post.number

        return key


class Shelf:
    """The posts of one community, indexed so that a search does not scan all of them."""

    def __init__(self, world: World, place: Place) -> None:
        self._world = world
        self._by_date = sorted(world.posts(place), key=lambda post: (post.began_at, post.number))
        self._dates = [post.began_at for post in self._by_date]
        self.by_number = {post.number: post for post in self._by_date}

    def newest(self, at: datetime) -> list[Post]:
        """By the time of writing: what was approved late appears below known posts."""
        begun = bisect_right(self._dates, at)
        listed = (post for post in map(self._by_date.__getitem__, range(begun - 1, -1, -1)) if _is_listed(post, at))
        return list(islice(listed, REACH))

    def since(self, since: datetime, at: datetime) -> list[Post]:
        begin, end = bisect_left(self._dates, since), bisect_right(self._dates, at)
        if end - begin <= FEW:
            return [post for post in self._by_date[begin:end] if _is_listed(post, at)]
        listed = (post for post in self._by_fame if since <= post.began_at <= at and _is_listed(post, at))
        return list(islice(listed, FEW))

    @cached_property
    def _by_fame(self) -> list[Post]:
        return sorted(self._by_date, key=self._world.fame, reverse=True)


def _is_listed(post: Post, at: datetime) -> bool:
    return post.shown_from <= at and not (post.is_removed(at) and post.is_removed(at - LATELY))
