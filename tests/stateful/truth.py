"""What must be true of an archive of feeds, in plain Python: the rules of SEMANTICS 2 to 5 and 9, without a database.

It is told what every visit met (an answer with these entries, or that failure) and says what must be stored, due and
open afterwards. It shares no code with what it judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

DAY = timedelta(days=1)
LATELY, MEANWHILE = timedelta(minutes=10), timedelta(hours=2)
NO_CONNECTION, NO_ANSWER = "no connection", "its host does not answer"
RETRIES = {NO_CONNECTION: (2, 1.5, 15), NO_ANSWER: (5, 2.0, 60)}
"""After failures that usually pass: minutes until the first retry, how these grow, and the most."""
FAILURES_BEFORE_PROBATION = 3
"""Less than the default: histories are short."""
UNREACHABLE = ("SERVER_TROUBLE", "TIMEOUT_ERROR")
OFTEN = 3
ASKED = "the source asks to be collected less often"


@dataclass(frozen=True)
class Entry:
    """An entry as a feed shows it."""

    key: str
    link: str
    title: str
    text: str
    at: datetime | None

    @property
    def content(self) -> tuple[str, str]:
        return self.title, self.text


@dataclass(frozen=True)
class Shown:
    """One answer: what it shows, and its bytes."""

    entries: tuple[Entry, ...]
    hollow: int
    """Entries with nothing in them."""
    body: bytes
    item_id: timedelta | None = None
    """How rarely the feed wants to be asked."""

    @property
    def count(self) -> int:
        return len(self.entries) + self.hollow


@dataclass
class Version:
    content: tuple[str, str]
    since: datetime
    until: datetime | None = None


@dataclass
class Kept:
    """An item that must be stored, once."""

    number: int
    key: str
    link: str
    at: datetime | None
    first_seen: datetime
    versions: list[Version]
    volatile_until: datetime | None = None
    sightings: dict[int, tuple[datetime, datetime]] = field(default_factory=dict)
    """By source: first and last."""

    @property
    def content(self) -> tuple[str, str]:
        return self.versions[-1].content

    @property
    def ordered_at(self) -> datetime:
        return self.first_seen if self.at is None else min(self.at, self.first_seen)

    def earlier(self) -> list[Version]:
        return self.versions[:-1]

    def flips(self, content: tuple[str, str], now: datetime) -> int:
        """How often within a day it left what it came back to later; coming back to this content now included."""
        said = [version.content for version in self.versions] + [content]
        return sum(
            1
            for place, version in enumerate(self.earlier())
            if version.until and version.until > now - DAY and version.content in said[place + 1 :]
        )


@dataclass
class Hole:
    """A gap that must be recorded."""

    since: datetime
    until: datetime
    edge: frozenset[str]
    is_open: bool = True


@dataclass
class Mark:
    at: datetime
    ids: frozenset[str]


@dataclass(frozen=True)
class Came:
    """What a visit must come to."""

    outcome: str
    new: int = 0
    updated: int = 0
    duplicate: int = 0
    invalid: int = 0
    code: str | None = None


@dataclass
class Followed:
    """A source, and all that must be known about it."""

    id: int
    scope: str
    kind: str
    own_minutes: int | None = None
    state: str = "active"
    mark: Mark | None = None
    newest_shown: datetime | None = None
    holes: list[Hole] = field(default_factory=list)
    last_body: bytes | None = None
    """Of the last good answer: the same bytes again are nothing new."""
    has_tag: bool = False
    """Whether it can ask "has it changed?"."""
    bodies: set[bytes] = field(default_factory=set)
    stale_in_a_row: int = 0
    last_polled: datetime | None = None
    due_at: datetime | None = None
    """Where something other than the kind's interval decides, and then `why`."""
    why: str | None = None
    polls: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    has_error: bool = False
    has_alert: bool = False

    @property
    def is_active(self) -> bool:
        return self.state == "active"


