"""Simulates X in two languages: its own API (v2), and TwitterAPI.io; the same users, posts and ids in both.

Every place is a user; the list `LIST` has the posts of all of them. A key says by its name what account it belongs to:
`free-…` may ask every five seconds, `credits-500-…` has 500 credits left, `cap-50-…` may read 50 posts a month,
`basic-…` may not search the archive, `app-…` has no user, and so no bookmarks; any other key pays whatever is asked.
`charge` says what an answer costs: the log has it for each, so that a collector's own books can be compared with the
bill.

Every key written here occurs in real answers, with the same type; a test compares, and names what is known from
descriptions alone: `note_tweet`, and how TwitterAPI.io might tell the versions of an edited post.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

from catchment.playground.rng import chance_of
from catchment.playground.sites import Ask, Entry, Page
from catchment.playground.world import Counters, Place, Post, World

NAME = "x"
LIST = 84_839_422
V2 = re.compile(
    r"/2/(?:users/by/username/[^/]+|users/me|users/\d+/(?:tweets|bookmarks)|lists/\d+/tweets|tweets/search/(?:recent|all))"
)
FLAT_SEARCH = "/twitter/tweet/advanced_search"
FLAT = (
    *("/twitter/user/info", "/twitter/user/last_tweets", "/twitter/list/tweets_timeline", "/oapi/my/info"),
    FLAT_SEARCH,
)
RECENT = timedelta(days=7)
"""How far back the search for everybody goes."""
REACH, REACH_WITHOUT_REPLIES = 3_200, 800
FLAT_PAGE = 20
ITEM_CREDITS, PROFILE_CREDITS, LEAST_CREDITS, LIST_CREDITS = 15, 18, 15, 150
CREDIT, POST, USER = 10, 5_000, 10_000
"""Prices in millionths of a dollar: of a credit at TwitterAPI.io, of a post and of a user at X's own API."""
FREE_WAIT = timedelta(seconds=5)
EPOCH_MS = 1_288_834_974_657
FATES = {"usual": 0.84, "renamed": 0.05, "protected": 0.04, "suspended": 0.04, "vanished": 0.03}
RELATIONS = {"": 0.6, "retweeted": 0.15, "quoted": 0.12, "replied_to": 0.13}
CURSORS = {"pagination_token", "next_token", "cursor"}
"""Parameters that lead to a later page of a list."""
SHORT_LINK = "https://t.co/pg"
LONGEST = 280
"""Longer texts are cut off; a note has the whole one."""
JSON = {"Content-Type": "application/json; charset=utf-8"}


def fate(world: World, place: Place) -> tuple[str, datetime]:
    """What becomes of a user, and from when on."""
    chance = chance_of(world.seed, "x fate", place.number)
    what = chance.choices(list(FATES), list(FATES.values()))[0]
    return what, world.start + (world.end - world.start) * chance.uniform(0.2, 0.9)


def user_id(place: Place) -> int:
    return 70_000 + place.number


def user_name(world: World, place: Place, at: datetime) -> str:
    """The name that the user has at that moment."""
    return _name_of(place, fate(world, place), at)


def _name_of(place: Place, fate: tuple[str, datetime], at: datetime) -> str:
    what, when = fate
    return f"user_{place.number}" if what != "renamed" or at < when else f"renamed_{place.number}"


def tweet_id(post: Post, version: int = 1) -> int:
    """Ids ascend in the order of appearance; an edit has one of its own."""
    said = next((known for known in post.versions if known.number == version), post.versions[0])
    at = post.shown_from if version <= 1 else max(said.from_at, post.shown_from)
    return (
        (int(at.timestamp() * 1000) - EPOCH_MS << 22) | (post.place & 0x3FF) << 12 | (post.number * 8 + version) & 0xFFF
    )


