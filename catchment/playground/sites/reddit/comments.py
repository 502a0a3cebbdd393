"""The comments of a post. As many as the world counts replies, each written when the count reaches it."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil, log
from random import Random

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.fates import BY_AUTHOR, BY_MODERATOR
from catchment.playground.world import AUTHORS, Post, World

TO_THE_POST, TO_THE_LAST = 0.4, 0.45
"""Shares of comments that reply to the post, and to the previous comment; the others reply to any."""
EDITED, REMOVED = 0.06, 0.05


class Comment(Record, frozen=True):
    """One comment and its whole history."""

    key: str
    """The world's own name for it."""
    number: int
    """Counted from 1, in the order of writing."""
    name: str
    parent: int
    """The number of the comment that it replies to; 0: the post."""
    depth: int
    created_at: datetime
    author: str
    texts: tuple[tuple[datetime, str], ...]
    """Its texts, and from when on each is valid."""
    removed_at: datetime | None
    removed_by: str
    fame: float

    def is_removed(self, at: datetime) -> bool:
        return self.removed_at is not None and at >= self.removed_at

    def version(self, at: datetime) -> int:
        """Counted from 1."""
        return max(1, sum(1 for from_at, _ in self.texts if from_at <= at))

    def text(self, version: int) -> str:
        return self.texts[version - 1][1]

    def score(self, at: datetime) -> int:
        hours = max(0.0, (at - self.created_at).total_seconds() / 3600)
        return 1 + int(self.fame * hours / (hours + 5))


def comments_of(world: World, post: Post) -> tuple[Comment, ...]:
    """All comments that a post will ever have."""
    chance, fame = chance_of(world.seed, "comments", post.id), world.fame(post)
    found: list[Comment] = []
    for number in range(1, min(names.COMMENTS, ceil(fame / 3))):
        # The inverse of the world's growth of replies: the time at which the count reaches this number.
        hours = -8 * log(1 - 3 * number / fame)
        at = (post.shown_from + timedelta(hours=hours)).replace(microsecond=0)
        parent = _parent(chance, number)
        found.append(
            Comment(
                key=f"{post.id}/{number}",
                number=number,
                name=names.comment_id(post, number),
                parent=parent,
                depth=found[parent - 1].depth + 1 if parent else 0,
                created_at=at,
                author=chance.choice(AUTHORS),
                texts=_texts(world, chance, post, at),
                removed_at=at + timedelta(hours=chance.uniform(0.1, 60)) if chance.random() < REMOVED else None,
                removed_by=chance.choice((BY_AUTHOR, BY_MODERATOR)),
                fame=chance.expovariate(1 / 8),
            )
        )
    return tuple(found)


def _parent(chance: Random, number: int) -> int:
    draw = chance.random()
    if draw < TO_THE_POST or number == 1:
        return 0
    return number - 1 if draw < TO_THE_POST + TO_THE_LAST else chance.randrange(1, number)


def _texts(world: World, chance: Random, post: Post, at: datetime) -> tuple[tuple[datetime, str], ...]:
    sentences = world.phrasebook.chinese if post.language == "zh" else world.phrasebook.english
    first = chance.choice(sentences)
    if chance.random() >= EDITED:
        return ((at, first),)
    return (at, first), (at + timedelta(hours=chance.uniform(0.05, 50)), f"{first} {chance.choice(sentences)}")
