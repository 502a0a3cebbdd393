"""The table of tasks in docs/scaling.md, as it must be."""

from __future__ import annotations

from datetime import timedelta

from catchment.jobs import JOBS, Job


def job_table() -> str:
    """Those with names of the specification; the others are called after their jobs."""
    return "\n".join(_row(job) for job in JOBS if job.task)


def _row(job: Job) -> str:
    period = "tick" if job.every is None else _span(job.every)
    period += ", off" if job.is_off else ", on the clock" if job.is_on_the_clock else ""
    expires = f"{job.expires.total_seconds():g} s" if job.expires else ""
    return f"| `{job.name}` | `{job.task_name}` | `{job.queue_name}` | {period} | {expires} |"


def _span(span: timedelta) -> str:
    minutes = int(span.total_seconds()) // 60
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"
