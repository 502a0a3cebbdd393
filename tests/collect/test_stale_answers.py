"""200 with old data is a failure, not a success."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from catchment.jobs import notice_silence
from catchment.model import Counts, Outcome
from tests.town import Feed, TownShop

HOUR = timedelta(hours=1)


def with_history(here: TownShop) -> tuple[Feed, object, dict]:  # type: ignore[type-arg]
    """A feed that was seen twice; gives how it looked the first time as well."""
    feed = here.town.feed(window=6)
    for number in range(4):
        feed.post(f"p{number}", f"text {number}", at=here.clock.now() - (4 - number) * HOUR)
    source = here.follow(feed)
    here.collect(source)
    then = dict(feed.entries)
    feed.post("p1", "edited", at=feed.entries["p1"]["at"])
    feed.post("p4", at=here.clock.now())
    here.collect(source)
    return feed, source, then


def test_yesterdays_copy_is_called_stale_and_moves_nothing(here: TownShop) -> None:
    feed, source, then = with_history(here)
    before = here.progress(source)
    feed.entries = then
    (result,) = here.collect(source)
    assert (result.outcome, result.error_code, result.counts) == (Outcome.FAILED, "STALE_ANSWER", Counts(duplicate=4))
    assert here.item("p1")["text"] == "edited"
    assert len(here.revisions("p1")) == 1
    assert here.progress(source).watermark == before.watermark
    assert [alert["source_id"] for alert in here.shop.store.alerts.open()] == [source.id]


def test_the_visit_after_a_stale_answer_gets_the_whole_answer_again(here: TownShop) -> None:
    feed, source, then = with_history(here)
    now, feed.entries = feed.entries, then
    here.collect(source)
    feed.entries = now
    feed.post("p5", at=here.clock.now())
    (result,) = here.collect(source)
    assert (result.outcome, result.counts) == (Outcome.SUCCEEDED, Counts(new=1, duplicate=5))
    assert here.shop.store.alerts.open() == []


def test_a_stale_answer_still_gives_what_was_never_seen(quick: TownShop) -> None:
    feed, source, then = with_history(quick)
    feed.entries = then
    feed.post("late", at=quick.clock.now() - 3 * HOUR)
    (result,) = quick.collect(source)
    assert (result.error_code, result.counts.new) == ("STALE_ANSWER", 1)


def test_a_source_that_was_really_put_back_is_believed_after_three_answers(quick: TownShop) -> None:
    feed, source, then = with_history(quick)
    feed.is_conditional = False
    feed.entries = then
    outcomes = [quick.collect(source)[0].outcome for _ in range(4)]
    assert outcomes == [Outcome.FAILED] * 3 + [Outcome.SUCCEEDED]
    assert quick.item("p1")["text"] == "text 1"


def test_an_entry_that_was_taken_down_does_not_make_the_answer_stale(quick: TownShop) -> None:
    feed, source, _ = with_history(quick)
    feed.remove("p4")
    (result,) = quick.collect(source)
    assert result.outcome == Outcome.SUCCEEDED


def test_a_source_silent_beyond_its_own_rhythm_raises_an_alert_that_closes_by_itself(here: TownShop) -> None:
    feed = here.town.feed(window=30)
    for number in range(12):
        feed.post(f"p{number}", at=here.clock.now() - (12 - number) * HOUR)
    source = here.follow(feed)
    here.collect(source)
    # An hour apart, polled every four: silence is told from 2 × 4 h on.
    here.collect(source, after=6 * HOUR)
    notice_silence(here.shop)
    assert here.shop.store.alerts.open() == []
    here.collect(source, after=3 * HOUR)
    notice_silence(here.shop)
    (alert,) = here.shop.store.alerts.open()
    assert (alert["source_id"], "nothing new" in alert["message"]) == (source.id, True)
    feed.post("awake", at=here.clock.now())
    here.collect(source)
    notice_silence(here.shop)
    assert here.shop.store.alerts.open() == []


def test_silence_of_a_whole_platform_is_one_alert(quick: TownShop) -> None:
    sources = []
    for name in ("a", "b", "c"):
        feed = quick.town.feed(name, window=30)
        for number in range(12):
            feed.post(f"p{number}", at=quick.clock.now() - (12 - number) * HOUR)
        sources.append(quick.follow(feed))
    quick.collect(*sources)
    quick.collect(*sources, after=20 * HOUR)
    notice_silence(quick.shop)
    assert [alert["subject"] for alert in quick.shop.store.alerts.open()] == ["platform feeds silent"]


def test_the_silence_of_a_named_canary_is_told_within_twice_its_interval(quick: TownShop) -> None:
    sources = []
    for name, pause in (("busy", HOUR / 4), ("quiet", 20 * HOUR)):
        feed = quick.town.feed(name, window=30)
        for number in range(12):
            feed.post(f"p{number}", at=quick.clock.now() - (12 - number) * pause)
        sources.append(quick.follow(feed))
    quick.collect(*sources)
    fell_silent_at = quick.clock.now()
    quick.shop.settings = replace(quick.shop.settings, canaries={"feeds": sources[0].id})
    for _ in range(2):
        quick.collect(*sources, after=4 * HOUR)
        notice_silence(quick.shop)
    (alert,) = quick.shop.store.alerts.open()
    assert alert["subject"] == "platform feeds silent"
    assert quick.clock.now() - fell_silent_at <= 2 * 4 * HOUR
    quick.town.feed("busy").post("awake", at=quick.clock.now())
    quick.collect(*sources)
    notice_silence(quick.shop)
    assert quick.shop.store.alerts.open() == []
