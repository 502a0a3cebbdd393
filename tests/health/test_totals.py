"""Counters only grow, whatever comes late and whatever is cleared."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from catchment.errors import ServerTrouble
from catchment.health.metrics import Totals
from catchment.store.cache import CacheCounts
from catchment.store.sources.metrics import count_attempts
from tests.town import TownApp

HOUR = timedelta(hours=1)


def totals(here: TownApp) -> Totals:
    return Totals(here.app.store.metrics, here.app.cache.counts, here.clock.now())


def grown(before: Counter[tuple[str, ...]], after: Counter[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    assert all(after[key] >= before[key] for key in before), "a counter never falls"
    return {key: after[key] - before[key] for key in after if after[key] != before[key] and key[0] != "microseconds"}


def test_what_happens_between_two_looks_is_counted_once_in_the_same_hour_and_across_hours(here: TownApp) -> None:
    counting = totals(here)
    feed = here.town.feed(window=1)
    source = here.follow(feed)
    before = counting.counted(here.clock.now())
    for after in (timedelta(minutes=1), HOUR, 5 * HOUR, 30 * HOUR):
        feed.post(f"p{after}", at=here.clock.now())
        here.collect(source, after=after)
        now = counting.counted(here.clock.now())
        assert grown(before, now) == {
            ("attempts", "feeds", "200"): 1,
            ("visits", "feeds", "rss", "succeeded"): 1,
            ("items", "feeds", "rss", "new"): 1,
        }
        before = now
        assert grown(before, counting.counted(here.clock.now())) == {}
    feed.says.append(ServerTrouble("in trouble", status=503))
    here.collect(source)
    assert grown(before, counting.counted(here.clock.now()))["visits", "feeds", "rss", "failed"] == 1


def test_what_is_written_late_into_the_last_hour_is_counted(quick: TownApp) -> None:
    counting = totals(quick)
    quick.clock.advance(3500)
    minute = quick.clock.now().replace(second=0)
    counting.counted(quick.clock.now())
    quick.clock.advance(1200)
    before = counting.counted(quick.clock.now())
    quick.app.store.database.write(lambda tx: count_attempts(tx, "reddit", {("429", minute): 3}))
    assert grown(before, counting.counted(quick.clock.now())) == {("attempts", "reddit", "429"): 3}


def test_what_is_cleared_stays_counted(quick: TownApp) -> None:
    counting = totals(quick)
    quick.app.store.cached_sources.count(quick.clock.now(), CacheCounts(hits=2, misses=1))
    quick.collect(quick.follow(quick.town.feed()))
    before = counting.counted(quick.clock.now())
    assert (before["hot", "hit"], before["hot", "miss"]) == (2, 1)
    for table in ("attempts", "run_sources", "hot_counts"):
        quick.app.store.database.write(lambda tx, table=table: tx.run(f"DELETE FROM {table}"))  # type: ignore[misc]
    assert counting.counted(quick.clock.now()) == before
    quick.clock.advance(9 * 3600)
    assert counting.counted(quick.clock.now()) == before
