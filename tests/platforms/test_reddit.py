"""Reddit: which community is meant, what is asked, what its posts and comments are, with a key and without.

The samples have Reddit's form, after recorded answers; their content is invented.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.collect.following import checked_settings
from catchment.errors import InvalidInput, LoginNeeded, Unreadable
from catchment.model import (
    Answer,
    Ask,
    Identity,
    Item,
    Look,
    Media,
    Order,
    Progress,
    Reading,
    Reference,
    Request,
    Source,
    Target,
    Watermark,
)
from catchment.platforms import reddit
from catchment.platforms.reddit import atom, requests
from catchment.refine import refine

NOW = datetime(2026, 3, 2, tzinfo=UTC)
SAMPLES = Path(__file__).parent / "samples" / "reddit"
SOURCE = Source(1, "key", "reddit", "reddit", "r/riverboats", "r/RiverBoats", NOW, credential="app")
SITE = "https://www.reddit.com/"


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def with_key(listing: str = "new", source: Source = SOURCE, mark: Watermark | None = None, **more: Any) -> Request:
    ask = Ask(listing, more.pop("limit", 100), has_key=True, **more)
    (request,) = reddit.first(source, Progress(watermark=mark), ask)
    return request


def without_key(listing: str = "new", **more: Any) -> Request:
    (request,) = reddit.first(SOURCE.plus(credential=None), Progress(), Ask(listing, 100, **more))
    return request


def with_comments() -> Request:
    return with_key(source=SOURCE.plus(settings={"comments": True}))


def read(body: bytes | Any, request: Request | None = None) -> Reading:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = request or with_key()
    answer = Answer(200, {}, body, request.url, NOW)
    assert reddit.refusal(answer, request) is None
    return reddit.read(answer, request)


def listing(*posts: dict[str, Any], after: str | None = None) -> dict[str, Any]:
    return {"kind": "Listing", "data": {"children": [{"kind": "t3", "data": one} for one in posts], "after": after}}


def posts() -> dict[str, Item]:
    return {item.external_id: item for item in read(sample("new.json")).items}


def words(item: Item) -> str | None:
    """What is stored as the item's text."""
    return refine(Reading((item,)), scope="", answer_url=SITE).items[0].item.text


# ── which community ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "typed",
    [
        "r/RiverBoats",
        "/r/riverboats/",
        " R/RIVERBOATS ",
        "reddit.com/r/RiverBoats",
        "https://www.reddit.com/r/RiverBoats/",
        "http://old.reddit.com/r/RiverBoats/about",
        "https://np.reddit.com/r/riverboats",
        "https://new.reddit.com/r/RiverBoats/wiki/index",
        "https://www.reddit.com/r/RiverBoats.json",
        "https://www.reddit.com/r/RiverBoats/.rss",
    ],
)
def test_a_community_has_one_address_however_it_is_written(typed: str) -> None:
    target = reddit.understand(typed)
    assert (target.kind, target.address, target.settings) == ("reddit", "r/riverboats", {})


