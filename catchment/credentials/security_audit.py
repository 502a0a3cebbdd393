"""Security audit: searches for plain-text secrets in the database, Redis, logs, settings files and the data folder.

Known secrets are searched for everywhere: the credentials are decrypted for that. Unknown ones are searched for by
shape, but only in our own writing: there nothing but the redacted form is accepted. Collected text may contain them:
somebody may well post a token.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import msgspec

from catchment.credentials.cipher import FILE, Cipher, Sealed, cipher_of
from catchment.credentials.secret import Secret, unsure_notes
from catchment.credentials.secrets import Lent
from catchment.errors import VaultError
from catchment.logs import SHORTEST, looks_random, may_hold_traces, spellings, traces
from catchment.model import Record
from catchment.redis import Away, RedisLink
from catchment.settings import DEFINED, Settings
from catchment.settings.load import dotenv, toml
from catchment.store import Store
from catchment.store.credentials import EncryptedValues, SealedRow, tables
from catchment.store.secret_scan import ColumnValue, Row, SecretScanRows

_CHUNK = 1 << 20
_PIECE = 1 << 16
_MOST_EXAMPLES = 3
_A_FEW = 100
_PLACE = re.compile(rb"hot:(?:set|cached|index)(?::\d+)?|[a-z]+")


class Sought(Record, frozen=True):
    """A known secret, in all its spellings."""

    what: str
    """Its owner, as text."""
    spellings: tuple[bytes, ...]
    is_word: bool = False
    """It could as well be an ordinary word: found in collected text, it proves nothing."""


class Finding(Record, frozen=True):
    """Something that must not be where it is. Never contains the secret itself."""

    where: str
    what: str
    count: int
    examples: tuple[str, ...]
    """The first locations, as text."""


class Findings:
    """The findings so far: locations of the same sort are one finding, so that the list never grows large."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}

    def add(self, where: str, what: str, place: str) -> None:
        count, examples = self._found.get((where, what), (0, ()))
        self._found[where, what] = count + 1, (*examples, place)[:_MOST_EXAMPLES]

    def all(self) -> list[Finding]:
        return [Finding(where, what, *counts) for (where, what), counts in sorted(self._found.items())]


def sought(what: str, values: Iterable[str]) -> Iterator[Sought]:
    """Yields those of the values that can be told from other texts at all."""
    for value in dict.fromkeys(values):
        if len(value) >= SHORTEST:
            known = {spelling.encode("utf-8", "surrogatepass") for spelling in spellings(value)}
            yield Sought(what, tuple(sorted(known)), is_word=not looks_random(value))


