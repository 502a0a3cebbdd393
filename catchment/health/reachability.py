"""Reachability of sites: tells a failure of one source from one of its site, or of our own network."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from threading import Lock

from catchment.errors import CredentialsExhausted, PlatformError, ServerTrouble, SlowDown
from catchment.policy.outages import UNREACHABLE, Site
from catchment.policy.visit import Cause

_LATELY = timedelta(minutes=10)
# Longer than the longest wait before a source of an unresponsive site is tried again.
_MEANWHILE = timedelta(hours=2)
_MOST_SITES = 10_000
_OFTEN = 3
"""A site that failed this often, while others answered in between, fails for a cause of its own."""


class Reachability:
    """Which sites answered or failed lately, in this process. Thread-safe."""

    def __init__(self) -> None:
        self._reached_at: datetime | None = None
        """When any site was last reached, whatever it answered."""
        self._unconnected: set[Site] = set()
        """Sites that could not be reached since then."""
        self._unanswered: set[Site] = set()
        """Sites that failed since any site last answered properly."""
        self._missed: Counter[Site] = Counter()
        """How often a site failed before others answered; reset when it answers itself."""
        self._failing: dict[Site, dict[int, datetime]] = {}
        self._lock = Lock()

    def answered(self, site: Site, now: datetime) -> None:
        with self._lock:
            self._answered(site, now)

    def cause_of(self, error: PlatformError, site: Site, source_id: int, now: datetime) -> Cause:
        """Returns the cause of a source's failure, and records the failure for later decisions about other sources."""
        is_reached = error.status is not None or error.is_contact or isinstance(error, ServerTrouble)
        with self._lock:
            if is_reached and not site.is_local:
                self._reached(now)
            if isinstance(error, SlowDown | CredentialsExhausted):
                return Cause.WAIT
            if error.code not in UNREACHABLE:
                return Cause.SOURCE
            if len(self._failing) > _MOST_SITES:
                self._failing.clear()
                self._missed.clear()
            failing = self._failing.setdefault(site, {})
            failing[source_id] = now
            others = (at for other, at in failing.items() if other != source_id)
            is_shared = any(at > now - _MEANWHILE for at in others)
            if site.is_local:
                # It says nothing about our connection; but without one, it may be out of reach as well.
                if not is_reached and self._unconnected and not self._is_network_up(now):
                    return Cause.NETWORK
            elif self._missed[site] < _OFTEN:
                self._unanswered.add(site)
                is_shared = is_shared or len(self._unanswered) > 1
                if not is_reached:
                    self._unconnected.add(site)
                    if not self._is_network_up(now):
                        return Cause.NETWORK
            return Cause.SITE if is_shared else Cause.SOURCE

    def _answered(self, site: Site, now: datetime) -> None:
        self._failing.pop(site, None)
        if site.is_local:
            return
        self._reached(now)
        self._missed.pop(site, None)
        if self._unanswered:
            self._unanswered.discard(site)
            self._missed.update(self._unanswered)
            self._unanswered.clear()

    def _reached(self, now: datetime) -> None:
        self._reached_at = now
        self._unconnected.clear()

    def _is_network_up(self, now: datetime) -> bool:
        """Whether a site was reached lately and at most one could not be reached since."""
        is_lately = self._reached_at is not None and self._reached_at > now - _LATELY
        return is_lately and len(self._unconnected) < 2
