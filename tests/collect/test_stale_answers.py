"""200 with old data is a failure, not a success."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from catchment.jobs import notice_silence
from catchment.model import Counts, Outcome, Source
from tests.town import Feed, TownApp

HOUR = timedelta(hours=1)


def with_history(here: TownApp) -> tuple[Feed, object, dict]:  # type: ignore[type-arg]
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


def test_yesterdays_copy_is_called_stale_and_moves_nothing(here: TownApp) -> None:
    feed, source, then = with_history(here)
    before = here.progress(source)
    feed.entries = then
    (result,) = here.collect(source)
    assert (result.outcome, result.error_code, result.counts) == (Outcome.FAILED, "STALE_ANSWER", Counts(duplicate=4))
    assert here.item("p1")["text"] == "edited"
    assert len(here.revisions("p1")) == 1
    assert here.progress(source).watermark == before.watermark
    assert [alert.source_id for alert in here.app.store.alerts.open()] == [source.id]


def test_the_visit_after_a_stale_answer_gets_the_whole_answer_again(here: TownApp) -> None:
    feed, source, then = with_history(here)
    now, feed.entries = feed.entries, then
    here.collect(source)
    feed.entries = now
    feed.post("p5", at=here.clock.now())
    (result,) = here.collect(source)
    assert (result.outcome, result.counts) == (Outcome.SUCCEEDED, Counts(new=1, duplicate=5))
    assert here.app.store.alerts.open() == []


def test_a_stale_answer_still_gives_what_was_never_seen(quick: TownApp) -> None:
    feed, source, then = with_history(quick)
    feed.entries = then
    feed.post("late", at=quick.clock.now() - 3 * HOUR)
    (result,) = quick.collect(source)
    assert (result.error_code, result.counts.new) == ("STALE_ANSWER", 1)


def test_a_source_that_was_really_put_back_is_believed_after_three_answers(quick: TownApp) -> None:
    feed, source, then = with_history(quick)
    feed.is_conditional = False
    feed.entries = then
    outcomes = [quick.collect(source)[0].outcome for _ in range(4)]
    assert outcomes == [Outcome.FAILED] * 3 + [Outcome.SUCCEEDED]
    assert quick.item("p1")["text"] == "text 1"


def test_an_entry_that_was_taken_down_does_not_make_the_answer_stale(quick: TownApp) -> None:
    feed, source, _ = with_history(quick)
    feed.remove("p4")
    (result,) = quick.collect(source)
    assert result.outcome == Outcome.SUCCEEDED


def test_a_source_silent_beyond_its_own_rhythm_raises_an_alert_that_closes_by_itself(here: TownApp) -> None:
    feed = here.town.feed(window=30)
    for number in range(12):
        feed.post(f"p{number}", at=here.clock.now() - (12 - number) * HOUR)
    source = here.follow(feed)
    here.collect(source)
    # An hour apart, polled every four: silence is told from 2 × 4 h on.
    here.collect(source, after=6 * HOUR)
    notice_silence(here.app)
    assert here.app.store.alerts.open() == []
    here.collect(source, after=3 * HOUR)
    notice_silence(here.app)
    (alert,) = here.app.store.alerts.open()
    assert (alert.source_id, "nothing new" in alert.message) == (source.id, True)
    feed.post("awake", at=here.clock.now())
    here.collect(source)
    notice_silence(here.app)
    assert here.app.store.alerts.open() == []


def test_silence_of_a_whole_platform_is_one_alert(quick: TownApp) -> None:
    sources = []
    for name in ("a", "b", "c"):
        feed = quick.town.feed(name, window=30)
        for number in range(12):
            feed.post(f"p{number}", at=quick.clock.now() - (12 - number) * HOUR)
        sources.append(quick.follow(feed))
    quick.collect(*sources)
    quick.collect(*sources, after=20 * HOUR)
    notice_silence(quick.app)
    assert [alert.subject for alert in quick.app.store.alerts.open()] == ["platform feeds silent"]


def test_the_silence_of_a_named_canary_is_told_within_twice_its_interval(quick: TownApp) -> None:
    sources = []
    for name, pause in (("busy", HOUR / 4), ("quiet", 20 * HOUR)):
        feed = quick.town.feed(name, window=30)
        for number in range(12):
            feed.post(f"p{number}", at=quick.clock.now() - (12 - number) * pause)
        sources.append(quick.follow(feed))
    quick.collect(*sources)
    fell_silent_at = quick.clock.now()
    quick.app.settings = replace(quick.app.settings, canaries={"feeds": sources[0].id})
    for _ in range(2):
        quick.collect(*sources, after=4 * HOUR)
        notice_silence(quick.app)
    (alert,) = quick.app.store.alerts.open()
    assert alert.subject == "platform feeds silent"
    assert quick.clock.now() - fell_silent_at <= 2 * 4 * HOUR
    quick.town.feed("busy").post("awake", at=quick.clock.now())
    quick.collect(*sources)
    notice_silence(quick.app)
    assert quick.app.store.alerts.open() == []


def followed_late(here: TownApp, name: str, *, silent_for: timedelta) -> Source:
    """A feed with an hourly rhythm that stopped some time before it was followed; visited once."""
    feed = here.town.feed(name, window=30)
    for number in range(20):
        feed.post(f"p{number}", at=here.clock.now() - silent_for - number * HOUR)
    source = here.follow(feed)
    here.collect(source)
    return source


def test_a_source_that_was_silent_before_it_was_followed_raises_no_alert(here: TownApp) -> None:
    sources = [followed_late(here, name, silent_for=timedelta(days=7)) for name in ("a", "b", "c")]
    for _ in range(5):
        notice_silence(here.app)
        assert here.app.store.alerts.open() == []
        here.collect(*sources, after=4 * HOUR)
    assert [here.progress(source).expected_by for source in sources] == [None] * 3


def test_the_silence_before_the_first_visit_is_not_counted(quick: TownApp) -> None:
    # An hourly rhythm, asked every four hours: it may be silent for eight. Six have passed when it is followed.
    source = followed_late(quick, "a", silent_for=6 * HOUR)
    first_visit = quick.clock.now()
    assert quick.progress(source).expected_by == first_visit + 8 * HOUR
    quick.collect(source, after=4 * HOUR)
    notice_silence(quick.app)
    assert quick.app.store.alerts.open() == []
    quick.collect(source, after=4 * HOUR)
    notice_silence(quick.app)
    assert [alert.source_id for alert in quick.app.store.alerts.open()] == [source.id]


def test_a_source_that_woke_up_is_judged_by_what_came_since_it_is_followed(quick: TownApp) -> None:
    source = followed_late(quick, "a", silent_for=timedelta(days=7))
    feed = quick.town.feed("a")
    for number in range(10):
        assert quick.progress(source).expected_by is None
        feed.post(f"new {number}", at=quick.clock.now() + 23 * HOUR)
        quick.collect(source, after=24 * HOUR)
    assert quick.progress(source).expected_by == feed.entries["new 9"]["at"] + 5 * 24 * HOUR
