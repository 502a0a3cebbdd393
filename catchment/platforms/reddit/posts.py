"""Converts Reddit's posts and comments to items, with their media.

What Reddit is still processing ("unprocessed") has no URL yet, and is left out until it has one. URLs are kept to the
letter: those of previews are signed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from catchment.decoders import converted
from catchment.lazy import pattern
from catchment.model import Item, Media, Reference
from catchment.platforms._common.coercion import from_seconds, number, text
from catchment.platforms.reddit.shapes import COMMENT, POST, Comment, RedditPost, entries, fullname, inner, name_of

SITE = "https://www.reddit.com/"
AUTHOR, MODERATOR = "author", "moderator"
# Marks that replace removed texts and titles.
_MARK = pattern(r"\[\s*(removed|deleted)(?: by [\w ]{1,40})?\s*\]", re.IGNORECASE)
_BY_AUTHOR = ("deleted", "author")
"""Values of `removed_by_category`; its other values name moderators of one sort or another."""
IMAGES = "i.redd.it"
_MOST_MEDIA = 500
# Longer than any text on Reddit; longer ones are not searched.
_LONGEST_WORDS = 50_000
# Emoji and stickers inside the text.
_EMOTE = "emote|"


def of_post(post: RedditPost) -> Item | None:
    """Returns the item; None if it has no id."""
    external_id = fullname(POST, post.name, post.id)
    if external_id is None:
        return None
    words, html = _with_options(*_words(post.selftext, post.selftext_html), post)
    category = text(post.removed_by_category)
    deleted_by = AUTHOR if category in _BY_AUTHOR else MODERATOR if category else None
    deleted_by = deleted_by or marked_by(post.selftext) or marked_by(post.title)
    original = _original(post)
    return Item(
        external_id,
        kind="post",
        created_at=from_seconds(post.created_utc),
        edited_at=from_seconds(post.edited),
        title=None if marked_by(post.title) else text(post.title),
        text=words,
        html=html,
        base_url=SITE,
        url=_address(post.permalink) or f"{SITE}comments/{external_id[3:]}/",
        target_url=None if post.is_self is True else _address(post.url_overridden_by_dest) or _address(post.url),
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
        media=_post_media(post) or (_post_media(original) if original else ()),
        references=(_crossposted(post, original),) if text(post.crosspost_parent) else (),
        tags=(flair,) if (flair := text(post.link_flair_text)) else (),
    )


def of_comment(comment: Comment, reply_count: int | None) -> Item | None:
    """Returns the item; None if it has no id. It has no title: its post's title is not what the comment says."""
    external_id = fullname(COMMENT, comment.name, comment.id)
    if external_id is None:
        return None
    words, html = _words(comment.body, comment.body_html)
    deleted_by = marked_by(comment.body)
    thread_id, answers = fullname(POST, comment.link_id, None), text(comment.parent_id)
    return Item(
        external_id,
        kind="comment",
        created_at=from_seconds(comment.created_utc),
        edited_at=from_seconds(comment.edited),
        text=words,
        html=html,
        base_url=SITE,
        url=_address(comment.permalink) or f"{SITE}comments/{(thread_id or '')[3:] or '_'}/_/{external_id[3:]}/",
        author=name_of(comment.author),
        author_id=text(comment.author_fullname),
        # While Reddit hides a score it says 1, for every comment.
        score=None if comment.score_hidden is True else number(comment.score),
        reply_count=reply_count,
        thread_id=thread_id,
        is_deleted=deleted_by is not None,
        deleted_by=deleted_by,
        is_pinned=comment.stickied is True,
        media=_inline(comment.media_metadata, text(comment.body)),
        references=(Reference("replied_to", external_id=answers),) if answers else (),
    )


def _words(plain: Any, html: Any) -> tuple[str | None, str | None]:
    """Returns plain text and HTML: one of them, or neither if only a removal mark is left."""
    if marked_by(plain):
        return None, None
    markup = text(html)
    return (None, markup) if markup else (text(plain), None)


def marked_by(value: Any) -> str | None:
    """Returns who removed the text, if a mark is in its place."""
    mark = _MARK.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 100 else None
    return None if mark is None else MODERATOR if mark[1].lower() == "removed" else AUTHOR


def _address(path: Any) -> str | None:
    """Returns an absolute URL: Reddit names its own pages by their path."""
    page_path = text(path)
    try:
        return urljoin(SITE, page_path) if page_path else None
    except ValueError:
        return None


