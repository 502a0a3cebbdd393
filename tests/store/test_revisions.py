"""What an item said before stays readable; what merely counts is updated in place; nothing known is overwritten by
something unknown, rounded, withheld or older."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.model import Counts, Item, Media
from catchment.store import open_store
from catchment.text.clean import FINGERPRINT_RULE, fingerprint
from tests.clocks import HandClock
from tests.store.desk import Desk, later, opened, post

DAY = datetime(2025, 12, 1, tzinfo=UTC)


def test_an_edit_leaves_the_previous_content_with_its_time_and_reasons(desk: Desk) -> None:
    source = desk.follow()
    picture = (Media("https://m.example/1.png"),)
    desk.show(source, post("a", "first", title="One", html="<p>first</p>", media=picture, edited_at=DAY))
    shown_at = desk.now
    conclusion = desk.show(source, post("a", "second", title="Two"))
    assert conclusion.counts == Counts(updated=1)
    (revision,) = desk.revisions("a")
    wanted = {
        "version": 1,
        "reasons": ["content_fingerprint_changed", "title_changed"],
        "valid_from": shown_at.isoformat(),
        "valid_to": desk.now.isoformat(),
        "source_edited_at": DAY.isoformat(),
        "title": "One",
        "text": "first",
        "html": "<p>first</p>",
        "media": [{"url": "https://m.example/1.png"}],
        "is_deleted": False,
        "is_folded": False,
    }
    assert {name: revision[name] for name in wanted} == wanted
    item = desk.item("a")
    assert (item["title"], item["text"], item["html"], item["media"], item["version"]) == ("Two", "second", None, [], 2)
    assert item["content_last_changed_at"] == desk.now.isoformat()


def test_revisions_follow_each_other_without_holes(desk: Desk) -> None:
    source = desk.follow()
    for number in range(5):
        desk.show(source, post("a", f"version {number}"))
    item, revisions = desk.item("a"), desk.revisions("a")
    assert [revision["version"] for revision in revisions] == [1, 2, 3, 4]
    assert item["version"] == 5
    assert revisions[0]["valid_from"] == item["first_seen_at"]
    assert all(revision["valid_to"] == following["valid_from"] for revision, following in pairwise(revisions))
    assert revisions[-1]["valid_to"] == item["content_last_changed_at"]


def everything_at_once(item: Item) -> Item:
    return item.replace(text="other", title="Other", is_deleted=True, is_folded=True)


def everything_undone(item: Item) -> Item:
    return item.replace(is_deleted=False, is_folded=False)


def test_reasons_stand_in_the_order_that_readers_rely_on(desk: Desk) -> None:
    source, item = desk.follow(), post("a")
    desk.show(source, item)
    desk.show(source, everything_at_once(item))
    desk.show(source, everything_undone(item))
    assert [row[7] for row in desk.rows("revisions", "id, 1, 2, 3, 4, 5, 6, reasons")] == [
        "content_fingerprint_changed;marked_deleted_by_source;marked_folded_by_source;title_changed",
        "content_fingerprint_changed;restored_by_source;unfolded_by_source;title_changed",
    ]


def test_counters_are_updated_in_place(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a", score=1, reply_count=2, view_count=3))
    assert desk.show(source, post("a", score=10, reply_count=2, view_count=3)).counts == Counts(updated=1)
    item = desk.item("a")
    assert (item["score"], item["reply_count"], item["view_count"], item["version"]) == (10, 2, 3, 1)
    assert desk.revisions("a") == []
    assert item["content_last_changed_at"] == item["first_seen_at"]


def nothing_is_told(item: Item) -> Item:
    return Item(item.external_id, title=item.title, text=item.text)


def counters_are_rounded(item: Item) -> Item:
    return item.replace(score=1000, reply_count=10, view_count=12_000, rounded=("score", "reply_count", "view_count"))


@pytest.mark.parametrize("poorer", [nothing_is_told, counters_are_rounded])
def test_what_is_known_is_not_overwritten_by_what_is_not(desk: Desk, poorer: Any) -> None:
    source = desk.follow("r/one", "reddit")
    full = post(
        "a",
        score=1004,
        reply_count=0,
        view_count=12_345,
        url="https://one.example/a",
        author="ann",
        author_display_name="Ann",
        edited_at=DAY,
        tags=("x",),
    )
    desk.show(source, full)
    before = desk.item("a")
    assert desk.show(source, poorer(full)).counts == Counts(duplicate=1)
    assert desk.item("a") == before | {"last_seen_at": desk.now.isoformat()}
    # The same with an edit at the same time: the content moves, the rest stays.
    desk.show(source, poorer(full).replace(text="edited"))
    kept = (
        "score",
        "reply_count",
        "view_count",
        "rounded",
        "url",
        "author",
        "author_display_name",
        "edited_at",
        "tags",
    )
    assert {name: desk.item("a")[name] for name in kept} == {name: before[name] for name in kept}


def test_an_exact_counter_takes_the_place_of_a_rounded_one(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a", view_count=12_000, score=1, rounded=("view_count",)))
    assert desk.item("a")["rounded"] == ["view_count"]
    desk.show(source, post("a", view_count=13_000, score=1, rounded=("view_count",)))
    assert (desk.item("a")["view_count"], desk.item("a")["rounded"]) == (13_000, ["view_count"])
    desk.show(source, post("a", view_count=13_021, score=1))
    assert (desk.item("a")["view_count"], desk.item("a")["rounded"]) == (13_021, [])


def test_a_rounded_counter_that_turns_out_exact_as_it_stands_is_exact(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a", view_count=12_000, rounded=("view_count",)))
    desk.show(source, post("a", view_count=12_000))
    assert desk.item("a")["rounded"] == []


def test_text_that_the_platform_withholds_stays_ours(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, post("a", "worth keeping", title="One"))
    withheld = Item("a", title="One", is_deleted=True)
    assert desk.show(source, withheld).counts == Counts(updated=1)
    assert desk.show(source, withheld).counts == Counts(duplicate=1)
    item = desk.item("a")
    assert (item["text"], item["is_deleted"], item["version"]) == ("worth keeping", True, 2)
    assert [revision["reasons"] for revision in desk.revisions("a")] == [["marked_deleted_by_source"]]


def test_what_comes_back_unchanged_is_only_restored(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, post("a", "worth keeping"))
    desk.show(source, Item("a", title="[deleted]", is_deleted=True))
    desk.show(source, post("a", "worth keeping"))
    assert [revision["reasons"] for revision in desk.revisions("a")] == [
        ["marked_deleted_by_source"],
        ["restored_by_source"],
    ]
    assert (desk.item("a")["text"], desk.item("a")["is_deleted"]) == ("worth keeping", False)


def test_an_answer_that_was_overtaken_changes_nothing(desk: Desk) -> None:
    first, second = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(first, post("a", "old", score=1))
    asked_at = desk.now
    desk.show(first, post("a", "new", score=9))
    before = desk.item("a")
    conclusion = desk.write(desk.claim(second), [post("a", "old", score=1)], at=asked_at + timedelta(seconds=1))
    assert conclusion.counts == Counts(duplicate=1)
    assert desk.item("a") == before


def test_an_answer_that_only_confirmed_overtakes_an_older_one_as_well(desk: Desk) -> None:
    first, second = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(first, post("a", score=5))
    asked_at = desk.now + timedelta(seconds=1)
    desk.show(first, post("a", score=5))
    assert desk.write(desk.claim(second), [post("a", score=4)], at=asked_at).counts == Counts(duplicate=1)
    assert desk.item("a")["score"] == 5


def test_tags_are_those_that_were_told_last(desk: Desk) -> None:
    source = desk.follow()
    for tags in [("question", "python"), ("python", "solved"), ()]:
        desk.show(source, post("a", tags=tags))
    assert desk.item("a")["tags"] == ["python", "solved"]
    named = desk.store.database.read(
        lambda tx: tx.all("SELECT t.name FROM item_tags i JOIN tags t ON t.id = i.tag_id ORDER BY t.name")
    )
    assert named == [("python",), ("solved",)]
    assert desk.revisions("a") == []


# ── contents that flip ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_content_that_goes_back_and_forth_leaves_three_revisions_a_day(desk: Desk) -> None:
    source = desk.follow()
    for number in range(10):
        desk.show(source, post("a", "even" if number % 2 == 0 else "odd", score=number), after=3600)
    assert len(desk.revisions("a")) == 3
    assert desk.item("a")["score"] == 9
    ((volatile_count,),) = desk.store.database.read(lambda tx: tx.all("SELECT volatile_count FROM items"))
    # Shown 4 … 9: every other one says again what we hold.
    assert volatile_count == 3


def test_the_next_day_an_edit_is_an_edit_again(desk: Desk) -> None:
    source = desk.follow()
    for number in range(6):
        desk.show(source, post("a", "even" if number % 2 == 0 else "odd"), after=60)
    desk.show(source, post("a", "news"), after=60)
    assert (len(desk.revisions("a")), desk.item("a")["text"]) == (3, "odd")
    desk.show(source, post("a", "news"), after=86_400)
    assert (len(desk.revisions("a")), desk.item("a")["text"]) == (4, "news")


def test_many_edits_that_are_all_new_are_all_kept(desk: Desk) -> None:
    source = desk.follow()
    for number in range(8):
        desk.show(source, post("a", f"version {number}"))
    assert len(desk.revisions("a")) == 7


# ── a new rule for fingerprints ───────────────────────────────────────────────────────────────────────────────────


def test_a_new_rule_recomputes_fingerprints_and_makes_no_revisions(database_url: str, tmp_path: Path) -> None:
    today = Desk(opened(database_url, tmp_path))
    source = today.follow()
    long = "x" * 1_000_001
    page = [post("a"), post("cut", long), post("b", created_at=DAY, media=(Media("https://m.example/1.png"),))]
    today.show(source, *page)
    today.show(source, post("b renamed", created_at=DAY, title="About b", media=page[2].media))
    today.close()
    rule = FINGERPRINT_RULE + 1
    store = open_store(database_url, tmp_path, today.now, lambda *content: later(fingerprint(*content), rule))
    tomorrow = Desk(store, today.clock)
    tomorrow.rule = rule
    # By its own id, by an alias, cut, and once more under an id that was never seen.
    renamed = post("c", created_at=DAY, title="About b", media=page[2].media)
    for shown in (page[:2], [page[2].replace(external_id="b renamed")], [renamed]):
        assert tomorrow.show(source, *shown).counts == Counts(duplicate=len(shown))
    assert tomorrow.count("revisions") == 0
    assert {row[3] for row in tomorrow.rows("items", "id, 1, 2, fingerprint_rule")} == {rule}
    assert tomorrow.show(source, post("a", "edited")).counts == Counts(updated=1)
    tomorrow.close()


# ── any history ───────────────────────────────────────────────────────────────────────────────────────────────────

shown_items = st.builds(
    lambda key, text, is_deleted, score: Item(
        key, title=f"About {key}", text=None if is_deleted else text, is_deleted=is_deleted, score=score
    ),
    st.sampled_from("abc"),
    st.sampled_from(["one", "two", "three", "four"]),
    st.booleans(),
    st.none() | st.integers(0, 3),
)
histories = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(-120, 7200),
        st.lists(shown_items, max_size=3, unique_by=lambda item: item.external_id),
    ),
    max_size=12,
)


@settings(max_examples=25)
@given(history=histories)
def test_whatever_is_shown_the_history_of_every_item_is_whole(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[int, int, list[Item]]]
) -> None:
    """Two sources show three items in any order and at any time, sometimes late."""
    home = tmp_path_factory.mktemp("history")
    desk = Desk(opened(f"sqlite:///{home / 'catchment.db'}", home), HandClock())
    sources = [desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")]
    for which, after, items in history:
        conclusion = desk.show(sources[which], *items, after=after)
        counts = conclusion.counts
        assert counts.new + counts.updated + counts.duplicate == len(items)
    for item in desk.store.items.newest(100):
        revisions = desk.store.items.revisions(item.id)
        assert [revision.version for revision in revisions] == list(range(1, item.version))
        starts = [revision.valid_from for revision in revisions] + [item.content_last_changed_at]
        assert starts[0] == item.first_seen_at
        assert starts[1:] == [revision.valid_to for revision in revisions]
        assert starts == sorted(starts)
    shown = {item.external_id for _, _, items in history for item in items}
    assert {item.external_id for item in desk.store.items.newest(100)} == shown
    desk.close()


def test_a_text_that_arrives_after_its_removal_was_told_is_kept_and_nothing_else_of_that_answer(desk: Desk) -> None:
    first, other = desk.follow("one", kind="reddit"), desk.follow("two", kind="reddit")
    slow, quick = desk.claim(first), desk.claim(other)
    asked_at = desk.now
    desk.clock.advance(60)
    gone = Item("a", title="One", score=5, author="ann", is_deleted=True, deleted_by="moderator")
    desk.write(quick, [gone])
    before = desk.item("a")
    said = Item("a", title="One", text="said", html="<p>said</p>", score=3, author="bob")
    assert desk.write(slow, [said], at=asked_at).counts == Counts(updated=1)
    item = desk.item("a")
    assert (item["text"], item["html"], item["is_deleted"], item["deleted_by"]) == (
        "said", "<p>said</p>", True, "moderator",
    )  # fmt: skip
    assert (item["score"], item["author"], item["version"], desk.revisions("a")) == (5, "ann", 1, [])
    assert item["content_change_number"] > before["content_change_number"]
    desk.show(first, gone)
    assert desk.item("a")["text"] == "said"
