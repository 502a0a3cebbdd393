"""Authentication of requests: credentials added at the last moment, login tokens, and redaction of secrets in
answers."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from threading import Lock
from typing import Protocol

from catchment.credentials.pool import CookieHost, Use
from catchment.credentials.secret import Secret
from catchment.errors import AddressRefused, InvalidInput, PlatformError
from catchment.fetch.address_guard import is_own
from catchment.fetch.settings import FetchPlatform
from catchment.fetch.transport import RawResponse
from catchment.fetch.urls import ParsedUrl, parse_url, without_params
from catchment.logs import HIDDEN, looks_random, spellings
from catchment.messages import Message, message
from catchment.model import Request, Token

_RENEWED_EARLY = 0.1
"""A token is renewed when this share of its life is left: it must not expire between our check and the server's."""


def dressed(request: Request, secret: Secret) -> Request:
    """Returns the request with all that the credential holds. Platforms that sign have a `dress` of their own
    instead."""
    if request.secret_header is not None:
        secret = _under(request.secret_header, secret)
    headers = {**request.headers, **secret.headers}
    if secret.basic is not None:
        headers["Authorization"] = f"Basic {b64encode(secret.basic.encode()).decode()}"
    dressed = request.replace(headers=headers, params={**request.params, **secret.query})
    return with_cookies(dressed, secret.cookies) if secret.cookies else dressed


def _under(header: str, secret: Secret) -> Secret:
    """Returns the same secret in another header. A bare token is stored as a bearer token, a key with a colon in it as
    a password."""
    name, _, before = header.partition(":")
    bearer = secret.headers.get("Authorization", "").removeprefix("Bearer ")
    bare = secret.basic or bearer or next(iter(secret.headers.values()), "")
    return secret.replace(basic=None, headers={name.strip(): f"{before.strip()} {bare}".strip()} if bare else {})


def with_cookies(request: Request, cookies: str) -> Request:
    name = next((name for name in request.headers if name.lower() == "cookie"), "Cookie")
    already = request.headers.get(name)
    return request.replace(headers={**request.headers, name: f"{already}; {cookies}" if already else cookies})


def cookie_header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


_SURELY_OURS = 12
"""A secret of this many characters that looks like nothing else cannot be in an answer by chance."""
_SHORTEST = 3
"""Shorter ones are not redacted: they would be found everywhere."""


def without_secrets(
    response: RawResponse, secret: Secret, token: Token | None, secret_params: dict[str, str]
) -> RawResponse:
    """Returns the response with our own secret redacted: some servers repeat it, and answers are kept and shown."""
    of_token = [value.rpartition(" ")[2] for value in token.headers.values()] if token else []
    ours = {
        spelling for value in (*secret.values(), *of_token) for spelling in spellings(value) if len(value) >= _SHORTEST
    }
    body, headers = response.body, dict(response.headers)
    if "location" in headers:
        # The parameters we added are added again where they belong; redacted, they would be in the way there.
        headers["location"] = without_params(headers["location"], secret_params)
    # The longest first, so that a secret within another does not leave the rest of it behind.
    for our in sorted(ours, key=len, reverse=True):
        if our.encode() in body:
            body = _redacted(our, body)
        for name, text in headers.items():
            if our in text:
                redacted = _redacted(our, text.encode("utf-8", "surrogateescape"))
                headers[name] = redacted.decode("utf-8", "surrogateescape")
    return RawResponse(response.status, headers, body)


def _redacted(secret: str, text: bytes) -> bytes:
    """Redacts a secret of ours: a long one anywhere, a short one as a whole word, and an ordinary word or number only
    as a value: after a name and a sign, or after the user."""
    value = re.escape(secret.encode())
    if len(secret) >= _SURELY_OURS and looks_random(secret):
        pattern = rb"(?P<before>)" + value
    elif looks_random(secret) and not secret.isdigit():
        pattern = rb"(?<![A-Za-z0-9])(?P<before>)" + value + rb"(?![A-Za-z0-9])"
    else:
        pattern = rb"(?P<before>[=:]\s{0,2}\\?[\"']?)" + value + rb"(?![A-Za-z0-9])"
    return re.sub(pattern, rb"\g<before>" + HIDDEN.encode(), text)


class CredentialProvider(Protocol):
    """Provides credentials, and receives the results of using them."""

    def take(
        self, platform: str, name: str | None = None, avoid: Collection[str] = (), host: CookieHost | None = None
    ) -> Use | None:
        """Returns the credential of that name, or the best of the platform's pool; None if there is none. `host`: only
        one of this host."""
        ...

    def renewed(self, use: Use) -> Use:
        """Returns the use with the hosts that the credential is for now, which may not be those of its reservation."""
        ...

    def succeeded(self, use: Use) -> None: ...

    def failed(self, use: Use, error: PlatformError) -> None:
        """Records that the credential was refused through its own fault."""
        ...


