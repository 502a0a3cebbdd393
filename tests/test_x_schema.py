"""docs/x-schema.md: every field of the specification's tables has a path or a query there, and each of them works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jmespath
import pytest

from catchment.model import as_json
from catchment.playground.sites.x import LIST, user_name
from catchment.sources.describe import source_view
from tests.web.desk import Desk
from tests.x.scene import WORLD, Scene, somebody

PAGE = (Path(__file__).parents[1] / "docs/x-schema.md").read_text(encoding="utf-8")
FIELDS = {
    "tweets": (
        "tweet_id text created_at author_username author_display_name referenced_tweet_id reference_type media "
        "referenced_tweet_text referenced_tweet_media referenced_tweet_author_username db_created_at db_updated_at"
    ),
    "Media": "media_key type url width height",
    "scraper_fetch_stats": (
        "username last_fetch_at last_fetched_count last_new_count total_fetches avg_new_rate consecutive_empty_fetches "
        "created_at updated_at"
    ),
    "ScrapeRequest": "usernames limit",
    "TaskStatusResponse": "task_id status result created_at updated_at",
}
"""As the specification has them."""


def paths(table: str) -> dict[str, str]:
    section = PAGE.partition(f"\n## {table}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|$", section, re.MULTILINE))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, "a-key-for-")
    yield scene
    scene.close()


@pytest.mark.parametrize("table", FIELDS)
def test_every_field_is_on_the_page(table: str) -> None:
    assert list(paths(table)) == FIELDS[table].split()


def test_every_path_of_a_tweet_and_its_media_leads_to_a_value(scene: Scene) -> None:
    source = scene.follow(str(LIST), "x", kind="twitter_list", limit=300)
    scene.visit(source)
    items = scene.items(source)
    whole: dict[str, Any] = next(
        item for item in items if item["media"] and any(to["media"] and to["text"] for to in item["references"][:1])
    )
    found = {
        field: jmespath.search(path, whole) for table in ("tweets", "Media") for field, path in paths(table).items()
    }
    assert {field for field, value in found.items() if value in (None, [], "")} == set()
    assert found["tweet_id"] == whole["external_id"]
    assert found["reference_type"] in ("retweeted", "quoted", "replied_to")
    assert str(found["media_key"]).startswith("3_")
    # And by the query.
    [sql] = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    rows = scene.app.store.database.read(lambda tx: tx.all(sql))
    columns = FIELDS["tweets"].split()
    row = next(dict(zip(columns, row, strict=True)) for row in rows if row[0] == whole["external_id"])
    same = ("text", "author_username", "referenced_tweet_id", "reference_type", "referenced_tweet_text")
    assert {name: row[name] for name in same} == {name: found[name] for name in same}
    assert len(rows) == len(items)


def test_every_path_of_the_statistics_leads_to_a_value(scene: Scene) -> None:
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), scene.clock.now())}", "twitterapi_io", limit=20)
    scene.visit(source)
    scene.clock.advance(60)
    scene.visit(source)
    view = as_json(source_view(*scene.app.store.sources.with_progress(source.id), scene.app.intervals()))
    found = {field: jmespath.search(path, view) for field, path in paths("scraper_fetch_stats").items()}
    assert {field for field, value in found.items() if value is None} == set()
    assert (found["total_fetches"], found["last_new_count"], found["consecutive_empty_fetches"]) == (2, 0, 1)
    assert (found["last_fetched_count"], found["avg_new_rate"]) == (20, 0.7)


def test_every_path_of_a_task_and_its_request_leads_to_a_value(scene: Scene) -> None:
    desk = Desk(cast(Any, scene))
    name = user_name(WORLD, somebody("usual"), scene.clock.now())
    request = dict(zip(paths("ScrapeRequest").values(), (name, 20), strict=True))
    asked = desk.post("/api/admin/scrape", request, status=202)
    scene.app.task_runner().run()
    task = desk.get(f"/api/admin/scrape/{asked['task_id']}")
    found = {field: jmespath.search(path, task) for field, path in paths("TaskStatusResponse").items()}
    assert {field for field, value in found.items() if value is None} == set()
    assert (found["task_id"], found["status"]) == (asked["task_id"], "completed")
    assert found["result"]["users"][0]["username"] == name
    # Of pages of twenty, the limit is one: both fields of the request were understood.
    assert found["result"]["new"] == 20
