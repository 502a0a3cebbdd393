"""Reddit's JSON for a post, a comment, a community: every field that it has today, most of them without a meaning.

Every key written here occurs in real answers, with the same type; a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from html import escape
from typing import Any

from catchment.model import Record
from catchment.playground.sites import Entry
from catchment.playground.sites.reddit import names
from catchment.playground.sites.reddit.comments import Comment
from catchment.playground.sites.reddit.fates import (
    BY_AUTHOR,
    CROSSPOST,
    ENCODED_AFTER,
    WORDLESS,
    Nature,
)
from catchment.playground.sites.reddit.site import Site
from catchment.playground.world import Place, Post

HOME = "https://www.reddit.com"
NOBODY = "[deleted]"
MARKS = {BY_AUTHOR: "[deleted]", "moderator": "[removed]"}
CATEGORIES = {BY_AUTHOR: "deleted", "moderator": "moderator"}

Told = dict[str, Any]

OF_AN_ACCOUNT: Mapping[str, Any] = {
    "author_flair_richtext": [],
    "author_flair_type": "text",
    "author_patreon_flair": False,
    "author_premium": False,
}
"""Present as long as there is an account."""
OF_ALL: Mapping[str, Any] = {
    "all_awardings": [],
    "approved_at_utc": None,
    "approved_by": None,
    "archived": False,
    "author_flair_background_color": None,
    "author_flair_css_class": None,
    "author_flair_template_id": None,
    "author_flair_text": None,
    "author_flair_text_color": None,
    "author_is_blocked": False,
    "awarders": [],
    "banned_at_utc": None,
    "banned_by": None,
    "can_gild": False,
    "can_mod_post": False,
    "distinguished": None,
    "downs": 0,
    "gilded": 0,
    "gildings": {},
    "likes": None,
    "locked": False,
    "mod_note": None,
    "mod_reason_by": None,
    "mod_reason_title": None,
    "mod_reports": [],
    "no_follow": False,
    "num_reports": None,
    "removal_reason": None,
    "report_reasons": None,
    "saved": False,
    "send_replies": True,
    "stickied": False,
    "subreddit_type": "public",
    "top_awarded_type": None,
    "total_awards_received": 0,
    "treatment_tags": [],
    "user_reports": [],
}
OF_POSTS: Mapping[str, Any] = {
    **OF_ALL,
    "allow_live_comments": False,
    "category": None,
    "clicked": False,
    "content_categories": None,
    "contest_mode": False,
    "discussion_type": None,
    "hidden": False,
    "hide_score": False,
    "is_created_from_ads_ui": False,
    "is_crosspostable": True,
    "is_meta": False,
    "is_original_content": False,
    "is_reddit_media_domain": False,
    "is_robot_indexable": True,
    "is_video": False,
    "link_flair_background_color": "",
    "link_flair_css_class": None,
    "link_flair_richtext": [],
    "link_flair_text": None,
    "link_flair_text_color": "dark",
    "link_flair_type": "text",
    "media": None,
    "media_embed": {},
    "media_only": False,
    "num_crossposts": 0,
    "parent_whitelist_status": "all_ads",
    "pinned": False,
    "pwls": 6,
    "quarantine": False,
    "removed_by": None,
    "removed_by_category": None,
    "secure_media": None,
    "secure_media_embed": {},
    "spoiler": False,
    "suggested_sort": None,
    "thumbnail_height": None,
    "thumbnail_width": None,
    "view_count": None,
    "visited": False,
    "whitelist_status": "all_ads",
    "wls": 6,
}
OF_COMMENTS: Mapping[str, Any] = {
    **OF_ALL,
    "associated_award": None,
    "collapsed": False,
    "collapsed_because_crowd_control": None,
    "collapsed_reason": None,
    "collapsed_reason_code": None,
    "comment_type": None,
    "controversiality": 0,
    "replies": "",
    "score_hidden": False,
    "unrepliable_reason": None,
}
OF_COMMUNITIES: Mapping[str, Any] = {
    "accounts_active": None,
    "active_user_count": None,
    "allow_galleries": True,
    "allow_images": True,
    "allow_polls": True,
    "allow_videos": True,
    "banner_img": "",
    "community_icon": "",
    "icon_img": "",
    "lang": "en",
    "public_traffic": False,
    "quarantine": False,
    "restrict_posting": True,
    "submission_type": "any",
    "subreddit_type": "public",
    "user_is_banned": None,
    "user_is_subscriber": None,
    "wiki_enabled": True,
}


class Glance(Record, frozen=True):
    """The site at one moment, as one answer shows it."""

    site: Site
    at: datetime
    skew: timedelta = timedelta()

    def stamp(self, at: datetime) -> float:
        return float(int((at + self.skew).timestamp()))

    def community(self, place: Place) -> str:
        return names.community(place, self.at)


# ── posts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def post_entry(glance: Glance, post: Post, is_scored: bool = True) -> Entry:
    score = glance.site.world.counters(post, glance.at).score if is_scored else None
    version = post.version(glance.at)
    return Entry(post.id, version.number, names.post_id(post), score, post.is_removed(glance.at))


def address(glance: Glance, post: Post) -> str:
    """Its path. A title cannot be changed."""
    title, community = names.slug(post.versions[0].title), glance.community(glance.site.place(post))
    return f"/r/{community}/comments/{names.bare(names.post_id(post))}/{title}/"


def author(nature: Nature, post: Post, at: datetime) -> str:
    has_left = nature.leaves_at is not None and at >= nature.leaves_at
    is_taken_back = post.is_removed(at) and nature.removed_by == BY_AUTHOR
    return NOBODY if has_left or is_taken_back else post.author


def selftext(nature: Nature, post: Post, version: int) -> str:
    """The text below the title, in the site's own markup: plain words are the same in it."""
    if nature.sort in WORDLESS:
        return ""
    words = next(candidate.text for candidate in post.versions if candidate.number == version)
    if nature.sort != "poll":
        return words
    return f"{words}\n\n[View Poll]({HOME}/poll/{names.bare(names.post_id(post))})"


