"""`security-audit` finds a secret wherever it stands in plain, never shows it, and is not misled by what is posted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
import redis
import zstandard

from catchment.credentials import security_audit
from catchment.credentials.security_audit import SecretScan, sought
from catchment.logs import traces
from catchment.model import Item, Target
from catchment.store.database import Database
from tests.cli.conftest import Catchment, Said
from tests.redis_server import RedisServer
from tests.store.desk import Desk, opened, post

SECRET = "s3same/open&7731"
TOKEN = "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl"


@pytest.fixture
def kept(catchment: Catchment, home: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Catchment:
    """An installation with a credential and a webhook in its vault, on either database."""
    monkeypatch.setenv("COOKIE_MASTER_KEY", "a master key for tests")
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)
    home.mkdir()
    catchment("credentials", "add", "reddit", "main", stdin=f"client-id:{SECRET}".encode())
    catchment("webhooks", "add", "n8n", "https://n8n.example/a-secret-path", stdin=b"a-signing-secret-of-some-length")
    return catchment


@pytest.fixture
def desk(kept: Catchment, database_url: str, home: Path) -> Iterator[Desk]:
    desk = Desk(opened(database_url, home))
    yield desk
    desk.close()


def audited(catchment: Catchment, *more: object) -> Said:
    """As JSON; and whatever it says, for people and for programs, it does not show the secret."""
    said = catchment("security-audit", *more, "--json")
    both = said.out + said.err + catchment("security-audit", *more).out
    assert SECRET not in both
    assert TOKEN not in both
    assert said.code == (0 if said.json["passed"] else 1)
    return said


def found(catchment: Catchment, *more: object) -> set[tuple[str, str]]:
    return {(finding["where"], finding["what"]) for finding in audited(catchment, *more).json["findings"]}


def test_an_installation_that_is_well_passes(kept: Catchment) -> None:
    said = audited(kept).json
    assert (said["passed"], said["findings"]) == (True, [])
    assert said["secrets"] >= 4
    assert said["rows"] > 2
    assert "Passed" in kept("security-audit").out


def test_an_empty_one_passes_too(catchment: Catchment) -> None:
    catchment("migrate")
    assert audited(catchment).json["passed"] is True


# ── what we know is found wherever it stands ──────────────────────────────────────────────────────────────────────


def in_a_post(desk: Desk) -> None:
    desk.show(desk.follow(), post("p", f"so it is {SECRET}, they say"))


def in_an_address(desk: Desk) -> None:
    desk.show(desk.follow(), post("p", url=f"https://e.example/?q={quote(SECRET, safe='')}"))


def in_an_old_version(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("p", f"so it is {SECRET}, they say"))
    desk.show(source, post("p", "taken back"))


def in_a_kept_answer(desk: Desk) -> None:
    body = json.dumps({"text": f"a {SECRET} inside"}).encode()
    desk.show(desk.follow(), post("p"), body=zstandard.ZstdCompressor().compress(body))


def in_an_authors_name(desk: Desk) -> None:
    desk.show(desk.follow(), Item("p", title="t", author=SECRET))


def in_a_setting_of_a_source(desk: Desk) -> None:
    desk.store.sources.follow(Target("rss", "https://a.example/", settings={"note": SECRET}), "feeds", desk.now)


def in_an_event(desk: Desk) -> None:
    written(desk, "INSERT INTO outbox (id, event, body, created_at) VALUES (99, 'x', ?, 1)", json.dumps({"a": SECRET}))


def written(desk: Desk, sql: str, *values: object) -> None:
    desk.store.database.write(lambda tx: tx.run(sql, *values))


@pytest.mark.parametrize(
    ("plant", "where"),
    [
        (in_a_post, "items.text"),
        (in_an_address, "items.url"),
        (in_an_old_version, "revisions.text"),
        (in_a_kept_answer, "raw_answers.body"),
        (in_an_authors_name, "items.author"),
        (in_a_setting_of_a_source, "sources.settings"),
        (in_an_event, "outbox.body"),
    ],
)
def test_a_secret_of_the_vault_is_found_in_the_database(
    kept: Catchment, desk: Desk, plant: Callable[[Desk], None], where: str
) -> None:
    plant(desk)
    assert (where, "the secret of 'main' (credentials)") in found(kept)


@pytest.mark.parametrize("name", ["notes.txt", "backups/old.db", "app.log", "app.log.gz"])
def test_it_is_found_in_what_lies_at_home(kept: Catchment, home: Path, name: str) -> None:
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    # Across the border of two pieces that are read one after the other.
    text = ((b"-" * 1023 + b"\n") * 1024)[: 2**20 - 5] + f"\na {SECRET}".encode()
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert (str(file), "the secret of 'main' (credentials)") in found(kept)


def test_the_databases_file_is_searched_beyond_our_tables(
    catchment: Catchment, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COOKIE_MASTER_KEY", "a master key for tests")
    catchment("credentials", "add", "reddit", "main", stdin=f"client-id:{SECRET}".encode())
    database = Database(f"sqlite:///{home / 'catchment.db'}")
    database.write(lambda tx: tx.run("CREATE TABLE scratch (a TEXT)"))
    database.write(lambda tx: tx.run("INSERT INTO scratch VALUES (?)", SECRET))
    database.close()
    assert found(catchment) == {(str(home / "catchment.db"), "the secret of 'main' (credentials)")}


def test_logs_that_lie_elsewhere_are_searched_when_they_are_given(kept: Catchment, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "deep").mkdir(parents=True)
    (logs / "deep" / "a.txt").write_text(f"it said {SECRET}\n")
    assert found(kept) == set()
    assert {where for where, _ in found(kept, "--log", logs)} == {str(logs / "deep" / "a.txt")}
    assert kept("security-audit", "--log", tmp_path / "nowhere", "--json").failure == (2, "INVALID_INPUT")


def test_secrets_of_the_settings_are_looked_for_and_may_stand_in_their_own_place(
    kept: Catchment, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COOKIE_MASTER_KEY")
    Path(".env").write_text(
        f"COOKIE_MASTER_KEY='a master key for tests'\nREDDIT_CLIENT_ID=an-id-0815\nREDDIT_CLIENT_SECRET={SECRET}\n"
        "CATCHMENT_API_KEY=an-api-key-4711\nOTHER_TOOLS_PASSWORD=whatever-it-is\n"
    )
    assert found(kept) == set()
    (home / "notes").write_text("an-api-key-4711, and: a master key for tests")
    assert {what for _, what in found(kept)} == {"CATCHMENT_API_KEY", "COOKIE_MASTER_KEY"}
    (home / "notes").unlink()
    with Path(".env").open("a") as file:
        file.write(f"SOMETHING_ELSE={SECRET}\nCATCHMENT_USER_AGENT='me (password=hunter22)'\n")
    assert {(finding["what"], *finding["examples"]) for finding in audited(kept).json["findings"]} >= {
        ("the secret of 'main' (credentials)", "SOMETHING_ELSE"),
        ("a value whose name promises a secret", "CATCHMENT_USER_AGENT"),
    }


def test_what_cannot_be_opened_cannot_be_looked_for_and_that_is_said(
    kept: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COOKIE_MASTER_KEY", "another master key")
    said = audited(kept).json
    assert (said["passed"], {finding["where"] for finding in said["findings"]}) == (False, {"the vault"})
    assert "restart with that key" in said["findings"][0]["what"]


# ── what we do not know has a shape ───────────────────────────────────────────────────────────────────────────────

SHAPES = [
    f"Authorization: Bearer {TOKEN}",
    "GET /x Cookie: web_session=0400aab; a1=18c9",
    "web_session=040069b2",
    '{"cookie_value": "0400-aab"}',
    "https://me:hunter22@a.example/feed",
    "asked https://a.example/?api_key=ab12cd34",
    f"it is {TOKEN}",
]


@pytest.mark.parametrize("text", SHAPES)
def test_what_others_post_may_have_any_shape(kept: Catchment, desk: Desk, text: str) -> None:
    source = desk.follow()
    body = zstandard.ZstdCompressor().compress(text.encode())
    desk.show(source, post("p", text, title=text, tags=(text,), url="https://a.example/?token=abcdef123"), body=body)
    desk.show(source, post("p", "taken back"))
    desk.store.index.advance()
    assert found(kept) == set()


@pytest.mark.parametrize("text", SHAPES)
def test_in_our_own_writing_nothing_but_the_redacted_form_is_accepted(
    kept: Catchment, desk: Desk, tmp_path: Path, text: str
) -> None:
    from catchment.logs import redact

    desk.show(desk.follow(), post("p"), body=b"x")
    written(desk, "UPDATE progress SET last_error = ?", text)
    written(desk, "UPDATE raw_answers SET request = ?", text)
    written(desk, "UPDATE run_sources SET error = ?", text)
    log = tmp_path / "serve.log"
    log.write_text(f"fine\n{text}\n")
    wheres = {"progress.last_error", "raw_answers.request", "run_sources.error", str(log)}
    assert {where for where, _ in found(kept, "--log", log)} == wheres
    for table, column in (("progress", "last_error"), ("raw_answers", "request"), ("run_sources", "error")):
        written(desk, f"UPDATE {table} SET {column} = ?", redact(text))
    log.write_text(f"fine\n{redact(text)}\n")
    assert found(kept, "--log", log) == set()


# ── Redis ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def beside_redis(kept: Catchment, desk: Desk, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Planted:
    """The same with a Redis; what is planted there stands under names of this deployment."""
    monkeypatch.setenv("CATCHMENT_REDIS_URL", redis_server.url)
    return Planted(kept, redis_server.client, f"catchment:{desk.store.settings.deployment(desk.now)}:")


class Planted(NamedTuple):
    audit: Catchment
    client: redis.Redis
    prefix: str


def in_a_hot_set(there: Planted) -> None:
    there.client.hset(f"{there.prefix}hot:set:1", mapping={"stamp": 1, "end": 9, "0": json.dumps({"text": SECRET})})


def in_what_is_cached(there: Planted) -> None:
    there.client.hset(f"{there.prefix}hot:cached:1", "\x1fp", json.dumps({"author": SECRET}))


def in_a_key_that_is_cached(there: Planted) -> None:
    there.client.zadd(f"{there.prefix}hot:cached:1:ends", {f"\x1f{SECRET}": 9})


@pytest.mark.parametrize("plant", [in_a_hot_set, in_what_is_cached, in_a_key_that_is_cached])
def test_a_secret_of_the_vault_is_found_in_what_is_kept_hot_in_redis(
    beside_redis: Planted, plant: Callable[[Planted], None]
) -> None:
    assert found(beside_redis.audit) == set()
    plant(beside_redis)
    assert found(beside_redis.audit) == {("Redis.hot", "the secret of 'main' (credentials)")}


def test_it_is_found_in_budgets_in_redis_and_so_is_what_has_its_shape(beside_redis: Planted) -> None:
    beside_redis.client.set(f"{beside_redis.prefix}budget:reddit", json.dumps({"owner": SECRET}))
    beside_redis.client.set(f"{beside_redis.prefix}budget:{TOKEN}", "{}")
    findings = audited(beside_redis.audit).json["findings"]
    assert {finding["where"] for finding in findings} == {"Redis.budget"}
    assert len(findings) == 2


def test_what_others_say_may_have_any_shape_in_redis_and_what_others_keep_there_is_theirs(
    beside_redis: Planted,
) -> None:
    beside_redis.client.hset(f"{beside_redis.prefix}hot:set:1", "0", f"Authorization: Bearer {TOKEN}")
    beside_redis.client.set("somebody:else", SECRET)
    said = audited(beside_redis.audit).json
    assert said["passed"] is True


def test_more_than_a_page_of_keys_and_of_entries_is_searched_to_the_end(beside_redis: Planted) -> None:
    for number in range(250):
        beside_redis.client.set(f"{beside_redis.prefix}budget:{number}", "{}")
    there = f"{beside_redis.prefix}hot:set:1"
    beside_redis.client.hset(there, mapping={str(number): "x" * 100 for number in range(1000)})
    before = audited(beside_redis.audit).json
    assert before["rows"] > 1_500
    beside_redis.client.hset(there, "1000", SECRET)
    assert [finding["count"] for finding in audited(beside_redis.audit).json["findings"]] == [1]


def test_a_redis_that_is_away_is_said_so_without_its_password(
    kept: Catchment, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    monkeypatch.setenv("CATCHMENT_REDIS_URL", f"redis://:opensesame77@127.0.0.1:{free_port}/0")
    said = audited(kept)
    (finding,) = said.json["findings"]
    assert (finding["where"], said.code) == ("Redis", 1)
    assert "it cannot be searched: ConnectionError" in finding["what"]
    assert "opensesame77" not in said.out + said.err


# ── searching ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_finding_counts_its_places_and_names_the_first_few(tmp_path: Path) -> None:
    search, log = SecretScan(), tmp_path / "a.log"
    log.write_text("password=hunter22\n" * 50)
    search.log(log)
    (finding,) = search.result().findings
    assert (finding.count, finding.examples) == (50, ("line 1", "line 2", "line 3"))


def test_what_could_as_well_be_a_word_is_looked_for_in_our_own_writing_only(tmp_path: Path) -> None:
    search = SecretScan(sought("the secret", ["sesame", "abc"]))
    assert search.result().secrets == 1
    (tmp_path / "a").write_text("say sesame")
    search.file(tmp_path / "a")
    assert search.result().passed
    search.log(tmp_path / "a")
    assert [finding.what for finding in search.result().findings] == ["the secret"]


def test_a_file_that_cannot_be_read_is_said_and_one_that_went_away_is_not(tmp_path: Path) -> None:
    search = SecretScan()
    search.log(tmp_path / "gone")
    (tmp_path / "a.gz").write_bytes(b"no gzip")
    search.log(tmp_path / "a.gz")
    assert [(finding.where, finding.what) for finding in search.result().findings] == [
        (str(tmp_path / "a.gz"), "it cannot be read: BadGzipFile")
    ]


def test_lines_with_nothing_in_them_are_not_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, log, looked = SecretScan(sought("a secret", [SECRET])), tmp_path / "a.log", list[str]()

    def counted(text: str) -> list[str]:
        looked.append(text)
        return traces(text)

    monkeypatch.setattr(security_audit, "traces", counted)
    log.write_bytes(b"\n" * 1_000_000 + b"all is well, and stays so\n" * 100_000 + b"password=hunter22\n\n")
    search.log(log)
    assert [finding.examples for finding in search.result().findings] == [("line 1100001",)]
    # Those of the one piece that has something to look at.
    assert len(looked) < 5_000


@pytest.mark.parametrize("before", [0, 1, 65_530, 65_536, 65_541, 200_000])
def test_a_known_secret_is_found_in_a_line_of_any_length_and_named_by_its_line(tmp_path: Path, before: int) -> None:
    search, log = SecretScan(sought("a secret", [SECRET])), tmp_path / "a.log"
    log.write_bytes(b"one\ntwo\n" + b"-" * before + SECRET.encode() + b"-" * 70_000 + b"\nfour\n")
    search.log(log)
    assert [(finding.what, finding.examples[0]) for finding in search.result().findings] == [("a secret", "line 3")]
