"""Writing a page: what one answer showed, and the progress that it proves, in one transaction.

    check the lease ▸ lock the known rows ▸ judge each item ▸ conclude ▸ take the change number ▸
    items, revisions, sightings, tags, references, gaps, raw answer, progress, run record, outbox

The decisions (`Deciding`) are pure functions handed in from above; this module only carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from catchment.clock import micros, moment
from catchment.model import (
    Counts,
    Deed,
    Gap,
    Item,
    Judged,
    Known,
    Lease,
    Media,
    Progress,
    Record,
    RefinedItem,
    Result,
    Source,
    Verdict,
)
from catchment.store import alerts, leases
from catchment.store.database import Database, Row, Transaction, placeholders
from catchment.store.rows import (
    GAP_COLUMNS,
    KNOWN_COLUMNS,
    PROGRESS,
    gap_from,
    known_from,
    known_place,
    progress_values,
    to_json,
    to_micros,
)
from catchment.store.sources import call_it, keep_pace, move_target

# How many of a source's newest items are looked at when a feed may have changed all its ids.
LOOKALIKES = 300
_DAY = 24 * 60 * 60 * 1_000_000
_FINGERPRINT, _RULE = known_place("fingerprint"), known_place("fingerprint_rule")

Key = tuple[str, str]
"""What tells items of one platform apart: scope and external id."""


_NOTHING_NEW = Verdict(Deed.SAME)


class Forgotten(Exception):
    """An item that came as it came last time is not held any more: the page has to be refined whole."""


class RawAnswer(Record, frozen=True):
    """An answer as it came, compressed, with the request as it may be shown."""

    step: str
    request: dict[str, Any]
    url: str
    http_status: int
    headers: dict[str, str]
    reader_version: int
    is_read: bool
    body_hash: bytes
    body: bytes


class Earlier(Record, frozen=True):
    """An earlier content of an item."""

    fingerprint: bytes
    valid_to: datetime


class Found(Record, frozen=True):
    """What the store knows about a page, for the conclusion."""

    judged: tuple[Judged, ...]
    earlier: Mapping[int, tuple[Earlier, ...]]
    """The earlier contents of the items that were judged edited."""
    open_gaps: tuple[Gap, ...]
    is_body_seen_before: bool
    """These very bytes came once before, with other ones since."""


class Ending(Record, frozen=True):
    """How a visit ends: written with its last page, or alone."""

    result: Result
    progress: Progress
    alert: str | None = None
    """Opens the source's alert with these words."""
    is_recovered: bool = False
    """Closes it."""
    retire: str | None = None
    new_target: str | None = None
    new_name: str | None = None


class Closing(Record, frozen=True):
    """The end of one visit, ready to be written."""

    source: Source
    lease: Lease
    run_id: int
    ending: Ending
    outcomes: Mapping[tuple[str, datetime], int] = {}
    """Attempts by outcome and minute."""


class Conclusion(Record, frozen=True):
    """What follows from a page as a whole."""

    judged: tuple[Judged, ...]
    counts: Counts
    gap: Gap | None = None
    closed: tuple[tuple[int, str], ...] = ()
    """Gaps that are shown to be none, by id, with the reason."""
    is_seen: bool = True
    """False: the answer is stale, and no sighting moves."""
    ending: Ending | None = None


class Deciding(Protocol):
    """The pure decisions about a page."""

    def recognise(self, strangers: Sequence[RefinedItem], held: Sequence[Known]) -> Mapping[str, Known]:
        """Which of the unknown items are known ones under a new id."""

    def judge(self, known: Known | None, item: RefinedItem) -> Verdict: ...

    def conclude(self, found: Found) -> Conclusion: ...

    def expected_by(self, newest_first: Sequence[datetime]) -> datetime | None:
        """By when something new should come, from the times of the source's newest items."""


class Page(Record, frozen=True):
    """What one answer showed, ready to be written."""

    source: Source
    lease: Lease
    run_id: int
    answered_at: datetime
    items: tuple[RefinedItem, ...]
    fingerprint_rule: int
    may_have_new_ids: bool
    """Feeds change their ids now and then; platforms with ids of their own do not."""
    suspects_staleness: bool
    raw: RawAnswer | None = None
    outcomes: Mapping[tuple[str, datetime], int] = {}
    """Attempts by outcome and minute."""


