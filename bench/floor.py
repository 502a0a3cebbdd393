"""The floor: what the same bytes cost when they are only downloaded, only parsed, only inserted; each alone.

No collector can be cheaper, and none that keeps history, cleans, and proves what it has comes near. Our figures are
multiples of it, measured in the same run, so that they mean the same on every machine. Runs in a process of its own:
`python -m bench.floor URL FEEDS` prints {"1": seconds of CPU, "2": …, "3": …, "parts": …}.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import fastfeedparser  # type: ignore[import-untyped]
import pycurl

from bench.processes import turn
from bench.world import EDIT_WORD, World

Row = tuple[object, ...]
Result = TypeVar("Result")

SCHEMA = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE entries (
        id TEXT PRIMARY KEY, feed, link, title, author, tags, published, updated, summary, content
    );
    CREATE INDEX by_time ON entries (published);
"""
INSERT = """
    INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET title = excluded.title, content = excluded.content
    WHERE content IS NOT excluded.content
"""


def download(urls: list[str], etags: dict[str, str] | None = None) -> tuple[dict[str, bytes], dict[str, str]]:
    """The bodies that came with 200, and their validators; one connection, kept alive."""
    curl = pycurl.Curl()
    bodies, validators = {}, {}
    for url in urls:
        body, head = BytesIO(), list[bytes]()
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.WRITEDATA, body)
        curl.setopt(pycurl.HEADERFUNCTION, head.append)
        curl.setopt(pycurl.HTTPHEADER, [f"If-None-Match: {etags[url]}"] if etags else [])
        curl.perform()
        if curl.getinfo(pycurl.RESPONSE_CODE) == 200:
            bodies[url] = body.getvalue()
            validators[url] = next((line[5:].strip().decode() for line in head if line.startswith(b"ETag:")), "")
    return bodies, validators


def parse(bodies: dict[str, bytes]) -> list[Row]:
    """The columns of a row by the fastest parser there is; times stay as they are."""
    return [
        (
            entry.get("id"),
            url,
            entry.get("link"),
            entry.get("title"),
            entry.get("author"),
            ",".join(tag["term"] for tag in entry.get("tags", ())),
            entry.get("published"),
            entry.get("updated"),
            entry.get("description"),
            entry["content"][0]["value"],
        )
        for url, body in bodies.items()
        for entry in fastfeedparser.parse(body).entries
    ]


def insert(rows: list[Row], database: sqlite3.Connection) -> None:
    with database:
        database.executemany(INSERT, rows)


class Stopwatch:
    """CPU seconds of this process, by part. Each part is done once, like the rounds that are held against it: a second
    time it would find its memory and its caches warm."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}

    def time(self, part: str, action: Callable[[], Result]) -> Result:
        gc.collect()
        begun = time.process_time()
        result = action()
        self.parts[part] = time.process_time() - begun
        return result

    def sum(self, ending: str) -> float:
        return sum(spent for part, spent in self.parts.items() if part.endswith(ending))


def measure(base: str, feeds: int, home: Path) -> Stopwatch:
    urls = [f"{base}/f/{feed}.xml" for feed in range(feeds)]
    database = fresh_database(home / "floor.db")
    watch = Stopwatch()

    turn(base, 1)
    bodies, etags = watch.time("download 1", lambda: download(urls))
    known = hashes(bodies)
    store(watch, "1", bodies, database)
    del bodies

    turn(base, 2)
    changed, _ = watch.time("download 2", lambda: download(urls, etags))
    known |= hashes(changed)
    store(watch, "2", changed, database)

    turn(base, 3)
    again, _ = watch.time("download 3", lambda: download(urls))
    assert watch.time("hash 3", lambda: hashes(again)) == known, "round 3 has other bytes than round 2"

    check(database, World(feeds))
    database.close()
    return watch


def store(watch: Stopwatch, round_name: str, bodies: dict[str, bytes], database: sqlite3.Connection) -> None:
    rows = watch.time(f"parse {round_name}", lambda: parse(bodies))
    watch.time(f"insert {round_name}", lambda: insert(rows, database))


def hashes(bodies: dict[str, bytes]) -> dict[str, bytes]:
    return {url: sha256(body).digest() for url, body in bodies.items()}


def fresh_database(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    return database


def check(database: sqlite3.Connection, world: World) -> None:
    """A floor that does not do the work would flatter nobody."""
    expected = world.expected()
    count, edits = database.execute("SELECT count(*), sum(content LIKE ?) FROM entries", (f"%{EDIT_WORD}%",)).fetchone()
    assert (count, edits) == (expected.items, len(expected.edited)), (count, edits)


def main() -> None:
    base, feeds = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as home:
        watch = measure(base, feeds, Path(home))
    print(json.dumps({**{str(n): watch.sum(str(n)) for n in (1, 2, 3)}, "parts": watch.parts}))


if __name__ == "__main__":
    main()
