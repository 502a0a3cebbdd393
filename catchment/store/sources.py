"""Sources and their progress: following, changing, pausing; and claiming what is due."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from catchment.clock import micros
from catchment.errors import Conflict, NotFound
from catchment.model import Lease, Progress, Record, Source, SourceState, Target, precedence
from catchment.store import leases, merging
from catchment.store.database import Database, Row, Transaction, placeholders
from catchment.store.due import first_due, set_precedence
from catchment.store.merging import Described
from catchment.store.rows import (
    PROGRESS,
    SOURCE_COLUMNS,
    progress_from,
    progress_values,
    source_from,
    to_json,
    to_micros,
)
from catchment.wording import folded

# Processes on two machines may differ by so much without anything being wrong: an hour, in microseconds.
_CLOCKS_DIFFER = 3_600_000_000
_BEGINNING = progress_values(Progress())
_FOLLOWED = (SourceState.ACTIVE, SourceState.PAUSED, SourceState.RETIRED)
_NAMES_AT_ONCE = 1000


class Claimed(Record, frozen=True):
    """A source that is ours to visit now."""

    source: Source
    progress: Progress
    lease: Lease
    is_owing: bool = False
    """Something is still to be asked for about items that it showed."""


class Wanted(Record, frozen=True):
    """A source as somebody wants it followed."""

    target: Target
    platform: str
    name: str | None = None
    settings: Mapping[str, Any] = {}
    credential: str | None = None
    interval_minutes: int | None = None
    categories: Sequence[str] = ()
    priority: str = "medium"
    quality_score: float | None = None

    @property
    def address(self) -> tuple[str, str]:
        """What no two sources share."""
        return self.target.kind, self.target.address

    def columns(self) -> dict[str, Any]:
        """What a person chose, as it lies in the table."""
        return {
            "settings": to_json({**self.target.settings, **self.settings}),
            "credential": self.credential,
            "interval_minutes": self.interval_minutes,
            "categories": to_json(list(self.categories)),
            "priority": self.priority,
            "quality_score": self.quality_score,
        }


class Holder(Record, frozen=True):
    """Who has a source at the moment."""

    source: Source
    machine: str
    pid: int
    work: str


class Sources:
    def __init__(self, database: Database) -> None:
        self._db = database

    # ── following ─────────────────────────────────────────────────────────────────────────────────────────────────

    def follow(self, target: Target, platform: str, now: datetime, **more: Any) -> tuple[Source, bool]:
        """One source, with what else `Wanted` holds; and whether it is new."""
        ((source_id, is_new),) = self.follow_many([Wanted(target, platform, **more)], now)
        return self.get(source_id), is_new

    def follow_many(self, wanted: Sequence[Wanted], now: datetime) -> list[tuple[int, bool]]:
        """The id of each, and whether it is new; all in one transaction. What was removed comes back with its items."""
        return self._db.write(lambda tx: _follow(tx, wanted, now))

    def get(self, source_id: int, *, even_removed: bool = False) -> Source:
        row = self._db.read(lambda tx: tx.one(f"SELECT {SOURCE_COLUMNS} FROM sources WHERE id = ?", source_id))
        if row is None or (row[13] == SourceState.REMOVED and not even_removed):
            raise NotFound(f"there is no source {source_id}", "`catchment sources list` shows what is followed")
        return source_from(row)

    def names(self, source_ids: Iterable[int | None]) -> dict[int, str]:
        """What they are called, removed ones too: their items stay."""
        wanted = sorted({one for one in source_ids if one is not None})
        return self._db.read(lambda tx: dict(tx.among("SELECT id, name FROM sources WHERE id IN {few}", wanted)))

    def of_target(self, kind: str, address: str) -> Source | None:
        """Who follows that address."""
        row = self._db.read(
            lambda tx: tx.one(
                f"SELECT {SOURCE_COLUMNS} FROM sources WHERE kind = ? AND target = ? AND state <> 'removed'",
                kind,
                address,
            )
        )
        return source_from(row) if row else None

    def page(
        self, after: int = 0, limit: int = 100, *, kind: str | None = None, states: Iterable[SourceState] = ()
    ) -> list[tuple[Source, Progress]]:
        """Sources with their progress in order of id; the next page begins after the last one's id."""
        wanted = list(states) or list(_FOLLOWED)
        where, values = "", []
        if kind is not None:
            where, values = "AND s.kind = ?", [kind]

        def question(tx: Transaction) -> list[Row]:
            return tx.among(
                f"""
                SELECT {joined_columns()} FROM sources s JOIN progress p ON p.source_id = s.id
                 WHERE s.id > ? {where} AND s.state IN {{few}} ORDER BY s.id LIMIT ?
                """,
                [str(state) for state in wanted],
                before=[after, *values],
                after=[limit],
            )

        return [split(row) for row in self._db.read(question)]

    def called(
        self,
        words: str,
        after: int = 0,
        limit: int = 100,
        *,
        kind: str | None = None,
        states: Iterable[SourceState] = (),
    ) -> list[tuple[Source, Progress]]:
        """The same, of those alone whose name or address has all the words, in whatever case."""
        wanted = [str(state) for state in states] or [str(state) for state in _FOLLOWED]
        return self.these(self._db.read(lambda tx: _called(tx, folded(words).split(), kind, wanted, after, limit)))

    def these(self, source_ids: Sequence[int]) -> list[tuple[Source, Progress]]:
        """Those of them that there are, with their progress, in this order."""
        rows = self._db.read(lambda tx: tx.among(_THESE, source_ids))
        found = {row[0]: split(row) for row in rows}
        return [found[one] for one in source_ids if one in found]

    def overdue(self, intervals: Mapping[str, int], otherwise: int, at: datetime, limit: int) -> list[int]:
        """What was due by then, and nobody visits; in the order in which they are claimed."""
        return list(self._db.read(lambda tx: first_due(tx, intervals, otherwise, at, limit, {})))

    def with_progress(self, source_id: int) -> tuple[Source, Progress]:
        self.get(source_id)
        row = self._db.read(
            lambda tx: tx.one(
                f"SELECT {joined_columns()} FROM sources s JOIN progress p ON p.source_id = s.id WHERE s.id = ?",
                source_id,
            )
        )
        assert row is not None
        return split(row)

    def counts(self) -> dict[str, int]:
        """How many sources there are in each state."""
        rows = self._db.read(lambda tx: tx.all("SELECT state, count(*) FROM sources GROUP BY state"))
        return dict(rows)

    def platforms(self) -> set[str]:
        """Those that an active source is followed on."""
        rows = self._db.read(lambda tx: tx.all("SELECT DISTINCT platform FROM sources WHERE state = 'active'"))
        return {row[0] for row in rows}

    def kinds(self) -> set[str]:
        """Those of every source that was ever followed, also of what is removed since."""
        return {row[0] for row in self._db.read(lambda tx: tx.all("SELECT DISTINCT kind FROM sources"))}

    def platforms_ever(self) -> set[str]:
        """Those that any source was ever followed on."""
        return {row[0] for row in self._db.read(lambda tx: tx.all("SELECT DISTINCT platform FROM sources"))}

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def set_state(self, source_id: int, state: SourceState, reason: str | None, now: datetime) -> Source:
        self.get(source_id)
        self._db.write(lambda tx: _set_state(tx, source_id, state, reason, now))
        return self.get(source_id) if state != SourceState.REMOVED else _gone(self._db, source_id)

    def change(self, source_id: int, **fields: Any) -> Source:
        """Change what a person may change: name, settings, credential, interval_minutes, categories, priority."""
        self.get(source_id)
        values = {
            name: to_json(value) if name in ("settings", "categories") else value for name, value in fields.items()
        }
        if values.get("name"):
            values["is_name_given"] = True

        def deed(tx: Transaction) -> None:
            tx.run(f"UPDATE sources SET {placeholders(values)} WHERE id = ?", *values.values(), source_id)
            if "interval_minutes" in values:
                # The new interval counts from the last poll; what waits for another reason goes on waiting.
                set_pace(tx, source_id, fields["interval_minutes"])
            if "settings" in values:
                _read_anew(tx, source_id)
            if "priority" in values:
                set_precedence(tx, {source_id: values["priority"]})

        if values:
            self._db.write(deed)
        return self.get(source_id)

    def merge(self, told: Mapping[int, Described]) -> set[int]:
        """What a list says about sources that are followed, in one transaction; gives those that changed by it."""
        return self._db.write(lambda tx: merging.merge(tx, told)) if told else set()

    def mark_due(self, source_id: int, now: datetime) -> None:
        """To be visited at the next tick, whatever its schedule says."""
        self.get(source_id)
        self._db.write(
            lambda tx: tx.run(
                "UPDATE progress SET next_due_at = ?, due_reason = 'asked for' WHERE source_id = ?",
                micros(now),
                source_id,
            )
        )

    def forget_the_future(self, now: datetime) -> int:
        """Make due what was visited in the future: the clock was wrong then, and nobody should wait for that day."""
        return self._db.write(
            lambda tx: tx.run(
                """
                UPDATE progress SET next_due_at = ?, due_reason = 'the clock was set back', last_polled_at = ?
                 WHERE is_active AND last_polled_at > ?
                """,
                micros(now),
                micros(now),
                micros(now) + _CLOCKS_DIFFER,
            )
        )

    # ── claiming ──────────────────────────────────────────────────────────────────────────────────────────────────

    def claim_due(
        self,
        owner_id: int,
        intervals: Mapping[str, int],
        otherwise: int,
        now: datetime,
        limit: int,
        most: Mapping[str, int] = MappingProxyType({}),
    ) -> list[Claimed]:
        """Claim up to `limit` of what is due: never visited first, then by priority, then what is most overdue.

        `intervals` are the minutes of each kind, `otherwise` those of kinds it does not name. Of the kinds in `most`,
        so many are claimed, beside the others; 0: none, and they stay as due as they are. The cost grows with what is
        claimed: each question is about one kind, runs along an index, and stops at its limit.
        """
        if limit < 1 and not any(most.values()):
            return []
        # Looking before locking: an empty tick takes no lock and writes nothing.
        due = self._db.read(lambda tx: first_due(tx, intervals, otherwise, now, limit, most))
        return self._db.write(lambda tx: _claim_unvisited(tx, due, owner_id, now)) if due else []

    def claim(self, source_ids: Sequence[int], owner_id: int, now: datetime) -> list[Claimed]:
        """Claim these, whatever their schedule says; those that somebody holds are left out."""
        return self._db.write(lambda tx: _claim(tx, source_ids, owner_id, now)) if source_ids else []

    def give_back(self, claimed: Sequence[Lease]) -> None:
        """Free them as they were: nobody has visited them."""

        def deed(tx: Transaction) -> None:
            for lease in claimed:
                leases.release(tx, lease)

        if claimed:
            self._db.write(deed)

    def holder(self, source_id: int) -> Holder | None:
        """Who is collecting it at this moment."""
        row = self._db.read(
            lambda tx: tx.one(
                """
                SELECT o.machine, o.pid, o.work FROM leases l JOIN owners o ON o.id = l.owner_id
                 WHERE l.resource = 'source' AND l.resource_id = ?
                """,
                source_id,
            )
        )
        return Holder(self.get(source_id), *row) if row else None

    def ids(self, *, kind: str | None = None) -> list[int]:
        """All that are active, oldest visit first."""
        where, values = ("AND kind = ?", [kind]) if kind else ("", [])
        rows = self._db.read(
            lambda tx: tx.all(
                f"""
                SELECT source_id FROM progress WHERE is_active {where}
                 ORDER BY coalesce(last_polled_at, 0), source_id
                """,
                *values,
            )
        )
        return [row[0] for row in rows]


