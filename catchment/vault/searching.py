"""Looking for secrets: what we know by its value, what we do not by its shape. No finding repeats what was found."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any

from catchment.logs import SHORTEST, looks_random, may_hold_traces, spellings, traces
from catchment.model import Record
from catchment.redis_link import Away, RedisLink
from catchment.store.auditing import Auditing, Cell, Row

_CHUNK = 1 << 20
_PIECE = 1 << 16
_MOST_EXAMPLES = 3
_A_FEW = 100
_PLACE = re.compile(rb"hot:(?:set|cached|counts)(?::\d+)?|[a-z]+")


class Sought(Record, frozen=True):
    """A secret that we know, in all its spellings."""

    what: str
    """Whose it is, in words."""
    spellings: tuple[bytes, ...]
    is_word: bool = False
    """It could as well be an ordinary word: found in what others say, it proves nothing."""


class Finding(Record, frozen=True):
    """Something that must not be where it is. Never says what it is itself."""

    where: str
    what: str
    count: int
    examples: tuple[str, ...]
    """The first of the places, in words."""


class Findings:
    """What was found so far: places of the same sort are one finding, so that it never grows large."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}

    def add(self, where: str, what: str, place: str) -> None:
        count, examples = self._found.get((where, what), (0, ()))
        self._found[where, what] = count + 1, (*examples, place)[:_MOST_EXAMPLES]

    def all(self) -> list[Finding]:
        return [Finding(where, what, *told) for (where, what), told in sorted(self._found.items())]


def sought(what: str, values: Iterable[str]) -> Iterator[Sought]:
    """Those of the values that can be told from other texts at all."""
    for value in dict.fromkeys(values):
        if len(value) >= SHORTEST:
            known = {one.encode("utf-8", "surrogatepass") for one in spellings(value)}
            yield Sought(what, tuple(sorted(known)), is_word=not looks_random(value))


