"""How each place of the playground is followed: by which kind, under which target, with which settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from catchment.app import App
from catchment.credentials.secret import Secret
from catchment.model import Record
from catchment.playground.log import Asked
from catchment.playground.sites import github, json_api, website, x
from catchment.playground.sites.nga.threads import fid_of
from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.keys import client
from catchment.playground.world import Place, World
from catchment.sources.add import follow
from catchment.store.credentials import Terms

SECRET = "tok_4f9c1b7e2d8a6350endure"
SEARCHED = "the"
"""The word of the search that is followed; found in about every other post."""
OTHERS = (
    *(("hackernews", 1), ("github", 2), ("website", 4), ("json_api", 4), ("discourse", 3), ("reddit", 5)),
    ("nga", 2),
    ("x", 6),
)
"""Places beside feeds; they make thirty-three sources."""
KEY = "endure"
"""The name of the credential with which all communities are read but those that are to be read without one."""
COMMUNITIES: tuple[dict[str, Any] | None, ...] = (
    {"sort": "new"},
    {"sort": "top", "time_filter": "week"},
    {"sort": "new", "comments": True},
    None,
    {},
)
"""How one community after the other is followed: by the newest alone, by the best beside them, with comments, without
a key, and as its tier says."""
X_KEYS = {"x": "AAAAendureKeyOfX", "twitterapi_io": "new1_endureKeyOfTwitterApi"}
X_SERVICES = tuple(X_KEYS)
OF_A_FEED = 100
"""So many posts does a community's feed show to who has no key."""

ANY = re.compile(r".*")
STORY = r"/v0/item/\d+\.json"
FORUM_LOOK = re.compile(r"/discourse/\d+/(?:posts/\d+|t/\d+(?:/\d+)?)\.json")
BOARD_VISIT, BOARD_LOOK = re.compile(r"/(?:thread|read)\.php\?.*"), re.compile(r"/read\.php\?.*")
THREAD_PAGE = re.compile(r"/discourse/\d+/t/.*|/read\.php\?(?:.*&)?tid=.*")
"""A page of a thread: what a visit takes whole, and a second look in part."""
REPAIR = re.compile(r"/2/tweets/search/.*|/twitter/tweet/advanced_search.*")
"""A search by which a gap of a user of X is repaired."""
WINDOW_DAYS = 2
"""Of boards and forums: short, so that threads leave the window while the trial goes on."""


class Manner(Record, frozen=True):
    """One way to follow a place."""

    kind: str
    target: str
    settings: dict[str, Any] = {}
    interval_minutes: int | None = None
    visits: re.Pattern[str] = ANY
    """The paths that a visit asks for."""
    looks: re.Pattern[str] | None = None
    """The paths that a second look asks for; None: nothing is looked at again."""
    walk: str | None = None
    """`window`: newest first, a window that slides; `pages`: newest first, as far down as is wanted; None: nobody can
    tell from it what is missing."""
    has_key: bool = False
    has_threads: bool = False
    """Threads inside the window are captured, floor by floor."""


class Followed(Record, frozen=True):
    """A source, and the place that it follows."""

    place: int
    manner: Manner
    source_id: int
    key: str

    def may_have_asked(self, asked: Asked, is_look: bool) -> bool:
        paths = self.manner.looks if is_look else self.manner.visits
        return paths is not None and paths.fullmatch(asked.path) is not None