def key_of(platform: str, address: str, *more: object) -> str:
    """A source's stable key: made from its first address, kept when the address changes."""
    return hashlib.sha256("\n".join(map(str, (platform, address, *more))).encode()).hexdigest()[:20]


def _keys(tx: Transaction, wanted: Sequence[Wanted], now: datetime) -> list[str]:
    """The key of each. One that moved away with its source is taken: what lives at its address now is another thing."""
    keys = [key_of(one.platform, one.target.address) for one in wanted]
    addresses = dict(zip(keys, (one.target.address for one in wanted), strict=True))
    rows = tx.among("SELECT key, target FROM sources WHERE key IN {few}", list(addresses))
    gone = {key for key, target in rows if target != addresses[key]}
    return [
        key_of(one.platform, one.target.address, micros(now)) if key in gone else key
        for key, one in zip(keys, wanted, strict=True)
    ]


def _follow(tx: Transaction, wanted: Sequence[Wanted], now: datetime) -> list[tuple[int, bool]]:
    known = _states(tx, wanted)
    first: dict[tuple[str, str], Wanted] = {}
    for one in wanted:
        # Of two that want the same, the first one counts.
        first.setdefault(one.address, one)
    fresh = [one for address, one in first.items() if address not in known]
    back = [one for address, one in first.items() if known.get(address, (0, ""))[1] == SourceState.REMOVED]
    _begin(tx, fresh, now)
    if fresh:
        known = _states(tx, wanted)
        rows = [(known[one.address][0], one.target.kind, precedence(one.priority), True, *_BEGINNING) for one in fresh]
        tx.insert("progress", ("source_id", "kind", "precedence", "is_active", *PROGRESS), rows)
    for one in back:
        _take_up(tx, known[one.address][0], one, now)
    new = {one.address for one in (*fresh, *back)}
    return [(known[one.address][0], one.address in new and one is first[one.address]) for one in wanted]