class Pages:
    def __init__(
        self, database: Database, fingerprint: Callable[[str | None, str | None, str | None, Sequence[Media]], bytes]
    ) -> None:
        self._db = database
        self._fingerprint = fingerprint

    def write(self, page: Page, deciding: Deciding) -> Conclusion:
        """All of it or nothing. A superseded lease writes nothing."""
        return self._db.write(lambda tx: self._write(tx, page, deciding))

    def end(self, closings: Sequence[Closing]) -> list[Closing]:
        """End visits that had nothing (more) to store, in one transaction; gives those whose lease was lost."""

        def deed(tx: Transaction) -> list[Closing]:
            lost = []
            for one in closings:
                if not leases.is_ours(tx, one.lease):
                    lost.append(one)
                    continue
                _count_attempts(tx, one.source.platform, one.outcomes)
                _end(tx, one.source, one.lease, one.run_id, one.ending)
            return lost

        return self._db.write(deed)

    def keep_raw(self, source: Source, run_id: int, answered_at: datetime, raw: RawAnswer) -> None:
        """Keep an answer that could not be read: a mended reader will read it again."""
        self._db.write(lambda tx: _keep_raw(tx, source.id, run_id, micros(answered_at), raw))

    def _write(self, tx: Transaction, page: Page, deciding: Deciding) -> Conclusion:
        leases.check(tx, page.lease)
        judged = self._judged(tx, page, deciding)
        conclusion = deciding.conclude(
            Found(
                judged,
                _earlier(tx, judged),
                _open_gaps(tx, page.source.id) if page.items else (),
                page.suspects_staleness and page.raw is not None and _is_seen_before(tx, page.source.id, page.raw),
            )
        )
        now = micros(page.answered_at)
        number = _write_items(tx, page, conclusion, now)
        if page.raw is not None:
            _keep_raw(tx, page.source.id, page.run_id, now, page.raw)
        _write_gaps(tx, page, conclusion, now)
        if number is not None:
            _tell(tx, page, conclusion.counts, number, now)
        _count_attempts(tx, page.source.platform, page.outcomes)
        if conclusion.ending is not None:
            ending = conclusion.ending
            # Counted over all pages of the visit; and after a visit that broke off, what that one stored counts, too.
            if ending.result.counts.new or ending.is_recovered:
                expected = deciding.expected_by(_newest_times(tx, page.source.id))
                ending = ending.plus(progress=ending.progress.plus(expected_by=expected))
            _end(tx, page.source, page.lease, page.run_id, ending)
        else:
            _note_page(tx, page, conclusion.counts, now)
        return conclusion

    # ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────

    def _judged(self, tx: Transaction, page: Page, deciding: Deciding) -> tuple[Judged, ...]:
        known = self._known(tx, page)
        strangers = [one for one in page.items if _key(one) not in known]
        renamed = self._renamed(tx, page, strangers, known, deciding) if strangers and page.may_have_new_ids else {}
        judged = []
        for one in page.items:
            held = known.get(_key(one))
            if one.is_unchanged:
                if held is None:
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
            key: known_from(row, *seen.get(row[0], (0, False))) for key, row in self._current(tx, page, rows).items()
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
        shown = {_key(one): one for one in page.items}
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
        return current

    def _mark(
        self, whole: RefinedItem | None, title: str | None, text: str | None, target_url: str | None, media: str
    ) -> bytes:
        """The fingerprint of a stored content. One that was cut can only be taken from the whole, shown once more."""
        if whole is not None and (whole.item.title, whole.item.text) == (title, text):
            return whole.fingerprint
        return self._fingerprint(title, text, target_url, _media_from(media))


def _key(one: RefinedItem) -> Key:
    return one.item.scope, one.item.external_id


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


def _seen(tx: Transaction, page: Page, item_ids: Sequence[int]) -> dict[int, tuple[int, bool]]:
    """When each was last seen by any source, and whether by this one.

    A question of its own: asked after the rows are locked, it sees what those who held them before have written.
    """
    rows = tx.among(
        """
        SELECT item_id, max(last_seen_at), max(CASE WHEN source_id = ? THEN 1 ELSE 0 END)
          FROM sightings WHERE item_id IN {few} GROUP BY item_id
        """,
        item_ids,
        before=[page.source.id],
    )
    return {row[0]: (row[1], bool(row[2])) for row in rows}


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


