"""Outages: sources that fail for one common cause, and when to open an alert. Pure: from records and `now`.

A cause is reported once, at its own level: this machine's network, a platform, a host, a single source. What counts is
when something last succeeded and when it should have succeeded again; a failed attempt changes neither.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from catchment.errors import (
    CatchmentError,
    CredentialsExhausted,
    NetworkError,
    ServerTrouble,
    SlowDown,
    SpendingCapReached,
    StoreError,
    TimedOut,
    VaultError,
)
from catchment.lazy import pattern
from catchment.messages import Message, about, message
from catchment.model import AlertRequest, Record, Severity, View
from catchment.policy import schedule

UNREACHABLE = frozenset((NetworkError.code, TimedOut.code, ServerTrouble.code))
"""Errors that say nothing about the source itself: its host did not answer, or not properly."""
_NO_EVIDENCE = frozenset(
    (
        *(SlowDown.code, SpendingCapReached.code, CredentialsExhausted.code),
        *(VaultError.code, StoreError.code, CatchmentError.code),
    )
)
"""Errors that occur without sending a request."""
OFFLINE, SITE, STALLED, FAILING = "network offline", " unreachable", "collecting stalled", " failing"
"""The subjects of alerts, or their suffixes."""
_LOCAL_NAME = pattern(r"[\w-]+|.+\.(?:localhost|local|lan|internal|home\.arpa)", re.IGNORECASE)
_SLACK = timedelta(minutes=15)
"""A source is not always visited at the very moment it is due."""


class OutageLevel(StrEnum):
    NETWORK = "network"
    PLATFORM = "platform"
    HOST = "host"
    SOURCE = "source"


class Site(Record, frozen=True):
    """What answers for a source: its platform, or its host where each source of the platform has its own."""

    level: OutageLevel
    name: str

    @property
    def subject(self) -> str:
        return f"{self.level} {self.name}{SITE}"

    @property
    def is_local(self) -> bool:
        """In our own network, judging by its name: whether it answers says nothing about the internet."""
        return self.level is OutageLevel.HOST and is_local(self.name)


@lru_cache(maxsize=8192)
def is_local(host: str) -> bool:
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        return _LOCAL_NAME.fullmatch(host) is not None


class FollowedSource(Protocol):
    @property
    def platform(self) -> str: ...

    @property
    def target(self) -> str: ...


def site_of(source: FollowedSource, of_one_site: Collection[str]) -> Site:
    """Returns the site of a source; `of_one_site` are the platforms whose sources all share the same hosts."""
    if source.platform in of_one_site:
        return Site(OutageLevel.PLATFORM, source.platform)
    return _host_of(source.target)


@lru_cache(maxsize=1024)
def _host_of(target: str) -> Site:
    plain = _PLAIN_HOST.match(target)
    if plain is not None:
        return Site(OutageLevel.HOST, plain[1])
    try:
        host = urlsplit(target).hostname
    except ValueError:
        host = None
    return Site(OutageLevel.HOST, (host or target).lower())


# Most addresses: a tenth of the cost of splitting them.
_PLAIN_HOST = pattern(r"https?://([a-z0-9.-]+)(?::[0-9]+)?(?=/|$)")


class SourceStanding(Record, frozen=True):
    """The collection state of one active source."""

    source_id: int
    name: str
    site: Site
    interval: timedelta
    active_since: datetime
    last_success_at: datetime | None = None
    last_polled_at: datetime | None = None
    error_code: str | None = None
    """Error of its last visit."""
    due_reason: Message | None = None
    next_due_at: datetime | None = None
    failures_in_a_row: int = 0

    @property
    def expected_at(self) -> datetime:
        """When it should have succeeded next: when it was due after its last success, regardless of failures since."""
        if self.last_success_at is None:
            return self.active_since
        at = self.last_success_at + self.interval
        if self.due_reason == schedule.ASKED_FOR and self.next_due_at is not None:
            at = self.next_due_at
        elif self.due_reason == schedule.DEFERRED:
            at += schedule.LONGEST
        elif self.due_reason == schedule.TOLD and self.next_due_at is not None and self.last_polled_at is not None:
            # A server may ask for one wait. If it asks again and again, that is an outage.
            at += self.next_due_at - self.last_polled_at
        return max(at, self.active_since)

    @property
    def is_unreachable(self) -> bool:
        return self.error_code in UNREACHABLE

    @property
    def is_held_off(self) -> bool:
        """Its server reported too many requests."""
        return self.error_code == SlowDown.code and self.due_reason == schedule.TOLD

    @property
    def is_unconnected(self) -> bool:
        """Its last visit could not connect, and no other source could at that time."""
        return self.is_unreachable and self.due_reason == schedule.NO_CONNECTION

    @property
    def site_reached_at(self) -> datetime | None:
        """When its site last answered it, as far as is known."""
        is_answer = self.error_code is not None and self.error_code not in UNREACHABLE | _NO_EVIDENCE
        return self.last_polled_at if is_answer else self.last_success_at

    @property
    def network_reached_at(self) -> datetime | None:
        """When it last reached anything at all, as far as is known."""
        return self.last_polled_at if self.error_code == ServerTrouble.code else self.site_reached_at

    def is_polled_since(self, at: datetime | None) -> bool:
        return self.last_polled_at is not None and (at is None or self.last_polled_at > at)

    def is_due_since(self, at: datetime | None) -> bool:
        """Whether its success was expected after that time and not overdue already. A source that never succeeded says
        nothing if others did."""
        return at is None or (self.last_success_at is not None and self.expected_at + _SLACK >= at)


class Outage(Record, frozen=True):
    """Sources that fail for one cause."""

    level: OutageLevel
    name: str
    """Name of the host or platform."""
    sources: tuple[SourceStanding, ...]
    reached_at: datetime | None
    """When it last answered; None: never."""

    @property
    def subject(self) -> str:
        if self.level is OutageLevel.NETWORK:
            return OFFLINE
        if self.level is OutageLevel.SOURCE:
            return f"source {self.sources[0].source_id}{FAILING}"
        return f"{self.level} {self.name}{SITE}"

    @property
    def is_common(self) -> bool:
        """Several sources fail for the same cause."""
        return self.level is not OutageLevel.SOURCE

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(source.source_id for source in self.sources)

    @property
    def since(self) -> datetime:
        return self.reached_at or min(source.active_since for source in self.sources)

    @property
    def code(self) -> str:
        """The most frequent error."""
        return Counter(source.error_code or "" for source in self.sources).most_common(1)[0][0]

    @property
    def due(self) -> tuple[SourceStanding, ...]:
        """Sources that should have succeeded since it last answered; the others fail for causes of their own."""
        return tuple(source for source in self.sources if source.is_due_since(self.reached_at))

    def failed_for(self, awake_since: datetime) -> timedelta:
        """Time from when a success was due to the last attempt. Time in which no process collected does not count."""
        expected = min((source.expected_at for source in self.due), default=self.since)
        last_attempt = max(source.last_polled_at or source.active_since for source in self.sources)
        return last_attempt - max(expected, awake_since)


# Detection


def outages(standings: Sequence[SourceStanding]) -> list[Outage]:
    """Returns the causes for which sources currently get no answer, however short; each source is in at most one."""
    offline = _offline(standings)
    explained = waiting_for_retry(standings) | (offline.ids if offline else frozenset())
    causes = [offline] if offline else []
    sites: dict[Site, list[SourceStanding]] = {}
    for source in standings:
        sites.setdefault(source.site, []).append(source)
    for site, of_site in sites.items():
        causes += _at_site(site, of_site, explained)
    return causes


def waiting_for_retry(standings: Sequence[SourceStanding]) -> frozenset[int]:
    """Returns the sources that last failed while nothing could be connected to, and were not tried since something
    answered: they may work again, and their next attempt, within minutes, says whether they do."""
    reached_at = _network_reached_at(standings)
    return frozenset(
        source.source_id for source in standings if source.is_unconnected and not source.is_polled_since(reached_at)
    )


def _network_reached_at(standings: Sequence[SourceStanding]) -> datetime | None:
    """Returns when anything outside our own network was last reached."""
    return _latest(source.network_reached_at for source in standings if not source.site.is_local)


def _offline(standings: Sequence[SourceStanding]) -> Outage | None:
    """Returns the network outage if at least two sites that used to answer cannot be connected to and nothing answered
    since. Sites in our own network are not evidence."""
    reached_at = _network_reached_at(standings)
    since = [source for source in standings if source.is_polled_since(reached_at)]
    unconnected = [source for source in since if source.is_unconnected and source.is_due_since(reached_at)]
    if len({source.site for source in unconnected if not source.site.is_local}) < 2:
        return None
    affected = tuple(
        source for source in since if source.is_unreachable and (source.is_unconnected or not source.site.is_local)
    )
    return Outage(OutageLevel.NETWORK, "", affected, reached_at)


def _at_site(site: Site, of_site: Sequence[SourceStanding], explained: Collection[int]) -> Iterator[Outage]:
    reached_at = _latest(source.site_reached_at for source in of_site)
    # A source that was not tried since the site last answered may work again.
    failing = tuple(
        source
        for source in of_site
        if (source.is_unreachable or source.is_held_off)
        and source.is_polled_since(reached_at)
        and source.source_id not in explained
    )
    # A few sources that fail although they were due when others succeeded fail for causes of their own.
    due = sum(source.is_due_since(reached_at) for source in failing)
    if due > 1 or 2 * len(failing) >= max(4, len(of_site)):
        yield Outage(site.level, site.name, failing, reached_at)
    else:
        yield from (Outage(OutageLevel.SOURCE, site.name, (source,), source.site_reached_at) for source in failing)


def _latest(times: Iterator[datetime | None] | Sequence[datetime | None]) -> datetime | None:
    return max((at for at in times if at is not None), default=None)


def without_success(
    standings: Sequence[SourceStanding], limit: timedelta, awake_since: datetime, now: datetime
) -> list[SourceStanding]:
    """Returns the sources whose success is overdue by the limit, if nothing has succeeded meanwhile and most are
    overdue.

    Sources that were failing already when others last succeeded are not counted: a few broken sources are not an
    outage.
    """
    last = _latest(source.last_success_at for source in standings)
    measured = [source for source in standings if source.is_due_since(last)]
    overdue = [source for source in measured if now - max(source.expected_at, awake_since) >= limit]
    return overdue if 2 * len(overdue) >= len(measured) else []


# Current common causes


class FailedVisit(Record, frozen=True):
    """A source whose last visit got no connection or no proper answer."""

    source_id: int
    site: Site
    error_code: str
    due_reason: Message | None
    polled_at: datetime


class OutageView(View, frozen=True):
    """A common cause of failures, as it is shown."""

    level: OutageLevel
    name: str | None
    source_count: int
    error_code: str | None
    message: str


class CommonCause(Record, frozen=True):
    """A cause for which several sources fail."""

    level: OutageLevel
    name: str
    source_ids: tuple[int, ...]
    site_count: int
    error_code: str

    @property
    def subject(self) -> str:
        """The subject of the alert that reports it once it lasts."""
        return OFFLINE if self.level is OutageLevel.NETWORK else Site(self.level, self.name).subject

    @property
    def view(self) -> OutageView:
        return OutageView(self.level, self.name or None, len(self.source_ids), self.error_code, self._message)

    @property
    def _message(self) -> str:
        count = sources(len(self.source_ids))
        if self.level is OutageLevel.NETWORK:
            return f"none of {self.site_count} hosts could be reached: this machine seems to be offline; {count} wait"
        return f"{self.name} does not answer: {count} ({self.error_code})"


def causes_of(troubles: Sequence[FailedVisit], has_succeeded: Callable[[datetime], bool]) -> list[CommonCause]:
    """Returns the causes that several of these share. `has_succeeded` says whether any visit outside our own
    network has succeeded since a time."""
    groups: dict[tuple[OutageLevel, str], list[FailedVisit]] = {}
    unconnected = [trouble for trouble in troubles if trouble.due_reason == schedule.NO_CONNECTION]
    are_several = len({trouble.site for trouble in unconnected if not trouble.site.is_local}) > 1
    if are_several and not has_succeeded(min(trouble.polled_at for trouble in unconnected)):
        groups[OutageLevel.NETWORK, ""] = unconnected
    for trouble in troubles:
        if trouble not in groups.get((OutageLevel.NETWORK, ""), ()):
            groups.setdefault((trouble.site.level, trouble.site.name), []).append(trouble)
    return [_cause(level, name, group) for (level, name), group in groups.items() if len(group) > 1]


def _cause(level: OutageLevel, name: str, troubles: Sequence[FailedVisit]) -> CommonCause:
    code = Counter(trouble.error_code for trouble in troubles).most_common(1)[0][0]
    ids = tuple(trouble.source_id for trouble in troubles)
    return CommonCause(level, name, ids, len({trouble.site for trouble in troubles}), code)


# Alerts


class OutageRules(Record, frozen=True):
    limit: timedelta
    """How long after its due time a success may be missing."""
    failures: int
    """A single source that fails this often in a row opens an alert."""


class OutageReport(Record, frozen=True):
    """The alerts that a deployment should have open at a moment."""

    alarms: tuple[AlertRequest, ...] = ()
    """Alerts of the network, platforms and hosts."""
    of_sources: tuple[AlertRequest, ...] = ()
    explained: frozenset[int] = frozenset()
    """The sources that are covered by an alert other than their own."""
    stalled: tuple[AlertRequest, ...] = ()
    is_silent: bool = False
    """Nothing has succeeded for longer than the limit, or nothing outside our own network."""
    undecided: frozenset[str] = frozenset()
    """Subjects of hosts and platforms whose sources wait for their retry: an open alert about one stays open."""

    @property
    def explained_subjects(self) -> list[str]:
        """Subjects of the sources' own alerts, which would only repeat another one."""
        return [f"source {source_id}{FAILING}" for source_id in sorted(self.explained)]


