"""How long a listener that does not take its event is left alone, and when somebody should know. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

FIRST_WAIT = timedelta(seconds=15)
LONGEST_WAIT = timedelta(hours=1)
ALARMING_FAILURES = 5
"""In a row: after about four minutes."""


def next_attempt(failures: int, now: datetime, asked_for: datetime | None) -> datetime:
    """When to try again after so many failures in a row; never earlier than the receiver asked for."""
    # Capped before it is computed: two to the power of ten thousand is no time.
    wait = min(FIRST_WAIT * (1 << min(failures - 1, 20)), LONGEST_WAIT)
    return max(now + wait, asked_for or now)
