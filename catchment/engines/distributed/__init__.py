"""The distributed engine: Celery workers and a scheduler (beat), on Redis and PostgreSQL.

A message is a hint, never state: it says that there may be something to do. What is due, who does it and how far it got
is in the database, and a task calls the same functions as the embedded engine. So a lost, late, repeated or forged
message does no harm.

`celery -A catchment.engines.distributed …` finds the Celery application here; it is built when it is asked for.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from catchment.engines.distributed.tasks import celery_from_environment

    return celery_from_environment()
