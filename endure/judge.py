"""What the collector stored, held against what the playground said: its log is the truth, its world knows the rest.

Truth is what was contained in answers that were sent whole and that a visit came back from. An answer to a process that
was killed before it could commit is counted apart, and so is what came and went between two visits without a chance to
be seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from catchment.clock import moment
from catchment.model import Record
from catchment.playground.log import Asked
from catchment.playground.world import Place, Post, World
from catchment.store import Store

_STALE = "STALE_ANSWER"


class Visit(Record, frozen=True):
    """One visit of the collector's, by its own records."""

    started_at: datetime
    finished_at: datetime
    outcome: str
    error_code: str | None


class Held(Record, frozen=True):
    """One stored item: its texts in order, the last one is the present one."""

    id: int
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    is_volatile: bool


class Stored(Record, frozen=True):
    """All that is stored of one source."""

    visits: tuple[Visit, ...]
    items: tuple[Held, ...]
    gaps: tuple[tuple[datetime, datetime], ...]


class Findings(Record, frozen=True):
    """What was found at one place; every list should be empty but the last four figures."""

    lost: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    gap_seconds: float = 0.0
    false_gap_seconds: float = 0.0
    needed_gaps: int = 0
    unseen: int = 0
    """Answers that nobody came back from, and posts that came and went unseen without anybody's fault."""


def stored_of(store: Store, source_id: int, key: str) -> Stored:
    def question(tx: Any) -> Stored:
        visits = tx.all(
            """
            SELECT started_at, finished_at, outcome, error_code FROM run_sources
             WHERE source_id = ? AND finished_at IS NOT NULL ORDER BY started_at
            """,
            source_id,
        )
        items = tx.all("SELECT id, external_id, text, volatile_count FROM items WHERE scope = ? ORDER BY id", key)
        aliases, earlier = defaultdict(list), defaultdict(list)
        for item_id, external_id in tx.all("SELECT item_id, external_id FROM aliases WHERE scope = ?", key):
            aliases[item_id].append(external_id)
        for item_id, text in tx.among(
            "SELECT item_id, text FROM revisions WHERE item_id IN {few} ORDER BY item_id, version",
            [row[0] for row in items],
        ):
            earlier[item_id].append(_plain(text))
        gaps = tx.all("SELECT from_at, to_at FROM gaps WHERE source_id = ? ORDER BY id", source_id)
        return Stored(
            tuple(Visit(moment(row[0]), moment(row[1]), row[2], row[3]) for row in visits),
            tuple(
                Held(row[0], (row[1], *aliases[row[0]]), (*earlier[row[0]], _plain(row[2])), bool(row[3]))
                for row in items
            ),
            tuple((moment(row[0]), moment(row[1])) for row in gaps),
        )

    return store.database.read(question)


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


