"""Discourse forums: the stream of all posts, and topics with all their posts by number.

**Access.** No account if the forum is public. Use the address of the forum or of any of its pages; forums in a folder
of a site (`https://example.com/forum`) work, too. A forum behind a login needs a credential of header lines: `Api-Key:
…` and `Api-Username: …`.

**Limits.** At most one request per second, or fewer (`requests_per_second`). Every visit reads the latest posts
(`/posts.json`), fifty per page, newest first by id, down to what is stored: this proves that no post is missing, in
topics of any age. Then it reads the list of topics in order of creation down to the first day of the window
(`window_days`, in UTC), thirty per page, and the topics in it that are new or have another last reply, twenty posts per
page, up to `pages_per_run` pages of each; the next runs continue longer ones. For topics of more than 1,000 pages, only
the row in the list and what the latest posts show is stored. The forum's own limit is 200 requests per minute by
default; if it asks catchment to wait, catchment waits.

**Blind spots.** Only public posts are listed: no private messages, no closed categories. Names of categories are not
shown. Changes of a topic's views, tags and pins, and deleted posts, are noticed while the topic is inside the window,
and when its posts are rechecked (after a day, a week and a month). Likes and edits are noticed then, too, and whenever
a page with the post is read. Deleted posts leave a number without a post, and so do entries that only say that the
topic was closed or moved. Folded means that the forum hides a post, for flags or by a moderator; it then shows a
notice, and the stored text is kept. A post with an earlier date (an import) is listed where its id belongs; the walk
reads twenty posts further than necessary, so that one such post does not end it too early.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from msgspec import Raw, Struct

from catchment.errors import LoginNeeded, SlowDown, Unreadable
from catchment.messages import message
from catchment.model import (
    Answer,
    Budget,
    FailureScope,
    Forum,
    Gap,
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
    Skipped,
    Source,
    Target,
    ThreadPage,
    ThreadRow,
    WalkPlan,
)
from catchment.platforms._common import urls
from catchment.platforms._common.coercion import number, text
from catchment.platforms._common.forum import FORUM_CHINESE, PAGES_PER_RUN, REQUESTS_PER_SECOND, WINDOW_DAYS
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
"""Steps; the first two are also listings."""
FORUM = Forum(zone="UTC", floors_per_page=20, first_floor=1, stream=POSTS, names_parents=True)
BY_PAGES = "Repaired by reading the posts before the ones that were shown."
KINDS = (
    Kind(
        name="discourse_forum",
        title="Forum (Discourse)",
        what="A Discourse forum: its latest posts and topics",
        interval_minutes=60,
        example="https://meta.discourse.org",
        listings=(
            Listing(TOPICS, Order.NEWEST_FIRST, page_size=30),
            Listing(POSTS, Order.NEWEST_FIRST, page_size=50, overlap=20),
        ),
        fields=(WINDOW_DAYS, PAGES_PER_RUN, REQUESTS_PER_SECOND),
        item_kind="post",
        recheck_ages=(timedelta(days=1), timedelta(days=7), timedelta(days=30)),
        forum=FORUM,
        gap_repair=BY_PAGES,
    ),
)

CHINESE = FORUM_CHINESE | {
    BY_PAGES: "通过读取已显示帖子之前的帖子来修复。",
    "Forum (Discourse)": "论坛（Discourse）",
    "A Discourse forum: its latest posts and topics": "使用 Discourse 的论坛：最新帖子和主题",
}

HELPS = message("enter the address of a forum that runs Discourse, such as https://meta.discourse.org")
_ASK_FORUM = message("ask the forum's operators to allow programs")
_STILL_DISCOURSE = message("check in a browser whether the forum still runs Discourse")
_NO_ANSWER = message("the answer does not come from Discourse")
PAGES = re.compile(
    r"/(?:latest|top|new|unread|hot|categories|c|t|p|u|g|posts|tags?|search|about|badges|faq|login|signup|site|users?|"
    r"latest\.(?:json|rss)|posts\.(?:json|rss)|top\.(?:json|rss)|categories\.json|site\.json|about\.json)(?=/|$)"
)
"""Where the pages of a forum begin; the part before them is the folder of the forum."""
LIKE = 2
"""The id of the action "like" in every forum."""
SMALL_ACTION = 3
"""The type of a post that only says that the topic was closed, moved or the like."""
SHOWN_BEFORE = 5
"""How many of the twenty posts near a number are below it, if they exist."""
MOST_POSTS, MOST_TOPICS = 1_000, 100
"""Per answer: twenty times what Discourse sends."""
_LONGEST_COMPLAINT = 64_000
_LONGEST_WAIT = 86_400

Shape = TypeVar("Shape")


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
    cooked_hidden: Any = None
    user_deleted: Any = None
    deleted_at: Any = None
    post_type: Any = None

    @property
    def external_id(self) -> str:
        """The opening post is named by its topic: the list of topics does not know its number."""
        return f"t{self.topic_id}" if self.is_head else str(self.id)

    @property
    def is_head(self) -> bool:
        """Whether it is the first of its topic: the one with the title."""
        return self.post_number == 1

    @property
    def is_note(self) -> bool:
        """Whether it is not a post but an entry of the forum without text."""
        return number(self.post_type) == SMALL_ACTION and not text(self.cooked)

    @property
    def is_withheld(self) -> bool:
        """Whether a notice is shown instead of its text. Moderators see the text."""
        return self.hidden is True and self.cooked_hidden is not False

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


class Topic(Struct):
    """The facts of a topic, in a list or on its own page."""

    id: int
    title: Any = None
    slug: Any = None
    created_at: Any = None
    posts_count: Any = None
    highest_post_number: Any = None
    last_posted_at: Any = None
    views: Any = None
    tags: Any = None
    pinned: Any = None
    pinned_globally: Any = None
    posters: Any = None

    @property
    def reply_count(self) -> int | None:
        posts = number(self.posts_count)
        return None if posts is None else max(0, posts - 1)

    @property
    def last_reply_at(self) -> datetime | None:
        """The last post of a topic without replies is its first."""
        return _moment(self.last_posted_at) if self.reply_count else None

    @property
    def is_pinned(self) -> bool | None:
        """None: this answer does not tell."""
        if self.pinned is None and self.pinned_globally is None:
            return None
        return self.pinned is True or self.pinned_globally is True

    @property
    def tag_names(self) -> tuple[str, ...]:
        tags = self.tags if isinstance(self.tags, list) else []
        # Tags were names, and became objects with one.
        names = [text(tag.get("name") or tag.get("slug") if isinstance(tag, dict) else tag) for tag in tags]
        return tuple(name for name in names if name)

    @property
    def page_count(self) -> int | None:
        """By the highest number: numbers of deleted posts are not given again."""
        highest = number(self.highest_post_number)
        return None if highest is None else FORUM.page_of(highest)

    @property
    def opened_by(self) -> int | None:
        """The id of who opened it: the list of those who take part begins with them."""
        first = self.posters[0] if isinstance(self.posters, list) and self.posters else None
        return number(first.get("user_id")) if isinstance(first, dict) else None


class User(Struct):
    id: int
    username: Any = None
    name: Any = None


class Topics(Struct):
    topics: list[Raw]
    more_topics_url: Any = None


class LatestTopics(Struct):
    topic_list: Topics
    users: list[Raw] = []


class LatestPosts(Struct):
    latest_posts: list[Raw]


class Stream(Struct):
    posts: list[Raw]
    stream: Any = None
    """The ids of all posts that exist, in order; missing for topics with more than 10,000."""


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
    if plan.listing == POSTS:
        return [_request(source, "posts.json", POSTS)]
    return [_request(source, "latest.json", TOPICS).replace(params={"order": "created", "page": "0"})]


def floors(source: Source, thread_id: str, number: int) -> Request:
    """Requests the posts of a topic whose numbers belong on a page.

    The forum's own pages count posts that exist, so that a deletion moves all later ones up. Requested near the sixth
    number of ours, it shows five posts below that number and fifteen from it on: all of ours that exist, and more.
    """
    near = (number - 1) * FORUM.floors_per_page + FORUM.first_floor + SHOWN_BEFORE
    path = f"t/{thread_id}.json" if number == 1 else f"t/{thread_id}/{near}.json"
    request = _request(source, path, TOPIC)
    return request.replace(state={**request.state, "topic": int(thread_id), "page": number})


def reach(source: Source, gap: Gap, plan: WalkPlan, now: datetime) -> list[Request]:
    """Requests the posts below the lowest one that was shown: the forum lists them all, by number. That of an opening
    post is its second id."""
    numbers = [int(external_id) for external_id in gap.to_ids if external_id.isascii() and external_id.isdigit()]
    if not numbers:
        return []
    return [_request(source, "posts.json", POSTS).replace(params={"before": str(max(numbers))})]


def recheck(rechecks: Sequence[Recheck]) -> list[Request]:
    """Requests posts by the pages of their topics, twenty at once. One that was not there is requested by its own id,
    an opening post by its topic, which alone has title, views and tags."""
    pages: dict[tuple[int, str, int], list[Recheck]] = {}
    alone: list[Recheck] = []
    for item in rechecks:
        if item.thread_id is None or item.floor_number is None or item.is_unconfirmed:
            alone.append(item)
        else:
            page = FORUM.page_of(item.floor_number)
            pages.setdefault((item.source.id, item.thread_id, page), []).append(item)
    alone += [item for group in pages.values() if len(group) == 1 for item in group]
    return [
        *(_rechecked_page(group, page) for (_, _, page), group in pages.items() if len(group) > 1),
        *(_by_id(item) for item in alone),
    ]


def _rechecked_page(group: Sequence[Recheck], page: int) -> Request:
    assert group[0].thread_id is not None
    request = floors(group[0].source, group[0].thread_id, page)
    return request.replace(state={**request.state, "rechecked": [item.external_id for item in group]})


def _by_id(item: Recheck) -> Request:
    if item.external_id.startswith("t"):
        return floors(item.source, item.external_id[1:], 1).replace(item_id=item.external_id)
    return _request(item.source, f"posts/{item.external_id}.json", RECHECK).replace(item_id=item.external_id)


def _request(source: Source, path: str, step: str) -> Request:
    return Request(
        url=urljoin(source.target, path),
        headers={"Accept": "application/json"},
        step=step,
        listing=step if step in (POSTS, TOPICS) else "",
        state={"step": step, "forum": source.target},
        identity=Identity.OPTIONAL if source.credential else Identity.NONE,
        credential=source.credential,
    )


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """Returns the forum's own error for a request."""
    if wall := wall_refusal(answer, _ASK_FORUM):
        return wall
    is_complaint = answer.status >= 400 and len(answer.body) <= _LONGEST_COMPLAINT
    complaint = decoded(answer.body, DiscourseErrorBody) if is_complaint else None
    if complaint is None:
        return None
    if complaint.error_type == "rate_limit" or answer.status == 429:
        seconds = complaint.extras.get("wait_seconds") if isinstance(complaint.extras, dict) else None
        is_sound = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < _LONGEST_WAIT
        retry_at = answer.answered_at + timedelta(seconds=seconds) if is_sound and seconds is not None else None
        error_429 = SlowDown("the forum asks for fewer requests", "it will be requested again later", retry_at=retry_at)
        return Refusal(error_429, blames=FailureScope.HOST)
    if complaint.error_type in ("not_logged_in", "invalid_access") and answer.status in (401, 403):
        error_403 = LoginNeeded(
            "the forum is not public, or the credential is not accepted", "add or renew a credential for it"
        )
        return Refusal(error_403, blames=FailureScope.CREDENTIAL if request.credential else FailureScope.REQUEST)
    return None


