"""How hard the stateful tests try.

`make test` runs a small number of histories, always the same ones. To search for new ones:

    CATCHMENT_EXAMPLES=5000 .venv/bin/pytest tests/stateful

Each test then tries that many, at random; what it finds is shown as the shortest history that goes wrong.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ASKED_FOR = os.environ.get("CATCHMENT_EXAMPLES")


def effort(usual: int, steps: int = 30, at_a_time: int = 1) -> settings:
    """So many histories of at most so many steps; of tests that try several with each example, so many in all."""
    return settings(
        max_examples=-(-int(ASKED_FOR or usual) // at_a_time),
        stateful_step_count=steps,
        # The same histories at every run: what fails in `make test` failed because of a change, not of a draw.
        derandomize=ASKED_FOR is None,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