class SecretScan:
    """Searches for secrets, and collects the findings."""

    def __init__(self, wanted: Iterable[Sought], findings: Findings) -> None:
        self._wanted, self._findings = list(wanted), findings
        self._longest = max((len(spelling) for known in self._wanted for spelling in known.spellings), default=1)
        self.rows = self.files = self.bytes = 0

    @property
    def secrets(self) -> int:
        return len(self._wanted)

    def database(self, auditing: SecretScanRows, progress: Callable[[int, str], None]) -> None:
        for row in auditing.rows():
            self._row(row)
            self.rows += 1
            if self.rows % _A_FEW == 0:
                progress(self.rows, row.table)

    def _row(self, row: Row) -> None:
        self.bytes += sum(len(cell.text) for cell in row.cells)
        together = b"\0".join(cell.text for cell in row.cells)
        for needle in self._wanted:
            if any(spelling in together for spelling in needle.spellings):
                self._known_in(row, needle)
        for cell in row.cells:
            if not cell.is_said:
                for what in traces(cell.text.decode("utf-8", "replace")):
                    self._findings.add(f"{row.table}.{cell.column}", what, row.key)

    def _known_in(self, row: Row, needle: Sought) -> None:
        for cell in row.cells:
            if any(spelling in cell.text for spelling in needle.spellings) and not (needle.is_word and cell.is_said):
                self._findings.add(f"{row.table}.{cell.column}", needle.what, row.key)

    def file(self, path: Path) -> None:
        """Searches a file for known secrets, byte by byte: also where no row shows them any more."""

        def look(file: IO[bytes]) -> None:
            before = b""
            while chunk := file.read(_CHUNK):
                self.bytes += len(chunk)
                both = before + chunk
                for needle in self._wanted:
                    if not needle.is_word and any(spelling in both for spelling in needle.spellings):
                        self._findings.add(str(path), needle.what, "somewhere in the file")
                # A match across two chunks is found with the next one.
                before = both[-self._longest :]

        self._opened(path, look)

    def log(self, path: Path) -> None:
        """Searches a log for known secrets, and for everything shaped like a secret: in pieces, and line by line only
        where a piece has a candidate."""

        def look(file: IO[bytes]) -> None:
            line_number = 1
            for piece in self._pieces(file):
                self._piece(str(path), line_number, piece)
                line_number += piece.count(b"\n")

        self._opened(path, look)

    def _pieces(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yields whole lines, many at a time; a line longer than a piece in parts, which overlap."""
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
        known = [needle for needle in self._wanted if any(spelling in piece for spelling in needle.spellings)]
        has_shape = may_hold_traces(piece.decode("utf-8", "replace"))
        if not known and not has_shape:
            return
        for line_number, line in enumerate(piece.split(b"\n"), first):
            if line.strip():
                self._line(where, f"line {line_number}", line, known, has_shape=has_shape)

    def settings(self, name: str, given: Mapping[str, str], is_ours: Callable[[str], bool]) -> None:
        """Searches a settings file. Other programs may keep theirs beside ours, and in any form."""
        self.files += 1
        for setting, value in given.items():
            self._line(name, setting, f"{setting}={value}".encode(), self._wanted, has_shape=is_ours(setting))

    def redis(self, link: RedisLink) -> None:
        """Searches our keys and values in Redis, a few at a time, and nothing of other programs."""
        try:
            for key in _scanned(link, lambda client, cursor: client.scan(cursor, f"{link.prefix}*", _A_FEW)):
                self._redis_key(link, key)
        except Away as away:
            self._findings.add("Redis", f"it cannot be searched: {away}", link.shown_url)

    def _redis_key(self, link: RedisLink, key: bytes) -> None:
        name = key.removeprefix(link.prefix.encode())
        # Cached items are text of others. All else is written by us.
        is_said = name.startswith(b"hot:")
        part, location = name.partition(b":")[0].decode("ascii", "replace"), _place(name)
        for texts in chain([[name]], _texts(link, key)):
            self._row(Row("Redis", location, tuple(ColumnValue(part, text, is_said) for text in texts)))
            self.rows += 1

    def _line(
        self, where: str, location: str, line: bytes, known_secrets: Iterable[Sought], *, has_shape: bool
    ) -> None:
        for needle in known_secrets:
            if any(spelling in line for spelling in needle.spellings):
                self._findings.add(where, needle.what, location)
        for what in traces(line.decode("utf-8", "replace")) if has_shape else ():
            self._findings.add(where, what, location)

    def _opened(self, path: Path, look: Callable[[IO[bytes]], None]) -> None:
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                look(file)  # type: ignore[arg-type]
            self.files += 1
        except FileNotFoundError:
            # It was there a moment ago: the database creates files beside its own, and removes them.
            return
        except (OSError, EOFError) as error:
            self._findings.add(str(path), f"it cannot be read: {type(error).__name__}", "the file")


def _place(name: bytes) -> str:
    """Returns the part of a key's name that cannot be a secret."""
    match = _PLACE.match(name)
    return match[0].decode() if match else "a key"


def _texts(link: RedisLink, key: bytes) -> Iterator[list[bytes]]:
    """Yields all values under a key, a few at a time. A key that is gone meanwhile yields nothing."""
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
    """Yields everything that a scan gives, page by page; some of it perhaps twice, as Redis does."""
    cursor = 0
    while True:
        cursor, found = link.ask(lambda client, cursor=cursor: page(client, cursor))  # type: ignore[misc]
        yield from found
        if cursor == 0:
            return


TOML, DOTENV = "catchment.toml", ".env"
_KEY_FILES = ("session-key", FILE)
"""They are secrets themselves, in the right location; so are earlier master keys."""
_BATCH = 100


class Audit(Record, frozen=True):
    """The result of an audit."""

    findings: tuple[Finding, ...]
    secrets: int
    """How many known ones were searched for."""
    rows: int
    files: int
    bytes: int

    @property
    def passed(self) -> bool:
        return not self.findings


def audit(
    store: Store,
    settings: Settings,
    folder: Path,
    *,
    redis: RedisLink | None = None,
    lent: Iterable[Lent] = (),
    logs: Iterable[Path] = (),
    progress: Callable[[int, str], None] = lambda count, where: None,
) -> Audit:
    """Searches the database, Redis where there is one, the whole data folder, the settings files of this folder and of
    the data folder, and these logs."""
    findings = Findings()
    cipher = cipher_of(settings, store.encrypted)
    known_secrets = [
        *_sealed_secrets(store.encrypted, cipher, findings),
        *_of_settings(settings, lent),
        *sought(f"the master key in {FILE}", cipher.in_file()),
    ]
    search = SecretScan(known_secrets, findings)
    search.database(store.secret_scans, progress)
    _look_at_addresses(store, findings)
    if redis is not None:
        progress(search.rows, "Redis")
        search.redis(redis)
    written = _settings_files(settings, folder)
    for path, values in written.items():
        search.settings(str(path), _harmless(values, settings), _is_ours)
    for path in _at_home(settings.home, store.database.file, written):
        progress(search.rows, str(path))
        (search.log if ".log" in path.suffixes else search.file)(path)
    for path in logs:
        search.log(path)
    return Audit(tuple(findings.all()), search.secrets, search.rows, search.files, search.bytes)


def _sealed_secrets(things: EncryptedValues, cipher: Cipher, findings: Findings) -> Iterator[Sought]:
    """Decrypts all encrypted secrets. What cannot be decrypted cannot be searched for, and that is a finding, too."""
    for table in tables():
        after = 0
        while rows := things.others(table, "", after, _BATCH):
            after = rows[-1].id
            for row in rows:
                try:
                    text = cipher.open(Sealed(row.key_id, row.sealed.decode()))
                except VaultError as error:
                    what = f"it cannot be looked for: {error}"
                    findings.add("the vault", what, f"{row.name} ({table})")
                else:
                    yield from sought(f"the secret of {row.name!r} ({table})", _values(row, text))


def _values(row: SealedRow, text: str) -> tuple[str, ...]:
    return Secret.from_json(text).values() if row.table == "credentials" else tuple(_leaves(msgspec.json.decode(text)))


def _leaves(value: Any) -> Iterator[str]:
    """Yields every text within."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (leaf for inner in value.values() for leaf in _leaves(inner))


def _of_settings(settings: Settings, lent: Iterable[Lent]) -> Iterator[Sought]:
    for lent_credential in lent:
        yield from sought(f"the secret of {lent_credential.name!r}", lent_credential.secret.values())
    yield from sought("CATCHMENT_API_KEY", [settings.api_key or ""])
    yield from sought("COOKIE_MASTER_KEY", (settings.master_key or "").split(","))
    for name, address in (
        ("CATCHMENT_DATABASE_URL", settings.database_url),
        ("CATCHMENT_REDIS_URL", settings.redis_url),
        ("CATCHMENT_PROXY", settings.proxy),
    ):
        yield from sought(f"the password of {name}", [unquote(urlsplit(address or "").password or "")])


def _look_at_addresses(store: Store, findings: Findings) -> None:
    """Finds URLs of sources with a part that looks like a secret, and was not taken for one."""
    after = 0
    while page := store.sources.page(after, _BATCH):
        after = page[-1][0].id
        for source, _ in page:
            for note in unsure_notes(source.target):
                findings.add("addresses of sources", note, f"source {source.id}")


def _settings_files(settings: Settings, folder: Path) -> dict[Path, dict[str, str]]:
    """Returns the files that may contain settings, and their settings."""
    tomls = {path.resolve(): path for path in (folder / TOML, settings.home / TOML)}
    files = {path: toml(path) for path in tomls.values()} | {folder / DOTENV: dotenv(folder / DOTENV)[0]}
    return {path: values for path, values in files.items() if path.exists()}


def _harmless(values: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Returns the settings without those that are secrets, or may hold one: there they belong."""
    return {
        name: value
        for name, value in values.items()
        if name not in settings.declared
        and not any(setting.owns(name) and setting.may_hold_secret for setting in DEFINED.values())
    }


def _is_ours(name: str) -> bool:
    return any(setting.owns(name) for setting in DEFINED.values())


def _at_home(home: Path, database: Path | None, written: Mapping[Path, object]) -> Iterator[Path]:
    """Yields all files of the data folder except those that rightly hold a secret; and the database, wherever it is."""
    beside = [] if database is None else [database, database.with_name(f"{database.name}-wal")]
    known = {path.resolve() for path in written}
    for path in dict.fromkeys(path.resolve() for path in (*beside, *sorted(home.rglob("*")))):
        is_key = path.parent == home.resolve() and path.name.startswith(_KEY_FILES)
        if path.is_file() and path not in known and not is_key:
            yield path
