"""`collect` while a platform's request budget is used up."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest

from tests.cli.conftest import Catchment
from tests.hostile import Hostile, reply
from tests.redis_server import RedisServer

FEED = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>harbour</title>
<entry><id>t3_a1</id><title>One</title><updated>2026-01-01T12:00:00+00:00</updated>
<published>2026-01-01T12:00:00+00:00</published><link href="https://www.reddit.com/r/harbour/comments/a1/one/"/>
<content type="html">text</content></entry></feed>"""


@pytest.fixture
def fifteen_communities(catchment: Catchment, tmp_path: Path) -> None:
    """More than may be asked for within one window without a key."""
    rows = "".join(f"reddit,r/harbour{number}\n" for number in range(15))
    (tmp_path / "list.csv").write_text(f"kind,target\n{rows}")
    assert catchment("sources", "import", tmp_path / "list.csv").code == 0


def test_what_the_budget_leaves_over_is_no_failure_and_is_counted(
    catchment: Catchment, fifteen_communities: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is, the window does not end during the test.
    monkeypatch.setenv("REDDIT_RATE_LIMIT_WINDOW_SECONDS", "3600")
    with Hostile() as server:
        for number, listing in product(range(15), ("new", "hot", "top")):
            server.on(f"/r/harbour{number}/{listing}/.rss", reply(FEED, content_type="application/atom+xml"))
        monkeypatch.setenv("CATCHMENT_REDDIT_BASE_URL", server.url)
        said = catchment("collect", "--json")
        told = said.json
        assert (said.code, told["failed"]) == (0, 0)
        assert told["deferred"] >= 1
        assert told["succeeded"] >= 1
        assert told["succeeded"] + told["still_due"] == 15
        assert datetime.fromisoformat(told["next_due_at"]) > datetime.now(UTC)
        again = catchment("collect")
        assert again.code == 0
        assert "No source can be collected now." in again.out
        assert "sources are still due: our own request limits allow more from" in again.out
        status = catchment("status", "--json").json
        assert (status["failing_count"], status["last_24_hours"]["errors"]) == (0, 0)
        assert status["last_24_hours"]["deferred"] == told["deferred"]


def test_a_redis_that_knows_nothing_of_earlier_requests_defers_and_nothing_fails(
    catchment: Catchment,
    fifteen_communities: None,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CATCHMENT_REDIS_URL", redis_server.url)
    # However slow the machine is, the window does not end during the test.
    monkeypatch.setenv("REDDIT_RATE_LIMIT_WINDOW_SECONDS", "3600")
    with Hostile() as server:
        monkeypatch.setenv("CATCHMENT_REDDIT_BASE_URL", server.url)
        said = catchment("collect", "--json")
        assert server.seen == []
    told = said.json
    assert (said.code, told["succeeded"], told["failed"]) == (0, 0, 0)
    assert told["deferred"] >= 1
    assert told["still_due"] == 15
    assert datetime.fromisoformat(told["next_due_at"]) > datetime.now(UTC)
