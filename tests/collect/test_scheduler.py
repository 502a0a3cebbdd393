"""A source brought up to date: nothing lost, nothing twice, every change told for what it is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.model import Counts, Outcome
from tests.town import Feed, TownApp

HOUR = timedelta(hours=1)


def posted(here: TownApp, count: int = 3, name: str = "one") -> Feed:
    """A feed with some entries, an hour apart, the last one a minute ago."""
    feed = here.town.feed(name)
    for number in range(count):
        feed.post(f"p{number}", f"text {number}", at=here.clock.now() - HOUR * (count - number))
    return feed


def test_a_first_visit_stores_everything_shown(here: TownApp) -> None:
    source = here.follow(posted(here))
    (result,) = here.collect()
    assert (result.outcome, result.counts) == (Outcome.SUCCEEDED, Counts(new=3))
    assert [item["external_id"] for item in here.items(source)] == ["p2", "p1", "p0"]
    assert here.item("p1")["text"] == "text 1"
    assert here.gaps() == []


def test_the_same_bytes_again_cost_no_writing_and_say_so(here: TownApp) -> None:
    feed = posted(here)
    feed.is_conditional = False
    source = here.follow(feed)
    here.collect(source)
    (result,) = here.collect(source)
    assert (result.outcome, result.counts) == (Outcome.UNCHANGED, Counts(duplicate=3))


def test_not_modified_is_a_success_that_shows_nothing(here: TownApp) -> None:
    source = here.follow(posted(here))
    here.collect(source)
    (result,) = here.collect(source)
    assert (result.outcome, result.counts, result.http_status) == (Outcome.UNCHANGED, Counts(), 304)


def post_is_edited(feed: Feed) -> None:
    feed.post("p1", "second thoughts")


def title_is_edited(feed: Feed) -> None:
    feed.post("p1", "text 1", title="Another title")


def only_spaces_change(feed: Feed) -> None:
    feed.post("p1", "text   1\n")


@pytest.mark.parametrize(
    ("when", "reasons"),
    [
        (post_is_edited, [["content_fingerprint_changed"]]),
        (title_is_edited, [["content_fingerprint_changed", "title_changed"]]),
        (only_spaces_change, []),
    ],
)
def test_only_a_change_of_content_leaves_a_revision(here: TownApp, when, reasons) -> None:  # type: ignore[no-untyped-def]
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    when(feed)
    (result,) = here.collect(source)
    assert [revision["reasons"] for revision in here.revisions("p1")] == reasons
    assert result.counts == Counts(updated=len(reasons), duplicate=3 - len(reasons))


def test_a_revision_keeps_what_was_said_and_until_when(here: TownApp) -> None:
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    first_seen = here.item("p1")["first_seen_at"]
    feed.post("p1", "second thoughts")
    here.collect(source)
    item, (revision,) = here.item("p1"), here.revisions("p1")
    assert (revision["text"], revision["version"], item["text"], item["version"]) == ("text 1", 1, "second thoughts", 2)
    assert revision["valid_from"] == first_seen
    assert revision["valid_to"] == item["content_last_changed_at"] == here.clock.now().isoformat()


def test_what_leaves_the_feed_is_not_deleted(here: TownApp) -> None:
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    feed.remove("p0")
    here.collect(source)
    assert here.item("p0")["is_deleted"] is False
    assert here.item("p0")["version"] == 1


def test_a_late_arrival_older_than_the_watermark_is_stored(here: TownApp) -> None:
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    mark = here.progress(source).watermark
    feed.post("late", at=here.clock.now() - 5 * HOUR)
    (result,) = here.collect(source)
    assert (result.counts.new, here.progress(source).watermark) == (1, mark)


def test_entries_of_the_same_second_are_all_stored(here: TownApp) -> None:
    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    at = feed.entries["p2"]["at"]
    feed.post("tie", at=at)
    here.collect(source)
    assert here.item("tie")["text"] == "text"
    assert set(here.progress(source).watermark.ids) == {"p2", "tie"}


def test_a_date_in_the_future_neither_heads_the_list_nor_poisons_the_watermark(here: TownApp) -> None:
    feed = posted(here)
    feed.post("future", at=here.clock.now() + timedelta(days=400))
    source = here.follow(feed)
    here.collect(source)
    assert here.progress(source).watermark.at == here.clock.now()
    assert here.item("future")["created_at"].startswith("2027-02")
    feed.post("later", at=here.clock.now() + timedelta(minutes=30))
    here.collect(source, after=HOUR)
    assert here.items(source)[0]["external_id"] == "later"
    assert here.gaps() == []


def test_an_entry_without_a_date_gets_the_time_it_was_first_seen(here: TownApp) -> None:
    feed = here.town.feed()
    feed.post("undated")
    here.follow(feed)
    here.collect()
    item = here.item("undated")
    assert (item["created_at"], item["is_created_at_guessed"]) == (here.clock.now().isoformat(), True)


def test_one_item_shown_by_two_sources_is_one_item_with_two_sightings(here: TownApp) -> None:
    feed = posted(here)
    first, second = here.follow(feed), here.follow(feed, kind="digest_feed")
    here.collect(first)
    here.collect(second)
    assert len(here.items()) == 3
    assert [len(here.items(source)) for source in (first, second)] == [3, 3]
    assert {item["source_id"] for item in here.items()} == {first.id}


def test_equal_ids_of_two_feeds_are_two_items(here: TownApp) -> None:
    for name in ("one", "two"):
        here.follow(posted(here, name=name))
    here.collect()
    assert len(here.items()) == 6


def test_a_feed_that_changes_all_its_ids_brings_nothing_new(here: TownApp) -> None:
    feed = posted(here, count=5)
    source = here.follow(feed)
    here.collect(source)
    feed.entries = {f"https://new.example/{key}": entry | {"link": key} for key, entry in feed.entries.items()}
    (result,) = here.collect(source)
    assert result.counts.new == 0
    assert (len(here.items()), here.gaps()) == (5, [])
    # And from then on the new ids are simply known.
    feed.post("https://new.example/p4", "edited under its new id", at=feed.entries["https://new.example/p4"]["at"])
    here.collect(source)
    assert here.item("p4")["text"] == "edited under its new id"
    assert len(here.items()) == 5


def test_the_same_words_posted_again_another_day_are_another_entry(here: TownApp) -> None:
    feed = here.town.feed(window=3)
    for day in range(3):
        feed.post(f"day {day}", "All systems operational", title="Status", at=here.clock.now() - (3 - day) * 24 * HOUR)
    source = here.follow(feed)
    here.collect(source)
    feed.post("day 3", "All systems operational", title="Status", at=here.clock.now() + HOUR)
    here.collect(source, after=2 * HOUR)
    assert len(here.items()) == 4


def test_a_removed_source_keeps_its_items_and_finds_them_again(here: TownApp) -> None:
    from catchment.sources.add import remove

    feed = posted(here)
    source = here.follow(feed)
    here.collect(source)
    remove(here.app.store, source.id, here.clock.now())
    assert here.collect() == []
    again = here.follow(feed)
    feed.post("p9", at=here.clock.now())
    here.collect(again)
    assert (again.id, len(here.items())) == (source.id, 4)


def test_the_source_takes_the_name_that_the_feed_gives_itself_unless_a_person_gave_one(here: TownApp) -> None:
    ours, theirs = posted(here, name="ours"), posted(here, name="theirs")
    ours.title = theirs.title = "What the feed says"
    named, unnamed = here.follow(ours, name="My name"), here.follow(theirs)
    here.collect()
    names = [here.app.store.sources.get(source.id).name for source in (named, unnamed)]
    assert names == ["My name", "What the feed says"]


def test_a_raw_answer_is_kept_and_can_be_unpacked(here: TownApp) -> None:
    import zstandard

    feed = posted(here)
    here.follow(feed)
    here.collect()
    ((body,),) = here.app.store.database.read(lambda tx: tx.all("SELECT body FROM raw_answers"))
    assert zstandard.ZstdDecompressor().decompress(bytes(body)) == feed.body()


def test_every_visit_leaves_a_record_with_the_watermarks_move(here: TownApp) -> None:
    source = here.follow(posted(here))
    here.collect(source)
    (visit,) = here.app.store.runs.of_source(source.id)
    (run,) = here.app.store.runs.page()
    assert (visit.outcome, visit.new_count, visit.request_count) == ("succeeded", 3, 1)
    assert (visit.watermark_before, visit.watermark_after) == (
        None,
        here.progress(source).watermark.at,
    )
    assert (run.source_count, run.succeeded, run.new_count, run.is_cut_off) == (1, 1, 3, False)


def test_changes_leave_an_event_in_the_outbox(here: TownApp) -> None:
    source = here.follow(posted(here))
    here.collect(source)
    here.collect(source)
    ((event, body),) = here.app.store.database.read(lambda tx: tx.all("SELECT event, body FROM outbox"))
    assert event == "items.collected"
    assert '"new":3' in body
