"""Activity tiers of communities: how often a community is visited, and by which listing. Pure.

A tier (tier1, tier2, tier3) is derived from visits; a priority (high, medium, low) is set by a user. The two are never
mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from catchment.messages import Message, message
from catchment.model import (
    Change,
    Item,
    ItemChange,
    Progress,
    Record,
)

# Share of the time in which the platform's reach fills up that may pass between visits: days have busy hours.
_OF_REACH = 0.5
_DAY_MINUTES = 24 * 60
_YEAR_MINUTES = 365 * _DAY_MINUTES


class Tier(Record, frozen=True):
    """How communities of one activity level are read."""

    name: str
    least_valid: float
    """The minimum average of valid posts for this tier."""
    hours: float
    """Hours between visits."""
    sort: str
    """The listing that is read; in addition to the newest, if it is another one."""
    time_filter: str
    limit: int


class Tiers(Record, frozen=True):
    """The tiers, most active first, and how many visits an assignment needs."""

    tiers: tuple[Tier, ...]
    crawls: int
    """The average covers this many latest visits."""
    least_crawls: int
    """With fewer visits a community keeps its tier."""

    def assigned(self, recent_valid: Sequence[int]) -> Tier | None:
        """Returns the tier for these visits; None: too few."""
        latest = recent_valid[-self.crawls :]
        if len(latest) < self.least_crawls:
            return None
        average = sum(latest) / len(latest)
        # The last tier takes everything below.
        return next((tier for tier in self.tiers if average >= tier.least_valid), self.tiers[-1])

    def named(self, name: str | None) -> Tier | None:
        return next((tier for tier in self.tiers if tier.name == name), None)


def valid_among(changes: Sequence[ItemChange], item_kind: str) -> list[Item]:
    """Returns the valid posts of a page: new, stored, and neither deleted nor pinned. Comments are not posts."""
    new = [change.item.item for change in changes if change.change == Change.NEW]
    return [item for item in new if item.kind == item_kind and not (item.is_deleted or item.is_pinned)]


def backlog_among(valid: Sequence[Item], watched_from: datetime | None) -> int:
    """Returns how many of these posts a first visit found already there. `watched_from` is None for later visits: they
    have none.

    Posts of one interval before the first visit count as if the source had been collected already.
    """
    if watched_from is None:
        return 0
    return sum(1 for item in valid if item.created_at is None or item.created_at < watched_from)


def after_visit(progress: Progress, valid: int, rules: Tiers) -> Progress:
    """Returns the progress after one more visit with this many valid posts, with the resulting tier."""
    return tiered(progress.replace(recent_valid=(*progress.recent_valid, valid)[-rules.crawls :]), rules)


def tiered(progress: Progress, rules: Tiers) -> Progress:
    """Returns the progress with the tier of its visits and the resulting interval."""
    tier = rules.assigned(progress.recent_valid)
    if tier is None:
        return progress
    minutes, most = max(1, round(tier.hours * 60)), most_minutes(progress.posts_per_day, progress.reach)
    reason = message("tier.interval", tier=tier.name, span=span(minutes))
    if most is not None and most < minutes:
        reason = message("tier.reach", tier=tier.name, span=span(most), usual=span(minutes), reach=progress.reach)
        minutes = most
    return progress.replace(tier=tier.name, tier_minutes=minutes, tier_reason=reason)


def most_minutes(posts_per_day: float | None, reach: int | None) -> int | None:
    """Returns the longest interval that misses nothing within the platform's reach; None: no limit."""
    if not posts_per_day or not reach:
        return None
    return max(1, int(min(reach / posts_per_day * _DAY_MINUTES * _OF_REACH, _YEAR_MINUTES)))


def span(minutes: int) -> Message:
    """Returns 45 min, 2 h, 1.5 h."""
    if minutes < 60:
        return message("span.minutes", count=minutes)
    return message("span.hours", count=f"{round(minutes / 60, 1):g}")
