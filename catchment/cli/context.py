"""Opens what a command needs, and no more: settings, the store alone, or the whole app.

A missing database is created only by commands that write to it: these pass `creates=True`.
The first signal requests a stop; the second one, or a timeout, aborts.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from catchment import logs
from catchment.clock import Clock, clock_from
from catchment.lazy import lazy_imports
from catchment.settings import Settings, read_settings

with lazy_imports():
    from catchment import app, cache, jobs, platforms, redis, store
    from catchment.sources import kinds
    from catchment.store import database
    from catchment.text import clean

if TYPE_CHECKING:
    from catchment.model import Media


def settings() -> Settings:
    """The settings of this process. Does not check which platforms exist: that would load them all."""
    return read_settings(os.environ, Path.cwd())


def clock_of(settings: Settings) -> Clock:
    return clock_from(settings.clock, settings.home)


@contextmanager
def opened_store(settings: Settings, *, creates: bool = False) -> Iterator[tuple[store.Store, datetime]]:
    """The database and the current time: enough for commands that only read."""
    now = clock_of(settings).now()
    opened = store.open_store(settings.database_url, settings.home, now, _fingerprint, creates=creates, pool_size=2)
    try:
        yield opened, now
    finally:
        opened.close()


def names(archive: store.Store) -> kinds.NameResolver:
    """Resolves names of sources, kinds, categories and platforms; loads the platforms only if the archive lacks one."""
    return kinds.NameResolver(archive, platforms.installed)


def source_id(archive: store.Store, text: str | None) -> int | None:
    """The id of the source with this id, name or address."""
    return None if text is None else names(archive).source(text)


@contextmanager
def opened_cache(settings: Settings, archive: store.Store) -> Iterator[cache.Cache]:
    """The cache, for commands that read the newest items of a source."""
    clock = clock_of(settings)
    link = redis.open_link(settings, archive, clock)
    opened = cache.open_cache(settings, archive, clock, link)
    try:
        yield opened
    finally:
        opened.close()
        if link is not None:
            link.close()


@contextmanager
def bare_database(settings: Settings, *, creates: bool = False) -> Iterator[database.Database]:
    """The database with any schema version: for migrations, backups and the doctor."""
    opened = database.Database(settings.database_url, pool_size=2, creates=creates)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def opened_app(work: str, *, is_engine: bool = False, creates: bool = False) -> Iterator[app.App]:
    """The whole app. `work` is shown to other processes; an engine may migrate a SQLite file before it starts."""
    settings = full_settings()
    for warning in settings.warnings:
        logs.logger(__name__).warning(warning)
    with app.open_app(settings, work, may_migrate=is_engine and is_sqlite(settings), creates=creates) as opened:
        yield opened


def full_settings() -> Settings:
    """The settings with all their warnings, which takes loading every platform."""
    return app.settings_from(os.environ, Path.cwd(), jobs.NAMES)


def is_sqlite(settings: Settings) -> bool:
    return settings.database_url.startswith("sqlite:")


def _fingerprint(title: str | None, text: str | None, target_url: str | None, media: Sequence[Media]) -> bytes:
    # The HTML parser behind it is needed only by commands that write items.
    return clean.fingerprint(title, text, target_url, media)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LEAVE = b"."


class StopSignals:
    """Within this block a signal no longer kills the process: it is passed on to `watch`.

    Python handles a signal in the main thread, once that thread wakes up, and may interrupt it while it holds any lock;
    and the system may deliver the signal to another thread, so that the main one sleeps on. So the handler does
    nothing: the interpreter itself writes a byte into a pipe, and a thread that reads from it does the rest. Signals
    that arrive before `watch` wait in the pipe.
    """

    def __init__(self, *more: int) -> None:
        """`more`: signals that mean the same here, besides SIGTERM and SIGINT."""
        self._numbers = (*_SIGNALS, *more)
        self._count = 0
        self._watcher: Thread | None = None
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._before: dict[int, Any] = {}
        self._woken_before = -1

    def __enter__(self) -> Self:
        self._woken_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._before = {signal_number: signal.signal(signal_number, self._heard) for signal_number in self._numbers}
        return self

    @property
    def is_asked(self) -> bool:
        """Whether a signal arrived."""
        return self._count > 0

    def watch(self, stop: Event, cut: Event, patience_seconds: float, say: Callable[[str], object]) -> None:
        """From now on a signal sets `stop`; a second one, or the timeout, sets `cut`. `say` gets a message."""
        self._watcher = Thread(target=self._wait, args=(stop, cut, patience_seconds, say), name="signals", daemon=True)
        self._watcher.start()

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._watcher is None and self._count > 1:
            # No work is in progress yet that this could damage.
            raise KeyboardInterrupt

    def _wait(self, stop: Event, cut: Event, patience_seconds: float, say: Callable[[str], object]) -> None:
        if os.read(self._read_end, 1) == _LEAVE:
            return
        stop.set()
        say(f"stopping: waiting up to {patience_seconds:g} s for running work; a second signal aborts it")
        is_heard, _, _ = select.select([self._read_end], [], [], patience_seconds)
        if not is_heard or os.read(self._read_end, 1) != _LEAVE:
            cut.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signal_number, handler in self._before.items():
            signal.signal(signal_number, handler)
        signal.set_wakeup_fd(self._woken_before)
        if self._watcher is not None:
            os.write(self._write_end, _LEAVE)
            self._watcher.join()
        os.close(self._read_end)
        os.close(self._write_end)
