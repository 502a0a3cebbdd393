"""Encryption of secrets: Fernet, which is AES-128 in CBC mode with an HMAC-SHA256 over all of it.

Its key is derived from the master key by scrypt. The master key is COOKIE_MASTER_KEY, or one that was made in the
data folder when it was first needed. The reasons are in docs/decisions/0002-vault.md.

A rotation re-encrypts everything with the first of the master keys, while other processes continue to use it. In small
batches, each of them atomic: after an interruption, the next rotation does the rest.
"""

from __future__ import annotations

import os
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from catchment.errors import VaultError
from catchment.logs import know_secret, logger
from catchment.messages import message
from catchment.model import Record
from catchment.settings import Settings
from catchment.store.credentials import EncryptedValues, SealedRow, tables

if TYPE_CHECKING:
    # Imported with the first secret: most commands read none.
    from cryptography.fernet import Fernet


def key_file(file: Path, make: Callable[[], bytes]) -> bytes:
    """Returns the file's content; if there is no file, creates it. Two processes that create it together get the same
    content."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written to a temporary file and linked: a process that starts at the same time finds all of it or nothing.
    own = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        if not file.exists():
            own.touch(mode=0o600)
            own.write_bytes(make())
            os.link(own, file)
    except FileExistsError:
        pass
    finally:
        own.unlink(missing_ok=True)
    return file.read_bytes()


def replace_key_file(file: Path, content: bytes) -> None:
    """Replaces the file's content atomically."""
    own = file.with_name(f"{file.name}.{os.getpid()}")
    own.unlink(missing_ok=True)
    own.touch(mode=0o600)
    own.write_bytes(content)
    os.replace(own, file)


log = logger(__name__)

SALT = b"catchment vault 1"
"""The same everywhere: a stored one would be one more thing whose loss loses every credential."""
SHORTEST = 8
MAKES_ONE = "`catchment credentials new-key` creates one; set it as COOKIE_MASTER_KEY"


class Sealed(Record, frozen=True):
    """An encrypted secret as stored in the database, and which key decrypts it."""

    key_id: str
    token: str


def new_key() -> str:
    """Returns a master key nobody can guess: 256 random bits."""
    return secrets.token_urlsafe(32)


class Cipher:
    """Encrypts with the first of the master keys, decrypts with any of them.

    It can be made without a key, so that programs that use no secret need none; encrypting and decrypting then raise
    an error that says what to do. Keys are derived when first needed: that takes a tenth of a second, by design.
    """

    def __init__(
        self, master_keys: str | None, file: Path | None = None, sealed_count: Callable[[], int] = lambda: 0
    ) -> None:
        """`file` may hold keys, too; given keys go before them. If there is no key when something is to be encrypted,
        one is made there, unless `sealed_count` says that something is encrypted already, with a key that is lost."""
        self._given, self.file, self._sealed_count = _split(master_keys or ""), file, sealed_count
        for master in self._given:
            know_secret(master)

    @property
    def key_id(self) -> str:
        """The id of the encrypting key."""
        return next(iter(self._keys()))

    def seal(self, text: str) -> Sealed:
        if self.file is not None and not self._masters():
            if (loss := self.loss) is not None:
                raise loss
            key_file(self.file, lambda: new_key().encode())
            log.warning("master key created; keep a copy, secrets cannot be decrypted without it", file=str(self.file))
        key_id, fernet = next(iter(self._keys().items()))
        return Sealed(key_id, fernet.encrypt(text.encode()).decode())

    def open(self, sealed: Sealed) -> str:
        from cryptography.fernet import InvalidToken

        keys = self._keys()
        if sealed.key_id not in keys:
            raise VaultError(
                "this secret was encrypted with key {key_id}; available keys: {keys}",
                "restart with that key added to COOKIE_MASTER_KEY (KEY,KEY), or enter the secret again",
                key_id=sealed.key_id,
                keys=", ".join(keys),
            )
        try:
            return keys[sealed.key_id].decrypt(sealed.token.encode()).decode()
        except InvalidToken:
            raise VaultError("the stored secret is damaged", "enter it again") from None

    def reseal(self, sealed: Sealed) -> Sealed:
        """Returns the same secret, encrypted with the first key. Once all are, the other keys can be deleted."""
        return sealed if sealed.key_id == self.key_id else self.seal(self.open(sealed))

    @property
    def is_given(self) -> bool:
        """Whether a master key was given from outside of the file."""
        return bool(self._given)

    def in_file(self) -> list[str]:
        """Returns the keys in the file, the encrypting one first. Read each time: another process may have made it."""
        if self.file is None or not self.file.exists():
            return []
        try:
            keys = _split(self.file.read_text())
        except (OSError, UnicodeDecodeError):
            raise VaultError(
                "the master key in {file} cannot be read",
                "check that the file is complete and belongs to this user",
                file=str(self.file),
            ) from None
        for master in keys:
            know_secret(master)
        return keys

    def key_ids_in_file(self) -> list[str]:
        return [_derived(master)[0] for master in self.in_file()]

    def _masters(self) -> list[str]:
        return list(dict.fromkeys((*self._given, *self.in_file())))

    @property
    def loss(self) -> VaultError | None:
        """Returns the error to report if there is no key although secrets are encrypted with one; None if there is a
        key, or no need of one yet."""
        count = 0 if self._masters() else self._sealed_count()
        if not count:
            return None
        helps = (
            "set COOKIE_MASTER_KEY to the previous key, or put {file} back into {folder}; if it is lost, create one "
            "with `catchment credentials new-key`, then enter the secrets again"
            if self.file
            else "set COOKIE_MASTER_KEY to the previous key; if it is lost, create one with `catchment credentials "
            "new-key`, then enter the secrets again"
        )
        return VaultError(
            "there is no master key, and {locked}",
            helps,
            locked=message("vault.locked", count=count),
            file=self.file.name if self.file else None,
            folder=str(self.file.parent) if self.file else None,
        )

    def _keys(self) -> dict[str, Fernet]:
        masters = self._masters()
        if not masters:
            raise self.loss or VaultError("there is no master key", MAKES_ONE)
        if any(len(master) < SHORTEST for master in masters):
            raise VaultError("the master key has fewer than {shortest} characters", MAKES_ONE, shortest=SHORTEST)
        return dict(_derived(master) for master in masters)


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]


