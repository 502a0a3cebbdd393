"""The box: what is locked opens with its key, and with no other."""

from __future__ import annotations

import pytest

from catchment.credentials.cipher import Cipher, Sealed, new_key
from catchment.errors import VaultError
from catchment.logs import HIDDEN, redact

OLD, NEW = "the old master key", "the new master key"


def test_what_was_sealed_opens_in_another_process_with_the_same_key() -> None:
    sealed = Cipher(OLD).seal("web_session=0400; 中文")
    assert Cipher(OLD).open(sealed) == "web_session=0400; 中文"
    assert "0400" not in sealed.token


def test_the_same_text_is_sealed_differently_each_time() -> None:
    assert Cipher(OLD).seal("a").token != Cipher(OLD).seal("a").token


def test_another_key_does_not_open_it_and_says_which_one_would() -> None:
    sealed = Cipher(OLD).seal("a")
    with pytest.raises(
        VaultError, match=f"encrypted with key {Cipher(OLD).key_id}; available keys: {Cipher(NEW).key_id}"
    ):
        Cipher(NEW).open(sealed)


def test_of_several_keys_the_first_seals_and_all_open() -> None:
    both = Cipher(f"{NEW}, {OLD}")
    assert both.open(Cipher(OLD).seal("a")) == "a"
    assert both.seal("b").key_id == Cipher(NEW).key_id


def test_after_resealing_the_old_key_is_needed_no_more() -> None:
    both = Cipher(f"{NEW},{OLD}")
    resealed = both.reseal(Cipher(OLD).seal("a"))
    assert Cipher(NEW).open(resealed) == "a"
    assert both.reseal(resealed) is resealed


def test_a_damaged_value_is_refused() -> None:
    sealed = Cipher(OLD).seal("a")
    with pytest.raises(VaultError, match="damaged"):
        Cipher(OLD).open(Sealed(sealed.key_id, sealed.token[:-4] + "AAAA"))


@pytest.mark.parametrize("keys", [None, "", " , ", "short", f"{OLD},short"])
def test_without_a_fit_key_the_box_says_which_command_makes_one(keys: str | None) -> None:
    box = Cipher(keys)
    with pytest.raises(VaultError, match="catchment credentials new-key"):
        box.seal("a")


def test_no_two_new_keys_are_the_same_and_each_is_fit() -> None:
    first, second = new_key(), new_key()
    assert first != second
    assert Cipher(first).open(Cipher(first).seal("a")) == "a"


def test_a_master_key_is_hidden_in_every_text_once_a_box_has_it() -> None:
    Cipher("the key of keys,another of them")
    assert redact("it is the key of keys or another of them") == f"it is {HIDDEN} or {HIDDEN}"
