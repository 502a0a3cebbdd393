"""Forums that run Discourse.

**Access.** No account, where the forum is public. Give the forum's address, or that of any of its pages; forums that
live in a folder of a site (`https://example.com/forum`) are understood. A forum behind a login is read with a
credential of header lines: `Api-Key: …` and `Api-Username: …`.

**Limits.** Two requests a visit: the latest topics (`/latest.json`) for what only they tell (views, tags, pins, last
replies), then the latest posts (`/posts.json`), fifty a page, newest first by id, down to what is stored. The forum's
own limit, 200 requests a minute by default, is never near; where it says how long to wait, that is heeded.

**Blind spots.** Only what anybody may read is listed: no private messages, no closed categories. The numbers of
categories are told, their names are not. A topic's views and tags are known while it is among the latest topics; that
its last reply was taken away, too. Likes and edits are seen while a post is on the pages that are read, and when it is
looked at again, after a day, a week and a month. A post that was given an earlier date (an import) stands where its id
puts it; the walk goes twenty posts further than it must, so that one such post does not end it too early.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import msgspec

from catchment.dates import read_date
from catchment.errors import LoginNeeded, Refused, SlowDown, Unreadable
from catchment.model import (
    Answer,
    Ask,
    Blame,
    Budget,
    Identity,
    Item,
    Kind,
    Listing,
    Look,
    Order,
    Progress,
    Reading,
    Reference,
    Refusal,
    Request,
    Skipped,
    Source,
    Target,
)
from catchment.platforms.discourse.wire import (
    Complaint,
    LatestPosts,
    LatestTopics,
    Post,
    Topic,
    WholeTopic,
    number,
    text,
)
from catchment.platforms.feeds import address, discovery
from catchment.platforms.halfpairs import without_half_pairs

NAME = "discourse"
HOSTS: tuple[str, ...] = ()
BUDGET: Budget | None = None
IS_SCOPED = (
    True  # a post's number is unique in its forum, and a forum is a source: its key outlives a change of address
)
READER_VERSION = 1
POSTS, TOPICS, LOOK, TOPIC = "posts", "topics", "look", "topic"
KINDS = (
    Kind(
        name="discourse_forum",
        what="A forum that runs Discourse: its latest posts and topics",
        interval_minutes=60,
        example="https://meta.discourse.org",
        listings=(Listing(POSTS, Order.NEWEST_FIRST, page_size=50, overlap=20),),
        item_kind="post",
        look_after=(timedelta(days=1), timedelta(days=7), timedelta(days=30)),
    ),
)

HELPS = "give the address of a forum that runs Discourse, as https://meta.discourse.org"
PAGES = re.compile(
    r"/(?:latest|top|new|unread|hot|categories|c|t|p|u|g|posts|tags?|search|about|badges|faq|login|signup|site|users?|"
    r"latest\.(?:json|rss)|posts\.(?:json|rss)|top\.(?:json|rss)|categories\.json|site\.json|about\.json)(?=/|$)"
)
"""Where the pages of a forum begin; what stands before them is the folder that the forum lives in."""
PLACE = re.compile(r"/t/(?:[^/]*/)?(\d+)(?:/(\d+))?/?")
LIKE = 2
"""The number of the action "like", since there are forums."""
MOST_POSTS, MOST_TOPICS = 1_000, 100
"""Of one answer: twenty times what Discourse sends."""
_LONGEST_COMPLAINT = 64_000

Shape = TypeVar("Shape")


def understand(typed: str) -> Target:
    """The forum, by the address of any of its pages."""
    parts = urlsplit(address.canonical(typed, helps=HELPS))
    page = PAGES.search(parts.path)
    folder = parts.path[: page.start()] if page else parts.path
    return Target(kind="discourse_forum", address=urlunsplit((parts.scheme, parts.netloc, _folder(folder), "", "")))


def _folder(path: str) -> str:
    return f"{path.rstrip('/')}/"


def first(source: Source, progress: Progress, ask: Ask) -> list[Request]:
    """The latest topics first: what only they tell goes with the request for the posts."""
    posts = _request(source, "posts.json", POSTS, listing=ask.listing)
    # A forum may hide its list of topics and still show its posts.
    return [_request(source, "latest.json", TOPICS, listing=ask.listing, otherwise=posts)]


def look_again(looks: Sequence[Look]) -> list[Request]:
    """Replies by their own number. The first post of a topic by the topic, which alone tells title, views and tags."""
    return [_look(one) for one in looks]


def _look(look: Look) -> Request:
    place = PLACE.search(urlsplit(look.url or "").path)
    if place and place[2] in (None, "1"):
        return _request(look.source, f"t/{place[1]}.json", TOPIC).plus(asks_for=look.external_id)
    return _request(look.source, f"posts/{look.external_id}.json", LOOK).plus(asks_for=look.external_id)


def _request(source: Source, path: str, step: str, listing: str = "", otherwise: Request | None = None) -> Request:
    return Request(
        url=urljoin(source.target, path),
        headers={"Accept": "application/json"},
        step=step,
        listing=listing,
        carried={"step": step, "forum": source.target},
        identity=Identity.OPTIONAL if source.credential else Identity.NONE,
        credential=source.credential,
        otherwise=otherwise,
    )


# ── what came ─────────────────────────────────────────────────────────────────────────────────────────────────────


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """What a forum says against a request, in words of its own."""
    if answer.status != 429 and discovery.is_wall(answer.body):
        error = Refused("the site asks to prove that a browser is reading", "ask the forum to let programs in")
        return Refusal(error, blames=Blame.HOST)
    complaint = _complaint(answer)
    if complaint is None:
        return None
    if complaint.error_type == "rate_limit" or answer.status == 429:
        wait = complaint.wait_seconds()
        retry_at = answer.answered_at + timedelta(seconds=wait) if wait is not None else None
        error_429 = SlowDown("the forum asks for patience", "it is asked again later", retry_at=retry_at)
        return Refusal(error_429, blames=Blame.HOST)
    if complaint.error_type in ("not_logged_in", "invalid_access") and answer.status in (401, 403):
        error_403 = LoginNeeded("the forum is not public, or the credential is not accepted", "add or renew one for it")
        return Refusal(error_403, blames=Blame.CREDENTIAL if request.credential else Blame.REQUEST)
    return None


def _complaint(answer: Answer) -> Complaint | None:
    if answer.status < 400 or len(answer.body) > _LONGEST_COMPLAINT:
        return None
    try:
        return msgspec.json.decode(answer.body, type=Complaint)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def read(answer: Answer, request: Request) -> Reading:
    return READERS.get(request.carried.get("step", POSTS), _posts)(answer, request)


def _decoded(answer: Answer, shape: type[Shape]) -> Shape:
    try:
        return msgspec.json.decode(without_half_pairs(answer.body), type=shape)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        raise Unreadable(
            "what came is none of Discourse's answers", "see in a browser whether the forum still runs Discourse"
        ) from None


def _one(raw: msgspec.Raw, shape: type[Shape]) -> Shape | None:
    """One of a list; None for what is broken, which cannot sink the page."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _topics(answer: Answer, request: Request) -> Reading:
    """Nothing to store: what the list of topics tells goes with the request for the posts, small as it is."""
    topics = [_one(raw, Topic) for raw in _decoded(answer, LatestTopics).topic_list.topics[:MOST_TOPICS]]
    facts = {str(topic.id): topic.facts() for topic in topics if topic is not None}
    posts = request.plus(
        url=urljoin(_forum(request), "posts.json"),
        step=POSTS,
        carried={**request.carried, "step": POSTS, "topics": facts},
        otherwise=None,
    )
    return Reading(follow=(posts,), is_end=False)


