"""Whether anything is missing between two visits: the walk down a listing, the watermark, gaps, stale answers. Pure.

Only a newest-first walk proves anything. It is whole when it meets the watermark; until then the watermark stays where
it is, so that a visit that broke off in the middle is simply walked again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from catchment.clock import moment
from catchment.model import Deed, Gap, Item, Judged, Known, Listing, Order, Record, RefinedItem, Verdict, Watermark

# Ids that share the watermark's time; a platform that stamps thousands of items alike must not grow our row.
_MOST_TIES = 200
# A feed of one or two entries says nothing about what it left out.
_SMALLEST_WINDOW = 3
# So many stale answers in a row, and we believe them: the source was put back, not a cache.
_STALE_ENOUGH = 3
_FLIPS_A_DAY = 3
# Platforms leave out what was removed: a listing that ends by itself beyond this share of its reach was cut there.
_SURELY_WITHIN_REACH = 0.5
# While a listing is walked down it may be so many times as lively as what it shows: bursts.
_LIVELIER = 2


class End(StrEnum):
    """Why a walk ended."""

    REACHED = "reached"
    """It met the watermark."""
    LAST_PAGE = "last_page"
    CAP = "cap"
    """Our own limit of pages, or of money."""
    REPEATS = "repeats"
    """The platform showed the same page again: its cursor loops."""


class Walk(Record, frozen=True):
    """How far down a listing this visit has come."""

    listing: Listing
    watermark: Watermark | None
    """Where the last whole walk began; None: there was none."""
    began_at: datetime | None = None
    """When its first answer came."""
    shown: int = 0
    unusable: int = 0
    """Items that were left out for what they are; they fill the platform's reach like the others."""
    unpinned: int = 0
    newest: Watermark | None = None
    oldest_at: datetime | None = None
    lowest_at: datetime | None = None
    """The date of the lowest entry of a feed that goes by arrival: what is missing came out before it."""
    is_reached: bool = False
    is_below: bool = False
    """Something older than the watermark was shown: nothing that shares its time is further down."""
    past: int = 0
    """Items shown after the watermark was met."""
    ids: frozenset[str] = frozenset()
    anchors: Mapping[str, datetime | None] = {}
    """Those that are not pinned, with their dates: they tell how far down the walk came."""
    is_by_id: bool = False
    """The listing shows ids alone, all that it has at once; what is not held of them is asked for afterwards."""

    @property
    def is_satisfied(self) -> bool:
        """Nothing more needs to be asked. By a ranked listing that cannot be told: an old item may stand at the top."""
        is_by_age = self.listing.order == Order.NEWEST_FIRST
        return is_by_age and self.is_reached and self.is_below and self.past >= self.listing.overlap


def step(
    walk: Walk, judged: Sequence[Judged], answered_at: datetime, unusable: int = 0, dates: Sequence[datetime] = ()
) -> Walk:
    """The walk after one more page. `dates`: those that the answer showed, in its own order."""
    if walk.listing.is_window and not _is_by_date(dates) and walk.watermark is not None:
        judged = _without_latecomers(judged, walk.watermark)
    newest, oldest, is_reached, past = walk.newest, walk.oldest_at, walk.is_reached, walk.past
    is_below, unpinned, anchors = walk.is_below, walk.unpinned, dict(walk.anchors)
    for one in judged:
        past += is_reached
        if one.item.item.is_pinned:
            continue
        unpinned += 1
        external_id, created = one.item.item.external_id, one.item.item.created_at
        anchors[external_id] = created
        if created is not None:
            seen = min(created, answered_at)
            newest = _newer(newest, _risen(seen, one.known), external_id)
            oldest = seen if oldest is None else min(oldest, seen)
        is_below = is_below or _is_below(walk, one)
        is_reached = is_reached or is_below or _meets(walk, one)
    return walk.plus(
        began_at=walk.began_at or answered_at,
        shown=walk.shown + len(judged),
        unusable=walk.unusable + unusable,
        unpinned=unpinned,
        newest=newest,
        oldest_at=oldest,
        lowest_at=dates[-1] if walk.listing.is_window and _is_mixed(dates) else walk.lowest_at,
        is_reached=is_reached,
        is_below=is_below,
        past=past,
        ids=walk.ids | {one.item.item.external_id for one in judged},
        anchors=anchors,
    )