class Truth:
    def __init__(self) -> None:
        self.kept: dict[str, list[Kept]] = {}
        """By scope, in the order in which they came."""
        self.aliases: dict[tuple[str, str], Kept] = {}
        self.sources: dict[int, Followed] = {}
        self.minutes = {"rss": 240, "digest_feed": 240}
        self._count = 0
        self.line = Line()

    # ── when ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def interval(self, source: Followed) -> timedelta:
        return timedelta(minutes=source.own_minutes or self.minutes[source.kind])

    def next_visit(self, source: Followed) -> datetime | None:
        """None: never, or at once if it was never visited."""
        if not source.is_active:
            return None
        if source.due_at is not None:
            return source.due_at
        return source.last_polled + self.interval(source) if source.last_polled else None

    def is_due(self, source: Followed, now: datetime) -> bool:
        if not source.is_active:
            return False
        at = self.next_visit(source)
        return at is None or at <= now

    def _wait_for_interval(self, source: Followed, now: datetime, item_id: timedelta | None = None) -> None:
        source.due_at = source.why = None
        if source.own_minutes:
            source.due_at, source.why = now + self.interval(source), "own interval"
        if item_id is not None and item_id > self.interval(source):
            source.due_at = now + min(item_id, max(DAY, self.interval(source)))
            source.why = ASKED

    # ── a person's word ───────────────────────────────────────────────────────────────────────────────────────────

    def pause(self, source: Followed) -> None:
        """Nobody is alarmed about what is not collected."""
        source.state = "paused"
        source.has_alert = False

    def resume(self, source: Followed) -> None:
        """Probation is over, and the count begins anew; what a server asked for still holds."""
        source.state = "active"
        source.failures_in_a_row = 0
        if source.why == "probation":
            self._pace(source)

    def change_interval(self, source: Followed, minutes: int | None) -> None:
        source.own_minutes = minutes
        if source.why in (None, "own interval"):
            self._pace(source)

    def _pace(self, source: Followed) -> None:
        source.due_at = source.why = None
        if source.own_minutes and source.last_polled:
            source.due_at, source.why = source.last_polled + self.interval(source), "own interval"

    # ── a visit that failed ───────────────────────────────────────────────────────────────────────────────────────

    def fail(
        self,
        source: Followed,
        code: str,
        now: datetime,
        host: str,
        *,
        retry_at: datetime | None = None,
        body: bytes = b"",
    ) -> Came:
        before = source.due_at - source.last_polled if source.due_at and source.last_polled else None
        self._polled(source, now)
        # Being told to wait counts against nobody.
        source.failures += code != "SLOW_DOWN"
        source.has_error = True
        cause = self.line.cause(source.id, host, code, now)
        is_counted = cause == "source"
        source.failures_in_a_row += is_counted
        wait = self.interval(source)
        if code == "SLOW_DOWN":
            pause = min(timedelta(minutes=15), wait)
            source.due_at, source.why = retry_at or now + pause, "asked to wait"
            source.due_at = min(max(source.due_at, now + timedelta(seconds=1)), now + DAY)
        elif source.failures_in_a_row >= FAILURES_BEFORE_PROBATION:
            longer = wait * 2 ** (source.failures_in_a_row - FAILURES_BEFORE_PROBATION + 1)
            source.due_at, source.why = now + max(wait, min(longer, DAY)), "probation"
        elif code in UNREACHABLE and (not is_counted or source.failures_in_a_row == 1):
            reason = NO_CONNECTION if cause == "network" else NO_ANSWER
            first, growth, most = RETRIES[reason]
            soon = before * growth if before is not None and source.why == reason else timedelta(minutes=first)
            source.due_at, source.why = now + min(soon, timedelta(minutes=most), wait), reason
        else:
            self._wait_for_interval(source, now)
        if retry_at is not None and code != "SLOW_DOWN":
            # A server's wish only delays.
            usual = source.due_at or now + wait
            if min(retry_at, now + DAY) > usual:
                source.due_at, source.why = min(retry_at, now + DAY), "asked to wait"
        is_full = is_counted and source.failures_in_a_row >= FAILURES_BEFORE_PROBATION
        source.has_alert |= code in ("LOGIN_NEEDED", "GONE") or is_full
        if code == "GONE" and source.is_active:
            source.state = "retired"
        if body:
            source.bodies.add(body)
        return Came("failed", code=code)

    def _polled(self, source: Followed, now: datetime) -> None:
        source.last_polled = now
        source.polls += 1

    def _succeeded(self, source: Followed) -> None:
        source.failures_in_a_row = source.stale_in_a_row = 0
        source.has_error = source.has_alert = False

    # ── a visit that was answered ─────────────────────────────────────────────────────────────────────────────────

    def answer(self, source: Followed, shown: Shown, now: datetime, host: str, *, has_tag: bool) -> Came:
        self.line.answered(host, now)
        # Not in the bytes that do not come again: it holds while nothing changes and nothing fails.
        asked_for = source.due_at - source.last_polled if source.why == ASKED and source.due_at else None  # type: ignore[operator]
        self._polled(source, now)
        if shown.body == source.last_body:
            is_304 = has_tag and source.has_tag
            source.has_tag |= has_tag
            self._succeeded(source)
            self._wait_for_interval(source, now, asked_for)
            return Came("unchanged", duplicate=0 if is_304 else shown.count)
        known = self._known(source, shown.entries)
        if self._is_stale(source, shown, known, now):
            return self._stale(source, shown, known, now)
        source.bodies.add(shown.body)
        self._walk(source, shown, known, now)
        came = self._apply(source, shown, known, now)
        source.last_body, source.has_tag = shown.body, has_tag
        if any(entry.content != self._by_key(source, entry.key, known).content for entry in shown.entries):
            # What flips was not taken over; it must be looked at again when its day is over, even if it stays the same.
            source.last_body, source.has_tag = None, False
        self._succeeded(source)
        self._wait_for_interval(source, now, shown.item_id)
        return came

    def _by_key(self, source: Followed, key: str, known: dict[str, Kept]) -> Kept:
        return known.get(key) or next(stored for stored in self.kept[source.scope] if stored.key == key)

    def _known(self, source: Followed, entries: Sequence[Entry]) -> dict[str, Kept]:
        """Which of the entries are stored: under their id, under another one that was noted down, or recognised."""
        kept = self.kept.setdefault(source.scope, [])
        by_key = {stored.key: stored for stored in kept}
        known = {entry.key: by_key[entry.key] for entry in entries if entry.key in by_key}
        # Two ids in one answer are two items.
        taken = {stored.number for stored in known.values()}
        noted = [key for scope, key in self.aliases if scope == source.scope]
        for key in sorted(noted, key=lambda key: (self.aliases[source.scope, key].number, noted.index(key))):
            stored = self.aliases[source.scope, key]
            if key in {entry.key for entry in entries} - known.keys() and stored.number not in taken:
                known[key] = stored
                taken.add(stored.number)
        if source.mark is not None:
            strangers = [entry for entry in entries if entry.key not in known]
            renamed = self._renamed(source, strangers, taken)
            for key, stored in renamed.items():
                self.aliases.setdefault((source.scope, key), stored)
            known |= renamed
        return known

    def _renamed(self, source: Followed, strangers: Sequence[Entry], taken: set[int]) -> dict[str, Kept]:
        """Half or more of the unknown alike, by words or link, and of the same date: the feed changed its ids."""
        held = [
            stored for stored in self.kept[source.scope] if source.id in stored.sightings and stored.number not in taken
        ]
        words, links = Counter(stored.content for stored in held), Counter(stored.link for stored in held)
        found: dict[str, Kept] = {}
        for entry in strangers:
            alike = [stored for stored in held if stored.content == entry.content and words[stored.content] == 1]
            alike = alike or [stored for stored in held if stored.link == entry.link and links[stored.link] == 1]
            if alike and alike[0] not in found.values() and entry.at in (None, alike[0].at or alike[0].first_seen):
                found[entry.key] = alike[0]
        return found if 2 * len(found) >= len(strangers) else {}

    def _edits(self, shown: Shown, known: dict[str, Kept], now: datetime) -> list[tuple[Kept, Entry]]:
        """The entries that say something else than we hold; without those that do so all day."""
        pairs = [(known[entry.key], entry) for entry in shown.entries if entry.key in known]
        return [
            (stored, entry)
            for stored, entry in pairs
            if stored.content != entry.content and not (stored.volatile_until and now < stored.volatile_until)
        ]

    def _is_stale(self, source: Followed, shown: Shown, known: dict[str, Kept], now: datetime) -> bool:
        newest = max((min(entry.at, now) for entry in shown.entries if entry.at), default=None)
        if newest is None or source.newest_shown is None or newest >= source.newest_shown:
            return False
        edits = self._edits(shown, known, now)
        is_old = all(entry.content in [old.content for old in stored.earlier()] for stored, entry in edits)
        return source.stale_in_a_row < 3 and is_old and (bool(edits) or shown.body in source.bodies)

    def _stale(self, source: Followed, shown: Shown, known: dict[str, Kept], now: datetime) -> Came:
        source.bodies.add(shown.body)
        new = [entry for entry in shown.entries if entry.key not in known]
        for entry in new:
            self._keep(source, entry, now)
        source.last_body, source.has_tag = None, False
        source.stale_in_a_row += 1
        source.failures += 1
        source.has_error = source.has_alert = True
        self._wait_for_interval(source, now, shown.item_id)
        old = len(shown.entries) - len(new)
        return Came("failed", new=len(new), duplicate=old, invalid=shown.hollow, code="STALE_ANSWER")

    def _apply(self, source: Followed, shown: Shown, known: dict[str, Kept], now: datetime) -> Came:
        new = updated = duplicate = 0
        for entry in shown.entries:
            stored = known.get(entry.key)
            if stored is None:
                self._keep(source, entry, now)
                new += 1
                continue
            first, _ = stored.sightings.get(source.id, (now, now))
            stored.sightings[source.id] = first, now
            if stored.content == entry.content:
                duplicate += 1
                continue
            updated += 1
            if stored.volatile_until and now < stored.volatile_until:
                continue
            if entry.content in [old.content for old in stored.earlier()] and stored.flips(entry.content, now) >= 3:
                stored.volatile_until = now + DAY
                continue
            stored.versions[-1].until = now
            stored.versions.append(Version(entry.content, now))
        return Came("succeeded", new, updated, duplicate, shown.hollow)

    def _keep(self, source: Followed, entry: Entry, now: datetime) -> None:
        self._count += 1
        version = Version(entry.content, now)
        stored = Kept(self._count, entry.key, entry.link, entry.at, now, [version], None, {source.id: (now, now)})
        self.kept[source.scope].append(stored)

    # ── watermark and gaps ────────────────────────────────────────────────────────────────────────────────────────

    def _walk(self, source: Followed, shown: Shown, known: dict[str, Kept], now: datetime) -> None:
        mark, entries = source.mark, self._telling(source, shown, known, now)
        dated = [(min(entry.at, now), entry.key) for entry in entries if entry.at]
        if mark is not None and not self.is_connected(source, entries, known) and len(entries) >= 3:
            oldest = min((at for at, _ in dated), default=now)
            hole = Hole(mark.at, max(mark.at, oldest, *self._lowest(shown, now)), mark.ids)
        else:
            hole = None
        # What was seen before lifts nothing above the moment when it was first seen, though its date lay ahead of that.
        risen = [(min(at, known[key].ordered_at) if key in known else at, key) for at, key in dated]
        newest = max((at for at, _ in risen), default=None)
        for gap in source.holes:
            below = {entry.key for entry in entries if entry.at is None or entry.at <= gap.since}
            if gap.is_open and newest is not None and newest >= gap.until and below & gap.edge:
                gap.is_open = False
        if hole:
            source.holes.append(hole)
        if newest is not None:
            source.newest_shown = newest
        if not entries:
            return
        ids = {key for at, key in risen if at == newest} if newest else {entry.key for entry in entries}
        at = newest or now
        if mark is None or at > mark.at:
            source.mark = Mark(at, frozenset(ids))
        elif at == mark.at:
            source.mark = Mark(at, mark.ids | ids)

    @staticmethod
    def _telling(source: Followed, shown: Shown, known: dict[str, Kept], now: datetime) -> Sequence[Entry]:
        """The entries that tell how far down the feed goes: in one that is not in the order of dates, an unknown entry
        of an old date does not, if there are newer ones as well."""
        dates = [entry.at for entry in shown.entries if entry.at is not None and entry.at <= now]
        newer = [entry for entry in shown.entries if source.mark and entry.at and entry.at > source.mark.at]
        if dates == sorted(dates, reverse=True) or not newer:
            return shown.entries
        assert source.mark is not None
        return [entry for entry in shown.entries if entry.key in known or entry.at is None or entry.at > source.mark.at]

    @staticmethod
    def _lowest(shown: Shown, now: datetime) -> list[datetime]:
        """The date of the last entry, where the dates go up and down: what is missing below came out before it."""
        dates = [entry.at for entry in shown.entries if entry.at is not None and entry.at <= now]
        return dates[-1:] if dates not in (sorted(dates), sorted(dates, reverse=True)) else []

    @staticmethod
    def is_connected(source: Followed, entries: Sequence[Entry], known: dict[str, Kept]) -> bool:
        """Whether something shown is not newer than the watermark, by its date or by the one that we first saw."""
        assert source.mark is not None
        ours = [known[entry.key] for entry in entries if entry.key in known]
        first_told = [stored.at or stored.first_seen for stored in ours if source.id in stored.sightings]
        dates = [entry.at for entry in entries if entry.at is not None]
        return any(at <= source.mark.at for at in (*dates, *first_told))


