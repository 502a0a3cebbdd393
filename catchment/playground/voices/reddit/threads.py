"""A post with what is said below it: nested as far as it fits, stubs for the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from catchment.playground.voices import Entry
from catchment.playground.voices.reddit import names
from catchment.playground.voices.reddit.comments import Comment
from catchment.playground.voices.reddit.telling import Glance, Told, comment_entry, comment_told, listing, thing
from catchment.playground.world import Post

USUAL, MOST = 200, 500
DEEPEST = 10
"""Levels of one answer; deeper ones hang on the permalink of the last."""
MOST_MORE = 100
"""Comments that one answer about stubs brings."""


class Thread:
    """The comments of a post as they stand at one moment."""

    def __init__(self, glance: Glance, post: Post) -> None:
        self.glance, self.post = glance, post
        count = glance.site.world.counters(post, glance.at).reply_count
        self._below: dict[int, list[Comment]] = defaultdict(list)
        self._sizes: dict[int, int] = {}
        # From the last to the first, so that whatever answers a comment is known before it.
        for one in reversed(glance.site.comments(post)[:count]):
            # What was taken away stays as a mark while something hangs on it; else nothing is left of it.
            if self._below[one.number] or not one.is_removed(glance.at):
                self._below[one.parent].append(one)
                self._sizes[one.number] = 1 + sum(self._sizes[child.number] for child in self._below[one.number])
        for children in self._below.values():
            children.reverse()
        self.entries: list[Entry] = []

    def nested(self, limit: int) -> Told:
        """The whole thread: the earliest comments, as many as may be shown."""
        shown = set(sorted(self._sizes)[:limit])
        return listing(self._level(self._below[0], 0, shown), is_counted=False)

    def branch(self, comment: Comment, limit: int) -> Told:
        """One comment, and what hangs on it."""
        there = [comment] if comment.number in self._sizes else []
        shown = {one.number for one in self._descent(there)[:limit]}
        return listing(self._level(there, 0, shown), is_counted=False)

    def flat(self, wanted: Sequence[str]) -> list[Told]:
        """The comments that stubs stood for, and what hangs on them, in one row."""
        there = [one for name in wanted if (one := self.glance.site.comment(names.COMMENT + name)) and self._has(one)]
        shown = {one.number for one in self._descent(there)[:MOST_MORE]}
        return self._row(there, shown, is_asked_for=True)

    def _has(self, comment: Comment) -> bool:
        return comment.number in self._sizes and comment.key.startswith(f"{self.post.id}/")

    def _descent(self, comments: Sequence[Comment]) -> list[Comment]:
        found: list[Comment] = []
        for one in comments:
            found += [one, *self._descent(self._below[one.number])]
        return found

    def _level(self, comments: Sequence[Comment], depth: int, shown: set[int]) -> list[Told]:
        if comments and depth == DEEPEST:
            return [self._continued(comments[0], depth)]
        told = []
        for one in comments:
            if one.number in shown:
                below = self._level(self._below[one.number], depth + 1, shown)
                told.append(self._told(one, depth, listing(below, is_counted=False) if below else ""))
        hidden = [one for one in comments if one.number not in shown]
        return told + ([self._stub(hidden, depth)] if hidden else [])

    def _row(self, comments: Sequence[Comment], shown: set[int], is_asked_for: bool = False) -> list[Told]:
        if comments and comments[0].depth % DEEPEST == 0 and not is_asked_for:
            return [self._continued(comments[0], comments[0].depth)]
        told: list[Told] = []
        for one in comments:
            if one.number in shown:
                told += [self._told(one, one.depth, ""), *self._row(self._below[one.number], shown)]
        hidden = [one for one in comments if one.number not in shown]
        return told + ([self._stub(hidden, hidden[0].depth)] if hidden else [])

    def _told(self, comment: Comment, depth: int, replies: Told | str) -> Told:
        self.entries.append(comment_entry(self.glance, comment))
        told = comment_told(self.glance, self.post, comment, depth)
        return thing(comment.name, told | {"replies": replies})

    def _stub(self, hidden: Sequence[Comment], depth: int) -> Told:
        """It counts all that is hidden, and names only those on which the rest hangs."""
        first = hidden[0]
        data = {
            "count": sum(self._sizes[one.number] for one in hidden),
            "name": first.name,
            "id": names.bare(first.name),
            "parent_id": self._parent(first),
            "depth": depth,
            "children": [names.bare(one.name) for one in hidden],
        }
        return {"kind": "more", "data": data}

    def _continued(self, first: Comment, depth: int) -> Told:
        data = {"count": 0, "name": "t1__", "id": "_", "parent_id": self._parent(first), "depth": depth, "children": []}
        return {"kind": "more", "data": data}

    def _parent(self, comment: Comment) -> str:
        return names.comment_id(self.post, comment.parent) if comment.parent else names.post_id(self.post)
