"""NGA by the commands that a person types: every list and thread that was recorded, as raw bytes in GBK, behind
`CATCHMENT_NGA_BASE_URL`; names, logins and their hosts."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from catchment.clock import micros
from tests.cli.conftest import Catchment, catchment, home  # noqa: F401 - fixtures
from tests.conftest import CAPTURES
from tests.hostile import Connection, Hostile, Seen, reply, status
from tests.platforms.test_nga_captures import LISTS, THREADS, raw

FOLDER = CAPTURES / "nga"
MOST_ROUNDS = 40
# Its minutes pass in seconds: a request per second is as many of the test's as it takes.
CLOCK = "2027-06-01T00:00:00Z,200"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no recorded answers beside the repository")


class Recorded:
    """A site that sends recorded pages: a list for each board number, a page for each thread number."""

    def __init__(self, site: Hostile, lists: dict[str, str], threads: dict[str, str]) -> None:
        self._pages = {"fid": lists, "tid": threads}
        site.on("/robots.txt", status(404))
        site.on("/thread.php", self)
        site.on("/read.php", self)

    def __call__(self, connection: Connection, seen: Seen) -> bool:
        query = {name: values[0] for name, values in parse_qs(urlsplit(seen.path).query).items()}
        names = (pages.get(query.get(name, "")) for name, pages in self._pages.items())
        body = raw(next((name for name in names if name), "read-notfound.gbk.html"))
        return reply(body, content_type="text/html")(connection, seen)


@pytest.fixture
def site(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:  # noqa: F811
    monkeypatch.setenv("CATCHMENT_CLOCK", CLOCK)
    with Hostile() as server:
        monkeypatch.setenv("CATCHMENT_NGA_BASE_URL", server.url)
        yield server


def collect_until(command: Catchment, home: Path, sql: str, count: int) -> None:  # noqa: F811
    """Collects until the database has so many of these rows: the site gets one request per second, and a visit has four
    minutes."""
    for _ in range(MOST_ROUNDS):
        command("collect", "--all")
        if len(rows(home, sql)) == count:
            return
    raise AssertionError("something is still missing")


def rows(home: Path, sql: str) -> list[Any]:  # noqa: F811
    with sqlite3.connect(home / "catchment.db") as connection:
        return connection.execute(sql).fetchall()


def seconds(value: object) -> int:
    return micros(datetime.fromtimestamp(int(str(value)), UTC))


def document(name: str) -> dict[str, Any]:
    text = raw(name).decode("gb18030")
    return dict(json.loads(text[text.index("{") :], strict=False)["data"])


def calls(name: str, function: str) -> list[list[str]]:
    """The arguments of the calls of a function in a page's scripts, in which no name contains a comma."""
    text = re.sub(r"\$\('[^']*'\)", "$", raw(name).decode("gb18030"))
    found = re.findall(rf"^commonui\.{re.escape(function)}\(([^)]*)\)", text, re.M)
    return [[value.strip(" \n'\"") for value in call.split(",")] for call in found]


def rows_shown(name: str) -> dict[str, tuple[int, int, int]]:
    """What a list says of its threads, read without our parser: when posted, last reply, replies, by id."""
    if "html" in name:
        shown = [(call[11], call[8], call[12], call[13], call[14]) for call in calls(name, "topicArg.add")]
    else:
        threads = document(name)["__T"]
        shown = [
            tuple(str(row.get(key) or 0) for key in ("quote_from", "tid", "postdate", "lastpost", "replies"))  # type: ignore[misc]
            for row in (threads if isinstance(threads, list) else threads.values())
        ]
    real = [(mirrored if mirrored not in ("", "0") else tid, *times) for mirrored, tid, *times in shown]
    threads = {}
    for tid, posted, replied, replies in real:
        # A placeholder for what this account must not see has no date. The thread itself comes before its mirrors.
        if posted != "0":
            threads.setdefault(f"t{tid}", (seconds(posted), seconds(replied), int(replies)))
    return threads


