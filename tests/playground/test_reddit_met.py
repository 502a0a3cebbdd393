"""Reddit of the playground, collected over real HTTP: every trap and every fault, and nothing is missing afterwards."""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.credentials.secret import Secret
from catchment.model import Outcome, SourceState, VisitResult, as_dict
from catchment.platforms import reddit
from catchment.platforms.reddit import parser
from catchment.playground.faults import (
    FAULTS,
    REDDIT_FAULTS,
    Cue,
    FaultPlan,
)
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites.reddit import (
    TOKENS,
    RedditSimulator,
    names,
    threads,
)
from catchment.playground.sites.reddit.keys import client
from catchment.playground.world import (
    Habits,
    Place,
    Post,
    World,
)
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.sources.describe import source_view
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.databases import ON_BOTH, sqlite_ready

pytestmark = pytest.mark.long

START = datetime(2026, 3, 2, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
GOOD, BAD = Outcome.SUCCEEDED, Outcome.FAILED
HABITS = Habits(edited=0.25, removed=0.1, late=0.05, hostile=0.0, silences_a_day=0.0, expired_early=0.0)
CROWD, TOWN = 0, 1


@cache
def world_of(habits: Habits) -> World:
    """One for all tests: it never changes, and remembers what it was asked."""
    return World(11, START, 0, 4.0, habits, others={"reddit": 3})


class Scene:
    """A crowd of three thousand posts a day and two smaller communities; what is followed of them, tests say."""

    def __init__(self, folder: Path, database_url: str, script: Sequence[Cue] = (), habits: Habits = HABITS) -> None:
        self.clock = HandClock(START + DAY)
        self.world = world_of(habits)
        self.simulator = RedditSimulator(self.world)
        self.log = folder / "asked.jsonl"
        self.playground = Playground(self.world, self.clock, FaultPlan(11, 0.0, script), log=self.log)
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(database_url),
            base_urls={"reddit": self.playground.url},
            master_key="a key for tests",
            retry_waits=(0.5,),
            timeout_seconds=600,
        )
        self.app: App = open_app(settings, "test")
        self.app.clock = self.clock
        self.sources: dict[str, int] = {}
        self.since: datetime | None = None
        """When the first visit was."""

    def with_key(self) -> Scene:
        terms, secret = Terms(is_shared=True), Secret.parse(":".join(client()))
        self.app.secrets.add("reddit", "app", secret, self.clock.now(), terms=terms)
        return self

    def follow(self, place: int = TOWN, as_what: str = "it", **settings: Any) -> None:
        app, target = self.app, f"r/{names.community(self.world.places[place])}"
        source, _ = follow(
            app.store, app.secrets, app.platforms, "reddit", target, self.clock.now(), settings=settings,
        )  # fmt: skip
        self.sources[as_what] = source.id

    def visit(self, as_what: str = "it") -> VisitResult:
        self.since = self.since or self.clock.now()
        (result,) = self.app.scheduler().these([self.sources[as_what]], "test", "test")
        return result

    def look(self) -> None:
        while self.app.rechecks().run("test"):
            pass

    def later(self, wait: timedelta) -> None:
        self.clock.advance(wait.total_seconds())

    def until(self, hours: int, posts: range) -> timedelta:
        """Wait for the first full hour after which the crowd posts so many within so many hours; gives these."""
        times = sorted(post.began_at for post in self.world.posts(self.place(CROWD)))
        moments = (self.clock.now() + hour * HOUR for hour in range(60))
        length = hours * HOUR
        at = next(at for at in moments if bisect_left(times, at + length) - bisect_left(times, at) in posts)
        self.later(at - self.clock.now())
        return length

    def place(self, number: int = TOWN) -> Place:
        return self.world.places[number]

    def newest(self, number: int = TOWN, at: datetime | None = None) -> list[Post]:
        """What `new` shows now, whole."""
        moment = at or self.clock.now()
        there = self.simulator.site.listed(self.place(number), "new", "", moment)
        return [post for post in there if not post.is_removed(moment)]

    def stored(self) -> dict[str, dict[str, Any]]:
        items = self.app.store.items.newest(20_000)
        by_id = {item.external_id: as_dict(item) for item in items}
        assert len(by_id) == len(items)
        return by_id

    def missing(self, number: int = TOWN) -> list[str]:
        """What is shown now and is not stored, apart from what was let through late, too far down to be looked for."""
        stored, since = self.stored(), self.since or self.clock.now()
        return [
            names.post_id(post)
            for post in self.newest(number)
            if post.shown_from >= since and not is_late(post) and names.post_id(post) not in stored
        ]

    def debts(self, as_what: str = "it") -> int:
        """About how many items something is still to be asked for."""
        return self.app.store.follow_ups.count(self.sources[as_what])

    def note(self, as_what: str = "it") -> str | None:
        """What is told with the source about how it is read."""
        source, progress = self.app.store.sources.with_progress(self.sources[as_what])
        told: str | None = source_view(source, progress, {}).note
        return told

    def gaps(self) -> list[dict[str, Any]]:
        return list(self.app.store.gaps.page())

    def close(self) -> None:
        self.app.close()
        self.playground.close()


