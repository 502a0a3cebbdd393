"""Which old items are removed: those that no source keeps or shows any more."""

from __future__ import annotations

from catchment.policy.retention import Sighting, still_shown_since, unwanted

HOUR = 3_600_000_000
OLD, YOUNG, LAST_VISIT = 10 * HOUR, 50 * HOUR, 60 * HOUR
KEEP_FROM = {"feed": 40 * HOUR}
SHOWN_SINCE = {1: still_shown_since(LAST_VISIT)}


def test_an_item_older_than_its_kind_keeps_is_removed_and_a_younger_one_stays() -> None:
    seen = [Sighting(1, 1, "feed", OLD, OLD), Sighting(2, 1, "feed", YOUNG, YOUNG)]
    assert unwanted([1, 2], seen, KEEP_FROM, SHOWN_SINCE) == [1]


def test_an_item_that_its_source_still_shows_stays_however_old() -> None:
    first_page = Sighting(1, 1, "feed", OLD, LAST_VISIT - HOUR)
    assert unwanted([1], [first_page], KEEP_FROM, SHOWN_SINCE) == []
    before = first_page._replace(last_seen_at=LAST_VISIT - HOUR - 1)
    assert unwanted([1], [before], KEEP_FROM, SHOWN_SINCE) == [1]


def test_a_source_that_is_not_collected_shows_nothing() -> None:
    assert unwanted([1], [Sighting(1, 2, "feed", OLD, LAST_VISIT)], KEEP_FROM, SHOWN_SINCE) == [1]


def test_an_item_stays_as_long_as_one_of_its_sources_keeps_it() -> None:
    seen = [Sighting(1, 1, "feed", OLD, OLD), Sighting(1, 2, "forum", OLD, OLD)]
    assert unwanted([1], seen, KEEP_FROM, SHOWN_SINCE) == []
    assert unwanted([1], seen, {**KEEP_FROM, "forum": 40 * HOUR}, SHOWN_SINCE) == [1]
