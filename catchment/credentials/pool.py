"""Credential pool: chooses the credential of each request, and records what its answer means for the credential.

Choosing is one short transaction that locks the platform's credentials, so that several processes share the work
rather than all take the same one. It reserves a few uses at once (1, 2, 4 … while they are used up), so that it
costs a transaction for each request only where requests are rare. Unused ones are given back. A success is written
only where it changes something, an error always.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple

from catchment.clock import Clock
from catchment.credentials import lifecycle
from catchment.credentials.manager import CredentialManager
from catchment.credentials.secret import Secret
from catchment.credentials.secret_store import SecretStore
from catchment.errors import CredentialsExhausted, NotFound, OutOfCredits, PlatformError, VaultError
from catchment.logs import redact
from catchment.model import Credential, Record
from catchment.store.credentials import Decided, named

MOST_AT_ONCE = 16
HELD = timedelta(seconds=10)
"""How long reserved uses are valid: a credential that is paused or in cooldown is soon unused in all processes."""


class Use(Record, frozen=True):
    """A credential taken for one request."""

    name: str
    secret: Secret
    taken_at: datetime
    """When it was known to be usable: later changes of its state are not this request's fault."""
    platform: str
    """The platform that it was given for."""
    hosts: tuple[str, ...] = ()
    """Where sources have their own hosts, or cookies belong to one host: those that it was given for."""
    is_pooled: bool = False
    """Chosen by the pool; not named by the source."""
    is_success_news: bool = False


class CookieHost(NamedTuple):
    """The host of a request to a platform whose hosts accept only the credentials that they have issued themselves."""

    name: str
    is_first: bool
    """Credentials without a host are for it."""

    def accepts(self, hosts: Collection[str]) -> bool:
        return self.name in hosts or (self.is_first and not hosts)


class _Block:
    """Uses of one credential that are reserved for this process."""

    def __init__(self, use: Use, size: int) -> None:
        self.use, self.size, self.left = use, size, size

    def is_alive(self, now: datetime) -> bool:
        # A clock that was set back ends it as well: its real age can no longer be known.
        return self.left > 0 and self.use.taken_at <= now <= self.use.taken_at + HELD

    def next_size(self) -> int:
        return min(MOST_AT_ONCE, max(1, 2 * (self.size - self.left)))


_Key = tuple[str, str | None, CookieHost | None]
"""A platform, the name that a source gives (None: whichever is best), and the host, where credentials depend on it."""


