"""Putting a credential on a request, at the last moment. Pure."""

from __future__ import annotations

from base64 import b64encode
from typing import Protocol

from catchment.model import Request


class Secret(Protocol):
    """What the vault hands out for a credential's name."""

    @property
    def basic(self) -> str | None:
        """user:password"""

    @property
    def headers(self) -> dict[str, str]: ...

    @property
    def query(self) -> dict[str, str]: ...

    @property
    def cookies(self) -> str | None: ...


def dressed(request: Request, secret: Secret) -> Request:
    """The request with all that the credential holds. Platforms that sign bring a `dress` of their own instead."""
    headers = {**request.headers, **secret.headers}
    if secret.basic is not None:
        headers["Authorization"] = f"Basic {b64encode(secret.basic.encode()).decode()}"
    dressed = request.plus(headers=headers, params={**request.params, **secret.query})
    return with_cookies(dressed, secret.cookies) if secret.cookies else dressed


def with_cookies(request: Request, cookies: str) -> Request:
    name = next((name for name in request.headers if name.lower() == "cookie"), "Cookie")
    already = request.headers.get(name)
    return request.plus(headers={**request.headers, name: f"{already}; {cookies}" if already else cookies})


def cookie_header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())
