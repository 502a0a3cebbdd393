"""Every feed in `feeds/` is read as the file beside it says: whole readings, compared as data."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.model import Answer, Item, Reading, Request
from catchment.platforms import feeds

FOLDER = Path(__file__).parent / "feeds"
CASES = sorted(path for path in FOLDER.iterdir() if ".expected" not in path.name)
URL = "https://example.org/feed"


def said(record: msgspec.Struct) -> dict[str, Any]:
    """What a record says beyond its defaults, as JSON."""
    fields = msgspec.structs.fields(record)
    told = {field.name: getattr(record, field.name) for field in fields if getattr(record, field.name) != field.default}
    return {name: json.loads(msgspec.json.encode(value)) for name, value in told.items()}


def as_data(reading: Reading) -> dict[str, Any]:
    whole = said(reading)
    whole["items"] = [said(item) for item in reading.items]
    whole["skipped"] = [skipped.reason for skipped in reading.skipped]
    whole["hints"] = said(reading.hints)
    return {name: value for name, value in whole.items() if value not in ([], {})}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_a_feed_is_read_as_the_file_beside_it_says(path):
    answer = Answer(200, {}, path.read_bytes(), URL, datetime(2026, 1, 1, tzinfo=UTC))
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    assert as_data(feeds.read(answer, Request(URL))) == expected


def test_an_item_without_words_says_only_its_id():
    assert said(Item("1")) == {"external_id": "1"}
