"""URLs of requests: parsing, base URLs set by the operator, and where redirects lead. Pure."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import quote, unquote_plus, urlencode, urljoin, urlsplit

import idna

from catchment.errors import AddressRefused
from catchment.lazy import pattern
from catchment.messages import message
from catchment.model import Record

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 8000
"""Characters of a URL: as much as servers accept. URLs are stored, so a stranger must not decide how long they get."""
_HOST = pattern(r"[A-Za-z0-9._-]+")
"""The characters of a host name or number. Others would be shown in an error, and might act there."""
_LEFT_AS_IS = "%/:?=&;,+@!$'()*~[]"
"""What quoting a foreign URL must not touch: its structure, and what is quoted already."""
_PLAIN = pattern(r"(https?)://([a-z0-9][a-z0-9.-]*(?::(?:[1-5][0-9]{4}|[1-9][0-9]{0,3}))?)(/[A-Za-z0-9/._~-]*)?")
"""Most URLs: nothing in them has to be corrected or refused. A tenth of the cost of taking them apart."""


class ParsedUrl(Record, frozen=True):
    """A parsed http URL."""

    url: str
    """In ASCII, without the fragment."""
    scheme: str
    host: str
    site: str
    """Host, and port if it is not the default one: what politeness, back-off and credentials are kept for. http and
    https of one name are the same site; another port is another."""

    def with_params(self, params: dict[str, str]) -> ParsedUrl:
        if not params:
            return self
        # Commas stay as they are: signatures of some platforms cover the exact text.
        url = f"{self.url}{'&' if '?' in self.url else '?'}{urlencode(params, safe=',')}"
        _check_length(url)
        return self.replace(url=url)


@lru_cache(maxsize=8192)
def parse_url(url: str) -> ParsedUrl:
    """Parses a URL. Refuses what is not plain http, and URLs with a login inside."""
    _check_length(url)
    if (plain := _PLAIN.fullmatch(url)) is not None:
        scheme, named, path = plain.groups()
        host, _, plain_port = named.partition(":")
        is_default = plain_port == str(_DEFAULT_PORTS[scheme])
        return ParsedUrl(f"{scheme}://{named}{path or '/'}", scheme, host, host if is_default else named)
    try:
        parts = urlsplit(url.strip())
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        if port == 0:
            raise ValueError("no port")
        if scheme not in _DEFAULT_PORTS:
            raise AddressRefused(
                "{scheme} is not supported",
                "only http and https are",
                scheme=f"{scheme[:20]}:" if scheme else message("an address without a scheme"),
            )
        if parts.username is not None or parts.password is not None:
            raise AddressRefused("the address contains a login", "store the login as a credential")
        if ":" in host:
            # Without the part behind a percent sign: a zone of this machine must not be sent to others.
            host = f"[{IPv6Address(host.partition('%')[0])}]"
        else:
            if not host.isascii():
                host = idna.encode(host, uts46=True, transitional=False).decode()
            if not _HOST.fullmatch(host):
                raise ValueError("no host")
    except (ValueError, idna.IDNAError):
        raise AddressRefused("the address is invalid", "check its spelling") from None
    path = quote(parts.path, safe=_LEFT_AS_IS) or "/"
    query = f"?{quote(parts.query, safe=_LEFT_AS_IS)}" if parts.query else ""
    named = host if port is None else f"{host}:{port}"
    return ParsedUrl(
        f"{scheme}://{named}{path}{query}", scheme, host, host if port == _DEFAULT_PORTS[scheme] else named
    )


def _check_length(url: str) -> None:
    if len(url) > _LONGEST:
        raise AddressRefused(
            "the address has {size:,} characters", "at most {longest:,} are allowed", size=len(url), longest=_LONGEST
        )


def may_share(name: str, other: str) -> bool:
    """Whether what was given for one URL may be sent to the other: the same host and port, and not less safe."""
    try:
        ours, theirs = parse_url(name), parse_url(other)
    except AddressRefused:
        return False
    return ours.site == theirs.site and (theirs.scheme == "https" or ours.scheme == "http")


def without_params(url: str, params: dict[str, str]) -> str:
    """Returns the URL without exactly these names and values: no other host may see what a credential added."""
    head, mark, query = url.partition("?")
    if not params or not mark:
        return url
    left = []
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if params.get(unquote_plus(name)) != unquote_plus(value):
            left.append(pair)
    return f"{head}?{'&'.join(left)}" if left else head


REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PERMANENT = frozenset((301, 308))
_KEEPS_METHOD = frozenset((307, 308))
_HARMLESS_HEADERS = frozenset(
    ("accept", "accept-language", "content-type", "if-modified-since", "if-none-match", "user-agent")
)
"""Headers that another host may see. Any other might be a secret under an unexpected name."""


class Step(Record, frozen=True):
    """One request on the way: the first, or one that a redirect asks for."""

    place: ParsedUrl
    sent_to: str
    """The URL itself, or the operator's replacement of it."""
    is_operators: bool
    method: str
    headers: dict[str, str]
    body: bytes | None
    is_permanent: bool = True
    """Every redirect up to here was a permanent one."""


