"""The verbs of the feeds platform: what is understood, what is asked, what is refused, what no feed can do to us."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catchment.errors import InvalidInput, Refused, Unreadable
from catchment.model import (
    Answer,
    FailureScope,
    Identity,
    Progress,
    Reading,
    Request,
    Source,
    WalkPlan,
    Watermark,
)
from catchment.platforms import feeds
from catchment.text.clean import refine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://site.example/blog/"
RSS = b'<rss version="2.0"><channel><title>T</title><item><title>One</title></item></channel></rss>'
FIRST = Request(URL, state={"discover": True})
LATER = Request(URL)


def answer(body: bytes | str, url: str = URL, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, body.encode() if isinstance(body, str) else body, url, NOW)


def read(body: bytes | str, request: Request = LATER, **more: str) -> Reading:
    return feeds.read(answer(body, **more), request)


def source(**more: str) -> Source:
    return Source(1, "key", "feeds", "rss", URL, "Site", NOW, **more)


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("https://example.com/feed.xml", "https://example.com/feed.xml"),
        ("  http://example.com/feed \n", "http://example.com/feed"),
        ("example.com/feed", "https://example.com/feed"),
        ("example.com", "https://example.com/"),
        ("example.com:8080/feed", "https://example.com:8080/feed"),
        ("localhost:8080/feed", "https://localhost:8080/feed"),
        ("feed:https://example.com/feed", "https://example.com/feed"),
        ("feed://example.com/feed", "https://example.com/feed"),
        ("feed:example.com/feed", "https://example.com/feed"),
        ("HTTPS://EXAMPLE.com:443/Feed?A=1#top", "https://example.com/Feed?A=1"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://bücher.example/feed", "https://xn--bcher-kva.example/feed"),
        ("https://例え.jp/フィード", "https://xn--r8jz45g.jp/%E3%83%95%E3%82%A3%E3%83%BC%E3%83%89"),
        ("https://example.com/a%20b?q=%E4%B8%AD", "https://example.com/a%20b?q=%E4%B8%AD"),
        ("https://user:pass@example.com/feed?token=x", "https://user:pass@example.com/feed?token=x"),
        ("http://127.0.0.1:8900/f/1.xml", "http://127.0.0.1:8900/f/1.xml"),
        ("http://[::1]:8080/feed", "http://[::1]:8080/feed"),
        ("https://my_blog.example.com./feed", "https://my_blog.example.com/feed"),
    ],
)
def test_an_address_has_one_form(typed, address):
    target = feeds.understand(typed)
    assert (target.kind, target.address) == ("rss", address)
    assert feeds.understand(target.address).address == address


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "   ",
        "webdev",
        "r/webdev",
        "two words.com",
        "https://exa mple.com",
        "https://example.com/\x00",
        "file:///etc/passwd",
        "ftp://example.com/feed",
        "javascript:alert(1)",
        "mailto:ada@example.com",
        "feed:file:///etc/passwd",
        "https://",
        "https:///feed",
        "https:example.com",
        "http://example.com:99999/",
        "http://example.com:port/",
        "http://example.com:0/",
        "http://[::1/feed",
        "http://-.example/",
        "https://exa<mple.com/",
        "https://example.com/" + "a" * 2000,
    ],
)
def test_a_wrong_address_is_answered_with_a_right_one(typed):
    with pytest.raises(InvalidInput, match=r"https://example\.com/feed\.xml") as failure:
        feeds.understand(typed)
    assert failure.value.field == "target"


READ_BEFORE = Progress(etag='W/"a,b"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT", parser_version=1)


def headers(progress: Progress) -> dict[str, str]:
    (request,) = feeds.first(source(), progress, WalkPlan("entries", 100))
    return {name: value for name, value in request.headers.items() if name != "Accept"}


def test_validators_are_sent_back_to_the_letter():
    verbatim = {"If-None-Match": 'W/"a,b"', "If-Modified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"}
    assert headers(READ_BEFORE.replace(watermark=Watermark(NOW))) == verbatim
    assert headers(READ_BEFORE.replace(body_hash=b"hash")) == verbatim


def test_no_validators_are_sent_before_the_answer_was_read_by_this_reader():
    assert headers(READ_BEFORE) == {}
    assert headers(READ_BEFORE.replace(body_hash=b"hash", parser_version=0)) == {}
    assert headers(READ_BEFORE.replace(body_hash=b"hash", parser_version=None)) == {}


def test_a_first_visit_may_discover_and_a_later_one_may_not():
    for is_first, state in ((True, {"discover": True}), (False, {})):
        (request,) = feeds.first(source(), Progress(), WalkPlan("entries", 100, is_first=is_first))
        assert (request.url, request.listing, request.state) == (URL, "entries", state)


def test_a_credential_is_named_in_the_request():
    (request,) = feeds.first(source(credential="mine"), Progress(), WalkPlan("entries", 100))
    assert (request.credential, request.identity) == ("mine", Identity.OPTIONAL)


def chain(request: Request | None) -> list[str]:
    return [request.url, *chain(request.fallback)] if request else []


def discovered(head: str, request: Request = FIRST) -> list[str]:
    reading = read(f"<!DOCTYPE html><html><head>{head}</head><body>Hi</body></html>", request)
    return chain(reading.follow[0])


USUAL = [
    f"https://site.example/{path}"
    for path in ("atom.xml", "feed.xml", "feed/", "feed.atom", "index.rss", "rss.xml", "rss/")
]


def test_the_announced_feeds_come_first_then_the_usual_places():
    head = """
        <link rel=alternate hreflang="de" href="/de">
        <link rel="alternate" type="application/json+oembed" href="/oembed">
        <link rel="alternate" type="application/json" href="/wp-json/wp/v2/pages/1">
        <link type="application/rss+xml" href="/comments/feed/" title="Comments" rel="alternate">
        <LINK HREF='../main.xml?a=1&amp;b=2' TYPE='Application/RSS+XML; charset=utf-8' REL='Alternate home'>
        <link rel="alternate" type="application/feed+json" href="https://other.example/feed.json">
        <link rel="stylesheet" type="application/rss+xml" href="/no">
        <link rel="alternate" type="application/atom+xml" href="javascript:alert(1)">
    """
    announced = [
        "https://site.example/main.xml?a=1&b=2",
        "https://other.example/feed.json",
        "https://site.example/comments/feed/",
    ]
    assert discovered(head) == announced + USUAL


def test_announced_feeds_stand_on_the_base_of_the_page():
    link = '<base href="https://cdn.example/x/"><link rel="alternate" type="application/atom+xml" href="feed">'
    assert discovered(link)[0] == "https://cdn.example/x/feed"


def test_a_page_that_announces_nothing_leads_to_the_usual_places():
    assert discovered("") == USUAL


def test_a_page_never_leads_to_itself():
    assert discovered(f'<link rel="alternate" type="application/rss+xml" href="{URL}">') == USUAL


def test_the_credential_stays_at_the_host_that_it_was_given_for():
    head = '<link rel="alternate" type="application/rss+xml" href="https://other.example/feed">'
    page = f"<html><head>{head}</head></html>"
    (elsewhere,) = read(page, FIRST.replace(credential="mine", identity=Identity.OPTIONAL)).follow
    assert (elsewhere.credential, elsewhere.identity) == (None, Identity.NONE)
    assert elsewhere.fallback is not None
    assert (elsewhere.fallback.credential, elsewhere.fallback.identity) == ("mine", Identity.OPTIONAL)


@pytest.mark.parametrize(
    ("asked", "page_at", "feed", "credential"),
    [
        ("https://site.example/", "https://site.example/", "https://site.example/feed", "mine"),
        ("http://site.example/", "https://site.example/", "https://site.example/feed", "mine"),
        ("https://site.example/", "https://other.example/", "https://other.example/feed", None),
        ("https://site.example/", "https://site.example/", "http://site.example/feed", None),
        ("https://site.example/", "https://site.example/", "https://site.example:8443/feed", None),
        ("https://site.example/", "https://site.example/", "https://site.example@other.example/feed", None),
    ],
)
def test_a_credential_goes_where_it_was_given_for_and_nowhere_else(asked, page_at, feed, credential):
    request = Request(asked, state={"discover": True}, credential="mine", identity=Identity.OPTIONAL)
    page = f'<html><head><link rel="alternate" type="application/rss+xml" href="{feed}"></head></html>'
    older = f'{{"version": "https://jsonfeed.org/version/1", "items": [], "next_url": "{feed}"}}'
    for body in (page, older):
        (found,) = read(body, request, url=page_at).follow
        identity = Identity.OPTIONAL if credential else Identity.NONE
        assert (found.url, found.credential, found.identity) == (feed, credential, identity)


def test_tags_that_nobody_reads_announce_nothing():
    link = '<link rel="alternate" type="application/rss+xml" href="/hidden">'
    assert discovered(f"<!-- {link} --><script>x = '{link}'</script>") == USUAL
    assert discovered(f'<link title="a > b" {link[6:]}')[0] == "https://site.example/hidden"


def test_the_address_of_a_discovered_feed_becomes_the_sources_own():
    (found,) = read("<html><head></head></html>", FIRST).follow
    reading = feeds.read(answer(RSS, url="https://site.example/moved.xml"), found)
    assert (reading.target, len(reading.items)) == ("https://site.example/moved.xml", 1)
    assert read(RSS, FIRST).target is None


def test_a_page_that_carries_rdf_is_a_page():
    licence = '<rdf:RDF xmlns="http://web.resource.org/cc/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    page = (
        f'<?xml version="1.0"?><!-- <rss> --><html xmlns="http://www.w3.org/1999/xhtml"><body>{licence}</body></html>'
    )
    assert chain(read(page, FIRST).follow[0]) == USUAL


def test_a_page_where_a_feed_was_is_a_failure_and_no_empty_feed():
    for request in (LATER, Request(URL, state={"discovered": True})):
        with pytest.raises(Unreadable, match="an HTML page was returned instead of a feed"):
            read("<!doctype html><title>Soon back</title>", request)


@pytest.mark.parametrize("kind", ["text/html", "application/json", "image/png", "text/plain; charset=utf-8", ""])
def test_the_content_type_is_not_believed(kind):
    assert len(read(RSS, content_type=kind).items) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the answer is empty"),
        (b" \r\n\t", "the answer is empty"),
        (b"\xef\xbb\xbf", "the answer is empty"),
        (b"OK", "the answer is not a feed"),
        (b'<?xml version="1.0"?><opml version="2.0"><body/></opml>', "not a feed: <opml>"),
        (b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>', "not a feed: <urlset>"),
        (b"{}", "the answer is JSON, but not a feed"),
        (b"[1, 2]", "the answer is JSON, but not a feed"),
        (b'{"error": "not found"}', "the answer is JSON, but not a feed"),
        (b'{"version": "https://jsonfeed.org/version/1", "title": "T"}', "has no list of items"),
        (b'{"version": "https://jsonfeed.org/version/1", "items": [{"id": "1"', "incomplete or malformed"),
        (b"[" * 100_000, "incomplete or malformed"),
        (bytes(range(256)) * 20, "the answer is not a feed"),
    ],
)
def test_what_is_no_feed_is_said_to_be_none(body, words):
    with pytest.raises(Unreadable, match=words):
        read(body)


def test_raw_control_characters_and_half_pairs_in_json_cost_nothing_else():
    reading = read(b'{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","content_text":"a\x01b\\ud83d"}]}')
    assert [item.text for item in reading.items] == ["a\x01b\ufffd"]
    assert reading.notes == ("control characters or broken escapes",)


def test_gbk_that_calls_itself_utf_8_is_read():
    body = "<rss><channel><item><title>河流的雨量和水位，我们每天都在记录</title></item></channel></rss>".encode("gbk")
    assert read(body, content_type="text/xml; charset=utf-8").items[0].title == "河流的雨量和水位，我们每天都在记录"


def json_feed(next_url: str) -> str:
    feed = {"version": "https://jsonfeed.org/version/1.1", "feed_url": "https://site.example/f", "items": []}
    return json.dumps(feed | {"next_url": next_url})


def test_older_pages_are_asked_for_on_the_first_read_only():
    reading = read(json_feed("?page=2"), FIRST)
    (older,) = reading.follow
    assert (older.url, reading.is_end) == (f"{URL}?page=2", False)
    assert read(json_feed("?page=2"), LATER).follow == ()
    assert feeds.read(answer(json_feed("?page=3"), url=older.url), older).follow[0].url == f"{URL}?page=3"


def test_older_pages_never_go_in_circles():
    (older,) = read(json_feed("?page=2"), FIRST).follow
    assert feeds.read(answer(json_feed("?page=2"), url=older.url), older).follow == ()
    assert feeds.read(answer(json_feed(URL), url=older.url), older).follow == ()
    assert read(json_feed(URL), FIRST).follow == ()
    assert read(json_feed("https://site.example/f"), FIRST).follow == ()


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("", None),
        ("<ttl>60</ttl>", 3600),
        ("<ttl>1</ttl>", 60),
        ("<ttl>0</ttl>", None),
        ("<ttl>-5</ttl>", None),
        ("<ttl>soon</ttl>", None),
        ("<ttl>99999999999999999999</ttl>", 86400),
        ("<sy:updatePeriod>hourly</sy:updatePeriod>", 3600),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>", 21600),
        ("<sy:updatePeriod>yearly</sy:updatePeriod>", 86400),
        ("<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>3600</sy:updateFrequency>", None),
        ("<sy:updatePeriod>whenever</sy:updatePeriod>", None),
        ("<ttl>30</ttl><sy:updatePeriod>hourly</sy:updatePeriod>", 3600),
    ],
)
def test_a_feeds_wish_for_pauses_is_between_a_minute_and_a_day(told, seconds):
    body = f'<rss xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel>{told}</channel></rss>'
    assert read(body).hints.min_interval_seconds == seconds


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>",
        "<html><head><title>Attention Required! | Cloudflare</title></head></html>",
        "<html><head><title>x</title></head><script>window._cf_chl_opt={}</script></html>",
        "<!doctype html><html><title>Making sure you&#39;re not a bot!</title></html>",
        '<!doctype html><html><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script></html>',
        "<!doctype html>\n<html><head><title>Verifying your browser…</title></head></html>",
        '<html><head></head><iframe src="/_Incapsula_Resource?x"></iframe></html>',
    ],
)
@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_check_for_browsers_is_a_refusal_of_the_host(page, status):
    refusal = feeds.refusal(answer(page, status=status), LATER)
    assert refusal is not None
    assert (type(refusal.error), refusal.error.status, refusal.blames) == (Refused, status, FailureScope.HOST)


@pytest.mark.parametrize(
    "body",
    [
        RSS,
        b"",
        b"<!doctype html><html><head><title>My blog</title></head>Just a moment... of silence</html>",
        b"<rss><channel><item><title>Just a moment...</title><link>_cf_chl_opt</link></item></channel></rss>",
        b'{"title": "Just a moment..."}',
    ],
)
def test_feeds_and_pages_that_speak_of_walls_are_none(body):
    assert feeds.refusal(answer(body), LATER) is None


def test_a_wall_with_429_is_left_to_those_who_wait():
    assert feeds.refusal(answer("<html><head><title>Just a moment...</title>", status=429), LATER) is None


def test_a_recorded_wall_is_known(captures):
    body = (captures / "websites" / "a2web_xcancel_antibot_interstitial.html").read_bytes()
    assert feeds.refusal(answer(body), LATER) is not None


ATOM = b'<feed xmlns="http://www.w3.org/2005/Atom">'
NOTHING = b"<item><nothing/></item>"


def entries(inside: bytes, count: int) -> bytes:
    return b"<rss><channel>" + b"<item><title>a</title>%s</item>" % inside * count + b"</channel></rss>"


def bomb(reference: str) -> bytes:
    levels = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    return f'<!DOCTYPE rss [<!ENTITY e0 "lol">{levels}]><rss><channel><item>{reference}</item></channel></rss>'.encode()


@pytest.mark.parametrize("reference", ["<title>&e9;</title>", '<title>x</title><link href="&e9;"/>'])
def test_entities_that_grow_are_not_expanded(reference):
    tracemalloc.start()
    try:
        reading = read(bomb(reference))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert len(reading.items) == 1
    assert "declared entities" in reading.notes


def test_files_and_addresses_behind_entities_are_never_opened(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("TOP SECRET")
    for declared in (f'<!ENTITY x SYSTEM "{secret.as_uri()}">', f'<!ENTITY % x SYSTEM "{secret.as_uri()}"> %x;'):
        body = f"<!DOCTYPE rss [{declared}]><rss><channel><item><title>a &x; b</title></item></channel></rss>"
        assert [item.title for item in read(body).items] == ["a &x; b"]


@pytest.mark.parametrize(
    "body",
    [
        b"<a>" * 1_000_000,
        b"<rss><channel><item>" + b"<a>" * 100_000,
        b"<rss>" + b"<item>" * 100_000,
        b"<!--" * 200_000,
        b"<rss><channel>" + b"<![CDATA[" * 200_000,
        b"&" * 300_000,
        b"<rss><channel><title>" + b"&#x" * 100_000,
        b"<rss " + b"a=b " * 100_000,
        b"<!DOCTYPE " * 50_000,
        b'<?xml version="1.0"?>' + b"<!-- -->" * 100_000 + b"x",
        b"<html>" + b"<link rel=alternate>" * 50_000,
        b"</rss>" * 200_000,
        b"<rss" * 200_000,
        b"<rss><channel><item><author>" + b" " * 500_000 + b"@ <</author></item></channel></rss>",
        b" " * 1_000_000 + b"x",
        b"<!---->" * 500 + b"x",
        b"<html>" + b"<div>" * 1_000_000,
        b"<html><a " + b" ".join(b"a%d=1" % number for number in range(100_000)) + b">",
        b"<html>" + b"<link '" * 200_000,
        b"<html>" + b"<script>" * 200_000,
        entries(b"<author>" + b"&lt;@" * 99 + b"</author>", 10_000),
        entries(b"<author>" + b"a@b(" * 74 + b"</author>", 10_000),
        entries(b"<category>a</category>" + b"<pubDate>" + b"1a " * 33 + b"</pubDate>" * 2, 500),
        b"<rss "
        + b" ".join(b'xmlns:n%d="u:%d"' % (each, each) for each in range(9000))
        + b"><channel>"
        + NOTHING * 9000,
        b'<rss xml:base="/' + b"a" * 1_000_000 + b'/"><channel>' + b"<item><link>x</link></item>" * 20_000,
        ATOM + b"<author><name>" + b"a" * 5_000_000 + b"</name></author>" + b"<entry><id>1</id></entry>" * 20_000,
        b"\n" * 1_000_000 + b"<rss><channel><item><title>a</item><item><title>b</rss>",
        b"\n<!ENTITY a" * 50_000 + b"<rss><channel><item><title>a</item><item><title>b</rss>",
    ],
    ids=lambda body: body[:30].decode() + "…",
)
def test_bodies_made_to_hurt_are_answered(body):
    """A slip here does not fail, it never ends."""
    for request in (FIRST, LATER):
        assert feeds.refusal(answer(body), request) is None
        with suppress(Unreadable):
            refine(read(body, request), scope="", answer_url=URL)


@pytest.mark.parametrize("spaces", [" " * 90_000, " \t" * 45_000])
def test_a_content_type_made_to_hurt_is_answered(spaces):
    assert len(read(RSS, content_type=f"text/xml; charset={spaces};{spaces}x").items) == 1


def test_a_base_without_end_is_not_repeated_for_every_link():
    links = "<item><link>x</link></item>" * 3
    reading = read(f'<rss xml:base="/{"a" * 100_000}/"><channel>{links}</channel></rss>')
    assert [item.url for item in reading.items] == [f"{URL}x"] * 3
    long_path = f"https://site.example/{'a' * 5000}/"
    assert [item.url for item in read(f"<rss><channel>{links}</channel></rss>", url=long_path).items] == []


def test_of_too_many_entries_the_first_are_read_and_the_rest_counted():
    reading = read(entries(b"", 20_003))
    assert (len(reading.items), [skipped_entry.reason for skipped_entry in reading.skipped]) == (
        20_000,
        ["too many entries"] * 3,
    )
    document = {"version": "https://jsonfeed.org/version/1", "items": [{"id": "1", "title": "a"}] * 20_003}
    reading = read(json.dumps(document))
    assert (len(reading.items), len(reading.skipped)) == (20_000, 3)


@pytest.mark.parametrize("depth", [100, 300, 900, 980, 5_000, 500_000])
def test_json_nested_without_end_is_answered(depth):
    nested = "[" * depth + "]" * depth
    for body in (nested, f'{{"version": {nested}}}', f'{{"version": "jsonfeed.org", "items": [{nested}]}}'):
        with suppress(Unreadable):
            assert read(body).items == ()


@pytest.mark.parametrize(
    "body",
    [
        b"<rss><channel>" + b"<a>" * 1000,
        b"<rss><channel>" + b"<a>" * 1000 + b"</a>" * 1000 + b"</channel></rss>",
        b"<rss><channel><title>T</title><description>it breaks off he",
    ],
)
def test_a_feed_of_which_nothing_is_left_is_no_empty_feed(body):
    with pytest.raises(Unreadable, match="broken beyond repair"):
        read(body)


def test_a_base_that_is_no_address_changes_nothing():
    entry = '<entry xml:base="//["><link href="1"/></entry>'
    atom = f'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://[">{entry}</feed>'
    assert [item.url for item in read(atom).items] == [f"{URL}1"]
    assert discovered('<base href="http://[">') == USUAL


def test_lengths_beyond_measure_are_cut():
    item = '<item><enclosure url="https://site.example/1.mp3" length="{}"/></item>'
    body = f"<rss><channel>{item.format('1e300')}{item.format('inf')}{item.format('-1')}</channel></rss>"
    assert [item.media[0].size_bytes for item in read(body).items] == [2**53, None, None]
