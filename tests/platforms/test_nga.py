"""NGA: what can be added, what is requested, and what may not differ between the forms of a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.collect.source_settings import checked_settings
from catchment.errors import InvalidInput, Unreadable
from catchment.model import Answer, Identity, Reading, Recheck, Request, Source
from catchment.platforms import nga
from catchment.platforms.nga import requests
from catchment.platforms.nga.encoding import decoded, json_data, plain, source_text
from catchment.platforms.nga.items import title_prefixes
from tests.platforms import cases

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def source(target: str = "-7", **settings: object) -> Source:
    return Source(1, "key", "nga", "nga_forum", target, "Chat", NOW, settings=settings)


@pytest.mark.parametrize(
    ("typed", "address", "settings"),
    [
        ("7", "7", {}),
        ("-7", "-7", {}),
        (" +7 ", "7", {}),
        ("fid=-447601", "-447601", {}),
        ("stid=26926296", "stid=26926296", {}),
        ("tid=44191387", "tid=44191387", {}),
        ("https://bbs.nga.cn/thread.php?fid=-7", "-7", {}),
        ("bbs.nga.cn/thread.php?fid=7&page=3&order_by=postdatedesc", "7", {}),
        ("http://nga.178.com/thread.php?fid=-7", "-7", {"host": "nga.178.com"}),
        ("https://ngabbs.com/thread.php?stid=26926296&fid=7", "stid=26926296", {"host": "ngabbs.com"}),
        ("https://bbs.ngacn.cc/read.php?tid=44191387&page=2#l25", "tid=44191387", {"host": "bbs.ngacn.cc"}),
        ("https://nga.donews.com/thread.php?fid=7", "7", {"host": "nga.donews.com"}),
    ],
)
def test_a_board_a_collection_or_a_thread_is_understood(typed: str, address: str, settings: dict[str, str]) -> None:
    target = nga.understand(typed, "nga_forum")
    assert (target.kind, target.address, target.settings) == ("nga_forum", address, settings)


@pytest.mark.parametrize(
    "typed",
    ["0", "-0", "7a", "--7", "tid=-3", "r/webdev", "https://bbs.nga.cn/", "https://bbs.nga.cn/thread.php?fid=x",
     "https://bbs.nga.cn/read.php?pid=3", "https://nga.cn.example/thread.php?fid=7", "12345678901"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_would_be_right(typed: str) -> None:
    with pytest.raises(InvalidInput, match="-7"):
        nga.understand(typed, "nga_forum")


def test_a_bare_number_is_a_board_only_if_the_kind_says_so() -> None:
    with pytest.raises(InvalidInput):
        nga.understand("7", None)
    assert nga.understand("https://bbs.nga.cn/thread.php?fid=7", None).address == "7"


@pytest.mark.parametrize(("given_rate", "rate"), [("0.5", 0.5), (1, 1.0), ("1.00", 1.0), (0.01, 0.01)])
def test_a_rate_of_at_most_one_request_per_second_can_be_set(given_rate: object, rate: float) -> None:
    assert checked_settings(nga.KINDS[0], {"requests_per_second": given_rate}) == {"requests_per_second": rate}


@pytest.mark.parametrize("name", ["requests_per_second", "window_days", "pages_per_run", "host"])
@pytest.mark.parametrize("value", ["0", "-1", "100001", "x", "nan", "inf"])
def test_settings_out_of_bounds_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        checked_settings(nga.KINDS[0], {name: value})


def forms(request: Request | None) -> list[tuple[str, dict[str, str]]]:
    found = []
    while request is not None:
        found.append((request.url, request.params))
        request = request.fallback
    return found


def test_each_form_of_a_page_is_the_others_fallback() -> None:
    params = {"fid": "-7", "order_by": "postdatedesc", "page": "1"}
    url = "https://bbs.nga.cn/thread.php"
    board = requests.board(source())
    assert forms(board) == [(url, params), (url, {**params, "__output": "8"}), (url, {**params, "__output": "11"})]
    compact = board.fallback
    assert compact is not None
    later = requests.next_page(compact, 2, 0)
    assert [sent.get("__output") for _, sent in forms(later)] == ["8", "11", None]
    assert {sent["page"] for _, sent in forms(later)} == {"2"}


def test_sources_are_read_from_their_host_with_their_credential() -> None:
    board = source("stid=26926296", host="ngabbs.com").replace(credential="mine")
    for request in (requests.board(board), nga.floors(board, "t5", 3)):
        assert request.url.startswith("https://ngabbs.com/")
        assert (request.credential, request.identity) == ("mine", Identity.OPTIONAL)
    assert requests.board(board).params["stid"] == "26926296"
    assert nga.floors(board, "t5", 3).params == {"tid": "5", "page": "3"}


PAGE_2 = "https://bbs.nga.cn/read.php?tid=41000010&page=2#pid{}Anchor"


def test_floors_of_one_page_are_rechecked_together_and_one_that_was_not_there_by_its_id() -> None:
    ids = ("p824000020", "p824000021", "p824000099")
    together = [Recheck(id_, "", PAGE_2.format(id_[1:]), source()) for id_ in ids]
    alone = Recheck("p824000022", "", PAGE_2.format(824000022), source(), is_unconfirmed=True)
    page, single = nga.recheck([*together, alone])
    assert (page.params, page.item_id) == ({"tid": "41000010", "page": "2"}, None)
    assert (single.params, single.item_id) == ({"pid": "824000022"}, "p824000022")
    (case,) = (case for case in cases.cases() if str(case) == "nga/thread.html")
    reading = nga.read(Answer(200, {}, case.body, page.url, NOW), page)
    assert {"p824000020", "p824000021"} <= {item.external_id for item in reading.items}
    assert reading.gone == ("p824000099",)


def test_a_floor_is_rechecked_by_its_id_and_an_opening_post_by_its_thread() -> None:
    asked = nga.recheck([Recheck(id_, "", None, source()) for id_ in ("p824000020", "t41000010", "nonsense")])
    assert [(request.params, request.item_id) for request in asked] == [
        ({"pid": "824000020"}, "p824000020"),
        ({"tid": "41000010", "page": "1"}, "t41000010"),
    ]


@pytest.mark.parametrize(
    ("name", "is_final", "is_passing"),
    [("hidden", True, False), ("pending", True, True), ("unknown_error", False, False)],
)
def test_what_every_form_of_a_page_would_refuse_is_requested_in_one_and_what_passes_again(
    name: str, is_final: bool, is_passing: bool
) -> None:
    (case,) = (case for case in cases.cases() if str(case) == f"nga/{name}.html")
    request = case.request(case.expectation())
    refusal = nga.refusal(Answer(200, {}, case.body, request.url, NOW), request)
    assert refusal is not None
    assert (refusal.error.is_final, refusal.error.is_passing) == (is_final, is_passing)


def test_html_and_json_of_one_page_agree() -> None:
    html, compact_page = cases.read("nga", "thread.html"), cases.read("nga", "thread_compact.json")
    assert compact_page == html
    board, compact = cases.read("nga", "board.html"), cases.read("nga", "board_compact.json")
    known = {item.external_id: item.replace(is_pinned=None) for item in compact.items}
    assert [item for item in board.items if item.external_id in known] == [
        known[item.external_id] for item in board.items if item.external_id in known
    ]


@pytest.mark.parametrize(
    ("parent", "tags"),
    [
        ({"0": 843, "2": "国际新闻"}, ("国际新闻",)),
        ([843, 0, "国际新闻"], ("国际新闻",)),
        ('{"0":843,"2":"国际新闻"}', ("国际新闻",)),
        ('[843,44618580,"国际新闻"]', ("国际新闻",)),
        ('{"0":843', ()),
        ("国际新闻", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_a_rows_sub_board_is_named_by_an_object_a_list_or_a_text_of_either(parent: object, tags: tuple[str]) -> None:
    row = {"tid": 41000010, "subject": "x", "author": "ada", "postdate": 1_700_000_000, "parent": parent}
    body = json.dumps({"data": {"__T": {"0": row}}}, ensure_ascii=False).encode("gb18030")
    request = requests.board(source())
    assert [item.tags for item in nga.read(Answer(200, {}, body, request.url, NOW), request).items] == [tags]


@pytest.mark.parametrize(
    ("title", "prefixes"),
    [
        ("plain", ()),
        ("[水] 今天", ("水",)),
        ("[a][b] [c]x [d]", ("a", "b", "c")),
        ("[a][a]x", ("a",)),
        ("x [a]", ()),
        ("[]x", ()),
        ("[a", ()),
        ("[only]", ("only",)),
    ],
)
def test_brackets_at_the_beginning_of_a_title_are_its_prefixes(title: str, prefixes: tuple[str, ...]) -> None:
    assert title_prefixes(title) == prefixes


# ── texts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5) | st.characters(max_codepoint=0x7E)))
def test_chinese_is_decoded_whatever_it_was_encoded_in(text: str) -> None:
    page = f"<title>欢迎访问，玩家社区</title>{text}"
    assert decoded(page.encode("gb18030")) == page
    assert decoded(page.encode()) == page


def test_wrong_bytes_are_an_error_or_left_out() -> None:
    body = "<p>渡船".encode("gb18030") + b"\xff\x80" + "码头</p>".encode("gb18030")
    assert "�" not in decoded(body, is_strict=False)
    with pytest.raises(Exception, match="bytes that are not text"):
        decoded(body)


def test_damaged_utf8_is_not_taken_for_gb18030() -> None:
    body = ("渡船改在东码头上客，" * 5).encode()
    damaged = body[:30] + b"\xff" + body[30:]
    assert decoded(damaged, is_strict=False) == "渡船改在东码头上客，" * 5
    with pytest.raises(Unreadable):
        decoded(damaged)


def test_a_row_or_floor_that_cannot_be_read_is_counted_and_is_no_hole() -> None:
    for name, mark in (("thread.html", b"null,null,824000023,0,"), ("board.html", b"'512',41000020,")):
        (case,) = (case for case in cases.cases() if str(case) == f"nga/{name}")
        request = case.request(case.expectation())
        assert mark in case.body
        answer = Answer(200, {}, case.body.replace(mark, b"null,null,null,"), request.url, NOW)
        whole, reading = cases.read("nga", name), nga.read(answer, request)
        assert (len(reading.items), len(reading.skipped)) == (len(whole.items) - 1, 1)
        assert reading.thread_page is None or reading.thread_page.holes == ()


def test_a_comment_below_a_post_of_another_page_has_the_time_of_its_own_row() -> None:
    (case,) = (case for case in cases.cases() if str(case) == "nga/thread_compact.json")
    body = json.loads(case.body.decode("gb18030"), strict=False)
    (own,) = (row for row in body["data"]["__R"].values() if "comment_to_id" in row)
    for row in body["data"]["__R"].values():
        row.pop("comment", None)
    own["postdate"] = "2026-02-11 17:44"
    request = case.request(case.expectation())
    answer = Answer(200, {}, json.dumps(body).encode("gb18030"), request.url, NOW)
    (comment,) = (item for item in nga.read(answer, request).items if item.external_id == f"p{own['pid']}")
    assert (comment.created_at, comment.floor_number) == (datetime(2026, 2, 11, 9, 44, tzinfo=UTC), own["lou"])
    assert (comment.lacks_text, comment.html, comment.parent_id) == (True, None, f"p{own['comment_to_id']}")


def test_a_comment_without_text_is_requested_with_the_post_that_it_comments_on() -> None:
    comment = Recheck("p824000021", "", PAGE_2.format(824000021), source(), text_at="p824000020")
    (request,) = nga.recheck([comment])
    assert (request.params, request.item_id) == ({"pid": "824000020", "__output": "8"}, None)
    (case,) = (case for case in cases.cases() if str(case) == "nga/thread_compact.json")
    body = json.loads(case.body.decode("gb18030"), strict=False)
    rows = body["data"]["__R"]
    (parent,) = (row for row in rows.values() if row["pid"] == 824000020)
    body["data"]["__R"] = {"0": parent}
    answer = Answer(200, {}, json.dumps(body).encode("gb18030"), request.url, NOW)
    (item,) = nga.read(answer, request).items
    assert (item.external_id, item.lacks_text) == ("p824000021", False)
    # Below the post it is not: that says nothing about the comment, which is requested by its own id then.
    del parent["comment"]
    answer = answer.replace(body=json.dumps(body).encode("gb18030"))
    assert nga.read(answer, request) == Reading()
    (by_id,) = nga.recheck([comment.replace(is_unconfirmed=True)])
    assert by_id.params == {"pid": "824000021"}
    another = comment.replace(external_id="p824000022")
    (both,) = nga.recheck([comment, another])
    assert (both.params, both.state["comments"]) == (request.params, ["p824000021", "p824000022"])
    (opening,) = nga.recheck([comment.replace(text_at="t41000010")])
    assert opening.params == {"tid": "41000010", "page": "1", "__output": "8"}


@pytest.mark.parametrize(("commented", "parent"), [(-1, "t41000010"), (0, "t41000010"), (824000020, "p824000020")])
def test_a_comment_on_the_post_that_opens_the_thread_is_one_on_minus_one(commented: int, parent: str) -> None:
    (case,) = (case for case in cases.cases() if str(case) == "nga/thread_compact.json")
    body = json.loads(case.body.decode("gb18030"), strict=False)
    (own,) = (row for row in body["data"]["__R"].values() if "comment_to_id" in row)
    for row in body["data"]["__R"].values():
        row.pop("comment", None)
    own["comment_to_id"] = commented
    request = case.request(case.expectation())
    reading = nga.read(Answer(200, {}, json.dumps(body).encode("gb18030"), request.url, NOW), request)
    (comment,) = (item for item in reading.items if item.external_id == f"p{own['pid']}")
    assert (comment.lacks_text, comment.parent_id) == (True, parent)


def test_in_json_a_comment_on_a_post_of_this_page_has_its_text_here_and_its_number_on_its_own_page() -> None:
    (case,) = (case for case in cases.cases() if str(case) == "nga/thread_compact.json")
    request = case.request(case.expectation())
    whole = {item.external_id: item for item in cases.read("nga", "thread_compact.json").items}
    body = json.loads(case.body.decode("gb18030"), strict=False)
    rows = body["data"]["__R"]
    body["data"]["__R"] = {key: row for key, row in rows.items() if "comment_to_id" not in row}
    reading = nga.read(Answer(200, {}, json.dumps(body).encode("gb18030"), request.url, NOW), request)
    assert {item.external_id for item in reading.items} == whole.keys()
    (comment,) = (item for item in reading.items if item.floor_number is None)
    known = whole[comment.external_id]
    assert comment == known.replace(floor_number=None, url=None)
    assert comment.html
    assert reading.thread_page is not None
    assert known.floor_number in reading.thread_page.holes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a &lt;b&gt; &amp; &#39;c&#39;", "a <b> & 'c'"),
        ("&amp;#55357;&amp;#56837;", "😅"),
        ("&amp;#128079;", "👏"),
        ("&amp;#55357; alone", " alone"),
        ("&amp;lt;script&amp;gt;", "&lt;script&gt;"),
        (None, ""),
        (12, "12"),
    ],
)
def test_entities_are_decoded_once_and_characters_beyond_gbk_twice(text: object, expected: str) -> None:
    assert plain(text) == expected


def test_line_breaks_of_a_post_become_newlines_and_other_markup_is_left_out() -> None:
    assert source_text("a<br/>b<br>c <span class='x'>d</span> &lt;br/&gt;") == "a\nb\nc d <br/>"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        'window.script_muti_get_var_store={"a": 1}',
        ' window.script_muti_get_var_store=({"a": 1});',
        '/*$js$*/ window.script_muti_get_var_store={"a": 1}/*$js$*/',
        '{"a": 1}/*error fill content*/',
    ],
)
def test_json_is_read_in_all_its_dress(text: str) -> None:
    assert json_data(text) == {"a": 1}


def test_what_is_mended_in_json_is_not_inside_of_texts() -> None:
    dirty = '{0: "{1: 02, \\"x\\": +03}", "b": 007,"c":"a\tb"}'
    assert json_data(dirty) == {"0": '{1: 02, "x": +03}', "b": "007", "c": "a\tb"}


@pytest.mark.parametrize("written", ["+1", "007", "+01", "1.50", "-0.0", "1e3", "12345678901234567890123", "0", "42"])
def test_a_text_that_is_sent_as_a_number_stays_as_it_was_written(written: str) -> None:
    row = f'{{"tid":+041000010,"subject":{written},"author":{written},"postdate":1700000000,"replies":07}}'
    board = f'{{"data":{{"__T":{{0:{row}}}}}}}'.encode()
    request = requests.board(source())
    (item,) = nga.read(Answer(200, {}, board, request.url, NOW), request).items
    assert (item.external_id, item.title, item.author, item.reply_count) == ("t41000010", written, written, 7)
    floor = f'{{"pid":0,"lou":0,"tid":7,"content":{written},"authorid":3,"postdatetimestamp":1700000000}}'
    page = f'{{"data":{{"__T":{{"tid":7,"subject":"x"}},"__R":{{"0":{floor}}},"__U":{{}}}}}}'.encode()
    request = requests.thread_page(source(), 7, 1)
    (item,) = nga.read(Answer(200, {}, page, request.url, NOW), request).items
    assert item.html == written


def test_the_words_of_the_sites_own_comments_may_stand_in_a_post() -> None:
    text = "see /*$js$*/ and /*error fill content*/"
    whole = json.dumps({"content": text})
    assert json_data(whole) == json_data(f"{whole}/*error fill content*/") == {"content": text}
    assert json_data(f"window.script_muti_get_var_store={whole[:-1]},1:2}}/*$js$*/") == {"content": text, "1": 2}


@pytest.mark.parametrize(
    ("sent", "title"),
    [
        ("&amp;lt;b&amp;gt; is bold", "&lt;b&gt; is bold"),
        ("a &lt;b&gt; &amp; &#39;c&#39;", "a <b> & 'c'"),
        ("&amp;#55357;&amp;#56837; &amp;amp;", "😅 &amp;"),
        ("&#55357;&#56837; &#xd83d;&#xDE05; &#57344; &#55357; alone", "😅 😅 \ue000  alone"),
    ],
)
def test_a_title_is_the_same_in_both_forms(sent: str, title: str) -> None:
    (html,) = (case for case in cases.cases() if str(case) == "nga/board.html")
    (compact,) = (case for case in cases.cases() if str(case) == "nga/board_compact.json")
    shared = {item.external_id for item in cases.read("nga", "board_compact.json").items}
    known = next(item for item in cases.read("nga", "board.html").items[1:] if item.external_id in shared)
    assert known.title
    titles = []
    for case in (html, compact):
        request = case.request(case.expectation())
        body = case.body.decode("gb18030").replace(known.title, sent).encode("gb18030")
        read = nga.read(Answer(200, {}, body, request.url, NOW), request).items
        titles.append({item.external_id: item.title for item in read}[known.external_id])
    assert titles == [title, title]
