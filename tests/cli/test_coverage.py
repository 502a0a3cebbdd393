"""`coverage`, as it is typed; and the same through `gaps`."""

from __future__ import annotations

from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


def test_coverage_is_shown_as_a_calendar_and_told_to_programs(catchment: Catchment, site: FeedSite) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=2).url)
    catchment("collect")
    told = catchment("coverage", 1, "--days", 3, "--json").json
    assert (told["source_id"], told["order"]) == (1, "newest_first")
    assert sum(told["seconds"].values()) == 3 * 86_400
    assert told["stretches"][0]["why"] == "before the first visit"
    shown = catchment("coverage", 1, "--days", 3).out
    assert "M T W T F S S" in shown
    assert "■ verified" in shown
    assert catchment("coverage", 9, "--json").failure == (4, "NOT_FOUND")
