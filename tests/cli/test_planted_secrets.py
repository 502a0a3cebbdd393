"""Secrets of every sort are planted, used, refused and repeated by the servers that get them; then everything that
catchment keeps, logs, shows and answers is searched for them."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from catchment import logs
from catchment.app import open_app, settings_from
from catchment.cli.main import commands
from catchment.jobs import JOBS, NAMES, run_if_due
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite
from tests.hostile import Behaviour, Connection, Hostile, Seen, reply, status
from tests.store.test_plans import EXAMPLES, READING, every_command
from tests.web.desk import Desk, operations

CLIENT, ENVIRONMENT, PASSWORD, TOKEN = "c1ient-sesame-01", "env1ron-sesame-02", "passw0rd-sesame-03", "t0ken-sesame-04"
SIGNATURE, PATH = "s1gning-sesame-05", "p4th-sesame-06"
MASTER_KEY, API_KEY, YIELDED = "m4ster-sesame-07", "4pi-sesame-08", "y1elded-sesame-09"
PLANTED = (CLIENT, ENVIRONMENT, PASSWORD, TOKEN, SIGNATURE, PATH, MASTER_KEY, API_KEY, YIELDED)


def planted_in(text: bytes) -> list[str]:
    """Which of them stand in a text, as they are or as HTTP writes them."""
    return [
        secret for secret in PLANTED if secret.encode() in text or base64.b64encode(f"client:{secret}".encode()) in text
    ]


def repeating(code: int = 200) -> Behaviour:
    """An answer that says back all that it was told."""

    def behave(connection: Connection, seen: Seen) -> bool:
        said = json.dumps({"kind": "Listing", "data": {"children": [], "after": None}, "asked": seen.headers})
        answer = reply(
            said.encode(), code, content_type="application/json", etag=f'"{seen.headers.get("authorization")}"'
        )
        return answer(connection, seen)

    return behave


def yielding(connection: Connection, seen: Seen) -> bool:
    body = json.dumps({"access_token": YIELDED, "expires_in": 3600}).encode()
    return reply(body, content_type="application/json")(connection, seen)


@pytest.fixture
def reddit() -> Iterator[Hostile]:
    with Hostile() as server:
        server.on("/api/v1/access_token", yielding)
        server.on("/r/webdev/new", repeating())
        server.on("/api/info", repeating(), repeating(401))
        yield server


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged, at the level that tells most."""
    root, stream = logging.getLogger(), io.StringIO()
    before = (root.handlers[:], root.level)
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)


@pytest.fixture
def used(
    catchment: Catchment,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    reddit: Hostile,
    site: FeedSite,
    database_url: str,
) -> list[str]:
    """All of them have been used, with good ends and with bad ones; gives what the commands said."""
    for name, value in {
        "COOKIE_MASTER_KEY": MASTER_KEY,
        "CATCHMENT_API_KEY": API_KEY,
        "CATCHMENT_REDDIT_BASE_URL": reddit.url,
        "CATCHMENT_DATABASE_URL": database_url,
        "CATCHMENT_LOG_LEVEL": "debug",
        "REDDIT_CLIENT_ID": "client",
        "REDDIT_CLIENT_SECRET": ENVIRONMENT,
    }.items():
        monkeypatch.setenv(name, value)
    feed = site.feed("private", posts=2)
    address = feed.url.replace("http://", f"http://client:{PASSWORD}@")
    hook = f"{reddit.url}/{PATH}"
    said = [
        catchment("credentials", "add", "reddit", "main", stdin=f"client:{CLIENT}".encode()),
        catchment("webhooks", "add", "n8n", hook, stdin=SIGNATURE.encode()),
        catchment("sources", "add", "rss", f"{address}?token={TOKEN}", "--check"),
        catchment("sources", "add", "reddit", "r/webdev", "--check"),
        catchment("sources", "add", "reddit", "r/other", "--credential", "main"),
        *(catchment("collect", "--all", "--json") for _ in range(2)),
        *(catchment("credentials", "test", name) for name in ("main", "main", "reddit-environment")),
        catchment("webhooks", "test", "n8n"),
    ]
    feed.status = 401
    reddit.on("/r/webdev/new", repeating(401))
    reddit.on("/r/other/new", repeating(403))
    said += [catchment("collect", "--all"), catchment("collect", "--all", "--json")]
    reddit.on("/api/v1/access_token", repeating(400), status(401))
    said += [catchment("credentials", "test", name, "--json") for name in ("main", "reddit-environment") * 2]
    said += [catchment("collect", "--all")]
    told = json.dumps([(seen.path, seen.headers) for seen in (*reddit.seen, *feed.asked)])
    told += "".join(base64.b64decode(word + "==").decode("latin-1") for word in re.findall('Basic ([^"]+)', told))
    assert [secret for secret in (CLIENT, ENVIRONMENT, PASSWORD, TOKEN, PATH, YIELDED) if secret not in told] == []
    return [output.out + output.err for output in said]


def all_readings() -> Iterator[list[str]]:
    for name, command in every_command(commands(is_loaded=True)):
        if name in {*READING, "doctor", "sources export", "export", "security-audit", "credentials rotate-key"}:
            given = [
                EXAMPLES.get(parameter.name or "", "-")
                for parameter in command.params
                if parameter.param_type_name == "argument"
            ]
            yield [*name.split(), *given]


def test_no_command_no_log_and_no_file_shows_one(
    catchment: Catchment, used: list[str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXAMPLES, "name", "main")
    for command in all_readings():
        for more in ([], ["--json"]):
            said = catchment(*command, *more)
            used.append(said.out + said.err)
    assert len(used) > 50
    assert planted_in("".join(used).encode()) == []
    at_home = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert planted_in(at_home) == []
    audit = catchment("security-audit", "--json")
    assert (audit.json["findings"], audit.code) == ([], 0)


@pytest.mark.usefixtures("used")
def test_no_answer_of_the_api_no_page_and_no_job_shows_one(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch, reddit: Hostile
) -> None:
    settings = settings_from(os.environ, Path.cwd(), NAMES)
    logs.configure("json", "debug", lines)
    answers: list[str] = []
    with open_app(settings, "test") as app:
        for job in JOBS:
            run_if_due(app, job)
        here: Any = SimpleNamespace(app=app, clock=app.clock)
        desk = Desk(here)
        browser = desk.browser()
        for method, path in operations(desk):
            if method == "GET":
                answers.append(_told(desk.client.get(path)))
        for path in ("/", "/sources", "/items", "/health", "/metrics", "/openapi.json"):
            answers += [_told(browser.get(path)), _told(desk.client.get(path))]
        for path in ("/api/credentials/1/pause", "/api/credentials/1/resume", "/api/webhooks/1/test"):
            answers.append(_told(desk.client.post(path)))
    assert len(answers) > 30
    assert planted_in("".join(answers).encode()) == []
    assert planted_in(lines.getvalue().encode()) == []


def _told(answer: Any) -> str:
    return f"{answer.status_code} {dict(answer.headers)} {answer.text}"
