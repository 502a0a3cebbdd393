"""The benchmark measures what it says it measures. How fast anything is decides nothing here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import archives, changes, pages, records, scale
from bench.archives import EDITED, HEADS, NOW, RARE, RARE_ITEMS, REPLIES, Archive
from bench.move import Move
from bench.pages import Shown
from bench.records import FAILING, WITH_GAP, Records
from bench.scale import Answer, Readers, Scale
from bench.timing import Times, times_of
from bench.variants import FromSlowServers, dictated
from bench.workers import Round, Workers
from catchment.store import Store, open_store
from catchment.store.sources.metrics import MetricSpan
from catchment.text.clean import fingerprint
from catchment.web.pages.items import A_PAGE

SIZE = 1_000
SIZE_OF_PAGES = 5_000
"""With fewer sources none would have an open gap."""


@pytest.fixture
def store(database_url: str, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(database_url, tmp_path, NOW, fingerprint)
    yield opened
    opened.close()


@pytest.fixture
def archive(store: Store) -> Archive:
    made = Archive(SIZE)
    archives.fill(store, made)
    archives.index(store)
    return made


def test_a_filled_archive_is_whole(store: Store, archive: Archive):
    assert store.items.count() == SIZE
    assert store.index.behind() == 0
    assert store.items.get(SIZE).tags == tuple(archive.tags_of(SIZE))
    assert [revision.version for revision in store.items.revisions(EDITED)] == [1]
    assert len(store.items.replies(HEADS, 2 * REPLIES).items) == REPLIES
    assert len(store.items.counters(HEADS)) == archives.COUNTED


def test_a_rare_word_is_as_rare_in_a_large_archive(store: Store, archive: Archive):
    assert len(store.search.find(RARE, limit=200).items) == RARE_ITEMS


def test_every_question_to_an_archive_is_answered(store: Store, archive: Archive):
    readers = Readers(store, archive)
    readers.check()
    assert [question for question, _, ask in readers.questions() if not ask()] == []


def test_the_far_page_is_the_one_a_reader_comes_to(store: Store, archive: Archive):
    far = scale.Filter()
    key, pages = None, SIZE // scale.FAR_SIZE
    for _ in range(pages - 1):
        key = store.items.listed(far, scale.FAR_SIZE, key).next
    assert Readers(store, archive).far_key() == key


def test_running_has_left_its_records(store: Store, archive: Archive):
    records.keep(store, archive)
    followed = Records(archive).followed
    assert store.runs.last_day(NOW).fetches == 6 * len(followed)
    assert store.runs.page(1)[0].source_count == len(store.runs.results(Records(archive).run_count))
    assert store.gaps.count_open() == len(followed) // WITH_GAP
    assert store.alerts.count_open() == store.failure_stats.counts(5).failing == len(followed) // FAILING
    assert store.metrics.last(MetricSpan.HOUR) == NOW - 2 * MetricSpan.HOUR.length


def test_every_page_is_shown_and_full_and_an_archive_that_is_kept_is_used_again(tmp_path: Path):
    with scale.databases("sqlite", tmp_path) as kept:
        made = scale.whole("sqlite", kept, tmp_path, SIZE_OF_PAGES)
        assert scale.whole("sqlite", kept, tmp_path, SIZE_OF_PAGES).indexed_per_second == made.indexed_per_second
    with pages.browser_of(made.address, made.home) as browser:
        for question in pages.questions(made.archive):
            pages.check(question, browser.get(question.path))


def test_the_far_page_of_the_pages_is_the_one_a_reader_comes_to(store: Store, archive: Archive):
    key = None
    for _ in range(SIZE // A_PAGE - 1):
        key = store.items.listed(scale.Filter(), A_PAGE, key).next
    assert pages.far_key(archive) == key


def test_a_promise_that_is_broken_is_said():
    slow, fine = Answer("newest 30", 2, 1.0, 2.1), Answer("search", 5, 1.0, 4.9)
    late = Shown("the overview", None, Times(90.0, 95.0, 99.0), Times(270.0, 301.0, 400.0))
    soon = Shown("the list", 2, Times(9.0, 10.0, 11.0), Times(17.0, 20.0, 90.0))
    assert Scale("sqlite", 10, 25, 100, [slow, fine], 1.0, [late, soon]).broken() == [
        "SQLite: newest 30 takes 2.1 × as long with 100 items as with 25; promised are 2",
        "SQLite: the page “the overview” takes 301 ms with 100 items, 3.2 × as long as with 10; promised are 300 ms",
    ]


def test_what_disturbs_most_of_many_does_not_change_the_fastest_tenth():
    quiet, disturbed = [10.0] * 20, [10.0] * 8 + [900.0] * 12
    assert times_of(quiet).fastest == times_of(disturbed).fastest == 10.0
    assert (times_of(disturbed).median, times_of(disturbed).worst) == (900.0, 900.0)


@pytest.mark.process
def test_the_benchmark_itself_stays_smaller_than_what_it_weighs() -> None:
    asked = "import sys, bench.__main__; print({'catchment.web', 'catchment.collect'} & set(sys.modules))"
    root = Path(__file__).parents[1]
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=root)
    assert said.stdout == "set()\n"


def moved(**changes: Any) -> Move:
    seconds = {"copying": 20.0, "verifying": 5.0, "indexing": 300.0}
    figures = Move(1_000_000, 3_000_000, 10.0, seconds, 90.0, 100_000, seconds, 90.0, 5, 60.0)
    return replace(figures, **changes)


def test_a_move_is_compared_with_copying_alone_and_its_index_is_not_counted():
    assert (moved().share, moved().broken()) == (0.4, [])
    assert "| building the search index | 300 s |" in moved().text()


@pytest.mark.parametrize("change", [{"plain": 8.0}, {"there_mb": 300.0}, {"back_mb": 301.0}, {"kills": 4}])
def test_a_move_that_breaks_a_promise_is_reported(change: dict[str, float]):
    assert len(moved(**change).broken()) == 1


def with_workers(**changes: Any) -> Workers:
    """Two hundred sources in ten seconds."""
    distributed, embedded = Round(10.0, 1.4, 2.0), Round(10.0, 1.0, 2.0)
    figures = Workers(
        200, embedded, {1: distributed, 2: distributed, 4: distributed}, {0: Round(8.0, 1.0, None)}, 6.0, 120.0
    )
    return replace(figures, **changes)


def test_workers_are_compared_with_the_embedded_engine_and_shown_on_both_databases():
    assert with_workers().broken() == []
    text = with_workers().text()
    assert "| PostgreSQL: 2 workers of one child, and the beat | 20 | 1.40 | 2.00 |" in text
    assert "| SQLite: the embedded engine | 25 | 1.00 | |" in text


@pytest.mark.parametrize("change", [{"rounds": {1: Round(10.0, 1.6, 2.0)}}, {"statements_a_second": 10.5}])
def test_workers_that_break_a_promise_are_reported(change: dict[str, Any]):
    assert len(with_workers(**change).broken()) == 1


PAGE = """
## Collecting
| round | | × floor | at most |
|---|---|---|---|
| 1 | everything is new | **{}** | 5 |
## Reading: SQLite
| newest 30 | 0.74 | **1.0** | 2 |

The indexer takes {} items a second.
"""


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (("5.0", "3,000"), []),
        (("5.4", "2,800"), []),
        (("3.0", "6,000"), []),
        (("5.6", "3,000"), ["Collecting, everything is new: 5 → 5.6"]),
        (("5.0", "2,000"), ["Reading: SQLite, items indexed a second: -3000 → -2000"]),
    ],
)
def test_a_figure_that_got_worse_by_more_than_a_tenth_is_reported(after: tuple[str, str], said: list[str]):
    assert changes.worse(PAGE.format("5.0", "3,000"), PAGE.format(*after)) == said


def test_the_limit_that_takes_longest_is_the_one_that_binds():
    few_hosts = FromSlowServers(500, 130.0, dictated(500, hosts=2))
    assert (few_hosts.limit, few_hosts.times) == ("COLLECTOR_CONCURRENCY", 1.3)
    assert FromSlowServers(500, 125.0, dictated(500, hosts=1)).limit == "CATCHMENT_HOST_CONCURRENCY"
