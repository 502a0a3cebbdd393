"""Opening what a command needs, and no more: settings, the store alone, or the whole shop."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from catchment.clock import Clock, clock_from
from catchment.settings import Settings, read_settings

if TYPE_CHECKING:
    from catchment.collect.naming import Names
    from catchment.hot import Hot
    from catchment.model import Media
    from catchment.shop import Shop
    from catchment.store import Store
    from catchment.store.database import Database
    from catchment.store.filtering import Filter


def settings() -> Settings:
    """As they stand for this process. Without asking which platforms there are: that would load them all."""
    return read_settings(os.environ, Path.cwd())


def clock_of(settings: Settings) -> Clock:
    return clock_from(settings.clock, settings.home)


@contextmanager
def opened_store(settings: Settings) -> Iterator[tuple[Store, datetime]]:
    """The database and the time: enough for whoever only looks."""
    from catchment.store import open_store

    now = clock_of(settings).now()
    store = open_store(settings.database_url, settings.home, now, _fingerprint, pool_size=2)
    try:
        yield store, now
    finally:
        store.close()


def names(store: Store) -> Names:
    """What kinds and platforms there are."""
    from catchment.collect.naming import Names
    from catchment.platforms import installed

    return Names(store, installed)


def check(store: Store, wanted: Filter) -> None:
    """Whether there are such kinds and platforms. Who names none does not wait until all are known."""
    if wanted.kind is not None or wanted.platform is not None:
        names(store).checked(wanted)


@contextmanager
def opened_hot(settings: Settings, store: Store) -> Iterator[Hot]:
    """The hot store, for whoever reads the newest of a source."""
    from catchment.hot import open_hot
    from catchment.redis_link import open_link

    clock = clock_of(settings)
    link = open_link(settings, store, clock)
    hot = open_hot(settings, store, clock, link)
    try:
        yield hot
    finally:
        hot.close()
        if link is not None:
            link.close()


@contextmanager
def bare_database(settings: Settings) -> Iterator[Database]:
    """The database as it is, whatever its schema: for migrating, for backups, and for the doctor."""
    from catchment.store.database import Database

    database = Database(settings.database_url, pool_size=2)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def opened_shop(work: str, *, is_engine: bool = False) -> Iterator[Shop]:
    """Everything. `work` is what other processes see us do; an engine may migrate a SQLite file before it begins."""
    from catchment import logs
    from catchment.jobs import NAMES
    from catchment.shop import open_shop, settings_from

    settings = settings_from(os.environ, Path.cwd(), NAMES)
    for warning in settings.warnings:
        logs.logger(__name__).warning(warning)
    with open_shop(settings, work, may_migrate=is_engine and is_sqlite(settings)) as shop:
        yield shop


def is_sqlite(settings: Settings) -> bool:
    return settings.database_url.startswith("sqlite:")


def _fingerprint(title: str | None, text: str | None, target_url: str | None, media: Sequence[Media]) -> bytes:
    from catchment.refine import fingerprint

    return fingerprint(title, text, target_url, media)