def _newest_times(tx: Transaction, source_id: int) -> list[datetime]:
    rows = tx.all(
        "SELECT ordered_at FROM sightings WHERE source_id = ? ORDER BY ordered_at DESC, item_id DESC LIMIT 50",
        source_id,
    )
    return [moment(row[0]) for row in rows]


def _is_seen_before(tx: Transaction, source_id: int, raw: RawAnswer) -> bool:
    return (
        tx.one("SELECT 1 FROM raw_answers WHERE source_id = ? AND body_hash = ?", source_id, raw.body_hash) is not None
    )


# ── what is written ───────────────────────────────────────────────────────────────────────────────────────────────


def _write_items(tx: Transaction, page: Page, conclusion: Conclusion, now: int) -> int | None:
    """Write what changed; gives the change number, or None if nothing did."""
    by_deed: dict[Deed, list[Judged]] = {deed: [] for deed in Deed}
    for one in conclusion.judged:
        by_deed[one.verdict.deed].append(one)
    new, edited, counted = by_deed[Deed.NEW], by_deed[Deed.EDITED], by_deed[Deed.COUNTED]
    number = None
    if new or edited or counted:
        row = tx.one(
            """
            UPDATE ledger SET change_number = change_number + 1, last_item_id = last_item_id + ? WHERE id = 1
            RETURNING change_number, last_item_id
            """,
            len(new),
        )
        assert row is not None
        number = int(row[0])
        _insert_items(tx, page, new, row[1] - len(new) + 1, number, now)
        _revise_items(tx, page, edited, number, now)
        _count_items(tx, counted, number, now)
    if conclusion.is_seen:
        _see_again(tx, page, [one for one in conclusion.judged if one.known], now)
    _note_aliases(tx, page, [one for one in conclusion.judged if one.is_alias], now)
    return number


_ITEM_COLUMNS = (
    "id", "platform", "scope", "external_id", "kind", "source_id", "created_at", "is_created_at_guessed",
    "is_zone_guessed", "edited_at", "ordered_at", "first_seen_at", "content_last_changed_at", "applied_at",
    "change_number", "content_change_number", "version", "fingerprint", "fingerprint_rule", "volatile_count", "score",
    "reply_count", "view_count", "rounded", "thread_id", "floor_number", "is_deleted", "is_folded", "is_pinned",
    "is_digest", "is_adult", "is_text_cut", "language", "author", "author_id", "author_display_name", "title", "url",
    "target_url", "tags", "media", "text", "html",
)  # fmt: skip


def _insert_items(tx: Transaction, page: Page, new: Sequence[Judged], first_id: int, number: int, now: int) -> None:
    rows, seen, tagged, referring = [], [], [], []
    for item_id, one in enumerate(new, first_id):
        item = one.item.item
        created = to_micros(item.created_at)
        # A date in the future must not head the list for ever.
        ordered = now if created is None else min(created, now)
        rows.append(_item_row(item_id, page, one.item, created, ordered, number, now))
        seen.append((page.source.id, ordered, item_id, now, now))
        tagged += [(tag, item_id) for tag in item.tags]
        if item.references:
            referring.append((item_id, item))
    tx.insert("items", _ITEM_COLUMNS, rows)
    tx.insert("sightings", ("source_id", "ordered_at", "item_id", "first_seen_at", "last_seen_at"), seen)
    _tag(tx, tagged, now)
    _refer(tx, referring)


def _item_row(
    item_id: int, page: Page, one: RefinedItem, created: int | None, ordered: int, number: int, now: int
) -> tuple[Any, ...]:
    item = one.item
    return (
        item_id, page.source.platform, item.scope, item.external_id, item.kind, page.source.id,
        now if created is None else created, created is None, item.is_zone_guessed, to_micros(item.edited_at), ordered,
        now, now, now, number, number, 1, one.fingerprint, page.fingerprint_rule, 0, item.score, item.reply_count,
        item.view_count, _short_json(item.rounded), item.thread_id, item.floor_number, item.is_deleted, item.is_folded,
        item.is_pinned, item.is_digest, item.is_adult, one.is_text_cut, item.language, item.author, item.author_id,
        item.author_display_name, item.title, item.url, item.target_url, _short_json(item.tags),
        _short_json(item.media), item.text, item.html,
    )  # fmt: skip