def dates_shown(
    items: Iterable[Item], answered_at: datetime, told_at: Callable[[Item], datetime | None]
) -> list[datetime]:
    """In the order shown. What is dated ahead stands where it likes, and what is pinned at the top: neither counts."""
    dates = (told_at(one) for one in items if not one.is_pinned)
    return [at for at in dates if at and at <= answered_at]


def _is_by_date(dates: Sequence[datetime]) -> bool:
    """Newest first."""
    return all(later >= earlier for later, earlier in pairwise(dates))


def _is_mixed(dates: Sequence[datetime]) -> bool:
    """Neither newest nor oldest first: by arrival, most likely."""
    return not _is_by_date(dates) and not _is_by_date(dates[::-1])


def _without_latecomers(judged: Sequence[Judged], mark: Watermark) -> list[Judged]:
    """In a feed that lists what came in last first, an unknown entry of an old date tells nothing about how far down
    the feed goes. Unless nothing is newer than the watermark at all: then it is a list of old things that takes turns.
    """
    is_late = [one.known is None and (at := one.item.item.created_at) is not None and at <= mark.at for one in judged]
    is_newer = any(one.item.item.created_at is not None and one.item.item.created_at > mark.at for one in judged)
    return [one for one, late in zip(judged, is_late, strict=True) if not (late and is_newer)]


def _is_below(walk: Walk, one: Judged) -> bool:
    """Whether this item lies lower than the watermark and all that shares its time."""
    mark, item = walk.watermark, one.item.item
    if mark is None:
        return False
    if walk.is_by_id:
        # What was asked for by id tells nothing, whatever its date: it may have come late. Nor does what others stored.
        is_ours = one.item.is_listed and one.known is not None and one.known.is_shown_by_source
        return is_ours and item.created_at is not None and item.created_at <= mark.at
    return item.external_id in mark.ids if item.created_at is None else item.created_at < mark.at


def _meets(walk: Walk, one: Judged) -> bool:
    """Whether this item shows that the walk has come down to what is stored."""
    mark, item = walk.watermark, one.item.item
    if mark is None or walk.is_by_id:
        return False
    if walk.listing.is_window:
        # By its date, or by the date under which this source first showed it (dates may be off in one answer). What is
        # stored and newer than the watermark proves nothing: it is dated ahead and stands at the top for ever, or it
        # came with an answer that broke off above what is missing, or with another source's.
        ours = one.known.created_at if one.known and one.known.is_shown_by_source else None
        return any(at is not None and at <= mark.at for at in (item.created_at, ours))
    # Further down, an item may be stored by a visit that broke off above it: only the watermark counts.
    return item.created_at == mark.at and item.external_id in mark.ids


def _risen(seen: datetime, known: Known | None) -> datetime:
    """How high an item lifts the watermark: not above the moment at which it was first seen. A date that lay ahead then
    and has come since says nothing about what else was posted meanwhile; an old copy may show it on top."""
    return min(seen, moment(known.ordered_at)) if known else seen


def _newer(newest: Watermark | None, at: datetime, external_id: str) -> Watermark:
    if newest is None or at > newest.at:
        return Watermark(at, (external_id,))
    if at == newest.at and external_id not in newest.ids and len(newest.ids) < _MOST_TIES:
        return Watermark(at, (*newest.ids, external_id))
    return newest


def is_repeat(walk: Walk, items: Iterable[RefinedItem]) -> bool:
    """A page on which everything was shown earlier in this walk: asking on would never end."""
    ids = {one.item.external_id for one in items}
    return bool(ids) and bool(walk.ids) and ids <= walk.ids