@pytest.mark.parametrize(
    ("typed", "settings"),
    [
        ("https://www.reddit.com/r/RiverBoats/top/?t=week", {"sort": "top", "time_filter": "week"}),
        ("https://www.reddit.com/r/RiverBoats/top", {"sort": "top"}),
        ("r/RiverBoats/new", {"sort": "new"}),
        ("https://old.reddit.com/r/RiverBoats/hot.json?t=week", {"sort": "hot"}),
        ("https://www.reddit.com/r/RiverBoats/controversial?t=nonsense", {"sort": "controversial"}),
    ],
)
def test_the_address_of_a_listing_sets_which_is_read(typed: str, settings: dict[str, str]) -> None:
    assert reddit.understand(typed) == Target("reddit", "r/riverboats", "r/RiverBoats", settings)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("u/spez", "only communities"),
        ("https://www.reddit.com/user/spez/submitted", "only communities"),
        ("RiverBoats", "names no community"),
        ("https://www.reddit.com/", "names no community"),
        ("r/", "names no community"),
        ("r/a+b", "add each of them by itself"),
        ("r/random", "another one each time"),
        ("r/what a name", "cannot be called"),
        ("https://www.reddit.com/r/RiverBoats/comments/a1/locks/", "its community is r/RiverBoats"),
        ("https://www.reddit.com/r/RiverBoats/s/AbC", "its community is r/RiverBoats"),
        ("https://www.reddit.com/r/RiverBoats/search?q=locks", "searches"),
        ("https://www.reddit.com/r/RiverBoats/gilded", "one of new, top"),
        ("https://www.reddit.com/comments/a1", "one post"),
        ("https://redd.it/a1", "no address of a community"),
        ("https://example.com/r/RiverBoats", "no address of a community"),
        ("ftp://www.reddit.com/r/RiverBoats", "no address of a community"),
        ("https://[www.reddit.com/r/x", "broken"),
    ],
)
def test_what_is_no_community_is_answered_with_what_would_be_right(typed: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as failure:
        reddit.understand(typed)
    assert failure.value.helps


def test_the_settings_of_a_source_are_of_the_right_sort() -> None:
    (kind,) = reddit.KINDS
    given = {"sort": "top", "time_filter": "week", "limit": "80", "comments": "true", "without_key": "refuse"}
    assert checked_settings(kind, given) == {**given, "limit": 80, "comments": True}
    assert checked_settings(kind, {"comments": False}) == {"comments": False}
    for wrong in ({"sort": "best"}, {"time_filter": "decade"}, {"limit": 1001}, {"comments": "maybe"}):
        with pytest.raises(InvalidInput):
            checked_settings(kind, wrong)


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_newest_are_read_past_what_is_known_and_the_others_are_ranked() -> None:
    (kind,) = reddit.KINDS
    told = {one.name: (one.order, one.reach, one.page_size, one.overlap, one.is_window) for one in kind.listings}
    ranked = (Order.RANKED, 1000, 100, 0, False)
    assert told == {
        "new": (Order.NEWEST_FIRST, 1000, 100, 100, False),
        **dict.fromkeys(("top", "hot", "rising", "controversial"), ranked),
        "atom": (Order.NEWEST_FIRST, None, None, 0, True),
    }
    assert (kind.listings[0].name, kind.newest, kind.is_tiered) == ("new", "new", True)


def test_with_a_key_the_interface_is_asked_for_whole_pages_of_the_newest() -> None:
    request = with_key(limit=50)
    assert (request.url, request.params) == (
        "https://oauth.reddit.com/r/riverboats/new",
        {"limit": "100", "raw_json": "1"},
    )
    assert (request.identity, request.credential, request.listing) == (Identity.NEEDED, "app", "new")


def test_a_ranked_listing_is_asked_for_as_much_as_is_wanted_of_its_time() -> None:
    assert with_key("top", limit=80, time_filter="week").params == {"limit": "80", "t": "week", "raw_json": "1"}
    assert with_key("top", limit=500).params == {"limit": "100", "raw_json": "1"}
    assert with_key("hot", time_filter="week").params == {"limit": "100", "raw_json": "1"}


def test_without_a_key_the_feed_is_read_which_is_a_window() -> None:
    request = without_key()
    assert (request.url, request.params) == ("https://www.reddit.com/r/riverboats/new/.rss", {"limit": "100"})
    assert (request.identity, request.credential, request.listing) == (Identity.NONE, None, "atom")
    assert without_key("atom") == request
    ranked = without_key("top", time_filter="week")
    assert (ranked.url, ranked.params["t"], ranked.listing) == (
        "https://www.reddit.com/r/riverboats/top/.rss",
        "week",
        "top",
    )


def test_a_source_that_wants_no_feed_says_that_a_key_is_missing() -> None:
    source = SOURCE.plus(settings={"without_key": "refuse"})
    with pytest.raises(LoginNeeded, match=r"no key.*credentials add reddit.*on request only.*without_key=atom"):
        reddit.first(source, Progress(), Ask("new", 100))
    assert reddit.first(source, Progress(), Ask("new", 100, has_key=True))


# ── posts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_post_is_told_whole() -> None:
    assert posts()["t3_a1"] == Item(
        "t3_a1",
        kind="post",
        created_at=datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC),
        edited_at=datetime(2026, 1, 1, 1, tzinfo=UTC),
        title="Locks & weirs <today>",
        html='<!-- SC_OFF --><div class="md"><p>Opened at 8. See <a href="/r/barges">barges</a>.</p>\n</div>'
        "<!-- SC_ON -->",
        base_url=SITE,
        url="https://www.reddit.com/r/RiverBoats/comments/a1/locks/",
        author="ada",
        author_id="t2_ada1",
        score=12,
        reply_count=3,
        thread_id="t3_a1",
        is_head=True,
        tags=("News",),
    )
    assert words(posts()["t3_a1"]) == "Opened at 8. See barges."