def _states(tx: Transaction, wanted: Sequence[Wanted]) -> dict[tuple[str, str], tuple[int, str]]:
    """Id and state of those that are in the table, by kind and address."""
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for kind in {one.target.kind for one in wanted}:
        rows = tx.among(
            "SELECT target, id, state FROM sources WHERE kind = ? AND target IN {few}",
            [address for name, address in dict.fromkeys(one.address for one in wanted) if name == kind],
            before=[kind],
        )
        found |= {(kind, target): (source_id, state) for target, source_id, state in rows}
    return found


def _begin(tx: Transaction, fresh: Sequence[Wanted], now: datetime) -> None:
    rows = [
        {
            "key": key,
            "platform": one.platform,
            "kind": one.target.kind,
            "target": one.target.address,
            "name": one.name or one.target.name or one.target.address,
            "is_name_given": bool(one.name or one.target.name),
            **one.columns(),
            "state": str(SourceState.ACTIVE),
            "state_changed_at": micros(now),
            "created_at": micros(now),
        }
        for one, key in zip(fresh, _keys(tx, fresh, now), strict=True)
    ]
    if rows:
        tx.insert("sources", list(rows[0]), [list(row.values()) for row in rows])


def _take_up(tx: Transaction, source_id: int, wanted: Wanted, now: datetime) -> None:
    """Followed once more: its items and progress are as they were left, its settings are those of today."""
    columns = wanted.columns() | ({"name": wanted.name, "is_name_given": True} if wanted.name else {})
    tx.run(f"UPDATE sources SET {placeholders(columns)} WHERE id = ?", *columns.values(), source_id)
    _set_state(tx, source_id, SourceState.ACTIVE, None, now)
    set_pace(tx, source_id, wanted.interval_minutes)
    set_precedence(tx, {source_id: wanted.priority})
    _read_anew(tx, source_id)


