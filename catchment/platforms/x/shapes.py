"""Decodes answers into pages of tweets in the form of X's own API (v2). Answers of TwitterAPI.io are converted into it,
whatever envelope they come in; so there is one reader for both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from catchment.errors import Unreadable
from catchment.model import Record
from catchment.platforms._common.coercion import MOST_ENTRIES
from catchment.platforms._common.json import without_half_pairs

Json = dict[str, Any]
_MEDIA_PREFIXES = {"photo": "3", "video": "7", "animated_gif": "16"}
"""Of X's media keys, which TwitterAPI.io gives without them."""
_DEEPEST = 3
"""A quoted tweet quotes another one, and so on: what lies deeper is known by its id alone."""


class TweetPage(Record, frozen=True):
    """A page in the form of the v2 API: tweets, and what they refer to, by id."""

    tweets: tuple[Any, ...] = ()
    users: dict[str, Json] = {}
    included: dict[str, Json] = {}
    media: dict[str, Json] = {}
    cursor: str = ""
    """Empty: no further page was announced."""
    pinned: frozenset[str] = frozenset()
    broken: int = 0
    """Lines of a body in JSON lines that could not be decoded."""
    has_data: bool = False
    errors: tuple[Json, ...] = ()
    first_versions: dict[str, str] = {}
    """By the id of a later version of an edited tweet: that of the first one. An edit begins a conversation of its own;
    replies to the versions belong together."""


def decoded_documents(body: bytes) -> tuple[list[Any], int]:
    """Returns the JSON documents of a body: one, or one per line; and how many lines are broken. Empty: none is
    whole."""
    body = without_half_pairs(body)
    try:
        return [msgspec.json.decode(body)], 0
    except (msgspec.MsgspecError, RecursionError, ValueError):
        pass
    lines = [line for line in body.splitlines() if line.strip()]
    documents, broken = [], 0
    for line in lines if len(lines) > 1 else ():
        try:
            documents.append(msgspec.json.decode(line))
        except (msgspec.MsgspecError, RecursionError, ValueError):
            broken += 1
    return [document for document in documents if isinstance(document, dict)], broken


def page_of(body: bytes) -> TweetPage:
    """Returns the page in an answer. Raises Unreadable."""
    documents, broken = decoded_documents(body)
    pages = [_page(document) for document in documents]
    if not pages:
        raise Unreadable("the answer is not a page of posts", "the service may have changed its format")
    page = pages[0]
    for other in pages[1:]:
        page = page.replace(
            tweets=(*page.tweets, *other.tweets),
            users=page.users | other.users,
            included=page.included | other.included,
            media=page.media | other.media,
            # A line of errors says nothing about further pages.
            cursor=other.cursor if other.has_data or not page.has_data else page.cursor,
            pinned=page.pinned | other.pinned,
            has_data=page.has_data or other.has_data,
            errors=(*page.errors, *other.errors),
        )
    return page.replace(broken=broken, first_versions=_first_versions((*page.tweets, *page.included.values())))


def _first_versions(tweets: Iterable[Any]) -> dict[str, str]:
    histories = (versions_of(tweet) for tweet in tweets if isinstance(tweet, dict))
    return {later: history[0] for history in histories for later in history[1:]}


def versions_of(tweet: Json) -> list[str]:
    """Returns the ids of all versions of a tweet, the first one first."""
    history = tweet.get("edit_history_tweet_ids")
    return [version_id for version_id in map(id_of, history) if version_id] if isinstance(history, list) else []


def tweet_count(documents: list[Any]) -> int:
    """Returns how many tweets an answer has, usable or not: that is the number charged for."""
    return sum(len(_tweets_of(document) or ()) for document in documents if isinstance(document, dict))


def _page(document: Any) -> TweetPage:
    if not isinstance(document, dict):
        raise Unreadable("the answer is not a page of posts", "the service may have changed its format")
    listed = _tweets_of(document)
    if listed is None:
        return TweetPage(errors=tuple(objects(document.get("errors"))), cursor=_cursor(document))
    tweets = listed[:MOST_ENTRIES]
    if not any(_is_flat(tweet) for tweet in tweets) and not _is_envelope(document):
        return _v2_page(document, tweets)
    return _converted(document, tweets)