def moved(walk: Walk, answered_at: datetime) -> Watermark | None:
    """The watermark after a whole walk. It never goes back; items without dates leave the time of the answer."""
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
    """The hole that this walk leaves between itself and what was stored before, if it leaves one."""
    mark = walk.watermark
    # Where more pages could follow, meeting the watermark is not enough: posts that share its time may come after it.
    is_met = walk.is_reached if walk.listing.is_window else walk.is_below
    if mark is None or is_met or walk.listing.order != Order.NEWEST_FIRST:
        return None
    if walk.listing.is_window:
        cause = "window" if walk.unpinned >= _SMALLEST_WINDOW else None
    elif end == End.LAST_PAGE:
        # A listing that ended by itself before its reach has shown all there is.
        reach, seen = walk.listing.reach, len(walk.ids) + walk.unusable + _came_meanwhile(walk, answered_at)
        cause = "reach" if reach is not None and seen >= _SURELY_WITHIN_REACH * reach else None
    else:
        cause = str(end)
    if cause is None:
        return None
    to_at = max((at for at in (_oldest_after(walk, mark), walk.lowest_at) if at is not None), default=answered_at)
    return Gap(not walk.listing.is_window, mark.at, max(mark.at, to_at), cause, mark.ids)


def _came_meanwhile(walk: Walk, answered_at: datetime) -> float:
    """How many posts may have come on top while the listing was walked down: they use up its reach, unseen."""
    if walk.began_at is None or walk.newest is None or walk.oldest_at is None:
        return 0.0
    stretch = walk.newest.at - walk.oldest_at
    return max(0.0, _LIVELIER * len(walk.ids) * ((answered_at - walk.began_at) / stretch)) if stretch else 0.0


def _oldest_after(walk: Walk, mark: Watermark) -> datetime | None:
    """The lower edge of what was shown. In a list of ids, a late arrival of an old date is no edge."""
    if not walk.is_by_id:
        return walk.oldest_at
    return min((at for at in walk.anchors.values() if at is not None and at > mark.at), default=None)


def closed_gaps(walk: Walk, gaps: Sequence[Gap]) -> tuple[tuple[int, str], ...]:
    """The open gaps that this walk has shown from edge to edge."""
    if walk.listing.order != Order.NEWEST_FIRST or walk.newest is None:
        return ()
    return tuple((gap.id, "shown again") for gap in gaps if gap.id is not None and _spans(walk, gap))


def _spans(walk: Walk, gap: Gap) -> bool:
    assert walk.newest is not None
    assert walk.oldest_at is not None
    # As with the watermark: posts that share the edge's time may be on the page after it.
    is_past = walk.listing.is_window or walk.oldest_at < gap.from_at
    # What was dated ahead when it became the edge stands above the gap, not below it.
    dates = [walk.anchors[one] for one in gap.from_ids if one in walk.anchors]
    is_met = any(at is None or at <= gap.from_at for at in dates)
    return is_past and is_met and walk.newest.at >= gap.to_at


def in_view(walk: Walk, listed: Sequence[str], ours: Container[str], limit: int) -> Sequence[str]:
    """The part of a list of ids that a visit is about; `ours` are those that this source has shown before.

    At first, and where places tell nothing about time, as much as was asked for. Later, everything down to the lowest
    id that is ours: what stands below it was there before the source was followed.
    """
    if walk.watermark is None or walk.listing.order != Order.NEWEST_FIRST:
        return listed[:limit]
    lowest = max((place for place, one in enumerate(listed) if one in ours), default=len(listed) - 1)
    return listed[: lowest + 1]


# ── ids that change ───────────────────────────────────────────────────────────────────────────────────────────────


