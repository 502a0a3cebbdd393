"""The world: the same every time, whole in its truth, and full of what happens out there."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import log
from pathlib import Path
from random import Random
from statistics import mean, median, pstdev
from typing import Any

import pytest

from catchment.playground.world import Place, Post, World

pytestmark = pytest.mark.long

START = datetime(2026, 1, 5, tzinfo=UTC)
EASTERN = -4
"""Hours from UTC to the summer time of New York. The traces are American and name no zone: this one is assumed for all,
not fitted to each."""
TRACES = Path(__file__).parents[3] / "shared" / "traces"


@pytest.fixture(scope="session")
def world() -> World:
    return World(7, START, places=150, days=7)


@pytest.fixture(scope="session")
def posts(world: World) -> list[Post]:
    return [post for place in world.places for post in world.posts(place)]


def some_moments(count: int) -> list[datetime]:
    chance = Random(5)
    return [START + timedelta(days=chance.uniform(0, 7)) for _ in range(count)]


# ── the same every time ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_seed_gives_the_same_world_and_another_seed_another(world: World) -> None:
    again, other = World(7, START, places=20, days=7), World(8, START, places=20, days=7)
    for place in world.places[:20]:
        assert again.posts(again.places[place.number]) == world.posts(place)
    assert again.places != other.places


def test_a_place_does_not_depend_on_how_many_there_are_or_who_was_asked_about_first(world: World) -> None:
    few = World(7, START, places=10, days=7)
    for place in reversed(few.places):
        assert place == world.places[place.number]
        assert few.posts(place) == world.posts(place)


def test_the_past_does_not_depend_on_how_long_the_world_goes_on(world: World) -> None:
    short = World(7, START, places=30, days=3)
    for place in short.places:
        until = [post for post in world.posts(place) if post.began_at < short.end]
        assert sorted(short.posts(place), key=_number) == sorted(until, key=_number)


def _number(post: Post) -> int:
    return post.number


# ── the truth ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_listing_shows_the_newest_of_what_came_out_and_is_not_removed(world: World) -> None:
    for at in some_moments(10):
        for place in world.places:
            out = [post for post in world.posts(place) if post.shown_from <= at and not post.is_removed(at)]
            newest = sorted(out, key=lambda post: order(place, post), reverse=True)[: place.window]
            assert [post for post, _ in world.shown(place, at)] == newest


def order(place: Place, post: Post) -> tuple[datetime, int]:
    return (post.shown_from if place.is_by_arrival else post.created_at), post.number


def test_a_listing_says_what_each_post_says_at_that_moment(world: World) -> None:
    for at in some_moments(10):
        for place in world.places:
            for post, version in world.shown(place, at):
                later = post.versions[version.number :]
                assert version.from_at <= at
                assert all(at < version.from_at for version in later)


def test_what_is_shown_exists_and_what_is_removed_does_not(world: World) -> None:
    for at in some_moments(5):
        for place in world.places:
            existing = world.existing(place, at)
            assert {post.id for post, _ in world.shown(place, at)} <= {post.id for post in existing}
            assert not any(post.is_removed(at) for post in existing)


def test_between_two_changes_a_listing_stays_the_same(world: World) -> None:
    for place in world.places[:40]:
        for at in some_moments(5):
            assert world.shown(place, world.changed_at(place, at)) == world.shown(place, at)


def test_glimpses_are_all_that_was_shown_at_any_second(world: World) -> None:
    place = max(
        (place for place in world.places if place.pace.posts_a_day < 30), key=lambda place: place.pace.posts_a_day
    )
    after, seconds = START + timedelta(days=2), 6 * 3600
    seen: dict[str, set[int]] = {}
    for second in range(seconds + 1):
        for post, version in world.shown(place, after + timedelta(seconds=second)):
            seen.setdefault(post.id, set()).add(version.number)
    found = world.glimpses(place, after, after + timedelta(seconds=seconds))
    assert found == {id: sorted(numbers) for id, numbers in seen.items()}


def test_all_happens_at_whole_seconds_and_versions_follow_each_other(posts: list[Post]) -> None:
    for post in posts:
        assert {at.microsecond for at in (post.created_at, *post.changes())} == {0}
        assert all(earlier.from_at < later.from_at for earlier, later in pairwise(post.versions))
        assert [version.number for version in post.versions] == list(range(1, len(post.versions) + 1))


def test_windows_of_places_that_post_every_other_day_are_full_from_the_beginning(world: World) -> None:
    busy = [place for place in world.places if place.pace.posts_a_day > 0.5]
    assert all(len(world.shown(place, START)) == place.window for place in busy)


# ── what happens out there happens here ───────────────────────────────────────────────────────────────────────────


def is_edited_within_minutes(post: Post) -> bool:
    return len(post.versions) > 1 and post.versions[1].from_at - post.shown_from <= timedelta(minutes=15)


def is_edited_after_days(post: Post) -> bool:
    return any(version.from_at - post.shown_from >= timedelta(days=1) for version in post.versions)


def is_edited_back(post: Post) -> bool:
    return any(
        earlier.text == later.text and earlier.title == later.title
        for earlier, later in zip(post.versions, post.versions[2:], strict=False)
    )


def is_removed(post: Post) -> bool:
    return post.removed_at is not None and post.restored_at is None


def is_restored(post: Post) -> bool:
    return post.restored_at is not None


def is_late(post: Post) -> bool:
    return post.shown_from > post.created_at


def is_from_the_future(post: Post) -> bool:
    return post.created_at > post.shown_from


def is_repost(post: Post) -> bool:
    return post.repeats is not None


def is_hostile(post: Post) -> bool:
    return "<script" in post.versions[0].html or "onerror" in post.versions[0].html


@pytest.mark.parametrize(
    "is_so",
    [
        is_edited_within_minutes,
        is_edited_after_days,
        is_edited_back,
        is_removed,
        is_restored,
        is_late,
        is_from_the_future,
        is_repost,
        is_hostile,
    ],
)
def test_it_happens_now_and_then(posts: list[Post], is_so: Callable[[Post], bool]) -> None:
    assert 0.0005 < sum(map(is_so, posts)) / len(posts) < 0.15


def test_posts_are_in_english_and_in_chinese(posts: list[Post]) -> None:
    languages = Counter(post.language for post in posts)
    assert min(languages["en"], languages["zh"]) > len(posts) / 5
    assert all(("。" in post.versions[0].text) == (post.language == "zh") for post in posts)


def test_some_posts_of_a_place_bear_the_very_same_time(world: World) -> None:
    ties = [
        place
        for place in world.places
        if max(Counter(post.created_at for post in world.posts(place) if post.shown_from >= START).values(), default=0)
        > 1
    ]
    assert len(ties) > len(world.places) / 20


def test_late_arrivals_come_below_what_was_already_shown(world: World) -> None:
    assert any(
        is_late(post) and not place.is_by_arrival and rank > 0
        for place in world.places
        for post in world.posts(place)
        if START < post.shown_from < world.end
        for rank, (shown, _) in enumerate(world.shown(place, post.shown_from))
        if shown is post
    )


def test_some_bursts_are_larger_than_the_window(world: World) -> None:
    assert sum(biggest_burst(world, place) > place.window for place in world.places) > 5


def biggest_burst(world: World, place: Place) -> int:
    """The most posts within two hours."""
    times = [post.shown_from for post in world.posts(place) if post.shown_from >= START]
    return max((bisect_left(times, at + timedelta(hours=2)) - number for number, at in enumerate(times)), default=0)


def test_communities_differ_by_thousands_and_a_crowd_bursts_beyond_what_can_be_seen() -> None:
    world = World(7, START, 0, 14, others={"reddit": 60})
    crowd, *others = world.places
    times = [post.shown_from for post in world.posts(crowd) if post.shown_from >= START]
    assert 2_000 < len(times) / 14 < 5_000
    within = timedelta(minutes=90)
    assert max(bisect_left(times, at + within) - place for place, at in enumerate(times)) > crowd.window == 1_000
    rates = sorted(place.pace.posts_a_day for place in others)
    assert rates[0] < 2 < rates[30] < 40 < 500 < rates[-1]


def test_some_busy_places_fall_silent_for_days_and_wake_up() -> None:
    world = World(7, START, places=60, days=28)

    def longest_silence(place: Place) -> timedelta:
        times = sorted(post.shown_from for post in world.posts(place) if post.shown_from >= START)
        return max((later - earlier for earlier, later in pairwise(times)), default=timedelta())

    busy = [place for place in world.places if place.pace.posts_a_day > 4]
    assert any(longest_silence(place) > timedelta(days=2) for place in busy)


def test_places_differ_in_their_ways() -> None:
    places = World(7, START, places=1000, days=7).places
    assert {place.form for place in places} == {"rss", "rdf", "atom", "jsonfeed"}
    assert {place.window for place in places} == {10, 15, 20, 25, 30, 50}
    ways: list[Callable[[Place], Any]] = [
        lambda place: not place.is_dated,
        lambda place: not place.has_ids,
        lambda place: place.is_plain,
        lambda place: place.is_by_arrival,
        lambda place: not place.validators,
        lambda place: place.new_ids_at,
        lambda place: place.moves_at,
        lambda place: place.gone_at,
    ]
    assert all(3 <= sum(bool(way(place)) for place in places) <= 300 for way in ways)


def test_counters_grow_and_at_times_shrink(world: World, posts: list[Post]) -> None:
    post = max(posts, key=lambda post: world.counters(post, world.end + timedelta(days=9)).score)
    scores = [world.counters(post, post.shown_from + timedelta(hours=hour)).score for hour in range(48)]
    replies = [world.counters(post, post.shown_from + timedelta(hours=hour)).reply_count for hour in range(48)]
    assert scores[0] < scores[-1]
    assert any(later < earlier for earlier, later in pairwise(scores))
    assert replies == sorted(replies)


# ── as traces of real sources have it ─────────────────────────────────────────────────────────────────────────────


class Trace:
    """When sources posted: seconds since 1970 for each of them, during so many days."""

    def __init__(self, times: list[list[float]], days: float) -> None:
        self.times, self.days = [sorted(moments) for moments in times if moments], days

    @property
    def rates(self) -> list[float]:
        return sorted((len(moments) / self.days for moments in self.times), reverse=True)

    def share_of_top_tenth(self) -> float:
        return sum(self.rates[: len(self.rates) // 10]) / sum(self.rates)

    def gaps(self) -> list[float]:
        return sorted(later - earlier for times in self.times for earlier, later in pairwise(times))

    def by_hour(self, zone_hours: float = 0) -> list[float]:
        counts = Counter(int((at / 3600 + zone_hours) % 24) for times in self.times for at in times)
        return [24 * counts[hour] / counts.total() for hour in range(24)]

    def by_weekday(self, zone_hours: float = 0) -> list[float]:
        counts = Counter(int((at / 86400 + zone_hours / 24 + 3) % 7) for times in self.times for at in times)
        return [7 * counts[day] / counts.total() for day in range(7)]

    def unevenness(self) -> float:
        """Of the gaps of a typical busy source: deviation by mean; 1 would be pure chance."""
        gaps = [[later - earlier for earlier, later in pairwise(times)] for times in self.times if len(times) > 30]
        return median(pstdev(gap) / mean(gap) for gap in gaps)


def trace(name: str) -> Trace:
    with (TRACES / name).open() as lines:
        head, *sources = map(json.loads, lines)
    return Trace([list(_summed(head["start"], source["dt"])) for source in sources], head["days"])


def _summed(at: float, steps: list[float]) -> Iterator[float]:
    for step in steps:
        at += step
        yield at


@pytest.fixture(scope="session")
def eight_weeks() -> tuple[Trace, Trace, Trace]:
    """The posts of 250 places during 56 days, in local time: all but wires; those of offices; those of crowds."""
    world = World(11, START, places=250, days=56)
    ordinary = [place for place in world.places if place.pace.posts_a_day < 60]

    def of(places: list[Place]) -> Trace:
        return Trace([list(_local_times(world, place)) for place in places], 56)

    offices = [place for place in ordinary if place.pace.is_office]
    return of(ordinary), of(offices), of([place for place in ordinary if not place.pace.is_office])


def _local_times(world: World, place: Place) -> Iterator[float]:
    for post in world.posts(place):
        at = min(post.created_at, post.shown_from).timestamp() + place.pace.zone_hours * 3600
        if at >= START.timestamp():
            yield at


needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="no traces beside the repository (../shared/traces)")


def likeness(first: list[float], second: list[float]) -> float:
    """Their correlation."""
    a, b = ([value - mean(values) for value in values] for values in (first, second))
    return sum(x * y for x, y in zip(a, b, strict=True)) / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5


@needs_traces
def test_activity_is_as_heavy_tailed_as_that_of_real_sources(eight_weeks: tuple[Trace, Trace, Trace]) -> None:
    ours, real = eight_weeks[0], [trace("x_users_2021.jsonl"), trace("x_cashtags_2015.jsonl")]
    spreads = [spread(rates) for rates in real]
    assert min(spreads) - 0.15 < spread(ours) < max(spreads) + 0.15
    shares = [rates.share_of_top_tenth() for rates in real]
    assert min(shares) - 0.05 < ours.share_of_top_tenth() < max(shares) + 0.1


def spread(trace: Trace) -> float:
    """Of the logarithms of the rates: rates are log-normal, more or less."""
    return pstdev(map(log, trace.rates))


@needs_traces
def test_offices_keep_the_hours_and_days_of_real_offices(eight_weeks: tuple[Trace, Trace, Trace]) -> None:
    ours, real = eight_weeks[1], trace("x_users_2021.jsonl")
    assert likeness(ours.by_hour(), real.by_hour(EASTERN)) > 0.97
    assert likeness(ours.by_weekday(), real.by_weekday(EASTERN)) > 0.95
    assert max(ours.by_hour()) / min(ours.by_hour()) > 50


@needs_traces
def test_crowds_keep_the_hours_and_days_of_real_crowds(eight_weeks: tuple[Trace, Trace, Trace]) -> None:
    ours, real = eight_weeks[2], trace("reddit_two_subs_2019.jsonl")
    assert likeness(ours.by_hour(), real.by_hour(EASTERN)) > 0.93
    assert likeness(ours.by_weekday(), real.by_weekday(EASTERN)) > 0.9
    assert 2.5 < max(ours.by_hour()) / min(ours.by_hour()) < 5


@needs_traces
def test_gaps_between_posts_are_as_uneven_as_real_ones(eight_weeks: tuple[Trace, Trace, Trace]) -> None:
    ours, real = eight_weeks[0], trace("x_users_2021.jsonl")
    assert abs(share_below(ours, 60) - share_below(real, 60)) < 0.06
    assert abs(share_below(ours, 1) - share_below(real, 1)) < 0.02
    assert abs(share_below(ours, 86_400) - share_below(real, 86_400)) < 0.06
    assert abs(ours.unevenness() - real.unevenness()) < 0.3


def share_below(trace: Trace, seconds: float) -> float:
    gaps = trace.gaps()
    return bisect_left(gaps, seconds) / len(gaps)