def _tweets_of(document: Json) -> list[Any] | None:
    """Returns the list of tweets, wherever the envelope has it; None: there is none."""
    data = document.get("data")
    inner = data.get("tweets") if isinstance(data, dict) else None
    for tweets in (document.get("tweets"), inner, data):
        if isinstance(tweets, list):
            return tweets
    if isinstance(data, dict) and "id" in data and "text" in data:
        return [data]
    # A tweet by itself, without any envelope.
    return [document] if "id" in document and "text" in document else None


def _is_envelope(document: Json) -> bool:
    """Whether it is one of TwitterAPI.io's, which may have no tweet by which to tell."""
    data = document.get("data")
    return "tweets" in document or "has_next_page" in document or (isinstance(data, dict) and "tweets" in data)


def _is_flat(tweet: Any) -> bool:
    return isinstance(tweet, dict) and ("createdAt" in tweet or isinstance(tweet.get("author"), dict))


def _v2_page(document: Json, tweets: list[Any]) -> TweetPage:
    includes = document.get("includes")
    includes = includes if isinstance(includes, dict) else {}
    return TweetPage(
        tuple(tweets),
        _by(includes.get("users"), "id"),
        _by(tweets, "id") | _by(includes.get("tweets"), "id"),
        _by(includes.get("media"), "media_key"),
        _cursor(document),
        has_data=True,
        errors=tuple(objects(document.get("errors"))),
    )


def _cursor(document: Json) -> str:
    meta = document.get("meta")
    token = meta.get("next_token") if isinstance(meta, dict) else None
    return token if isinstance(token, str) else ""


