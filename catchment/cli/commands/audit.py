"""`audit`: finds floors of threads that are missing, and repairs them; repairs gaps in time."""

from __future__ import annotations

from typing import Annotated

import typer

from catchment import logs
from catchment.cli import context, output
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson, OfSource
from catchment.model import as_dict

_WORST = 100
"""Threads with missing replies that are shown."""


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
    than the platform reports, the largest difference first.
    """
    with StopSignals() as stopping, context.opened_app("audit") as app:
        stopping.watch(app.stop, app.cut, app.settings.stop_seconds, logs.logger(__name__).info)
        source_id = app.store.sources.get(app.names.source(source)).id if source is not None else None
        view = app.floor_audit().run("command", is_repairing=repair, source_id=source_id)
        threads = app.store.floor_audits.threads(view.id, limit=1000)
        floors = {thread.id: app.store.floor_audits.floors(thread.id) for thread in threads}
        repairs = app.store.gaps.repairs_of_audit(view.id)
        worst = app.store.reply_counts.worst(_WORST, source_id=source_id)
    if as_json:
        found = [as_dict(thread) | {"floors": [as_dict(floor) for floor in floors[thread.id]]} for thread in threads]
        output.document(as_dict(view) | {"threads": found, "gap_repairs": repairs, "missing_replies": worst})
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
                for thread in threads
            ],
        )
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
                for repair in repairs
            ],
        )
    if worst:
        output.say()
        output.table(
            ("#Item", "Thread", "#Reported", "#Stored", "#Missing"),
            [(row.item_id, row.title, row.declared_count, row.stored_count, row.missing_count) for row in worst[:20]],
            shrink=("Thread",),
        )
