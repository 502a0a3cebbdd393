"""The log of requests and answers, by which a collector can be verified afterwards.

A line is written **before the last byte** of its answer is sent. So no client can hold anything that the log does not
have, whichever process is killed at whatever moment; the other order would leave an instant in which a collector has
stored what, by the log, was never sent. The price: a line may list an answer whose end the client never saw. If the
server notices (the connection is lost before the system has taken all bytes), it writes the line again with `is_whole`
false, and the last line of a number counts. If it cannot notice (the bytes were on their way to a process that was
killed), only the collector's own runs show it; such answers are counted separately.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from catchment.model import Record
from catchment.playground.sites import Entry

Who = tuple[str, str | None]
"""A host and a credential."""


class Asked(Record, frozen=True):
    """One request and its answer."""

    number: int
    """Counted from 1 over all requests. A later line with the same number replaces an earlier one."""
    at: datetime
    """By the playground's clock, when the request was read: the listing is that of this moment."""
    host: str
    path: str
    """With the query where that names the place."""
    credential: str | None
    """Of the request: a name, or a short hash of what it sent; never the secret."""
    place: int | None
    status: int | None
    """None: no answer at all."""
    fault: str | None
    is_whole: bool
    """The answer was sent completely, and a parser can read every entry in it."""
    is_unchanged: bool = False
    """304"""
    cost: int = 0
    """What it is charged for, in millionths of a dollar, at services that cost money."""
    is_cost_plain: bool = True
    """The client can tell from the answer what it cost. Otherwise it was spoiled, or never arrived whole."""
    entries: tuple[Entry, ...] = ()
    """What it shows: [post id, version number, id on the wire]. Of an incomplete answer: what a part of it may show."""


class Log:
    """Appends lines to a file, each in one write. An existing file is continued."""

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
    """The last number in a log. First removes a half-written line of a killed playground: no client can have received
    the last byte of that answer."""
    written = file.read_bytes()
    whole = written[: written.rfind(b"\n") + 1]
    if whole != written:
        os.truncate(file, len(whole))
    return max((asked.number for asked in read_log(file)), default=0)


def read_log(file: Path) -> list[Asked]:
    """Every request once, in order."""
    asked: dict[int, Asked] = {}
    with file.open("rb") as lines:
        for line in lines:
            # A line without its end is being written right now.
            if line.endswith(b"\n"):
                request = msgspec.json.decode(line, type=Asked)
                asked[request.number] = request
    return [asked[number] for number in sorted(asked)]


class Bill(Record, frozen=True):
    """What a service charges for the answers that it sent, in millionths of a dollar."""

    calls: int = 0
    plain: int = 0
    """For answers that say themselves what they cost."""
    hidden: int = 0
    """For answers that the client never had whole, or that were spoiled."""

    @property
    def amount(self) -> int:
        return self.plain + self.hidden


def bill_of(asked: Iterable[Asked]) -> Bill:
    """Adds up what these answers cost."""
    charged = [request for request in asked if request.cost]
    plain = sum(request.cost for request in charged if request.is_cost_plain)
    return Bill(len(charged), plain, sum(request.cost for request in charged) - plain)


class Counts:
    """Request counts so far; the same whether counted live or from a log."""

    def __init__(self, asked: Iterable[Asked] = ()) -> None:
        self.requests = self.faults = self.unchanged = 0
        self.by_fault: Counter[str] = Counter()
        self.by_status: Counter[int] = Counter()
        self._seconds: dict[Who, _Span] = defaultdict(lambda: _Span(timedelta(seconds=1)))
        self._minutes: dict[Who, _Span] = defaultdict(lambda: _Span(timedelta(minutes=1)))
        for request in asked:
            self.add(request)

    def add(self, asked: Asked) -> None:
        self.requests += 1
        self.unchanged += asked.is_unchanged
        if asked.fault is not None:
            self.faults += 1
            self.by_fault[asked.fault] += 1
        if asked.status is not None:
            self.by_status[asked.status] += 1
        self._seconds[asked.host, asked.credential].add(asked.at)
        self._minutes[asked.host, asked.credential].add(asked.at)

    @property
    def most_in_a_second(self) -> dict[Who, int]:
        """In any second of the playground's clock, by host and credential."""
        return {who: span.most for who, span in self._seconds.items()}

    @property
    def most_in_a_minute(self) -> dict[Who, int]:
        return {who: span.most for who, span in self._minutes.items()}


class _Span:
    """Requests within a sliding window, and the maximum so far."""

    def __init__(self, length: timedelta) -> None:
        self.length, self.most = length, 0
        self._recent: deque[datetime] = deque()

    def add(self, at: datetime) -> None:
        self._recent.append(at)
        while at - self._recent[0] >= self.length:
            self._recent.popleft()
        self.most = max(self.most, len(self._recent))
