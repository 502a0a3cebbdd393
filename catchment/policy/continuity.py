"""Continuity between two visits: the walk down a listing, the watermark, gaps and stale answers. Pure.

Only a newest-first walk proves that nothing is missing. It is complete when it reaches the watermark; until then the
watermark does not move, so that an interrupted visit is simply walked again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from catchment.clock import micros, moment
from catchment.messages import Message
from catchment.model import (
    NONE_UNCHANGED,
    UNDATED,
    Change,
    Gap,
    Item,
    ItemChange,
    Listing,
    Order,
    PageFacts,
    Progress,
    Record,
    RefinedItem,
    StoredItem,
    UnchangedEntries,
    Watermark,
)
from catchment.text.clean import NO_CONTENT

_SHOWN_AGAIN = Message("gap.shown_again")
# Limits the ids stored per watermark: a platform may give thousands of items the same time.
_MOST_TIES = 200
# A feed of one or two entries says nothing about what it omits.
_SMALLEST_WINDOW = 3
# After this many stale answers in a row, they are accepted: the source was reset, it is not a cache.
STALE_ENOUGH = 3
# Platforms omit removed items: a listing that ends beyond this share of its reach may have been cut there.
_SURELY_WITHIN_REACH = 0.5
# While a listing is walked, posting may be this many times faster than in the items shown: bursts.
_LIVELIER = 2


class End(StrEnum):
    """Why a walk ended."""

    REACHED = "reached"
    """It reached the watermark."""
    LAST_PAGE = "last_page"
    CAP = "cap"
    """Our own limit of pages."""
    MONEY = "money"
    """A spending cap."""
    REPEATS = "repeats"
    """The platform returned the same page again: its cursor loops."""
    INCOMPLETE = "incomplete"
    """A page was announced and shows nothing: perhaps there is nothing, perhaps it was withheld."""


class Walk(Record, frozen=True):
    """How far down a listing this visit has come."""

    listing: Listing
    watermark: Watermark | None
    """Where the last complete walk began; None: there was none."""
    began_at: datetime | None = None
    """When its first answer arrived."""
    shown: int = 0
    unusable: int = 0
    """Invalid items that were skipped; they use up the platform's reach like the others."""
    unpinned: int = 0
    newest: Watermark | None = None
    oldest_at: datetime | None = None
    lowest_at: datetime | None = None
    """The date of the lowest entry of a feed ordered by arrival: missing items were published before it."""
    is_reached: bool = False
    is_below: bool = False
    """An item older than the watermark was shown: nothing with the watermark's time can follow."""
    past: int = 0
    """Items shown after the watermark was reached."""
    ids: frozenset[str] = frozenset()
    anchors: Mapping[str, datetime | None] = {}
    """Items that are not pinned, with their dates: they show how far down the walk came."""
    mark_delay: timedelta = timedelta()
    """How long after its date the item of the watermark was first seen, once it was shown: what came after that visit
    can be dated before the watermark only by a clock that is further behind."""
    is_by_id: bool = False
    """The listing shows all its ids at once and nothing else; those that are not stored are requested afterwards."""

    @property
    def is_satisfied(self) -> bool:
        """No more pages are needed. A ranked listing cannot show that: an old item may be at the top."""
        is_by_age = self.listing.order == Order.NEWEST_FIRST
        return is_by_age and self.is_reached and self.is_below and self.past >= self.listing.overlap


