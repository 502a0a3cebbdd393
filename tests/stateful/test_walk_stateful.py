"""Walks down a listing of many pages, or looks at one that shows a window, against somebody who knows every post that
ever was.

Pure: the decisions of a visit, page by page, as the store would ask for them; no database, no reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from catchment.clock import micros
from catchment.model import (
    Gap,
    Item,
    Kind,
    Listing,
    Order,
    PageFacts,
    Progress,
    Reading,
    Record,
    RefinedItem,
    Request,
    Source,
    StoredItem,
    Watermark,
)
from catchment.policy.outages import OutageLevel, Site
from catchment.policy.page import VisitPage, decide_page
from catchment.policy.tiers import Tiers
from catchment.policy.visit import MOST_PAGES, AnswerHead, VisitRules, VisitState, after_answer, begin, begin_walk
from tests.stateful.effort import effort

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGE, REACH, LIMIT = 3, 12, 6
SMALLEST_WINDOW = 3
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


class Answered(Record, frozen=True):
    """What is wrong with an answer."""

    lag: timedelta = timedelta()
    """How far the clock is behind that dates it."""
    is_torn: bool = False
    """Its lower half is cut off."""


FAULTS = (
    *(Answered(),) * 4,
    *(Answered(timedelta(minutes=minutes)) for minutes in (5, 60, 400)),
    Answered(is_torn=True),
)


class WalkMachine(RuleBasedStateMachine):
    is_window = False
    page_size = PAGE

    @initialize(
        overlap=st.sampled_from([0, PAGE]),
        is_later_first=st.booleans(),
        count=st.integers(0, 10),
        has_clock=st.booleans(),
    )
    def begin(self, overlap: int, is_later_first: bool, count: int, has_clock: bool) -> None:
        """`has_clock`: its clock is right, and it may show what is dated ahead: on top, wherever that belongs."""
        self.listing = Listing("new", Order.NEWEST_FIRST, reach=REACH, page_size=PAGE, overlap=overlap)
        if self.is_window:
            self.listing = Listing("new", Order.NEWEST_FIRST, is_window=True)
        self.is_later_first, self.has_clock = is_later_first, has_clock
        self.now = START
        self.count = 0
        self.posts: list[Post] = []
        self.stored: dict[str, tuple[datetime, datetime]] = {}
        """When each was first seen, and how it was dated then."""
        self.mark: Watermark | None = None
        self.mark_lag = timedelta()
        """How far the clock that dated the watermark was behind, at most."""
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

    @precondition(lambda self: self.has_clock)
    @rule(minutes=st.integers(1, 300))
    def post_ahead_of_time(self, minutes: int) -> None:
        self._post(self.now + timedelta(minutes=minutes))

    @rule(minutes=st.integers(1, 300))
    def post_late(self, minutes: int) -> None:
        self._post(self.now - timedelta(minutes=minutes))

    def _post(self, at: datetime) -> None:
        self.count += 1
        # What has the time of the watermark and comes later may stand below all that a window shows.
        mark_at = self.mark.at + self.mark_lag if self.mark else None
        is_shown = mark_at is not None and (at > mark_at or (at == mark_at and not self.is_window))
        self.posts.append(Post(self.count, at, is_promised=is_shown and at <= self.now))

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
        page = left[: self.page_size]
        following = self._order(page[-1]) if len(left) > self.page_size else None
        return [post for post in [*pinned, *page] if not post.is_hidden], following

    # ── visits ────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        breaks_on=st.none() | st.integers(1, 4),
        meanwhile=st.integers(0, 2),
        loops=st.sampled_from([False, False, False, True]),
        faults=st.lists(st.sampled_from(FAULTS), min_size=4, max_size=4),
    )
    def visit(self, breaks_on: int | None, meanwhile: int, loops: bool, faults: list[Answered]) -> None:
        """Walk down, page by page. Others post between two pages; the walk may break off; the cursor may loop; a page
        may be torn, or dated by a clock that is behind."""
        before, present = self.mark, list(self.posts)
        state, place, lag = self._begun(), None, timedelta()
        for number in range(1, MOST_PAGES + 1):
            if number == breaks_on:
                break
            posts, following = self._page(None if loops else place)
            fault = faults[number % len(faults)]
            if self.has_clock:
                fault = fault.replace(lag=timedelta())
            page = self._decided(state, posts, following is not None, fault)
            self._write(page)
            lag = max(lag, fault.lag)
            if self.mark != before:
                self.mark_lag = lag
            if page.end is not None:
                if not fault.is_torn:
                    self.due_posts = present
                self._forgive_what_nobody_could_see()
                if self.is_window and len(posts) < SMALLEST_WINDOW:
                    self._forgive_all()
                break
            assert page.next_pages
            state, place = page.state, following
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

    def _forgive_all(self) -> None:
        """So few entries say nothing about what they leave out."""
        for post in self.posts:
            post.is_promised = False

    def _begun(self) -> VisitState:
        rules = VisitRules({"board": 60}, Tiers((), 0, 0))
        state = begin(SOURCE, Progress(watermark=self.mark), rules, Site(OutageLevel.PLATFORM, "board"), self.now)
        kind = Kind("board", "", 60, "", (self.listing,))
        return begin_walk(state.replace(kind=kind), LIMIT, is_beside=False, is_last=True)

    def _decided(self, state: VisitState, posts: list[Post], is_more: bool, fault: Answered) -> VisitPage:
        if fault.is_torn:
            posts = posts[: len(posts) // 2]
        skipped = sum(1 for post in posts if post.is_unusable)
        shown = [post for post in posts if not post.is_unusable]
        items = [
            RefinedItem(Item(post.id, created_at=post.at - fault.lag, is_pinned=post.is_pinned, text="text"), b"text")
            for post in shown
        ]
        stored = {("", post.id): self._known(post) for post in shown if post.id in self.stored}
        reading = Reading(follow=(ON,) if is_more else (), is_end=not is_more, is_torn=fault.is_torn)
        state = after_answer(state, AnswerHead(self.now, 200, b"", 1), reading, self.listing, None)
        facts = PageFacts(stored, open_gaps=tuple(self.gaps.values()))
        return decide_page(state, reading, items, skipped, self.now, facts, clock_lag=fault.lag)

    def _known(self, post: Post) -> StoredItem:
        seen_at, dated_at = self.stored[post.id]
        return StoredItem(
            1, post.id, b"text", 1, micros(min(dated_at, seen_at)), seen_at,
            title=None, url=None, author=None, author_display_name=None, edited_at=None, score=None, reply_count=None,
            view_count=None, rounded=(), is_deleted=False, is_folded=False, tags=(), volatile_until=None,
            is_shown_by_source=True, created_at=dated_at, first_seen_at=seen_at, is_pinned=post.is_pinned,
        )  # fmt: skip

    def _write(self, page: VisitPage) -> None:
        for change in page.changes:
            item = change.item.item
            assert item.created_at is not None
            self.stored.setdefault(item.external_id, (self.now, item.created_at))
        for gap_id, _ in page.closed:
            del self.gaps[gap_id]
        if page.gap is not None:
            self.opened += 1
            assert page.gap.from_at <= page.gap.to_at <= self.now
            self.gaps[self.opened] = page.gap.replace(id=self.opened)
        if page.end is not None:
            self.mark = page.end.progress.watermark

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


class WindowMachine(WalkMachine):
    """A feed: all that it shows comes at once."""

    is_window = True
    page_size = REACH


TestWalk = WalkMachine.TestCase
TestWalk.settings = effort(usual=150, steps=40)
TestWindow = WindowMachine.TestCase
TestWindow.settings = effort(usual=100, steps=40)