class CredentialPool:
    """The credentials of a deployment for the requests of one process. Thread-safe."""

    def __init__(self, keeper: CredentialManager, safe: SecretStore, clock: Clock) -> None:
        self._keeper, self._safe, self._clock = keeper, safe, clock
        self._blocks: dict[_Key, _Block] = {}
        self._nobody_until: dict[_Key, datetime] = {}
        """Until when an empty pool is not queried again by requests that go without a credential."""
        # Held while choosing, too: threads that find nothing reserved wait for one block rather than take one each.
        self._lock = Lock()

    def take(
        self, platform: str, name: str | None = None, avoid: Collection[str] = (), host: CookieHost | None = None
    ) -> Use | None:
        """Returns a credential for one request: the one of that name, whatever its state, or the best of the pool that
        is for the host.

        Returns None if the pool has none at all, or none but those to avoid. Raises CredentialsExhausted where there
        are some and none is usable; and where the named one must not be used at all: paused by a person, expired, at
        its limit, or of an account that has nothing left to spend.
        """
        key, now = (platform, name, host), self._clock.now()
        with self._lock:
            until = self._nobody_until.get(key)
            if until is not None and now <= until <= now + HELD:
                return None
            block = self._blocks.get(key)
            if block is None or not block.is_alive(now) or block.use.name in avoid:
                block = self._next_block(key, avoid, now)
            if block is None:
                if not avoid:
                    self._nobody_until[key] = now + HELD
                return None
            block.left -= 1
            # A source that names a credential uses it during a cooldown, too, on purpose.
            return block.use if name is None else block.use.replace(taken_at=now)

    def renewed(self, use: Use) -> Use:
        """Returns the use with the hosts that the credential is for now: it may have been given for others since its
        uses were reserved."""
        with suppress(NotFound):
            hosts = self._keeper.credentials.get(use.name).hosts
            with self._lock:
                for block in self._blocks.values():
                    if block.use.name == use.name:
                        block.use = block.use.replace(hosts=hosts)
            return use.replace(hosts=hosts)
        return use

    def succeeded(self, use: Use) -> None:
        if not use.is_success_news:
            return
        with suppress(NotFound):
            self._keeper.change(use.name, lambda credential, now: lifecycle.succeeded(credential, use.taken_at, now))
        with self._lock:
            for block in self._blocks.values():
                if block.use.name == use.name:
                    block.use = block.use.replace(is_success_news=False)

    def failed(self, use: Use, error: PlatformError) -> None:
        """Records that the request was refused, and the credential is to blame."""
        rules, words = self._keeper.rules, redact(error.what)

        def after(credential: Credential, now: datetime) -> Credential:
            if isinstance(error, OutOfCredits):
                return lifecycle.used_up(credential, error.retry_at or now + rules.cooling, now, words)
            return lifecycle.failed(credential, rules, use.taken_at, now, words)

        # For one that was removed meanwhile, there is nothing to write.
        with suppress(NotFound):
            self._keeper.change(use.name, after)
        with self._lock:
            # Its new state must be read before it is used again.
            self._let_go([key for key, block in self._blocks.items() if block.use.name == use.name])

    def close(self) -> None:
        """Gives back reserved uses that were not made."""
        with self._lock:
            self._let_go([*self._blocks])

    def _next_block(self, key: _Key, avoid: Collection[str], now: datetime) -> _Block | None:
        name = key[1]
        self._safe.announce(now)
        size = self._blocks[key].next_size() if key in self._blocks else 1
        self._let_go([key])
        locked: VaultError | None = None
        while (choice := self._chosen(key, avoid, size, now)) is not None:
            credential, count = choice
            try:
                secret = self._safe.secret(credential.name)
            except VaultError as error:
                # This process lacks its key: it may still use those that it can decrypt.
                self._give_back(credential.name, count, now)
                if name is not None:
                    raise
                locked, avoid = error, {*avoid, credential.name}
                continue
            is_news = credential.errors_in_a_row > 0 or credential.state != lifecycle.ACTIVE
            use = Use(
                credential.name,
                secret,
                now,
                credential.platform,
                credential.hosts,
                name is None,
                is_success_news=is_news,
            )
            self._blocks[key] = _Block(use, count)
            return self._blocks[key]
        if locked is not None:
            raise locked
        return None

    def _let_go(self, keys: Sequence[_Key]) -> None:
        for key in keys:
            block = self._blocks.pop(key, None)
            if block is not None and block.left:
                self._give_back(block.use.name, block.left, block.use.taken_at)

    def _give_back(self, name: str, count: int, taken_at: datetime) -> None:
        with suppress(NotFound):
            self._keeper.change(name, lambda credential, now: lifecycle.given_back(credential, count, taken_at))

    def _chosen(self, key: _Key, avoid: Collection[str], size: int, now: datetime) -> tuple[Credential, int] | None:
        """Returns the credential to use, and how many uses of it are reserved."""
        keeper, (platform, name, host) = self._keeper, key

        def decide(
            credentials: Sequence[Credential],
        ) -> Decided[tuple[Credential, int] | CredentialsExhausted | None]:
            settled = [lifecycle.after_elapsed_time(credential, keeper.rules, now) for credential in credentials]
            if name is None:
                pool = [
                    credential for credential in keeper.pool(settled) if host is None or host.accepts(credential.hosts)
                ]
                credential = lifecycle.best(pool, now, avoid)
                if credential is None:
                    if not pool or lifecycle.best(pool, now) is not None:
                        return Decided(None, settled)
                    what, helps = lifecycle.exhausted(platform, pool, now), lifecycle.until(pool, now)
                    error = CredentialsExhausted(what, helps, retry_at=lifecycle.soonest(pool, now))
                    return Decided(error, settled, keeper.alarms(platform, settled, now))
            else:
                credential = named(settled, name)
                hindered = lifecycle.hindrance_of_named(credential, now)
                if hindered is not None:
                    raise CredentialsExhausted(
                        "the credential {name!r} is {state}",
                        "`catchment credentials list` shows its state",
                        retry_at=lifecycle.usable_from(credential, now),
                        name=name,
                        state=hindered,
                    )
                settled = [credential]
            left = lifecycle.left_today(credential, now)
            count = 1 if credential.state == lifecycle.PROBATION else size if left is None else min(size, left)
            taken = lifecycle.used(lifecycle.on_trial(credential, now), count, now)
            return Decided((credential, count), [*settled, taken])

        credentials = keeper.credentials
        chosen = (
            credentials.of_platform(platform, now, decide) if name is None else credentials.of_name(name, now, decide)
        )
        if isinstance(chosen, CredentialsExhausted):
            # Raised only now, so that the states found on the way are stored.
            raise chosen
        return chosen