def step(
    walk: Walk,
    changes: Sequence[ItemChange],
    answered_at: datetime,
    unusable: int = 0,
    dates: Sequence[datetime] = (),
    clock_lag: timedelta = timedelta(),
    unchanged: UnchangedEntries = NONE_UNCHANGED,
) -> Walk:
    """Returns the walk after one more page. `dates`: those that the answer showed, in its own order; `clock_lag`: how
    far the clock by which it is dated is behind ours."""
    # Dates of items that were listed by their ids alone are those that were stored.
    mark_delay = walk.mark_delay
    lag = timedelta() if walk.is_by_id else max(timedelta(), clock_lag - mark_delay)
    stated_at = _times(unchanged.stated_at)
    latest_of_unchanged = [latest_time(at, answered_at, lag) for at in stated_at] if lag else stated_at
    if walk.listing.is_window and not _is_by_date(dates) and walk.watermark is not None:
        latest_times = [latest_time(change.item.item.created_at, answered_at, lag) for change in changes]
        changes = _without_latecomers(changes, latest_times, latest_of_unchanged, walk.watermark)
    newest, oldest, is_reached, past = walk.newest, walk.oldest_at, walk.is_reached, walk.past
    is_below, unpinned, anchors = walk.is_below, walk.unpinned, dict(walk.anchors)
    for change in changes:
        past += is_reached
        if change.item.item.is_pinned:
            continue
        unpinned += 1
        external_id, created = change.item.item.external_id, change.item.item.created_at
        if lag and (delay := _delay_of_mark(walk, change)) is not None:
            # A clock that was always as far behind hides nothing: the watermark is dated by it, too.
            mark_delay, lag = delay, max(timedelta(), clock_lag - delay)
            latest_of_unchanged = [latest_time(at, answered_at, lag) for at in stated_at]
        # Tested here: hardly any answer comes from a clock that is behind, and a call for every item costs more.
        latest = latest_time(created, answered_at, lag) if lag else created
        # Under all its ids: which of them leads further down is the platform's business.
        anchors |= dict.fromkeys((external_id, *change.item.item.aliases), latest)
        if created is not None and latest is not None:
            newest = _newer(newest, _risen(min(created, answered_at), change.stored), external_id)
            lowest = min(latest, answered_at)
            oldest = lowest if oldest is None else min(oldest, lowest)
        is_below = is_below or _is_below(walk, change, latest)
        is_reached = is_reached or is_below or _meets(walk, change, latest)
    walk = walk.replace(
        began_at=walk.began_at or answered_at,
        shown=walk.shown + len(changes),
        unusable=walk.unusable + unusable,
        unpinned=unpinned,
        newest=newest,
        oldest_at=oldest,
        lowest_at=latest_time(dates[-1], answered_at, lag)
        if walk.listing.is_window and _is_mixed(dates)
        else walk.lowest_at,
        is_reached=is_reached,
        is_below=is_below,
        past=past,
        mark_delay=mark_delay,
        ids=walk.ids | {entry.item.item.external_id for entry in changes},
        anchors=anchors,
    )
    return _past_unchanged(walk, unchanged, latest_of_unchanged, answered_at) if unchanged else walk


def _past_unchanged(
    walk: Walk, unchanged: UnchangedEntries, latest_times: Sequence[datetime | None], answered_at: datetime
) -> Walk:
    """Returns the walk after the unchanged entries of a window: `step` for all of them at once. `latest_times`: when
    they may have been posted at the latest."""
    newest, oldest, mark = walk.newest, walk.oldest_at, walk.watermark
    dated = [at for at in latest_times if at is not None]
    if dated:
        oldest = min(answered_at, *dated) if oldest is None else min(answered_at, oldest, *dated)
        # As `_risen`: none raises the watermark above the time at which it was first seen.
        heights = [*map(min, unchanged.stated_at, unchanged.ordered_at)]
        top = min(max(heights), micros(answered_at))
        for height, external_id in zip(heights, unchanged.external_ids, strict=True):
            if height >= top:
                newest = _newer(newest, moment(top), external_id)
    is_reached, is_below, past = walk.is_reached, walk.is_below, walk.past
    mark_at = micros(mark.at) if mark is not None else UNDATED
    entries = zip(unchanged.external_ids, latest_times, unchanged.created_at, strict=True)
    for count, (external_id, latest, created_at) in enumerate(entries):
        if mark is None or walk.is_by_id or (is_reached and is_below):
            # Nothing can change any more.
            past += is_reached * (len(unchanged) - count)
            break
        past += is_reached
        is_below = is_below or (external_id in mark.ids if latest is None else latest < mark.at)
        # As `_meets`: by its date, or by the date with which this source first showed it.
        is_met = (latest is not None and latest <= mark.at) or (created_at is not None and created_at <= mark_at)
        is_reached = is_reached or is_below or is_met
    return walk.replace(
        shown=walk.shown + len(unchanged),
        unpinned=walk.unpinned + len(unchanged),
        newest=newest,
        oldest_at=oldest,
        is_reached=is_reached,
        is_below=is_below,
        past=past,
        ids=walk.ids.union(unchanged.external_ids),
        anchors={**walk.anchors, **dict(zip(unchanged.external_ids, latest_times, strict=True))},
    )


def _times(stated_at: Sequence[int]) -> list[datetime | None]:
    return [None if at == UNDATED else moment(at) for at in stated_at]