class RedirectRules(Record, frozen=True):
    """What holds for all steps of one request."""

    base_url: str | None
    """The operator's; it replaces these hosts, or every host if there are none. The path is kept."""
    hosts: tuple[str, ...]
    secret_params: dict[str, str]
    """The parameters that a credential added to the query."""
    owner: ParsedUrl
    """Where the request was sent first: the credential was given for this host, and for no other."""

    def step(
        self, place: ParsedUrl, method: str, headers: dict[str, str], body: bytes | None, is_permanent: bool = True
    ) -> Step:
        sent_to, is_operators = place.url, False
        if self.base_url and (not self.hosts or place.host in self.hosts):
            origin_end = place.url.index("/", len(place.scheme) + 3)
            sent_to, is_operators = self.base_url.rstrip("/") + place.url[origin_end:], True
        return Step(place, sent_to, is_operators, method, headers, body, is_permanent)

    def target(self, place: ParsedUrl, location: str) -> ParsedUrl:
        """Returns where a redirect leads. One to the operator's base URL leads to the platform's own URL that it
        replaces."""
        location = location.strip()
        with suppress(UnicodeError):
            # Headers are decoded as Latin-1; many servers write UTF-8 into this one.
            location = location.encode("latin-1").decode("utf-8")
        try:
            target = urljoin(place.url, location)
        except ValueError:
            raise AddressRefused(
                "{host} redirects to an invalid address", "check it in a browser", host=place.host
            ) from None
        base = self.base_url and self.base_url.rstrip("/")
        if base and target.startswith(f"{base}/"):
            target = urljoin(place.url, target[len(base) :])
        parsed = parse_url(target)
        if not self.secret_params:
            return parsed
        # The credential's part of the query goes to its own host only, even if another server passes it on. The step
        # before is not a measure: behind A→B, a redirect from B to B stays on one host, and that host is a stranger.
        parsed = parsed.replace(url=without_params(parsed.url, self.secret_params))
        return parsed.with_params(self.secret_params) if parsed.site == self.owner.site else parsed


def next_step(step: Step, status: int, location: str, way: RedirectRules) -> Step:
    """Returns the step that a redirect asks for. Refuses those that no honest server needs."""
    target = way.target(step.place, location)
    is_same_site = target.site == step.place.site
    keeps_method = status in _KEEPS_METHOD or step.method == "HEAD" or (step.method == "GET" and step.body is None)
    following = way.step(
        target,
        step.method if keeps_method else "GET",
        {name: value for name, value in step.headers.items() if is_same_site or name.lower() in _HARMLESS_HEADERS},
        step.body if keeps_method else None,
        step.is_permanent and status in _PERMANENT,
    )
    if step.sent_to.startswith("https:") and not following.sent_to.startswith("https:"):
        raise AddressRefused(
            "{host} redirects from https to http", "only the site's operator can fix this", host=step.place.host
        )
    if following.body is not None and not is_same_site:
        raise AddressRefused(
            "{host} redirects a POST request to {target}",
            "check the source's address",
            host=step.place.host,
            target=target.host,
        )
    return following
