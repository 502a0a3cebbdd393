"""What an answer that is read again corrects in the history of an item. Pure: told everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from catchment import continuity
from catchment.errors import CatchmentError
from catchment.judge import is_withheld, why_changed
from catchment.model import Deed, Known, Progress, RefinedItem, Verdict
from catchment.store.mending import MENDED, Correction, How, Kept, Version
from catchment.store.visits import Conclusion, Found


def correction(
    versions: Sequence[Version], one: RefinedItem, answered_at: datetime, *, may_add: bool, is_read: bool
) -> Correction | None:
    """What the answer of that time says about an item with these versions, oldest first.

    `is_read`: an older reader has read it, and saw no more in it than is held; what is seen now it was blind to.
    """
    is_kept = is_withheld(one.item)
    begun = [version for version in versions if version.since <= answered_at]
    if not begun:
        return _before_all(versions[0], one, is_kept)
    version = begun[-1]
    reasons = why_changed(version, one, is_kept)
    # A short form mends the version that it made itself, and no other.
    if not reasons or (one.item.is_brief and version.since != answered_at):
        return None
    if version.since == answered_at:
        return Correction(How.MENDED, version, is_content_kept=is_kept)
    # A flicker that was left out on purpose, or an old copy, is not brought in by the back door.
    told = (*reasons, MENDED) if is_read else reasons
    return Correction(How.ADDED, version, told, is_content_kept=is_kept) if may_add else None


def _before_all(first: Version, one: RefinedItem, is_withheld: bool) -> Correction | None:
    """It was shown before anything of it could be read."""
    if is_withheld:
        return None
    reasons = () if one.item.is_brief else why_changed(first, one, False)
    return Correction(How.ADDED, first, reasons) if reasons else Correction(How.EARLIER, first)


class ReadingAgain:
    """Implements the store's `Deciding` for an answer that is read again: it finds the items, and proves nothing."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def recognise(self, strangers: Sequence[RefinedItem], held: Sequence[Known]) -> Mapping[str, Known]:
        return continuity.recognise(strangers, held)

    def judge(self, known: Known | None, item: RefinedItem) -> Verdict:
        return Verdict(Deed.NEW if known is None else Deed.SAME)

    def correct(self, versions: Sequence[Version], one: RefinedItem, may_add: bool) -> Correction | None:
        return correction(versions, one, self._kept.answered_at, may_add=may_add, is_read=self._kept.is_read)

    def conclude(self, found: Found) -> Conclusion:
        raise CatchmentError("an answer that is read again concludes nothing")

    def in_rhythm(self, progress: Progress, newest_first: Sequence[datetime]) -> Progress:
        return progress