def latest_time(created_at: datetime | None, answered_at: datetime, clock_lag: timedelta) -> datetime | None:
    """Returns the latest time at which an item with this date may have been posted. Where the site's clock is behind,
    an item that is dated before the watermark may be newer, and those between them may be missing."""
    if created_at is None or not clock_lag:
        return created_at
    return min(created_at, answered_at - clock_lag) + clock_lag


def dates_shown(
    items: Iterable[Item], answered_at: datetime, stated_at: Callable[[Item], datetime | None]
) -> list[datetime]:
    """Returns the dates in the order shown, without pinned items and items dated in the future: their position means
    nothing."""
    dates = (stated_at(item) for item in items if not item.is_pinned)
    return [at for at in dates if at and at <= answered_at]


def _is_by_date(dates: Sequence[datetime]) -> bool:
    """Newest first. Sorting what is sorted is one quick pass."""
    return sorted(dates, reverse=True) == list(dates)


def _is_mixed(dates: Sequence[datetime]) -> bool:
    """Neither newest nor oldest first: by arrival, most likely."""
    return not _is_by_date(dates) and not _is_by_date(dates[::-1])


def _without_latecomers(
    changes: Sequence[ItemChange],
    latest_times: Sequence[datetime | None],
    latest_of_others: Sequence[datetime | None],
    mark: Watermark,
) -> list[ItemChange]:
    """Drops unknown entries with old dates from a feed ordered by arrival: they say nothing about how far down it goes.

    Unless nothing is newer than the watermark: then it is a rotating list of old entries.
    """
    is_late = [
        change.stored is None and at is not None and at <= mark.at
        for change, at in zip(changes, latest_times, strict=True)
    ]
    is_newer = any(at is not None and at > mark.at for at in (*latest_times, *latest_of_others))
    return [change for change, late in zip(changes, is_late, strict=True) if not (late and is_newer)]


def _is_below(walk: Walk, change: ItemChange, latest: datetime | None) -> bool:
    """Whether this item, posted at this time or before, is older than the watermark and everything with its time."""
    mark, item = walk.watermark, change.item.item
    if mark is None:
        return False
    if walk.is_by_id:
        # Items requested by id prove nothing, whatever their date: they may be late arrivals. Nor do items that other
        # sources stored.
        is_ours = change.item.is_listed and change.stored is not None and change.stored.is_shown_by_source
        return is_ours and item.created_at is not None and item.created_at <= mark.at
    return item.external_id in mark.ids if latest is None else latest < mark.at


def _meets(walk: Walk, change: ItemChange, latest: datetime | None) -> bool:
    """Whether this item, posted at this time or before, shows that the walk has reached what is stored."""
    mark, item = walk.watermark, change.item.item
    if mark is None or walk.is_by_id:
        return False
    if walk.listing.is_window:
        # By its date, or by the date with which this source first showed it (dates may be wrong in one answer). A
        # stored item newer than the watermark proves nothing: it is dated in the future and stays at the top, or it
        # came with an answer that was cut off above the missing items, or with another source's answer.
        ours = change.stored.created_at if change.stored and change.stored.is_shown_by_source else None
        return any(at is not None and at <= mark.at for at in (latest, ours))
    # Further down, an item may have been stored by a visit that was interrupted above it: only the watermark counts.
    return _is_mark(mark, item)


def _is_mark(mark: Watermark, item: Item) -> bool:
    return item.created_at == mark.at and item.external_id in mark.ids


def _delay_of_mark(walk: Walk, change: ItemChange) -> timedelta | None:
    """Returns how long after its date the item of the watermark was first seen; None: this is another item."""
    mark, stored = walk.watermark, change.stored
    if mark is None or stored is None or stored.first_seen_at is None:
        return None
    return max(timedelta(), stored.first_seen_at - mark.at) if _is_mark(mark, change.item.item) else None


def _risen(seen: datetime, stored: StoredItem | None) -> datetime:
    """Returns how high an item raises the watermark: not above the time at which it was first seen. A date that was in
    the future then and has passed since says nothing about other posts of that time; an old copy may show it on top."""
    return min(seen, moment(stored.ordered_at)) if stored else seen


def _newer(newest: Watermark | None, at: datetime, external_id: str) -> Watermark:
    if newest is None or at > newest.at:
        return Watermark(at, (external_id,))
    if at == newest.at and external_id not in newest.ids and len(newest.ids) < _MOST_TIES:
        return Watermark(at, (*newest.ids, external_id))
    return newest


