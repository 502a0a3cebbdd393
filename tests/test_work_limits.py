"""No answer costs more than so much work, however it was made: amounts are counted, so no test depends on time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from html import escape

import pytest

from catchment import work_limits
from catchment.errors import Stopped, TooComplex, Unreadable
from catchment.model import (
    Answer,
    Item,
    Reading,
    Request,
)
from catchment.platforms import custom_api, feeds
from catchment.text.clean import Refined, refine, sanitise

URL = "https://feeds.example/feed.xml"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def answered(body: str | bytes, content_type: str = "application/rss+xml") -> Answer:
    return Answer(200, {"content-type": content_type}, body.encode() if isinstance(body, str) else body, URL, NOON)


def feed(*entries: str) -> str:
    return f'<rss version="2.0"><channel><title>A feed</title>{"".join(entries)}</channel></rss>'


def entry(number: int, html: str, title: str = "About it") -> str:
    link = f"https://feeds.example/{number}"
    return f"<item><link>{link}</link><title>{title}</title><description>{escape(html)}</description></item>"


def read(body: str) -> Reading:
    return feeds.read(answered(body), Request(url=URL, listing="entries"))


def cleaned(*html: str) -> Refined:
    items = tuple(Item(str(number), html=markup) for number, markup in enumerate(html))
    return refine(Reading(items), scope="s1", answer_url=URL)


def spent(*html: str) -> int:
    """How much of an answer's limit these cost, beyond what is taken on without inspection."""
    limit = work_limits.WorkLimit(most=0)
    taken: list[int] = []
    limit.spend = taken.append  # type: ignore[method-assign]
    with work_limits.limited(limit):
        cleaned(*html)
    return sum(taken)


# ── HTML ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_html_of_endless_depth_keeps_its_words_and_loses_its_markup() -> None:
    (only,) = cleaned("<div>" * 9_999 + "words").items
    assert (only.item.text, only.item.html, only.is_html_dropped) == ("words", None, True)


def test_an_answer_of_many_items_of_endless_depth_is_given_up() -> None:
    with pytest.raises(TooComplex, match="nested"):
        cleaned(*["<div>" * 9_999 + "words"] * (work_limits.MOST_HEAVY + 1))


def test_a_few_items_of_endless_depth_do_not_cost_the_others() -> None:
    deep, plain = "<div>" * 9_999 + "words", "<p>honest <b>words</b></p>"
    kept = cleaned(*[deep] * work_limits.MOST_HEAVY, plain).items
    assert len(kept) == work_limits.MOST_HEAVY + 1
    assert kept[-1].item.html == plain


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 499,
        "".join(f'<b id="{number}">' for number in range(249)) + "<p>" * 249,
        "<p " + " ".join(f"a{number}" for number in range(2_500)) + ">",
        "<i>" * 400 + "<table>" * 99,
    ],
    ids=["nested", "copied", "attributes", "tables"],
)
def test_what_is_harmless_alone_is_given_up_where_an_answer_is_made_of_it(html: str) -> None:
    with work_limits.limited(work_limits.WorkLimit(most=50_000)), pytest.raises(TooComplex):
        cleaned(*[html + "words"] * 20_000)


def test_a_large_honest_answer_takes_a_fraction_of_its_limit() -> None:
    paragraph = (
        '<div class="entry"><h2 id="a">A heading</h2><p>Some words, <a href="/b?c=d" class="e">a link</a> and an image '
        '<img src="/f.png" width="20"> between <em>others</em>, and so on for a line or two of text.</p></div>'
    )
    honest = [paragraph * 25] * 100
    # Half a megabyte; forty times as much is the largest answer that is taken.
    assert sum(map(len, honest)) > 500_000
    assert spent(*honest) * 40 < work_limits.MOST_WORK
    assert all(item.item.html for item in cleaned(*honest).items)


# ── feeds ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_title_of_nothing_but_ampersands_is_not_repaired_one_by_one() -> None:
    with pytest.raises(TooComplex, match="too large to repair"):
        read(feed(entry(1, "words", title="&" * 1_100_000)))


def test_a_feed_with_many_bare_ampersands_is_still_repaired() -> None:
    reading = read(feed(entry(1, "words", title="&" * 3_000), entry(2, "words", title="AT&T")))
    assert [item.title for item in reading.items] == ["&" * 3_000, "AT&T"]


def test_xml_of_more_nodes_than_any_feed_has_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(TooComplex, match="tags and attributes"):
        work_limits.check_size(feed(entry(1, "words"), "<a/>" * work_limits.MOST_XML_NODES).encode())


def test_markup_inside_character_data_does_not_count_as_nodes() -> None:
    html = '<p class="a">words</p>' * 250
    section = f"<item><title>x</title><description><![CDATA[{html}]]></description></item>"
    work_limits.check_size(feed(section * 1_500).encode())


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("values", [b"[],", b'{"a":1},', b'"ab",'])
def test_json_of_more_values_than_any_api_gives_is_refused_before_it_is_decoded(values: bytes) -> None:
    with pytest.raises(TooComplex, match="values"):
        work_limits.check_size(b"[" + values * work_limits.MOST_JSON_VALUES + b"1]")


@pytest.mark.parametrize(
    ("key", "is_id"),
    [("17", True), ("t3_1abc", True), ("a" * 399 + "1", True), ("1" * 401, False), ("two 2", False), ("word", False)],
)
def test_a_key_is_an_id_if_it_has_a_digit_no_white_space_and_an_end(key: str, is_id: bool) -> None:
    body = f'{{"{key}": {{"title": "About it"}}}}'
    request = Request(url=URL, state={"settings": {}}, listing="snapshot")
    try:
        found = custom_api.read(answered(body, "application/json"), request).items
    except Unreadable:
        found = ()
    assert [item.external_id for item in found] == ([key] if is_id else [])


# ── a stop ────────────────────────────────────────────────────────────────────────────────────────────────────────


def stopped_after(items: int) -> Callable[[], None]:
    left = iter(range(items))

    def check() -> None:
        if next(left, None) is None:
            raise Stopped("a stop was asked for")

    return check


def test_a_stop_ends_the_cleaning_between_two_items() -> None:
    with work_limits.limited(work_limits.WorkLimit(stopped_after(3))), pytest.raises(Stopped):
        cleaned(*["<p>words</p>"] * 4)


def test_a_stop_ends_the_reading_between_two_entries() -> None:
    body = feed(*(entry(number, "words") for number in range(4)))
    with work_limits.limited(work_limits.WorkLimit(stopped_after(3))), pytest.raises(Stopped):
        read(body)


def test_formatting_that_is_left_open_counts_for_every_copy_that_the_parser_makes_of_it() -> None:
    copied = "<p>" + "".join(f"<b a={number}>" for number in range(300)) + "<p>x" * 300
    assert spent(copied) > 300 * 300 // 4


def test_ruby_texts_without_a_ruby_are_nested_and_counted_as_that() -> None:
    assert sanitise("<rt>" * 2_000 + "words", URL) is None
