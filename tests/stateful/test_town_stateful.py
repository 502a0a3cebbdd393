"""Any order of posts, edits, removals, faults, waits and visits leaves the archive as the truth says it must be."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from catchment.clock import micros
from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    ServerTrouble,
    SlowDown,
    Stopped,
    TimedOut,
)
from catchment.model import (
    ADDED,
    Answer,
    Outcome,
    Request,
    Source,
    VisitResult,
)
from catchment.sources.add import pause, resume
from catchment.sources.describe import next_fetch_at
from tests.clocks import HandClock
from tests.stateful.effort import effort
from tests.stateful.truth import FAILURES_BEFORE_PROBATION, Came, Followed, Line, Shown, Truth
from tests.stateful.wildfeed import WildFeed
from tests.town import TownApp

NO_FEED = b"<?xml version='1.0'?><maintenance>back soon</maintenance>"
MINUTE = timedelta(minutes=1)
WORDS = ("one", "two", "three", "four", "five")
BREAKDOWNS = ("missing", "trouble", "troubled", "slow", "slower", "gone", "nonsense", "timeout", "login")
FEEDS = ("ann", "bob")
"""The first feed is followed twice, under two kinds: two sources of the same items."""

feeds = st.sampled_from(FEEDS)
sources = st.integers(0, len(FEEDS))
words = st.sampled_from(WORDS)
places = st.integers(0, 30)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of failures are played here; none of them is worth a line."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module", autouse=True)
def _empty_archive(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Made once and copied: making one costs more than a history does."""
    folder = tmp_path_factory.mktemp("empty")
    TownApp(folder / "home", f"sqlite:///{folder / 'catchment.db'}").close()
    TownMachine.empty_archive = folder


