"""Items told in brief, and items taken away: what is held is never made less, and who did it is kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from catchment.model import (
    Counts,
    Item,
    Media,
    Reference,
    as_json,
)
from catchment.store.items.items import ExportFilter, as_it_was
from tests.store.desk import Desk, post

BRIEF = Item(
    "t3_a", kind="post", title="Locks", text="Opened.", url="https://r.example/a", author="ada", is_partial=True
)
WHOLE = BRIEF.replace(
    text="Opened at 8.",
    is_partial=False,
    author_id="t2_a",
    score=12,
    reply_count=3,
    thread_id="t3_a",
    is_adult=True,
    is_pinned=True,
    tags=("News",),
    media=(Media("https://m.example/1.png"),),
    references=(Reference("crossposted", external_id="t3_z"),),
)


def told(desk: Desk, *names: str) -> tuple[Any, ...]:
    item = desk.item("t3_a")
    return tuple(item[name] for name in names)


def at(desk: Desk, moment: datetime) -> dict[str, Any]:
    item_id = desk.item("t3_a")["id"]
    found = desk.store.database.read(lambda tx: as_it_was(tx, item_id, moment))
    assert found is not None
    return as_json(found)


def test_an_item_told_in_brief_is_stored_and_says_so(desk: Desk) -> None:
    assert desk.show(desk.follow("r", "reddit"), BRIEF).counts == Counts(new=1)
    assert told(desk, "text", "is_partial", "score", "version") == ("Opened.", True, None, 1)


def test_the_first_whole_form_takes_its_place_without_a_revision(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, BRIEF)
    before = desk.item("t3_a")
    assert desk.show(source, WHOLE).counts == Counts(updated=1)
    item = desk.item("t3_a")
    assert (desk.revisions("t3_a"), item["version"], item["is_partial"]) == ([], 1, False)
    wanted = {
        "text": "Opened at 8.",
        "author_id": "t2_a",
        "score": 12,
        "reply_count": 3,
        "thread_id": "t3_a",
        "is_adult": True,
        "is_pinned": True,
        "tags": ["News"],
        "media": [{"url": "https://m.example/1.png"}],
    }
    assert {name: item[name] for name in wanted} == wanted
    assert [(reference["relation"], reference["external_id"]) for reference in item["references"]] == [
        ("crossposted", "t3_z")
    ]
    # Whoever reads by changes learns of it; and its time is still that of the first sight.
    assert item["content_change_number"] > before["content_change_number"]
    assert item["content_last_changed_at"] == before["content_last_changed_at"]
    assert at(desk, desk.now - timedelta(seconds=30))["text"] == "Opened at 8."
    assert desk.show(source, WHOLE).counts == Counts(duplicate=1)


def test_a_short_form_takes_nothing_away_from_what_is_held(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, WHOLE)
    before = desk.item("t3_a")
    assert desk.show(source, BRIEF.replace(title="Other", author="bob")).counts == Counts(duplicate=1)
    assert desk.item("t3_a") == before | {"last_seen_at": desk.now.isoformat()}


def test_an_edit_after_the_whole_form_leaves_a_revision_as_ever(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    for item in (BRIEF, WHOLE, WHOLE.replace(text="Closed.")):
        desk.show(source, item)
    assert [revision["text"] for revision in desk.revisions("t3_a")] == ["Opened at 8."]


def test_of_what_was_told_in_brief_and_taken_away_the_brief_stays_until_it_is_back(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, BRIEF)
    desk.show(source, WHOLE.replace(text=None, is_deleted=True, deleted_by="moderator"))
    assert told(desk, "text", "is_partial", "is_deleted", "deleted_by") == ("Opened.", True, True, "moderator")
    desk.show(source, WHOLE)
    assert told(desk, "text", "is_partial", "is_deleted", "deleted_by") == ("Opened at 8.", False, False, None)
    assert [revision["reasons"] for revision in desk.revisions("t3_a")] == [
        ["marked_deleted_by_source"],
        ["restored_by_source"],
    ]


# ── who took it away ──────────────────────────────────────────────────────────────────────────────────────────────


def test_who_took_an_item_away_is_kept_with_the_text_that_we_hold(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, WHOLE)
    desk.show(source, WHOLE.replace(text=None, title="[deleted by user]", is_deleted=True, deleted_by="author"))
    assert told(desk, "title", "text", "is_deleted", "deleted_by") == ("Locks", "Opened at 8.", True, "author")
    before = at(desk, desk.now - timedelta(seconds=1))
    assert (before["is_deleted"], before["deleted_by"]) == (False, None)
    assert at(desk, desk.now)["deleted_by"] == "author"
    assert [revision["reasons"] for revision in desk.revisions("t3_a")] == [["marked_deleted_by_source"]]


def test_what_is_restored_was_taken_away_by_nobody(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    for item in (post("t3_a"), post("t3_a", is_deleted=True, deleted_by="author"), post("t3_a")):
        desk.show(source, item)
    assert told(desk, "is_deleted", "deleted_by") == (False, None)


def test_who_did_it_is_told_later_and_then_not_forgotten(desk: Desk) -> None:
    source, gone = desk.follow("r", "reddit"), post("t3_a", is_deleted=True)
    for item, by in ((gone, None), (gone.replace(deleted_by="moderator"), "moderator"), (gone, "moderator")):
        desk.show(source, item)
        assert told(desk, "deleted_by", "version") == (by, 1)


def test_an_adult_mark_may_come_later(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, post("t3_a"))
    assert desk.show(source, post("t3_a", is_adult=True)).counts == Counts(updated=1)
    assert told(desk, "is_adult", "version") == (True, 1)


def test_an_export_tells_both(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, BRIEF, post("t3_b", is_deleted=True, deleted_by="moderator"))
    exported = list(desk.store.exports.of(ExportFilter()))
    assert [(item.external_id, item.is_partial, item.deleted_by) for item in exported] == [
        ("t3_a", True, None),
        ("t3_b", False, "moderator"),
    ]


# ── rows of a list, which lack only the text ──────────────────────────────────────────────────────────────────────

ROW = Item(
    "t3_a",
    kind="post",
    title="[水] Locks",
    title_prefixes=("水",),
    tags=("boats",),
    author="ada",
    thread_id="a",
    is_head=True,
    reply_count=2,
    is_pinned=True,
    lacks_text=True,
)
FLOOR = ROW.replace(text="Opened at 8.", lacks_text=False, reply_count=None, is_pinned=None, floor_number=0)


def tags(desk: Desk) -> list[tuple[str, str]]:
    question = """
        SELECT t.origin, t.name FROM item_tags m JOIN tags t ON t.id = m.tag_id JOIN items i ON i.id = m.item_id
         WHERE i.external_id = 't3_a' ORDER BY t.origin, t.name
    """
    return [(origin, name) for origin, name in desk.store.database.read(lambda tx: tx.all(question))]


def test_text_that_comes_after_the_row_completes_it_and_is_no_revision(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    assert [desk.show(source, item).counts for item in (ROW, FLOOR, ROW, FLOOR)] == [
        Counts(new=1),
        Counts(updated=1),
        Counts(duplicate=1),
        Counts(duplicate=1),
    ]
    assert told(desk, "title", "text", "is_partial", "reply_count", "is_pinned", "version", "floor_number") == (
        *("[水] Locks", "Opened at 8.", False, 2, True, 1, 0),
    )


def test_that_an_item_is_folded_shows_with_its_text_and_is_no_revision_then(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    notice = FLOOR.replace(text=None, lacks_text=True, is_folded=True)
    assert [desk.show(source, item).counts for item in (ROW, notice, FLOOR.replace(is_folded=True), ROW)] == [
        Counts(new=1),
        Counts(updated=1),
        Counts(updated=1),
        Counts(duplicate=1),
    ]
    assert told(desk, "is_folded", "text", "version") == (True, "Opened at 8.", 1)
    desk.show(source, FLOOR)
    desk.show(source, FLOOR.replace(is_folded=True))
    assert [revision["reasons"] for revision in desk.revisions("t3_a")] == [
        ["unfolded_by_source"],
        ["marked_folded_by_source"],
    ]


def test_what_a_row_states_is_taken_over_in_place(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, ROW)
    desk.show(source, FLOOR)
    replied_at = desk.now - timedelta(hours=1)
    row = ROW.replace(reply_count=5, view_count=90, is_pinned=False, is_digest=True, last_reply_at=replied_at)
    assert desk.show(source, row).counts == Counts(updated=1)
    assert told(desk, "reply_count", "view_count", "is_pinned", "is_digest", "last_reply_at", "version", "text") == (
        *(5, 90, False, True, replied_at.isoformat(), 1, "Opened at 8."),
    )


def test_a_row_with_a_new_title_writes_one_revision_and_keeps_the_text(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, ROW)
    desk.show(source, FLOOR)
    retitled = ROW.replace(title="[公告] Locks", title_prefixes=("公告",))
    before = desk.now
    assert desk.show(source, retitled).counts == Counts(updated=1)
    assert told(desk, "title", "text", "version", "tags", "title_prefixes") == (
        *("[公告] Locks", "Opened at 8.", 2, ["boats", "公告"], ["公告"]),
    )
    assert [(revision["title"], revision["text"], revision["reasons"]) for revision in desk.revisions("t3_a")] == [
        ("[水] Locks", "Opened at 8.", ["title_changed"])
    ]
    assert (at(desk, before)["title"], at(desk, before)["text"]) == ("[水] Locks", "Opened at 8.")
    # Its own page, read later, shows the same: the fingerprint is that of the new title with the stored text.
    whole = FLOOR.replace(title="[公告] Locks", title_prefixes=("公告",))
    assert [desk.show(source, item).counts for item in (retitled, whole)] == [Counts(duplicate=1)] * 2
    desk.store.index.advance()
    assert desk.store.search.find("公告").count == 1
    assert desk.store.search.find("Opened").count == 1


MIRROR = ROW.replace(
    title="[docks][水] Locks", title_prefixes=(), is_title_foreign=True, is_partial=True, lacks_text=False
)


@pytest.mark.parametrize("seen", [(ROW, FLOOR), (FLOOR, ROW), (FLOOR,), (ROW,)])
def test_the_title_of_a_mirror_is_shown_until_the_threads_own_is_known_which_is_no_edit(
    desk: Desk, seen: tuple[Item, ...]
) -> None:
    source = desk.follow("r", "reddit")
    assert desk.show(source, MIRROR).counts == Counts(new=1)
    assert told(desk, "title", "title_prefixes", "tags") == ("[docks][水] Locks", [], ["boats"])
    before = desk.item("t3_a")["content_change_number"]
    # A mirror with yet another title says nothing about the thread.
    assert desk.show(source, MIRROR.replace(title="[quay] Locks")).counts == Counts(duplicate=1)
    for item in seen:
        desk.show(source, item)
    assert told(desk, "title", "title_prefixes", "version") == ("[水] Locks", ["水"], 1)
    assert (desk.revisions("t3_a"), tags(desk)) == ([], [("title_prefix", "水"), ("topic_tag", "boats")])
    assert desk.item("t3_a")["content_change_number"] > before
    assert [desk.show(source, item).counts for item in (MIRROR, *seen)] == [Counts(duplicate=1)] * (len(seen) + 1)
    # From then on, it has a history.
    desk.show(source, ROW.replace(title="[公告] Locks", title_prefixes=("公告",)))
    assert [(revision["title"], revision["reasons"]) for revision in desk.revisions("t3_a")] == [
        ("[水] Locks", ["title_changed"])
    ]


def test_the_same_title_as_that_of_a_mirror_is_the_threads_own_once_it_says_so(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, MIRROR.replace(title=ROW.title))
    desk.show(source, ROW)
    desk.show(source, ROW.replace(title="Locks", title_prefixes=()))
    assert [(revision["title"], revision["reasons"]) for revision in desk.revisions("t3_a")] == [
        ("[水] Locks", ["title_changed"])
    ]


def test_a_row_never_takes_a_deletion_back(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, FLOOR)
    desk.show(source, FLOOR.replace(text=None, is_deleted=True))
    assert desk.show(source, ROW.replace(is_pinned=None, reply_count=None)).counts == Counts(duplicate=1)
    assert told(desk, "is_deleted", "text", "version") == (True, "Opened at 8.", 2)


def test_tags_know_their_origin(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, ROW.replace(tags=("boats", "水")))
    assert tags(desk) == [("title_prefix", "水"), ("topic_tag", "boats"), ("topic_tag", "水")]
    assert told(desk, "tags", "title_prefixes") == (["boats", "水"], ["水"])
    desk.show(source, ROW.replace(title="Locks", title_prefixes=(), tags=("boats",)))
    assert tags(desk) == [("topic_tag", "boats")]
    assert told(desk, "tags", "title_prefixes") == (["boats"], [])


def test_an_item_is_found_by_its_other_ids(desk: Desk) -> None:
    source = desk.follow("r", "reddit")
    desk.show(source, ROW)
    mirror = ROW.replace(external_id="t3_m", aliases=("t3_a",))
    assert desk.show(source, mirror).counts == Counts(duplicate=1)
    assert desk.show(source, ROW.replace(external_id="t3_m")).counts == Counts(duplicate=1)
