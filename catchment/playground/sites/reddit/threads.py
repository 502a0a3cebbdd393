"""A post with its comments: nested as far as they fit, stubs for the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from catchment.playground.sites import Entry
from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.comments import Comment
from catchment.playground.sites.reddit.payloads import (
    Glance,
    Told,
    comment_entry,
    comment_told,
    listing,
    thing,
)
from catchment.playground.world import Post

USUAL, MOST = 200, 500
DEEPEST = 10
"""Levels of one answer; deeper ones are at the permalink of the last."""
MOST_MORE = 100
"""Comments that one answer about stubs contains."""


class Thread:
    """The comments of a post at one moment."""

    def __init__(self, glance: Glance, post: Post) -> None:
        self.glance, self.post = glance, post
        count = glance.site.world.counters(post, glance.at).reply_count
        self._below: dict[int, list[Comment]] = defaultdict(list)
        self._sizes: dict[int, int] = {}
        # From the last to the first, so that replies are known before their comment.
        for comment in reversed(glance.site.comments(post)[:count]):
            # A removed comment stays as a mark while it has replies; else nothing is left of it.
            if self._below[comment.number] or not comment.is_removed(glance.at):
                self._below[comment.parent].append(comment)
                self._sizes[comment.number] = 1 + sum(
                    self._sizes[child.number] for child in self._below[comment.number]
                )
        for children in self._below.values():
            children.reverse()
        self.entries: list[Entry] = []

    def nested(self, limit: int) -> Told:
        """The whole thread: the earliest comments, as many as may be shown."""
        shown = set(sorted(self._sizes)[:limit])
        return listing(self._level(self._below[0], 0, shown), is_counted=False)

    def branch(self, comment: Comment, limit: int) -> Told:
        """One comment and its replies."""
        roots = [comment] if comment.number in self._sizes else []
        shown = {reply.number for reply in self._descent(roots)[:limit]}
        return listing(self._level(roots, 0, shown), is_counted=False)

    def flat(self, wanted: Sequence[str]) -> list[Told]:
        """The comments that stubs stood for, and their replies, in a flat list."""
        roots = [
            comment
            for name in wanted
            if (comment := self.glance.site.comment(names.COMMENT + name)) and self._has(comment)
        ]
        shown = {reply.number for reply in self._descent(roots)[:MOST_MORE]}
        return self._row(roots, shown, is_asked_for=True)

    def _has(self, comment: Comment) -> bool:
        return comment.number in self._sizes and comment.key.startswith(f"{self.post.id}/")

    def _descent(self, comments: Sequence[Comment]) -> list[Comment]:
        found: list[Comment] = []
        for comment in comments:
            found += [comment, *self._descent(self._below[comment.number])]
        return found

    def _level(self, comments: Sequence[Comment], depth: int, shown: set[int]) -> list[Told]:
        if comments and depth == DEEPEST:
            return [self._continued(comments[0], depth)]
        things = []
        for comment in comments:
            if comment.number in shown:
                below = self._level(self._below[comment.number], depth + 1, shown)
                things.append(self._told(comment, depth, listing(below, is_counted=False) if below else ""))
        hidden = [reply for reply in comments if reply.number not in shown]
        return things + ([self._stub(hidden, depth)] if hidden else [])

    def _row(self, comments: Sequence[Comment], shown: set[int], is_asked_for: bool = False) -> list[Told]:
        if comments and comments[0].depth % DEEPEST == 0 and not is_asked_for:
            return [self._continued(comments[0], comments[0].depth)]
        things: list[Told] = []
        for comment in comments:
            if comment.number in shown:
                things += [self._told(comment, comment.depth, ""), *self._row(self._below[comment.number], shown)]
        hidden = [reply for reply in comments if reply.number not in shown]
        return things + ([self._stub(hidden, hidden[0].depth)] if hidden else [])

    def _told(self, comment: Comment, depth: int, replies: Told | str) -> Told:
        self.entries.append(comment_entry(self.glance, comment))
        payload = comment_told(self.glance, self.post, comment, depth)
        return thing(comment.name, payload | {"replies": replies})

    def _stub(self, hidden: Sequence[Comment], depth: int) -> Told:
        """It counts all hidden comments, and names only those at the top."""
        first = hidden[0]
        data = {
            "count": sum(self._sizes[comment.number] for comment in hidden),
            "name": first.name,
            "id": names.bare(first.name),
            "parent_id": self._parent(first),
            "depth": depth,
            "children": [names.bare(comment.name) for comment in hidden],
        }
        return {"kind": "more", "data": data}

    def _continued(self, first: Comment, depth: int) -> Told:
        data = {"count": 0, "name": "t1__", "id": "_", "parent_id": self._parent(first), "depth": depth, "children": []}
        return {"kind": "more", "data": data}

    def _parent(self, comment: Comment) -> str:
        return names.comment_id(self.post, comment.parent) if comment.parent else names.post_id(self.post)