@cache
def _derived(master: str) -> tuple[str, Fernet]:
    from cryptography.fernet import Fernet
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    key = Scrypt(salt=SALT, length=32, n=2**15, r=8, p=1).derive(master.encode())
    # Of the derived key, not of the master key: an id that leaks must not be a quick way to test guesses.
    return sha256(b"id " + key).hexdigest()[:8], Fernet(urlsafe_b64encode(key))


FILE = "master-key"


def cipher_of(settings: Settings, sealed: EncryptedValues) -> Cipher:
    """Returns the cipher of this deployment. A key from the environment encrypts; the file's key still decrypts what it
    encrypted."""
    return Cipher(settings.master_key, settings.home / FILE, lambda: sealed.count(""))


def begin_change(cipher: Cipher) -> None:
    """Puts a new key before the one in the file. A change that has already begun continues."""
    keys = cipher.in_file()
    if cipher.file is not None and len(keys) == 1:
        replace_key_file(cipher.file, ",".join((new_key(), *keys)).encode())


def end_change(cipher: Cipher) -> list[Path]:
    """Leaves only the first key in the file; returns the files that keep the others, for earlier backups."""
    keys, kept = cipher.in_file(), []
    if cipher.file is None or len(keys) < 2:
        return []
    for key, key_id in zip(keys[1:], cipher.key_ids_in_file()[1:], strict=True):
        kept.append(cipher.file.with_name(f"{FILE}.{key_id}"))
        replace_key_file(kept[-1], key.encode())
    replace_key_file(cipher.file, keys[0].encode())
    return kept


_BATCH = 50


class Rotated(Record, frozen=True):
    """The result of a rotation."""

    key_id: str
    """The id of the key that everything is encrypted with now, except what could not be decrypted."""
    resealed: int
    locked: tuple[str, ...] = ()
    """What no available key decrypts, and why, as text."""


def encrypted_rows(values: EncryptedValues, except_key_id: str = "") -> Iterator[list[SealedRow]]:
    """Yields all that is encrypted with another key, batch by batch."""
    for table in tables():
        after = 0
        while rows := values.others(table, except_key_id, after, _BATCH):
            after = rows[-1].id
            yield rows


def rotate(values: EncryptedValues, cipher: Cipher, progress: Callable[[int], None] = lambda count: None) -> Rotated:
    """Re-encrypts all that is encrypted with another key. A secret that was replaced meanwhile stays as it is."""
    key_id, count, locked = cipher.key_id, 0, []
    for rows in encrypted_rows(values, key_id):
        pairs = []
        for row in rows:
            try:
                sealed = cipher.reseal(Sealed(row.key_id, row.sealed.decode()))
            except VaultError as error:
                locked.append(f"{row.name} ({row.table}): {error.what}")
            else:
                pairs.append((row, row.replace(key_id=sealed.key_id, sealed=sealed.token.encode())))
        count += values.exchange(pairs)
        progress(count)
    return Rotated(key_id, count, tuple(locked))
