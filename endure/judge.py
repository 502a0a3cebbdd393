"""What the collector stored, held against what the playground said: its log is the truth, its world knows the rest.

Truth is what was contained in answers that were sent whole and that a visit came back from. An answer to a process that
was killed before it could commit is counted apart, and so is what came and went between two visits without a chance to
be seen.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from catchment.model import Record
from catchment.platforms.discourse import FORUM
from catchment.playground.log import Asked
from catchment.playground.sites import Entry, discourse
from catchment.playground.world import Place, Timeline, World
from endure.following import OF_A_FEED, REPAIR, THREAD_PAGE, Followed
from endure.missing import STALE, Floors, Missed, Pages, Window, good_walks
from endure.stored import Held, Stored, Visit
from endure.texts import Texts, is_partial

_STALE = "STALE_ANSWER"
_GOOD = ("succeeded", "unchanged")
OF_ALL = re.compile(r"/api/(?:info|v1/access_token)")
"""Where a platform is asked about several places at once, or about none."""
SHARED = ("hackernews", "discourse", "reddit", "nga")
"""Forms in which one item is told of by several visits at once: lists, searches, second looks."""
FORUMS = ("discourse", "nga")


def by_place(asked: Iterable[Asked]) -> dict[int, list[Asked]]:
    """What was said of each place. An answer about several is one about each; one that belongs to no place in
    particular, and tells of none, is about none."""
    found: dict[int, list[Asked]] = defaultdict(list)
    for request in asked:
        places = {entry.place for entry in request.entries}
        if request.place is not None and not OF_ALL.fullmatch(request.path):
            places.add(request.place)
        for place in places:
            found[place].append(
                request.replace(entries=tuple(entry for entry in request.entries if entry.place == place))
            )
    return found


class Observation(Record, frozen=True):
    """An answer that a visit may have come back from."""

    asked: Asked
    visit: Visit | None
    """None: nobody can tell whose it was."""
    is_sure: bool
    """It came whole, to a visit that succeeded, and nothing told of the same items at the same time."""

    @property
    def possible_times(self) -> tuple[datetime, ...]:
        """The earliest and the latest moment at which the visit can have read it."""
        return (self.asked.at, self.visit.finished_at) if self.visit else (self.asked.at,)

    @property
    def is_stale(self) -> bool:
        return self.visit is not None and self.visit.error_code == _STALE


class Findings(Record, frozen=True):
    """What was found at one place; every list should be empty."""

    lost: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    gap_seconds: float = 0.0
    false_gap_seconds: float = 0.0
    needed_gaps: int = 0
    unseen: int = 0
    """Answers that nobody came back from, and posts that came and went unseen without anybody's fault."""
    waiting: int = 0
    """Floors of threads that wait to be read, as the archive says."""


