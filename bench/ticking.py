"""What a tick costs: it must grow with what is due, not with what is followed."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from catchment.clock import micros
from catchment.model import Target
from catchment.store import Store, leases, open_store
from catchment.text.clean import fingerprint

NOW = datetime(2026, 6, 1, tzinfo=UTC)
INTERVAL_MINUTES = 240
DUE = 10


@dataclass(frozen=True)
class Tick:
    followed: int
    idle_microseconds: float
    """Nothing is due."""
    busy_microseconds: float
    """Ten sources are due, and claimed."""


def measure(followed: int) -> Tick:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = open_store(f"sqlite:///{home / 'catchment.db'}", home, NOW, fingerprint)
        try:
            _follow(store, home / "catchment.db", followed)
            presence = store.enter("bench", NOW)
            idle = median(_claim(store, presence.owner_id, expected=0) for _ in range(100))
            _make_due(home / "catchment.db")
            busy = median(_claim(store, presence.owner_id, expected=DUE) for _ in range(20))
            presence.leave(NOW)
        finally:
            store.close()
    return Tick(followed, idle * 1e6, busy * 1e6)


def _claim(store: Store, owner_id: int, expected: int) -> float:
    """CPU seconds of claiming what is due; it is given back afterwards, off the clock."""
    begun = time.process_time()
    claimed = store.sources.claim_due(owner_id, {"rss": INTERVAL_MINUTES}, INTERVAL_MINUTES, NOW, 2 * DUE)
    spent = time.process_time() - begun
    assert len(claimed) == expected, len(claimed)
    for claim in claimed:
        store.database.write(lambda tx, lease=claim.lease: leases.release(tx, lease))  # type: ignore[misc]
    return spent


def _follow(store: Store, file: Path, count: int) -> None:
    """One source by the store's own verb, and copies of its rows: a million commits would take an hour."""
    store.sources.follow(Target("rss", "https://example.org/"), "feeds", NOW)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE progress SET last_polled_at = ?", (micros(NOW),))
        _copy(database, "sources", count, id="n", key="key || n", target="target || n")
        _copy(database, "progress", count, source_id="n")
    database.close()


def _copy(database: sqlite3.Connection, table: str, count: int, **changed: str) -> None:
    """Copies of a table's only row, until there are so many; `n` is the number of a copy."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    database.execute(
        f"""
        WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
        INSERT INTO {table} ({", ".join(columns)})
        SELECT {", ".join(changed.get(column, column) for column in columns)} FROM {table}, numbers
        """
    )


def _make_due(file: Path) -> None:
    long_ago = micros(NOW - timedelta(minutes=2 * INTERVAL_MINUTES))
    with sqlite3.connect(file) as database:
        database.execute(
            "UPDATE progress SET last_polled_at = ? WHERE source_id IN (SELECT source_id FROM progress LIMIT ?)",
            (long_ago, DUE),
        )
    database.close()