def manners(world: World, place: Place, port: int) -> Iterator[Manner]:
    address = f"http://{place.host}.localhost:{port}{place.path}"
    if place.form == "hackernews":
        # Not all at the same time: what two visits tell at once, nobody can tell apart.
        stories = re.compile(STORY)
        for target, minutes, walk in (("new", 60, "pages"), ("top", 170, None)):
            paths = re.compile(rf"/v0/{target}stories\.json|{STORY}")
            yield Manner("hackernews", target, {}, minutes, paths, stories, walk)
        paths = re.compile("/api/v1/search_by_date")
        yield Manner("hackernews", f"search:{SEARCHED}", {}, 110, paths, stories, "pages")
    elif place.form == "github":
        yield Manner("github_trending", github.GitHubSimulator(world).target(place))
    elif place.form == "website":
        yield Manner("website", address, visits=re.compile(r"/website/\d+"))
        index = re.compile(r"/website/\d+/index")
        yield Manner("website", f"{address}/index", {"links": website.SELECTOR}, visits=index)
    elif place.form == "json_api":
        # So seldom that the smaller ones overflow what they show in between.
        yield Manner("custom_api", address, json_api.settings(place), interval_minutes=720, walk="pages")
    elif place.form == "discourse":
        visits = re.compile(r"/discourse/\d+/(?:latest|posts|t/\d+(?:/\d+)?)\.json")
        window = {"window_days": WINDOW_DAYS}
        yield Manner(
            "discourse_forum", address, window, visits=visits, looks=FORUM_LOOK, walk="pages", has_threads=True
        )
    elif place.form == "nga":
        window = {"window_days": WINDOW_DAYS}
        yield Manner("nga_forum", str(fid_of(place)), window, 180, BOARD_VISIT, BOARD_LOOK, has_threads=True)
    elif place.form == "x":
        yield user(world, place, X_SERVICES[_order(world, place) % len(X_SERVICES)])
    elif place.form == "reddit":
        yield community(place, COMMUNITIES[_order(world, place) % len(COMMUNITIES)])
    else:
        secret = f"?token={SECRET}" if place.number == 0 else ""
        yield Manner("rss", address + secret, walk="window")


def community(place: Place, settings: dict[str, Any] | None) -> Manner:
    """`settings`: None: without a key, by its feed."""
    target, paths = f"r/{names.community(place)}", re.escape(f"/r/{names.community(place).lower()}/")
    if settings is None:
        return Manner("reddit", target, visits=re.compile(rf"{paths}new/\.rss"), walk="window")
    visits = re.compile(rf"{paths}[a-z]+|/comments/.*|/api/morechildren")
    looks = re.compile("/api/info")
    return Manner("reddit", target, settings, visits=visits, looks=looks, walk="pages", has_key=True)


def user(world: World, place: Place, service: str) -> Manner:
    """A user of X, through one of the services."""
    paths = r"/2/users/.*" if service == "x" else r"/twitter/user/.*"
    target = f"@{x.user_name(world, place, world.start)}"
    return Manner("twitter_feed", target, {"service": service}, visits=re.compile(paths), walk="pages")


def _order(world: World, place: Place) -> int:
    """The how-manieth of its form it is."""
    return sum(1 for earlier in world.places[: place.number] if earlier.form == place.form)


def follow_all(app: App, world: World, port: int) -> list[Followed]:
    """Every place, in each of its manners; one of them with a secret in its address, others by a key."""
    if any(place.form == "reddit" for place in world.places):
        # Not shared: who is to be read without a key finds none.
        app.secrets.add("reddit", KEY, Secret.parse(":".join(client())), app.clock.now())
    if any(place.form == x.NAME for place in world.places):
        add_x_keys(app)
    return [followed(app, place, manner) for place in world.places for manner in manners(world, place, port)]


def add_x_keys(app: App) -> None:
    for service, key in X_KEYS.items():
        app.secrets.add(service, f"{KEY}-{service}", Secret.parse(key), app.clock.now(), terms=Terms(is_shared=True))


def followed(app: App, place: Place, manner: Manner) -> Followed:
    source, _ = follow(
        app.store,
        app.secrets,
        app.platforms,
        manner.kind,
        manner.target,
        app.clock.now(),
        settings=manner.settings,
        interval_minutes=manner.interval_minutes,
        credential=KEY if manner.has_key else None,
    )
    return Followed(place.number, manner, source.id, source.key)
