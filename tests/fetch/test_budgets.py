"""Budgets: at no moment more than declared, whoever asks, whatever the clock does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.credentials.secret import Secret
from catchment.errors import SlowDown
from catchment.fetch.budgets import (
    StoredBudgets,
    Tokens,
    WindowState,
    block_size,
    grant,
    key,
    use,
)
from catchment.fetch.settings import FetchSettings
from catchment.fetch.throttle import Slot, Throttle
from catchment.fetch.urls import parse_url
from catchment.model import Budget
from tests.clocks import HandClock
from tests.fetch.memory_budgets import MemoryBudgets, MemoryRows
from tests.fetch.surroundings import SomePlatform
from tests.hostile import redirect, reply

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REDDIT = Budget("reddit", 60, 60.0, concurrency=10)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


budgets = st.builds(
    Budget,
    name=st.just("some"),
    limit=st.integers(1, 40) | st.integers(1000, 3000),
    window_seconds=st.sampled_from([1.0, 10.0, 60.0, 600.0]),
)
# In hundredths of a window: long enough to leave it, short enough to crowd it.
pauses = st.lists(st.sampled_from([0, 0, 0, 1, 3, 8, 9, 30, 99, 100, 101, 120]), max_size=150)


def most_in_a_window(sent: list[datetime], window: timedelta) -> int:
    return max((sum(begin <= each <= begin + window for each in sent) for begin in sent), default=0)


@given(budgets, pauses, st.lists(st.integers(0, 3), min_size=1))
def test_in_no_window_more_is_sent_than_declared(budget, pauses, askers):
    """Several processes hold blocks of one budget, and use them when they like."""
    shared, now, sent = MemoryBudgets(), NOW, []
    processes = [Tokens(shared) for _ in range(4)]
    for turn, pause in enumerate(pauses):
        now += seconds(pause * budget.window_seconds / 100)
        # All that it can get, so that the limit is met rather than merely kept.
        while processes[askers[turn % len(askers)]].take(budget, None, now) is None:
            sent.append(now)
            if len(sent) % 7 == 0:
                break
    assert most_in_a_window(sent, seconds(budget.window_seconds)) <= budget.limit


@given(budgets, pauses, st.data())
def test_a_clock_that_is_set_back_never_opens_the_gate(budget, pauses, data):
    """Measured by true time, of which the clock loses some at every step."""
    tokens, truth, lost, sent = Tokens(MemoryBudgets()), NOW, seconds(0), []
    for pause in pauses:
        truth += seconds(pause * budget.window_seconds / 100)
        if data.draw(st.integers(0, 9)) == 0:
            lost += seconds(budget.window_seconds * data.draw(st.sampled_from([0.5, 1, 3])))
        while tokens.take(budget, None, truth - lost) is None:
            sent.append(truth)
            if len(sent) % 5 == 0:
                break
    assert most_in_a_window(sent, seconds(budget.window_seconds)) <= budget.limit


def test_a_clock_that_was_far_ahead_closes_the_gate_for_one_window_only():
    ahead = NOW + timedelta(days=365)
    state = WindowState()
    for _ in range(58):
        state, granted, _ = grant(state, REDDIT, ahead, 1)
        assert granted == 1
    state, granted, until = grant(state, REDDIT, NOW, 1)
    assert (granted, until) == (0, NOW + seconds(65) + timedelta(microseconds=1))
    assert grant(state, REDDIT, until, 1)[1] == 1


def test_a_process_that_read_the_time_earlier_does_not_shorten_the_wait_of_others():
    """It waited for its turn: what was granted meanwhile still counts from the time of the grant."""
    state, granted, _ = grant(WindowState(), REDDIT, NOW, 100)
    assert granted == 58
    for late in range(1, 30):
        state, granted, _ = grant(state, REDDIT, NOW - seconds(late), 1)
        assert granted == 0
    assert grant(state, REDDIT, NOW + seconds(64.9), 1)[1] == 0
    assert grant(state, REDDIT, NOW + seconds(65.1), 1)[1] == 1


@given(budgets, pauses, st.lists(st.integers(0, 40), min_size=1))
def test_clocks_that_differ_by_less_than_a_window_never_open_the_gate(budget, pauses, behind):
    """Measured by true time: each process has a clock of its own, some of them behind."""
    shared, truth, sent = MemoryBudgets(), NOW, []
    clocks = [seconds(share * budget.window_seconds / 100) for share in behind]
    processes = [Tokens(shared) for _ in clocks]
    for turn, pause in enumerate(pauses):
        truth += seconds(pause * budget.window_seconds / 100)
        tokens, lost = processes[turn % len(clocks)], clocks[turn % len(clocks)]
        while tokens.take(budget, None, truth - lost) is None:
            sent.append(truth)
            if len(sent) % 5 == 0:
                break
    assert most_in_a_window(sent, seconds(budget.window_seconds) * 0.59) <= budget.limit


def test_a_grant_says_when_it_is_worth_asking_again():
    state, granted, until = grant(WindowState(), REDDIT, NOW, 100)
    assert (granted, until) == (58, None)
    state, granted, until = grant(state, REDDIT, NOW + seconds(10), 1)
    assert granted == 0
    assert grant(state, REDDIT, until, 1)[1] == 1
    assert grant(state, REDDIT, until - timedelta(microseconds=1), 1)[1] == 0


def test_the_state_stays_small_and_survives_json():
    budget, state, now = Budget("fast", 100_000, 600.0), WindowState(), NOW
    for _ in range(5000):
        now += seconds(0.4)
        state, granted, _ = grant(state, budget, now, 1)
        assert granted == 1
    text = msgspec.json.encode(state)
    assert len(text) < 3000
    assert msgspec.json.decode(text, type=WindowState) == state


class JsonRows:
    """Keeps windows as a database would: as text."""

    def __init__(self):
        self.kept: dict[str, str] = {}

    def change(self, name, now, action):
        window, result = action(json.loads(self.kept[name]) if name in self.kept else None)
        self.kept[name] = json.dumps(window)
        return result


def test_two_processes_share_what_is_kept_for_both():
    rows = JsonRows()
    processes = [Tokens(StoredBudgets(rows)), Tokens(StoredBudgets(rows))]
    sent = [process for process in processes * 60 if process.take(REDDIT, None, NOW) is None]
    assert (len(sent), list(rows.kept)) == (58, ["reddit"])


@pytest.mark.parametrize(
    ("budget", "size"),
    [(REDDIT, 1), (Budget("nga", 1, 1.0), 1), (Budget("x", 600, 600.0), 1), (Budget("fast", 6000, 60.0), 60)],
)
def test_slow_budgets_are_taken_one_by_one_and_fast_ones_in_blocks(budget, size):
    assert block_size(budget) == size


def test_tokens_lapse_when_they_are_not_used_soon():
    fast, shared = Budget("fast", 6000, 60.0), CountingBudgets()
    tokens = Tokens(shared)
    for _ in range(60):
        assert tokens.take(fast, None, NOW) is None
    assert shared.taken == 1
    assert tokens.take(fast, None, NOW) is None
    assert tokens.take(fast, None, NOW + use(fast)) is None
    assert shared.taken == 2
    assert tokens.take(fast, None, NOW + use(fast) + timedelta(microseconds=1)) is None
    assert shared.taken == 3


class WallClock(HandClock):
    """A second of it is one on the wall."""

    def wall_seconds(self, seconds):
        return seconds


class SlowBudgets(MemoryBudgets):
    """Where it takes a while until a process gets its turn."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.delays = clock, []

    def take(self, budget, credential, now):
        self.clock.advance(self.delays.pop(0) if self.delays else 0)
        return super().take(budget, credential, now)


