"""The pool: which credential a request is sent with, and what its answer means for that.

Choosing is one short transaction, alone with the platform's credentials, so that several processes share the work out
among them rather than all take the same one. It sets a few uses apart at once (1, 2, 4 … while they are used up), so
that it costs a transaction for each request only where requests are rare. What is left of them is given back. A success
is noted down only where it is news, an error always.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock

from catchment.clock import Clock
from catchment.errors import CredentialsExhausted, NotFound, PlatformError, VaultError
from catchment.logs import redact
from catchment.model import Credential, Record
from catchment.store.credentials import Decided, named
from catchment.vault import life
from catchment.vault.alarms import exhausted, until
from catchment.vault.keeper import Keeper
from catchment.vault.safe import Safe
from catchment.vault.secret import Secret

MOST_AT_ONCE = 16
HELD = timedelta(seconds=10)
"""So long uses that were set apart may be used: one that is paused, or rests, is left alone soon by all processes."""


class Use(Record, frozen=True):
    """A credential, taken for one request."""

    name: str
    secret: Secret
    taken_at: datetime
    """When it was known to be usable: what happened to it since is not the fault of who uses it."""
    is_pooled: bool = False
    """Chosen here; not named by the source."""
    is_success_news: bool = False


class _Block:
    """Uses of one credential that are set apart for this process."""

    def __init__(self, use: Use, size: int) -> None:
        self.use, self.size, self.left = use, size, size

    def is_alive(self, now: datetime) -> bool:
        # A clock that was set back ends it as well: how old it really is can no longer be told.
        return self.left > 0 and self.use.taken_at <= now <= self.use.taken_at + HELD

    def next_size(self) -> int:
        return min(MOST_AT_ONCE, max(1, 2 * (self.size - self.left)))


class _Choice(Record, frozen=True):
    """What was chosen, and how many uses of it are set apart."""

    one: Credential
    size: int


_Key = tuple[str, str | None]
"""A platform, and the name that a source gives; None: whichever is best."""


class Pool:
    """The credentials of a deployment, as the requests of one process use them. Safe for threads."""

    def __init__(self, keeper: Keeper, safe: Safe, clock: Clock) -> None:
        self._keeper, self._safe, self._clock = keeper, safe, clock
        self._blocks: dict[_Key, _Block] = {}
        self._nobody_until: dict[_Key, datetime] = {}
        """An empty pool is not asked for anew by every request that would go without."""
        # Held while choosing, too: threads that find nothing set apart wait for one block rather than take one each.
        self._lock = Lock()

    def take(self, platform: str, name: str | None = None, avoid: Collection[str] = ()) -> Use | None:
        """A credential for one request: the one of that name, whatever the pool thinks of it, or the best of the pool.

        None: the pool has none at all, or none but those to avoid. Raises CredentialsExhausted where there are some and
        none is usable; and where a person, its own end or its limit is against any use of the one that is named.
        """
        key, now = (platform, name), self._clock.now()
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
            # Who names a credential asks with it while it should rest, knowingly.
            return block.use if name is None else block.use.plus(taken_at=now)

    def succeeded(self, use: Use) -> None:
        if not use.is_success_news:
            return
        with suppress(NotFound):
            self._keeper.change(use.name, lambda one, now: life.succeeded(one, use.taken_at, now))
        with self._lock:
            for block in self._blocks.values():
                if block.use.name == use.name:
                    block.use = block.use.plus(is_success_news=False)

    def failed(self, use: Use, error: PlatformError) -> None:
        """The request was refused, and the credential is to blame."""
        rules, words = self._keeper.rules, redact(error.what)
        # One that was removed meanwhile leaves nothing that could be noted down.
        with suppress(NotFound):
            self._keeper.change(use.name, lambda one, now: life.failed(one, rules, use.taken_at, now, words))
        with self._lock:
            # How it stands now is to be asked before it is used again.
            self._let_go([key for key, block in self._blocks.items() if block.use.name == use.name])

    def close(self) -> None:
        """Give back what was set apart and not used."""
        with self._lock:
            self._let_go([*self._blocks])

    # ── choosing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _next_block(self, key: _Key, avoid: Collection[str], now: datetime) -> _Block | None:
        self._safe.announce(now)
        size = self._blocks[key].next_size() if key in self._blocks else 1
        self._let_go([key])
        locked: VaultError | None = None
        while (choice := self._chosen(*key, avoid, size, now)) is not None:
            try:
                secret = self._safe.secret(choice.one.name)
            except VaultError as error:
                # This process lacks its key: that need not keep it from those that it can open.
                self._give_back(choice.one.name, choice.size, now)
                if key[1] is not None:
                    raise
                locked, avoid = error, {*avoid, choice.one.name}
            else:
                self._blocks[key] = _Block(_use(choice.one, secret, key, now), choice.size)
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
            self._keeper.change(name, lambda one, now: life.given_back(one, count, taken_at))

    def _chosen(
        self, platform: str, name: str | None, avoid: Collection[str], size: int, now: datetime
    ) -> _Choice | None:
        credentials = self._keeper.credentials
        if name is not None:
            return credentials.of_name(name, now, lambda known: self._named(known, name, size, now))
        chosen = credentials.of_platform(platform, now, lambda known: self._best(platform, known, avoid, size, now))
        if isinstance(chosen, CredentialsExhausted):
            # Not before: what was found out on the way is noted down all the same.
            raise chosen
        return chosen

    def _named(self, known: Sequence[Credential], name: str, size: int, now: datetime) -> Decided[_Choice]:
        one = life.passed(named(known, name), self._keeper.rules, now)
        hindered = life.hindrance(one, now)
        if hindered is not None:
            what, helps = f"the credential {name!r} is {hindered}", "`catchment credentials list` shows how it stands"
            raise CredentialsExhausted(what, helps, retry_at=life.usable_from(one, now))
        return _set_apart([one], one, size, now)

    def _best(
        self, platform: str, known: Sequence[Credential], avoid: Collection[str], size: int, now: datetime
    ) -> Decided[_Choice | CredentialsExhausted | None]:
        settled = [life.passed(one, self._keeper.rules, now) for one in known]
        pool = self._keeper.pool(settled)
        best = life.best(pool, now, avoid)
        if best is not None:
            return _set_apart(settled, best, size, now)
        if not pool or life.best(pool, now) is not None:
            return Decided(None, settled)
        retry_at = life.soonest(pool, now)
        error = CredentialsExhausted(exhausted(platform, pool, now), until(pool, now), retry_at=retry_at)
        return Decided(error, settled, self._keeper.alarms(platform, settled, now))


def _use(one: Credential, secret: Secret, key: _Key, now: datetime) -> Use:
    is_news = one.errors_in_a_row > 0 or one.state != life.ACTIVE
    return Use(one.name, secret, now, is_pooled=key[1] is None, is_success_news=is_news)


def _set_apart(steps: Sequence[Credential], one: Credential, size: int, now: datetime) -> Decided[_Choice]:
    left = life.left_today(one, now)
    size = 1 if one.state == life.PROBATION else size if left is None else min(size, left)
    return Decided(_Choice(one, size), [*steps, life.used(life.on_trial(one, now), size, now)])
