"""What the playground says as Reddit looks like the real thing: keys, ends of listings, errors, counts."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import pytest

from catchment.model import (
    Answer,
    Identity,
    Item,
    Progress,
    Reading,
    Recheck,
    Request,
    Source,
)
from catchment.model import WalkPlan as Wish
from catchment.platforms import reddit as reader
from catchment.platforms.reddit import requests
from catchment.playground.faults import ALL_FAULTS, FAULTS, REDDIT_FAULTS
from catchment.playground.sites import (
    Ask,
    Distortion,
    Page,
    simulators,
)
from catchment.playground.sites.reddit import TOKENS, RedditSimulator, names
from catchment.playground.sites.reddit.fates import (
    BY_AUTHOR,
    CROSSPOST,
    ENCODED_AFTER,
    SORTS,
    WORDLESS,
)
from catchment.playground.sites.reddit.keys import (
    A_CLIENTS,
    A_STRANGERS,
    FOR_TOKENS,
    INSTALLED,
    client,
    installed,
)
from catchment.playground.sites.reddit.site import LATELY, REACH
from catchment.playground.world import (
    Habits,
    Place,
    Post,
    World,
)
from catchment.text.clean import refine
from tests.playground.shapes import Field, fields

pytestmark = pytest.mark.long

START = datetime(2026, 1, 5, tzinfo=UTC)
AT = START + timedelta(days=2)
BASE = "http://127.0.0.1:8000"
AGENT = {"user-agent": "linux:test:1 (by u/nobody)"}
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.fixture(scope="session")
def world() -> World:
    habits = Habits(edited=0.3, removed=0.2, reposted=0.05, late=0.05, expired_early=0.0)
    return World(5, START, places=2, days=3, habits=habits, others={"reddit": 3})


@pytest.fixture(scope="session")
def crowd(world: World) -> Place:
    """Three thousand posts a day."""
    return world.places[2]


class Client:
    """Asks the simulator without a socket in between."""

    def __init__(self, world: World, number: int = 0) -> None:
        self.world, self.simulator, self.number = world, RedditSimulator(world), number

    def ask(
        self, method: str, path: str, at: datetime = AT, *, distortion: Distortion | None = None, **given: Any
    ) -> Page:
        headers, body = given.get("headers", {}), given.get("body", "")
        place = self.simulator.find(path)
        assert place is not None
        query = urlencode(given.get("params", {}))
        return self.simulator.answer(
            place, Ask(path, query, AGENT | headers, at, BASE, distortion or Distortion(), method, body.encode())
        )

    def login(
        self, at: datetime = AT, *, basic: str | None = None, body: str = "grant_type=client_credentials"
    ) -> Page:
        told = b64encode((basic if basic is not None else ":".join(client(self.number))).encode()).decode()
        return self.ask("POST", TOKENS, at, headers={"authorization": f"Basic {told}"}, body=body)

    def token(self, at: datetime = AT) -> str:
        return str(json.loads(self.login(at).body)["access_token"])

    def get(
        self, path: str, at: datetime = AT, *, token: str | None = None, distortion: Distortion | None = None, **p: Any
    ) -> Page:
        headers = {"authorization": f"Bearer {token or self.token(at)}"}
        return self.ask("GET", path, at, headers=headers, distortion=distortion, params={"raw_json": "1", **p})

    def told(self, path: str, at: datetime = AT, **params: Any) -> Any:
        page = self.get(path, at, **params)
        assert page.status == 200
        return json.loads(page.body)

    def names(self, path: str, at: datetime = AT, **params: Any) -> list[str]:
        return [child["data"]["name"] for child in self.told(path, at, **params)["data"]["children"]]

    def info(self, *asked: str, at: datetime = AT) -> list[dict[str, Any]]:
        return [child["data"] for child in self.told("/api/info", at, id=",".join(asked))["data"]["children"]]


@pytest.fixture
def reddit(world: World) -> Client:
    return Client(world)


def path(place: Place, rest: str = "new") -> str:
    return f"/r/{names.community(place)}/{rest}"


def living(world: World, place: Place, at: datetime = AT) -> list[Post]:
    """What is there, the last written first."""
    there = (post for post in world.posts(place) if post.shown_from <= at and not post.is_removed(at))
    return sorted(there, key=lambda post: (post.began_at, post.number), reverse=True)


# ── listings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def walk(reddit: Client, place: Place, rest: str = "new", at: datetime = AT, **params: Any) -> Iterator[dict[str, Any]]:
    after = ""
    while after is not None:
        page = reddit.told(path(place, rest), at, limit=100, **params, **({"after": after} if after else {}))["data"]
        after = page["after"]
        yield page


def test_new_goes_back_a_thousand_posts_by_their_dates_and_then_says_that_there_is_no_more(
    world: World, reddit: Client, crowd: Place
) -> None:
    pages = list(walk(reddit, crowd))
    listed = [child["data"]["name"] for page in pages for child in page["children"]]
    assert listed == [names.post_id(post) for post in living(world, crowd)][: len(listed)]
    assert REACH - 100 < len(listed) <= REACH
    assert len(pages) == 10
    assert pages[-1]["after"] is None
    dates = [child["data"]["created_utc"] for page in pages for child in page["children"]]
    assert dates == sorted(dates, reverse=True)


def test_what_was_taken_away_just_now_leaves_a_shorter_page_that_goes_on(
    world: World, reddit: Client, crowd: Place
) -> None:
    pages = list(walk(reddit, crowd))
    assert {len(page["children"]) == page["dist"] for page in pages} == {True}
    short = [page for page in pages[:-1] if page["dist"] < 100]
    assert short
    removed = [post for post in world.posts(crowd) if post.is_removed(AT) and not post.is_removed(AT - LATELY)]
    assert sum(100 - page["dist"] for page in pages) <= len(removed)


def test_a_post_that_was_approved_late_comes_in_below_those_that_were_there_before(
    world: World, reddit: Client, crowd: Place
) -> None:
    late = next(
        post
        for post in world.posts(crowd)
        if START < post.created_at < post.shown_from < post.created_at + HOUR and not post.removed_at
    )
    before, after = (list(walk(reddit, crowd, at=at)) for at in (late.shown_from - MINUTE, late.shown_from))
    assert names.post_id(late) not in str(before)
    listed = [child["data"]["name"] for page in after for child in page["children"]]
    assert before[0]["children"][0]["data"]["name"] in listed[: listed.index(names.post_id(late))]


@pytest.mark.parametrize(
    ("asked", "given"), [({}, 25), ({"limit": 7}, 7), ({"limit": 1024}, 100), ({"limit": 0}, 1), ({"limit": "x"}, 25)]
)
def test_the_limit_is_25_or_what_is_asked_for_between_1_and_100(
    reddit: Client, crowd: Place, asked: dict[str, Any], given: int
) -> None:
    data = reddit.told(path(crowd), START + HOUR, **asked)["data"]
    assert 0 <= given - data["dist"] <= given * 0.2


def test_before_gives_what_is_newer_and_nothing_for_ever_once_its_post_is_gone(
    world: World, reddit: Client, crowd: Place
) -> None:
    listed = reddit.names(path(crowd), limit=100)
    data = reddit.told(path(crowd), before=listed[3], limit=100)["data"]
    assert [child["data"]["name"] for child in data["children"]] == listed[:3]
    assert data["after"] is None
    gone = next(post for post in world.posts(crowd) if post.is_removed(AT) and post.is_removed(AT - HOUR))
    for anchor in ("before", "after"):
        data = reddit.told(path(crowd), **{anchor: names.post_id(gone)})["data"]
        assert (data["children"], data["after"]) == ([], None)


def test_top_is_by_score_within_its_time_and_not_all_that_is_new_is_hot(
    world: World, reddit: Client, crowd: Place
) -> None:
    for span, length in (("hour", HOUR), ("day", DAY), ("week", 7 * DAY)):
        data = [child["data"] for child in reddit.told(path(crowd, "top"), t=span, limit=100)["data"]["children"]]
        assert [post["score"] for post in data] == sorted((post["score"] for post in data), reverse=True)
        assert min(post["created_utc"] for post in data) >= (AT - length).timestamp()
    best = max(living(world, crowd), key=lambda post: world.counters(post, AT).score)
    assert reddit.names(path(crowd, "top"), t="all", limit=1) == [names.post_id(best)]
    listings = [tuple(reddit.names(path(crowd, name), limit=50)) for name in ("new", "hot", "rising", "controversial")]
    assert len(set(listings)) == 4


def test_hot_is_led_by_posts_that_are_held_there_however_old_they_are(
    world: World, reddit: Client, crowd: Place
) -> None:
    data = [child["data"] for child in reddit.told(path(crowd, "hot"))["data"]["children"]]
    pinned = [post for post in living(world, crowd) if post.number < 2]
    assert [post["name"] for post in data if post["stickied"]] == [names.post_id(post) for post in reversed(pinned)]
    assert [post["stickied"] for post in data[: len(pinned)]] == [True] * len(pinned)
    assert pinned


def test_a_slow_community_is_listed_whole(world: World, reddit: Client) -> None:
    place = world.places[4]
    at = world.posts(place)[60].shown_from
    listed = [child["data"]["name"] for page in walk(reddit, place, at=at) for child in page["children"]]
    assert listed == [names.post_id(post) for post in living(world, place, at)]


def test_a_community_is_found_in_any_case_of_letters_and_an_unknown_one_leads_to_a_search(
    reddit: Client, crowd: Place
) -> None:
    assert reddit.get(path(crowd).upper().replace("/R/", "/r/").replace("/NEW", "/new")).status == 200
    page = reddit.get("/r/nowhere_at_all/new")
    assert (page.status, page.headers["location"]) == (302, f"{BASE}/subreddits/search?q=nowhere_at_all")
    assert reddit.told("/subreddits/search", q="nowhere_at_all")["data"]["children"] == []
    assert b"<html" in reddit.ask("GET", "/subreddits/search").body
    (found,) = reddit.told("/subreddits/search", q=names.community(crowd)[:-2].lower())["data"]["children"]
    assert (found["kind"], found["data"]["display_name"]) == ("t5", names.community(crowd))


def test_a_renamed_community_is_found_by_its_new_name_and_a_closed_one_not_at_all(world: World, crowd: Place) -> None:
    other = World(5, START, places=2, days=3, others={"reddit": 3})
    moving = crowd.replace(moves_at=AT, new_path="/r/NewHome")
    other.places = (*world.places[:2], moving, world.places[3].replace(gone_at=AT), world.places[4])
    reddit = Client(other)
    old, new = path(crowd), "/r/NewHome/new"
    assert [reddit.get(url, AT - MINUTE).status for url in (old, new)] == [200, 302]
    page = reddit.get(old, limit=3)
    assert (page.status, page.headers["location"]) == (301, f"{BASE}{new}?raw_json=1&limit=3")
    assert reddit.told(new)["data"]["children"][0]["data"]["subreddit"] == "NewHome"
    closed = reddit.get(path(other.places[3]))
    assert (closed.status, json.loads(closed.body)["reason"]) == (404, "banned")


def test_without_raw_json_what_looks_like_markup_is_escaped(world: World, reddit: Client, crowd: Place) -> None:
    post = next(post for post in living(world, crowd) if "&" in post.versions[0].title)
    asked = {"id": names.post_id(post)}
    raw, escaped = (
        json.loads(reddit.get("/api/info", **asked, raw_json=value).body)["data"]["children"][0]["data"]["title"]
        for value in ("1", "0")
    )
    assert raw == post.versions[0].title
    assert escaped == raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# ── what becomes of posts ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_taken_away_is_seen_by_name_and_by_thread_with_the_mark_of_who_did_it(
    world: World, reddit: Client, crowd: Place
) -> None:
    seen = set()
    for post in [post for post in world.posts(crowd) if post.is_removed(AT)][:40]:
        nature = reddit.simulator.site.nature(post)
        (told,) = reddit.info(names.post_id(post))
        thread = reddit.told(f"/comments/{told['id']}")[0]["data"]["children"][0]["data"]
        mark, category = ("[deleted]", "deleted") if nature.removed_by == BY_AUTHOR else ("[removed]", "moderator")
        assert (told["selftext"], told["removed_by_category"]) == (mark, category)
        assert (thread["selftext"], thread["title"]) == (mark, post.versions[0].title)
        assert (told["author"] == "[deleted]") or nature.removed_by != BY_AUTHOR
        seen.add(nature.removed_by)
    assert len(seen) == 2


def test_what_moderators_approve_again_is_listed_again(world: World, reddit: Client, crowd: Place) -> None:
    post = next(post for post in world.posts(crowd) if post.restored_at and START < post.removed_at < AT)  # type: ignore[operator]
    for at, is_there in ((post.removed_at, False), (post.restored_at, True)):
        assert at is not None
        (told,) = reddit.info(names.post_id(post), at=at)
        assert (told["removed_by_category"] is None) == is_there


def test_an_author_who_has_left_leaves_the_words(world: World, reddit: Client, crowd: Place) -> None:
    nature = reddit.simulator.site.nature
    post = next(
        post
        for post in living(world, crowd)
        if (left := nature(post).leaves_at) and left <= AT and nature(post).sort == "text"
    )
    (told,) = reddit.info(names.post_id(post))
    assert (told["author"], told["selftext"]) == ("[deleted]", post.version(AT).text)
    assert not {"author_fullname", "author_premium", "author_flair_richtext"} & told.keys()


def test_an_edit_changes_the_words_and_never_the_title(world: World, reddit: Client, crowd: Place) -> None:
    nature = reddit.simulator.site.nature
    posts = [post for post in living(world, crowd) if post.version(AT).number > 1 and nature(post).sort == "text"]
    for post in posts[:20]:
        (told,) = reddit.info(names.post_id(post))
        assert (told["title"], told["selftext"]) == (post.versions[0].title, post.version(AT).text)
        assert told["edited"] == post.version(AT).from_at.timestamp()
    assert len(posts) > 20


def test_videos_and_galleries_are_whole_some_minutes_later(world: World, reddit: Client, crowd: Place) -> None:
    for sort in ("video", "gallery"):
        post = next(post for post in living(world, crowd) if reddit.simulator.site.nature(post).sort == sort)
        if post.is_removed(post.shown_from + ENCODED_AFTER):
            continue
        early, late = (
            reddit.info(names.post_id(post), at=post.shown_from + after)[0] for after in (timedelta(), ENCODED_AFTER)
        )
        if sort == "video":
            assert (early["is_video"], early["media"], late["media"] is None) == (True, None, False)
        else:
            states = [[medium["status"] for medium in told["media_metadata"].values()] for told in (early, late)]
            assert ("unprocessed" in states[0], set(states[1])) == (True, {"valid"})


def test_a_crosspost_carries_the_whole_original_and_no_words_of_its_own(
    world: World, reddit: Client, crowd: Place
) -> None:
    post = next(post for post in living(world, crowd) if post.repeats)
    (told,) = reddit.info(names.post_id(post))
    (parent,) = told["crosspost_parent_list"]
    assert (told["selftext"], told["crosspost_parent"]) == ("", parent["name"])
    assert told["url"] == parent["permalink"]
    assert "crosspost_parent_list" not in parent


def test_by_name_a_hundred_things_are_told_in_the_order_asked_and_unknown_ones_left_out(
    world: World, reddit: Client, crowd: Place
) -> None:
    posts = [names.post_id(post) for post in living(world, crowd)[:120]]
    comment = next(
        comment
        for post in living(world, crowd, AT - DAY)
        for comment in reddit.simulator.site.comments(post)
        if comment.created_at < AT
    )
    future = next(post for post in world.posts(crowd) if post.shown_from > AT)
    asked = [comment.name, "t3_zzzzzzzzzz", "t5_2qh00", "nonsense", names.post_id(future), *posts]
    assert [child["name"] for child in reddit.info(*asked)] == [comment.name, *posts[:95]]


def test_ids_never_change_however_long_the_world_goes_on(world: World, crowd: Place) -> None:
    longer = World(5, START, places=2, days=5, habits=world.habits, others={"reddit": 4})
    early = [post for post in world.posts(crowd) if post.shown_from < AT]
    assert [names.post_id(post) for post in longer.posts(longer.places[2]) if post.shown_from < AT] == [
        names.post_id(post) for post in early
    ]
    by_id = {names.post_id(post): post for place in world.places[2:] for post in world.posts(place)}
    assert len(by_id) == sum(len(world.posts(place)) for place in world.places[2:])


def test_a_page_notes_which_version_of_which_post_it_shows(world: World, reddit: Client, crowd: Place) -> None:
    page = reddit.get(path(crowd), limit=100)
    shown = {post.id: post for post in living(world, crowd)}
    assert [entry.wire_id for entry in page.entries] == reddit.names(path(crowd), limit=100)
    for entry in page.entries:
        post = shown[entry.post]
        assert entry.version == post.version(AT).number
        assert entry.score == world.counters(post, AT).score
    gone = next(post for post in world.posts(crowd) if post.is_removed(AT))
    (entry,) = reddit.get("/api/info", id=names.post_id(gone)).entries
    assert (entry.post, entry.is_deleted) == (gone.id, True)


# ── threads ───────────────────────────────────────────────────────────────────────────────────────────────────────


def comments_in(told: Any) -> Iterator[dict[str, Any]]:
    """Every comment and every stub of a nested listing."""
    for child in told["data"]["children"]:
        yield child
        if child["kind"] == "t1" and child["data"]["replies"]:
            yield from comments_in(child["data"]["replies"])


class Whole:
    """Reads all of a thread: its first answer, its stubs, and what hangs on permalinks."""

    def __init__(self, reddit: Client, post: Post, limit: int) -> None:
        self.reddit, self.post = reddit, post
        self.by_name: dict[str, dict[str, Any]] = {}
        self.asked = 0
        self._stubs = self._read(list(comments_in(reddit.told(f"/comments/{self.id}", limit=limit)[1])))
        while self._stubs:
            self._follow(self._stubs.pop())

    @property
    def id(self) -> str:
        return names.bare(names.post_id(self.post))

    def _follow(self, stub: dict[str, Any]) -> None:
        self.asked += 1
        if stub["id"] == "_":
            branch = self.reddit.told(f"/comments/{self.id}/_/{names.bare(stub['parent_id'])}")[1]
            self._stubs += self._read(list(comments_in(branch)))
            return
        children = stub["children"]
        params = {"link_id": names.post_id(self.post), "children": ",".join(children[:100])}
        things = self.reddit.told("/api/morechildren", **params)["json"]["data"]["things"]
        assert things
        self._stubs += self._read(things)
        if children[100:]:
            self._stubs.append(stub | {"children": children[100:]})

    def _read(self, things: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.by_name |= {child["data"]["name"]: child["data"] for child in things if child["kind"] == "t1"}
        return [child["data"] for child in things if child["kind"] == "more"]


def test_a_thread_can_be_read_whole_by_its_stubs_and_permalinks(world: World, reddit: Client, crowd: Place) -> None:
    posts = sorted(living(world, crowd, AT - DAY), key=world.fame)[-3:]
    for post in posts:
        whole = Whole(reddit, post, limit=60)
        count = world.counters(post, AT).reply_count
        there = reddit.simulator.site.comments(post)[:count]
        assert {comment.name for comment in there if not comment.is_removed(AT)} <= whole.by_name.keys()
        assert whole.by_name.keys() <= {comment.name for comment in there}
        assert whole.asked > 3
        for comment in there:
            if comment.name in whole.by_name and not comment.is_removed(AT):
                told = whole.by_name[comment.name]
                assert (told["body"], told["author"]) == (comment.text(comment.version(AT)), comment.author)
        marks = {told["body"] for told in whole.by_name.values() if told["author"] == "[deleted]"}
        assert marks <= {"[removed]", "[deleted]"}
        (head,) = reddit.info(names.post_id(post))
        assert head["num_comments"] == count


def test_a_stub_counts_more_than_it_names(world: World, reddit: Client, crowd: Place) -> None:
    post = max(living(world, crowd, AT - DAY), key=world.fame)
    told = reddit.told(f"/comments/{names.bare(names.post_id(post))}", limit=40)
    stubs = [
        comment["data"]
        for comment in comments_in(told[1])
        if comment["kind"] == "more" and comment["data"]["id"] != "_"
    ]
    shown = [comment for comment in comments_in(told[1]) if comment["kind"] == "t1"]
    assert 0 < len(shown) <= 40
    assert any(stub["count"] > len(stub["children"]) for stub in stubs)
    assert {child["data"]["depth"] for child in shown} <= set(range(10))


def test_a_comment_that_was_taken_away_is_a_mark_or_nothing_in_its_thread_and_a_mark_by_name(
    world: World, reddit: Client, crowd: Place
) -> None:
    seen = {True: 0, False: 0}
    for post in sorted(living(world, crowd, AT - DAY), key=world.fame)[-6:]:
        whole = Whole(reddit, post, limit=500)
        count = world.counters(post, AT).reply_count
        for comment in reddit.simulator.site.comments(post)[:count]:
            if comment.is_removed(AT):
                (told,) = reddit.info(comment.name)
                assert told["body"] == ("[deleted]" if comment.removed_by == BY_AUTHOR else "[removed]")
                assert told["author"] == "[deleted]"
                seen[comment.name in whole.by_name] += 1
    assert min(seen.values()) > 0


def test_a_thread_that_nobody_knows_is_not_found_and_stubs_of_nothing_are_a_bad_request(reddit: Client) -> None:
    assert reddit.get("/comments/zzzzzz").status == 404
    assert reddit.get("/api/morechildren", link_id="t3_zzzzzz", children="a").status == 400


# ── the feed ──────────────────────────────────────────────────────────────────────────────────────────────────────

ATOM = "{http://www.w3.org/2005/Atom}"


def test_a_stranger_gets_the_feed_and_nothing_else(world: World, reddit: Client, crowd: Place) -> None:
    for rest in ("new/.rss", "new.rss"):
        page = reddit.ask("GET", path(crowd, rest))
        assert page.status == 200
        entries = ElementTree.fromstring(page.body).findall(f"{ATOM}entry")
        assert [entry.findtext(f"{ATOM}id") for entry in entries] == [
            names.post_id(post) for post in living(world, crowd)[: len(entries)]
        ]
        assert {entry.score for entry in page.entries} == {None}
    refused = reddit.ask("GET", path(crowd))
    assert (refused.status, b"whoa there, pardner!" in refused.body) == (403, True)


@pytest.mark.parametrize(("limit", "most"), [(None, 25), (60, 60), (500, 100)])
def test_the_feed_has_25_entries_or_up_to_100(reddit: Client, crowd: Place, limit: int | None, most: int) -> None:
    page = reddit.ask("GET", path(crowd, "new/.rss"), params={"limit": limit} if limit else {})
    assert 0 <= most - len(page.entries) <= most * 0.2


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_token_lasts_an_hour_and_is_told_to_whoever_has_the_secret(reddit: Client, crowd: Place) -> None:
    told = json.loads(reddit.login().body)
    assert (told["token_type"], told["expires_in"], told["scope"]) == ("bearer", 3600, "*")
    for after, status in ((timedelta(), 200), (59 * MINUTE, 200), (HOUR, 401)):
        assert reddit.get(path(crowd), AT + after, token=told["access_token"]).status == status


def test_a_playground_that_was_started_again_still_knows_its_tokens(world: World, crowd: Place) -> None:
    token = Client(world).token()
    assert Client(world).get(path(crowd), token=token).status == 200


@pytest.mark.parametrize("token", ["", "nonsense", "cGxheWdyb3VuZC0wMHwyMDk5fDA"])
def test_a_token_that_was_never_given_is_refused(reddit: Client, crowd: Place, token: str) -> None:
    page = reddit.ask("GET", path(crowd), headers={"authorization": f"Bearer {token}"})
    assert (page.status, json.loads(page.body)) == (401, {"message": "Unauthorized", "error": 401})
    assert "invalid_token" in page.headers["www-authenticate"]


def test_some_tokens_are_dead_long_before_they_said(crowd: Place) -> None:
    reddit = Client(World(5, START, places=2, days=3, habits=Habits(expired_early=0.5), others={"reddit": 1}))
    moments = [AT + minute * 11 * MINUTE for minute in range(40)]
    alive = [reddit.get(path(crowd), at + 31 * MINUTE, token=reddit.token(at)).status == 200 for at in moments]
    assert 8 < sum(alive) < 32


@pytest.mark.parametrize(
    ("basic", "form", "status", "error"),
    [
        ("nobody:knows", {"grant_type": "client_credentials"}, 401, 401),
        (f"{client()[0]}:wrong", {"grant_type": "client_credentials"}, 401, 401),
        ("", {"grant_type": "client_credentials"}, 401, 401),
        (":".join(client()), {"grant_type": "password"}, 200, "unauthorized_client"),
        (":".join(client()), {"grant_type": "wishes"}, 200, "unsupported_grant_type"),
        (f"{installed()}:", {"grant_type": "client_credentials"}, 200, "unauthorized_client"),
        (f"{installed()}:", {"grant_type": INSTALLED, "device_id": "short"}, 200, "invalid_request"),
        (f"{installed()}:", {"grant_type": INSTALLED, "device_id": "x" * 24}, 200, None),
    ],
)
def test_errors_about_tokens_come_with_200_except_for_a_wrong_client(
    reddit: Client, basic: str, form: dict[str, str], status: int, error: str | int | None
) -> None:
    page = reddit.login(basic=basic, body=urlencode(form))
    told = json.loads(page.body)
    assert (page.status, told.get("error")) == (status, error)
    assert ("access_token" in told) == (error is None)


# ── how often ─────────────────────────────────────────────────────────────────────────────────────────────────────


def rates(page: Page) -> list[str | None]:
    return [page.headers.get(f"x-ratelimit-{name}") for name in ("used", "remaining", "reset")]


def test_how_much_is_left_is_told_in_decimals_and_for_tokens_without(reddit: Client, crowd: Place) -> None:
    at = AT.replace(minute=4)
    login = reddit.login(at)
    token = json.loads(login.body)["access_token"]
    assert rates(login) == ["1", f"{FOR_TOKENS - 1}", "360"]
    assert rates(reddit.get(path(crowd), at, token=token)) == ["1", f"{A_CLIENTS - 1}.0", "360"]
    assert rates(reddit.get(path(crowd), at + 7 * MINUTE, token=token)) == ["1", f"{A_CLIENTS - 1}.0", "540"]
    assert rates(reddit.get("/r/nowhere/new", at, token=token)) == [None] * 3


def test_whoever_asks_too_often_is_told_to_wait_by_a_page_and_others_are_not(world: World, crowd: Place) -> None:
    reddit, other = Client(world), Client(world, 1)
    other.simulator = reddit.simulator
    tokens = [client.token() for client in (reddit, other)]
    asked = [reddit.get("/api/info", token=tokens[0]) for _ in range(A_CLIENTS + 1)]
    assert {page.status for page in asked[:-1]} == {200}
    assert (asked[-1].status, asked[-1].headers["retry-after"]) == (429, "600")
    assert b"please wait 600 second(s)" in asked[-1].body
    assert other.get("/api/info", token=tokens[1]).status == 200
    assert reddit.get("/api/info", AT + 10 * MINUTE, token=tokens[0]).status == 200


def test_strangers_may_ask_less_and_tokens_have_a_counter_of_their_own(reddit: Client, crowd: Place) -> None:
    feeds = [reddit.ask("GET", path(crowd, ".rss"), params={"limit": 1}).status for _ in range(A_STRANGERS + 1)]
    assert feeds == [200] * A_STRANGERS + [429]
    logins = [reddit.login() for _ in range(FOR_TOKENS + 1)]
    assert [page.status for page in logins] == [200] * FOR_TOKENS + [429]
    assert json.loads(logins[-1].body) == {"message": "Too Many Requests", "error": 429}
    assert "retry-after" not in logins[-1].headers


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(reddit: Client, name: str) -> Page:
    return reddit.simulator.refused(ALL_FAULTS[name], Ask("/r/x/new", "", AGENT, AT, BASE))


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("private", 403, {"reason": "private", "message": "Forbidden", "error": 403}),
        ("banned", 404, {"reason": "banned", "message": "Not Found", "error": 404}),
        ("missing", 404, {"message": "Not Found", "error": 404}),
        ("forbidden", 403, {"error": 403}),
        ("narrow_scope", 403, {"error": 403}),
        ("login_needed", 401, {"message": "Unauthorized", "error": 401}),
        ("slow_down_somehow", 429, {"message": "Too Many Requests", "error": 429}),
        ("server_error", 500, {"message": "Internal Server Error", "error": 500}),
        ("login_refused", 200, {"error": "invalid_grant"}),
    ],
)
def test_reddit_refuses_in_its_own_words(reddit: Client, name: str, status: int, said: dict[str, Any]) -> None:
    page = refused(reddit, name)
    assert (page.status, json.loads(page.body)) == (status, said)


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("blocked", 403, b"network policy"),
        ("challenge", 200, b"Please wait for verification"),
        ("over_18", 200, b"over 18?"),
        ("slow_down", 429, b"please wait 300 second(s)"),
    ],
)
def test_some_refusals_are_pages(reddit: Client, name: str, status: int, words: bytes) -> None:
    page = refused(reddit, name)
    assert (page.status, page.headers["Content-Type"], words in page.body) == (status, "text/html; charset=UTF-8", True)


def test_every_fault_with_a_status_has_that_status_in_reddits_words(reddit: Client) -> None:
    faults = [fault for fault in (FAULTS | REDDIT_FAULTS).values() if fault.status]
    assert [refused(reddit, fault.name).status for fault in faults] == [fault.status for fault in faults]


def test_an_address_that_is_too_long_and_a_nameless_asker_are_turned_away(reddit: Client, crowd: Place) -> None:
    assert reddit.get("/api/info", id="t3_" + "a" * 9_000).status == 414
    assert reddit.ask("GET", path(crowd, ".rss"), headers={"user-agent": ""}).status == 403


# ── what faults do to the telling ──────────────────────────────────────────────────────────────────────────────────


def test_distorted_answers_differ_as_their_fault_says(reddit: Client, crowd: Place) -> None:
    ago, here = timedelta(hours=5), path(crowd)
    params: dict[str, Any] = {"limit": 50}
    straight = reddit.names(here, **params)
    assert reddit.names(here, AT, distortion=Distortion(ago=ago), **params) == reddit.names(here, AT - ago, **params)
    assert sorted(reddit.names(here, distortion=Distortion(is_reordered=True), **params)) == sorted(straight)
    assert reddit.names(here, distortion=Distortion(is_repeated=True), **params)[::2] == straight
    behind = {**params, "after": straight[-1]}
    assert reddit.names(here, distortion=Distortion(is_looping=True), **behind) == straight
    assert reddit.told(here, distortion=Distortion(is_anchor_gone=True), **behind)["data"]["children"] == []
    skewed = reddit.told(here, distortion=Distortion(skew=HOUR), limit=1)["data"]["children"][0]["data"]["created_utc"]
    assert skewed - 3600 == reddit.told(here, limit=1)["data"]["children"][0]["data"]["created_utc"]


def test_the_site_has_its_paths_to_itself(world: World, crowd: Place) -> None:
    simulator = simulators(world)["reddit"]
    assert isinstance(simulator, RedditSimulator)
    assert [simulator.find(url) for url in (path(crowd), TOKENS, "/api/info", "/comments/abc")] == [crowd] * 4
    assert simulator.find(path(world.places[3])) == world.places[3]
    assert [simulator.find(url) for url in ("/feeds/0.xml", "/api/v1/search", "/rss", "/latest.json")] == [None] * 4
    assert RedditSimulator(World(5, START, places=2, days=1)).find("/r/x/new") is None


# ── read by our own reader ────────────────────────────────────────────────────────────────────────────────────────

KEYED = Wish("new", 100, has_key=True)


class Reader(Client):
    """Our own platform, asking the simulator."""

    def __init__(self, world: World, place: Place) -> None:
        super().__init__(world)
        self.source = Source(1, "key", reader.NAME, "reddit", f"r/{names.community(place).lower()}", "x", START)

    def first(self, wish: Wish) -> Request:
        (request,) = reader.first(self.source, Progress(), wish)
        return request

    def reading(self, request: Request, at: datetime = AT) -> Reading:
        parts = urlsplit(request.url)
        headers = {"authorization": f"Bearer {self.token(at)}"} if request.identity is not Identity.NONE else {}
        page = self.ask(request.method, parts.path, at, headers=headers, params=request.params)
        answer = Answer(
            page.status, {key.lower(): told for key, told in page.headers.items()}, page.body, request.url, at
        )
        assert reader.refusal(answer, request) is None
        return reader.read(answer, request)

    def items(self, request: Request, at: datetime = AT) -> list[Item]:
        reading = self.reading(request, at)
        assert reading.skipped == ()
        return [item.item for item in refine(reading, scope="", answer_url=request.url).items]


def told_text(simulator: RedditSimulator, post: Post, at: datetime) -> str:
    nature = simulator.site.nature(post)
    words = "" if nature.sort in WORDLESS else post.version(at).text
    return f"{words} View Poll Yes No" if nature.sort == "poll" else words


def test_our_own_reader_reads_back_every_post_as_it_is(world: World, crowd: Place) -> None:
    reddit = Reader(world, crowd)
    by_id = {names.post_id(post): post for post in living(world, crowd)}
    items = reddit.items(reddit.first(KEYED))
    for item in items:
        post = by_id[item.external_id]
        nature, counters = reddit.simulator.site.nature(post), world.counters(post, AT)
        assert " ".join((item.text or "").split()) == " ".join(told_text(reddit.simulator, post, AT).split())
        assert (item.title, item.created_at) == (post.versions[0].title, post.began_at)
        assert (item.score, item.reply_count) == (counters.score, counters.reply_count)
        has_left = nature.leaves_at is not None and nature.leaves_at <= AT
        assert item.author == (None if has_left else post.author)
        assert (item.is_adult, item.is_deleted) == (nature.is_adult, False)
        assert bool(item.references) == (nature.sort == CROSSPOST)
        assert (item.edited_at is not None) == (post.version(AT).number > 1 and nature.sort not in WORDLESS)
    assert [item.external_id for item in items] == list(by_id)[: len(items)]
    shown = {reddit.simulator.site.nature(by_id[item.external_id]).sort: bool(item.media) for item in items[10:]}
    assert {sort for sort, has_media in shown.items() if has_media} >= {"image", "gallery", "video"}


def test_our_own_reader_walks_a_listing_to_its_end(world: World, crowd: Place) -> None:
    reddit = Reader(world, crowd)
    request, pages = reddit.first(KEYED), []
    while True:
        pages.append(reading := reddit.reading(request))
        if reading.is_end:
            break
        (request,) = reading.follow
    ids = [item.external_id for reading in pages for item in reading.items]
    assert len(pages) == 10
    assert ids == [names.post_id(post) for post in living(world, crowd)][: len(ids)]


def test_our_own_reader_tells_who_took_a_post_away_and_what_is_not_there(world: World, crowd: Place) -> None:
    reddit = Reader(world, crowd)
    posts = [post for post in world.posts(crowd) if post.is_removed(AT)][:50]
    future = next(post for post in world.posts(crowd) if post.shown_from > AT)
    looks = [Recheck(names.post_id(post), "", None, reddit.source) for post in (*posts, future)]
    (request,) = reader.recheck(looks)
    reading = reddit.reading(request)
    natures = [reddit.simulator.site.nature(post).removed_by for post in posts]
    assert [(item.is_deleted, item.deleted_by) for item in reading.items] == [(True, who) for who in natures]
    assert reading.gone == (names.post_id(future),)


def test_our_own_reader_reads_a_stranger_s_feed(world: World, crowd: Place) -> None:
    reddit = Reader(world, crowd)
    by_id = {names.post_id(post): post for post in living(world, crowd)}
    items = reddit.items(reddit.first(KEYED.replace(has_key=False)))
    assert [item.external_id for item in items] == list(by_id)[: len(items)]
    assert len(items) > 80
    for item in items:
        post = by_id[item.external_id]
        nature = reddit.simulator.site.nature(post)
        words = "" if nature.sort in WORDLESS else post.version(AT).text + (" View Poll" * (nature.sort == "poll"))
        assert " ".join((item.text or "").split()) == " ".join(words.split())
        assert (item.title, item.created_at, item.is_partial) == (post.versions[0].title, post.began_at, True)
        assert (item.score, item.reply_count) == (None, None)


def test_our_own_reader_reads_a_thread_whole(world: World, crowd: Place) -> None:
    reddit = Reader(world, crowd)
    for post in sorted(living(world, crowd, AT - DAY), key=world.fame)[-2:]:
        source = reddit.source.replace(settings={"comments": True})
        (first,) = reader.first(source, Progress(), KEYED)
        waiting = [requests.thread(names.post_id(post), first)]
        items: dict[str, Item] = {}
        while waiting:
            request = waiting.pop()
            reading = reddit.reading(request)
            items |= {item.external_id: item for item in reading.items}
            waiting += reading.follow
        there = reddit.simulator.site.comments(post)[: world.counters(post, AT).reply_count]
        assert {comment.name for comment in there if not comment.is_removed(AT)} <= items.keys()
        for comment in there:
            item = items.get(comment.name)
            if item is not None and not comment.is_removed(AT):
                refined = refine(Reading((item,)), scope="", answer_url="https://www.reddit.com/").items[0].item
                assert (refined.text, item.author) == (comment.text(comment.version(AT)), comment.author)
                answered = names.comment_id(post, comment.parent) if comment.parent else names.post_id(post)
                assert item.references[0].external_id == answered


# ── as the real answers are ───────────────────────────────────────────────────────────────────────────────────────

THREADS = (
    *("crosspost", "deleted_comment", "gallery_2025", "inline_media", "more_two", "poll"),
    *("removed_comment", "sticky_72_comments", "video_2025"),
)
LISTINGS = (
    *("listing/askreddit_new", "listing/askreddit_top_all", "listing/quarantined_top_after_optin"),
    *("listing/user_overview_new_2025", "public/localllama_public_json_2026", "listing/askreddit_comments"),
    *("thread/info_deleted_comment", "thread/info_removed_comment"),
)
TOLD_BY_WORDS_ONLY = frozenset({"media", "secure_media", "removed_by_category"})
"""Of these the captures show only the empty form; what else there is, is known from clients' source."""


