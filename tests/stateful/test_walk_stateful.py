"""Walks down a listing of many pages, against somebody who knows every post that ever was.

Pure: the decisions of a visit, page by page, as the store would ask for them; no database, no reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from catchment.collect.deciding import MOST_PAGES, PageDeciding, Visiting
from catchment.continuity import Walk
from catchment.judge import judge
from catchment.model import (
    Gap,
    Item,
    Judged,
    Known,
    Listing,
    Order,
    Outcome,
    Progress,
    Reading,
    RefinedItem,
    Request,
    Result,
    Source,
    Watermark,
)
from catchment.store.visits import Conclusion, Found
from tests.stateful.effort import effort

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGE, REACH, LIMIT = 3, 12, 6
SOURCE = Source(1, "key", "board", "board", "new", "A board", START)
ON = Request("https://board.example/new")


@dataclass
class Post:
    number: int
    at: datetime
    is_pinned: bool = False
    is_hidden: bool = False
    """Taken down by the platform: it is shown to nobody, and takes its place all the same."""
    is_unusable: bool = False
    """Shown, with nothing in it."""
    is_promised: bool = False
    """It came after the first whole visit, with a time of its own day: it may not be lost without a word."""

    @property
    def id(self) -> str:
        return f"t{self.number}"


class WalkMachine(RuleBasedStateMachine):
    @initialize(overlap=st.sampled_from([0, PAGE]), is_later_first=st.booleans(), count=st.integers(0, 10))
    def begin(self, overlap: int, is_later_first: bool, count: int) -> None:
        self.listing = Listing("new", Order.NEWEST_FIRST, reach=REACH, page_size=PAGE, overlap=overlap)
        self.is_later_first = is_later_first
        self.now = START
        self.count = 0
        self.posts: list[Post] = []
        self.stored: dict[str, datetime] = {}
        self.mark: Watermark | None = None
        self.gaps: dict[int, Gap] = {}
        self.opened = 0
        self.due_posts: list[Post] = []
        """Those that were there when the last whole visit began."""
        for _ in range(count):
            self.wait(1)
            self._post(self.now)

    # ── the board ─────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(minutes=st.integers(1, 100))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(count=st.integers(1, 8), apart=st.integers(0, 1))
    def post(self, count: int, apart: int) -> None:
        """Some posts, a minute apart or all of the same one."""
        for _ in range(count):
            self.now += timedelta(minutes=apart)
            self._post(self.now)

    @rule()
    def post_more_than_can_be_seen(self) -> None:
        self.wait(1)
        self.post(REACH + 3, 1)

    @rule()
    def post_at_the_time_of_the_watermark(self) -> None:
        self._post(self.mark.at if self.mark else self.now)

    @rule(minutes=st.integers(1, 300))
    def post_ahead_of_time(self, minutes: int) -> None:
        self._post(self.now + timedelta(minutes=minutes))

    @rule(minutes=st.integers(1, 300))
    def post_late(self, minutes: int) -> None:
        self._post(self.now - timedelta(minutes=minutes))

    def _post(self, at: datetime) -> None:
        self.count += 1
        is_promised = self.mark is not None and self.mark.at <= at <= self.now
        self.posts.append(Post(self.count, at, is_promised=is_promised))

    @rule(place=st.integers(0, 20), what=st.sampled_from(["is_pinned", "is_hidden", "is_unusable"]))
    def change(self, place: int, what: str) -> None:
        """Pin a post, hide it, empty it; or undo that."""
        if self.posts:
            post = self._newest_first()[place % len(self.posts)]
            setattr(post, what, not getattr(post, what))

    @rule(place=st.integers(0, 20))
    def pin_the_newest_we_have(self, place: int) -> None:
        for post in self.posts:
            if self.mark and post.id in self.mark.ids:
                post.is_pinned = True

    @rule(place=st.integers(0, 20))
    def remove(self, place: int) -> None:
        if self.posts:
            self.posts.remove(self._newest_first()[place % len(self.posts)])

    @rule()
    def remove_the_newest_we_have(self) -> None:
        self.posts = [post for post in self.posts if not self.mark or post.id not in self.mark.ids]

    def _order(self, post: Post) -> tuple[datetime, int]:
        return post.at, post.number if self.is_later_first else -post.number

    def _newest_first(self) -> list[Post]:
        return sorted(self.posts, key=self._order, reverse=True)

    def _page(self, after: tuple[datetime, int] | None) -> tuple[list[Post], tuple[datetime, int] | None]:
        """The posts of a page, and where the next one begins; None: there is none."""
        reachable = [post for post in self._newest_first() if not post.is_pinned][:REACH]
        left = [post for post in reachable if after is None or self._order(post) < after]
        pinned = [post for post in self.posts if post.is_pinned]
        page = left[:PAGE]
        following = self._order(page[-1]) if len(left) > PAGE else None
        return [post for post in [*pinned, *page] if not post.is_hidden], following

    # ── visits ────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        breaks_on=st.none() | st.integers(1, 4),
        meanwhile=st.integers(0, 2),
        loops=st.sampled_from([False, False, False, True]),
    )
    def visit(self, breaks_on: int | None, meanwhile: int, loops: bool) -> None:
        """Walk down, page by page. Others post between two pages; the walk may break off; the cursor may loop."""
        before, present = self.mark, list(self.posts)
        walk, place = Walk(self.listing, self.mark), None
        for number in range(1, MOST_PAGES + 1):
            if number == breaks_on:
                break
            posts, following = self._page(None if loops else place)
            deciding, conclusion = self._decided(walk, posts, following is not None, number)
            self._write(conclusion)
            if conclusion.ending is not None:
                self.due_posts = present
                self._forgive_what_nobody_could_see()
                break
            assert deciding.wanted()
            walk, place = deciding.walk, following
            self.post(0 if loops else meanwhile, 0)
        else:
            raise AssertionError("a walk that does not end")
        assert before is None or (self.mark is not None and before.at <= self.mark.at)
        assert self.mark is None or self.mark.at <= self.now

    def _forgive_what_nobody_could_see(self) -> None:
        """What comes to light later below the watermark is a late arrival: nobody promised to find it."""
        for post in self.posts:
            if (post.is_hidden or post.is_unusable) and self.mark and post.at <= self.mark.at:
                post.is_promised = False

    def _decided(self, walk: Walk, posts: list[Post], is_more: bool, number: int) -> tuple[PageDeciding, Conclusion]:
        skipped = sum(1 for post in posts if post.is_unusable)
        judged = tuple(self._judged(post) for post in posts if not post.is_unusable)
        visiting = Visiting(
            source=SOURCE,
            known=Progress(watermark=self.mark),
            progress=Progress(watermark=self.mark),
            polled_at=self.now,
            walk=walk,
            kind_minutes=60,
            limit=LIMIT,
            page_number=number,
            is_queue_empty=True,
            hint_seconds=None,
            before=Result(1, "A board", "board", Outcome.FAILED),
        )
        reading = Reading(follow=(ON,) if is_more else (), is_end=not is_more)
        deciding = PageDeciding(visiting, reading, skipped, self.now)
        found = Found(judged, {}, tuple(self.gaps.values()), is_body_seen_before=False)
        return deciding, deciding.conclude(found)

    def _judged(self, post: Post) -> Judged:
        item = RefinedItem(Item(post.id, created_at=post.at, is_pinned=post.is_pinned, text="text"), b"text")
        known = self._known(post) if post.id in self.stored else None
        return Judged(item, known, judge(known, item, self.now))

    def _known(self, post: Post) -> Known:
        return Known(
            1, post.id, b"text", 1, 0, self.stored[post.id], None, None, None, None, None, None, None, None, (), False,
            False, post.is_pinned, False, (), None, True, post.at,
        )  # fmt: skip

    def _write(self, conclusion: Conclusion) -> None:
        for one in conclusion.judged:
            self.stored.setdefault(one.item.item.external_id, self.now)
        for gap_id, _ in conclusion.closed:
            del self.gaps[gap_id]
        if conclusion.gap is not None:
            self.opened += 1
            assert conclusion.gap.from_at <= conclusion.gap.to_at <= self.now
            self.gaps[self.opened] = conclusion.gap.plus(id=self.opened)
        if conclusion.ending is not None:
            self.mark = conclusion.ending.progress.watermark

    # ── what must be true ─────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def nothing_is_lost_without_a_word(self) -> None:
        """What was there at the last whole visit, and still is, is stored, or in a gap, or above the watermark."""
        if self.mark is None:
            return
        present = {post.id for post in self.posts}
        for post in self.due_posts:
            if post.id not in present or post.id in self.stored or not post.is_promised:
                continue
            if post.at > self.mark.at:
                continue
            assert any(gap.from_at <= post.at <= gap.to_at for gap in self.gaps.values()), f"{post} is lost"


TestWalk = WalkMachine.TestCase
TestWalk.settings = effort(usual=150, steps=40)