def test_a_token_that_has_lapsed_on_its_way_is_not_used_and_another_one_is_asked_for():
    clock = WallClock(NOW)
    shared = SlowBudgets(clock)
    tokens = Tokens(shared, clock)
    late = use(REDDIT).total_seconds() + 0.001
    shared.delays = [late, late]
    assert tokens.take(REDDIT, None, clock.now()) == NOW + seconds(late)
    assert tokens.take(REDDIT, None, clock.now()) == NOW + seconds(2 * late)
    assert tokens.take(REDDIT, None, clock.now()) is None
    (level,) = shared.levels([(REDDIT, None)], clock.now())
    assert level.used == 3


@pytest.mark.parametrize("late", [4.0, 60.0, 180.0, 86_400.0])
def test_a_process_that_stopped_after_it_read_the_time_does_not_open_the_window_for_others(late):
    clock = WallClock(NOW)
    rows = MemoryRows()
    stopped, others = (StoredBudgets(rows, clock) for _ in range(2))
    clock.advance(late)
    now = clock.now()
    assert sum(others.take(REDDIT, None, now).tokens for _ in range(100)) == 58
    assert stopped.take(REDDIT, None, NOW).tokens == 0
    assert sum(others.take(REDDIT, None, now + seconds(second)).tokens for second in range(65)) == 0


