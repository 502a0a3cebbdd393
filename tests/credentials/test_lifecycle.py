"""What becomes of a credential: scenes that a person would tell, and a long life compared with a simple model of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from catchment.credentials import lifecycle
from catchment.credentials.lifecycle import (
    ACTIVE,
    BANNED,
    COOLING,
    INVALID,
    PAUSED,
    PROBATION,
    LifecycleRules,
)
from catchment.model import Credential, CredentialState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RULES = LifecycleRules()
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def credential(name: str = "mine", **more: Any) -> Credential:
    fields: dict[str, Any] = {"id": 1, "platform": "reddit", "created_at": NOW, "state": ACTIVE, "state_since": NOW}
    return Credential(name=name, **(fields | more))


class Story:
    """A credential on a clock that is moved by hand."""

    def __init__(self, rules: LifecycleRules = RULES, **more: Any) -> None:
        self.one, self.now, self.rules = credential(**more), NOW, rules

    def wait(self, span: timedelta) -> Story:
        self.now += span
        self.one = lifecycle.after_elapsed_time(self.one, self.rules, self.now)
        return self

    def error(self, times: int = 1, *, sent_before: timedelta = timedelta(0)) -> Story:
        for _ in range(times):
            # An answer comes a moment after its question.
            self.wait(timedelta(seconds=1))
            sent_at = self.now - sent_before
            self.one = lifecycle.failed(self.one, self.rules, sent_at, self.now, "HTTP 401")
        return self

    def success(self) -> Story:
        self.wait(timedelta(seconds=1))
        self.one = lifecycle.succeeded(self.one, self.now, self.now)
        return self

    @property
    def state(self) -> CredentialState:
        return self.one.state


# ── scenes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_three_errors_in_a_row_cool_it_down_for_half_an_hour() -> None:
    story = Story().error(2)
    assert story.state == ACTIVE
    story.error()
    assert (story.state, story.one.state_until) == (COOLING, story.now + 30 * MINUTE)
    assert story.wait(30 * MINUTE - timedelta(seconds=1)).state == COOLING
    assert story.wait(timedelta(seconds=1)).state == ACTIVE
    assert story.error(2).state == ACTIVE


def test_a_success_between_them_begins_the_row_anew() -> None:
    assert Story().error(2).success().error(2).state == ACTIVE


def test_an_error_of_a_request_sent_while_it_should_cool_down_bans_it() -> None:
    story = Story().error(3).wait(MINUTE).error()
    assert (story.state, story.one.state_until) == (BANNED, story.now + DAY)
    assert story.one.state_reason == "refused during its cooldown: HTTP 401"


def test_ten_requests_that_fail_together_are_one_mishap() -> None:
    story = Story().error(3).error(7, sent_before=MINUTE)
    assert (story.state, story.one.errors_in_all) == (COOLING, 3)


def test_ten_errors_in_all_make_it_invalid() -> None:
    story = Story()
    for _ in range(9):
        story.error().success()
    assert story.state == ACTIVE
    assert story.error().state == INVALID
    assert story.one.state_reason == "10 errors in total: HTTP 401"


def test_errors_in_all_are_counted_anew_after_seven_clean_days() -> None:
    story = Story()
    for _ in range(9):
        story.error().success()
    story.wait(7 * DAY).error()
    assert (story.state, story.one.errors_in_all) == (ACTIVE, 1)


@pytest.mark.parametrize(
    ("rules", "errors", "state"), [(RULES, 4, BANNED), (LifecycleRules(most_in_all=1), 1, INVALID)]
)
def test_who_fell_rests_is_tried_once_and_comes_back_or_rests_twice_as_long(
    rules: LifecycleRules, errors: int, state: CredentialState
) -> None:
    story = Story(rules).error(errors)
    assert story.state == state
    assert story.wait(DAY).state == PROBATION
    assert story.error().state == BANNED
    assert story.one.state_until == story.now + 2 * DAY
    story.wait(2 * DAY).success()
    assert (story.state, story.one.errors_in_all, story.one.falls_in_a_row) == (ACTIVE, 0, 0)


def test_without_a_rest_only_a_person_brings_it_back() -> None:
    story = Story(LifecycleRules(rest=None)).error(3).error()
    assert story.wait(999 * DAY).state == BANNED
    assert lifecycle.usable_from(story.one, story.now) is None
    story.one = lifecycle.resumed(story.one, story.now)
    assert story.state == PROBATION


def test_on_probation_one_request_tries_it_and_nobody_else_meanwhile() -> None:
    story = Story().error(3).error().wait(DAY)
    assert lifecycle.is_usable(story.one, story.now)
    story.one = lifecycle.on_trial(story.one, story.now)
    assert not lifecycle.is_usable(story.one, story.now)
    assert lifecycle.is_usable(story.wait(2 * MINUTE).one, story.now), "whoever tried it was killed"


def test_a_pause_holds_until_a_person_ends_it() -> None:
    story = Story()
    story.one = lifecycle.paused(story.one, "on leave", story.now)
    assert story.wait(99 * DAY).error(20).success().state == PAUSED
    assert (lifecycle.is_usable(story.one, story.now), lifecycle.usable_from(story.one, story.now)) == (False, None)
    assert lifecycle.hindrance(story.one, story.now) == "paused: on leave"
    story.one = lifecycle.resumed(story.one, story.now)
    assert (story.state, story.one.state_reason) == (ACTIVE, "resumed by a user")


def test_a_clock_that_is_set_right_lets_nobody_rest_until_a_wrong_year() -> None:
    story = Story().error(3)
    story.now -= 365 * DAY
    assert story.wait(timedelta(0)).one.state_until == story.now + 30 * MINUTE
    assert story.wait(30 * MINUTE).state == ACTIVE


# ── which one is taken ────────────────────────────────────────────────────────────────────────────────────────────


def pool(**changes: dict[str, Any]) -> list[Credential]:
    return [credential(name, id=number, **more) for number, (name, more) in enumerate(changes.items())]


@pytest.mark.parametrize(
    ("credentials", "taken"),
    [
        (pool(low={"priority": 1}, high={"priority": 5}), "high"),
        (pool(busy={"used_on": "2026-01-01", "used_that_day": 3}, idle={}), "idle"),
        (pool(busy={"used_on": "2025-12-31", "used_that_day": 3, "last_used_at": NOW - DAY}, idle={}), "busy"),
        (pool(high={"priority": 5, "state": COOLING}, low={}), "low"),
        (pool(high={"priority": 5, "state": PAUSED}, low={}), "low"),
        (pool(high={"priority": 5, "expires_at": NOW}, low={"expires_at": NOW + MINUTE}), "low"),
        (pool(high={"priority": 5, "daily_limit": 2, "used_on": "2026-01-01", "used_that_day": 2}, low={}), "low"),
        (pool(high={"priority": 5, "is_shared": False}, low={}), "low"),
        (pool(high={"priority": 5}, rested={"state": PROBATION}), "rested"),
        (pool(avoided={"priority": 5}, low={}), "low"),
        (pool(banned={"state": BANNED}, invalid={"state": INVALID}), None),
    ],
)
def test_the_best_one_is_taken(credentials: list[Credential], taken: str | None) -> None:
    best = lifecycle.best(credentials, NOW, avoid={"avoided"})
    assert (best.name if best else None) == taken


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({}, NOW),
        ({"state": COOLING, "state_until": NOW + HOUR}, NOW + HOUR),
        ({"daily_limit": 1, "used_on": "2026-01-01", "used_that_day": 1}, NOW + 12 * HOUR),
        ({"state": COOLING, "state_until": NOW + HOUR, "expires_at": NOW + HOUR}, None),
        ({"state": BANNED}, None),
    ],
)
def test_it_is_known_when_one_is_usable_again(more: dict[str, Any], at: datetime | None) -> None:
    assert lifecycle.usable_from(credential(**more), NOW) == at


def test_uses_count_for_their_day_and_those_not_made_are_given_back() -> None:
    used = lifecycle.used(lifecycle.used(credential(daily_limit=20), 16, NOW), 4, NOW)
    assert lifecycle.left_today(used, NOW) == 0
    assert lifecycle.left_today(lifecycle.given_back(used, 9, NOW), NOW) == 9
    tomorrow = lifecycle.used(used, 3, NOW + DAY)
    assert lifecycle.left_today(lifecycle.given_back(tomorrow, 9, NOW), NOW + DAY) == 17
    assert lifecycle.given_back(tomorrow, 9, NOW).use_count == 14


# ── a long life, and a simple model of it ─────────────────────────────────────────────────────────────────────────


class Model:
    """The rules as a table: for each state, what an error and a success do to it, and where time leads."""

    ON_ERROR = {"cooling": "banned", "probation": "banned"}
    ON_SUCCESS = {"banned": "active", "invalid": "active", "probation": "active"}
    AFTER_ITS_TIME = {"cooling": "active", "banned": "probation", "invalid": "probation"}

    def __init__(self) -> None:
        self.state, self.since, self.until = "active", NOW, NOW
        self.row, self.errors, self.falls = 0, list[datetime](), 0

    def go(self, state: str, at: datetime) -> None:
        if state in ("banned", "invalid"):
            self.falls += 1
        rest = {"cooling": 30 * MINUTE, "banned": self.rest(), "invalid": self.rest()}.get(state, timedelta(0))
        self.state, self.since, self.until = state, at, at + rest

    def rest(self) -> timedelta:
        return min(DAY * 2 ** (self.falls - 1), 30 * DAY) if self.falls else DAY

    def pass_time(self, now: datetime) -> None:
        if self.errors and now - self.errors[-1] >= 7 * DAY:
            self.errors = []
        if self.state in self.AFTER_ITS_TIME and now >= self.until:
            self.row = 0 if self.state == "cooling" else self.row
            self.go(self.AFTER_ITS_TIME[self.state], self.until)

    def error(self, sent_at: datetime, now: datetime) -> None:
        if self.state == "active":
            self.row += 1
            self.errors.append(now)
            if len(self.errors) >= 10:
                self.go("invalid", now)
            elif self.row >= 3:
                self.go("cooling", now)
        else:
            # Not counted, but no clean day either.
            self.errors[-1:] = [now] if self.errors else []
            if self.state in self.ON_ERROR and self.is_after(sent_at):
                self.go(self.ON_ERROR[self.state], now)

    def is_after(self, sent_at: datetime) -> bool:
        return sent_at >= self.since if self.state == "probation" else sent_at > self.since

    def success(self, sent_at: datetime, now: datetime) -> None:
        # The errors that led to a cooldown are told until it is over.
        self.row = self.row if self.state == "cooling" else 0
        if self.state in self.ON_SUCCESS and self.is_after(sent_at):
            self.go(self.ON_SUCCESS[self.state], now)
            self.errors, self.falls = [], 0

    def pause(self, now: datetime) -> None:
        if self.state != "paused":
            self.go("paused", now)

    def resume(self, now: datetime) -> None:
        if self.state != "active":
            self.go("probation" if self.falls else "active", now)
            self.row, self.errors = 0, []


SPANS = st.sampled_from([timedelta(seconds=1), MINUTE, 29 * MINUTE, 31 * MINUTE, 6 * HOUR, DAY, 2 * DAY, 8 * DAY])
AGES = st.sampled_from([timedelta(0), timedelta(seconds=30), 40 * MINUTE])


class LifeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now, self.one, self.model = NOW, credential(), Model()

    def _at_this_time(self) -> Credential:
        self.model.pass_time(self.now)
        return lifecycle.after_elapsed_time(self.one, RULES, self.now)

    @rule(span=SPANS)
    def wait(self, span: timedelta) -> None:
        self.now += span
        self.one = self._at_this_time()

    @rule(age=AGES)
    def error(self, age: timedelta) -> None:
        self.one = lifecycle.failed(self._at_this_time(), RULES, self.now - age, self.now, "refused")
        self.model.error(self.now - age, self.now)

    @rule(age=AGES)
    def success(self, age: timedelta) -> None:
        self.one = lifecycle.succeeded(self._at_this_time(), self.now - age, self.now)
        self.model.success(self.now - age, self.now)

    @rule()
    def pause(self) -> None:
        self.one = lifecycle.paused(self._at_this_time(), "by a person", self.now)
        self.model.pause(self.now)

    @rule()
    def resume(self) -> None:
        self.one = lifecycle.resumed(self._at_this_time(), self.now)
        self.model.resume(self.now)

    @invariant()
    def is_as_the_model_says(self) -> None:
        told = (self.one.state, self.one.state_since, self.one.errors_in_a_row, self.one.errors_in_all)
        assert told == (self.model.state, self.model.since, self.model.row, len(self.model.errors))

    @invariant()
    def rests_only_for_a_known_time(self) -> None:
        if self.one.state in (COOLING, BANNED, INVALID):
            assert self.one.state_until is not None
            assert self.one.state_until - self.one.state_since <= 30 * DAY
            assert not lifecycle.is_usable(self.one, self.now)

    @invariant()
    def says_why_it_is_as_it_is(self) -> None:
        assert self.one.state_reason or self.one == credential() or self.one.state == ACTIVE


TestALongLife = LifeMachine.TestCase
