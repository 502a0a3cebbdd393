"""Lists of sources: what is understood, what is refused, and that writing and reading give back the same."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.errors import InvalidInput
from catchment.platforms import installed, reddit
from catchment.sources import list_formats
from catchment.sources.list_formats import ListedSource
from catchment.sources.lists import COMMUNITIES, shipped


def entries(body: str | bytes) -> list[ListedSource]:
    return [
        entry.replace(place="")
        for entry in list_formats.read(body if isinstance(body, bytes) else body.encode()).entries
    ]


def opml(body: str, head: str = '<?xml version="1.0"?>') -> str:
    return f'{head}<opml version="2.0"><head><title>x</title></head><body>{body}</body></opml>'


def refused(body: str | bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        entries(body)
    return str(caught.value)


# ── OPML ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_folders_above_a_feed_are_its_categories() -> None:
    body = opml(
        '<outline text="Tech"><outline title="Data"><outline text="A" xmlUrl="https://a.example/?x=1&amp;y=2"/></outline>'
        '<outline text="B" type="rss" xmlUrl="https://b.example/"/></outline><outline xmlurl="https://c.example/"/>'
    )
    assert entries(body) == [
        ListedSource("https://a.example/?x=1&y=2", name="A", categories=("Tech", "Data")),
        ListedSource("https://b.example/", name="B", categories=("Tech",)),
        ListedSource("https://c.example/"),
    ]


def test_a_feed_that_stands_in_several_folders_is_one_source_with_several_categories() -> None:
    feed = '<outline text="A" xmlUrl="https://a.example/"/>'
    body = opml(f'<outline text="One">{feed}</outline><outline text="Two">{feed}</outline>')
    assert entries(body) == [ListedSource("https://a.example/", name="A", categories=("One", "Two"))]


def test_an_outline_of_type_rss_without_an_address_is_reported_and_a_mere_folder_is_not() -> None:
    found = list_formats.read(
        opml('<outline text="Gone" type="rss" xmlUrl=""/><outline text="Empty folder"/>').encode()
    )
    assert found.entries == ()
    assert [(row.place, "missing" in row.reason) for row in found.bad_rows] == [("outline 1", True)]


def test_bare_ampersands_in_addresses_are_understood_as_they_were_meant() -> None:
    assert entries(opml('<outline text="a & b" xmlUrl="https://a.example/?x=1&y=2&amp;z=3"/>')) == [
        ListedSource("https://a.example/?x=1&y=2&z=3", name="a & b")
    ]


def test_a_list_in_another_encoding_is_read_by_what_it_declares() -> None:
    text = opml('<outline text="新闻" xmlUrl="https://a.example/"/>', head='<?xml version="1.0" encoding="gb2312"?>')
    assert entries(text.encode("gb2312")) == [ListedSource("https://a.example/", name="新闻")]


BOMB = '<!DOCTYPE opml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
LEAK = '<!DOCTYPE opml [<!ENTITY f SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (opml('<outline text="&b;" xmlUrl="https://a.example/"/>', head=BOMB), "DOCTYPE"),
        (opml('<outline text="&f;" xmlUrl="https://a.example/"/>', head=LEAK), "DOCTYPE"),
        ("<!doctype html><html><body>hello</body></html>", "web page"),
        ("<!DOCTYPE html><html/>", "web page"),
        ("<rss version='2.0'><channel/></rss>", "not OPML"),
        ('<opml version="2.0"><body><outline', "not well-formed"),
        ("<opml>" + "<outline text='x'>" * 200, "deep"),
    ],
)
def test_hostile_and_foreign_xml_is_refused(body: str, says: str) -> None:
    assert says in refused(body)


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    assert "20 MB" in refused(b"<" * (list_formats.MOST_BYTES + 1))


@pytest.mark.parametrize("ampersand", ["&", "&amp;"])
def test_an_attribute_of_nothing_but_ampersands_is_refused_before_anything_is_made_of_it(ampersand: str) -> None:
    body = opml(f'<outline text="A" xmlUrl="https://a.example/?{ampersand * 400_000}"/>').encode()
    tracemalloc.start()
    try:
        says = refused(body)
        assert "400,0" in says
        # One replacement for each of them would take a hundred times as much as the list.
        assert tracemalloc.get_traced_memory()[1] < 5 * len(body)
    finally:
        tracemalloc.stop()


def test_a_json_list_of_more_values_than_any_list_has_is_refused() -> None:
    assert "values" in refused(b"[" + b"[]," * 400_000 + b"[]]")


@pytest.mark.parametrize("name", ["Subs.opml", "SubsNoTitleAttributes.opml"])
def test_real_lists_survive_being_read_written_and_read_again(captures: Path, name: str) -> None:
    body = (captures / "feeds" / "opml" / name).read_bytes()
    found = list_formats.read(body)
    assert len(found.entries) > 80
    assert found.bad_rows == ()
    again = entries(list_formats.write(found.entries, "opml")[0])
    assert {entry.target: (entry.name, set(entry.categories)) for entry in again} == {
        entry.target: (entry.name, set(entry.categories)) for entry in found.entries
    }


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pool_of_communities_is_understood() -> None:
    pool = [
        {"name": "r/webdev", "tier": "high", "categories": ["tech", "web"], "quality_score": 0.91},
        {"name": "SaaS", "tier": "Low", "categories": {"business": 1}, "quality_score": "0.5", "is_active": False},
    ]
    expected = [
        ListedSource("r/webdev", "reddit", None, ("tech", "web"), "high", quality_score=0.91, is_of_pool=True),
        ListedSource(
            "r/SaaS", "reddit", None, ("business",), "low", quality_score=0.5, is_paused=True, is_of_pool=True
        ),
    ]
    assert entries(json.dumps(pool)) == expected
    assert entries(json.dumps({"communities": pool})) == expected


@pytest.mark.parametrize("name", ["webdev", "r/webdev", "/r/webdev", "https://www.reddit.com/r/webdev"])
def test_a_community_may_be_named_in_any_usual_way(name: str) -> None:
    (entry,) = entries(json.dumps({"communities": [name]}))
    assert reddit.understand(entry.target).address == "r/webdev"
    assert entries(json.dumps([{"name": name}])) == [entry]


def test_a_bad_entry_of_a_pool_is_named() -> None:
    found = list_formats.read(json.dumps([{"name": "webdev", "quality_score": "good"}, {"tier": "high"}]).encode())
    assert [(row.place, row.target) for row in found.bad_rows] == [("entry 1", "webdev"), ("entry 2", "")]


def test_the_pool_that_is_shipped_has_two_hundred_communities_of_every_sort() -> None:
    pool, left_out = shipped(COMMUNITIES, installed())
    assert (len(pool.entries), pool.bad_rows, left_out) == (200, (), ())
    assert len({reddit.understand(entry.target).address for entry in pool.entries}) == 200
    assert {entry.priority for entry in pool.entries} == {"high", "medium", "low"}
    assert all(entry.categories and entry.quality_score and 0 < entry.quality_score < 1 for entry in pool.entries)
    assert len({category for entry in pool.entries for category in entry.categories}) > 20


def test_a_plain_list_of_addresses_is_a_list_of_feeds() -> None:
    assert entries('["https://a.example/", "https://b.example/"]') == entries(
        "https://a.example/\nhttps://b.example/\n"
    )


def test_one_bad_entry_is_reported_and_the_rest_goes_on() -> None:
    rows = [
        {"target": "https://a.example/", "interval_minutes": "often"},
        {"target": "https://b.example/", "settings": [1]},
        17,
        {"target": "https://c.example/", "interval_minutes": 5.5},
        {"target": "https://d.example/", "interval_minutes": 5},
    ]
    found = list_formats.read(json.dumps(rows).encode())
    assert [entry.target for entry in found.entries] == ["https://d.example/"]
    assert [row.place for row in found.bad_rows] == ["entry 1", "entry 2", "entry 3", "entry 4"]


@pytest.mark.parametrize("body", ["{", '{"a": 1}', "[" * 100_000, "{}", "", "\0\0\0"])
def test_what_is_no_list_is_refused_with_what_would_be_one(body: str) -> None:
    assert "OPML, CSV" in refused(body)


# ── CSV ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_columns_are_known_by_their_names_in_any_order(sign: str) -> None:
    rows = [["Name", "Tier", "URL", "Category"], ["A, the first", "high", "https://a.example/", "one|two"]]
    text = io.StringIO()
    csv.writer(text, delimiter=sign).writerows(rows)
    assert entries(text.getvalue()) == [
        ListedSource("https://a.example/", name="A, the first", categories=("one", "two"), priority="high")
    ]


def test_without_a_header_lines_are_addresses_and_comments_are_left_out() -> None:
    assert entries("# mine\nhttps://a.example/,A\n\nb.example/feed\n") == [
        ListedSource("https://a.example/", name="A"),
        ListedSource("b.example/feed"),
    ]


@pytest.mark.parametrize("sign", "=+-@＝＋－＠")
def test_a_name_that_a_spreadsheet_would_run_is_made_harmless(sign: str) -> None:
    name = f'{sign}HYPERLINK("http://evil")'
    text, _ = list_formats.write([ListedSource("@nasa", "twitter_feed", name=name)], "csv")
    cells = list(csv.reader(io.StringIO(text)))[1]
    assert not any(cell.startswith(tuple("=@+-＝＋－＠")) for cell in cells)
    assert [entry.name for entry in entries(text)] == [name]


# ── there and back ────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs", "Cn", "Co")), min_size=1, max_size=20)
LISTED = st.builds(
    ListedSource,
    target=WORDS,
    kind=st.sampled_from(["rss", "digest_feed", "reddit"]),
    name=st.none() | WORDS,
    categories=st.lists(WORDS.filter(lambda word: ";" not in word), max_size=3, unique=True).map(tuple),
    priority=st.sampled_from(["high", "medium", "low"]),
    interval_minutes=st.none() | st.integers(1, 10_000),
    quality_score=st.none() | st.floats(0, 100),
    settings=st.dictionaries(WORDS, WORDS | st.integers(0, 9), max_size=2),
    credential=st.none() | WORDS,
    is_paused=st.booleans(),
)
MANY = st.lists(LISTED, max_size=5, unique_by=lambda entry: (entry.kind, entry.target))


@pytest.mark.parametrize("format", ["csv", "json"])
@given(wanted=MANY)
def test_csv_and_json_give_back_everything(format: str, wanted: list[ListedSource]) -> None:
    text, left_out = list_formats.write(wanted, format)
    assert left_out == 0
    assert (entries(text) if wanted else []) == wanted


@given(wanted=MANY)
def test_opml_gives_back_the_feeds_and_says_how_many_others_it_cannot_hold(wanted: list[ListedSource]) -> None:
    text, left_out = list_formats.write(wanted, "opml")
    feeds = {entry.target: entry for entry in wanted if entry.kind in list_formats.FEED_KINDS}
    assert left_out == sum(entry.kind == "reddit" for entry in wanted)
    assert {entry.target for entry in entries(text)} == {*feeds}
    for entry in entries(text):
        assert entry.name == (feeds[entry.target].name or entry.target) or len(wanted) > len(feeds)


def test_an_unknown_format_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match="opml, csv, json, communities"):
        list_formats.write([], "xlsx")


@given(wanted=MANY)
def test_a_pool_gives_back_its_communities_and_says_how_many_others_it_cannot_hold(wanted: list[ListedSource]) -> None:
    text, left_out = list_formats.write(wanted, "communities")
    communities = [entry for entry in wanted if entry.kind == "reddit"]
    assert left_out == len(wanted) - len(communities)
    # A name that differs from the target in capitals only is the community's own spelling of it.
    assert [(row["name"].lower(), row["tier"], row["is_active"]) for row in json.loads(text)["communities"]] == [
        (source.target.lower(), source.priority, not source.is_paused) for source in communities
    ]
