"""Fetch settings, read once at start, and the record of each attempt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from catchment.model import Answer, Budget, Prices, Record, Refusal, Request
from catchment.policy.spending import Caps


class FetchPlatform(Protocol):
    NAME: str
    HOSTS: tuple[str, ...]
    BUDGET: Budget | None

    def refusal(self, answer: Answer, request: Request) -> Refusal | None: ...


# Where an operator sets a limit for a platform that has none of its own, and does not say for how long.
_A_MINUTE = 60.0


class PlatformSettings(Record, frozen=True):
    """The operator's settings for one platform; None: as the platform declares it, or as for all."""

    limit: int | None = None
    window_seconds: float | None = None
    concurrency: int | None = None
    timeout_seconds: float | None = None
    user_agent: str | None = None
    prices: Mapping[str, int] = {}
    """Those that differ from the declared ones, by the names of `Prices`."""
    caps: Caps = Caps()

    def budget(self, declared: Budget | None, name: str) -> Budget | None:
        """Returns the budget that applies."""
        if declared is None and self.limit is None:
            return None
        own = declared or Budget(name, self.limit or 1, _A_MINUTE)
        limit, strangers = self.limit or own.limit, own.anonymous_limit
        return own.replace(
            limit=limit,
            anonymous_limit=None if strangers is None else min(strangers, limit),
            window_seconds=self.window_seconds or own.window_seconds,
            concurrency=self.concurrency or own.concurrency,
        )


class FetchSettings(Record, frozen=True):
    user_agent: str
    is_user_agent_given: bool = False
    """Set by the operator: then platforms that ask for a form of their own do not get it."""
    timeout_seconds: float = 30.0
    """For one attempt as a whole, redirects included; a request may bring its own."""
    connect_timeout_seconds: float = 10.0
    low_speed_bytes_per_second: int = 30
    low_speed_seconds: float = 20.0
    """A body that has begun and comes slower than this for so long is given up before the time-out. The wait for its
    first byte does not count: that may take the whole time-out."""
    max_bytes: int = 20_000_000
    """After decompression; a request may bring its own limit, which then holds for both."""
    max_wire_bytes: int = 10_000_000
    max_redirects: int = 8
    retry_waits: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Seconds before each further attempt; there are as many further attempts as waits."""
    longest_wait_seconds: float = 5.0
    """A longer wait ends the attempt, so that a slow platform does not hold a thread that others could use."""
    pause_seconds: float = 60.0
    """Cooldown of a host that says "too many requests" and does not say until when."""
    allow_private_networks: bool = False
    base_urls: dict[str, str] = {}
    """By platform name: the URL that replaces the platform's hosts."""
    proxy: str | None = None
    per_host_concurrency: int = 2
    per_host_per_second: float = 2.0
    """0: as fast as they answer."""
    per_host_burst: int = 10
    platforms: dict[str, PlatformSettings] = {}
    """By platform name: settings for that platform alone."""

    def of(self, platform: FetchPlatform) -> PlatformSettings:
        return self.platforms.get(platform.NAME, _AS_DECLARED)

    def user_agent_for(self, platform: FetchPlatform) -> str:
        """Returns the operator's user agent, for it or for all; else the one the platform asks for; else our own."""
        own = self.platforms.get(platform.NAME, _AS_DECLARED).user_agent
        if own or self.is_user_agent_given:
            return own or self.user_agent
        return getattr(platform, "USER_AGENT", None) or self.user_agent

    def budget(self, platform: FetchPlatform) -> Budget | None:
        """Returns the budget of a platform: as it declares it, unless the operator sets another."""
        own = self.platforms.get(platform.NAME)
        return platform.BUDGET if own is None else own.budget(platform.BUDGET, platform.NAME)

    def prices(self, platform: FetchPlatform) -> Prices | None:
        """Returns what a platform or service charges: as it declares it, with the operator's changes. None: nothing."""
        declared: Prices | None = getattr(platform, "PRICES", None)
        return declared and declared.replace(**self.of(platform).prices)


_AS_DECLARED = PlatformSettings()


class Attempt(Record, frozen=True):
    """One exchange that was begun: a retry and each step of a redirect is one of its own."""

    platform: str
    at: datetime
    outcome: str
    """The HTTP status, or the code of the error that came instead."""
    seconds: float
