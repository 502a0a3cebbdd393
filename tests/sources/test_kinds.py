"""Names of kinds and platforms: what is installed and what stands in the archive is known, all else is a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.errors import InvalidInput, NotFound
from catchment.model import Target, Watch
from catchment.platforms import Platforms, installed
from catchment.sources.kinds import NameResolver
from catchment.store.search.lists import Filter
from tests.store.desk import Desk, opened, post

NOTHING = Platforms(())


@pytest.fixture
def desk(tmp_path: Path, database_url: str) -> Iterator[Desk]:
    store = opened(database_url, tmp_path)
    desk = Desk(store)
    yield desk
    desk.close()


def test_what_a_platform_brought_is_known_without_it_whether_it_is_indexed_or_not(desk: Desk) -> None:
    source = desk.follow("harbour", "wall")
    desk.show(source, post("1", kind="note"))
    names = NameResolver(desk.store, lambda: NOTHING)
    for _ in range(2):
        wanted = Filter(kind="note", platform="wall")
        assert names.checked(wanted) == wanted
        assert (names.kind("wall"), names.source_kind("wall")) == ("wall", "wall")
        while desk.store.index.advance():
            pass
    with pytest.raises(InvalidInput, match="unknown kind 'entry'"):
        names.kind("entry")


def test_what_is_installed_is_known_before_anything_is_stored(desk: Desk) -> None:
    names = NameResolver(desk.store, installed)
    assert [names.kind(name) for name in ("rss", "entry", "comment", "job", "link")]
    assert names.platform("feeds") == "feeds"
    assert {"rss", "entry", "comment"} <= set(names.kinds())


def test_the_archive_answers_without_loading_the_platforms(desk: Desk) -> None:
    desk.show(desk.follow(), post("1"))

    def never() -> Platforms:
        raise AssertionError("the platforms were loaded")

    names = NameResolver(desk.store, never)
    assert names.checked(Filter(kind="rss", platform="feeds")).kind == "rss"


def test_an_unknown_name_is_told_with_the_nearest_one_and_with_all(desk: Desk) -> None:
    names = NameResolver(desk.store, installed)
    with pytest.raises(InvalidInput, match=r"unknown kind 'Entyr' — did you mean entry\? known: .*rss") as kind:
        names.checked(Filter(kind="Entyr"))
    with pytest.raises(InvalidInput, match=r"unknown platform 'redit' — did you mean reddit\? known: .*feeds") as place:
        names.checked(Filter(platform="redit"))
    with pytest.raises(InvalidInput, match="unknown kind 'x'") as watched:
        names.checked_watch(Watch("w", kinds=("rss", "x")))
    assert [raised.value.field for raised in (kind, place, watched)] == ["kind", "platform", "kinds"]


def test_a_kind_of_items_is_no_kind_of_sources(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match=r"'entry' is a kind of items, not of sources — known: .*rss"):
        NameResolver(desk.store, installed).source_kind("entry")


def test_a_source_is_found_by_id_name_target_or_words_of_its_own(desk: Desk) -> None:
    follow = desk.store.sources.follow
    news, _ = follow(Target("rss", "https://news.example/feed"), "feeds", desk.now, name="Daily news")
    web, _ = follow(Target("reddit", "r/webdev"), "reddit", desk.now)
    other, _ = follow(Target("rss", "https://other.example/feed"), "feeds", desk.now, name="News of others")
    names = NameResolver(desk.store, installed)
    for text, source in (
        *((str(news.id), news), ("daily NEWS", news), ("https://news.example/feed", news), ("other.example", other)),
        *(("webdev", web), ("https://www.reddit.com/r/webdev/", web), ("News of others", other)),
    ):
        assert names.source(text) == source.id
    with pytest.raises(InvalidInput, match=r"'news' matches several sources .* 1 \(Daily news\), 3 \(News of others\)"):
        names.source("news")
    with pytest.raises(NotFound):
        names.source("weather")


def test_what_is_typed_at_length_is_not_repeated_at_length(desk: Desk) -> None:
    with pytest.raises(InvalidInput) as error:
        NameResolver(desk.store, installed).kind("x" * 5000)
    assert "x" * 51 not in str(error.value)
