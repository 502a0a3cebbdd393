"""What Discourse answers, as far as it is read. Only ids must be there; whatever else is of a wrong sort is unknown."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

_LONGEST_WAIT = 86_400


def text(value: Any) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class Post(Struct):
    id: int
    topic_id: int
    post_number: int
    cooked: Any = None
    created_at: Any = None
    updated_at: Any = None
    version: Any = None
    username: Any = None
    name: Any = None
    user_id: Any = None
    topic_title: Any = None
    topic_slug: Any = None
    reply_to_post_number: Any = None
    reply_to_user: Any = None
    reply_count: Any = None
    posts_count: Any = None
    reads: Any = None
    actions_summary: Any = None
    hidden: Any = None
    user_deleted: Any = None
    deleted_at: Any = None

    @property
    def is_head(self) -> bool:
        """Whether it is the first of its topic: the one with the title."""
        return self.post_number == 1

    @property
    def is_deleted(self) -> bool:
        return self.user_deleted is True or self.deleted_at is not None

    def likes(self, action: int) -> int | None:
        """Zero where the summary leaves them out; unknown without a summary."""
        if not isinstance(self.actions_summary, list):
            return None
        told = (one for one in self.actions_summary if isinstance(one, dict) and one.get("id") == action)
        return next((number(one.get("count")) for one in told), 0)


class Topic(Struct):
    """What a topic tells about itself, in a list or on its own page."""

    id: int
    title: Any = None
    slug: Any = None
    posts_count: Any = None
    last_posted_at: Any = None
    views: Any = None
    tags: Any = None
    pinned: Any = None
    pinned_globally: Any = None

    def facts(self) -> dict[str, Any]:
        """In the small form in which they travel with a request."""
        tags = [_name(one) for one in self.tags] if isinstance(self.tags, list) else []
        told = {
            "title": text(self.title),
            "posts": number(self.posts_count),
            "views": number(self.views),
            "last_posted_at": text(self.last_posted_at),
            "tags": [tag for tag in tags if tag],
            "pinned": self.pinned is True or self.pinned_globally is True,
        }
        return {name: value for name, value in told.items() if value}


def _name(tag: Any) -> str | None:
    """Tags were names, and became objects with one."""
    return text(tag.get("name") or tag.get("slug")) if isinstance(tag, dict) else text(tag)


class Topics(Struct):
    topics: list[Raw]


class LatestTopics(Struct):
    topic_list: Topics


class LatestPosts(Struct):
    latest_posts: list[Raw]


class Stream(Struct):
    posts: list[Raw]


class WholeTopic(Topic, kw_only=True):
    post_stream: Stream


class Complaint(Struct):
    """What Discourse says where it refuses something."""

    errors: Any = None
    error_type: Any = None
    extras: Any = None

    def wait_seconds(self) -> float | None:
        told = self.extras.get("wait_seconds") if isinstance(self.extras, dict) else None
        is_sound = isinstance(told, int | float) and not isinstance(told, bool) and 0 <= told < _LONGEST_WAIT
        return float(told) if is_sound and told is not None else None
