"""One piece of work is in one pair of hands, and comes free the moment those hands are gone."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from catchment.errors import LeaseLost
from catchment.model import Target
from catchment.store import leases
from catchment.store.database import Transaction
from catchment.store.leases import living
from catchment.store.sources.sources import SourceRequest
from tests.clocks import HandClock
from tests.store.desk import Desk, opened, post
from tests.store.hands import Interval, hammer
from tests.store.processes import hands
from tests.store.structure import content

HOUR = timedelta(hours=1)
CLAIMED = int(os.environ.get("CATCHMENT_EXAMPLES", "1500"))
"""How many sources many claimers share. docs/reliability.md has the figures of 10,000."""


@pytest.fixture
def neighbour(desk: Desk, database_url: str, tmp_path: Path) -> Iterator[Desk]:
    """A second process, as far as one can tell from inside the first."""
    other = Desk(opened(database_url, tmp_path), desk.clock)
    yield other
    other.close()


def test_what_somebody_holds_cannot_be_claimed(desk: Desk, neighbour: Desk) -> None:
    source = desk.follow()
    desk.claim(source)
    assert neighbour.store.sources.claim([source.id], neighbour.presence.owner_id, desk.now) == []
    assert neighbour.due() == []
    holder = neighbour.store.sources.holder(source.id)
    assert holder is not None
    assert (holder.pid, holder.work) == (os.getpid(), "test")


def test_a_superseded_number_writes_nothing(desk: Desk, neighbour: Desk) -> None:
    source = desk.follow()
    late = neighbour.claim(source)
    neighbour.presence.leave(desk.now)
    own = desk.claim(source)
    assert (own.lease.number, desk.run_id) == (late.lease.number + 1, 1)
    before = content(desk.store.database)
    with pytest.raises(LeaseLost):
        desk.write(own.replace(lease=late.lease), [post("a")])
    assert not desk.give_back(own.replace(lease=late.lease))
    assert content(desk.store.database) == before
    assert desk.write(own, [post("a")]).counts.new == 1


def test_ending_a_visit_gives_the_lease_back(desk: Desk, neighbour: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a"))
    assert neighbour.claim(source).lease.number == 2


def test_of_visits_that_end_together_only_those_whose_lease_was_lost_are_not_written(
    desk: Desk, neighbour: Desk
) -> None:
    lost, kept = neighbour.claim(desk.follow("lost")), desk.claim(desk.follow("kept"))
    neighbour.presence.leave(desk.now)
    own = desk.claim(lost.source)
    finished = [desk.finished_visit(lost), desk.finished_visit(kept)]
    assert desk.store.page_writer.end(finished) == finished[:1]
    assert [row[3] for row in desk.rows("leases", "resource, resource_id, number, owner_id")] == [
        own.lease.owner_id,
        None,
    ]
    assert desk.store.runs.of_source(lost.source.id) == []
    assert [visit.outcome for visit in desk.store.runs.of_source(kept.source.id)] == ["unchanged"]


def test_a_lease_to_release_later_is_free_after_the_next_heartbeat(desk: Desk, neighbour: Desk) -> None:
    claimed = desk.claim(desk.follow())
    desk.presence.release_later(claimed.lease)
    desk.presence.heartbeat(desk.now)
    again = neighbour.claim(claimed.source)
    # Owed twice, and taken over meanwhile: not ours to free.
    desk.presence.release_later(claimed.lease)
    desk.presence.heartbeat(desk.now)
    assert desk.store.sources.claim([claimed.source.id], desk.presence.owner_id, desk.now) == []
    neighbour.give_back(again)


def test_leaving_gives_everything_back(desk: Desk, neighbour: Desk) -> None:
    sources = [desk.follow("one"), desk.follow("two")]
    for source in sources:
        neighbour.claim(source)
    neighbour.presence.leave(desk.now)
    assert [desk.claim(source).source for source in sources] == sources
    assert [process.work for process in living(desk.store.database, desk.store.home, desk.now)] == ["test"]


def test_what_does_not_exist_or_is_not_followed_any_more_is_neither_claimed_nor_held(desk: Desk) -> None:
    assert desk.store.sources.claim([4711], desk.presence.owner_id, desk.now) == []
    assert desk.rows("leases") == []


def test_of_two_processes_one_gets_the_job(desk: Desk, neighbour: Desk) -> None:
    desk.store.jobs.announce("clear-old", desk.now)
    lease = desk.store.jobs.claim("clear-old", desk.presence.owner_id, desk.now, HOUR)
    assert lease is not None
    assert neighbour.store.jobs.claim("clear-old", neighbour.presence.owner_id, desk.now, HOUR) is None
    desk.store.jobs.done(lease, desk.now, desk.now + timedelta(hours=1), desk.now, None)
    assert neighbour.store.jobs.claim("clear-old", neighbour.presence.owner_id, desk.now, HOUR) is None
    desk.clock.advance(3600)
    assert neighbour.store.jobs.claim("clear-old", neighbour.presence.owner_id, desk.now, HOUR) is not None


# ── processes that die ────────────────────────────────────────────────────────────────────────────────────────────


def soon(is_so: Callable[[], bool]) -> bool:
    """Whether it comes true; a server needs a moment to notice that a client is gone."""
    give_up_at = time.monotonic() + 300
    while not (so := is_so()) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    return so


@pytest.mark.process
def test_a_killed_process_holds_nothing_and_its_run_is_closed_with_what_it_had_come_to(
    desk: Desk, database_url: str, tmp_path: Path
) -> None:
    sources = [desk.follow("one"), desk.follow("two")]
    ids = [source.id for source in sources]
    with hands(1, "hold", database_url, tmp_path, *ids) as (other,):
        assert other.hear() == ids
        # It lives: neither a look nor a heartbeat frees what it holds, however long ago it was heard of.
        desk.clock.advance(86_400)
        desk.presence.heartbeat(desk.now)
        assert desk.presence.bury(desk.now) == 0
        assert desk.store.sources.claim(ids, desk.presence.owner_id, desk.now) == []
        assert len(living(desk.store.database, tmp_path, desk.now)) == 2
        other.kill()
        assert soon(lambda: desk.presence.bury(desk.now) == 1)
    assert [claim.source for claim in desk.store.sources.claim(ids, desk.presence.owner_id, desk.now)] == sources
    (run,) = desk.store.runs.page()
    wanted = {"is_cut_off": True, "finished_at": desk.now, "source_count": 1, "failed": 1, "new_count": 2}
    assert {name: getattr(run, name) for name in wanted} == wanted
    (visit,) = desk.store.runs.of_source(ids[0])
    assert (visit.outcome, visit.error_code, visit.new_count) == ("failed", "CUT_OFF", 2)
    assert len(list((tmp_path / "locks").glob("*"))) == (0 if desk.store.database.is_postgres else 1)


def test_two_homes_on_one_database_do_not_bury_each_other(desk: Desk, database_url: str, tmp_path: Path) -> None:
    source = desk.follow()
    desk.claim(source)
    other = Desk(opened(database_url, tmp_path / "another home"), desk.clock)
    assert other.presence.bury(desk.now) == 0
    assert other.store.sources.claim([source.id], other.presence.owner_id, desk.now) == []
    other.close()


def test_a_lost_session_means_a_new_beginning(postgres_url: str, tmp_path: Path) -> None:
    desk = Desk(opened(postgres_url, tmp_path))
    source = desk.follow(f"lost {tmp_path}")
    claimed, before = desk.claim(source), desk.presence.owner_id
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(
            """
            SELECT pg_terminate_backend(pid) FROM pg_locks
             WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        )
    desk.clock.advance(20)

    def begins_anew() -> bool:
        desk.presence.heartbeat(desk.now)
        return desk.presence.owner_id != before

    assert soon(begins_anew)
    with pytest.raises(LeaseLost):
        desk.write(claimed, [post("a")])
    assert desk.claim(source).lease.number == claimed.lease.number + 1
    desk.close()