def is_repeat(walk: Walk, ids: Collection[str]) -> bool:
    """Whether every item of a page, by its id, was shown earlier in this walk: paging would never end."""
    return bool(ids) and bool(walk.ids) and walk.ids.issuperset(ids)


def moved(walk: Walk, answered_at: datetime) -> Watermark | None:
    """Returns the watermark after a complete walk. It never moves back; for undated items it is the time of the
    answer."""
    if walk.listing.order != Order.NEWEST_FIRST or not walk.unpinned:
        return walk.watermark
    newest = walk.newest or Watermark(answered_at, tuple(sorted(walk.anchors))[:_MOST_TIES])
    mark = walk.watermark
    if mark is None or newest.at > mark.at:
        return newest
    if newest.at == mark.at:
        ties = dict.fromkeys((*mark.ids, *newest.ids))
        return Watermark(mark.at, tuple(ties)[-_MOST_TIES:])
    return mark


def gap_after(walk: Walk, end: End, answered_at: datetime) -> Gap | None:
    """Returns the gap between this walk and what was stored before, or None."""
    mark = walk.watermark
    # If more pages could follow, reaching the watermark is not enough: posts with the same time may come after it. A
    # page that was announced and shows nothing is most likely the end of the list.
    is_met = walk.is_reached if walk.listing.is_window or end == End.INCOMPLETE else walk.is_below
    if mark is None or is_met or walk.listing.order != Order.NEWEST_FIRST:
        return None
    if walk.listing.is_window:
        cause = "window" if walk.unpinned >= _SMALLEST_WINDOW else None
    elif end == End.LAST_PAGE:
        # A listing that ended before its reach has shown everything.
        reach, seen = walk.listing.reach, len(walk.ids) + walk.unusable + _came_meanwhile(walk, answered_at)
        cause = "reach" if reach is not None and seen >= _SURELY_WITHIN_REACH * reach else None
    else:
        cause = str(end)
    if cause is None:
        return None
    to_at = max((at for at in (_oldest_after(walk, mark), walk.lowest_at) if at is not None), default=answered_at)
    to_at = max(mark.at, to_at)
    to_ids = tuple(sorted(id_ for id_, at in walk.anchors.items() if at == to_at))[:_MOST_TIES]
    is_certain = not walk.listing.is_window and end != End.INCOMPLETE
    return Gap(is_certain, mark.at, to_at, cause, mark.ids, to_ids=to_ids)


def _came_meanwhile(walk: Walk, answered_at: datetime) -> float:
    """Returns how many posts may have been added on top during the walk: they use up its reach, unseen."""
    if walk.began_at is None or walk.newest is None or walk.oldest_at is None:
        return 0.0
    stretch = walk.newest.at - walk.oldest_at
    return max(0.0, _LIVELIER * len(walk.ids) * ((answered_at - walk.began_at) / stretch)) if stretch else 0.0


def _oldest_after(walk: Walk, mark: Watermark) -> datetime | None:
    """Returns the date of the oldest item shown. In a list of ids, a late arrival with an old date does not count."""
    if not walk.is_by_id:
        return walk.oldest_at
    return min((at for at in walk.anchors.values() if at is not None and at > mark.at), default=None)


def closed_gaps(walk: Walk, gaps: Sequence[Gap]) -> tuple[tuple[int, Message], ...]:
    """Returns the open gaps that this walk has covered from end to end."""
    if walk.listing.order != Order.NEWEST_FIRST or walk.newest is None:
        return ()
    return tuple((gap.id, _SHOWN_AGAIN) for gap in gaps if gap.id is not None and _spans(walk, gap))


def _spans(walk: Walk, gap: Gap) -> bool:
    assert walk.newest is not None
    assert walk.oldest_at is not None
    # As with the watermark: posts with the edge's time may be on the next page.
    is_past = walk.listing.is_window or walk.oldest_at < gap.from_at
    # An item that was dated in the future when it became the edge is above the gap, not below it.
    dates = [walk.anchors[id_] for id_ in gap.from_ids if id_ in walk.anchors]
    is_met = any(at is None or at <= gap.from_at for at in dates)
    return is_past and is_met and walk.newest.at >= gap.open_to_at


