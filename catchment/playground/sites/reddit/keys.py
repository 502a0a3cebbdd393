"""Authentication: the clients that Reddit knows, their tokens, and their rate limits.

A token itself contains its owner and expiry, with a signature, so that a restarted playground still knows it.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from urllib.parse import parse_qs

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.sites import Ask
from catchment.playground.world import World

CLIENTS = 100
TOLD_SECONDS = 3_600
SHORTEST_SECONDS, SHORT_SECONDS = 60, 1_800
"""Lifetimes of tokens that expire early."""
BY_SECRET, INSTALLED = "client_credentials", "https://oauth.reddit.com/grants/installed_client"
DEVICE = range(20, 31)
"""The allowed length of a device's name."""
WINDOW_SECONDS = 600
A_CLIENTS, A_STRANGERS, FOR_TOKENS = 600, 100, 300
"""Requests in a window: with a token, without, and for tokens."""
SEAL = 16


def client(number: int = 0) -> tuple[str, str]:
    """A client that Reddit knows: its id and its secret."""
    return f"playground-{number:02}", "pgs-" + sha256(f"secret {number}".encode()).hexdigest()[:24]


def installed(number: int = 0) -> str:
    """One that runs on people's devices, and so has no secret."""
    return f"playground-app-{number:02}"


SECRETS = dict(map(client, range(CLIENTS))) | dict.fromkeys(map(installed, range(CLIENTS)), "")


class Rate(Record, frozen=True):
    """How much of a window is used up."""

    used: int
    limit: int
    resets_in: int

    @property
    def is_exceeded(self) -> bool:
        return self.used > self.limit

    def headers(self, is_exact: bool = True) -> dict[str, str]:
        """Of the two counters one reports decimals."""
        left = max(0, self.limit - self.used)
        return {
            "x-ratelimit-used": str(self.used),
            "x-ratelimit-remaining": str(left) if is_exact else f"{left}.0",
            "x-ratelimit-reset": str(self.resets_in),
        }


class Counter:
    """Counts the requests of each client, from zero in every window."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used: dict[str | None, tuple[int, int]] = {}

    def add(self, who: str | None, at: datetime) -> Rate:
        window, passed = divmod(int(at.timestamp()), WINDOW_SECONDS)
        known, used = self._used.get(who, (window, 0))
        self._used[who] = window, used + 1 if known == window else 1
        return Rate(self._used[who][1], self._limit, WINDOW_SECONDS - passed)


class Login(Record, frozen=True):
    """The result of requesting a token: a token or an error; the latter mostly with status 200."""

    token: str | None = None
    error: str = ""
    status: int = 200


def login(world: World, ask: Ask) -> Login:
    id, secret = basic(ask.headers)
    if id not in SECRETS or SECRETS[id] != secret:
        return Login(error="Unauthorized", status=401)
    form = {name: values[0] for name, values in parse_qs(ask.body.decode("latin-1")).items()}
    grant = form.get("grant_type")
    if grant == INSTALLED:
        is_named = len(form.get("device_id", "")) in DEVICE
        return Login(_token(world, id, ask.at)) if is_named else Login(error="invalid_request")
    if grant == BY_SECRET:
        return Login(_token(world, id, ask.at)) if secret else Login(error="unauthorized_client")
    return Login(error="unauthorized_client" if grant == "password" else "unsupported_grant_type")


def basic(headers: Mapping[str, str]) -> tuple[str, str]:
    sort, _, encoded = headers.get("authorization", "").partition(" ")
    if sort.lower() != "basic":
        return "", ""
    try:
        id, _, secret = b64decode(encoded).decode().partition(":")
    except ValueError:
        return "", ""
    return id, secret


def holder(world: World, headers: Mapping[str, str]) -> tuple[str, datetime] | None:
    """The owner of a request's token, and its expiry; None if it has no token issued by Reddit."""
    sort, _, token = headers.get("authorization", "").partition(" ")
    try:
        decoded = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        id, until, seal = decoded.split("|")
        if sort.lower() != "bearer" or seal != _seal(world, id, until):
            return None
        return id, datetime.fromisoformat(until)
    except ValueError:
        return None


def _token(world: World, id: str, at: datetime) -> str:
    chance = chance_of(world.seed, "token", id, at)
    is_early = chance.random() < world.habits.expired_early
    lives = chance.randint(SHORTEST_SECONDS, SHORT_SECONDS) if is_early else TOLD_SECONDS
    until = datetime.fromtimestamp(int(at.timestamp()) + lives, at.tzinfo).isoformat()
    return urlsafe_b64encode(f"{id}|{until}|{_seal(world, id, until)}".encode()).decode().rstrip("=")


def _seal(world: World, id: str, until: str) -> str:
    return sha256(f"{world.seed} {id} {until}".encode()).hexdigest()[:SEAL]