def is_late(post: Post) -> bool:
    """Let through, or let back in, some time after it was written."""
    return (post.restored_at or post.shown_from) > post.began_at


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path, database_url: str) -> Iterator[Scene]:
    """With the cues that a test asks for, if it does."""
    scene = Scene(tmp_path, database_url, getattr(request, "param", ())).with_key()
    yield scene
    scene.close()


# ── every fault ────────────────────────────────────────────────────────────────────────────────────────────────────

FAULTY = START + 2 * DAY
# What is stale is six hours old: the listing of the first. A token lasts an hour: the last one needs a new one.
VISITS = (FAULTY - 6 * HOUR + MINUTE, FAULTY - 2 * HOUR, FAULTY + MINUTE)
MET: dict[str, tuple[Outcome, str | None]] = {
    "login_needed": (BAD, "LOGIN_NEEDED"),
    "forbidden": (BAD, "REFUSED"),
    "missing": (BAD, "MISSING"),
    "gone": (BAD, "GONE"),
    "slow_down": (BAD, "SLOW_DOWN"),
    "slow_down_until": (BAD, "SLOW_DOWN"),
    "slow_down_somehow": (BAD, "SLOW_DOWN"),
    "server_error": (BAD, "SERVER_TROUBLE"),
    "bad_gateway": (BAD, "SERVER_TROUBLE"),
    "unavailable": (BAD, "SERVER_TROUBLE"),
    "unavailable_for": (BAD, "SLOW_DOWN"),
    "slow_first_byte": (GOOD, None),
    "slow_drip": (GOOD, None),
    "reset": (BAD, "NETWORK_ERROR"),
    "cut_body": (BAD, "NETWORK_ERROR"),
    "torn_body": (BAD, "NETWORK_ERROR"),
    "gzip_garbage": (BAD, "UNREADABLE"),
    "malformed": (BAD, "NETWORK_ERROR"),
    "empty": (BAD, "SERVER_TROUBLE"),
    "html_page": (BAD, "REFUSED"),
    "captcha": (BAD, "REFUSED"),
    "stale": (BAD, "STALE_ANSWER"),
    "reordered": (GOOD, None),
    "repeated": (GOOD, None),
    "clock_skew": (GOOD, None),
    "looping_cursor": (GOOD, None),
    "outage": (BAD, "NETWORK_ERROR"),
    "private": (BAD, "REFUSED"),
    "banned": (BAD, "GONE"),
    "quarantined": (BAD, "REFUSED"),
    "narrow_scope": (BAD, "LOGIN_NEEDED"),
    "blocked": (BAD, "REFUSED"),
    "over_18": (BAD, "REFUSED"),
    "unknown_name": (BAD, "MISSING"),
    "legal": (BAD, "REFUSED"),
    "login_refused": (BAD, "LOGIN_NEEDED"),
    "challenge": (BAD, "REFUSED"),
    "truncated": (BAD, "NETWORK_ERROR"),
    "deleted_anchor": (GOOD, None),
}
"""By fault: what a visit comes to that meets it at every attempt."""
WITHOUT_KEY: dict[str, tuple[Outcome, str | None]] = {
    **MET,
    "torn_body": (GOOD, None),
    "malformed": (GOOD, None),
    "truncated": (GOOD, None),
    "login_refused": (GOOD, None),
}
"""The same for who has no key: a feed that is broken can be mended, and nobody logs in."""