def credits_for(path: str, page: Page) -> int:
    """What TwitterAPI.io charges for an answer, in credits: a hundred thousand are one dollar. Errors cost the minimum,
    except those that refuse the account."""
    if path == "/oapi/my/info" or page.status in (401, 402, 403, 429):
        return 0
    if page.status != 200:
        return LEAST_CREDITS
    if path == "/twitter/user/info":
        return PROFILE_CREDITS if b'"userName"' in page.body else LEAST_CREDITS
    return LIST_CREDITS if path.startswith("/twitter/list/") else max(LEAST_CREDITS, ITEM_CREDITS * len(page.entries))


def charge(path: str, page: Page) -> int:
    """What an answer costs, in millionths of a dollar."""
    if path in FLAT:
        return CREDIT * credits_for(path, page)
    users = page.status == 200 and path.startswith(("/2/users/by/", "/2/users/me")) and b'"data"' in page.body
    return USER * users + POST * len(page.entries) * (page.status == 200)


def has_video(post: Post) -> bool:
    """Whether the medium of a post is a video, for which its picture is the preview."""
    return post.picture is not None and post.number % 3 == 0


def video_of(post: Post) -> str:
    return f"{post.picture}.mp4"


def has_pinned(place: Place) -> bool:
    """Whether a user pins the oldest post of the first page."""
    return place.number % 4 == 1


def announces_nothing(place: Place) -> bool:
    """Whether TwitterAPI.io announces another page after a user's last one, as its makers warn."""
    return place.number % 4 == 2


def reference_of(world: World, places: Sequence[Place], post: Post) -> tuple[str, Post | None]:
    """What a post refers to: an earlier one of any of these users."""
    chance = chance_of(world.seed, "x reference", post.id)
    relation = chance.choices(list(RELATIONS), list(RELATIONS.values()))[0]
    posts = world.posts(chance.choice(places)) if relation else ()
    earlier = [other for other in posts if other.shown_from < post.shown_from]
    return (relation, chance.choice(earlier)) if earlier else ("", None)


class Lore:
    """What never changes about users and posts, worked out once."""

    def __init__(self, world: World, places: Sequence[Place]) -> None:
        self.world, self.places = world, places
        self.by_number = {user_id(place): place for place in places}
        self._fates: dict[int, tuple[str, datetime]] = {}
        self._references: dict[str, tuple[str, Post | None]] = {}
        self._ids: dict[tuple[str, int], int] = {}

    def fate(self, place: Place) -> tuple[str, datetime]:
        if place.number not in self._fates:
            self._fates[place.number] = fate(self.world, place)
        return self._fates[place.number]

    def name(self, place: Place, at: datetime) -> str:
        return _name_of(place, self.fate(place), at)

    def reference(self, post: Post) -> tuple[str, Post | None]:
        if post.id not in self._references:
            self._references[post.id] = reference_of(self.world, self.places, post)
        return self._references[post.id]

    def conversation(self, post: Post) -> Post:
        """The post that opened the conversation."""
        relation, other = self.reference(post)
        while relation == "replied_to" and other is not None:
            post = other
            relation, other = self.reference(post)
        return post

    def tweet_id(self, post: Post, version: int = 1) -> int:
        key = post.id, version
        if key not in self._ids:
            self._ids[key] = tweet_id(post, version)
        return self._ids[key]


