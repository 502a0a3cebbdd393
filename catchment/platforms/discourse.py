"""Discourse forums.

**Access.** No account if the forum is public. Give the address of the forum or of any of its pages; forums in a folder
of a site (`https://example.com/forum`) work, too. A forum behind a login needs a credential of header lines: `Api-Key:
…` and `Api-Username: …`.

**Limits.** Two requests per visit: the latest topics (`/latest.json`), which alone have views, tags, pins and last
replies, then the latest posts (`/posts.json`), fifty per page, newest first by id, down to what is stored. This stays
far below the forum's own limit, 200 requests per minute by default; if it asks to wait, that is obeyed.

**Blind spots.** Only public posts are listed: no private messages, no closed categories. Names of categories are not
shown. A topic's views and tags, and the deletion of its last reply, are known only while it is among the latest topics.
Likes and edits are noticed while a post is on the pages that are read, and when it is rechecked, after a day, a week
and a month. A post with an earlier date (an import) is listed where its id belongs; the walk reads twenty posts further
than necessary, so that one such post does not end it too early.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from msgspec import Raw, Struct

from catchment.errors import LoginNeeded, SlowDown, Unreadable
from catchment.model import (
    Answer,
    Budget,
    FailureScope,
    Identity,
    Item,
    Kind,
    Listing,
    Order,
    Progress,
    Reading,
    Recheck,
    Reference,
    Refusal,
    Request,
    Source,
    Target,
    WalkPlan,
)
from catchment.platforms._common import urls
from catchment.platforms._common.coercion import number, text
from catchment.platforms._common.http import wall_refusal
from catchment.platforms._common.json import decode_answer, decode_entry, decoded, read_each
from catchment.text.dates import read_date

NAME = "discourse"
TITLE = "Discourse"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = True  # a post's number is unique in its forum, and a forum is a source: its key outlives a change of URL
PARSER_VERSION = 1
POSTS, TOPICS, RECHECK, TOPIC = "posts", "topics", "recheck", "topic"
KINDS = (
    Kind(
        name="discourse_forum",
        title="Forum (Discourse)",
        what="A Discourse forum: its latest posts and topics",
        interval_minutes=60,
        example="https://meta.discourse.org",
        listings=(Listing(POSTS, Order.NEWEST_FIRST, page_size=50, overlap=20),),
        item_kind="post",
        recheck_ages=(timedelta(days=1), timedelta(days=7), timedelta(days=30)),
    ),
)

CHINESE = {
    "Forum (Discourse)": "论坛（Discourse）",
    "A Discourse forum: its latest posts and topics": "使用 Discourse 的论坛：最新帖子和主题",
}

HELPS = "give the address of a forum that runs Discourse, as https://meta.discourse.org"
PAGES = re.compile(
    r"/(?:latest|top|new|unread|hot|categories|c|t|p|u|g|posts|tags?|search|about|badges|faq|login|signup|site|users?|"
    r"latest\.(?:json|rss)|posts\.(?:json|rss)|top\.(?:json|rss)|categories\.json|site\.json|about\.json)(?=/|$)"
)
"""Where the pages of a forum begin; the part before them is the folder of the forum."""
PLACE = re.compile(r"/t/(?:[^/]*/)?(\d+)(?:/(\d+))?/?")
LIKE = 2
"""The id of the action "like" in every forum."""
MOST_POSTS, MOST_TOPICS = 1_000, 100
"""Per answer: twenty times what Discourse sends."""
_LONGEST_COMPLAINT = 64_000

Shape = TypeVar("Shape")
_LONGEST_WAIT = 86_400


class DiscoursePost(Struct):
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
        summaries = (
            summary for summary in self.actions_summary if isinstance(summary, dict) and summary.get("id") == action
        )
        return next((number(summary.get("count")) for summary in summaries), 0)


TopicFacts = dict[str, Any]
"""What is known of a topic, as it is passed on with a request: title, posts, views, last_posted_at, tags, pinned.
What is unknown or empty is left out."""


class Topic(Struct):
    """The facts of a topic, in a list or on its own page."""

    id: int
    title: Any = None
    slug: Any = None
    posts_count: Any = None
    last_posted_at: Any = None
    views: Any = None
    tags: Any = None
    pinned: Any = None
    pinned_globally: Any = None

    def facts(self) -> TopicFacts:
        tags = self.tags if isinstance(self.tags, list) else []
        # Tags were names, and became objects with one.
        names = [text(tag.get("name") or tag.get("slug") if isinstance(tag, dict) else tag) for tag in tags]
        values = {
            "title": text(self.title),
            "posts": number(self.posts_count),
            "views": number(self.views),
            "last_posted_at": text(self.last_posted_at),
            "tags": [name for name in names if name],
            "pinned": self.pinned is True or self.pinned_globally is True,
        }
        return {name: value for name, value in values.items() if value}


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


class DiscourseErrorBody(Struct):
    """Discourse's error body."""

    errors: Any = None
    error_type: Any = None
    extras: Any = None


