"""Cache-only crawls, as far as the database knows of them: who is cold, how it went, how many are warm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from catchment.clock import micros
from catchment.model import Lease, Record, Result, Source
from catchment.store import leases
from catchment.store.database import Database, Transaction
from catchment.store.endings import note_result
from catchment.store.forgetting import forgotten_names
from catchment.store.rows import to_moment
from catchment.store.writing import count_attempts

_COMMUNITIES = """
    FROM sources s JOIN progress p ON p.source_id = s.id LEFT JOIN hot_sources h ON h.source_id = s.id
   WHERE s.kind IN {few} AND s.state = 'active'
"""


class Warmth(Record, frozen=True):
    """How far communities are warm: read lately, by a visit or by a cache-only crawl."""

    communities: int
    warm: int
    cached_posts: int
    """What the last cache-only crawl of each one cached."""
    last_warmed_at: datetime | None


class Warming:
    def __init__(self, database: Database) -> None:
        self._db = database

    def cold(self, kinds: Sequence[str], before: datetime) -> list[int]:
        """Active sources of these kinds that nobody has read since then, the coldest first."""
        return self._db.read(
            lambda tx: [
                row[0]
                for row in tx.among(
                    f"""
                    SELECT s.id {_COMMUNITIES}
                       AND coalesce(h.last_warmed_at, 0) <= ? AND coalesce(p.last_success_at, 0) <= ?
                     ORDER BY coalesce(h.last_warmed_at, 0), s.id
                    """,
                    kinds,
                    after=[micros(before), micros(before)],
                )
            ]
        )

    def warmth(self, kinds: Sequence[str], since: datetime) -> Warmth:
        """Of the active sources of these kinds."""
        rows = self._db.read(
            lambda tx: tx.among(
                f"SELECT h.last_warmed_at, h.cached_count, p.last_success_at {_COMMUNITIES}",
                kinds,
            )
        )
        read = [max(warmed or 0, visited or 0) for warmed, _, visited in rows]
        return Warmth(
            len(rows),
            sum(at >= micros(since) for at in read),
            sum(count or 0 for _, count, _ in rows),
            to_moment(max((warmed for warmed, _, _ in rows if warmed), default=None)),
        )

    def of_source(self, source_id: int) -> dict[str, Any]:
        """When a cache-only crawl read it last, and how much it cached then."""
        row = self._db.read(
            lambda tx: tx.one("SELECT last_warmed_at, cached_count FROM hot_sources WHERE source_id = ?", source_id)
        )
        at = to_moment(row[0]) if row else None
        return {"last_warmed_at": at.isoformat() if at else None, "cached_count": row[1] if row else 0}

    def known_of(self, platform: str) -> list[int]:
        """The sources of this platform of which something may be hot."""
        rows = self._db.read(
            lambda tx: tx.all(
                "SELECT h.source_id FROM hot_sources h JOIN sources s ON s.id = h.source_id WHERE s.platform = ?",
                platform,
            )
        )
        return [row[0] for row in rows]

    def unforgotten(self, platform: str, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of these that nobody wanted to be forgotten."""
        names = [(one["scope"], one["external_id"], one["author"], one["author_id"]) for one in items]
        gone = self._db.read(lambda tx: forgotten_names(tx, platform, names))
        return [one for one in items if (one["scope"], one["external_id"]) not in gone]

    def ended(
        self,
        source: Source,
        lease: Lease,
        run_id: int,
        result: Result,
        outcomes: Mapping[tuple[str, datetime], int],
        cached: int | None,
    ) -> None:
        """How a crawl of this source ended; `cached` posts, or None: nothing was read. Its progress is not touched."""

        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            count_attempts(tx, source.platform, outcomes)
            note_result(tx, run_id, result)
            if cached is not None and result.finished_at is not None:
                tx.run(
                    """
                    INSERT INTO hot_sources (source_id, last_warmed_at, cached_count) VALUES (?, ?, ?)
                    ON CONFLICT (source_id) DO UPDATE SET
                           last_warmed_at = excluded.last_warmed_at, cached_count = excluded.cached_count
                    """,
                    source.id,
                    micros(result.finished_at),
                    cached,
                )
            leases.release(tx, lease)

        self._db.write(deed)
