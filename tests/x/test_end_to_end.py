"""The admin API from end to end: POST, GET until completed, rows in the database; against the X of the playground."""

from __future__ import annotations

from typing import Any, cast

from catchment.playground.sites.x import user_name
from tests.web.desk import Desk
from tests.x.scene import START, WORLD, Scene, somebody


def test_a_manual_scrape_ends_with_the_tweets_in_the_database(scene: Scene) -> None:
    desk = Desk(cast(Any, scene))
    name = user_name(WORLD, somebody("usual"), START)
    wrong = desk.post("/api/admin/scrape", {"usernames": f"{name},not a name,way_too_long_for_a_name"}, status=400)
    assert "not a name" in wrong["error"]["message"]
    assert "way_too_long_for_a_name" in wrong["error"]["message"]
    answer = desk.post("/api/admin/scrape", {"usernames": f"@{name}, nobody_of_this", "limit": 40}, status=202)
    path = f"/api/admin/scrape/{answer['task_id']}"
    for _ in range(20):
        scene.app.task_runner().run()
        status = desk.get(path)
        if status["status"] in ("completed", "failed"):
            break
        scene.clock.advance(60)
    assert status["status"] == "completed"
    known, unknown = status["result"]["users"]
    assert (known["outcome"], known["error"]) == ("succeeded", None)
    assert (unknown["outcome"], unknown["new"]) == ("failed", 0)
    stored = desk.get(f"/api/items?source_id={known['source_id']}&limit=200")["items"]
    assert 0 < known["new"] == len(stored)
    assert {item["author"] for item in stored} == {name}
    source = desk.get(f"/api/sources/{known['source_id']}")
    assert (source["state"], "task" in source["state_reason"]) == ("paused", True)
