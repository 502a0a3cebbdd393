"""Search finds all that answers and nothing else, whatever of it is indexed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.errors import InvalidInput
from catchment.store.search import index, search
from catchment.store.search.lists import Filter
from catchment.store.search.search import ResultPage
from catchment.text import tokens
from catchment.text.tokens import is_answered
from tests.store.desk import Desk, days, opened, post
from tests.store.test_index import index_all

CORPUS = {
    "en": "The quick brown fox jumps over the lazy dog; don't panic!",
    "en2": "Quick-witted FOXES in New York, c. 1999. See https://example.org/new_york?id=42",
    "a": "A b c, a single letter: x.",
    "zh": "今天天气很好，我们去公园玩。苹果手机壳。",
    "zh2": "天气预报说明天下雨，手机没电了",
    "zh3": "好",
    "ja": "東京タワーに行きました。パソコンとコンピューター",
    "ja2": "ﾊﾟｿｺﾝは半角カナ",
    "ko": "한국어로 검색합니다. 서울의 날씨",
    "ru": "Привет, МИР! Ёлка и ещё ёж",
    "accents": "Café crème, nai\u0308ve façade, STRASSE und Straße",
    "accents2": "Cafe creme without any",
    "emoji": "Well done 👍🏽 and 🎉🎉, ❤️ you",
    "mixed": "iPhone手机壳 3月 GPT-4模型 C++与Python",
    "html": "a &amp; b — bold text\nnew paragraph with iphone 手机 apart",
    "thai": "ภาษาไทยเขียนติดกัน",
    "hindi": "हिन्दी में खोज",
    "wide": "ＦＵＬＬ ｗｉｄｔｈ １２３",
    "long": "x" * 100 + " after",
    "trade": "Foo™ and bar® of №1",
}
QUESTIONS = (
    "quick", "QUICK", "fox", "foxes", "quick fox", '"brown fox"', '"fox brown"', "new york", '"new york"', "york new",
    "don't", "x", "a", "42", "1999", "example.org", "new_york", "天气", "天", "气很", "天气很好", "手机", "手机壳",
    "机手", "手机 天气", "苹果手机", "好", "明天", "東京", "タワー",
    "ー", "パソコン", "ﾊﾟｿｺﾝ", "コン", "한국어", "검색", "날", "서울의 날씨",
    "привет", "мир", "ёлка", "елка", "café", "cafe\u0301", "CAFE", "naïve", "strasse", "straße", "👍",
    "🎉", "🎉🎉", "❤",
    "❤️", "iphone手机", "iphone 手机", '"iphone手机"', '"手机壳 3月"', "3月", "gpt", "4模型", "c++",
    "python 与", "ไทย", "เขียน",
    "हिन्दी", "full", "123", "x" * 100, "x" * 64, "xx", "foo", "bar", "1", "amp", "nowhere", "天下雨 手机", "the 👍",
    "“new york”", '"', "公园玩。苹果", '"公园玩。苹果"',
)  # fmt: skip


# ── the reference: character by character, without an index, a regular expression or a trick ───────────────────────


def is_spaceless(char: str) -> bool:
    name = unicodedata.name(char, "")
    scripts = (
        "CJK UNIFIED",
        "CJK COMPATIBILITY IDEOGRAPH",
        "HIRAGANA",
        "KATAKANA",
        "COMBINING KATAKANA",
        "HANGUL",
        "THAI CHARACTER",
        "BOPOMOFO",
    )
    return (
        name.startswith(scripts)
        or char == "々"
        or (unicodedata.category(char) == "So" and char > "\u2600")
        or ("\U0001f3fb" <= char <= "\U0001f3ff")
    )


def plain(text: str) -> str:
    for sign in "\u00ad\u200c\u200d\u2060\ufe0e\ufe0f\ufeff":
        text = text.replace(sign, "")
    text = text.replace("™", " ").replace("\u2120", " ")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def parts(text: str) -> list[str]:
    """Words, and stretches of writing without spaces."""
    found: list[str] = []
    last = ""
    for char in plain(text):
        is_mark = last == "word" and unicodedata.category(char) in ("Mn", "Mc")
        sort = "run" if is_spaceless(char) else "word" if char.isalnum() or is_mark else ""
        if sort == last and sort:
            found[-1] += char
        elif sort:
            found.append(char)
        last = sort
    return [part if is_spaceless(part[0]) else part[:64] for part in found]


def answers(question: str, *texts: str) -> bool:
    """Every word is a word of the item, every stretch a part of one; what is quoted stands in a row."""
    pieces = question.replace("“", '"').replace("”", '"').split('"')
    quoted, rest = pieces[1::2], " ".join(pieces[::2])
    if len(pieces) % 2 == 0:
        quoted, rest = pieces[1:-1:2], " ".join([*pieces[:-1:2], pieces[-1]])
    wanted = [parts(phrase) for phrase in quoted] + [[part] for part in parts(rest)]
    return all(any(stands(words, parts(text)) for text in texts) for words in wanted if words)


def stands(wanted: list[str], said: list[str]) -> bool:
    return any(fits(wanted, said[start : start + len(wanted)]) for start in range(len(said) - len(wanted) + 1))


def fits(wanted: list[str], said: list[str]) -> bool:
    if len(wanted) == 1:
        return wanted[0] in said[0] if is_spaceless(wanted[0][0]) else wanted == said
    first = said[0].endswith(wanted[0]) if is_spaceless(wanted[0][0]) else said[0] == wanted[0]
    last = said[-1].startswith(wanted[-1]) if is_spaceless(wanted[-1][0]) else said[-1] == wanted[-1]
    return first and last and wanted[1:-1] == said[1:-1]


# ── situations ────────────────────────────────────────────────────────────────────────────────────────────────────


def fill(desk: Desk) -> Any:
    source = desk.follow("r/one", "reddit")
    desk.show(source, *(post(key, text, title=None) for key, text in CORPUS.items()))
    return source


def not_yet(desk: Desk) -> None:
    fill(desk)


def indexed(desk: Desk) -> None:
    fill(desk)
    index_all(desk)


def partly(desk: Desk) -> None:
    fill(desk)
    desk.store.index.advance(9)


def edited_and_indexed_again(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, *(post(key, "before: 手机 天气 fox new york", title=None) for key in CORPUS))
    index_all(desk)
    desk.show(source, *(post(key, text, title=None) for key, text in CORPUS.items()))
    desk.store.index.advance(7)


def with_too_many_words(desk: Desk) -> None:
    """For the index: then they are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_MOST_TERM_BYTES", 100)
        indexed(desk)


