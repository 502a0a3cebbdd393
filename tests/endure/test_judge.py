"""The judge of a trial: it finds what is lost or wrong, and excuses what nobody can be blamed for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache

import pytest

from catchment.platforms import installed
from catchment.playground.log import Asked
from catchment.playground.sites import Entry
from catchment.playground.sites.x import tweet_id
from catchment.playground.world import Post, Timeline, World
from endure.following import Followed, Manner, user
from endure.judge import Findings, Trial
from endure.missing import Floors, Missed, Pages, Span, Window, good_walks
from endure.stored import PASSED_FOR, Held, Stored, ThreadRun, Visit, passed_for
from endure.texts import Texts
from endure.trial import IN_FLIGHT, START, beyond_budget, unvisited

HOUR = timedelta(hours=1)

# ── floors that wait ──────────────────────────────────────────────────────────────────────────────────────────────


@cache
def board() -> World:
    return World(7, START, 0, 2.0, others={"nga": 1})


def judged(stored: set[str], waiting: set[str]) -> Missed:
    """The board was walked four times in its second day; these posts are stored, these heads' threads wait."""
    world = board()
    walks = [Span(at, at) for at in (START + 24 * HOUR + number * 5 * HOUR for number in range(4))]
    return Floors(world, world.places[0], walks, dict.fromkeys(stored, START), (), 2, waiting).missed()


def floors() -> list[str]:
    """What is owed if nothing is stored, as the posts' ids."""
    return [words.split()[0] for words in judged(set(), set()).unexplained]


def head_of(floor: str) -> str:
    return next(words for words in judged(set(), set()).unexplained if words.startswith(f"{floor} ")).split()[-1]


def test_a_single_floor_that_is_not_stored_is_unexplained() -> None:
    lost = floors()[5]
    [words] = judged(set(floors()) - {lost}, set()).unexplained
    assert words.startswith(f"{lost} of ")


def test_a_floor_of_a_thread_that_waits_to_be_read_is_counted_apart() -> None:
    missing = floors()[5]
    missed = judged(set(floors()) - {missing}, {head_of(missing)})
    assert (missed.unexplained, missed.waiting) == ((), 1)


def test_a_thread_that_waits_explains_nothing_about_another() -> None:
    lost, *others = floors()
    elsewhere = next(head_of(floor) for floor in others if head_of(floor) != head_of(lost))
    missed = judged(set(others), {elsewhere})
    assert (len(missed.unexplained), missed.waiting) == (1, 0)


def run(thread: int, at: datetime, *, listed_at: datetime = START, is_complete: bool = True) -> ThreadRun:
    return ThreadRun(1, thread, listed_at, at, is_complete)


SINCE = START + HOUR


@pytest.mark.parametrize(
    ("runs", "passed"),
    [
        pytest.param([], 0, id="nobody is read"),
        pytest.param([run(2, SINCE + 2 * HOUR), run(3, SINCE + 9 * HOUR)], 0, id="those that waited before"),
        pytest.param([run(2, SINCE + n * HOUR, listed_at=SINCE + HOUR) for n in (2, 9)], 7, id="those listed later"),
        pytest.param([run(2, SINCE + n * HOUR) for n in (2, 4, 14)], 10, id="one that comes up again and again"),
        pytest.param(
            [run(2, SINCE + n * HOUR, is_complete=False) for n in (2, 4, 14)],
            0,
            id="one that is tried until it is read",
        ),
        pytest.param([run(1, SINCE + n * HOUR) for n in (2, 4, 14)], 0, id="itself, without success"),
        pytest.param([run(2, START, listed_at=START), run(2, SINCE + HOUR)], 0, id="one that came up before it"),
    ],
)
def test_a_thread_is_passed_over_while_those_that_began_to_wait_later_are_read(
    runs: list[ThreadRun], passed: float
) -> None:
    assert passed_for(runs, 1, 1, SINCE) == passed * HOUR
    assert (passed_for(runs, 1, 1, SINCE) > PASSED_FOR) == (passed > 6)
    assert passed_for(runs, 2, 1, SINCE) == timedelta()


# ── answers heard without certainty ───────────────────────────────────────────────────────────────────────────────