def _short_json(values: Sequence[Any]) -> str:
    return to_json(values) if values else "[]"


def _tag(tx: Transaction, tagged: Sequence[tuple[str, int]], now: int) -> None:
    """`tagged`: (tag, item id)."""
    names = sorted({tag for tag, _ in tagged})
    if not names:
        return
    known: dict[str, int] = dict(tx.among("SELECT name, id FROM tags WHERE name IN {few}", names))
    if missing := [(name, now) for name in names if name not in known]:
        tx.insert("tags", ("name", "first_seen_at"), missing, "ON CONFLICT (name) DO NOTHING")
        known = dict(tx.among("SELECT name, id FROM tags WHERE name IN {few}", names))
    tx.insert(
        "item_tags",
        ("item_id", "tag_id", "first_seen_at"),
        [(item_id, known[tag], now) for tag, item_id in tagged],
        "ON CONFLICT DO NOTHING",
    )


def _refer(tx: Transaction, referring: Sequence[tuple[int, Item]]) -> None:
    tx.insert(
        "item_references",
        ("item_id", "position", "relation", "external_id", "url", "author", "text"),
        [
            (item_id, position, to.relation, to.external_id, to.url, to.author, to.text)
            for item_id, item in referring
            for position, to in enumerate(item.references)
        ],
    )


def _revise_items(tx: Transaction, page: Page, edited: Sequence[Judged], number: int, now: int) -> None:
    """What an item said before becomes a revision, valid until this answer; then the item says the new."""
    tx.many(
        """
        INSERT INTO revisions (item_id, version, fingerprint, valid_from, valid_to, source_edited_at, reasons, run_id,
                               is_deleted, is_folded, title, target_url, media, text, html)
        SELECT id, version, fingerprint, content_last_changed_at, ?, edited_at, ?, ?, is_deleted, is_folded, title,
               target_url, media, text, html
          FROM items WHERE id = ?
        """,
        [(now, ";".join(one.verdict.reasons), page.run_id, one.known.id) for one in edited if one.known],
    )
    said = [one for one in edited if not one.verdict.is_content_kept]
    withheld = [one for one in edited if one.verdict.is_content_kept]
    _update(tx, [_revised_values(one, number, now) | _content_values(one.item, page.fingerprint_rule) for one in said])
    _update(tx, [_revised_values(one, number, now) for one in withheld])
    _tag_again(tx, edited, now)


def _revised_values(one: Judged, number: int, now: int) -> dict[str, Any]:
    assert one.known is not None
    return _counted_values(one, number, now) | {
        "version": one.known.version + 1,
        "content_change_number": number,
        "content_last_changed_at": now,
        "is_deleted": one.item.item.is_deleted,
        "is_folded": one.item.item.is_folded,
    }


def _content_values(one: RefinedItem, rule: int) -> dict[str, Any]:
    item = one.item
    return {
        "fingerprint": one.fingerprint,
        "fingerprint_rule": rule,
        "title": item.title,
        "text": item.text,
        "html": item.html,
        "target_url": item.target_url,
        "media": _short_json(item.media),
        "is_text_cut": one.is_text_cut,
    }


def _count_items(tx: Transaction, counted: Sequence[Judged], number: int, now: int) -> None:
    _update(tx, [_counted_values(one, number, now) for one in counted])
    tx.many(
        """
        UPDATE items SET volatile_count = volatile_count + 1,
               volatile_until = CASE WHEN volatile_until > ? THEN volatile_until ELSE ? END
         WHERE id = ?
        """,
        [(now, now + _DAY, one.known.id) for one in counted if one.known and one.verdict.is_volatile],
    )
    _tag_again(tx, counted, now)


def _update(tx: Transaction, values: Sequence[Mapping[str, Any]]) -> None:
    """Items that all get values for the same columns, `id` first."""
    if values:
        tx.update("items", list(values[0]), [list(one.values()) for one in values])