def found(desk: Desk, question: str, filters: Filter | None = None, **more: Any) -> list[str]:
    return [item.external_id for item in desk.store.search.find(question, filters, limit=100, **more).items]


def expected(question: str) -> list[str]:
    return sorted(key for key, text in CORPUS.items() if answers(question, text))


@pytest.mark.parametrize("situation", [not_yet, indexed, partly, edited_and_indexed_again, with_too_many_words])
def test_all_that_answers_is_found_and_nothing_else(desk: Desk, situation: Callable[[Desk], None]) -> None:
    situation(desk)
    askable = [question for question in QUESTIONS if parts(question)]
    wanted = {question: expected(question) for question in askable}
    assert {question: sorted(found(desk, question)) for question in askable} == wanted
    assert {question: sorted(found(desk, question, is_best=True)) for question in askable} == wanted
    assert sum(map(bool, wanted.values())) > 60


LETTERS = "ab Z1é_手机天气好ー한국 .,\"\n👍️ё\u0301ßＡﾊﾟ™ไท'"
texts = st.text(LETTERS, max_size=25)


@settings(max_examples=25)
@given(
    said=st.lists(st.tuples(texts, texts), min_size=1, max_size=8),
    questions=st.lists(texts, max_size=6),
    of=st.integers(0, 8),
)
def test_any_question_finds_in_any_texts_what_reading_them_finds(
    said: list[tuple[str, str]], questions: list[str], of: int
) -> None:
    with TemporaryDirectory() as folder, sitting(Path(folder)) as desk:
        source = desk.follow("r/one", "reddit")
        desk.show(source, *(post(f"{number}", text, title=title) for number, (title, text) in enumerate(said)))
        if of:
            desk.store.index.advance(of)
        stored = {item.external_id: (item.title or "", item.text or "") for item in desk.store.items.newest(100)}
        for question in [*questions, said[0][1][:4]]:
            if parts(question):
                wanted = sorted(key for key, both in stored.items() if answers(question, *both))
                assert sorted(found(desk, question)) == wanted, question


@contextmanager
def sitting(home: Path) -> Iterator[Desk]:
    desk = Desk(opened(f"sqlite:///{home / 'catchment.db'}", home))
    yield desk
    desk.close()


# ── order, pages, filters ─────────────────────────────────────────────────────────────────────────────────────────


def many(desk: Desk, count: int = 25) -> None:
    one, two = desk.follow("r/one", "reddit"), desk.follow("two")
    begin = desk.now
    rows = [
        post(
            f"{number}",
            "fox " * (number % 5 + 1) + "天气",
            created_at=begin - days(number % 7),
            author="Jane" if number % 2 else "John",
            tags=("even",) if number % 2 == 0 else (),
        )
        for number in range(count)
    ]
    desk.show(one, *rows[:15])
    index_all(desk)
    desk.show(two, *rows[15:])
    desk.store.index.advance(4)


