"""Whether a secret stands anywhere in plain: in the database, in Redis, in logs, in files of settings, in what else
lies at home.

What we know is looked for everywhere: the vault is opened for that. What we do not know is looked for by its shape, but
only in our own writing: there nothing but its redacted form is accepted. In what others say it may stand at will:
somebody may well post a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from catchment.errors import VaultError
from catchment.model import Record
from catchment.redis_link import RedisLink
from catchment.settings import DEFINED, Settings
from catchment.settings.files import dotenv, toml
from catchment.store import Store
from catchment.store.sealed import SealedRow, SealedThings, tables
from catchment.vault.box import Box, Sealed
from catchment.vault.environment import Lent
from catchment.vault.searching import Finding, Findings, Search, Sought, sought
from catchment.vault.secret import Secret

TOML, DOTENV = "catchment.toml", ".env"
_NOT_SEARCHED = frozenset(("session-key",))
"""It is a secret itself, and lies where it must."""
_BATCH = 100


class Audit(Record, frozen=True):
    """What came of looking everywhere."""

    findings: tuple[Finding, ...]
    secrets: int
    """How many known ones were looked for."""
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
    told: Callable[[int, str], None] = lambda count, where: None,
) -> Audit:
    """Look everywhere: in the database, in Redis where there is one, in all that lies at home, in the files of settings
    of this folder and of home, and in these logs."""
    findings = Findings()
    wanted = [*_sealed_secrets(store.sealed, Box(settings.master_key), findings), *_of_settings(settings, lent)]
    search = Search(wanted, findings)
    search.database(store.auditing, told)
    if redis is not None:
        told(search.rows, "Redis")
        search.redis(redis)
    written = _settings_files(settings, folder)
    for path, given in written.items():
        search.settings(str(path), _harmless(given, settings), _is_ours)
    for path in _at_home(settings.home, store.database.file, written):
        told(search.rows, str(path))
        (search.log if ".log" in path.suffixes else search.file)(path)
    for path in logs:
        search.log(path)
    return Audit(tuple(findings.all()), search.secrets, search.rows, search.files, search.bytes)


# ── what is looked for ────────────────────────────────────────────────────────────────────────────────────────────


def _sealed_secrets(things: SealedThings, box: Box, findings: Findings) -> Iterator[Sought]:
    """All that is sealed, opened. What does not open cannot be looked for, and that is a finding, too."""
    for table in tables():
        after = 0
        while rows := things.others(table, "", after, _BATCH):
            after = rows[-1].id
            for row in rows:
                try:
                    text = box.open(Sealed(row.key_id, row.sealed.decode()))
                except VaultError as error:
                    what = f"it cannot be looked for: {error}"
                    findings.add("the vault", what, f"{row.name} ({table})")
                else:
                    yield from sought(f"the secret of {row.name!r} ({table})", _values(row, text))


def _values(row: SealedRow, text: str) -> tuple[str, ...]:
    return Secret.from_json(text).values() if row.table == "credentials" else tuple(_leaves(msgspec.json.decode(text)))


def _leaves(value: Any) -> Iterator[str]:
    """Every text within."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (leaf for one in value.values() for leaf in _leaves(one))


def _of_settings(settings: Settings, lent: Iterable[Lent]) -> Iterator[Sought]:
    for one in lent:
        yield from sought(f"the secret of {one.name!r}", one.secret.values())
    yield from sought("CATCHMENT_API_KEY", [settings.api_key or ""])
    yield from sought("COOKIE_MASTER_KEY", (settings.master_key or "").split(","))
    for name, address in (
        ("CATCHMENT_DATABASE_URL", settings.database_url),
        ("CATCHMENT_REDIS_URL", settings.redis_url),
        ("CATCHMENT_PROXY", settings.proxy),
    ):
        yield from sought(f"the password of {name}", [unquote(urlsplit(address or "").password or "")])


# ── and where ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _settings_files(settings: Settings, folder: Path) -> dict[Path, dict[str, str]]:
    """The files that settings may stand in, and what does."""
    tomls = {path.resolve(): path for path in (folder / TOML, settings.home / TOML)}
    found = {path: toml(path) for path in tomls.values()} | {folder / DOTENV: dotenv(folder / DOTENV)[0]}
    return {path: given for path, given in found.items() if path.exists()}


def _harmless(given: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Without the settings that are secrets, or may hold one: there they belong."""
    return {
        name: value
        for name, value in given.items()
        if name not in settings.declared and not any(one.owns(name) and one.may_hold_secret for one in DEFINED.values())
    }


def _is_ours(name: str) -> bool:
    return any(one.owns(name) for one in DEFINED.values())


def _at_home(home: Path, database: Path | None, written: Mapping[Path, object]) -> Iterator[Path]:
    """All files at home but those that hold a secret rightly; and the database, wherever it is."""
    beside = [] if database is None else [database, database.with_name(f"{database.name}-wal")]
    known = {path.resolve() for path in written}
    for path in dict.fromkeys(path.resolve() for path in (*beside, *sorted(home.rglob("*")))):
        if path.is_file() and path not in known and path.name not in _NOT_SEARCHED:
            yield path