def understand(text: str, kind: str | None = None) -> Target:
    """Returns the forum, by the URL of any of its pages."""
    parts = urlsplit(urls.canonical(text, helps=HELPS))
    page = PAGES.search(parts.path)
    folder = parts.path[: page.start()] if page else parts.path
    address = urlunsplit((parts.scheme, parts.netloc, f"{folder.rstrip('/')}/", "", ""))
    return Target(kind="discourse_forum", address=address)


def first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    """Requests the latest topics first: what only they contain is passed on with the request for the posts."""
    posts = _request(source, "posts.json", POSTS, listing=plan.listing)
    # A forum may hide its list of topics and still show its posts.
    return [_request(source, "latest.json", TOPICS, listing=plan.listing, fallback=posts)]


def recheck(rechecks: Sequence[Recheck]) -> list[Request]:
    """Requests replies by their own id, and the first post of a topic by the topic, which alone has title, views and
    tags."""
    requests = []
    for item in rechecks:
        match = PLACE.search(urlsplit(item.url or "").path)
        is_head = match and match[2] in (None, "1")
        path, step = (f"t/{match[1]}.json", TOPIC) if match and is_head else (f"posts/{item.external_id}.json", RECHECK)
        requests.append(_request(item.source, path, step).replace(item_id=item.external_id))
    return requests


def _request(source: Source, path: str, step: str, listing: str = "", fallback: Request | None = None) -> Request:
    return Request(
        url=urljoin(source.target, path),
        headers={"Accept": "application/json"},
        step=step,
        listing=listing,
        state={"step": step, "forum": source.target},
        identity=Identity.OPTIONAL if source.credential else Identity.NONE,
        credential=source.credential,
        fallback=fallback,
    )


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """Returns the forum's own error for a request."""
    if wall := wall_refusal(answer, "ask the forum to let programs in"):
        return wall
    is_complaint = answer.status >= 400 and len(answer.body) <= _LONGEST_COMPLAINT
    complaint = decoded(answer.body, DiscourseErrorBody) if is_complaint else None
    if complaint is None:
        return None
    if complaint.error_type == "rate_limit" or answer.status == 429:
        seconds = complaint.extras.get("wait_seconds") if isinstance(complaint.extras, dict) else None
        is_sound = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < _LONGEST_WAIT
        retry_at = answer.answered_at + timedelta(seconds=seconds) if is_sound and seconds is not None else None
        error_429 = SlowDown("the forum asks for patience", "it is asked again later", retry_at=retry_at)
        return Refusal(error_429, blames=FailureScope.HOST)
    if complaint.error_type in ("not_logged_in", "invalid_access") and answer.status in (401, 403):
        error_403 = LoginNeeded("the forum is not public, or the credential is not accepted", "add or renew one for it")
        return Refusal(error_403, blames=FailureScope.CREDENTIAL if request.credential else FailureScope.REQUEST)
    return None


def read(answer: Answer, request: Request) -> Reading:
    return READERS.get(request.state.get("step", POSTS), _posts)(answer, request)


def _decoded(answer: Answer, shape: type[Shape]) -> Shape:
    helps = "see in a browser whether the forum still runs Discourse"
    return decode_answer(answer.body, shape, "what came is none of Discourse's answers", helps)


def _topics(answer: Answer, request: Request) -> Reading:
    """Stores nothing: the facts of the list of topics are passed on with the request for the posts, small as they
    are."""
    topics = [decoded(raw, Topic) for raw in _decoded(answer, LatestTopics).topic_list.topics[:MOST_TOPICS]]
    facts = {str(topic.id): topic.facts() for topic in topics if topic is not None}
    posts = request.replace(
        url=urljoin(_forum(request), "posts.json"),
        step=POSTS,
        state={**request.state, "step": POSTS, "topics": facts},
        fallback=None,
    )
    return Reading(follow=(posts,), is_end=False)


