"""Reddit's own answers: listings, threads, what stubs led to, and items that were asked for by id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from catchment.model import Answer, Item, Reading, Request, Skipped
from catchment.platforms.reddit import posts, requests, wire
from catchment.platforms.reddit.wire import COMMENT, Comment, More, Post

EMPTY_PAGE = "a page came empty where more was announced: it is asked again"
_EXCERPT = 200


def read(answer: Answer, asked: Request) -> Reading:
    page = wire.page(answer.body)
    things, left_out = wire.flat(page.things)
    items, skipped = _items(things, is_tree=asked.step == requests.THREAD)
    unread = [Skipped(reason) for reason, count in left_out.items() for _ in range(count)]
    reading = Reading(items, skipped=(*skipped, *unread))
    if asked.step == requests.LIST:
        return _listed(reading, page, _title(things, asked), asked)
    if asked.step == requests.LOOK:
        return reading.plus(gone=_gone(reading, asked))
    stubs = [thing for _, thing in things if isinstance(thing, More)]
    return reading.plus(follow=tuple(_left_out(stubs, asked)))


# ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _items(things: Sequence[wire.Read], *, is_tree: bool) -> tuple[tuple[Item, ...], tuple[Skipped, ...]]:
    items: list[Item] = []
    skipped: list[Skipped] = []
    for raw, thing in things:
        if isinstance(thing, More):
            continue
        item = _item(thing, is_tree)
        if item is None:
            reason = "neither post nor comment" if thing is None else "bad id"
            skipped.append(Skipped(reason, bytes(raw)[:_EXCERPT].decode(errors="replace")))
        else:
            items.append(item)
    return tuple(items), tuple(skipped)


def _item(thing: Post | Comment | None, is_tree: bool) -> Item | None:
    if isinstance(thing, Comment):
        return posts.of_comment(thing, _reply_count(thing) if is_tree else None)
    return posts.of_post(thing) if thing is not None else None


def _reply_count(comment: Comment) -> int | None:
    """How many answer it: told where all of them are shown. Only in a tree does no reply mean that there is none."""
    replies = wire.replies(comment)
    if replies is None:
        return None
    kinds = [thing.kind if (thing := wire.decoded(raw, wire.Thing)) else None for raw in replies]
    return len(kinds) if all(kind == COMMENT for kind in kinds) else None


# ── what follows ──────────────────────────────────────────────────────────────────────────────────────────────────


def _listed(reading: Reading, page: wire.Page, title: str | None, asked: Request) -> Reading:
    """A page of a listing: it goes on as long as Reddit says where, whether or not the page was full."""
    following = (requests.next_page(asked, page.after),) if page.after else ()
    talked_about = [item for item in reading.items if item.kind == "post" and item.reply_count != 0]
    threads = [requests.thread(item.external_id, asked) for item in talked_about] if _wants_comments(asked) else []
    if not page.things and _is_above_what_is_stored(asked):
        return reading.plus(is_torn=True, notes=(EMPTY_PAGE,))
    # What was said of it while there was no key, is over.
    return reading.plus(follow=(*following, *threads), is_end=not following, title=title, cursor={})


def _is_above_what_is_stored(asked: Request) -> bool:
    """Whether the walk is on its way down to posts that are stored: the newest cannot end before them."""
    return asked.listing == requests.NEWEST and "after" in asked.params and asked.carried.get("is_known") is True


def _wants_comments(asked: Request) -> bool:
    return asked.carried.get("comments") is True


def _title(things: Sequence[wire.Read], asked: Request) -> str | None:
    """The community's name as it writes it itself."""
    post = next((thing for _, thing in things if isinstance(thing, Post)), None)
    name = wire.text(post.subreddit) if post else None
    return f"r/{name}" if name and name.lower() == asked.carried.get("community") else None


def _gone(reading: Reading, asked: Request) -> tuple[str, ...]:
    """What was asked for and did not come is not there; what was taken away comes, and says so."""
    if reading.skipped:
        # What seems to be missing may be what could not be read.
        return ()
    came = {item.external_id for item in reading.items}
    return tuple(one for one in asked.params.get("id", "").split(",") if one and one not in came)


def _left_out(stubs: Sequence[More], asked: Request) -> Iterator[Request]:
    """The way to the comments that a thread left out."""
    post_id = wire.fullname(wire.POST, asked.carried.get("post"), None)
    if post_id is None:
        return
    ids = [told for stub in stubs for one in wire.entries(stub.children) if (told := wire.text(one))]
    known = [one for one in dict.fromkeys(ids) if wire.FULLNAME.fullmatch(f"{COMMENT}_{one}")]
    yield from requests.stubs(post_id, known, asked)
    for stub in stubs:
        above = wire.fullname(COMMENT, stub.parent_id, None)
        # From the comment that was asked for, the way leads further down, never to itself.
        if not wire.entries(stub.children) and above and above != asked.carried.get("comment"):
            yield requests.deeper(post_id, above, asked)