class Line:
    """Who answered and who failed lately, as one process knows it."""

    def __init__(self) -> None:
        self._reached_at: datetime | None = None
        self._unreached: set[str] = set()
        self._unanswered: set[str] = set()
        """Hosts that failed since any host answered."""
        self._missed: Counter[str] = Counter()
        """How often a host failed before others answered: often enough, and it is its own trouble."""
        self._failing: dict[str, dict[int, datetime]] = {}

    def answered(self, host: str, now: datetime) -> None:
        self._reached(now)
        self._failing.pop(host, None)
        self._missed.update(self._unanswered - {host})
        self._missed.pop(host, None)
        self._unanswered.clear()

    def _reached(self, now: datetime) -> None:
        self._reached_at = now
        self._unreached.clear()

    def cause(self, source_id: int, host: str, code: str, now: datetime) -> str:
        """Whose failure it is: a wait, this machine's network, the host that fails others too, or the source's own."""
        is_reached = code != "TIMEOUT_ERROR"
        if is_reached:
            self._reached(now)
        if code == "SLOW_DOWN":
            return "wait"
        if code not in UNREACHABLE:
            return "source"
        failing = self._failing.setdefault(host, {})
        failing[source_id] = now
        is_shared = any(other_id != source_id and at > now - MEANWHILE for other_id, at in failing.items())
        if self._missed[host] < OFTEN:
            self._unanswered.add(host)
            is_shared |= len(self._unanswered) > 1
            if not is_reached:
                self._unreached.add(host)
                is_lately = self._reached_at is not None and self._reached_at > now - LATELY
                if not is_lately or len(self._unreached) > 1:
                    return "network"
        return "site" if is_shared else "source"
