"""docs/forum-schema.md: each of its queries gives every field of its table the right value, on a world of NGA."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.clock import micros
from catchment.errors import Gone
from catchment.fetch.settings import Attempt
from catchment.model import Answer, Platform, Request, Source
from catchment.platforms import nga
from catchment.sources.add import follow
from catchment.store.database import Transaction
from catchment.text.clean import fingerprint
from tests.clocks import HandClock
from tests.forum import take_out
from tests.playing import Answering
from tests.town import TownApp

PAGE = Path(__file__).parents[1] / "docs" / "forum-schema.md"
CHAPTERS = re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]
# A table for which the databases need different queries has that of SQLite first.
QUERIES = {chapter.split()[0]: re.findall(r"```sql\n(.*?)```", chapter, re.S) for chapter in CHAPTERS}
SPECIFICATION = Path(__file__).parents[2] / "shared" / "seeds" / "nga-forum-database.md"
POSTED = datetime(2026, 1, 1, 2, tzinfo=UTC)
HALF_A_DAY = timedelta(hours=12)
NOTHING_WAITS = "UPDATE threads SET next_page = NULL, read_reply_at = last_reply_at"
AGAIN = "UPDATE threads SET read_reason = 'pages_pending', next_page = 1 WHERE thread_id = 't41000010'"
BEGUN, READ, EDITED, REPAIRED, FAILED = (
    micros(datetime(2026, 1, 1, tzinfo=UTC) + number * HALF_A_DAY) for number in range(1, 6)
)
"""When what happened."""


class Site(Answering):
    """A board of NGA with one thread of 23 floors, one of which is missing; and one of too many pages."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.title, self.edited = "[水][船] Locks", False
        self.replies = 22
        self.fails = False

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        now = self.clock.now()
        attempts.append(Attempt(platform.NAME, now, "200", 0.0))
        if "tid" in request.params and self.fails:
            raise Gone("gone", status=404)
        data = self._thread(int(request.params["page"])) if "tid" in request.params else self._list()
        return Answer(200, {}, json.dumps({"data": data}, ensure_ascii=False).encode("gb18030"), request.url, now)

    def _at(self, number: int) -> int:
        return int((POSTED + timedelta(minutes=number)).timestamp())

    def _list(self) -> Any:
        row = {
            "tid": 41000010, "fid": 7, "quote_from": 0, "subject": self.title, "author": "ada", "authorid": 3,
            "postdate": self._at(0), "lastpost": self._at(self.replies), "replies": self.replies, "type": 0,
            "parent": {"0": 7, "2": "港口"},
        }  # fmt: skip
        long = {**row, "tid": 41000020, "subject": "Long", "replies": 30_000, "parent": ""}
        board = {"fid": 7, "name": "议事厅", "topped_topic": 41000020}
        return {"__T": {"0": row, "1": long}, "__F": board, "__ROWS": 2, "__T__ROWS_PAGE": 35}

    def _thread(self, page: int) -> Any:
        floors = {
            str(index): {
                "pid": 0 if number == 0 else 824000000 + number,
                "lou": number,
                "authorid": 3,
                "postdatetimestamp": self._at(number),
                "subject": self.title if number == 0 else "",
                "content": f"floor {number}" + (" mended" if number == 4 and self.edited else ""),
                "alterinfo": f"[E{self._at(100)} 0 0]" if number == 4 and self.edited else "",
            }
            for index, number in enumerate(range(20 * page - 20, min(20 * page, self.replies + 1)))
            if number != 9
        }
        thread = {
            "tid": 41000010, "fid": 7, "subject": self.title, "replies": self.replies, "digest": 1,
            "lastpost": self._at(self.replies),
        }  # fmt: skip
        users = {"3": {"username": "ada"}}
        return {"__T": thread, "__R": floors, "__U": users, "__ROWS": self.replies + 1, "__PAGE": page}


