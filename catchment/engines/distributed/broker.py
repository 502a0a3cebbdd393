"""How a worker talks to Redis: Celery's consumer and Kombu's transport, made to outlast a Redis that goes away or
refuses."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from json import JSONDecodeError
from typing import Any

from celery.exceptions import CPendingDeprecationWarning, OperationalError
from celery.worker.consumer import Consumer as CeleryConsumer
from kombu.transport.redis import Channel as RedisChannel
from kombu.transport.redis import Transport as RedisTransport
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import DataError, RedisError

from catchment import logs

log = logs.logger(__name__)

NOT_SENT = (OperationalError, RedisError, OSError)
"""Errors that sending a message raises if the broker is unavailable or refuses it."""
_PAUSE_SECONDS = 1.0


class Channel(RedisChannel):  # type: ignore[misc]
    """Outlasts two things that would end the whole worker.

    A channel that is closed a second time, after its connection has gone, says so as Kombu expects it: when Redis goes
    away while messages are unanswered, Celery closes the connection twice, the second time with no parameters left to
    connect with. And bytes in a queue that are not JSON are dropped.
    """

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except (JSONDecodeError, UnicodeDecodeError) as error:
            _log_malformed(error)
            return True

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection.client is None:
            raise RedisConnectionError("the connection is closed")
        return dict(super()._connparams(asynchronous=asynchronous))


class Transport(RedisTransport):  # type: ignore[misc]
    """Drops messages that Kombu or Celery cannot read: their errors would end the whole worker."""

    Channel = Channel

    def _deliver(self, message: Any, queue: str) -> None:
        try:
            super()._deliver(message, queue)
        except (TypeError, ValueError, LookupError, AttributeError, DataError) as error:
            _log_malformed(error)
            with suppress(TypeError, LookupError):
                tag = message["properties"]["delivery_tag"]
                for channel in self.channels:
                    if tag in channel.qos._delivered:
                        channel.basic_ack(tag)


def _log_malformed(error: Exception) -> None:
    log.warning("dropped a malformed message", error=logs.redact(f"{type(error).__name__}: {error}")[:200])


class Consumer(CeleryConsumer):  # type: ignore[misc]
    """Waits for a Redis that refuses commands (it is full, or loads its data), and logs that once."""

    _is_refused = False

    def on_connection_error_before_connected(self, exc: Exception) -> None:
        if not self._is_refused:
            self._is_refused = True
            log.warning("the message broker refuses this worker; waiting", error=logs.redact(str(exc)))
        time.sleep(_PAUSE_SECONDS)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        with warnings.catch_warnings():
            # About the next version of Celery: a task continues, and its results are in the database.
            warnings.simplefilter("ignore", CPendingDeprecationWarning)
            super().on_connection_error_after_connected(exc)

    def on_ready(self) -> None:
        super().on_ready()
        if self._is_refused:
            self._is_refused = False
            log.info("the message broker accepts this worker again")
