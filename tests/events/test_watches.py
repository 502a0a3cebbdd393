"""A watch tells of what fits it: each version of an item once, none twice, none skipped, whatever happens meanwhile."""

from __future__ import annotations

from threading import Event as Flag
from typing import Any

import pytest

from catchment.errors import Conflict, InvalidInput, NotFound
from catchment.events.watches import (
    WatchedItem,
    checked,
    fitting,
    matched,
    run_watches,
    tried,
)
from catchment.model import Watch
from catchment.store.delivery.watches import Seen
from tests.events.teller import Teller
from tests.town import Feed

# ── which items fit ───────────────────────────────────────────────────────────────────────────────────────────────


def item(title: str | None = None, text: str | None = None, **more: Any) -> WatchedItem:
    fields: dict[str, Any] = {
        "id": 1,
        "change_number": 1,
        "version": 1,
        "kinds": ("entry", "rss"),
        "source_id": 1,
        "source_ids": frozenset({1}),
        "authors": (),
        "url": None,
        "created_at": "",
        "is_deleted": False,
    }
    return WatchedItem(Seen(**fields | {"title": title, "text": text} | more))


@pytest.mark.parametrize(
    ("words", "text", "fits"),
    [
        (["rust"], "Rust 2.0 is out", True),
        (["rust"], "trust nobody", False),
        (["rust", "async"], "async in Rust", True),
        (["rust", "async"], "threads in Rust", False),
        (["rust", "-game"], "a Rust server", True),
        (["rust", "-game"], "Rust, the game", False),
        (["芯"], "国产芯片发布", True),
        (["芯片"], "国产芯片发布", True),
        (["片芯"], "国产芯片发布", False),
        (["芯片", "gpu"], "新GPU芯片发布", True),
        (["gpu芯片"], "新GPU芯片发布", True),
        (["-股票"], "芯片股票大涨", False),
        (["c++"], "C and more", True),
        (["straße"], "STRASSE gesperrt", True),
        (["東京"], "東京タワー", True),
        (["서울"], "서울에서", True),
        (['"new york"'], "in New York now", True),
        (['"new york"'], "a new day in York", False),
        (["new york"], "a new day in York", True),
        (['-"new york"', "now"], "in New York now", False),
    ],
)
def test_words_are_found_as_a_search_would_find_them(words: list[str], text: str, fits: bool) -> None:
    assert (matched(Watch("w", tuple(words)), item(text=text)) is not None) == fits


def test_title_and_text_are_both_looked_at_and_the_words_found_are_told() -> None:
    watch = Watch("w", ("alpha", "beta", "-gamma"))
    assert matched(watch, item("Alpha", "beta")) == ("alpha", "beta")
    assert matched(watch.replace(is_any_enough=True), item("beta")) == ("beta",)
    assert matched(watch.replace(is_any_enough=True), item("beta gamma")) is None
    assert matched(watch.replace(is_any_enough=True), item("delta")) is None


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"kinds": ("rss",)}, True),
        ({"kinds": ("entry",)}, True),
        ({"kinds": ("reddit",)}, False),
        ({"source_ids": (2,)}, True),
        ({"source_ids": (3,)}, False),
        ({"authors": ("ANN",)}, True),
        ({"authors": ("Ann Author",)}, True),
        ({"authors": ("Bob",)}, False),
        ({"authors": ("ann",), "words": ("nothing",)}, False),
    ],
)
def test_kinds_sources_and_authors_narrow_it_down(rule: dict[str, Any], fits: bool) -> None:
    watched = item("something", source_ids=frozenset({1, 2}), authors=("ann", "Ann Author"))
    assert (matched(Watch("w", **rule), watched) is not None) == fits


@pytest.mark.parametrize(
    "watch",
    [Watch(""), Watch("w"), Watch("w", ("-only",)), Watch("w", ("!!",)), Watch("w", ("-",)), Watch("w", ("a",) * 101)],
)
def test_a_watch_that_could_never_be_right_is_refused(watch: Watch) -> None:
    with pytest.raises(InvalidInput):
        checked(watch)


# ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────────


def look(teller: Teller, **more: Any) -> int:
    """How many hits there were."""
    before = len(hits(teller))
    run_watches(teller.store.watches, teller.clock.now, Flag(), **more)
    return len(hits(teller)) - before


def hits(teller: Teller) -> list[tuple[str, str, bool]]:
    """Of all events so far: which watch, which item, whether it was an edit."""
    return [
        (data["watch"], data["item"]["title"], data["is_edit"])
        for name, data in teller.events()
        if name == "watch.matched"
    ]


@pytest.fixture
def feed(both: Teller) -> Feed:
    return both.town.feed("one", window=100)


def collected(teller: Teller, feed: Feed, *titles: str) -> None:
    for title in titles:
        feed.post(title.split()[0], title=title)
    teller.collect(teller.follow(feed))


def test_a_watch_begins_with_what_comes_after_it_and_tells_of_each_item_once(both: Teller, feed: Feed) -> None:
    collected(both, feed, "a rust", "b zig")
    both.store.watches.add(Watch("w", ("rust",)), both.clock.now())
    collected(both, feed, "c rust", "d zig", "e Rust")
    assert look(both) == 2
    collected(both, feed, "f rust")
    assert (look(both), look(both)) == (1, 0)
    assert sorted(hits(both)) == [("w", "c rust", False), ("w", "e Rust", False), ("w", "f rust", False)]
    (shown,) = both.store.watches.page()
    assert shown.hit_count == 3
    (latest, *_) = both.store.watches.hits(shown.id)
    assert (latest.title, latest.words) == ("f rust", ("rust",))


