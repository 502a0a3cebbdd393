"""Addresses: where a request goes, where a redirect leads, which host may see a credential. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import quote, unquote_plus, urlencode, urljoin, urlsplit

import idna

from catchment.errors import AddressRefused
from catchment.model import Record

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 8000
"""Characters of a URL: as much as servers take. Addresses are remembered, so a stranger must not decide how long."""
_HOST = re.compile(r"[A-Za-z0-9._-]+")
"""What a name or a number of a host consists of. Anything else would be shown in an error, and might act there."""
_LEFT_AS_IS = "%/:?=&;,+@!$'()*~[]"
"""What quoting a foreign URL must not touch: its structure, and what is quoted already."""


class Place(Record, frozen=True):
    """An http address, taken apart once."""

    url: str
    """In ASCII, without the fragment."""
    scheme: str
    host: str
    port: int

    @property
    def site(self) -> str:
        """Host and port: what politeness and back-off are kept for."""
        return self.host if self.port == _DEFAULT_PORTS[self.scheme] else f"{self.host}:{self.port}"

    def is_same_host(self, other: Place) -> bool:
        """Whether what one may see the other may. http and https of one name are the same; another port is not."""
        return self.site == other.site


class Route(Record, frozen=True):
    """Where a request is really sent: to the place itself, or to what the operator put in its stead."""

    url: str
    is_operators: bool = False


@lru_cache(maxsize=8192)
def placed(url: str) -> Place:
    """The place of a URL. Refuses what is not plain http, and addresses with a login inside."""
    if len(url) > _LONGEST:
        raise AddressRefused(f"the address has {len(url):,} characters", f"{_LONGEST:,} is the most")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
        if port == 0:
            raise ValueError("no port")
        if parts.scheme not in _DEFAULT_PORTS:
            raise AddressRefused(f"{parts.scheme[:20] or 'no scheme'}: is not http", "only http and https are followed")
        if parts.username is not None or parts.password is not None:
            raise AddressRefused("the address has a login in it", "store the login as a credential")
        host = _ascii_host(host)
    except (ValueError, idna.IDNAError):
        raise AddressRefused("the address makes no sense", "check how it is written") from None
    path = _quoted(parts.path) or "/"
    query = f"?{_quoted(parts.query)}" if parts.query else ""
    named = host if port is None else f"{host}:{port}"
    return Place(f"{parts.scheme}://{named}{path}{query}", parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme])


def may_share(one: str, other: str) -> bool:
    """Whether what was given for one address may be sent to the other: the same host and port, and not less safe."""
    try:
        ours, theirs = placed(one), placed(other)
    except AddressRefused:
        return False
    return ours.is_same_host(theirs) and (theirs.scheme == "https" or ours.scheme == "http")


def _ascii_host(host: str) -> str:
    if ":" in host:
        # Without what it may say behind a percent sign: a zone of this machine is nobody's business.
        return f"[{IPv6Address(host.partition('%')[0])}]"
    if not host.isascii():
        host = idna.encode(host, uts46=True, transitional=False).decode()
    if not _HOST.fullmatch(host):
        raise ValueError("no host")
    return host


def _quoted(text: str) -> str:
    return quote(text, safe=_LEFT_AS_IS)


def with_params(url: str, params: dict[str, str]) -> str:
    if not params:
        return url
    url = url.partition("#")[0]
    # Commas stay as they are: signatures of some platforms cover the exact text.
    return f"{url}{'&' if '?' in url else '?'}{urlencode(params, safe=',')}"


def without_params(url: str, params: dict[str, str]) -> str:
    """The URL without exactly these names and values: what a credential put there, nobody else may read."""
    head, mark, query = url.partition("?")
    if not params or not mark:
        return url
    left = [pair for pair in query.split("&") if not _is_among(pair, params)]
    return f"{head}?{'&'.join(left)}" if left else head


def _is_among(pair: str, params: dict[str, str]) -> bool:
    name, _, value = pair.partition("=")
    return params.get(unquote_plus(name)) == unquote_plus(value)


def routed(place: Place, base_url: str | None, hosts: tuple[str, ...]) -> Route:
    """Where to send it. An operator's base URL stands in for all hosts of a platform, or for every host if it has none
    of its own; the path is kept."""
    if not base_url or (hosts and place.host not in hosts):
        return Route(place.url)
    origin_end = place.url.index("/", len(place.scheme) + 3)
    return Route(base_url.rstrip("/") + place.url[origin_end:], is_operators=True)


def led_to(place: Place, location: str, base_url: str | None) -> Place:
    """Where a redirect leads. One to the operator's base URL leads to the platform's own address that it stands for."""
    try:
        target = urljoin(place.url, _from_wire(location))
    except ValueError:
        raise AddressRefused(f"{place.host} redirects to an address that makes no sense", "check it there") from None
    if base_url and target.startswith(base_url.rstrip("/") + "/"):
        target = urljoin(place.url, target[len(base_url.rstrip("/")) :])
    return placed(target)


def _from_wire(location: str) -> str:
    # Headers are read as Latin-1; many servers write UTF-8 into this one.
    try:
        return location.strip().encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location.strip()
