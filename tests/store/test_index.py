"""The index follows what is stored, whatever happens to those who write it; lists by facets never miss an item."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from catchment.model import Source
from catchment.store.database import Transaction
from catchment.store.search import index
from catchment.store.search.facets import (
    DELETED,
    author_facet,
    kind_facet,
    platform_facet,
    tag_facet,
)
from catchment.store.search.index import item_at, place, remove
from catchment.store.search.lists import Key, ListFilter, newest_with
from catchment.text import tokens
from tests.store.desk import Desk, days, opened, post

Situation = Callable[[Desk], None]


def index_all(desk: Desk, batch: int = 1000) -> int:
    count = 0
    while done := desk.store.index.advance(batch):
        count += done
    return count


def keys(desk: Desk, *groups: list[str], limit: int = 100, before: Key | None = None, **more: Any) -> list[Key]:
    wanted = ListFilter(tuple(map(tuple, groups)), **more)
    return desk.store.database.read(lambda tx: newest_with(tx, wanted, limit, before)).keys


def listed(desk: Desk, *groups: list[str], **more: Any) -> list[str]:
    """The external ids, newest first."""
    found = keys(desk, *groups, **more)
    names = {item.id: item.external_id for item in desk.store.items.newest(1000)}
    return [names[item_id] for _, item_id in found]


def fill(desk: Desk) -> Source:
    source = desk.follow("r/one", "reddit")
    desk.show(
        source,
        post("a", author="Jane", tags=("foo", "日本"), created_at=desk.now - days(3)),
        post("b", author="John", tags=("foo",), created_at=desk.now - days(1)),
        post("c", author="Jane", kind="comment", created_at=desk.now - days(2)),
    )
    return source


def nothing_is_indexed(desk: Desk) -> None:
    fill(desk)


def everything_is_indexed(desk: Desk) -> None:
    fill(desk)
    index_all(desk)


def two_of_three_are_indexed(desk: Desk) -> None:
    fill(desk)
    desk.store.index.advance(2)


def edited_since(desk: Desk) -> None:
    source = fill(desk)
    index_all(desk)
    desk.show(source, post("a", "other words", author="Jane", tags=("foo", "日本")))


def relabelled_since_and_back(desk: Desk) -> None:
    source = fill(desk)
    desk.show(source, post("b", author="Jane", tags=("bar",)))
    index_all(desk)
    desk.show(source, post("b", author="John", tags=("foo",)))


@pytest.mark.parametrize(
    "situation",
    [nothing_is_indexed, everything_is_indexed, two_of_three_are_indexed, edited_since, relabelled_since_and_back],
)
def test_lists_by_facets_are_whole_and_newest_first_however_far_the_index_is(desk: Desk, situation: Situation) -> None:
    situation(desk)
    assert listed(desk, [tag_facet("foo")]) == ["b", "a"]
    assert listed(desk, [tag_facet("日本")]) == ["a"]
    assert listed(desk, [author_facet("reddit", "Jane")]) == ["c", "a"]
    assert listed(desk, [kind_facet("reddit")]) == listed(desk, [platform_facet("reddit")]) == ["b", "c", "a"]
    assert listed(desk, [kind_facet("comment")]) == ["c"]
    assert listed(desk, [tag_facet("foo")], [author_facet("reddit", "Jane")]) == ["a"]
    assert listed(desk, [author_facet("reddit", "Jane"), author_facet("reddit", "John")]) == ["b", "c", "a"]
    assert listed(desk, [tag_facet("foo"), tag_facet("日本")], [platform_facet("reddit")]) == ["b", "a"]
    assert listed(desk, [tag_facet("nobody's")]) == listed(desk, [DELETED]) == []


@pytest.mark.parametrize("situation", [nothing_is_indexed, everything_is_indexed, two_of_three_are_indexed])
def test_pages_of_one_item_are_the_list(desk: Desk, situation: Situation) -> None:
    situation(desk)
    everything = keys(desk, [platform_facet("reddit")])
    before, walked = None, []
    while page := keys(desk, [platform_facet("reddit")], limit=1, before=before):
        walked += page
        before = page[-1]
    assert walked == everything
    assert len(walked) == 3
    assert listed(desk, [platform_facet("reddit")], since=everything[1][0]) == ["b", "c"]


def test_an_item_that_lost_a_facet_leaves_its_list_at_once_and_the_index_later(desk: Desk) -> None:
    source = fill(desk)
    index_all(desk)
    desk.show(source, post("b", author="Jill", tags=("bar",)))
    assert listed(desk, [tag_facet("foo")]) == ["a"]
    assert listed(desk, [author_facet("reddit", "Jill")], [tag_facet("bar")]) == ["b"]
    assert index_all(desk) == 1
    assert listed(desk, [tag_facet("foo")]) == ["a"]
    assert listed(desk, [author_facet("reddit", "Jill")], [tag_facet("bar")]) == ["b"]
    # Platform, two kinds, author, tags: what it was before is gone.
    assert desk.count("postings") == 6 + 5 + 4
    assert desk.count("indexed") == 3


def test_what_the_source_deleted_stays_and_says_so(desk: Desk) -> None:
    source = fill(desk)
    desk.show(source, post("a", author="Jane", tags=("foo", "日本"), is_deleted=True))
    assert listed(desk, [DELETED]) == ["a"]
    index_all(desk)
    assert listed(desk, [DELETED]) == ["a"]
    assert listed(desk, [tag_facet("foo")]) == ["b", "a"]


def test_counters_alone_give_the_index_nothing_to_do(desk: Desk) -> None:
    source = fill(desk)
    index_all(desk)
    desk.show(source, post("a", author="Jane", tags=("日本", "foo"), score=99))
    assert desk.store.index.behind() == 0
    assert desk.store.index.advance() == 0


def test_a_list_is_whole_even_if_the_index_is_too_far_behind_to_be_used(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_SCANNED", 1)
    fill(desk)
    assert listed(desk, [platform_facet("reddit")]) == ["b", "c", "a"]
    desk.store.index.advance(1)
    assert listed(desk, [tag_facet("foo")]) == ["b", "a"]


def test_removed_items_leave_nothing_in_the_index(desk: Desk) -> None:
    fill(desk)
    desk.store.index.advance(2)

    def forget(tx: Transaction) -> None:
        remove(tx, [1, 3])

    desk.store.database.write(forget)
    assert [item_at(row[0]) for row in desk.rows("indexed", "place, facets, 1")] == [2]
    assert {row[2] for row in desk.rows("postings")} == {2}
    assert found_by_word(desk, "about") == [2]


def test_to_remove_what_is_deleted_already_is_a_mistake_that_is_noticed(desk: Desk) -> None:
    fill(desk)
    with pytest.raises(ValueError, match="before they are deleted"):
        desk.store.database.write(lambda tx: remove(tx, [1, 99]))


def found_by_word(desk: Desk, term: str) -> list[int]:
    """By the database's own index alone."""
    if desk.store.database.is_postgres:
        sql, wanted = "SELECT place FROM indexed WHERE words @@ ?::tsquery", f"'{term}'"
    else:
        sql, wanted = "SELECT rowid FROM item_words WHERE item_words MATCH ?", f'"{term}"'
    return sorted(item_at(row[0]) for row in desk.store.database.read(lambda tx: tx.all(sql, wanted)))


