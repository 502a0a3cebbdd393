"""Hot first: what the hot store answers is what the archive would have answered, at every moment."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.model import Item, Reference, SourceState
from catchment.store import cache
from catchment.store.cache import MOST
from catchment.store.items.deletion import Forget
from catchment.store.search.lists import Filter
from tests.cache.keeper import FEED, Keeper
from tests.store.desk import post

DAY = timedelta(days=1).total_seconds()


def posts(keeper: Keeper, count: int, begin: int = 0) -> list[Item]:
    at = keeper.clock.now()
    return [post(f"t3_{number}", created_at=at + timedelta(seconds=number)) for number in range(begin, begin + count)]


def test_after_a_visit_the_newest_are_read_hot(keeper: Keeper) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, 15))
    assert keeper.is_hit(source)
    assert keeper.read(source).next == keeper.cold(source).next is not None
    assert keeper.is_hit(source, limit=15)
    assert keeper.read(source, 15).next is None


def test_a_community_that_has_shown_nothing_is_read_hot_as_well(keeper: Keeper) -> None:
    source = keeper.follow()
    keeper.show(source)
    assert keeper.is_hit(source)
    assert keeper.read(source).items == []


def test_a_list_that_is_longer_than_a_hot_set_goes_on_in_the_archive(keeper: Keeper) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, MOST + 20))
    assert keeper.is_hit(source, MOST - 1)
    assert not keeper.is_hit(source, MOST)
    page, seen = keeper.read(source, MOST - 1), []
    while True:
        seen += page.items
        if page.next is None:
            break
        page = keeper.hot.listed(Filter(source.id), 7, page.next)
    assert seen == keeper.store.items.newest(1000, source_id=source.id)


@pytest.mark.parametrize(
    "wanted", [{"kind": "reddit"}, {"is_deleted": False}, {"source_id": None}, {"platform": "reddit"}]
)
def test_other_questions_are_answered_by_the_archive_and_not_counted(keeper: Keeper, wanted: dict[str, Any]) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, 3))
    asked = Filter(source.id).replace(**wanted)
    assert keeper.hot.listed(asked, 2) == keeper.store.items.listed(asked, 2)
    assert keeper.hot.hit_rate(keeper.clock.now() - timedelta(days=1)) is None


def test_sources_of_other_kinds_are_not_kept_hot(keeper: Keeper) -> None:
    feed = keeper.desk.follow("feed")
    keeper.desk.show(feed, *posts(keeper, 3))
    keeper.hot.refresh(feed.id, FEED)
    keeper.hot.refresh(feed.id, None)
    assert not keeper.is_hit(feed)
    assert keeper.entries() == 0
    assert keeper.hot.hit_rate(keeper.clock.now() - timedelta(days=1)) is None


# ── whatever changes the list ─────────────────────────────────────────────────────────────────────────────────────


def is_edited(keeper: Keeper, source: Any) -> None:
    keeper.desk.show(source, post("t3_1", "second thoughts"))


def is_counted(keeper: Keeper, source: Any) -> None:
    keeper.desk.show(source, post("t3_1", score=5))


def is_only_seen_again(keeper: Keeper, source: Any) -> None:
    keeper.desk.show(source, post("t3_1"))


def is_joined_by_another(keeper: Keeper, source: Any) -> None:
    keeper.desk.show(source, post("t3_99"))


def is_edited_in_another_community(keeper: Keeper, source: Any) -> None:
    keeper.desk.show(keeper.follow("r/other"), post("t3_1", "told elsewhere"))


def is_forgotten(keeper: Keeper, source: Any) -> None:
    keeper.store.deletion.forget(
        Forget("item", "reddit", "me", item_id=keeper.desk.item("t3_1")["id"]), keeper.clock.now()
    )


def is_past_its_time(keeper: Keeper, source: Any) -> None:
    keeper.store.sources.set_state(source.id, SourceState.PAUSED, None, keeper.clock.now())
    keeper.clock.advance(2 * DAY)
    assert keeper.store.retention.clear({"reddit": 1}, keeper.clock.now()) == 4


def loses_what_it_quotes(keeper: Keeper, source: Any) -> None:
    keeper.desk.show(keeper.follow("r/other"), post("t3_50", author="quoted"))
    keeper.store.deletion.forget(Forget("author", "reddit", "me", author="quoted"), keeper.clock.now())


@pytest.mark.parametrize(
    "happens",
    [
        is_edited,
        is_counted,
        is_only_seen_again,
        is_joined_by_another,
        is_edited_in_another_community,
        is_forgotten,
        is_past_its_time,
        loses_what_it_quotes,
    ],
)
def test_what_changes_the_list_is_seen_at_once_though_nobody_has_refreshed_it(keeper: Keeper, happens: Any) -> None:
    source = keeper.follow()
    quoting = post("t3_3", references=(Reference("replied_to", external_id="t3_50", author="quoted", text="so"),))
    keeper.show(source, *posts(keeper, 3), quoting)
    before = keeper.read(source)
    happens(keeper, source)
    assert not keeper.is_hit(source)
    assert keeper.read(source) != before
    keeper.refresh(source)
    assert keeper.is_hit(source)


def test_a_removed_source_still_answers_the_same(keeper: Keeper) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, 3))
    keeper.store.sources.set_state(source.id, SourceState.REMOVED, None, keeper.clock.now())
    assert keeper.read(source) == keeper.cold(source)
    assert len(keeper.read(source).items) == 3


def test_a_hot_set_is_read_for_a_day(keeper: Keeper) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, 3))
    keeper.clock.advance(DAY - 1)
    assert keeper.is_hit(source)
    keeper.clock.advance(1)
    assert not keeper.is_hit(source)
    assert keeper.entries() == 0


def test_what_is_past_its_time_is_cleared_and_the_rest_stays(keeper: Keeper) -> None:
    old, young = keeper.follow("r/old"), keeper.follow("r/young")
    keeper.show(old, *posts(keeper, 3))
    keeper.clock.advance(DAY / 2)
    keeper.show(young, *posts(keeper, 2, 10))
    keeper.clock.advance(DAY / 2)
    keeper.hot.clear_expired()
    assert keeper.entries() == 2
    assert (keeper.is_hit(old), keeper.is_hit(young)) == (False, True)


def test_a_set_that_was_made_while_the_list_changed_is_not_kept(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, 3))
    newest = keeper.store.items.newest

    def meanwhile(*asked: Any, **more: Any) -> Any:
        found = newest(*asked, **more)
        keeper.desk.show(source, post("t3_1", "changed meanwhile"))
        return found

    monkeypatch.setattr(keeper.store.items, "newest", meanwhile)
    keeper.refresh(source)
    monkeypatch.undo()
    assert not keeper.is_hit(source)


def test_who_begins_to_keep_a_source_hot_waits_for_those_who_are_writing(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that found nothing to mark, and is committed only after the first hot set was made, would not be seen."""
    first, other = keeper.follow("r/one"), keeper.follow("r/other")
    keeper.desk.show(first, post("t3_1"))
    keeper.desk.show(other, post("t3_1"))
    beginning = Thread(target=keeper.refresh, args=(other,))
    changed = cache.changed_items

    def marked_and_not_committed(*what: Any) -> None:
        changed(*what)
        beginning.start()
        # It is over by now, unless it waits for us, as it must.
        beginning.join(0.3)

    monkeypatch.setattr(cache, "changed_items", marked_and_not_committed)
    keeper.desk.show(first, post("t3_1", "edited"))
    monkeypatch.undo()
    beginning.join()
    assert keeper.is_hit(other)
    assert keeper.read(other).items[0].text == "edited"


