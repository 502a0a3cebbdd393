"""The shapes that programs rely on: keys, exit codes, one document or one a line."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite

ITEM_KEYS = {
    *("id", "platform", "external_id", "kind", "source_id", "author", "title", "text", "html", "url", "created_at"),
    *("edited_at", "score", "reply_count", "view_count", "thread_id", "floor_number", "is_deleted", "is_folded"),
    *("is_pinned", "is_digest", "version", "fingerprint", "first_seen_at", "last_seen_at", "content_last_changed_at"),
    *("author_id", "author_display_name", "media", "references", "tags"),
}
COLLECT_KEYS = {
    *("sources", "succeeded", "failed", "deferred", "skipped", "new", "updated", "duplicate", "invalid", "requests"),
    *("duration_seconds", "still_due", "next_due_at", "results"),
}
RESULT_KEYS = {
    *("source_id", "name", "kind", "outcome", "new", "updated", "duplicate", "invalid", "requests", "error"),
    *("deferred_until", "watermark_updated", "duration_seconds", "notes"),
}


@pytest.fixture(autouse=True)
def _database(home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this holds on SQLite and on PostgreSQL."""
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)


def test_from_adding_to_reading_everything_has_the_agreed_shape(catchment: Catchment, site: FeedSite) -> None:
    feed, broken = site.feed("news", title="新闻 & more", posts=3), site.feed("broken")
    broken.status = 503
    added = catchment("sources", "add", "rss", feed.url, "--json")
    assert (added.code, added.json["id"], added.json["kind"], added.json["state"]) == (0, 1, "rss", "active")
    assert catchment("sources", "add", "rss", broken.url, "--interval", 5, "--json").json["interval_minutes"] == 5

    first = catchment("collect", "--json")
    assert first.code == 3
    assert first.json.keys() == COLLECT_KEYS
    assert all(result.keys() == RESULT_KEYS for result in first.json["results"])
    told = {name: first.json[name] for name in COLLECT_KEYS - {"duration_seconds", "results"}}
    assert told == {
        "sources": 2,
        "succeeded": 1,
        "failed": 1,
        "deferred": 0,
        "skipped": 0,
        "new": 3,
        "updated": 0,
        "duplicate": 0,
        "invalid": 0,
        "requests": 2,
        "still_due": 0,
        "next_due_at": None,
    }
    errors = {result["source_id"]: result["error"] for result in first.json["results"]}
    assert errors[1] is None
    assert errors[2].keys() == {"code", "message", "retryable"}
    assert (errors[2]["code"], errors[2]["retryable"]) == ("SERVER_TROUBLE", True)

    feed.post("news-1", text="second thoughts")
    second = catchment("collect", "--source", 1, "--json")
    assert (second.code, second.json["updated"], second.json["duplicate"]) == (0, 1, 2)

    items = catchment("items", "--source", 1, "--json").lines
    assert [item["external_id"] for item in items] == ["news-3", "news-2", "news-1"]
    assert all(item.keys() >= ITEM_KEYS for item in items)
    edited = items[-1]
    assert (edited["version"], edited["text"], edited["source_id"]) == (2, "second thoughts", 1)

    revisions = catchment("revisions", edited["id"], "--json").json
    assert [(revision["version"], revision["text"], revision["reasons"]) for revision in revisions] == [
        (1, "text", ["content_fingerprint_changed"])
    ]
    assert catchment("gaps", "--json").json == []

    listed = catchment("sources", "list", "--json").json
    assert [(source["id"], source["name"]) for source in listed] == [(1, "新闻 & more"), (2, broken.url)]
    assert catchment("sources", "list", "--kind", "digest_feed", "--json").json == []

    status = catchment("status", "--json").json
    assert (status["items"], status["open_gaps"], status["sources"]["active"]) == (3, 0, 2)
    assert status["last_24_hours"] == {"fetches": 3, "errors": 1, "deferred": 0, "items": 3, "requests": 3}
    assert status["collector"] == {"is_running": False, "processes": []}


def test_the_next_page_begins_where_the_last_one_ended(catchment: Catchment, site: FeedSite) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=5).url)
    catchment("collect")
    first = catchment("items", "--limit", 2, "--json").lines
    rest = catchment("items", "--before", first[-1]["key"], "--json").lines
    assert [item["external_id"] for item in (*first, *rest)] == [f"news-{number}" for number in (5, 4, 3, 2, 1)]