def _counted_values(one: Judged, number: int, now: int) -> dict[str, Any]:
    """What is updated in place. What the platform did not tell now stays as it was told before."""
    item, known = one.item.item, one.known
    assert known is not None
    # Whose word counts, for each counter.
    best = {name: item if _is_better(item, known, name) else known for name in ("reply_count", "score", "view_count")}
    return {
        "id": known.id,
        **{name: getattr(by, name) for name, by in best.items()},
        "rounded": _short_json([name for name, by in best.items() if name in by.rounded]),
        "is_pinned": item.is_pinned,
        "is_digest": item.is_digest,
        "url": item.url or known.url,
        "author": item.author or known.author,
        "author_display_name": item.author_display_name or known.author_display_name,
        "edited_at": to_micros(item.edited_at or known.edited_at),
        "tags": _short_json(item.tags or known.tags),
        "applied_at": now,
        "change_number": number,
    }


def _is_better(item: Item, known: Known, name: str) -> bool:
    """Whether a counter that was told now takes the place of the one we hold: not if it is unknown, or less exact."""
    if getattr(item, name) is None:
        return False
    return getattr(known, name) is None or name not in item.rounded or name in known.rounded


def _tag_again(tx: Transaction, judged: Sequence[Judged], now: int) -> None:
    """What the platform told now, in the place of what it told before; where it told nothing, that stays."""
    retagged = [(one.known, set(one.item.item.tags)) for one in judged if one.known and one.item.item.tags]
    tx.many(
        "DELETE FROM item_tags WHERE item_id = ? AND tag_id = (SELECT id FROM tags WHERE name = ?)",
        [(known.id, tag) for known, told in retagged for tag in known.tags if tag not in told],
    )
    _tag(tx, [(tag, known.id) for known, told in retagged for tag in told - set(known.tags)], now)


def _see_again(tx: Transaction, page: Page, known: Sequence[Judged], now: int) -> None:
    tx.many(
        """
        UPDATE sightings SET last_seen_at = ?
         WHERE source_id = ? AND ordered_at = ? AND item_id = ? AND last_seen_at < ?
        """,
        [
            (now, page.source.id, one.known.ordered_at, one.known.id, now)
            for one in known
            if one.known and one.known.is_shown_by_source
        ],
    )
    tx.insert(
        "sightings",
        ("source_id", "ordered_at", "item_id", "first_seen_at", "last_seen_at"),
        [
            (page.source.id, one.known.ordered_at, one.known.id, now, now)
            for one in known
            if one.known and not one.known.is_shown_by_source
        ],
        "ON CONFLICT DO NOTHING",
    )


def _note_aliases(tx: Transaction, page: Page, renamed: Sequence[Judged], now: int) -> None:
    tx.insert(
        "aliases",
        ("platform", "scope", "external_id", "item_id", "noticed_at", "reason"),
        [
            (page.source.platform, one.item.item.scope, one.item.item.external_id, one.known.id, now, "ids changed")
            for one in renamed
            if one.known
        ],
        "ON CONFLICT DO NOTHING",
    )