def test_a_link_post_points_to_its_link_and_an_account_that_is_gone_is_nobody() -> None:
    link = posts()["t3_a2"]
    assert (link.target_url, link.html, link.text) == ("https://maps.example/river?a=1&b=2", None, None)
    # An edit of long ago is told without its time; and the text of an account that is gone is not gone.
    assert (link.author, link.author_id, link.edited_at, link.is_deleted) == (None, None, None, False)
    assert (link.score, link.reply_count) == (0, 0)


@pytest.mark.parametrize(
    ("post", "media"),
    [
        ("t3_a3", (Media("https://i.redd.it/boat1.jpeg", width=800, height=600),)),
        (
            "t3_a4",
            (
                Media("https://i.redd.it/m2.gif", mime="image/gif", width=30, height=40, alt="The second"),
                Media("https://preview.redd.it/m1.png?width=10&s=abc", mime="image/png", width=10, height=20),
            ),
        ),
        (
            "t3_a5",
            (
                Media(
                    "https://v.redd.it/film1/DASH_720.mp4?source=fallback",
                    "video",
                    mime="video/mp4",
                    width=1280,
                    height=720,
                    duration_seconds=42,
                ),
            ),
        ),
        ("t3_a6", ()),
        ("t3_a1", ()),
    ],
    ids=["an image", "a gallery in its order", "a film", "a film that is still encoded", "words"],
)
def test_what_a_post_shows_is_told_as_far_as_it_is_there(post: str, media: tuple[Media, ...]) -> None:
    assert posts()[post].media == media


def test_pictures_inside_a_text_stand_in_its_order() -> None:
    def inside(id: str) -> dict[str, Any]:
        return {"status": "valid", "e": "Image", "m": "image/png", "s": {"u": f"https://preview.redd.it/{id}.png?s=1"}}

    film = {"status": "valid", "e": "RedditVideo", "hlsUrl": "https://v.redd.it/f/HLS.m3u8?a=1", "x": 3, "y": 4}
    post = {
        "name": "t3_x1",
        "selftext": "first m2, then m1, then f9",
        "media_metadata": {"f9": film, "m1": inside("m1"), "m2": inside("m2"), "m0": inside("m0")},
    }
    (item,) = read(listing(post)).items
    names = [one.url.rpartition("/")[2].partition("?")[0] for one in item.media]
    assert names == ["m2.png", "m1.png", "HLS.m3u8", "m0.png"]
    assert item.media[2] == Media("https://v.redd.it/f/HLS.m3u8?a=1", "video", width=3, height=4)


def test_the_options_of_a_poll_are_words_and_its_votes_are_not() -> None:
    assert words(posts()["t3_a7"]) == "Choose.\n\nRed & white\nBlue"
    options = {"poll_data": {"options": [{"text": "Red"}, {"text": None}, 3, {"text": "Blue"}]}}
    plain, bare, gone = read(
        listing(
            {"name": "t3_p1", "selftext": "Choose.", **options},
            {"name": "t3_p2", **options},
            {"name": "t3_p3", "selftext": "[removed]", **options},
        )
    ).items
    assert (words(plain), words(bare), words(gone)) == ("Choose.\n\nRed\nBlue", "Red\nBlue", None)


def test_a_crosspost_tells_what_was_crossposted_and_points_to_it() -> None:
    post = posts()["t3_a8"]
    assert post.target_url == "https://www.reddit.com/r/barges/comments/z9/old/"
    assert post.references == (
        Reference(
            "crossposted",
            external_id="t3_z9",
            url="https://www.reddit.com/r/barges/comments/z9/old/",
            author="cleo",
            text="Found a barge.",
        ),
    )


def test_a_crosspost_shows_what_the_original_shows_and_is_one_even_if_that_is_gone() -> None:
    film = {"secure_media": {"reddit_video": {"fallback_url": "https://v.redd.it/f/DASH.mp4"}}, "title": "Film"}
    crossing = {"crosspost_parent": "t3_o1"}
    whole, alone = read(
        listing({"name": "t3_x1", **crossing, "crosspost_parent_list": [film]}, {"name": "t3_x2", **crossing})
    ).items
    assert [one.url for one in whole.media] == ["https://v.redd.it/f/DASH.mp4"]
    assert whole.references == (Reference("crossposted", external_id="t3_o1", text="Film"),)
    assert alone.references == (Reference("crossposted", external_id="t3_o1"),)


