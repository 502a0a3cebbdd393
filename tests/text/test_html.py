"""The short cut past the sanitiser is only a short cut: for whatever it accepts, both give the same. Compiled or not,
it accepts the same and gives the same."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import nh3
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.text import html as html_module
from catchment.text.html import html_and_text, html_and_text_if_plain, html_to_text, sanitised_if_plain
from catchment.text.printable import unescape

BASE = "https://site.example/post"


def sanitised(html: str) -> str:
    """What the sanitiser itself says."""
    cleaner: nh3.Cleaner = html_module._cleaner(BASE)
    return cleaner.clean(html)


def plain(html: str) -> tuple[str, str] | None:
    """What the short cut makes of it without compiled code."""
    clean = sanitised_if_plain(html)
    return None if clean is None else (clean, html_to_text(clean))


def compiled(html: str) -> tuple[str, str] | None:
    """What compiled code makes of it; the same as above where there is none."""
    return plain(html) if html_module._compiled is None else html_module._compiled(html)


words = st.text(st.sampled_from("ab 好。é😀\u3000\n\t'\"-=/;#x"), max_size=8) | st.sampled_from(
    ["&amp;", "&lt;", "&gt;", "a &amp; b"]
)
addresses = st.sampled_from(
    [
        "https://example.org/a?b=1&amp;c=2#d", "http://127.0.0.1:8900/x", "https://a-b.example", "http://1.2.3.4/",
        "https://example.org:8080/%E4%BD%A0", "https://e.example/(a)'b;c,d", "http://x.y.z/~u/*+@!$:=",
        "https://example.org/..//./a", "http://localhost/", "https://e.example/a%zz", "https://e.example//",
    ]
)  # fmt: skip
inline = st.one_of(
    words,
    st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["strong", "em", "b", "i", "code"]), words),
    st.builds('<a href="{}">{}</a>'.format, addresses, words),
    st.builds('<img src="{}" alt="{}"/>'.format, addresses, st.text("ab '好", max_size=4)),
    st.builds('<img src="{}">'.format, addresses),
    st.sampled_from(["<br>", "<br/>", "<br />"]),
)
line = st.lists(inline, max_size=5).map("".join)
block = st.one_of(
    st.builds("<p>{}</p>".format, line),
    st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["h1", "h4"]), line),
    st.lists(line.map("<li>{}</li>".format), max_size=3).map(lambda rows: f"<ul>\n{''.join(rows)}</ul>"),
    st.lists(line.map("<li>{}</li>".format), max_size=3).map(lambda rows: f"<ol>{''.join(rows)}\n</ol>"),
    st.lists(line.map("<p>{}</p>".format), max_size=3).map(lambda rows: f"<blockquote>{''.join(rows)}</blockquote>"),
    st.sampled_from(["<hr>", "<hr/>"]),
)
documents = st.lists(block | st.sampled_from(["\n", " "]), max_size=6).map("".join)
scraps = st.sampled_from(
    [
        "<br >", "<hr >",
        "<script>alert(1)</script>", "<p>", "</p>", "<b>", "</a>", "<", ">", "&", "&#60;", "&nbsp;", "\xa0", "\r", "\0",
        ' onclick="x"', "<svg/onload=1>", 'href="javascript:1"', "<a href='https://e.example'>", "<li>", "<!--", "-->",
        "<P>", "<img src=x onerror=1>", "<a href=\"https://e.example\" rel=\"me\">", "<table>", "</ul>",
        "http://e.example:99999/", "http://1.2.3.999/", "http://xn--a/", "http://[::1]/", "http://user@e.example/",
        "\u2028", "\ufeff",
    ]
)  # fmt: skip


@st.composite
def torn_documents(draw: st.DrawFn) -> str:
    """A plain document with something foreign put in, or something taken out, anywhere."""
    html = draw(documents)
    at, until = sorted((draw(st.integers(0, len(html))), draw(st.integers(0, len(html)))))
    return html[:at] + draw(scraps | st.just("")) + html[until if draw(st.booleans()) else at :]


@given(documents)
@settings(max_examples=100)
def test_plain_documents_take_the_short_cut_and_come_out_as_the_sanitiser_has_them(html: str) -> None:
    short = sanitised_if_plain(html)
    assert short is not None
    assert short == sanitised(html)
    assert compiled(html) == plain(html)


@given(torn_documents())
@settings(max_examples=250)
@example("<p>a<ul><li>b</li></ul></p>")
@example("<p><b>a<i>b</b>c</i></p>")
@example("<blockquote>a</blockquote>")
@example('<p><a href="https://e.example"><a href="https://e.example">a</a></a></p>')
@example("<p>a</p>b")
@example('<p><img src="https://e.example/" alt="a"b"></p>')
@example("<h1>a</h2>")
def test_whatever_the_short_cut_accepts_the_sanitiser_says_too(html: str) -> None:
    short = sanitised_if_plain(html)
    assert short is None or short == sanitised(html)
    assert compiled(html) == plain(html)


# Pieces of the grammar, and what is nearly one of them, in any order.
pieces = st.sampled_from(
    [
        "<p>", "</p>", "<ul>", "</ul>", "<li>", "</li>", "<b>", "</b>", "<i>", "</i>", "<em>", "</em>", "<code>",
        "</code>", "<strong>", "</strong>", "<br>", "<br />", "<br >", "<hr/>", "<h1>", "</h1>", "<h6>", "</h6>",
        "<h7>", "</h7>", "<blockquote>", "</blockquote>", '<a href="', '">', "</a>", '<img src="', '" alt="', '" />',
        "https://", "http://", "e.example", "1.2.3.4", "1.2.3.256", "01.2.3.4", "1.2.3.4.5", "a.1", "1.a", "-a", "a-",
        "a..b", "xn--a", ":80", ":65000", ":64999", ":00080", ":0080", ":", "/", "/a?b=1", "&amp;", "&lt;", "&gt;", "&",
        "lt;", " ", "\n", "\t", "\r", "\x00", "\x1f", "\x7f", "\x85", "\xa0", "\u2028", "\u200b", "\u3000", "\ud800",
        "é", "好", "😀", "a", "B", '"', "'", ">", "<", "#", "%zz", ";",
    ]
)  # fmt: skip


@given(st.lists(pieces, max_size=12).map("".join), documents, st.integers(0, 99))
@settings(max_examples=500)
def test_compiled_or_not_the_short_cut_accepts_the_same_and_gives_the_same(scrap: str, html: str, share: int) -> None:
    at = len(html) * share // 99
    for mixed in (scrap, f"<p>{scrap}</p>", f'<p><a href="https://{scrap}">a</a></p>', html[:at] + scrap + html[at:]):
        assert compiled(mixed) == plain(mixed)


ACCEPTED = (
    *("e.example", "a-b.c1", "1.a", "localhost", "1.2.3.4", "0.10.199.255", "e.example:0", "e.example:0080"),
    *("e.example:59999", "e.example:64999", "e.example/a?b=1&amp;&amp;c#d", "e.example:80/"),
)
REFUSED = (
    *("", "E.example", "e..example", ".e", "e.", "-e", "e-", "e.-a", "a.1", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256"),
    *("01.2.3.4", "1.2.3.00", "xn--a", "a.xn--b", "e_e", "u@e.example", "[::1]", "e.example:", "e.example:65000"),
    *("e.example:00080", "e.example:99999", "e.example:100000", "e.example?a", "e.example#a", "e.example/a b"),
    *("e.example/&lt;", "e.example/&", "e.example/\u00e9", "e.example/a\\b"),
)


@pytest.mark.parametrize(
    ("address", "is_plain"), [*((address, True) for address in ACCEPTED), *((address, False) for address in REFUSED)]
)
def test_only_addresses_that_all_programs_read_the_same_are_plain(address: str, is_plain: bool) -> None:
    html = f'<p><a href="http://{address}">a</a></p>'
    assert (plain(html) is not None, compiled(html) is not None) == (is_plain, is_plain)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("<p></p><hr>", ""),
        ("<p>a\u3000 b</p>\n<p> \u2028</p><p>c</p>", "a b\n\nc"),
        ("<p>a<br> <br/>b <b>c</b>d</p>", "a\nb cd"),
        ("<h1>A</h1><ul> <li>b</li>\n<li><em>c</em></li></ul>", "A\n\nb\nc"),
        ("<blockquote><p>&amp;lt; &lt;</p></blockquote>", "&lt; <"),
        ('<p>a <a href="http://e.example/x">b</a> <img src="http://e.example/" alt="c"/></p>', "a b"),
    ],
)
def test_the_text_of_plain_html_has_its_paragraphs_and_lines(html: str, text: str) -> None:
    assert [form and form[1] for form in (plain(html), compiled(html), html_and_text(html, BASE))] == [text] * 3


HAS_COMPILER = (
    shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) is not None
    and Path(sysconfig.get_path("include"), "Python.h").exists()
)


@pytest.mark.skipif(not HAS_COMPILER, reason="needs a C compiler and the headers of Python")
def test_where_there_is_a_compiler_the_short_cut_is_compiled() -> None:
    assert html_and_text_if_plain is html_module._compiled


@pytest.mark.parametrize(
    "html",
    [
        "<p onclick='x'>a</p>", "<p><script>1</script></p>", '<p><a href="javascript:1">a</a></p>', "<p>a", "a < b",
        '<p><img src="https://e.example/a" onerror="1"></p>', "<p>&#60;script></p>", "<div>a</div>", "<p>a&nbsp;b</p>",
        '<p><a href="//e.example/">a</a></p>', '<p><a href="http://1.2.3.999/">a</a></p>', "<p><p>a</p></p>",
    ],
)  # fmt: skip
def test_what_is_not_plain_goes_to_the_sanitiser(html: str) -> None:
    assert sanitised_if_plain(html) is None
    assert compiled(html) is None


def test_a_character_reference_of_any_length_is_decoded() -> None:
    assert unescape(f"a &#{'9' * 5_000}; b &#{'0' * 5_000}65; &#{'0' * 5_000}; &amp;#x41; &eacute;") == (
        "a \ufffd b A \ufffd &#x41; é"
    )