class World(TownApp):
    """The board as it was visited twice, and audited twice."""

    def __init__(self, home: Path, database_url: str) -> None:
        super().__init__(home, database_url)
        self.site = Site(self.clock)
        self.play(self.site, nga)
        self.times: list[datetime] = []
        app = self.app
        self.source: Source = follow(
            app.store, app.secrets, app.platforms, "nga_forum", "7", self.clock.now(), settings={"pages_per_run": 1}
        )[0]
        for change in (self._begin, self._read_on, self._edit, self._audit, self._audit_in_vain):
            self.clock.advance(HALF_A_DAY.total_seconds())
            self.times.append(self.clock.now())
            change()

    def _begin(self) -> None:
        self.app.scheduler().these([self.source.id], "test", "test")

    _read_on = _begin

    def _edit(self) -> None:
        self.site.title, self.site.edited, self.site.replies = "[水][船] Bridges", True, 23
        self.app.scheduler().these([self.source.id], "test", "test")
        self.app.store.database.write(lambda tx: tx.run(AGAIN))
        self.app.visitor().read_threads("schedule", self.app.presence.owner_id)

    def _audit(self) -> None:
        self._take_out(5)
        self.app.floor_audit().run("test", is_repairing=True)

    def _audit_in_vain(self) -> None:
        self._take_out(6)
        self.site.fails = True
        self.app.floor_audit().run("schedule", is_repairing=True)

    def _take_out(self, number: int) -> None:
        take_out(self.app.store, "t41000010", number)

    def rows(self, table: str) -> list[dict[str, Any]]:
        queries = QUERIES[table]
        query = queries[-1] if self.app.store.database.is_postgres else queries[0]

        def read(tx: Transaction) -> list[dict[str, Any]]:
            # As it stands on the page: a question mark in it is one.
            found = tx.cursor.execute(query)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

        return self.app.store.database.read(read)


@pytest.fixture
def world(tmp_path: Path, database_url: str) -> Iterator[World]:
    world = World(tmp_path, database_url)
    yield world
    world.close()


def test_there_is_a_query_for_each_of_the_twelve_tables() -> None:
    assert len(QUERIES) == 12


def posted(number: int) -> int:
    return micros(POSTED + timedelta(minutes=number))


def mark(title: str, text: str) -> bytes:
    return fingerprint(title or None, text, None, ())


