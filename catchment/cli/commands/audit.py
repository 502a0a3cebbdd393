"""`audit`: finds floors of threads that are missing, and repairs them."""

from __future__ import annotations

from typing import Annotated

import typer

from catchment import logs
from catchment.cli import context, output
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson, OfSource
from catchment.model import as_dict


def audit(
    repair: Annotated[bool, typer.Option("--repair", help="Request the missing floors again.")] = False,
    source: OfSource = None,
    as_json: AsJson = False,
) -> None:
    """A floor is missing if it is neither stored nor absent on the platform itself; each one is recorded.

    With `--repair`, the pages with missing floors are requested again, and only these floors are stored. A floor is
    requested at most three times ever.
    """
    with StopSignals() as stopping, context.opened_app("audit") as app:
        stopping.watch(app.stop, app.cut, app.settings.stop_seconds, logs.logger(__name__).info)
        source_id = app.store.sources.get(app.names.source(source)).id if source is not None else None
        view = app.floor_audit().run("command", is_repairing=repair, source_id=source_id)
        threads = app.store.floor_audits.threads(view.id, limit=1000)
        floors = {thread.id: app.store.floor_audits.floors(thread.id) for thread in threads}
    if as_json:
        found = [as_dict(thread) | {"floors": [as_dict(floor) for floor in floors[thread.id]]} for thread in threads]
        output.document(as_dict(view) | {"threads": found})
        return
    output.facts(
        (
            ("Threads", view.thread_count),
            ("Incomplete", view.missing_thread_count),
            ("Missing floors", view.missing_floor_count),
            ("Repaired", view.repaired_floor_count),
            ("Given up", view.ignored_floor_count),
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
