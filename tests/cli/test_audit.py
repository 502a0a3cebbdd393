"""`catchment audit`: what it finds, repairs and prints, of a forum over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catchment.app import open_app
from catchment.settings import Settings
from catchment.store.items.deletion import remove_items
from tests.cli.conftest import Catchment
from tests.hostile import Connection, Hostile, Seen, reply

TOPIC = 7


class Forum:
    """A Discourse forum with one topic, whose posts are all on its first page."""

    def __init__(self, server: Hostile, count: int) -> None:
        self.url = f"{server.url}/"
        now = datetime.now(UTC)
        at = [(now - timedelta(minutes=count - number)).isoformat() for number in range(1, count + 1)]
        self.posts = {
            number: {
                "id": 100 + number,
                "topic_id": TOPIC,
                "post_number": number,
                "topic_title": "Tides",
                "cooked": f"<p>post {number}</p>",
                "created_at": at[number - 1],
                "username": "ada",
            }
            for number in range(1, count + 1)
        }
        self.topic = {
            "id": TOPIC,
            "title": "Tides",
            "created_at": at[0],
            "last_posted_at": at[-1],
            "posts_count": count,
            "highest_post_number": count,
        }
        self.status = 200
        server.on("/latest.json", reply(json.dumps({"topic_list": {"topics": [self.topic]}}).encode()))
        server.on("/posts.json", reply(json.dumps({"latest_posts": list(self.posts.values())[::-1]}).encode()))
        server.on(f"/t/{TOPIC}.json", self._topic)

    def _topic(self, connection: Connection, seen: Seen) -> bool:
        if self.status != 200:
            return reply(b"", self.status)(connection, seen)
        body = self.topic | {"post_stream": {"posts": list(self.posts.values())}}
        return reply(json.dumps(body).encode())(connection, seen)


@pytest.fixture
def forum() -> Iterator[Forum]:
    with Hostile() as server:
        yield Forum(server, 12)


def take_out(home: Path, *numbers: int) -> None:
    """These posts were never stored, as far as one can tell."""
    app = open_app(Settings(home=home), "test")
    rows = app.store.items.newest(100)
    lost = [item.id for item in rows if item.floor_number in numbers]
    app.store.database.write(lambda tx: remove_items(tx, lost))
    app.close()


def test_an_audit_finds_what_is_missing_repairs_it_if_asked_and_prints_it(
    catchment: Catchment, home: Path, forum: Forum
) -> None:
    assert catchment("sources", "add", "discourse_forum", forum.url, "--no-check").code == 0
    assert catchment("collect", "--all").code == 0
    take_out(home, 4, 9)
    found = catchment("audit", "--source", 1, "--json").json
    assert (found["is_repairing"], found["thread_count"], found["missing_floor_count"]) == (False, 1, 2)
    (thread,) = found["threads"]
    assert (thread["thread_id"], thread["result"], thread["missing_count"]) == (str(TOPIC), "missing", 2)
    assert [(floor["floor_number"], floor["result"]) for floor in thread["floors"]] == [(4, "missing"), (9, "missing")]
    assert (found["gap_repairs"], found["missing_replies_count"]) == ([], 1)
    assert [(row["declared_count"], row["missing_count"]) for row in found["missing_replies"]] == [(11, 2)]
    # What is gone by now is no floor that can be repaired.
    del forum.posts[9]
    said = catchment("audit", "--repair")
    assert said.code == 0
    assert "Missing floors                2" in said.out
    assert "Repaired                      1" in said.out
    assert "partial" in said.out
    repaired = catchment("audit", "--repair", "--json").json
    assert (repaired["missing_floor_count"], repaired["threads"]) == (0, [])
    assert catchment("audit", "--source", 99, "--json").failure == (4, "NOT_FOUND")
    # However many floors are missing, all of them are printed.
    app = open_app(Settings(home=home), "test")
    app.store.database.write(lambda tx: tx.run("UPDATE threads SET max_floor = 1300"))
    app.close()
    (thread,) = catchment("audit", "--json").json["threads"]
    assert [floor["floor_number"] for floor in thread["floors"]] == list(range(13, 1301))
