"""An entry that comes to the letter as it came before is not thought about again; and nothing depends on that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.collect import source_client
from catchment.model import Counts
from catchment.text import clean
from tests.town import Feed, TownApp

HOUR = timedelta(hours=1)


@pytest.fixture
def refined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of all that was refined, in order."""
    seen: list[str] = []

    def watched(reading, **more):  # type: ignore[no-untyped-def]
        seen.extend(item.external_id for item in reading.items)
        return clean.refine(reading, **more)

    monkeypatch.setattr(source_client, "refine", watched)
    return seen


def posted(here: TownApp) -> Feed:
    feed = here.town.feed()
    for number in range(4):
        feed.post(f"p{number}", f"text {number}", at=here.clock.now() - (4 - number) * HOUR)
    return feed


def test_only_what_is_new_or_changed_is_refined(here: TownApp, refined: list[str]) -> None:
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    refined.clear()
    feed.post("p1", "second thoughts")
    feed.post("p4", at=here.clock.now())
    (result,) = here.collect(source)
    assert sorted(refined) == ["p1", "p4"]
    assert result.counts == Counts(new=1, updated=1, duplicate=3)
    assert here.item("p0")["last_seen_at"] == here.clock.now().isoformat()


def test_an_item_that_is_not_held_any_more_is_taken_in_again(here: TownApp) -> None:
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    lost = here.item("p2")["id"]

    def forget(tx) -> None:  # type: ignore[no-untyped-def]
        tx.run("DELETE FROM sightings WHERE item_id = ?", lost)
        tx.run("DELETE FROM items WHERE id = ?", lost)

    here.app.store.database.write(forget)
    feed.post("p4", at=here.clock.now())
    (result,) = here.collect(source)
    assert result.counts == Counts(new=2, duplicate=3)
    assert here.item("p2")["text"] == "text 2"


def test_a_text_that_was_not_taken_over_while_it_flipped_is_taken_over_the_next_day(quick: TownApp) -> None:
    feed = posted(quick)
    source = quick.follow(feed)
    quick.collect(source)
    for turn in range(9):
        feed.post("p1", "there" if turn % 2 == 0 else "and back")
        quick.collect(source)
    assert len(quick.revisions("p1")) < 9
    feed.post("p1", "there")
    quick.collect(source, after=timedelta(days=3))
    feed.post("p9", at=quick.clock.now())
    quick.collect(source)
    assert quick.item("p1")["text"] == "there"
