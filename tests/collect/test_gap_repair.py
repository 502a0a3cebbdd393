"""Gaps in time are repaired through another way to their items, and closed only when all of the stretch was walked."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from catchment.errors import ServerTrouble, SlowDown
from catchment.model import Answer, Gap, Item, Kind, Reading, Request, Source, SourceState, WalkPlan
from catchment.policy.coverage import Repairability, outlook_of
from catchment.store.items.floor_audits import AuditView
from catchment.store.sources.gaps import GapRepairView, GapView
from tests.collect.numbers import SITE, START, Numbers, Site, platform_of
from tests.town import TownApp

SEARCH = f"{SITE}/search"
PER_PAGE = 20


class SearchableSite(Site):
    """Its search shows whole posts, newest first, from a time on; also those that the list leaves out."""

    def __init__(self, now: Any) -> None:
        super().__init__(now)
        self.unlisted: set[int] = set()
        self.searched: list[int] = []
        """The time from which on was asked, in minutes since the beginning."""
        self.search_says: deque[BaseException | bytes | None] = deque()
        """What the search does instead of answering, once each; None: it answers."""

    def shown(self, url: str) -> list[int]:
        return [number for number in super().shown(url) if number not in self.unlisted]

    def _said(self, request: Request) -> bytes:
        if request.url != SEARCH:
            return super()._said(request)
        until = int(request.params["until"])
        self.searched.append(until)
        says = self.search_says.popleft() if self.search_says else None
        if isinstance(says, BaseException):
            raise says
        numbers = [number for number in reversed(range(self.count)) if number <= until]
        return says or msgspec.json.encode({"posts": numbers[:PER_PAGE], "more": len(numbers) > PER_PAGE})


def reach(source: Source, gap: Gap, plan: WalkPlan, now: datetime) -> list[Request]:
    minutes = int((gap.open_to_at - START).total_seconds() // 60)
    return [Request(SEARCH, params={"until": str(minutes)}, listing="new")]


def searchable(site: Site, *, gap_repair: str = "Repaired by search.") -> Any:
    plain = platform_of(site, 10, None)
    (kind,) = plain.KINDS

    def read(answer: Answer, request: Request) -> Reading:
        if request.url != SEARCH:
            reading: Reading = plain.read(answer, request)
            return reading
        body = msgspec.json.decode(answer.body)
        posts = [Item(str(number), created_at=site.at(number), text=f"post {number}") for number in body["posts"]]
        follow = (request.replace(params={"until": str(body["posts"][-1])}),) if body["more"] else ()
        return Reading(tuple(posts), follow=follow, is_end=not follow)

    names = {**vars(plain), "KINDS": (kind.replace(gap_repair=gap_repair),), "read": read, "reach": reach}
    return SimpleNamespace(**names)


class Scene(Numbers):
    """A list of fifty; ten are stored, and two hundred were posted since: 140 are in the gap."""

    site: SearchableSite

    def __init__(self, here: TownApp, **declared: str) -> None:
        self.here = here
        self.site = SearchableSite(lambda: here.clock.now())
        here.play(self.site, searchable(self.site, **declared))
        self.source = self.follow("new")
        self.site.post(10)
        self.collect()

    def overflow(self) -> GapView:
        self.site.post(200)
        self.collect()
        (gap,) = self.here.gaps()
        return gap

    def repair(self, source_id: int | None = None, *, is_repairing: bool = True) -> AuditView:
        self.site.searched.clear()
        self.here.clock.advance(3600)
        return self.here.app.floor_audit().run("test", is_repairing=is_repairing, source_id=source_id)

    def repairs(self) -> list[GapRepairView]:
        return self.here.app.store.gaps.repairs(self.gap().id)

    def gap(self) -> GapView:
        (gap,) = self.here.gaps(include_closed=True)
        return gap

    @property
    def kind(self) -> Kind | None:
        return self.here.app.platforms.kind("numbers")


@pytest.fixture
def scene(here: TownApp) -> Scene:
    return Scene(here)


def test_a_repair_stores_what_was_missing_once_and_closes_the_gap(scene: Scene) -> None:
    gap = scene.overflow()
    assert scene.stored() == {*range(10), *range(160, 210)}
    mark = scene.mark()
    audit = scene.repair()
    assert scene.stored() == set(range(210))
    assert len(scene.here.items(scene.source)) == 210
    assert (audit.gap_count, audit.repaired_gap_count, audit.failed_gap_count) == (1, 1, 0)
    closed = scene.gap()
    assert (closed.closed_because, closed.closed_at, closed.standing) == (
        "repaired",
        scene.here.clock.now(),
        "repaired",
    )
    (repair,) = scene.repairs()
    assert (repair.result, repair.new_count, repair.page_count, repair.stopped_by) == ("repaired", 150, 8, None)
    assert (repair.from_at, repair.to_at, repair.audit_id) == (gap.from_at, gap.to_at, audit.id)
    # The listing's own progress is as before: the next visit goes on where it was.
    assert scene.mark() == mark
    assert scene.repair().gap_count == 0
    assert scene.site.searched == []


def test_what_only_the_search_shows_is_stored_for_the_source(scene: Scene) -> None:
    scene.site.unlisted = {77}
    scene.overflow()
    scene.repair()
    item = scene.here.item("77")
    assert (item["text"], item["source_id"]) == ("post 77", scene.source.id)
    assert 77 in scene.stored(scene.source)


def test_a_repair_that_fails_in_the_middle_leaves_what_is_left_open_and_the_next_one_goes_on_there(
    scene: Scene,
) -> None:
    gap = scene.overflow()
    scene.site.search_says = deque([None, None, ServerTrouble("500", status=500)])
    audit = scene.repair()
    assert (audit.repaired_gap_count, audit.partial_gap_count) == (0, 1)
    left = scene.gap()
    assert (left.closed_at, left.to_at, left.attempt_count) == (None, gap.to_at, 0)
    assert left.repaired_from_at == scene.site.at(122)
    assert (left.stopped_by, str(left.last_error)) == ("error", "500")
    assert scene.stored() == {*range(10), *range(122, 210)}
    assert scene.repair().repaired_gap_count == 1
    assert (scene.site.searched[0], scene.stored()) == (122, set(range(210)))


@pytest.mark.parametrize("empty", [b'{"posts":[],"more":false}', b'{"posts":[150],"more":false}'])
def test_a_search_that_ends_before_the_lower_edge_proves_nothing(scene: Scene, empty: bytes) -> None:
    scene.overflow()
    scene.site.search_says = deque([None, empty])
    scene.repair()
    assert (scene.gap().closed_at, scene.gap().stopped_by) == (None, "ended")
    assert scene.repair().repaired_gap_count == 1
    assert scene.stored() == set(range(210))


def test_pages_that_repeat_themselves_end_the_repair(scene: Scene) -> None:
    scene.overflow()
    page = msgspec.json.encode({"posts": list(range(160, 140, -1)), "more": True})
    scene.site.search_says = deque([page] * 9)
    scene.repair()
    assert (scene.gap().stopped_by, len(scene.site.searched)) == ("repeats", 2)


def test_a_gap_that_fails_three_times_is_never_asked_for_again_whoever_asks(scene: Scene) -> None:
    scene.overflow()
    scene.site.search_says = deque([ServerTrouble("500", status=500)] * 9)
    found = []
    for _ in range(5):
        audit = scene.repair()
        found.append((audit.failed_gap_count, audit.unreachable_gap_count, len(scene.site.searched)))
        scene.here.app.presence.leave(scene.here.clock.now())
        scene.here.restart()
    assert found == [*[(1, 0, 1)] * 3, *[(0, 1, 0)] * 2]
    assert outlook_of(scene.kind, scene.gap().attempt_count, None) == Repairability.GIVEN_UP
    assert [(repair.result, repair.http_status) for repair in scene.repairs()] == [("failed", 500)] * 3


def test_a_wait_costs_no_attempt(scene: Scene) -> None:
    scene.overflow()
    for _ in range(4):
        scene.site.search_says = deque([SlowDown("429", status=429)])
        assert scene.repair().failed_gap_count == 0
    assert {repair.result for repair in scene.repairs()} == {"deferred"}
    assert scene.repair().repaired_gap_count == 1


def test_a_kill_in_the_middle_costs_a_page_and_one_attempt(scene: Scene) -> None:
    scene.overflow()
    scene.site.search_says = deque([None, None, KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        scene.repair()
    assert scene.gap().repaired_from_at == scene.site.at(122)
    scene.here.app.presence.leave(scene.here.clock.now())
    scene.here.restart()
    assert scene.repair().repaired_gap_count == 1
    assert (scene.site.searched[0], scene.stored()) == (122, set(range(210)))
    assert len(scene.here.items(scene.source)) == 210
    assert [repair.result for repair in scene.repairs()] == ["repaired", None]


def test_a_gap_that_somebody_repairs_is_left_to_them(scene: Scene) -> None:
    gap = scene.overflow()
    store, clock = scene.here.app.store, scene.here.clock
    other = scene.here.another("test", scene.site, scene.here.app.platforms)
    claimed = store.gaps.claim(gap.id, 1, 1, other.presence.owner_id, clock.now(), 3)
    assert claimed is not None
    assert (scene.repair().repaired_gap_count, scene.site.searched) == (0, [])
    store.gaps.release(claimed.lease)
    assert scene.repair().repaired_gap_count == 1
    other.close()


def test_a_gap_that_cannot_be_reached_is_said_to_be_so_and_nothing_is_asked(here: TownApp) -> None:
    scene = Scene(here, gap_repair="")
    gap = scene.overflow()
    audit = scene.repair()
    assert (audit.gap_count, audit.unreachable_gap_count, scene.site.searched) == (1, 1, [])
    assert outlook_of(scene.kind, gap.attempt_count, None) == Repairability.IMPOSSIBLE


def test_an_audit_without_repair_counts_gaps_and_asks_nothing(scene: Scene) -> None:
    scene.overflow()
    audit = scene.repair(is_repairing=False)
    assert (audit.gap_count, audit.repaired_gap_count, scene.site.searched) == (1, 0, [])


def test_gaps_of_a_paused_source_wait_unless_it_is_named(scene: Scene) -> None:
    scene.overflow()
    scene.here.app.store.sources.set_state(scene.source.id, SourceState.PAUSED, "a rest", scene.here.clock.now())
    assert scene.repair().repaired_gap_count == 0
    assert scene.repair(scene.source.id).repaired_gap_count == 1