def _posts(answer: Answer, request: Request) -> Reading:
    """Parses a page of the latest posts."""
    before = int(request.params.get("before", "0")) or None
    raws = _decoded(answer, LatestPosts).latest_posts[:MOST_POSTS]
    if not raws and before is None:
        raise Unreadable("the forum shows no posts at all", "see in a browser whether its categories are public")
    reading = _reading(raws, request)
    ids = [int(item.external_id) for item in reading.items]
    if before is None:
        return _with_next(reading, min(ids, default=None), request)
    below = [id_ for id_ in ids if id_ < before]
    if not below and any(id_ > before for id_ in ids):
        return Reading(skipped=reading.skipped, is_end=False, notes=("its pages lead back to one that was read",))
    # Older forums repeat the post from which the next page was requested.
    items = tuple(item for item in reading.items if int(item.external_id) < before)
    return _with_next(reading.replace(items=items), min(below, default=None), request)


def _with_next(reading: Reading, lowest: int | None, request: Request) -> Reading:
    """The next page begins below the lowest id of this one; where there is none below, the list is at its end."""
    follow = (request.replace(params={"before": str(lowest)}),) if lowest is not None and lowest > 1 else ()
    return reading.replace(follow=follow, is_end=not follow)


def _rechecked_post(answer: Answer, request: Request) -> Reading:
    return _reading([Raw(answer.body)], request)


def _rechecked_topic(answer: Answer, request: Request) -> Reading:
    """Parses the first post of a topic, with the facts of the topic's own page."""
    topic = _decoded(answer, WholeTopic)
    posts = (decoded(raw, DiscoursePost) for raw in topic.post_stream.posts[:MOST_POSTS])
    return Reading(tuple(_item(post, _forum(request), topic.facts()) for post in posts if post and post.is_head))


READERS = {POSTS: _posts, TOPICS: _topics, RECHECK: _rechecked_post, TOPIC: _rechecked_topic}


def _forum(request: Request) -> str:
    return str(request.state["forum"]) if "forum" in request.state else urljoin(request.url, ".")


def _reading(raws: Sequence[Raw], request: Request) -> Reading:
    forum, topics = _forum(request), request.state.get("topics", {})

    def read_post(raw: Raw) -> Item:
        post = decode_entry(raw, DiscoursePost, "a post")
        return _item(post, forum, topics.get(str(post.topic_id), {}))

    items, skipped = read_each(raws, read_post)
    return Reading(items, skipped=skipped)


def _item(post: DiscoursePost, forum: str, topic: TopicFacts) -> Item:
    created, edited = read_date(text(post.created_at) or ""), read_date(text(post.updated_at) or "")
    # `updated_at` moves for many reasons; the version shows that the text was changed.
    is_edited = (number(post.version) or 1) > 1
    page = urljoin(forum, f"t/{quote(text(post.topic_slug) or '-')}/{post.topic_id}/")
    # Of a topic all replies; of a reply, those to itself.
    in_topic = (number(post.posts_count) or topic.get("posts")) if post.is_head else None
    reply_count = max(0, in_topic - 1) if in_topic else number(post.reply_count)
    # The last post of a topic without replies is its first.
    last_posted = read_date(topic.get("last_posted_at") or "") if post.is_head and reply_count else None
    user = post.reply_to_user.get("username") if isinstance(post.reply_to_user, dict) else None
    # What a reply answers, another one or the topic, is named by its URL: the id is not given.
    answered = Reference(
        relation="replied_to",
        url=f"{page}{number(post.reply_to_post_number) or 1}",
        author=text(user),
        text=text(post.topic_title),
    )
    return Item(
        external_id=str(post.id),
        kind="post",
        created_at=created.at if created else None,
        edited_at=edited.at if edited and is_edited else None,
        # A reply has no title: with its topic's, a renamed topic would be an edit of every post in it.
        title=(text(post.topic_title) or topic.get("title")) if post.is_head else None,
        html=None if post.is_deleted else text(post.cooked),
        base_url=forum,
        url=f"{page}{post.post_number}",
        author=text(post.username),
        author_id=str(post.user_id) if number(post.user_id) is not None else None,
        author_display_name=text(post.name),
        score=post.likes(LIKE),
        reply_count=reply_count,
        view_count=topic.get("views") if post.is_head else number(post.reads),
        last_reply_at=last_posted.at if last_posted else None,
        thread_id=str(post.topic_id),
        floor_number=post.post_number,
        is_head=post.is_head,
        is_deleted=post.is_deleted,
        is_folded=post.hidden is True,
        is_pinned=post.is_head and topic.get("pinned", False),
        references=() if post.is_head else (answered,),
        tags=tuple(topic.get("tags", ())) if post.is_head else (),
    )
