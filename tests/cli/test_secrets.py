"""Secrets go in and never come out."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite

PASSWORD, TOKEN = "sesame-open-7731", "tok-9f3a77c1e5"


@pytest.fixture
def _key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COOKIE_MASTER_KEY", "a master key for tests")


def everything(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


@pytest.mark.usefixtures("_key")
def test_a_secret_in_an_address_is_used_and_shown_nowhere(
    catchment: Catchment, site: FeedSite, home: Path, tmp_path: Path
) -> None:
    feed = site.feed("private", posts=1)
    address = feed.url.replace("http://", f"http://me:{PASSWORD}@") + f"?token={TOKEN}&page=1"
    said = [catchment("sources", "add", "rss", address, "--check", "--json")]
    assert said[0].json["target"] == f"{feed.url}?page=1"
    said.append(catchment("collect", "--json"))
    assert said[-1].json["new"] == 1
    asked = feed.asked[-1]
    assert base64.b64decode(asked.headers["authorization"].split()[1]).decode() == f"me:{PASSWORD}"
    assert TOKEN in asked.path

    feed.status = 401
    said += [catchment("collect", "--all"), catchment("collect", "--all", "--json")]
    said += [catchment("sources", "show", 1), catchment("sources", "show", 1, "--json"), catchment("sources", "list")]
    said += [catchment("status"), catchment("doctor"), catchment("credentials", "list", "--json")]
    for name in ("list.json", "list.csv", "list.opml"):
        catchment("sources", "export", tmp_path / name)
        said.append(said[0]._replace(out=(tmp_path / name).read_text()))
    said += [catchment("export", "--output", "-"), catchment("sources", "add", "rss", address, "--json")]
    assert said[-1].code == 5
    shown = "".join(output.out + output.err for output in said)
    assert PASSWORD not in shown
    assert TOKEN not in shown
    assert PASSWORD.encode() not in everything(home)
    assert TOKEN.encode() not in everything(home)


def test_without_a_master_key_one_is_made_for_a_secret_address(catchment: Catchment, home: Path) -> None:
    said = catchment("sources", "add", "rss", f"https://me:{PASSWORD}@a.example/feed", "--json")
    assert said.code == 0
    assert PASSWORD not in said.out + said.err
    assert (home / "master-key").stat().st_mode & 0o777 == 0o600
    assert PASSWORD.encode() not in everything(home)


@pytest.mark.usefixtures("_key")
def test_a_credential_is_read_from_stdin_used_by_name_and_removed_only_when_nobody_needs_it(
    catchment: Catchment, site: FeedSite
) -> None:
    feed = site.feed("private", posts=1)
    added = catchment("credentials", "add", "feeds", "mine", "--json", stdin=f"Bearer {TOKEN}\n".encode())
    assert (added.code, added.json) == (0, {"platform": "feeds", "name": "mine"})
    assert catchment("credentials", "add", "feeds", "mine", "--json", stdin=b"other-token").failure == (5, "CONFLICT")
    source = catchment("sources", "add", "rss", feed.url, "--credential", "mine", "--json").json
    assert source["credential"] == "mine"
    catchment("collect")
    assert feed.asked[-1].headers["authorization"] == f"Bearer {TOKEN}"
    assert [
        (credential["name"], credential["source_count"])
        for credential in catchment("credentials", "list", "--json").json
    ] == [("mine", 1)]
    assert catchment("credentials", "remove", "mine", "--json").failure == (5, "CONFLICT")
    assert catchment("credentials", "remove", "mine", "--force").code == 0
    assert catchment("credentials", "list", "--json").json == []


def test_a_new_key_is_the_only_thing_on_stdout(catchment: Catchment) -> None:
    first, other = catchment("credentials", "new-key"), catchment("credentials", "new-key")
    assert len(first.out.strip()) >= 40
    assert first.out != other.out
    assert "COOKIE_MASTER_KEY" in first.err


@pytest.mark.usefixtures("_key")
def test_the_doctor_tells_which_credentials_the_key_does_not_open(
    catchment: Catchment, monkeypatch: pytest.MonkeyPatch
) -> None:
    catchment("credentials", "add", "feeds", "mine", stdin=TOKEN.encode())
    assert catchment("doctor", "--json").code == 0
    monkeypatch.setenv("COOKIE_MASTER_KEY", "another master key")
    said = catchment("doctor", "--json")
    wrong = [finding for finding in said.json["findings"] if finding["verdict"] == "wrong"]
    assert (said.code, [finding["about"] for finding in wrong]) == (1, ["vault"])
    assert "mine" in wrong[0]["what"]
    monkeypatch.delenv("COOKIE_MASTER_KEY")
    assert catchment("doctor").code == 1


@pytest.mark.usefixtures("_key")
@pytest.mark.process
def test_on_a_terminal_the_secret_is_asked_for_and_not_shown(catchment: Catchment) -> None:
    leader, follower = pty.openpty()
    asking = subprocess.Popen(
        [sys.executable, "-m", "catchment", "credentials", "add", "feeds", "typed"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=follower,
        stdout=follower,
        stderr=follower,
        # Without a terminal of its own, it must take the one that it is given.
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    while b"not shown" not in shown:
        shown += os.read(leader, 1000)
    os.write(leader, f"{TOKEN}\n".encode())
    while b"is stored" not in shown:
        shown += os.read(leader, 1000)
    asking.wait()
    os.close(leader)
    assert TOKEN.encode() not in shown
    assert [credential["name"] for credential in catchment("credentials", "list", "--json").json] == ["typed"]


# ── what only looks like a secret ─────────────────────────────────────────────────────────────────────────────────

UNSURE = "hT7gQ2LmZx9Wc4Rb8NvK"
HEX = "0123456789abcdef0123456789abcdef"


def test_what_looks_like_a_secret_is_told_found_by_the_audit_and_kept_if_that_is_wanted(
    catchment: Catchment, home: Path
) -> None:
    said = catchment("sources", "add", "rss", f"https://a.example/feed?u={UNSURE}", "--json")
    assert (said.code, "--keep-secret" in said.err, UNSURE in said.json["target"]) == (0, True, True)
    audit = catchment("security-audit", "--json")
    assert (audit.code, [finding["where"] for finding in audit.json["findings"]]) == (1, ["addresses of sources"])
    assert UNSURE not in audit.out
    said = catchment("sources", "add", "rss", f"https://b.example/feed?u={UNSURE}", "--keep-secret", "--json")
    assert (said.json["target"], said.json["credential"] is None) == ("https://b.example/feed", False)
    assert UNSURE not in said.out + said.err


@pytest.mark.parametrize("address", [f"/private/{HEX}/feed.xml", f"/feed?{HEX}", "/feed;jsessionid=9F3A"])
def test_what_looks_like_a_secret_and_has_no_parameter_is_reported_by_add_import_and_audit(
    catchment: Catchment, tmp_path: Path, address: str
) -> None:
    said = catchment("sources", "add", "rss", f"https://a.example{address}", "--no-check")
    assert (said.code, "looks like a secret and stays readable" in said.err) == (0, True)
    (tmp_path / "list.json").write_text(json.dumps([{"kind": "rss", "target": f"https://b.example{address}"}]))
    said = catchment("sources", "import", str(tmp_path / "list.json"))
    assert (said.code, "looks like a secret and stays readable" in said.err) == (0, True)
    audit = catchment("security-audit", "--json")
    assert ("addresses of sources", 2) in [(finding["where"], finding["count"]) for finding in audit.json["findings"]]
    assert HEX not in audit.out


@pytest.mark.parametrize("password", ["hunter2", "sesame", "4711"])
def test_a_short_password_that_a_server_repeats_is_hidden_where_it_is_one(
    catchment: Catchment, site: FeedSite, password: str
) -> None:
    feed = site.feed("private")
    feed.post("1", text=f"you sent password={password}, and told of sesame seeds, room 4711 and shunter21")
    address = feed.url.replace("http://", f"http://me:{password}@")
    assert catchment("sources", "add", "rss", address).code == 0
    assert catchment("collect", "--all").code == 0
    (item,) = catchment("items", "--json").lines
    assert f"password={password}" not in item["text"]
    assert "sesame seeds, room 4711 and shunter21" in item["text"]
