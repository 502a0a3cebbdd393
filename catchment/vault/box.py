"""The box that secrets are locked in: Fernet, which is AES-128 in CBC mode with an HMAC-SHA256 over all of it.

Its key is derived from COOKIE_MASTER_KEY by scrypt. Why so: docs/decisions/0002-vault.md.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from functools import cache
from hashlib import sha256

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from catchment.errors import VaultError
from catchment.logs import know_secret
from catchment.model import Record

SALT = b"catchment vault 1"
"""The same everywhere: one that had to be kept would be one more thing whose loss loses every credential."""
SHORTEST = 8
MAKES_ONE = "`catchment credentials new-key` makes one; set it as COOKIE_MASTER_KEY"


class Sealed(Record, frozen=True):
    """A locked secret, fit for the database, and which key opens it."""

    key_id: str
    token: str


def new_key() -> str:
    """A master key nobody can guess: 256 random bits."""
    return secrets.token_urlsafe(32)


class Box:
    """Locks with the first of the master keys, opens with any of them.

    Without a key it can be made, so that those who touch no secret need none; locking and opening then say what to do.
    Keys are derived when first needed: that takes a tenth of a second, by design.
    """

    def __init__(self, master_keys: str | None) -> None:
        self._masters = [key.strip() for key in (master_keys or "").split(",") if key.strip()]
        for master in self._masters:
            know_secret(master)

    @property
    def key_id(self) -> str:
        """Of the key that locks."""
        return next(iter(self._keys()))

    def seal(self, text: str) -> Sealed:
        key_id, fernet = next(iter(self._keys().items()))
        return Sealed(key_id, fernet.encrypt(text.encode()).decode())

    def open(self, sealed: Sealed) -> str:
        keys = self._keys()
        if sealed.key_id not in keys:
            raise VaultError(
                f"this secret was locked with key {sealed.key_id}; given: {', '.join(keys)}",
                "start this process anew with that key in COOKIE_MASTER_KEY, too (KEY,KEY); or give the secret again",
            )
        try:
            return keys[sealed.key_id].decrypt(sealed.token.encode()).decode()
        except InvalidToken:
            raise VaultError("this secret was damaged where it is stored", "give it again") from None

    def reseal(self, sealed: Sealed) -> Sealed:
        """The same secret, locked with the first key. Once all are, the other keys can go."""
        return sealed if sealed.key_id == self.key_id else self.seal(self.open(sealed))

    def _keys(self) -> dict[str, Fernet]:
        if not self._masters:
            raise VaultError("there is no master key", MAKES_ONE)
        if any(len(master) < SHORTEST for master in self._masters):
            raise VaultError(f"a master key has fewer than {SHORTEST} characters", MAKES_ONE)
        return dict(_derived(master) for master in self._masters)


@cache
def _derived(master: str) -> tuple[str, Fernet]:
    key = Scrypt(salt=SALT, length=32, n=2**15, r=8, p=1).derive(master.encode())
    # Of the derived key, not of the master key: an id that leaks must not be a quick way to test guesses.
    return sha256(b"id " + key).hexdigest()[:8], Fernet(urlsafe_b64encode(key))