def test_a_call_whose_tokens_came_too_late_goes_on_with_one_that_does_not():
    """However long that takes: nothing is used up, so there is nothing to wait for."""
    clock, platform = WallClock(NOW), SomePlatform(budget=REDDIT)
    shared = SlowBudgets(clock)
    shared.delays = [60.0, 60.0]
    throttle = Throttle(FetchSettings("test"), clock, Event(), shared)
    with throttle.admission(Slot(platform, None, parse_url("https://example.org/")), is_operators=False):
        assert clock.now() == NOW + seconds(120)


class ContestedBudgets(MemoryBudgets):
    """Others are quicker: so many times, whoever asks finds the window closed until the next opens."""

    def __init__(self, losses):
        super().__init__()
        self.losses = losses

    def take(self, budget, credential, now):
        if self.losses:
            self.losses -= 1
            return (
                super()
                .take(budget, credential, now)
                .replace(tokens=0, wait_until=now + timedelta(seconds=budget.window_seconds))
            )
        return super().take(budget, credential, now + timedelta(seconds=2 * budget.window_seconds))


@pytest.mark.parametrize(("window", "losses", "is_admitted"), [(1.0, 50, True), (1.0, 70, False), (6.0, 1, False)])
def test_whoever_loses_the_race_for_a_short_window_waits_for_the_next_one(window, losses, is_admitted):
    clock, platform = WallClock(NOW), SomePlatform(budget=Budget("nga", 1, window))
    throttle = Throttle(FetchSettings("test"), clock, Event(), ContestedBudgets(losses))
    slot = Slot(platform, None, parse_url("https://example.org/"))
    if is_admitted:
        with throttle.admission(slot, is_operators=False):
            assert clock.now() >= NOW + seconds(losses * window)
    else:
        with pytest.raises(SlowDown), throttle.admission(slot, is_operators=False):
            pass


def test_of_a_short_window_a_token_that_came_in_the_usual_time_is_used():
    clock, short = WallClock(NOW), Budget("nga", 1, 1.0)
    shared = SlowBudgets(clock)
    shared.delays = [0.2]
    assert Tokens(shared, clock).take(short, None, NOW) is None


def test_tokens_lapse_when_the_clock_is_set_back():
    fast, shared = Budget("fast", 6000, 60.0), CountingBudgets()
    tokens = Tokens(shared)
    assert tokens.take(fast, None, NOW) is None
    assert tokens.take(fast, None, NOW - timedelta(microseconds=1)) is None
    assert shared.taken == 2


class CountingBudgets(MemoryBudgets):
    def __init__(self):
        super().__init__()
        self.taken = 0

    def take(self, budget, credential, now):
        self.taken += 1
        return super().take(budget, credential, now)


