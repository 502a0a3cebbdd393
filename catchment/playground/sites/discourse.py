"""Simulates Discourse forums: the latest topics, the latest posts, one post, one topic.

A forum is in a folder here, as many are: `/discourse/7/latest.json`. Ids follow the order in which posts appear, with
gaps for private messages; the forum's own clock dates them. Four posts make a topic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from catchment.playground.rng import chance_of
from catchment.playground.sites import (
    Ask,
    Bend,
    Entry,
    Page,
)
from catchment.playground.world import (
    Place,
    Post,
    Shown,
    Version,
    World,
)

NAME = "discourse"
PATH = re.compile(r"/discourse/(\d+)/(latest|posts|posts/(\d+)|t/(\d+))\.json")
PAGE_SIZE, TOPICS = 50, 30
POSTS_OF_A_TOPIC = 4
FIRST_ID, NEXT_ID = 11, 3


def head_id(topic_id: int) -> str:
    """The id of a topic's first post."""
    return str(FIRST_ID + NEXT_ID * POSTS_OF_A_TOPIC * (topic_id - 1))


class Voice:
    """Shows the posts of a world as a forum would."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._numbers: dict[int, dict[str, int]] = {}

    def find(self, path: str) -> Place | None:
        found = PATH.fullmatch(path)
        if found is None or int(found[1]) >= len(self.world.places):
            return None
        place = self.world.places[int(found[1])]
        return place if place.form == NAME else None

    def wire_id(self, place: Place, post: Post) -> str:
        return str(FIRST_ID + NEXT_ID * self._number(place, post))

    def _number(self, place: Place, post: Post) -> int:
        """Its index, in the order in which posts appear."""
        if place.number not in self._numbers:
            self._numbers[place.number] = {other.id: at for at, other in enumerate(self.world.posts(place))}
        return self._numbers[place.number][post.id]

    def answer(self, place: Place, ask: Ask) -> Page:
        found = PATH.fullmatch(ask.path)
        assert found is not None
        # Only a page that could be requested then can be stale; nobody could have continued from here.
        shown = self._shown(place, ask.at if ask.query else ask.at - ask.bend.ago)
        if found[3]:
            return self._one_post(place, ask, [entry for entry in shown if self.wire_id(place, entry[0]) == found[3]])
        if found[4]:
            return self._topic(
                place, ask, [entry for entry in shown if self._topic_id(place, entry[0]) == int(found[4])]
            )
        return self._latest_topics(place, ask, shown) if found[2] == "latest" else self._latest_posts(place, ask, shown)

    def _shown(self, place: Place, at: datetime) -> Shown:
        """All existing posts, newest first."""
        posts = (post for post in reversed(self.world.posts(place)) if post.shown_from <= at)
        return tuple((post, post.version(at)) for post in posts if not post.is_removed(at))

    def _latest_posts(self, place: Place, ask: Ask, shown: Shown) -> Page:
        before = int(parse_qs(ask.query).get("before", ["0"])[0])
        if before and not ask.bend.is_looping:
            shown = tuple(entry for entry in shown if int(self.wire_id(place, entry[0])) < before)
        entries = _bent(shown[:PAGE_SIZE], ask)
        payloads = [self._told(place, post, version, ask) | self._titled(place, post) for post, version in entries]
        return self._page(place, {"latest_posts": payloads}, entries, ask)

    def _latest_topics(self, place: Place, ask: Ask, shown: Shown) -> Page:
        """By their last post; without the content of their posts."""
        ids = list(dict.fromkeys(self._topic_id(place, post) for post, _ in shown))[:TOPICS]
        topics = [self._topic_facts(place, id, ask.at) for id in ids]
        users: list[Any] = []
        return self._page(place, {"users": users, "topic_list": {"per_page": TOPICS, "topics": topics}}, (), ask)

    def _one_post(self, place: Place, ask: Ask, found: Sequence[tuple[Post, Version]]) -> Page:
        if not found:
            return _missing()
        return self._page(place, self._told(place, *found[0], ask), found, ask)

    def _topic(self, place: Place, ask: Ask, found: Sequence[tuple[Post, Version]]) -> Page:
        if not found:
            return _missing()
        posts = [self._told(place, post, version, ask) for post, version in reversed(found)]
        facts = self._topic_facts(place, self._topic_id(place, found[0][0]), ask.at)
        return self._page(place, facts | {"post_stream": {"posts": posts}}, found, ask)

    def _page(self, place: Place, body: Any, shown: Sequence[tuple[Post, Version]], ask: Ask) -> Page:
        then = ask.at - ask.bend.ago
        entries = tuple(
            Entry(post.id, version.number, self.wire_id(place, post), max(0, self.world.counters(post, then).score))
            for post, version in shown
        )
        headers = {"Content-Type": "application/json; charset=utf-8"}
        return Page(200, headers, json.dumps(body, ensure_ascii=False).encode(), entries=entries)

    # ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _topic_id(self, place: Place, post: Post) -> int:
        return self._number(place, post) // POSTS_OF_A_TOPIC + 1

    def _post_number(self, place: Place, post: Post) -> int:
        return self._number(place, post) % POSTS_OF_A_TOPIC + 1

    def _head(self, place: Place, topic_id: int) -> Post:
        return self.world.posts(place)[(topic_id - 1) * POSTS_OF_A_TOPIC]

    def _titled(self, place: Place, post: Post) -> dict[str, Any]:
        """What the list of posts shows about their topics. A title stays as it was first written."""
        title = self._head(place, self._topic_id(place, post)).versions[0].title
        return {"topic_title": title, "topic_html_title": title, "category_id": 4}

    def _topic_facts(self, place: Place, topic_id: int, at: datetime) -> dict[str, Any]:
        head = self._head(place, topic_id)
        posts = self.world.posts(place)[(topic_id - 1) * POSTS_OF_A_TOPIC :][:POSTS_OF_A_TOPIC]
        title = head.versions[0].title
        last = _iso(max(post.shown_from for post in posts if post.shown_from <= at or post is head))
        return {
            "id": topic_id,
            "title": title,
            "fancy_title": title,
            "slug": f"topic-{topic_id}",
            "posts_count": sum(1 for post in posts if post.shown_from <= at),
            "created_at": _iso(head.shown_from),
            "last_posted_at": last,
            "bumped_at": last,
            "pinned": False,
            "pinned_globally": False,
            "visible": True,
            "closed": False,
            "archived": False,
            "tags": list(head.tags),
            "views": 3 * self.world.counters(head, at).reply_count + 1,
            "like_count": max(0, self.world.counters(head, at).score),
            "category_id": 4,
        }

    def _told(self, place: Place, post: Post, version: Version, ask: Ask) -> dict[str, Any]:
        at, bend = ask.at - ask.bend.ago, ask.bend
        counters, topic_id = self.world.counters(post, at), self._topic_id(place, post)
        likes = [{"id": 2, "count": counters.score}] if counters.score > 0 else []
        number = self._post_number(place, post)
        return {
            "id": int(self.wire_id(place, post)),
            "name": post.author.title(),
            "username": post.author,
            "avatar_template": f"/user_avatar/{post.author}/{{size}}/1.png",
            "created_at": _iso(post.shown_from, bend),
            "cooked": _cooked(version, post),
            "post_number": number,
            "post_type": 1,
            "updated_at": _iso(version.from_at, bend),
            "reply_count": counters.reply_count,
            "reply_to_post_number": number - 1 if number > 2 else None,
            "quote_count": 0,
            "incoming_link_count": 0,
            "reads": 2 * counters.reply_count + 1,
            "score": 0.2,
            "yours": False,
            "topic_id": topic_id,
            "topic_slug": f"topic-{topic_id}",
            "display_username": post.author.title(),
            "version": version.number,
            "user_title": None,
            "raw": version.text,
            "actions_summary": likes,
            "moderator": False,
            "admin": False,
            "staff": False,
            "user_id": sum(map(ord, post.author)),
            "hidden": False,
            "trust_level": 1,
            "deleted_at": None,
            "user_deleted": False,
            "edit_reason": None,
        }


def _cooked(version: Version, post: Post) -> str:
    picture = f'<p><img src="{post.picture}" alt="picture"></p>' if post.picture else ""
    return version.html + picture


def _iso(at: datetime, bend: Bend | None = None) -> str:
    return (at + bend.skew if bend else at).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _bent(shown: Shown, ask: Ask) -> Shown:
    entries = list(shown)
    if ask.bend.is_reordered:
        chance_of(ask.path, ask.query, ask.at).shuffle(entries)
    return tuple(entry for entry in entries for _ in range(2 if ask.bend.is_repeated else 1))


def _missing() -> Page:
    body = {"errors": ["The requested URL or resource could not be found."], "error_type": "not_found"}
    return Page(404, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(body).encode())
