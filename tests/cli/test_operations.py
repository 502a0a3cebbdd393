"""What docs/operating.md shows works: every command, every query, every path, every setting."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catchment.app import App, open_app
from catchment.credentials.secret import Secret
from catchment.jobs import measure
from catchment.playground.faults import FaultPlan
from catchment.playground.server import Playground
from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.keys import client
from catchment.playground.world import Habits, World
from catchment.settings import Settings, read_settings
from catchment.sources.add import follow
from catchment.store.credentials import Terms
from catchment.store.schema import metadata
from catchment.store.sources.metrics import MetricSpan
from catchment.web.app import described
from tests.cli.conftest import Catchment
from tests.clocks import HandClock
from tests.databases import dicts
from tools.docs import REPOSITORY

PAGE = (REPOSITORY / "docs/operating.md").read_text()
START = datetime(2026, 3, 2, tzinfo=UTC)
KEY = "a key for tests"


def shown(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


COMMANDS = list(dict.fromkeys(line.partition("#")[0].strip() for block in shown("sh") for line in block.splitlines()))
QUERIES = shown("sql")


@pytest.fixture(scope="session")
def reddit() -> Iterator[Playground]:
    """Three communities, served over HTTP."""
    world = World(11, START, 0, 4.0, Habits(silences_a_day=0.0), others={"reddit": 3})
    playground = Playground(world, HandClock(START + timedelta(days=1)), FaultPlan(11, 0.0))
    playground.start()
    yield playground
    playground.close()


def settled(reddit: Playground, folder: Path, database_url: str) -> App:
    """A deployment that has followed two of them for a while."""
    settings = Settings(
        home=folder, database_url=database_url, base_urls={"reddit": reddit.url}, master_key=KEY, retry_waits=()
    )
    app, clock = open_app(settings, "test"), HandClock(START + timedelta(days=1))
    app.clock = clock
    secret = Secret.parse(":".join(client()))
    app.secrets.add("reddit", "app", secret, clock.now(), terms=Terms(is_shared=True))
    for place in reddit.world.places[1:3]:
        follow(app.store, app.secrets, app.platforms, "reddit", f"r/{names.community(place)}", clock.now())
    for _ in range(3):
        clock.advance(3600)
        app.scheduler().these([1, 2], "test", "test")
    clock.advance(3600)
    measure(app, MetricSpan.HOUR)
    return app


@pytest.fixture(scope="session")
def prepared(reddit: Playground, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with such a deployment's file, to be copied."""
    folder = tmp_path_factory.mktemp("settled")
    settled(reddit, folder, f"sqlite:///{folder / 'catchment.db'}").close()
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_does_what_it_says(
    command: str,
    catchment: Catchment,
    home: Path,
    prepared: Path,
    reddit: Playground,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(prepared, home)
    monkeypatch.setenv("CATCHMENT_REDDIT_BASE_URL", reddit.url)
    monkeypatch.setenv("COOKIE_MASTER_KEY", KEY)
    Path("communities.json").write_text(shown("json")[0])
    program, *words = shlex.split(command)
    assert program == "catchment"
    said = catchment(*words, *(() if "--json" in words else ("--json",)))
    assert said.code == 0, said
    assert json.loads(said.out) is not None
    if "--json" not in words:
        assert catchment(*words).code == 0


def test_every_query_of_the_page_answers_on_either_database(
    reddit: Playground, tmp_path: Path, database_url: str
) -> None:
    app = settled(reddit, tmp_path / "home", database_url)
    answers = [
        app.store.database.read(lambda tx, sql=sql: dicts(tx, sql.strip().removesuffix(";")))  # type: ignore[misc]
        for sql in QUERIES
    ]
    app.close()
    assert answers
    assert all(answers)
    named = ("hour", "last_visit", "last_new")
    times = [row[name] for rows in answers for row in rows for name in named if name in row]
    assert times
    assert all(START.timestamp() < seconds < START.timestamp() + 10 * 86_400 for seconds in times)


def test_a_path_of_the_page_is_one_of_the_api() -> None:
    paths = described().openapi()["paths"]
    named = re.findall(r"`(GET|POST|PATCH|DELETE) (/api/[^`]*)`", PAGE)
    assert named
    assert [(method, path) for method, path in named if method.lower() not in paths.get(path, {})] == []


SPECIFIED = {
    "community_pool": "name tier categories quality_score is_active",
    "community_cache": (
        "community_name last_crawled_at last_seen_post_id last_seen_created_at posts_cached avg_valid_posts "
        "quality_tier crawl_frequency_hours empty_hit success_hit failure_hit"
    ),
    "posts_raw": (
        "source source_post_id subreddit title content score num_comments created_at text_norm_hash version extra_data"
    ),
    "posts_hot": "expires_at",
    "crawl_metrics": (
        "metric_date metric_hour cache_hit_rate valid_posts_24h total_communities successful_crawls empty_crawls "
        "failed_crawls avg_latency_seconds total_new_posts total_updated_posts total_duplicates tier_assignments"
    ),
}
"""The tables of the specification. Other columns of posts_hot are those of posts_raw."""


def test_every_column_of_the_specification_has_a_place_and_each_place_exists() -> None:
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == [
        f"{table}.{column}" for table, columns in SPECIFIED.items() for column in columns.split()
    ]
    for name, here in rows:
        places = re.findall(r"`(\w+)\.(\w+)`", here)
        assert places, name
        assert [place for place in places if place[1] not in metadata.tables[place[0]].columns] == []


def test_the_tiers_of_the_page_can_be_set_and_those_it_tells_are_the_usual_ones(tmp_path: Path) -> None:
    (tmp_path / "catchment.toml").write_text(shown("toml")[0])
    settings = read_settings({"HOME": str(tmp_path)}, tmp_path)
    assert (settings.tier1, settings.warnings) == ((30, 1, "new", "day", 100), ())
    (row,) = re.findall(r"`CATCHMENT_TIER1=(\S+)`", PAGE)
    assert read_settings({"HOME": str(tmp_path), "CATCHMENT_TIER1": row}, tmp_path).tier1 == settings.tier1
    told = re.findall(r"^\| (tier\d) \|.*?(\d+|fewer).*?\| (\d+) hours \|.*\| (\d+) \|$", PAGE, re.MULTILINE)
    usual = Settings(home=tmp_path)
    rows = {"tier1": usual.tier1, "tier2": usual.tier2, "tier3": usual.tier3}
    assert [(name, least.replace("fewer", "0"), hours, most) for name, least, hours, most in told] == [
        (name, f"{row[0]:g}", f"{row[1]:g}", f"{row[4]}") for name, row in rows.items()
    ]
