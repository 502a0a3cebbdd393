"""The one clock. Everything the product decides by time asks it; socket time-outs and OS locks stay on wall time."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Protocol

from catchment.errors import BadSetting

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly. Refuses a time without a zone: a naive time is a bug, not a guess."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {moment!r}")
    return (moment - EPOCH) // MICROSECOND


def moment(micros: int) -> datetime:
    """The UTC time of a number of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=micros)


class Clock(Protocol):
    def now(self) -> datetime: ...

    def wait(self, seconds: float, stop: Event) -> bool:
        """Wait so many seconds of this clock, or until `stop` is set; true if it was."""
        ...

    def wall_seconds(self, seconds: float) -> float:
        """How long so many seconds of this clock last on the wall: for those who must sleep elsewhere (a scheduler)."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait(self, seconds: float, stop: Event) -> bool:
        return stop.wait(max(0.0, seconds))

    def wall_seconds(self, seconds: float) -> float:
        return seconds


class MovedClock:
    """Time that began at `start` when the wall said `anchor`, and runs `rate` times as fast. For tests and the demo."""

    def __init__(self, start: datetime, rate: float, anchor: float) -> None:
        self.start, self.rate, self.anchor = start, rate, anchor

    def now(self) -> datetime:
        return self.start + timedelta(seconds=(time.time() - self.anchor) * self.rate)

    def wait(self, seconds: float, stop: Event) -> bool:
        return stop.wait(max(0.0, self.wall_seconds(seconds)))

    def wall_seconds(self, seconds: float) -> float:
        return seconds / self.rate


def clock_from(spec: str | None, home: Path) -> Clock:
    """The clock that `CATCHMENT_CLOCK=<start>,<rate>` asks for, or the machine's.

    The first process of a deployment writes down when it began, so that all processes of one home agree.
    """
    if not spec:
        return SystemClock()
    try:
        begin, rate = spec.split(",")
        start, speed = datetime.fromisoformat(begin.strip()), float(rate)
        if start.tzinfo is None or not 0 < speed <= 1e7:
            raise ValueError
    except ValueError:
        raise BadSetting(
            f"CATCHMENT_CLOCK={spec!r} is not a clock", "give <start>,<rate>, as in 2026-01-01T00:00:00Z,60"
        ) from None
    return MovedClock(start, speed, _anchor(home / "clock", spec))


def _anchor(file: Path, spec: str) -> float:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        known, at = file.read_text().rsplit(" ", 1)
        if known == spec:
            return float(at)
    except (FileNotFoundError, ValueError):
        pass
    # Written aside and linked into place: two processes that begin together must end up with one anchor.
    own = file.with_name(f"clock.{os.getpid()}")
    own.write_text(f"{spec} {time.time()!r}")
    try:
        if file.exists():
            os.replace(own, file)
        else:
            os.link(own, file)
    except FileExistsError:
        pass
    finally:
        own.unlink(missing_ok=True)
    return float(file.read_text().rsplit(" ", 1)[1])
