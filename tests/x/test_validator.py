"""The validator: what a post must have, and how its texts are cleaned."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from catchment.model import RefinedItem
from catchment.platforms import x
from catchment.text.clean import refine
from tests.x.asking import LIST, read, source_of

TWEET = {
    "id": "1900000000000000001",
    "text": "Lock 7 opens at 8.",
    "author_id": "7",
    "created_at": "2026-01-01T00:00:00.000Z",
    "referenced_tweets": [{"type": "quoted", "id": "1800000000000000001"}],
}
QUOTED = {"id": "1800000000000000001", "text": "Closed.", "author_id": "7", "created_at": "2025-12-01T00:00:00.000Z"}


def body(tweet: dict[str, Any], quoted: dict[str, Any] = QUOTED) -> bytes:
    good = {**TWEET, "id": "1900000000000000009"}
    includes = {"users": [{"id": "7", "username": "ada", "name": "Ada"}], "tweets": [quoted]}
    return json.dumps({"data": [good, tweet], "includes": includes}).encode()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("id", None, "no id"),
        ("id", "abc", "bad id"),
        ("id", 1.9e18, "bad id"),
        ("text", None, "no text"),
        ("text", "", "no text"),
        ("created_at", None, "no time"),
        ("created_at", "yesterday", "no time"),
        ("author_id", None, "no author"),
        ("author_id", "8", "no author"),
    ],
)
def test_a_post_without_a_required_field_is_skipped_with_the_reason(field: str, value: Any, reason: str) -> None:
    reading = read(body({**TWEET, field: value}), source_of(LIST, "5", service="x"))
    assert [item.external_id for item in reading.items] == ["1900000000000000009"]
    assert Counter(skipped.reason for skipped in reading.skipped) == {reason: 1}


def cleaned(tweet: dict[str, Any], quoted: dict[str, Any] = QUOTED) -> RefinedItem:
    reading = read(body(tweet, quoted), source_of(LIST, "5", service="x"))
    refined = refine(reading, scope="", answer_url="https://api.x.com/", text_limit=x.TEXT_LIMIT)
    return next(item for item in refined.items if item.item.external_id == tweet["id"])


def test_texts_of_a_post_and_of_what_it_refers_to_are_cleaned_alike() -> None:
    untidy = "  Lock\u00a07 &amp; 8 \r\n\r\n\r\n  open \u0000 at   8. \n"
    item = cleaned({**TWEET, "text": untidy}, {**QUOTED, "text": untidy}).item
    assert item.text == "Lock 7 & 8\n\nopen at 8."
    assert [reference.text for reference in item.references] == [item.text]


def test_texts_longer_than_x_allows_are_cut_and_marked() -> None:
    item = cleaned({**TWEET, "text": "w " * 20_000}, {**QUOTED, "text": "w " * 20_000})
    assert item.is_text_cut
    assert len(item.item.text or "") <= 25_000
    assert len(item.item.references[0].text or "") <= 25_000
    assert not cleaned({**TWEET, "text": "w" * 25_000}).is_text_cut


@pytest.mark.parametrize("written", ["2026-01-01T00:00:00.000Z", "Thu Jan 01 00:00:00 +0000 2026"])
def test_dates_of_both_forms_become_the_same_time(written: str) -> None:
    assert str(cleaned({**TWEET, "created_at": written}).item.created_at) == "2026-01-01 00:00:00+00:00"