def _posts(answer: Answer, request: Request) -> Reading:
    """A page of the latest posts."""
    before = int(request.params.get("before", "0")) or None
    raws = _decoded(answer, LatestPosts).latest_posts[:MOST_POSTS]
    if not raws and before is None:
        raise Unreadable("the forum shows no posts at all", "see in a browser whether its categories are public")
    reading, ids = _reading(raws, request)
    if before is None:
        return _with_next(reading, min(ids, default=None), request)
    below = [one for one in ids if one < before]
    if not below and any(one > before for one in ids):
        return Reading(skipped=reading.skipped, is_end=False, notes=("its pages lead back to one that was read",))
    # Older forums show the post from which they were asked to go on once more.
    items = tuple(item for item in reading.items if int(item.external_id) < before)
    return _with_next(reading.plus(items=items), min(below, default=None), request)


def _with_next(reading: Reading, lowest: int | None, request: Request) -> Reading:
    """The next page begins below the lowest id of this one; where there is none below, the list is at its end."""
    follow = (request.plus(params={"before": str(lowest)}),) if lowest is not None and lowest > 1 else ()
    return reading.plus(follow=follow, is_end=not follow)


def _look_at_post(answer: Answer, request: Request) -> Reading:
    return _reading([msgspec.Raw(answer.body)], request)[0]


