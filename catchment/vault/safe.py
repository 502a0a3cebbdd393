"""Where sources get their secrets from: credentials by name, sealed in the database, opened when they are needed."""

from __future__ import annotations

from datetime import datetime
from threading import Lock

from catchment.errors import InvalidInput
from catchment.logs import know_secret
from catchment.store.credentials import Credentials
from catchment.vault.box import Box, Sealed
from catchment.vault.secret import Secret


class Safe:
    """Credentials of one deployment. What was opened once stays open for this process."""

    def __init__(self, credentials: Credentials, box: Box) -> None:
        self._credentials, self._box = credentials, box
        self._opened: dict[tuple[str, bytes], Secret] = {}
        self._lock = Lock()

    def add(self, platform: str, name: str, secret: Secret, now: datetime, *, replace: bool = False) -> None:
        if not name.strip() or len(name) > 100:
            raise InvalidInput("a credential needs a name of at most 100 characters", field="name")
        if not secret.values():
            raise InvalidInput("there is no secret in what was given", "pipe it in: `… | catchment credentials add`")
        sealed = self._box.seal(secret.to_json())
        self._credentials.add(platform, name, sealed.key_id, sealed.token.encode(), now, replace=replace)

    def secret(self, name: str) -> Secret:
        """The secret of that name. From here on no log line will show it."""
        key_id, token = self._credentials.sealed(name)
        with self._lock:
            # By its sealed form: a credential that was replaced meanwhile is opened anew.
            if (name, token) not in self._opened:
                secret = Secret.from_json(self._box.open(Sealed(key_id, token.decode())))
                for value in secret.values():
                    know_secret(value)
                self._opened[name, token] = secret
            return self._opened[name, token]
