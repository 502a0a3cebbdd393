"""Settings that say what runs when: an engine reads them again when one of their files changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from catchment import logs
from catchment.app import App
from catchment.errors import BadSetting
from catchment.settings import Settings

log = logs.logger(__name__)


class LiveSettings:
    """Keeps these settings of an app as its files have them. The environment of a process cannot change, and wins."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._seen = _versions(app.settings.files)

    def refresh(self) -> None:
        """Call it before looking at what is due. A file that cannot be used is logged, and changes nothing."""
        settings = self._app.settings
        versions = _versions(settings.files)
        if settings.read_again is None or versions == self._seen:
            return
        self._seen = versions
        try:
            fresh = settings.with_live_values_of(settings.read_again())
        except BadSetting as error:
            log.error("invalid settings change ignored", error=str(error))
            return
        if fresh != settings:
            self._app.settings = fresh
            log.info("settings have changed", settings=sorted({*_shown(fresh)} ^ {*_shown(settings)}))


def _versions(files: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    versions: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            versions.append(None)
        else:
            versions.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return versions


def _shown(settings: Settings) -> list[str]:
    return [f"{name}={value}" for name, value, _ in settings.differing()]
