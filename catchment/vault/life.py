"""The life of a credential: what errors, successes, time and people make of it, and which one is taken. Pure.

active ──(errors in a row)──▸ cooling ──(some minutes)──▸ active
  │                             │ a request that was sent while it should rest is refused
  │ (errors in all)             ▾
  └────────▸ invalid         banned ──(rested)──▸ probation ──(accepted)──▸ active
                └──────────────(rested)──────────────▴  └──(refused)──▸ banned, for twice as long

None is ever thrown away: whoever fell is tried again after a rest, with one request, and a person may resume or pause
any of them. Whether an error is a credential's at all is decided by those who ask: "too many requests" never is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from catchment.model import Credential, CredentialState, Record

ACTIVE, COOLING, BANNED = CredentialState.ACTIVE, CredentialState.COOLING, CredentialState.BANNED
INVALID, PROBATION, PAUSED = CredentialState.INVALID, CredentialState.PROBATION, CredentialState.PAUSED
FALLEN = frozenset((BANNED, INVALID))
_LONGEST_REST = timedelta(days=30)
_LONGEST_REASON = 500
_TRIAL = timedelta(minutes=2)


class LifeRules(Record, frozen=True):
    cooling: timedelta = timedelta(minutes=30)
    most_in_a_row: int = 3
    most_in_all: int = 10
    clean: timedelta = timedelta(days=7)
    """After so long without an error, errors in all are counted from 0 again."""
    rest: timedelta | None = timedelta(days=1)
    """So long it rests after a fall, twice as long after the next one. None: until a person resumes it."""
    told_before: timedelta = timedelta(days=7)
    """So long before its end a credential that expires is told of."""


# ── what happens to it ────────────────────────────────────────────────────────────────────────────────────────────


def passed(one: Credential, rules: LifeRules, now: datetime) -> Credential:
    """What time alone has made of it."""
    one = _of_this_time(one, now)
    if one.errors_in_all and one.last_error_at is not None and now - one.last_error_at >= rules.clean:
        one = one.plus(errors_in_all=0)
    if one.state_until is None or now < one.state_until:
        return one
    if one.state == COOLING:
        return _became(one, ACTIVE, "the time to cool down is over", one.state_until).plus(errors_in_a_row=0)
    if one.state == PROBATION:
        # Whoever was to try it never told what came of it: somebody else may.
        return one.plus(state_until=None)
    return _became(one, PROBATION, "it has rested; the next request decides", one.state_until)


def _of_this_time(one: Credential, now: datetime) -> Credential:
    """Where the clock was set back, what was to last for a while begins now: nobody rests until a wrong year."""
    if one.state_since <= now:
        return one
    lasts = None if one.state_until is None else one.state_until - one.state_since
    return one.plus(state_since=now, state_until=None if lasts is None else now + lasts)


def failed(one: Credential, rules: LifeRules, sent_at: datetime, now: datetime, error: str) -> Credential:
    """A request with it was refused, and that was its own fault.

    Requests that were under way when its state began are part of what led to it, and count no further: ten that fail
    together are one mishap.
    """
    one = one.plus(last_error=error[:_LONGEST_REASON], last_error_at=now)
    if one.state == ACTIVE:
        return _after_error(one, rules, now)
    if one.state in (COOLING, PROBATION) and _is_sent_in(one, sent_at):
        what = "while it was to cool down" if one.state == COOLING else "on probation"
        return _fell(one, BANNED, f"refused {what}: {error}", rules, now)
    return one


def _after_error(one: Credential, rules: LifeRules, now: datetime) -> Credential:
    one = one.plus(errors_in_a_row=one.errors_in_a_row + 1, errors_in_all=one.errors_in_all + 1)
    if one.errors_in_all >= rules.most_in_all:
        return _fell(one, INVALID, f"{one.errors_in_all} errors in all: {one.last_error}", rules, now)
    if one.errors_in_a_row >= rules.most_in_a_row:
        reason = f"{one.errors_in_a_row} errors in a row: {one.last_error}"
        return _became(one, COOLING, reason, now).plus(state_until=now + rules.cooling)
    return one


def succeeded(one: Credential, sent_at: datetime, now: datetime) -> Credential:
    """A request with it was answered."""
    one = one.plus(errors_in_a_row=0)
    if one.state in (*FALLEN, PROBATION) and _is_sent_in(one, sent_at):
        return _became(one, ACTIVE, "it is accepted again", now).plus(errors_in_all=0, falls_in_a_row=0)
    return one


def _is_sent_in(one: Credential, sent_at: datetime) -> bool:
    """Whether a request was sent while it was as it is: one that is on probation may be used in that very moment."""
    return sent_at > one.state_since or (one.state == PROBATION and sent_at == one.state_since)


def paused(one: Credential, reason: str, now: datetime) -> Credential:
    return _became(one, PAUSED, reason, now) if one.state != PAUSED else one.plus(state_reason=reason[:_LONGEST_REASON])


def resumed(one: Credential, now: datetime) -> Credential:
    """A person wants it used. What had fallen shows with its next request whether that is right."""
    if one.state == ACTIVE:
        return one
    state = PROBATION if one.falls_in_a_row else ACTIVE
    return _became(one, state, "resumed by a person", now).plus(errors_in_a_row=0, errors_in_all=0)


def on_trial(one: Credential, now: datetime) -> Credential:
    """Taken while on probation: by one request, and by no other before it is known what came of that."""
    return one.plus(state_until=now + _TRIAL) if one.state == PROBATION else one


def used(one: Credential, count: int, now: datetime) -> Credential:
    """So many uses more."""
    return one.plus(
        used_on=day_of(now),
        used_that_day=used_today(one, now) + count,
        use_count=one.use_count + count,
        last_used_at=now,
    )


def given_back(one: Credential, count: int, taken_at: datetime) -> Credential:
    """So many uses that were counted then have not been made."""
    of_that_day = count if one.used_on == day_of(taken_at) else 0
    return one.plus(used_that_day=max(0, one.used_that_day - of_that_day), use_count=max(0, one.use_count - count))


def _became(one: Credential, state: CredentialState, reason: str, at: datetime) -> Credential:
    return one.plus(state=state, state_since=at, state_until=None, state_reason=reason[:_LONGEST_REASON])


def _fell(one: Credential, state: CredentialState, reason: str, rules: LifeRules, now: datetime) -> Credential:
    falls = one.falls_in_a_row + 1
    # The exponent is capped: the rest reaches its longest long before numbers grow too large.
    rest = None if rules.rest is None else min(rules.rest * 2 ** min(falls - 1, 16), _LONGEST_REST)
    until = None if rest is None else now + rest
    return _became(one, state, reason, now).plus(state_until=until, falls_in_a_row=falls)


# ── whether it can be used ────────────────────────────────────────────────────────────────────────────────────────


def day_of(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%d}"


def used_today(one: Credential, now: datetime) -> int:
    return one.used_that_day if one.used_on == day_of(now) else 0


def left_today(one: Credential, now: datetime) -> int | None:
    """How many more uses this day has; None: as many as one likes."""
    if one.daily_limit is None:
        return None
    return max(0, one.daily_limit - used_today(one, now))


def is_expired(one: Credential, now: datetime) -> bool:
    return one.expires_at is not None and now >= one.expires_at


def hindrance(one: Credential, now: datetime) -> str | None:
    """What a person, or the credential's own end, has against every use of it, in words."""
    if one.state == PAUSED:
        return f"paused: {one.state_reason}"
    if is_expired(one, now):
        return f"expired on {one.expires_at:%Y-%m-%d %H:%M} UTC"
    if left_today(one, now) == 0:
        return f"used up for today: its limit is {one.daily_limit:,} a day"
    return None


