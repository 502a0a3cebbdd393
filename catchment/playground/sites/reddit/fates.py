"""The fate of a post on Reddit: its type, who removes it, whether its author's account stays."""

from __future__ import annotations

from datetime import datetime, timedelta

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.world import Post, World

SORTS = {"text": 0.54, "link": 0.14, "image": 0.12, "gallery": 0.07, "video": 0.08, "poll": 0.05}
CROSSPOST = "crosspost"
WORDLESS = ("link", CROSSPOST)
"""Types that have no text besides their title."""
PINNED_NUMBERS = (0, 1)
"""The oldest ones, pinned above all others in `hot`."""
BY_AUTHOR, BY_MODERATOR = "author", "moderator"
ADULT, LEAVING = 0.05, 0.06
ENCODED_AFTER = timedelta(minutes=4)
"""Until then a video has no URL yet, nor have some pictures of a gallery."""


class Nature(Record, frozen=True):
    """What does not follow from the text of a post."""

    sort: str
    removed_by: str
    """Who removes it, if anybody does."""
    leaves_at: datetime | None
    """When its author's account is deleted; the posts stay."""
    is_adult: bool
    is_pinned: bool


def nature(world: World, post: Post) -> Nature:
    chance = chance_of(world.seed, "reddit", post.id)
    sort = chance.choices(list(SORTS), list(SORTS.values()))[0]
    # What an author has deleted does not come back; what moderators have removed may be approved later.
    is_by_author = chance.random() < 0.5 and post.restored_at is None
    leaves_after = timedelta(days=chance.uniform(0.2, 4))
    return Nature(
        sort=CROSSPOST if post.repeats else sort,
        removed_by=BY_AUTHOR if is_by_author else BY_MODERATOR,
        leaves_at=post.shown_from + leaves_after if chance.random() < LEAVING else None,
        is_adult=chance.random() < ADULT,
        is_pinned=post.number in PINNED_NUMBERS,
    )
