"""Simulates GitHub's trending page: one post is one repository, with rank, stars and the stars of a period.

The rows look as they did in 2026, with everything that misleads parsers: sponsors and logins before the title,
attributes before the URL, missing descriptions and languages, numbers with commas. A test compares them with real
pages.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from hashlib import sha256
from html import escape

from catchment.model import Record
from catchment.playground.rng import chance_of
from catchment.playground.sites import (
    STRAIGHT,
    Ask,
    Entry,
    Page,
)
from catchment.playground.world import (
    Place,
    Post,
    Version,
    World,
)

NAME = "github"
PATH = re.compile(r"/trending(?:/([^/]+))?")
LANGUAGES = ("Python", "Rust", "Go", "TypeScript", "C++", "Jupyter Notebook")
PERIODS = {"daily": ("today", 1), "weekly": ("this week", 7), "monthly": ("this month", 30)}
MOST_ROWS = 25
STAR = '<svg aria-hidden="true" height="16" viewBox="0 0 16 16" width="16" class="octicon octicon-star"></svg>'


class Row(Record, frozen=True):
    """A repository on the page."""

    owner: str
    name: str
    description: str | None
    language: str | None
    stars: int
    gained: int
    is_sponsored: bool


class GitHubSimulator:
    """Shows each place as a separate page: the first as the page of all languages, the others as those of one."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._places = [place for place in world.places if place.form == NAME]

    def find(self, path: str) -> Place | None:
        found = PATH.fullmatch(path)
        slugs = [None, *(slug_of(language) for language in LANGUAGES)]
        named = dict(zip(slugs, self._places, strict=False))
        return named.get(found[1].lower() if found[1] else None) if found else None

    def target(self, place: Place) -> str:
        """What a user types to add it as a source."""
        number = self._places.index(place)
        return LANGUAGES[number - 1] if number else "all"

    def answer(self, place: Place, ask: Ask) -> Page:
        at = ask.at - ask.distortion.ago
        words, days = PERIODS.get(ask.query.partition("since=")[2].partition("&")[0], PERIODS["daily"])
        shown = sorted(
            self.world.shown(place, at)[:MOST_ROWS], key=lambda row: self._gained(row[0], at, days), reverse=True
        )
        if ask.distortion.is_reordered:
            chance_of(ask.path, ask.at).shuffle(shown)
        shown = [row for row in shown for _ in range(2)] if ask.distortion.is_repeated else shown
        rows = "".join(_row(self._written(place, post, version, at, days), words) for post, version in shown)
        return Page(
            status=200,
            headers={"Content-Type": "text/html; charset=utf-8"},
            body=_page(rows or BLANK, ask).encode(),
            entries=tuple(
                Entry(post.id, version.number, wire_id(post), stars(self.world, post, at)) for post, version in shown
            ),
        )

    def _written(self, place: Place, post: Post, version: Version, at: datetime, days: int) -> Row:
        chance = chance_of(self.world.seed, "repository", post.id)
        owner, name = full_name(post).split("/")
        return Row(
            owner=owner,
            name=name,
            description=self.described(post, version),
            language=None if chance.random() < 0.05 else language_of(self._places.index(place), post),
            stars=stars(self.world, post, at),
            gained=self._gained(post, at, days),
            is_sponsored=chance.random() < 0.3,
        )

    def described(self, post: Post, version: Version) -> str | None:
        """About one in twenty has no description, and never gets one: one that came and went would be an edit."""
        is_bare = chance_of(self.world.seed, "bare", post.id).random() < 0.05
        return None if is_bare else description(version)

    def _gained(self, post: Post, at: datetime, days: int) -> int:
        return stars(self.world, post, at) - stars(self.world, post, at - timedelta(days=days))


SIMULATOR = GitHubSimulator


def full_name(post: Post) -> str:
    """As the site writes it; in lower case it is the id."""
    return f"{post.author.title()}/{post.author}-{post.place}.{post.number}"


def wire_id(post: Post) -> str:
    return full_name(post).lower()


