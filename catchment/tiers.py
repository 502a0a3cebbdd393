"""How lively a community is, and what follows from that: how often it is visited, and by which listing. Pure.

A tier (tier1, tier2, tier3) is what visits found; a priority (high, medium, low) is what a person gave. The two are
never mixed.
"""

from __future__ import annotations

from collections.abc import Sequence

from catchment.model import Deed, Judged, Progress, Record

# Of the time in which as many could be posted as the platform shows, so much may pass: days have their busy hours.
_OF_REACH = 0.5
_DAY_MINUTES = 24 * 60
_YEAR_MINUTES = 365 * _DAY_MINUTES


class Tier(Record, frozen=True):
    """How communities of one liveliness are read."""

    name: str
    least_valid: float
    """The average of valid posts from which on a community belongs here."""
    hours: float
    """From one visit to the next."""
    sort: str
    """The listing that is read; beside the newest, where it is another one."""
    time_filter: str
    limit: int


class Tiers(Record, frozen=True):
    """The tiers, the liveliest first, and from how many visits a community is judged."""

    tiers: tuple[Tier, ...]
    crawls: int
    """The average is that of so many visits, the latest."""
    least_crawls: int
    """With fewer a community stays where it is."""

    def assigned(self, recent_valid: Sequence[int]) -> Tier | None:
        """Where these visits put a community; None: they are too few to tell."""
        latest = recent_valid[-self.crawls :]
        if len(latest) < self.least_crawls:
            return None
        average = sum(latest) / len(latest)
        # Nobody is too quiet for the last one.
        return next((tier for tier in self.tiers if average >= tier.least_valid), self.tiers[-1])

    def named(self, name: str | None) -> Tier | None:
        return next((tier for tier in self.tiers if tier.name == name), None)


def valid_among(judged: Sequence[Judged], item_kind: str) -> int:
    """How many valid posts a page brought: new, stored, and neither taken away nor pinned. Comments are no posts."""
    new = [one.item.item for one in judged if one.verdict.deed == Deed.NEW]
    return sum(1 for item in new if item.kind == item_kind and not (item.is_deleted or item.is_pinned))


def after_visit(progress: Progress, valid: int, rules: Tiers) -> Progress:
    """What is known of a community after one more visit, and its tier by that."""
    return tiered(progress.plus(recent_valid=(*progress.recent_valid, valid)[-rules.crawls :]), rules)


def tiered(progress: Progress, rules: Tiers) -> Progress:
    """The progress with the tier that its visits give it, and how often it is then visited."""
    tier = rules.assigned(progress.recent_valid)
    if tier is None:
        return progress
    minutes, most = max(1, round(tier.hours * 60)), most_minutes(progress.posts_per_day, progress.reach)
    reason = f"{tier.name}: every {span(minutes)}"
    if most is not None and most < minutes:
        reason = (
            f"{tier.name}: every {span(most)} rather than {span(minutes)}, "
            f"because the platform shows no more than the newest {progress.reach:,}"
        )
        minutes = most
    return progress.plus(tier=tier.name, tier_minutes=minutes, tier_reason=reason)


def most_minutes(posts_per_day: float | None, reach: int | None) -> int | None:
    """How long one may wait without missing what the platform would show no more; None: as long as one likes."""
    if not posts_per_day or not reach:
        return None
    return max(1, int(min(reach / posts_per_day * _DAY_MINUTES * _OF_REACH, _YEAR_MINUTES)))


def span(minutes: int) -> str:
    """For people: 45 min, 2 h, 1.5 h."""
    return f"{minutes} min" if minutes < 60 else f"{round(minutes / 60, 1):g} h"
