"""What a person should know about a platform's credentials: nothing of it is usable, one was refused, one ends soon.
Pure: which alerts are to be open follows from how the credentials stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from catchment.model import Alarm, Credential, Severity
from catchment.store.credentials import about_credential, about_pool
from catchment.vault import life


def alarms(
    platform: str, known: Sequence[Credential], pool: Sequence[Credential], rules: life.LifeRules, now: datetime
) -> list[Alarm]:
    """All that is wrong with a platform's credentials, and with those of them that are its pool."""
    found = [alarm for one in known for alarm in _about(one, rules, now)]
    # One on probation is a hope, not a help: until it was accepted, nothing has changed.
    if pool and not any(one.state == life.ACTIVE and life.is_usable(one, now) for one in pool):
        words = f"{exhausted(platform, pool, now)}; {until(pool, now)}"
        found.append(Alarm(about_pool(platform), words, Severity.P0))
    return found


def exhausted(platform: str, pool: Sequence[Credential], now: datetime) -> str:
    """That none of them is usable, and why."""
    each = "; ".join(f"{one.name} is {standing(one, now)}" for one in pool)
    return f"no credential of {platform} is usable: {each}"


def until(pool: Sequence[Credential], now: datetime) -> str:
    at = life.soonest(pool, now)
    if at is None:
        return "a person must act: `catchment credentials list` shows how they stand"
    return f"the next one is usable from {_at(at)}"


def standing(one: Credential, now: datetime) -> str:
    """How it stands, in a few words."""
    hindered = life.hindrance(one, now)
    if hindered is not None:
        return hindered
    words = str(one.state)
    if one.state_until is not None and one.state != life.PROBATION:
        words += f" until {_at(one.state_until)}"
    return f"{words} ({one.state_reason})" if one.state_reason and one.state != life.ACTIVE else words


def _about(one: Credential, rules: life.LifeRules, now: datetime) -> Iterator[Alarm]:
    if one.falls_in_a_row and one.state != life.PAUSED:
        helps = f"`catchment credentials test {one.name}` tells whether it works again; otherwise {_renewing(one)}"
        words = f"credential {one.name} of {one.platform} is {standing(one, now)}; {helps}"
        yield Alarm(about_credential(one.name, "refused"), words, Severity.P1)
    if one.expires_at is not None and now >= one.expires_at - rules.told_before:
        verb = "has expired" if life.is_expired(one, now) else "expires"
        words = f"credential {one.name} of {one.platform} {verb} on {_at(one.expires_at)}; {_renewing(one)}"
        yield Alarm(about_credential(one.name, "expiring"), words, Severity.P2)


def _renewing(one: Credential) -> str:
    if one.is_from_environment:
        return "correct the settings that it comes from"
    return f"give a new one: `catchment credentials add {one.platform} {one.name} --replace`"


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
