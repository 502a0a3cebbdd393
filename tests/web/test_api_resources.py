"""The API's resources: sources, items, what happened; on both databases."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from catchment.errors import Gone, Missing
from catchment.web.api import credentials
from catchment.web.api.schemas import items, runs, sources
from tests.store.desk import Desk as StoreDesk
from tests.store.desk import post
from tests.web.desk import Desk

HOUR = timedelta(hours=1)


def an_edited_feed(desk: Desk) -> None:
    """One source with two items, of which one was edited; and one source that fails."""
    here = desk.here
    feed = here.town.feed("one", title="One")
    feed.post("p1", text="first", at=here.clock.now() - 2 * HOUR)
    feed.post("p2", at=here.clock.now() - HOUR)
    here.collect(here.follow(feed))
    feed.post("p1", text="second thoughts")
    broken = here.town.feed("two")
    broken.says.extend([Missing("not there", status=404)] * 10)
    here.follow(broken)
    here.collect(*[here.app.store.sources.get(source_id) for source_id in (1, 2)])


def test_no_name_of_a_source_holds_terminal_escapes_wherever_it_comes_from(desk: Desk) -> None:
    feed = desk.here.town.feed("one", title="own \u202e name")
    feed.post("p1", at=desk.here.clock.now())
    source = desk.here.follow(feed)
    desk.here.collect(source)
    assert desk.get(f"/api/sources/{source.id}")["name"] == "own name"
    hostile = {"name": "\x1b]0;owned\x07 news\nERROR", "categories": ["\x1b[31m", "a\tb"]}
    changed = desk.client.patch(f"/api/sources/{source.id}", json=hostile).json()
    assert (changed["name"], changed["categories"]) == ("]0;owned news ERROR", ["[31m", "a b"])
    added = desk.post("/api/sources", {"kind": "rss", "target": "https://two.example/feed", **hostile}, status=201)
    assert (added["name"], added["categories"]) == ("]0;owned news ERROR", ["[31m", "a b"])


def test_a_source_lives_its_whole_life_through_the_api(both: Desk) -> None:
    target = both.here.town.feed("one").url
    answer = both.client.post("/api/sources", json={"kind": "rss", "target": target, "categories": ["news"]})
    made = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/api/sources/{made['id']}")
    path = f"/api/sources/{made['id']}"
    assert (made["target"], made["state"], made["categories"], made["next_fetch_at"]) == (
        target,
        "active",
        ["news"],
        None,
    )

    again = both.post("/api/sources", {"kind": "rss", "target": target}, status=409)
    assert (again["error"]["code"], again["error"]["existing_id"]) == ("CONFLICT", made["id"])

    changed = both.client.patch(path, json={"name": "My feed", "interval_minutes": 30, "priority": "high"}).json()
    assert (changed["name"], changed["fetch_interval_minutes"], changed["priority"]) == ("My feed", 30, "high")
    assert changed["categories"] == ["news"]
    assert both.client.patch(path, json={"interval_minutes": None}).json()["fetch_interval_minutes"] == 240

    paused = both.post(f"{path}/pause", {"reason": "on holiday"})
    assert (paused["state"], paused["state_reason"]) == ("paused", "on holiday")
    assert both.post(f"{path}/run", status=409)["error"]["code"] == "CONFLICT"
    assert both.post(f"{path}/resume")["state"] == "active"
    assert both.post(f"{path}/run", status=202)["next_fetch_reason"] == "requested"

    assert both.client.delete(path).status_code == 204
    assert both.client.get(path).status_code == 404
    assert both.get("/api/sources")["items"] == []
    assert [item["id"] for item in both.get("/api/sources", state="removed")["items"]] == [made["id"]]


def test_run_has_the_source_visited_at_the_next_tick_whatever_its_schedule_says(both: Desk) -> None:
    feed = both.here.town.feed("one")
    feed.post("p1", at=both.here.clock.now())
    source = both.here.follow(feed)
    both.here.collect(source)
    assert both.here.collect() == []
    both.post(f"/api/sources/{source.id}/run", status=202)
    assert [result.source_id for result in both.here.collect()] == [source.id]


def test_items_of_a_removed_source_stay(both: Desk) -> None:
    an_edited_feed(both)
    assert both.client.delete("/api/sources/1").status_code == 204
    assert len(both.get("/api/items", source_id=1)["items"]) == 2


def test_items_revisions_runs_gaps_and_alerts_are_told(both: Desk) -> None:
    an_edited_feed(both)
    items = both.get("/api/items")["items"]
    assert [item["external_id"] for item in items] == ["p2", "p1"]
    assert both.get(f"/api/items/{items[1]['id']}") == items[1]
    (revision,) = both.get(f"/api/items/{items[1]['id']}/revisions")["items"]
    assert (revision["text"], items[1]["text"], items[1]["version"]) == ("first", "second thoughts", 2)
    # A feed tells no counters, and has no places.
    assert both.get(f"/api/items/{items[1]['id']}/counters") == {"counters": [], "appearances": []}
    runs = both.get("/api/runs")["items"]
    assert [(run["source_count"], run["failed"]) for run in runs] == [(2, 1), (1, 0)]
    assert both.get("/api/gaps") == {"items": [], "next": None}
    assert both.get("/api/credentials") == {"items": [], "next": None}


def test_a_run_is_told_with_what_became_of_each_source_in_it(both: Desk) -> None:
    an_edited_feed(both)
    run = both.get("/api/runs")["items"][0]
    story = both.get(f"/api/runs/{run['id']}")
    well, failed = story["results"]
    assert story == run | {"results": [well, failed], "next": None}
    assert (well["source_id"], well["outcome"], well["updated_count"], well["error"]) == (1, "succeeded", 1, None)
    assert (failed["source_id"], failed["outcome"], failed["error_code"]) == (2, "failed", "MISSING")
    assert both.get(f"/api/runs/{run['id']}", outcome="failed")["results"] == [failed]
    first = both.get(f"/api/runs/{run['id']}", limit=1)
    second = both.get(f"/api/runs/{run['id']}", limit=1, after=first["next"])
    assert [page["results"] for page in (first, second)] == [[well], [failed]]
    assert (first["next"], second["next"]) == ("1", None)
    assert both.client.get("/api/runs/77").json()["error"]["code"] == "NOT_FOUND"


def test_a_run_under_way_is_told_as_far_as_it_has_come(both: Desk) -> None:
    an_edited_feed(both)
    run_id = both.get("/api/runs")["items"][0]["id"]
    both.here.app.store.database.write(
        lambda tx: tx.run("UPDATE runs SET finished_at = NULL, source_count = 0, failed = 0 WHERE id = ?", run_id)
    )
    told = both.get(f"/api/runs/{run_id}")
    assert (told["finished_at"], told["source_count"], told["failed"]) == (None, 2, 1)
    assert {name: told[name] for name in ("source_count", "failed")}.items() <= both.get("/api/runs")["items"][
        0
    ].items()


def test_an_item_is_told_as_it_was_at_a_moment(both: Desk) -> None:
    an_edited_feed(both)
    (item,) = [item for item in both.get("/api/items")["items"] if item["external_id"] == "p1"]
    path, before = f"/api/items/{item['id']}", item["first_seen_at"]
    then = both.get(path, at=before)
    assert (then["text"], then["version"], then["valid_to"]) == ("first", 1, item["content_last_changed_at"])
    # As it is pasted from another answer, with a plus sign that nobody has escaped.
    assert both.client.get(f"{path}?at={before}").json() == then
    assert both.get(path, at=item["content_last_changed_at"]) == item | {"valid_to": None}
    too_early = both.client.get(path, params={"at": "2000-01-01T00:00:00Z"})
    assert too_early.status_code == 404
    assert f"first seen at {before}" in too_early.json()["error"]["message"]


def test_items_are_listed_by_last_reply_as_far_as_one_is_known(both: Desk) -> None:
    at = StoreDesk(both.here.app.store, both.here.clock)
    replied = {"a": 3, "b": 1, "c": None, "d": 2}
    told = [post(key, last_reply_at=days and at.now - timedelta(days=days)) for key, days in replied.items()]
    at.show(at.follow(), *told)
    at.presence.leave(at.now)
    found = both.get("/api/items", order="replied")["items"]
    assert [item["external_id"] for item in found] == ["b", "d", "a"]
    pages = both.pages("/api/items", order="replied", limit=2, platform="feeds", source_id=1)
    assert [[item["external_id"] for item in page] for page in pages] == [["b", "d"], ["a"]]
    times = {"since": found[1]["last_reply_at"], "until": found[0]["last_reply_at"]}
    assert both.get("/api/items", order="replied", **times)["items"] == [found[1]]
    assert len(both.get("/api/items", order="posted")["items"]) == 4
    refused = both.client.get("/api/items", params={"order": "sideways"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_INPUT")


def test_items_are_filtered_by_whatever_is_asked(both: Desk) -> None:
    an_edited_feed(both)
    newest, edited = both.get("/api/items")["items"]
    everything = {"platform": "feeds", "kind": "rss", "source_id": 1, "since": "2000-01-01T00:00:00Z"}
    assert both.get("/api/items", **everything)["items"] == [newest, edited]
    assert both.get("/api/items", until=newest["ordered_at"])["items"] == [edited]
    assert both.get("/api/items", changed_since=1)["items"] == [edited]
    assert [len(page) for page in both.pages("/api/items", limit=1, kind="entry", is_deleted="false")] == [1, 1]
    for nothing in ({"author": "nobody"}, {"tag": "?%"}, {"platform": "reddit"}, {"is_deleted": "true"}):
        assert both.get("/api/items", **nothing) == {"items": [], "next": None}


def test_changes_are_told_in_order_and_next_goes_on_from_there(both: Desk) -> None:
    here = both.here
    feed = here.town.feed("one")
    for number in range(5):
        feed.post(f"p{number}", at=here.clock.now() - HOUR * (9 - number))
    source = here.follow(feed)
    here.collect(source)
    seen, after = [], "0"
    for _ in range(3):
        page = both.get("/api/changes", after=after, limit=2)
        seen += [item["external_id"] for item in page["items"]]
        after = page["next"]
    assert sorted(seen) == ["p0", "p1", "p2", "p3", "p4"]
    assert (page["is_end"], page["newest"], page["next"]) == (True, 1, "1")
    feed.post("p3", text="second thoughts")
    here.collect(source)
    page = both.get("/api/changes", after=after)
    assert [(item["external_id"], item["content_change_number"]) for item in page["items"]] == [("p3", 2)]
    assert both.get("/api/changes", after=page["next"], counters=True)["items"] == []


def test_raw_items_are_told_by_source_by_time_and_for_a_digest(both: Desk) -> None:
    an_edited_feed(both)
    rows = both.get("/api/raw-items")["items"]
    assert [(row["source_id"], row["source_name"], row["source_type"]) for row in rows] == [(1, "One", "rss")] * 2
    assert both.get("/api/raw-items", source_id=1)["items"] == rows
    assert both.get("/api/raw-items", source_id=2)["items"] == []
    assert [len(page) for page in both.pages("/api/raw-items", limit=1)] == [1, 1]
    assert [len(page) for page in both.pages("/api/raw-items/for-digest", limit=1)] == [1, 1]
    assert both.get("/api/raw-items/for-digest", since=rows[0]["fetched_at"])["items"] == rows
    assert both.get("/api/raw-items", since="2099-01-01T00:00:00Z")["items"] == []
    both.post("/api/sources/1/pause")
    assert both.get("/api/raw-items/for-digest") == {"items": [], "next": None}
    stats = both.pages("/api/raw-items/stats", limit=1)
    assert [(row["source_id"], row["total_items"], row["items_24h"]) for (row,) in stats] == [(1, 2, 2), (2, 0, 0)]


def test_settings_are_merged_and_null_takes_one_away(desk: Desk) -> None:
    source = desk.here.follow(desk.here.town.feed("one"))
    desk.here.app.store.sources.change(source.id, settings={"kept": 1, "dropped": 2})
    answer = desk.client.patch(f"/api/sources/{source.id}", json={"settings": {"dropped": None}})
    assert answer.json()["settings"] == {"kept": 1}
    refused = desk.client.patch(f"/api/sources/{source.id}", json={"settings": {"strange": 1}})
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "strange")


def test_a_credential_that_is_not_there_is_a_wrong_field_not_a_missing_page(desk: Desk) -> None:
    source = desk.here.follow(desk.here.town.feed("one"))
    body = {"kind": "rss", "target": "https://two.example/feed", "credential": "nobody"}
    for answer in (
        desk.client.post("/api/sources", json=body),
        desk.client.patch(f"/api/sources/{source.id}", json={"credential": "nobody"}),
    ):
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "credential")


# ── the collector's status: the acceptance cases of its specification, by number ───────────────────────────────────


def test_13_the_status_without_a_key_is_401(both: Desk) -> None:
    assert both.stranger.get("/api/collector/status").status_code == 401


def test_14_the_status_with_a_key_tells_every_source_and_the_figures(both: Desk) -> None:
    an_edited_feed(both)
    both.post("/api/sources", {"kind": "rss", "target": "https://three.example/feed"}, status=201)
    both.post("/api/sources/3/pause")
    status = both.get("/api/collector/status")
    assert [(source["id"], source["type"], source["kind"], source["status"]) for source in status["sources"]] == [
        (1, "rss", "rss", "ok"),
        (2, "rss", "rss", "failing"),
        (3, "rss", "rss", "paused"),
    ]
    assert status["sources"][1]["last_error"].endswith("not there")
    assert status["stats"] == {
        "total_sources": 3,
        "active_sources": 2,
        "paused_sources": 1,
        "paused_by_error": 0,
        "fetches_24h": 3,
        "errors_24h": 1,
        "deferred_24h": 0,
        "raw_items_24h": 2,
        "items_24h": 2,
    }
    assert status["next"] is None


def test_15_next_fetch_is_last_fetch_plus_the_interval_of_the_kind(both: Desk) -> None:
    an_edited_feed(both)
    for row in (both.get("/api/collector/status")["sources"][0], both.get("/api/sources/1")):
        minutes = row["fetch_interval_minutes"] if "fetch_interval_minutes" in row else row["interval_minutes"]
        assert minutes == 240
        last, next_ = (datetime.fromisoformat(row[name]) for name in ("last_fetched_at", "next_fetch_at"))
        assert next_ == last + timedelta(minutes=minutes)


def test_a_source_on_probation_counts_as_paused_by_error_and_all_counts_add_up(both: Desk) -> None:
    broken = both.here.town.feed("two")
    broken.says.extend([Missing("not there", status=404)] * 10)
    source = both.here.follow(broken)
    for _ in range(5):
        both.here.collect(source)
    gone = both.here.town.feed("three")
    gone.says.append(Gone("gone for good", status=410))
    both.here.collect(both.here.follow(gone))
    both.here.collect(both.here.follow(both.here.town.feed("four")))
    status = both.get("/api/collector/status")
    assert status["sources"][0]["status"] == "probation"
    counts = [status["stats"][name] for name in ("active_sources", "paused_sources", "paused_by_error")]
    assert (counts, sum(counts)) == ([1, 0, 2], status["stats"]["total_sources"])


# ── lists ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_following_next_shows_everything_once_and_in_order(both: Desk) -> None:
    here = both.here
    feed = here.town.feed("one", window=5)
    for number in range(5):
        # Two of them at the same moment: the key tells them apart.
        feed.post(f"p{number}", at=here.clock.now() - HOUR * (number // 2))
    here.collect(here.follow(feed))
    for name in ("two", "three"):
        here.follow(here.town.feed(name))
    here.collect(here.app.store.sources.get(1))
    for path, size, order in (
        ("/api/sources", 2, [1, 2, 3]),
        ("/api/items", 2, None),
        ("/api/items", 5, None),
        ("/api/runs", 1, [2, 1]),
    ):
        pages = both.pages(path, limit=size)
        ids = [row["id"] for page in pages for row in page]
        assert all(len(page) == size for page in pages[:-1])
        assert ids == (order or [item["id"] for item in here.items()])
    pages_of_status = [both.get("/api/collector/status", limit=2)]
    pages_of_status.append(both.get("/api/collector/status", limit=2, after=pages_of_status[0]["next"]))
    assert [[row["id"] for row in page["sources"]] for page in pages_of_status] == [[1, 2], [3]]
    assert pages_of_status[1]["next"] is None


def test_sources_are_filtered_by_kind_and_state(desk: Desk) -> None:
    first, second = (desk.here.follow(desk.here.town.feed(name)) for name in ("one", "two"))
    desk.post(f"/api/sources/{second.id}/pause")
    assert [row["id"] for row in desk.get("/api/sources", kind="rss", state="active")["items"]] == [first.id]
    assert [row["id"] for row in desk.get("/api/sources", state="paused")["items"]] == [second.id]
    assert desk.get("/api/sources", kind="reddit")["items"] == []


# ── the description keeps its word ─────────────────────────────────────────────────────────────────────────────────


def test_every_field_that_is_answered_is_described_and_no_other(desk: Desk) -> None:
    an_edited_feed(desk)
    gap = desk.here.town.feed("one")
    gap.entries.clear()
    for number in range(10):
        gap.post(f"n{number}", at=desk.here.clock.now() + HOUR * number)
    desk.here.clock.advance(86_400)
    desk.here.collect(desk.here.app.store.sources.get(1))
    for _ in range(5):
        desk.here.collect(desk.here.app.store.sources.get(2))
    (edited,) = [item for item in desk.get("/api/items")["items"] if item["version"] == 2]
    health = desk.get("/health")
    told: list[tuple[type[BaseModel], Any]] = [
        (sources.SourceSchema, desk.get("/api/sources/1")),
        (sources.CollectedSource, desk.get("/api/collector/status")["sources"][0]),
        (sources.CollectorStats, desk.get("/api/collector/status")["stats"]),
        (sources.CollectorStatus, desk.get("/api/collector/status")),
        (items.ItemSchema, edited),
        (items.ChangedSchema, desk.get("/api/changes")),
        (items.RawItem, desk.get("/api/raw-items")["items"][0]),
        (items.RawStats, desk.get("/api/raw-items/stats")["items"][0]),
        (items.Revision, desk.get(f"/api/items/{edited['id']}/revisions")["items"][0]),
        (runs.Run, desk.get("/api/runs")["items"][0]),
        (runs.RunStory, desk.get("/api/runs/1")),
        (runs.RunResult, desk.get("/api/runs/1")["results"][0]),
        (runs.GapSchema, desk.get("/api/gaps")["items"][0]),
        (runs.MetricsSchema, desk.get("/api/metrics", span="day", limit=2)["items"][0]),
        (runs.KindFigures, desk.get("/api/metrics", span="day", limit=2)["items"][0]["kinds"][0]),
        (runs.Alert, desk.get("/api/alerts")["items"][0]),
        (runs.Health, health),
        (runs.SchedulerSchema, health["scheduler"]),
        (runs.JobSchema, health["scheduler"]["jobs"][0]),
    ]
    # The distributed engine is told of where there is one.
    absent = {runs.Health: {"engine"}}
    for shape, row in told:
        assert row.keys() == shape.model_fields.keys() - absent.get(shape, set()), shape.__name__


@pytest.mark.parametrize("secret", ["hunter2hunter2"])
def test_credentials_are_listed_without_their_secrets(desk: Desk, secret: str) -> None:
    desk.here.app.store.credentials.add("feeds", "mine", "key-1", secret.encode(), desk.here.clock.now())
    answer = desk.client.get("/api/credentials")
    assert answer.json()["items"][0].keys() == credentials.CredentialSchema.model_fields.keys()
    assert secret not in answer.text