class XSimulator:
    """Shows all places of this form: the site has its paths to itself."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places = [place for place in world.places if place.form == NAME]
        self.lore = Lore(world, self.places)
        self._spent: Counter[str] = Counter()
        """By key: credits at TwitterAPI.io, posts at X's own API."""
        self._asked_at: dict[str, datetime] = {}

    def find(self, path: str) -> Place | None:
        is_ours = path in FLAT or V2.fullmatch(path) is not None
        if not self.places or not is_ours:
            return None
        number = re.match(r"/2/users/(\d+)/", path)
        name = path.rpartition("/")[2] if path.startswith("/2/users/by/") else ""
        return self._of(number[1] if number else "", name) or self.places[0]

    def board(self, query: str) -> Place | None:
        """TwitterAPI.io names the user in the query."""
        params = {name: values[0] for name, values in parse_qs(query).items()}
        return self._of(params.get("userId", ""), params.get("userName", ""))

    def _of(self, number: str, name: str) -> Place | None:
        """The user of that number, or who has, or had, that name."""
        known = name.lower().rpartition("_")[2]
        wanted = int(number) if number.isdigit() else 70_000 + int(known) if known.isdigit() else None
        return self.lore.by_number.get(wanted) if wanted is not None else None

    def relation(self, post: Post) -> str:
        """How a post refers to another one; empty: it does not."""
        return self.lore.reference(post)[0]

    def who(self, headers: Mapping[str, str]) -> str | None:
        key = _key(headers)
        return sha256(key.encode()).hexdigest()[:12] if key else None

    def answer(self, place: Place, ask: Ask) -> Page:
        key, is_flat = _key(ask.headers), ask.path in FLAT
        if not key:
            return _no_key(is_flat)
        if key.startswith("free-") and ask.at < self._asked_at.get(key, ask.at - FREE_WAIT) + FREE_WAIT:
            words = "For free-tier users, the QPS limit is one request every 5 seconds."
            return _page(429, {"error": "Too Many Requests", "message": words})
        self._asked_at[key] = ask.at
        left = self._left(key)
        if left is not None and left <= 0:
            return _used_up(is_flat)
        if ask.path == "/2/tweets/search/all" and key.startswith("basic-"):
            return _not_enrolled()
        if key.startswith("app-") and (ask.path == "/2/users/me" or ask.path.endswith("/bookmarks")):
            return _of_an_app()
        moment = Moment(self.lore, ask)
        page = moment.flat() if is_flat else moment.v2()
        self._spent[key] += credits_for(ask.path, page) if is_flat else len(page.entries)
        return page

    def charge(self, ask: Ask, page: Page) -> int:
        return charge(ask.path, page)

    def _left(self, key: str) -> int | None:
        """What the account of a key has left; None: it never runs out."""
        limited = re.match(r"(?:credits|cap)-(\d+)-", key)
        return int(limited[1]) - self._spent[key] if limited else None


SIMULATOR = XSimulator


