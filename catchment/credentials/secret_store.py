"""Secret store: credentials by name, encrypted in the database or taken from the environment, decrypted when needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from hashlib import scrypt
from threading import Lock

from catchment.credentials.cipher import Cipher, Sealed
from catchment.credentials.secret import Secret
from catchment.errors import InvalidInput, VaultError
from catchment.logs import know_secret
from catchment.model import CredentialSettings, Platform, Record
from catchment.store.credentials import AS_USUAL, Credentials, Decided, Terms, named

ENDING = "-environment"
_SALT = b"catchment environment 1"


class EnvironmentCredential(Record, frozen=True):
    """A credential of this process's environment."""

    platform: str
    name: str
    secret: Secret

    @property
    def mark(self) -> str:
        """Distinguishes one secret from another."""
        return _derived(self.secret.to_json())


@cache
def _derived(secret: str) -> str:
    """Deliberately slow, so that the mark cannot be used to test guesses."""
    return scrypt(secret.encode(), salt=_SALT, n=2**15, r=8, p=1, maxmem=2**26, dklen=4).hex()


def declared(platforms: Iterable[Platform]) -> dict[str, CredentialSettings]:
    """Returns what each platform declares, by its name."""
    by_platform = {platform.NAME: getattr(platform, "CREDENTIAL_SETTINGS", None) for platform in platforms}
    return {name: settings for name, settings in by_platform.items() if settings is not None}


def names(settings: Iterable[CredentialSettings]) -> list[str]:
    """Returns the names of the settings that credentials are made of."""
    return [field.name for setting in settings for field in setting.fields]


def lent(settings: Mapping[str, CredentialSettings], variables: Mapping[str, str]) -> Iterator[EnvironmentCredential]:
    """Yields the credentials that are set."""
    for platform, credential_settings in settings.items():
        values = {field.name: variables.get(field.name, field.default) for field in credential_settings.fields}
        if variables.keys() & values.keys() and None not in values.values():
            basic = credential_settings.basic and credential_settings.basic.format_map(values)
            headers = {name: text.format_map(values) for name, text in credential_settings.headers.items()}
            yield EnvironmentCredential(platform, f"{platform}{ENDING}", Secret(basic, headers))


def incomplete(settings: Mapping[str, CredentialSettings], variables: Mapping[str, str]) -> Iterator[str]:
    """Yields warnings about incomplete credential settings."""
    for setting in settings.values():
        missing = [field.name for field in setting.fields if field.default is None and field.name not in variables]
        if missing and any(field.name in variables for field in setting.fields):
            useless = next(field.name for field in setting.fields if field.name in variables)
            yield f"{useless} is of no use without {', '.join(missing)}"


class SecretStore:
    """The secrets of one deployment. A decrypted secret stays decrypted for this process."""

    def __init__(self, credentials: Credentials, cipher: Cipher, lent: Iterable[EnvironmentCredential] = ()) -> None:
        self._credentials, self._box = credentials, cipher
        self.lent = {lent_credential.name: lent_credential for lent_credential in lent}
        """The credentials of this process's environment."""
        self._opened: dict[tuple[str, bytes], Secret] = {}
        self._lock = Lock()
        self._is_announced = False

    def add(
        self, platform: str, name: str, secret: Secret, now: datetime, *, replace: bool = False, terms: Terms = AS_USUAL
    ) -> None:
        if not name.strip() or len(name) > 100 or not name.isprintable() or "/" in name:
            raise InvalidInput("a credential needs a name of at most 100 characters, without /", field="name")
        if name.endswith(ENDING):
            raise InvalidInput(
                "names that end with {ending} are reserved for credentials from the environment",
                "choose another name",
                field="name",
                ending=ENDING,
            )
        if not secret.values():
            raise InvalidInput("the input contains no secret", "pipe it in: `… | catchment credentials add`")
        sealed = self._box.seal(secret.to_json())
        self._credentials.add(platform, name, sealed.key_id, sealed.token.encode(), now, replace=replace, terms=terms)

    def bind(self, name: str, hosts: tuple[str, ...], now: datetime) -> None:
        """Limits the credential to these hosts."""
        self._credentials.of_name(
            name, now, lambda credentials: Decided(None, [named(credentials, name).replace(hosts=hosts)])
        )

    def announce(self, now: datetime) -> None:
        """Stores which credentials the environment has, so that their state can be stored, too."""
        with self._lock:
            if not self._is_announced:
                for lent in self.lent.values():
                    self._credentials.announce(lent.platform, lent.name, lent.mark, now, Terms(is_shared=True))
                self._is_announced = True

    def secret(self, name: str) -> Secret:
        """Returns the secret of that name. From here on no log line will show it."""
        key_id, token = self._credentials.sealed(name)
        with self._lock:
            # By its encrypted form: a credential that was replaced meanwhile is decrypted again.
            if (name, token) not in self._opened:
                if token:
                    secret = Secret.from_json(self._box.open(Sealed(key_id, token.decode())))
                elif name in self.lent:
                    secret = self.lent[name].secret
                else:
                    raise VaultError(
                        "the credential {name!r} comes from the environment of another process",
                        "start this process with the same settings, or remove the credential",
                        name=name,
                    )
                for value in secret.values():
                    know_secret(value)
                self._opened[name, token] = secret
            return self._opened[name, token]
