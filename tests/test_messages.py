"""Texts are shown in English and Chinese, and the catalogue has all of them."""

from __future__ import annotations

import ast
import pickle
from gettext import GNUTranslations
from string import Formatter
from types import SimpleNamespace

import pytest

from catchment.errors import InvalidInput, Missing, NotFound
from catchment.logs import redact
from catchment.messages import SENTENCES, Message, Text, Translator, about, decode, encode, reason_of, without_subject
from catchment.platforms._common.urls import canonical
from tools import messages
from tools.error_texts import ErrorTexts

CHINESE = Translator("zh")
STORED = messages.stored()
MESSAGES = [message for message in STORED if message.id]


def forms(text: Text) -> list[str]:
    return list(text) if isinstance(text, tuple) else [text]


def placeholders(text: str) -> set[tuple[str, str | None, str | None]]:
    """Names with their format and conversion: `{count:,}`, `{name!r}`."""
    return {(name, form, conversion) for _, name, form, conversion in Formatter().parse(text) if name is not None}


def test_the_catalogue_is_up_to_date() -> None:
    """Run `make messages` if it is not."""
    assert messages.as_po(messages.updated(STORED)) == messages.PO.read_bytes()
    with messages.MO.open("rb") as file:
        compiled = GNUTranslations(file)
    for message in MESSAGES:
        chinese = forms(message.string)[0]
        assert (
            compiled.ngettext(*message.id, 2) if isinstance(message.id, tuple) else compiled.gettext(message.id)
        ) == chinese


def test_every_text_has_its_chinese() -> None:
    assert messages.untranslated(STORED) == []


def test_a_text_and_its_chinese_have_the_same_placeholders() -> None:
    differing = [
        message.id
        for message in MESSAGES
        if {place for text in forms(message.id) for place in placeholders(text)}
        != {place for text in forms(message.string) for place in placeholders(text)}
    ]
    assert differing == []


def is_sentence_in_both_languages(code: str) -> bool:
    names = {name for text in forms(SENTENCES[code]) for name, _, _ in placeholders(text)}
    message = Message(code, dict.fromkeys(names, 7))
    return "{" not in str(message) and str(message) != code and CHINESE.message(message) != str(message)


def test_every_code_is_a_sentence_in_both_languages() -> None:
    assert [code for code in SENTENCES if not is_sentence_in_both_languages(code)] == []


def test_a_message_is_stored_and_read_again_with_the_messages_in_it() -> None:
    size = Message("{n:,} bytes", {"n": 5000})
    message = Message("it failed: {why}, {all}", {"why": size, "all": [Message("a"), "b"]})
    read = decode(encode(message))
    assert (read, read.code, read.params) == (message, message.code, {"why": size, "all": ["a", "b"]})
    assert str(read) == "it failed: 5,000 bytes, a; b"
    assert pickle.loads(pickle.dumps(message)).params == message.params


def test_a_text_without_parameters_is_stored_as_it_is() -> None:
    assert encode(Message("probation")) == encode("probation") == "probation"
    assert decode("probation").code == "probation"


def test_a_text_that_looks_like_a_stored_message_is_kept() -> None:
    text = '{"code": no'
    assert decode(encode(Message(text))) == text


def test_a_message_can_be_shown_without_what_it_is_about() -> None:
    message = Missing(about("Gazette (source 2)", Message("not {what}", {"what": "found"})), "look again").message
    assert message == "Gazette (source 2): not found — look again"
    assert without_subject(message) == "not found — look again"
    assert without_subject("other") == "other"


def test_secrets_are_removed_from_the_parameters_of_a_message() -> None:
    message = Message("{url} says no", {"url": "https://a.example/?api_key=hunter2hunter2"})
    redacted = redact(message)
    assert "hunter2" not in encode(redacted)
    assert redacted.endswith(" says no")


def test_a_text_from_outside_keeps_its_braces() -> None:
    assert str(NotFound("the server says {no}")) == "the server says {no}"
    assert str(NotFound("the server says {words!r}", words="{no}")) == "the server says '{no}'"
    assert str(Message("{a} {b}", {"a": 1})) == "{a} {b}"


