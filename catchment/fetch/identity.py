"""As whom we ask: a credential put on a request at the last moment, and the tokens that logins yielded."""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from threading import Lock
from typing import Protocol

from catchment.errors import PlatformError
from catchment.fetch.wire import Came
from catchment.logs import HIDDEN, looks_random, spellings
from catchment.model import Request, Token
from catchment.vault.pool import Use
from catchment.vault.secret import Secret

_RENEWED_EARLY = 0.1
"""A token is given up when this share of its life is left: it must not end between our look and the server's."""


def dressed(request: Request, secret: Secret) -> Request:
    """The request with all that the credential holds. Platforms that sign bring a `dress` of their own instead."""
    if request.secret_header is not None:
        secret = _under(request.secret_header, secret)
    headers = {**request.headers, **secret.headers}
    if secret.basic is not None:
        headers["Authorization"] = f"Basic {b64encode(secret.basic.encode()).decode()}"
    dressed = request.plus(headers=headers, params={**request.params, **secret.query})
    return with_cookies(dressed, secret.cookies) if secret.cookies else dressed


def _under(header: str, secret: Secret) -> Secret:
    """The same secret in another header. A bare token is kept as a bearer's, a key with a colon in it as a password."""
    name, _, before = header.partition(":")
    bearer = secret.headers.get("Authorization", "").removeprefix("Bearer ")
    bare = secret.basic or bearer or next(iter(secret.headers.values()), "")
    return secret.plus(basic=None, headers={name.strip(): f"{before.strip()} {bare}".strip()} if bare else {})


def with_cookies(request: Request, cookies: str) -> Request:
    name = next((name for name in request.headers if name.lower() == "cookie"), "Cookie")
    already = request.headers.get(name)
    return request.plus(headers={**request.headers, name: f"{already}; {cookies}" if already else cookies})


def cookie_header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


_SURELY_OURS = 12
"""A secret of so many characters that looks like nothing else cannot stand in an answer by chance."""


def without_secrets(came: Came, secret: Secret, token: Token | None) -> Came:
    """What came, with our own secret hidden in it: some servers repeat it, and what they say is kept and shown."""
    of_token = [value.rpartition(" ")[2] for value in token.headers.values()] if token else []
    ours = [value for value in (*secret.values(), *of_token) if len(value) >= _SURELY_OURS and looks_random(value)]
    body, headers = came.body, came.headers
    # The longest first, so that a secret within another does not leave the rest of it standing.
    for one in sorted({way for value in ours for way in spellings(value)}, key=len, reverse=True):
        body = body.replace(one.encode(), HIDDEN.encode())
        headers = {name: told.replace(one, HIDDEN) for name, told in headers.items()}
    return Came(came.status, headers, body)


class Credentials(Protocol):
    """Where identities come from, and who is told what came of using one."""

    def take(self, platform: str, name: str | None = None, avoid: Collection[str] = ()) -> Use | None:
        """The credential of that name, or the best of the platform's pool; None: there is none to be had."""
        ...

    def succeeded(self, use: Use) -> None: ...

    def failed(self, use: Use, error: PlatformError) -> None:
        """It was refused, and that was its own fault."""
        ...


class _Held:
    """What one credential of a platform has yielded."""

    def __init__(self) -> None:
        self.one_at_a_time = Lock()
        self.token: Token | None = None
        self.secret: Secret | None = None
        self.until: datetime | None = None


class Logins:
    """The tokens that this process holds, by platform and credential. They are written down nowhere."""

    def __init__(self) -> None:
        self._held: defaultdict[tuple[str, str], _Held] = defaultdict(_Held)
        self._making = Lock()

    def one_at_a_time(self, platform: str, credential: str) -> Lock:
        """Held while logging in: threads that need the same token wait for it rather than log in each."""
        return self._of(platform, credential).one_at_a_time

    def token(self, platform: str, credential: str, secret: Secret, now: datetime) -> Token | None:
        """The one that this secret has yielded; another secret under the same name yields another."""
        held = self._of(platform, credential)
        is_good = held.until is not None and now < held.until and held.secret == secret
        return held.token if is_good else None

    def keep(self, platform: str, credential: str, secret: Secret, token: Token, now: datetime) -> None:
        held = self._of(platform, credential)
        held.token, held.secret = token, secret
        held.until = now + timedelta(seconds=token.lives_seconds * (1 - _RENEWED_EARLY))

    def forget(self, platform: str, credential: str, token: Token) -> None:
        """Give up a token that was refused; not one that has taken its place meanwhile."""
        held = self._of(platform, credential)
        with held.one_at_a_time:
            if held.token is token:
                held.token = held.until = None

    def _of(self, platform: str, credential: str) -> _Held:
        with self._making:
            return self._held[platform, credential]


def with_token(secret: Secret, token: Token) -> Secret:
    """What was needed to log in is not sent again; the token stands in for it."""
    return secret.plus(basic=None, headers={**secret.headers, **token.headers})
