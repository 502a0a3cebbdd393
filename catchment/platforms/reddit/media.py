"""What a post shows: images, films, the pictures of a gallery in their order, and those inside its text.

What Reddit is still working on ("unprocessed") has no address yet, and is left out until it has one. Addresses are kept
to the letter: those of previews are signed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from catchment.model import Media
from catchment.platforms.reddit.wire import Comment, Post, entries, inner, number, text

IMAGES = "i.redd.it"
_MOST = 500
# Longer than any text on Reddit; in what is longer nothing is looked for.
_LONGEST_WORDS = 50_000
# Faces and stickers that come with the letters.
_EMOTE = "emote|"


def of_post(post: Post) -> tuple[Media, ...]:
    """What it shows itself; a crosspost that shows nothing of its own, what the original shows."""
    return _gallery(post) or _film(post) or _image(post) or _inline(post.media_metadata, text(post.selftext))


def of_comment(comment: Comment) -> tuple[Media, ...]:
    return _inline(comment.media_metadata, text(comment.body))


def is_image(url: str | None) -> bool:
    """Whether the address is a picture's on Reddit's own host."""
    try:
        return urlsplit(url or "").hostname == IMAGES
    except ValueError:
        return False


def _gallery(post: Post) -> tuple[Media, ...]:
    shown = (
        (inner(post.media_metadata, told), text(one.get("caption")))
        for one in entries(inner(post.gallery_data, "items"))[:_MOST]
        if isinstance(one, dict) and (told := text(one.get("media_id")))
    )
    return _all(_medium(told, caption) for told, caption in shown)


def _film(post: Post) -> tuple[Media, ...]:
    film = inner(post.secure_media, "reddit_video") or inner(post.media, "reddit_video")
    url = text(inner(film, "fallback_url"))
    if url is None:
        return ()
    seconds = inner(film, "duration")
    return (
        Media(
            url,
            "video",
            mime="video/mp4",
            width=number(inner(film, "width")),
            height=number(inner(film, "height")),
            duration_seconds=float(seconds) if number(seconds) else None,
        ),
    )


def _image(post: Post) -> tuple[Media, ...]:
    url = text(post.url_overridden_by_dest) or text(post.url)
    if url is None or not (post.post_hint == "image" or is_image(url)):
        return ()
    previews = entries(inner(post.preview, "images"))
    source = inner(previews[0] if previews else None, "source")
    return (Media(url, width=number(inner(source, "width")), height=number(inner(source, "height"))),)


def _inline(metadata: Any, words: str | None) -> tuple[Media, ...]:
    """Those inside the text, in its order."""
    if not isinstance(metadata, dict):
        return ()
    ids = [one for one in list(metadata)[:_MOST] if isinstance(one, str) and not one.startswith(_EMOTE)]
    # Those that the text does not name come last.
    told = (words or "")[:_LONGEST_WORDS]
    places = {one: found if (found := told.find(one)) >= 0 else len(told) for one in ids}
    return _all(_medium(metadata[one]) for one in sorted(ids, key=places.__getitem__))


def _medium(told: Any, alt: str | None = None) -> Media | None:
    if inner(told, "status") != "valid":
        return None
    if inner(told, "e") == "RedditVideo":
        url, size = text(inner(told, "hlsUrl")) or text(inner(told, "dashUrl")), told
        kind, mime = "video", None
    else:
        size = inner(told, "s")
        url = text(inner(size, "u")) or text(inner(size, "gif")) or text(inner(size, "mp4"))
        kind, mime = "image", text(inner(told, "m"))
    if url is None:
        return None
    return Media(url, kind, mime=mime, width=number(inner(size, "x")), height=number(inner(size, "y")), alt=alt)


def _all(media: Iterable[Media | None]) -> tuple[Media, ...]:
    return tuple(one for one in media if one is not None)