def test_pinned_and_adult_posts_are_marked_and_plain_words_are_enough() -> None:
    rules = posts()["t3_a9"]
    assert (rules.is_pinned, rules.is_adult, rules.text, rules.html) == (True, True, "No racing.", None)
    assert not posts()["t3_a1"].is_adult


def test_what_is_no_post_is_skipped_and_the_rest_goes_on() -> None:
    reading = read(sample("new.json"))
    assert [item.external_id for item in reading.items] == [f"t3_a{number}" for number in range(1, 10)]
    assert [one.reason for one in reading.skipped] == ["neither post nor comment", "bad id"]


def test_an_answer_of_endless_things_is_read_in_part_and_the_rest_is_counted() -> None:
    reading = read({"kind": "Listing", "data": {"children": [{"kind": "t5", "data": {}}] * 5_010}})
    assert Counter(one.reason for one in reading.skipped) == {
        "neither post nor comment": 5_000,
        "too many in one answer": 10,
    }


def test_a_key_that_is_missing_null_or_of_a_wrong_sort_is_unknown_and_never_zero() -> None:
    wrong = {
        "title": 3, "author": None, "created_utc": "today", "edited": "yes", "score": "12", "num_comments": True,
        "selftext": [], "selftext_html": 1, "media_metadata": [], "gallery_data": {"items": [None, {"media_id": 3}]},
        "poll_data": 1, "crosspost_parent_list": ["x"], "preview": {"images": {}}, "permalink": 5, "url": None,
        "media": {"reddit_video": []}, "secure_media": "x", "link_flair_text": {}, "stickied": "no", "over_18": 1,
    }  # fmt: skip
    unknown = [
        Item(name, kind="post", base_url=SITE, url=f"{SITE}comments/{name[3:]}/", thread_id=name, is_head=True)
        for name in ("t3_x1", "t3_x2")
    ]
    assert read(listing({"name": "t3_x1", **wrong}, {"id": "x2"})).items == tuple(unknown)


def test_an_answer_whose_signs_came_encoded_is_read_as_if_they_had_not() -> None:
    body = sample("new.json").decode().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert read(body.encode()) == read(sample("new.json"))
    # Where they did not, what somebody typed is left as it is.
    title = read(listing({"name": "t3_x1", "title": "&amp;lt; in HTML"})).items[0].title
    assert title == "&amp;lt; in HTML"


# ── what is taken away ────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_taken_away_is_marked_with_who_did_and_its_mark_is_no_text() -> None:
    (request,) = reddit.look_again([Look("t3_a1", "", None, SOURCE)])
    taken = read(sample("looks.json"), request).items
    assert [(one.external_id, one.is_deleted, one.deleted_by) for one in taken] == [
        ("t3_a1", True, "moderator"),
        ("t3_a2", True, "author"),
        ("t3_a3", True, "moderator"),
        ("t1_c1", True, "moderator"),
        ("t1_c2", True, "author"),
    ]
    assert {(one.text, one.html) for one in taken} == {(None, None)}
    assert [one.title for one in taken] == ["Locks & weirs <today>", None, "My boat", None, None]


@pytest.mark.parametrize(
    ("told", "by"),
    [
        ({"selftext": "[removed]"}, "moderator"),
        ({"selftext": "[ Removed by Reddit ]"}, "moderator"),
        ({"selftext": "[deleted]"}, "author"),
        ({"selftext": "[deleted]", "removed_by_category": "moderator"}, "moderator"),
        ({"selftext": "still there", "removed_by_category": "automod_filtered"}, "moderator"),
        ({"removed_by_category": "author"}, "author"),
        ({"title": "[deleted by user]"}, "author"),
        ({"author": "[deleted]", "selftext": "still there"}, None),
        ({"selftext": "It was [removed] yesterday"}, None),
    ],
)
def test_who_took_a_post_away_is_told_by_its_marks(told: dict[str, Any], by: str | None) -> None:
    (item,) = read(listing({"name": "t3_x1", **told})).items
    assert (item.is_deleted, item.deleted_by) == (by is not None, by)


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_listing_goes_on_after_what_it_names_and_ends_where_it_names_nothing() -> None:
    reading = read(sample("new.json"))
    assert [one.params["after"] for one in reading.follow] == ["t3_a9"]
    assert (reading.is_end, reading.title) == (False, "r/RiverBoats")
    last = read(sample("last.json"), reading.follow[0])
    assert (len(last.items), last.follow, last.is_end) == (1, (), True)


def test_an_empty_community_is_empty_and_at_its_end() -> None:
    assert read(sample("empty.json")) == Reading(cursor={})


