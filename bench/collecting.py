"""What catchment itself costs on the standing workload: the real commands, each in a process of its own, measured from
outside; and whether it has afterwards what it must have."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from bench.processes import Cost, run, turn
from bench.world import EDIT_WORD, World

START_UPS = 5
PLANTED = 5
"""The newest entry of so many feeds is searched for after every round."""
PROGRAM = str(Path(sys.executable).with_name("catchment"))


@dataclass(frozen=True)
class Collected:
    """One pass through all rounds, from an empty home."""

    start_ups: list[Cost]
    """The same command with nothing to collect; part of every round's cost."""
    importing: Cost
    rounds: dict[int, Cost]
    database_mb: float


class Installation:
    """A catchment with a home of its own, driven by its commands."""

    def __init__(self, home: Path, database_url: str | None = None) -> None:
        """`database_url`: None for SQLite in its home."""
        self.home = home
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "LANG": "C.UTF-8",
            # What lies here is measured, whatever is installed.
            "PYTHONPATH": str(Path(__file__).parent.parent),
            "CATCHMENT_HOME": str(home),
            "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "1",
            # All 500 feeds live on one host here. To that host we would rightly be slow.
            "CATCHMENT_HOST_REQUESTS_PER_SECOND": "10000",
        } | ({"CATCHMENT_DATABASE_URL": database_url} if database_url else {})

    def run(self, *words: str) -> tuple[str, Cost]:
        return run([PROGRAM, *words], self.environment, weighs=False)

    def collect(self) -> tuple[dict[str, Any], Cost]:
        answer, cost = run([PROGRAM, "collect", "--all", "--json"], self.environment)
        return json.loads(answer), cost

    def size_mb(self) -> float:
        return sum(file.stat().st_size for file in self.home.glob("catchment.db*")) / 1e6


def measure(
    base: str,
    world: World,
    database_url: str | None = None,
    *,
    home: Path | None = None,
    rounds: Sequence[int] = (1, 2, 3),
) -> Collected:
    """`home`: an installation with other items in it, which are not checked."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        catchment = Installation(home or here / "home", database_url)
        catchment.collect()  # sets the database up
        start_ups = [catchment.collect()[1] for _ in range(START_UPS)]
        list_of_feeds = here / "feeds.opml"
        list_of_feeds.write_text(opml(base, world))
        _, importing = catchment.run("sources", "import", str(list_of_feeds))
        costs = {}
        for number in rounds:
            turn(base, number)
            result, costs[number] = catchment.collect()
            CHECKS[number](result, world)
            if home is None:
                check_search(catchment, number, world)
        if home is None and len(rounds) == len(CHECKS):
            check_archive(catchment, here / "items.jsonl", world)
        return Collected(start_ups, importing, costs, catchment.size_mb())


def opml(base: str, world: World, hosts: int = 1) -> str:
    """`hosts`: how many addresses of this machine the feeds are on, by turns."""
    feeds = "".join(
        f'<outline type="rss" text="Feed {feed}" '
        f'xmlUrl="{escape(base.replace("127.0.0.1", f"127.0.0.{1 + feed % hosts}"))}/f/{feed}.xml"/>'
        for feed in range(world.feeds)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><opml version="2.0"><head/><body>{feeds}</body></opml>'


# ── is it all there? ──────────────────────────────────────────────────────────────────────────────────────────────


def check_round_1(result: dict[str, Any], world: World) -> None:
    _expect("round 1", result, succeeded=world.feeds, new=world.expected().items_after_round_1, updated=0)


def check_round_2(result: dict[str, Any], world: World) -> None:
    expected = world.expected()
    gained = expected.items - expected.items_after_round_1
    _expect("round 2", result, succeeded=world.feeds, new=gained, updated=len(expected.edited))


def check_round_3(result: dict[str, Any], world: World) -> None:
    _expect("round 3", result, succeeded=world.feeds, new=0, updated=0)


CHECKS = {1: check_round_1, 2: check_round_2, 3: check_round_3}


def _expect(where: str, result: dict[str, Any], **expected: int) -> None:
    got = {name: result[name] for name in expected}
    if got != expected:
        raise SystemExit(f"{where}: expected {expected}, got {got}")


def check_search(catchment: Installation, round_number: int, world: World) -> None:
    """Search is complete whenever a round is over, whatever of it is indexed by then."""
    edited = set(world.expected().edited) if round_number > 1 else set()
    if (found := _found(catchment, EDIT_WORD)) != edited:
        raise SystemExit(f"round {round_number}: search finds {len(found)} edits; expected {len(edited)}")
    for feed in range(0, world.feeds, max(1, world.feeds // PLANTED)):
        newest = world.shown(feed, round_number)[0]
        if newest.id not in _found(catchment, f'"{newest.title}"'):
            raise SystemExit(f"round {round_number}: search does not find {newest.id} by its title")


def _found(catchment: Installation, words: str) -> set[str]:
    answer, _ = catchment.run("search", words, "--limit", "1000", "--json")
    return {json.loads(line)["external_id"] for line in answer.splitlines()}


def check_archive(catchment: Installation, file: Path, world: World) -> None:
    """Every item once, every edit with the text before it."""
    catchment.run("export", "--format", "jsonl", "--output", str(file))
    expected = world.expected()
    times_kept: Counter[str] = Counter()
    edited = {}
    with file.open() as lines:
        for item in map(json.loads, lines):
            times_kept[item["external_id"]] += 1
            if EDIT_WORD in item["text"]:
                edited[item["external_id"]] = item["id"]
    if len(times_kept) != expected.items or times_kept.total() != expected.items:
        raise SystemExit(f"{times_kept.total()} items kept, {len(times_kept)} different; expected {expected.items}")
    if set(edited) != set(expected.edited):
        raise SystemExit(f"the archive has {len(edited)} edits; expected {len(expected.edited)}")
    for external_id, item_id in edited.items():
        answer, _ = catchment.run("revisions", str(item_id), "--json")
        earlier = [revision["text"] for revision in json.loads(answer)]
        if not any(text and EDIT_WORD not in text for text in earlier):
            raise SystemExit(f"the text of {external_id} before its edit is lost")
