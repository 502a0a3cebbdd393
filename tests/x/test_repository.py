"""The repository: posts are stored once, whoever brings them; versions of one post are one item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import StoreError
from catchment.model import Counts, Item, Source, as_json
from catchment.store.database import Transaction
from catchment.store.search.lists import Filter
from tests.store.desk import Desk, opened
from tests.x.asking import LIST, read, source_of


@pytest.fixture
def desk(tmp_path: Path, database_url: str) -> Iterator[Desk]:
    desk = Desk(opened(database_url, tmp_path))
    yield desk
    desk.close()


def followed(desk: Desk, name: str = "one") -> Source:
    return desk.follow(name, "x")


def tweet(number: int, text: str = "", *versions: int, author: str = "ada") -> Item:
    """As the parser gives it; `versions`: ids of all its versions."""
    shown = {
        "id": str(number),
        "text": text or f"post {number}",
        "author_id": "7",
        "created_at": f"2026-01-01T00:{number % 60:02}:00.000Z",
        "edit_history_tweet_ids": [str(version) for version in versions or (number,)],
    }
    body = json.dumps({"data": [shown], "includes": {"users": [{"id": "7", "username": author}]}}).encode()
    (item,) = read(body, source_of(LIST, "5", service="x")).items
    return item


def test_new_posts_are_inserted_and_stored_ones_are_skipped(desk: Desk) -> None:
    source = followed(desk)
    assert desk.show(source, tweet(1), tweet(2)).counts == Counts(new=2)
    assert desk.show(source, tweet(1), tweet(2), tweet(3)).counts == Counts(new=1, duplicate=2)
    assert desk.show(followed(desk, "two"), tweet(3)).counts == Counts(duplicate=1)
    assert desk.count("items") == 3


def test_a_post_is_found_by_its_id(desk: Desk) -> None:
    desk.show(followed(desk), tweet(1))
    assert set(desk.store.items.ids_of("x", ["1", "2"])) == {"1"}


def test_the_posts_of_an_author_are_listed_newest_first(desk: Desk) -> None:
    source = followed(desk)
    desk.show(source, *(tweet(number) for number in range(1, 6)), tweet(9, author="grace"))
    found = desk.store.items.listed(Filter(author="ada"), 3).items
    assert [item.external_id for item in found] == ["5", "4", "3"]


def test_a_page_is_stored_whole_or_not_at_all(desk: Desk) -> None:
    claimed = desk.claim(followed(desk))

    def fail() -> None:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError):
        desk.write(claimed, [tweet(1), tweet(2)], meanwhile=fail)
    assert desk.count("items") == 0
    assert desk.write(claimed, [tweet(1), tweet(2)]).counts == Counts(new=2)


@pytest.mark.parametrize("is_newer_first", [False, True])
def test_an_edited_post_is_one_item_whichever_version_comes_first(desk: Desk, is_newer_first: bool) -> None:
    source, other = followed(desk), followed(desk, "two")
    before, after = tweet(11, "Lock 7 opens at 8.", 11, 12), tweet(12, "Lock 7 opens at 9.", 11, 12)
    for shown in (after, before) if is_newer_first else (before, after):
        desk.show(source, shown)
    # Through another service, which does not say that it was edited.
    desk.show(other, tweet(12, "Lock 7 opens at 9."))
    assert desk.count("items") == 1
    (item,) = as_json(desk.store.items.newest(10))
    assert item["text"] == "Lock 7 opens at 9."
    assert item["version"] == (1 if is_newer_first else 2)
    assert [revision["text"] for revision in desk.revisions(item["external_id"])] == (
        [] if is_newer_first else ["Lock 7 opens at 8."]
    )
    assert aliases(desk) == {"11", "12"} - {item["external_id"]}


def flat_tweet(number: int, text: str, *versions: int, spelling: str = "editHistoryTweetIds") -> Item:
    """The same through TwitterAPI.io."""
    shown = {
        "id": str(number),
        "text": text,
        "author": {"userName": "ada", "id": "7", "name": "Ada"},
        "createdAt": f"Thu Jan 01 00:{number % 60:02}:00 +0000 2026",
        **({spelling: [str(version) for version in versions]} if versions else {}),
    }
    (item,) = read(json.dumps({"tweets": [shown]}).encode(), source_of(LIST, "5", service="twitterapi_io")).items
    return item


@pytest.mark.parametrize("spelling", ["editHistoryTweetIds", "edit_history_tweet_ids"])
def test_an_edit_that_twitterapi_io_tells_of_is_one_item_with_its_history(desk: Desk, spelling: str) -> None:
    source = followed(desk)
    desk.show(source, flat_tweet(11, "Lock 7 opens at 8."))
    desk.show(source, flat_tweet(12, "Lock 7 opens at 9.", 11, 12, spelling=spelling))
    (item,) = as_json(desk.store.items.newest(10))
    assert (item["text"], item["version"]) == ("Lock 7 opens at 9.", 2)
    assert [revision["text"] for revision in desk.revisions(item["external_id"])] == ["Lock 7 opens at 8."]
    assert aliases(desk) == {"11", "12"} - {item["external_id"]}


def test_what_one_service_has_told_of_an_edit_holds_for_the_other(desk: Desk) -> None:
    source, other = followed(desk), followed(desk, "two")
    desk.show(source, tweet(12, "Lock 7 opens at 9.", 11, 12))
    desk.show(other, flat_tweet(12, "Lock 7 opens at 9."), flat_tweet(11, "Lock 7 opens at 8.", 11, 12))
    assert desk.count("items") == 1
    assert as_json(desk.store.items.newest(10))[0]["text"] == "Lock 7 opens at 9."


def test_the_posts_of_a_conversation_are_one_thread_also_after_its_head_was_edited(desk: Desk) -> None:
    def post(number: int, conversation: int, answers: int | None = None, *versions: int) -> dict[str, Any]:
        shown = {
            "id": str(number),
            "text": f"post {number}",
            "author_id": "7",
            "conversation_id": str(conversation),
            "created_at": f"2026-01-01T00:{number % 60:02}:00.000Z",
            "edit_history_tweet_ids": [str(version) for version in versions or (number,)],
        }
        return shown | ({"referenced_tweets": [{"type": "replied_to", "id": str(answers)}]} if answers else {})

    def show(*posts: dict[str, Any]) -> None:
        body = json.dumps({"data": posts, "includes": {"users": [{"id": "7", "username": "ada"}]}}).encode()
        desk.show(source, *read(body, source_of(LIST, "5", service="x")).items)

    source = followed(desk)
    show(post(11, 11), post(13, 11, 11), post(14, 11, 13))
    # The head is edited, and so has another id, and a conversation of its own; a reply belongs to that.
    show(post(15, 15, None, 11, 15), post(16, 15, 15))
    (head,) = [item for item in desk.store.items.newest(10) if item.is_head]
    assert head.version == 2
    assert [reply.text for reply in desk.store.items.replies(head.id, 10).items] == ["post 13", "post 14", "post 16"]
    assert desk.store.replies.stored_count(head) == 3


def aliases(desk: Desk) -> set[str]:
    def ids(tx: Transaction) -> set[str]:
        return {row[0] for row in tx.all("SELECT external_id FROM aliases")}

    return desk.store.database.read(ids)
