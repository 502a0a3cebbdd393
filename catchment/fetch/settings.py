"""What the operator decides about fetching, read once at the door, and what is told about every attempt."""

from __future__ import annotations

from datetime import datetime

from catchment.model import Record


class FetchSettings(Record, frozen=True):
    user_agent: str
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


class Attempt(Record, frozen=True):
    """One exchange that was begun: a retry and each step of a redirect is one of its own."""

    platform: str
    at: datetime
    outcome: str
    """The HTTP status, or the code of the error that came instead."""
    seconds: float