def cue(fault: str) -> tuple[Cue, ...]:
    path = TOKENS if fault == "login_refused" else "/r/*"
    return (Cue(fault, path=path, from_at=FAULTY, to_at=FAULTY + HOUR),)


def test_every_fault_has_its_expectation_and_its_words() -> None:
    assert MET.keys() == FAULTS.keys() | REDDIT_FAULTS.keys()
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `")}
    assert REDDIT_FAULTS.keys() <= rows.keys()
    codes = {fault: code for fault, (_, code) in MET.items() if code and fault in REDDIT_FAULTS}
    assert [fault for fault, code in codes.items() if code not in rows[fault] and "the same" not in rows[fault]] == []


@pytest.fixture(scope="session")
def visited_twice(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    """A database after two good visits, with a key or without one: what every fault finds when it sets in."""

    @cache
    def database(has_key: bool) -> Path:
        folder = tmp_path_factory.mktemp("visited")
        with closing(Scene(folder, f"sqlite:///{folder / 'c.db'}")) as scene:
            if has_key:
                scene.with_key()
            scene.follow()
            for at in VISITS[:2]:
                scene.later(at - scene.clock.now())
                assert scene.visit().outcome == GOOD
        return folder / "c.db"

    return database


def meets(database: Path, folder: Path, fault: str, expected: tuple[Outcome, str | None]) -> None:
    """After two good visits, one that meets the fault, and one afterwards, by which all is well again."""
    shutil.copyfile(database, folder / "c.db")
    with closing(Scene(folder, f"sqlite:///{folder / 'c.db'}", cue(fault))) as scene:
        scene.later(VISITS[2] - scene.clock.now())
        scene.follow()
        scene.since = VISITS[0]
        assert scene.stored()
        met = scene.visit()
        assert (GOOD if met.outcome == Outcome.UNCHANGED else met.outcome, met.error_code) == expected
        if expected[1] == "GONE":
            assert scene.app.store.sources.get(scene.sources["it"]).state == SourceState.RETIRED
            return
        scene.later(FAULTY + 6 * HOUR - scene.clock.now())
        assert scene.visit().outcome == GOOD
        assert (scene.missing(), scene.gaps()) == ([], [])


@pytest.mark.parametrize("fault", MET)
def test_a_fault_is_met_as_promised_and_nothing_is_lost_by_it(
    tmp_path: Path, visited_twice: Callable[[bool], Path], fault: str
) -> None:
    meets(visited_twice(True), tmp_path, fault, MET[fault])


@pytest.mark.parametrize("fault", WITHOUT_KEY)
def test_without_a_key_a_fault_is_met_as_promised_and_nothing_is_lost_by_it(
    tmp_path: Path, visited_twice: Callable[[bool], Path], fault: str
) -> None:
    meets(visited_twice(False), tmp_path, fault, WITHOUT_KEY[fault])


# ── how far a listing reaches ─────────────────────────────────────────────────────────────────────────────────────


def test_a_crowd_is_read_down_to_what_is_known_and_one_page_further(scene: Scene) -> None:
    scene.follow(CROWD, sort="new")
    wait = scene.until(3, range(350, 800))
    since = scene.clock.now()
    scene.visit()
    scene.later(wait)
    result = scene.visit()
    assert (result.outcome, scene.missing(CROWD), scene.gaps()) == (GOOD, [], [])
    count = len([post for post in scene.newest(CROWD) if post.began_at > since])
    assert count // 100 + 1 < result.requests <= count // 100 + 4


@ON_BOTH
def test_what_a_burst_pushes_beyond_the_thousandth_lies_in_a_gap_with_its_edges(scene: Scene) -> None:
    scene.follow(CROWD, sort="new")
    wait = scene.until(6, range(1_300, 9_000))
    since = scene.clock.now()
    scene.visit()
    mark = max(post.began_at for post in scene.newest(CROWD))
    scene.later(wait)
    result = scene.visit()
    shown = scene.newest(CROWD)
    assert (result.outcome, result.requests) == (GOOD, 11)
    (gap,) = scene.gaps()
    edges = [gap.from_at, gap.to_at]
    assert edges == [mark, shown[-1].began_at]
    assert (gap.is_certain, gap.cause) == (True, "reach")
    stored, now = scene.stored(), scene.clock.now()
    unseen = [
        post
        for post in scene.world.posts(scene.place(CROWD))
        if since < post.shown_from <= now and not post.is_removed(now) and names.post_id(post) not in stored
    ]
    assert len(unseen) > 100
    # Late ones apart: what moderators let through below the edge was nowhere to be seen.
    assert all(edges[0] <= post.began_at <= edges[1] for post in unseen if post.shown_from == post.began_at)


def test_what_was_let_through_late_is_found_below_what_is_known(scene: Scene) -> None:
    scene.follow()
    found, known = 0, set[str]()
    for _ in range(30):
        scene.visit()
        stored = set(scene.stored())
        late = {names.post_id(post) for post in scene.newest() if post.shown_from > post.began_at}
        found += len((stored - known) & late) if known else 0
        known = stored
        scene.later(2 * HOUR)
    scene.visit()
    assert found > 0
    assert (scene.missing(), scene.gaps()) == ([], [])


LOST_ANCHOR = (Cue("deleted_anchor", path="/r/*", first=3, last=4),)


@pytest.mark.parametrize("scene", [LOST_ANCHOR], ids=["lost"], indirect=True)
def test_a_page_that_is_empty_because_its_anchor_is_gone_ends_nothing(scene: Scene) -> None:
    scene.follow(CROWD)
    wait = scene.until(4, range(300, 800))
    scene.visit()
    scene.later(wait - HOUR)
    scene.visit()
    assert len(scene.missing(CROWD)) > 50
    assert scene.gaps() == []
    scene.later(HOUR)
    assert scene.visit().outcome == GOOD
    assert (scene.missing(CROWD), scene.gaps()) == ([], [])


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────

REVOKED = (Cue("login_needed", path="/r/*", first=4, last=4),)


@pytest.mark.parametrize("scene", [REVOKED], ids=["revoked"], indirect=True)
def test_a_token_that_ends_in_the_middle_of_a_walk_is_renewed_and_the_walk_goes_on(scene: Scene) -> None:
    scene.follow(CROWD)
    wait = scene.until(3, range(300, 800))
    scene.visit()
    scene.later(wait)
    assert scene.visit().outcome == GOOD
    assert (scene.missing(CROWD), scene.gaps()) == ([], [])
    assert scene.playground.counts.by_status[401] == 1


def test_tokens_that_die_early_are_renewed_and_nothing_is_missing(tmp_path: Path, database_url: str) -> None:
    with closing(Scene(tmp_path, database_url, habits=HABITS.replace(expired_early=1.0)).with_key()) as scene:
        scene.follow()
        for _ in range(12):
            assert scene.visit().outcome == GOOD
            scene.later(40 * MINUTE)
        assert scene.playground.counts.by_status[401] > 5
        scene.visit()
        assert (scene.missing(), scene.gaps()) == ([], [])


# ── beside the newest ─────────────────────────────────────────────────────────────────────────────────────────────


def test_top_is_read_beside_the_newest_and_proves_nothing(scene: Scene) -> None:
    scene.follow(CROWD, "by top", sort="top", time_filter="week", limit=50)
    scene.visit("by top")
    top = scene.simulator.site.listed(scene.place(CROWD), "top", "week", scene.clock.now())[:40]
    stored = scene.stored()
    assert {names.post_id(post) for post in top if not post.is_removed(scene.clock.now())} <= stored.keys()
    scene.later(2 * HOUR)
    scene.visit("by top")
    assert (scene.missing(CROWD), scene.gaps()) == ([], [])


def test_stickies_of_years_ago_lead_hot_and_end_nothing(scene: Scene) -> None:
    scene.follow(CROWD, "by hot", sort="hot", limit=100)
    for _ in range(3):
        scene.visit("by hot")
        scene.later(2 * HOUR)
    scene.visit("by hot")
    pinned = [item for item in scene.stored().values() if item["is_pinned"]]
    assert 1 <= len(pinned) <= 2
    assert (scene.missing(CROWD), scene.gaps()) == ([], [])


# ── second looks ──────────────────────────────────────────────────────────────────────────────────────────────────


AGES = reddit.KINDS[0].recheck_ages
REMOVING = HABITS.replace(removed=0.4, restored=0.0)


def looks_at(post: Post, runs: list[datetime], stored_at: datetime) -> list[datetime]:
    """When it is looked at, if these are the moments at which anybody looks."""
    found, at = [], stored_at
    for due in (post.began_at + age for age in AGES):
        run = next((run for run in runs if run >= due), None)
        if due > at and run is not None:
            found.append(run)
            at = run
    return found


@ON_BOTH
def test_edits_and_removals_are_seen_by_second_looks_and_what_we_hold_is_kept(
    tmp_path: Path, database_url: str
) -> None:
    with closing(Scene(tmp_path, database_url, habits=REMOVING).with_key()) as scene:
        scene.follow()
        first: dict[str, tuple[datetime, str | None]] = {}
        runs = []
        for _ in range(24):
            scene.visit()
            for id, item in scene.stored().items():
                first.setdefault(id, (scene.clock.now(), item["text"]))
            runs.append(scene.clock.now())
            scene.look()
            scene.later(3 * HOUR)
        by_id = {names.post_id(post): post for post in scene.world.posts(scene.place())}
        removed = edited = 0
        for id, item in scene.stored().items():
            post, (stored_at, text) = by_id[id], first[id]
            is_gone = any(post.is_removed(at) for at in looks_at(post, runs, stored_at))
            assert item["is_deleted"] == is_gone
            assert item["deleted_by"] == (scene.simulator.site.nature(post).removed_by if is_gone else None)
            assert item["text"] not in ("[removed]", "[deleted]")
            removed += is_gone
            edited += item["text"] != text
        assert (removed > 5, edited > 5) == (True, True)


# ── comments ──────────────────────────────────────────────────────────────────────────────────────────────────────

ON_THE_WAY = (
    *("reset", "cut_body", "torn_body", "server_error", "slow_down", "slow_down_somehow", "truncated"),
    *("malformed", "empty", "login_needed", "repeated", "unavailable_for", "outage"),
)
"""What passes: an answer that cannot be had at all is let go, and said."""
BUSY = START + timedelta(hours=40)
TROUBLES = tuple(
    Cue(fault, path=path, from_at=BUSY + hour * HOUR, to_at=BUSY + hour * HOUR + 30 * MINUTE)
    for hour, fault in enumerate(ON_THE_WAY, start=1)
    for path in ("/comments/*", "/api/morechildren")
)


def test_every_comment_that_could_be_seen_is_stored_and_no_stub_stays_owed_whatever_fails_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At its usual size an answer shows all that these communities say.
    monkeypatch.setattr(threads, "MOST", 40)
    with closing(Scene(tmp_path, f"sqlite:///{tmp_path / 'c.db'}", TROUBLES).with_key()) as scene:
        scene.later(BUSY - scene.clock.now())
        scene.follow(comments=True, sort="new")
        for _ in range(2 * len(ON_THE_WAY) + 2):
            scene.visit()
            scene.later(30 * MINUTE)
        while scene.debts():
            assert scene.visit().outcome == GOOD
            scene.later(MINUTE)
        asked, stored, now = read_log(scene.log), scene.stored(), scene.clock.now()
        assert {request.fault for request in asked} >= set(ON_THE_WAY)
        assert {entry.wire_id for request in asked if request.is_whole for entry in request.entries} == stored.keys()
        held = 0
        for post in scene.newest():
            item = stored.get(names.post_id(post), {"reply_count": 0})
            for comment in scene.simulator.site.comments(post)[: item["reply_count"]]:
                if comment.is_removed(now) and comment.name not in stored:
                    # Before its thread was ever asked for.
                    continue
                held += 1
                told = stored[comment.name]
                answers = names.comment_id(post, comment.parent) if comment.parent else names.post_id(post)
                assert (told["kind"], told["thread_id"]) == ("comment", names.post_id(post))
                assert [reference.external_id for reference in told["references"]] == [answers]
                assert told["text"] in [text for _, text in comment.texts] or (told["is_deleted"] and not told["text"])
        assert held > 500


# ── communities that cannot be read ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ((Cue("private", path="/r/*"),), "is private"),
        ((Cue("quarantined", path="/r/*"),), "is quarantined"),
        ((Cue("banned", path="/r/*"),), "is banned"),
        ((Cue("unknown_name", path="/r/*"),), "there is no community"),
        ((Cue("blocked", path="/r/*"),), "Reddit blocks us"),
        ((Cue("over_18", path="/r/*"),), "for adults"),
        ((Cue("challenge", path="/r/*"),), "a bot check"),
        ((Cue("narrow_scope", path="/r/*"),), "may not read this"),
        ((Cue("login_refused", path=TOKENS),), "issued no token for this key"),
    ],
    ids=lambda value: value[0].fault if isinstance(value, tuple) else "",
    indirect=["scene"],
)
def test_why_a_community_cannot_be_read_is_told_apart(scene: Scene, words: str) -> None:
    scene.follow()
    result = scene.visit()
    assert result.outcome == BAD
    assert words in (result.error or "")


# ── without a key ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_key_the_feed_is_read_and_that_is_said(tmp_path: Path, database_url: str) -> None:
    with closing(Scene(tmp_path, database_url)) as scene:
        scene.follow()
        for _ in range(12):
            result = scene.visit()
            assert "without an API key" in result.notes[0]
            scene.later(HOUR)
        scene.visit()
        assert (scene.missing(), scene.gaps()) == ([], [])
        assert {item["score"] for item in scene.stored().values()} == {None}


@ON_BOTH
def test_a_key_that_comes_later_completes_what_was_read_without_one_and_nothing_is_twice(
    tmp_path: Path, database_url: str
) -> None:
    with closing(Scene(tmp_path, database_url, habits=HABITS.replace(edited=0.0))) as scene:
        scene.follow(sort="new")
        scene.visit()
        before = scene.stored()
        assert scene.note() == parser.FEED_NOTE
        # Not a letter is new: nothing is said with the visit, and the source says the same.
        assert (scene.visit().outcome, scene.note()) == (Outcome.UNCHANGED, parser.FEED_NOTE)
        scene.with_key()
        scene.later(HOUR)
        result = scene.visit()
        after = scene.stored()
        there = before.keys() & {names.post_id(post) for post in scene.newest()}
        assert len(there) > 20
        assert [id for id in there if after[id]["score"] is None or after[id]["version"] != 1] == []
        assert (result.outcome, scene.missing(), scene.gaps()) == (GOOD, [], [])
        assert scene.note() is None


def test_without_a_key_what_passes_the_feed_between_two_visits_lies_in_a_gap(tmp_path: Path, database_url: str) -> None:
    with closing(Scene(tmp_path, database_url)) as scene:
        scene.follow(CROWD)
        scene.visit()
        scene.later(5 * HOUR)
        scene.visit()
        (gap,) = scene.gaps()
        stored = scene.stored()
        unseen = [post for post in scene.newest(CROWD) if names.post_id(post) not in stored]
        since = [post for post in unseen if post.began_at > START + DAY and post.shown_from == post.began_at]
        assert len(since) > 200
        edges = [gap.from_at, gap.to_at]
        assert all(edges[0] <= post.began_at <= edges[1] for post in since)