TIMELINE = "/2/users/70000/tweets"
SEARCH = "/2/tweets/search/recent"
FIRST, SECOND, THIRD = (START + (24 + hours) * HOUR for hours in (0, 1, 2))


@cache
def users() -> World:
    return World(7, START, 0, 2.0, others={"x": 1})


@cache
def shown() -> list[tuple[str, str, str]]:
    """The user's own posts that were never edited: id, id on the wire, text."""
    world = users()
    place = world.places[0]
    texts = Texts(world, place)
    posts = [post for post in world.posts(place) if texts.is_own(post.id) and len(post.versions) == 1]
    asked = told(0, FIRST)
    return [
        (post.id, wire_id, texts.of(asked, Entry(post.id, 1, wire_id))[0])
        for post in posts[:3]
        for wire_id in (str(tweet_id(post)),)
    ]


def told(number: int, at: datetime, *scores: int | None, path: str = TIMELINE) -> Asked:
    """An answer that shows the first posts with these scores; None: it does not show that one."""
    entries = tuple(
        Entry(shown()[place][0], 1, shown()[place][1], score) for place, score in enumerate(scores) if score is not None
    )
    return Asked(number, at, "x", path, "key", 0, 200, None, True, entries=entries)


def held(*scores: int | None, text: str | None = None) -> tuple[Held, ...]:
    """The first posts, stored with these scores; None: that one is not stored."""
    return tuple(
        Held(place + 1, (shown()[place][1],), (text or shown()[place][2],), False, False, score, FIRST)
        for place, score in enumerate(scores)
        if score is not None
    )


def visit(at: datetime, outcome: str) -> Visit:
    minute = timedelta(minutes=1)
    return Visit(1, False, at - minute, at + minute, outcome, None, 1)


def findings(asked: list[Asked], visits: list[Visit], items: tuple[Held, ...]) -> Findings:
    world = users()
    place = world.places[0]
    followed = [Followed(place.number, user(world, place, "x"), 1, "key")]
    stored = Stored(tuple(visits), items, (), ())
    return Trial(world, place, followed, asked, stored, timedelta(minutes=5)).findings()


def after_a_stop(*items: Held) -> Findings:
    """A visit showed two posts; the next one, which was stopped politely, showed all three with other scores."""
    asked = [told(1, FIRST, 3, 4), told(2, SECOND, 5, 6, 7)]
    return findings(asked, [visit(FIRST, "succeeded"), visit(SECOND, "skipped")], items)


def after_a_repair(*items: Held) -> Findings:
    """A visit showed two posts; the search that repaired a gap showed all three with other scores."""
    asked = [told(1, FIRST, 3, 4), told(2, SECOND, 5, 6, 7, path=SEARCH)]
    return findings(asked, [visit(FIRST, "succeeded")], items)


@pytest.mark.parametrize("after", [after_a_stop, after_a_repair])
@pytest.mark.parametrize(
    "scores",
    [
        pytest.param((5, 6, 7), id="all of it was stored"),
        pytest.param((3, 4, None), id="nothing of it was stored"),
        pytest.param((5, 4, None), id="a part of it was stored"),
    ],
)
def test_what_a_stopped_visit_or_a_repair_was_told_may_be_stored_or_not(
    after: Callable[..., Findings], scores: tuple[int | None, ...]
) -> None:
    found = after(*held(*scores))
    assert (found.lost, found.wrong, found.twice) == ((), (), ())


@pytest.mark.parametrize("after", [after_a_stop, after_a_repair])
def test_what_nobody_told_is_wrong_and_what_was_surely_told_is_lost(after: Callable[..., Findings]) -> None:
    never_told = after(*held(9, 4))
    assert [words.split(":")[0] for words in never_told.wrong] == [shown()[0][1]]
    other_words = after(*held(3, text="Nobody said this."))
    assert [words.split(":")[0] for words in other_words.wrong] == [shown()[0][0]]
    assert [words.split()[0] for words in after(*held(None, 4)).lost] == [shown()[0][0]]
    again = held(3, 4)[0].replace(id=8)
    assert after(*held(3, 4), again).twice == (f"{shown()[0][0]}: 2 items",)


