"""A credential was given for one host. Nothing that a server says makes another host see it, or a table hold it."""

from __future__ import annotations

from datetime import datetime

import pytest

from catchment.credentials.cipher import Cipher
from catchment.credentials.secret import Secret
from catchment.credentials.secret_store import SecretStore
from catchment.model import (
    Answer,
    Identity,
    Outcome,
    Request,
    Source,
)
from tests.town import Feed, Said, TownApp

SECRET = "open-sesame-4711"
HERE, ELSEWHERE = "https://one.example/feed", "https://elsewhere.example/feed"


def rss(title: str = "A feed") -> bytes:
    return f"<rss><channel><title>{title}</title><item><title>One</title></item></channel></rss>".encode()


def says(body: bytes, url: str = HERE, **more: str) -> Said:
    """An answer that came from an address in the end; by permanent redirects, if it is another than was asked."""

    def said(request: Request, now: datetime) -> Answer:
        moved_to = url if url != request.url else None
        return Answer(200, {name.replace("_", "-"): value for name, value in more.items()}, body, url, now, moved_to)

    return said


def page(feed: str) -> bytes:
    link = f'<link rel="alternate" type="application/rss+xml" href="{feed}">'
    return f"<!doctype html><html><head>{link}</head></html>".encode()


@pytest.fixture
def feed(quick: TownApp) -> Feed:
    return quick.town.feed("one")


@pytest.fixture
def elsewhere(quick: TownApp) -> Feed:
    return quick.town.feed("elsewhere")


@pytest.fixture
def lent(quick: TownApp, feed: Feed) -> Source:
    """A source with a credential, whose secret this process knows."""
    safe = SecretStore(quick.app.store.credentials, Cipher("a master key for tests"))
    safe.add("feeds", "mine", Secret(basic=f"me:{SECRET}"), quick.clock.now())
    safe.secret("mine")
    return quick.follow(feed, credential="mine")


def asked(here: TownApp, url: str) -> list[tuple[str | None, Identity]]:
    return [(request.credential, request.identity) for request in here.town.asked[url]]


def test_the_own_host_gets_it(quick: TownApp, feed: Feed, lent: Source) -> None:
    feed.says.append(says(rss()))
    quick.collect(lent)
    assert asked(quick, HERE) == [("mine", Identity.OPTIONAL)]


@pytest.mark.parametrize("page_at", [HERE, "https://elsewhere.example/page"])
def test_a_feed_that_a_page_announces_elsewhere_does_not(
    quick: TownApp, feed: Feed, elsewhere: Feed, lent: Source, page_at: str
) -> None:
    feed.says.append(says(page(ELSEWHERE), page_at))
    elsewhere.says.append(says(rss(), ELSEWHERE))
    (result,) = quick.collect(lent)
    assert (result.outcome, asked(quick, ELSEWHERE)) == (Outcome.SUCCEEDED, [(None, Identity.NONE)])
    assert quick.app.store.sources.get(lent.id).target == HERE


def test_older_pages_elsewhere_do_not(quick: TownApp, feed: Feed, elsewhere: Feed, lent: Source) -> None:
    older = '{"version": "https://jsonfeed.org/version/1", "items": [{"id": "%s", "title": "a"}], "next_url": "%s"}'
    feed.says.append(says((older % (1, ELSEWHERE)).encode()))
    elsewhere.says.append(says((older % (2, ELSEWHERE)).encode(), ELSEWHERE))
    quick.collect(lent)
    assert asked(quick, ELSEWHERE) == [(None, Identity.NONE)]


def test_a_host_that_the_source_is_sent_to_for_good_does_not(quick: TownApp, feed: Feed, lent: Source) -> None:
    for number in range(5):
        feed.says.append(says(rss(str(number)), ELSEWHERE))
        quick.collect(lent)
    assert quick.app.store.sources.get(lent.id).target == HERE
    assert len(asked(quick, HERE)) == 5


def test_a_new_address_on_the_same_host_is_followed(quick: TownApp, feed: Feed, lent: Source) -> None:
    for number in range(3):
        feed.says.append(says(rss(str(number)), "https://one.example/new"))
        quick.collect(lent)
    assert quick.app.store.sources.get(lent.id).target == "https://one.example/new"


@pytest.mark.parametrize(
    "answer", [says(rss(), f"https://one.example/{SECRET}/feed"), says(rss(), f"https://one.example/?a={SECRET}")]
)
def test_an_address_with_the_secret_in_it_is_not_kept(quick: TownApp, feed: Feed, lent: Source, answer: Said) -> None:
    for _ in range(4):
        feed.says.append(answer)
        quick.collect(lent)
    progress = quick.progress(lent)
    assert (progress.moved_to, quick.app.store.sources.get(lent.id).target) == (None, HERE)


# ── what else a server may not put into our tables ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("etag", ["a\rEvil: 1", "a\x00b", "a" * 5000])
def test_a_validator_that_cannot_be_sent_back_is_forgotten(here: TownApp, etag: str) -> None:
    feed = here.town.feed("one")
    source = here.follow(feed)
    feed.says.append(says(rss(), etag=etag))
    feed.says.append(says(rss("more"), etag=etag))
    outcomes = [here.collect(source)[0].outcome for _ in range(2)]
    assert (outcomes, here.progress(source).etag) == ([Outcome.SUCCEEDED] * 2, None)


@pytest.mark.parametrize(
    ("title", "name"), [("\\u0000a\\u001b[31mb", "a[31mb"), ("a\\n\\tb", "a b"), ("x" * 999, "x" * 200)]
)
def test_a_name_has_nothing_in_it_that_acts(here: TownApp, title: str, name: str) -> None:
    feed = here.town.feed("one")
    source = here.follow(feed)
    feed.says.append(
        says(f'{{"version": "jsonfeed.org", "title": "{title}", "items": [{{"id": 1, "title": 1}}]}}'.encode())
    )
    here.collect(source)
    assert here.app.store.sources.get(source.id).name == name