def test_an_edit_takes_the_words_of_before_out_of_the_index(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, post("a", "first 第一版"), post("b", "first"))
    index_all(desk)
    assert (found_by_word(desk, "first"), found_by_word(desk, "一版")) == ([1, 2], [1])
    desk.show(source, post("a", "second 第二版"))
    index_all(desk)
    assert (found_by_word(desk, "first"), found_by_word(desk, "一版")) == ([2], [])
    assert (found_by_word(desk, "second"), found_by_word(desk, "版")) == ([1], [1])


def test_a_new_rule_builds_the_index_anew(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(desk)
    index_all(desk)
    monkeypatch.setattr(tokens, "RULE", tokens.RULE + 1)
    # Until then, all of it is looked through.
    assert listed(desk, [tag_facet("foo")]) == ["b", "a"]
    assert index_all(desk) == 3
    assert desk.rows("index_mark", "rule, change_number, item_id") == [(tokens.RULE, 1, 3)]
    assert found_by_word(desk, "about") == [1, 2, 3]
    assert desk.count("indexed") == 3


def test_an_older_program_leaves_the_index_of_a_newer_one_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(desk)
    index_all(desk)
    monkeypatch.setattr(tokens, "RULE", tokens.RULE - 1)
    assert index_all(desk) == 0
    assert listed(desk, [tag_facet("foo")]) == ["b", "a"]
    assert desk.count("indexed") == 3


def test_two_who_index_at_once_index_everything_once(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, *(post(f"{number}", f"word{number}", tags=(f"tag{number % 3}",)) for number in range(60)))
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(index_all, desk, 7) for _ in range(4)]:
            future.result()
    assert (desk.count("indexed"), desk.count("postings")) == (60, 60 * 4)
    assert found_by_word(desk, "about") == list(range(1, 61))


