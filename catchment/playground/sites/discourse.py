"""Simulates Discourse forums: the latest posts, the list of topics, topics by page and by number, one post.

A forum is in a folder here, as many are: `/discourse/7/latest.json`. Ids follow the order in which posts appear, with
gaps for private messages; the forum's own clock dates them. A post opens a topic or answers in a recent one; its number
is that of the posts before it, deleted ones included. Now and then a post is hidden: the forum shows a notice instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import parse_qs

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.sites import (
    Ask,
    Distortion,
    Entry,
    Page,
)
from catchment.playground.world import (
    Place,
    Post,
    Version,
    World,
)

NAME = "discourse"
PATH = re.compile(r"/discourse/(\d+)/(latest|posts|posts/(\d+)|t/(\d+)(?:/(\d+))?)\.json")
PAGE_SIZE, TOPICS = 50, 30
POSTS_A_PAGE, POSTS_BEFORE = 20, 5
"""Of a topic: how many posts an answer shows, and how many of them are below the number that was asked for."""
FIRST_ID, NEXT_ID = 11, 3
NEW_TOPIC, RECENT = 0.09, 6
"""How often a post opens a topic, and how many of the newest ones are answered in."""
HIDDEN = 0.03
Shown = TypeVar("Shown")
NOTICE = "<p>This post was flagged by the community and is temporarily hidden.</p>"


class TopicPost(Record, frozen=True):
    """A post in its topic."""

    post: Post
    id: int
    topic_id: int
    number: int
    hidden_at: datetime | None = None

    @property
    def wire_id(self) -> str:
        """The id under which it should be stored: an opening post is named by its topic."""
        return f"t{self.topic_id}" if self.number == 1 else str(self.id)

    def is_there(self, at: datetime) -> bool:
        return self.post.shown_from <= at and not self.post.is_removed(at)

    def is_hidden(self, at: datetime) -> bool:
        return self.hidden_at is not None and self.hidden_at <= at


def topic_posts(world: World, place: Place) -> tuple[TopicPost, ...]:
    """The posts of a forum, in the order in which they appear."""
    posts: list[TopicPost] = []
    counts: list[int] = []
    for index, post in enumerate(world.posts(place)):
        chance = chance_of(world.seed, NAME, post.id)
        hidden_at = post.shown_from + timedelta(hours=chance.randint(1, 48)) if chance.random() < HIDDEN else None
        # What is removed later opens no topic: the topic would go with it.
        if not counts or (chance.random() < NEW_TOPIC and post.removed_at is None):
            counts.append(0)
            topic_id = len(counts)
        else:
            topic_id = chance.randint(max(1, len(counts) - RECENT + 1), len(counts))
        counts[topic_id - 1] += 1
        number = counts[topic_id - 1]
        posts.append(TopicPost(post, FIRST_ID + NEXT_ID * index, topic_id, number, hidden_at if number > 1 else None))
    return tuple(posts)


class DiscourseSimulator:
    """Serves the posts of a world the way a forum would."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._posts: dict[int, dict[str, TopicPost]] = {}
        self._topics: dict[int, dict[int, list[TopicPost]]] = {}

    def find(self, path: str) -> Place | None:
        found = PATH.fullmatch(path)
        if found is None or int(found[1]) >= len(self.world.places):
            return None
        place = self.world.places[int(found[1])]
        return place if place.form == NAME else None

    def posts(self, place: Place) -> dict[str, TopicPost]:
        """By the ids of the world's posts, in the order in which they appear."""
        if place.number not in self._posts:
            self._posts[place.number] = {
                topic_post.post.id: topic_post for topic_post in topic_posts(self.world, place)
            }
        return self._posts[place.number]

    def topics(self, place: Place) -> dict[int, list[TopicPost]]:
        if place.number not in self._topics:
            topics: dict[int, list[TopicPost]] = {}
            for topic_post in self.posts(place).values():
                topics.setdefault(topic_post.topic_id, []).append(topic_post)
            self._topics[place.number] = topics
        return self._topics[place.number]

    def wire_id(self, place: Place, post: Post) -> str:
        return self.posts(place)[post.id].wire_id

    def answer(self, place: Place, ask: Ask) -> Page:
        found = PATH.fullmatch(ask.path)
        assert found is not None
        if found[3]:
            there = [topic_post for topic_post in self._there(place, ask.at) if topic_post.id == int(found[3])]
            return self._page(self._told(there[0], ask), there, ask) if there else _missing()
        if found[4]:
            return self._topic(place, int(found[4]), int(found[5] or 0), ask)
        # Only a page that could be requested then can be stale; nobody could have continued from here.
        there = self._there(place, ask.at if _is_later_page(ask) else ask.at - ask.distortion.ago)
        return self._list(place, ask, there) if found[2] == "latest" else self._latest_posts(place, ask, there)

    def _there(self, place: Place, at: datetime) -> list[TopicPost]:
        """All existing posts, newest first."""
        return [topic_post for topic_post in reversed(self.posts(place).values()) if topic_post.is_there(at)]

    def _latest_posts(self, place: Place, ask: Ask, there: Sequence[TopicPost]) -> Page:
        before = int(parse_qs(ask.query).get("before", ["0"])[0])
        if before and not ask.distortion.is_looping:
            there = [topic_post for topic_post in there if topic_post.id < before]
        shown = _distorted(there[:PAGE_SIZE], ask)
        payloads = [self._told(topic_post, ask) | self._titled(place, topic_post) for topic_post in shown]
        return self._page({"latest_posts": payloads}, shown, ask)

    def _list(self, place: Place, ask: Ask, there: Sequence[TopicPost]) -> Page:
        """Topics without the content of their posts: by creation, or by their last post."""
        query = parse_qs(ask.query)
        is_created, number = query.get("order") == ["created"], int(query.get("page", ["0"])[0])
        ids = [topic_post.topic_id for topic_post in there if topic_post.number == 1 or not is_created]
        begin = 0 if ask.distortion.is_looping else number * TOPICS
        shown = list(dict.fromkeys(ids))[begin : begin + TOPICS]
        then = ask.at if _is_later_page(ask) else ask.at - ask.distortion.ago
        topics = [self._topic_facts(place, topic_id, then) for topic_id in _distorted(shown, ask)]
        openers = [self.topics(place)[topic_id][0].post.author for topic_id in shown]
        users = [{"id": _user_id(author), "username": author, "name": author.title()} for author in set(openers)]
        listing: dict[str, Any] = {"per_page": TOPICS, "topics": topics}
        if len(set(ids)) > begin + TOPICS:
            order = "&order=created" if is_created else ""
            listing["more_topics_url"] = f"/latest?no_definitions=true{order}&page={number + 1}"
        # No entries: a row shows nothing of a post but its title.
        return self._page({"users": users, "topic_list": listing}, (), ask)

    def _topic(self, place: Place, topic_id: int, near: int, ask: Ask) -> Page:
        """The first posts of a topic, or those near a number, also near that of a post that is gone."""
        topic = self.topics(place).get(topic_id, ())
        # A cache has an old copy only of a topic that was there then.
        then = ask.at - ask.distortion.ago
        if not any(topic_post.is_there(then) for topic_post in topic):
            ask, then = ask.replace(distortion=ask.distortion.replace(ago=timedelta())), ask.at
        there = [topic_post for topic_post in topic if topic_post.is_there(then)]
        if not there:
            return _missing()
        low = [topic_post for topic_post in there if topic_post.number < near][-POSTS_BEFORE:]
        shown = [*low, *[topic_post for topic_post in there if topic_post.number >= near][: POSTS_A_PAGE - len(low)]]
        if shown[-1] is there[-1]:
            shown = there[-POSTS_A_PAGE:] if near else there
        stream = {
            "posts": [self._told(topic_post, ask) for topic_post in _distorted(shown, ask)],
            "stream": [topic_post.id for topic_post in there],
        }
        return self._page(self._topic_facts(place, topic_id, then) | {"post_stream": stream}, shown, ask)

    def _page(self, body: Any, shown: Sequence[TopicPost], ask: Ask) -> Page:
        then = ask.at - ask.distortion.ago
        entries = tuple(
            Entry(
                topic_post.post.id,
                topic_post.post.version(then).number,
                topic_post.wire_id,
                max(0, self.world.counters(topic_post.post, then).score),
                is_withheld=topic_post.is_hidden(then),
            )
            for topic_post in shown
        )
        headers = {"Content-Type": "application/json; charset=utf-8"}
        return Page(200, headers, json.dumps(body, ensure_ascii=False).encode(), entries=entries)

    # ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _titled(self, place: Place, topic_post: TopicPost) -> dict[str, Any]:
        """What the list of posts shows about their topics. A title stays as it was first written."""
        title = self.topics(place)[topic_post.topic_id][0].post.versions[0].title
        return {"topic_title": title, "topic_html_title": title, "category_id": 4}

    def _topic_facts(self, place: Place, topic_id: int, at: datetime) -> dict[str, Any]:
        head, *_ = posts = self.topics(place)[topic_id]
        there = [topic_post for topic_post in posts if topic_post.is_there(at)] or [head]
        title = head.post.versions[0].title
        last = _iso(there[-1].post.shown_from)
        return {
            "id": topic_id,
            "title": title,
            "fancy_title": title,
            "slug": f"topic-{topic_id}",
            "posts_count": len(there),
            "highest_post_number": there[-1].number,
            "created_at": _iso(head.post.shown_from),
            "last_posted_at": last,
            "bumped_at": last,
            "pinned": False,
            "pinned_globally": False,
            "visible": True,
            "closed": False,
            "archived": False,
            "tags": list(head.post.tags),
            "views": 3 * self.world.counters(head.post, at).reply_count + 1,
            "like_count": max(0, self.world.counters(head.post, at).score),
            "category_id": 4,
            "posters": [{"extras": None, "description": "Original Poster", "user_id": _user_id(head.post.author)}],
        }

    def _told(self, topic_post: TopicPost, ask: Ask) -> dict[str, Any]:
        at, distortion, post = ask.at - ask.distortion.ago, ask.distortion, topic_post.post
        version, counters = post.version(at), self.world.counters(post, at)
        likes = [{"id": 2, "count": counters.score}] if counters.score > 0 else []
        is_hidden = topic_post.is_hidden(at)
        told = {
            "id": topic_post.id,
            "name": post.author.title(),
            "username": post.author,
            "avatar_template": f"/user_avatar/{post.author}/{{size}}/1.png",
            "created_at": _iso(post.shown_from, distortion),
            "cooked": NOTICE if is_hidden else _cooked(version, post),
            "post_number": topic_post.number,
            "post_type": 1,
            "updated_at": _iso(version.from_at, distortion),
            "reply_count": counters.reply_count,
            "reply_to_post_number": topic_post.number - 1 if topic_post.number > 2 else None,
            "quote_count": 0,
            "incoming_link_count": 0,
            "reads": 2 * counters.reply_count + 1,
            "score": 0.2,
            "yours": False,
            "topic_id": topic_post.topic_id,
            "topic_slug": f"topic-{topic_post.topic_id}",
            "display_username": post.author.title(),
            "version": version.number,
            "user_title": None,
            "raw": "" if is_hidden else version.text,
            "actions_summary": likes,
            "moderator": False,
            "admin": False,
            "staff": False,
            "user_id": _user_id(post.author),
            "hidden": is_hidden,
            "trust_level": 1,
            "deleted_at": None,
            "user_deleted": False,
            "edit_reason": None,
        }
        return told | {"cooked_hidden": True} if is_hidden else told


SIMULATOR = DiscourseSimulator


def _user_id(author: str) -> int:
    return sum(map(ord, author))


def _is_later_page(ask: Ask) -> bool:
    query = parse_qs(ask.query)
    return "before" in query or query.get("page", ["0"]) != ["0"]


def _cooked(version: Version, post: Post) -> str:
    picture = f'<p><img src="{post.picture}" alt="picture"></p>' if post.picture else ""
    return version.html + picture


def _iso(at: datetime, distortion: Distortion | None = None) -> str:
    return (at + distortion.skew if distortion else at).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _distorted(shown: Sequence[Shown], ask: Ask) -> list[Shown]:
    entries = list(shown)
    if ask.distortion.is_reordered:
        chance_of(ask.path, ask.query, ask.at).shuffle(entries)
    return [entry for entry in entries for _ in range(2 if ask.distortion.is_repeated else 1)]


def _missing() -> Page:
    body = {"errors": ["The requested URL or resource could not be found."], "error_type": "not_found"}
    return Page(404, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(body).encode())
