"""A mended reader corrects what an older one made of the kept answers: as of their time, once, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from catchment.clock import micros
from catchment.collect.reparse import Reparsed, Reparsing
from catchment.errors import Unreadable
from catchment.model import (
    Answer,
    Item,
    Platform,
    Reading,
    Request,
)
from catchment.platforms import Platforms, feeds
from catchment.store.items.reparse import ReparseCounts
from tests.town import TownApp

Flaw = Callable[[Item], Item | None]


def said(item: Item) -> str:
    return item.text or item.html or ""


def none(item: Item) -> Item | None:
    return item


def half_of_the_text(item: Item) -> Item | None:
    return item.replace(text=said(item).split(" and ")[0], html=None)


def blind_to_long_ones(item: Item) -> Item | None:
    return None if " and " in said(item) else item


def blind_to_dates(item: Item) -> Item | None:
    return item.replace(created_at=None)


def blind_to_authors_and_tags(item: Item) -> Item | None:
    return item.replace(author=None, tags=())


def in_brief(item: Item) -> Item | None:
    return item.replace(is_partial=True) if "whole" not in said(item) else item


def reader(version: int, flaw: Flaw = none, **more: Any) -> Platform:
    """The reader of feeds, with a flaw."""

    def read(answer: Answer, request: Request) -> Reading:
        reading = feeds.read(answer, request)
        return reading.replace(items=tuple(seen for item in reading.items if (seen := flaw(item)) is not None))

    return cast(Platform, SimpleNamespace(**(vars(feeds) | {"read": read, "PARSER_VERSION": version} | more)))


def use(here: TownApp, platform: Platform) -> None:
    here.app.platforms = Platforms((platform,))


def reparse(here: TownApp, *, is_dry: bool = False, **wanted: Any) -> Reparsed:
    app = here.app
    reparsing = Reparsing(app.store, app.platforms, 1_000_000, app.stop, here.clock.now(), is_dry=is_dry)
    return reparsing.run(reparsing.filter(**wanted))


def rows(here: TownApp) -> list[list[tuple[Any, ...]]]:
    """Everything that reading again could change."""
    tables = ("items", "revisions", "sightings", "item_tags", "item_references", "aliases", "ledger")
    read = here.app.store.database.read
    return [read(lambda tx, table=table: tx.all(f"SELECT * FROM {table} ORDER BY 1, 2, 3")) for table in tables]  # type: ignore[misc]


def test_the_version_that_an_answer_produced_is_corrected_and_dated_as_it_was(here: TownApp) -> None:
    use(here, reader(1, half_of_the_text))
    feed = here.town.feed()
    feed.post("a", "this and that")
    source = here.follow(feed)
    here.collect(source)
    before = here.item("a")
    here.clock.advance(3600)

    use(here, reader(2))
    assert reparse(here) == Reparsed(1, done=ReparseCounts(mended=1))

    after = here.item("a")
    assert (before["text"], after["text"]) == ("this", "this and that")
    assert after["content_last_changed_at"] == before["content_last_changed_at"]
    assert after["change_number"] > before["change_number"]
    (told_before,) = here.revisions("a")
    assert (told_before["text"], told_before["reasons"]) == ("this", ["parser_mended"])
    assert told_before["valid_from"] == told_before["valid_to"] == before["first_seen_at"]


def test_an_old_version_is_corrected_where_it_stands(here: TownApp) -> None:
    use(here, reader(1, half_of_the_text))
    feed = here.town.feed()
    source = here.follow(feed)
    times = []
    for text in ("one and 1", "two and 2", "three and 3"):
        feed.post("a", text)
        here.collect(source)
        times.append(here.clock.now().isoformat())

    use(here, reader(2))
    assert reparse(here).done == ReparseCounts(mended=3)

    history = [revision for revision in here.revisions("a") if revision["valid_from"] < revision["valid_to"]]
    assert [(revision["text"], revision["valid_from"], revision["valid_to"]) for revision in history] == [
        ("one and 1", times[0], times[1]),
        ("two and 2", times[1], times[2]),
    ]
    assert (here.item("a")["text"], here.item("a")["content_last_changed_at"]) == ("three and 3", times[2])
    versions = [revision["version"] for revision in here.revisions("a")]
    assert versions == list(range(1, here.item("a")["version"]))
    mended = [revision["text"] for revision in here.revisions("a") if revision["reasons"] == ["parser_mended"]]
    assert mended == ["one", "two", "three"]


def test_a_short_form_that_is_read_again_mends_itself_and_nothing_that_was_told_whole(here: TownApp) -> None:
    use(here, reader(1, lambda item: in_brief(item.replace(title="Half"))))
    feed = here.town.feed()
    source = here.follow(feed)
    for key in "ab":
        feed.post(key, "in brief", title=key.upper())
    here.collect(source)
    feed.post("a", "the whole of it", title="A")
    here.collect(source)
    assert [(here.item(key)["text"], here.item(key)["is_partial"]) for key in "ab"] == [
        ("the whole of it", False),
        ("in brief", True),
    ]

    use(here, reader(2, in_brief))
    reparse(here)
    assert [(here.item(key)["title"], here.item(key)["text"]) for key in "ab"] == [
        ("A", "the whole of it"),
        ("B", "in brief"),
    ]
    assert here.item("b")["is_partial"]


def test_an_edit_that_the_old_reader_was_blind_to_is_dated_when_it_was_shown(here: TownApp) -> None:
    use(here, reader(1, half_of_the_text))
    feed = here.town.feed()
    source = here.follow(feed)
    for text in ("one and 1", "one and 2"):
        feed.post("a", text)
        here.collect(source)
    shown_at = here.clock.now().isoformat()
    here.clock.advance(3600)

    use(here, reader(2))
    reparse(here)

    *_, before = here.revisions("a")
    assert (before["text"], before["valid_to"]) == ("one and 1", shown_at)
    assert before["reasons"] == ["content_fingerprint_changed", "parser_mended"]
    assert (here.item("a")["text"], here.item("a")["content_last_changed_at"]) == ("one and 2", shown_at)


def test_items_that_only_now_can_be_read_are_added_as_of_their_answer(here: TownApp) -> None:
    use(here, reader(1, blind_to_long_ones))
    feed = here.town.feed()
    feed.post("a", "short")
    feed.post("b", "long and longer")
    source = here.follow(feed)
    here.collect(source)
    shown_at = here.clock.now().isoformat()
    here.clock.advance(86_400)

    use(here, reader(2))
    assert reparse(here).done == ReparseCounts(new=1)
    assert here.item("b")["first_seen_at"] == here.item("b")["ordered_at"] == shown_at
    assert len(here.items(source)) == 2


def test_items_that_are_added_are_looked_at_again_at_the_ages_that_are_still_to_come(here: TownApp) -> None:
    ages = timedelta(hours=1), timedelta(days=3)
    looking = {"KINDS": tuple(kind.replace(recheck_ages=ages) for kind in feeds.KINDS)}
    use(here, reader(1, blind_to_long_ones, **looking))
    feed, posted_at = here.town.feed(), here.clock.now() - timedelta(hours=2)
    feed.post("a", "long and longer", at=posted_at)
    feed.post("b", "old and older", at=posted_at - timedelta(days=3))
    here.collect(here.follow(feed))
    here.clock.advance(86_400)

    use(here, reader(2, **looking))
    assert reparse(here).done == ReparseCounts(new=2)
    planned = here.app.store.database.read(
        lambda tx: tx.all("SELECT item_id, next_recheck_at, recheck_count FROM rechecks")
    )
    assert planned == [(here.item("a")["id"], micros(posted_at + ages[1]), 0)]


def test_an_item_that_was_shown_before_it_could_be_read_begins_earlier(here: TownApp) -> None:
    use(here, reader(1, blind_to_long_ones))
    feed = here.town.feed()
    source = here.follow(feed)
    feed.post("a", "long and longer")
    here.collect(source)
    first = here.clock.now().isoformat()
    feed.post("a", "short")
    here.collect(source)
    second = here.clock.now().isoformat()

    use(here, reader(2))
    assert reparse(here).done == ReparseCounts(mended=1)
    (before,) = here.revisions("a")
    assert (before["text"], before["valid_from"], before["valid_to"]) == ("long and longer", first, second)
    assert (here.item("a")["text"], here.item("a")["first_seen_at"]) == ("short", first)


def test_an_answer_that_could_not_be_read_is_read(here: TownApp) -> None:
    def stumble(item: Item) -> Item | None:
        raise Unreadable("one", "no idea")

    use(here, reader(1, stumble))
    feed = here.town.feed()
    feed.post("a", "said")
    source = here.follow(feed)
    here.collect(source)
    shown_at = here.clock.now().isoformat()
    assert reparse(here) == Reparsed(1, unreadable=1)
    here.clock.advance(3600)

    use(here, reader(1))
    assert reparse(here) == Reparsed(1, done=ReparseCounts(new=1))
    assert here.item("a")["first_seen_at"] == shown_at
    assert reparse(here) == Reparsed()


@pytest.mark.parametrize("flaw", [half_of_the_text, blind_to_long_ones, blind_to_dates, blind_to_authors_and_tags])
def test_reading_twice_changes_nothing_more(here: TownApp, flaw: Flaw) -> None:
    use(here, reader(1, flaw))
    feed = here.town.feed()
    source = here.follow(feed)
    for number in range(4):
        feed.post("a", f"this and {number // 2}", at=here.clock.now() - timedelta(days=2))
        feed.post(f"b{number}", f"that and {number}", at=here.clock.now() - timedelta(days=1))
        here.collect(source)
    use(here, reader(2))
    assert reparse(here).answers == 4
    settled = rows(here)
    assert reparse(here) == Reparsed()
    assert reparse(here, again=True) == Reparsed(4)
    assert rows(here) == settled
    here.collect(source)
    assert rows(here)[1] == settled[1], "the next visit has no revision to make"


def test_a_reader_that_has_not_changed_changes_nothing(here: TownApp) -> None:
    feed = here.town.feed()
    source = here.follow(feed)
    for number in range(12):
        # Flips more often than is taken over; then old copies come.
        feed.post("a", f"this and {number % 2}")
        feed.post(f"b{number % 5}", f"that and {number}", at=here.clock.now() - timedelta(minutes=30 - number))
        here.collect(source)
    settled = rows(here)
    assert reparse(here, again=True).done == ReparseCounts()
    assert rows(here) == settled


def test_a_date_that_is_read_at_last_moves_the_item_in_every_list(here: TownApp) -> None:
    use(here, reader(1, blind_to_dates))
    feed = here.town.feed()
    old = here.clock.now() - timedelta(days=30)
    feed.post("a", at=old)
    feed.post("b")
    source = here.follow(feed)
    here.collect(source)

    use(here, reader(2))
    assert reparse(here).done == ReparseCounts(details=1)
    assert here.item("a")["created_at"] == here.item("a")["ordered_at"] == old.isoformat()
    assert not here.item("a")["is_created_at_guessed"]
    assert [item["external_id"] for item in here.items(source)] == ["b", "a"]
    assert here.revisions("a") == []


def test_a_dry_run_says_what_it_would_come_to_and_writes_nothing(here: TownApp) -> None:
    use(here, reader(1, blind_to_long_ones))
    feed = here.town.feed()
    source = here.follow(feed)
    for number in range(3):
        feed.post("a", "long and longer")
        feed.post(f"b{number}", "short")
        here.collect(source)
    settled = rows(here)
    use(here, reader(2))
    assert reparse(here, is_dry=True).done.new == 1
    assert rows(here) == settled
    assert reparse(here).done.new == 1


def test_it_stops_between_two_answers_and_goes_on_from_there(here: TownApp) -> None:
    use(here, reader(1, half_of_the_text))
    feed = here.town.feed()
    source = here.follow(feed)
    for number in range(3):
        feed.post(f"{number}", f"{number} and more")
        here.collect(source)
    use(here, reader(2))
    app = here.app
    reparsing = Reparsing(app.store, app.platforms, 1_000_000, app.stop, here.clock.now(), is_dry=False)
    first = reparsing.run(reparsing.filter(), lambda _: app.stop.set())
    assert (first.answers, first.is_cut_off) == (1, True)
    app.stop.clear()
    assert reparse(here).answers == 2


def test_only_the_answers_that_were_asked_for_are_read_again(here: TownApp) -> None:
    use(here, reader(1, half_of_the_text))
    one, two = (here.follow(here.town.feed(name)) for name in ("one", "two"))
    for name in ("one", "two"):
        here.town.feed(name).post(name, "this and that")
    here.collect(one, two)
    noon = here.clock.now()
    here.town.feed("two").post("later", "this and that")
    here.collect(two)

    use(here, reader(2))
    assert reparse(here, since=noon + timedelta(seconds=1)).answers == 1
    assert reparse(here, source_id=one.id).answers == 1
    assert reparse(here, kind="website").answers == 0
    assert reparse(here, kind="rss").answers == 1