def judge_outages(
    standings: Sequence[SourceStanding],
    rules: OutageRules,
    awake_since: datetime,
    now: datetime,
    urgent: Collection[str] = (),
) -> OutageReport:
    """Returns the alerts of all outages.

    `awake_since`: since when a process has been collecting without a break. `urgent`: platforms of which too many
    sources failed in the last minutes; an outage of one of them is reported at once.
    """
    overdue = without_success(standings, rules.limit, awake_since, now)
    silent = frozenset(source.source_id for source in overdue)
    current = outages(standings)
    stalled = _standstill(overdue, current)
    alarming = [
        outage
        for outage in current
        if (outage.level is OutageLevel.PLATFORM and outage.name in urgent)
        or outage.ids & silent
        or _is_alarming(outage, rules, awake_since)
    ]
    common = [outage for outage in alarming if outage.is_common]
    of_standstill = frozenset(source.source_id for source in stalled)
    waiting = waiting_for_retry(standings)
    return OutageReport(
        tuple(_alarm(outage, now) for outage in common),
        tuple(
            _alarm(outage, now)
            for outage in alarming
            if outage.level is OutageLevel.SOURCE and not outage.ids & of_standstill
        ),
        frozenset(source_id for outage in common for source_id in outage.ids) | of_standstill,
        (_stalled(standings, stalled, now),) if stalled else (),
        bool(overdue) or any(outage.level is OutageLevel.NETWORK for outage in common),
        frozenset(source.site.subject for source in standings if source.source_id in waiting),
    )