class Search:
    """Looks for secrets, and notes what it finds."""

    def __init__(self, wanted: Iterable[Sought], findings: Findings) -> None:
        self._wanted, self._findings = list(wanted), findings
        self._longest = max((len(one) for each in self._wanted for one in each.spellings), default=1)
        self.rows = self.files = self.bytes = 0

    @property
    def secrets(self) -> int:
        return len(self._wanted)

    def database(self, auditing: Auditing, told: Callable[[int, str], None] = lambda count, table: None) -> None:
        for row in auditing.rows():
            self._row(row)
            self.rows += 1
            if self.rows % _A_FEW == 0:
                told(self.rows, row.table)

    def _row(self, row: Row) -> None:
        self.bytes += sum(len(cell.text) for cell in row.cells)
        together = b"\0".join(cell.text for cell in row.cells)
        for one in self._wanted:
            if any(spelling in together for spelling in one.spellings):
                self._known_in(row, one)
        for cell in row.cells:
            if not cell.is_said:
                for what in traces(cell.text.decode("utf-8", "replace")):
                    self._findings.add(f"{row.table}.{cell.column}", what, row.key)

    def _known_in(self, row: Row, one: Sought) -> None:
        for cell in row.cells:
            if any(spelling in cell.text for spelling in one.spellings) and not (one.is_word and cell.is_said):
                self._findings.add(f"{row.table}.{cell.column}", one.what, row.key)

    def file(self, path: Path) -> None:
        """For what we know, byte by byte: also where no row shows it any more."""

        def look(file: IO[bytes]) -> None:
            before = b""
            while chunk := file.read(_CHUNK):
                self.bytes += len(chunk)
                both = before + chunk
                for one in self._wanted:
                    if not one.is_word and any(spelling in both for spelling in one.spellings):
                        self._findings.add(str(path), one.what, "somewhere in the file")
                # What lies across two chunks is seen with the next one.
                before = both[-self._longest :]

        self._opened(path, look)

    def log(self, path: Path) -> None:
        """For what we know, and for all that has the shape of a secret: in pieces, and line by line only where a piece
        has something to look at."""

        def look(file: IO[bytes]) -> None:
            number = 1
            for piece in self._pieces(file):
                self._piece(str(path), number, piece)
                number += piece.count(b"\n")

        self._opened(path, look)

    def _pieces(self, file: IO[bytes]) -> Iterator[bytes]:
        """Whole lines, many at a time; one that is longer than a piece in parts, which overlap."""
        rest = b""
        while chunk := file.read(_PIECE):
            self.bytes += len(chunk)
            lines, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                yield lines + newline
            if len(rest) > _PIECE:
                yield rest
                rest = rest[-self._longest :]
        yield rest

    def _piece(self, where: str, first: int, piece: bytes) -> None:
        known = [one for one in self._wanted if any(spelling in piece for spelling in one.spellings)]
        has_shape = may_hold_traces(piece.decode("utf-8", "replace"))
        if not known and not has_shape:
            return
        for number, line in enumerate(piece.split(b"\n"), first):
            if line.strip():
                self._line(where, f"line {number}", line, known, has_shape=has_shape)

    def settings(self, name: str, given: Mapping[str, str], is_ours: Callable[[str], bool]) -> None:
        """What stands in a file of settings. Others may keep theirs beside ours, and in any shape."""
        self.files += 1
        for setting, value in given.items():
            self._line(name, setting, f"{setting}={value}".encode(), self._wanted, has_shape=is_ours(setting))

    def redis(self, link: RedisLink) -> None:
        """What we keep there, and nothing of what others do: keys and values, a few at a time."""
        try:
            for key in _scanned(link, lambda client, cursor: client.scan(cursor, f"{link.prefix}*", _A_FEW)):
                self._redis_key(link, key)
        except Away as away:
            self._findings.add("Redis", f"it cannot be searched: {away}", link.shown_url)

    def _redis_key(self, link: RedisLink, key: bytes) -> None:
        name = key.removeprefix(link.prefix.encode())
        # What others say is kept hot. All else is our own writing.
        is_said = name.startswith(b"hot:")
        part, place = name.partition(b":")[0].decode("ascii", "replace"), _place(name)
        for texts in chain([[name]], _texts(link, key)):
            self._row(Row("Redis", place, tuple(Cell(part, text, is_said) for text in texts)))
            self.rows += 1

    def _line(self, where: str, place: str, line: bytes, wanted: Iterable[Sought], *, has_shape: bool) -> None:
        for one in wanted:
            if any(spelling in line for spelling in one.spellings):
                self._findings.add(where, one.what, place)
        for what in traces(line.decode("utf-8", "replace")) if has_shape else ():
            self._findings.add(where, what, place)

    def _opened(self, path: Path, look: Callable[[IO[bytes]], None]) -> None:
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                look(file)  # type: ignore[arg-type]
            self.files += 1
        except FileNotFoundError:
            # It was there a moment ago: the database puts files beside its own, and takes them away.
            return
        except (OSError, EOFError) as error:
            self._findings.add(str(path), f"it cannot be read: {type(error).__name__}", "the file")


# ── what Redis holds ──────────────────────────────────────────────────────────────────────────────────────────────


def _place(name: bytes) -> str:
    """As much of a key's name as cannot be a secret."""
    match = _PLACE.match(name)
    return match[0].decode() if match else "a key"


def _texts(link: RedisLink, key: bytes) -> Iterator[list[bytes]]:
    """All that stands under a key, a few at a time. What has gone meanwhile holds nothing."""
    sort = link.ask(lambda client: client.type(key))
    if sort == b"string":
        value = link.ask(lambda client: client.get(key))
        yield [value] if value is not None else []
    elif sort == b"hash":
        pairs = _scanned(link, lambda client, cursor: _listed(client.hscan(key, cursor, count=_A_FEW)))
        yield from ([name, value] for name, value in pairs)
    elif sort == b"zset":
        yield from (
            [name] for name, _ in _scanned(link, lambda client, cursor: client.zscan(key, cursor, count=_A_FEW))
        )


def _listed(page: tuple[int, dict[bytes, bytes]]) -> tuple[int, list[tuple[bytes, bytes]]]:
    cursor, found = page
    return cursor, list(found.items())


def _scanned(link: RedisLink, page: Callable[[Any, int], tuple[int, Iterable[Any]]]) -> Iterator[Any]:
    """Everything that a scan gives, page by page; some of it perhaps twice, as Redis has it."""
    cursor = 0
    while True:
        cursor, found = link.ask(lambda client, cursor=cursor: page(client, cursor))  # type: ignore[misc]
        yield from found
        if cursor == 0:
            return
