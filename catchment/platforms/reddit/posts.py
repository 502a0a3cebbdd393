"""What Reddit says of a post or a comment, as an item."""

from __future__ import annotations

import re
from html import escape
from typing import Any
from urllib.parse import urljoin

import msgspec

from catchment.model import Item, Reference
from catchment.platforms.reddit import media
from catchment.platforms.reddit.wire import (
    COMMENT,
    POST,
    Comment,
    Post,
    entries,
    fullname,
    inner,
    moment,
    name_of,
    number,
    text,
)

SITE = "https://www.reddit.com/"
AUTHOR, MODERATOR = "author", "moderator"
# What stands in the place of words that were taken away, and of titles.
_MARK = re.compile(r"\[\s*(removed|deleted)(?: by [\w ]{1,40})?\s*\]", re.IGNORECASE)
_BY_AUTHOR = ("deleted", "author")
"""As `removed_by_category` has it; its other words name moderators of one sort or another."""


def of_post(post: Post) -> Item | None:
    """None: it has no id."""
    external_id = fullname(POST, post.name, post.id)
    if external_id is None:
        return None
    words, html = _with_options(*_words(post.selftext, post.selftext_html), post)
    deleted_by = _taken_by(post.removed_by_category) or marked_by(post.selftext) or marked_by(post.title)
    original = _original(post)
    return Item(
        external_id,
        kind="post",
        created_at=moment(post.created_utc),
        edited_at=moment(post.edited),
        title=None if marked_by(post.title) else text(post.title),
        text=words,
        html=html,
        base_url=SITE,
        url=_address(post.permalink) or f"{SITE}comments/{external_id[3:]}/",
        target_url=None if post.is_self is True else _target(post),
        author=name_of(post.author),
        author_id=text(post.author_fullname),
        score=number(post.score),
        reply_count=number(post.num_comments),
        view_count=number(post.view_count),
        thread_id=external_id,
        is_head=True,
        is_deleted=deleted_by is not None,
        deleted_by=deleted_by,
        is_pinned=post.stickied is True,
        is_adult=post.over_18 is True,
        media=media.of_post(post) or (media.of_post(original) if original else ()),
        references=(_crossposted(post, original),) if text(post.crosspost_parent) else (),
        tags=(flair,) if (flair := text(post.link_flair_text)) else (),
    )


def of_comment(comment: Comment, reply_count: int | None) -> Item | None:
    """None: it has no id. It has no title: with its post's, a comment would say what it does not."""
    external_id = fullname(COMMENT, comment.name, comment.id)
    if external_id is None:
        return None
    words, html = _words(comment.body, comment.body_html)
    deleted_by = marked_by(comment.body)
    thread_id, answers = fullname(POST, comment.link_id, None), text(comment.parent_id)
    return Item(
        external_id,
        kind="comment",
        created_at=moment(comment.created_utc),
        edited_at=moment(comment.edited),
        text=words,
        html=html,
        base_url=SITE,
        url=_address(comment.permalink) or f"{SITE}comments/{(thread_id or '')[3:] or '_'}/_/{external_id[3:]}/",
        author=name_of(comment.author),
        author_id=text(comment.author_fullname),
        # While Reddit hides a score it says 1, of every comment.
        score=None if comment.score_hidden is True else number(comment.score),
        reply_count=reply_count,
        thread_id=thread_id,
        is_deleted=deleted_by is not None,
        deleted_by=deleted_by,
        is_pinned=comment.stickied is True,
        media=media.of_comment(comment),
        references=(Reference("replied_to", external_id=answers),) if answers else (),
    )


def _words(plain: Any, html: Any) -> tuple[str | None, str | None]:
    """Plain text and HTML: the one or the other, and neither where only a mark says that there were words."""
    if marked_by(plain):
        return None, None
    markup = text(html)
    return (None, markup) if markup else (text(plain), None)


def marked_by(value: Any) -> str | None:
    """Who took the words away, if a mark stands in their place."""
    mark = _MARK.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 100 else None
    return None if mark is None else MODERATOR if mark[1].lower() == "removed" else AUTHOR


def _taken_by(category: Any) -> str | None:
    told = text(category)
    return None if told is None else AUTHOR if told in _BY_AUTHOR else MODERATOR


def _address(path: Any) -> str | None:
    """Absolute: Reddit tells its own pages by their path."""
    told = text(path)
    try:
        return urljoin(SITE, told) if told else None
    except ValueError:
        return None


def _target(post: Post) -> str | None:
    return _address(post.url_overridden_by_dest) or _address(post.url)


def _with_options(words: str | None, html: str | None, post: Post) -> tuple[str | None, str | None]:
    """A poll says what can be chosen; not how many did, which is told to those only who did."""
    told = [] if marked_by(post.selftext) else entries(inner(post.poll_data, "options"))
    options = [option for one in told if (option := text(inner(one, "text")))]
    if not options:
        return words, html
    if words is not None:
        return "\n\n".join((words, "\n".join(options))), None
    return None, f"{html or ''}<ul>{''.join(f'<li>{escape(one, quote=False)}</li>' for one in options)}</ul>"


def _original(post: Post) -> Post | None:
    """What was crossposted, which comes along whole."""
    told = entries(post.crosspost_parent_list)
    try:
        return msgspec.convert(told[0], Post) if told else None
    except msgspec.ValidationError:
        return None


def _crossposted(post: Post, original: Post | None) -> Reference:
    found = original or Post()
    words = None if marked_by(found.selftext) else text(found.selftext)
    return Reference(
        "crossposted",
        external_id=fullname(POST, post.crosspost_parent, None),
        url=_address(found.permalink),
        author=name_of(found.author),
        text=words or text(found.title),
    )
