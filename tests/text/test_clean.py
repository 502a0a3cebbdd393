"""Refining: what platforms said, made fit to be kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import html as lxml_html

from catchment.model import (
    Item,
    Media,
    Reading,
    Reference,
    Skipped,
)
from catchment.text.clean import (
    MAX_ID,
    Refined,
    RefinedItem,
    clean_text,
    fingerprint,
    html_to_text,
    refine,
    sanitise,
)

ANSWER_URL = "https://example.org/blog/feed.xml"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def refined(*items: Item, **options: Any) -> Refined:
    return refine(Reading(items=items), **{"scope": "s1", "answer_url": ANSWER_URL, **options})


def refined_item(**fields: Any) -> RefinedItem:
    (only,) = refined(Item(**{"external_id": "1", **fields})).items
    return only


def safe(html: str) -> str:
    clean = sanitise(html, ANSWER_URL)
    assert clean is not None
    return clean


def text_of(html: str) -> str:
    return html_to_text(safe(html))


# ── what is kept, what is skipped ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "words"},
        {"text": "words"},
        {"html": "<p>words</p>"},
        {"url": "https://example.org/1"},
        {"target_url": "https://example.org/1"},
        {"media": (Media("https://example.org/1.jpg"),)},
        {"html": '<img src="https://example.org/comic.png">'},
    ],
)
def test_any_one_sort_of_content_is_enough(fields: dict[str, Any]) -> None:
    assert len(refined(Item("1", **fields)).items) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"title": " \n\t", "text": "\x00\x01", "html": "<p> &nbsp; </p>"},
        {"html": "<script>alert(1)</script><!-- words -->"},
        {"url": "javascript:alert(1)"},
        {"media": (Media("data:image/png;base64,AAAA"),)},
        {"html": '<img alt="gone">', "author": "somebody", "score": 3},
    ],
)
def test_an_item_without_content_is_skipped_with_its_reason(fields: dict[str, Any]) -> None:
    outcome = refined(Item("17", **fields), Item("18", title="stays"))
    assert outcome.skipped == (Skipped("no content", excerpt="17"),)
    assert [each.item.external_id for each in outcome.items] == ["18"]


def test_what_the_reader_skipped_is_passed_on() -> None:
    torn = Skipped("not an object", excerpt="[")
    assert refine(Reading(skipped=(torn,)), scope="", answer_url=ANSWER_URL) == Refined((), (torn,))


def test_a_missing_title_stays_missing() -> None:
    assert refined_item(text="Only words").item.title is None


def test_every_field_is_cleaned() -> None:
    assert refined_item(
        external_id=" a\n1 ",
        title=" Two\n lines\x00 ",
        text="First\x07  line \r\n\r\n\r\n\r\n second\tline",
        url=" /post/1 ",
        target_url="http://example.com/a b",
        author=" An\nna\ud800 ",
        author_id="  ",
        thread_id="t\x001",
        created_at=NOON.astimezone(timezone(timedelta(hours=8))),
        score=10**30,
        rank=10**30,
        gained=-(10**30),
        media=(Media("pic.jpg", alt=" a\npic "), Media("ftp://example.org/x")),
        references=(Reference("quoted", external_id=" 9 ", url="../q", text="so  it\x00 said"),),
        tags=(" one ", "two\nwords", "one", "\x00"),
    ).item == Item(
        "a 1",
        scope="s1",
        title="Two lines",
        text="First line\n\nsecond line",
        url="https://example.org/post/1",
        target_url="http://example.com/a%20b",
        author="An na",
        thread_id="t1",
        created_at=NOON,
        media=(Media("https://example.org/blog/pic.jpg", alt="a pic"),),
        references=(Reference("quoted", external_id="9", url="https://example.org/q", text="so it said"),),
        tags=("one", "two words"),
    )


def test_long_names_and_many_tags_are_capped() -> None:
    item = refined_item(title="t", author="a" * 999, tags=tuple(f"{n}" + "g" * 999 for n in range(99))).item
    assert len(item.author or "") == 300
    assert len(item.tags) == 50
    assert {len(tag) for tag in item.tags} == {100}


@pytest.mark.parametrize("moment", [datetime(1969, 12, 31, tzinfo=UTC), datetime(2201, 1, 1, tzinfo=UTC), datetime.min])
def test_an_impossible_time_is_no_time(moment: datetime) -> None:
    item = refined_item(title="t", created_at=moment, edited_at=moment).item
    assert (item.created_at, item.edited_at) == (None, None)


def test_a_time_without_a_zone_is_taken_as_utc_and_marked() -> None:
    item = refined_item(title="t", created_at=datetime(2026, 3, 1, 12)).item
    assert (item.created_at, item.is_zone_guessed) == (NOON, True)


@pytest.mark.parametrize(
    ("given_url", "kept"),
    [
        ("https://example.com/a?b=c#d", "https://example.com/a?b=c#d"),
        ("HTTPS://Example.com/A", "https://Example.com/A"),
        ("//cdn.example.com/a", "https://cdn.example.com/a"),
        ("/a", "https://example.org/a"),
        ("a", "https://example.org/blog/a"),
        ("http://例子.cn/路径", "http://例子.cn/路径"),
        ("java\nscript:alert(1)", None),
        ("vbscript:x", None),
        ("mailto:a@example.org", None),
        ("http://", None),
        ("http:///nowhere", None),
        ("http://[broken", "http://[broken"),
        ("//[broken", None),
        ("https://example.com/" + "a" * 4000, None),
    ],
)
def test_only_web_addresses_are_kept_and_made_absolute(given_url: str, kept: str | None) -> None:
    assert refined_item(title="t", url=given_url).item.url == kept


def test_relative_addresses_stand_on_the_items_own_base() -> None:
    item = refined_item(
        base_url="https://example.net/deep/page", url="x", html='<a href="y">y</a><img src="/z.png">'
    ).item
    assert item.url == "https://example.net/deep/x"
    assert item.html is not None
    assert 'href="https://example.net/deep/y"' in item.html
    assert 'src="https://example.net/z.png"' in item.html


def test_a_broken_base_keeps_the_words_and_drops_what_stood_on_it() -> None:
    clean = sanitise('<a href="y">word</a><a href="https://example.org/">site</a>', "no address")
    assert clean is not None
    assert html_to_text(clean) == "wordsite"
    assert clean.count("href") == 1


# ── identity ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_scope_is_filled_in_unless_the_reader_gave_one() -> None:
    items = refined(Item("1", title="a"), Item("1", scope="thread 9", title="b")).items
    assert [(each.item.scope, each.item.external_id) for each in items] == [("s1", "1"), ("thread 9", "1")]


def test_a_missing_id_is_the_link_or_else_the_content() -> None:
    by_link, by_content = refined(Item("", title="a", url="https://example.org/a"), Item(" \x00", title="b")).items
    assert by_link.item.external_id == "https://example.org/a"
    assert by_content.item.external_id == f"sha256:{by_content.fingerprint.hex()}"


def test_an_overlong_id_becomes_its_hash_and_two_that_differ_stay_two() -> None:
    ids = [each.item.external_id for each in refined(*(Item("x" * MAX_ID + end, title="t") for end in "ab")).items]
    assert len(set(ids)) == 2
    assert all(id.startswith("sha256:") and len(id) == 71 for id in ids)


def test_the_same_entry_twice_in_an_answer_is_one_item() -> None:
    again = Item("1", title="a", url="https://example.org/a", score=1)
    outcome = refined(again, Item("2", title="b"), again.replace(score=2))
    assert [each.item.external_id for each in outcome.items] == ["1", "2"]
    assert outcome.items[0].item.score == 1
    assert outcome.skipped == (Skipped("repeated in the answer", excerpt="1"),)


def test_entries_without_id_and_link_that_say_the_same_are_told_apart_by_their_dates() -> None:
    entries = [Item("", title="Fine", created_at=datetime(2026, 1, day, tzinfo=UTC)) for day in (3, 2, 1, 2)]
    outcome = refined(*entries)
    plain = outcome.items[0].content_id
    assert [each.item.external_id for each in outcome.items] == [
        f"{plain} 2026-01-03T00:00:00+00:00",
        f"{plain} 2026-01-02T00:00:00+00:00",
        plain,
    ]
    assert [each.reason for each in outcome.skipped] == ["repeated in the answer"]


def test_different_entries_under_one_id_get_their_links_appended() -> None:
    first, second = Item("1", title="a", url="https://example.org/a"), Item("1", title="b", url="https://example.org/b")
    ids = {each.item.external_id for each in refined(first, second).items}
    assert ids == {"1 https://example.org/a", "1 https://example.org/b"}
    assert ids == {each.item.external_id for each in refined(second, first).items}


def test_different_entries_under_one_id_and_one_link_get_their_content_appended() -> None:
    entries = [Item("1", title=title, url="https://example.org/same") for title in "ab"] + [Item("1", title="c")]
    for each in refined(*entries).items:
        assert each.item.external_id == f"1 sha256:{each.fingerprint.hex()}"


# ── the fingerprint ───────────────────────────────────────────────────────────────────────────────────────────────

POST = Item(
    "1",
    title="The café",
    html='<p>First <b>words</b>, <a href="https://example.org/a">a link</a>.</p><p>Second.</p>',
    target_url="https://example.com/read?id=7",
    media=(Media("https://cdn.example.org/a.jpg?w=640&sig=1"), Media("https://cdn.example.org/b.jpg")),
    score=1,
)


def fingerprint_of(item: Item) -> bytes:
    return refined(item).items[0].fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"title": "  The\n café "},
        {"title": "The cafe\u0301"},
        {"html": "<div>First words, a link.</div>\n\n\n<div>Second.</div>"},
        {"html": '<p class="x">First <em>words</em>, <a href="https://example.org/z">a link</a>.<br>Second.'},
        {"html": None, "text": "First words, a link.\nSecond."},
        {"media": (Media("http://cdn.example.org/a.jpg?w=1280"), Media("https://cdn.example.org/b.jpg#top"))},
        {"media": (*POST.media, Media("https://cdn.example.org/a.jpg?again"))},
        {"score": 2, "reply_count": 5, "view_count": 9},
        {"author": "renamed", "tags": ("new",), "edited_at": NOON, "url": "https://example.org/moved"},
        {"is_pinned": True, "is_folded": True, "is_deleted": True},
    ],
)
def test_what_is_no_change_of_content_keeps_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint_of(POST.replace(**change)) == fingerprint_of(POST)


@pytest.mark.parametrize(
    "change",
    [
        {"title": "the café"},
        {"title": None},
        {"html": "<p>First words, a link.</p><p>Second!</p>"},
        {"target_url": "https://example.com/read?id=8"},
        {"target_url": None},
        {"media": POST.media[:1]},
        {"media": POST.media[::-1]},
        {"media": (Media("https://cdn.example.org/c.jpg"), POST.media[1])},
    ],
)
def test_a_change_of_content_changes_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint_of(POST.replace(**change)) != fingerprint_of(POST)


def test_content_cannot_move_between_fields_unnoticed() -> None:
    variants = [
        fingerprint("a", "b", None, ()),
        fingerprint("a b", "", None, ()),
        fingerprint("", "a b", None, ()),
        fingerprint("a\x1eb", None, None, ()),
        fingerprint(None, "a", "b", ()),
        fingerprint(None, "a", None, (Media("b"),)),
        fingerprint(None, None, None, (Media("a"), Media("b"))),
    ]
    # "a b" and "a\x1eb" are one title: a separator inside a field is white space.
    assert len(set(variants)) == len(variants) - 1


def test_the_fingerprint_is_that_of_rule_1() -> None:
    digest = fingerprint("Title", "Some text", "https://example.org/t", (Media("https://example.org/a.jpg?x=1"),))
    assert digest.hex() == "9c4f6007d5098ad6851d95e8fe1a10e04d9ee4837985e24499c3d981d2b9918e"


def test_a_new_picture_of_a_wordless_post_is_a_change() -> None:
    comics = [refined_item(html=f'<p><img alt="comic" src="/{n}.png"></p>') for n in (1, 2)]
    assert [each.item.media for each in comics] == [(Media(f"https://example.org/{n}.png"),) for n in (1, 2)]
    assert comics[0].fingerprint != comics[1].fingerprint


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain", "plain"),
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("One<p>Two", "One\n\nTwo"),
        ("<div><p>One</p></div>\n\n<div>\n<p>Two</p></div>", "One\n\nTwo"),
        ("one<br>two<br/><br />three", "one\ntwo\nthree"),
        ("Before<ul>\n<li>a</li>\n <li>b</li>\n</ul>after", "Before\n\na\nb\n\nafter"),
        ("<ul><li><p>a</p></li><li><p>b</p></li></ul>", "a\n\nb"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td></td><td>c</td></tr></table>", "a b\nc"),
        ("<h1>Head</h1>body", "Head\n\nbody"),
        ("w<b>or</b>d and <i> more </i> words", "word and more words"),
        ("a\n  b\t\tc", "a b c"),
        ("a&nbsp;&#160;b &lt;tag&gt; &amp;lt; &copy; &#x4e2d;文", "a b <tag> &lt; © 中文"),
        ("<pre>def f():\n    return 1\n</pre>", "def f():\nreturn 1"),
        ("see<script>alert('x')</script><style>p{}</style><!-- hidden -->n", "seen"),
        ('<a title="a > b" href="https://example.org/?a>b">link</a>', "link"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ('<video src="https://example.org/film.mp4"></video>', "[video]"),
        ("　　中文段落<br>　　第二段", "中文段落\n第二段"),
        ("x&#0;y&#1;z&#xD800;", "x\ufffdyz\ufffd"),
        ("", ""),
    ],
)
def test_html_becomes_text_that_reads_like_the_page(html: str, text: str) -> None:
    assert text_of(html) == text


def test_text_of_the_platform_goes_before_text_of_its_html() -> None:
    assert refined_item(text="*as typed*", html="<p><em>as typed</em></p>").item.text == "*as typed*"


def test_a_cut_is_marked_and_comes_after_the_fingerprint() -> None:
    whole, longer = (
        refined(Item("1", html=f"<p>{'word ' * 10}</p>{end}"), text_limit=20).items[0] for end in ("", "<p>end</p>")
    )
    assert whole.item.text == longer.item.text == "word word word word"
    assert whole.is_text_cut
    assert whole.is_html_dropped
    assert whole.item.html is None
    assert whole.fingerprint != longer.fingerprint


def test_nothing_is_marked_as_cut_at_the_limit_itself() -> None:
    exact = refined(Item("1", text="a" * 20), text_limit=20).items[0]
    assert (exact.item.text, exact.is_text_cut, exact.is_html_dropped) == ("a" * 20, False, False)


# ── HTML ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_html_for_reading_survives() -> None:
    html = (
        '<h2>Head</h2><p>Text <strong>bold</strong> <em>it</em> <a href="https://example.org/a?b=1&amp;c=2"'
        ' rel="noopener noreferrer nofollow">link</a></p><ul><li>a</li></ul><blockquote>q</blockquote>'
        '<pre><code>x &lt; y</code></pre><figure><img src="https://example.org/p.png" alt="pic">'
        "<figcaption>c</figcaption></figure>"
        '<table><tbody><tr><th>h</th><td colspan="2">d</td></tr></tbody></table>'
    )
    assert safe(html) == html


@pytest.mark.parametrize("tag", ["video", "audio", "iframe", "embed", "IFRAME"])
def test_what_would_play_by_itself_becomes_a_link(tag: str) -> None:
    clean = safe(f"<{tag} autoplay src='https://example.org/film.mp4'></{tag}>")
    assert 'href="https://example.org/film.mp4"' in clean
    assert f"<{tag}" not in clean


ACTIVE = [
    # scripts, in every spelling
    "<script>alert(1)</script>",
    "<SCRIPT SRC=https://evil.example/x.js></SCRIPT>",
    "<script\n>alert(1)</script\n>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script/src=data:,alert(1)>",
    "<<script>alert(1);//<</script>",
    "<script>alert(1)",
    "</script><script>alert(1)</script>",
    "<scr\x00ipt>alert(1)</scr\x00ipt>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><script xlink:href=data:,alert(1) /></svg>",
    "<math><script>alert(1)</script></math>",
    "<noscript><script>alert(1)</script></noscript>",
    "<template><script>alert(1)</script></template>",
    "<table><script>alert(1)</script></table>",
    "<select><script>alert(1)</script></select>",
    "<script type=module>import 'https://evil.example/x.js'</script>",
    "<!--><script>alert(1)</script>-->",
    "<!--[if gte IE 4]><script>alert(1)</script><![endif]-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><script>alert(1)</script>",
    # handlers
    "<img src=x onerror=alert(1)>",
    "<img src=x oNeRrOr=alert(1)>",
    "<img src=x onerror\n=\nalert(1)>",
    "<img/src=x/onerror=alert(1)>",
    "<img src='x'onerror='alert(1)'>",
    '<img src="x` `<script>alert(1)</script>"` `>',
    "<img src=x:alert(1) onload=eval(src)>",
    "<body onload=alert(1)>",
    "<p onclick=alert(1)>x</p>",
    "<a onmouseover=alert(1)>x</a>",
    "<div onpointerenter=alert(1)>x</div>",
    "<details open ontoggle=alert(1)>x</details>",
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)//",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s></svg>",
    "<math><mtext onclick=alert(1)>x</mtext></math>",
    "<input autofocus onfocus=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)></audio>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<table onscroll=alert(1)><tr><td onclick=alert(1)>x</table>",
    "<b \x00onclick=alert(1)>x</b>",
    "<p title='a' onclick='alert(1)' title='b'>x</p>",
    # addresses that run
    "<a href=javascript:alert(1)>x</a>",
    "<a href=' javascript:alert(1)'>x</a>",
    "<a href='JaVaScRiPt:alert(1)'>x</a>",
    "<a href='java&#10;script:alert(1)'>x</a>",
    "<a href='java\tscript:alert(1)'>x</a>",
    "<a href='&#106;avascript:alert(1)'>x</a>",
    "<a href='&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74:alert(1)'>x</a>",
    "<a href='javascript&colon;alert(1)'>x</a>",
    "<a href='\x01javascript:alert(1)'>x</a>",
    "<a href='&#1;javascript:alert(1)'>x</a>",
    "<a href='\u00a0javascript:alert(1)'>x</a>",
    "<a href='vbscript:msgbox(1)'>x</a>",
    "<a href='livescript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<a href='data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg=='>x</a>",
    "<a href='blob:https://evil.example/1'>x</a>",
    "<a href='file:///etc/passwd'>x</a>",
    "<a href='view-source:javascript:alert(1)'>x</a>",
    "<a xlink:href='javascript:alert(1)'>x</a>",
    "<svg><a xlink:href='javascript:alert(1)'><text y=20>x</text></a></svg>",
    "<img src=javascript:alert(1)>",
    "<img src='data:image/svg+xml,<svg onload=alert(1)>'>",
    "<img srcset='x 1x, javascript:alert(1) 2x'>",
    "<img lowsrc=javascript:alert(1) dynsrc=javascript:alert(1)>",
    "<blockquote cite='javascript:alert(1)'>x</blockquote>",
    "<table background='javascript:alert(1)'><tr><td>x</table>",
    "<a ping='https://evil.example/' href='https://example.org/'>x</a>",
    # frames, forms, plug-ins, whole pages
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<iframe src='data:text/html,<script>alert(1)</script>'>",
    "<frameset><frame src=javascript:alert(1)></frameset>",
    "<object data=javascript:alert(1)></object>",
    "<object type=text/html data='data:text/html,<script>alert(1)</script>'></object>",
    "<embed src=javascript:alert(1)>",
    "<applet code=x archive=https://evil.example/x.jar></applet>",
    "<form action=javascript:alert(1)><input type=submit></form>",
    "<form id=f></form><button form=f formaction=javascript:alert(1)>x</button>",
    "<isindex action=javascript:alert(1) type=image>",
    "<base href='javascript:alert(1)//'>",
    "<base href='https://evil.example/'><a href='x'>y</a>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<link rel=import href='data:text/html,<script>alert(1)</script>'>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<html manifest=x><body background=javascript:alert(1)>",
    "<video poster=javascript:alert(1) src=javascript:alert(1)></video>",
    "<portal src=javascript:alert(1)></portal>",
    # style
    "<style>@import 'https://evil.example/x.css';</style>",
    "<style>body{background:url(javascript:alert(1))}</style>",
    "<p style='background:url(javascript:alert(1))'>x</p>",
    "<p style='width:expression(alert(1))'>x</p>",
    "<p style='position:fixed;inset:0'>x</p>",
    "<div style='-moz-binding:url(https://evil.example/x.xml)'>x</div>",
    # markup that means something else the second time it is parsed
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'></svg>",
    "<form><math><mtext></form><form><mglyph><style></math><img src=x onerror=alert(1)>",
    "<math><annotation-xml encoding='text/html'><style><img src=x onerror=alert(1)></style></annotation-xml></math>",
    "<svg><desc><p><title><a title='</title><img src=x onerror=alert(1)>'></a></title></p></desc></svg>",
    "<textarea><img title='</textarea><img src=x onerror=alert(1)>'></textarea>",
    "<xmp><p title='</xmp><img src=x onerror=alert(1)>'></xmp>",
    "<listing>&lt;img onerror=alert(1) src=x&gt;</listing>",
    "<noembed><a title='</noembed><img src=x onerror=alert(1)>'></noembed>",
    "<iframe><a title='</iframe><img src=x onerror=alert(1)>'></iframe>",
    "<plaintext><img src=x onerror=alert(1)>",
    "<!--<img title='--><img src=x onerror=alert(1)>'>-->",
    "<!-- --!><img src=x onerror=alert(1)> -->",
    "<p id='x<img src=x onerror=alert(1)>'>x</p>",
    "<a title='\"><img src=x onerror=alert(1)>'>x</a>",
    "<img alt='` onerror=alert(1) `' src=x>",
    "\ufeff<script>alert(1)</script>",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-<script>alert(1)</script>",
    # names that a page's own scripts might trust
    "<img name=cookie src=x><form name=body><input name=firstChild></form>",
    "<a id=location href=https://evil.example/>x</a>",
    "<p class='login-form' data-action='x' is='x-app'>x</p>",
    "<x-app onclick=alert(1)>x</x-app>",
    "<slot name=x onslotchange=alert(1)></slot>",
]

SHOWN_ATTRIBUTES = {"alt", "colspan", "datetime", "height", "href", "rel", "rowspan", "src", "start", "title", "width"}
ACTIVE_TAGS = (
    {"script", "style", "link", "meta", "base", "template", "noscript", "slot", "svg", "math", "marquee", "portal"}
    | {"iframe", "frame", "frameset", "object", "embed", "applet", "audio", "video", "source"}
    | {"form", "input", "button", "select", "textarea", "isindex", "body", "html", "x-app"}
)


def assert_inert(html: str) -> None:
    """Parsed by another parser than the one that cleaned it, it has only what is for reading."""
    for element in lxml_html.fragment_fromstring(html, create_parent="div").iterdescendants():
        assert isinstance(element.tag, str), f"a comment or instruction: {html}"
        assert element.tag not in ACTIVE_TAGS, html
        assert set(element.attrib) <= SHOWN_ATTRIBUTES, html
        for name in ("href", "src"):
            assert element.get(name, "https://").startswith(("https://", "http://", "mailto:")), html


@pytest.mark.parametrize("html", ACTIVE)
def test_nothing_active_is_left_of(html: str) -> None:
    clean = safe(f"before {html} after")
    assert_inert(clean)
    # A page parses it once more: it must mean the same then.
    assert safe(clean) == clean
    assert text_of(f"before {html}").startswith("before")


def test_the_table_of_vectors_is_long_enough() -> None:
    assert len(set(ACTIVE)) >= 80


# ── hostile input ─────────────────────────────────────────────────────────────────────────────────────────────────


def nested_tags(n: int) -> str:
    return "<div>" * n + "words"


def nested_lists(n: int) -> str:
    return "<ul><li>" * n + "words"


def endless_attributes(n: int) -> str:
    return "<p " + " ".join(f"a{i}='>'" for i in range(n)) + ">words"


def one_huge_attribute(n: int) -> str:
    return f"<p title='{'x' * 10 * n}'>words</p>"


def tags_to_be_copied(n: int) -> str:
    """Each paragraph gets a copy of every tag that was left open before."""
    return "<p>" + "".join(f"<b a{i}>" for i in range(n)) + "</p>" + "<p>words" * n


def tags_closed_out_of_reach(n: int) -> str:
    return "".join(f"<b a{i}><table><td></b></table>" for i in range(n)) + "<p>words" * n


def never_closed(n: int) -> str:
    return '<a href="' * n + '">words'


def only_angles(n: int) -> str:
    return "<" * n + " words"


def many_entities(n: int) -> str:
    return "&amp;#60;" * n + "words"


def only_closers(n: int) -> str:
    return "</b></p></x>" * (n // 3) + "words"


def many_newlines(n: int) -> str:
    return "\n \n" * n + "words"


@pytest.mark.parametrize(
    "of",
    [
        nested_tags,
        nested_lists,
        endless_attributes,
        tags_to_be_copied,
        tags_closed_out_of_reach,
        never_closed,
        only_angles,
    ],
)
def test_hostile_html_is_not_parsed_and_keeps_its_text(of: Callable[[int], str]) -> None:
    outcome = refined_item(html=of(100_000))
    assert outcome.is_html_dropped
    assert (outcome.item.text or "").endswith("words")


@pytest.mark.parametrize("of", [one_huge_attribute, many_entities, many_newlines, only_closers])
def test_html_that_is_merely_large_is_kept(of: Callable[[int], str]) -> None:
    outcome = refined_item(html=of(9_000))
    assert not outcome.is_html_dropped
    assert (outcome.item.text or "").endswith("words")


def test_html_too_twisted_to_parse_keeps_its_text_and_says_so() -> None:
    outcome = refined_item(html="<script>x()</script>Tom &amp; <b>Jerry</b>" + tags_to_be_copied(2_500))
    assert outcome.is_html_dropped
    assert not outcome.is_text_cut
    assert outcome.item.html is None
    assert (outcome.item.text or "").startswith("Tom & Jerry words words")


def test_a_long_honest_article_keeps_its_html() -> None:
    paragraph = (
        '<p>Some <b>bold</b> and <i><a href="https://example.org/">linked</a></i> <code>code</code>, <em>so</em>.</p>'
    )
    assert not refined_item(html=paragraph * 700).is_html_dropped


# ── for all input ─────────────────────────────────────────────────────────────────────────────────────────────────

MARKUP = (
    "<p>",
    "</p>",
    "<b x=1>",
    "</b>",
    "<table>",
    "<td>",
    "<svg>",
    "<math>",
    "<pre>",
    "<br>",
    "<title>",
    "<!--",
    "-->",
)
BITS = ("<a href='", "javascript:", "<img src=x onerror=", "alert(1)", "<iframe src=//x>", "<script>", "</script>")
SIGNS = (
    "'",
    '"',
    ">",
    "<",
    "&lt;",
    "&#",
    "1;",
    "&amp;",
    "\x00",
    "\n",
    " ",
    "\u3000",
    "\ud800",
    "中文",
    "words",
    "e\u0301",
)
pieces = st.sampled_from(MARKUP + BITS + SIGNS)
htmls = st.lists(pieces, max_size=30).map("".join) | st.text(max_size=60)
texts = st.text(max_size=40) | st.text(st.characters(codec=None), max_size=20)
urls = st.one_of(
    st.none(), texts, texts.map("https://".__add__), st.sampled_from(["x", "//h/p", "http://[", "javascript:x"])
)
items = st.builds(
    Item,
    external_id=st.sampled_from(["", "1", "2"]) | texts,
    title=st.none() | texts,
    text=st.none() | texts,
    html=st.none() | htmls,
    base_url=urls,
    url=urls,
    target_url=urls,
    author=st.none() | texts,
    created_at=st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC)),
    media=st.lists(st.builds(Media, url=texts, alt=st.none() | texts), max_size=3).map(tuple),
    tags=st.lists(texts, max_size=3).map(tuple),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(items, max_size=6))
def test_whatever_comes_is_written_or_skipped_and_refining_again_changes_no_content(given_items: list[Item]) -> None:
    outcome = refined(*given_items)
    assert len(outcome.items) + len(outcome.skipped) == len(given_items)
    identities = [(each.item.scope, each.item.external_id) for each in outcome.items]
    assert len(set(identities)) == len(identities)
    assert all(id for _, id in identities)
    again = refined(*(each.item for each in outcome.items)).items
    assert [_comparable(each) for each in again] == [_comparable(each) for each in outcome.items]
    for each in outcome.items:
        assert each.fingerprint == fingerprint(each.item.title, each.item.text, each.item.target_url, each.item.media)
        assert_storable(each.item)


def _comparable(each: RefinedItem) -> RefinedItem:
    """HTML is left out: a misnested tree, written down and parsed again, may be nested otherwise (a link in a link).
    So is that an id was derived: the second time it is given."""
    return each.replace(item=each.item.replace(html=None), content_id="")


def assert_storable(item: Item) -> None:
    """No database refuses it: no NUL, no lone surrogate, no control character."""
    words = [item.title, item.text, item.html, item.url, item.target_url, item.author, item.external_id, *item.tags]
    for word in (*words, *(media.url for media in item.media)):
        assert not set(word or "") & {chr(n) for n in (*range(9), 11, 12, *range(14, 32), *range(127, 160))}
        (word or "").encode()


@settings(max_examples=300, deadline=None)
@given(htmls)
@example("<a><table><iframe src=0>")
def test_whatever_comes_is_inert_afterwards_however_often_it_is_parsed(html: str) -> None:
    once = safe(html)
    assert_inert(once)
    assert_inert(safe(once))


@settings(max_examples=200, deadline=None)
@given(htmls)
def test_no_markup_is_left_in_the_text(html: str) -> None:
    clean = safe(html)
    # Only an escaped < may leave one; what an unescaped one leaves would be a tag's remains.
    assert html_to_text(clean).count("<") == clean.count("&lt;") - sum(tag.count("&lt;") for tag in _tags(clean))


def _tags(clean: str) -> list[str]:
    return [piece.partition(">")[0] for piece in clean.split("<")[1:]]


@settings(max_examples=200, deadline=None)
@given(texts)
def test_cleaning_text_twice_is_cleaning_it_once(text: str) -> None:
    clean = clean_text(text)
    assert clean_text(clean) == clean
    assert "\n\n\n" not in clean
    assert "  " not in clean
