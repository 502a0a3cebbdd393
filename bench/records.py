"""What three months of running leave beside the items: visits, runs, metrics, gaps, alerts, attempts.

As many as a deployment has that follows an archive's sources at the pace its kind has by default: with 2,000 feeds a
million records of visits, of which the overview, the sources and the runs tell. A tenth of the sources more are
communities, so that tiers and budgets are met as well. One source in 40 fails, and one in 10 has an open gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from bench.archives import BATCH, NOW, Archive, Row, insert
from catchment.clock import micros
from catchment.store import Store
from catchment.store.sources.metrics import SUMS, MetricSpan

RUNS_DAYS, METRICS_DAYS, ATTEMPTS_DAYS = 90, 730, 7
"""So long records are kept by default."""
_SECOND = 1_000_000
_RUN_EVERY, _VISIT_EVERY = 600 * _SECOND, 14_400 * _SECOND
_TURNS = _VISIT_EVERY // _RUN_EVERY
"""So many runs, and all sources have had their turn."""
FAILING, WITH_GAP = 40, 10
"""One source in so many fails; one in so many has an open gap."""
_OLD_GAPS, _OLD_ALERTS = 5, 2
"""So many of each source are closed."""
_KINDS = {"rss": "feeds", "reddit": "reddit", "hackernews": "hackernews", "github_trending": "github"}
_ERROR = "the server does not answer — is the address still right?"


class Records:
    """What running has left in an archive of that size, row by row."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._now = archive, micros(NOW)
        self.communities = range(archive.sources + 1, archive.sources + 1 + max(1, archive.sources // 10))
        self.followed = range(1, self.communities.stop)
        self.run_count = RUNS_DAYS * 86_400 * _SECOND // _RUN_EVERY

    # ── what is followed ──────────────────────────────────────────────────────────────────────────────────────────

    def community(self, source_id: int) -> Row:
        name = f"r/place{source_id}"
        told = {"key": f"reddit:{name}", "platform": "reddit", "kind": "reddit", "target": name, "name": name}
        return self._archive.source(source_id) | told

    def progress(self, source_id: int) -> Row:
        is_failing, is_community = self.is_failing(source_id), source_id in self.communities
        last = self.run_at(self.last_run_of(source_id))
        return {
            "source_id": source_id,
            "kind": "reddit" if is_community else "rss",
            "is_active": True,
            "next_due_at": last + _VISIT_EVERY + source_id % 600 * _SECOND if is_failing or is_community else None,
            "due_reason": "it failed" if is_failing else None,
            "first_polled_at": self._now - 10 * RUNS_DAYS * 86_400 * _SECOND,
            "last_polled_at": last,
            "last_success_at": last - is_failing * _VISIT_EVERY,
            "last_new_at": last - _VISIT_EVERY,
            "expected_by": self._now + _VISIT_EVERY * (source_id % 9 - 1),
            "poll_count": 6 * RUNS_DAYS,
            "failure_count": source_id % 7,
            "failures_in_a_row": 1 + source_id % 9 if is_failing else 0,
            "last_error": _ERROR if is_failing else None,
            "last_error_code": "PLATFORM_ERROR" if is_failing else None,
            "watermark_at": last - _VISIT_EVERY,
            "watermark_ids": "[]",
            "cursor": "{}",
            "moved_count": 0,
            "stale_count": 0,
            "empty_in_a_row": 0,
            "posts_per_day": 2.5,
            "average_valid": float(source_id % 50) if is_community else None,
            "tier": f"tier{source_id % 3 + 1}" if is_community else None,
            "tier_minutes": 240 if is_community else None,
        }

    def is_failing(self, source_id: int) -> bool:
        return source_id % FAILING == 0

    # ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def run_at(self, number: int) -> int:
        """When a run began; they are numbered from 0, the oldest."""
        return self._now - (self.run_count - number) * _RUN_EVERY

    def last_run_of(self, source_id: int) -> int:
        newest = self.run_count - 1
        return newest - (newest - source_id) % _TURNS

    def run(self, number: int) -> Row:
        visited = self.visited(number)
        failed = sum(map(self.is_failing, visited))
        return {
            "id": number + 1,
            "job": "collect-due",
            "started_by": "schedule",
            "started_at": self.run_at(number),
            "finished_at": self.run_at(number) + 90 * _SECOND,
            "is_cut_off": False,
            "source_count": len(visited),
            "succeeded": len(visited) - failed,
            "failed": failed,
            "skipped": 0,
            "new_count": len(visited) - failed,
            "updated_count": 0,
            "duplicate_count": 30 * len(visited),
            "invalid_count": 0,
            "request_count": len(visited),
        }

    def visited(self, number: int) -> range:
        """The sources whose turn it was in a run."""
        return range(number % _TURNS or _TURNS, self.followed.stop, _TURNS)

    def visits(self, number: int) -> Iterator[Row]:
        for place, source_id in enumerate(self.visited(number)):
            is_failed, at = self.is_failing(source_id), self.run_at(number) + place * _SECOND
            yield {
                "run_id": number + 1,
                "source_id": source_id,
                "started_at": at,
                "finished_at": at + _SECOND,
                "outcome": "failed" if is_failed else "unchanged" if (number + source_id) % 3 else "succeeded",
                "new_count": 0 if is_failed else 1,
                "updated_count": 0,
                "duplicate_count": 30,
                "invalid_count": 0,
                "request_count": 1,
                "http_status": 503 if is_failed else 200,
                "error_code": "PLATFORM_ERROR" if is_failed else None,
                "error": _ERROR if is_failed else None,
                "is_retryable": True if is_failed else None,
                "notes": "[]",
                "valid_count": 1,
            }

    # ── what was measured ─────────────────────────────────────────────────────────────────────────────────────────

    def metrics(self) -> Iterator[Row]:
        for span, starts_at in self._spans():
            for kind, platform in _KINDS.items():
                key = {"span": span, "starts_at": starts_at, "kind": kind, "platform": platform}
                yield key | dict.fromkeys(SUMS, 7)

    def global_metrics(self) -> Iterator[Row]:
        for span, starts_at in self._spans():
            yield {"span": span, "starts_at": starts_at, "hit_count": 900, "miss_count": 100}

    def _spans(self) -> Iterator[tuple[str, int]]:
        """All that are over but the last: what has just ended is counted by whoever asks."""
        for span, days in ((MetricSpan.HOUR, RUNS_DAYS), (MetricSpan.DAY, METRICS_DAYS)):
            for number in range(2, timedelta(days=days) // span.length):
                yield str(span), micros(NOW - number * span.length)

    def attempts(self) -> Iterator[Row]:
        for number in range(ATTEMPTS_DAYS * 1_440):
            for platform, outcome in (("feeds", "200"), ("feeds", "304"), ("reddit", "200")):
                minute = self._now - number * 60 * _SECOND
                yield {"minute": minute, "platform": platform, "outcome": outcome, "count": 4}

    def jobs(self) -> Iterator[Row]:
        # Here, not above, as all that collects: the benchmark itself must stay smaller than what it weighs.
        from catchment.jobs import JOBS

        for number, job in enumerate(JOBS, 1):
            yield {"id": number, "name": job.name, "next_run_at": self._now + 60 * _SECOND, "run_count": 99}

    # ── what is, or was, wrong ────────────────────────────────────────────────────────────────────────────────────

    def gaps(self) -> Iterator[Row]:
        for source_id in self.followed:
            for age in range(_OLD_GAPS, 0, -1):
                yield self._gap(source_id, age * 15, is_open=False)
            if source_id % WITH_GAP == 0:
                yield self._gap(source_id, 1, is_open=True)

    def _gap(self, source_id: int, days_ago: int, *, is_open: bool) -> Row:
        at = self._now - days_ago * 86_400 * _SECOND
        return {
            "source_id": source_id,
            "is_certain": source_id % 2 == 0,
            "from_at": at - _VISIT_EVERY,
            "to_at": at,
            "from_ids": "[]",
            "cause": "more was posted than the feed shows",
            "opened_at": at,
            "closed_at": None if is_open else at + _VISIT_EVERY,
            "closed_because": None if is_open else "filled",
        }

    def alerts(self) -> Iterator[Row]:
        for source_id in self.followed:
            for age in range(_OLD_ALERTS, 0, -1):
                yield self._alert(source_id, age * 20, is_open=False)
            if self.is_failing(source_id):
                yield self._alert(source_id, 1, is_open=True)

    def _alert(self, source_id: int, days_ago: int, *, is_open: bool) -> Row:
        at = self._now - days_ago * 86_400 * _SECOND
        return {
            "subject": f"source {source_id} failing",
            "severity": "P1",
            "source_id": source_id,
            "message": _ERROR,
            "opened_at": at,
            "closed_at": None if is_open else at + _VISIT_EVERY,
        }


def keep(store: Store, archive: Archive) -> None:
    """Into an archive that is filled."""
    records = Records(archive)
    runs, share = range(records.run_count), archive.size // archive.sources
    tables: dict[str, Iterator[Row]] = {
        "sources": map(records.community, records.communities),
        "progress": map(records.progress, records.followed),
        "source_counts": ({"source_id": source_id, "item_count": share} for source_id in records.followed),
        "runs": map(records.run, runs),
        "run_sources": (visit for number in runs for visit in records.visits(number)),
        "crawl_metrics": records.metrics(),
        "global_metrics": records.global_metrics(),
        "attempts": records.attempts(),
        "jobs": records.jobs(),
        "gaps": records.gaps(),
        "alerts": records.alerts(),
    }
    for table, rows in tables.items():
        while few := list(islice(rows, BATCH)):
            store.database.write(lambda tx, table=table, few=few: insert(tx, table, few))  # type: ignore[misc]
    # As its job does every few minutes.
    from catchment.collect.budget_plan import keep_taken

    keep_taken(store, NOW)
    if store.database.is_postgres:
        # What its own housekeeping does within minutes, before anybody looks.
        store.database.write(lambda tx: tx.run("ANALYZE"))
