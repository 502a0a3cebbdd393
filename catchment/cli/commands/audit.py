"""`audit`: finds floors of threads that are missing, and repairs them; repairs gaps in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import typer

from catchment import logs
from catchment.app import App
from catchment.cli import context, output
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson, OfSource
from catchment.model import as_dict
from catchment.store.items.floor_audits import AuditFloorView

_WORST = 100
"""Threads with missing replies that are listed; the largest 20 of them without `--json`."""
_MOST_ROWS = 100
"""Rows of a table; `--json` has all of them."""
_A_PAGE = 1000
T = TypeVar("T")


def audit(
    repair: Annotated[
        bool, typer.Option("--repair", help="Request missing floors again, and the items missing in gaps.")
    ] = False,
    source: OfSource = None,
    as_json: AsJson = False,
) -> None:
    """A floor is missing if it is neither stored nor absent on the platform itself; each one is recorded.

    With `--repair`, the pages with missing floors are requested again, and only these floors are stored. A floor is
    requested at most three times in all. Gaps in time (`catchment gaps`) are repaired, too, if the platform offers
    another way to the missing items, such as a search. A gap closes once all of it has been read; the unread part stays
    open, and is given up after three attempts without progress. Finally, lists the threads with fewer stored replies
    than the platform reports, the largest difference first: 20 of them, or 100 with `--json`, and how many there are.
    Tables show 100 lines; `--json` has all threads, floors and gaps.
    """
    with StopSignals() as stopping, context.opened_app("audit") as app:
        stopping.watch(app.stop, app.cut, app.settings.stop_seconds, logs.logger(__name__).info)
        source_id = app.store.sources.get(app.names.source(source)).id if source is not None else None
        view = app.floor_audit().run("command", is_repairing=repair, source_id=source_id)
        audits = app.store.floor_audits
        threads = _all(
            lambda after: audits.threads(view.id, _A_PAGE, after), lambda thread: thread.thread_row_id, after=0
        )
        repairs = _all(
            lambda after: app.store.gaps.repairs_of_audit(view.id, _A_PAGE, after), lambda repair: repair.id, after=0
        )
        worst = app.store.reply_counts.worst(_WORST, source_id=source_id)
        worst_count = app.store.reply_counts.count(source_id=source_id)
        floors = {thread.id: _floors(app, thread.id) for thread in threads} if as_json else {}
    if as_json:
        output.document(
            as_dict(view)
            | {
                "threads": [
                    as_dict(thread) | {"floors": [as_dict(floor) for floor in floors[thread.id]]} for thread in threads
                ],
                "gap_repairs": repairs,
                "missing_replies": worst,
                "missing_replies_count": worst_count,
            }
        )
        return
    output.facts(
        (
            ("Threads", view.thread_count),
            ("Incomplete", view.missing_thread_count),
            ("Missing floors", view.missing_floor_count),
            ("Repaired", view.repaired_floor_count),
            ("Given up", view.ignored_floor_count),
            ("Open gaps", view.gap_count),
            ("Gaps repaired", view.repaired_gap_count),
            ("Gaps repaired in part", view.partial_gap_count),
            ("Gaps not repaired", view.failed_gap_count),
            ("Gaps that cannot be repaired", view.unreachable_gap_count),
        )
    )
    if threads:
        output.say()
        output.table(
            ("#Source", "Thread", "#Missing", "Result", "Error"),
            [
                (thread.source_id, thread.thread_id, thread.missing_count, thread.result, thread.error)
                for thread in threads[:_MOST_ROWS]
            ],
        )
        _say_rest(len(threads) - _MOST_ROWS)
    if repairs:
        output.say()
        output.table(
            ("#Source", "#Gap", "Result", "#New", "#Requests", "Error"),
            [
                (
                    repair.source_id,
                    repair.gap_id,
                    repair.result,
                    repair.new_count,
                    repair.request_count,
                    repair.error or repair.stopped_by,
                )
                for repair in repairs[:_MOST_ROWS]
            ],
        )
        _say_rest(len(repairs) - _MOST_ROWS)
    if worst:
        output.say()
        output.table(
            ("#Item", "Thread", "#Reported", "#Stored", "#Missing"),
            [(row.item_id, row.title, row.declared_count, row.stored_count, row.missing_count) for row in worst[:20]],
            shrink=("Thread",),
        )
        if worst_count > 20:
            output.say(f"{worst_count - 20} more threads: see the page `/audits/replies`.")


def _floors(app: App, audit_thread_id: int) -> list[AuditFloorView]:
    audits = app.store.floor_audits
    return _all(lambda after: audits.floors(audit_thread_id, _A_PAGE, after), lambda floor: floor.floor_number, -1)


def _all(page: Callable[[int], Sequence[T]], cursor: Callable[[T], int], after: int) -> list[T]:
    """Returns the rows of all pages."""
    rows: list[T] = []
    while batch := page(after):
        rows += batch
        after = cursor(batch[-1])
    return rows


def _say_rest(count: int) -> None:
    if count > 0:
        output.say(f"{count} more: use --json.")