class Trial:
    """The case of one place."""

    def __init__(
        self,
        world: World,
        place: Place,
        followed: Sequence[Followed],
        asked: Sequence[Asked],
        stored: Stored,
        slack: timedelta,
    ) -> None:
        """`slack`: how far the edge of a gap may be off, because an answer takes its time."""
        self.world, self.place, self.followed, self.stored, self.slack = world, place, followed, stored, slack
        self.texts = Texts(world, place)
        self._topics = discourse.DiscourseSimulator(world).posts(place) if place.form == "discourse" else {}
        self.asked = asked
        self.by_wire_id: dict[str, list[Held]] = defaultdict(list)
        self.by_id = {item.id: item for item in stored.items}
        for item in stored.items:
            for name in item.ids:
                self.by_wire_id[name].append(item)
        self._visits = {
            (source.source_id, is_look): _Visits(stored.visits, source.source_id, is_look)
            for source in followed
            for is_look in (False, True)
        }
        self._alone: dict[int, bool] = {}
        self.heard: list[Observation] = []
        self.unseen = 0
        for request in asked:
            self._hear(request)

    # ── who heard it ──────────────────────────────────────────────────────────────────────────────────────────────

    def _hear(self, request: Asked) -> None:
        visits = self._visits_of(request)
        if not visits:
            self.unseen += request.is_whole
        is_cut_off = any(begin <= request.at <= end for begin, end in self.stored.cut_off)
        is_finished = any(visit.outcome != "skipped" for visit in visits)
        is_repair = REPAIR.fullmatch(request.path) is not None
        if not is_finished and (is_cut_off or visits or is_repair):
            # A visit that was stopped, politely or not, may have stored a part of what it was told. The record of one
            # that was cut off begins with the first page it stored. The repair of a gap has no record of a visit.
            self.heard.append(Observation(request, None, is_sure=False))
        elif (request.is_whole or request.entries) and is_finished:
            visit = visits[0] if len(visits) == 1 else None
            self.heard.append(Observation(request, visit, self._is_sure(request, visit, is_cut_off)))

    def _visits_of(self, request: Asked) -> list[Visit]:
        found = []
        for source in self.followed:
            for is_look in (False, True):
                if source.may_have_asked(request, is_look):
                    found += self._visits[source.source_id, is_look].at(request.at)
        return found

    def _is_sure(self, request: Asked, visit: Visit | None, is_cut_off: bool) -> bool:
        if visit is None or not request.is_whole or visit.outcome != "succeeded":
            return False
        if THREAD_PAGE.fullmatch(request.path) and (visit.is_look or request.fault == STALE):
            # Only of the floors that were due does a second look take anything, and only what is new of an old copy.
            return False
        if self.place.form not in SHARED:
            # More answers than the visit asked for: one of them went to a process that had been ended by then.
            return sum(visit.started_at <= asked.at <= visit.finished_at for asked in self.asked) <= visit.requests
        # Of answers that were on their way side by side, the later one may have been applied first. And a story may
        # have been asked for by a run that was cut off while this visit went on.
        return not is_cut_off and self._is_alone(visit)

    def _is_alone(self, visit: Visit) -> bool:
        if id(visit) not in self._alone:
            others = (other for other in self.stored.visits if other is not visit)
            self._alone[id(visit)] = not any(other.overlaps(visit) for other in others)
        return self._alone[id(visit)]

    # ── the verdict ───────────────────────────────────────────────────────────────────────────────────────────────

    def findings(self) -> Findings:
        lost, wrong = self._lost_and_wrong()
        items = self._items_by_subject()
        twice = [f"{name}: {len(found)} items" for name, found in items.items() if len(found) > self._most_items()]
        wrong += [*self._scores(), *self._deletions(), *self._appearances()]
        missed = self._missed()
        return Findings(
            lost=tuple(lost),
            twice=tuple(twice),
            wrong=tuple(wrong),
            unexplained=tuple(words for part in missed for words in part.unexplained),
            gap_seconds=sum(part.gap_seconds for part in missed),
            false_gap_seconds=sum(part.false_gap_seconds for part in missed),
            needed_gaps=sum(part.needed for part in missed),
            unseen=self.unseen + sum(part.unseen for part in missed),
            waiting=sum(part.waiting for part in missed),
        )

    def _most_items(self) -> int:
        """As how many items a post may be stored. Two, if the place changed its ids while less than half of what it
        shows was known: then nobody can tell new ids from new posts."""
        changed_at = self.place.new_ids_at
        after = [
            observation
            for observation in self.heard
            if observation.asked.entries and changed_at and observation.asked.at >= changed_at
        ]
        if changed_at is None or not after:
            return 1
        shown = {entry.post for entry in after[0].asked.entries}
        known = {
            entry.post
            for request in self.asked
            if request.at < changed_at
            for entry in request.entries
            if entry.wire_id in self.by_wire_id
        }
        return 2 if 2 * len(shown & known) < len(shown) else 1

    def _missed(self) -> list[Missed]:
        sources = self.followed
        missed = [*map(self._missed_by, sources), *map(self._floors_missed_by, sources)]
        return [part for part in missed if part is not None]

    def _floors_missed_by(self, source: Followed) -> Missed | None:
        if not source.manner.has_threads:
            return None
        visits = [
            visit
            for visit in self.stored.visits
            if visit.source_id == source.source_id and visit.is_of_list and not visit.is_look
        ]
        # An old copy of a thread's page excuses nothing: the thread has to be read again.
        lists = [request for request in self.asked if not THREAD_PAGE.fullmatch(request.path)]
        walks = good_walks([visit for visit in visits if visit.outcome in _GOOD], lists)
        days = source.manner.settings["window_days"]
        unknown = (*self.stored.unknown_floors, *self.stored.passed_over)
        waiting = {
            entry.post
            for request in self.asked
            for entry in request.entries
            if any(item.id in self.stored.waiting_heads for item in self.by_wire_id.get(entry.wire_id, ()))
        }
        return Floors(self.world, self.place, walks, self._first_seen(), unknown, days, waiting).missed()

    def _missed_by(self, source: Followed) -> Missed | None:
        gaps = [gap for gap in self.stored.gaps if gap.source_id == source.source_id]
        if source.manner.walk == "window":
            told = [observation for observation in self.heard if observation.visit is not None]
            good = [
                observation.asked
                for observation in told
                if observation.asked.is_whole and observation.visit and observation.visit.outcome in _GOOD
            ]
            return Window(
                self._timeline(), gaps, self.slack, [observation.asked for observation in told], good
            ).missed()
        if source.manner.walk == "pages":
            visits = [
                visit for visit in self.stored.visits if visit.source_id == source.source_id and not visit.is_look
            ]
            asked = [request for request in self.asked if source.may_have_asked(request, is_look=False)]
            walks = good_walks([visit for visit in visits if visit.outcome in _GOOD], asked)
            first_seen = self._first_seen()
            return Pages(self.world, self.place, source.manner, gaps, self.slack, walks, first_seen).missed()
        return None

    def _timeline(self) -> Timeline:
        """What is shown of the place, to who sees it through a window."""
        if self.place.form != "reddit":
            return self.world.timeline(self.place)
        pace = self.place.pace.replace(window=OF_A_FEED)
        return Timeline(self.place.replace(pace=pace), self.world.posts(self.place))

    def _first_seen(self) -> dict[str, datetime]:
        """When each post that is stored was first seen."""
        return {
            entry.post: items[0].first_seen_at
            for request in self.asked
            for entry in request.entries
            if (items := self.by_wire_id.get(entry.wire_id))
        }

    # ── what was said is held ─────────────────────────────────────────────────────────────────────────────────────

    def _told(self, observation: Observation) -> list[Entry]:
        """What its reader takes from it: of a topic, the posts whose numbers belong on the page."""
        topic = (
            re.search(r"/t/\d+(?:/(\d+))?\.json", observation.asked.path) if self.place.form == "discourse" else None
        )
        if topic is None:
            return list(observation.asked.entries)
        page = FORUM.page_of(int(topic[1] or 1))
        return [entry for entry in observation.asked.entries if FORUM.page_of(self._topics[entry.post].number) == page]

    def _subject(self, entry: Entry) -> str:
        """What an entry is about: a page is one thing, whichever post it shows."""
        return entry.wire_id if self.place.form == "website" else entry.post

    def _items_by_subject(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = defaultdict(set)
        for observation in self.heard:
            for entry in observation.asked.entries:
                found[self._subject(entry)] |= {item.id for item in self.by_wire_id.get(entry.wire_id, ())}
        return found

    def _lost_and_wrong(self) -> tuple[list[str], list[str]]:
        said: dict[str, list[tuple[str, bool]]] = defaultdict(list)
        gone: set[str] = set()
        lost = []
        for observation in self.heard:
            for entry in self._told(observation):
                if entry.is_deleted:
                    gone.add(self._subject(entry))
                    continue
                if (observation.is_sure or observation.is_stale) and not self.by_wire_id.get(entry.wire_id):
                    lost.append(
                        f"{entry.post} ({entry.wire_id}) at {observation.asked.at:%d %H:%M:%S} "
                        f"in {observation.asked.fault}"
                    )
                if entry.is_withheld:
                    continue
                subject = self._subject(entry)
                if not self.texts.is_own(entry.post):
                    continue
                # A stale answer moves nothing. Of an answer that was not read whole, or of a visit that broke off, only
                # the collector knows how much it took from it.
                if not observation.is_stale or subject not in said:
                    is_sure = observation.is_sure and not is_partial(observation.asked.path)
                    said[subject] += [(text, is_sure) for text in self.texts.of(observation.asked, entry)]
        items = self._items_by_subject()
        told_wrongly = (
            self._told_wrongly(name, items[name], texts, was_gone=name in gone) for name, texts in said.items()
        )
        return lost, [words for words in told_wrongly if words]

    def _told_wrongly(
        self, subject: str, items: set[int], said: list[tuple[str, bool]], *, was_gone: bool
    ) -> str | None:
        held = self.by_id[min(items)] if items else None
        if held is None or held.is_volatile:
            return None
        # A deletion, and a title that was changed, leave a revision with the same text.
        told = _without_repeats(held.texts)
        # It may have been gone when it was first stored: of an answer to a process that was ended nothing is left.
        # A thread may have got another title while nothing was known of it but its row in the list.
        if (was_gone or self.place.form in FORUMS) and told[0] == "" and all(text for text, _ in said):
            del told[0]
        if not is_subsequence(told, [text for text, _ in said]):
            return f"{subject}: stored {told!r:.300}, said {said!r:.300}"
        sure = _without_repeats([text for text, is_sure in said if is_sure])
        if not is_subsequence(sure, told):
            return f"{subject}: stored {len(told)} texts, surely said {len(sure)}: {told!r:.300} {said!r:.300}"
        return None

    # ── counters, deletions, appearances ──────────────────────────────────────────────────────────────────────────

    def _scores(self) -> list[str]:
        """The last score is one that was told since the last sure answer."""
        told: dict[str, list[int]] = {}
        is_known: set[str] = set()
        for observation in self.heard:
            for entry in self._told(observation):
                if entry.score is not None:
                    if observation.is_sure:
                        told[entry.wire_id] = []
                        is_known.add(entry.wire_id)
                    told.setdefault(entry.wire_id, []).append(entry.score)
        return [
            f"{name}: the score is {items[0].score}, told was {told[name][:5]}"
            for name in sorted(is_known)
            if (items := self.by_wire_id.get(name)) and items[0].score not in told[name]
        ]

    def _deletions(self) -> list[str]:
        """What the platform last surely said to be gone is marked; what is marked was said to be gone."""
        last: dict[str, bool | None] = {}
        ever: set[str] = set()
        heard = {observation.asked.number: observation for observation in self.heard}
        for asked in self.asked:
            gone = self._missing(asked)
            ever.update(gone)
            # Asked twice, such an answer is believed: from outside nobody can tell a 404 by mistake from a true one.
            last.update(dict.fromkeys(gone))
            observation = heard.get(asked.number)
            for entry in self._told(observation) if observation else ():
                # A story that is dead is not taken over by a visit; a community marks what is gone wherever it stands.
                is_look = observation is not None and observation.visit is not None and observation.visit.is_look
                is_gone = entry.is_deleted and (is_look or self.place.form == "reddit")
                last[entry.wire_id] = is_gone if observation and observation.is_sure else None
        wrong = []
        for name, items in self.by_wire_id.items():
            if last.get(name) and not items[0].is_deleted:
                wrong.append(f"{name} was deleted, and is not marked")
            # A thread that is listed under a second number is asked for under its own.
            if items[0].is_deleted and (last.get(name) is False or ever.isdisjoint(items[0].ids)):
                wrong.append(f"{name} is marked as deleted, and is not")
        return wrong

    def _missing(self, request: Asked) -> list[str]:
        """The items of which this answer may be taken to say that they are gone."""
        if request.entries:
            return [entry.wire_id for entry in request.entries if entry.is_deleted]
        if self.place.form == "reddit":
            return []
        if self.place.form == "nga":
            return [f"{name}{number}" for name, number in re.findall(r"\b([pt])id=(\d+)", request.path)]
        number = request.path.rpartition("/")[2].partition(".")[0]
        return [number, f"t{number}"] if number.isdigit() else []

    def _appearances(self) -> list[str]:
        if self.place.form != "github":
            return []
        return [
            f"{entry.wire_id} was listed on {observation.asked.at:%Y-%m-%d}, and this is not kept"
            for observation in self.heard
            if observation.is_sure
            for entry in observation.asked.entries
            for item in self.by_wire_id.get(entry.wire_id, ())
            # Midnight may pass between the answer and its arrival.
            if not any((item.id, f"{at:%Y-%m-%d}") in self.stored.appearances for at in observation.possible_times)
        ]


class _Visits:
    """The visits of one source, or the rounds of second looks at its items, to be found by time."""

    def __init__(self, visits: Sequence[Visit], source_id: int, is_look: bool) -> None:
        self._visits = [visit for visit in visits if (visit.source_id, visit.is_look) == (source_id, is_look)]
        self._starts = [visit.started_at for visit in self._visits]
        self._longest = max((visit.finished_at - visit.started_at for visit in self._visits), default=timedelta())

    def at(self, at: datetime) -> list[Visit]:
        """Those under way at a moment; threads of a forum are read by several processes at once."""
        begin, end = bisect_left(self._starts, at - self._longest), bisect_right(self._starts, at)
        return [visit for visit in self._visits[begin:end] if at <= visit.finished_at]


def _without_repeats(texts: Sequence[str]) -> list[str]:
    return [text for at, text in enumerate(texts) if at == 0 or texts[at - 1] != text]


def is_subsequence(few: Sequence[str], many: Sequence[str]) -> bool:
    left = iter(many)
    return all(text in left for text in few)
