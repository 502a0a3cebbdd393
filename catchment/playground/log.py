"""The log: what was asked and what was answered, so that a collector can be judged afterwards.

A line is written **before the last byte** of its answer is sent. So nobody can hold anything that the log does not
know, whoever is killed at whatever moment; the other order would leave an instant in which a collector has stored what
was, by the log, never said. The price: a line may promise an answer of which the asker never saw the end. Where the
server notices (the connection is lost before the system has taken all bytes), it writes the line once more with
`is_whole` false, and the last line of a number counts. Where it cannot notice (the bytes were on their way to a process
that was killed), only the collector's own runs can tell; such answers are counted apart.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from catchment.model import Record
from catchment.playground.voices import Entry

Who = tuple[str, str | None]
"""A host and a credential."""


class Asked(Record, frozen=True):
    """One request and its answer."""

    number: int
    """Counted from 1 over all requests. A later line with the same number takes the place of an earlier one."""
    at: datetime
    """By the playground's clock, when the request was read: the listing is the one of this moment."""
    host: str
    path: str
    credential: str | None
    """Whose the request was: a name, or a short hash of what it carried; never the secret."""
    place: int | None
    status: int | None
    """None: no answer at all."""
    fault: str | None
    is_whole: bool
    """The answer was sent to its end, and a reader can read every entry in it."""
    is_unchanged: bool = False
    """304"""
    entries: tuple[Entry, ...] = ()
    """What it shows: [post id, version number, id on the wire]. Of an answer that is not whole: what part of it may."""


class Log:
    """Appends lines to a file, each in one write. One that is there already is continued."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.last_number = _last_number(file) if file.exists() else 0
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._encoder = msgspec.json.Encoder()

    def write(self, asked: Asked) -> None:
        os.write(self._file, self._encoder.encode(asked) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def _last_number(file: Path) -> int:
    """The last number in a log, after a line that a killed playground left half-written was taken away: nobody can have
    got the last byte of its answer."""
    written = file.read_bytes()
    whole = written[: written.rfind(b"\n") + 1]
    if whole != written:
        os.truncate(file, len(whole))
    return max((one.number for one in read_log(file)), default=0)


def read_log(file: Path) -> list[Asked]:
    """Every request once, in their order."""
    asked: dict[int, Asked] = {}
    with file.open("rb") as lines:
        for line in lines:
            # A line without its end is being written at this moment.
            if line.endswith(b"\n"):
                one = msgspec.json.decode(line, type=Asked)
                asked[one.number] = one
    return [asked[number] for number in sorted(asked)]


class Counts:
    """What was asked so far; the same whether counted while it happens or from a log."""

    def __init__(self, asked: Iterable[Asked] = ()) -> None:
        self.requests = self.faults = self.unchanged = 0
        self.by_fault: Counter[str] = Counter()
        self.by_status: Counter[int] = Counter()
        self._seconds: dict[Who, _Span] = defaultdict(lambda: _Span(timedelta(seconds=1)))
        self._minutes: dict[Who, _Span] = defaultdict(lambda: _Span(timedelta(minutes=1)))
        for one in asked:
            self.add(one)

    def add(self, one: Asked) -> None:
        self.requests += 1
        self.unchanged += one.is_unchanged
        if one.fault is not None:
            self.faults += 1
            self.by_fault[one.fault] += 1
        if one.status is not None:
            self.by_status[one.status] += 1
        self._seconds[one.host, one.credential].add(one.at)
        self._minutes[one.host, one.credential].add(one.at)

    @property
    def most_in_a_second(self) -> dict[Who, int]:
        """In any second of the playground's clock, by host and credential."""
        return {who: span.most for who, span in self._seconds.items()}

    @property
    def most_in_a_minute(self) -> dict[Who, int]:
        return {who: span.most for who, span in self._minutes.items()}


class _Span:
    """Requests within the last so-and-so long, and the most that there ever were."""

    def __init__(self, length: timedelta) -> None:
        self.length, self.most = length, 0
        self._recent: deque[datetime] = deque()

    def add(self, at: datetime) -> None:
        self._recent.append(at)
        while at - self._recent[0] >= self.length:
            self._recent.popleft()
        self.most = max(self.most, len(self._recent))
