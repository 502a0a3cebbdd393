"""The connection to Redis, where there is one. Nothing needs it: whoever asks must know what to do without.

After a failure Redis is left alone for a while, so that nobody waits for it again and again; that it went away is said
once, and that it is back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from types import ModuleType
from typing import Any, TypeVar

from catchment.clock import Clock
from catchment.settings import Settings
from catchment.settings.table import without_password
from catchment.store import Store

T = TypeVar("T")

# Wall time, as for all sockets. It is to be faster than the database: one that is slow is as good as away.
_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 15.0


class Away(Exception):
    """Redis cannot be asked now."""


def open_link(settings: Settings, store: Store, clock: Clock) -> RedisLink | None:
    """The link that the settings ask for; whether Redis answers is another matter."""
    if settings.redis_url is None:
        return None
    return RedisLink(settings.redis_url, f"catchment:{store.settings.deployment(clock.now())}:")


class RedisLink:
    """Asks Redis. One for a process; safe for threads."""

    def __init__(self, url: str, prefix: str, wall: Callable[[], float] = time.monotonic) -> None:
        """`prefix` begins the names of all keys: several deployments may share one Redis."""
        self.shown_url, self.prefix = without_password(url), prefix
        self._wall = wall
        self._ask_again_at: float | None = None
        self._lock = Lock()
        self.trouble: str | None = None
        """Why it cannot be asked, in words; None: as far as is known, it can."""
        self._client = self._made(url)

    def ask(self, deed: Callable[[Any], T]) -> T:
        """What `deed` gets from the client (a `redis.Redis`). Raises Away, at once if it was away a moment ago."""
        if self._client is None or (self._ask_again_at is not None and self._wall() < self._ask_again_at):
            raise Away(self.trouble)
        from redis.exceptions import RedisError

        try:
            result = deed(self._client)
        except (RedisError, OSError) as error:
            raise self._away(f"{type(error).__name__}: {error}") from error
        if self._ask_again_at is not None:
            self._back()
        return result

    def check(self) -> str | None:
        """Ask whether it is there; gives why not, in words."""
        try:
            self.ask(lambda client: client.ping())
        except Away as away:
            return str(away)
        return None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _made(self, url: str) -> Any:
        try:
            from redis import Redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            return self._unusable("the package for Redis is not installed", "install catchment with the extra `redis`")
        try:
            client = Redis.from_url(
                url,
                socket_connect_timeout=_PATIENCE_SECONDS,
                socket_timeout=_PATIENCE_SECONDS,
                # Once more, at once: a connection that was idle may have been closed at the other end.
                retry=Retry(NoBackoff(), 1),
            )
            # Nothing is sent yet; but what the address asks for is looked at here.
            client.connection_pool.make_connection()
        except (TypeError, ValueError) as error:
            return self._unusable(f"its address asks for what is not there ({error})", "mend CATCHMENT_REDIS_URL")
        return client

    def _unusable(self, why: str, helps: str) -> None:
        logs = _logs()
        self.trouble = logs.redact(f"{why} — {helps}")
        logs.logger(__name__).warning("Redis is not used, the database is", redis=self.shown_url, why=self.trouble)

    def _away(self, why: str) -> Away:
        with self._lock:
            is_news = self._ask_again_at is None
            self._ask_again_at = self._wall() + _PAUSE_SECONDS
            self.trouble = _logs().redact(why)
        if is_news:
            _logs().logger(__name__).warning(
                "Redis is away, the database is used", redis=self.shown_url, why=self.trouble
            )
        return Away(self.trouble)

    def _back(self) -> None:
        with self._lock:
            was_away, self._ask_again_at, self.trouble = self._ask_again_at is not None, None, None
        if was_away:
            _logs().logger(__name__).info("Redis is back", redis=self.shown_url)


def _logs() -> ModuleType:
    # Whoever only reads, and has no Redis, starts without the machinery of logs.
    from catchment import logs

    return logs