def plain(found: Field) -> Field:
    """Without the names of single pictures."""
    return tuple("*" if above == "media_metadata" else name for above, name in zip(("", *found), found, strict=False))


def shape(*told: Any) -> set[Field]:
    return {plain(found) for document in told for found in fields(document)}


def real(captures: Path, *found: str) -> list[Any]:
    return [json.loads((captures / "reddit" / f"{name}.json").read_bytes()) for name in found]


def things(told: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Every post, comment or stub in a document, however deep."""
    if isinstance(told, dict):
        if told.get("kind") == kind:
            yield told["data"]
        for inner in told.values():
            yield from things(inner, kind)
    elif isinstance(told, list):
        for inner in told:
            yield from things(inner, kind)


def captured(captures: Path, kind: str) -> list[dict[str, Any]]:
    told = real(captures, *LISTINGS, *(f"thread/{name}" for name in THREADS))
    return [child for document in told for child in things(document, kind)]


def apart(posts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The originals that crossposts carry are posts like any other."""
    originals = [original for post in posts for original in post.get("crosspost_parent_list", ())]
    return originals + [post | {"crosspost_parent_list": []} for post in posts]


def never_seen(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]], apart_from: frozenset[str] = frozenset()
) -> set[Field]:
    """Fields that no real thing of this sort has, with this type."""
    return {found for found in shape(*ours) - shape(*theirs) if found[0] not in apart_from}


