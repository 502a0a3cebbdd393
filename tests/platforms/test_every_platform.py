"""What is asked of every installed platform alike, whatever it reads."""

from __future__ import annotations

import copy
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from catchment.collect.source_settings import checked_settings
from catchment.errors import CatchmentError, InvalidInput, PlatformError
from catchment.model import (
    Answer,
    Kind,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import Platform, installed
from tests.platforms.cases import bodies

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLATFORMS = list(installed())
KINDS = [(platform, kind) for platform in PLATFORMS for kind in platform.KINDS]
BODIES = {
    "nothing": b"",
    "blanks": b" \r\n\t ",
    "null": b"null",
    "a number": b"12",
    "an empty list": b"[]",
    "an empty object": b"{}",
    "a list of nonsense": b'[null, 1, "x", [], {}]',
    "nested nonsense": b'{"data": null, "items": 3, "result": [null], "hits": {"x": []}, "rss": []}',
    "torn JSON": b'{"data": {"items": [{"id": "1", "title": "a',
    "deep JSON": b"[" * 50_000,
    "a page": b"<!doctype html><html><head><title>x</title></head><body><p>Hi</p></body></html>",
    "torn markup": b"<rss><channel><item><title>a",
    "every byte": bytes(range(256)) * 4,
    "broken UTF-8": b'{"title": "\xff\xfe\xc3"}',
    "GBK": '{"title": "河流"}'.encode("gbk"),
}


def requests(platform: Platform, kind: Kind) -> list[Request]:
    target = platform.understand(kind.example, kind.name)
    source = Source(1, "key", platform.NAME, kind.name, target.address, "Name", NOW, settings=target.settings)
    return platform.first(source, Progress(), WalkPlan(kind.listings[0].name, kind.base_limit, is_first=True))


def outcome(platform: Platform, body: bytes, request: Request) -> Reading | tuple[type, str]:
    """What reading gives; of failures only ours, which say what happened. Anything else breaks the test."""
    answer = Answer(200, {"content-type": "text/html"}, body, request.url, NOW)
    try:
        return platform.read(answer, request)
    except PlatformError as error:
        return type(error), str(error)


def name(value: Any) -> str:
    return str(getattr(value, "NAME", getattr(value, "name", "")))


@pytest.mark.parametrize(("platform", "kind"), KINDS, ids=name)
def test_the_example_of_a_kind_is_understood_and_asked_for(platform, kind):
    assert all(isinstance(request, Request) for request in requests(platform, kind))
    assert requests(platform, kind)


@pytest.mark.parametrize(("platform", "kind"), KINDS, ids=name)
def test_the_canonical_address_of_an_example_is_understood_as_itself(platform, kind):
    address = platform.understand(kind.example, kind.name).address
    assert platform.understand(address, kind.name).address == address


@pytest.mark.parametrize(("platform", "kind"), KINDS, ids=name)
def test_settings_that_an_example_implies_are_settings_of_its_kind(platform, kind):
    settings = platform.understand(kind.example, kind.name).settings
    assert checked_settings(kind, settings) == settings


@pytest.mark.parametrize("platform", PLATFORMS, ids=name)
@pytest.mark.parametrize("typed", ["", " ", "javascript:alert(1)", "file:///etc/passwd", "\x00", "x" * 5000])
def test_nonsense_is_answered_with_what_would_be_right(platform, typed):
    with pytest.raises(InvalidInput) as failure:
        platform.understand(typed, None)
    assert failure.value.helps


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize(("platform", "kind"), KINDS, ids=name)
def test_a_body_that_is_not_what_was_asked_for_gives_a_reading_or_an_error_of_ours(platform, kind, body):
    for request in requests(platform, kind):
        first = outcome(platform, body, request)
        assert first == outcome(platform, body, request)


@pytest.mark.parametrize("platform", PLATFORMS, ids=name)
def test_a_torn_body_gives_a_reading_or_an_error_of_ours(platform):
    request = requests(platform, platform.KINDS[0])[0]
    for body in bodies(platform.NAME):
        for part in range(1, 8):
            outcome(platform, body[: len(body) * part // 8], request)


@pytest.mark.parametrize("platform", PLATFORMS, ids=name)
def test_a_page_seen_twice_gives_equal_readings(platform):
    request = requests(platform, platform.KINDS[0])[0]
    for body in bodies(platform.NAME):
        assert outcome(platform, body, request) == outcome(platform, body, request)


@pytest.mark.parametrize("platform", PLATFORMS, ids=name)
def test_reading_changes_nothing_that_it_was_given(platform):
    for request in requests(platform, platform.KINDS[0]):
        for body in [*BODIES.values(), *bodies(platform.NAME)]:
            answer = Answer(200, {"content-type": "text/html"}, body, request.url, NOW)
            before = copy.deepcopy((answer, request))
            with suppress(PlatformError):
                platform.read(answer, request)
            assert (answer, request) == before


@pytest.mark.parametrize("platform", PLATFORMS, ids=name)
@pytest.mark.parametrize("status", [200, 403, 503])
def test_every_answer_is_refused_with_an_error_of_ours_or_not_at_all(platform, status):
    for request in requests(platform, platform.KINDS[0]):
        for body in [*BODIES.values(), *bodies(platform.NAME)]:
            refusal = platform.refusal(Answer(status, {}, body, request.url, NOW), request)
            assert refusal is None or (isinstance(refusal, Refusal) and isinstance(refusal.error, CatchmentError))


@pytest.mark.parametrize("platform", PLATFORMS, ids=name)
def test_a_platform_says_how_it_is_reached_and_what_it_cannot_see(platform):
    words = (platform.__doc__ or "").lower()
    assert len(words) > 100
    assert platform.__name__.rpartition(".")[2] == platform.NAME


@pytest.mark.parametrize(("platform", "kind"), KINDS, ids=name)
@pytest.mark.parametrize("typed", ["", " ", "javascript:alert(1)", "file:///etc/passwd", "\x00", "x" * 5000])
def test_nonsense_is_refused_for_a_kind_that_was_named_as_well(platform, kind, typed):
    with pytest.raises(InvalidInput) as failure:
        platform.understand(typed, kind.name)
    assert failure.value.helps