def walked(desk: Desk, question: str, filters: Filter | None = None, limit: int = 4, **more: Any) -> list[str]:
    keys, after = [], None
    while True:
        page: ResultPage = desk.store.search.find(question, filters, limit=limit, after=after, **more)
        keys += [item.external_id for item in page.items]
        if page.next is None:
            return keys
        assert len(page.items) == limit
        after = page.next


def test_newest_come_first_and_pages_join_without_a_seam(desk: Desk) -> None:
    many(desk)
    everything = desk.store.search.find("fox", limit=100).items
    listed = [(item.ordered_at.replace(microsecond=0), item.id) for item in everything]
    assert listed == sorted(listed, reverse=True)
    assert len(listed) == 25
    for limit in (1, 4, 25):
        assert walked(desk, "fox", limit=limit) == [item.external_id for item in everything]


@pytest.mark.parametrize("limit", [1, 2, 5, 50])
def test_however_many_texts_are_too_long_for_the_index_a_page_reads_a_few_and_the_pages_have_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(index, "_MOST_TERM_BYTES", 100)
    monkeypatch.setattr(search, "LONG_READ", 3)
    source, keys = desk.follow("r/one", "reddit"), [f"{number:02}" for number in range(24)]
    long = "fox " + " ".join(f"word{number}" for number in range(40))
    texts = {key: long if int(key) % 3 else "a fox" for key in keys} | {"05": long.replace("fox", "dog")}
    desk.show(source, *(post(key, texts[key], title=None, created_at=desk.now - days(int(key))) for key in keys))
    index_all(desk)
    read: list[str] = []

    def counted(query: Any, title: str | None, text: str) -> bool:
        read.append(text)
        return is_answered(query, title, text)

    monkeypatch.setattr(tokens, "is_answered", counted)
    pages, after = list[ResultPage](), None
    while not pages or after is not None:
        read.clear()
        pages.append(desk.store.search.find("fox", limit=limit, after=after))
        assert sum(1 for text in read if len(text) > 100) <= 3
        after = pages[-1].next
    assert [item.external_id for page in pages for item in page.items] == [key for key in keys if key != "05"]
    assert pages[0].is_count_estimated


def test_a_page_of_texts_that_do_not_answer_is_empty_and_goes_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_MOST_TERM_BYTES", 10)
    monkeypatch.setattr(search, "LONG_READ", 2)
    source = desk.follow("r/one", "reddit")
    desk.show(source, *(post(f"{n}", f"many words {n}", title=None, created_at=desk.now - days(n)) for n in range(5)))
    index_all(desk)
    first = desk.store.search.find("4")
    assert (first.items, first.next is None) == ([], False)
    second = desk.store.search.find("4", after=first.next)
    assert (second.items, second.next is None) == ([], False)
    third = desk.store.search.find("4", after=second.next)
    assert ([item.external_id for item in third.items], third.next) == (["4"], None)


def test_best_come_first_and_pages_join_without_a_seam(desk: Desk) -> None:
    many(desk)
    everything = found(desk, "fox", is_best=True)
    counts = [int(key) % 5 + 1 for key in everything]
    assert counts == sorted(counts, reverse=True)
    for limit in (1, 4, 25):
        assert walked(desk, "fox", limit=limit, is_best=True) == everything


def test_what_stands_in_the_title_is_better(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, post("title", "something", title="A fox"), post("text", "a fox", title="Something"))
    assert found(desk, "fox", is_best=True) == ["title", "text"]


def test_every_filter_keeps_what_has_it(desk: Desk) -> None:
    many(desk)
    numbers = range(25)
    begin = min(item.created_at for item in desk.store.items.newest(100))
    cases: list[tuple[Filter, list[int]]] = [
        (Filter(), list(numbers)),
        (Filter(kind="rss"), [number for number in numbers if number >= 15]),
        (Filter(kind="entry"), list(numbers)),
        (Filter(platform="reddit"), [number for number in numbers if number < 15]),
        (Filter(source_id=2), [number for number in numbers if number >= 15]),
        (Filter(author="Jane"), [number for number in numbers if number % 2]),
        (Filter(author="Jane", platform="feeds"), [number for number in numbers if number % 2 and number >= 15]),
        (Filter(tag="even", source_id=1), [number for number in numbers if number % 2 == 0 and number < 15]),
        (Filter(until=begin + days(1)), [number for number in numbers if number % 7 == 6]),
        (Filter(since=begin + days(1), until=begin + days(2)), [number for number in numbers if number % 7 == 5]),
        (Filter(since=begin + days(6)), [number for number in numbers if number % 7 == 0]),
        (Filter(is_deleted=False), list(numbers)),
        (Filter(is_deleted=True), []),
        (Filter(tag="nobody's"), []),
        (Filter(source_id=99), []),
    ]
    for filters, wanted in cases:
        assert sorted(map(int, found(desk, "fox", filters))) == wanted, filters
        assert sorted(map(int, walked(desk, "天气", filters, 3))) == wanted, filters
        assert sorted(map(int, found(desk, "fox", filters, is_best=True))) == wanted, filters