def test_a_process_that_was_given_up_takes_nothing_and_what_it_took_at_that_moment_comes_free_again(
    postgres_url: str, tmp_path: Path
) -> None:
    sleeper = Desk(opened(postgres_url, tmp_path))
    source = sleeper.follow(f"slept {tmp_path}")
    sleeper.store.database.write(
        lambda tx: tx.run("UPDATE owners SET machine = 'elsewhere' WHERE id = ?", sleeper.presence.owner_id)
    )
    given_up = sleeper.presence.owner_id
    watcher = Desk(opened(postgres_url, tmp_path), sleeper.clock)
    assert watcher.presence.bury(watcher.now) == 0
    sleeper.clock.advance(91)
    assert watcher.presence.bury(watcher.now) == 1
    # It wakes, knows nothing yet, and goes on.
    assert sleeper.store.sources.claim([source.id], given_up, sleeper.now) == []
    assert sleeper.due() == []
    assert sleeper.store.leadership.claim(given_up, sleeper.now) is None
    run_id = sleeper.run_id
    # Its claim was committed while it was given up.
    sql = "UPDATE leases SET owner_id = ? WHERE resource = 'source' AND resource_id = ?"
    assert sleeper.store.database.write(lambda tx: tx.run(sql, given_up, source.id)) == 1
    sleeper.presence.heartbeat(sleeper.now)
    assert sleeper.presence.owner_id != given_up
    assert watcher.claim(source).source == source
    assert [run.is_cut_off for run in watcher.store.runs.page() if run.id == run_id] == [True]
    watcher.close()
    sleeper.close()


