"""As whom we ask: a credential put on a request at the last moment, and the tokens that logins yielded."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timedelta
from threading import Lock

from catchment.model import Request, Token
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


class Logins:
    """The tokens that this process holds, by platform and credential."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], tuple[Token, datetime]] = {}
        self.one_at_a_time = Lock()
        """Held while logging in: threads that need the same token wait for it rather than log in each."""

    def token(self, platform: str, credential: str, now: datetime) -> Token | None:
        token, until = self._held.get((platform, credential), (None, now))
        return token if now < until else None

    def keep(self, platform: str, credential: str, token: Token, now: datetime) -> None:
        life = timedelta(seconds=token.lives_seconds * (1 - _RENEWED_EARLY))
        self._held[platform, credential] = token, now + life

    def forget(self, platform: str, credential: str) -> bool:
        """Give a token up that was refused; whether there was one."""
        return self._held.pop((platform, credential), None) is not None


def with_token(secret: Secret, token: Token) -> Secret:
    """What was needed to log in is not sent again; the token stands in for it."""
    return secret.plus(basic=None, headers={**secret.headers, **token.headers})
