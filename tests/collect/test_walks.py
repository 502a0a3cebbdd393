"""Listings of many pages: the walk goes down to the watermark, and the watermark moves only when it got there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.errors import ServerTrouble
from catchment.fetch.settings import Attempt
from catchment.model import (
    Answer,
    Field,
    Item,
    Kind,
    Listing,
    Order,
    Outcome,
    PlanPart,
    Platform,
    Progress,
    Reading,
    Request,
    Source,
    Target,
    VisitResult,
    WalkPlan,
)
from tests.playing import Answering, played
from tests.town import TownApp

PAGE = 10
REACH = 100
URL = "https://board.example/new"


class Board(Answering):
    """A listing of posts, newest first, ten a page, a hundred at most. Stands where the fetch client would."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.posts: list[int] = []
        self.pinned: list[int] = []
        self.pages_asked: list[int] = []
        self.breaks_on: int | None = None
        self.loops = False
        self.torn_page: int | None = None
        self.behind: dict[int, timedelta] = {}
        """By page, how far the clock is behind that dates it."""
        self.is_hollow = False
        self.empty_page: int | None = None

    def post(self, count: int) -> None:
        self.posts += range(len(self.posts), len(self.posts) + count)

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        page = int(request.params["page"])
        self.pages_asked.append(page)
        attempts.append(Attempt(platform.NAME, self.start, "200", 0.0))
        if page == self.breaks_on:
            self.breaks_on = None
            raise ServerTrouble("500", status=500)
        if self.loops:
            page = 0
        shown = [*self.pinned, *self.posts[::-1][:REACH][page * PAGE : (page + 1) * PAGE]]
        at = self.start + timedelta(days=365)
        date = format_datetime(at - self.behind.get(page, timedelta()), usegmt=True)
        return Answer(200, {"date": date}, msgspec.json.encode(shown), request.url, at)


def first(source: Source, progress: Progress, ask: WalkPlan) -> list[Request]:
    return [Request(URL, params={"page": "0"}, listing=ask.listing)]


def platform_of(board: Board, overlap: int) -> Any:
    def read(answer: Answer, request: Request) -> Reading:
        numbers: list[int] = msgspec.json.decode(answer.body)
        lag = board.behind.get(int(request.params["page"]), timedelta())
        items = tuple(
            Item(
                f"t{number}",
                text=f"post {number}",
                created_at=board.start + timedelta(minutes=number) - lag,
                is_pinned=number in board.pinned and place < len(board.pinned),
            )
            for place, number in enumerate(numbers)
        )
        page = int(request.params["page"]) + 1
        is_more = len(numbers) - len(board.pinned) == PAGE and page * PAGE < REACH
        follow = (request.replace(params={"page": str(page)}),) if is_more else ()
        if board.is_hollow:
            return Reading(follow=(request,))
        if page - 1 == board.empty_page:
            return Reading(is_end_doubtful=True)
        is_torn = page - 1 == board.torn_page
        return Reading(items[:3] if is_torn else items, follow=follow, is_end=not follow, is_torn=is_torn)

    return played(
        NAME="board",
        KINDS=(
            Kind(
                "board",
                "a board",
                60,
                "new",
                (
                    Listing("new", Order.NEWEST_FIRST, reach=REACH, page_size=PAGE, overlap=overlap),
                    Listing("top", Order.RANKED, reach=REACH, page_size=PAGE),
                ),
                fields=(
                    Field("sort", "which", decides=PlanPart.LISTING),
                    Field("limit", "how much", decides=PlanPart.LIMIT),
                ),
                base_limit=20,
            ),
        ),
        first=first,
        read=read,
    )


class Walking:
    def __init__(self, here: TownApp, overlap: int = 0) -> None:
        self.here = here
        self.board = Board(datetime(2025, 6, 1, tzinfo=UTC))
        here.play(self.board, platform_of(self.board, overlap))
        self.source, _ = here.app.store.sources.follow(Target("board", "board"), "board", here.clock.now())

    def collect(self) -> VisitResult:
        self.board.pages_asked.clear()
        (result,) = self.here.collect(self.source)
        return result

    def stored(self) -> set[str]:
        return {item["external_id"] for item in self.here.items()}

    def mark(self) -> tuple[str, ...] | None:
        watermark = self.here.progress(self.source).watermark
        return watermark.ids if watermark else None


@pytest.fixture
def here(tmp_path: Path) -> Iterator[TownApp]:
    app = TownApp(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}")
    yield app
    app.close()


