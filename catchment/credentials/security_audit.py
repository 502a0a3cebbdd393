"""Security audit: searches for plain-text secrets in the database, Redis, logs, settings files and the data folder.

Known secrets are searched for everywhere: the credentials are decrypted for that. Unknown secrets are searched for by
shape, but only in our own writing: there nothing but the redacted form is accepted. Collected text may contain them:
somebody may well post a token.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from catchment.credentials.cipher import FILE, Cipher, Sealed, cipher_of, encrypted_rows
from catchment.credentials.secret import Secret, unsure_notes
from catchment.credentials.secret_store import EnvironmentCredential
from catchment.errors import VaultError
from catchment.logs import SHORTEST, looks_random, may_hold_traces, spellings, traces
from catchment.model import Record
from catchment.redis import Away, RedisLink
from catchment.settings import DEFINED, Settings
from catchment.settings.load import dotenv, toml
from catchment.store import Store
from catchment.store.credentials import EncryptedValues
from catchment.store.secret_scan import ColumnValue, Row, SecretScanRows

_CHUNK = 1 << 20
_PIECE = 1 << 16
_MOST_EXAMPLES = 3
_A_FEW = 100
_PLACE = re.compile(rb"hot:(?:set|cached|index)(?::\d+)?|[a-z]+")


class KnownSecret(Record, frozen=True):
    """A known secret, in all its spellings."""

    what: str
    """Its owner, as text."""
    spellings: tuple[bytes, ...]
    is_word: bool = False
    """It could as well be an ordinary word: found in collected text, it proves nothing."""

    def is_in(self, text: bytes) -> bool:
        return any(spelling in text for spelling in self.spellings)


class Finding(Record, frozen=True):
    """A secret found in plain text. Never contains the secret itself."""

    where: str
    what: str
    count: int
    examples: tuple[str, ...]
    """The first locations, as text."""


class AuditReport(Record, frozen=True):
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


def sought(what: str, values: Iterable[str]) -> Iterator[KnownSecret]:
    """Yields the values that can be distinguished from other text."""
    for value in dict.fromkeys(values):
        if len(value) >= SHORTEST:
            encoded = {spelling.encode("utf-8", "surrogatepass") for spelling in spellings(value)}
            yield KnownSecret(what, tuple(sorted(encoded)), is_word=not looks_random(value))


class SecretScan:
    """Searches for secrets, and collects the findings."""

    def __init__(self, needles: Iterable[KnownSecret] = ()) -> None:
        self._needles: list[KnownSecret] = []
        self._findings: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}
        self.rows = self.files = self.bytes = 0
        self.look_for(needles)

    def look_for(self, needles: Iterable[KnownSecret]) -> None:
        self._needles.extend(needles)
        self._longest = max((len(text) for needle in self._needles for text in needle.spellings), default=1)

    def add(self, where: str, what: str, place: str) -> None:
        """Adds a finding. Locations of the same sort are one finding, so that the list never grows large."""
        count, examples = self._findings.get((where, what), (0, ()))
        self._findings[where, what] = count + 1, (*examples, place)[:_MOST_EXAMPLES]

    def result(self) -> AuditReport:
        findings = [Finding(where, what, *counts) for (where, what), counts in sorted(self._findings.items())]
        return AuditReport(tuple(findings), len(self._needles), self.rows, self.files, self.bytes)

    def database(self, auditing: SecretScanRows, progress: Callable[[int, str], None]) -> None:
        for row in auditing.rows():
            self._row(row)
            self.rows += 1
            if self.rows % _A_FEW == 0:
                progress(self.rows, row.table)

    def _row(self, row: Row) -> None:
        self.bytes += sum(len(cell.text) for cell in row.cells)
        together = b"\0".join(cell.text for cell in row.cells)
        for needle in self._in(together):
            for cell in row.cells:
                if needle.is_in(cell.text) and not (needle.is_word and cell.is_by_others):
                    self.add(f"{row.table}.{cell.column}", needle.what, row.key)
        for cell in row.cells:
            if not cell.is_by_others:
                for what in traces(cell.text.decode("utf-8", "replace")):
                    self.add(f"{row.table}.{cell.column}", what, row.key)

    def _in(self, text: bytes) -> list[KnownSecret]:
        return [needle for needle in self._needles if needle.is_in(text)]

    def file(self, path: Path) -> None:
        """Searches a file for known secrets, byte by byte: also where no row shows them any more."""
        before = b""
        for chunk in self._chunks(path, _CHUNK):
            both = before + chunk
            for needle in self._in(both):
                if not needle.is_word:
                    self.add(str(path), needle.what, "somewhere in the file")
            # A match across two chunks is found with the next one.
            before = both[-self._longest :]

    def log(self, path: Path) -> None:
        """Searches a log for known secrets, and for everything shaped like a secret: in pieces, and line by line only
        where a piece has a candidate."""
        line_number = 1
        for piece in self._pieces(path):
            needles = self._in(piece)
            has_shape = may_hold_traces(piece.decode("utf-8", "replace"))
            for number, line in enumerate(piece.split(b"\n") if needles or has_shape else (), line_number):
                if line.strip():
                    self._line(str(path), f"line {number}", line, needles, has_shape=has_shape)
            line_number += piece.count(b"\n")

    def _pieces(self, path: Path) -> Iterator[bytes]:
        """Yields whole lines, many at a time; a line longer than a piece in parts, which overlap."""
        rest = b""
        for chunk in self._chunks(path, _PIECE):
            lines, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                yield lines + newline
            if len(rest) > _PIECE:
                yield rest
                rest = rest[-self._longest :]
        yield rest

    def _chunks(self, path: Path, size: int) -> Iterator[bytes]:
        """Yields the content of a file; one that cannot be read is a finding."""
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                while chunk := file.read(size):
                    self.bytes += len(chunk)
                    yield chunk
            self.files += 1
        except FileNotFoundError:
            # It was there a moment ago: the database creates files beside its own, and removes them.
            return
        except (OSError, EOFError) as error:
            self.add(str(path), f"it cannot be read: {type(error).__name__}", "the file")

    def settings(self, name: str, values: Mapping[str, str], is_ours: Callable[[str], bool]) -> None:
        """Searches a settings file. Other programs may keep theirs beside ours, and in any form."""
        self.files += 1
        for setting, value in values.items():
            self._line(name, setting, f"{setting}={value}".encode(), self._needles, has_shape=is_ours(setting))

    def redis(self, link: RedisLink) -> None:
        """Searches our keys and values in Redis, a few at a time, and nothing of other programs."""
        try:
            pages = _pages(link, lambda client, cursor: client.scan(cursor, f"{link.prefix}*", _A_FEW))
            for key in chain.from_iterable(pages):
                name = key.removeprefix(link.prefix.encode())
                # Cached items are text of others. All else is written by us.
                is_by_others = name.startswith(b"hot:")
                # The part of the name that cannot be a secret.
                match = _PLACE.match(name)
                part, location = (
                    name.partition(b":")[0].decode("ascii", "replace"),
                    match[0].decode() if match else "a key",
                )
                for texts in chain([[name]], _texts(link, key)):
                    self._row(Row("Redis", location, tuple(ColumnValue(part, text, is_by_others) for text in texts)))
                    self.rows += 1
        except Away as away:
            self.add("Redis", f"it cannot be searched: {away}", link.shown_url)

    def _line(self, where: str, location: str, line: bytes, needles: Iterable[KnownSecret], *, has_shape: bool) -> None:
        for needle in needles:
            if needle.is_in(line):
                self.add(where, needle.what, location)
        for what in traces(line.decode("utf-8", "replace")) if has_shape else ():
            self.add(where, what, location)


def _texts(link: RedisLink, key: bytes) -> Iterator[list[bytes]]:
    """Yields all values under a key, a few at a time. A key that is gone meanwhile yields nothing."""
    sort = link.ask(lambda client: client.type(key))
    if sort == b"string":
        value = link.ask(lambda client: client.get(key))
        yield [value] if value is not None else []
    elif sort == b"hash":
        for pairs in _pages(link, lambda client, cursor: client.hscan(key, cursor, count=_A_FEW)):
            yield from ([name, value] for name, value in pairs.items())
    elif sort == b"zset":
        for members in _pages(link, lambda client, cursor: client.zscan(key, cursor, count=_A_FEW)):
            yield from ([name] for name, _ in members)


def _pages(link: RedisLink, page: Callable[[Any, int], tuple[int, Any]]) -> Iterator[Any]:
    """Yields the pages of a scan; some entries perhaps twice, as Redis does."""
    cursor = 0
    while True:
        cursor, entries = link.ask(lambda client, cursor=cursor: page(client, cursor))  # type: ignore[misc]
        yield entries
        if cursor == 0:
            return


TOML, DOTENV = "catchment.toml", ".env"
_KEY_FILES = ("session-key", FILE)
"""They are secrets themselves, in the right location; so are earlier master keys."""
_BATCH = 100


def audit(
    store: Store,
    settings: Settings,
    folder: Path,
    *,
    redis: RedisLink | None = None,
    lent: Iterable[EnvironmentCredential] = (),
    logs: Iterable[Path] = (),
    progress: Callable[[int, str], None] = lambda count, where: None,
) -> AuditReport:
    """Searches the database, Redis where there is one, the whole data folder, the settings files of this folder and of
    the data folder, and these logs."""
    search, cipher = SecretScan(), cipher_of(settings, store.encrypted)
    search.look_for(_sealed_secrets(store.encrypted, cipher, search))
    search.look_for(_of_settings(settings, lent))
    search.look_for(sought(f"the master key in {FILE}", cipher.in_file()))
    search.database(store.secret_scans, progress)
    _look_at_addresses(store, search)
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
    return search.result()


def _sealed_secrets(things: EncryptedValues, cipher: Cipher, search: SecretScan) -> Iterator[KnownSecret]:
    """Decrypts all encrypted secrets. What cannot be decrypted cannot be searched for, and that is a finding, too."""
    for rows in encrypted_rows(things):
        for row in rows:
            try:
                text = cipher.open(Sealed(row.key_id, row.sealed.decode()))
            except VaultError as error:
                search.add("the vault", f"it cannot be looked for: {error}", f"{row.name} ({row.table})")
                continue
            is_secret = row.table == "credentials"
            values = Secret.from_json(text).values() if is_secret else _leaves(msgspec.json.decode(text))
            yield from sought(f"the secret of {row.name!r} ({row.table})", values)


def _leaves(value: Any) -> Iterator[str]:
    """Yields every text within."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (leaf for inner in value.values() for leaf in _leaves(inner))


def _of_settings(settings: Settings, lent: Iterable[EnvironmentCredential]) -> Iterator[KnownSecret]:
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


def _look_at_addresses(store: Store, search: SecretScan) -> None:
    """Finds URLs of sources with a part that looks like a secret, and was not taken for one."""
    after = 0
    while page := store.sources.page(after, _BATCH):
        after = page[-1][0].id
        for source, _ in page:
            for note in unsure_notes(source.target):
                search.add("addresses of sources", note, f"source {source.id}")


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
    """Yields the files to scan: the data folder without the key files, and the database."""
    beside = [] if database is None else [database, database.with_name(f"{database.name}-wal")]
    scanned = {path.resolve() for path in written}
    for path in dict.fromkeys(path.resolve() for path in (*beside, *sorted(home.rglob("*")))):
        is_key = path.parent == home.resolve() and path.name.startswith(_KEY_FILES)
        if path.is_file() and path not in scanned and not is_key:
            yield path