def always_there(told: list[dict[str, Any]]) -> set[str]:
    return set.intersection(*(set(document) for document in told))


def test_a_listing_has_the_keys_of_real_ones(captures: Path, reddit: Client, crowd: Place) -> None:
    ours = reddit.told(path(crowd))
    (theirs,) = real(captures, "public/localllama_public_json_2026")
    assert ours["data"].keys() == theirs["data"].keys()
    assert ours.keys() == theirs.keys()


def test_every_key_of_a_post_occurs_in_real_ones_with_its_type_and_none_is_missing(
    captures: Path, world: World, reddit: Client, crowd: Place
) -> None:
    posts = [post for post in world.posts(crowd) if START - DAY / 24 < post.shown_from <= AT][:600]
    told = [reddit.info(*map(names.post_id, posts[at : at + 100])) for at in range(0, 600, 100)]
    ours = [post for page in told for post in page]
    ours += [child["data"] for child in reddit.told(path(crowd))["data"]["children"]]
    theirs = captured(captures, "t3")
    assert never_seen(apart(ours), apart(theirs), TOLD_BY_WORDS_ONLY) == set()
    # What all posts of today have: a deleted author's have less.
    of_today = always_there([post for post in theirs if "author_is_blocked" in post])
    assert of_today - always_there([post for post in ours if post["author"] != "[deleted]"]) == set()
    natures = {reddit.simulator.site.nature(post).sort for post in posts}
    assert natures == {*SORTS, CROSSPOST}