def test_threads_together_get_no_more_than_there_is():
    tokens, got = Tokens(MemoryBudgets()), []

    def action() -> None:
        for _ in range(30):
            if tokens.take(REDDIT, None, NOW) is None:
                got.append(1)

    threads = [Thread(target=action) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 58


def test_credentials_have_budgets_of_their_own_where_the_platform_counts_so():
    each = Budget("x", 1, 60.0, is_per_credential=True)
    assert (key(each, "one"), key(each, None), key(REDDIT, "one")) == ("x/one", "x/", "reddit")
    tokens = Tokens(MemoryBudgets())
    assert [tokens.take(each, name, NOW) is None for name in ("one", "two", "one")] == [True, True, False]


def test_strangers_may_be_allowed_less(new_door, server):
    door = new_door(longest_wait_seconds=0)
    door.platform = SomePlatform(budget=Budget("x", 60, 60.0, is_per_credential=True, anonymous_limit=1))
    door.secrets["app"] = Secret(basic="a:b")
    url = server.on("/", reply())
    door.ask(url)
    with pytest.raises(SlowDown, match="budget of x is used up"):
        door.ask(url)
    for _ in range(5):
        door.ask(url, credential="app")


def test_a_budget_of_a_few_requests_is_used_whole(door, server):
    door.platform = SomePlatform(budget=Budget("small", 3, 1.0))
    url = server.on("/", reply())
    for _ in range(9):
        door.ask(url)
    # Twelve a second would be too many; two a second, a third too few.
    assert [round(wait, 3) for wait in door.clock.waits] == [1.083, 1.083]


def test_a_short_wait_for_the_budget_is_waited_for(door, server):
    door.platform = SomePlatform(budget=Budget("nga", 1, 1.2))
    url = server.on("/", reply())
    for _ in range(3):
        door.ask(url)
    assert [round(wait, 3) for wait in door.clock.waits] == [1.3, 1.3]


def test_a_long_wait_for_the_budget_ends_the_call(door, server):
    door.platform = SomePlatform(budget=Budget("slow", 1, 60.0))
    url = server.on("/", reply())
    door.ask(url)
    with pytest.raises(SlowDown, match="budget of slow is used up") as caught:
        door.ask(url)
    assert caught.value.retry_at == door.clock.now() + seconds(65) + timedelta(microseconds=1)
    assert len(door.attempts) == 1


def test_the_next_turn_of_a_pace_is_waited_for_however_slow_it_is(door, server):
    door.platform = SomePlatform(budget=Budget("board 7", 1, 60.0, is_pace=True))
    url = server.on("/", reply())
    for _ in range(3):
        door.ask(url)
    assert [round(wait) for wait in door.clock.waits] == [65, 65]


def test_every_step_of_a_redirect_uses_the_budget_but_other_hosts_do_not(door, server):
    door.platform = SomePlatform(hosts=("127.0.0.1",), budget=Budget("slow", 1, 60.0))
    server.on("/b", redirect(f"http://localhost:{server.port}/end"))
    server.on("/end", reply())
    # Two of the platform's own, of a limit of one.
    with pytest.raises(SlowDown, match="used up"):
        door.ask(server.on("/a", redirect("/b")))
    door.clock.advance(100)
    assert door.ask(f"{server.url}/b").status == 200
    assert door.outcomes == ["302", "302", "200"]


BOARD, SITE = Budget("board 7", 1, 2.0), Budget("site", 1, 1.0)


@given(pauses, st.lists(st.integers(0, 3), min_size=1))
def test_a_request_with_a_budget_of_its_own_keeps_both(pauses, askers):
    shared, now = MemoryBudgets(), NOW
    processes = [Tokens(shared) for _ in range(4)]
    of_board, of_site = [], []
    for turn, pause in enumerate(pauses):
        now += seconds(pause / 30)
        process = processes[askers[turn % len(askers)]]
        if process.take_each([BOARD, SITE], None, now) is None:
            of_board.append(now)
            of_site.append(now)
        elif turn % 3 == 0 and process.take(SITE, None, now) is None:
            of_site.append(now)
    assert most_in_a_window(of_board, seconds(2)) <= 1
    assert most_in_a_window(of_site, seconds(1)) <= 1


def test_nothing_is_taken_from_a_narrow_budget_while_the_wider_one_is_used_up():
    shared = MemoryBudgets()
    tokens = Tokens(shared)
    assert tokens.take(SITE, None, NOW) is None
    budget, until = tokens.take_each([BOARD, SITE], None, NOW)
    assert (budget, until > NOW) == (SITE, True)
    assert shared.levels([(BOARD, None)], NOW)[0].used == 0
    assert tokens.take_each([BOARD, SITE], None, until) is None


def test_the_stricter_of_two_budgets_decides_how_long_a_request_waits(door, server):
    door.platform = SomePlatform(budget=SITE)
    url = server.on("/", reply())
    door.ask(url, budget=BOARD)
    door.ask(url)
    door.ask(url, budget=BOARD)
    # A window and the life of its token after the site's first request, and after the board's.
    assert [round(wait, 3) for wait in door.clock.waits] == [1.083, 1.083]
    door.ask(url, budget=BOARD.replace(name="board 8", window_seconds=4.0))
    door.ask(url, budget=BOARD.replace(name="board 8", window_seconds=4.0))
    assert round(sum(door.clock.waits), 3) == 2.167 + 1.083 + 4.333


def test_a_budget_of_a_request_holds_without_one_of_the_platform(door, server):
    url = server.on("/", reply())
    for _ in range(2):
        door.ask(url, budget=BOARD)
    assert [round(wait, 3) for wait in door.clock.waits] == [2.167]
