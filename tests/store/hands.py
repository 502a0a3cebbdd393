"""Actions of another process: `python -m tests.store.hands ACTION URL HOME …`. It prints what it did."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from catchment.errors import CredentialsExhausted
from catchment.fetch.budgets import budgets_in
from catchment.model import Budget
from catchment.redis import RedisLink
from tests.store.desk import Desk, opened, pool_of, post

Interval = tuple[int, float, float]


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def hold(desk: Desk, *source_ids: str) -> None:
    """Claim these, store a page of the first, and hang in the middle of the visit."""
    claimed = desk.store.sources.claim([int(source_id) for source_id in source_ids], desk.presence.owner_id, desk.now)
    desk.write(claimed[0], [post("stored before the end"), post("this, too")], is_last=False)
    say([claim.source.id for claim in claimed])
    sys.stdin.read()


def open_it(desk: Desk) -> None:
    say(desk.store.sources.counts())


def claim_many(desk: Desk, times: str) -> None:
    """Claim what is free and give it back, over and over; tells when each was held."""
    say("ready")
    sys.stdin.readline()
    say(hammer(desk, int(times)))


def hammer(desk: Desk, times: int) -> list[Interval]:
    held: list[Interval] = []
    while len(held) < times:
        claimed = desk.due(limit=2, rss=0)
        began = time.monotonic()
        time.sleep(0.001)
        ended = time.monotonic()
        held += [(claim.source.id, began, ended) for claim in claimed]
        for claim in claimed:
            desk.give_back(claim)
    return held


def drain(desk: Desk, threads: str, claimers: str) -> None:
    """Claim all that is due, twelve at a time, from several threads; tells what each claim brought, how many brought
    nothing although there was more left than so many claimers can be claiming at the moment, and how many brought
    nothing although anything was left."""
    desk.presence, desk.run_id
    say("ready")
    sys.stdin.readline()

    def work(_: int) -> tuple[list[int], int, int, int]:
        claims, empty, late, ids = 0, 0, 0, list[int]()
        while True:
            claimed = desk.due(limit=12)
            if not claimed:
                left = len(desk.store.sources.overdue({"rss": 60}, 60, desk.now, 12 * int(claimers)))
                empty += left == 12 * int(claimers)
                if not left:
                    return ids, claims, empty, late
                late += 1
            claims += 1
            ids += [claim.source.id for claim in claimed]
            desk.store.page_writer.end([desk.finished_visit(claim) for claim in claimed])

    with ThreadPoolExecutor(int(threads)) as pool:
        say(list(pool.map(work, range(int(threads)))))


def write_many(desk: Desk, name: str, times: str) -> None:
    """Write pages of a source of its own, and of one thing that all show."""
    source = desk.follow(f"r/{name}", "reddit")
    for number in range(int(times)):
        desk.show(source, post(f"{name} {number}"), post("shared", f"by {name}, {number}"))
    say(int(times))


def spend(desk: Desk, times: str, redis_url: str | None = None) -> None:
    """Take tokens of one small budget, at one moment that all agree on."""
    link = RedisLink(redis_url, "test:") if redis_url else None
    budgets, budget = budgets_in(desk.store.budgets, link), Budget("small", 50, 3600)
    say(sum(budgets.take(budget, None, desk.now).tokens for _ in range(int(times))))


def index(desk: Desk, batch: str) -> None:
    """Index what waits, and tell of every batch."""
    while done := desk.store.index.advance(int(batch)):
        say(done)


def use_credentials(desk: Desk, times: str) -> None:
    """Take a credential of the pool for each of so many requests; tells how often each one came."""
    pool = pool_of(desk)
    say("ready")
    sys.stdin.readline()
    uses: Counter[str] = Counter()
    for _ in range(int(times)):
        try:
            use = pool.take("reddit")
        except CredentialsExhausted:
            uses["none"] += 1
        else:
            assert use is not None
            uses[use.name] += 1
    pool.close()
    say(uses)


ACTIONS: dict[str, Callable[..., None]] = {
    "hold": hold,
    "open": open_it,
    "claim": claim_many,
    "drain": drain,
    "write": write_many,
    "spend": spend,
    "index": index,
    "credentials": use_credentials,
}


def main(action: str, url: str, home: str, *more: Any) -> None:
    # As many processes as a test may start must not use up the connections of one server.
    desk = Desk(opened(url, Path(home), pool_size=13, overflow=0))
    ACTIONS[action](desk, *more)
    desk.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