def joined_columns() -> str:
    source = ", ".join(f"s.{name.strip()}" for name in SOURCE_COLUMNS.split(","))
    return f"{source}, {', '.join(f'p.{name}' for name in PROGRESS)}"


_THESE = f"SELECT {joined_columns()} FROM sources s JOIN progress p ON p.source_id = s.id WHERE s.id IN {{few}}"


def split(row: Row) -> tuple[Source, Progress]:
    width = len(row) - len(PROGRESS)
    return source_from(row[:width]), progress_from(row[width:])


def _called(
    tx: Transaction, words: Sequence[str], kind: str | None, states: Sequence[str], after: int, limit: int
) -> list[int]:
    """Ids, found by going through the names: each database has its own idea of upper and lower case."""
    where, values = ("AND kind = ?", [kind]) if kind is not None else ("", [])
    found: list[int] = []
    while len(found) < limit:
        rows = tx.among(
            f"SELECT id, name, target FROM sources WHERE id > ? {where} AND state IN {{few}} ORDER BY id LIMIT ?",
            states,
            before=[after, *values],
            after=[_NAMES_AT_ONCE],
        )
        texts = {source_id: folded(f"{name}\n{target}") for source_id, name, target in rows}
        found += [source_id for source_id, text in texts.items() if all(word in text for word in words)]
        if len(rows) < _NAMES_AT_ONCE:
            break
        after = rows[-1][0]
    return found[:limit]


def _set_state(tx: Transaction, source_id: int, state: SourceState, reason: str | None, now: datetime) -> None:
    tx.run(
        "UPDATE sources SET state = ?, state_reason = ?, state_changed_at = ? WHERE id = ?",
        str(state),
        reason,
        micros(now),
        source_id,
    )
    is_active = state == SourceState.ACTIVE
    tx.run("UPDATE progress SET is_active = ? WHERE source_id = ?", is_active, source_id)
    if is_active:
        # Back by a person's word: it starts with a clean slate. What a server asked for is not the person's to forgive.
        tx.run("UPDATE progress SET failures_in_a_row = 0 WHERE source_id = ? AND failures_in_a_row > 0", source_id)
        tx.run("UPDATE progress SET due_reason = NULL WHERE source_id = ? AND due_reason = 'probation'", source_id)
        row = tx.one("SELECT interval_minutes FROM sources WHERE id = ?", source_id)
        set_pace(tx, source_id, row[0] if row else None)


