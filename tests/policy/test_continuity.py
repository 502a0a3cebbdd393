"""Whether anything is missing between two visits: walks, watermarks, gaps, ids that change, answers from yesterday."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.clock import micros
from catchment.model import (
    NONE_UNCHANGED,
    UNDATED,
    Change,
    Gap,
    Item,
    ItemChange,
    Listing,
    Order,
    PageFacts,
    PastContent,
    Progress,
    Reading,
    RefinedItem,
    Request,
    Source,
    StoredItem,
    UnchangedEntries,
    WalkPlan,
    Watermark,
)
from catchment.platforms import discourse
from catchment.policy import continuity
from catchment.policy.continuity import (
    End,
    Walk,
    closed_gaps,
    gap_after,
    is_repeat,
    is_stale,
    moved,
    recognise,
    step,
)
from catchment.policy.gap_repair import begin_repair, decide_repair_page
from catchment.policy.judge import calmed
from catchment.text.clean import fingerprint
from tests.policy.test_judge import known

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW = Listing("new", Order.NEWEST_FIRST, reach=100)
WINDOW = Listing("window", Order.NEWEST_FIRST, is_window=True)
RANKED = Listing("top", Order.RANKED)


def at(minute: float) -> datetime:
    """So many minutes before now."""
    return NOW - timedelta(minutes=minute)


def refined(key: str, minute: float | None = None, *, fingerprint: bytes = b"", **more: Any) -> RefinedItem:
    created = None if minute is None else at(minute)
    return RefinedItem(Item(key, created_at=created, text="text", **more), fingerprint or key.encode())


def fresh(key: str, minute: float | None = None, **more: Any) -> ItemChange:
    return ItemChange(refined(key, minute, **more), None, Change.NEW)


def stored(key: str, minute: float | None = None, *, first_told: float | None = None, **more: Any) -> ItemChange:
    """Known; under another date than it bears now, if so given."""
    told = first_told if first_told is not None else minute
    held = known(external_id=key, created_at=None if told is None else at(told))
    return ItemChange(refined(key, minute, **more), held, Change.SAME)


def walked(mark: Watermark | None, *pages: list[ItemChange], listing: Listing = NEW) -> Walk:
    walk = Walk(listing, mark)
    for page in pages:
        walk = step(walk, page, NOW)
    return walk


MARK = Watermark(at(60), ("m",))


# ── walking ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_walk_is_whole_when_it_meets_what_is_older_than_the_watermark() -> None:
    assert not walked(MARK, [fresh("a", 1), fresh("b", 59)]).is_reached
    assert walked(MARK, [fresh("a", 1)], [fresh("b", 61)]).is_reached


def test_of_items_that_share_the_watermarks_time_only_those_we_have_end_the_walk() -> None:
    assert not walked(MARK, [fresh("another of that minute", 60)]).is_reached
    assert walked(MARK, [fresh("m", 60)]).is_reached


def test_a_stored_item_further_down_proves_nothing_it_may_be_of_a_visit_that_broke_off() -> None:
    assert not walked(MARK, [stored("a", 5)]).is_reached
    assert not walked(MARK, [stored("a", 5)], listing=WINDOW).is_reached


def test_a_window_is_connected_by_what_was_first_told_before_the_watermark_whatever_its_date_is_now() -> None:
    assert walked(MARK, [stored("a", 5, first_told=90)], listing=WINDOW).is_reached
    assert not walked(MARK, [stored("ahead", -600)], listing=WINDOW).is_reached


def test_what_is_pinned_neither_ends_a_walk_nor_moves_its_edges() -> None:
    walk = walked(MARK, [fresh("rules", 100_000, is_pinned=True), fresh("a", 1)])
    assert (walk.is_reached, walk.newest, walk.oldest_at) == (False, Watermark(at(1), ("a",)), at(1))


def test_a_walk_goes_on_past_the_watermark_as_far_as_the_overlap() -> None:
    overlapping = NEW.replace(overlap=2)
    pages = [fresh("a", 1), fresh("m", 60), fresh("c", 70)]
    assert not walked(MARK, pages, listing=overlapping).is_satisfied
    assert walked(MARK, pages, [fresh("d", 80)], listing=overlapping).is_satisfied


MINUTES = st.integers(min_value=-2, max_value=6)
DATES = st.none() | MINUTES


@given(
    entries=st.lists(st.tuples(DATES, MINUTES, DATES), min_size=1, max_size=6),
    fresh_dates=st.lists(DATES, max_size=3),
    marked=DATES,
    mark_ids=st.sets(st.sampled_from(["u0", "u1", "n0", "gone"]), min_size=1),
    mark_seen=DATES,
    lag=st.sampled_from([0, 0, 3]),
    order=st.permutations(range(10)),
    overlap=st.integers(min_value=0, max_value=3),
)
def test_a_walk_past_unchanged_entries_is_one_past_each_of_them(
    entries: list[tuple[int | None, int, int | None]],
    fresh_dates: list[int | None],
    marked: int | None,
    mark_ids: set[str],
    mark_seen: int | None,
    lag: int,
    order: list[int],
    overlap: int,
) -> None:
    """An entry: by the date that it states, the time it is ordered by, and the date with which it was stored.
    `mark_seen`: the item of the watermark is shown with other content than last time, and was first seen then."""
    new = [fresh(f"n{number}", minute) for number, minute in enumerate(fresh_dates)]
    if marked is not None and mark_seen is not None:
        mark = known(external_id="m", created_at=at(marked), first_seen_at=at(mark_seen))
        new.append(ItemChange(refined("m", marked), mark, Change.EDITED))
        mark_ids |= {"m"}
    each = [
        ItemChange(
            refined(f"u{number}", stated),
            known(
                external_id=f"u{number}",
                ordered_at=micros(at(ordered)),
                created_at=None if created is None else at(created),
            ),
            Change.SAME,
        )
        for number, (stated, ordered, created) in enumerate(entries)
    ]
    together = UnchangedEntries(
        list(range(len(entries))),
        [f"u{number}" for number in range(len(entries))],
        [UNDATED if stated is None else micros(at(stated)) for stated, _, _ in entries],
        [micros(at(ordered)) for _, ordered, _ in entries],
        [None if created is None else micros(at(created)) for _, _, created in entries],
    )
    walk = Walk(WINDOW.replace(overlap=overlap), None if marked is None else Watermark(at(marked), tuple(mark_ids)))
    dates = [shown for change in (*new, *each) if (shown := change.item.item.created_at) is not None]
    dates = [dates[place] for place in order if place < len(dates)]
    clock_lag = timedelta(minutes=lag)
    assert step(walk, new, NOW, 1, dates, clock_lag, together) == step(walk, [*new, *each], NOW, 1, dates, clock_lag)


def test_a_page_seen_before_in_the_same_walk_is_a_loop() -> None:
    walk = walked(None, [fresh("a", 1), fresh("b", 2)])
    assert is_repeat(walk, ["b", "a"])
    assert not is_repeat(walk, ["b", "c"])
    assert not is_repeat(walk, [])
    assert not is_repeat(Walk(NEW, None), ["a"])


# ── the watermark ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_watermark_is_the_newest_time_with_all_ids_that_share_it() -> None:
    walk = walked(MARK, [fresh("a", 1), fresh("b", 1), fresh("m", 60)])
    assert moved(walk, NOW) == Watermark(at(1), ("a", "b"))


def test_a_time_in_the_future_cannot_poison_it() -> None:
    walk = walked(MARK, [fresh("from 2099", -(10**6)), fresh("m", 60)])
    assert moved(walk, NOW) == Watermark(NOW, ("from 2099",))


def test_a_date_that_lay_ahead_and_has_come_lifts_nothing_above_the_moment_of_its_first_sight() -> None:
    """Shown by an old copy, it would carry the watermark over all that was posted since."""
    ahead = stored("ahead", 10)
    assert ahead.stored is not None
    ahead = ahead.replace(stored=ahead.stored.replace(ordered_at=micros(at(60))))
    assert moved(walked(MARK, [ahead, fresh("m", 60)]), NOW).at == MARK.at  # type: ignore[union-attr]


def test_ties_with_the_old_watermark_are_added_to_it() -> None:
    assert moved(walked(MARK, [fresh("n", 60), fresh("m", 60)]), NOW) == Watermark(at(60), ("m", "n"))


def test_items_without_dates_leave_the_time_of_the_answer() -> None:
    assert moved(walked(None, [fresh("b"), fresh("a")]), NOW) == Watermark(NOW, ("a", "b"))


@pytest.mark.parametrize("walk", [walked(MARK, [fresh("a", 1)], listing=RANKED), walked(MARK), walked(MARK, [])])
def test_ranked_listings_and_empty_answers_leave_it_where_it_was(walk: Walk) -> None:
    assert moved(walk, NOW) == MARK


def test_a_platform_that_stamps_thousands_alike_does_not_make_it_grow() -> None:
    mark = moved(walked(None, [fresh(f"{number}", 1) for number in range(5000)]), NOW)
    assert mark is not None
    assert len(mark.ids) == 200


shown_pages = st.lists(
    st.lists(st.builds(fresh, st.sampled_from("abcdefgh"), st.none() | st.integers(-500, 500)), max_size=5), max_size=4
)


@given(mark=st.none() | st.builds(Watermark, st.integers(-10, 500).map(at)), pages=shown_pages)
def test_the_watermark_never_goes_back_and_never_into_the_future(
    mark: Watermark | None, pages: list[list[ItemChange]]
) -> None:
    now = max(NOW, mark.at) if mark else NOW
    walk = Walk(NEW, mark)
    for page in pages:
        walk = step(walk, page, now)
    after = moved(walk, now)
    if mark is not None:
        assert after is not None
        assert mark.at <= after.at
    assert after is None or after.at <= now


# ── gaps ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("end", [End.CAP, End.REPEATS])
def test_a_walk_that_is_cut_above_the_watermark_leaves_a_known_gap_between_its_edges(end: End) -> None:
    walk = walked(MARK, [fresh("a", 1), fresh("b", 20)])
    assert gap_after(walk, end, NOW) == Gap(True, at(60), at(20), str(end), ("m",), to_ids=("b",))


def test_the_edge_of_a_gap_is_known_under_all_ids_of_its_item() -> None:
    """The opening post of a topic has the topic's id; the way further down needs the post's own."""
    walk = walked(MARK, [fresh("a", 1), fresh("t40", 20, aliases=("951",))])
    gap = gap_after(walk, End.CAP, NOW)
    assert gap is not None
    assert gap.to_ids == ("951", "t40")
    source = Source(1, "key", "discourse", "discourse_forum", "https://forum.example/", "Forum", NOW)
    (request,) = discourse.reach(source, gap, WalkPlan("posts", 100), NOW)
    assert request.params == {"before": "951"}
    # Likewise where a repair was cut.
    repair = decide_repair_page(
        begin_repair(gap.replace(id=7), NEW),
        Reading(follow=(request,)),
        [refined("b", 30), refined("t39", 40, aliases=("900",))],
        *(0, NOW, (), PageFacts()),
    )
    assert repair.narrowed is not None
    assert repair.narrowed.to_ids == ("900", "t39")


def test_a_listing_that_ends_before_what_it_announced_leaves_a_possible_gap() -> None:
    walk = walked(MARK, [fresh("a", 1), fresh("b", 20)])
    gap = Gap(False, at(60), at(20), "incomplete", ("m",), to_ids=("b",))
    assert gap_after(walk, End.INCOMPLETE, NOW) == gap
    # Below what is stored, an empty page is the end of the list.
    assert gap_after(step(walk, [fresh("m", 60)], NOW), End.INCOMPLETE, NOW) is None


def test_a_listing_that_ends_at_its_reach_leaves_a_gap_and_one_that_ends_before_has_shown_all() -> None:
    full = walked(MARK, [fresh(f"{number}", number / 10) for number in range(95)])
    assert gap_after(full, End.LAST_PAGE, NOW) == Gap(True, at(60), at(9.4), "reach", ("m",), to_ids=("94",))
    assert gap_after(walked(MARK, [fresh("a", 1)]), End.LAST_PAGE, NOW) is None
    endless = walked(MARK, [fresh("a", 1)] * 500, listing=NEW.replace(reach=None))
    assert gap_after(endless, End.LAST_PAGE, NOW) is None


@pytest.mark.parametrize(("minutes", "cause"), [(0, None), (1, None), (10, "reach")])
def test_what_comes_while_a_listing_is_walked_down_uses_up_its_reach(minutes: float, cause: str | None) -> None:
    # 40 of 100 are shown, two a minute.
    first = walked(MARK, [fresh(f"{number}", number / 2) for number in range(20)])
    later = NOW + timedelta(minutes=minutes)
    walk = step(first, [fresh(f"{number}", number / 2) for number in range(20, 40)], later)
    gap = gap_after(walk, End.LAST_PAGE, later)
    assert (gap and gap.cause) == cause


def test_a_window_that_shares_nothing_with_what_is_stored_leaves_a_possible_gap() -> None:
    walk = walked(MARK, [fresh("a", 1), fresh("b", 2), fresh("c", 3)], listing=WINDOW)
    assert gap_after(walk, End.LAST_PAGE, NOW) == Gap(False, at(60), at(3), "window", ("m",), to_ids=("c",))


def test_the_gap_below_a_feed_that_goes_by_arrival_ends_at_its_lowest_entry_not_at_a_latecomer() -> None:
    judged = [fresh("a", 1), fresh("written long ago", 50), fresh("b", 2), fresh("c", 3)]
    walk = step(Walk(WINDOW, MARK), judged, NOW, dates=[at(1), at(50), at(2), at(3)])
    assert gap_after(walk, End.LAST_PAGE, NOW) == Gap(False, at(60), at(3), "window", ("m",), to_ids=("c",))
    oldest_first = step(Walk(WINDOW, MARK), judged[::-1], NOW, dates=[at(50), at(3), at(2)])
    late = ("written long ago",)
    assert gap_after(oldest_first, End.LAST_PAGE, NOW) == Gap(False, at(60), at(50), "window", ("m",), to_ids=late)


HALF_AN_HOUR = timedelta(minutes=30)


def walked_behind(*changes: ItemChange, listing: Listing = WINDOW, lag: timedelta = HALF_AN_HOUR) -> Walk:
    """A page of a site whose clock is behind."""
    return step(Walk(listing, MARK), changes, NOW, clock_lag=lag)


@pytest.mark.parametrize("listing", [WINDOW, NEW], ids=["window", "pages"])
def test_what_a_clock_that_is_behind_dates_before_the_watermark_may_be_newer(listing: Listing) -> None:
    assert not walked_behind(fresh("a", 40), fresh("b", 89), listing=listing).is_reached
    assert walked_behind(fresh("a", 40), fresh("b", 91), listing=listing).is_reached


def test_a_window_of_a_clock_that_is_behind_is_connected_by_what_was_first_told_before_the_watermark() -> None:
    assert walked_behind(fresh("a", 40), stored("b", 100, first_told=70)).is_reached
    assert not walked_behind(fresh("a", 40), stored("of a torn answer", 80, first_told=50)).is_reached


@pytest.mark.parametrize(("lag", "to", "edge"), [(30, 40, "c"), (65, 5, "c"), (90, 0, "abc")])
def test_a_gap_goes_up_as_far_as_a_clock_that_is_behind_may_hide_items(lag: int, to: int, edge: str) -> None:
    walk = walked_behind(fresh("a", 50), fresh("b", 55), fresh("c", 70), lag=timedelta(minutes=lag))
    assert gap_after(walk, End.LAST_PAGE, NOW) == Gap(False, at(60), at(to), "window", ("m",), to_ids=tuple(edge))


def test_a_feed_by_arrival_whose_clock_is_behind_ends_a_gap_above_its_lowest_entry() -> None:
    shown = [fresh("a", 40), fresh("written long ago", 58), fresh("b", 50)]
    walk = step(Walk(WINDOW, MARK), shown, NOW, dates=[at(40), at(58), at(50)], clock_lag=HALF_AN_HOUR)
    assert gap_after(walk, End.LAST_PAGE, NOW) == Gap(False, at(60), at(20), "window", ("m",), to_ids=("b",))


def test_a_latecomer_in_a_feed_by_arrival_hides_no_gap_if_a_clock_that_is_behind_dates_all_of_it_too_early() -> None:
    shown = [fresh("a", 70), fresh("written long ago", 500), fresh("b", 75), fresh("c", 80)]
    walk = step(Walk(WINDOW, MARK), shown, NOW, dates=[at(70), at(500), at(75), at(80)], clock_lag=HALF_AN_HOUR)
    assert gap_after(walk, End.LAST_PAGE, NOW) == Gap(False, at(60), at(50), "window", ("m",), to_ids=("c",))


@pytest.mark.parametrize(("first_seen", "below"), [(30, 61), (31, 62), (45, 76), (60, 91)])
def test_a_clock_that_was_as_far_behind_when_the_watermark_was_seen_hides_nothing_below_it(
    first_seen: float, below: float
) -> None:
    """What came after that visit is dated half an hour before it at the earliest."""
    mark = stored("m", 60)
    assert isinstance(mark.stored, StoredItem)
    mark = mark.replace(stored=mark.stored.replace(first_seen_at=at(first_seen)))
    above = walked_behind(fresh("a", 40), mark, listing=NEW)
    assert (above.is_reached, above.is_below) == (True, False)
    # On the same page, and on the next one.
    assert walked_behind(fresh("a", 40), mark, stored("b", below), listing=NEW).is_below
    assert step(above, [stored("b", below)], NOW, clock_lag=HALF_AN_HOUR).is_below
    assert not step(above, [stored("b", below - 1)], NOW, clock_lag=HALF_AN_HOUR).is_below


def test_a_clock_that_is_behind_lifts_the_watermark_no_higher_than_it_says() -> None:
    assert walked_behind(fresh("a", 40)).newest == Watermark(at(40), ("a",))


def test_ids_that_were_listed_are_dated_by_what_is_stored_whatever_the_sites_clock_says() -> None:
    listed = stored("a", 61)
    listed = listed.replace(item=listed.item.replace(is_listed=True))
    walk = step(Walk(NEW, MARK, is_by_id=True), [listed], NOW, clock_lag=HALF_AN_HOUR)
    assert walk.is_below


def test_a_repair_by_a_clock_that_is_behind_neither_closes_a_gap_too_early_nor_narrows_it_too_far() -> None:
    gap = Gap(True, at(60), at(20), "cap", ("m",), id=7)

    def repaired(minute: float, lag: timedelta) -> Any:
        items = [refined("b", minute)]
        reading = Reading(follow=(Request("https://one.example/older"),))
        return decide_repair_page(begin_repair(gap, NEW), reading, items, 0, NOW, (), PageFacts(), clock_lag=lag)

    assert repaired(61, timedelta()).closed
    assert not repaired(61, HALF_AN_HOUR).closed
    assert repaired(91, HALF_AN_HOUR).closed
    assert repaired(55, HALF_AN_HOUR).narrowed.to_at == at(25)


def first_visit() -> Walk:
    return walked(None, [fresh("a", 1), fresh("b", 2), fresh("c", 3)], listing=WINDOW)


def small_window() -> Walk:
    return walked(MARK, [fresh("a", 1), fresh("b", 2), fresh("pinned", 3, is_pinned=True)], listing=WINDOW)


def window_with_something_stored() -> Walk:
    return walked(MARK, [fresh("a", 1), fresh("b", 2), stored("c", 3, first_told=70)], listing=WINDOW)


def window_with_something_old() -> Walk:
    return walked(MARK, [fresh("a", 1), fresh("b", 2), fresh("c", 60)], listing=WINDOW)


def ranked() -> Walk:
    return walked(MARK, [fresh("a", 1)], listing=RANKED)


def reached() -> Walk:
    return walked(MARK, [fresh("a", 1), fresh("m", 60), fresh("older", 61)])


@pytest.mark.parametrize(
    "walk", [first_visit, small_window, window_with_something_stored, window_with_something_old, ranked, reached]
)
@pytest.mark.parametrize("end", [End.LAST_PAGE, End.CAP])
def test_no_gap_is_told_where_nothing_shows_one(walk: Any, end: End) -> None:
    assert gap_after(walk(), end, NOW) is None


def test_a_gap_closes_when_a_walk_shows_it_from_edge_to_edge() -> None:
    gap = Gap(True, at(60), at(20), "cap", ("m",), id=7)
    down = [fresh("a", 1), fresh("b", 30), fresh("m", 60)]
    assert closed_gaps(walked(MARK, down, listing=WINDOW), [gap]) == ((7, "shown again"),)
    # Where pages could follow, something of the same minute may come after what was met.
    assert closed_gaps(walked(MARK, down), [gap]) == ()
    assert closed_gaps(walked(MARK, down, [fresh("older", 61)]), [gap]) == ((7, "shown again"),)
    assert closed_gaps(walked(MARK, [fresh("a", 1), fresh("b", 30)]), [gap]) == ()
    assert closed_gaps(walked(MARK, [fresh("b", 30), fresh("m", 60)]), [gap]) == ()
    assert closed_gaps(walked(MARK, [fresh("a", 1), fresh("m", 60)], listing=RANKED), [gap]) == ()


# ── ids that change ───────────────────────────────────────────────────────────────────────────────────────────────


def held(number: int, minute: float, **more: Any) -> Any:
    return known(
        id=number,
        fingerprint=b"%d" % number,
        url=f"https://one.example/{number}",
        created_at=at(minute),
        **more,
    )


def test_half_alike_by_content_or_link_and_date_are_the_same_under_new_ids() -> None:
    strangers = [
        refined("by content", 1, fingerprint=b"1"),
        refined("by link", 2, url="https://one.example/2"),
        refined("unknown", 3),
        refined("unknown, too", 4),
    ]
    found = recognise(strangers, [held(1, 1), held(2, 2)])
    assert {key: stored.id for key, stored in found.items()} == {"by content": 1, "by link": 2}
    assert recognise([*strangers, refined("a third", 5)], [held(1, 1), held(2, 2)]) == {}


def test_another_date_is_another_entry_and_no_date_is_any() -> None:
    assert recognise([refined("a", 5, fingerprint=b"1")], [held(1, 1)]) == {}
    assert "a" in recognise([refined("a", fingerprint=b"1")], [held(1, 1)])


def test_dates_that_are_all_off_by_the_same_are_the_same_dates() -> None:
    """The answer that first told of them had a wrong clock; two may be off alike by accident, three are not."""
    off = [refined(f"new {number}", number + 90, fingerprint=b"%d" % number) for number in (1, 2, 3)]
    right, other = refined("new 4", 4, fingerprint=b"4"), refined("new 5", 500, fingerprint=b"5")
    stored = [held(number, number) for number in range(1, 6)]
    assert set(recognise([*off, right, other], stored)) == {"new 1", "new 2", "new 3", "new 4"}
    assert recognise(off[:2], stored) == {}


def test_a_link_that_many_share_tells_nothing() -> None:
    shared = [held(number, 1).replace(url="https://one.example/") for number in (1, 2)]
    assert recognise([refined("a", 1, url="https://one.example/")], shared) == {}
    assert recognise([refined("a", 1)], [held(1, 1).replace(url=None)]) == {}


def test_what_shows_nothing_looks_like_nothing() -> None:
    """Rows of comments without their text, and of threads known by a mirror alone, all have this fingerprint."""
    nothing = fingerprint(None, None, None, ())
    unread = held(1, 1).replace(fingerprint=nothing, url=None)
    assert recognise([refined("a", fingerprint=nothing), refined("b", 1, fingerprint=nothing)], [unread]) == {}


def test_one_stored_item_is_not_two_strangers() -> None:
    found = recognise([refined("a", 1, fingerprint=b"1"), refined("b", 1, fingerprint=b"1")], [held(1, 1)])
    assert list(found) == ["a"]


# ── stale answers, contents that flip ─────────────────────────────────────────────────────────────────────────────


def edited(number: int, fingerprint: bytes) -> ItemChange:
    item = refined("a", 10, fingerprint=fingerprint)
    return ItemChange(item, known(id=number), Change.EDITED, ("content_fingerprint_changed",))


def stale(
    *changes: ItemChange, before: float | None = 5, is_body_seen_before: bool = False, stale_count: int = 0
) -> bool:
    facts = PageFacts(earlier={1: (PastContent(b"old", at(60)),)}, is_body_seen_before=is_body_seen_before)
    shown_before = None if before is None else at(before)
    before_it = Progress(newest_shown_at=shown_before, stale_count=stale_count)
    return is_stale(before_it, changes, NONE_UNCHANGED, facts, NOW)


def test_an_answer_that_ends_earlier_and_says_what_was_said_before_is_stale() -> None:
    assert stale(edited(1, b"old"), stored("b", 20))
    assert stale(stored("b", 20), is_body_seen_before=True)


def test_an_answer_is_not_stale_without_proof() -> None:
    assert not stale(stored("b", 20))
    assert not stale(edited(1, b"old"), edited(2, b"never said"))
    assert not stale(edited(1, b"old"), stale_count=3)
    assert not stale(edited(1, b"old"), stored("b", 5), is_body_seen_before=True)
    assert not stale(stored("b"), is_body_seen_before=True)
    assert not stale(edited(1, b"old"), before=None, is_body_seen_before=True)


def test_of_a_stale_answer_only_what_was_never_seen_is_used() -> None:
    new = fresh("n", 30)
    kept = continuity.without_changes([new, edited(1, b"old")])
    assert kept == (new, edited(1, b"old").replace(change=Change.SAME, reasons=()))


def test_the_newest_shown_is_neither_pinned_nor_in_the_future() -> None:
    items = [refined("a", 10), refined("pinned", 1, is_pinned=True), refined("none")]
    assert continuity.newest_shown(items, NOW) == at(10)
    assert continuity.newest_shown([*items, refined("from 2099", -(10**6))], NOW) == NOW
    assert continuity.newest_shown([], NOW) is None
    assert continuity.newest_shown(items, NOW, [UNDATED, micros(at(7))]) == at(7)
    assert continuity.newest_shown(items, NOW, [UNDATED, micros(at(12))]) == at(10)
    assert continuity.newest_shown([], NOW, [UNDATED]) is None


@pytest.mark.parametrize(
    ("earlier", "is_calmed"),
    [
        ([(b"a", 30), (b"b", 20), (b"a", 10)], True),
        ([(b"a", 20), (b"b", 10)], False),
        ([(b"b", 30), (b"c", 20), (b"d", 10)], False),
        ([(b"a", 1441), (b"b", 20), (b"a", 10)], False),
        ([(b"a", 30), (b"c", 20), (b"d", 10)], False),
    ],
)
def test_the_fourth_time_in_a_day_going_back_and_forth_is_no_news(
    earlier: list[tuple[bytes, int]], is_calmed: bool
) -> None:
    edit = edited(1, b"a").replace(stored=known(id=1, fingerprint=b"b"))
    change = calmed(edit, [PastContent(content, at(minute)) for content, minute in earlier], NOW)
    assert (change.change, change.is_volatile) == ((Change.COUNTED, True) if is_calmed else (Change.EDITED, False))
    assert ("fingerprint" in change.values, "version" in change.values) == (False, False)
