"""Whatever a site sends, a platform reads it or says that it cannot: no other failure, and no end of thinking.

The bodies that are mutated, and the requests that they answer, are those of the platform's cases.
`CATCHMENT_EXAMPLES=100000` tries that many inputs, and recorded answers beside the repository as well.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from catchment.errors import CatchmentError
from catchment.model import (
    Answer,
    Kind,
    Platform,
    Reading,
    Recheck,
    Refusal,
    Request,
    Source,
)
from catchment.platforms import installed
from catchment.platforms.nga.bbcode import ZONE
from catchment.platforms.nga.encoding import decoded
from catchment.platforms.nga.requests import BOARD
from catchment.text.clean import refine
from tests.conftest import CAPTURES
from tests.platforms import cases, x_oracle
from tests.platforms.mutations import MOST_AT_ONCE, mutated
from tests.stateful.effort import ASKED_FOR, effort

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLATFORMS = {platform.NAME: platform for platform in installed()}
RECORDED = {
    "feeds": ("feeds",),
    "hackernews": ("hn",),
    "github": ("github-trending",),
    "website": ("websites",),
    "reddit": ("reddit",),
    "nga": ("nga",),
    "x": ("twitterapi-io", "x-v2"),
}
"""Where recorded answers lie, under other names than the platform's."""
LARGEST = 30_000
"""Larger bodies are no worse, and take longer."""
LARGER = {"nga": 130_000}
"""Pages of a forum for people are not smaller than that: all that were recorded are mutated."""
MOST_REQUESTS = 20
SECONDS = 20
"""Of the processor's time for one input. Nothing takes a tenth of one; what takes so many would take for ever."""
TYPES = ("", "application/json", "text/html; charset=gbk", "application/xml", "text/plain; charset=nonsense")
STATUSES = (200, 200, 200, 301, 400, 401, 403, 404, 429, 500, 503)
AT_A_TIME = 20
"""Inputs for each example of Hypothesis, which takes several times as long to make one as a platform to read it."""


class Hung(BaseException):
    """No Exception: nobody on the way may take it for one of his own."""


@contextmanager
def bounded() -> Iterator[None]:
    def give_up(signum: int, frame: FrameType | None) -> None:
        raise Hung(f"still thinking after {SECONDS} s")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@cache
def bodies(name: str) -> list[bytes]:
    """The bodies of the platform's cases; recorded answers as well, where many inputs are tried."""
    folders = [CAPTURES / folder for folder in RECORDED.get(name, ())] if ASKED_FOR else []
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    shown = [_sent(path) for path in files if ".expected" not in path.name and path.name != "SOURCES.md"]
    return [body for body in [*cases.bodies(name), *shown] if len(body) <= LARGER.get(name, LARGEST)]


def _sent(path: Path) -> bytes:
    """A recorded body as its site sends it; some of NGA's were recorded after they had been decoded."""
    body = path.read_bytes()
    return body.decode().encode("gb18030") if path.parent.name == "nga" and ".utf8." in path.name else body


@cache
def requests(name: str) -> list[Request]:
    """One of each sort that the platform makes: those of its cases, then wherever they lead, then rechecks."""
    platform = PLATFORMS[name]
    asked = cases.requests(name)
    for request in tuple(asked):
        for body in bodies(name):
            with suppress(CatchmentError):
                asked += platform.read(Answer(200, {}, body, request.url, NOW), request).follow[:2]
    rechecks = [Recheck("1", "", "https://example.com/1", source(platform, kind)) for kind in platform.KINDS]
    asked += getattr(platform, "recheck", lambda _: [])(rechecks)
    sorts = {(request.step, request.listing, request.method, *request.state): request for request in asked}
    return list(sorts.values())[:MOST_REQUESTS]


def source(platform: Platform, kind: Kind) -> Source:
    target = platform.understand(kind.example, kind.name)
    return Source(1, "key", platform.NAME, kind.name, target.address, "Name", NOW, settings=target.settings)


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_platform_has_bodies_to_mutate_and_requests_that_they_answer(name: str) -> None:
    assert bodies(name), f"put a few small answers into tests/platforms/{name}/"
    assert requests(name)


Situation = tuple[Platform, Request, bytes, str, int]


def situations(names: list[str]) -> st.SearchStrategy[list[Situation]]:
    return st.builds(_situations, st.sampled_from(names), st.integers(1, MOST_AT_ONCE), st.integers(0, 2**32))


def _situations(name: str, most: int, seed: int) -> list[Situation]:
    chance = Random(seed)
    return [
        (
            PLATFORMS[name],
            chance.choice(requests(name)),
            mutated(bodies(name), most, chance),
            chance.choice(TYPES),
            chance.choice(STATUSES),
        )
        for _ in range(AT_A_TIME)
    ]


def check_each(situations: list[Situation], check: Callable[[Situation], object]) -> None:
    for situation in situations:
        try:
            check(situation)
        except BaseException:
            note(f"the input: {situation[1:]!r}")
            raise


