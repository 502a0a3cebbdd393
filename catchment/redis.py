"""The optional connection to Redis. Every caller must work without it.

After a failure there is a cooldown before Redis is tried again, so that not every call waits for it; the outage is
logged once, and the recovery.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from catchment import installation, logs
from catchment.clock import Clock
from catchment.settings import Settings
from catchment.settings.table import without_password
from catchment.store import Store

T = TypeVar("T")
log = logs.logger(__name__)

# Wall time, as for all sockets. Redis has to be faster than the database: if it is slow, it counts as unavailable.
_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 15.0


class Away(Exception):
    """Redis is unavailable now."""


def open_link(settings: Settings, store: Store, clock: Clock) -> RedisLink | None:
    """The connection that the settings ask for; does not check whether Redis answers."""
    if settings.redis_url is None:
        return None
    return RedisLink(settings.redis_url, f"catchment:{store.settings.deployment(clock.now())}:")


class RedisLink:
    """A connection to Redis. One per process; thread-safe."""

    def __init__(
        self,
        url: str,
        prefix: str,
        wall: Callable[[], float] = time.monotonic,
        away: str = "Redis is away, the database is used",
    ) -> None:
        """`prefix` starts the names of all keys: several deployments may share one Redis. `away`: the log line about an
        outage."""
        self.shown_url, self.prefix = without_password(url), prefix
        self._wall, self._away = wall, away
        self._ask_again_at: float | None = None
        self._lock = Lock()
        self.trouble: str | None = None
        """Why Redis is unavailable, in words; None if it is available as far as is known."""
        self.is_refused = False
        """Whether waiting does not help: a wrong password, no such database, something else than Redis."""
        self._client = self._made(url)

    def ask(self, call: Callable[[Any], T]) -> T:
        """The result of `call`, called with the client (a `redis.Redis`). Raises Away, at once after a failure."""
        if self._client is None or (self._ask_again_at is not None and self._wall() < self._ask_again_at):
            raise Away(self.trouble)
        from redis.exceptions import RedisError

        try:
            result = call(self._client)
        except (RedisError, OSError) as error:
            with self._lock:
                is_news = self._ask_again_at is None
                self._ask_again_at = self._wall() + _PAUSE_SECONDS
                self.trouble = logs.redact(f"{type(error).__name__}: {error}")
                self.is_refused = _is_refusal(error)
            if is_news:
                log.warning(self._away, redis=self.shown_url, why=self.trouble)
            raise Away(self.trouble) from error
        if self._ask_again_at is not None:
            with self._lock:
                was_away, self._ask_again_at, self.trouble = self._ask_again_at is not None, None, None
                self.is_refused = False
            if was_away:
                log.info("Redis is back", redis=self.shown_url)
        return result

    def check(self) -> str | None:
        """Ping Redis; returns the reason, in words, if it does not answer."""
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
            return self._unusable(
                "the package for Redis is not installed", f"run `{installation.install_command('redis')}`"
            )
        try:
            client = Redis.from_url(
                url,
                socket_connect_timeout=_PATIENCE_SECONDS,
                socket_timeout=_PATIENCE_SECONDS,
                # One immediate retry: the other end may have closed an idle connection.
                retry=Retry(NoBackoff(), 1),
            )
            # Sends nothing yet, but validates the URL's options.
            client.connection_pool.make_connection()
        except (TypeError, ValueError) as error:
            return self._unusable(f"its address asks for what is not there ({error})", "mend CATCHMENT_REDIS_URL")
        return client

    def _unusable(self, why: str, helps: str) -> None:
        self.trouble, self.is_refused = logs.redact(f"{why} — {helps}"), True
        log.warning("Redis unavailable, falling back to the database", redis=self.shown_url, why=self.trouble)


def _is_refusal(error: Exception) -> bool:
    """Whether the failure is permanent. A server that is full, loads its data, has too many clients or closes
    the connection will not."""
    from redis import exceptions

    refusals = (
        exceptions.AuthenticationError,
        exceptions.AuthenticationWrongNumberOfArgsError,
        exceptions.AuthorizationError,
        exceptions.NoPermissionError,
        exceptions.InvalidResponse,
    )
    return isinstance(error, refusals) or "DB index" in str(error)
