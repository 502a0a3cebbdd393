"""Names on Reddit: communities by words, everything else by numbers in base 36 with a prefix for the type."""

from __future__ import annotations

import re
from datetime import datetime

from catchment.playground.world import Place, Post

COMMENT, POST, COMMUNITY = "t1_", "t3_", "t5_"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
FIRST_POST, FIRST_COMMENT, FIRST_COMMUNITY = int("1s00000", 36), int("n000000", 36), int("2qh00", 36)
PLACES, COMMENTS = 4_096, 16_384
"""How many places share a post number, and how many comments a post can have."""
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]+")
LONGEST_NAME, LONGEST_SLUG = 21, 50


def community(place: Place, at: datetime | None = None) -> str:
    """The name after `r/` at a moment; without one: the first name."""
    if at is not None and place.new_path is not None and place.moves_at is not None and at >= place.moves_at:
        return place.new_path.rpartition("/")[2]
    name = NOT_IN_A_NAME.sub("", place.name)[:LONGEST_NAME]
    return name if re.search("[A-Za-z]", name) else f"place{place.number}"


def community_id(place: Place) -> str:
    return COMMUNITY + _base36(FIRST_COMMUNITY + place.number)


def post_id(post: Post) -> str:
    """Assigned when it is written: ids ascend with time and do not change."""
    return POST + _base36(FIRST_POST + _order(post))


def comment_id(post: Post, number: int) -> str:
    return COMMENT + _base36(FIRST_COMMENT + _order(post) * COMMENTS + number)


def bare(name: str) -> str:
    """Without the prefix for the type."""
    return name.partition("_")[2]


def numbers(name: str) -> tuple[int, int, int] | None:
    """The place, the post and the comment (0: the post itself) that a name means; None if it means no post."""
    sort, number = name[:3], _from_base36(name[3:])
    if number is None or sort not in (POST, COMMENT):
        return None
    order, comment = (number - FIRST_POST, 0) if sort == POST else divmod(number - FIRST_COMMENT, COMMENTS)
    if order < 0 or (sort == COMMENT and comment == 0):
        return None
    return order % PLACES, order // PLACES, comment


def slug(title: str) -> str:
    """The form of the title in a post's URL."""
    return NOT_IN_A_NAME.sub("_", title).strip("_").lower()[:LONGEST_SLUG].strip("_") or "_"


def _order(post: Post) -> int:
    return post.number * PLACES + post.place


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = DIGITS[rest] + digits
    return digits or "0"


def _from_base36(digits: str) -> int | None:
    is_one = 0 < len(digits) <= 12 and all(digit in DIGITS for digit in digits)
    return int(digits, 36) if is_one else None