# ── any history ───────────────────────────────────────────────────────────────────────────────────────────────────

IDS = st.integers(0, 8)
ITEMS = st.builds(
    lambda number, text, score, is_deleted, author: post(
        f"t3_{number}", text, score=score, is_deleted=is_deleted, author=author
    ),
    IDS,
    st.sampled_from(["one", "two", "three"]),
    st.integers(0, 3) | st.none(),
    st.booleans(),
    st.sampled_from(["ada", "bob", None]),
)
SOURCES = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("visit"), SOURCES, st.lists(ITEMS, max_size=4, unique_by=lambda item: item.external_id)),
        st.tuples(
            st.just("killed visit"), SOURCES, st.lists(ITEMS, max_size=3, unique_by=lambda item: item.external_id)
        ),
        st.tuples(st.just("forget item"), st.just(0), IDS),
        st.tuples(st.just("forget author"), st.just(0), st.sampled_from(["ada", "bob"])),
        st.tuples(st.just("remove"), SOURCES, st.none()),
        st.tuples(st.just("wait"), st.just(0), st.integers(1, 30)),
        st.tuples(st.just("clear"), st.just(0), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.randoms(use_true_random=False))
def test_whatever_happens_a_hot_answer_is_the_cold_one(quick: Keeper, steps: list[Any], dice: Any) -> None:
    keeper = quick
    # Communities, ids and authors of this example alone: the archive stays from one to the next, and forgets for good.
    name = f"{dice.random()}"
    sources = [keeper.follow(f"r/{name}/{number}") for number in range(3)]
    for action, which, what in steps:
        done(keeper, sources[which], action, what, name)
        for source in sources:
            for limit in (1, 3, 100):
                assert keeper.read(source, limit) == keeper.cold(source, limit)


