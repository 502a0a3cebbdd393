"""Communities are claimed in batches and collected a few at once, while the other sources go on."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest

from catchment.collect.scheduler import Finished, KindLimit, Queue
from catchment.errors import StoreError
from catchment.model import (
    Lease,
    Outcome,
    Progress,
    Request,
    Source,
)
from catchment.settings import DEFINED, read_settings
from catchment.store.sources.sources import Claimed
from tests.collect.communities import Community
from tests.collect.crowd import Crowd
from tests.town import TownApp

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def shop_with(folder: Path, **environ: str) -> TownApp:
    """An app with these settings."""
    given = read_settings(environ, folder)
    set_so = {name: getattr(given, name) for name, setting in DEFINED.items() if setting.name in environ}
    return TownApp(folder / "home", f"sqlite:///{folder / 'catchment.db'}", **set_so)


# ── who may begin ─────────────────────────────────────────────────────────────────────────────────────────────────


def claimed(*names: str) -> list[Claimed]:
    """Sources whose kind is the beginning of their names."""
    return [
        Claimed(Source(place, name, "p", name.split()[0], name, name, NOW), Progress(), Lease("source", place, 1, 1))
        for place, name in enumerate(names)
    ]


def names(sources: list[Claimed]) -> list[str]:
    return [source.source.name for source in sources]


def test_a_lane_holds_back_its_own_kind_and_no_other() -> None:
    line = Queue(4, {"slow": KindLimit(batch=3, at_once=1)})
    line.join(claimed("slow 1", "slow 2", "quick 1", "quick 2"))
    assert names(line.begin()) == ["slow 1", "quick 1", "quick 2"]
    assert (line.at_work, line.free, line.begin()) == (3, 1, [])
    line.done("slow")
    assert names(line.begin()) == ["slow 2"]


def test_a_worker_goes_on_with_the_first_source_that_its_kinds_limit_allows() -> None:
    line = Queue(2, {"slow": KindLimit(batch=3, at_once=1)})
    line.join(claimed("slow 1", "slow 2", "quick 1"))
    assert [one.source.name for one in (line.begin_one(), line.begin_one(), line.begin_one()) if one] == [
        "slow 1",
        "quick 1",
    ]
    line.done("quick")
    assert line.begin_one() is None
    line.done("slow")
    assert names(line.begin()) == ["slow 2"]


def test_no_worker_goes_on_by_itself_until_what_may_begin_is_decided_anew() -> None:
    line = Queue(1, {})
    line.join(claimed("quick 1", "quick 2"))
    line.begin()
    line.hold()
    line.done("quick")
    assert line.begin_one() is None
    assert names(line.begin()) == ["quick 2"]


def test_there_is_room_for_the_next_batch_when_all_of_the_last_one_are_under_way() -> None:
    line = Queue(2, {"slow": KindLimit(batch=3, at_once=1)})
    assert line.room() == {"slow": 3}
    line.join(claimed("slow 1", "slow 2"))
    line.begin()
    assert line.room() == {"slow": 0}
    line.done("slow")
    line.begin()
    assert line.room() == {"slow": 3}


def test_without_a_free_hand_there_is_no_room_for_anybody() -> None:
    line = Queue(1, {"slow": KindLimit(batch=3, at_once=1)})
    line.join(claimed("quick 1", "quick 2"))
    line.begin()
    assert (line.free, line.room()) == (0, {"slow": 0})


def test_those_who_leave_no_longer_wait() -> None:
    line = Queue(1, {})
    line.join(claimed("quick 1", "slow 1", "quick 2"))
    assert names(line.leave(lambda claim: claim.source.kind == "quick")) == ["quick 1", "quick 2"]
    assert names(line.begin()) == ["slow 1"]
    line.done("slow")
    assert not line


class Busy(Finished):
    """A worker that ends a visit in the time that each look takes, and never waits for a server."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    process_time = monotonic

    def wait(self, seconds: float = 0.5) -> bool:
        assert self.seconds < 10, "nobody looks at the finished visits"
        self.seconds += seconds
        self.count += 1
        return False