def _write_gaps(tx: Transaction, page: Page, conclusion: Conclusion, now: int) -> None:
    if conclusion.gap is not None:
        gap = conclusion.gap
        tx.run(
            """
            INSERT INTO gaps (source_id, is_certain, from_at, to_at, from_ids, cause, opened_at, opened_run_id)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            page.source.id,
            gap.is_certain,
            micros(gap.from_at),
            micros(gap.to_at),
            to_json(gap.from_ids),
            gap.cause,
            now,
            page.run_id,
        )
    for gap_id, because in conclusion.closed:
        tx.run(
            "UPDATE gaps SET closed_at = ?, closed_run_id = ?, closed_because = ? WHERE id = ?",
            now,
            page.run_id,
            because,
            gap_id,
        )


def _keep_raw(tx: Transaction, source_id: int, run_id: int, now: int, raw: RawAnswer) -> None:
    tx.run(
        """
        INSERT INTO raw_answers (source_id, run_id, answered_at, step, request, url, http_status, headers,
                                 reader_version, is_read, body_hash, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        source_id,
        run_id,
        now,
        raw.step,
        to_json(raw.request),
        raw.url,
        raw.http_status,
        to_json(raw.headers),
        raw.reader_version,
        raw.is_read,
        raw.body_hash,
        raw.body,
    )


def _tell(tx: Transaction, page: Page, counts: Counts, number: int, now: int) -> None:
    """The event for what comes next leaves from the outbox, so that a kill cannot lose it."""
    tx.run(
        "INSERT INTO outbox (event, body, created_at, attempt_count) VALUES ('items.collected', ?, ?, 0)",
        to_json(
            {
                "source_id": page.source.id,
                "run_id": page.run_id,
                "change_number": number,
                "new": counts.new,
                "updated": counts.updated,
            }
        ),
        now,
    )


def _count_attempts(tx: Transaction, platform: str, outcomes: Mapping[tuple[str, datetime], int]) -> None:
    tx.insert(
        "attempts",
        ("minute", "platform", "outcome", "count"),
        [(micros(minute), platform, outcome, count) for (outcome, minute), count in sorted(outcomes.items())],
        "ON CONFLICT (minute, platform, outcome) DO UPDATE SET count = attempts.count + excluded.count",
    )


# ── how a visit ends ──────────────────────────────────────────────────────────────────────────────────────────────

_RESULT_COLUMNS = (
    "run_id", "source_id", "started_at", "finished_at", "outcome", "new_count", "updated_count", "duplicate_count",
    "invalid_count", "request_count", "http_status", "error_code", "error", "is_retryable", "watermark_before",
    "watermark_after", "notes",
)  # fmt: skip
_RESULT_UPSERT = (
    f"INSERT INTO run_sources ({', '.join(_RESULT_COLUMNS)}) VALUES ({', '.join('?' * len(_RESULT_COLUMNS))}) "
    f"ON CONFLICT (run_id, source_id) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in _RESULT_COLUMNS[2:])}"
)


def _note_page(tx: Transaction, page: Page, counts: Counts, now: int) -> None:
    """The run's record grows with every page: a kill in the middle leaves what was done so far."""
    tx.run(
        """
        INSERT INTO run_sources (run_id, source_id, started_at, new_count, updated_count, duplicate_count,
                                 invalid_count, request_count, notes)
        VALUES (?, ?, ?, ?, ?, ?, ?, 1, '[]')
        ON CONFLICT (run_id, source_id) DO UPDATE SET
               new_count = run_sources.new_count + excluded.new_count,
               updated_count = run_sources.updated_count + excluded.updated_count,
               duplicate_count = run_sources.duplicate_count + excluded.duplicate_count,
               invalid_count = run_sources.invalid_count + excluded.invalid_count,
               request_count = run_sources.request_count + 1
        """,
        page.run_id,
        page.source.id,
        now,
        counts.new,
        counts.updated,
        counts.duplicate,
        counts.invalid,
    )


def _end(tx: Transaction, source: Source, lease: Lease, run_id: int, ending: Ending) -> None:
    result = ending.result
    tx.run(
        f"UPDATE progress SET {placeholders(PROGRESS)} WHERE source_id = ?",
        *progress_values(ending.progress),
        source.id,
    )
    tx.run(
        _RESULT_UPSERT,
        run_id,
        source.id,
        to_micros(result.started_at),
        to_micros(result.finished_at),
        str(result.outcome),
        result.counts.new,
        result.counts.updated,
        result.counts.duplicate,
        result.counts.invalid,
        result.requests,
        result.http_status,
        result.error_code,
        result.error,
        result.is_retryable,
        to_micros(result.watermark_before),
        to_micros(result.watermark_after),
        _short_json(result.notes),
    )
    keep_pace(tx, source)
    if ending.new_target is not None:
        move_target(tx, source, ending.new_target)
    if ending.new_name is not None:
        call_it(tx, source.id, ending.new_name)
    _change_state(tx, source, ending)
    leases.release(tx, lease)


def _change_state(tx: Transaction, source: Source, ending: Ending) -> None:
    assert ending.result.finished_at is not None
    now = micros(ending.result.finished_at)
    if ending.retire is not None:
        # Only from active: a person's pause stays a person's pause.
        tx.run(
            """
            UPDATE sources SET state = 'retired', state_reason = ?, state_changed_at = ?
             WHERE id = ? AND state = 'active'
            """,
            ending.retire,
            now,
            source.id,
        )
        tx.run("UPDATE progress SET is_active = ? WHERE source_id = ?", False, source.id)
    subject = f"source {source.id} failing"
    if ending.alert is not None:
        alerts.raise_alert(tx, subject, ending.alert, now, source_id=source.id)
    elif ending.is_recovered:
        alerts.close(tx, subject, now)


def _media_from(text: str) -> tuple[Media, ...]:
    return msgspec.json.decode(text, type=tuple[Media, ...])
