"""Where sources get their secrets from: credentials by name, sealed in the database or standing in the environment,
opened when they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from threading import Lock

from catchment.errors import InvalidInput, VaultError
from catchment.logs import know_secret
from catchment.store.credentials import AS_USUAL, Credentials, Terms
from catchment.vault.box import Box, Sealed
from catchment.vault.environment import ENDING, Lent
from catchment.vault.secret import Secret


class Safe:
    """Credentials of one deployment. What was opened once stays open for this process."""

    def __init__(self, credentials: Credentials, box: Box, lent: Iterable[Lent] = ()) -> None:
        self._credentials, self._box = credentials, box
        self.lent = {one.name: one for one in lent}
        """Those of this process's environment."""
        self._opened: dict[tuple[str, bytes], Secret] = {}
        self._lock = Lock()
        self._is_announced = False

    def add(
        self,
        platform: str,
        name: str,
        secret: Secret,
        now: datetime,
        *,
        replace: bool = False,
        terms: Terms = AS_USUAL,
    ) -> None:
        if not name.strip() or len(name) > 100 or not name.isprintable() or "/" in name:
            raise InvalidInput("a credential needs a name of at most 100 characters, without /", field="name")
        if name.endswith(ENDING):
            raise InvalidInput(
                f"names that end with {ENDING} are for what stands in the environment", "take another one", field="name"
            )
        if not secret.values():
            raise InvalidInput("there is no secret in what was given", "pipe it in: `… | catchment credentials add`")
        sealed = self._box.seal(secret.to_json())
        self._credentials.add(platform, name, sealed.key_id, sealed.token.encode(), now, replace=replace, terms=terms)

    def announce(self, now: datetime) -> None:
        """Note down which credentials stand in the environment, so that how they fare can be noted, too."""
        with self._lock:
            if not self._is_announced:
                for one in self.lent.values():
                    self._credentials.announce(one.platform, one.name, one.mark, now, Terms(is_shared=True))
                self._is_announced = True

    def secret(self, name: str) -> Secret:
        """The secret of that name. From here on no log line will show it."""
        key_id, token = self._credentials.sealed(name)
        if not token:
            return self._lent(name)
        with self._lock:
            # By its sealed form: a credential that was replaced meanwhile is opened anew.
            if (name, token) not in self._opened:
                self._opened[name, token] = _known(Secret.from_json(self._box.open(Sealed(key_id, token.decode()))))
            return self._opened[name, token]

    def _lent(self, name: str) -> Secret:
        if name not in self.lent:
            raise VaultError(
                f"the credential {name!r} stands in the environment of another process",
                "give this process the same settings, or remove the credential",
            )
        return _known(self.lent[name].secret)


def _known(secret: Secret) -> Secret:
    for value in secret.values():
        know_secret(value)
    return secret
