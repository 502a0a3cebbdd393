"""`reparse`, as it is typed."""

from __future__ import annotations

import pytest

from catchment.platforms import feeds
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


def test_answers_of_an_older_reader_are_read_again_once(
    catchment: Catchment, site: FeedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=2).url)
    catchment("collect", "--all")
    assert "No stored answer needs to be parsed again" in catchment("reparse", "--all").out

    monkeypatch.setattr(feeds, "PARSER_VERSION", feeds.PARSER_VERSION + 1)
    tried = catchment("reparse", "--all", "--dry-run", "--json").json
    done = catchment("reparse", "--kind", "rss", "--json").json
    assert (tried.pop("is_dry_run"), done.pop("is_dry_run")) == (True, False)
    assert tried == done == {"answers": 1, "unreadable": 0, "new": 0, "mended": 0, "details": 0, "is_cut_off": False}
    assert catchment("reparse", "--source", 1, "--json").json["answers"] == 0
    assert catchment("reparse", "--source", 1, "--again", "--json").json["answers"] == 1


@pytest.mark.parametrize("chosen", [(), ("--all", "--kind", "rss"), ("--all", "--source", "1")])
def test_whose_answers_must_be_said_in_one_way(catchment: Catchment, chosen: tuple[str, ...]) -> None:
    assert catchment("reparse", *chosen, "--json").failure == (2, "INVALID_INPUT")


def test_a_time_that_is_none_is_refused(catchment: Catchment) -> None:
    catchment("migrate")
    assert catchment("reparse", "--all", "--since", "someday").code == 2
    assert catchment("reparse", "--all", "--since", "2026-01-31T10:00+08:00").code == 0
