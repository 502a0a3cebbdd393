"""An entry that comes to the letter as it came before is not thought about again; and nothing depends on that."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest

from catchment.collect import source_client
from catchment.model import Answer, Counts, Reading, Request
from catchment.platforms import feeds
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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of all that was parsed, in order."""
    seen: list[str] = []
    read = feeds.read

    def watched(answer: Answer, request: Request) -> Reading:
        reading = read(answer, request)
        seen.extend(item.external_id for item in reading.items)
        return reading

    monkeypatch.setattr(feeds, "read", watched)
    return seen


def test_only_what_is_new_or_changed_is_parsed(here: TownApp, parsed: list[str]) -> None:
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    parsed.clear()
    feed.post("p1", "second thoughts")
    feed.post("p4", at=here.clock.now())
    (result,) = here.collect(source)
    assert sorted(parsed) == ["p1", "p4"]
    assert result.counts == Counts(new=1, updated=1, duplicate=3)
    assert here.item("p0")["last_seen_at"] == here.clock.now().isoformat()


def test_a_304_between_two_answers_changes_nothing_about_that(quick: TownApp, parsed: list[str]) -> None:
    feed = posted(quick)
    source = quick.follow(feed)
    quick.collect(source)
    quick.collect(source)
    parsed.clear()
    feed.post("p4", at=quick.clock.now())
    quick.collect(source)
    assert parsed == ["p4"]


def test_all_is_parsed_again_where_the_feed_says_something_else_about_all(quick: TownApp, parsed: list[str]) -> None:
    feed = posted(quick)
    source = quick.follow(feed)
    quick.collect(source)
    parsed.clear()
    feed.title = "Another title"
    feed.post("p4", at=quick.clock.now())
    quick.collect(source)
    assert sorted(parsed) == ["p0", "p1", "p2", "p3", "p4"]


def test_all_is_parsed_again_after_an_answer_that_was_not_stored_whole(quick: TownApp, parsed: list[str]) -> None:
    feed = posted(quick)
    source = quick.follow(feed)
    quick.collect(source)
    whole = feed.body()
    torn = whole[: whole.rindex(b"<item>") + 30]
    feed.says.append(lambda request, now: Answer(200, {}, torn, request.url, now))
    quick.collect(source)
    parsed.clear()
    feed.post("p4", at=quick.clock.now())
    quick.collect(source)
    assert sorted(parsed) == ["p0", "p1", "p2", "p3", "p4"]


def test_all_is_parsed_again_where_a_new_entry_is_not_utf8(quick: TownApp, parsed: list[str]) -> None:
    feed = posted(quick)
    source = quick.follow(feed)
    quick.collect(source)
    parsed.clear()
    feed.post("p4", "Ünö", at=quick.clock.now())
    latin = feed.body().replace("Ünö".encode(), "Ünö".encode("latin-1"))
    for _ in range(2):
        feed.says.append(lambda request, now: Answer(200, {}, latin + b" ", request.url, now))
        feed.says.append(lambda request, now: Answer(200, {}, latin, request.url, now))
    for _ in range(2):
        quick.collect(source)
        assert {"p0", "p1", "p2", "p3", "p4"} <= {*parsed}
        parsed.clear()
    assert quick.item("p4")["text"] == "Ünö"


def test_an_entry_with_the_id_of_an_unchanged_one_is_told_apart_from_it(quick: TownApp) -> None:
    feed = posted(quick)
    source = quick.follow(feed)
    quick.collect(source)
    twin = feed.body().replace(b"</channel>", _entry("p2", "https://feeds.example/other") + b"</channel>")
    feed.says.append(lambda request, now: Answer(200, {}, twin, request.url, now))
    quick.collect(source)
    ids = {item["external_id"] for item in quick.items()}
    assert "p2 https://feeds.example/other" in ids
    assert quick.item("p2")["text"] == "text 2"


def _entry(key: str, link: str) -> bytes:
    return f'<item><guid isPermaLink="false">{key}</guid><link>{link}</link><title>Another</title></item>'.encode()


def test_whatever_a_feed_does_the_archive_is_as_if_every_answer_was_parsed_whole(tmp_path: Path) -> None:
    told: list[object] = []
    for name in ("in parts", "whole"):
        home = TownApp(tmp_path / name, f"sqlite:///{tmp_path / name}.db")
        try:
            told.append(_chronicle(home, is_whole=name == "whole"))
        finally:
            home.close()
    assert told[0] == told[1]


TEXTS = ("text", "<p>An <item> in a text</p>", "]]> & <!-- </item>", "文字", "<b>bold</b>", "")


def _chronicle(home: TownApp, *, is_whole: bool) -> object:
    """What is stored and was said after each of many visits to a feed that changes at random."""
    chance, feed = random.Random(7), home.town.feed(window=6, is_conditional=False)
    source, told = home.follow(feed), []
    for step in range(40):
        for _ in range(chance.choice((0, 1, 1, 2))):
            at = home.clock.now() - timedelta(minutes=chance.choice((0, 0, 1, 600)))
            key = f"p{step}" if chance.random() < 0.6 else chance.choice([*feed.entries, "p0"])
            feed.post(key, chance.choice(TEXTS), at=chance.choice((at, at, at, None)))
            feed.entries[key]["link"] = chance.choice((key, key, "shared"))
        if feed.entries and chance.random() < 0.2:
            feed.remove(chance.choice([*feed.entries]))
        feed.title = chance.choice(("A feed", "A feed", "A feed", "Another"))
        if is_whole:
            home.app.store.database.write(lambda tx: tx.run("DELETE FROM shown_entries"))
        (result,) = home.collect(source)
        told.append((result.counts, result.outcome, result.watermark_after, result.notes))
    return told, home.items(), [home.revisions(item["external_id"]) for item in home.items()], home.gaps()