def test_every_row_of_a_recorded_list_that_is_not_denied_leaves_a_head(
    catchment: Catchment,  # noqa: F811
    home: Path,  # noqa: F811
    site: Hostile,
) -> None:
    names = {str(number): name for number, name in enumerate(LISTS, 1)}
    Recorded(site, names, {})
    for number in names:
        assert catchment("sources", "add", "nga_forum", number, "--set", "window_days=100000", "--no-check").code == 0
    collect_until(catchment, home, "SELECT 1 FROM progress WHERE last_success_at IS NOT NULL", len(names))
    assert rows(home, "SELECT 1 FROM unfinished_walks") == []
    heads = {
        external_id: (fields, rest)
        for external_id, *fields, rest in rows(
            home,
            """
            SELECT external_id, created_at, last_reply_at, reply_count, title || ' ' || author || ' ' || author_id
              FROM items WHERE is_head
            """,
        )
    }
    shown: dict[str, set[tuple[int, int, int]]] = {}
    for name in LISTS:
        for external_id, row in rows_shown(name).items():
            shown.setdefault(external_id, set()).add(row)
    assert heads.keys() == shown.keys()
    assert len(heads) > 200
    assert {
        external_id for external_id, (fields, _) in heads.items() if tuple(fields) not in shown[external_id]
    } == set()
    assert [rest for _, rest in heads.values() if rest is None or "�" in rest] == []
    # All was requested from this site.
    assert {urlsplit(seen.path).path for seen in site.seen} == {"/robots.txt", "/thread.php", "/read.php"}


def floors_shown(name: str) -> dict[int, tuple[str, int]]:
    """What a page says of its floors, read without our parser: id and time, by number."""
    if "html" in name:
        shown = [(call[0], call[10], call[14]) for call in calls(name, "postArg.proc")]
        return {int(lou): (pid, seconds(at)) for lou, pid, at in shown if lou.isdigit()}
    posted = document(name)["__R"].values()
    comments = {row["pid"]: row for parent in posted for row in (parent.get("comment") or {}).values()}
    return {
        row["lou"]: (str(row["pid"]), seconds(comments.get(row["pid"], row)["postdatetimestamp"])) for row in posted
    }


@pytest.mark.parametrize("form", ["html", "json"])
def test_every_floor_of_a_recorded_thread_is_stored_once(
    catchment: Catchment,  # noqa: F811
    home: Path,  # noqa: F811
    site: Hostile,
    form: str,
) -> None:
    names = {re.findall(r"\d+", name)[0]: name for name in THREADS if ("html" in name) == (form == "html")}
    Recorded(site, {}, names)
    for tid in names:
        code = catchment("sources", "add", "nga_forum", f"tid={tid}", "--set", "pages_per_run=1", "--no-check").code
        assert code == 0
    collect_until(catchment, home, "SELECT 1 FROM threads WHERE last_read_at IS NOT NULL", len(names))
    stored = rows(
        home,
        """
        SELECT thread_id, floor_number, external_id, created_at, coalesce(title, '') || text || author || author_id
          FROM items ORDER BY thread_id, floor_number
        """,
    )
    expected = sorted(
        (f"t{tid}", number, f"p{pid}" if pid != "0" else f"t{tid}", at)
        for tid, name in names.items()
        for number, (pid, at) in floors_shown(name).items()
    )
    assert [tuple(fields) for *fields, _ in stored] == expected
    assert [rest for *_, rest in stored if rest is None or "�" in rest] == []
    titles = {title for (title,) in rows(home, "SELECT title FROM items WHERE is_head")}
    assert titles == {unescape(unescape(title)) for title in titles}


# Names and logins

COOKIES = "ngaPassportUid=4242; ngaPassportCid=X8%2fQzbVd0aPq3MnT7rLkW"


