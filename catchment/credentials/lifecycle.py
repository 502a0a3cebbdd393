"""Lifecycle of a credential: the effect of errors, successes, time and people, and which one is taken. Pure.

active ──(errors in a row)──▸ cooling ──(some minutes)──▸ active
  │                             │ a request that was sent during the cooldown is refused
  │ (errors in all)             ▾
  └────────▸ invalid         banned ──(rested)──▸ probation ──(accepted)──▸ active
                └──────────────(rested)──────────────▴  └──(refused)──▸ banned, for twice as long

active ──(its account is used up)──▸ cooling ──(some minutes)──▸ probation ──(accepted)──▸ active

None is ever discarded: a banned or invalid credential is tried again after a cooldown, with one request, and a
person may resume or pause any of them. The caller decides whether an error is the credential's at all: "too many
requests" never is. Which alerts are open follows from the state of the credentials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from catchment.messages import Message, MessageParam, as_message, message
from catchment.model import AlertRequest, Credential, CredentialState, Record, Severity
from catchment.store.credentials import about_credential, about_pool

ACTIVE, COOLING, BANNED = CredentialState.ACTIVE, CredentialState.COOLING, CredentialState.BANNED
INVALID, PROBATION, PAUSED = CredentialState.INVALID, CredentialState.PROBATION, CredentialState.PAUSED
FALLEN = frozenset((BANNED, INVALID))
_LONGEST_REST = timedelta(days=30)
_LONGEST_REASON = 500
_TRIAL = timedelta(minutes=2)


class LifecycleRules(Record, frozen=True):
    cooling: timedelta = timedelta(minutes=30)
    most_in_a_row: int = 3
    most_in_all: int = 10
    clean: timedelta = timedelta(days=7)
    """After this long without an error, errors in all are counted from 0 again."""
    rest: timedelta | None = timedelta(days=1)
    """Cooldown after a ban; it doubles with each further one. None: until a person resumes it."""
    told_before: timedelta = timedelta(days=7)
    """How long before it expires a credential is reported."""


def after_elapsed_time(credential: Credential, rules: LifecycleRules, now: datetime) -> Credential:
    """Returns the credential after what time alone has changed."""
    if credential.state_since > now:
        # The clock was set back: timed states begin now, so that no cooldown lasts until a wrong year.
        until = None if credential.state_until is None else now + (credential.state_until - credential.state_since)
        credential = credential.replace(state_since=now, state_until=until)
    last_error_at = credential.last_error_at
    if credential.errors_in_all and last_error_at is not None and now - last_error_at >= rules.clean:
        credential = credential.replace(errors_in_all=0)
    if credential.state_until is None or now < credential.state_until:
        return credential
    if is_used_up(credential) and credential.state == COOLING:
        return _became(credential, PROBATION, credential.state_reason or Message(""), credential.state_until)
    if credential.state == COOLING:
        active = _became(credential, ACTIVE, message("credential.cooldown_ended"), credential.state_until)
        return active.replace(errors_in_a_row=0)
    if credential.state == PROBATION:
        # The process that was to try it never reported the result: another one may.
        return credential.replace(state_until=None)
    return _became(credential, PROBATION, message("credential.ban_ended"), credential.state_until)


def failed(credential: Credential, rules: LifecycleRules, sent_at: datetime, now: datetime, error: str) -> Credential:
    """Returns the credential after a request with it was refused through its own fault.

    Requests that were in flight when its state began are part of what led to it, and count no further: ten that fail
    together are one failure.
    """
    why = _shortened(error)
    credential = credential.replace(last_error=str(why), last_error_at=now)
    if credential.state in (COOLING, PROBATION) and _is_sent_in(credential, sent_at):
        is_cooling = credential.state == COOLING
        code = "credential.refused_in_cooldown" if is_cooling else "credential.refused_on_probation"
        return _fell(credential, BANNED, message(code, why=why), rules, now)
    if credential.state != ACTIVE:
        return credential
    in_a_row, in_all = credential.errors_in_a_row + 1, credential.errors_in_all + 1
    credential = credential.replace(errors_in_a_row=in_a_row, errors_in_all=in_all)
    if in_all >= rules.most_in_all:
        total = message("credential.errors_in_total", errors=in_all, why=why)
        return _fell(credential, INVALID, total, rules, now)
    if in_a_row >= rules.most_in_a_row:
        cooling = _became(credential, COOLING, message("credential.errors_in_a_row", errors=in_a_row, why=why), now)
        return cooling.replace(state_until=now + rules.cooling)
    return credential


def used_up(credential: Credential, until: datetime, now: datetime, error: str) -> Credential:
    """Returns the credential after its account had nothing left to spend: there is no use in trying it before then.
    After that, it is on probation: one request shows whether the account was topped up."""
    why = _shortened(error)
    credential = credential.replace(last_error=str(why), last_error_at=now)
    if credential.state not in (ACTIVE, PROBATION):
        return credential
    return _became(credential, COOLING, why, now).replace(state_until=until, errors_in_a_row=0)


def is_used_up(credential: Credential) -> bool:
    """Whether its account had nothing left to spend when it was last used. A cooldown after errors has consecutive
    errors, and a ban is counted: it has neither."""
    if credential.falls_in_a_row:
        return False
    return credential.state == PROBATION or (credential.state == COOLING and not credential.errors_in_a_row)


def succeeded(credential: Credential, sent_at: datetime, now: datetime) -> Credential:
    """Returns the credential after a request with it was answered."""
    if credential.state != COOLING:
        credential = credential.replace(errors_in_a_row=0)
    if credential.state in (*FALLEN, PROBATION) and _is_sent_in(credential, sent_at):
        return _became(credential, ACTIVE, message("credential.accepted"), now).replace(
            errors_in_all=0, falls_in_a_row=0
        )
    return credential


def _is_sent_in(credential: Credential, sent_at: datetime) -> bool:
    """Whether a request was sent in the present state: one on probation may be used in that very moment."""
    return sent_at > credential.state_since or (credential.state == PROBATION and sent_at == credential.state_since)


def paused(credential: Credential, reason: str | None, now: datetime) -> Credential:
    """Returns the credential after a user paused it; `reason`: the reason given by the user, if any."""
    why = _shortened(reason) if reason else message("paused_by_user")
    return credential.replace(state_reason=why) if credential.state == PAUSED else _became(credential, PAUSED, why, now)


def resumed(credential: Credential, now: datetime) -> Credential:
    """Returns the credential after a user resumed it. A banned or invalid one is proven by its next request."""
    if credential.state == ACTIVE:
        return credential
    state = PROBATION if credential.falls_in_a_row else ACTIVE
    return _became(credential, state, message("resumed_by_user"), now).replace(errors_in_a_row=0, errors_in_all=0)


def on_trial(credential: Credential, now: datetime) -> Credential:
    """Returns the credential as taken on probation: by one request, and by no other before its result is known."""
    return credential.replace(state_until=now + _TRIAL) if credential.state == PROBATION else credential


def used(credential: Credential, count: int, now: datetime) -> Credential:
    """Returns the credential with `count` more uses."""
    return credential.replace(
        used_on=day_of(now),
        used_that_day=used_today(credential, now) + count,
        use_count=credential.use_count + count,
        last_used_at=now,
    )


def given_back(credential: Credential, count: int, taken_at: datetime) -> Credential:
    """Returns the credential without `count` uses that were counted then and not made."""
    of_that_day = count if credential.used_on == day_of(taken_at) else 0
    return credential.replace(
        used_that_day=max(0, credential.used_that_day - of_that_day), use_count=max(0, credential.use_count - count)
    )


def _became(credential: Credential, state: CredentialState, reason: Message, at: datetime) -> Credential:
    return credential.replace(state=state, state_since=at, state_until=None, state_reason=reason)


def _shortened(text: str) -> Message:
    """Returns a text as a message; a very long one is cut."""
    if len(text) > _LONGEST_REASON:
        return Message(str(text)[:_LONGEST_REASON])
    return as_message(text)


def _fell(
    credential: Credential, state: CredentialState, reason: Message, rules: LifecycleRules, now: datetime
) -> Credential:
    falls = credential.falls_in_a_row + 1
    # The exponent is capped: the cooldown reaches its maximum long before numbers grow too large.
    rest = None if rules.rest is None else min(rules.rest * 2 ** min(falls - 1, 16), _LONGEST_REST)
    until = None if rest is None else now + rest
    return _became(credential, state, reason, now).replace(state_until=until, falls_in_a_row=falls)


def day_of(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%d}"


def used_today(credential: Credential, now: datetime) -> int:
    return credential.used_that_day if credential.used_on == day_of(now) else 0


def left_today(credential: Credential, now: datetime) -> int | None:
    """Returns how many uses are left today; None: no limit."""
    if credential.daily_limit is None:
        return None
    return max(0, credential.daily_limit - used_today(credential, now))


def is_expired(credential: Credential, now: datetime) -> bool:
    return credential.expires_at is not None and now >= credential.expires_at


def hindrance(credential: Credential, now: datetime) -> Message | None:
    """Returns why it must not be used at all (paused, expired, at its daily limit); None if it may."""
    if credential.state == PAUSED:
        return message("credential.paused_because", why=credential.state_reason)
    if is_expired(credential, now):
        return message("credential.expired_on", at=f"{credential.expires_at:%Y-%m-%d %H:%M} UTC")
    if left_today(credential, now) == 0:
        return message("credential.used_up_today", limit=credential.daily_limit)
    return None


def hindrance_of_named(credential: Credential, now: datetime) -> Message | None:
    """Returns why even a source that names it must not use it. Unlike one that was refused, an account that
    has nothing left to spend is not tried at every visit: each would be refused as well."""
    is_waiting = credential.state == COOLING or credential.state_until is not None
    if is_used_up(credential) and is_waiting:
        at = _at(credential.state_until or now)
        return message("credential.used_up_until", at=at, why=credential.state_reason)
    return hindrance(credential, now)


def is_usable(credential: Credential, now: datetime) -> bool:
    """Whether the pool may give it out."""
    is_on_trial = credential.state == PROBATION and credential.state_until is not None
    return hindrance(credential, now) is None and credential.state in (ACTIVE, PROBATION) and not is_on_trial


def usable_from(credential: Credential, now: datetime) -> datetime | None:
    """Returns when it can be used (again), as far as that can be known; None: not before a person acts."""
    if credential.state == PAUSED or (credential.state not in (ACTIVE, PROBATION) and credential.state_until is None):
        return None
    at = max(now, credential.state_until or now)
    if left_today(credential, now) == 0 and day_of(at) == day_of(now):
        at = (now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return None if is_expired(credential, at) else at


def best(pool: Iterable[Credential], now: datetime, avoid: Collection[str] = ()) -> Credential | None:
    """Returns the one to take: by priority, then the one least used today. A credential on probation is tried first,
    with one request; otherwise it would never be reactivated."""

    def order(credential: Credential) -> tuple[bool, int, int, datetime, int]:
        last_used_at = credential.last_used_at or credential.created_at
        is_proven = credential.state != PROBATION
        return is_proven, -credential.priority, used_today(credential, now), last_used_at, credential.id

    usable = (credential for credential in pool if credential.is_shared and is_usable(credential, now))
    return min((credential for credential in usable if credential.name not in avoid), key=order, default=None)


def soonest(pool: Sequence[Credential], now: datetime) -> datetime | None:
    """Returns when one of the pool will be usable."""
    moments = (usable_from(credential, now) for credential in pool if credential.is_shared)
    return min((at for at in moments if at is not None), default=None)


def alarms(
    platform: str, credentials: Sequence[Credential], pool: Sequence[Credential], rules: LifecycleRules, now: datetime
) -> list[AlertRequest]:
    """Returns alerts for all that is wrong with a platform's credentials, and with those of them that are its pool."""
    alerts = []
    for credential in credentials:
        name, expires_at = credential.name, credential.expires_at
        facts: dict[str, MessageParam] = {"name": name, "platform": platform}
        facts["renew"] = (
            message("credential.correct")
            if credential.is_from_environment
            else message("credential.replace", platform=platform, name=name)
        )
        if credential.falls_in_a_row and credential.state != PAUSED:
            refused = message("credential.refused", **facts, state=state_text(credential, now))
            alerts.append(AlertRequest(about_credential(name, "refused"), refused, Severity.P1))
        if is_used_up(credential):
            why = credential.state_reason
            spent = message("credential.used_up", name=name, platform=platform, why=why)
            alerts.append(AlertRequest(about_credential(name, "used up"), spent, Severity.P0))
        if expires_at is not None and now >= expires_at - rules.told_before:
            code = "credential.expired" if is_expired(credential, now) else "credential.expires"
            expiring = message(code, **facts, at=_at(expires_at))
            alerts.append(AlertRequest(about_credential(name, "expiring"), expiring, Severity.P2))
    # A credential on probation does not count: until it was accepted, nothing has changed.
    if pool and not any(credential.state == ACTIVE and is_usable(credential, now) for credential in pool):
        what = message("credential.pool_until", what=exhausted(platform, pool, now), until=until(pool, now))
        alerts.append(AlertRequest(about_pool(platform), what, Severity.P0))
    return alerts


def exhausted(platform: str, pool: Sequence[Credential], now: datetime) -> Message:
    """Returns that none of them is usable, and why."""
    states = [message("credential.is", name=credential.name, state=state_text(credential, now)) for credential in pool]
    return message("credential.pool_exhausted", platform=platform, states=states)


def until(pool: Sequence[Credential], now: datetime) -> Message:
    at = soonest(pool, now)
    return message("credential.person") if at is None else message("credential.usable_from", at=_at(at))


def state_text(credential: Credential, now: datetime) -> Message:
    """Returns the credential's state in a few words."""
    hindered = hindrance(credential, now)
    if hindered is not None:
        return hindered
    state = message(f"credential.state.{credential.state}")
    if credential.state_until is not None and credential.state != PROBATION:
        state = message("credential.until", state=state, at=_at(credential.state_until))
    if not credential.state_reason or credential.state == ACTIVE:
        return state
    return message("credential.because", state=state, why=credential.state_reason)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