@pytest.mark.parametrize(("path", "outcome"), [(TIMELINE, "skipped"), (SEARCH, None)], ids=["stopped", "repair"])
def test_a_later_visit_that_succeeded_has_the_last_word(path: str, outcome: str | None) -> None:
    asked = [told(1, FIRST, 3), told(2, SECOND, 5, path=path), told(3, THIRD, 8)]
    visits = [visit(FIRST, "succeeded"), visit(THIRD, "succeeded")]
    visits += [visit(SECOND, outcome)] if outcome else []
    visits.sort(key=lambda visit: visit.started_at)
    assert findings(asked, visits, held(8)).wrong == ()
    assert len(findings(asked, visits, held(5)).wrong) == 1


def test_an_answer_that_nobody_came_back_from_excuses_nothing() -> None:
    asked = [told(1, FIRST, 3), told(2, SECOND, 5)]
    found = findings(asked, [visit(FIRST, "succeeded")], held(5))
    assert (len(found.wrong), found.unseen >= 1) == (1, True)


# ── sources that were never visited, and budgets ──────────────────────────────────────────────────────────────────


def asked_at(seconds: float, place: int, **more: object) -> Asked:
    values = {"status": 200, "fault": None, "is_whole": True, "credential": "key"} | more
    return Asked(number=1, at=START + timedelta(seconds=seconds), host="h", path="/", place=place, **values)  # type: ignore[arg-type]


def missed_in_a_window(
    shown_from: float = 2.0,
    away: tuple[float, float] | None = None,
    *,
    is_by_arrival: bool = False,
    is_old_copy: bool = False,
) -> tuple[str, ...]:
    """A window of three posts is read after 1 and 9 hours, and in between, after 3, from an answer that had to be
    repaired. A post is dated 2 hours, and appears after `shown_from` of them; nobody was shown it. `away`: it is
    removed and restored after so many. `is_old_copy`: what was shown after 3 hours is read 3 hours later."""
    feed = World(7, START, 1, 1.0).places[0]
    place = feed.replace(pace=feed.pace.replace(window=3), is_by_arrival=is_by_arrival)
    hours = {"a": 0.0, "b": 0.5, "missed": 2.0, "c": 2.5, "d": 2.8, "e": 8.0, "f": 8.5}
    versions = World(7, START, 1, 1.0).posts(feed)[0].versions
    posts = [
        Post(name, place.number, number, START + at * HOUR, START + at * HOUR, versions, "", (), "en")
        for number, (name, at) in enumerate(hours.items())
    ]
    posts[2] = posts[2].replace(shown_from=START + shown_from * HOUR)
    if away is not None:
        posts[2] = posts[2].replace(removed_at=START + away[0] * HOUR, restored_at=START + away[1] * HOUR)
    entries = {name: Entry(name, 1, name) for name in hours}
    between = (6, "cd", "stale") if is_old_copy else (3, "cd", None)
    told = [
        asked_at(at * 3600, place.number, entries=tuple(entries[name] for name in names), fault=fault)
        for at, names, fault in ((1, "ab", None), between, (9, "def", None))
    ]
    return Window(Timeline(place, tuple(posts)), (), timedelta(), told, [told[0], told[2]]).missed().unexplained


def test_a_post_that_slips_in_below_a_repaired_answer_is_not_owed_and_one_that_was_there_before_is() -> None:
    assert missed_in_a_window(shown_from=4.0) == ()
    [words] = missed_in_a_window(shown_from=2.0)
    assert words.startswith("missed of ")


@pytest.mark.parametrize("is_by_arrival", [False, True])
def test_a_post_that_was_away_when_a_repaired_answer_was_read_is_not_owed_and_one_that_came_back_before_is(
    is_by_arrival: bool,
) -> None:
    assert missed_in_a_window(away=(2.9, 3.5), is_by_arrival=is_by_arrival) == ()
    [words] = missed_in_a_window(away=(2.1, 2.9), is_by_arrival=is_by_arrival)
    assert words.startswith("missed of ")


def test_a_post_that_was_away_when_an_old_copy_was_made_is_not_owed() -> None:
    assert missed_in_a_window(away=(2.9, 3.5), is_old_copy=True) == ()
    assert missed_in_a_window(away=(6.5, 7.0), is_old_copy=True) != ()