def read(answer: Answer, request: Request) -> Reading:
    return READERS.get(request.state.get("step", POSTS), _posts)(answer, request)


def _decoded(answer: Answer, shape: type[Shape]) -> Shape:
    return decode_answer(answer.body, shape, _NO_ANSWER, _STILL_DISCOURSE)


def _topics(answer: Answer, request: Request) -> Reading:
    """Parses a page of the list of topics, in order of creation."""
    latest = _decoded(answer, LatestTopics)
    raws, page = latest.topic_list.topics[:MOST_TOPICS], int(request.params.get("page", "0"))
    if not raws and page == 0:
        raise Unreadable("the forum shows no topics at all", "check in a browser whether its categories are public")
    users = {user.id: user for raw in latest.users[:MOST_POSTS] if (user := decoded(raw, User)) is not None}
    topics: dict[str, Topic] = {}

    def read_topic(raw: Raw) -> Item:
        topic = decode_entry(raw, Topic, "a topic")
        topics[str(topic.id)] = topic
        return _row(topic, users, _forum(request))

    items, skipped = read_each(raws, read_topic)
    has_more = bool(raws) and bool(text(latest.topic_list.more_topics_url))
    follow = (request.replace(params={**request.params, "page": str(page + 1)}),) if has_more else ()
    return Reading(
        items,
        threads=tuple(
            ThreadRow(id_, _moment(topic.last_posted_at), topic.page_count, is_out_of_order=topic.is_pinned is True)
            for id_, topic in topics.items()
        ),
        skipped=skipped,
        follow=follow,
        is_end=not follow,
    )