class TownMachine(RuleBasedStateMachine):
    empty_archive: Path

    @initialize(windows=st.lists(st.integers(3, 6), min_size=2, max_size=2), count=st.integers(0, 6))
    def open(self, windows: list[int], count: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="catchment-town-"))
        shutil.copytree(self.empty_archive, self.folder, dirs_exist_ok=True)
        self.here = TownApp(
            self.folder / "home",
            f"sqlite:///{self.folder / 'catchment.db'}",
            concurrency=1,
            failures_before_probation=FAILURES_BEFORE_PROBATION,
        )
        self.clock: HandClock = self.here.clock
        self.truth = Truth()
        self.feeds: dict[str, WildFeed] = {}
        self.faults: dict[str, deque[tuple[str, datetime | None]]] = {}
        self.copies: dict[str, list[Shown]] = {}
        self.sources: list[tuple[Source, Followed, str]] = []
        self.missed: dict[int, set[str]] = {}
        self.removed: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self.posts = 0
        for name, window in zip(FEEDS, windows, strict=True):
            url = f"https://{name}.example/feed"
            self.feeds[name] = self.here.town.feeds[url] = WildFeed(url, window=window)
            self.faults[name], self.copies[name], self.removed[name] = deque(), [], []
        for name, kind in ((FEEDS[0], "rss"), (FEEDS[1], "rss"), (FEEDS[0], "digest_feed")):
            source = self.here.follow(self.feeds[name], kind=kind)
            followed = Followed(source.id, source.key, kind)
            self.truth.sources[source.id] = followed
            self.missed[source.id] = set()
            self.sources.append((source, followed, name))
        self.is_checked = False
        for number in range(2 * count):
            self._put(FEEDS[number % 2], WORDS[0], self.now - (100 - number) * MINUTE)
        if count:
            self.collect_due()

    def teardown(self) -> None:
        if hasattr(self, "here"):
            self.here.close()
            shutil.rmtree(self.folder)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    # ── what people write ─────────────────────────────────────────────────────────────────────────────────────────

    @rule(name=feeds, text=words, count=st.integers(1, 4), age=st.sampled_from([0, 0, 0, 1, 60, 3000, -60, -100_000]))
    def post(self, name: str, text: str, count: int, age: int) -> None:
        """Some entries, a second apart, the last one dated so many minutes ago (or ahead)."""
        for number in range(count):
            self._put(name, text, self.now - age * MINUTE - timedelta(seconds=count - 1 - number))

    @rule(name=feeds, text=words)
    def post_undated(self, name: str, text: str) -> None:
        self._put(name, text, None)

    @rule(name=feeds, text=words)
    def post_at_the_very_time_of_the_newest(self, name: str, text: str) -> None:
        dates = [entry["at"] for entry in self.feeds[name].entries.values() if entry["at"]]
        self._put(name, text, max(dates, default=self.now))

    @rule(name=feeds, text=words, more=st.integers(0, 3))
    def post_more_than_the_window_holds(self, name: str, text: str, more: int) -> None:
        self.clock.advance(60)
        count = self.feeds[name].window + more
        for number in range(count):
            self._put(name, text, self.now - timedelta(seconds=count - 1 - number))

    def _put(self, name: str, text: str, at: datetime | None) -> None:
        self.posts += 1
        self.feeds[name].put(f"{name}{self.posts}", text, at)
        self.feeds[name].entries[f"{name}{self.posts}"]["is_ahead"] = at is not None and at > self.now

    @rule(name=feeds, place=places, text=words)
    def edit(self, name: str, place: int, text: str) -> None:
        if key := self._some_entry(name, place):
            self.feeds[name].entries[key] |= {"text": text}

    @rule(name=feeds, place=places)
    def edit_the_title(self, name: str, place: int) -> None:
        if key := self._some_entry(name, place):
            entry = self.feeds[name].entries[key]
            entry["title"] = entry["title"].removesuffix("!") if entry["title"].endswith("!") else entry["title"] + "!"

    @rule(name=feeds, place=places, other=words)
    def go_back_and_forth_all_day(self, name: str, place: int, other: str) -> None:
        if key := self._some_entry(name, place):
            first = self.feeds[name].entries[key]["text"]
            for text in (other, first, other, first, other):
                self.feeds[name].entries[key]["text"] = text
                self.visit(FEEDS.index(name))
                self.clock.advance(1200)

    @rule(name=feeds, place=places)
    def remove(self, name: str, place: int) -> None:
        if key := self._some_entry(name, place):
            self.removed[name].append((key, self.feeds[name].entries.pop(key)))

    @rule(name=feeds)
    def restore(self, name: str) -> None:
        if self.removed[name]:
            key, entry = self.removed[name].pop()
            self.feeds[name].entries[key] = entry

    @rule(name=feeds)
    def empty(self, name: str) -> None:
        """As a broken generator does."""
        self.removed[name] += self.feeds[name].entries.items()
        self.feeds[name].entries = {}

    def _some_entry(self, name: str, place: int) -> str | None:
        """One that is shown, if any is."""
        keys = self.feeds[name].shown()
        return keys[place % len(keys)] if keys else None

    # ── what happens to feeds ─────────────────────────────────────────────────────────────────────────────────────

    @rule(name=feeds, again=st.integers(1, 2))
    def change_all_ids(self, name: str, again: int) -> None:
        feed = self.feeds[name]
        feed.entries = {f"urn:{again}:{key.split(':')[-1]}": entry for key, entry in feed.entries.items()}

    @rule(name=feeds, window=st.integers(1, 20))
    def set_window(self, name: str, window: int) -> None:
        self.feeds[name].window = window

    @rule(name=feeds)
    def turn_around(self, name: str) -> None:
        self.feeds[name].is_reversed = not self.feeds[name].is_reversed

    @rule(name=feeds, count=st.integers(0, 2))
    def hollow_out(self, name: str, count: int) -> None:
        self.feeds[name].hollow = count

    @rule(name=feeds, minutes=st.sampled_from([None, 10, 300, 2000]))
    def ask_to_be_polled_less(self, name: str, minutes: int | None) -> None:
        self.feeds[name].ttl_minutes = minutes

    @rule(name=feeds)
    def switch_conditional_requests(self, name: str) -> None:
        self.feeds[name].is_conditional = not self.feeds[name].is_conditional

    @rule(name=feeds, place=places)
    def be_cached(self, name: str, place: int) -> None:
        """From now on a cache answers, with what was answered once."""
        copies = self.copies[name]
        self.feeds[name].stuck = copies[place % len(copies)] if copies else None

    @rule(name=feeds)
    def be_cached_no_more(self, name: str) -> None:
        self.feeds[name].stuck = None

    @rule(name=feeds, which=st.sampled_from(BREAKDOWNS))
    def break_down(self, name: str, which: str) -> None:
        until = self.now + timedelta(minutes={"troubled": 1000, "slower": 45}.get(which, 0))
        says, code = {
            "missing": (Missing("not there", status=404), "MISSING"),
            "trouble": (ServerTrouble("it is down", status=503), "SERVER_TROUBLE"),
            "troubled": (ServerTrouble("it is down", status=500, retry_at=until), "SERVER_TROUBLE"),
            "slow": (SlowDown("too many requests", status=429), "SLOW_DOWN"),
            "slower": (SlowDown("too many requests", status=429, retry_at=until), "SLOW_DOWN"),
            "gone": (Gone("it is gone", status=410), "GONE"),
            "nonsense": (_nonsense, "UNREADABLE"),
            "timeout": (TimedOut("too slow"), "TIMEOUT_ERROR"),
            "login": (LoginNeeded("who are you?", status=401), "LOGIN_NEEDED"),
        }[which]
        self.feeds[name].says.append(says)  # type: ignore[arg-type]
        self.faults[name].append((code, until if which in ("troubled", "slower") else None))

    # ── time, and a person's word ─────────────────────────────────────────────────────────────────────────────────

    @rule(minutes=st.sampled_from([1, 5, 15, 60, 240, 480, 1440, 3000]))
    def wait(self, minutes: int) -> None:
        self.clock.advance(minutes * 60)

    @rule()
    def wait_for_the_next(self) -> None:
        """To the second at which something is due."""
        dues = [at for _, source, _ in self.sources if (at := self.truth.next_visit(source)) and at > self.now]
        if dues:
            self.clock.advance((min(dues) - self.now).total_seconds())

    @rule(which=sources)
    def pause(self, which: int) -> None:
        source, followed, _ = self.sources[which]
        pause(self.here.app.store, source.id, None, self.now)
        self.truth.pause(followed)
        self.is_checked = False

    @rule(which=sources)
    def resume(self, which: int) -> None:
        source, followed, _ = self.sources[which]
        resume(self.here.app.store, source.id, self.now)
        self.truth.resume(followed)
        self.is_checked = False

    @rule(which=sources, minutes=st.sampled_from([None, 7, 60, 600, 4000]))
    def change_its_interval(self, which: int, minutes: int | None) -> None:
        source, followed, _ = self.sources[which]
        self.here.app.store.sources.change(source.id, interval_minutes=minutes)
        self.truth.change_interval(followed, minutes)
        self.is_checked = False

    @rule(kind=st.sampled_from(["rss", "digest_feed"]), minutes=st.sampled_from([5, 30, 240, 2000]))
    def change_the_kinds_interval(self, kind: str, minutes: int) -> None:
        self.here.app.store.settings.put_interval(kind, minutes, self.now)
        self.truth.minutes[kind] = minutes
        self.is_checked = False

    # ── visits ────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(which=sources)
    def visit(self, which: int) -> None:
        source, followed, _ = self.sources[which]
        (result,) = self.here.app.scheduler().these([source.id], "test", "test")
        self._compare(followed, result)
        self.is_checked = False

    @rule(which=sources, minutes=st.sampled_from([1, 30, 240, 1500]), text=words, count=st.integers(0, 8))
    def post_and_visit(self, which: int, minutes: int, text: str, count: int) -> None:
        self.clock.advance(minutes * 60)
        if count:
            self.post(self.sources[which][2], text, count, 0)
        self.visit(which)

    @rule(which=sources, minutes=st.sampled_from([1, 30, 240, 1500]), place=places, text=words)
    def edit_and_visit(self, which: int, minutes: int, place: int, text: str) -> None:
        self.clock.advance(minutes * 60)
        self.edit(self.sources[which][2], place, text)
        self.visit(which)

    @rule(which=sources, again=st.integers(1, 2), count=st.integers(0, 3), text=words)
    def rename_and_visit(self, which: int, again: int, count: int, text: str) -> None:
        self.change_all_ids(self.sources[which][2], again)
        self.post_and_visit(which, 60, text, count)

    @rule(which=sources, count=st.integers(7, 12), text=words, window=st.integers(3, 30))
    def overflow_and_widen(self, which: int, count: int, text: str, window: int) -> None:
        """More is posted than the window holds; later it holds more."""
        self.post_and_visit(which, 30, text, count)
        self.set_window(self.sources[which][2], window)
        self.post_and_visit(which, 30, text, 1)

    @rule(which=sources, place=places, text=words)
    def go_on_and_fall_back(self, which: int, place: int, text: str) -> None:
        """An edit and a new entry are seen; then a cache answers with what was before."""
        name = self.sources[which][2]
        self.post_and_visit(which, 30, text, 0)
        before = self.feeds[name].now_shown()
        self.edit(name, place, text)
        self.post_and_visit(which, 30, text, 1)
        self.feeds[name].stuck = before
        self.visit(which)

    @rule(which=sources, place=places)
    def visit_a_cached_copy(self, which: int, place: int) -> None:
        name = self.sources[which][2]
        self.be_cached(name, place)
        self.visit(which)
        self.be_cached_no_more(name)

    @rule(which=sources, breakdown=st.sampled_from(BREAKDOWNS), count=st.integers(1, 4))
    def visit_a_broken_one(self, which: int, breakdown: str, count: int) -> None:
        for _ in range(count):
            self.break_down(self.sources[which][2], breakdown)
            self.visit(which)

    @rule()
    def visit_all(self) -> None:
        for which in range(len(self.sources)):
            self.visit(which)

    @rule()
    def collect_due(self) -> None:
        due = {source.id for source in self.truth.sources.values() if self.truth.is_due(source, self.now)}
        results = self.here.app.scheduler().due("test", "test")
        assert sorted(result.source_id for result in results) == sorted(due)
        for result in results:
            self._compare(self.truth.sources[result.source_id], result)
        self.is_checked = False

    @rule(which=sources)
    def be_stopped_in_the_middle(self, which: int) -> None:
        """A stop is asked for while an answer is waited for: nothing is charged, and the process ends."""
        source, followed, name = self.sources[which]

        def stop(request: Request, now: datetime) -> Answer:
            self.here.app.stop.set()
            raise Stopped("a stop was asked for")

        self.feeds[name].says.appendleft(stop)
        (result,) = self.here.app.scheduler().these([source.id], "test", "test")
        assert (result.source_id, result.outcome, result.error_code) == (followed.id, Outcome.SKIPPED, "STOPPED")
        self.here.app.close()
        self._begin_anew()

    @rule(which=sources)
    def be_killed_in_the_middle(self, which: int) -> None:
        """The process dies while it holds a source: the kernel frees its lock, nobody cleans up."""
        app = self.here.app
        now = self.now
        assert app.store.sources.claim([self.sources[which][0].id], app.presence.owner_id, now)
        app.store.runs.begin("test", "test", app.presence.owner_id, now)
        app.presence._held.release()
        app.store.database.close()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.here.app = self.here.another("test")
        assert self.here.app.presence
        self.truth.line = Line()
        self.is_checked = False

    def _compare(self, followed: Followed, result: VisitResult) -> None:
        name = next(name for _, source, name in self.sources if source is followed)
        expected = self._expected(followed, name)
        counts = result.counts
        told = counts.new, counts.updated, counts.duplicate, counts.invalid
        assert Came(str(result.outcome), *told, code=result.error_code) == expected

    def _expected(self, followed: Followed, name: str) -> Came:
        feed = self.feeds[name]
        host = f"{name}.example"
        if self.faults[name]:
            code, until = self.faults[name].popleft()
            body = NO_FEED if code == "UNREADABLE" else b""
            if body:
                self.truth.line.answered(host, self.now)
            return self.truth.fail(followed, code, self.now, host, retry_at=until, body=body)
        shown = feed.now_shown()
        missed = self._missed_now(followed, feed, shown)
        came = self.truth.answer(followed, shown, self.now, host, has_tag=feed.is_conditional)
        if came.outcome == "succeeded":
            self.missed[followed.id] |= missed
        if shown not in self.copies[name]:
            self.copies[name].append(shown)
        return came

    def _missed_now(self, followed: Followed, feed: WildFeed, shown: Shown) -> set[str]:
        """What is there, newer than all we have, and not shown. Told from the feed itself, not by the rules.

        Two things may hide it: a window of one or two entries, and a known entry without a date, of which nobody can
        tell how far down it stands. What was dated ahead when it was posted has no place in time that a gap could name.
        """
        if followed.mark is None or feed.stuck is not None or len(shown.entries) < 3:
            return set()
        held = {kept.link for kept in self.truth.kept[followed.scope] if followed.id in kept.sightings}
        if any(entry.link in held and entry.at is None for entry in shown.entries):
            return set()
        visible = {entry.link for entry in shown.entries}
        return {
            link
            for entry in feed.entries.values()
            if (link := f"https://feeds.example/{entry['link']}") not in visible
            and entry["at"] is not None
            and not entry["is_ahead"]
            and followed.mark.at < entry["at"] <= self.now
        }

    # ── what must be true ─────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def the_archive_is_as_the_truth_says(self) -> None:
        if self.is_checked:
            return
        self.is_checked = True
        self.items_and_their_histories_are_whole()
        self.gaps_cover_what_was_missed()
        self.every_source_stands_as_it_must()
        self.nobody_holds_a_lease()

    def items_and_their_histories_are_whole(self) -> None:
        stored = self._read(
            """
            SELECT i.scope, i.external_id, i.title, i.text, i.version, i.ordered_at, i.first_seen_at, i.created_at,
                   i.is_created_at_guessed, i.content_last_changed_at FROM items i ORDER BY i.id
            """
        )
        wanted = [
            (
                scope, kept.key, *kept.content, len(kept.versions), _micros(kept.ordered_at), _micros(kept.first_seen),
                _micros(kept.at or kept.first_seen), kept.at is None, _micros(kept.versions[-1].since),
            )
            for scope, many in self.truth.kept.items()
            for kept in many
        ]  # fmt: skip
        assert sorted(stored) == sorted(wanted)
        now = _micros(self.now)
        assert all(row[5] <= now for row in stored)
        revisions = self._read(
            """
            SELECT i.scope, i.external_id, r.version, r.title, r.text, r.valid_from, r.valid_to
              FROM revisions r JOIN items i ON i.id = r.item_id
            """
        )
        assert sorted(revisions) == sorted(
            (scope, kept.key, number, *version.content, _micros(version.since), _micros(version.until))
            for scope, many in self.truth.kept.items()
            for kept in many
            for number, version in enumerate(kept.earlier(), 1)
        )
        sightings = self._read(
            """
            SELECT s.source_id, i.external_id, s.ordered_at, s.first_seen_at, s.last_seen_at
              FROM sightings s JOIN items i ON i.id = s.item_id
            """
        )
        assert sorted(sightings) == sorted(
            (source_id, kept.key, _micros(kept.ordered_at), _micros(first), _micros(last))
            for many in self.truth.kept.values()
            for kept in many
            for source_id, (first, last) in kept.sightings.items()
        )

    def gaps_cover_what_was_missed(self) -> None:
        stored = self._read("SELECT source_id, from_at, to_at, is_certain, closed_at IS NULL FROM gaps ORDER BY id")
        assert sorted(stored) == sorted(
            (source.id, _micros(hole.since), _micros(hole.until), 0, hole.is_open)
            for source in self.truth.sources.values()
            for hole in source.holes
        )
        for _, followed, name in self.sources:
            held = {kept.link for kept in self.truth.kept.get(followed.scope, []) if followed.id in kept.sightings}
            dates = {
                f"https://feeds.example/{entry['link']}": entry["at"] for entry in self.feeds[name].entries.values()
            }
            for link in self.missed[followed.id] - held:
                assert link not in dates or any(
                    hole.is_open and hole.since <= dates[link] <= hole.until for hole in followed.holes
                ), f"{link} of {name} was never shown, and no open gap tells so"

    def every_source_stands_as_it_must(self) -> None:
        alerts = {alert.source_id for alert in self.here.app.store.alerts.open()}
        intervals = self.here.app.intervals()
        for source_id, wanted in self.truth.sources.items():
            source, progress = self.here.app.store.sources.with_progress(source_id)
            mark = progress.watermark
            assert (mark and (mark.at, frozenset(mark.ids))) == (wanted.mark and (wanted.mark.at, wanted.mark.ids))
            assert mark is None or mark.at <= self.now
            assert (str(source.state), source.interval_minutes) == (wanted.state, wanted.own_minutes)
            minutes = source.interval_minutes or intervals[source.kind]
            assert next_fetch_at(source, progress, minutes) == self.truth.next_visit(wanted)
            assert (
                progress.last_polled_at,
                # One that was just added is due at once, as one without a time is.
                progress.due_reason if progress.next_due_at and progress.due_reason != ADDED else None,
                progress.poll_count,
                progress.failure_count,
                progress.failures_in_a_row,
                progress.last_error is not None,
                source_id in alerts,
            ) == (
                wanted.last_polled,
                wanted.why,
                wanted.polls,
                wanted.failures,
                wanted.failures_in_a_row,
                wanted.has_error,
                wanted.has_alert,
            )

    def nobody_holds_a_lease(self) -> None:
        assert self._read("SELECT resource_id FROM leases WHERE owner_id IS NOT NULL") == []
        assert self._read("SELECT id FROM runs WHERE finished_at IS NULL") == []

    def _read(self, question: str) -> list[tuple[Any, ...]]:
        return self.here.app.store.database.read(lambda tx: tx.all(question))


def _nonsense(request: Request, now: datetime) -> Answer:
    return Answer(200, {"content-type": "text/xml"}, NO_FEED, request.url, now)


def _micros(at: datetime | None) -> int | None:
    return None if at is None else micros(at)


TestTown = TownMachine.TestCase
TestTown.settings = effort(usual=40)
