"""Threads in a browser: replies as a tree or by number, what a reply answers, and how much of a thread is stored."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

from catchment.model import Item, Reference
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


def stored(desk: Desk, *kept: Item) -> dict[str, int]:
    """Stores these items of one source; returns their ids."""
    at = StoreDesk(desk.here.app.store, desk.here.clock)
    at.show(at.follow("r/questions", "reddit"), *kept)
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
    assert "its setting `comments` is off" in page
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


def test_a_deleted_reply_keeps_its_place_and_says_so(both: Desk) -> None:
    at = at_of(both)
    ids = stored(
        both,
        opening(at, reply_count=2),
        comment(at, "a", "t3_a", 1, text=None, is_deleted=True, url="https://r.example/a"),
        comment(at, "aa", "a", 2),
    )
    page = opened(both, f"/items/{ids['t3_a']}")
    assert "Deleted before its text was seen." in page
    assert outline(page) == [(2, "text of aa")]