def _posts(answer: Answer, request: Request) -> Reading:
    """Parses a page of the latest posts."""
    before = int(request.params.get("before", "0")) or None
    raws = _decoded(answer, LatestPosts).latest_posts[:MOST_POSTS]
    if not raws and before is None:
        raise Unreadable("the forum shows no posts at all", "check in a browser whether its categories are public")
    posts, skipped = _each_post(raws)
    ids = [post.id for post in posts]
    below = [id_ for id_ in ids if before is None or id_ < before]
    if not below and any(before is not None and id_ > before for id_ in ids):
        return Reading(skipped=skipped, is_end=False, notes=("its pages lead back to one that was read",))
    forum, lowest = _forum(request), min(below, default=None)
    # Older forums repeat the post from which the next page was requested.
    items = tuple(_item(post, forum) for post in posts if (before is None or post.id < before) and not post.is_note)
    # The next page begins below the lowest id of this one; where there is none below, the list is at its end.
    follow = (request.replace(params={"before": str(lowest)}),) if lowest is not None and lowest > 1 else ()
    return Reading(items, skipped=skipped, follow=follow, is_end=not follow)


def _rechecked_post(answer: Answer, request: Request) -> Reading:
    posts, skipped = _each_post([Raw(answer.body)])
    return Reading(tuple(_item(post, _forum(request)) for post in posts), skipped=skipped)


