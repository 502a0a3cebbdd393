"""Makes items of tweets in the form of X's own API (v2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from catchment.model import Item, Media, Reference
from catchment.platforms._common.coercion import number, text
from catchment.platforms._common.json import UnusableEntry
from catchment.platforms.x.shapes import Json, TweetPage, id_of, objects, versions_of
from catchment.text.dates import read_date

KIND = "tweet"
SITE = "https://x.com"
RELATIONS = ("retweeted", "quoted", "replied_to")
_SHORT_LINK = re.compile(r"https?://t\.co/[A-Za-z0-9]+")
_ESCAPED = re.compile(r"&(amp|lt|gt|quot|#39);")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "#39": "'"}
_UNKNOWN_LANGUAGES = ("und", "zxx", "qam", "qct", "qht", "qme", "qst", "art")
"""X's own codes for texts without a language: only links, only hashtags, …"""
_MOST_REFERENCES = 20
_LONGEST_COUNT = 16


def item_of(tweet: Any, page: TweetPage, user: tuple[str, str] = ("", "")) -> Item:
    """Returns a tweet as an item. `user`: number and name of the user whose timeline it is. Raises UnusableEntry."""
    if not isinstance(tweet, dict):
        raise UnusableEntry("not a tweet")
    number_ = id_of(tweet.get("id"))
    if not number_:
        raise UnusableEntry("no id" if tweet.get("id") in (None, "") else "bad id")
    author, display_name, author_id = _author(tweet, page, user)
    if not author:
        raise UnusableEntry("no author")
    created_at = _time(tweet)
    if created_at is None:
        raise UnusableEntry("no time")
    references = tuple(_references(tweet, page))
    original = _original(tweet, page)
    words = _text_of(original or tweet)
    media = _media_of(original or tweet, page)
    if not words and not media:
        raise UnusableEntry("no text")
    history = versions_of(tweet)
    conversation = id_of(tweet.get("conversation_id"))
    metrics = _metrics(tweet)
    if original is not None:
        # Nobody can like a retweet: its own numbers are zeros.
        metrics |= {name: count for name, count in _metrics(original).items() if count is not None}
    is_sensitive = tweet.get("possibly_sensitive")
    return Item(
        number_,
        kind=KIND,
        created_at=created_at,
        edited_at=created_at if len(history) > 1 and number_ != history[0] else None,
        text=words or None,
        url=f"{SITE}/{author}/status/{number_}",
        author=author,
        author_id=author_id or None,
        author_display_name=display_name,
        score=metrics["like_count"],
        reply_count=metrics["reply_count"],
        view_count=metrics["impression_count"],
        thread_id=page.first_versions.get(conversation, conversation) or None,
        is_head=conversation in (number_, *history),
        is_pinned=True if number_ in page.pinned else None,
        is_adult=is_sensitive if isinstance(is_sensitive, bool) else None,
        media=media,
        references=references,
        tags=_tags(original or tweet),
        aliases=tuple(dict.fromkeys(version_id for version_id in history if version_id != number_)),
        is_superseded=any(int(version_id) > int(number_) for version_id in history),
        language=_language(tweet),
    )


def each_once(items: Sequence[Item]) -> tuple[Item, ...]:
    """Returns the items, each as it is shown first; of several versions of an edited tweet, the newest."""
    shown: dict[str, Item] = {}
    for item in items:
        shown.setdefault(item.external_id, item)
    replaced = {alias for item in shown.values() for alias in item.aliases if int(alias) < int(item.external_id)}
    return tuple(item for item in shown.values() if item.external_id not in replaced)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any) -> int | None:
    # An unknown number of views may come as a list, or as an empty text.
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _LONGEST_COUNT
    count = number(int(value) if digits else value)
    return count if count is not None and count >= 0 else None