def test_a_listing_that_breaks_off_above_what_is_stored_proves_nothing() -> None:
    known = requests.next_page(with_key(mark=Watermark(NOW)), "t3_a9")
    reading = read(sample("empty.json"), known)
    assert (reading.is_torn, reading.notes) == (
        True,
        ("a page came empty where more was announced: it is asked again",),
    )
    for legitimate in (with_key(), with_key("top", mark=Watermark(NOW))):
        assert not read(sample("empty.json"), requests.next_page(legitimate, "t3_a9")).is_torn


@pytest.mark.parametrize("body", [b"{}", b"[1]", b'{"kind": "Listing"}', b'{"data": {"children": {}}}', b"12", b"null"])
def test_what_is_no_listing_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read(body)


# ── second looks ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_items_are_looked_at_again_a_hundred_at_a_time() -> None:
    looks = [Look(f"t3_{number}", "", None, SOURCE) for number in range(250)]
    asked = reddit.look_again(looks)
    assert [len(one.params["id"].split(",")) for one in asked] == [100, 100, 50]
    assert {(one.url, one.identity, one.credential) for one in asked} == {
        ("https://oauth.reddit.com/api/info", Identity.NEEDED, "app")
    }
    assert reddit.look_again([]) == []


def test_without_a_key_nothing_can_be_looked_at_again() -> None:
    assert reddit.look_again([Look("t3_a1", "", None, SOURCE, has_key=False)]) == []


def test_strangers_are_allowed_less_than_a_key() -> None:
    assert reddit.BUDGET is not None
    assert (reddit.BUDGET.of("app").limit, reddit.BUDGET.of(None).limit) == (60, 10)


def test_what_does_not_come_back_is_gone() -> None:
    (request,) = reddit.look_again([Look(one, "", None, SOURCE) for one in ("t3_a1", "t3_q1", "t1_c1", "t1_q2")])
    assert read(sample("looks.json"), request).gone == ("t3_q1", "t1_q2")


def test_what_may_only_have_been_unreadable_is_not_taken_for_gone() -> None:
    (request,) = reddit.look_again([Look(one, "", None, SOURCE) for one in ("t3_a1", "t3_q1")])
    reading = read(sample("new.json"), request)
    assert (len(reading.skipped), reading.gone) == (2, ())


def test_a_second_look_finds_the_same_content() -> None:
    def marks(reading: Reading) -> dict[str, bytes]:
        return {one.item.external_id: one.fingerprint for one in refine(reading, scope="", answer_url=SITE).items}

    (request,) = reddit.look_again([Look("t3_a1", "", None, SOURCE)])
    listed, looked = marks(read(sample("new.json"))), marks(read(sample("new.json"), request))
    assert listed == looked


# ── comments ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_comments_are_asked_for_only_where_the_source_wants_them_and_a_post_has_any() -> None:
    assert len(read(sample("new.json")).follow) == 1
    _, *threads = read(sample("new.json"), with_comments()).follow
    # Nobody has answered a2.
    assert [one.if_changed for one in threads] == [f"t3_a{number}" for number in (1, 3, 4, 5, 6, 7, 8, 9)]
    assert (threads[0].url, threads[0].params, threads[0].credential) == (
        "https://oauth.reddit.com/comments/a1",
        {"limit": "500", "raw_json": "1"},
        "app",
    )


def thread_request() -> Request:
    return next(one for one in read(sample("new.json"), with_comments()).follow if one.if_changed == "t3_a1")


def test_a_thread_tells_its_post_and_each_comment_before_its_replies() -> None:
    told = read(sample("thread.json"), thread_request()).items
    assert [(one.external_id, one.kind, one.references and one.references[0].external_id) for one in told] == [
        ("t3_a1", "post", ()),
        ("t1_c1", "comment", "t3_a1"),
        ("t1_c2", "comment", "t1_c1"),
        ("t1_c3", "comment", "t1_c1"),
        ("t1_c4", "comment", "t3_a1"),
        ("t1_c5", "comment", "t1_c4"),
        ("t1_c8", "comment", "t3_a1"),
    ]
    assert {one.thread_id for one in told} == {"t3_a1"}


