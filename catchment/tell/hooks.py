"""Python hooks: callables of installed packages that take events, announced through the entry point `catchment.events`.

    [project.entry-points."catchment.events"]
    digest = "my_package:on_event"

    def on_event(event: dict) -> None: ...

A hook gets what a webhook gets, as a dict. What it returns is ignored; what it raises is written down, and it gets the
same event again later.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from catchment.errors import HookFailed
from catchment.model import Event
from catchment.tell.signing import told

GROUP = "catchment.events"


class Hook:
    """One hook, ready to be told. Loaded when there is something to tell: a broken one fails, and is tried again."""

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry

    def wants(self, event: Event) -> bool:
        return True

    def take(self, event: Event, attempt: int) -> None:
        try:
            self._entry.load()(told(event))
        except (Exception, SystemExit) as error:
            # A stranger's code: whatever it raises must not stop ours.
            raise HookFailed(f"hook {self._entry.name} raised {type(error).__name__}: {error}") from error


def installed() -> dict[str, Hook]:
    return {entry.name: Hook(entry) for entry in entry_points(group=GROUP)}