# How many rows a query gives, and which of them is compared, field by field.
EXPECTED: dict[str, tuple[int, int, dict[str, Any]]] = {
    "forums": (
        *(1, 0),
        {
            "id": 1,
            "source_forum_id": "7",
            "forum_name": "议事厅",
            "list_url": "https://bbs.nga.cn/thread.php?fid=7&order_by=postdatedesc",
            "crawl_page_limit": 1,
            "request_rate_limit_per_sec": 1,
            "created_at": BEGUN - 12 * 3600 * 10**6,
            "updated_at": BEGUN - 12 * 3600 * 10**6,
        },
    ),
    "threads": (
        *(2, 0),
        {
            "id": 1,
            "forum_id": 1,
            "source_thread_id": 41000010,
            "title": "[水][船] Bridges",
            "title_prefix_text": "水",
            "author_name": "ada",
            "author_source_user_id": "3",
            "thread_created_at": posted(0),
            "last_reply_at": posted(23),
            "reply_count_display": 23,
            "view_count_display": None,
            "is_pinned": False,
            "is_digest": True,
            "first_seen_on_list_page_number": 1,
            "last_seen_on_list_page_number": 1,
            "is_truncated_by_page_limit": True,
            "truncated_at_page_number": 1,
            "last_crawled_at": EDITED,
            "last_detected_change_at": EDITED,
            "crawl_page_total_last_seen": 2,
            "crawl_backfill_next_page_number": 2,
            "is_skipped_by_page_total_limit": False,
            "skipped_by_page_total_limit_at": None,
            "crawl_cursor_max_floor_number": 23,
            "crawl_cursor_max_source_post_id": 824000023,
            "title_last_changed_at": EDITED,
            "created_at": BEGUN,
            "updated_at": EDITED,
        },
    ),
    "posts": (
        # 24 floors without a hole, and the opening post of the other thread; one was taken out and not repaired.
        *(23, 4),
        {
            "thread_id": 1,
            "source_post_id": 824000004,
            "floor_number": 4,
            "author_name": "ada",
            "author_source_user_id": "3",
            "post_created_at": posted(4),
            "content_html": "floor 4 mended",
            "content_fingerprint_sha256": mark("", "floor 4 mended"),
            "is_deleted_by_source": False,
            "is_folded_by_source": False,
            "content_last_changed_at": EDITED,
            "created_at": BEGUN,
            "updated_at": EDITED,
        },
    ),
    "post_revisions": (
        *(2, 1),
        {
            "id": 2,
            "revision_created_at": EDITED,
            "source_edited_at": posted(100),
            "content_html": "floor 4",
            "content_fingerprint_sha256": mark("", "floor 4"),
            "change_detected_reason": "content_fingerprint_changed",
            "crawl_run_thread_id": 4 * 2**32 + 1,
        },
    ),
    "thread_tags": (
        *(3, 2),
        {"id": 3, "tag_text": "港口", "tag_source": "topic_tag", "created_at": BEGUN, "updated_at": BEGUN},
    ),
    "thread_tag_maps": (3, 0, {"thread_id": 1, "tag_id": 1, "first_attached_at": BEGUN}),
    "crawl_runs": (
        *(6, 2),
        {
            "id": 3,
            "forum_id": 1,
            "run_started_at": EDITED,
            "run_finished_at": EDITED,
            "run_trigger_text": "manual",
            # 12:00 in Greenwich is 20:00 in Shanghai.
            "date_window_start": "2025-12-31",
            "date_window_end": "2026-01-02",
            "thread_scanned_count": 2,
            "thread_change_detected_count": 2,
            "thread_updated_count": 1,
            "http_request_count": 2,
            "created_at": EDITED,
            "updated_at": EDITED,
        },
    ),
    "crawl_run_threads": (
        *(4, 2),
        {
            "id": 3 * 2**32 + 1,
            "crawl_run_id": 3,
            "thread_id": 1,
            "change_detected_by_last_reply_at": True,
            "detected_last_reply_at": posted(23),
            "fetched_page_count": 1,
            "page_limit_applied": False,
            "new_post_count": 1,
            "updated_post_count": 0,
            "http_error_code": None,
            "error_summary": None,
            "started_at": EDITED,
            "finished_at": EDITED,
        },
    ),
    "thread_floor_audit_runs": (
        *(2, 1),
        {
            "id": 2,
            "run_started_at": FAILED,
            "run_finished_at": FAILED,
            "run_trigger_text": "cron",
            "repair_enabled": True,
            "total_thread_count": 1,
            "missing_thread_count": 1,
            "repaired_thread_count": 0,
            "partial_thread_count": 0,
            "failed_thread_count": 1,
            "failed_http_count": 1,
            "failed_parse_count": 0,
            "failed_db_count": 0,
            "failed_unknown_count": 0,
            "created_at": FAILED,
            "updated_at": FAILED,
        },
    ),
    "thread_floor_audit_threads": (
        *(2, 1),
        {
            "id": 2,
            "audit_run_id": 2,
            "thread_id": 1,
            "source_thread_id": 41000010,
            "max_floor_number": 23,
            "post_count": 22,
            "missing_floor_count": 1,
            "ignored_floor_count": 0,
            "repair_status": "failed",
            "repair_crawl_run_id": 6,
            "repair_attempted_at": FAILED,
            "repair_finished_at": FAILED,
            "repair_after_max_floor_number": 23,
            "repair_after_post_count": 22,
            "repair_remaining_floor_count": 1,
            "repair_error_summary": "gone",
            "repair_error_category": "http",
            "repair_http_error_code": 404,
            "created_at": FAILED,
            "updated_at": FAILED,
        },
    ),
    "thread_floor_audit_posts": (
        *(2, 1),
        {
            "id": 2 * 2**32 + 6,
            "audit_run_id": 2,
            "audit_thread_id": 2,
            "thread_id": 1,
            "source_thread_id": 41000010,
            "floor_number": 6,
            "repair_status": "failed",
            "attempt_count_before": 0,
            "attempt_count_after": 1,
            "repair_error_category": "http",
            "repair_http_error_code": 404,
            "repair_error_summary": "gone",
            "created_at": FAILED,
            "updated_at": FAILED,
        },
    ),
    "thread_floor_repair_attempts": (
        *(2, 0),
        {
            "id": 2**32 + 5,
            "thread_id": 1,
            "source_thread_id": 41000010,
            "floor_number": 5,
            "attempt_count": 1,
            "last_attempted_at": REPAIRED,
            "created_at": REPAIRED,
            "updated_at": REPAIRED,
        },
    ),
}
# Ids that depend on how the database numbers rows.
OURS = {"posts": {"id"}, "post_revisions": {"post_id"}}