def set_pace(tx: Transaction, source_id: int, interval_minutes: int | None) -> None:
    """Its own interval, or else that of its tier, counts from the last visit; none of both: its kind's holds."""
    if interval_minutes is None:
        due, reason, values = "CAST(tier_minutes AS BIGINT) * 60000000", "tier_reason", []
    else:
        due, reason, values = "?", "'own interval'", [interval_minutes * 60_000_000]
    tx.run(
        f"""
        UPDATE progress SET next_due_at = last_polled_at + {due}, due_reason = {reason}
         WHERE source_id = ? AND (due_reason IS NULL OR due_reason IN ('own interval', tier_reason))
        """,
        *values,
        source_id,
    )


def _gone(database: Database, source_id: int) -> Source:
    row = database.read(lambda tx: tx.one(f"SELECT {SOURCE_COLUMNS} FROM sources WHERE id = ?", source_id))
    assert row is not None
    return source_from(row)


def _claim(tx: Transaction, source_ids: Sequence[int], owner_id: int, now: datetime) -> list[Claimed]:
    """Those that are there, followed, and free; in the order given."""
    rows = tx.among("SELECT id FROM sources WHERE id IN {few} AND state <> 'removed'", source_ids)
    # Claimed in order of id: two who claim overlapping sets must not wait for each other.
    taken = {one: lease for (one,) in sorted(rows) if (lease := leases.take(tx, "source", one, owner_id, now))}
    # Read after the claim: whoever had them before may have moved them on.
    rows = tx.among(
        f"""
        SELECT {joined_columns()}, EXISTS (SELECT 1 FROM owed o WHERE o.source_id = s.id)
          FROM sources s JOIN progress p ON p.source_id = s.id WHERE s.id IN {{few}}
        """,
        list(taken),
    )
    found = {row[0]: row for row in rows}
    return [
        Claimed(*split(found[one][:-1]), taken[one], bool(found[one][-1]))
        for one in dict.fromkeys(source_ids)
        if one in taken
    ]


def _claim_unvisited(tx: Transaction, due: Mapping[int, int | None], owner_id: int, now: datetime) -> list[Claimed]:
    """Claim what nobody has visited between our look and our claim."""
    kept: list[Claimed] = []
    for one in _claim(tx, list(due), owner_id, now):
        if to_micros(one.progress.last_polled_at) == due[one.source.id] and one.source.state == SourceState.ACTIVE:
            kept.append(one)
        else:
            leases.release(tx, one.lease)
    return kept


def move_target(tx: Transaction, source: Source, address: str) -> bool:
    """The source's address is another one now; its key stays. False if another source has that address already."""
    if tx.one("SELECT 1 FROM sources WHERE kind = ? AND target = ?", source.kind, address):
        return False
    tx.run("UPDATE sources SET target = ? WHERE id = ?", address, source.id)
    return True


def keep_pace(tx: Transaction, source: Source) -> None:
    """A person may have changed the interval while the source was being visited: theirs holds."""
    row = tx.one("SELECT interval_minutes FROM sources WHERE id = ?", source.id)
    if row and row[0] != source.interval_minutes:
        set_pace(tx, source.id, row[0])


def _read_anew(tx: Transaction, source_id: int) -> None:
    """The next answer is read even if it is the last one again: other settings may see other things in it."""
    tx.run(
        "UPDATE progress SET etag = NULL, last_modified = NULL, body_hash = NULL, shown_marks = NULL"
        " WHERE source_id = ?",
        source_id,
    )


def call_it(tx: Transaction, source_id: int, name: str) -> None:
    """The name that the source gives itself, where no person gave one."""
    tx.run("UPDATE sources SET name = ? WHERE id = ? AND is_name_given = ?", name, source_id, False)


def refuse_twice(source: Source, is_new: bool) -> Source:
    if not is_new:
        raise Conflict(f"{source.target} is followed already, as source {source.id} ({source.name})")
    return source