def test_an_error_says_what_happened_and_what_helps_with_its_parameters() -> None:
    error = InvalidInput("{name} is no number", "give {least} or more", "limit", name="x", least=1)
    assert (str(error), error.field) == ("x is no number — give 1 or more", "limit")
    assert (error.what, error.helps) == ("x is no number", "give 1 or more")
    assert (error.what.code, error.what.params) == ("{name} is no number", {"name": "x", "least": 1})


def test_texts_are_found_in_calls_and_in_tables() -> None:
    code = """
NAMES = {"a": {"b": "one"}, "c": ("two", "twos")}
x.gettext("three" if y else "four", n=1)
x.ngettext("five", "fives", n)
"""
    assert set(messages.texts_in(code)) == {"one", ("two", "twos"), "three", "four", ("five", "fives")}


ENGLISH_ERRORS = {
    # Printed by the command that reads the settings, before there is a page: names, values and the allowed forms.
    "settings/load.py": ["problems[0]", "'\\n'.join([f'{len(problems)} settings cannot be used:', *problems])"],
    # A message already: it was stored with the task.
    "web/api/tasks.py": ["task.error"],
}
"""Texts of errors that are not literals, by module."""


def test_all_that_errors_say_on_pages_is_in_the_catalogue() -> None:
    """A text that varies has parameters: `NotFound("there is no source {id}", id=7)`, not an f-string."""
    found = {place: {text.code for text in texts} for place, texts in messages.untranslatable().items()}
    assert found == {place: set(codes) for place, codes in ENGLISH_ERRORS.items()}


def errors_in(code: str, **values: object) -> ErrorTexts:
    return ErrorTexts(ast.parse(code), lambda: values)


def test_texts_of_errors_are_found_wherever_they_are_written() -> None:
    code = """
_AGAIN = "again"
def broken(word, what: Message):
    helps, field = ("one", "a") if word else ("two", "b")
    raise NotFound("gone", helps, id=7)
    raise Missing("lost" if word else _AGAIN, imported.HELPS, status=404)
    raise Refused(what, message("ask {name}", name=word))
    raise NotFound(*TEXTS, "field")
TABLE = {1: (TimedOut, "too slow", _AGAIN)}
"""
    found = errors_in(code, imported=SimpleNamespace(HELPS="look"), TEXTS=("no", "never"))
    assert set(found.texts) == {"gone", "one", "two", "lost", "again", "look", "ask {name}", "no", "never", "too slow"}
    assert found.untranslatable == []


def test_a_text_of_an_error_that_nobody_can_translate_is_found() -> None:
    code = """
def broken(word: str, error):
    raise NotFound(f"there is no {word}", word)
    raise Missing(str(error), "it is retried")
    raise Refused("{host} says {why}", why="no reason given", host=word)
    raise Refused("it is {state}", state=f"closed since {word}")
"""
    assert [expression.code for expression in errors_in(code).untranslatable] == [
        "f'there is no {word}'",
        "word",
        "str(error)",
        "'no reason given'",
        "f'closed since {word}'",
    ]


def test_an_exception_passes_on_the_message_it_was_raised_with() -> None:
    message = Message("{size} is too much", {"size": 7})
    assert reason_of(ValueError(message)).params == {"size": 7}
    assert reason_of(ValueError("no")) == "no"
    assert reason_of(ValueError()) == ""


def test_errors_of_a_target_are_shown_in_chinese() -> None:
    with pytest.raises(InvalidInput) as wrong:
        canonical("gopher://example.org")
    assert str(wrong.value).startswith(
        "addresses that begin with gopher: are not supported — enter the address of a feed"
    )
    assert CHINESE.message(wrong.value.message).startswith("不支持以 gopher: 开头的地址——请给出")


def test_translations_of_a_platform_come_first() -> None:
    assert Translator("zh", {"Wall": "墙"}).gettext("Wall") == "墙"
    assert Translator("zh").gettext("Wall") == "Wall"
