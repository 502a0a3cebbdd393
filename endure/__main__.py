"""`python -m endure`: a simulated week of every kind of source under faults and kills, then the verdict in one line.

Every part is a process of its own: the playground, two collectors that are killed and started again, and commands. Time
runs by CATCHMENT_CLOCK, so that a week takes minutes. Ends with 1 if anything was lost, stored twice, or unexplained.

With --users: a week of that many users of X, through both services, by two processes, which costs what the playground's
bill says; then the same with caps at half of it. --traces FILE: they post as the accounts in that file did.

With --boards: a month of a board with that many threads, read by two processes that are killed, on a clock that moves
only when somebody waits. Every floor has to be stored once, every hole known, with at most one request in any second.

With --communities: a week of that many communities, visited as their tiers say, in which one key's budget must never be
exceeded; nobody is killed, and days, faults, seed and database are as given.

With --claimers: so many claimers in eight processes share one budget of sixty requests a minute, while Redis dies,
comes back empty and dies again; a server counts what arrives. Time is the machine's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from catchment import logs
from endure import boards, claimers, communities, users
from endure.trial import Plan, Verdict, run


def main() -> int:
    given = _options().parse_args()
    databases = ("sqlite", "postgresql") if given.database == "both" else (given.database,)
    if given.engine == "celery" or given.claimers:
        databases = ("postgresql",)
    is_good = True
    for database in databases:
        with tempfile.TemporaryDirectory(prefix="endure-") as folder:
            verdict = _verdict(given, database, given.keep or Path(folder))
        sys.stdout.write(json.dumps({"database": database, **verdict.figures}, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        for words in verdict.details[:40]:
            sys.stderr.write(f"  {words}\n")
        is_good = is_good and verdict.is_good
    return 0 if is_good else 1


def _verdict(given: argparse.Namespace, database: str, folder: Path) -> Verdict:
    folder.mkdir(parents=True, exist_ok=True)
    if given.boards:
        rate = 0.1 if given.fault_rate is None else given.fault_rate
        kills, days = 30 if given.kills is None else given.kills, 30.0 if given.days is None else given.days
        return boards.run(boards.Month(given.boards, days, kills, rate, given.seed, database), folder)
    rate = 0.2 if given.fault_rate is None else given.fault_rate
    days = 7.0 if given.days is None else given.days
    if given.users:
        return users.run(users.Week(given.users, days, rate, given.seed, database, given.traces), folder)
    if given.communities:
        week = communities.Week(given.communities, days, rate, given.seed, database)
        with (folder / "collector.log").open("w", encoding="utf-8") as said:
            logs.configure("json", "info", said)
            try:
                return communities.run(week, folder)
            finally:
                logs.configure()
    if given.claimers:
        return claimers.run(claimers.Claimers(given.claimers, given.minutes), folder)
    plan = Plan(
        places=given.places,
        days=days,
        kills=200 if given.kills is None else given.kills,
        fault_rate=rate,
        seed=given.seed,
        minutes=given.minutes,
        database=database,
        engine=given.engine,
    )
    return run(plan, folder)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m endure", description=__doc__)
    options.add_argument("--places", type=int, default=180, help="feeds; 33 sources of other kinds come on top")
    options.add_argument(
        "--communities", type=int, help="instead of all that: so many communities of Reddit, by their tiers, on one key"
    )
    options.add_argument("--users", type=int, help="instead of all that: so many users of X")
    options.add_argument("--traces", type=Path, help="with --users: when real accounts posted, as JSON lines")
    options.add_argument("--claimers", type=int, help="instead of all that: so many claimers of one budget")
    options.add_argument("--boards", type=int, help="instead of all that: a month of a board with so many threads")
    options.add_argument("--days", type=float, help="7; with --boards 30")
    options.add_argument("--kills", type=int, help="200; with --boards 30")
    options.add_argument("--fault-rate", type=float, help="0.2; with --boards 0.1")
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--minutes", type=float, default=8.0, help="of wall time that the simulated days take")
    options.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    options.add_argument(
        "--engine",
        choices=("embedded", "celery"),
        default="embedded",
        help="celery: beats and workers on PostgreSQL and Redis, each of which is killed or restarted, too",
    )
    options.add_argument("--keep", type=Path, help="a folder for everything, kept afterwards")
    return options


if __name__ == "__main__":
    sys.exit(main())
