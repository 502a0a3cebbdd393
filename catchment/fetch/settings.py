"""What the operator decides about fetching, read once at the door, and what is told about every attempt."""

from __future__ import annotations

from datetime import datetime

from catchment.fetch.platform import Platform
from catchment.model import Budget, Record

# Where an operator gives a platform a limit that has none of its own, and does not say for how long.
_A_MINUTE = 60.0


class PlatformSettings(Record, frozen=True):
    """What the operator decides about one platform; None: as the platform declares it, or as for all."""

    limit: int | None = None
    window_seconds: float | None = None
    concurrency: int | None = None
    timeout_seconds: float | None = None
    user_agent: str | None = None

    def budget(self, declared: Budget | None, name: str) -> Budget | None:
        """The budget that holds."""
        if declared is None and self.limit is None:
            return None
        own = declared or Budget(name, self.limit or 1, _A_MINUTE)
        limit, strangers = self.limit or own.limit, own.strangers_limit
        return own.plus(
            limit=limit,
            strangers_limit=None if strangers is None else min(strangers, limit),
            window_seconds=self.window_seconds or own.window_seconds,
            concurrency=self.concurrency or own.concurrency,
        )


class FetchSettings(Record, frozen=True):
    user_agent: str
    is_user_agent_given: bool = False
    """By the operator: then platforms that ask for a form of their own do not get it."""
    timeout_seconds: float = 30.0
    """For one attempt as a whole, redirects included; a request may bring its own."""
    connect_timeout_seconds: float = 10.0
    low_speed_bytes_per_second: int = 30
    low_speed_seconds: int = 20
    """A transfer slower than this, for so long, has no future. Waiting for the first byte counts as slow, too."""
    max_bytes: int = 20_000_000
    """After decompression; a request may bring its own limit, which then holds for both."""
    max_wire_bytes: int = 10_000_000
    max_redirects: int = 8
    retry_waits: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Seconds before each further attempt; as many attempts are added as there are waits."""
    longest_wait_seconds: float = 5.0
    """A longer wait ends the attempt, so that a slow platform does not hold a thread that others could use."""
    pause_seconds: float = 60.0
    """How long a host is left alone that says "too many requests" and does not say until when."""
    allow_private_networks: bool = False
    base_urls: dict[str, str] = {}
    """By platform name: what stands in for the platform's hosts."""
    proxy: str | None = None
    per_host_concurrency: int = 2
    per_host_per_second: float = 2.0
    """0: as fast as they answer."""
    per_host_burst: int = 10
    stop_grace_seconds: float = 25.0
    """How long a transfer may go on after a stop was asked for."""
    platforms: dict[str, PlatformSettings] = {}
    """By platform name: what holds for it alone."""

    def of(self, platform: Platform) -> PlatformSettings:
        return self.platforms.get(platform.NAME, _AS_DECLARED)

    def user_agent_for(self, platform: Platform) -> str:
        """What the operator says, for it or for all; else what the platform asks for; else what we call ourselves."""
        asked_for = None if self.is_user_agent_given else getattr(platform, "USER_AGENT", None)
        return self.of(platform).user_agent or asked_for or self.user_agent

    def budget(self, platform: Platform) -> Budget | None:
        """The budget of a platform: as it declares it, unless the operator says otherwise."""
        return self.of(platform).budget(platform.BUDGET, platform.NAME)


_AS_DECLARED = PlatformSettings()


class Attempt(Record, frozen=True):
    """One exchange that was begun: a retry and each step of a redirect is one of its own."""

    platform: str
    at: datetime
    outcome: str
    """The HTTP status, or the code of the error that came instead."""
    seconds: float
