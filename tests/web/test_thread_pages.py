"""Threads in a browser: replies as a tree or by number, what a reply answers, and how much of a thread is stored."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest

from catchment.model import Item, Reference
from catchment.store.database import Transaction
from catchment.web.pages.thread_view import A_PAGE
from tests.store.desk import Desk as StoreDesk
from tests.store.desk import post
from tests.web.desk import Desk

MINUTE = timedelta(minutes=1)


def opening(at: StoreDesk, **more: Any) -> Item:
    return post("t3_a", title="A question", created_at=at.now - 999 * MINUTE, thread_id="t3_a", is_head=True, **more)


def comment(at: StoreDesk, key: str, answers: str, minute: int, **more: Any) -> Item:
    more = {"text": f"text of {key}", "html": None, "author": f"author of {key}"} | more
    return Item(
        key,
        kind="comment",
        created_at=at.now - 900 * MINUTE + minute * MINUTE,
        thread_id="t3_a",
        references=(Reference("replied_to", external_id=answers),),
        **more,
    )


def floor(at: StoreDesk, number: int, **more: Any) -> Item:
    created = at.now - 900 * MINUTE + number * MINUTE
    return Item(f"p{number}", created_at=created, text=f"text {number}", thread_id="t3_a", floor_number=number, **more)


def numbered(at: StoreDesk, number: int, to: int, **more: Any) -> Item:
    """A reply in a forum that names the posts that replies answer by their numbers."""
    answered = Reference("replied_to", external_id="t3_a" if to == 1 else None)
    return floor(at, number, parent_floor=to, references=(answered,), **more)


def stored(desk: Desk, *kept: Item, kind: str = "reddit", **settings: Any) -> dict[str, int]:
    """Stores these items of one source; returns their ids."""
    at = StoreDesk(desk.here.app.store, desk.here.clock)
    at.show(at.follow("r/questions", kind, settings=settings), *kept)
    ids = {item.external_id: at.item(item.external_id)["id"] for item in kept}
    at.presence.leave(at.now)
    return ids


def opened(desk: Desk, path: str, *, status: int = 200, language: str = "en") -> str:
    answer = desk.browser(language).get(path.partition("#")[0])
    assert answer.status_code == status, answer.text
    return str(answer.text)


def outline(page: str) -> list[tuple[int, str]]:
    """The texts of the replies, each with how deep it stands."""
    found, depth = [], 0
    for mark in re.finditer(r'<ol class="thread[^"]*">|</ol>|<div class="said[^>]*>(.*?)</div>', replies(page), re.S):
        depth += {"<ol": 1, "</o": -1}.get(mark[0][:3], 0)
        if mark[1] is not None:
            found.append((depth, unescape(re.sub("<[^>]+>", "", mark[1]))))
    return found


def replies(page: str) -> str:
    return page[page.index('<section id="replies"') :]


def at_of(desk: Desk) -> StoreDesk:
    return StoreDesk(desk.here.app.store, desk.here.clock)


def test_comments_are_a_tree_with_their_full_text_oldest_first(both: Desk) -> None:
    at = at_of(both)
    long = "word " * 400
    ids = stored(
        both,
        opening(at, reply_count=24),
        comment(at, "b", "t3_a", 2),
        comment(at, "a", "t3_a", 1),
        comment(at, "ab", "a", 5, text=long),
        comment(at, "aa", "a", 4),
        comment(at, "aaa", "aa", 6),
    )
    page = opened(both, f"/items/{ids['t3_a']}")
    assert outline(page) == [
        (1, "text of a"),
        (2, "text of aa"),
        (3, "text of aaa"),
        (2, long.strip()),
        (1, "text of b"),
    ]
    assert "24 reported, 5 stored." in page
    assert "its setting <code>comments</code> is off" in page
    assert "已报告 24 条，已保存 5 条" in opened(both, f"/items/{ids['t3_a']}", language="zh-CN")


def test_a_reply_says_what_it_answers_and_what_answers_it(both: Desk) -> None:
    at = at_of(both)
    ids = stored(
        both,
        opening(at),
        comment(at, "a", "t3_a", 1),
        comment(at, "aa", "a", 2),
        comment(at, "aaa", "aa", 3),
        comment(at, "b", "t3_a", 4),
    )
    page = opened(both, f"/items/{ids['aa']}")
    context = page[
        page.index('<nav class="card context"') : page.index("</nav>", page.index('<nav class="card context"'))
    ]
    assert [int(number) for number in re.findall(r'href="/items/(\d+)"', context)] == [ids["t3_a"], ids["a"]]
    assert outline(page) == [(1, "text of aaa")]


def test_a_reply_whose_parent_is_not_stored_is_shown_apart_and_names_the_thread(both: Desk) -> None:
    at = at_of(both)
    ids = stored(
        both, opening(at), comment(at, "a", "t3_a", 1), comment(at, "lost", "gone", 2), comment(at, "x", "lost", 3)
    )
    page = opened(both, f"/items/{ids['t3_a']}")
    assert "Replies whose place in the thread is unknown" in page
    assert outline(page) == [(1, "text of a"), (1, "text of lost"), (2, "text of x")]
    page = opened(both, f"/items/{ids['x']}")
    assert "not stored or not shown" in page
    assert f'href="/items/{ids["t3_a"]}"' in page[: page.index("<article")]


def test_a_long_thread_has_pages_and_a_deep_or_broad_branch_a_page_of_its_own(both: Desk) -> None:
    at = at_of(both)
    chain = [comment(at, f"deep{number}", f"deep{number - 1}" if number else "t3_a", number) for number in range(10)]
    broad = [comment(at, f"broad{number}", "deep0", 100 + number) for number in range(320)]
    more = [comment(at, f"top{number}", "t3_a", 500 + number) for number in range(A_PAGE + 5)]
    ids = stored(both, opening(at), *chain, *broad, *more)
    page = opened(both, f"/items/{ids['t3_a']}")
    told = outline(page)
    assert len(told) == A_PAGE + 300
    assert max(depth for depth, _ in told) <= 7
    assert re.search(rf'href="/items/{ids["deep0"]}#replies">\d+ more replies', page)
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', page)
    rest = outline(opened(both, unescape(onwards)))
    assert [text for _, text in rest] == [f"text of top{number}" for number in range(A_PAGE - 1, A_PAGE + 5)]
    # What one page leaves out, the page of the reply has.
    assert (1, "text of deep8") in outline(opened(both, f"/items/{ids['deep7']}"))


def test_replies_that_claim_to_answer_each_other_are_shown_once(both: Desk) -> None:
    at = at_of(both)
    ids = stored(both, opening(at), comment(at, "a", "b", 1), comment(at, "b", "a", 2))
    assert outline(opened(both, f"/items/{ids['a']}")) == [(1, "text of b")]
    assert "text of b" in opened(both, f"/items/{ids['b']}")


def test_floors_are_shown_by_number_with_a_jump_and_what_is_missing_between_them(both: Desk) -> None:
    at = at_of(both)
    numbers = [1, 2, 4, *range(8, 60)]
    ids = stored(both, opening(at, floor_number=0), *(floor(at, number) for number in reversed(numbers)))
    page = opened(both, f"/items/{ids['t3_a']}")
    assert [text for _, text in outline(page)] == [f"text {number}" for number in numbers[:A_PAGE]]
    assert "#3: not stored yet" in page
    assert "#5–#7: not stored yet" in page
    (onwards,) = re.findall(r'href="([^"]+)" rel="next"', page)
    assert [text for _, text in outline(opened(both, unescape(onwards)))] == [
        f"text {number}" for number in numbers[A_PAGE:]
    ]
    jumped = opened(both, f"/items/{ids['t3_a']}?floor=57")
    assert [text for _, text in outline(jumped)] == ["text 57", "text 58", "text 59"]
    assert opened(both, f"/items/{ids['t3_a']}?floor=nine", status=400)
    # A floor leads back to its thread.
    page = opened(both, f"/items/{ids['p9']}")
    assert f'href="/items/{ids["t3_a"]}"' in page[: page.index("<article")]


def test_a_deleted_reply_keeps_its_place_and_says_why(both: Desk) -> None:
    at = at_of(both)
    ids = stored(
        both,
        opening(at, reply_count=3),
        comment(at, "a", "t3_a", 1, text=None, is_deleted=True, deleted_by="author", url="https://r.example/a"),
        comment(at, "aa", "a", 2),
        comment(at, "b", "t3_a", 3, is_deleted=True, deleted_by="moderator"),
    )
    page = opened(both, f"/items/{ids['t3_a']}")
    assert "Deleted before its text was seen." in page
    assert outline(page) == [(2, "text of aa"), (1, "text of b")]
    assert re.findall(r'<span class="tag is-bad">([^<]+)', replies(page)) == [
        "deleted by its author",
        "removed by a moderator",
    ]


def test_a_deleted_floor_says_so_and_keeps_its_text(both: Desk) -> None:
    at = at_of(both)
    ids = stored(both, opening(at, floor_number=0), floor(at, 1), floor(at, 2, is_deleted=True), floor(at, 3))
    page = opened(both, f"/items/{ids['t3_a']}")
    assert outline(page) == [(1, "text 1"), (1, "text 2"), (1, "text 3")]
    assert re.findall(r'<span class="tag is-bad">([^<]+)', replies(page)) == ["deleted at the source"]
    assert "来源处已删除" in opened(both, f"/items/{ids['t3_a']}", language="zh-CN")


def test_posts_without_a_number_are_below_the_last_floors(both: Desk) -> None:
    at = at_of(both)
    lost = [floor(at, 100 + number).replace(floor_number=None) for number in range(A_PAGE + 2)]
    ids = stored(both, opening(at, floor_number=0), *(floor(at, number) for number in range(1, A_PAGE + 3)), *lost)
    first = opened(both, f"/items/{ids['t3_a']}")
    assert "text 100" not in first
    last = opened(both, f"/items/{ids['t3_a']}?floor={A_PAGE + 1}")
    assert "Replies whose place in the thread is unknown" in last
    texts = [text for _, text in outline(last)]
    assert texts == [f"text {number}" for number in (A_PAGE + 1, A_PAGE + 2, *range(100, 100 + A_PAGE))]
    (onwards,) = re.findall(r'href="([^"]+#orphans)"', last)
    rest = [text for _, text in outline(opened(both, unescape(onwards)))]
    assert rest[-2:] == [f"text {100 + A_PAGE}", f"text {101 + A_PAGE}"]


def test_a_forum_that_names_parents_by_number_is_a_tree_and_can_be_read_by_number(both: Desk) -> None:
    at = at_of(both)
    kept = [numbered(at, 2, 1), numbered(at, 3, 2), numbered(at, 4, 1), numbered(at, 5, 3), numbered(at, 9, 8)]
    ids = stored(both, opening(at, floor_number=1, reply_count=8), *kept, kind="discourse_forum")
    page = opened(both, f"/items/{ids['t3_a']}")
    assert outline(page) == [(1, "text 2"), (2, "text 3"), (3, "text 5"), (1, "text 4"), (1, "text 9")]
    assert "Replies whose place in the thread is unknown" in page
    # By number, holes and missing posts are shown.
    page = opened(both, f"/items/{ids['t3_a']}?floor=2")
    assert outline(page) == [(1, f"text {number}") for number in (2, 3, 4, 5, 9)]
    assert "#6–#8: not stored yet" in page
    assert f'href="/items/{ids["t3_a"]}#replies">As a tree' in page
    # A reply has what it answers above, its place in the thread, and its replies below.
    page = opened(both, f"/items/{ids['p3']}")
    context = page[page.index('<nav class="card context"') : page.index("<article")]
    links = [ids["t3_a"], ids["p2"]]
    assert [int(number) for number in re.findall(r'href="/items/(\d+)"', context)] == links
    assert f'href="/items/{ids["t3_a"]}?floor=3#replies"' in context
    assert '<span class="number">#3</span>' in page
    assert outline(page) == [(1, "text 5")]
    # Of what it answers, only the number is known.
    page = opened(both, f"/items/{ids['p9']}")
    assert "not stored or not shown" in page
    assert "None" not in page


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("reddit", {}, "7 reported, 1 stored. Comments are not collected for this source"),
        ("reddit", {"comments": True}, "7 reported, 1 stored. The others were removed, are hidden"),
        ("hackernews", {"listing": "new"}, "7 reported, 1 stored. Comments are not collected for this source"),
        ("hackernews", {"listing": "new", "comments": True}, "7 reported, 1 stored. The others were removed"),
        ("discourse_forum", {}, "7 reported, 1 stored. The others were removed, are hidden"),
        ("rss", {}, "7 reported, 1 stored. Replies are not collected from this kind of source."),
    ],
)
def test_the_reason_why_fewer_replies_are_stored_is_true(
    both: Desk, kind: str, settings: dict[str, Any], words: str
) -> None:
    at = at_of(both)
    ids = stored(both, opening(at, reply_count=7), comment(at, "a", "t3_a", 1), kind=kind, **settings)
    assert words in " ".join(opened(both, f"/items/{ids['t3_a']}").split())


def test_an_item_whose_replies_are_never_collected_says_so(both: Desk) -> None:
    at = at_of(both)
    ids = stored(both, post("e1", created_at=at.now, reply_count=4), kind="rss")
    page = " ".join(opened(both, f"/items/{ids['e1']}").split())
    assert "4 replies reported. Replies are not collected from this kind of source." in page


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("read_reason = 'new'", "7 reported, 0 stored. More of them are waiting to be fetched."),
        ("skipped_since = created_at", "7 reported, 0 stored. The thread is too long: its replies are not read."),
        ("read_reason = NULL", "7 reported, 0 stored. The others were removed, are hidden"),
    ],
)
def test_a_thread_of_which_only_the_row_in_the_list_is_stored_says_so(both: Desk, state: str, words: str) -> None:
    at = at_of(both)
    row = opening(at, reply_count=7, floor_number=0, lacks_text=True).replace(text=None, html=None)
    ids = stored(both, row, kind="nga_forum")

    def note(tx: Transaction) -> None:
        values = ids["t3_a"], at.item("t3_a")["source_id"]
        columns = "INSERT INTO threads (thread_id, created_at, item_id, source_id)"
        tx.run(f"{columns} VALUES ('t3_a', 1, ?, ?)", *values)
        tx.run(f"UPDATE threads SET {state}")

    at.store.database.write(note)
    page = " ".join(opened(both, f"/items/{ids['t3_a']}").split())
    assert words in page
    assert "Read from the list of threads: its text is not stored." in page
    assert "Go to number" not in page
    assert '<ol class="thread' not in page


def test_the_link_to_a_reply_is_chinese_for_opening_it(both: Desk) -> None:
    ids = stored(both, opening(at_of(both)), comment(at_of(both), "a", "t3_a", 1))
    assert ">打开回复</a>" in opened(both, f"/items/{ids['t3_a']}", language="zh")
