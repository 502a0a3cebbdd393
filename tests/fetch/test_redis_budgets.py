"""Budgets in Redis: the same grants as in the database, and never more than one budget, whoever reaches what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.fetch.budgets import (
    AIM,
    Level,
    RedisBudgets,
    RedisRows,
    StoredBudgets,
    Tokens,
    block_size,
    budgets_in,
    life,
    span_of,
)
from catchment.model import Budget
from catchment.redis import Away, RedisLink
from tests.fetch.memory_budgets import MemoryRows
from tests.fetch.test_budgets import NOW, REDDIT, budgets, most_in_a_window, pauses, seconds
from tests.redis_server import RedisServer
from tests.store.desk import Desk, opened
from tests.store.processes import hands

T = TypeVar("T")
SPAN = timedelta(microseconds=span_of(REDDIT))
TICK = timedelta(microseconds=1)


class CutLink(RedisLink):
    """A link that a test can cut, at this end alone."""

    is_cut = False

    def ask(self, action: Callable[[Any], T]) -> T:
        if self.is_cut:
            raise Away
        return super().ask(action)


@pytest.fixture
def link(redis_server: RedisServer) -> Iterator[CutLink]:
    link = CutLink(redis_server.url, "test:")
    yield link
    link.close()


def some(budget: Budget) -> Budget:
    """A budget of this example alone: what Redis keeps stays from one example to the next."""
    return budget.replace(name=uuid4().hex)


def in_use(link: RedisLink, budget: Budget, at: datetime) -> RedisBudgets:
    """Budgets in a Redis that has known this one for so long that nothing of it is used at that time."""
    shared = RedisBudgets(RedisRows(link), MemoryRows())
    shared.take(budget, None, at - 2 * timedelta(microseconds=span_of(budget)))
    return shared


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(budgets, pauses)
def test_redis_grants_what_the_database_grants(link: CutLink, budget: Budget, pauses: list[int]) -> None:
    budget, now = some(budget), NOW
    redis, database = in_use(link, budget, NOW), StoredBudgets(MemoryRows())
    for pause in pauses:
        now += seconds(pause * budget.window_seconds / 100)
        assert redis.take(budget, None, now) == database.take(budget, None, now)


def test_a_redis_that_knows_nothing_counts_as_used_up(link: CutLink, redis_server: RedisServer) -> None:
    shared = RedisBudgets(RedisRows(link), MemoryRows())
    first = shared.take(REDDIT, None, NOW)
    assert (first.tokens, first.wait_until) == (0, NOW + SPAN + TICK)
    assert shared.take(REDDIT, None, NOW + SPAN).tokens == 0
    assert shared.take(REDDIT, None, NOW + SPAN + TICK).tokens == 1
    redis_server.client.flushall()
    assert shared.take(REDDIT, None, NOW + 2 * SPAN).tokens == 0


def test_without_redis_the_database_grants_once_what_redis_may_have_granted_is_past(link: CutLink) -> None:
    shared = in_use(link, REDDIT, NOW)
    assert shared.take(REDDIT, None, NOW).tokens == 1
    link.is_cut = True
    away = shared.take(REDDIT, None, NOW + seconds(1))
    assert (away.tokens, away.wait_until) == (0, NOW + seconds(1) + SPAN + TICK)
    assert away.wait_until is not None
    assert shared.take(REDDIT, None, away.wait_until).tokens == 1


def test_those_who_reach_redis_follow_into_the_database_and_come_back_after_a_span(
    link: CutLink, redis_server: RedisServer
) -> None:
    rows, other = MemoryRows(), RedisLink(redis_server.url, "test:")
    cut, fine = RedisBudgets(RedisRows(link), rows), RedisBudgets(RedisRows(other), rows)
    fine.take(REDDIT, None, NOW - 2 * SPAN)
    link.is_cut = True
    cut.take(REDDIT, None, NOW)
    began = NOW + SPAN + TICK
    both = [budgets.take(REDDIT, None, began).tokens for budgets in (cut, fine) * 40]
    assert sum(both) == 58
    # While somebody was without Redis lately, those who have it go on in the database …
    last = began + 2 * SPAN
    kept = redis_server.client.get("test:budget:reddit")
    taken = [fine.take(REDDIT, None, last).tokens for _ in range(40)]
    assert (sum(taken), redis_server.client.get("test:budget:reddit")) == (40, kept)
    # … and when they are back, what the database granted meanwhile counts.
    taken = [fine.take(REDDIT, None, last + TICK).tokens for _ in range(40)]
    assert sum(taken) == 18
    assert redis_server.client.get("test:budget:reddit") != kept
    other.close()


def test_a_collector_that_never_reaches_redis_is_not_kept_waiting_every_time(link: CutLink) -> None:
    """Started anew every half hour, it finds a budget that nobody has used."""
    link.is_cut = True
    rows = MemoryRows()
    for hour in range(4):
        began = NOW + timedelta(minutes=30 * hour)
        assert RedisBudgets(RedisRows(link), rows).take(REDDIT, None, began).tokens == 1


def test_a_deployment_that_gets_a_redis_goes_on_within_its_budget(link: CutLink) -> None:
    rows = MemoryRows()
    before, after = Tokens(budgets_in(rows, None)), Tokens(budgets_in(rows, link))
    sent = [at for at in [NOW] * 100 if before.take(REDDIT, None, at) is None]
    for step in range(400):
        at = NOW + seconds(step)
        sent += [at] if after.take(REDDIT, None, at) is None else []
    assert most_in_a_window(sent, seconds(60)) <= 60
    assert len(sent) > 150


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ask"] * 12 + ["cut", "mend", "flush"]),
        st.integers(0, 3),
        st.sampled_from([0, 0, 0, 1, 3, 8, 30, 99, 100, 120]),
    ),
    max_size=120,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(budgets, EVENTS)
def test_in_no_window_more_is_sent_than_declared_whoever_reaches_redis(
    redis_server: RedisServer, budget: Budget, events: list[tuple[str, int, int]]
) -> None:
    """Four processes of one deployment, of which the last has no Redis; links are cut and mended, Redis is emptied."""
    budget, rows, now, sent = some(budget), MemoryRows(), NOW, []
    links = [CutLink(redis_server.url, "test:") for _ in range(3)]
    processes = [Tokens(budgets_in(rows, link)) for link in (*links, None)]
    for event, which, pause in events:
        now += seconds(pause * budget.window_seconds / 100)
        if event == "flush":
            redis_server.client.flushall()
        elif event != "ask":
            links[which % 3].is_cut = event == "cut"
        else:
            while processes[which].take(budget, None, now) is None:
                sent.append(now)
                if len(sent) % 7 == 0:
                    break
    for link in links:
        link.close()
    assert most_in_a_window(sent, seconds(budget.window_seconds)) <= budget.limit


def test_processes_that_take_tokens_at_once_together_get_no_more_than_there_is(
    redis_server: RedisServer, database_url: str, tmp_path: Path
) -> None:
    budget, desk = Budget("small", 50, 3600), Desk(opened(database_url, tmp_path))
    link = RedisLink(redis_server.url, "test:")
    known = budgets_in(desk.store.budgets, link)
    known.take(budget, None, desk.now - 2 * (seconds(3600) + life(budget)))
    assert block_size(budget) == 1
    with hands(3, "spend", database_url, tmp_path, 30, redis_server.url) as several:
        assert sum(process.hear() for process in several) == 48
    assert redis_server.client.get("test:budget:small") is not None
    link.close()
    desk.close()


def test_how_full_a_budget_is_counts_both_homes_and_looking_takes_nothing(link: CutLink) -> None:
    budget = some(REDDIT)
    shared = in_use(link, budget, NOW)
    assert shared.levels([(budget, None)], NOW) == [Level(None, 0, budget.limit)]
    taken = [shared.take(budget, None, NOW).tokens for _ in range(3)]
    for _ in range(2):
        assert shared.levels([(budget, None)], NOW) == [Level(None, sum(taken), budget.limit)]
    while shared.take(budget, None, NOW).tokens:
        pass
    (full,) = shared.levels([(budget, None)], NOW)
    assert (full.used, full.opens_at) == (int(budget.limit * AIM), NOW + SPAN + TICK)
    link.is_cut = True
    shared.take(budget, None, NOW)
    assert shared.levels([(budget, None)], NOW)[0].opens_at is not None
