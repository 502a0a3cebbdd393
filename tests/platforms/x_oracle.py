"""What an answer of X says, read naively: no page, no forms, only objects that are found by their ids.

Two uses: recorded answers must give exactly what `post_of` says; what mutated ones give must be `supported` by them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from catchment.model import Item

SHORT = re.compile(r"https?://t\.co/[A-Za-z0-9]+")
VIDEO = "video/mp4"
Json = dict[str, Any]
Post = dict[str, Any]


def documents(body: bytes) -> list[Any]:
    """The documents of a body: one, or those of its lines that are whole. None: it cannot be told."""
    try:
        return [json.loads(body)]
    except (ValueError, RecursionError):
        pass
    found = []
    for line in body.splitlines():
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found


def objects(value: Any) -> Iterator[Json]:
    """Every object inside, however deep."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
        if isinstance(found, dict | list):
            waiting += found.values() if isinstance(found, dict) else found


def id_of(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""


def time_of(value: Any) -> datetime | None:
    for read in (datetime.fromisoformat, lambda text: datetime.strptime(text, "%a %b %d %H:%M:%S %z %Y")):
        try:
            return read(value)
        except (TypeError, ValueError):
            continue
    return None


# ── exactly, of answers that are as they should be ────────────────────────────────────────────────────────────────


class Known:
    """The tweets, users and media of an answer, by id."""

    def __init__(self, found: list[Any]) -> None:
        self.tweets: dict[str, Json] = {}
        self.users: dict[str, Json] = {}
        self.media: dict[str, Json] = {}
        for shown in objects(found):
            if "text" in shown and "id" in shown:
                self.tweets[shown["id"]] = shown
            elif "username" in shown and "name" in shown:
                self.users[shown["id"]] = shown
            elif "media_key" in shown and "type" in shown:
                self.media[shown["media_key"]] = shown


def listed(document: Json) -> list[Json]:
    data = document.get("data")
    if isinstance(data, dict) and "tweets" not in data:
        return [data]
    tweets = document.get("tweets") or (data["tweets"] if isinstance(data, dict) else data)
    return tweets if tweets is not None else [document]


def post_of(tweet: Json, known: Known, *, with_references: bool = True) -> Post:
    """What a tweet of either form says."""
    references = list(_references(tweet))
    original = next((known.tweets.get(id_) for relation, id_ in references if relation == "retweeted"), None)
    author = tweet.get("author") or known.users.get(tweet.get("author_id", ""), {})
    said = original or tweet
    post = {
        "id": tweet["id"],
        "at": time_of(tweet.get("created_at") or tweet.get("createdAt")),
        "author": author.get("username") or author.get("userName"),
        "name": author.get("name"),
        "text": text_of(said),
        "media": media_of(said, known),
    }
    if not with_references:
        return post
    shown = []
    for relation, id_ in references:
        other = known.tweets.get(id_)
        shown.append((relation, id_, post_of(other, known, with_references=False) if other else None))
    return post | {"references": shown, "likes": likes_of(said)}


def _references(tweet: Json) -> Iterator[tuple[str, str]]:
    yield from ((to["type"], to["id"]) for to in tweet.get("referenced_tweets") or [])
    for relation in ("retweeted", "quoted"):
        if isinstance(other := tweet.get(f"{relation}_tweet"), dict):
            yield relation, other["id"]
    if tweet.get("inReplyToId"):
        yield "replied_to", tweet["inReplyToId"]


def likes_of(tweet: Json) -> int | None:
    return tweet["likeCount"] if "likeCount" in tweet else (tweet.get("public_metrics") or {}).get("like_count")


def text_of(tweet: Json) -> str:
    entities = tweet.get("entities") or {}
    links = {link["url"]: link["expanded_url"] for link in entities.get("urls") or [] if "expanded_url" in link}
    extended = (tweet.get("extendedEntities") or {}).get("media") or []
    links |= {medium["url"]: medium["expanded_url"] for medium in extended}
    text = unescaped(tweet["text"])
    for short in sorted(links, key=len, reverse=True):
        text = text.replace(short, links[short])
    return text.strip()


def unescaped(text: str) -> str:
    for escaped, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&")):
        text = text.replace(escaped, character)
    return text


def media_of(tweet: Json, known: Known) -> list[str]:
    keys = (tweet.get("attachments") or {}).get("media_keys") or []
    shown = [known.media[key] for key in keys if key in known.media]
    flat = (tweet.get("extendedEntities") or {}).get("media") or []
    return [url for medium in (*shown, *flat) if (url := _url_of(medium))]


def _url_of(medium: Json) -> str | None:
    variants = medium.get("variants") or (medium.get("video_info") or {}).get("variants") or []
    films = [variant for variant in variants if variant["content_type"] == VIDEO]
    if films and medium["type"] != "photo":
        return max(films, key=lambda film: film.get("bit_rate") or film.get("bitrate") or 0)["url"]
    return (
        medium.get("url")
        if "media_key" in medium and medium.get("url")
        else (medium.get("preview_image_url") or medium.get("media_url_https"))
    )


# ── whether it can be right, of any answer ────────────────────────────────────────────────────────────────────────


def unsupported(body: bytes, item: Item, user: tuple[str, str]) -> str | None:
    """Returns what an item says that no object of its id supports; None: nothing. `user`: the number and the name of
    the one whose timeline it is."""
    found = list(objects(documents(body)))
    tweets = [shown for shown in found if id_of(shown.get("id")) == item.external_id]
    if not tweets:
        return "no object has its id"
    if not any(item.author in _authors(tweet, found, user) for tweet in tweets):
        return f"the author {item.author}"
    times = [time_of(tweet.get(name)) for tweet in tweets for name in ("created_at", "createdAt") if name in tweet]
    if None not in times and item.created_at not in times:
        return f"the time {item.created_at}"
    if item.text and not any(_is_text(item.text, said) for tweet in tweets for said in _said(tweet, found)):
        return f"the text {item.text[:80]!r}"
    for to in item.references:
        if not any((to.relation, to.external_id) in _ids_referred(tweet) for tweet in tweets):
            return f"that it has {to.relation} {to.external_id}"
        others = [shown for shown in found if id_of(shown.get("id")) == to.external_id]
        if to.text and not any(_is_text(to.text, said) for other in others for said in _said(other, found)):
            return f"the text of {to.external_id}: {to.text[:80]!r}"
        if to.author and to.author not in _authors_referred(tweets, others, found):
            return f"the author of {to.external_id}: {to.author}"
        times = [time_of(other.get(name)) for other in others for name in ("created_at", "createdAt") if name in other]
        if to.created_at and None not in times and to.created_at not in times:
            return f"the time of {to.external_id}: {to.created_at}"
    links = {value.strip() for shown in found for value in shown.values() if isinstance(value, str)}
    shown_media = [*item.media, *(medium for to in item.references for medium in to.media)]
    return next((f"the medium {medium.url}" for medium in shown_media if medium.url not in links), None)


def _authors_referred(tweets: list[Json], others: list[Json], found: list[Json]) -> set[str]:
    """The names of those who may have written what these tweets refer to."""
    named = {name.strip() for tweet in tweets for name in _names_answered(tweet)}
    return named.union(*(_authors(other, found, ("", "")) for other in others))


def _names_answered(tweet: Json) -> list[str]:
    answered = [to.get("username") for to in _objects_in(tweet.get("referenced_tweets"))]
    return [name for name in (tweet.get("inReplyToUsername"), *answered) if isinstance(name, str)]


def _authors(tweet: Json, found: list[Json], user: tuple[str, str]) -> set[str]:
    author = tweet.get("author")
    number = id_of(author.get("id")) if isinstance(author, dict) else id_of(tweet.get("author_id"))
    holders = [shown for shown in found if number and id_of(shown.get("id")) == number]
    holders += [author] if isinstance(author, dict) else []
    names = [holder.get(key) for holder in holders for key in ("username", "userName")]
    names += [user[1]] if number == user[0] else []
    return {name.strip() for name in names if isinstance(name, str)}


def _said(tweet: Json, found: list[Json]) -> Iterator[str]:
    """The texts that a tweet may say: its own, in whole, and that of the one that it repeats."""
    repeated = {id_ for relation, id_ in _ids_referred(tweet) if relation == "retweeted"}
    originals = [shown for shown in found if id_of(shown.get("id")) in repeated] if repeated else []
    for said in (tweet, *originals):
        note = said.get("note_tweet")
        for holder in (said, note if isinstance(note, dict) else {}):
            if isinstance(text := holder.get("text"), str):
                yield text


def _is_text(text: str, said: str) -> bool:
    """Whether it is that text, whatever its links were replaced by."""
    parts = ["".join(unescaped(part).split()) for part in SHORT.split(said)]
    written = "".join(text.split())
    if len(parts) == 1:
        return written == parts[0]
    if not (written.startswith(parts[0]) and written.endswith(parts[-1])):
        return False
    at = len(parts[0])
    for part in parts[1:]:
        at = written.find(part, at) + len(part) if part in written[at:] else -1
        if at < 0:
            return False
    return True


def _ids_referred(tweet: Json) -> set[tuple[str, str]]:
    listed_ = tweet.get("referenced_tweets")
    pairs = {
        (to["type"], id_of(to.get("id")))
        for to in (listed_ if isinstance(listed_, list) else ())
        if isinstance(to, dict) and isinstance(to.get("type"), str)
    }
    for relation in ("retweeted", "quoted"):
        if isinstance(other := tweet.get(f"{relation}_tweet"), dict):
            pairs.add((relation, id_of(other.get("id"))))
    return pairs | {("replied_to", id_of(tweet.get("inReplyToId")))}


def plain_ids(body: bytes) -> set[str]:
    """The ids of tweets that lack nothing: no reader may leave them out. Only of answers of one form."""
    found = documents(body)
    if len(found) != 1 or not isinstance(document := found[0], dict):
        return set()
    data = document.get("data")
    lists = (document.get("tweets"), data.get("tweets") if isinstance(data, dict) else None, data)
    tweets = next((shown for shown in lists if isinstance(shown, list)), [])
    are_flat = {"createdAt" in tweet or isinstance(tweet.get("author"), dict) for tweet in tweets if _is_object(tweet)}
    is_envelope = "tweets" in document or "has_next_page" in document or (_is_object(data) and "tweets" in data)
    if len(are_flat) != 1 or (are_flat == {False} and is_envelope):
        return set()
    includes = document.get("includes")
    users = includes.get("users") if _is_object(includes) else None
    # Authors stand in the tweets themselves, or beside them.
    known = list(objects(document)) if are_flat == {True} else [*filter(_is_object, users)] if _is_list(users) else []
    return {id_of(tweet["id"]) for tweet in tweets if _is_object(tweet) and _is_plain(tweet, known)}


def plain_references(body: bytes) -> set[tuple[str, str, str]]:
    """Where tweets that lack nothing refer to others that lack nothing: their ids and relations. No reader may leave
    out what the others say. Only of tweets that stand in the answer once."""
    found = list(objects(documents(body)))
    ids = plain_ids(body)
    shown_at = Counter(id_of(shown.get("id")) for shown in found)
    tweets = [shown for shown in found if id_of(shown.get("id")) in ids and shown_at[id_of(shown.get("id"))] == 1]
    includes = next((shown["includes"] for shown in found if _is_object(shown.get("includes"))), {})
    beside = {id_of(other.get("id")): other for other in _objects_in(includes.get("tweets"))}
    users = _objects_in(includes.get("users"))
    resolved = set()
    for tweet in tweets:
        id_, quoted = id_of(tweet["id"]), tweet.get("quoted_tweet")
        if _is_object(quoted) and shown_at[id_of(quoted.get("id"))] == 1 and _is_plain(quoted, found):
            resolved.add((id_, "quoted", id_of(quoted["id"])))
        for to in _objects_in(tweet.get("referenced_tweets"))[:20]:
            other = beside.get(id_of(to.get("id")), {})
            # Once where it is named, and once where it stands.
            is_plain = shown_at[id_of(to.get("id"))] == 2 and _is_plain(other, users)
            if to.get("type") in ("quoted", "replied_to") and is_plain:
                resolved.add((id_, to["type"], id_of(to["id"])))
    return resolved


def _objects_in(values: Any) -> list[Json]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_plain(tweet: Json, found: list[Json]) -> bool:
    text, id_ = tweet.get("text"), tweet.get("id")
    is_flat = isinstance(tweet.get("author"), dict)
    at = time_of(tweet.get("createdAt" if is_flat else "created_at"))
    if not (isinstance(id_, str) and re.fullmatch(r"[1-9][0-9]{5,18}", id_)) or at is None or at.tzinfo is None:
        return False
    if not (isinstance(text, str) and re.search(r"\w", SHORT.sub("", text))) or not 2006 <= at.year <= 2026:
        return False
    if any(relation == "retweeted" for relation, _ in _ids_referred(tweet)) or "note_tweet" in tweet:
        return False
    number = id_of(tweet["author"].get("id")) if is_flat else id_of(tweet.get("author_id"))
    users = [shown for shown in found if number.isdigit() and number.isascii() and id_of(shown.get("id")) == number]
    names = [shown.get("userName" if is_flat else "username") for shown in users]
    # Several objects of one id, of which one has another name, or none: whose it is cannot be told.
    return all(isinstance(name, str) and re.fullmatch(r"\w{1,15}", name) for name in names) and len({*names}) == 1