def is_usable(one: Credential, now: datetime) -> bool:
    """Whether the pool may give it out."""
    is_on_trial = one.state == PROBATION and one.state_until is not None
    return hindrance(one, now) is None and one.state in (ACTIVE, PROBATION) and not is_on_trial


def usable_from(one: Credential, now: datetime) -> datetime | None:
    """When it can be used (again), as far as that can be known; None: not before a person acts."""
    if one.state == PAUSED or (one.state not in (ACTIVE, PROBATION) and one.state_until is None):
        return None
    at = max(now, one.state_until or now)
    if left_today(one, now) == 0 and day_of(at) == day_of(now):
        at = (now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return None if is_expired(one, at) else at


def best(pool: Iterable[Credential], now: datetime, avoid: Collection[str] = ()) -> Credential | None:
    """The one to take: by priority, then the one least used today. One on probation goes first, for a single request:
    who is never tried never comes back."""
    usable = [one for one in pool if one.is_shared and is_usable(one, now) and one.name not in avoid]
    return min(usable, key=lambda one: _order(one, now), default=None)


def _order(one: Credential, now: datetime) -> tuple[bool, int, int, datetime, int]:
    return one.state != PROBATION, -one.priority, used_today(one, now), one.last_used_at or one.created_at, one.id


def soonest(pool: Sequence[Credential], now: datetime) -> datetime | None:
    """When one of the pool will be usable."""
    return min((at for one in pool if one.is_shared and (at := usable_from(one, now))), default=None)
