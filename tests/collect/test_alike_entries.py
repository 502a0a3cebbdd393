"""Feed entries without id and link that say the same: their dates tell them apart, and each keeps its id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from catchment.collect.reparse import Reparsed, Reparsing
from catchment.model import Answer, Source
from tests.town import TownApp

DAY = timedelta(days=1)
BEGINNING = datetime(2025, 9, 1, tzinfo=UTC)
FINE = "All systems operational"


def day(number: int) -> datetime:
    return BEGINNING + number * DAY


def shows(here: TownApp, *entries: tuple[str, datetime | None]) -> None:
    """Have the feed answer with these entries once: title and date."""
    items = "".join(
        f"<item><title>{title}</title>" + (f"<pubDate>{format_datetime(at)}</pubDate>" if at else "") + "</item>"
        for title, at in entries
    )
    body = f'<rss version="2.0"><channel><title>Status</title>{items}</channel></rss>'.encode()
    answer = lambda request, now: Answer(200, {}, body, request.url, now)  # noqa: E731
    here.town.feed("status").says.append(answer)


def stored(here: TownApp) -> dict[str, datetime]:
    return {item["external_id"]: datetime.fromisoformat(item["created_at"]) for item in here.items()}


@pytest.fixture
def source(here: TownApp) -> Source:
    return here.follow(here.town.feed("status"))


def counts(here: TownApp, source: Source) -> tuple[int, int, int, int]:
    (result,) = here.collect(source, after=timedelta(hours=5))
    assert result.error is None
    return result.counts.new, result.counts.updated, result.counts.duplicate, result.counts.invalid


def test_entries_that_differ_in_their_dates_alone_are_all_stored_and_exact_repetitions_once(
    here: TownApp, source: Source
) -> None:
    shows(here, (FINE, day(3)), (FINE, day(2)), ("Down", day(2)), (FINE, day(1)), (FINE, day(1)))
    assert counts(here, source) == (4, 0, 0, 1)
    assert sorted(stored(here).values()) == [day(1), day(2), day(2), day(3)]


def test_the_same_entries_read_again_are_the_same_items_in_any_order_and_among_any_others(
    here: TownApp, source: Source
) -> None:
    shows(here, (FINE, day(3)), (FINE, day(2)), (FINE, day(1)))
    counts(here, source)
    before = stored(here)
    for window in ([3, 2, 1], [1, 2, 3], [2, 1], [3], [3, 2], [1]):
        shows(here, *((FINE, day(number)) for number in window), (f"Note for window {window}", day(4)))
        assert counts(here, source) == (1, 0, len(window), 0)
    assert {id: at for id, at in stored(here).items() if id in before} == before
    assert len(stored(here)) == len(before) + 6


def test_an_entry_that_was_alone_keeps_its_id_when_another_one_that_says_the_same_comes_above_it(
    here: TownApp, source: Source
) -> None:
    shows(here, (FINE, day(1)))
    counts(here, source)
    ((first, _),) = stored(here).items()
    assert first.count(" ") == 0
    for number in (2, 3):
        shows(here, *((FINE, day(each)) for each in range(number, 0, -1)))
        assert counts(here, source) == (1, 0, number - 1, 0)
    assert stored(here)[first] == day(1)
    assert sorted(stored(here).values()) == [day(1), day(2), day(3)]


def test_an_archive_that_holds_one_of_several_alike_gets_the_others_and_keeps_what_it_holds(
    here: TownApp, source: Source
) -> None:
    """As archives are that were made before dates told entries apart: they hold the first one of the answer."""
    shows(here, (FINE, day(2)))
    counts(here, source)
    ((held, _),) = stored(here).items()
    shows(here, (FINE, day(2)), (FINE, day(1)))
    assert counts(here, source) == (1, 0, 1, 0)
    assert stored(here)[held] == day(2)
    assert sorted(stored(here).values()) == [day(1), day(2)]


def test_an_entry_alone_in_its_answer_that_is_dated_anew_is_still_the_same_item(here: TownApp, source: Source) -> None:
    for number in (1, 2, 3):
        shows(here, (FINE, day(number)))
        assert counts(here, source) == ((1, 0, 0, 0) if number == 1 else (0, 0, 1, 0))
    assert list(stored(here).values()) == [day(1)]


def test_a_feed_of_a_thousand_entries_without_ids_loses_none(quick: TownApp) -> None:
    """1,046 entries, of which 14 say what another one says on another day."""
    source = quick.follow(quick.town.feed("status"))
    entries = [(f"Notice {min(number, 1031)}", day(1) + number * timedelta(hours=1)) for number in range(1046)]
    shows(quick, *entries[::-1])
    assert counts(quick, source) == (1046, 0, 0, 0)
    shows(quick, ("One more", day(90)), *entries[::-1])
    assert counts(quick, source) == (1, 0, 1046, 0)
    assert quick.app.store.items.count() == 1047


def test_answers_read_again_lead_to_the_same_items(here: TownApp, source: Source) -> None:
    shows(here, (FINE, day(2)))
    shows(here, (FINE, day(3)), (FINE, day(2)), (FINE, day(1)))
    for _ in range(2):
        counts(here, source)
    before, app = stored(here), here.app
    again = Reparsing(app.store, app.platforms, 1_000_000, app.stop, here.clock.now(), is_dry=False)
    assert again.run(again.filter(again=True)) == Reparsed(2)
    assert stored(here) == before
