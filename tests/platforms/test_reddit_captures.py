"""Real answers of Reddit: every recorded listing, thread and feed, and what must come out of it.

The recorded pages that are no answers, and the exchanges of its `http` folder, are in test_reddit_refusals.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.model import (
    Answer,
    Item,
    Progress,
    Reading,
    Recheck,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import reddit
from catchment.platforms.reddit import requests

NOW = datetime(2026, 11, 1, tzinfo=UTC)
EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "reddit_captures.expected.json").read_text())
FOLDERS = ("listing", "paging", "thread", "public")
SOURCE = Source(1, "key", "reddit", "reddit", "r/askreddit", "r/AskReddit", NOW)


def asked(name: str) -> Request:
    """A request that such an answer belongs to."""
    ask = WalkPlan("new", 100, has_key=not name.endswith(".xml"))
    (request,) = reddit.first(SOURCE.replace(settings={"comments": name.endswith("top_all.json")}), Progress(), ask)
    post = {"thread/more_two.json": "t3_98vj9e", "thread/morechildren.json": "t3_3hahrw"}.get(name, "t3_hlrjn9")
    if name == "thread/morechildren.json":
        return requests.stubs(post, ["cu5w67h"], request)[0]
    if name.startswith("thread/info_"):
        return reddit.recheck([Recheck(item_id, "", None, SOURCE) for item_id in ("t1_d7ltvl0", "t1_fx1hmwb")])[0]
    return requests.thread(post, request) if name.startswith("thread/") else request


def reading(captures: Path, name: str) -> Reading:
    request = asked(name)
    answer = Answer(200, {}, (captures / "reddit" / name).read_bytes(), request.url, NOW)
    assert reddit.refusal(answer, request) is None
    return reddit.read(answer, request)


def shown(told: Reading) -> dict[str, Any]:
    """A reading as data, without what it says of nothing."""
    items = told.items
    facts = {
        "kinds": dict(Counter(item.kind for item in items)),
        "first": said(items[0]) if items else None,
        "last": said(items[-1]) if len(items) > 1 else None,
        "nobody's": sum(item.author is None for item in items),
        "edited": sum(item.edited_at is not None for item in items),
        "pinned": [item.external_id for item in items if item.is_pinned],
        "adult": [item.external_id for item in items if item.is_adult],
        "deleted": {item.external_id: item.deleted_by for item in items if item.is_deleted},
        "brief": sum(item.is_partial for item in items),
        "without words": sum(not (item.title or item.html or item.text) for item in items),
        "media": {
            item.external_id: [medium.url.partition("?")[0] for medium in item.media] for item in items if item.media
        },
        "crossposts": {
            item.external_id: reference.external_id
            for item in items
            for reference in item.references
            if reference.relation == "crossposted"
        },
        "links": sum(item.target_url is not None for item in items),
        "skipped": dict(Counter(skipped_entry.reason for skipped_entry in told.skipped)),
        "gone": list(told.gone),
        "goes on after": next((request.params["after"] for request in told.follow if "after" in request.params), None),
        "asks for": dict(Counter(request.step for request in told.follow if "after" not in request.params)),
        "title": told.title,
        "notes": list(told.notes),
    }
    return {name: value for name, value in facts.items() if value}


def said(item: Item) -> dict[str, Any]:
    """Who wrote it is compared with the body below: no names of people here."""
    told = {"external_id": item.external_id, "thread_id": item.thread_id, "score": item.score}
    told |= {"reply_count": item.reply_count, "tags": list(item.tags), "created_at": str(item.created_at)}
    return {name: value for name, value in told.items() if value} | {"characters": len(item.html or item.text or "")}


def things(found: Any) -> Iterator[dict[str, Any]]:
    """Posts and comments of an answer, by nothing but the shape of its JSON."""
    for thing in found if isinstance(found, list) else [found]:
        if thing.get("kind") in ("t1", "t3"):
            yield thing["data"]
            yield from things(thing["data"].get("replies") or [])
        else:
            data = thing.get("data", thing.get("json", {}).get("data", {}))
            yield from things(data.get("children", data.get("things", [])) if thing.get("kind") != "more" else [])


def test_every_recorded_answer_has_its_expectation(captures: Path) -> None:
    files = [path for folder in FOLDERS for path in (captures / "reddit" / folder).iterdir() if path.suffix != ".html"]
    assert {str(path.relative_to(captures / "reddit")) for path in files} == EXPECTED.keys()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recorded_answer_gives_what_the_file_says(captures: Path, name: str) -> None:
    assert shown(reading(captures, name)) == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if name.endswith(".json")))
def test_ids_authors_and_times_are_those_of_the_body_in_its_order(captures: Path, name: str) -> None:
    body = json.loads((captures / "reddit" / name).read_bytes())
    assert [(item.external_id, item.author, item.created_at) for item in reading(captures, name).items] == [
        (thing["name"], None if thing["author"] == "[deleted]" else thing["author"], moment(thing["created_utc"]))
        for thing in things(body)
    ]


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_recorded_pages_lead_from_one_to_the_next(captures: Path) -> None:
    """Of a walk of 1,001 items: pages 1, 2, 10, and the last, which holds one."""
    first, second, tenth, last = (
        reading(captures, f"paging/user_top_page{page}.json") for page in ("01", "02", "10", "11_last")
    )
    assert [len(reading.items) for reading in (first, second, tenth, last)] == [100, 100, 100, 1]
    assert first.follow[0].params["after"] == first.items[-1].external_id
    assert (tenth.is_end, last.is_end, last.follow) == (False, True, ())


def test_the_newest_of_a_recorded_community_go_down_by_time(captures: Path) -> None:
    times = [item.created_at for item in reading(captures, "listing/askreddit_new.json").items if item.created_at]
    assert times == sorted(times, reverse=True)
    assert len(times) == 100


def test_of_a_recorded_thread_the_replies_are_counted_where_all_are_shown(captures: Path) -> None:
    comments = reading(captures, "thread/sticky_72_comments.json").items[1:]
    assert sum(comment.references[0].external_id == "t3_fjn0j9" for comment in comments) == 72
    assert sum(comment.reply_count == 0 for comment in comments) == 84
    assert sum((comment.reply_count or 0) > 0 for comment in comments) == 30


def test_a_recorded_answer_without_raw_json_gives_html_that_is_html(captures: Path) -> None:
    first = reading(captures, "public/localllama_public_json_2026.json").items[0]
    assert (first.html or "").startswith('<!-- SC_OFF --><div class="md"><p>the future is now</p>')
