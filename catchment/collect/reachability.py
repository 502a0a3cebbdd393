"""Whose fault a failure is: the source's, its host's, or our own line's."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock
from urllib.parse import urlsplit

from catchment.errors import CredentialsExhausted, NetworkError, PlatformError, ServerTrouble, SlowDown, TimedOut

_MEANWHILE = timedelta(minutes=10)
_MOST_HOSTS = 10_000


def host_of(url: str) -> str:
    """The host of an address; of a target that is none, the target itself."""
    try:
        return (urlsplit(url).hostname or url).lower()
    except ValueError:
        return url


class Reachability:
    """What answered and what failed lately, in this process. Safe for threads."""

    def __init__(self) -> None:
        self._answered: dict[str, datetime] = {}
        self._failing: dict[str, dict[int, datetime]] = {}
        self._lock = Lock()

    def answered(self, host: str, now: datetime) -> None:
        with self._lock:
            if len(self._answered) > _MOST_HOSTS:
                self._answered.clear()
            # Taken out and put in again: the last one in is the last that answered.
            self._answered.pop(host, None)
            self._answered[host] = now
            self._failing.pop(host, None)

    def blames_source(self, host: str, source_id: int, error: PlatformError, now: datetime) -> bool:
        """Whether this failure counts against the source. Waits never do, whoever we wait for."""
        if isinstance(error, SlowDown | CredentialsExhausted):
            return False
        if not isinstance(error, NetworkError | TimedOut | ServerTrouble):
            return True
        with self._lock:
            if len(self._failing) > _MOST_HOSTS:
                self._failing.clear()
            failing = self._failing.setdefault(host, {})
            failing[source_id] = now
            if any(one != source_id and at > now - _MEANWHILE for one, at in failing.items()):
                return False  # the host fails others as well, and has answered nobody since
            return error.status is not None or error.is_contact or self._is_line_up(now)

    def _is_line_up(self, now: datetime) -> bool:
        """Whether anybody answered lately; otherwise it may be our own line that is down."""
        return bool(self._answered) and next(reversed(self._answered.values())) > now - _MEANWHILE