def test_what_its_source_deleted_is_found_and_can_be_told_apart(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, post("a", "fox"), post("b", "fox"))
    desk.show(source, post("a", "fox", is_deleted=True))
    for _ in range(2):
        assert sorted(found(desk, "fox")) == ["a", "b"]
        assert found(desk, "fox", Filter(is_deleted=True)) == ["a"]
        assert found(desk, "fox", Filter(is_deleted=False)) == ["b"]
        index_all(desk)


def test_an_item_shown_by_another_source_later_is_found_there_too(desk: Desk) -> None:
    one, two = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(one, post("a", "fox"))
    index_all(desk)
    desk.show(two, post("a", "fox"))
    assert found(desk, "fox", Filter(source_id=two.id)) == found(desk, "fox", Filter(source_id=one.id)) == ["a"]


def test_a_page_tells_how_many_there_are_and_what_was_not_looked_at(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(desk)
    page = desk.store.search.find("fox", limit=3)
    assert (page.count, page.behind) == (25, 0)
    assert desk.store.search.find("fox", limit=3, after=page.next).count is None
    monkeypatch.setattr(index, "MOST_SCANNED", 2)
    page = desk.store.search.find("fox", limit=100)
    assert (len(page.items), page.behind) == (21, 4)
    index_all(desk)
    page = desk.store.search.find("fox", limit=100)
    assert (len(page.items), page.behind) == (25, 0)


def test_far_more_than_are_counted_are_found_page_by_page(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "COUNTED", 5)
    many(desk)
    index_all(desk)
    assert len(set(walked(desk, "fox", limit=3))) == 25
    assert len(found(desk, "天气", Filter(author="John", source_id=1))) == 8


def test_hits_are_marked_in_title_and_snippet(desk: Desk) -> None:
    text = f"{'filler ' * 50}… then the Quick ﬁx for 苹果手机壳 came. {'more ' * 50}"
    desk.show(desk.follow("r/one", "reddit"), post("a", text, title="A quick one"))
    (item,) = desk.store.search.find("quick fix 手机壳").items
    piece = item.snippet
    assert [piece.text[start:end] for start, end in piece.marks] == ["Quick", "ﬁx", "手机壳"]
    assert piece.text.startswith("…")
    assert len(piece.text) < 210
    assert [item.title[start:end] for start, end in item.title_marks] == ["quick"]


@settings(max_examples=200)
@given(text=texts, question=texts)
def test_marks_lie_inside_their_text_and_never_over_each_other(text: str, question: str) -> None:
    from catchment.text import tokens

    try:
        query = tokens.understand(question)
    except InvalidInput:
        return
    places = [0, *(place for mark in tokens.marks(query, text) for place in mark), len(text)]
    assert places == sorted(places)
    if tokens.is_answered(query, text) and tokens.folded(text) == text:
        assert len(places) > 2


@pytest.mark.parametrize("question", ["", "   ", "?!", '""', "…", "--", "' OR 1=1 --"[-3:]])
def test_a_question_without_a_word_is_refused(desk: Desk, question: str) -> None:
    with pytest.raises(InvalidInput, match="no word"):
        desk.store.search.find(question)


@pytest.mark.parametrize(
    "question", ["' OR 1=1 --", 'a" OR "b', "NEAR(a b)", "a*", "-a", "a:b", "(", "a & | !b", "\\'a"]
)
def test_no_question_is_a_command_to_the_database(desk: Desk, question: str) -> None:
    indexed(desk)
    if parts(question):
        assert sorted(found(desk, question)) == expected(question)


@pytest.mark.parametrize(
    ("after", "is_best"), [("x", False), ("1_2", False), ("1", True), ("9" * 30, False), ("_", True)]
)
def test_a_place_that_is_none_is_refused(desk: Desk, after: str, is_best: bool) -> None:
    with pytest.raises(InvalidInput, match="not a valid cursor"):
        desk.store.search.find("fox", after=after, is_best=is_best)


def test_times_of_any_year_can_be_asked_for(desk: Desk) -> None:
    desk.show(desk.follow(), post("a", "hello"))
    index_all(desk)
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    asked = (Filter(since=first), Filter(until=first), Filter(since=last), Filter(until=last))
    assert [len(desk.store.search.find("hello", request).items) for request in asked] == [1, 0, 0, 1]
    assert [len(desk.store.items.listed(request, 10).items) for request in asked] == [1, 0, 0, 1]