def objects(values: Any) -> list[Json]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _by(values: Any, name: str) -> dict[str, Json]:
    return {key: value for value in objects(values) if (key := id_of(value.get(name)) or _text(value.get(name)))}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def id_of(value: Any) -> str:
    """Returns an id as digits; empty for anything else. A number that went through a float is not an id any more."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value > 0 else ""
    text = value.strip() if isinstance(value, str) else ""
    return text if text.isascii() and text.isdigit() and len(text) <= 20 and text.strip("0") else ""


# TwitterAPI.io


def _converted(document: Json, tweets: list[Any]) -> TweetPage:
    data = document.get("data")
    inner = data if isinstance(data, dict) else {}
    pin = inner.get("pin_tweet") or document.get("pin_tweet")
    users: dict[str, Json] = {}
    included: dict[str, Json] = {}
    media: dict[str, Json] = {}
    pinned = {id_of(pin.get("id"))} if isinstance(pin, dict) else set()
    pinned |= {id_of(tweet.get("id")) for tweet in objects(tweets) if _is_pinned(tweet)}
    shown = {id_of(tweet.get("id")) for tweet in objects(tweets)}
    extra = [pin] if isinstance(pin, dict) and id_of(pin.get("id")) not in shown else []
    converted = [_tweet(tweet, users, included, media) for tweet in (*extra, *tweets)]
    return TweetPage(
        tuple(converted),
        users,
        # A reply says only which post it answers; that may stand on the same page.
        _by(converted, "id") | included,
        media,
        _flat_cursor(document if "has_next_page" in document or "next_cursor" in document else inner),
        frozenset(pinned - {""}),
        has_data=True,
    )


def _flat_cursor(level: Json) -> str:
    """Returns the next cursor. The pair is next to the tweets or around them. A cursor by itself is followed: a page
    too many costs little, one too few is a loss that nobody notices."""
    cursor = level.get("next_cursor")
    return cursor if isinstance(cursor, str) and level.get("has_next_page", True) is True else ""


def _is_pinned(tweet: Json) -> bool:
    """Whether its author has pinned it: such a tweet may stand above newer ones."""
    author = tweet.get("author")
    pinned = author.get("pinnedTweetIds") if isinstance(author, dict) else None
    is_named = isinstance(pinned, list) and id_of(tweet.get("id")) in map(id_of, pinned)
    return tweet.get("isPinned") is True or is_named


def _tweet(
    tweet: Any, users: dict[str, Json], included: dict[str, Json], media: dict[str, Json], depth: int = 0
) -> Any:
    """Returns a tweet in v2 form; its author, media and the tweets within it are added to the others."""
    if not isinstance(tweet, dict):
        return tweet
    entities = tweet.get("entities")
    entities = entities if isinstance(entities, dict) else {}
    attached = _media_of(tweet)
    media |= attached
    references: list[Json] = []
    for name, relation in (("retweeted_tweet", "retweeted"), ("quoted_tweet", "quoted")):
        other = tweet.get(name)
        if isinstance(other, dict) and id_of(other.get("id")):
            references.append({"type": relation, "id": id_of(other["id"])})
            if depth < _DEEPEST:
                included[id_of(other["id"])] = _tweet(other, users, included, media, depth + 1)
    if parent := id_of(tweet.get("inReplyToId")):
        references.append({"type": "replied_to", "id": parent, "username": tweet.get("inReplyToUsername")})
    media_urls = [
        {"url": entry.get("url"), "expanded_url": entry.get("expanded_url")} for entry in _media_entries(tweet)
    ]
    return {
        "id": tweet.get("id"),
        "text": tweet.get("text"),
        "created_at": tweet.get("createdAt"),
        "author_id": _author(tweet.get("author"), users),
        "conversation_id": tweet.get("conversationId"),
        "lang": tweet.get("lang"),
        "url": tweet.get("url"),
        "possibly_sensitive": tweet.get("possiblySensitive"),
        # None of the recorded answers says it; in case one does, in the spelling of either API.
        "edit_history_tweet_ids": tweet.get("editHistoryTweetIds") or tweet.get("edit_history_tweet_ids"),
        "public_metrics": {
            "like_count": tweet.get("likeCount"),
            "reply_count": tweet.get("replyCount"),
            "impression_count": tweet.get("viewCount"),
        },
        "entities": {
            "urls": [*objects(entities.get("urls")), *media_urls],
            "hashtags": [{"tag": tag.get("text") or tag.get("tag")} for tag in objects(entities.get("hashtags"))],
        },
        "attachments": {"media_keys": list(attached)},
        "referenced_tweets": references,
    }


def _author(author: Any, users: dict[str, Json]) -> str:
    if not isinstance(author, dict):
        return ""
    name = _text(author.get("userName"))
    number = id_of(author.get("id")) or name
    if number:
        users[number] = {"id": number, "username": name, "name": author.get("name")}
    return number


def _media_entries(tweet: Json) -> list[Json]:
    entities = tweet.get("extendedEntities")
    return objects(entities.get("media")) if isinstance(entities, dict) else []


def _media_of(tweet: Json) -> dict[str, Json]:
    media: dict[str, Json] = {}
    for position, entry in enumerate(_media_entries(tweet)):
        kind, video = _text(entry.get("type")), entry.get("video_info")
        video = video if isinstance(video, dict) else {}
        size = entry.get("original_info")
        size = size if isinstance(size, dict) else {}
        number = id_of(entry.get("id_str")) or f"{id_of(tweet.get('id'))}{position}"
        media[f"{_MEDIA_PREFIXES.get(kind, '0')}_{number}"] = {
            "media_key": f"{_MEDIA_PREFIXES.get(kind, '0')}_{number}",
            "type": kind,
            "url": entry.get("media_url_https") if kind == "photo" else None,
            "preview_image_url": entry.get("media_url_https"),
            "width": size.get("width"),
            "height": size.get("height"),
            "alt_text": entry.get("ext_alt_text"),
            "duration_ms": video.get("duration_millis"),
            "variants": [{**variant, "bit_rate": variant.get("bitrate")} for variant in objects(video.get("variants"))],
        }
    return media
