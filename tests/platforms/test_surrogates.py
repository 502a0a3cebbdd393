"""Half an emoji in one title: JSON allows it, and it sinks no page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.model import (
    Answer,
    Platform,
    Progress,
    Source,
    WalkPlan,
)
from catchment.platforms import discourse, hackernews, reddit
from catchment.platforms._common.json import without_half_pairs

NOW = datetime(2026, 3, 2, tzinfo=UTC)
SAMPLES = Path(__file__).parent


@pytest.mark.parametrize(
    ("came", "read"),
    [
        (rb'"cut \ud83d"', "cut \ufffd"),
        (rb'"cut \ud83d and on"', "cut \ufffd and on"),
        (rb'"\uDE00 the other half"', "\ufffd the other half"),
        (rb'"twice \ud83d\ud83d\ude00"', "twice \ufffd😀"),
        (rb'"\ud83d\n\u0041"', "\ufffd\nA"),
        (rb'"whole \ud83d\ude00"', "whole 😀"),
        (rb'"written \\ud83d, and cut \ud83d"', "written \\ud83d, and cut \ufffd"),
    ],
)
def test_half_a_character_is_unknown_and_all_around_it_stays(came: bytes, read: str) -> None:
    assert json.loads(without_half_pairs(came)) == read


@pytest.mark.parametrize("torn", [b"", b"{", rb'{"a": "\ud8', b"[" * 100_000, rb'{"a": NaN}'])
def test_what_is_broken_otherwise_is_left_as_it_is(torn: bytes) -> None:
    assert without_half_pairs(torn) == torn


REDDIT = Source(1, "key", "reddit", "reddit", "r/riverboats", "r/RiverBoats", NOW)
SEARCH = Source(1, "key", "hackernews", "hackernews", "search:boats", "boats", NOW)
FORUM = Source(1, "key", "discourse", "discourse_forum", "https://forum.example/", "Forum", NOW)
PAGES: tuple[tuple[Platform, Source, str, bytes], ...] = (
    (reddit, REDDIT, "reddit/new.json", b"My boat"),
    (hackernews, SEARCH, "hackernews/search.json", b"R&D at the harbour"),
    (discourse, FORUM, "discourse/posts.json", b"Agreed."),
)


@pytest.mark.parametrize(("platform", "source", "file", "words"), PAGES, ids=lambda value: getattr(value, "NAME", ""))
def test_one_title_that_was_cut_costs_no_item_of_its_page(
    platform: Platform, source: Source, file: str, words: bytes
) -> None:
    listing = "search" if source is SEARCH else platform.KINDS[0].listings[0].name
    request = platform.first(source, Progress(), WalkPlan(listing, 100, has_key=True))[0]
    # A forum is asked for its topics first; these are the posts.
    request = request.replace(state={**request.state, "step": "posts"})

    def ids(body: bytes) -> list[str]:
        answer = Answer(200, {"content-type": "application/json"}, body, request.url, NOW)
        assert platform.refusal(answer, request) is None
        return [item.external_id for item in platform.read(answer, request).items]

    body = (SAMPLES / file).read_bytes()
    broken = body.replace(words, words + rb"\ud83d", 1)
    assert len(ids(body)) > 1
    assert (broken != body, ids(broken)) == (True, ids(body))