def _standstill(overdue: Sequence[SourceStanding], current: Sequence[Outage]) -> list[SourceStanding]:
    """Returns the overdue sources that are reported as one standstill: most of them, not explained by a common cause. A
    single unreachable source has an alert of its own, which says more."""
    common = frozenset(source_id for outage in current if outage.is_common for source_id in outage.ids)
    left = [source for source in overdue if source.source_id not in common]
    if 2 * len(left) < len(overdue) or (len(left) == 1 and left[0].is_unreachable):
        return []
    return left


def _is_alarming(outage: Outage, rules: OutageRules, awake_since: datetime) -> bool:
    patience = rules.limit
    if outage.level is OutageLevel.SOURCE:
        # One source of many: retrying at its own interval is enough at first.
        first = outage.sources[0]
        if first.failures_in_a_row >= rules.failures:
            return True
        patience = max(rules.limit, (rules.failures - 1) * first.interval)
    return outage.failed_for(awake_since) >= patience


def _alarm(outage: Outage, now: datetime) -> AlertRequest:
    span, count = format_span(now - outage.since), sources(len(outage.sources))
    if outage.level is OutageLevel.NETWORK:
        sites = len({source.site for source in outage.sources})
        offline = message("alert.offline", hosts=sites, span=span, sources=count, code=outage.code)
        return AlertRequest(outage.subject, offline, Severity.P0)
    if outage.level is OutageLevel.SOURCE:
        first = outage.sources[0]
        if first.is_held_off:
            what = message("alert.source_held_off", host=outage.name, span=span)
        else:
            what = message("alert.source_unreachable", host=outage.name, span=span, code=outage.code)
        subject = f"{first.name} (source {first.source_id})"
        return AlertRequest(outage.subject, about(subject, what), source_id=first.source_id)
    if outage.code == SlowDown.code:
        return AlertRequest(outage.subject, message("alert.held_off", host=outage.name, span=span, sources=count))
    return AlertRequest(
        outage.subject, message("alert.unreachable", host=outage.name, span=span, sources=count, code=outage.code)
    )


def _stalled(standings: Sequence[SourceStanding], overdue: Sequence[SourceStanding], now: datetime) -> AlertRequest:
    last = _latest(source.last_success_at for source in standings) or min(source.active_since for source in overdue)
    code = Counter(source.error_code or "not visited" for source in overdue).most_common(1)[0][0]
    what = message("alert.stalled", span=format_span(now - last), sources=sources(len(overdue)), code=code)
    return AlertRequest(STALLED, what, Severity.P0)


def sources(count: int) -> Message:
    return message("sources", count=count)


def format_span(span: timedelta) -> Message:
    """Returns 45 min, 3 h, 4 days."""
    minutes = max(0, span // timedelta(minutes=1))
    if minutes < 120:
        return message("span.minutes", count=minutes)
    if minutes < 2 * 24 * 60:
        return message("span.hours", count=minutes // 60)
    return message("span.days", count=minutes // (24 * 60))