def test_every_key_of_a_comment_occurs_in_real_ones_with_its_type_and_none_is_missing(
    captures: Path, world: World, reddit: Client, crowd: Place
) -> None:
    posts = sorted(living(world, crowd, AT - DAY), key=world.fame)[-5:]
    told = [reddit.told(f"/comments/{names.bare(names.post_id(post))}") for post in posts]
    in_threads = [{**comment, "replies": ""} for document in told for comment in things(document, "t1")]
    theirs = captured(captures, "t1")
    alone = [reddit.info(comment["name"])[0] for comment in in_threads[:50]]
    assert never_seen(in_threads + alone, theirs) == set()
    threads = real(captures, "thread/sticky_72_comments")
    needed = always_there(list(things(threads, "t1")))
    assert needed - always_there([comment for comment in in_threads if comment["author"] != "[deleted]"]) == set()
    assert (
        needed - {"depth"} - always_there([comment for comment in alone if comment["author"] != "[deleted]"]) == set()
    )
    assert {type(child["replies"]).__name__ for document in told for child in things(document, "t1")} == {"str", "dict"}


def test_stubs_and_the_answer_about_them_are_like_real_ones(
    captures: Path, world: World, reddit: Client, crowd: Place
) -> None:
    post = max(living(world, crowd, AT - DAY), key=world.fame)
    stubs = [
        stub for limit in (30, 500) for stub in things(reddit.told(f"/comments/{post_path(post)}", limit=limit), "more")
    ]
    theirs = list(things(real(captures, "thread/more_two", "thread/morechildren"), "more"))
    assert shape(*stubs) == shape(*theirs)
    children = next(stub["children"] for stub in stubs if stub["children"])
    ours = reddit.told("/api/morechildren", link_id=names.post_id(post), children=",".join(children[:100]))
    (real_one,) = real(captures, "thread/morechildren")
    assert ours["json"].keys() == real_one["json"].keys()
    assert ours["json"]["data"].keys() == real_one["json"]["data"].keys()