def test_every_field_of_the_twelve_tables_has_its_value(world: World) -> None:
    assert QUERIES.keys() == EXPECTED.keys()
    for table, (count, place, expected) in EXPECTED.items():
        rows = sorted(world.rows(table), key=_order)
        shown = {name: value for name, value in rows[place].items() if name not in OURS.get(table, ())}
        assert (table, len(rows), shown) == (table, count, expected)
        ids = [row["id"] for row in rows if "id" in row]
        assert len(ids) == len(set(ids))
        if SPECIFICATION.exists():
            chapter = re.search(rf"### 4\.\d+ `{table}`.*?(?=\n### |\n## |\Z)", SPECIFICATION.read_text(), re.S)
            assert chapter
            assert list(rows[0]) == re.findall(r"^\| ([a-z]\w*) \| ", chapter[0], re.M)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """By the order in which rows were written; floors by their place."""
    if "source_post_id" in row:
        return row["thread_id"], row["floor_number"]
    return row.get("thread_id", 0) if "id" not in row else 0, row.get("id", row.get("tag_id"))


def test_the_records_of_a_revision_are_found_by_its_number(world: World) -> None:
    readings = {row["id"] for row in world.rows("crawl_run_threads")}
    assert {row["crawl_run_thread_id"] for row in world.rows("post_revisions")} <= readings


def test_a_change_that_the_list_showed_belongs_to_no_reading(world: World) -> None:
    world.site.fails, world.site.title = False, "[Dock][DOCK][D_ck] Gates"
    world.clock.advance(HALF_A_DAY.total_seconds())
    world.app.store.database.write(lambda tx: tx.run(NOTHING_WAITS))
    world.app.scheduler().these([world.source.id], "test", "test")
    retitled = [row for row in world.rows("post_revisions") if row["change_detected_reason"] == "title_changed"]
    assert [row["crawl_run_thread_id"] for row in retitled][-1] is None
    # The first one, not others that look alike.
    assert min(world.rows("threads"), key=_order)["title_prefix_text"] == "Dock"


def test_what_another_forum_has_is_left_out(world: World) -> None:
    def rename(tx: Transaction) -> None:
        tx.run("UPDATE sources SET kind = 'discourse_forum'")
        for table in ("threads", "items", "floor_audit_threads"):
            tx.run(f"UPDATE {table} SET thread_id = '5' WHERE thread_id = 't41000010'")
        tx.run("UPDATE items SET external_id = '5' WHERE external_id = 'p824000004'")

    world.app.store.database.write(rename)
    assert {table for table in QUERIES if world.rows(table)} == {"thread_tags", "thread_floor_audit_runs"}