class Login:
    """The token that a credential of a platform has yielded. It is stored nowhere else."""

    def __init__(self) -> None:
        self.one_at_a_time = Lock()
        """Held during a login: threads that need the same token wait for it rather than log in each."""
        self._token: Token | None = None
        self._secret: Secret | None = None
        self._until: datetime | None = None

    def token_of(self, secret: Secret, now: datetime) -> Token | None:
        """Returns the token that this secret has yielded; another secret under the same name yields another."""
        is_good = self._until is not None and now < self._until and self._secret == secret
        return self._token if is_good else None

    def keep(self, secret: Secret, token: Token, now: datetime) -> None:
        self._token, self._secret = token, secret
        self._until = now + timedelta(seconds=token.lives_seconds * (1 - _RENEWED_EARLY))

    def forget(self, token: Token) -> None:
        """Drops a token that was refused, but not one that has replaced it meanwhile."""
        with self.one_at_a_time:
            if self._token is token:
                self._token = self._until = None


class Logins:
    """The logins of this process, by platform and credential."""

    def __init__(self) -> None:
        self._logins: defaultdict[tuple[str, str], Login] = defaultdict(Login)
        self._making = Lock()

    def of(self, platform: str, credential: str) -> Login:
        with self._making:
            return self._logins[platform, credential]


class Bound(Protocol):
    """The part of a credential that decides where it may be sent."""

    @property
    def name(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...


def is_for(credential: Bound, platform: FetchPlatform, place: ParsedUrl) -> bool:
    """Whether the credential may be sent to that URL."""
    if credential.platform != platform.NAME:
        return False
    if platform.HOSTS:
        return place.host in hosts_of(credential, platform)
    # What was given for http may be sent by https, but not the other way round.
    return bound_host(place) in credential.hosts or f"http://{place.site}" in credential.hosts


def has_cookies_per_host(platform: FetchPlatform) -> bool:
    return bool(getattr(platform, "HAS_COOKIES_PER_HOST", False))


def hosts_of(credential: Bound, platform: FetchPlatform) -> tuple[str, ...]:
    """Returns the hosts that a credential is for, among those of a platform with hosts of its own."""
    if not has_cookies_per_host(platform):
        return platform.HOSTS
    return credential.hosts or platform.HOSTS[:1]


def bound_host(place: ParsedUrl) -> str:
    """Returns the host that a credential for this URL is bound to. http, which sends it in the clear, is part of it,
    except in our own network."""
    return f"http://{place.site}" if place.scheme == "http" and not is_own(place.host) else place.site


def mismatch(credential: Bound, platform: FetchPlatform, place: ParsedUrl | None) -> tuple[Message, Message]:
    """Returns the error text for a credential that may not: what it is for, and what would help."""
    name = credential.name
    if credential.platform != platform.NAME:
        return (
            message("credential.other", name=name, own=credential.platform, asked=platform.NAME),
            message("name one of {platform}: `catchment credentials add {platform} NAME`", platform=platform.NAME),
        )
    where = bound_host(place) if place else message("there")
    if platform.HOSTS:
        own_hosts = hosts_of(credential, platform)
        what = message("credential.other", name=name, own=", ".join(own_hosts), asked=where)
        is_other = own_hosts != platform.HOSTS and place is not None and place.host in platform.HOSTS
        if not is_other:
            return what, message("do not specify a credential here")
        return what, message(
            "add one with the cookies of that host: `catchment credentials add {platform} NAME --host {host}`",
            platform=platform.NAME,
            host=where,
        )
    given_for = ", ".join(credential.hosts) or message("no host yet")
    hosts = " ".join(f"--host {host}" for host in (*credential.hosts, where))
    return (
        message("credential.other", name=name, own=given_for, asked=where),
        message(
            "to let {host} have it, too: `catchment credentials change {name} {hosts}`",
            host=where,
            name=name,
            hosts=hosts,
        ),
    )


def host_of(text: str) -> str:
    """Returns the host that a person means by a host, a host with a port, or a URL; with its port where it is
    unusual, and with http:// where the URL has it."""
    try:
        return bound_host(parse_url(text if "://" in text else f"https://{text.strip()}"))
    except AddressRefused:
        raise InvalidInput(
            "this is not a host", "enter a host such as example.org or example.org:8443", "host"
        ) from None


def parsed_source_url(address: str) -> ParsedUrl | None:
    """Returns the parsed URL of a source; None if it is not a web URL, or is invalid."""
    try:
        return parse_url(address)
    except AddressRefused:
        return None