@pytest.mark.process
def test_an_indexer_that_is_killed_has_indexed_whole_batches_and_another_goes_on(
    desk: Desk, database_url: str, tmp_path: Path
) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, *(post(f"{number}", f"word{number}") for number in range(300)))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.store.hands", "index", database_url, str(tmp_path), "1"], stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        for _ in range(5):
            other.stdout.readline()
        other.send_signal(signal.SIGKILL)
    ((_, _, done),) = desk.rows("index_mark", "rule, change_number, item_id")
    assert 5 <= done <= 300
    assert desk.count("indexed") == done
    assert index_all(desk) == 300 - done
    assert found_by_word(desk, "about") == list(range(1, 301))
    assert (desk.count("indexed"), desk.count("postings")) == (300, 900)


def test_what_is_deleted_between_reading_and_indexing_stays_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(desk)
    really = index._index

    def after_somebody_forgot_it(tx: Transaction, mark: index.IndexMark, found: Any) -> None:
        remove(tx, [2])
        tx.run("DELETE FROM sightings WHERE item_id = 2")
        tx.run("DELETE FROM items WHERE id = 2")
        really(tx, mark, found)

    monkeypatch.setattr(index, "_index", after_somebody_forgot_it)
    index_all(desk)
    assert found_by_word(desk, "about") == [1, 3]
    assert desk.store.index.behind() == 0


@pytest.mark.parametrize("text", ["x" * 900_000, " ".join(f"w{number}" for number in range(150_000))])
def test_a_text_of_any_length_is_indexed_or_marked(desk: Desk, text: str) -> None:
    desk.show(desk.follow("r/one", "reddit"), post("a", text[:1_000_000]), post("b"))
    assert index_all(desk) == 2
    assert found_by_word(desk, "about")[-1:] == [2]


@pytest.mark.parametrize("ordered_at", [-(10**17), -1, 0, 1, 1_700_000_000_000_000, 4_000_000_000_000_000])
@pytest.mark.parametrize("item_id", [1, 2**31 - 1])
def test_a_place_tells_its_item_and_goes_by_seconds_then_items(ordered_at: int, item_id: int) -> None:
    at = place(ordered_at, item_id)
    assert item_at(at) == item_id
    assert -(2**63) <= at < 2**63
    assert place(ordered_at + 2_000_000, 1) >= at or item_id > 1
    assert place(ordered_at, item_id - 1) < at


def test_a_sample_of_released_rows_can_be_indexed(tmp_path: Path) -> None:
    desk = Desk(opened(f"sqlite:///{tmp_path / 'catchment.db'}", tmp_path))
    desk.show(desk.follow(), post("a", created_at=None), post("b", title=None, text="只有文字"))
    assert index_all(desk) == 2
    desk.close()