def post_told(glance: Glance, post: Post, is_parent: bool = False) -> Told:
    site, at = glance.site, glance.at
    place, nature, version = site.place(post), site.nature(post), post.version(at)
    counters, is_removed = site.world.counters(post, at), post.is_removed(at)
    words = MARKS[nature.removed_by] if is_removed else selftext(nature, post, version.number)
    is_edited = version.number > 1 and nature.sort not in WORDLESS
    payload = {
        **OF_POSTS,
        **_community_of(glance, place),
        **_author(author(nature, post, at)),
        "created": glance.stamp(post.began_at),
        "created_utc": glance.stamp(post.began_at),
        "distinguished": "moderator" if nature.is_pinned else None,
        "edited": glance.stamp(version.from_at) if is_edited else False,
        "id": names.bare(names.post_id(post)),
        "is_self": nature.sort in ("text", "poll"),
        "link_flair_text": post.tags[0] if post.tags else None,
        "name": names.post_id(post),
        "num_comments": counters.reply_count,
        "over_18": nature.is_adult,
        "permalink": address(glance, post),
        "score": counters.score,
        "selftext": words,
        "selftext_html": markup(words),
        "stickied": nature.is_pinned,
        "subreddit_subscribers": 1_000 + int(50 * place.pace.posts_a_day),
        "title": post.versions[0].title,
        "ups": counters.score,
        "upvote_ratio": 0.97,
    }
    payload |= _shown_with(glance, place, post, nature, is_parent)
    if is_removed:
        payload |= {"is_robot_indexable": False, "removed_by_category": CATEGORIES[nature.removed_by], "media": None}
        payload |= {"secure_media": None, "thumbnail": "default"}
        for name in ("preview", "media_metadata", "gallery_data", "poll_data"):
            payload.pop(name, None)
    return payload


def _community_of(glance: Glance, place: Place) -> Told:
    name = glance.community(place)
    return {
        "subreddit": name,
        "subreddit_id": names.community_id(place),
        "subreddit_name_prefixed": f"r/{name}",
    }


def _author(name: str) -> Told:
    if name == NOBODY:
        return {"author": name}
    return {**OF_AN_ACCOUNT, "author": name, "author_fullname": f"t2_{sum(map(ord, name))}{name}"}