def _topic(answer: Answer, request: Request) -> Reading:
    """Parses a page of a topic: of the posts that the answer shows, those whose numbers belong on the page."""
    topic = _decoded(answer, WholeTopic)
    if topic.id != request.state.get("topic", topic.id):
        raise Unreadable(
            "the answer contains a different topic from the one requested", "check in a browser whether it was moved"
        )
    page = int(request.state.get("page", 1))
    first = FORUM.first_floor + (page - 1) * FORUM.floors_per_page
    numbers = range(first, first + FORUM.floors_per_page)
    posts, skipped = _each_post(topic.post_stream.posts[:MOST_POSTS])
    ours = [post for post in posts if post.post_number in numbers and not post.is_note]
    is_whole = not skipped and _covers(topic, posts, numbers)
    shown = {post.post_number for post in ours}
    last = min(numbers[-1], number(topic.highest_post_number) or max(shown, default=0))
    reading = Reading(
        tuple(_item(post, _forum(request), topic) for post in ours),
        thread_page=ThreadPage(
            str(topic.id),
            page,
            page_count=topic.page_count,
            holes=tuple(absent for absent in range(first, last + 1) if absent not in shown) if is_whole else (),
            last_reply_at=_moment(topic.last_posted_at),
        ),
        skipped=skipped,
    )
    ids = {post.external_id for post in ours}
    absent_ids = tuple(id_ for id_ in request.state.get("rechecked", ()) if id_ not in ids)
    return reading.replace(gone=absent_ids if is_whole else ())


def _covers(topic: WholeTopic, posts: Sequence[DiscoursePost], numbers: range) -> bool:
    """Whether every post that exists with one of these numbers must be among the posts shown.

    They are a stretch of the stream, which lists all posts that exist, and it reaches beyond the numbers on both sides,
    or to the end of the stream.
    """
    if not posts:
        return False
    lowest, highest = min(post.post_number for post in posts), max(post.post_number for post in posts)
    is_begin, is_end = lowest <= numbers[0], highest >= numbers[-1]
    stream = topic.post_stream.stream
    if isinstance(stream, list):
        places = {id_: place for place, id_ in enumerate(stream) if isinstance(id_, int)}
        shown = sorted(places.get(post.id, -1) for post in posts)
        if shown != list(range(shown[0], shown[0] + len(shown))) or shown[0] < 0:
            return False
        is_begin, is_end = is_begin or shown[0] == 0, is_end or shown[-1] == len(stream) - 1
    else:
        is_end = is_end or highest >= (number(topic.highest_post_number) or 0)
    return is_begin and is_end