def description(version: Version) -> str:
    """On one line, up to GitHub's maximum length."""
    return f"{version.title}: {' '.join(version.text.split())}"[:350].strip()


def language_of(number: int, post: Post) -> str:
    return LANGUAGES[number - 1] if number else LANGUAGES[post.number % len(LANGUAGES)]


def stars(world: World, post: Post, at: datetime) -> int:
    """They only grow, some forever; the world's own score fluctuates."""
    if at < post.shown_from:
        return 0
    hours = (at - post.shown_from).total_seconds() / 3600
    return 3 * world.counters(post, at).reply_count + int(hours * (1 + post.number % 7))


def slug_of(language: str) -> str:
    return language.lower().replace(" ", "-").replace("+", "%2b")


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────

BLANK = '<div class="blankslate"><h3>It looks like we don’t have any trending repositories for that.</h3></div>'


def _page(rows: str, ask: Ask) -> str:
    # No two answers of the site are byte-identical: forms and clicks are signed again for each.
    token = sha256(f"{ask.path} {ask.at.isoformat()}".encode()).hexdigest() if ask.distortion == STRAIGHT else "bent"
    return (
        '<!DOCTYPE html>\n<html lang="en" data-color-mode="auto">\n<head>\n<meta charset="utf-8">\n'
        "<title>Trending repositories on GitHub today · GitHub</title>\n"
        f'<meta name="request-id" content="{token[:16]}">\n</head>\n<body class="logged-out env-production">\n'
        f'<header class="HeaderMktg"><a href="/login">Sign in</a><nav><a href="/features">Features</a></nav></header>\n'
        f'<main>\n<input type="hidden" name="authenticity_token" value="{token}">\n<div class="Box">\n'
        f"{rows}</div>\n</main>\n</body>\n</html>\n"
    )


def _row(row: Row, words: str) -> str:
    path = f"/{row.owner}/{row.name}"
    sponsor = (
        f'<a data-view-component="true" href="/sponsors/{row.owner}" aria-label="Sponsor @{row.owner}"'
        ' class="Button--secondary Button--small Button">Sponsor</a>'
    )
    description = f'<p class="col-9 color-fg-muted my-1 tmp-pr-4">\n      {escape(row.description or "")}\n    </p>\n'
    written_in = (
        '<span class="tmp-mr-3 d-inline-block ml-0 tmp-ml-0">\n<span class="repo-language-color"></span>\n'
        f'<span itemprop="programmingLanguage">{escape(row.language or "")}</span>\n</span>\n'
    )
    return (
        f'<article class="Box-row">\n<div class="float-right d-flex">{sponsor if row.is_sponsored else ""}'
        f'<a href="/login?return_to=%2F{row.owner}%2F{row.name}" rel="nofollow" class="btn-sm btn">Star</a></div>\n'
        f'<h2 class="h3 lh-condensed">\n<a data-hydro-click="{{&quot;event_type&quot;:&quot;explore.click&quot;}}"'
        f' data-view-component="true" href="{path}" class="Link">\n<span class="text-normal">\n        {row.owner} /\n'
        f"</span>\n      {row.name}</a>  </h2>\n{description if row.description else ''}"
        f'<div class="f6 color-fg-muted mt-2">\n{written_in if row.language else ""}'
        f'<a href="{path}/stargazers" class="tmp-mr-3 Link Link--muted d-inline-block">{STAR}\n'
        f"        {row.stars:,}</a>\n"
        f'<a href="{path}/forks" class="tmp-mr-3 Link Link--muted d-inline-block">{row.stars // 9:,}</a>\n'
        f'<span class="tmp-mr-3 d-inline-block">Built by <a class="d-inline-block" href="/{row.owner}">'
        f'<img class="avatar mb-1 avatar-user" src="https://avatars.example/1" alt="@{row.owner}"></a></span>\n'
        f'<span class="d-inline-block float-sm-right">{STAR}\n        {row.gained:,} stars {words}\n</span>  </div>\n'
        "</article>\n"
    )
