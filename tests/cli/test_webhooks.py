"""Webhooks, watches and the starter set, from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.model import Platform
from catchment.platforms import Platforms, feeds, installed
from catchment.sources.lists import STARTER, shipped
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite
from tests.hostile import Hostile, reply, status

SECRET = "a secret of sixteen or more"


@pytest.fixture
def receiver() -> Iterator[Hostile]:
    with Hostile() as server:
        yield server


@pytest.fixture
def _key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COOKIE_MASTER_KEY", "a master key for tests")


# ── webhooks ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("_key")
def test_a_webhook_is_added_tested_listed_and_removed_and_its_secret_is_shown_once(
    catchment: Catchment, receiver: Hostile, home: Path
) -> None:
    url = receiver.on("/hook", reply(), status(500))
    added = catchment("webhooks", "add", "mine", url, "--event", "watch.matched", "--json").json
    secret = added["secret"]
    assert len(secret) > 30
    assert catchment("webhooks", "test", "mine").code == 0
    assert catchment("webhooks", "test", "mine", "--json").failure == (3, "SERVER_TROUBLE")
    assert [request.headers["x-catchment-event"] for request in receiver.seen] == ["webhook.test"] * 2
    (listed,) = catchment("webhooks", "list", "--json").json
    assert (listed["name"], listed["events"], listed["is_active"]) == ("mine", ["watch.matched"], True)
    assert [catchment("webhooks", verb, "mine", "--json").json["is_active"] for verb in ("pause", "resume")] == [
        False,
        True,
    ]
    shown = "".join(said.out + said.err for said in (catchment("webhooks", "list"), catchment("status")))
    assert secret not in shown + json.dumps(listed)
    assert all(secret.encode() not in file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert catchment("webhooks", "remove", "mine").code == 0
    assert catchment("webhooks", "test", "mine", "--json").failure == (4, "NOT_FOUND")


@pytest.mark.usefixtures("_key")
def test_a_notification_is_added_from_stdin_tested_listed_and_removed(
    catchment: Catchment, receiver: Hostile, home: Path
) -> None:
    secret = "a-password-of-some-length"
    address = receiver.on("/in", reply(), status(500)).replace("http://", f"json://user:{secret}@")
    said = [catchment("notifications", "add", "team", "--severity", "P1", stdin=address.encode())]
    assert catchment("notifications", "add", "none", "--json").failure == (2, "INVALID_INPUT")
    assert catchment("notifications", "test", "team").code == 0
    assert catchment("notifications", "test", "team", "--json").failure == (3, "REFUSED")
    said += [catchment("notifications", verb, "team") for verb in ("pause", "resume")]
    said += [catchment("notifications", "list"), catchment("webhooks", "list")]
    (listed,) = catchment("notifications", "list", "--json").json
    assert (listed["name"], listed["url"], listed["least_severity"]) == ("team", "json://…", "P1")
    assert secret not in "".join(word.out + word.err for word in said)
    assert all(secret.encode() not in file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert catchment("webhooks", "remove", "team", "--json").failure == (4, "NOT_FOUND")
    assert catchment("notifications", "remove", "team").code == 0


@pytest.mark.usefixtures("_key")
def test_a_secret_from_stdin_is_used_and_not_shown(catchment: Catchment, receiver: Hostile) -> None:
    said = catchment("webhooks", "add", "mine", receiver.on("/hook", reply()), "--json", stdin=f"{SECRET}\n".encode())
    assert "secret" not in said.json
    assert SECRET not in said.out + said.err
    assert catchment("webhooks", "add", "mine", "https://a.example/", "--json").failure == (5, "CONFLICT")


def test_without_a_master_key_one_is_made(catchment: Catchment, home: Path) -> None:
    assert catchment("webhooks", "add", "mine", "https://hooks.example/", "--json").code == 0
    assert (home / "master-key").exists()


# ── watches ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watch_is_tried_added_shown_paused_and_removed(catchment: Catchment, site: FeedSite) -> None:
    feed = site.feed("news")
    feed.post("1", title="Rust is out")
    feed.post("2", title="国产芯片")
    catchment("sources", "add", "rss", feed.url)
    catchment("collect")
    assert [match["title"] for match in catchment("watches", "try", "芯", "--json").json] == ["国产芯片"]
    assert [match["title"] for match in catchment("watches", "try", "芯", "-国产", "--json").json] == []
    assert len(catchment("watches", "try", "芯", "rust", "--any", "--kind", "rss", "--json").json) == 2
    assert "1 match in the latest 2 items" in catchment("watches", "try", "芯").out
    added = catchment("watches", "add", "w", "rust", "lang", "-game", "--any", "--source", 1, "--edits", "--json").json
    assert (added["words"], added["is_any_enough"], added["source_ids"], added["is_for_edits"]) == (
        ["rust", "lang", "-game"],
        True,
        [1],
        True,
    )
    assert [watch["name"] for watch in catchment("watches", "list", "--json").json] == ["w"]
    assert catchment("watches", "show", "w", "--json").json["hits"] == []
    assert "rust or lang" in catchment("watches", "show", "w").out
    assert [catchment("watches", verb, "w", "--json").json["is_active"] for verb in ("pause", "resume")] == [
        False,
        True,
    ]
    assert catchment("watches", "remove", "w").code == 0
    assert catchment("watches", "show", "w", "--json").failure == (4, "NOT_FOUND")


@pytest.mark.usefixtures("_key")
def test_one_run_of_collect_tells_those_who_watch_and_listen(
    catchment: Catchment, site: FeedSite, receiver: Hostile
) -> None:
    feed = site.feed("news")
    feed.post("1")
    feed.post("2")
    catchment("sources", "add", "rss", feed.url)
    catchment("watches", "add", "all", "--kind", "rss")
    catchment("webhooks", "add", "mine", receiver.on("/hook", reply()), "--event", "watch.matched")
    collected = catchment("collect", "--json")
    assert (collected.code, collected.json["new"]) == (0, len(receiver.seen))
    assert {request.headers["x-catchment-event"] for request in receiver.seen} == {"watch.matched"}
    assert catchment("watches", "show", "all", "--json").json["hit_count"] == len(receiver.seen) == 2


@pytest.mark.usefixtures("_key")
def test_what_a_webhook_did_not_take_is_said_and_told_by_a_later_run(
    catchment: Catchment, site: FeedSite, receiver: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = site.feed("news")
    feed.post("1")
    catchment("sources", "add", "rss", feed.url)
    catchment("webhooks", "add", "mine", receiver.on("/hook", status(500), reply()), "--event", "items.collected")
    collected = catchment("collect")
    assert collected.code == 0
    assert "1 event not yet delivered to webhook mine" in collected.err
    monkeypatch.setenv("CATCHMENT_JOB_DELIVER_EVENTS", "off")
    catchment("webhooks", "resume", "mine")
    catchment("collect")
    assert len(receiver.seen) == 1
    monkeypatch.delenv("CATCHMENT_JOB_DELIVER_EVENTS")
    assert "not yet delivered" not in catchment("collect").err
    assert [request.headers["x-catchment-event"] for request in receiver.seen] == ["items.collected"] * 2


def test_a_watch_for_nothing_and_one_on_a_source_that_is_not_there_are_refused(catchment: Catchment) -> None:
    assert catchment("watches", "add", "w", "--json").failure == (2, "INVALID_INPUT")
    assert catchment("watches", "add", "w", "a", "--source", 7, "--json").failure == (4, "NOT_FOUND")


# ── the starter set ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_starter_set_is_followed_and_a_second_time_changes_nothing(catchment: Catchment) -> None:
    first = catchment("sources", "import", "--starter", "--json")
    again = catchment("sources", "import", "--starter", "--json")
    assert (first.code, first.json["refused"], again.json["added"]) == (0, 0, 0)
    assert first.json["added"] == again.json["known"] >= 9
    listed = catchment("sources", "list", "--json").json
    assert {"rss", "hackernews", "github_trending"} <= {source["kind"] for source in listed}
    assert any(not source["name"].isascii() for source in listed)


def test_kinds_that_are_not_installed_are_left_out_with_a_word() -> None:
    alone: Platform = feeds
    followed, left_out = shipped(STARTER, Platforms((alone,)))
    assert {entry.kind for entry in followed.entries} == {"rss"}
    assert {"hackernews", "github_trending"} <= {entry.kind for entry in left_out}
    whole, _ = shipped(STARTER, installed())
    assert whole.bad_rows == ()


def test_a_file_or_the_starter_set_and_not_both(catchment: Catchment) -> None:
    for words in ((), ("list.opml", "--starter"), ("--communities", "--starter")):
        assert catchment("sources", "import", *words, "--json").failure == (2, "INVALID_INPUT")


def test_without_a_network_each_source_says_so_and_none_is_blamed(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody listens there: the way out is cut.
    monkeypatch.setenv("CATCHMENT_PROXY", "socks5h://localhost.invalid:9")
    catchment("sources", "import", "--starter")
    results = catchment("collect", "--all", "--json").json["results"]
    assert {result["error"]["code"] for result in results} == {"NETWORK_ERROR"}
    assert all(result["error"]["retryable"] for result in results)
    assert {source["failures_in_a_row"] for source in catchment("sources", "list", "--json").json} == {0}
    assert catchment("status", "--json").json["alerts"] == []
