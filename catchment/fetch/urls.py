"""URLs of requests: parsing, base URLs set by the operator, and where redirects lead. Pure."""

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
"""Characters of a URL: as much as servers accept. URLs are stored, so a stranger must not decide how long they get."""
_HOST = re.compile(r"[A-Za-z0-9._-]+")
"""The characters of a host name or number. Others would be shown in an error, and might act there."""
_LEFT_AS_IS = "%/:?=&;,+@!$'()*~[]"
"""What quoting a foreign URL must not touch: its structure, and what is quoted already."""


class ParsedUrl(Record, frozen=True):
    """A parsed http URL."""

    url: str
    """In ASCII, without the fragment."""
    scheme: str
    host: str
    port: int

    @property
    def site(self) -> str:
        """Host and port: what politeness and back-off are kept for."""
        return self.host if self.port == _DEFAULT_PORTS[self.scheme] else f"{self.host}:{self.port}"

    def is_same_host(self, other: ParsedUrl) -> bool:
        """Whether what one may see the other may. http and https of one name are the same; another port is not."""
        return self.site == other.site


class Route(Record, frozen=True):
    """Where a request is really sent: to the URL itself, or to the operator's replacement."""

    url: str
    is_operators: bool = False


@lru_cache(maxsize=8192)
def placed(url: str) -> ParsedUrl:
    """Parses a URL. Refuses what is not plain http, and URLs with a login inside."""
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
    return ParsedUrl(f"{parts.scheme}://{named}{path}{query}", parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme])


def may_share(name: str, other: str) -> bool:
    """Whether what was given for one URL may be sent to the other: the same host and port, and not less safe."""
    try:
        ours, theirs = placed(name), placed(other)
    except AddressRefused:
        return False
    return ours.is_same_host(theirs) and (theirs.scheme == "https" or ours.scheme == "http")


def _ascii_host(host: str) -> str:
    if ":" in host:
        # Without the part behind a percent sign: a zone of this machine must not be sent to others.
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
    """Returns the URL without exactly these names and values: no other host may see what a credential added."""
    head, mark, query = url.partition("?")
    if not params or not mark:
        return url
    left = [pair for pair in query.split("&") if not _is_among(pair, params)]
    return f"{head}?{'&'.join(left)}" if left else head


def _is_among(pair: str, params: dict[str, str]) -> bool:
    name, _, value = pair.partition("=")
    return params.get(unquote_plus(name)) == unquote_plus(value)


def routed(place: ParsedUrl, base_url: str | None, hosts: tuple[str, ...]) -> Route:
    """Returns where to send a request. An operator's base URL replaces all hosts of a platform, or every host if it has
    none of its own; the path is kept."""
    if not base_url or (hosts and place.host not in hosts):
        return Route(place.url)
    origin_end = place.url.index("/", len(place.scheme) + 3)
    return Route(base_url.rstrip("/") + place.url[origin_end:], is_operators=True)


def led_to(place: ParsedUrl, location: str, base_url: str | None) -> ParsedUrl:
    """Returns where a redirect leads. One to the operator's base URL leads to the platform's own URL that it
    replaces."""
    try:
        target = urljoin(place.url, _from_wire(location))
    except ValueError:
        raise AddressRefused(f"{place.host} redirects to an address that makes no sense", "check it there") from None
    if base_url and target.startswith(base_url.rstrip("/") + "/"):
        target = urljoin(place.url, target[len(base_url.rstrip("/")) :])
    return placed(target)


def _from_wire(location: str) -> str:
    # Headers are decoded as Latin-1; many servers write UTF-8 into this one.
    try:
        return location.strip().encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location.strip()


REDIRECTS = frozenset((301, 302, 303, 307, 308))
PERMANENT = frozenset((301, 308))
_KEEPS_METHOD = frozenset((307, 308))
_HARMLESS_HEADERS = frozenset(
    ("accept", "accept-language", "content-type", "if-modified-since", "if-none-match", "user-agent")
)
"""Headers that another host may see. Any other might be a secret under a name that nobody thought of."""


class Way(Record, frozen=True):
    """What holds for all steps of one request."""

    base_url: str | None
    hosts: tuple[str, ...]
    secret_params: dict[str, str]
    """The parameters that a credential added to the query."""
    owner: ParsedUrl
    """Where the request was sent first: the credential was given for this host, and for no other."""

    def shown(self, place: ParsedUrl) -> str:
        """Returns the URL as others may see it."""
        return without_params(place.url, self.secret_params)


class Step(Record, frozen=True):
    """One request on the way: the first, or one that a redirect asks for."""

    place: ParsedUrl
    route: Route
    method: str
    headers: dict[str, str]
    body: bytes | None
    is_permanent: bool = True
    """Every redirect up to here was a permanent one."""


def next_step(step: Step, status: int, location: str, way: Way) -> Step:
    """Returns the step that a redirect asks for. Refuses those that no honest server needs."""
    target = led_to(step.place, location, way.base_url)
    is_same_host = target.is_same_host(step.place)
    # The credential's part of the query goes to its own host only, even if another server passes it on. The step before
    # is no measure: behind A→B, a redirect from B to B stays on one host, and that host is a stranger.
    shown = way.shown(target)
    target = placed(with_params(shown, way.secret_params) if target.is_same_host(way.owner) else shown)
    route = routed(target, way.base_url, way.hosts)
    if step.route.url.startswith("https:") and not route.url.startswith("https:"):
        raise AddressRefused(f"{step.place.host} redirects from https to http", "the site's operator must mend it")
    keeps_method = status in _KEEPS_METHOD or step.method == "HEAD" or (step.method == "GET" and step.body is None)
    if keeps_method and step.body is not None and not is_same_host:
        raise AddressRefused(f"{step.place.host} wants our form sent to {target.host}", "check the source's address")
    return Step(
        place=target,
        route=route,
        method=step.method if keeps_method else "GET",
        headers=step.headers if is_same_host else _harmless(step.headers),
        body=step.body if keeps_method else None,
        is_permanent=step.is_permanent and status in PERMANENT,
    )


def _harmless(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in _HARMLESS_HEADERS}