def in_view(walk: Walk, listed: Sequence[str], ours: Container[str], limit: int) -> Sequence[str]:
    """Returns the part of a list of ids that a visit covers; `ours` are those that this source has shown before.

    On the first visit, and where the order says nothing about time: the first `limit` ids. Later: everything down to
    the lowest id that is ours; ids below it were there before the source was added.
    """
    if walk.watermark is None or walk.listing.order != Order.NEWEST_FIRST:
        return listed[:limit]
    lowest = max(
        (position for position, external_id in enumerate(listed) if external_id in ours), default=len(listed) - 1
    )
    return listed[: lowest + 1]


# Ids that change


Renamed = Mapping[str, StoredItem]
"""Stored items by the new ids under which an answer shows them."""


def recognise(strangers: Sequence[RefinedItem], candidates: Sequence[StoredItem]) -> Renamed:
    """Maps unknown entries to stored ones that have a new id: same content or link, and same date.

    Only if at least half of the unknown entries match: then the feed changed its ids. Otherwise they are reposts.
    """
    by_content = _unique(candidates, lambda stored: stored.fingerprint)
    by_link = _unique(candidates, lambda stored: stored.url)
    alike: dict[str, tuple[StoredItem, timedelta | None]] = {}
    taken: set[int] = set()
    for stranger in strangers:
        # What shows nothing but an id looks like all others of its kind.
        alike_content = by_content.get(stranger.fingerprint) if stranger.fingerprint != NO_CONTENT else None
        twin = alike_content or by_link.get(stranger.item.url)
        if twin and twin.id not in taken:
            alike[stranger.item.external_id] = twin, _apart(stranger, twin)
            taken.add(twin.id)
    skew = _common([apart for _, apart in alike.values()])
    renamed = {external_id: twin for external_id, (twin, apart) in alike.items() if apart in (None, timedelta(), skew)}
    return renamed if 2 * len(renamed) >= len(strangers) else {}


def _apart(item: RefinedItem, stored: StoredItem) -> timedelta | None:
    """Returns how far its date is from the stored one's. "All systems operational", posted again each morning, is a new
    entry each time."""
    if item.item.created_at is None:
        return None
    return item.item.created_at - stored.created_at if stored.created_at else timedelta.max


def _common(apart: Sequence[timedelta | None]) -> timedelta | None:
    """Returns an offset that several dates share: the clock of the answer that first showed them was wrong, not the
    dates."""
    counted = Counter(age for age in apart if age).most_common(1)
    return counted[0][0] if counted and counted[0][1] >= _SMALLEST_WINDOW else None


def _unique(candidates: Sequence[StoredItem], trait: Callable[[StoredItem], object]) -> dict[object, StoredItem]:
    """Indexes by a trait that only one of them has: a link that many share (the home page) identifies nothing."""
    groups: dict[object, list[StoredItem]] = defaultdict(list)
    for stored in candidates:
        groups[trait(stored)].append(stored)
    return {value: items[0] for value, items in groups.items() if value and len(items) == 1}


# Stale answers and contents that flip


def newest_shown(items: Iterable[RefinedItem], answered_at: datetime, stated_at: Sequence[int] = ()) -> datetime | None:
    """Returns the date of the newest item of an answer. `stated_at`: the dates of its repeated entries."""
    dated = [at for item in items if not item.item.is_pinned and (at := item.item.created_at) is not None]
    if (newest := max(stated_at, default=UNDATED)) != UNDATED:
        dated.append(moment(newest))
    return min(max(dated), answered_at) if dated else None


def is_stale(
    before: Progress, changes: Sequence[ItemChange], unchanged: UnchangedEntries, facts: PageFacts, at: datetime
) -> bool:
    """Whether a 200 answer carries old data: it ends earlier than the last answer did and repeats earlier contents."""
    newest = newest_shown((change.item for change in changes), at, unchanged.stated_at)
    if newest is None or before.newest_shown_at is None or newest >= before.newest_shown_at:
        return False
    edited = [change for change in changes if change.stored and change.change == Change.EDITED]
    is_said_before = all(
        any(change.item.fingerprint == content.fingerprint for content in facts.earlier.get(change.stored.id, ()))
        for change in edited
        if change.stored
    )
    return before.stale_count < STALE_ENOUGH and is_said_before and (bool(edited) or facts.is_body_seen_before)


def without_changes(changes: Sequence[ItemChange]) -> tuple[ItemChange, ...]:
    """Reduces a stale answer to its new items; it changes nothing else."""
    return tuple(
        change
        if change.change == Change.NEW
        else ItemChange(change.item, change.stored, Change.SAME, is_alias=change.is_alias)
        for change in changes
    )
