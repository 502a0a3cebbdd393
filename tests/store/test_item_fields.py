"""The fields of items: declared once, and shown as they always were."""

from __future__ import annotations

from datetime import timedelta

from catchment.model import LABELS, Media, Reference, as_json
from catchment.store.item_fields import Group, names_of
from tests.store.desk import Desk, post


def test_every_label_of_an_item_is_a_column_that_is_updated_in_place() -> None:
    assert set(LABELS) <= set(names_of(Group.LABEL))


def test_an_item_is_shown_with_these_fields_and_in_this_form(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    created, at = desk.now - timedelta(days=1), desk.now + timedelta(minutes=1)
    shown = post(
        "t3_a",
        "said",
        kind="post",
        author="ada",
        author_id="u1",
        html="<p>said</p>",
        url="https://reddit.example/a",
        created_at=created,
        score=0,
        rounded=("score",),
        thread_id="t3_a",
        is_head=True,
        is_pinned=True,
        media=(Media("https://m.example/1.png", width=640),),
        references=(Reference("crossposted", external_id="t3_b"),),
        tags=("news",),
        language="en",
    )
    desk.show(source, shown)
    (item,) = desk.store.items.newest(1)
    assert as_json(item) == {
        "id": 1,
        "platform": "reddit",
        "external_id": "t3_a",
        "kind": "post",
        "source_id": source.id,
        "author": "ada",
        "title": "About t3_a",
        "text": "said",
        "html": "<p>said</p>",
        "url": "https://reddit.example/a",
        "created_at": created.isoformat(),
        "edited_at": None,
        "score": 0,
        "reply_count": None,
        "view_count": None,
        "last_reply_at": None,
        "thread_id": "t3_a",
        "floor_number": None,
        "is_head": True,
        "is_deleted": False,
        "deleted_by": None,
        "is_folded": False,
        "is_pinned": True,
        "is_digest": False,
        "version": 1,
        "fingerprint": item.fingerprint.hex(),
        "first_seen_at": at.isoformat(),
        "content_last_changed_at": at.isoformat(),
        "author_id": "u1",
        "author_display_name": None,
        "media": [{"url": "https://m.example/1.png", "width": 640}],
        "tags": ["news"],
        "title_prefixes": [],
        "parent_id": None,
        "scope": "",
        "target_url": None,
        "is_adult": False,
        "is_created_at_guessed": False,
        "is_zone_guessed": False,
        "is_text_cut": False,
        "is_partial": False,
        "language": "en",
        "ordered_at": created.isoformat(),
        "change_number": 1,
        "content_change_number": 1,
        "rounded": ["score"],
        "last_seen_at": at.isoformat(),
        "references": [
            {
                "relation": "crossposted",
                "external_id": "t3_b",
                "url": None,
                "author": None,
                "text": None,
                "author_display_name": None,
                "created_at": None,
                "media": [],
            }
        ],
    }