def test_a_first_visit_ends_at_the_limit_and_leaves_no_gap(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(95)
    result = walking.collect()
    assert (walking.board.pages_asked, result.counts.new, here.gaps()) == ([0, 1], 20, [])
    assert walking.mark() == ("t94",)


def test_a_later_visit_goes_past_the_limit_down_to_the_watermark(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(50)
    walking.collect()
    walking.board.post(45)
    walking.collect()
    assert walking.board.pages_asked == [0, 1, 2, 3, 4]
    assert {f"t{number}" for number in range(50, 95)} <= walking.stored()
    assert (walking.mark(), here.gaps()) == (("t94",), [])


def test_nothing_new_costs_one_page(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(50)
    walking.collect()
    walking.board.post(3)
    walking.collect()
    assert walking.board.pages_asked == [0]


def test_the_overlap_is_read_past_the_watermark(here: TownApp) -> None:
    walking = Walking(here, overlap=PAGE)
    walking.board.post(50)
    walking.collect()
    walking.board.post(3)
    walking.collect()
    assert walking.board.pages_asked == [0, 1]


def test_a_visit_that_breaks_off_is_walked_again_down_to_the_old_watermark(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(20)
    walking.collect()
    walking.board.post(45)
    walking.board.breaks_on = 2
    result = walking.collect()
    assert (result.outcome, result.counts.new, walking.mark()) == (Outcome.FAILED, 20, ("t19",))
    # The pages that were stored must not be taken for "all that is below is stored".
    walking.collect()
    assert walking.board.pages_asked == [0, 1, 2, 3, 4]
    assert walking.stored() == {f"t{number}" for number in range(65)}
    assert (walking.mark(), here.gaps()) == (("t64",), [])


def test_more_than_the_platform_shows_is_a_known_gap_with_its_edges(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(20)
    walking.collect()
    walking.board.post(300)
    walking.collect()
    (gap,) = here.gaps()
    at = [walking.board.start + timedelta(minutes=number) for number in (19, 220)]
    assert (gap.certainty, gap.cause, [gap.from_at, gap.to_at]) == ("known", "reach", at)
    assert walking.mark() == ("t319",)


def test_a_listing_that_ends_before_its_reach_has_shown_all_there_is(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(20)
    walking.collect()
    walking.board.posts = [100, 101, 102]  # everything older was deleted by its authors
    walking.collect()
    assert (here.gaps(), walking.mark()) == ([], ("t102",))


def test_a_pinned_post_from_last_year_does_not_end_the_walk(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(20)
    walking.collect()
    walking.board.pinned = [0]
    walking.board.post(25)
    walking.collect()
    assert walking.board.pages_asked == [0, 1, 2]
    assert {f"t{number}" for number in range(20, 45)} <= walking.stored()


def test_a_cursor_that_loops_ends_the_walk_with_a_known_gap(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(20)
    walking.collect()
    walking.board.post(45)
    walking.board.loops = True
    walking.collect()
    assert walking.board.pages_asked == [0, 1]
    assert [gap.cause for gap in here.gaps()] == ["repeats"]


def test_a_page_that_was_announced_and_shows_nothing_leaves_a_possible_gap(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(20)
    walking.collect()
    walking.board.post(45)
    walking.board.empty_page = 2
    walking.collect()
    (gap,) = here.gaps()
    at = [walking.board.start + timedelta(minutes=number) for number in (19, 45)]
    assert (gap.certainty, gap.cause, [gap.from_at, gap.to_at]) == ("possible", "incomplete", at)
    # Above what is stored, it is just the end of the list.
    walking.board.post(5)
    walking.board.empty_page = 1
    walking.collect()
    assert len(here.gaps()) == 1


def test_a_torn_page_in_the_middle_of_a_walk_proves_nothing_and_is_walked_again(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(20)
    walking.collect()
    walking.board.post(35)
    walking.board.torn_page = 1
    walking.collect()
    assert walking.mark() == ("t19",)
    walking.board.torn_page = None
    walking.collect()
    assert walking.stored() == {f"t{number}" for number in range(55)}
    assert (walking.mark(), here.gaps()) == (("t54",), [])


def test_a_site_whose_clock_is_always_behind_costs_no_more_pages_and_leaves_no_gap(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.behind = {page: timedelta(hours=8) for page in range(REACH // PAGE)}
    walking.board.post(500)
    walking.collect()
    for _ in range(3):
        walking.board.post(5)
        walking.collect()
        assert walking.board.pages_asked == [0]
    assert here.gaps() == []


@pytest.mark.parametrize("overlap", [0, PAGE])
def test_a_page_that_a_clock_behind_dates_before_the_watermark_does_not_end_the_walk(
    here: TownApp, overlap: int
) -> None:
    walking = Walking(here, overlap)
    walking.board.post(30)
    walking.collect()
    walking.board.post(45)
    walking.board.behind = {1: timedelta(minutes=55), 2: timedelta(minutes=55)}
    walking.collect()
    assert walking.stored() >= {f"t{number}" for number in range(30, 75)}
    assert (walking.mark(), here.gaps()) == (("t74",), [])


def test_a_listing_that_points_on_for_ever_is_given_up(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(500)
    walking.board.is_hollow = True
    result = walking.collect()
    assert (result.outcome, result.error_code) == (Outcome.FAILED, "UNREADABLE")
    assert len(walking.board.pages_asked) < 300


def test_a_ranked_listing_neither_moves_the_watermark_nor_opens_gaps(here: TownApp) -> None:
    walking = Walking(here)
    here.app.store.sources.change(walking.source.id, settings={"sort": "top"})
    walking.board.post(95)
    walking.collect()
    walking.board.post(300)
    walking.collect()
    assert (walking.board.pages_asked, walking.mark(), here.gaps()) == ([0, 1], None, [])


def test_a_source_that_was_read_by_the_newest_and_is_ranked_now_is_read_up_to_its_limit(here: TownApp) -> None:
    walking = Walking(here)
    walking.board.post(95)
    walking.collect()
    here.app.store.sources.change(walking.source.id, settings={"sort": "top", "limit": 30})
    walking.collect()
    assert (walking.board.pages_asked, walking.mark()) == ([0, 1, 2], ("t94",))