# ── many at once ──────────────────────────────────────────────────────────────────────────────────────────────────


def never_twice_at_once(held: list[Interval]) -> bool:
    return all(
        earlier[2] <= following[1] for earlier, following in pairwise(sorted(held)) if earlier[0] == following[0]
    )


def test_threads_that_claim_together_never_hold_the_same(desk: Desk, neighbour: Desk) -> None:
    for name in "abcde":
        desk.follow(name)
    desk.presence, neighbour.presence, desk.run_id, neighbour.run_id
    with ThreadPoolExecutor(4) as pool:
        held = [hold for each in pool.map(lambda who: hammer(who, 30), [desk, neighbour] * 2) for hold in each]
    assert len(held) >= 120
    assert never_twice_at_once(held)


@pytest.mark.process
def test_processes_that_claim_together_never_hold_the_same(desk: Desk, database_url: str, tmp_path: Path) -> None:
    for name in "abc":
        desk.follow(name)
    with hands(2, "claim", database_url, tmp_path, 60) as both:
        for process in both:
            assert process.hear() == "ready"
        for process in both:
            process.go()
        held = [(number, began, ended) for process in both for number, began, ended in process.hear()]
        for process in both:
            process.end()
    assert len(held) >= 120
    assert never_twice_at_once(held)
    assert {row[3] for row in desk.rows("leases")} == {None}


@pytest.mark.process
def test_many_claimers_get_each_source_once_and_hardly_ever_nothing_while_there_is_work(
    desk: Desk, database_url: str, tmp_path: Path
) -> None:
    requests = [SourceRequest(Target("rss", f"https://{number}.example/"), "feeds") for number in range(CLAIMED)]
    desk.store.sources.follow_many(requests, desk.now)
    processes, threads = (4, 13) if desk.store.database.is_postgres else (2, 1)
    with hands(processes, "drain", database_url, tmp_path, threads, processes * threads) as claimers:
        for claimer in claimers:
            assert claimer.hear() == "ready"
        for claimer in claimers:
            claimer.go()
        ids, claims, empty, late = zip(*(result for claimer in claimers for result in claimer.hear()), strict=True)
    assert sorted(number for each in ids for number in each) == desk.store.sources.ids()
    sys.stderr.write(
        f"{processes * threads} claimers, {CLAIMED} sources: {sum(claims)} claims, {sum(empty)} empty while there was "
        f"work for all, {sum(late)} while anything was left\n"
    )
    assert sum(empty) <= 0.02 * sum(claims), (sum(empty), sum(claims))


def test_a_claim_passes_over_what_another_is_claiming_at_this_moment(postgres_url: str, tmp_path: Path) -> None:
    desk = Desk(opened(postgres_url, tmp_path))
    other = Desk(opened(postgres_url, tmp_path), desk.clock)
    assert other.presence.owner_id != desk.presence.owner_id

    def claim_both(tx: Transaction) -> None:
        mine = leases.claim(tx, "thread", [5, 3, 9], desk.presence.owner_id, desk.now, limit=2)
        assert sorted(mine) == [3, 5]
        # Not committed yet, and never claimed before: nobody waits, nobody gets the same.
        theirs = other.store.database.write(
            lambda tx: leases.claim(tx, "thread", [5, 3, 9, 1], other.presence.owner_id, desk.now, limit=1)
        )
        assert list(theirs) == [9]

    desk.store.database.write(claim_both)
    left = other.store.database.write(
        lambda tx: leases.claim(tx, "thread", [3, 5, 9, 1], other.presence.owner_id, desk.now)
    )
    assert list(left) == [1]
    desk.close()
    other.close()


