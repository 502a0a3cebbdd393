"""Authentication: API keys for programs; sign-in links or keys, and then session cookies, for browsers."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TypeVar

from catchment import logs
from catchment.credentials.cipher import key_file
from catchment.model import Record
from catchment.store.access import ApiKeys, SignInLinks
from catchment.store.access import Sessions as StoredSessions

FREE_TRIES = 10
"""This many wrong attempts from an address cause no wait: people mistype."""
FREE_TRIES_OVERALL = 100
LONGEST_WAIT = 300.0
FORGOTTEN_AFTER = 900.0
TRUSTED_FOR = 86_400.0
REPORTED_EVERY = 60.0
_MOST_ADDRESSES = 10_000
Kept = TypeVar("Kept")


@dataclass
class _Tries:
    count: int = 0
    last_at: float = 0.0
    wait_until: float = 0.0

    def add(self, now: float, free: int, each: int = 1) -> None:
        """Count a wrong attempt: the wait doubles with every `each` attempts beyond the free ones."""
        if now - self.last_at > FORGOTTEN_AFTER:
            self.count = 0
        self.count, self.last_at = self.count + 1, now
        if self.count >= free:
            doublings = min(20, (self.count - free) // each)
            self.wait_until = now + min(LONGEST_WAIT, 2.0**doublings)


class Guesses:
    """The wrong keys and links of one process. Thread-safe."""

    def __init__(
        self,
        report: Callable[[str, int], None] = lambda address, count: None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`report` is called with the address of a wrong attempt and the number of recent ones, as soon as that address
        or all of them together have to wait; at most once a minute."""
        self._report, self._seconds = report, seconds
        self._by_address: dict[str, _Tries] = {}
        self._overall = _Tries()
        self._trusted: dict[str, float] = {}
        self._reported_at: float | None = None
        self._lock = Lock()

    def wait(self, address: str) -> float:
        """The seconds this address has to wait before its next attempt; 0 if none."""
        group, now = _group(address), self._seconds()
        with self._lock:
            tries = self._by_address.get(group)
            # The owner uses this machine, and addresses that have signed in recently.
            trusted_since = self._trusted.get(group, -math.inf)
            is_trusted = is_loopback(group) or now - trusted_since < TRUSTED_FOR
            until = max(tries.wait_until if tries else 0.0, 0.0 if is_trusted else self._overall.wait_until)
            return max(0.0, until - now)

    def succeeded(self, address: str) -> None:
        group = _group(address)
        with self._lock:
            self._by_address.pop(group, None)
            _remember(self._trusted, group, self._seconds())

    def failed(self, address: str) -> float:
        """Count a wrong attempt; returns the seconds to wait before the next, 0 if there is no wait yet."""
        group, now = _group(address), self._seconds()
        with self._lock:
            tries = self._by_address.pop(group, None) or _Tries()
            tries.add(now, FREE_TRIES)
            # In order of the last attempt, so that the oldest are dropped first.
            _remember(self._by_address, group, tries)
            self._overall.add(now, FREE_TRIES_OVERALL, each=10)
            is_news = self._reported_at is None or now - self._reported_at >= REPORTED_EVERY
            # Many addresses with a few attempts each are an attack, too.
            must_report = max(tries.wait_until, self._overall.wait_until) > now and is_news
            if must_report:
                self._reported_at = now
            count = max(tries.count, self._overall.count)
        if must_report:
            self._report(address, count)
        return self.wait(address)


def _remember(by_address: dict[str, Kept], address: str, value: Kept) -> None:
    """Store it as the newest; beyond the maximum number of addresses, the oldest is dropped."""
    by_address.pop(address, None)
    by_address[address] = value
    if len(by_address) > _MOST_ADDRESSES:
        del by_address[next(iter(by_address))]


def _group(address: str) -> str:
    """The address; for IPv6 its network, since a client with one address there has all of them."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        if not parsed.is_loopback:
            return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
    return str(parsed)


def is_loopback(host: str) -> bool:
    """Whether an address or a host name means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


SESSION_SECONDS = 30 * 86_400
LINK_MINUTES = 15
_LONGEST_BROWSER = 200
_STRONG = 32, 10
"""Characters of a random key, and how many of them differ: 32 hex digits have both."""


