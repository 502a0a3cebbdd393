"""Answers about single items: written together, as long as no item is among them twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from catchment.collect.detail_fetch import Detail, DetailBatch, apart
from catchment.collect.source_client import Exchange
from catchment.model import Answer, Item, Reading, Request
from tests.fetch.surroundings import SomePlatform

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def detail(second: int | None, *ids: str) -> Detail:
    request = Request(f"https://a.example/{'-'.join(ids)}")
    answer = Answer(200, {}, b"", request.url, NOW + timedelta(seconds=second or 0))
    came = None if second is None else Exchange(SomePlatform(), request, answer, b"")
    return Detail(request, came, Reading(tuple(Item(name) for name in ids)))


def test_answers_without_a_repeated_item_stay_together_in_the_listings_order() -> None:
    details = [detail(3, "a"), detail(1, "b"), detail(None), detail(2, "c")]
    assert apart(details) == [tuple(details)]


def test_of_two_answers_about_an_item_the_later_one_is_written_as_the_later() -> None:
    """Requests of a batch wait for the budget in any order: the first of them may be answered last."""
    alone, page, early, failed = detail(78, "a"), detail(20, "a", "b"), detail(0, "c"), detail(None)
    parts = apart([alone, early, page, failed])
    assert parts == [(early, page), (alone, failed)]
    assert [DetailBatch(part).at for part in parts] == [NOW, NOW + timedelta(seconds=78)]