def test_items_are_filtered_by_whatever_is_asked(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news", posts=3)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    feed.post("news-2", text="changed")
    catchment("collect", "--all")

    def listed(*options: object) -> list[str]:
        return [item["external_id"] for item in catchment("items", *options, "--json").lines]

    assert listed("--kind", "rss", "--platform", "feeds", "--not-deleted") == ["news-3", "news-2", "news-1"]
    assert listed("--source", 1, "--changed-since", 1) == ["news-2"]
    assert listed("--changed-since", 0) == listed()
    assert listed("--since", "2999-01-01") == listed("--deleted") == listed("--tag", "none") == []
    assert listed("--author", "nobody", "--until", "2999-01-01") == []
    assert catchment("items", "--since", "soon").code == 2


def test_changes_go_on_from_the_key_of_the_last_one(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news", posts=4)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    first = catchment("changes", "--limit", 3, "--json").lines
    rest = catchment("changes", "--after", first[-1]["key"], "--json").lines
    assert len({item["external_id"] for item in (*first, *rest)}) == 4
    feed.post("news-2", text="changed")
    catchment("collect", "--all")
    (changed,) = catchment("changes", "--after", rest[-1]["key"], "--json").lines
    assert (changed["external_id"], changed["text"]) == ("news-2", "changed")
    assert changed.keys() >= ITEM_KEYS
    assert catchment("changes", "--after", "x", "--json").failure == (2, "INVALID_INPUT")


def test_an_item_is_shown_as_it_is_and_as_it_was(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news", posts=1)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    feed.post("news-1", text="second thoughts")
    catchment("collect", "--all")
    today = catchment("show", 1, "--json").json
    assert (today["version"], today["text"]) == (2, "second thoughts")
    then = catchment("show", 1, "--at", today["first_seen_at"], "--json").json
    assert (then["version"], then["text"], then["valid_to"]) == (1, "text", today["content_last_changed_at"])
    assert catchment("show", 1, "--at", "1999-12-31", "--json").failure == (4, "NOT_FOUND")
    assert catchment("show", 1, "--at", "someday").code == 2
    assert "second thoughts" in catchment("show", 1).out


def test_an_export_holds_every_item_once_and_its_past_if_asked(
    catchment: Catchment, site: FeedSite, tmp_path: Path
) -> None:
    feed = site.feed("news", posts=3)
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    feed.post("news-2", text="changed")
    catchment("collect", "--all")
    file = tmp_path / "items.jsonl"
    written = catchment("export", "--format", "jsonl", "--output", file, "--with-revisions", "--json")
    digest = sha256(file.read_bytes()).hexdigest()
    size = file.stat().st_size
    assert written.json == {"format": "jsonl", "file": str(file), "items": 3, "bytes": size, "sha256": digest}
    lines = catchment("export", "--output", "-").lines
    assert [line["external_id"] for line in lines] == ["news-3", "news-2", "news-1"]
    assert file.read_text().count("\n") == 3
    assert file.read_text().count("content_fingerprint_changed") == 1
    assert [path.name for path in tmp_path.glob("items*")] == ["items.jsonl"]


def test_pausing_resuming_and_removing_take_effect_and_are_answered(catchment: Catchment, site: FeedSite) -> None:
    catchment("sources", "add", "rss", site.feed("news", posts=1).url)
    catchment("collect")
    paused = catchment("sources", "pause", 1, "--reason", "too loud", "--json").json
    assert (paused["state"], paused["state_reason"], paused["next_fetch_at"]) == ("paused", "too loud", None)
    assert catchment("collect", "--all", "--json").json["sources"] == 0
    assert catchment("sources", "resume", 1, "--json").json["state"] == "active"
    assert catchment("sources", "remove", 1, "--json").json["state"] == "removed"
    assert catchment("sources", "list", "--json").json == []
    assert [source["id"] for source in catchment("sources", "list", "--state", "removed", "--json").json] == [1]
    assert len(catchment("items", "--source", 1, "--json").lines) == 1


def test_what_was_removed_comes_back_with_its_items_and_the_settings_of_today(
    catchment: Catchment, site: FeedSite
) -> None:
    url = site.feed("news", posts=1).url
    catchment("sources", "add", "rss", url, "--interval", 5)
    catchment("collect")
    catchment("sources", "remove", 1)
    back = catchment("sources", "add", "rss", url, "--interval", 7, "--category", "back", "--json").json
    assert (back["id"], back["interval_minutes"], back["categories"]) == (1, 7, ["back"])
    assert catchment("collect", "--source", 1, "--json").json["new"] == 0


def test_one_source_in_full_shows_its_visits_and_why_it_is_due(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news")
    feed.status = 500
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    shown = catchment("sources", "show", 1, "--json").json
    assert [(visit["outcome"], visit["http_status"]) for visit in shown["visits"]] == [("failed", 500)]
    assert shown["gaps"] == []
    assert shown["next_fetch_reason"] == "its host does not answer"
    assert "SERVER_TROUBLE" in catchment("sources", "show", 1).out


def test_checking_asks_the_platform_and_keeps_nothing_that_does_not_answer(
    catchment: Catchment, site: FeedSite
) -> None:
    good, bad = site.feed("good", posts=2), site.feed("bad")
    bad.status = 404
    added = catchment("sources", "add", "rss", good.url, "--check", "--json").json
    assert [item["title"] for item in added["preview"]["items"]] == ["About good-2", "About good-1"]
    assert added["id"] == 1
    assert catchment("sources", "add", "rss", bad.url, "--check", "--json").failure == (3, "MISSING")
    assert [source["target"] for source in catchment("sources", "list", "--json").json] == [good.url]
    assert catchment("items", "--json").lines == []