def test_an_edit_is_told_of_only_where_edits_are_asked_for(both: Teller, feed: Feed) -> None:
    both.store.watches.add(Watch("new", ("rust",)), both.clock.now())
    both.store.watches.add(Watch("edits", ("rust",), is_for_edits=True), both.clock.now())
    collected(both, feed, "a zig")
    look(both)
    collected(both, feed, "a rust")
    look(both)
    assert hits(both) == [("edits", "a rust", True)]


def test_an_item_that_changed_before_the_watch_came_to_it_is_still_new_to_the_watch(both: Teller, feed: Feed) -> None:
    both.store.watches.add(Watch("w", ("rust",)), both.clock.now())
    collected(both, feed, "a zig", "b rust", "c rust")
    collected(both, feed, "a rust", "b rust")
    assert look(both, batch=1) == 3
    assert sorted(hits(both)) == [("w", "a rust", False), ("w", "b rust", False), ("w", "c rust", False)]


def test_changed_counters_are_nothing_to_look_at(both: Teller, feed: Feed) -> None:
    both.store.watches.add(Watch("w", ("rust",), is_for_edits=True), both.clock.now())
    collected(both, feed, "a rust")
    look(both)
    both.store.database.write(lambda tx: tx.run("UPDATE ledger SET change_number = change_number + 1"))
    assert look(both) == 0
    assert (both.store.watches.waiting_for_new(), both.store.watches.waiting_for_edits()) == ([], [])


@pytest.mark.parametrize("batch", [1, 2, 3, 7])
def test_batches_of_any_size_skip_nothing_and_repeat_nothing(both: Teller, feed: Feed, batch: int) -> None:
    both.store.watches.add(Watch("early", ("rust",)), both.clock.now())
    collected(both, feed, *(f"{number} rust" for number in range(5)))
    both.store.watches.add(Watch("late", ("rust",), is_for_edits=True), both.clock.now())
    collected(both, feed, *(f"{number} rust again" for number in range(3, 9)))
    # Bounded: what is left waits for the next tick.
    while both.store.watches.waiting_for_new() or both.store.watches.waiting_for_edits():
        look(both, batch=batch, most=1)
    told = hits(both)
    assert sorted(title.split()[0] for watch, title, _ in told if watch == "early") == [*"012345678"]
    assert sorted((title.split()[0], is_edit) for watch, title, is_edit in told if watch == "late") == [
        *((name, True) for name in "34"),
        *((name, False) for name in "5678"),
    ]


def test_killed_before_the_commit_it_looks_again_and_after_it_never(both: Teller, feed: Feed) -> None:
    both.store.watches.add(Watch("w", ("rust",)), both.clock.now())
    collected(both, feed, "a rust", "b rust")
    watches, database = both.store.watches, both.store.database

    class Killed(BaseException):
        pass

    def dying(action: Any) -> Any:
        def die(tx: Any) -> None:
            action(tx)
            raise Killed

        return type(database).write(database, die)

    database.write = dying
    with pytest.raises(Killed):
        look(both)
    del database.write
    assert hits(both) == []
    (waiting,) = watches.waiting_for_new()
    items = watches.stored_after(waiting.last_item_id, 10)
    assert look(both) == 2
    # Whoever had read before and comes too late changes nothing.
    watches.saw_new(
        [(waiting, fitting(waiting.watch, [WatchedItem(item) for item in items]))], items[-1].id, both.clock.now()
    )
    assert len(hits(both)) == 2
    assert watches.page()[0].hit_count == 2


def test_a_pause_is_a_pause_and_nothing_of_it_is_told_later(both: Teller, feed: Feed) -> None:
    number = both.store.watches.add(Watch("w", ("rust",)), both.clock.now())
    both.store.watches.pause(number)
    collected(both, feed, "a rust")
    assert look(both) == 0
    both.store.watches.resume(number)
    collected(both, feed, "b rust")
    both.store.watches.resume(number)
    assert look(both) == 1
    assert hits(both) == [("w", "b rust", False)]


def test_only_the_latest_hits_are_kept_but_all_are_counted_and_told(both: Teller, feed: Feed) -> None:
    number = both.store.watches.add(Watch("w", ("rust",)), both.clock.now())
    feed.window = 1000
    collected(both, feed, *(f"{number} rust" for number in range(130)))
    assert look(both, batch=60) == 130
    assert len(both.store.watches.hits(number, 1000)) == 100
    assert both.store.watches.get(number).hit_count == 130
    assert len(hits(both)) == 130


def test_names_are_unique_and_a_removed_watch_is_gone_with_its_hits(both: Teller, feed: Feed) -> None:
    number = both.store.watches.add(Watch("w", ("rust",)), both.clock.now())
    with pytest.raises(Conflict):
        both.store.watches.add(Watch("w", ("zig",)), both.clock.now())
    collected(both, feed, "a rust")
    look(both)
    both.store.watches.remove(number)
    for question in (both.store.watches.get, both.store.watches.remove, both.store.watches.pause):
        with pytest.raises(NotFound):
            question(number)
    assert both.store.watches.hits(number) == []


def test_a_trial_shows_what_would_have_fitted_and_writes_nothing(both: Teller, feed: Feed) -> None:
    collected(both, feed, "a rust", "b zig", "c rust")
    before = both.events()
    found, looked = tried(both.store.watches, Watch("w", ("rust",)), 100)
    assert {hit.item.title for hit in found} == {"c rust", "a rust"}
    assert looked == 3
    assert both.events() == before
