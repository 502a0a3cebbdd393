"""The benchmark measures what it says it measures. How fast anything is decides nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import archives, scale
from bench.archives import EDITED, NOW, RARE, RARE_ITEMS, Archive
from bench.scale import Answer, Readers, Scale
from catchment.refine import fingerprint
from catchment.store import Store, open_store

SIZE = 1_000


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
    assert store.items.get(SIZE)["tags"] == archive.tags_of(SIZE)
    assert [one["version"] for one in store.items.revisions(EDITED)] == [1]


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


def test_a_promise_that_is_broken_is_said():
    slow, fine = Answer("newest 30", 2, 1.0, 2.1), Answer("search", 5, 1.0, 4.9)
    assert Scale("sqlite", 25, 100, [slow, fine], 1.0).broken() == [
        "SQLite: newest 30 takes 2.1 × as long with 100 items as with 25; promised are 2"
    ]
