"""What was not said lies in a gap: for listings that show a window, and for those that are walked page by page."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from catchment.model import Forum, Record
from catchment.platforms import discourse as discourse_platform
from catchment.platforms import nga as nga_platform
from catchment.playground.log import Asked
from catchment.playground.sites import discourse, hackernews, json_api, nga, reddit, x
from catchment.playground.world import (
    Place,
    Post,
    Timeline,
    World,
)
from catchment.policy.threads import window
from endure.following import SEARCHED, Manner
from endure.stored import Gap, Visit


class Missed(Record, frozen=True):
    """What one source has missed."""

    needed: int
    """Posts that had to lie in a gap."""
    unexplained: tuple[str, ...]
    unseen: int
    gap_seconds: float
    false_gap_seconds: float
    waiting: int = 0
    """Floors of threads that wait to be read, as the archive says."""


class Window:
    """A feed: posts that left its window unseen between two good visits."""

    def __init__(
        self, timeline: Timeline, gaps: Sequence[Gap], slack: timedelta, told: Sequence[Asked], good: Sequence[Asked]
    ) -> None:
        self.timeline, self.place, self.slack, self.told = timeline, timeline.place, slack, told
        # An old copy at the very end: nobody came back to notice what had left the window since.
        last = next((place for place in range(len(good), 0, -1) if good[place - 1].fault != "stale"), 0)
        self.good = good[:last]
        self.posts = {post.id: post for post in timeline.posts}
        self.gaps = [(gap.from_at, self._end_of(gap)) for gap in gaps]

    def missed(self) -> Missed:
        seen = {entry.post for request in self.told for entry in request.entries}
        needed, unexplained, unseen = [], [], 0
        for before, after in pairwise(self.good):
            glimpsed = self.timeline.glimpses(before.at, after.at)
            # What is there still has not left: an old copy came in its place, and the next answer may tell of it.
            there = {post.id for post, _ in self.timeline.shown(after.at)}
            for name in glimpsed.keys() - seen - there:
                post = self.posts[name]
                if not self._is_owed(post, before.at, after.at):
                    unseen += 1
                    continue
                needed.append(post)
                if not any(self._lies_in(post, gap) for gap in self.gaps):
                    unexplained.append(
                        f"{name} of {post.created_at:%d %H:%M}, {before.at:%d %H:%M}–{after.at:%d %H:%M}"
                    )
        total = sum((end - begin).total_seconds() for begin, end in self.gaps)
        false = (gap for gap in self.gaps if not any(self._lies_in(post, gap) for post in needed))
        return Missed(
            len(needed), tuple(unexplained), unseen, total, sum((end - begin).total_seconds() for begin, end in false)
        )

    def _is_owed(self, post: Post, before: datetime, after: datetime) -> bool:
        """Not what was removed again before anybody came, nor what slipped in below entries that are known already:
        no reader can tell such a listing from one into which nothing slipped."""
        if post.is_removed(after):
            return False
        if any(before < request.at <= after and _may_lack(request, post) for request in self.told):
            # It slips back in below entries of that answer.
            return False
        if self.place.is_by_arrival:
            return post.shown_from > before
        # Answers that had to be repaired, between the two good ones, say what is known, too: a post that was let
        # through after one of them slips in below its entries.
        known_until = max(before, post.shown_from)
        # No newer than the answer that told of it: what is dated ahead is not beyond all that comes.
        told = (
            min(self.posts[entry.post].created_at, request.at)
            for request in self.told
            if request.at <= known_until
            for entry in request.entries
        )
        newest = max(told, default=None)
        # A feed that has shown nothing yet gives no edge from which anything could be missing.
        return newest is not None and post.created_at > newest

    def _end_of(self, gap: Gap) -> datetime:
        """Where listings go by arrival, what came out late at the lower edge of an answer bears an older date than
        what is missing below it; nobody who reads the answer can tell."""
        if not self.place.is_by_arrival:
            return gap.to_at
        return max((post.shown_from for post in self.posts.values() if post.created_at == gap.to_at), default=gap.to_at)

    def _lies_in(self, post: Post, gap: tuple[datetime, datetime]) -> bool:
        return any(gap[0] - self.slack <= at <= gap[1] + self.slack for at in (post.created_at, post.shown_from))


def _may_lack(request: Asked, post: Post) -> bool:
    """Whether an answer came while the post was removed. Nobody knows how old an old copy is."""
    if request.fault == STALE:
        return post.removed_at is not None and post.removed_at <= request.at
    return post.is_removed(request.at)


def _is_gone_from(post: Post, walk: Span) -> bool:
    """Whether the post was not there when a walk began, or was removed while it went on, perhaps just before its page
    was read."""
    is_removed_during = post.removed_at is not None and walk.began < post.removed_at <= walk.ended
    return post.is_removed(walk.began) or is_removed_during


STALE = "stale"
"""The fault of an answer that is an old copy."""
WALKS_ENOUGH = 3
"""A post that so many good walks in a row had before them, and none has brought, is missing. One alone may have met an
answer whose dates were off, or a story that could not be had just then."""


class Span(Record, frozen=True):
    """When a walk sent its first and its last request."""

    began: datetime
    ended: datetime


class Pages:
    """A listing that is walked down to what is stored: posts that came out between walks, and that none has brought.
    All of these listings go by the server's own clock, so that nothing comes late; what moderators of a community let
    through, or let back in, slips in below what is known, and is not owed. Nor is what moved up by one place, from the
    next numbered page to the one just read, because a newer post was removed in between."""

    def __init__(
        self,
        world: World,
        place: Place,
        manner: Manner,
        gaps: Sequence[Gap],
        slack: timedelta,
        walks: Sequence[Span],
        first_seen: Mapping[str, datetime],
    ) -> None:
        self.world, self.place, self.manner, self.gaps, self.slack = world, place, manner, gaps, slack
        self.walks, self.first_seen = walks, first_seen
        self.is_numbered = _is_numbered(place, manner)

    def missed(self) -> Missed:
        needed, unexplained, unseen = 0, [], 0
        posts = self._owed()
        for post in posts:
            if post.id in self.first_seen:
                continue
            first = bisect_left(self.walks, self._listed_from(post), key=lambda walk: walk.began)
            later = self.walks[first : first + WALKS_ENOUGH]
            is_gone = any(_is_gone_from(post, walk) for walk in later)
            if len(later) < WALKS_ENOUGH or is_gone or any(self._may_slip(post, walk, posts) for walk in later):
                unseen += 1
                continue
            needed += 1
            if not any(self._lies_in(post, gap) for gap in self.gaps):
                unexplained.append(f"{post.id} of {post.shown_from:%d %H:%M:%S} by {self.manner.target}")
        # A gap is no less true for being filled later: something was missing when it was opened.
        false = [gap for gap in self.gaps if not any(self._was_missing(post, gap) for post in posts)]
        return Missed(needed, tuple(unexplained), unseen, _seconds(self.gaps), _seconds(false))

    def _owed(self) -> list[Post]:
        if not self.walks:
            return []
        posts = self.world.posts(self.place)
        came = posts[bisect_right(posts, self.walks[0].began, key=lambda post: post.shown_from) :]
        return [post for post in came if self._is_meant(post)]

    def _is_meant(self, post: Post) -> bool:
        if self.place.form == reddit.NAME:
            return post.shown_from == post.created_at and post.restored_at is None
        if self.place.form == x.NAME:
            return post.restored_at is None
        if self.place.form != hackernews.NAME:
            return True
        sort = hackernews.sort_of(self.world, post)
        if not self.manner.target.startswith("search:"):
            return sort != "job"
        # What an edit makes a hit of, or none, slips in and out.
        said = (f"{version.title} {version.text} {post.author}".casefold() for version in post.versions)
        return sort != "job" and all(SEARCHED in words for words in said)

    def _may_slip(self, post: Post, walk: Span, posts: Sequence[Post]) -> bool:
        """Whether a newer post was removed while this walk turned numbered pages."""
        return self.is_numbered and any(
            other.removed_at is not None and walk.began < other.removed_at <= walk.ended
            for other in posts
            if other.shown_from > post.shown_from
        )

    def _listed_from(self, post: Post) -> datetime:
        """From when on a walk can have it."""
        return post.shown_from + (hackernews.INDEXED_AFTER if self.place.form == hackernews.NAME else timedelta())

    def _lies_in(self, post: Post, gap: Gap) -> bool:
        return gap.from_at - self.slack <= post.shown_from <= gap.to_at + self.slack

    def _was_missing(self, post: Post, gap: Gap) -> bool:
        seen_at = self.first_seen.get(post.id)
        return self._lies_in(post, gap) and (seen_at is None or seen_at > gap.opened_at)


class Floors:
    """The threads of a forum: floors that were there while several good walks listed their thread, and that none has
    brought; and numbers of which nothing is known."""

    def __init__(
        self,
        world: World,
        place: Place,
        walks: Sequence[Span],
        first_seen: Mapping[str, datetime],
        unknown: Sequence[str],
        window_days: int,
        waiting: Collection[str] = (),
    ) -> None:
        """`waiting`: the posts that open a thread which waits to be read."""
        self.walks, self.first_seen, self.unknown, self.window_days = walks, first_seen, unknown, window_days
        self.waiting = waiting
        self.threads = _threads(world, place)
        kind = (nga_platform if place.form == nga.NAME else discourse_platform).KINDS[0]
        assert kind.forum is not None
        self.forum: Forum = kind.forum

    def missed(self) -> Missed:
        if not self.walks:
            return Missed(0, tuple(self.unknown), 0, 0.0, 0.0)
        missing = [
            (thread[0], post)
            for thread in self.threads
            for post in thread
            if post.id not in self.first_seen and self._is_owed(thread[0], post)
        ]
        unexplained = [
            f"{post.id} of {post.shown_from:%d %H:%M:%S} in the thread of {head.id}"
            for head, post in missing
            if head.id not in self.waiting
        ]
        waiting = len(missing) - len(unexplained)
        return Missed(0, (*unexplained, *self.unknown), 0, 0.0, 0.0, waiting)

    def _is_owed(self, head: Post, post: Post) -> bool:
        """Not what was removed meanwhile: threads wait to be read, and all that can be known then is the hole."""
        if any(shown.removed_at is not None and shown.removed_at <= self.walks[-1].ended for shown in (head, post)):
            return False
        return sum(self._shows(walk, head, post) for walk in self.walks) >= WALKS_ENOUGH

    def _shows(self, walk: Span, head: Post, post: Post) -> bool:
        """Whether a walk listed the thread after the post had come."""
        is_inside = head.shown_from >= window(self.forum, self.window_days, walk.began).starts_at
        return is_inside and post.shown_from <= walk.began


def _threads(world: World, place: Place) -> list[list[Post]]:
    if place.form == nga.NAME:
        every = nga.NgaSimulator(world).threads(place)
        threads = (thread for thread in every if not thread.more_floors and not thread.is_hidden)
        return [[floor.post for floor in thread.floors] for thread in threads]
    return [
        [topic_post.post for topic_post in topic]
        for topic in discourse.DiscourseSimulator(world).topics(place).values()
    ]


def _is_numbered(place: Place, manner: Manner) -> bool:
    """Whether its pages are told apart by a number or an offset, not by a cursor."""
    if place.form == json_api.NAME:
        return json_api.manner(place) != "cursor"
    return manner.target.startswith("search:")


def good_walks(visits: Sequence[Visit], asked: Sequence[Asked]) -> list[Span]:
    """When each of these visits walked. One that was shown an old copy began in the past, and proves nothing. Nor does
    one that Reddit showed an empty page: its anchor is gone, or was pushed beyond the reach while the walk went on. The
    watermark stays, and the next visit walks again."""
    times = [request.at for request in asked]
    walks = []
    for visit in visits:
        during = asked[bisect_left(times, visit.started_at) : bisect_right(times, visit.finished_at)]
        if during and not any(request.fault == STALE or _is_empty_page(request) for request in during):
            walks.append(Span(during[0].at, during[-1].at))
    return walks


def _is_empty_page(request: Asked) -> bool:
    return request.path.partition("?")[0].endswith("/new") and request.is_whole and not request.entries


def _seconds(gaps: Sequence[Gap]) -> float:
    return sum((gap.to_at - gap.from_at).total_seconds() for gap in gaps)