@pytest.mark.parametrize("ends_after_seconds", [-30, 30])
def test_a_post_that_is_removed_while_its_pages_are_read_is_not_owed(ends_after_seconds: int) -> None:
    """It is restored before the next walk; in one of the cases, the first walk ends before it is removed."""
    world = World(7, START, 0, 7.0, others={"json_api": 3})
    place, post = next(
        (place, post)
        for place in world.places
        for post in world.posts(place)
        if post.restored_at is not None and post.removed_at is not None and post.removed_at > START + 2 * HOUR
    )
    assert post.removed_at is not None
    assert post.restored_at is not None
    minute = timedelta(minutes=1)
    walks = [Span(post.shown_from - minute, post.shown_from - minute)]
    walks += [Span(post.removed_at - minute, post.removed_at + timedelta(seconds=ends_after_seconds))]
    walks += [Span(post.restored_at + number * HOUR, post.restored_at + number * HOUR) for number in (1, 2)]
    stored = {other.id: START for other in world.posts(place) if other is not post}
    manner = Manner("custom_api", "http://127.0.0.1/api", walk="pages")
    missed = Pages(world, place, manner, (), timedelta(), walks, stored).missed()
    assert [words.split()[0] for words in missed.unexplained] == ([] if ends_after_seconds > 0 else [post.id])


def test_a_source_whose_every_visit_failed_is_unvisited_unless_its_place_never_answered_well() -> None:
    asked = [
        asked_at(0, 1),
        asked_at(1, 2, status=410),
        asked_at(2, 3, fault="torn_body", is_whole=False),
        asked_at(3, 4, status=304),
    ]
    # Source, successes, failures; a source has the number of its place.
    outcomes = [(1, 1, 0), (2, 0, 3), (3, 0, 1), (4, 0, 5), (5, 0, 0)]
    places = {number: number for number in range(1, 6)}
    assert unvisited(outcomes, places, asked) == [4, 5]
    assert unvisited([(1, 0, 9), (2, 0, 0)], places, asked) == [1, 2]


def test_a_budget_is_exceeded_by_the_first_request_beyond_it_and_those_in_flight() -> None:
    world = board()
    budget = next(platform.BUDGET for platform in installed() if platform.NAME == "nga")
    assert budget is not None
    in_flight = budget.concurrency or IN_FLIGHT
    allowed = [asked_at(0, world.places[0].number) for _ in range(budget.limit + in_flight)]
    assert beyond_budget(allowed, world) == 0
    later = asked_at(budget.window_seconds, world.places[0].number)
    assert beyond_budget([*allowed, later], world) == 0
    assert beyond_budget([*allowed, allowed[0], later], world) == 1


@pytest.mark.parametrize(("ids", "is_wrong"), [(("t40001", "t40002"), False), (("t40003", "t40002"), True)])
def test_a_thread_that_is_listed_under_a_second_number_may_be_gone_under_its_own(
    ids: tuple[str, ...], is_wrong: bool
) -> None:
    world = board()
    gone = Asked(1, FIRST, "x", "/read.php?tid=40001&page=1", "key", 0, 200, None, True)
    stored = Stored((), (Held(1, ids, ("text",), False, True, None, FIRST),), (), ())
    wrong = Trial(world, world.places[0], [], [gone], stored, timedelta())._deletions()
    assert bool(wrong) == is_wrong


def test_a_walk_that_was_shown_an_old_copy_or_an_empty_page_of_a_community_proves_nothing() -> None:
    def asked(hour: int, path: str, fault: str | None = None, *, is_shown: bool = True) -> Asked:
        entries = (Entry("p1", 1, "t3_1"),) if is_shown else ()
        return Asked(hour, START + hour * HOUR, "x", path, "key", 0, 200, fault, True, entries=entries)

    answers = [
        asked(1, "/r/town/new?limit=100"),
        asked(2, "/r/town/new?limit=100", "stale"),
        asked(3, "/r/town/new?limit=100", is_shown=False),
        # Nothing new is no empty community.
        asked(4, "/api/info?id=t3_1", is_shown=False),
    ]
    visits = [visit(one.at, "succeeded") for one in answers]
    assert [walk.began for walk in good_walks(visits, answers)] == [answers[0].at, answers[3].at]
