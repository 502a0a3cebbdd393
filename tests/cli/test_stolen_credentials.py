"""A credential is sent to the host it was given for. Whoever writes a list, or names it elsewhere, gets nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catchment.cli import context
from catchment.model import Target
from tests.cli.conftest import Catchment
from tests.feedsite import Feed, FeedSite

SECRET = "open-sesame-4711"


@pytest.fixture
def evil(site: FeedSite, home: Path, monkeypatch: pytest.MonkeyPatch) -> Feed:
    """A feed on a host that nobody gave a secret for, in a deployment that has several."""
    monkeypatch.setenv("COOKIE_MASTER_KEY", "a master key for tests")
    monkeypatch.setenv("REDDIT_CLIENT_ID", "reddit-client-id")
    monkeypatch.setenv("REDDIT_CLIENT_SECRET", SECRET)
    return site.feed("evil")


@pytest.fixture
def names(evil: Feed, catchment: Catchment) -> list[str]:
    """Credentials of all sorts: of another platform, of another host, from the environment, out of an address."""
    for platform, name, more in (
        ("feeds", "mine", ("--host", "good.example")),
        ("reddit", "pooled", ()),
        ("custom_api", "other", ("--host", "127.0.0.1")),
    ):
        said = catchment("credentials", "add", platform, name, *more, stdin=f"me:{SECRET}".encode())
        assert said.code == 0, said.err
    assert catchment("sources", "add", "rss", f"https://good.example/feed?token={SECRET}").code == 0
    found = [credential["name"] for credential in catchment("credentials", "list", "--json").json]
    assert len(found) == 5
    return found


def secrets_seen(feed: Feed) -> list[str]:
    """What of the requests that it got gives a secret away."""
    return [
        str(seen)
        for seen in feed.asked
        if SECRET in f"{seen.path}{seen.headers}" or {"authorization", "cookie"} & seen.headers.keys()
    ]


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_list_that_names_credentials_is_refused_row_by_row(
    catchment: Catchment, evil: Feed, names: list[str], format: str
) -> None:
    rows = [{"kind": "rss", "target": f"{evil.url}?{number}", "credential": name} for number, name in enumerate(names)]
    lines = ["kind,target,credential", *(",".join(row.values()) for row in rows)]
    written = json.dumps(rows) if format == "json" else "\n".join(lines)
    said = catchment("sources", "import", "-", "--json", stdin=written.encode())
    assert (said.code, said.json["added"], said.json["refused"]) == (2, 0, len(names))
    assert "--allow-credentials" in said.json["problems"][0]["reason"]


def test_even_a_list_that_may_name_credentials_sends_none_elsewhere(
    catchment: Catchment, evil: Feed, names: list[str]
) -> None:
    rows = [{"kind": "rss", "target": f"{evil.url}?{number}", "credential": name} for number, name in enumerate(names)]
    own = {"kind": "rss", "target": "https://good.example/more", "credential": "mine"}
    said = catchment("sources", "import", "-", "--allow-credentials", "--json", stdin=json.dumps([*rows, own]).encode())
    assert (said.json["added"], said.json["refused"]) == (1, len(names))
    reasons = " ".join(problem["reason"] for problem in said.json["problems"])
    assert "is for reddit, not for feeds" in reasons
    assert "is for good.example, not for 127.0.0.1" in reasons


def test_naming_one_elsewhere_is_refused_by_the_command(catchment: Catchment, evil: Feed, names: list[str]) -> None:
    for name in names:
        said = catchment("sources", "add", "rss", evil.url, "--credential", name, "--json")
        assert said.failure == (2, "INVALID_INPUT"), name
        said = catchment("sources", "add", "rss", evil.url, "--credential", name, "--check", "--json")
        assert said.failure == (2, "INVALID_INPUT"), name
    assert evil.asked == []


def test_a_source_that_names_one_all_the_same_is_asked_without_it_and_fails(
    catchment: Catchment, evil: Feed, names: list[str]
) -> None:
    evil.post("1")
    with context.opened_app("test") as app:
        for number, name in enumerate(names):
            target = Target("rss", f"{evil.url}?{number}", f"of {name}")
            app.store.sources.follow(target, "feeds", app.clock.now(), credential=name)
    results = catchment("collect", "--all", "--json").json["results"]
    errors = {
        result["name"]: (result["error"]["code"], result["error"]["message"])
        for result in results
        if "of " in result["name"]
    }
    assert {code for code, _ in errors.values()} == {"LOGIN_NEEDED"}
    assert "is for reddit, not for feeds" in errors["of reddit-environment"][1]
    assert SECRET not in str(errors)
    assert (len(errors), secrets_seen(evil), evil.asked) == (len(names), [], [])


def test_one_without_a_host_is_bound_to_the_first_that_a_person_names_it_for(
    catchment: Catchment, evil: Feed, site: FeedSite
) -> None:
    site.feed("good").post("1")
    good = f"http://localhost:{site.server.port}/good.xml"
    assert "the first source that names it" in catchment("credentials", "add", "feeds", "mine", stdin=b"me:pass").out
    # What fails its check binds nothing.
    missing = f"http://127.0.0.1:{site.server.port}/missing.xml"
    assert catchment("sources", "add", "rss", missing, "--credential", "mine", "--check", "--json").code == 3
    assert catchment("credentials", "show", "mine", "--json").json["hosts"] == []
    assert catchment("sources", "add", "rss", good, "--credential", "mine", "--check", "--json").code == 0
    assert catchment("credentials", "show", "mine", "--json").json["hosts"] == [f"localhost:{site.server.port}"]
    assert catchment("sources", "add", "rss", evil.url, "--credential", "mine", "--json").failure[0] == 2
    # Until the operator says that this host may have it, too.
    site_of_evil = f"127.0.0.1:{site.server.port}"
    said = catchment(
        *("credentials", "change", "mine", "--host", f"localhost:{site.server.port}", "--host", site_of_evil, "--json")
    )
    assert said.json["hosts"] == [f"localhost:{site.server.port}", site_of_evil]
    assert catchment("sources", "add", "rss", evil.url, "--credential", "mine", "--json").code == 0


def test_a_list_binds_no_credential_that_has_no_host_yet(catchment: Catchment, evil: Feed, site: FeedSite) -> None:
    catchment("credentials", "add", "feeds", "mine", stdin=f"me:{SECRET}".encode())
    row = json.dumps([{"kind": "rss", "target": evil.url, "credential": "mine"}]).encode()
    said = catchment("sources", "import", "-", "--allow-credentials", "--json", stdin=row)
    assert (said.code, said.json["added"]) == (2, 0)
    host = f"127.0.0.1:{site.server.port}"
    assert f"`catchment credentials change mine --host {host}`" in said.json["problems"][0]["reason"]
    assert catchment("credentials", "show", "mine", "--json").json["hosts"] == []
    # The operator may do so, and then the list is accepted.
    assert catchment("credentials", "change", "mine", "--host", host).code == 0
    assert catchment("sources", "import", "-", "--allow-credentials", "--json", stdin=row).json["added"] == 1


def test_one_given_for_https_is_not_sent_in_the_clear(catchment: Catchment, names: list[str]) -> None:
    said = catchment("sources", "add", "rss", "http://good.example/x", "--no-check", "--credential", "mine", "--json")
    assert said.failure == (2, "INVALID_INPUT")
    assert "--host http://good.example" in said.err
    change = ("credentials", "change", "mine", "--host", "http://good.example", "--json")
    assert catchment(*change).json["hosts"] == ["http://good.example"]
    for scheme in ("http", "https"):
        url = f"{scheme}://good.example/{scheme}"
        assert catchment("sources", "add", "rss", url, "--no-check", "--credential", "mine").code == 0


def test_a_list_does_not_replace_the_secret_of_a_followed_source(catchment: Catchment, names: list[str]) -> None:
    with context.opened_app("test") as app:
        before = [app.store.credentials.sealed(name) for name in names]
    row = {"kind": "rss", "target": "https://good.example/feed?token=of-a-stranger"}
    assert catchment("sources", "import", "-", "--json", stdin=json.dumps([row]).encode()).json["known"] == 1
    with context.opened_app("test") as app:
        assert [app.store.credentials.sealed(name) for name in names] == before


def test_a_platform_with_hosts_of_its_own_takes_no_other(catchment: Catchment, evil: Feed) -> None:
    said = catchment("credentials", "add", "reddit", "mine", "--host", "evil.example", "--json", stdin=b"me:pass")
    assert said.failure == (2, "INVALID_INPUT")
