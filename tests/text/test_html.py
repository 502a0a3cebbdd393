"""The short cut past the sanitiser is only a short cut: for whatever it accepts, both give the same."""

from __future__ import annotations

import nh3
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.text import html as html_module
from catchment.text.html import sanitised_if_plain
from catchment.text.printable import unescape

BASE = "https://site.example/post"


def sanitised(html: str) -> str:
    """What the sanitiser itself says."""
    cleaner: nh3.Cleaner = html_module._cleaner(BASE)
    return cleaner.clean(html)


words = st.text(st.sampled_from("ab 好。\n\t'\"-=/;#x"), max_size=8) | st.sampled_from(
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


def test_a_character_reference_of_any_length_is_decoded() -> None:
    assert unescape(f"a &#{'9' * 5_000}; b &#{'0' * 5_000}65; &#{'0' * 5_000}; &amp;#x41; &eacute;") == (
        "a \ufffd b A \ufffd &#x41; é"
    )