def _look_at_topic(answer: Answer, request: Request) -> Reading:
    """The first post of a topic, with what the topic's own page tells."""
    topic = _decoded(answer, WholeTopic)
    posts = (_one(raw, Post) for raw in topic.post_stream.posts[:MOST_POSTS])
    return Reading(tuple(_item(post, _forum(request), topic.facts()) for post in posts if post and post.is_head))


READERS = {POSTS: _posts, TOPICS: _topics, LOOK: _look_at_post, TOPIC: _look_at_topic}


def _forum(request: Request) -> str:
    return str(request.carried["forum"]) if "forum" in request.carried else urljoin(request.url, ".")


def _reading(raws: Sequence[msgspec.Raw], request: Request) -> tuple[Reading, list[int]]:
    """What these posts are, and the ids of all that have one."""
    topics = request.carried.get("topics", {})
    posts = [_one(raw, Post) for raw in raws]
    items = [_item(post, _forum(request), topics.get(str(post.topic_id), {})) for post in posts if post is not None]
    skipped = [
        Skipped("not a post", bytes(raw)[:200].decode(errors="replace"))
        for raw, post in zip(raws, posts, strict=True)
        if post is None
    ]
    return Reading(tuple(items), skipped=tuple(skipped)), [post.id for post in posts if post is not None]


def _item(post: Post, forum: str, topic: dict[str, Any]) -> Item:
    created, edited = read_date(text(post.created_at) or ""), read_date(text(post.updated_at) or "")
    # `updated_at` moves for many reasons; the version tells that the words were changed.
    is_edited = (number(post.version) or 1) > 1
    slug = text(post.topic_slug) or "-"
    return Item(
        external_id=str(post.id),
        kind="post",
        created_at=created.at if created else None,
        edited_at=edited.at if edited and is_edited else None,
        # A reply has no title: with its topic's, a renamed topic would be an edit of every post in it.
        title=(text(post.topic_title) or topic.get("title")) if post.is_head else None,
        html=None if post.is_deleted else text(post.cooked),
        base_url=forum,
        url=urljoin(forum, f"t/{quote(slug)}/{post.topic_id}/{post.post_number}"),
        author=text(post.username),
        author_id=str(post.user_id) if number(post.user_id) is not None else None,
        author_display_name=text(post.name),
        score=post.likes(LIKE),
        reply_count=_reply_count(post, topic),
        view_count=topic.get("views") if post.is_head else number(post.reads),
        last_reply_at=_last_reply(post, topic),
        thread_id=str(post.topic_id),
        floor_number=post.post_number,
        is_head=post.is_head,
        is_deleted=post.is_deleted,
        is_folded=post.hidden is True,
        is_pinned=post.is_head and topic.get("pinned", False),
        references=() if post.is_head else (_answered(post, forum, slug),),
        tags=tuple(topic.get("tags", ())) if post.is_head else (),
    )


def _reply_count(post: Post, topic: dict[str, Any]) -> int | None:
    """Of a topic all its replies, of a reply those to itself."""
    in_topic = number(post.posts_count) or topic.get("posts")
    return max(0, in_topic - 1) if post.is_head and in_topic else number(post.reply_count)


def _last_reply(post: Post, topic: dict[str, Any]) -> datetime | None:
    """Of a topic that has replies: its last post is one of them, otherwise it is the first."""
    told = read_date(topic.get("last_posted_at", "")) if post.is_head and _reply_count(post, topic) else None
    return told.at if told else None


def _answered(post: Post, forum: str, slug: str) -> Reference:
    """What a reply answers: another one, or the topic; by its address, since its id is not told."""
    answered = number(post.reply_to_post_number) or 1
    user = post.reply_to_user.get("username") if isinstance(post.reply_to_user, dict) else None
    return Reference(
        relation="replied_to",
        url=urljoin(forum, f"t/{quote(slug)}/{post.topic_id}/{answered}"),
        author=text(user),
        text=text(post.topic_title),
    )
