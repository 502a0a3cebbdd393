"""Visits write their pages together, and no page waits for a server for more than a moment."""

from __future__ import annotations

from pathlib import Path

from catchment.app import open_app
from catchment.model import Outcome, VisitResult
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.write_group import WriteGroup
from tests.feedsite import FeedSite


def test_a_page_is_written_while_another_visit_waits_for_its_server(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path, database_url=f"sqlite:///{tmp_path / 'c.db'}", is_private_allowed=True, concurrency=2
    )
    with FeedSite() as site, open_app(settings, "test") as app:
        slow, fast = site.feed("slow", posts=1), site.feed("fast", posts=1)
        slow.hold()
        ids = [
            follow(app.store, app.secrets, app.platforms, "rss", feed.url, app.clock.now())[0].id
            for feed in (slow, fast)
        ]
        writer = app.store.page_writer
        # Who waits for the slow one waits for longer than any server is waited for.
        writer.group = WriteGroup(
            lambda tasks: app.store.database.write(lambda tx: writer.write_in(tx, tasks)), seconds=600
        )
        in_order: list[int] = []

        def seen(result: VisitResult) -> None:
            in_order.append(result.source_id)
            slow.release()

        results = app.scheduler().these(ids, "test", "test", seen)
    assert in_order == [ids[1], ids[0]]
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED, Outcome.SUCCEEDED]