def cookies(site: Hostile) -> list[str]:
    return [seen.headers.get("cookie", "") for seen in site.seen if not seen.path.startswith("/robots")]


def test_a_login_from_the_vault_is_sent_as_it_was_given_and_only_to_its_own_host(
    catchment: Catchment,  # noqa: F811
    home: Path,  # noqa: F811
    site: Hostile,
) -> None:
    Recorded(site, {"7": "list-user205511-p1.utf8.html"}, {})
    assert catchment("credentials", "add", "nga", "mine", stdin=COOKIES.encode()).code == 0
    assert catchment("sources", "add", "nga_forum", "7", "--no-check").code == 0
    assert catchment("collect", "--all").code == 0
    assert set(cookies(site)) == {COOKIES}
    # The cookies of one host would make a guest of us on another, without a word: they are not sent there.
    site.seen.clear()
    elsewhere = "https://ngabbs.com/thread.php?fid=7"
    assert catchment("sources", "remove", "1").code == 0
    assert catchment("sources", "add", "nga_forum", elsewhere, "--no-check").code == 0
    catchment("collect", "--all")
    assert set(cookies(site)) == {""}
    said = catchment(
        "credentials", "add", "nga", "theirs", "--host", "ngabbs.com", stdin=b"ngaPassportUid=7; ngaPassportCid=Y1"
    )
    assert "only to ngabbs.com" in said.out
    site.seen.clear()
    catchment("collect", "--all")
    assert set(cookies(site)) == {"ngaPassportUid=7; ngaPassportCid=Y1"}


def test_a_login_that_a_source_names_is_refused_on_another_host(
    catchment: Catchment,  # noqa: F811
    site: Hostile,
) -> None:
    Recorded(site, {"7": "list-user205511-p1.utf8.html"}, {})
    assert catchment("credentials", "add", "nga", "mine", "--reserved", stdin=COOKIES.encode()).code == 0
    elsewhere = ("https://ngabbs.com/thread.php?fid=7", "--credential", "mine", "--no-check")
    assert catchment("sources", "add", "nga_forum", *elsewhere).code == 0
    said = catchment("collect", "--all", "--json")
    assert "is for bbs.nga.cn, not for ngabbs.com" in said.out
    assert site.seen == []
    said = catchment("credentials", "change", "mine", "--host", "example.org")
    assert (said.code, "sent only to bbs.nga.cn" in said.err) == (2, True)


@pytest.mark.parametrize("name", ["", "archivist/1.0"])
def test_requests_carry_our_own_name_unless_another_is_set(
    catchment: Catchment,  # noqa: F811
    site: Hostile,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    if name:
        monkeypatch.setenv("NGA_USER_AGENT", name)
    Recorded(site, {"7": "list-user205511-p1.utf8.html"}, {})
    assert catchment("sources", "add", "nga_forum", "7", "--no-check").code == 0
    assert catchment("collect", "--all").code == 0
    agents = {seen.headers["user-agent"] for seen in site.seen}
    assert len(agents) == 1
    assert agents.pop().startswith(name or "catchment/")


def test_a_thread_that_is_hidden_is_requested_in_one_form(
    catchment: Catchment,  # noqa: F811
    home: Path,  # noqa: F811
    site: Hostile,
) -> None:
    Recorded(site, {"7": "list-user205511-p1.utf8.html"}, {})
    site.on("/read.php", reply((Path(__file__).parent / "nga" / "hidden.html").read_bytes(), content_type="text/html"))
    assert catchment("sources", "add", "nga_forum", "7", "--set", "window_days=100000", "--no-check").code == 0
    collect_until(catchment, home, "SELECT 1 FROM threads WHERE gone_since IS NOT NULL", 7)
    asked = [seen.path for seen in site.seen if seen.path.startswith("/read.php")]
    assert len(asked) >= 7
    assert [path for path in asked if "__output" in path] == []
