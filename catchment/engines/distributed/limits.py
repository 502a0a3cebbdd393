"""Time limits and connections of the distributed engine."""

from __future__ import annotations

TASK_SECONDS = 300.0
"""No task takes longer. What does not fit stays due."""
CLEAN_SECONDS = 60.0
"""How long before that a task begins no new work, and how long half of it may still continue."""
VISIBILITY_SECONDS = 2 * TASK_SECONDS
"""After this time, Redis hands a message out again that no worker has answered."""
MISSING_SECONDS = 60.0
"""A beat, or the workers of a queue, may be missing for so long before an alert opens: they may be starting."""