READERS = {POSTS: _posts, TOPICS: _topics, RECHECK: _rechecked_post, TOPIC: _topic}


def _forum(request: Request) -> str:
    return str(request.state["forum"]) if "forum" in request.state else urljoin(request.url, ".")


def _moment(value: Any) -> datetime | None:
    date = read_date(text(value) or "")
    return date.at if date else None


def _each_post(raws: Sequence[Raw]) -> tuple[list[DiscoursePost], tuple[Skipped, ...]]:
    """Returns the posts, each once."""
    posts: dict[int, DiscoursePost] = {}

    def read_post(raw: Raw) -> Item:
        post = decode_entry(raw, DiscoursePost, "a post")
        posts.setdefault(post.id, post)
        return Item(post.external_id)

    _, skipped = read_each(raws, read_post)
    return list(posts.values()), skipped


def _topic_url(forum: str, id_: int, slug: Any) -> str:
    return urljoin(forum, f"t/{quote(text(slug) or '-')}/{id_}/")


def _row(topic: Topic, users: Mapping[int, User], forum: str) -> Item:
    """Returns the row of a topic in the list as its opening post, without its text."""
    author = users.get(topic.opened_by or 0)
    return Item(
        external_id=f"t{topic.id}",
        kind="post",
        created_at=_moment(topic.created_at),
        title=text(topic.title),
        base_url=forum,
        url=f"{_topic_url(forum, topic.id, topic.slug)}1",
        author=text(author.username) if author else None,
        author_id=str(author.id) if author else None,
        author_display_name=text(author.name) if author else None,
        reply_count=topic.reply_count,
        view_count=number(topic.views),
        last_reply_at=topic.last_reply_at,
        thread_id=str(topic.id),
        floor_number=1,
        is_head=True,
        is_pinned=topic.is_pinned,
        lacks_text=True,
        tags=topic.tag_names,
    )


def _item(post: DiscoursePost, forum: str, topic: Topic | None = None) -> Item:
    """Returns a post; what belongs to the topic is known of an opening post on the topic's own page."""
    # `updated_at` moves for many reasons; the version shows that the text was changed.
    is_edited = (number(post.version) or 1) > 1
    page = _topic_url(forum, post.topic_id, post.topic_slug)
    user = post.reply_to_user.get("username") if isinstance(post.reply_to_user, dict) else None
    # What a reply answers, another one or the topic, is named by its number. Only the opening post's id follows from
    # it.
    answered_number = number(post.reply_to_post_number) or 1
    answered = Reference(
        relation="replied_to",
        external_id=f"t{post.topic_id}" if answered_number == 1 else None,
        url=f"{page}{answered_number}",
        author=text(user),
        text=text(post.topic_title),
    )
    item = Item(
        external_id=post.external_id,
        kind="post",
        created_at=_moment(post.created_at),
        edited_at=_moment(post.updated_at) if is_edited else None,
        html=None if post.is_deleted or post.is_withheld else text(post.cooked),
        base_url=forum,
        url=f"{page}{post.post_number}",
        author=text(post.username),
        author_id=str(post.user_id) if number(post.user_id) is not None else None,
        author_display_name=text(post.name),
        score=post.likes(LIKE),
        thread_id=str(post.topic_id),
        floor_number=post.post_number,
        is_head=post.is_head,
        is_deleted=post.is_deleted,
        is_folded=post.hidden is True,
        # The text that is stored stays.
        lacks_text=post.is_withheld and not post.is_deleted,
    )
    if not post.is_head:
        # A reply has no title: with its topic's, a renamed topic would be an edit of every post in it.
        return item.replace(
            reply_count=number(post.reply_count),
            view_count=number(post.reads),
            parent_floor=answered_number,
            references=(answered,),
        )
    item = item.replace(title=text(post.topic_title), aliases=(str(post.id),))
    if topic is None:
        # Of a topic all replies, not those to its first post alone.
        posts = number(post.posts_count)
        return item.replace(reply_count=None if posts is None else max(0, posts - 1))
    return item.replace(
        title=item.title or text(topic.title),
        reply_count=topic.reply_count,
        view_count=number(topic.views),
        last_reply_at=topic.last_reply_at,
        is_pinned=topic.is_pinned,
        tags=topic.tag_names,
    )
