"""Stopping the embedded engine while it really transfers something."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from catchment.app import App, open_app, settings_from
from catchment.engines.embedded import Embedded
from catchment.jobs import NAMES
from catchment.sources.add import follow
from tests.feedsite import FeedSite

WAIT_SECONDS = 600


@pytest.fixture
def site() -> Iterator[FeedSite]:
    with FeedSite() as site:
        yield site


@pytest.fixture
def app(tmp_path: Path, site: FeedSite) -> Iterator[App]:
    """Follows one feed of the site, which is about to be asked."""
    environ = {
        "CATCHMENT_HOME": str(tmp_path),
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "true",
        "CATCHMENT_RETRY_WAITS": "none",
        # Transfers must have their whole time even where that is short.
        "CATCHMENT_STOP_SECONDS": "5",
    }
    with open_app(settings_from(environ, tmp_path, NAMES), "serve") as app:
        feed = site.feed("news", posts=1)
        feed.hold()
        follow(app.store, app.secrets, app.platforms, "rss", feed.url, app.clock.now())
        yield app


def test_a_transfer_that_does_not_end_in_time_makes_the_stop_unclean(app: App, site: FeedSite) -> None:
    engine = Embedded(app)
    engine.start()
    assert site.server.arrived.wait(WAIT_SECONDS)
    assert engine.stop(1.5) is False
    assert app.store.items.count() == 0


def test_a_transfer_under_way_may_finish_within_the_seconds_of_a_stop(app: App, site: FeedSite) -> None:
    engine = Embedded(app)
    engine.start()
    assert site.server.arrived.wait(WAIT_SECONDS)
    with ThreadPoolExecutor(1) as aside:
        stopped = aside.submit(engine.stop, WAIT_SECONDS)
        assert app.stop.wait(WAIT_SECONDS)
        site.feed("news").release()
        assert stopped.result() is True
    assert app.store.items.count() == 1
