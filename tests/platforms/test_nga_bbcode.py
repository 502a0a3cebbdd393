"""NGA's BBCode: clean HTML of whatever people write, in a time that is linear in its length."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from catchment.model import Item, Media, Reading, Reference
from catchment.platforms.nga.bbcode import PostPlace, file_url, render
from catchment.text.clean import refine
from tests.browser.vectors import VECTORS
from tests.conftest import CAPTURES

ATTACHED = "https://img.nga.cn/attachments"
EVENING_IN_UTC = datetime(2025, 5, 26, 17, 0, tzinfo=UTC)
"""The next day has begun on the site."""


def html(source: str) -> str:
    return render(source, PostPlace(EVENING_IN_UTC)).html


def cleaned(source: str, title: str | None = None, author: str | None = None) -> Item:
    """A post as it is stored."""
    found = render(source)
    url = "https://bbs.nga.cn/read.php?pid=1"
    item = Item("p1", url=url, title=title, author=author, html=found.html, media=found.media)
    refined = refine(Reading((item,)), scope="", answer_url="https://bbs.nga.cn/read.php?tid=1")
    return refined.items[0].item


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[b]a[/b] [I]b[/I] [u]c[/u] [del]d[/del]", "<b>a</b> <i>b</i> <u>c</u> <del>d</del>"),
        ("[color=red]a[/color][size=150%]b[/size][font=simhei]c[/font]", "abc"),
        ("one\ntwo", "one<br>two"),
        ("a < b & c", "a &lt; b &amp; c"),
        ("[quote]a[quote]b[/quote][/quote]", "<blockquote>a<blockquote>b</blockquote></blockquote>"),
        ("[collapse=More <b>]x[/collapse]", "<details><summary>More &lt;b&gt;</summary>x</details>"),
        ("[collapse]x[/collapse]", "<details><summary>…</summary>x</details>"),
        ("[align=center]a[/align][l]b[/l][r]c[/r]", "<div>a</div><div>b</div><div>c</div>"),
        ("[h]a[/h]\n===b===", "<h4>a</h4><br><h4>b</h4>"),
        ("[list][*]a[list][*]b[/list][*]c[/list]", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
        ("[*] outside", "•  outside"),
        ("[table]\n[tr]\n[td20]a[/td]\n[td]b[/td][/tr]\n[/table]", "<table><tr><td>a</td><td>b</td></tr></table>"),
        ("[table][tr][td]a[td]b[tr][td]c[/table]", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"),
        ("[table][tr][td colspan=2 rowspan=3]a[/table]", '<table><tr><td colspan="2" rowspan="3">a</td></tr></table>'),
        ("[table][tr][td=2,1,50]a[/table]", '<table><tr><td colspan="2" rowspan="1">a</td></tr></table>'),
        ("[table][td]a[/td][/tr][tr][td]b[/table]", "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>"),
        ("[td]alone[/td]", "[td]alone[/td]"),
        ("[url=/read.php?tid=5&page=2]x[/url]", '<a href="https://bbs.nga.cn/read.php?tid=5&amp;page=2">x</a>'),
        ("[url]http://a.example/?b=1[/url]", '<a href="http://a.example/?b=1">http://a.example/?b=1</a>'),
        ("[uid=58]zeg[/uid]", '<a href="https://bbs.nga.cn/nuke.php?func=ucp&amp;uid=58">zeg</a>'),
        ("[uid]#anony_c26f[/uid]", "#anony_c26f"),
        ("[tid]12[/tid] [pid=3,12,1]Reply[/pid]", '<a href="https://bbs.nga.cn/read.php?tid=12">12</a> '
         '<a href="https://bbs.nga.cn/read.php?pid=3">Reply</a>'),
        ("[pid=0,12,1]Reply[/pid]", '<a href="https://bbs.nga.cn/read.php?tid=12">Reply</a>'),
        ("[url]a.example/b?c=1[/url] [url=read.php?tid=5]x[/url]",
         '<a href="https://a.example/b?c=1">a.example/b?c=1</a> <a href="https://bbs.nga.cn/read.php?tid=5">x</a>'),
        ("[@somebody] [s:ac:上] [s:1]", "@somebody :ac:上 :1"),
        ("[code][b]x[/b] <i>[/code]", "<pre><code>[b]x[/b] &lt;i&gt;</code></pre>"),
        ("[dice]2d6+3[/dice]", "<code>2d6+3</code>"),
        ("[stripbr]a\nb[/stripbr]", "ab"),
        ("[unknown]x[/unknown] [方括号] [b", "[unknown]x[/unknown] [方括号] [b"),
        ("[b][i]a[/b]b[/i]c", "<b><i>a</i></b>bc"),
        ("[b]never closed", "<b>never closed</b>"),
        ("a[/b]", "a[/b]"),
        ("[img]./mon_202608/07/x.jpg[/img]", f'<img src="{ATTACHED}/mon_202608/07/x.jpg">'),
        ("[noimg]./x.jpg[/noimg]", f'<img src="{ATTACHED}/mon_202505/27/x.jpg">'),
        ("[img]javascript:alert(1)[/img]", "javascript:alert(1)"),
        ("[img]never closed", "[img]never closed"),
        ("[flash=video]https://v.example/a.mp4[/flash]",
         '<a href="https://v.example/a.mp4">https://v.example/a.mp4</a>'),
        ("[url=https://a.example][url=https://b.example]x[/url][/url]", '<a href="https://a.example">x</a>'),
    ],
)  # fmt: skip
def test_a_tag_becomes_html(source: str, expected: str) -> None:
    assert html(source) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("./mon_202608/07/x.jpg.medium.jpg", f"{ATTACHED}/mon_202608/07/x.jpg"),
        ("mon_202608/07/x.jpg.thumb_s.jpg", f"{ATTACHED}/mon_202608/07/x.jpg"),
        ("https://img.nga.178.com/attachments/mon_202006/03/x.png", f"{ATTACHED}/mon_202006/03/x.png"),
        ("http://img.ngacn.cc/attachments/mon_201207/13/x.jpg", f"{ATTACHED}/mon_201207/13/x.jpg"),
        ("http://img6.nga.178.com/attachments/mon_201207/13/x.jpg", f"{ATTACHED}/mon_201207/13/x.jpg"),
        ("//a.example/x.png", "https://a.example/x.png"),
        ("https://a.example/x.thumb.jpg", "https://a.example/x.thumb.jpg"),
        ("", None),
        ("data:image/png;base64,AA", None),
    ],
)
def test_a_files_address_is_absolute_and_on_a_host_that_still_serves_it(address: str, expected: str | None) -> None:
    assert file_url(address) == expected


def test_images_and_files_are_media_and_each_is_there_once() -> None:
    source = "[img]./mon_1/2/a.jpg[/img][img]./mon_1/2/a.jpg[/img][attach]./mon_1/2/b.zip[/attach]"
    found = render(f"{source}[album=x][url]http://a.example/c.jpg[/url][/album][flash]http://a.example/d.swf[/flash]")
    assert found.media == (
        Media(f"{ATTACHED}/mon_1/2/a.jpg"),
        Media(f"{ATTACHED}/mon_1/2/b.zip", "file"),
        Media("http://a.example/c.jpg"),
        Media("http://a.example/d.swf", "video"),
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[quote][pid=7,1,1]Reply[/pid] [b]Post by [uid=9]ada[/uid] (2026-08-10 13:40):[/b]\n\nx[/quote]y",
         Reference("quoted", "p7", url="https://bbs.nga.cn/read.php?pid=7", author="ada")),
        ("[quote][tid=1]Topic[/tid] [b]Post by [uid=9]ada[/uid] (2026-08-10 13:40):[/b]\n\nx[/quote]y",
         Reference("quoted", "t1", url="https://bbs.nga.cn/read.php?tid=1", author="ada")),
        ("[b]Reply to [pid=7,1,1]Reply[/pid] Post by [uid]#anony_0f[/uid][color=gray](9楼)[/color] (x)[/b]\ny",
         Reference("replied_to", "p7", url="https://bbs.nga.cn/read.php?pid=7", author="#anony_0f")),
        ("[b]Reply to [pid=0,1,1]Reply[/pid] Post by [uid=9]ada[/uid] (x)[/b]\ny",
         Reference("replied_to", "t1", url="https://bbs.nga.cn/read.php?tid=1", author="ada")),
    ],
)  # fmt: skip
def test_what_a_post_answers_is_a_reference(source: str, expected: Reference) -> None:
    assert render(source).references == (expected,)


def test_a_moderators_box_is_a_penalty_and_an_authors_fold_is_none() -> None:
    assert render("x [lessernuke2]off topic[/lessernuke2]").is_penalised
    assert not render("[collapse=long]x[/collapse]").is_penalised


# ── whatever comes ────────────────────────────────────────────────────────────────────────────────────────────────

SHOWN = {
    "b", "i", "u", "del", "br", "blockquote", "details", "summary", "div", "h4", "ul", "li", "table", "tbody", "tr",
    "td", "a", "img", "pre", "code",
}  # fmt: skip
TAGS = (
    "b", "i", "quote", "collapse=x", "list", "*", "table", "tr", "td", "td20", "url=https://a.example", "url", "uid=1",
    "tid", "pid=1,2,3", "img", "noimg", "code", "dice", "album=x", "flash=video", "color=red", "align=center", "h",
    "@x", "s:ac:上", "lessernuke", "stripbr", "unknown", "td colspan=2", "", "=",
)  # fmt: skip
pieces = st.one_of(
    st.sampled_from([f"[{tag}]" for tag in TAGS]),
    st.sampled_from([f"[/{re.split('[= ]', tag)[0]}]" for tag in TAGS]),
    st.sampled_from(["\n", "===", "./mon_202001/02/x.jpg", "https://a.example/", "<script>", '"', "&#106;"]),
    st.text(max_size=20),
)


@given(st.lists(pieces, max_size=60))
def test_any_source_gives_balanced_html_with_all_of_its_words(parts: list[str]) -> None:
    found = render("".join(parts))
    opened = re.findall(r"<(/?)([a-z0-9]+)(?: [^<>]*)?>", found.html)
    depth: list[str] = []
    for is_end, name in opened:
        if is_end:
            assert depth.pop() == name
        elif name not in ("br", "img"):
            depth.append(name)
    assert depth == []
    assert "<script" not in found.html
    cleaned("".join(parts))


@pytest.mark.parametrize("tag", [*(f"[{tag}]" for tag in TAGS), "[", "[[", "[a", "[/b]", "[b=", "[td][tr]", "\n", "="])
def test_a_million_tags_take_seconds_and_no_more(tag: str) -> None:
    source = tag * 1_000_000
    begun = time.process_time()
    found = render(source)
    # Half a second of CPU time on a fast machine; hours if each tag looked at all others.
    assert time.process_time() - begun < 30
    assert len(found.html) < 12 * len(source)


FRAMES = (
    "{}", "[url={}]x[/url]", "[url]{}[/url]", "[img]{}[/img]", "[collapse={}]x[/collapse]", "[code]{}[/code]",
    "[flash=video]{}[/flash]", "[table][tr][td colspan={}]x[/table]", "[uid={}]x[/uid]", "[attach]{}[/attach]",
    "[quote]{}[/quote]", "[album={}]{}[/album]", "[@{}]", "[s:{}]", "[dice]{}[/dice]",
)  # fmt: skip
HARMLESS = {"href", "rel", "src", "colspan", "rowspan"}


@pytest.mark.parametrize("frame", FRAMES)
def test_nothing_that_acts_comes_out_of_it(frame: str) -> None:
    for _, vector in VECTORS:
        item = cleaned(frame.replace("{}", vector), title=vector, author=vector)
        elements = LexborHTMLParser(item.html or "").css("body *")
        assert {element.tag for element in elements} <= SHOWN
        assert {name for element in elements for name in element.attributes} <= HARMLESS
        addresses = [element.attributes.get(name) for element in elements for name in ("href", "src")]
        for address in [*filter(None, addresses), *(medium.url for medium in item.media)]:
            assert re.match(r"https?://", address), (vector, address)


def test_recorded_posts_are_converted_whole() -> None:
    for name in ("bbcode-guide.txt", "bbcode-tid47228037-lou0.txt"):
        path = CAPTURES / "nga" / name
        if not path.is_file():
            pytest.skip("no recorded answers beside the repository")
        source = path.read_text(encoding="utf-8").replace("<br/>", "\n")
        found = render(source)
        shown = re.sub(r"<pre>.*?</pre>", "", found.html)
        assert re.findall(r"\[/?(?:b|size|color|table|tr|td|list|align|quote|img|del|font|u|i|h)\b", shown) == []
        assert found.media
