"""How items grow: a sparse series of counters, and one appearance for each day and source."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from catchment.errors import NotFound
from catchment.model import Item, Point, RefinedItem, Source
from catchment.policy.judge import judge
from tests.clocks import HandClock
from tests.policy.test_judge import known
from tests.store.desk import Desk, post

HOUR = timedelta(hours=1)
NOW = HandClock().now()


def scores(desk: Desk, key: str) -> list[int | None]:
    return [point.score for point in desk.store.items.counters(desk.item(key)["id"])]


def shown(desk: Desk, source: Source, *told: tuple[float, int | None]) -> list[int | None]:
    """The series after an item was shown with these scores, each so many hours after the one before."""
    for hours, score in told:
        desk.show(source, post("a", score=score), after=hours * 3600)
    return scores(desk, "a")


@pytest.mark.parametrize(
    ("told", "series"),
    [
        ([(0.0, 1)], [1]),
        ([(0.0, None)], []),
        ([(0.0, None), (1.0, 0)], [0]),
        ([(0.0, 100), (1.0, 101), (1.0, 105)], [100]),
        ([(0.0, 100), (1.0, 109), (1.0, 111)], [100, 111]),
        ([(0.0, 100), (7.0, 101)], [100, 101]),
        ([(0.0, 100), (7.0, 100), (7.0, 100)], [100]),
        ([(0.0, 0), (1.0, 1), (1.0, 2)], [0, 2]),
        ([(0.0, 100), (1.0, 50)], [100, 50]),
    ],
)
def test_a_point_is_kept_when_much_has_changed_or_anything_after_some_hours(
    desk: Desk, told: list[tuple[float, int | None]], series: list[int]
) -> None:
    assert shown(desk, desk.follow("r/a", "reddit"), *told) == series
    assert desk.item("a")["score"] == told[-1][1]


def test_points_tell_all_counters_as_they_are_held(desk: Desk) -> None:
    source = desk.follow("r/a", "reddit")
    desk.show(source, post("a", score=10, reply_count=1))
    desk.show(source, post("a", score=20))
    *_, last = desk.store.items.counters(desk.item("a")["id"])
    assert (last.score, last.reply_count, last.view_count) == (20, 1, None)
    assert last.at == desk.now


def test_a_rounded_counter_makes_no_point_where_an_exact_one_is_held() -> None:
    last = Point(NOW, score=12_345)
    told = RefinedItem(Item("a", text="text", author="bob", score=20_000, rounded=("score",)), b"other")
    held = {"shown_at": NOW, "rounded": ()}
    assert judge(known(score=12_345, **held), told, NOW + 9 * HOUR, last_point=last).point is None
    held["rounded"] = ("score",)
    point = judge(known(score=12_000, **held), told, NOW + HOUR, last_point=last).point
    assert point == Point(NOW + HOUR, 20_000, None, 1200)


def test_an_appearance_is_kept_for_each_day_and_source_the_last_of_the_day(desk: Desk) -> None:
    all_of_it, python = desk.follow("all", "reddit"), desk.follow("python", "reddit")
    desk.show(all_of_it, post("a/b", rank=3, score=100, gained=10), after=0)
    first = desk.now
    desk.show(all_of_it, post("a/b", rank=1, score=140, gained=50))
    desk.show(python, post("a/b", rank=7, score=140, gained=50))
    desk.show(all_of_it, post("a/b", rank=2, score=150, gained=60), after=24 * 3600)
    told = desk.store.items.appearances(desk.item("a/b")["id"])
    today, tomorrow = (f"{at:%Y-%m-%d}" for at in (first, desk.now))
    assert [
        (appearance.day, appearance.source_id, appearance.rank, appearance.score, appearance.gained)
        for appearance in told
    ] == [
        (today, all_of_it.id, 1, 140, 50),
        (today, python.id, 7, 140, 50),
        (tomorrow, all_of_it.id, 2, 150, 60),
    ]


def test_an_item_that_is_not_there_has_no_series(desk: Desk) -> None:
    for question in (desk.store.items.counters, desk.store.items.appearances):
        with pytest.raises(NotFound):
            question(42)


def test_pages_without_counters_and_ranks_cost_no_statement_more(desk: Desk, monkeypatch: Any) -> None:
    """A feed tells neither: nothing is asked or written for it."""
    told: list[str] = []
    transaction = desk.store.database.transaction

    class Listening(transaction):  # type: ignore[misc, valid-type]
        def insert(self, table: str, columns: Any, rows: Any, *more: Any, **named: Any) -> Any:
            told.extend([table] if rows else [])
            return super().insert(table, columns, rows, *more, **named)

        def select_in(self, sql: str, few: Any, **more: Any) -> Any:
            told.extend([sql] if few else [])
            return super().select_in(sql, few, **more)

    monkeypatch.setattr(desk.store.database, "transaction", Listening)
    feed = desk.follow()
    desk.show(feed, post("a"), post("b"))
    desk.show(feed, post("a", "edited"), post("b"))
    assert not [
        statement for statement in told if "counter_points" in statement or statement in {"appearances", "rechecks"}
    ]
