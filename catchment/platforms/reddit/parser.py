"""Parses Reddit's answers: listings, threads, omitted comments, items requested by id; and a community's Atom feed.

The feed is what Reddit shows without an API key. Its entries are short forms of posts: title, text, link, author, date;
no counters, no marks. An entry's content is a table made for feed readers, of which only the text and the link are the
post's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from catchment.errors import Unreadable
from catchment.lazy import pattern
from catchment.model import Answer, Item, Media, Reading, Request, Skipped
from catchment.platforms._common.coercion import text
from catchment.platforms._common.feed import read_feed
from catchment.platforms._common.json import decoded, excerpt
from catchment.platforms.reddit import posts, requests, shapes
from catchment.platforms.reddit.shapes import COMMENT, Comment, MoreComments, RedditPost
from catchment.text.printable import unescape

EMPTY_PAGE = "a page was empty although more was announced: it will be requested again"
FEED_NOTE = "read from the community's feed, without an API key: no scores, comment counts, edits or removals"
# Comments that enclose a post's own text.
_BEFORE, _AFTER = "<!-- SC_OFF -->", "<!-- SC_ON -->"
_TAG = pattern(r"<[^<>]*>")
_LINK = pattern(r'<a href="([^"<>]{1,4000})">\[link\]</a>')
_THREAD = pattern(r"/comments/([0-9a-z]{1,13})(?:/|$)")


def read(answer: Answer, asked: Request) -> Reading:
    if asked.step == requests.FEED:
        return _read_feed_answer(answer, asked)
    page = shapes.page(answer.body)
    things, left_out = shapes.flat(page.things)
    items, skipped = _items(things, is_tree=asked.step == requests.THREAD)
    unread = [Skipped(reason) for reason, count in left_out.items() for _ in range(count)]
    reading = Reading(items, skipped=(*skipped, *unread))
    if asked.step == requests.LIST:
        return _listed(reading, page, things, asked)
    if asked.step == requests.RECHECK:
        return reading.replace(gone=_gone(reading, asked))
    stubs = [thing for _, thing in things if isinstance(thing, MoreComments)]
    return reading.replace(follow=tuple(_left_out(stubs, asked)))


def _items(things: Sequence[shapes.Read], *, is_tree: bool) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    items: list[Item] = []
    skipped: list[Skipped] = []
    for raw, thing in things:
        if isinstance(thing, MoreComments):
            continue
        if isinstance(thing, Comment):
            item = posts.of_comment(thing, _reply_count(thing) if is_tree else None)
        else:
            item = posts.of_post(thing) if thing is not None else None
        if item is None:
            skipped.append(Skipped("neither post nor comment" if thing is None else "bad id", excerpt(raw)))
        else:
            items.append(item)
    return tuple(items), tuple(skipped)


def _reply_count(comment: Comment) -> int | None:
    """Returns how many replies a comment has, where all of them are shown. Only in a tree does no reply mean that there
    is none."""
    replies = shapes.replies(comment)
    if replies is None:
        return None
    kinds = [thing.kind if (thing := decoded(raw, shapes.Thing)) else None for raw in replies]
    return len(kinds) if all(kind == COMMENT for kind in kinds) else None


def _listed(reading: Reading, page: shapes.RedditPage, things: Sequence[shapes.Read], asked: Request) -> Reading:
    """Returns a page of a listing: it continues as long as Reddit names a next page, whether or not the page was
    full."""
    # On its way down to posts that are stored, the newest listing cannot end before them.
    is_above_stored = (
        asked.listing == requests.NEWEST and "after" in asked.params and asked.state.get("is_known") is True
    )
    if not page.things and is_above_stored:
        return reading.replace(is_torn=True, notes=(EMPTY_PAGE,))
    following = [requests.next_page(asked, page.after)] if page.after else []
    threads = [
        requests.thread(item.external_id, asked)
        for item in (reading.items if asked.state.get("comments") is True else ())
        if item.kind == "post" and item.reply_count != 0
    ]
    # The community's name in its own spelling.
    post = next((thing for _, thing in things if isinstance(thing, RedditPost)), None)
    name = text(post.subreddit) if post else None
    title = f"r/{name}" if name and name.lower() == asked.state.get("community") else None
    # Clears what the feed stored in the cursor while there was no API key.
    return reading.replace(follow=(*following, *threads), is_end=not following, title=title, cursor={})


def _gone(reading: Reading, asked: Request) -> tuple[str, ...]:
    """Returns the requested ids that did not come: those are gone; removed items come with a mark."""
    if reading.skipped:
        # An apparently missing item may be one that could not be parsed.
        return ()
    received = {item.external_id for item in reading.items}
    return tuple(part for part in asked.params.get("id", "").split(",") if part and part not in received)


def _left_out(stubs: Sequence[MoreComments], asked: Request) -> Iterator[Request]:
    """Yields the requests for the comments that a thread left out."""
    post_id = shapes.fullname(shapes.POST, asked.state.get("post"), None)
    if post_id is None:
        return
    ids = [comment_id for stub in stubs for entry in shapes.entries(stub.children) if (comment_id := text(entry))]
    sound = [id_ for id_ in dict.fromkeys(ids) if shapes.FULLNAME.fullmatch(f"{COMMENT}_{id_}")]
    yield from requests.stubs(post_id, sound, asked)
    for stub in stubs:
        above = shapes.fullname(COMMENT, stub.parent_id, None)
        # From the requested comment, the way leads further down, never to itself.
        if not shapes.entries(stub.children) and above and above != asked.state.get("comment"):
            yield requests.thread(post_id, asked, above)


def _read_feed_answer(answer: Answer, asked: Request) -> Reading:
    reading = read_feed(answer, asked)
    if reading is None:
        raise Unreadable("an HTML page was returned instead of a feed", "check the address in a browser")
    items = [_entry_item(item) for item in reading.items]
    skipped = [
        Skipped("bad id", entry.external_id) for entry, item in zip(reading.items, items, strict=True) if item is None
    ]
    return Reading(
        tuple(item for item in items if item is not None),
        skipped=(*reading.skipped, *skipped),
        is_torn=reading.is_torn,
        cursor={"note": FEED_NOTE},
        notes=(FEED_NOTE, *reading.notes),
    )


def _entry_item(entry: Item) -> Item | None:
    """Returns the item; None if the entry is neither a post nor a comment."""
    if not shapes.FULLNAME.fullmatch(entry.external_id):
        return None
    is_post, html = entry.external_id.startswith(shapes.POST), entry.html or ""
    own, is_ended, _ = html.partition(_BEFORE)[2].partition(_AFTER)
    words = own.strip() if is_ended else ""
    link = _LINK.search(html) if is_post else None
    target = unescape(link[1]) if link else None
    target = None if target == entry.url else target
    thread = _THREAD.search(entry.url or "")
    return Item(
        entry.external_id,
        kind="post" if is_post else "comment",
        created_at=entry.created_at,
        # A comment's title only names its author.
        title=entry.title if is_post else None,
        html=None if posts.marked_by(_TAG.sub("", words)) else words or None,
        base_url=posts.SITE,
        url=entry.url,
        target_url=target,
        author=shapes.name_of((entry.author or "").removeprefix("/u/")),
        thread_id=f"{shapes.POST}_{thread[1]}" if thread else None,
        is_head=is_post and thread is not None,
        is_partial=True,
        media=(Media(target),) if target and posts.is_image(target) else (),
    )