def _shown_with(glance: Glance, place: Place, post: Post, nature: Nature, is_parent: bool) -> Told:
    """What it links to or shows, besides its text."""
    id = names.bare(names.post_id(post))
    if nature.sort == "link":
        return _link(f"https://{place.host}.example/{post.number}?from=reddit&n={post.number}", f"{place.host}.example")
    if nature.sort == "image":
        return _image(id)
    if nature.sort == "gallery":
        return _gallery(glance, post, id)
    if nature.sort == "video":
        return _video(glance, post, id)
    if nature.sort == CROSSPOST and not is_parent:
        return _crosspost(glance, post)
    itself = {"url": HOME + address(glance, post), "domain": f"self.{glance.community(place)}", "thumbnail": "self"}
    return itself | (_poll(glance, post) if nature.sort == "poll" else {})


def _link(url: str, domain: str) -> Told:
    return {"url": url, "url_overridden_by_dest": url, "domain": domain, "thumbnail": "default"}


def _image(id: str) -> Told:
    url = f"https://i.redd.it/{id}.jpeg"
    return {
        **_link(url, "i.redd.it"),
        "is_reddit_media_domain": True,
        "post_hint": "image",
        "preview": {"enabled": True, "images": [_preview(id)]},
        "thumbnail": f"https://preview.redd.it/{id}.jpeg?width=140&height=140&auto=webp&s={id}",
        "thumbnail_height": 140,
        "thumbnail_width": 140,
    }


def _preview(id: str) -> Told:
    at = f"https://preview.redd.it/{id}.jpeg"
    return {
        "id": id,
        "resolutions": [{"url": f"{at}?width=108&crop=smart&auto=webp&s={id}1", "width": 108, "height": 81}],
        "source": {"url": f"{at}?auto=webp&s={id}", "width": 1280, "height": 960},
        "variants": {},
    }


def _gallery(glance: Glance, post: Post, id: str) -> Told:
    pictures = [f"{id}{letter}" for letter in "abcd"[: 2 + post.number % 3]]
    items = [{"media_id": name, "id": post.number * 4 + index} for index, name in enumerate(pictures)]
    is_done = glance.at >= post.shown_from + ENCODED_AFTER
    return {
        **_link(f"{HOME}/gallery/{id}", "reddit.com"),
        "is_gallery": True,
        "gallery_data": {"items": [{**items[0], "caption": "A view."}, *items[1:]]},
        "media_metadata": {
            name: _picture(name) if is_done or index == 0 else {"status": "unprocessed"}
            for index, name in enumerate(pictures)
        },
    }


def _picture(id: str) -> Told:
    at = f"https://preview.redd.it/{id}.png"
    return {
        "status": "valid",
        "e": "Image",
        "m": "image/png",
        "p": [{"y": 81, "x": 108, "u": f"{at}?width=108&crop=smart&auto=webp&s={id}1"}],
        "s": {"y": 960, "x": 1280, "u": f"{at}?width=1280&format=png&auto=webp&s={id}"},
        "id": id,
    }


def _video(glance: Glance, post: Post, id: str) -> Told:
    url = f"https://v.redd.it/{id}"
    is_done = glance.at >= post.shown_from + ENCODED_AFTER
    media = {"reddit_video": _encoded(url)} if is_done else None
    return {
        **_link(url, "v.redd.it"),
        "is_reddit_media_domain": True,
        "is_video": True,
        "media": media,
        "post_hint": "hosted:video",
        "secure_media": media,
    }


def _encoded(url: str) -> Told:
    return {
        "bitrate_kbps": 2400,
        "dash_url": f"{url}/DASHPlaylist.mpd?a=1&v=1&f=sd",
        "duration": 14,
        "fallback_url": f"{url}/DASH_720.mp4?source=fallback",
        "has_audio": True,
        "height": 720,
        "hls_url": f"{url}/HLSPlaylist.m3u8?a=1&v=1&f=sd",
        "is_gif": False,
        "scrubber_media_url": f"{url}/DASH_96.mp4",
        "transcoding_status": "completed",
        "width": 1280,
    }


def _crosspost(glance: Glance, post: Post) -> Told:
    place, shelf = glance.site.place(post), glance.site.shelf(glance.site.place(post))
    parent = shelf.by_number[int((post.repeats or "").rpartition("-")[2])]
    url = address(glance, parent)
    return {
        # A bare path, without the site's host.
        **_link(url, f"self.{glance.community(place)}"),
        "crosspost_parent": names.post_id(parent),
        "crosspost_parent_list": [post_told(glance, parent, is_parent=True)],
    }


