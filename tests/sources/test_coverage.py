"""Coverage of a source that was really visited, on both databases and through both doors."""

from __future__ import annotations

from datetime import timedelta

from catchment.errors import Missing
from catchment.sources.describe import coverage_of
from tests.town import TownApp

HOUR = timedelta(hours=1)


def test_a_window_that_turned_over_is_suspect_until_it_is_shown_again(here: TownApp) -> None:
    feed = here.town.feed(window=4)
    source = here.follow(feed)
    for number in range(4):
        feed.post(f"a{number}", at=here.clock.now() - (5 - number) * HOUR)
    here.collect(source)
    for number in range(4):
        feed.post(f"b{number}", at=here.clock.now() + number * HOUR)
    here.collect(source, after=10 * HOUR)
    app = here.app

    def standings() -> list[str]:
        found = coverage_of(app.store, app.platforms, source.id, here.clock.now(), 30)
        assert sum(found.seconds.values()) == 30 * 86_400
        return [stretch.standing for stretch in found.stretches]

    assert standings() == ["unproven", "suspect", "verified"]
    (gap,) = here.gaps()
    assert gap.standing == "suspect"
    feed.window = 8
    here.collect(source, after=HOUR)
    assert standings() == ["unproven", "repaired", "verified"]
    assert [gap.standing for gap in here.gaps(include_closed=True)] == ["repaired"]


def test_nothing_is_verified_before_the_first_success(here: TownApp) -> None:
    feed = here.town.feed(window=4)
    source = here.follow(feed)
    feed.says.append(Missing("there is nothing at this address", status=404))
    here.collect(source)
    feed.post("a", at=here.clock.now() + 47 * HOUR)
    here.collect(source, after=48 * HOUR)
    here.collect(source, after=24 * HOUR)
    found = coverage_of(here.app.store, here.app.platforms, source.id, here.clock.now(), 30)
    days = [(stretch.standing, round((stretch.to_at - stretch.from_at) / HOUR)) for stretch in found.stretches]
    assert days == [("unproven", 29 * 24), ("verified", 24)]
