"""`forget` and `forgotten`, as they are typed."""

from __future__ import annotations

from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


def test_a_forgotten_item_is_gone_recorded_and_stays_away(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news", posts=2)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    assert catchment("forget", "item", 1, "--json").failure == (2, "INVALID_INPUT"), "not without --yes"
    record = catchment("forget", "item", 1, "--yes", "--reason", "requested", "--json").json
    assert (record["item_count"], record["answer_count"], record["reason"]) == (1, 1, "requested")
    assert "Backups" in record["still_held"]
    feed.post("news-3")
    assert catchment("collect", "--all", "--json").json["new"] == 1
    assert [item["id"] for item in catchment("items", "--json").lines] == [3, 2]
    (listed,) = catchment("forgotten", "--json").json
    assert listed == {name: value for name, value in record.items() if name != "still_held"}
    assert "requested" in catchment("forgotten").out
    assert catchment("forget", "item", 1, "--yes", "--json").failure == (4, "NOT_FOUND")


def test_an_author_of_whom_nothing_is_held_is_kept_away_all_the_same(catchment: Catchment) -> None:
    catchment("migrate")
    record = catchment("forget", "author", "feeds", "Somebody", "--yes", "--json").json
    assert (record["what"], record["item_count"], record["is_finished"]) == ("author", 0, True)
    assert "Somebody" not in catchment("forgotten", "--json").out
    assert catchment("forget", "author", "feeds", " ", "--yes", "--json").failure == (2, "INVALID_INPUT")