def reachable(host: str) -> str:
    """The host by which a browser on this machine reaches the server, also if it is bound to all addresses."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{address}]" if address.version == 6 else str(address)


def new_api_key() -> str:
    """A new random API key. It is shown once, and redacted from the log from here on."""
    key = f"catchment_{secrets.token_urlsafe(32)}"
    logs.know_secret(key)
    return key


def new_link(links: SignInLinks, now: datetime) -> str:
    """The token of a sign-in link, valid once within the next minutes."""
    token = secrets.token_urlsafe(24)
    logs.know_secret(token)
    links.add(token, now, now + timedelta(minutes=LINK_MINUTES))
    return token


class Checked(Record, frozen=True):
    """The result of checking a key or a link."""

    is_valid: bool
    wait_seconds: int = 0
    """Seconds to wait before the next attempt, after a wrong or unchecked one; 0 if there is no wait."""


class Keys:
    """The API keys: those in the database, hashed, and one that may come from the settings and is never stored."""

    def __init__(self, stored: ApiKeys, outside: str | None, now: Callable[[], datetime]) -> None:
        self._stored, self._outside, self._now = stored, outside, now

    @property
    def is_outside_strong(self) -> bool:
        """Whether the key from the settings is too long and random to be guessed."""
        return self._outside is not None and len(self._outside) >= _STRONG[0] and len(set(self._outside)) >= _STRONG[1]

    def is_outside(self, key: bytes) -> bool:
        """Whether it is the key from the settings."""
        return self._outside is not None and hmac.compare_digest(key, self._outside.encode())

    def is_stored(self, key: bytes) -> bool:
        """Whether it is one of the keys in the database. They are long, random and found by their hash, so timing
        reveals nothing."""
        return self._stored.is_known(key.decode("utf-8", "replace"), self._now())

    def first(self, now: datetime) -> str | None:
        """Create the first key; None if there is one already. It is shown once and cannot be read back."""
        if self._outside is not None or not self._stored.is_empty():
            return None
        key = new_api_key()
        # Names differ: if two processes start together, each creates a key, and both are valid.
        self._stored.add(f"first-{secrets.token_hex(3)}", key, now)
        return key


class BrowserSessions:
    """Signed-in browsers. The link printed at start changes with every start; sessions are in the database, so that
    they survive a restart, work in every process, and can be listed and ended."""

    def __init__(
        self, signing_key: bytes, stored: StoredSessions, links: SignInLinks, now: Callable[[], datetime]
    ) -> None:
        self._key, self._stored, self._links, self._now = signing_key, stored, links, now
        self.token = secrets.token_urlsafe(24)
        # Cookies are shared between ports: two deployments on one machine must not sign each other out.
        self.cookie_name = f"catchment_{hashlib.sha256(signing_key).hexdigest()[:8]}"
        logs.know_secret(self.token)

    def admits(self, token: str) -> bool:
        """Whether it is the token of a link: the one printed at start, or one made by `catchment login-link`."""
        return hmac.compare_digest(token.encode(), self.token.encode()) or self._links.use(token, self._now())

    def open(self, opened_by: str, browser: str) -> str:
        """Open a session; returns the value of its cookie."""
        token, now = secrets.token_urlsafe(32), self._now()
        shown = "".join(sign for sign in browser if sign.isprintable())[:_LONGEST_BROWSER]
        self._stored.open(token, now, now + timedelta(seconds=SESSION_SECONDS), opened_by, logs.redact(shown))
        return token

    def find(self, cookie: str | None) -> int | None:
        """The id of the session that a cookie belongs to; None if there is no valid one."""
        if not cookie:
            return None
        now = self._now()
        session = self._stored.find(cookie, now)
        if session is None:
            return None
        if session.is_stale:
            self._stored.touch(session.id, now)
        return session.id

    def token_of(self, cookie: str) -> str:
        """The CSRF token of a session's pages, which every change must send back: no other site can know it."""
        return self._signature(f"change {cookie}")

    def is_token_of(self, cookie: str, token: str) -> bool:
        return hmac.compare_digest(self.token_of(cookie).encode(), token.encode())

    def seal(self, address: str) -> str:
        """A signature that gives access to one list's URL and nothing else."""
        return self._signature(f"seal {address}")[:32]

    def is_sealed(self, address: str, seal: str) -> bool:
        return hmac.compare_digest(self.seal(address).encode(), seal.encode())

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


class Guard:
    """Checks keys and links, and rate-limits guessing."""

    def __init__(self, keys: Keys, sessions: BrowserSessions, guesses: Guesses) -> None:
        self._keys, self._sessions, self._guesses = keys, sessions, guesses

    def check_key(self, key: bytes, address: str) -> Checked:
        wait = 0.0 if self._keys.is_outside_strong else self._guesses.wait(address)
        return self._checked((not wait and self._keys.is_outside(key)) or self._keys.is_stored(key), address, wait)

    def check_link(self, token: str, address: str) -> Checked:
        return self._checked(self._sessions.admits(token), address)

    def _checked(self, is_valid: bool, address: str, wait: float = 0.0) -> Checked:
        if is_valid:
            self._guesses.succeeded(address)
            return Checked(is_valid=True)
        return Checked(is_valid=False, wait_seconds=math.ceil(wait or self._guesses.failed(address)))


def signing_key(home: Path) -> bytes:
    """The key that signs form tokens: created once, readable by its owner only."""
    return key_file(home / "session-key", lambda: secrets.token_bytes(32))