def test_finished_visits_do_not_wait_for_long_while_one_worker_is_enough(
    quick: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, line, busy = quick.app.scheduler(), Queue(1, {}), Busy()
    monkeypatch.setattr("catchment.collect.scheduler.time", busy)
    scheduler._wait(line, busy, lambda claimed: None)
    assert 0.4 < busy.seconds < 0.6


# ── a round ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("at_once", [1, 2])
def test_communities_never_take_more_hands_than_they_are_given_and_the_others_go_on(
    tmp_path: Path, at_once: int
) -> None:
    here = shop_with(tmp_path, CRAWLER_MAX_CONCURRENCY=str(at_once), COLLECTOR_CONCURRENCY="3")
    crowd, others_left, others_done = Crowd(here), 5, Event()
    crowd.follow("crowd", 6)
    crowd.follow("others", others_left)

    def no_community_is_done_before_the_others(request: Request) -> None:
        nonlocal others_left
        if request.params["name"].startswith("crowd"):
            assert others_done.wait(600)
            return
        others_left -= 1
        if not others_left:
            others_done.set()

    crowd.before_answering = no_community_is_done_before_the_others
    results = crowd.collect()
    assert [result.outcome for result in results] == [Outcome.SUCCEEDED] * 11
    assert crowd.most_at_once["crowd"] == at_once
    here.close()


def test_five_answers_that_take_long_to_read_keep_no_other_source_from_being_asked(tmp_path: Path) -> None:
    here = shop_with(tmp_path, COLLECTOR_CONCURRENCY="5")
    crowd, all_asked = Crowd(here), Event()
    slow = {source.target for source in crowd.follow("others", 5)}
    names = {source.target for source in crowd.follow("others", 9)}

    def asked(request: Request) -> None:
        if names <= {*crowd.asked}:
            all_asked.set()

    def reading(name: str) -> None:
        if name in slow and not all_asked.wait(600):
            raise AssertionError("the other sources wait until this answer has been read")

    crowd.before_answering, crowd.before_reading = asked, reading
    assert [result.outcome for result in crowd.collect()] == [Outcome.SUCCEEDED] * 9
    here.close()


def test_while_servers_take_their_time_all_workers_are_visiting(tmp_path: Path) -> None:
    here = shop_with(tmp_path, COLLECTOR_CONCURRENCY="7")
    crowd, all_at_once = Crowd(here), Barrier(7, timeout=600)
    crowd.follow("others", 14)
    crowd.before_answering = lambda request: all_at_once.wait()
    assert [result.outcome for result in crowd.collect()] == [Outcome.SUCCEEDED] * 14
    here.close()


def test_communities_are_claimed_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = shop_with(tmp_path, CRAWLER_BATCH_SIZE="3", CRAWLER_MAX_CONCURRENCY="1")
    crowd = Crowd(here)
    crowd.follow("crowd", 7)
    real, batches = here.app.store.sources.claim_due, []

    def claim_due(*given: Any, **more: Any) -> list[Claimed]:
        batches.append(real(*given, **more))
        return batches[-1]

    monkeypatch.setattr(here.app.store.sources, "claim_due", claim_due)
    assert len(crowd.collect()) == 7
    assert [len(batch) for batch in batches if batch] == [3, 3, 1]
    here.close()


def test_communities_that_were_asked_for_by_name_keep_to_their_lane_too(tmp_path: Path) -> None:
    here = shop_with(tmp_path, CRAWLER_MAX_CONCURRENCY="1")
    crowd = Crowd(here)
    sources = [*crowd.follow("crowd", 20), *crowd.follow("others", 5)]
    assert len(crowd.collect(*sources)) == 25
    assert crowd.most_at_once["crowd"] == 1
    here.close()


def test_what_was_asked_for_by_name_is_claimed_as_hands_come_free_whatever_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = shop_with(tmp_path, CRAWLER_BATCH_SIZE="1", CRAWLER_MAX_CONCURRENCY="2", COLLECTOR_CONCURRENCY="3")
    crowd, sizes = Crowd(here), list[int]()
    sources, claim = crowd.follow("crowd", 6), here.app.store.sources.claim

    def counted(ids: list[int], *more: Any) -> list[Claimed]:
        sizes.append(len(ids))
        return claim(ids, *more)

    monkeypatch.setattr(here.app.store.sources, "claim", counted)
    assert len(crowd.collect(*sources)) == 6
    assert (sizes[0], sum(sizes)) == (6, 6)
    assert crowd.most_at_once["crowd"] <= 2
    here.close()


def test_a_stop_frees_those_that_wait_and_they_are_as_due_as_before(here: TownApp) -> None:
    crowd = Crowd(here)
    sources = crowd.follow("crowd", 6)
    crowd.before_answering = lambda request: here.app.stop.set()
    results = here.app.scheduler().due("test", "test")
    assert 1 <= len(results) <= 2
    untouched = [source for source in sources if source.id not in {result.source_id for result in results}]
    assert {here.progress(source).last_polled_at for source in untouched} == {None}
    assert [here.app.store.sources.holder(source.id) for source in untouched] == [None] * len(untouched)


def test_a_stop_leaves_nobody_out_of_the_report_who_was_asked_for_by_name(here: TownApp) -> None:
    crowd = Crowd(here)
    sources = crowd.follow("crowd", 6)
    crowd.before_answering = lambda request: here.app.stop.set()
    results = here.app.scheduler().these([source.id for source in sources], "test", "test")
    assert len(results) == 6
    assert {result.error_code for result in results if result.outcome == Outcome.SKIPPED} == {"NOT_VISITED"}


def test_what_could_not_be_given_back_is_free_once_the_database_is_there_again(
    here: TownApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StoreError("the database is unavailable")

    crowd = Crowd(here)
    sources = crowd.follow("crowd", 6)
    crowd.before_answering = lambda request: here.app.stop.set()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(here.app.store.sources, "give_back", away)
        here.app.scheduler().due("test", "test")
    here.app.presence.heartbeat(here.clock.now())
    assert [here.app.store.sources.holder(source.id) for source in sources] == [None] * 6


# ── what the operator wishes for all communities ──────────────────────────────────────────────────────────────────


def test_the_listing_beside_the_newest_how_far_back_it_looks_and_how_much_of_it_can_be_set_for_all(
    tmp_path: Path,
) -> None:
    here = shop_with(tmp_path, CRAWLER_SORT="hot", CRAWLER_TIME_FILTER="year", CRAWLER_POST_LIMIT="30")
    community = Community(here, sort=None, limit=None)
    community.square.post(60)
    community.collect()
    assert community.square.asked == ["new 0", "new 10", "new 20", "hot 0", "hot 10", "hot 20"]
    assert set(community.square.time_filters) == {None, "year"}
    here.close()


def test_a_communitys_own_settings_go_before_what_is_set_for_all(tmp_path: Path) -> None:
    here = shop_with(tmp_path, CRAWLER_SORT="hot", CRAWLER_POST_LIMIT="30")
    community = Community(here, sort="new", limit=10)
    community.square.post(60)
    community.collect()
    assert community.square.asked == ["new 0"]
    here.close()
