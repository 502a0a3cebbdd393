"""Credential manager: every change of a credential's state. It applies what time has changed first, writes every step,
and opens and closes alerts to match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from catchment.clock import Clock
from catchment.credentials.lifecycle import (
    LifecycleRules,
    after_elapsed_time,
    alarms,
    is_usable,
    paused,
    resumed,
    usable_from,
    used_today,
)
from catchment.credentials.secret_store import SecretStore
from catchment.logs import logger
from catchment.messages import Message
from catchment.model import AlertRequest, Credential, CredentialState, View
from catchment.settings import Settings
from catchment.store.credentials import Credentials, Decided, StoredCredential, named

log = logger(__name__)


def rules_from(settings: Settings) -> LifecycleRules:
    """Returns the operator's rules for the lifecycle of credentials."""
    return LifecycleRules(
        cooling=timedelta(minutes=settings.cooling_minutes),
        most_in_a_row=settings.most_errors_in_a_row,
        most_in_all=settings.most_errors_in_all,
        clean=timedelta(days=settings.clean_days),
        rest=timedelta(hours=settings.rest_hours) if settings.rest_hours else None,
        told_before=timedelta(days=settings.expiry_days),
    )


class CredentialManager:
    """The credentials of a deployment, for administration. Thread-safe."""

    def __init__(self, credentials: Credentials, safe: SecretStore, rules: LifecycleRules, clock: Clock) -> None:
        self.credentials, self.rules = credentials, rules
        self._safe, self._clock = safe, clock

    def page(self) -> list[StoredCredential]:
        """Returns all credentials, by platform and name."""
        self._safe.announce(self._clock.now())
        return self.credentials.page()

    def concerns(self) -> list[AlertRequest]:
        """Returns the current problems, whether or not an alert is open yet. Read-only."""
        now = self._clock.now()
        by_platform = defaultdict[str, list[Credential]](list)
        for credential in self.credentials.known():
            by_platform[credential.platform].append(after_elapsed_time(credential, self.rules, now))
        return [
            alarm for platform, credentials in by_platform.items() for alarm in self.alarms(platform, credentials, now)
        ]

    def platforms(self) -> frozenset[str]:
        """Returns the platforms that have a credential in their pool, usable or not."""
        return self.credentials.platforms() | {lent.platform for lent in self._safe.lent.values()}

    def usable(self) -> dict[str, list[str]]:
        """Returns the names of the currently usable credentials of each platform's pool. Read-only."""
        now, credentials, names = self._clock.now(), self.credentials.known(), defaultdict[str, list[str]](list)
        for credential in self.pool(credentials):
            if is_usable(after_elapsed_time(credential, self.rules, now), now):
                names[credential.platform].append(credential.name)
        # A credential from the environment that was never used is not stored yet, and as good as any.
        for name in self._safe.lent.keys() - {candidate.name for candidate in credentials}:
            names[self._safe.lent[name].platform].append(name)
        return names

    def pause(self, name: str, reason: str | None) -> None:
        """`reason`: the reason given by the user, if any."""
        self._safe.announce(self._clock.now())
        self.change(name, lambda credential, now: paused(credential, reason, now))

    def resume(self, name: str) -> None:
        self._safe.announce(self._clock.now())
        self.change(name, resumed)

    def remove(self, name: str) -> None:
        self.report_pool(self.credentials.remove(name, self._clock.now()))

    def apply_elapsed_time(self) -> None:
        """Writes what time alone has changed, and opens and closes alerts to match."""
        for platform in sorted({stored.credential.platform for stored in self.page()}):
            self.report_pool(platform)

    def report_pool(self, platform: str) -> None:
        now = self._clock.now()
        _log_moved(
            self.credentials.of_platform(
                platform, now, lambda credentials: self._decided(platform, credentials, [], now)
            )
        )

    def change(self, name: str, transition: Callable[[Credential, datetime], Credential]) -> None:
        """Stores what `transition` makes of the credential of that name at this moment."""
        now = self._clock.now()

        def decide(credentials: list[Credential]) -> Decided[list[Credential]]:
            credential = named(credentials, name)
            return self._decided(
                credential.platform,
                credentials,
                [transition(after_elapsed_time(credential, self.rules, now), now)],
                now,
            )

        _log_moved(self.credentials.of_name(name, now, decide))

    def pool(self, credentials: Sequence[Credential]) -> list[Credential]:
        """Returns those that requests of any source of the platform may use. Those that exist only in the environment
        of other processes are not among them."""
        return [
            credential
            for credential in credentials
            if credential.is_shared and (not credential.is_from_environment or credential.name in self._safe.lent)
        ]

    def alarms(self, platform: str, credentials: Sequence[Credential], now: datetime) -> list[AlertRequest]:
        return alarms(platform, credentials, self.pool(credentials), self.rules, now)

    def _decided(
        self, platform: str, credentials: Sequence[Credential], changed: Sequence[Credential], now: datetime
    ) -> Decided[list[Credential]]:
        settled = [after_elapsed_time(credential, self.rules, now) for credential in credentials]
        final = {credential.id: credential for credential in (*settled, *changed)}
        before = {credential.id: credential.state for credential in credentials}
        moved = [credential for credential in final.values() if credential.state != before[credential.id]]
        return Decided(moved, [*settled, *changed], self.alarms(platform, [*final.values()], now))


def _log_moved(credentials: Sequence[Credential]) -> None:
    for credential in credentials:
        log.warning(
            "credential changed state",
            credential=credential.name,
            platform=credential.platform,
            state=str(credential.state),
            reason=credential.state_reason,
        )


class CredentialView(View, frozen=True):
    """A credential without its secret."""

    id: int
    platform: str
    name: str
    state: CredentialState
    state_since: datetime
    state_until: datetime | None
    state_reason: Message | None
    is_usable: bool
    usable_from: datetime | None
    hosts: tuple[str, ...]
    is_shared: bool
    is_from_environment: bool
    priority: int
    daily_limit: int | None
    used_today: int
    use_count: int
    errors_in_a_row: int
    errors_in_all: int
    last_error: str | None
    last_error_at: datetime | None
    last_used_at: datetime | None
    expires_at: datetime | None
    created_at: datetime
    key_id: str
    source_count: int


def credential_view(stored: StoredCredential, rules: LifecycleRules, now: datetime) -> CredentialView:
    """Returns its current state, whether or not that state is written yet."""
    credential = after_elapsed_time(stored.credential, rules, now)
    computed: dict[str, Any] = {
        "is_usable": is_usable(credential, now),
        "usable_from": usable_from(credential, now),
        "used_today": used_today(credential, now),
        "key_id": stored.key_id,
        "source_count": stored.source_count,
    }
    as_stored = {name: getattr(credential, name) for name in CredentialView.__struct_fields__ if name not in computed}
    return CredentialView(**as_stored, **computed)
