"""Writing a page: what one answer showed, and the progress that it proves, in one transaction.

    check the lease ▸ lock the known rows ▸ judge each item ▸ conclude ▸ take the change number ▸
    items, revisions, sightings, tags, references, gaps, raw answer, progress, run record, outbox

The decisions (`Deciding`) are pure functions handed in from above; this module only carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from catchment.clock import micros, moment
from catchment.model import Deed, Gap, Judged, Known, Lease, Media, Progress, RefinedItem, Source, Verdict
from catchment.store import hot, leases
from catchment.store.database import Database, Row, Transaction
from catchment.store.endings import ended, note_page, set_progress
from catchment.store.forgetting import forgotten_among
from catchment.store.looks import set_looks
from catchment.store.owing import settle
from catchment.store.rows import GAP_COLUMNS, KNOWN_COLUMNS, gap_from, known_from, known_place
from catchment.store.series import last_points
from catchment.store.visits import Closing, Conclusion, Deciding, Earlier, Found, Key, Page, RawAnswer
from catchment.store.writing import count_attempts, keep_raw, key_of, tell_collected, write_gaps, write_items

# How many of a source's newest items are looked at when a feed may have changed all its ids.
LOOKALIKES = 300
# From so many posts a rhythm is told; where a post has fifty replies, they are among so many items.
_RHYTHM, _RHYTHM_AMONG = 50, 2_500
_FINGERPRINT, _RULE = known_place("fingerprint"), known_place("fingerprint_rule")

_NOTHING_NEW = Verdict(Deed.SAME)


class Forgotten(Exception):
    """An item that came as it came last time is not held as it was then: the page has to be refined whole."""


class Pages:
    def __init__(
        self,
        database: Database,
        fingerprint: Callable[[str | None, str | None, str | None, Sequence[Media]], bytes],
        *,
        tells_ready: bool = False,
    ) -> None:
        self._db = database
        self._fingerprint = fingerprint
        self._tells_ready = tells_ready

    def write(self, page: Page, deciding: Deciding) -> Conclusion:
        """All of it or nothing. A superseded lease writes nothing."""

        def deed(tx: Transaction) -> Conclusion:
            conclusion, answered = self._write(tx, page, deciding)
            if page.is_kept_hot:
                # Last: whoever begins to keep a source hot waits for us, and we for nobody any more.
                shown = [one.known.id for one in conclusion.judged if one.known]
                hot.changed_items(tx, [*shown, *answered], page.source.id)
            return conclusion

        return self._db.write(deed)

    def end(self, closings: Sequence[Closing]) -> list[Closing]:
        """End visits that had nothing (more) to store, in one transaction; gives those whose lease was lost."""

        def deed(tx: Transaction) -> list[Closing]:
            lost = []
            for one in closings:
                if not leases.is_ours(tx, one.lease):
                    lost.append(one)
                    continue
                count_attempts(tx, one.source.platform, one.outcomes)
                ended(tx, one.source, one.lease, one.run_id, one.ending, tells_ready=self._tells_ready)
            return lost

        return self._db.write(deed)

    def keep_raw(self, source: Source, lease: Lease, run_id: int, answered_at: datetime, raw: RawAnswer) -> None:
        """Keep an answer that could not be read: a mended reader will read it again."""

        def deed(tx: Transaction) -> None:
            leases.check(tx, lease)
            keep_raw(tx, source.id, run_id, micros(answered_at), raw)

        self._db.write(deed)

    def _write(self, tx: Transaction, page: Page, deciding: Deciding) -> tuple[Conclusion, tuple[int, ...]]:
        """Gives also the items that were answered by what is new."""
        leases.check(tx, page.lease)
        judged = self.judged(tx, page, deciding)
        conclusion = deciding.conclude(
            Found(
                judged,
                _earlier(tx, judged),
                _open_gaps(tx, page.source.id) if page.items else (),
                page.suspects_staleness and _is_seen_before(tx, page.source.id, page.raws),
                last_points(tx, judged),
            )
        )
        now = micros(page.answered_at)
        number, answered = write_items(tx, page, conclusion, now)
        set_looks(tx, conclusion.looks)
        settle(tx, page.source, conclusion.settled, page.answered_at)
        for raw in page.raws if not _shows_forgotten(judged) else ():
            keep_raw(tx, page.source.id, page.run_id, now, raw)
        write_gaps(tx, page, conclusion, now)
        if number is not None:
            tell_collected(tx, page, conclusion.counts, number, now)
        count_attempts(tx, page.source.platform, page.outcomes)
        if conclusion.ending is not None:
            ending = conclusion.ending
            # Counted over all pages of the visit; and after a visit that broke off, what that one stored counts, too.
            if ending.result.counts.new or ending.is_recovered:
                ending = ending.plus(progress=_with_rhythm(tx, page, ending.progress, deciding))
            ended(tx, page.source, page.lease, page.run_id, ending, tells_ready=self._tells_ready)
            return conclusion, answered
        note_page(tx, page, conclusion.counts, conclusion.valid, now)
        if conclusion.proven is not None:
            proven = _with_rhythm(tx, page, conclusion.proven, deciding)
            set_progress(tx, page.source, proven)
            return conclusion.plus(proven=proven), answered
        return conclusion, answered

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────

    def judged(self, tx: Transaction, page: Page, deciding: Deciding) -> tuple[Judged, ...]:
        """What the page shows, beside what is held of it; the rows of what is held are locked."""
        known = self._known(tx, page)
        unknown = [one for one in page.items if key_of(one) not in known]
        unwanted = forgotten_among(tx, page.source.platform, unknown) if unknown else set()
        strangers = [one for one in unknown if not one.is_listed]
        renamed = self._renamed(tx, page, strangers, known, deciding) if strangers and page.may_have_new_ids else {}
        judged = []
        for one in page.items:
            held = known.get(key_of(one))
            if key_of(one) in unwanted:
                judged.append(Judged(one, None, _NOTHING_NEW))
                continue
            if one.is_listed:
                # An id alone says nothing, but that it is there. What is not held is not judged: it must be asked for.
                judged += [Judged(_dated(one, held), held, _NOTHING_NEW)] if held else []
                continue
            if one.is_unchanged:
                if held is None or held.is_seen_by_others:
                    raise Forgotten
                judged.append(Judged(one, held, _NOTHING_NEW))
                continue
            alias = None if held else renamed.get(one.item.external_id)
            verdict = deciding.judge(held or alias, one)
            judged.append(Judged(one, held or alias, verdict, is_alias=alias is not None))
        return tuple(judged)

    def _known(self, tx: Transaction, page: Page) -> dict[Key, Known]:
        rows: dict[Key, Row] = {}
        for scope, ids in _ids_by_scope(page.items).items():
            rows |= {(scope, row[1]): row for row in _rows_by_id(tx, page, scope, ids)}
            taken = {row[0] for row in rows.values()}
            for *row, alias in _rows_by_alias(tx, page, scope, [one for one in ids if (scope, one) not in rows]):
                # Two ids in one answer are two items, whatever was thought of them before.
                if row[0] not in taken:
                    taken.add(row[0])
                    rows[scope, alias] = tuple(row)
        seen = _seen(tx, page, [row[0] for row in rows.values()])
        return {
            key: known_from(row, *seen.get(row[0], (0, False, False)))
            for key, row in self._current(tx, page, rows).items()
        }

    def _renamed(
        self,
        tx: Transaction,
        page: Page,
        strangers: Sequence[RefinedItem],
        known: Mapping[Key, Known],
        deciding: Deciding,
    ) -> Mapping[str, Known]:
        # An item that this very answer shows under an id we know is another one, however alike.
        shown = {one.id for one in known.values()}
        rows = {
            (page.source.key, row[1]): row
            for row in tx.all(
                f"""
                SELECT {KNOWN_COLUMNS}, s.last_seen_at
                  FROM sightings s JOIN items i ON i.id = s.item_id
                 WHERE s.source_id = ? ORDER BY s.ordered_at DESC, s.item_id DESC LIMIT {LOOKALIKES}
                """,
                page.source.id,
            )
            if row[0] not in shown
        }
        held = [known_from(row[:-1], row[-1], True) for row in self._current(tx, page, rows).values()]
        return deciding.recognise(strangers, held)

    def _current(self, tx: Transaction, page: Page, rows: dict[Key, Row]) -> dict[Key, Row]:
        """The rows, their fingerprints by the present rule: a new rule makes no revisions."""
        old = {row[0]: key for key, row in rows.items() if row[_RULE] != page.fingerprint_rule}
        if not old:
            return rows
        shown = {key_of(one): one for one in page.items}
        current = dict(rows)
        marks = []
        for item_id, is_cut, *content in tx.among(
            "SELECT id, is_text_cut, title, text, target_url, media FROM items WHERE id IN {few}", list(old)
        ):
            key = old[item_id]
            mark = self._mark(shown.get(key) if is_cut else None, *content)
            marks.append((item_id, mark, page.fingerprint_rule))
            current[key] = (*rows[key][:_FINGERPRINT], mark, *rows[key][_FINGERPRINT + 1 :])
        tx.update("items", ("id", "fingerprint", "fingerprint_rule"), marks)
        hot.changed_items(tx, list(old))
        return current

    def _mark(
        self, whole: RefinedItem | None, title: str | None, text: str | None, target_url: str | None, media: str
    ) -> bytes:
        """The fingerprint of a stored content. One that was cut can only be taken from the whole, shown once more."""
        if whole is not None and (whole.item.title, whole.item.text) == (title, text):
            return whole.fingerprint
        return self._fingerprint(title, text, target_url, _media_from(media))


def _dated(one: RefinedItem, held: Known) -> RefinedItem:
    """With the date that we hold, where the listing told none."""
    return one.plus(item=one.item.plus(created_at=held.created_at))


def _ids_by_scope(items: Sequence[RefinedItem]) -> dict[str, list[str]]:
    scopes: dict[str, list[str]] = {}
    for one in items:
        scopes.setdefault(one.item.scope, []).append(one.item.external_id)
    return scopes


def _rows_by_id(tx: Transaction, page: Page, scope: str, ids: Sequence[str]) -> list[Row]:
    return tx.among(
        f"""
        SELECT {KNOWN_COLUMNS} FROM items i
         WHERE i.platform = ? AND i.scope = ? AND i.external_id IN {{few}} ORDER BY i.id {tx.lock_rows()}
        """,
        ids,
        before=[page.source.platform, scope],
    )


def _rows_by_alias(tx: Transaction, page: Page, scope: str, ids: Sequence[str]) -> list[Row]:
    return tx.among(
        f"""
        SELECT {KNOWN_COLUMNS}, a.external_id FROM aliases a JOIN items i ON i.id = a.item_id
         WHERE a.platform = ? AND a.scope = ? AND a.external_id IN {{few}} ORDER BY i.id, a.noticed_at {tx.lock_rows()}
        """,
        ids,
        before=[page.source.platform, scope],
    )


def _seen(tx: Transaction, page: Page, item_ids: Sequence[int]) -> dict[int, tuple[int, bool, bool]]:
    """When each was last seen by any source, whether by this one, and whether by another one since.

    A question of its own: asked after the rows are locked, it sees what those who held them before have written.
    """
    rows = tx.among(
        """
        SELECT item_id, max(last_seen_at), max(CASE WHEN source_id = ? THEN last_seen_at END),
               max(CASE WHEN source_id <> ? THEN last_seen_at END)
          FROM sightings WHERE item_id IN {few} GROUP BY item_id
        """,
        item_ids,
        before=[page.source.id, page.source.id],
    )
    return {
        item_id: (last, ours is not None, theirs is not None and theirs >= (ours or 0))
        for item_id, last, ours, theirs in rows
    }


def _shows_forgotten(judged: Sequence[Judged]) -> bool:
    """Whether the answer tells of something that must not be stored: kept, it would bring that back."""
    return any(one.known is None and one.verdict.deed == Deed.SAME and not one.item.is_listed for one in judged)


def _earlier(tx: Transaction, judged: Sequence[Judged]) -> dict[int, tuple[Earlier, ...]]:
    edited = [one.known.id for one in judged if one.known and one.verdict.deed == Deed.EDITED]
    found: dict[int, list[Earlier]] = {}
    for item_id, fingerprint, valid_to in tx.among(
        "SELECT item_id, fingerprint, valid_to FROM revisions WHERE item_id IN {few} ORDER BY item_id, version", edited
    ):
        found.setdefault(item_id, []).append(Earlier(bytes(fingerprint), moment(valid_to)))
    return {item_id: tuple(many) for item_id, many in found.items()}


def _open_gaps(tx: Transaction, source_id: int) -> tuple[Gap, ...]:
    rows = tx.all(
        f"SELECT {GAP_COLUMNS} FROM gaps WHERE source_id = ? AND closed_at IS NULL ORDER BY id",
        source_id,
    )
    return tuple(gap_from(row) for row in rows)


def _with_rhythm(tx: Transaction, page: Page, progress: Progress, deciding: Deciding) -> Progress:
    return deciding.in_rhythm(progress, _newest_times(tx, page))


def _newest_times(tx: Transaction, page: Page) -> list[datetime]:
    """When the newest that the source showed were posted; where replies come along, the newest posts among them."""
    newest = "SELECT ordered_at, item_id FROM sightings WHERE source_id = ? ORDER BY ordered_at DESC, item_id DESC"
    if page.item_kind is None:
        rows = tx.all(f"{newest} LIMIT {_RHYTHM}", page.source.id)
    else:
        rows = tx.all(
            f"""
            SELECT s.ordered_at FROM ({newest} LIMIT {_RHYTHM_AMONG}) s JOIN items i ON i.id = s.item_id
             WHERE i.kind = ? ORDER BY s.ordered_at DESC LIMIT {_RHYTHM}
            """,
            page.source.id,
            page.item_kind,
        )
    return [moment(row[0]) for row in rows]


def _is_seen_before(tx: Transaction, source_id: int, raws: Sequence[RawAnswer]) -> bool:
    sql = "SELECT 1 FROM raw_answers WHERE source_id = ? AND body_hash = ?"
    return any(tx.one(sql, source_id, raw.body_hash) is not None for raw in raws)


def _media_from(text: str) -> tuple[Media, ...]:
    return msgspec.json.decode(text, type=tuple[Media, ...])
