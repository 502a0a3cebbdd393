"""What changed between two texts, told so that both can be read out of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from catchment.web.pages.item_views import Piece, changed, shortened

TEXTS = st.lists(
    st.sampled_from(["the tram ", "depot ", "moves\n", "天气", "很好", "。", "\n\n", " ", "a<b ", "1974 "]), max_size=40
).map("".join)


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_out_of_it(before: str, after: str) -> None:
    pieces = changed(before, after)
    assert "".join(piece.text for piece in pieces if piece.sort != "new") == before
    assert "".join(piece.text for piece in pieces if piece.sort != "gone") == after


@given(TEXTS)
def test_what_did_not_change_is_one_piece(text: str) -> None:
    assert changed(text, text) == ([Piece("kept", text)] if text else [])


def test_words_and_chinese_characters_are_told_apart() -> None:
    assert changed("the old tram", "the new tram") == [
        Piece("kept", "the "),
        Piece("gone", "old"),
        Piece("new", "new"),
        Piece("kept", " tram"),
    ]
    assert changed("今天晴", "明天晴") == [Piece("gone", "今"), Piece("new", "明"), Piece("kept", "天晴")]


def test_of_what_stayed_only_the_surroundings_are_shown() -> None:
    stayed = "word " * 200
    pieces = shortened(changed(f"{stayed}old{stayed}", f"{stayed}new{stayed}"))
    assert [piece.sort for piece in pieces] == ["skipped", "kept", "gone", "new", "kept", "skipped"]
    assert int(pieces[0].text) + len(pieces[1].text) == len(stayed)


def test_a_text_that_is_wholly_different_and_very_long_is_told_at_once() -> None:
    """Word by word this would take minutes."""
    before, after = (" ".join(f"{name}{number}" for number in range(100_000)) for name in "ab")
    assert [piece.sort for piece in changed(before, after)] == ["gone", "new"]