def _poll(glance: Glance, post: Post) -> Told:
    votes = glance.site.world.counters(post, glance.at).reply_count
    options = [("Yes", votes // 2), ("No", votes - votes // 2)]
    return {
        "poll_data": {
            "user_selection": None,
            "options": [
                {"text": text, "vote_count": count, "id": str(1_000_000 + 2 * post.number + index)}
                for index, (text, count) in enumerate(options)
            ],
            "voting_end_timestamp": int((post.shown_from + timedelta(days=3)).timestamp() * 1000),
            "total_vote_count": votes,
        }
    }


def markup(text: str, is_post: bool = True) -> str | None:
    """The site's HTML for typed text."""
    if not text:
        return None
    paragraphs = "\n\n".join(f"<p>{_linked(part)}</p>" for part in text.split("\n\n"))
    inside = f'<div class="md">{paragraphs}\n</div>'
    return f"<!-- SC_OFF -->{inside}<!-- SC_ON -->" if is_post else inside


def _linked(paragraph: str) -> str:
    """The only link that occurs: to a poll."""
    words, is_one, url = paragraph.partition("](")
    if not is_one:
        return escape(paragraph).replace("&#x27;", "&#39;")
    return f'<a href="{url[:-1]}">{words[1:]}</a>'


# ── comments ──────────────────────────────────────────────────────────────────────────────────────────────────────


def comment_entry(glance: Glance, comment: Comment) -> Entry:
    at = glance.at
    return Entry(comment.key, comment.version(at), comment.name, comment.score(at), comment.is_removed(at))


def comment_told(glance: Glance, post: Post, comment: Comment, depth: int | None = None) -> Told:
    """`depth`: its level in the thread that is shown; None if it is shown by itself."""
    at, place = glance.at, glance.site.place(post)
    is_removed, version = comment.is_removed(at), comment.version(at)
    words = MARKS[comment.removed_by] if is_removed else comment.text(version)
    payload = {
        **OF_COMMENTS,
        **_community_of(glance, place),
        **_author(NOBODY if is_removed else comment.author),
        "body": words,
        "body_html": markup(words, is_post=False),
        "collapsed": is_removed,
        "created": glance.stamp(comment.created_at),
        "created_utc": glance.stamp(comment.created_at),
        "edited": glance.stamp(comment.texts[version - 1][0]) if version > 1 and not is_removed else False,
        "id": names.bare(comment.name),
        "is_submitter": comment.author == post.author and not is_removed,
        "link_id": names.post_id(post),
        "name": comment.name,
        "parent_id": names.comment_id(post, comment.parent) if comment.parent else names.post_id(post),
        "permalink": f"{address(glance, post)}{names.bare(comment.name)}/",
        "score": comment.score(at),
        "ups": comment.score(at),
    }
    return payload if depth is None else payload | {"depth": depth}


# ── communities ───────────────────────────────────────────────────────────────────────────────────────────────────


def community_told(glance: Glance, place: Place) -> Told:
    name, about = glance.community(place), f"All about {place.name}."
    founded = glance.stamp(glance.site.world.start - timedelta(days=2_000))
    return {
        **OF_COMMUNITIES,
        "created": founded,
        "created_utc": founded,
        "description": about,
        "description_html": markup(about),
        "display_name": name,
        "display_name_prefixed": f"r/{name}",
        "id": names.bare(names.community_id(place)),
        "name": names.community_id(place),
        "over18": False,
        "public_description": about,
        "public_description_html": markup(about),
        "subscribers": 1_000 + int(50 * place.pace.posts_a_day),
        "title": place.name,
        "url": f"/r/{name}/",
    }


# ── wrappers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def listing(children: list[Told], after: str | None = None, is_counted: bool = True) -> Told:
    data = {
        "after": after,
        "dist": len(children) if is_counted else None,
        "modhash": None,
        "geo_filter": "",
        "children": children,
        "before": None,
    }
    return {"kind": "Listing", "data": data}


def thing(name: str, told: Told) -> Told:
    return {"kind": name[:2], "data": told}