def post_path(post: Post) -> str:
    return names.bare(names.post_id(post))


def test_what_was_taken_away_by_its_author_or_a_moderator_has_exactly_the_keys_of_real_ones(
    captures: Path, world: World, reddit: Client, crowd: Place
) -> None:
    for name, mark in (("info_deleted_comment", "[deleted]"), ("info_removed_comment", "[removed]")):
        (theirs,) = things(real(captures, f"thread/{name}"), "t1")
        ours = next(
            told
            for post in sorted(living(world, crowd, AT - DAY), key=world.fame, reverse=True)
            for comment in reddit.simulator.site.comments(post)
            if comment.is_removed(AT) and (told := reddit.info(comment.name)[0])["body"] == mark
        )
        assert (theirs["body"], theirs["author"]) == (mark, ours["author"])
        assert theirs.keys() - ours.keys() == set()


def test_a_community_has_only_keys_of_real_ones(captures: Path, reddit: Client, crowd: Place) -> None:
    ours = reddit.told(path(crowd, "about"))
    theirs = list(things(real(captures, "listing/subreddit_info_mixed_ids"), "t5"))
    assert ours["kind"] == "t5"
    assert never_seen([ours["data"]], theirs) == set()


def test_a_token_and_its_errors_are_like_real_ones(captures: Path, reddit: Client) -> None:
    theirs = {name: real(captures, f"http/{name}")[0] for name in ("token_client_credentials", "token_429")}
    theirs["token_invalid_grant_http200"] = real(captures, "http/token_invalid_grant_http200")[0]
    ours = {
        "token_client_credentials": reddit.login(),
        "token_429": [reddit.login() for _ in range(FOR_TOKENS)][-1],
        "token_invalid_grant_http200": refused(reddit, "login_refused"),
    }
    for name, page in ours.items():
        real_one = theirs[name]
        assert page.status == real_one["status"]["code"]
        assert shape(json.loads(page.body)) == shape(json.loads(real_one["body"]))
    told = {key: value for key, value in ours["token_client_credentials"].headers.items() if key.startswith("x-rate")}
    assert told.keys() <= theirs["token_client_credentials"]["headers"].keys()
    assert "." not in told["x-ratelimit-remaining"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("401_invalid_token", "login_needed"),
        ("403_bare", "forbidden"),
        ("403_insufficient_scope", "narrow_scope"),
        ("403_quarantined", "quarantined"),
        ("404_json", "missing"),
        ("429_html_retry_after", "slow_down"),
        ("500_json", "server_error"),
        ("503_empty", "unavailable"),
    ],
)
def test_refusals_have_the_status_the_headers_and_the_keys_of_real_ones(
    captures: Path, reddit: Client, name: str, fault: str
) -> None:
    (theirs,) = real(captures, f"http/{name}")
    page = refused(reddit, fault)
    headers = {key.lower(): value for key, value in theirs["headers"].items()}
    assert page.status == theirs["status"]["code"]
    assert headers["content-type"].lower() == page.headers["Content-Type"].lower()
    assert ("retry-after" in headers) == ("retry-after" in page.headers)
    assert headers.get("www-authenticate") == page.headers.get("www-authenticate")
    if "json" in headers["content-type"] and theirs["body"]:
        assert shape(json.loads(page.body)) == shape(json.loads(theirs["body"]))
    else:
        assert bool(page.body) == bool(theirs["body"])


def elements(body: bytes) -> set[Field]:
    """Every element with those above it and its attributes."""

    def below(element: ElementTree.Element, above: Field) -> Iterator[Field]:
        here = (*above, element.tag)
        yield (*here, *sorted(element.attrib))
        for inner in element:
            yield from below(inner, here)

    return set(below(ElementTree.fromstring(body), ()))


def test_the_feed_has_exactly_the_elements_of_a_real_one(captures: Path, reddit: Client, crowd: Place) -> None:
    theirs = elements((captures / "reddit/public/top_rss_2026.xml").read_bytes())
    ours = elements(reddit.ask("GET", path(crowd, "top/.rss"), params={"t": "week", "limit": 100}).body)
    assert ours == theirs
