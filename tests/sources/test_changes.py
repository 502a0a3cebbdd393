"""Naming and changing a source: one rule for the commands, the API and the forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from catchment.errors import InvalidInput, NotFound
from catchment.model import Field, Kind, Listing, Order, Source, Target
from catchment.platforms import Platforms
from catchment.sources.add import change, follow
from tests.town import TownApp


def added(here: TownApp, kind: str, target: str, **more: Any) -> Source:
    app = here.app
    return follow(app.store, app.secrets, app.platforms, kind, target, here.clock.now(), **more)[0]


def changed(here: TownApp, source: Source, **fields: Any) -> Source:
    app = here.app
    return change(app.store, app.secrets, app.platforms, source.id, here.clock.now(), **fields)


@pytest.mark.parametrize(
    ("kind", "target", "settings", "name"),
    [
        ("github_trending", "C++", {"since": "weekly"}, "GitHub Trending: c++, weekly"),
        ("github_trending", "all", {"language": "Python"}, "GitHub Trending: python, daily"),
        ("hackernews", "top", {"listing": "best"}, "Hacker News: best"),
        ("hackernews", "search:tide", {}, "Hacker News: tide"),
    ],
)
def test_a_source_is_named_after_what_its_settings_read(
    quick: TownApp, kind: str, target: str, settings: dict[str, str], name: str
) -> None:
    assert added(quick, kind, target, settings=settings).name == name


def test_a_name_that_tells_the_settings_follows_them_unless_a_person_gave_another(quick: TownApp) -> None:
    source = added(quick, "github_trending", "C++", settings={"since": "weekly"})
    source = changed(quick, source, settings={"since": "monthly"})
    assert (source.name, source.settings) == ("GitHub Trending: c++, monthly", {"since": "monthly"})
    source = changed(quick, source, settings={"since": None})
    assert (source.name, source.settings) == ("GitHub Trending: c++, daily", {})
    source = changed(quick, source, name="Mine", settings={"since": "weekly"})
    assert changed(quick, source, settings={"since": "daily"}).name == "Mine"


def test_only_what_is_given_is_changed(quick: TownApp) -> None:
    source = added(quick, "rss", "https://one.example/feed", interval_minutes=30, categories=["a"])
    now = changed(quick, source, priority="high")
    assert now == source.replace(priority="high")
    assert changed(quick, now, interval_minutes=None) == now.replace(interval_minutes=None)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"interval_minutes": 0}, InvalidInput),
        ({"priority": "urgent"}, InvalidInput),
        ({"settings": {"sort": "new"}}, InvalidInput),
        ({"credential": "nobody"}, NotFound),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(
    quick: TownApp, fields: dict[str, Any], error: type[Exception]
) -> None:
    source = added(quick, "rss", "https://one.example/feed")
    with pytest.raises(error):
        changed(quick, source, name="Another", **fields)
    assert quick.app.store.sources.get(source.id) == source


def implying(settings: dict[str, Any]) -> Any:
    """A platform whose targets imply these settings."""
    fields = (Field("limit", "how many", minimum=1, maximum=9), Field("order", "which", choices=("new", "old")))
    kind = Kind("notes", "Notes", 60, "harbour", (Listing("new", Order.NEWEST_FIRST),), fields)
    return SimpleNamespace(
        NAME="wall",
        KINDS=(kind,),
        HOSTS=(),
        understand=lambda text, kind=None: Target("notes", text, settings=settings),
    )


def test_settings_that_a_target_implies_are_stored_as_any_other(quick: TownApp) -> None:
    quick.app.platforms = Platforms((implying({"limit": "7", "order": "old"}),))
    assert added(quick, "notes", "harbour", settings={"order": "new"}).settings == {"limit": 7, "order": "new"}


@pytest.mark.parametrize("settings", [{"limit": 10}, {"limit": "many"}, {"order": "odd"}, {"colour": "red"}])
def test_settings_that_a_target_implies_are_refused_as_any_other(quick: TownApp, settings: dict[str, Any]) -> None:
    quick.app.platforms = Platforms((implying(settings),))
    with pytest.raises(InvalidInput) as failure:
        added(quick, "notes", "harbour")
    assert [failure.value.field] == list(settings)