def _metrics(tweet: Json) -> dict[str, int | None]:
    metrics = tweet.get("public_metrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    return {name: _count(metrics.get(name)) for name in ("like_count", "reply_count", "impression_count")}


def _language(tweet: Json) -> str | None:
    language = text(tweet.get("lang"))
    return None if language in _UNKNOWN_LANGUAGES else language


def _author(tweet: Json, page: TweetPage, user: tuple[str, str] = ("", "")) -> tuple[str | None, str | None, str]:
    """Returns name, display name and number of the author."""
    author_id = tweet.get("author_id")
    number_ = id_of(author_id) or (author_id if isinstance(author_id, str) else "")
    profile = page.users.get(number_)
    if profile is not None and (name := text(profile.get("username"))):
        return name, text(profile.get("name")), id_of(number_)
    # The answer has only the author's number: that of the user whose timeline it is.
    return (user[1] or None if number_ and number_ == user[0] else None), None, id_of(number_)


def _time(tweet: Json) -> datetime | None:
    written = text(tweet.get("created_at"))
    dated = read_date(written) if written else None
    return dated.at if dated is not None else None


def _original(tweet: Json, page: TweetPage) -> Json | None:
    """Returns the tweet that this one repeats, if the answer has it: a retweet's own text is cut off."""
    for reference in objects(tweet.get("referenced_tweets")):
        if reference.get("type") == "retweeted":
            return page.included.get(id_of(reference.get("id")))
    return None


def _text_of(tweet: Json) -> str:
    """Returns the whole text, as it was typed: of long ones the note, with links in place of their short forms."""
    note = tweet.get("note_tweet")
    source = note if isinstance(note, dict) and isinstance(note.get("text"), str) else tweet
    words = source.get("text")
    if not isinstance(words, str):
        return ""
    words = _ESCAPED.sub(lambda escaped: _CHARACTERS[escaped[1]], words)
    links: dict[str, str] = {}
    for entities in (tweet.get("entities"), source.get("entities")):
        for link in objects(entities.get("urls")) if isinstance(entities, dict) else ():
            short, whole = text(link.get("url")), text(link.get("expanded_url"))
            if short and whole:
                links[short] = whole
    return _SHORT_LINK.sub(lambda short: links.get(short[0], short[0]), words).strip()


def _tags(tweet: Json) -> tuple[str, ...]:
    note, tags = tweet.get("note_tweet"), []
    for holder in (tweet, note if isinstance(note, dict) else {}):
        entities = holder.get("entities")
        hashtags = objects(entities.get("hashtags")) if isinstance(entities, dict) else []
        tags += [text(tag.get("tag")) for tag in hashtags]
    return tuple(dict.fromkeys(filter(None, tags)))


def _media_of(tweet: Json, page: TweetPage) -> tuple[Media, ...]:
    attachments = tweet.get("attachments")
    keys = _list(attachments.get("media_keys")) if isinstance(attachments, dict) else []
    media = [page.media[key] for key in dict.fromkeys(key for key in keys if isinstance(key, str)) if key in page.media]
    return tuple(medium for shown in media if (medium := _medium(shown)) is not None)


def _medium(shown: Json) -> Media | None:
    variants = [
        (number(variant.get("bit_rate")) or 0, url)
        for variant in objects(shown.get("variants"))
        if variant.get("content_type") == "video/mp4" and (url := text(variant.get("url")))
    ]
    is_photo = shown.get("type") == "photo"
    video = max(variants)[1] if variants and not is_photo else None
    url = video or text(shown.get("url")) or text(shown.get("preview_image_url"))
    if url is None:
        return None
    duration = number(shown.get("duration_ms"))
    return Media(
        url,
        "video" if video or not (is_photo or text(shown.get("preview_image_url")) == url) else "image",
        mime="video/mp4" if video else None,
        width=number(shown.get("width")),
        height=number(shown.get("height")),
        duration_seconds=None if duration is None else duration / 1000,
        alt=text(shown.get("alt_text")),
        external_id=text(shown.get("media_key")),
    )


def _references(tweet: Json, page: TweetPage) -> Iterator[Reference]:
    for reference in objects(tweet.get("referenced_tweets"))[:_MOST_REFERENCES]:
        relation, number_ = reference.get("type"), id_of(reference.get("id"))
        if relation not in RELATIONS or not number_:
            continue
        other = page.included.get(number_)
        if other is None:
            author = text(reference.get("username"))
            url = f"{SITE}/{author}/status/{number_}" if author else None
            yield Reference(relation, number_, url=url, author=author)
            continue
        author, display_name, _ = _author(other, page)
        # A retweet may itself be what is quoted: its original is what it says.
        original = _original(other, page) or other
        yield Reference(
            relation,
            number_,
            url=f"{SITE}/{author or 'i'}/status/{number_}",
            author=author,
            text=_text_of(original) or None,
            author_display_name=display_name,
            created_at=_time(other),
            media=_media_of(original, page),
        )
