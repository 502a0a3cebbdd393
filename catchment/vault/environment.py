"""Credentials that stand in the environment: settings that a platform declares make one. Nothing of them is stored but
the name, how it fares, and a mark by which another secret in its place is noticed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import scrypt

from catchment.model import CredentialSettings, Platform, Record
from catchment.vault.secret import Secret

ENDING = "-environment"
_SALT = b"catchment environment 1"


class Lent(Record, frozen=True):
    """A credential of this process's environment."""

    platform: str
    name: str
    secret: Secret

    @property
    def mark(self) -> str:
        """Tells one secret from another. As slow to make as a key of the vault: it must be no way to test guesses."""
        return scrypt(self.secret.to_json().encode(), salt=_SALT, n=2**15, r=8, p=1, maxmem=2**26, dklen=4).hex()


def declared(platforms: Iterable[Platform]) -> dict[str, CredentialSettings]:
    """What each platform declares, by its name."""
    told = {platform.NAME: getattr(platform, "CREDENTIAL_SETTINGS", None) for platform in platforms}
    return {name: one for name, one in told.items() if one is not None}


def names(settings: Iterable[CredentialSettings]) -> list[str]:
    """The settings that credentials are made of."""
    return [field.name for one in settings for field in one.fields]


def lent(settings: Mapping[str, CredentialSettings], given: Mapping[str, str]) -> Iterator[Lent]:
    """The credentials that were given."""
    for platform, one in settings.items():
        values = {field.name: given.get(field.name, field.default) for field in one.fields}
        if given.keys() & values.keys() and None not in values.values():
            yield Lent(platform, f"{platform}{ENDING}", _secret(one, values))


def incomplete(settings: Mapping[str, CredentialSettings], given: Mapping[str, str]) -> Iterator[str]:
    """In words, which settings are of no use because another one is missing."""
    for one in settings.values():
        missing = [field.name for field in one.fields if field.default is None and field.name not in given]
        if missing and any(field.name in given for field in one.fields):
            useless = next(field.name for field in one.fields if field.name in given)
            yield f"{useless} is of no use without {', '.join(missing)}"


def _secret(one: CredentialSettings, values: Mapping[str, str]) -> Secret:
    return Secret(
        basic=one.basic.format_map(values) if one.basic is not None else None,
        headers={name: text.format_map(values) for name, text in one.headers.items()},
    )
