"""The master key in the data folder: made when it is needed, never a second one in silence, and changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.credentials.cipher import Cipher
from catchment.errors import VaultError
from tests.cli.conftest import Catchment

SECRET = b"open-sesame-4711"
OWN = "a master key from the environment"


def add(catchment: Catchment, name: str) -> int:
    return catchment("credentials", "add", "feeds", name, stdin=SECRET).code


def found(catchment: Catchment, about: str) -> list[tuple[str, str]]:
    said = catchment("doctor", "--json").json
    return [(finding["verdict"], finding["what"]) for finding in said["findings"] if finding["about"] == about]


def key_ids(catchment: Catchment) -> list[str]:
    return [credential["key_id"] for credential in catchment("credentials", "list", "--json").json]


def test_it_is_made_with_the_first_secret_and_the_doctor_names_it(catchment: Catchment, home: Path) -> None:
    catchment("keys", "add", "first")
    assert "none yet" in found(catchment, "master key")[0][1]
    assert not (home / "master-key").exists()
    assert add(catchment, "mine") == 0
    assert (home / "master-key").stat().st_mode & 0o777 == 0o600
    assert found(catchment, "master key") == [("fine", f"in {home / 'master-key'}")]
    assert found(catchment, "vault") == [("fine", "1 of 1 credentials can be decrypted")]
    assert catchment("security-audit", "--json").json["passed"]


def test_the_audit_finds_it_where_it_does_not_belong(catchment: Catchment, home: Path) -> None:
    add(catchment, "mine")
    (home / "notes.txt").write_text(f"my key: {(home / 'master-key').read_text()}")
    said = catchment("security-audit", "--json")
    assert (said.code, "master-key" in str(said.json["findings"])) == (1, True)


def test_a_key_set_later_locks_what_is_new_and_the_rest_stays_readable_until_it_goes_over(
    catchment: Catchment, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(catchment, "old")
    monkeypatch.setenv("COOKIE_MASTER_KEY", OWN)
    assert add(catchment, "new") == 0
    assert len({*key_ids(catchment)}) == 2
    ((verdict, what),) = found(catchment, "master key")
    assert (verdict, "1 secrets are still encrypted with the key in" in what) == ("odd", True)
    assert found(catchment, "vault") == [("fine", "2 of 2 credentials can be decrypted")]
    assert catchment("credentials", "rotate-key", "--json").json["resealed"] == 1
    (home / "master-key").unlink()
    assert found(catchment, "master key") == [("fine", "COOKIE_MASTER_KEY")]
    assert found(catchment, "vault") == [("fine", "2 of 2 credentials can be decrypted")]


def test_a_key_taken_away_is_missed_by_name_and_none_is_made_in_its_place(
    catchment: Catchment, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COOKIE_MASTER_KEY", OWN)
    add(catchment, "mine")
    (key_id,) = key_ids(catchment)
    monkeypatch.delenv("COOKIE_MASTER_KEY")
    said = catchment("credentials", "add", "feeds", "more", "--json", stdin=SECRET)
    assert said.failure == (7, "VAULT_ERROR")
    assert "set COOKIE_MASTER_KEY to the previous key" in said.json["error"]["message"]
    assert not (home / "master-key").exists()
    # Whoever reads a secret is not told to make a new key either: it would open nothing.
    lost = ("wrong", "there is no master key, and 1 secret is encrypted with one")
    assert found(catchment, "master key") == [lost]
    assert found(catchment, "vault")[0] == (lost[0], f"mine: {lost[1]}")
    # Beside a file, too, what it locked is missed, and the error says which key that was.
    (home / "master-key").write_text("another master key")
    (wrong,) = [what for verdict, what in found(catchment, "vault") if verdict == "wrong"]
    assert key_id in wrong


def test_the_key_in_the_folder_is_changed_with_everything_that_it_locks(catchment: Catchment, home: Path) -> None:
    add(catchment, "mine")
    catchment("webhooks", "add", "hook", "https://hooks.example/")
    (old,) = key_ids(catchment)
    before = (home / "master-key").read_text()
    changed = catchment("credentials", "rotate-key", "--json").json
    assert (changed["resealed"], key_ids(catchment)) == (2, [changed["key_id"]])
    assert (home / f"master-key.{old}").read_text() == before
    assert "," not in (home / "master-key").read_text()
    assert {path.stat().st_mode & 0o777 for path in home.glob("master-key*")} == {0o600}
    assert found(catchment, "vault") == [("fine", "1 of 1 credentials can be decrypted")]
    assert catchment("security-audit", "--json").json["passed"]


def test_an_interrupted_change_goes_on_where_it_was(catchment: Catchment, home: Path) -> None:
    add(catchment, "mine")
    file = home / "master-key"
    file.write_text(f"the new one of an interrupted change,{file.read_text()}")
    assert catchment("credentials", "rotate-key", "--json").json["resealed"] == 1
    assert file.read_text() == "the new one of an interrupted change"


def test_a_process_that_began_without_a_key_uses_the_one_that_another_made(tmp_path: Path) -> None:
    first, second = (Cipher(None, tmp_path / "home" / "master-key") for _ in range(2))
    with pytest.raises(VaultError, match="no master key"):
        _ = first.key_id
    sealed = second.seal("text")
    assert (first.open(sealed), first.key_id) == ("text", second.key_id)