class Trial:
    """The case of one place."""

    def __init__(self, world: World, place: Place, asked: list[Asked], stored: Stored, slack: timedelta) -> None:
        """`slack`: how far the edge of a gap may be off, because an answer takes its time."""
        self.world, self.place, self.stored, self.slack = world, place, stored, slack
        self.posts = {post.id: post for post in world.posts(place)}
        self.gaps = [(gap[0], self._end_of(gap)) for gap in stored.gaps]
        self.by_wire_id: dict[str, list[Held]] = defaultdict(list)
        for item in stored.items:
            for name in item.ids:
                self.by_wire_id[name].append(item)
        self.accepted: list[tuple[Asked, Visit]] = []
        self.unseen = 0
        starts = [visit.started_at for visit in stored.visits]
        for one in asked:
            visit = self._visit_of(one, starts)
            if visit is None:
                self.unseen += one.is_whole
            elif (one.is_whole or one.entries) and visit.outcome != "skipped":
                self.accepted.append((one, visit))

    def _visit_of(self, one: Asked, starts: list[datetime]) -> Visit | None:
        at = bisect_right(starts, one.at) - 1
        visit = self.stored.visits[at] if at >= 0 else None
        return visit if visit is not None and one.at <= visit.finished_at else None

    def findings(self) -> Findings:
        lost, wrong = self._lost_and_wrong()
        twice = [f"{name}: {len(items)} items" for name, items in self._items_by_post().items() if len(items) > 1]
        needed, unexplained, unseen = self._missed()
        total, false = self._gap_seconds(needed)
        return Findings(
            tuple(lost), tuple(twice), tuple(wrong), tuple(unexplained), total, false, len(needed), self.unseen + unseen
        )

    # ── what was said is held ─────────────────────────────────────────────────────────────────────────────────────

    def _items_by_post(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = defaultdict(set)
        for one, _ in self.accepted:
            for entry in one.entries:
                found[entry.post] |= {item.id for item in self.by_wire_id.get(entry.wire_id, ())}
        return found

    def _lost_and_wrong(self) -> tuple[list[str], list[str]]:
        said: dict[str, list[tuple[str, bool]]] = defaultdict(list)
        lost = []
        for one, visit in self.accepted:
            is_sure = one.is_whole and visit.outcome == "succeeded"
            for entry in one.entries:
                if (is_sure or visit.error_code == _STALE) and not self.by_wire_id.get(entry.wire_id):
                    lost.append(f"{entry.post} ({entry.wire_id}) shown at {one.at:%d %H:%M:%S} in {one.fault}")
                # A stale answer moves nothing; an answer that was not read whole may have shown this, or not.
                is_new = entry.post not in said
                if visit.outcome == "succeeded" or (visit.error_code == _STALE and is_new):
                    text = _plain(self._version_text(entry.post, entry.version))
                    said[entry.post].append((text, is_sure))
                elif visit.outcome == "failed" and visit.error_code != _STALE:
                    # The pages before the one that failed are stored; which they were only the collector knows.
                    said[entry.post].append((_plain(self._version_text(entry.post, entry.version)), False))
        wrong = [words for post, versions in said.items() if (words := self._told_wrongly(post, versions))]
        return lost, wrong

    def _version_text(self, post: str, number: int) -> str:
        return next(version.text for version in self.posts[post].versions if version.number == number)

    def _told_wrongly(self, post: str, said: list[tuple[str, bool]]) -> str | None:
        held = [self._item(name) for name in self._items_by_post().get(post, ())]
        if not held or held[0].is_volatile:
            return None
        told = held[0].texts
        if not _is_subsequence(told, [text for text, _ in said]):
            return f"{post}: stored {list(told)!r:.300}, said {said!r:.300}"
        sure = _without_repeats([text for text, is_sure in said if is_sure])
        if not _is_subsequence(sure, told):
            return f"{post}: stored {len(told)} texts, surely said {len(sure)}: {told!r:.300} {said!r:.300}"
        return None

    def _item(self, item_id: int) -> Held:
        return next(item for item in self.stored.items if item.id == item_id)

    # ── what was not said lies in a gap ───────────────────────────────────────────────────────────────────────────

    def _missed(self) -> tuple[list[Post], list[str], int]:
        """Posts that left the window unseen between two good visits: those that needed a gap, those without one."""
        good = [one for one, visit in self.accepted if one.is_whole and visit.outcome in ("succeeded", "unchanged")]
        seen = {entry.post for one, _ in self.accepted for entry in one.entries}
        needed, unexplained, unseen = [], [], 0
        for before, after in pairwise(good):
            glimpsed = self.world.glimpses(self.place, before.at, after.at)
            # What is there still has not left: an old copy came in its place, and the next answer may tell of it.
            there = {post.id for post, _ in self.world.shown(self.place, after.at)}
            for name in glimpsed.keys() - seen - there:
                post = self.posts[name]
                if not self._is_owed(post, before.at, after.at):
                    unseen += 1
                    continue
                needed.append(post)
                if not any(self._lies_in(post, gap) for gap in self.gaps):
                    unexplained.append(
                        f"{name} of {post.created_at:%d %H:%M}, {before.at:%d %H:%M}–{after.at:%d %H:%M}"
                    )
        return needed, unexplained, unseen

    def _is_owed(self, post: Post, before: datetime, after: datetime) -> bool:
        """Not what was removed again before anybody came, nor what slipped in below entries that are known already:
        no reader can tell such a listing from one into which nothing slipped."""
        if post.is_removed(after):
            return False
        if self.place.is_by_arrival:
            return post.shown_from > before
        # No newer than the answer that told of it: what is dated ahead is not beyond all that comes.
        told = (
            min(self.posts[entry.post].created_at, one.at)
            for one, _ in self.accepted
            if one.at <= before
            for entry in one.entries
        )
        newest = max(told, default=None)
        # A feed that has shown nothing yet gives no edge from which anything could be missing.
        return newest is not None and post.created_at > newest

    def _end_of(self, gap: tuple[datetime, datetime]) -> datetime:
        """Where listings go by arrival, what came out late at the lower edge of an answer bears an older date than
        what is missing below it; nobody who reads the answer can tell."""
        if not self.place.is_by_arrival:
            return gap[1]
        return max((post.shown_from for post in self.posts.values() if post.created_at == gap[1]), default=gap[1])

    def _lies_in(self, post: Post, gap: tuple[datetime, datetime]) -> bool:
        return any(gap[0] - self.slack <= at <= gap[1] + self.slack for at in (post.created_at, post.shown_from))

    def _gap_seconds(self, needed: list[Post]) -> tuple[float, float]:
        total = false = 0.0
        for gap in self.gaps:
            seconds = (gap[1] - gap[0]).total_seconds()
            total += seconds
            false += seconds if not any(self._lies_in(post, gap) for post in needed) else 0.0
        return total, false


def _without_repeats(texts: list[str]) -> list[str]:
    return [text for at, text in enumerate(texts) if at == 0 or texts[at - 1] != text]


def _is_subsequence(few: tuple[str, ...] | list[str], many: tuple[str, ...] | list[str]) -> bool:
    left = iter(many)
    return all(text in left for text in few)