def done(keeper: Keeper, source: Any, action: str, what: Any, name: str) -> None:
    store, now = keeper.store, keeper.clock.now()
    if action.endswith("visit"):
        if store.sources.get(source.id, even_removed=True).state != SourceState.REMOVED:
            show = keeper.show if action == "visit" else keeper.desk.show
            show(source, *(own(item, name) for item in what))
    elif action == "forget item":
        for item in store.items.newest(100):
            if item.external_id == f"t3_{what} {name}":
                store.deletion.forget(Forget("item", "reddit", "me", item_id=item.id), now)
    elif action == "forget author":
        store.deletion.forget(Forget("author", "reddit", "me", author=f"{what} {name}"), now)
    elif action == "remove":
        if store.sources.get(source.id, even_removed=True).state != SourceState.REMOVED:
            store.sources.set_state(source.id, SourceState.REMOVED, None, now)
    elif action == "wait":
        keeper.clock.advance(what * 3600)
    else:
        keeper.hot.clear_expired()


def own(item: Item, name: str) -> Item:
    return item.replace(external_id=f"{item.external_id} {name}", author=item.author and f"{item.author} {name}")


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_hit_rate_is_the_share_of_hits_since_a_moment_over_all_processes(keeper: Keeper) -> None:
    source, other = keeper.follow(), keeper.another()
    keeper.show(source, *posts(keeper, 3))
    before = keeper.clock.now()
    assert keeper.hot.hit_rate(before) is None
    keeper.read(source)
    keeper.desk.show(source, post("t3_1", "edited"))
    for _ in range(3):
        other.listed(Filter(source.id), 2)
    other.close()
    assert keeper.hot.hit_rate(before) == 0.25
    assert keeper.hot.hit_rate(keeper.clock.now()) == 0.0
    keeper.clock.advance(120)
    assert keeper.hot.hit_rate(keeper.clock.now()) is None


def test_reads_are_counted_with_one_write_a_minute(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, 3))
    told = []
    count = keeper.store.cached_sources.count
    monkeypatch.setattr(keeper.store.cached_sources, "count", lambda *what: (told.append(what), count(*what)))
    for _ in range(60):
        keeper.read(source)
        keeper.clock.advance(4)
    assert len(told) == 3
    assert keeper.hits() == 60


def test_counts_are_kept_for_their_days(keeper: Keeper) -> None:
    source = keeper.follow()
    keeper.show(source, *posts(keeper, 3))
    began = keeper.clock.now()
    keeper.read(source)
    keeper.hot.close()
    keeper.clock.advance(8 * DAY)
    keeper.hot.clear_expired()
    assert keeper.hot.hit_rate(began) is None
