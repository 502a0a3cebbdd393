"""The threads of a board: which posts open one, which are its floors, and what happens to them.

A post of the world opens a thread or answers in a recent one. Its floor number is the number of posts before it in the
thread, those that were deleted since included: a deleted floor leaves a hole. Now and then a floor is a comment on an
earlier one, and now and then a moderator's penalty is added to one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import md5

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.world import Place, Post, Version, World

FIRST_TID, FIRST_PID, FIRST_FID = 40_000_000, 800_000_000, 100
NEW_THREAD = 0.15
RECENT = 12
"""How many of the newest threads are answered in."""
POPULAR, POPULAR_SHARE = 40, 0.2
"""Every thread at this interval gets this share of the replies until the next one comes: it has several pages."""
FLOORS_A_PAGE = 20
SUB_BOARDS = ((510001, "器材讨论"), (-510002, "Side room"))
PENALTY = "[lessernuke]用户被警告 off topic[/lessernuke]"


class BoardFloor(Record, frozen=True):
    """A post as a floor of its thread."""

    post: Post
    number: int
    pid: int
    folded_at: datetime | None = None
    comments_on: int | None = None
    """The number of the floor that it is a comment on."""

    def is_there(self, at: datetime) -> bool:
        return self.post.shown_from <= at and not self.post.is_removed(at)

    def content(self, at: datetime) -> str:
        """Its BBCode at a moment, as plain text."""
        return self.content_of(self.post.version(at), is_folded=self.folded_at is not None and self.folded_at <= at)

    def content_of(self, version: Version, *, is_folded: bool) -> str:
        picture = f"\n[img]{self.post.picture}[/img]" if self.post.picture else ""
        penalty = f"\n{PENALTY}" if is_folded else ""
        return f"{version.text}{picture}{penalty}"

    def edited_at(self, at: datetime) -> datetime | None:
        version: Version = self.post.version(at)
        return version.from_at if version.number > 1 else None


class BoardThread(Record, frozen=True):
    tid: int
    floors: tuple[BoardFloor, ...]
    is_anonymous: bool = False
    """Its opening post is."""
    sub_board: int | None = None
    """The index of the sub-board that it belongs to."""
    is_hidden: bool = False
    """The list shows it; reading it is refused."""
    is_mirrored: bool = False
    """The list shows it a second time, under another id and title."""
    more_floors: int = 0
    """Floors that are counted but were never requested: it is too long to be read."""

    @property
    def head(self) -> Post:
        return self.floors[0].post

    def is_there(self, at: datetime) -> bool:
        return self.floors[0].is_there(at)

    def appeared(self, at: datetime) -> list[BoardFloor]:
        """The floors that were written by then, deleted ones included."""
        return [floor for floor in self.floors if floor.post.shown_from <= at]

    def replies(self, at: datetime) -> int:
        return len(self.appeared(at)) - 1 + self.more_floors

    def last_reply_at(self, at: datetime) -> datetime:
        """The time of the last floor that is still there."""
        return max(floor.post.shown_from for floor in self.appeared(at) if floor.is_there(at))


def fid_of(place: Place) -> int:
    """Boards of users have negative numbers."""
    return (FIRST_FID + place.number) * (-1 if place.number % 2 else 1)


def threads_of(world: World, place: Place) -> tuple[BoardThread, ...]:
    """The threads of a board, in the order in which they were opened."""
    floors: list[list[BoardFloor]] = []
    for index, post in enumerate(world.posts(place)):
        chance = chance_of(world.seed, "nga", post.id)
        base = 1_000_000 * place.number
        folded_at = post.shown_from + timedelta(hours=chance.randint(1, 48)) if chance.random() < 0.03 else None
        floor = BoardFloor(post, 0, FIRST_PID + base + 7 * index, folded_at)
        if not floors or chance.random() < NEW_THREAD:
            floors.append([floor.replace(pid=0)])
            continue
        popular = floors[(len(floors) - 1) // POPULAR * POPULAR]
        thread = popular if chance.random() < POPULAR_SHARE else chance.choice(floors[-RECENT:])
        is_comment = len(thread) > 1 and chance.random() < 0.06
        comments_on = chance.randint(1, len(thread) - 1) if is_comment else None
        thread.append(floor.replace(number=len(thread), comments_on=comments_on))
    # One that is opened during collection and never deleted.
    giant = next(
        (
            index
            for index, thread in enumerate(floors)
            if thread[0].post.shown_from > world.start and thread[0].post.removed_at is None
        ),
        None,
    )
    return tuple(
        BoardThread(
            FIRST_TID + 1_000_000 * place.number + 3 * index,
            tuple(thread),
            is_anonymous=index % 13 == 5,
            sub_board=index % len(SUB_BOARDS) if index % 5 == 4 else None,
            is_hidden=index % 23 == 7 and index != giant,
            is_mirrored=index % 11 == 3,
            more_floors=world.giant_pages * FLOORS_A_PAGE if index == giant else 0,
        )
        for index, thread in enumerate(floors)
    )


def uid_of(author: str) -> int:
    return 10_000 + sum(map(ord, author)) * 37


def anonymous_name(tid: int) -> str:
    return f"#anony_{md5(str(tid).encode(), usedforsecurity=False).hexdigest()}"
