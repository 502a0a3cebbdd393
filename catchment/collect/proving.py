"""Whether a platform accepts a credential: asked for real, at once."""

from __future__ import annotations

from catchment.errors import PlatformError, SlowDown
from catchment.fetch import Fetch
from catchment.model import Credential, Identity, Platform, Record, Request


class Proof(Record, frozen=True):
    """What came of it."""

    platform: str
    name: str
    is_accepted: bool | None
    """None: there is nothing to test it with."""
    message: str


def prove(fetch: Fetch, platform: Platform, credential: Credential) -> Proof:
    """Ask the platform with this credential, and log in with it where that is needed.

    What comes counts for the credential, like the answer to any request. What is not about it is raised.
    """
    probe: Request | None = getattr(platform, "PROBE", None)
    if probe is None:
        helps = "collect a source that names it, and see"
        return _proof(credential, None, f"{platform.NAME} has nothing to test a credential with: {helps}")
    asked = probe.plus(identity=Identity.NEEDED, credential=credential.name, is_keepable=False)
    subject = f"credential {credential.name}"
    try:
        answer = fetch(asked, platform, subject=subject, attempts=[])
    except PlatformError as error:
        if not error.is_credentials or isinstance(error, SlowDown):
            raise
        return _proof(credential, False, str(error).removeprefix(f"{subject}: "))
    return _proof(credential, True, f"{platform.NAME} accepts it (HTTP {answer.status})")


def _proof(credential: Credential, is_accepted: bool | None, message: str) -> Proof:
    return Proof(credential.platform, credential.name, is_accepted, message)