OTHERS = [name for name in PLATFORMS if name not in ("nga", "x")]


@effort(800, at_a_time=AT_A_TIME)
@given(st.deferred(lambda: situations([name for name in OTHERS if bodies(name)])))
def test_a_mutated_body_is_read_or_refused_with_an_error_of_ours(situations: list[Situation]) -> None:
    check_each(situations, read_or_refused)


@effort(150, at_a_time=AT_A_TIME)
@given(st.deferred(lambda: situations(["nga"])))
def test_a_mutated_page_of_nga_is_read_or_refused(situations: list[Situation]) -> None:
    check_each(situations, check_page_of_nga)


def check_page_of_nga(situation: Situation) -> None:
    reading = read_or_refused(situation)
    if reading is None:
        return
    _, request, body, _, _ = situation
    # Without the backslashes that a script ignores.
    text = decoded(body, is_strict=False).replace("\\", "")
    numbers = {int(number) for number in re.findall(r"[0-9]{1,18}", text)}
    for item in reading.items:
        # A head's or a floor's number, with its prefix; numbers and times stand in the answer, in a comment's own row
        # as they are shown to people.
        assert re.fullmatch(r"[tp][0-9]+", item.external_id), item.external_id
        is_shown = item.lacks_text and item.created_at and f"{item.created_at.astimezone(ZONE):%Y-%m-%d %H:%M}" in text
        times = (None if is_shown else item.created_at, item.last_reply_at)
        stated = [int(item.external_id[1:]), *(int(at.timestamp()) for at in times if at)]
        assert set(stated) <= numbers, (item.external_id, stated)
        assert item.reply_count is None or {item.reply_count, item.reply_count + 1, -item.reply_count} & numbers
        assert item.is_head == item.external_id.startswith("t")
    ids = [item.external_id for item in reading.items]
    assert len(ids) == len(set(ids))
    if not reading.items and not reading.gone:
        # Never "0 threads": only a list or a thread that says so itself, or the end of a list.
        marks = "topicrows|topicArg|__T|没有符合条件的结果" if request.step == BOARD else "__R|postArg"
        assert re.search(marks, text)


@effort(150, at_a_time=AT_A_TIME)
@given(st.deferred(lambda: situations(["x"])))
def test_a_mutated_answer_of_x_gives_posts_that_it_contains_or_an_error(situations: list[Situation]) -> None:
    check_each(situations, check_answer_of_x)


def check_answer_of_x(situation: Situation) -> None:
    reading = read_or_refused(situation)
    items = reading.items if reading else ()
    assert len({item.external_id for item in items}) == len(items)
    for item in items:
        # Exact: an id that went through a float is in no answer.
        assert re.search(rb"(?<![0-9.])%s(?![0-9.eE])" % item.external_id.encode(), situation[2]), item.external_id
        assert item.author
        assert item.created_at is not None
        assert item.created_at.tzinfo is not None
        assert item.text or item.media
        assert all(reference.external_id for reference in item.references)
    check_with_oracle(situation, reading)


def check_with_oracle(situation: Situation, reading: Reading | None) -> None:
    """Whatever was read stands in the answer, under that id; and whatever stands there in plain was read."""
    _, request, body, _, _ = situation
    # Halves of surrogate pairs are replaced before anything is read.
    if reading is None or b"\\ud" in body.lower() or b"\xed" in body or request.step not in ("tweets", "search"):
        return
    state = request.state
    user = (
        (str(state.get("user_id", "")), str(state.get("name", ""))) if state.get("kind") == "twitter_feed" else ("", "")
    )
    for item in reading.items:
        wrong = x_oracle.unsupported(body, item, user)
        assert wrong is None, f"{item.external_id}: nothing in the answer says {wrong}"
    ids = {id_ for item in reading.items for id_ in (item.external_id, *item.aliases)}
    assert x_oracle.plain_ids(body) <= ids
    resolved = {
        (item.external_id, to.relation, to.external_id)
        for item in reading.items
        for to in item.references
        if to.text and to.author and to.created_at
    }
    assert x_oracle.plain_references(body) <= resolved


def read_or_refused(situation: Situation) -> Reading | None:
    """Returns what the platform reads in the body; None if that is an error of ours. Anything else fails."""
    platform, request, body, content_type, status = situation
    headers = {"content-type": content_type} if content_type else {}
    with bounded():
        refusal = platform.refusal(Answer(status, headers, body, request.url, NOW), request)
        assert refusal is None or isinstance(refusal, Refusal)
        with suppress(CatchmentError):
            reading = platform.read(Answer(200, headers, body, request.url, NOW), request)
            refined = refine(reading, scope="key", answer_url=request.url)
            assert len(refined.items) + len(refined.skipped) == len(reading.items) + len(reading.skipped)
            return reading
    return None
