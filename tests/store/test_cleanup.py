"""What is kept about running is bounded; budgets are one for all processes; settings survive."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest

from catchment.clock import micros
from catchment.fetch.budgets import StoredBudgets
from catchment.model import AlertRequest, Budget, Severity
from catchment.store.database import Transaction
from catchment.store.sources.alerts import close, raise_alert
from catchment.store.sources.metrics import GlobalMetrics, Measure, MetricSpan
from tests.store.desk import Desk, opened, post
from tests.store.processes import Hand

KEEP = {"raw_days": 10, "run_days": 20, "attempt_days": 30, "event_days": 20, "metrics_days": 50}


def test_what_is_older_than_its_time_goes_and_nothing_else(desk: Desk) -> None:
    source = desk.follow()
    for number in range(3):
        desk.show(source, post(f"{number}"), body=b"%d" % number, after=86_400)
        desk.store.runs.finish(desk.run_id, desk.now)
        del desk.run_id
    unfinished = desk.run_id
    began = desk.now
    items = desk.rows("items")
    cleared = [desk.store.cleanup.clear(began + timedelta(days=day), **KEEP) for day in (0, 9.5, 19.5, 29.5, 40)]
    names = ("raw_answers", "run_sources", "runs", "attempts", "outbox")
    assert [[row[name] for name in names] for row in cleared] == [
        [0, 0, 0, 0, 0],
        [2, 0, 0, 0, 0],
        [1, 2, 2, 0, 2],
        [0, 1, 1, 2, 1],
        [0, 0, 0, 1, 0],
    ]
    assert desk.rows("items") == items
    assert [run.id for run in desk.store.runs.page()] == [unfinished]


def test_alerts_that_are_over_go_with_the_runs_of_their_time(desk: Desk) -> None:
    def alert(tx: Transaction) -> None:
        for subject in ("over", "open"):
            raise_alert(tx, AlertRequest(subject, "so it is"), micros(desk.now))
        close(tx, "over", micros(desk.now))

    desk.store.database.write(alert)
    cleared = [desk.store.cleanup.clear(desk.now + timedelta(days=day), **KEEP)["alerts"] for day in (19, 21, 99)]
    assert cleared == [0, 1, 0]
    assert [alert.subject for alert in desk.store.alerts.open()] == ["open"]


def test_metrics_of_hours_go_with_the_runs_and_those_of_days_after_a_time_of_their_own(desk: Desk) -> None:
    for span in MetricSpan:
        desk.store.metrics.keep(span, span.start(desk.now), [Measure("rss", "feeds")])
        desk.store.metrics.keep_global_metrics(span, span.start(desk.now), GlobalMetrics())
    days = (19, 21, 49, 51)
    cleared = [desk.store.cleanup.clear(desk.now + timedelta(days=day), **KEEP)["metrics"] for day in days]
    assert cleared == [0, 2, 0, 2]


def test_alerts_of_which_nothing_is_known_at_the_moment_stay_as_they_are(desk: Desk) -> None:
    alerts = desk.store.alerts
    assert alerts.keep_open(" low", [AlertRequest("a low", "so"), AlertRequest("b low", "so")], desk.now) == (2, 0)
    assert alerts.keep_open(" low", [], desk.now, undecided=["b low", "c low"]) == (0, 1)
    assert [alert.subject for alert in alerts.open()] == ["b low"]
    assert alerts.keep_open(" low", [AlertRequest("b low", "worse", Severity.P0)], desk.now) == (0, 0)
    assert [(alert.message, alert.severity) for alert in alerts.open()] == [("worse", "P0")]
    assert alerts.open_by_severity() == {"P0": 1, "P1": 0, "P2": 0}


def test_clearing_goes_in_batches_until_nothing_old_is_left(desk: Desk) -> None:
    rows = [(number, f"{number}", "{}", number) for number in range(1700)]
    desk.store.database.write(lambda tx: tx.insert("outbox", ("id", "event", "body", "created_at"), rows))
    minutes = [(number, "feeds", outcome, 1) for number in range(700) for outcome in ("200", "304")]
    desk.store.database.write(lambda tx: tx.insert("attempts", ("minute", "platform", "outcome", "count"), minutes))
    gone = desk.store.cleanup.clear(desk.now, **KEEP)
    assert (gone["outbox"], gone["attempts"]) == (1700, 1400)


def test_attempts_of_one_minute_add_up(desk: Desk) -> None:
    source = desk.follow()
    for _ in range(3):
        desk.show(source, post("a"), after=1)
    assert [row[1:] for row in desk.rows("attempts")] == [("feeds", "200", 3)]


def test_an_interval_that_is_kept_is_found_again(desk: Desk) -> None:
    desk.store.settings.put_interval("rss", 30, desk.now)
    desk.store.settings.put_interval("rss", 45, desk.now)
    desk.store.settings.put("other", {"a": 1}, desk.now)
    assert desk.store.settings.intervals() == {"rss": 45}


# ── budgets ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.process
def test_processes_together_spend_no_more_than_the_budget(desk: Desk, database_url: str, tmp_path: Path) -> None:
    both = [Hand("spend", database_url, tmp_path, 60) for _ in range(2)]
    try:
        spent = [process.hear() for process in both]
        for process in both:
            process.end()
    finally:
        for process in both:
            process.close()
    # 97 % of 50: the rest is for servers that count differently.
    assert sum(spent) == 48


def test_those_who_begin_a_budget_together_share_it(desk: Desk, database_url: str, tmp_path: Path) -> None:
    """There is no row yet that could be locked."""
    stores = [opened(database_url, tmp_path) for _ in range(4)]
    for number in range(10):
        budget, begin = Budget(f"fresh {number}", 1, 3600), Barrier(4)

        def take(which: int, budget: Budget = budget, begin: Barrier = begin) -> int:
            begin.wait()
            return StoredBudgets(stores[which].budgets).take(budget, None, desk.now).tokens

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(take, range(4))) == 1
    for store in stores:
        store.close()