def _key(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()


def _page(status: int, body: Any, entries: Sequence[Entry] = ()) -> Page:
    return Page(status, JSON, json.dumps(body, ensure_ascii=False).encode(), entries=tuple(entries))


def _no_key(is_flat: bool) -> Page:
    if is_flat:
        return _page(403, {"error": "Forbidden", "message": "API key required.", "code": -1})
    return _page(401, {"title": "Unauthorized", "type": "about:blank", "status": 401, "detail": "Unauthorized"})


def _not_enrolled() -> Page:
    words = (
        "When authenticating requests to the Twitter API v2 endpoints, you must use an account with the right access."
    )
    problem = {"title": "Client Forbidden", "detail": words, "reason": "client-not-enrolled", "status": 403}
    return _page(403, problem | {"type": "https://api.twitter.com/2/problems/client-forbidden"})


def _of_an_app() -> Page:
    words = "Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint."
    problem = {"title": "Unsupported Authentication", "detail": words, "status": 403}
    return _page(403, problem | {"type": "https://api.twitter.com/2/problems/unsupported-authentication"})


def _used_up(is_flat: bool) -> Page:
    if is_flat:
        return _page(402, {"error": "Payment Required", "message": "Credits is not enough."})
    kind = "https://api.twitter.com/2/problems/usage-capped"
    return _page(429, {"title": "UsageCapExceeded", "detail": "Usage cap exceeded: Monthly product cap", "type": kind})


class Moment:
    """X at the time of one request."""

    def __init__(self, lore: Lore, ask: Ask) -> None:
        self.lore, self.world, self.places, self.ask = lore, lore.world, lore.places, ask
        self.params = {name: values[0] for name, values in parse_qs(ask.query).items()}
        # A cursor is used once: no cache has an old copy of the page that it leads to.
        is_copied = not self.params.keys() & CURSORS
        self.at = ask.at - ask.distortion.ago if is_copied else ask.at

    # X's own API

    def v2(self) -> Page:
        steps = self.ask.path.split("/")[2:]
        if steps[:2] == ["users", "me"]:
            return _page(200, {"data": self._v2_user(self.places[0])})
        if steps[:3] == ["users", "by", "username"]:
            return self._v2_lookup(steps[3])
        if steps[0] == "tweets":
            return self._v2_search(is_recent=steps[2] == "recent")
        if steps[0] == "lists":
            return self._v2_tweets(self._shown(self._readable()) if int(steps[1]) == LIST else None, None)
        place = self.lore.by_number.get(int(steps[1]))
        state = self._state(place) if place else "vanished"
        if state == "suspended":
            return _v2_error("Forbidden", f"User has been suspended: [{steps[1]}].", "id", steps[1])
        if place is None or state == "vanished":
            return _v2_error("Not Found Error", f"Could not find user with id: [{steps[1]}].", "id", steps[1])
        if state == "protected":
            words = f"Sorry, you are not authorized to see the user with id: [{steps[1]}]."
            return _v2_error("Authorization Error", words, "id", steps[1])
        return self._v2_tweets(self._shown([place]), place)

    def _v2_search(self, *, is_recent: bool) -> Page:
        since, until = (datetime.fromisoformat(self.params[name]) for name in ("start_time", "end_time"))
        if is_recent and since < self.ask.at - RECENT:
            words = f"Invalid 'start_time':'{self.params['start_time']}'. 'start_time' must be within the last 7 days."
            error = {"parameters": {"start_time": [self.params["start_time"]]}, "message": words}
            kind = "https://api.twitter.com/2/problems/invalid-request"
            detail = "One or more parameters to your request was invalid."
            return _page(400, {"errors": [error], "title": "Invalid Request", "detail": detail, "type": kind})
        posts = self._found(self.params["query"].split(), since, until, "-is:reply")
        return self._v2_tweets(posts, None, self.params.get("next_token", ""))

    def _found(self, words: list[str], since: datetime, until: datetime, without_replies: str) -> list[Post]:
        """The posts of a user in a stretch of time, without the last second; native retweets are not found."""
        place = self._named(words[0].removeprefix("from:"))
        hidden = {"retweeted", *(["replied_to"] if without_replies in words else [])}
        if place is None or place not in self._readable():
            return []
        return [
            post
            for post in self._shown([place], reach=None)
            if since <= post.shown_from < until and self._reference(post)[0] not in hidden
        ]

    def _v2_lookup(self, name: str) -> Page:
        place = self._named(name)
        if place is None or self._state(place) == "vanished":
            return _v2_error("Not Found Error", f"Could not find user with username: [{name}].", "username", name)
        if self._state(place) == "suspended":
            return _v2_error("Forbidden", f"User has been suspended: [{name}].", "username", name)
        return _page(200, {"data": self._v2_user(place) | {"protected": self._state(place) == "protected"}})

    def _v2_user(self, place: Place) -> dict[str, Any]:
        return {"id": str(user_id(place)), "name": place.name, "username": self.lore.name(place, self.at)}

    def _v2_tweets(self, posts: list[Post] | None, place: Place | None, token: str | None = None) -> Page:
        if posts is None:
            number = self.ask.path.split("/")[3]
            return _v2_error("Not Found Error", f"Could not find list with id: [{number}].", "id", number, "list")
        if self.params.get("exclude") == "replies":
            posts = [post for post in posts if self._reference(post)[0] != "replied_to"][:REACH_WITHOUT_REPLIES]
        since = int(self.params.get("since_id", 0))
        posts = [post for post in posts if self._id(post) > since]
        size = max(5, min(100, int(self.params.get("max_results", 10))))
        page, token = self._cut(posts, self.params.get("pagination_token", "") if token is None else token, size)
        if not page:
            return _page(200, {"meta": {"result_count": 0}})
        users: dict[str, Any] = {}
        tweets: dict[str, Any] = {}
        media: dict[str, Any] = {}
        data = [self._v2_tweet(post, users, tweets, media) for post in page]
        meta = {"result_count": len(data), "newest_id": data[0]["id"], "oldest_id": data[-1]["id"]}
        includes = {"users": [*users.values()], "tweets": [*tweets.values()], "media": [*media.values()]}
        body = {"data": data, "includes": {name: values for name, values in includes.items() if values}}
        return _page(200, body | {"meta": meta | ({"next_token": token} if token else {})}, self._entries(page))

    def _v2_tweet(
        self, post: Post, users: dict[str, Any], tweets: dict[str, Any], media: dict[str, Any], depth: int = 0
    ) -> dict[str, Any]:
        place, version = self.world.places[post.place], post.version(self.at)
        users[str(user_id(place))] = self._v2_user(place)
        relation, other = self._reference(post) if depth == 0 else ("", None)
        counters = Counters(0, 0) if relation == "retweeted" else self.world.counters(post, self.at)
        tweet: dict[str, Any] = {
            "id": str(self._id(post)),
            "text": self._text(post),
            "author_id": str(user_id(place)),
            "conversation_id": self._conversation(post),
            "created_at": f"{post.shown_from:%Y-%m-%dT%H:%M:%S}.000Z",
            "lang": post.language,
            "possibly_sensitive": False,
            "public_metrics": {
                "retweet_count": 0,
                "reply_count": counters.reply_count,
                "like_count": max(0, counters.score),
                "quote_count": 0,
            },
            "entities": {"hashtags": [{"start": 0, "end": 1, "tag": tag} for tag in post.tags]},
            "edit_history_tweet_ids": [
                str(self.lore.tweet_id(post, number)) for number in range(1, version.number + 1)
            ],
        }
        if len(tweet["text"]) > LONGEST:
            tweet |= {"text": f"{tweet['text'][: LONGEST - 1]}…", "note_tweet": {"text": tweet["text"]}}
        if post.picture:
            key = f"{'7' if has_video(post) else '3'}_{self.lore.tweet_id(post)}"
            tweet["attachments"] = {"media_keys": [key]}
            media[key] = self._v2_medium(key, post)
        if other is not None:
            tweet["referenced_tweets"] = [{"type": relation, "id": str(self._id(other))}]
            if not other.is_removed(self.at):
                tweets[str(self._id(other))] = self._v2_tweet(other, users, tweets, media, depth + 1)
        return tweet

    def _v2_medium(self, key: str, post: Post) -> dict[str, Any]:
        size = {"media_key": key, "width": 640, "height": 480}
        if not has_video(post):
            return size | {"type": "photo", "url": post.picture}
        return size | {
            "type": "video",
            "preview_image_url": post.picture,
            "duration_ms": 8_000,
            "variants": [
                {"content_type": "application/x-mpegURL", "url": f"{post.picture}.m3u8"},
                {"content_type": "video/mp4", "bit_rate": 256_000, "url": f"{post.picture}.small.mp4"},
                {"content_type": "video/mp4", "bit_rate": 2_176_000, "url": video_of(post)},
            ],
        }

    # TwitterAPI.io

    def flat(self) -> Page:
        if self.ask.path == "/oapi/my/info":
            return _page(200, {"recharge_credits": 100_000, "total_bonus_credits": 0})
        if self.ask.path == "/twitter/user/info":
            return self._flat_profile()
        if self.ask.path.startswith("/twitter/list/"):
            posts = self._shown(self._readable()) if self.params.get("listId") == str(LIST) else []
            return self._flat_tweets(posts, is_wrapped=False)
        if self.ask.path == FLAT_SEARCH:
            return self._flat_search()
        number = self.params.get("userId", "")
        place = self.lore.by_number.get(int(number)) if number.isdigit() else None
        # An unknown user looks like one who never posted.
        posts = self._shown([place]) if place and self._state(place) in ("usual", "renamed") else []
        if self.params.get("includeReplies") != "true":
            posts = [post for post in posts if self._reference(post)[0] != "replied_to"]
        return self._flat_tweets(posts, is_wrapped=True, place=place)

    def _flat_search(self) -> Page:
        words = self.params["query"].split()
        times = dict(word.split(":") for word in words if "_time:" in word)
        since, until = (datetime.fromtimestamp(int(times[f"{name}_time"]), UTC) for name in ("since", "until"))
        return self._flat_tweets(self._found(words, since, until, "-filter:replies"), is_wrapped=False)

    def _flat_profile(self) -> Page:
        place = self._named(self.params.get("userName", ""))
        state = self._state(place) if place else "vanished"
        if place is None or state == "vanished":
            return _page(200, {"status": "error", "msg": "user not found", "data": None})
        data: dict[str, Any] = {
            "id": str(user_id(place)),
            "name": place.name,
            "userName": self.lore.name(place, self.at),
            "protected": state == "protected",
            "createdAt": "2012-08-15T01:22:19.000000Z",
            "statusesCount": len(self._shown([place], reach=None)),
        }
        if state == "suspended":
            data |= {"unavailable": True, "unavailableReason": "Suspended"}
        return _page(200, {"status": "success", "msg": "success", "data": data})

    def _flat_tweets(self, posts: list[Post], *, is_wrapped: bool, place: Place | None = None) -> Page:
        page, cursor = self._cut(posts, self.params.get("cursor", ""), FLAT_PAGE)
        if place is not None and page and announces_nothing(place):
            cursor = cursor or str(self.lore.tweet_id(page[-1]))
        tweets = [self._flat_tweet(post) for post in page]
        paging = {"has_next_page": bool(cursor), "next_cursor": cursor}
        if not is_wrapped:
            return _page(200, {"tweets": tweets, **paging}, self._entries(page))
        status = {"status": "success", "code": 0, "msg": "success"}
        is_pinned = place is not None and has_pinned(place) and tweets and not self.params.get("cursor")
        data = {"pin_tweet": tweets[-1] if is_pinned else None, "tweets": tweets}
        return _page(200, {**status, "data": data, **paging}, self._entries(page))

    def _flat_tweet(self, post: Post, depth: int = 0) -> dict[str, Any]:
        place = self.world.places[post.place]
        counters = self._counters(post) if depth == 0 else self.world.counters(post, self.at)
        name, number = self.lore.name(place, self.at), str(self._id(post))
        versions = range(1, post.version(self.at).number + 1)
        relation, other = self._reference(post) if depth == 0 else ("", None)
        nested = self._flat_tweet(other, 1) if other is not None and not other.is_removed(self.at) else None
        is_reply = relation == "replied_to" and other is not None
        media: list[dict[str, Any]] = [
            {
                "id_str": number,
                "type": "video" if has_video(post) else "photo",
                "url": f"{SHORT_LINK}{number}",
                "expanded_url": f"https://x.com/{name}/status/{number}/photo/1",
                "media_url_https": post.picture,
                "original_info": {"width": 640, "height": 480},
            }
        ]
        if has_video(post):
            media[0]["video_info"] = {
                "duration_millis": 8_000,
                "variants": [
                    {"content_type": "application/x-mpegURL", "url": f"{post.picture}.m3u8"},
                    {"content_type": "video/mp4", "bitrate": 256_000, "url": f"{post.picture}.small.mp4"},
                    {"content_type": "video/mp4", "bitrate": 2_176_000, "url": video_of(post)},
                ],
            }
        return {
            "type": "tweet",
            "id": number,
            "url": f"https://x.com/{name}/status/{number}",
            "text": self._text(post),
            "createdAt": f"{post.shown_from:%a %b %d %H:%M:%S +0000 %Y}",
            "lang": post.language,
            "likeCount": max(0, counters.score),
            "replyCount": counters.reply_count,
            "retweetCount": 0,
            "quoteCount": 0,
            "bookmarkCount": 0,
            "viewCount": [0] if relation == "retweeted" else max(0, counters.score) * 10,
            "isReply": is_reply,
            "inReplyToId": str(self._id(other)) if is_reply and other else None,
            "inReplyToUsername": self.lore.name(self.world.places[other.place], self.at)
            if is_reply and other
            else None,
            "conversationId": self._conversation(post),
            "author": {"type": "user", "userName": name, "id": str(user_id(place)), "name": place.name},
            "entities": {"hashtags": [{"text": tag} for tag in post.tags]} if post.tags else {},
            "extendedEntities": {"media": media} if post.picture else {},
            "quoted_tweet": nested if relation == "quoted" else None,
            "retweeted_tweet": nested if relation == "retweeted" else None,
        } | (
            {"editHistoryTweetIds": [str(self.lore.tweet_id(post, version)) for version in versions]}
            if versions[1:]
            else {}
        )

    # Both

    def _named(self, name: str) -> Place | None:
        known = (place for place in self.places if self.lore.name(place, self.at) == name.lower())
        return next(known, None)

    def _state(self, place: Place) -> str:
        what, when = self.lore.fate(place)
        return what if self.at >= when else "usual"

    def _readable(self) -> list[Place]:
        return [place for place in self.places if self._state(place) in ("usual", "renamed")]

    def _shown(self, places: Sequence[Place], reach: int | None = REACH) -> list[Post]:
        """The posts of these users, newest first, as many as can be seen."""
        posts = [
            post
            for place in places
            for post in self.world.posts(place)
            if post.shown_from <= self.at and not post.is_removed(self.at)
        ]
        return sorted(posts, key=self.lore.tweet_id, reverse=True)[:reach]

    def _cut(self, posts: list[Post], cursor: str, size: int) -> tuple[list[Post], str]:
        """The page that a cursor leads to, and the next cursor; the cursor is the id of the last post shown."""
        if cursor and self.ask.distortion.is_looping:
            cursor = ""
        after = int(cursor) if cursor.isdigit() else None
        rest = [post for post in posts if after is None or self.lore.tweet_id(post) < after]
        page = rest[:size]
        return page, str(self.lore.tweet_id(page[-1])) if len(rest) > size else ""

    def _id(self, post: Post) -> int:
        return self.lore.tweet_id(post, post.version(self.at).number)

    def _conversation(self, post: Post) -> str:
        """The id of the post that opened it. An edit opens one of its own."""
        first = self.lore.conversation(post)
        return str(self._id(post) if first is post else self.lore.tweet_id(first))

    def _text(self, post: Post) -> str:
        text = post.version(self.at).text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return text or post.version(self.at).title

    def _reference(self, post: Post) -> tuple[str, Post | None]:
        return self.lore.reference(post)

    def _counters(self, post: Post) -> Counters:
        """Those of the original, if it is a retweet: nobody can like a retweet."""
        relation, other = self._reference(post)
        if relation != "retweeted":
            return self.world.counters(post, self.at)
        is_shown = other is not None and not other.is_removed(self.at)
        return self.world.counters(other, self.at) if other is not None and is_shown else Counters(0, 0)

    def _entries(self, posts: Sequence[Post]) -> list[Entry]:
        return [
            Entry(post.id, version.number, str(self.lore.tweet_id(post)), max(0, self._counters(post).score))
            for post in posts
            for version in (post.version(self.at),)
        ]


def _v2_error(title: str, detail: str, parameter: str, value: str, resource: str = "user") -> Page:
    error = {"parameter": parameter, "resource_id": value, "value": value, "detail": detail, "title": title}
    kind = "https://api.twitter.com/2/problems/resource-not-found"
    return _page(200, {"errors": [error | {"resource_type": resource, "type": kind}]})
