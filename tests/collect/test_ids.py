"""Listings that show ids alone: what the archive does not hold is asked for, and nothing is proven before it came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
import pytest

from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
    Stopped,
    Unreadable,
)
from catchment.model import Outcome
from catchment.store.items.deletion import Forget
from tests.collect.numbers import NEW, SITE, START, Numbers
from tests.town import TownApp


@pytest.fixture
def here(tmp_path: Path, database_url: str) -> Iterator[TownApp]:
    app = TownApp(tmp_path / "home", database_url)
    yield app
    app.close()


# ── what is asked for ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_first_visit_asks_for_as_many_as_the_limit_says_from_the_top(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(30)
    result = numbers.collect()
    assert (numbers.stored(), result.counts.new, here.gaps()) == (set(range(20, 30)), 10, [])
    assert numbers.mark() == ("29",)


def test_later_only_what_is_not_held_is_asked_for_past_any_limit(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(30)
    numbers.collect()
    numbers.site.post(15)
    result = numbers.collect()
    assert sorted(numbers.site.asked) == list(range(30, 45))
    assert (result.counts.new, result.counts.duplicate, result.counts.shown) == (15, 10, 25)
    assert (numbers.mark(), here.gaps()) == (("44",), [])


def test_an_item_that_another_source_stored_is_not_asked_for_and_is_seen_by_both(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(5)
    numbers.collect()
    top = numbers.follow("top")
    numbers.site.top = [4, 2]
    result = numbers.collect(top)
    assert (numbers.site.asked, result.counts.duplicate) == ([], 2)
    assert numbers.stored(top) == {4, 2}


def test_a_ranked_listing_is_asked_for_its_first_places_only(here: TownApp) -> None:
    numbers = Numbers(here)
    top = numbers.follow("top")
    numbers.site.top = list(range(100, 130))
    numbers.collect(top)
    numbers.site.top = [7, 8, *range(100, 130)]
    result = numbers.collect(top)
    assert sorted(numbers.site.asked) == [7, 8]
    assert (result.counts.new, result.counts.duplicate, here.gaps()) == (2, 8, [])


def test_an_alias_is_held(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(3)
    numbers.collect()
    item_id = here.item("2")["id"]
    here.app.store.database.write(
        lambda tx: tx.insert(
            "aliases",
            ("platform", "scope", "external_id", "item_id", "noticed_at", "reason"),
            [("numbers", "", "99", item_id, 0, "told so")],
        )
    )
    top = numbers.follow("top")
    numbers.site.top = [99]
    assert (numbers.collect(top).counts.duplicate, numbers.site.asked, numbers.stored(top)) == (1, [], {2})


def test_what_was_forgotten_for_good_is_not_asked_for(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(3)
    numbers.collect()
    wanted = Forget("item", "numbers", "test", item_id=here.item("1")["id"])
    here.app.store.deletion.forget(wanted, here.clock.now())
    numbers.site.post(1)
    result = numbers.collect()
    assert (numbers.site.asked, numbers.stored(), result.counts.shown) == ([3], {0, 2, 3}, 4)


def test_a_list_that_is_unchanged_ends_the_visit(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(5)
    numbers.collect()
    result = numbers.collect()
    assert (result.outcome, result.counts.duplicate, numbers.site.asked) == (Outcome.UNCHANGED, 5, [])


def test_an_old_copy_of_the_list_is_a_failure_and_moves_nothing(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(5)
    old = msgspec.json.encode(numbers.site.shown(NEW))
    numbers.collect()
    numbers.site.post(1)
    numbers.collect()
    numbers.site.old_list = old
    result = numbers.collect()
    assert (result.outcome, result.error_code, numbers.mark()) == (Outcome.FAILED, "STALE_ANSWER", ("5",))


def test_a_few_are_asked_for_side_by_side_and_no_more_than_a_few(here: TownApp) -> None:
    numbers = Numbers(here, limit=28)
    numbers.site.post(28)
    together = Barrier(4, timeout=300)
    numbers.site.before_answering = lambda number: together.wait()
    numbers.collect()
    assert (len(numbers.stored()), numbers.site.most_at_once) == (28, 4)


def test_every_answer_is_kept_with_what_it_asked_for(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(3)
    numbers.collect()
    rows = here.app.store.database.read(lambda tx: tx.all("SELECT step, request, is_read FROM raw_answers"))
    told = {(step, msgspec.json.decode(request).get("item_id"), bool(is_read)) for step, request, is_read in rows}
    assert told == {("list", None, True), *(("item", str(number), True) for number in range(3))}
    assert here.item("2")["url"] == f"{SITE}/2.html"


# ── one bad item, or more than one ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "error",
    [
        Missing("404", status=404),
        Gone("410", status=410),
        Unreadable("no item"),
        Refused("403", status=403),
        ServerTrouble("500", status=500),
        KeyError("a slip of the reader's"),
    ],
)
def test_one_bad_item_is_counted_and_said_and_the_rest_is_stored(here: TownApp, error: Exception) -> None:
    numbers = Numbers(here)
    numbers.site.post(6)
    numbers.site.fails[3] = lambda: error
    result = numbers.collect()
    assert (result.outcome, result.counts.new, result.counts.invalid) == (Outcome.SUCCEEDED, 5, 1)
    assert any("could not be fetched" in note for note in result.notes)
    assert here.app.store.sources.get(numbers.source.id).state == "active"


def blamed_on_the_host() -> PlatformError:
    error = Refused("captcha")
    error.is_beyond_request = True
    return error


@pytest.mark.parametrize("error", [lambda: SlowDown("429", status=429), lambda: LoginNeeded("401"), blamed_on_the_host])
def test_what_blames_more_than_the_item_ends_the_visit_and_keeps_what_came(
    here: TownApp, error: Callable[[], Exception]
) -> None:
    numbers = Numbers(here)
    numbers.site.post(6)
    numbers.site.fails[2] = error
    result = numbers.collect()
    assert result.outcome == Outcome.FAILED
    assert {5, 4, 3} <= numbers.stored()
    assert (numbers.mark(), here.progress(numbers.source).etag) == (None, None)
    numbers.site.fails.clear()
    before = numbers.stored()
    numbers.collect()
    assert (numbers.stored(), numbers.mark()) == (set(range(6)), ("5",))
    assert not before & set(numbers.site.asked)


def test_a_host_in_trouble_is_not_asked_for_all_the_rest(here: TownApp) -> None:
    numbers = Numbers(here, limit=50)
    numbers.site.post(50)
    for number in range(48):
        numbers.site.fails[number] = lambda: ServerTrouble("500", status=500)
    result = numbers.collect()
    assert (result.outcome, result.error_code) == (Outcome.FAILED, "SERVER_TROUBLE")
    assert numbers.stored() == {49, 48}
    assert len(numbers.site.asked) < 15


def test_if_nothing_can_be_read_the_visit_has_failed(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(4)
    for number in range(4):
        numbers.site.fails[number] = lambda: Unreadable("no item")
    result = numbers.collect()
    assert (result.outcome, result.error_code, numbers.mark()) == (Outcome.FAILED, "UNREADABLE", None)


def test_what_is_not_there_yet_is_asked_for_again_though_the_list_is_the_same(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(5)
    numbers.site.hidden = {3}
    result = numbers.collect()
    assert (result.counts.new, result.counts.invalid, numbers.mark()) == (4, 1, ("4",))
    numbers.site.hidden = set()
    numbers.site.post(1)
    numbers.collect()
    assert sorted(numbers.site.asked) == [3, 5]
    numbers.site.hidden = {6}
    numbers.site.post(1)
    numbers.collect()
    numbers.site.hidden = set()
    result = numbers.collect()
    assert (numbers.site.asked, result.counts.new) == ([6], 1)
    assert numbers.collect().outcome == Outcome.UNCHANGED


# ── whether anything is missing ───────────────────────────────────────────────────────────────────────────────────


def test_more_than_the_list_reaches_is_a_known_gap_with_its_edges(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(10)
    numbers.collect()
    numbers.site.post(100)
    numbers.collect()
    (gap,) = here.gaps()
    edges = [numbers.site.at(number) for number in (9, 60)]
    assert (gap.certainty, gap.cause, [gap.from_at, gap.to_at]) == ("known", "reach", edges)
    assert (numbers.stored(), numbers.mark()) == ({*range(10), *range(60, 110)}, ("109",))


def test_a_late_arrival_of_an_old_date_hides_no_gap(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(10)
    numbers.collect()
    numbers.site.post(100)
    numbers.site.dates[80] = START
    numbers.collect()
    assert [gap.to_at for gap in here.gaps()] == [numbers.site.at(60)]


def test_what_another_source_stored_does_not_prove_that_this_one_is_whole(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(10)
    numbers.collect()
    numbers.site.post(100)
    numbers.site.dates[70] = START
    numbers.site.top = [70]
    numbers.collect(numbers.follow("top"))
    numbers.collect()
    assert [gap.cause for gap in here.gaps()] == ["reach"]


def test_a_visit_that_was_cut_between_two_batches_asks_only_for_what_is_missing(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(5)
    numbers.collect()
    numbers.site.post(45)
    write, written = here.app.store.page_writer.write, []

    class Killed(BaseException):
        pass

    def dies_before_the_third(page: Any, deciding: Any) -> Any:
        if len(written) == 2:
            raise Killed
        written.append(page)
        return write(page, deciding)

    claimed = here.app.store.sources.claim([numbers.source.id], here.app.presence.owner_id, here.clock.now())
    run_id = here.app.store.runs.begin("test", "test", here.app.presence.owner_id, here.clock.now())
    here.app.store.page_writer.write = dies_before_the_third  # type: ignore[method-assign]
    with pytest.raises(Killed):
        here.app.visitor().visit(claimed[0], run_id)
    here.app.store.page_writer.write = write  # type: ignore[method-assign]
    # The list and a first batch are stored; nothing of it counts as seen.
    assert (numbers.stored(), numbers.mark()) == ({*range(5), *range(20, 50)}, ("4",))
    here.app.presence.release_later(claimed[0].lease)
    here.app.presence.heartbeat(here.clock.now())
    numbers.collect()
    assert sorted(numbers.site.asked) == list(range(5, 20))
    assert (numbers.stored(), numbers.mark(), here.gaps()) == (set(range(50)), ("49",), [])


def test_a_stop_in_the_middle_loses_nothing_and_blames_nobody(here: TownApp) -> None:
    numbers = Numbers(here, limit=50)
    numbers.site.post(50)
    for number in range(10):
        numbers.site.fails[number] = lambda: Stopped("a stop was asked for")
    result = numbers.collect()
    assert (result.outcome, result.error_code) == (Outcome.SKIPPED, "STOPPED")
    assert numbers.stored() >= set(range(20, 50))
    numbers.site.fails.clear()
    numbers.collect()
    assert (numbers.stored(), numbers.mark()) == (set(range(50)), ("49",))


def test_a_list_too_long_for_one_visit_is_finished_by_the_next_and_proves_nothing_before(
    here: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catchment.collect.walk.MOST_PAGES", 2)
    numbers = Numbers(here, limit=50)
    numbers.site.post(50)
    result = numbers.collect()
    assert (len(numbers.stored()), numbers.mark()) == (30, None)
    assert any("will be fetched in the next collection" in note for note in result.notes)
    numbers.collect()
    assert (numbers.stored(), numbers.mark()) == (set(range(50)), ("49",))


def test_a_visit_has_finished_when_its_last_answer_came(here: TownApp) -> None:
    numbers = Numbers(here)
    numbers.site.post(5)
    numbers.site.before_answering = lambda number: here.clock.advance(10)
    result = numbers.collect()
    assert result.finished_at == here.clock.now()
