"""The clock that all time-based decisions use. Socket timeouts and OS locks use wall time."""

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
    """Microseconds since 1970, exact. Raises for a time without a zone: a naive time is a bug."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {moment!r}")
    return (moment - EPOCH) // MICROSECOND


def moment(micros: int) -> datetime:
    """The UTC time of a number of microseconds since 1970."""
    # Days, seconds, microseconds by position: by name it takes twice as long, and a page has hundreds of times.
    return EPOCH + timedelta(0, 0, micros)


class Clock(Protocol):
    def now(self) -> datetime: ...

    def wait(self, seconds: float, stop: Event) -> bool:
        """Wait this many seconds of this clock, or until `stop` is set; true if it was set."""
        ...

    def wall_seconds(self, seconds: float) -> float:
        """This many seconds of this clock in wall time: for code that has to sleep elsewhere (a scheduler)."""
        ...


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait(self, seconds: float, stop: Event) -> bool:
        return stop.wait(max(0.0, seconds))

    def wall_seconds(self, seconds: float) -> float:
        return seconds


class MovedClock:
    """Starts at `start` when wall time is `anchor`, and runs `rate` times as fast. For tests and the demo."""

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

    The first process of a deployment records when it started, so that all processes of one home agree.
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
            "CATCHMENT_CLOCK={spec!r} is not a clock", "use <start>,<rate>, such as 2026-01-01T00:00:00Z,60", spec=spec
        ) from None
    return MovedClock(start, speed, _anchor(home / "clock", spec))


def _anchor(file: Path, spec: str) -> float:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        spec_text, at = file.read_text().rsplit(" ", 1)
        if spec_text == spec:
            return float(at)
    except (FileNotFoundError, ValueError):
        pass
    # Written to a temporary file and linked into place: two processes that start together must agree on one anchor.
    own = file.with_name(f"clock.{os.getpid()}")
    try:
        own.write_text(f"{spec} {time.time()!r}")
        if file.exists():
            os.replace(own, file)
        else:
            os.link(own, file)
    except FileExistsError:
        pass
    finally:
        own.unlink(missing_ok=True)
    return float(file.read_text().rsplit(" ", 1)[1])