def _with_options(words: str | None, html: str | None, post: RedditPost) -> tuple[str | None, str | None]:
    """Appends a poll's options; not the votes, which Reddit shows only to voters."""
    poll_options = [] if marked_by(post.selftext) else entries(inner(post.poll_data, "options"))
    options = [option for entry in poll_options if (option := text(inner(entry, "text")))]
    if not options:
        return words, html
    if words is not None:
        return "\n\n".join((words, "\n".join(options))), None
    return None, f"{html or ''}<ul>{''.join(f'<li>{escape(name, quote=False)}</li>' for name in options)}</ul>"


def _original(post: RedditPost) -> RedditPost | None:
    """Returns the crossposted original, which is included whole."""
    parents = entries(post.crosspost_parent_list)
    try:
        return converted(parents[0], RedditPost) if parents else None
    except msgspec.ValidationError:
        return None


def _crossposted(post: RedditPost, original: RedditPost | None) -> Reference:
    crossposted = original or RedditPost()
    words = None if marked_by(crossposted.selftext) else text(crossposted.selftext)
    return Reference(
        "crossposted",
        external_id=fullname(POST, post.crosspost_parent, None),
        url=_address(crossposted.permalink),
        author=name_of(crossposted.author),
        text=words or text(crossposted.title),
    )


def _post_media(post: RedditPost) -> tuple[Media, ...]:
    """Returns its own media; for a crosspost without any, those of the original."""
    return _gallery(post) or _film(post) or _post_image(post) or _inline(post.media_metadata, text(post.selftext))


def is_image(url: str | None) -> bool:
    """Whether the URL is a picture's on Reddit's own host."""
    try:
        return urlsplit(url or "").hostname == IMAGES
    except ValueError:
        return False


def _gallery(post: RedditPost) -> tuple[Media, ...]:
    return _media(
        (inner(post.media_metadata, media_id), text(entry.get("caption")))
        for entry in entries(inner(post.gallery_data, "items"))[:_MOST_MEDIA]
        if isinstance(entry, dict) and (media_id := text(entry.get("media_id")))
    )


def _film(post: RedditPost) -> tuple[Media, ...]:
    film = inner(post.secure_media, "reddit_video") or inner(post.media, "reddit_video")
    url, seconds = text(inner(film, "fallback_url")), number(inner(film, "duration"))
    if url is None:
        return ()
    width, height = number(inner(film, "width")), number(inner(film, "height"))
    duration = float(seconds) if seconds else None
    return (Media(url, "video", mime="video/mp4", width=width, height=height, duration_seconds=duration),)


def _post_image(post: RedditPost) -> tuple[Media, ...]:
    url = text(post.url_overridden_by_dest) or text(post.url)
    if url is None or not (post.post_hint == "image" or is_image(url)):
        return ()
    previews = entries(inner(post.preview, "images"))
    source = inner(previews[0] if previews else None, "source")
    return (Media(url, width=number(inner(source, "width")), height=number(inner(source, "height"))),)


def _inline(metadata: Any, words: str | None) -> tuple[Media, ...]:
    """Returns those inside the text, in its order."""
    if not isinstance(metadata, dict):
        return ()
    ids = [id_ for id_ in list(metadata)[:_MOST_MEDIA] if isinstance(id_, str) and not id_.startswith(_EMOTE)]
    # Those that the text does not name come last.
    searched = (words or "")[:_LONGEST_WORDS]
    places = {id_: at if (at := searched.find(id_)) >= 0 else len(searched) for id_ in ids}
    return _media((metadata[id_], None) for id_ in sorted(ids, key=places.__getitem__))


def _media(shown: Iterable[tuple[Any, str | None]]) -> tuple[Media, ...]:
    """Returns the media that Reddit has processed, of their metadata and captions."""
    media: list[Media] = []
    for fields, alt in shown:
        kind, mime, size = "image", text(inner(fields, "m")), inner(fields, "s")
        url = text(inner(size, "u")) or text(inner(size, "gif")) or text(inner(size, "mp4"))
        if inner(fields, "e") == "RedditVideo":
            kind, mime, size = "video", None, fields
            url = text(inner(fields, "hlsUrl")) or text(inner(fields, "dashUrl"))
        if url is not None and inner(fields, "status") == "valid":
            width, height = number(inner(size, "x")), number(inner(size, "y"))
            media.append(Media(url, kind, mime=mime, width=width, height=height, alt=alt))
    return tuple(media)