def recognise(strangers: Sequence[RefinedItem], held: Sequence[Known]) -> Mapping[str, Known]:
    """Unknown entries that are known ones under a new id: by content or link, and of the same date.

    Only if half or more of the unknown are such: then the feed changed its ids. Otherwise they are reposts.
    """
    by_content = _unique(held, lambda one: one.fingerprint)
    by_link = _unique(held, lambda one: one.url)
    alike: dict[str, tuple[Known, timedelta | None]] = {}
    taken: set[int] = set()
    for one in strangers:
        known = by_content.get(one.fingerprint) or by_link.get(one.item.url)
        if known and known.id not in taken:
            alike[one.item.external_id] = known, _apart(one, known)
            taken.add(known.id)
    skew = _common([apart for _, apart in alike.values()])
    found = {id: known for id, (known, apart) in alike.items() if apart in (None, timedelta(), skew)}
    return found if 2 * len(found) >= len(strangers) else {}


def _apart(one: RefinedItem, known: Known) -> timedelta | None:
    """How far its date is from the known one's. "All systems operational", posted anew each morning, is each time
    another entry."""
    if one.item.created_at is None:
        return None
    return one.item.created_at - known.created_at if known.created_at else timedelta.max


def _common(apart: Sequence[timedelta | None]) -> timedelta | None:
    """What several dates are off by alike: the clock of the answer that first told them was wrong, not the dates."""
    counted = Counter(one for one in apart if one).most_common(1)
    return counted[0][0] if counted and counted[0][1] >= _SMALLEST_WINDOW else None


def _unique(held: Sequence[Known], trait: Callable[[Known], object]) -> dict[object, Known]:
    """By a trait that only one of them has: a link that many share (the home page) tells nothing."""
    groups: dict[object, list[Known]] = defaultdict(list)
    for one in held:
        groups[trait(one)].append(one)
    return {value: many[0] for value, many in groups.items() if value and len(many) == 1}


# ── answers from yesterday, contents that flip ────────────────────────────────────────────────────────────────────


def newest_shown(items: Iterable[RefinedItem], answered_at: datetime) -> datetime | None:
    dated = (one.item.created_at for one in items if not one.item.is_pinned)
    return max((min(at, answered_at) for at in dated if at is not None), default=None)


def is_stale(
    judged: Sequence[Judged],
    earlier: Mapping[int, Sequence[bytes]],
    newest: datetime | None,
    newest_before: datetime | None,
    *,
    is_body_seen_before: bool,
    stale_count: int,
) -> bool:
    """200 with old data: it ends earlier than the last answer did, and says what was said before."""
    if newest is None or newest_before is None or newest >= newest_before or stale_count >= _STALE_ENOUGH:
        return False
    edited = [one for one in judged if one.known and one.verdict.deed == Deed.EDITED]
    said_before = [one for one in edited if one.known and one.item.fingerprint in earlier.get(one.known.id, ())]
    return len(said_before) == len(edited) and (bool(edited) or is_body_seen_before)


def without_changes(judged: Sequence[Judged]) -> tuple[Judged, ...]:
    """What a stale answer may do: add what was never seen, touch nothing else."""
    return tuple(one if one.verdict.deed == Deed.NEW else one.plus(verdict=Verdict(Deed.SAME)) for one in judged)


def calmed(one: Judged, earlier: Sequence[tuple[bytes, datetime]], answered_at: datetime) -> Judged:
    """An edit that only goes back and forth between known contents, the fourth time in a day, is no news."""
    said = [content for content, _ in earlier]
    if one.known is None or one.verdict.deed != Deed.EDITED or one.item.fingerprint not in said:
        return one
    said += [one.known.fingerprint, one.item.fingerprint]
    # Only what was left and came back: someone who tries three wordings and returns to the first is no flip-flop.
    flips = sum(
        1
        for place, (content, until) in enumerate(earlier)
        if until > answered_at - timedelta(days=1) and content in said[place + 1 :]
    )
    return one.plus(verdict=Verdict(Deed.COUNTED, is_volatile=True)) if flips >= _FLIPS_A_DAY else one