def test_a_comment_is_told_whole() -> None:
    assert read(sample("thread.json"), thread_request()).items[1] == Item(
        "t1_c1",
        kind="comment",
        created_at=datetime(2026, 1, 1, 0, 6, 40, tzinfo=UTC),
        edited_at=datetime(2026, 1, 1, 0, 23, 20, tzinfo=UTC),
        html='<div class="md"><p>Good news.</p>\n</div>',
        base_url=SITE,
        url="https://www.reddit.com/r/RiverBoats/comments/a1/locks/c1/",
        author="ben",
        author_id="t2_ben1",
        score=4,
        reply_count=2,
        thread_id="t3_a1",
        is_pinned=True,
        references=(Reference("replied_to", external_id="t3_a1"),),
    )


def test_a_removed_comment_a_hidden_score_and_replies_left_out_are_told_as_what_they_are() -> None:
    _, _, deep, removed, hidden, _, alone = read(sample("thread.json"), thread_request()).items
    assert (removed.is_deleted, removed.deleted_by, removed.html, removed.author) == (True, "moderator", None, None)
    assert (hidden.score, hidden.media) == (
        None,
        (Media("https://i.giphy.com/x1.gif", mime="image/gif", width=5, height=5),),
    )
    # How many answer is told where all of them are shown.
    assert (deep.reply_count, hidden.reply_count, alone.reply_count) == (None, None, 0)
    assert alone.url == "https://www.reddit.com/comments/a1/_/c8/"


def test_comments_that_a_thread_leaves_out_are_asked_for_by_id_and_deep_ones_from_their_parent() -> None:
    first, second, deeper = read(sample("thread.json"), thread_request()).follow
    ids = ["c6", "c7", *(f"d{number}" for number in range(1, 151))]
    assert [one.params["children"].split(",") for one in (first, second)] == [ids[:100], ids[100:]]
    assert (first.url, first.method, first.params["link_id"], first.params["api_type"]) == (
        "https://oauth.reddit.com/api/morechildren",
        "GET",
        "t3_a1",
        "json",
    )
    assert deeper.url == "https://oauth.reddit.com/comments/a1/_/c2"
    # From there the same stub leads nowhere new.
    again = read(sample("thread.json"), deeper).follow
    assert deeper not in again
    assert {one.step for one in again} == {requests.STUB}


def test_what_was_left_out_comes_flat_and_may_leave_out_more() -> None:
    stub = read(sample("thread.json"), thread_request()).follow[0]
    reading = read(sample("stub.json"), stub)
    assert [(one.external_id, one.reply_count) for one in reading.items] == [("t1_c6", None), ("t1_c7", None)]
    assert [one.params["children"] for one in reading.follow] == ["e1,e2"]


# ── without a key ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_feed_tells_posts_in_brief_and_says_what_is_missing() -> None:
    reading = read(sample("feed.xml"), without_key())
    assert reading.items[0] == Item(
        "t3_a1",
        kind="post",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        title="Locks & weirs <today>",
        html='<div class="md"><p>Opened at 8. See <a href="/r/barges">barges</a>.</p> </div>',
        base_url=SITE,
        url="https://www.reddit.com/r/RiverBoats/comments/a1/locks/",
        author="ada",
        thread_id="t3_a1",
        is_head=True,
        is_brief=True,
    )
    assert (reading.notes, reading.cursor) == ((atom.NOTE,), {"note": atom.NOTE})
    assert "without a key" in atom.NOTE
    assert [one.reason for one in reading.skipped] == ["bad id"]


def test_the_feeds_table_is_no_content_but_its_words_and_its_link_are() -> None:
    _, link, image, comment = read(sample("feed.xml"), without_key()).items
    assert (link.html, link.target_url, link.author, link.media) == (
        None,
        "https://maps.example/river?a=1&b=2",
        None,
        (),
    )
    assert (image.html, image.media) == (None, (Media("https://i.redd.it/boat1.jpeg"),))
    assert (comment.kind, comment.title, comment.thread_id, comment.is_brief) == ("comment", None, "t3_a1", True)


def test_a_post_says_the_same_in_brief_and_whole() -> None:
    def mark(item: Item) -> bytes:
        return refine(Reading((item,)), scope="", answer_url=SITE).items[0].fingerprint

    brief = {item.external_id: item for item in read(sample("feed.xml"), without_key()).items}
    assert [mark(brief[one]) for one in ("t3_a1", "t3_a2", "t3_a3")] == [
        mark(posts()[one]) for one in ("t3_a1", "t3_a2", "t3_a3")
    ]


def test_a_feed_that_breaks_off_tells_what_came_and_proves_nothing() -> None:
    reading = read(sample("feed.xml")[:2500], without_key())
    assert reading.is_torn
    assert [item.external_id for item in reading.items] == ["t3_a1", "t3_a2"][: len(reading.items)]