def test_a_machine_whose_clock_is_behind_is_not_taken_for_dead(postgres_url: str, tmp_path: Path) -> None:
    ahead = Desk(opened(postgres_url, tmp_path))
    behind = Desk(opened(postgres_url, tmp_path), HandClock())
    ahead.clock.advance(90)
    ahead.presence
    behind.store.database.write(
        lambda tx: tx.run("UPDATE owners SET machine = 'elsewhere' WHERE id = ?", behind.presence.owner_id)
    )
    for _ in range(10):
        for process in (ahead, behind):
            process.clock.advance(20)
            process.presence.heartbeat(process.now)
    assert ahead.presence.bury(ahead.now) == 0
    assert len(living(ahead.store.database, tmp_path, ahead.now)) == 2
    # Silent from now on: within 90 s it counts as gone.
    gone_after = next(
        seconds for seconds in range(20, 200, 20) if ahead.clock.advance(20) or ahead.presence.bury(ahead.now)
    )
    assert 60 <= gone_after <= 90
    for process in (ahead, behind):
        process.close()


@pytest.mark.parametrize("phase", range(3))
def test_a_child_that_looks_thoroughly_once_a_minute_frees_what_a_dead_machine_held_within_90_seconds(
    postgres_url: str, tmp_path: Path, phase: int
) -> None:
    """Even if the beat, which looks all the time, was on that machine."""
    child = Desk(opened(postgres_url, tmp_path))
    gone = Desk(opened(postgres_url, tmp_path), child.clock)
    gone.store.database.write(
        lambda tx: tx.run("UPDATE owners SET machine = 'elsewhere' WHERE id = ?", gone.presence.owner_id)
    )
    source = gone.follow(f"held {tmp_path}")
    gone.claim(source)
    child.presence
    for beat in range(6):
        gone.presence.heartbeat(gone.now, buries=False)
        child.clock.advance(19)
        child.presence.heartbeat(child.now, buries=beat % 3 == phase)
    # Its last heartbeat was 19 seconds ago.
    seconds = 19
    while child.store.sources.holder(source.id) is not None:
        child.clock.advance(20)
        seconds += 20
        beat += 1
        child.presence.heartbeat(child.now, buries=beat % 3 == phase)
    assert 60 <= seconds <= 90
    for desk in (child, gone):
        desk.close()


def test_of_two_beats_one_leads_until_it_is_gone_or_silent(desk: Desk, neighbour: Desk) -> None:
    own, other = desk.store.leadership, neighbour.store.leadership
    lease = own.claim(desk.presence.owner_id, desk.now)
    assert lease is not None
    assert other.claim(neighbour.presence.owner_id, desk.now) is None
    leader = other.leader()
    assert leader is not None
    assert (leader.owner_id, leader.pid) == (desk.presence.owner_id, os.getpid())
    desk.clock.advance(20)
    desk.presence.heartbeat(desk.now)
    assert other.leader() != leader
    own.confirm(lease, desk.now)
    forced = other.claim(neighbour.presence.owner_id, desk.now, is_forced=True)
    assert forced is not None
    with pytest.raises(LeaseLost):
        own.confirm(lease, desk.now)
    other.leave(forced)
    assert own.leader() is None
    assert own.claim(desk.presence.owner_id, desk.now) is not None


def test_two_heartbeats_at_once_begin_anew_once(desk: Desk, neighbour: Desk) -> None:
    desk.presence, neighbour.presence
    neighbour.store.database.write(lambda tx: tx.run("DELETE FROM owners WHERE id = ?", desk.presence.owner_id))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: desk.presence.heartbeat(desk.now), range(4)))
    assert len(living(desk.store.database, desk.store.home, desk.now)) == 2
    assert desk.count("owners") == 2
