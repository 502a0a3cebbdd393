"""Who may come in: programs by a key, browsers by a link that is printed at start and a signed cookie after it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from catchment import logs
from catchment.store.credentials import ApiKeys

SESSION_SECONDS = 30 * 86_400


class Keys:
    """The keys of the API: those in the database, hashed, and one that may be given from outside, kept nowhere."""

    def __init__(self, stored: ApiKeys, outside: str | None) -> None:
        self._stored, self._outside = stored, outside

    def is_valid(self, given: bytes) -> bool:
        if self._outside is not None and hmac.compare_digest(given, self._outside.encode()):
            return True
        # Stored keys are found by their hash: how long that takes tells nothing about them.
        return self._stored.is_known(given.decode("utf-8", "replace"))

    def first(self, now: datetime) -> str | None:
        """The first key, made now; None if there is one already. It is shown once and cannot be read back."""
        if self._outside is not None or not self._stored.is_empty():
            return None
        key = f"catchment_{secrets.token_urlsafe(32)}"
        # Named by the moment: of two processes that start together each makes one, and both keys hold.
        self._stored.add(f"made at the first start, {now.isoformat()}", key, now)
        logs.know_secret(key)
        return key


class Sessions:
    """Browsers that came by the link. The link changes with every start; who is in stays in until the cookie ends."""

    def __init__(self, signing_key: bytes, seconds: Callable[[], float] = time.time) -> None:
        self._key, self._seconds = signing_key, seconds
        self.token = secrets.token_urlsafe(24)
        # Cookies do not tell ports apart: two deployments on one machine must not log each other out.
        self.cookie_name = f"catchment_{hashlib.sha256(signing_key).hexdigest()[:8]}"
        logs.know_secret(self.token)

    def admits(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def new_cookie(self) -> str:
        ends = str(int(self._seconds()) + SESSION_SECONDS)
        return f"{ends}.{self._signature(ends)}"

    def is_valid(self, cookie: str | None) -> bool:
        ends, _, signature = (cookie or "").partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signature(ends).encode())
        return is_ours and int(ends) > self._seconds()

    def token_of(self, cookie: str) -> str:
        """What a page gives to its reader, and every change must bring back: nobody else's page can know it."""
        return self._signature(f"change {cookie}")

    def is_token_of(self, cookie: str, token: str) -> bool:
        return hmac.compare_digest(self.token_of(cookie).encode(), token.encode())

    def seal(self, address: str) -> str:
        """Opens one address of a list to whoever has it, and nothing else."""
        return self._signature(f"seal {address}")[:32]

    def is_sealed(self, address: str, seal: str) -> bool:
        return hmac.compare_digest(self.seal(address).encode(), seal.encode())

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def signing_key(home: Path) -> bytes:
    """The key that cookies of this home are signed with: made once, readable by its owner only."""
    file = home / "session-key"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written aside and linked into place: a process that starts at the same time finds all of it or nothing.
    own = file.with_name(f"session-key.{os.getpid()}")
    try:
        if not file.exists():
            own.touch(mode=0o600)
            own.write_bytes(secrets.token_bytes(32))
            os.link(own, file)
    except FileExistsError:
        pass
    finally:
        own.unlink(missing_ok=True)
    return file.read_bytes()
