"""Whoever changes how a credential stands does it here: what time has made of it comes first, every step is written
down, and the alerts that should be open follow from where that leads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from catchment.clock import Clock
from catchment.logs import logger
from catchment.model import Alarm, Credential
from catchment.settings import Settings
from catchment.store.credentials import Credentials, Decided, Kept, named
from catchment.vault.alarms import alarms
from catchment.vault.life import LifeRules, is_usable, passed, paused, resumed
from catchment.vault.safe import Safe

log = logger(__name__)


def rules_from(settings: Settings) -> LifeRules:
    """What becomes of credentials, as the operator wants it."""
    return LifeRules(
        cooling=timedelta(minutes=settings.cooling_minutes),
        most_in_a_row=settings.most_errors_in_a_row,
        most_in_all=settings.most_errors_in_all,
        clean=timedelta(days=settings.clean_days),
        rest=timedelta(hours=settings.rest_hours) if settings.rest_hours else None,
        told_before=timedelta(days=settings.expiry_days),
    )


class Keeper:
    """The credentials of a deployment, for those who look after them. Safe for threads."""

    def __init__(self, credentials: Credentials, safe: Safe, rules: LifeRules, clock: Clock) -> None:
        self.credentials, self.rules = credentials, rules
        self._safe, self._clock = safe, clock

    def page(self) -> list[Kept]:
        """All that there are, by platform and name."""
        self._safe.announce(self._clock.now())
        return self.credentials.page()

    def concerns(self) -> list[Alarm]:
        """What is wrong at this moment, whether or not anybody has told of it yet. Only looks."""
        now = self._clock.now()
        by_platform = defaultdict[str, list[Credential]](list)
        for one in self.credentials.known():
            by_platform[one.platform].append(passed(one, self.rules, now))
        return [alarm for platform, known in by_platform.items() for alarm in self.alarms(platform, known, now)]

    def platforms(self) -> frozenset[str]:
        """Those that have a credential in their pool, usable or not."""
        return self.credentials.platforms() | {one.platform for one in self._safe.lent.values()}

    def usable(self) -> dict[str, list[str]]:
        """The names of those of each platform's pool that can be used at this moment. Only looks."""
        now, known, found = self._clock.now(), self.credentials.known(), defaultdict[str, list[str]](list)
        for one in self.pool(known):
            if is_usable(passed(one, self.rules, now), now):
                found[one.platform].append(one.name)
        # What stands in the environment and was never used is not noted down yet, and as good as any.
        for name in self._safe.lent.keys() - {one.name for one in known}:
            found[self._safe.lent[name].platform].append(name)
        return found

    def pause(self, name: str, reason: str) -> None:
        self._safe.announce(self._clock.now())
        self.change(name, lambda one, now: paused(one, reason, now))

    def resume(self, name: str) -> None:
        self._safe.announce(self._clock.now())
        self.change(name, resumed)

    def remove(self, name: str) -> None:
        now = self._clock.now()
        self.settle(self.credentials.remove(name, now))

    def settle_all(self) -> None:
        """Note down what time alone has changed, and have the right alerts open."""
        for platform in sorted({one.credential.platform for one in self.page()}):
            self.settle(platform)

    def settle(self, platform: str) -> None:
        now = self._clock.now()
        _tell(self.credentials.of_platform(platform, now, lambda known: self._decided(platform, known, [], now)))

    def change(self, name: str, deed: Callable[[Credential, datetime], Credential]) -> None:
        """What `deed` makes of the credential of that name at this moment."""
        now = self._clock.now()

        def decide(known: list[Credential]) -> Decided[list[Credential]]:
            one = named(known, name)
            return self._decided(one.platform, known, [deed(passed(one, self.rules, now), now)], now)

        _tell(self.credentials.of_name(name, now, decide))

    def at_hand(self, known: Sequence[Credential]) -> list[Credential]:
        """Without those that stand in the environment of other processes only."""
        return [one for one in known if not one.is_from_environment or one.name in self._safe.lent]

    def pool(self, known: Sequence[Credential]) -> list[Credential]:
        """Those that any source of the platform may be asked with."""
        return [one for one in self.at_hand(known) if one.is_shared]

    def alarms(self, platform: str, known: Sequence[Credential], now: datetime) -> list[Alarm]:
        return alarms(platform, known, self.pool(known), self.rules, now)

    def _decided(
        self, platform: str, known: Sequence[Credential], changed: Sequence[Credential], now: datetime
    ) -> Decided[list[Credential]]:
        settled = [passed(one, self.rules, now) for one in known]
        final = {one.id: one for one in (*settled, *changed)}
        before = {one.id: one.state for one in known}
        moved = [one for one in final.values() if one.state != before[one.id]]
        return Decided(moved, [*settled, *changed], self.alarms(platform, [*final.values()], now))


def _tell(moved: Sequence[Credential]) -> None:
    for one in moved:
        log.warning(
            "a credential is not as it was",
            credential=one.name,
            platform=one.platform,
            state=str(one.state),
            reason=one.state_reason,
        )
