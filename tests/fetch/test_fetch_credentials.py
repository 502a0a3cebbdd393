"""With which credential a request is sent, whom what comes of it counts against, and when another one takes over."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Barrier, Thread

import pytest

from catchment.credentials.pool import Use
from catchment.credentials.secret import Secret
from catchment.errors import (
    LoginNeeded,
    Missing,
    OutOfCredits,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
)
from catchment.fetch.auth import Login, mismatch
from catchment.fetch.urls import parse_url
from catchment.logs import redact
from catchment.model import (
    Budget,
    CredentialSettings,
    FailureScope,
    Field,
    Identity,
    Refusal,
    Request,
    Token,
)
from catchment.platforms import feeds
from tests.fetch.surroundings import LoginPlatform, SomePlatform, token_reply
from tests.hostile import Behaviour, Connection, Seen, reply, status

OWN = ("127.0.0.1",)
ONE, TWO = Secret(headers={"X-Key": "key-of-one"}), Secret(headers={"X-Key": "key-of-two"})


@pytest.fixture
def pooled(door):
    """A platform with hosts of its own, and a pool of two."""
    door.platform = SomePlatform(OWN)
    door.secrets = {"one": ONE, "two": TWO}
    return door


def keys_seen(server) -> list[str | None]:
    return [seen.headers.get("x-key") for seen in server.seen]


# ── as whom ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("identity", [Identity.OPTIONAL, Identity.NEEDED])
def test_a_request_that_wants_an_identity_gets_one_of_the_pool(pooled, server, identity):
    pooled.ask(server.on("/", reply()), identity=identity)
    assert (keys_seen(server), pooled.told) == (["key-of-one"], [("one", "succeeded")])


def test_one_that_wants_none_gets_none(pooled, server):
    pooled.ask(server.on("/", reply()))
    assert (keys_seen(server), pooled.told) == ([None], [])


def test_one_that_names_its_credential_keeps_it(pooled, server):
    pooled.ask(server.on("/", reply()), identity=Identity.OPTIONAL, credential="two")
    assert keys_seen(server) == ["key-of-two"]


@pytest.mark.parametrize("hosts", [(), ("elsewhere.example",)])
def test_the_pool_is_for_the_platforms_own_hosts_and_for_no_other(pooled, server, hosts):
    pooled.platform = SomePlatform(hosts)
    pooled.ask(server.on("/", reply()), identity=Identity.OPTIONAL)
    assert keys_seen(server) == [None]


def test_without_any_what_may_go_without_does_and_what_needs_one_says_what_helps(pooled, server):
    url = server.on("/", reply())
    pooled.secrets = {}
    pooled.ask(url, identity=Identity.OPTIONAL)
    pooled.platform.CREDENTIAL_SETTINGS = CredentialSettings(
        (Field("SOME_KEY", "the key"),), headers={"X": "{SOME_KEY}"}
    )
    with pytest.raises(LoginNeeded, match="`catchment credentials add somewhere NAME`, or set SOME_KEY"):
        pooled.ask(url, identity=Identity.NEEDED)
    assert len(server.seen) == 1


# ── whom it counts against ────────────────────────────────────────────────────────────────────────────────────────


def refusing(error: type[PlatformError], blames: FailureScope) -> SomePlatform:
    return SomePlatform(OWN, refuses=lambda answer: Refusal(error("no"), blames) if answer.status != 200 else None)


@pytest.mark.parametrize(
    ("platform", "code", "told"),
    [
        (SomePlatform(OWN), 401, [("one", "LOGIN_NEEDED")]),
        (refusing(Refused, FailureScope.CREDENTIAL), 403, [("one", "REFUSED")]),
        (refusing(Refused, FailureScope.REQUEST), 403, []),
        (refusing(SlowDown, FailureScope.CREDENTIAL), 429, []),
        (SomePlatform(OWN, Budget("some", 60, 60, is_per_credential=True)), 429, []),
        (SomePlatform(OWN), 404, []),
        (SomePlatform(OWN), 500, []),
    ],
)
def test_only_what_is_its_own_fault_counts_against_a_credential(pooled, server, platform, code, told):
    pooled.platform = platform
    with pytest.raises((LoginNeeded, Refused, SlowDown, Missing, ServerTrouble)):
        pooled.ask(server.on("/", status(code)), identity=Identity.NEEDED)
    assert pooled.told == told


def test_an_error_says_that_it_is_the_credentials(pooled, server):
    with pytest.raises(LoginNeeded) as caught:
        pooled.ask(server.on("/", status(401)), identity=Identity.NEEDED)
    assert caught.value.is_credentials
    with pytest.raises(LoginNeeded) as caught:
        pooled.ask(server.on("/", status(401)))
    assert not caught.value.is_credentials


@pytest.mark.parametrize("refused", [status(401), reply(b'{"error": "invalid_grant"}')])
def test_a_login_that_is_refused_counts_and_one_that_succeeds_proves_nothing(logged_door, server, refused):
    url = server.on("/", status(401), status(401), reply())
    with pytest.raises(LoginNeeded):
        logged_door.ask(url, credential="app")
    assert logged_door.told == [("app", "LOGIN_NEEDED")]
    server.on("/login", refused)
    with pytest.raises(LoginNeeded):
        logged_door.ask(url, credential="app")
    assert logged_door.told == [("app", "LOGIN_NEEDED")] * 2


def test_a_token_that_could_be_renewed_counts_against_nobody(logged_door, server):
    url = server.on("/", reply(), status(401), reply())
    for _ in range(2):
        logged_door.ask(url, credential="app")
    assert logged_door.told == [("app", "succeeded")] * 2


# ── what a server repeats ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_secret_that_a_server_repeats_is_hidden_before_anybody_reads_or_keeps_it(logged_door, server):
    logged_door.secrets = {"app": Secret(basic="id:s3cret/of-the-app")}
    server.on("/login", token_reply("a-token-of-1234567"))
    said = b'{"you": "s3cret/of-the-app", "as": "s3cret%2Fof-the-app", "with": "a-token-of-1234567", "id": "id"}'
    answer = logged_door.ask(server.on("/", reply(said, etag='"a-token-of-1234567"')), credential="app")
    hidden = "***REDACTED***"
    assert answer.body.decode() == f'{{"you": "{hidden}", "as": "{hidden}", "with": "{hidden}", "id": "id"}}'
    assert answer.headers["etag"] == f'"{hidden}"'


def test_what_may_stand_there_by_chance_is_left_as_it_is(pooled, server):
    pooled.secrets = {"one": Secret(basic="me:sesame"), "two": Secret(cookies="lang=understandably; theme=1234")}
    url = server.on("/", reply(b"open sesame, understandably 1234"))
    for name in ("one", "two"):
        assert pooled.ask(url, credential=name).body == b"open sesame, understandably 1234"


# ── when another one takes over ───────────────────────────────────────────────────────────────────────────────────


def test_while_one_has_used_up_its_budget_the_next_one_is_asked_with(pooled, server):
    pooled.platform = SomePlatform(OWN, Budget("some", 1, 3600, is_per_credential=True))
    url = server.on("/", reply())
    for _ in range(2):
        pooled.ask(url, identity=Identity.NEEDED)
    assert keys_seen(server) == ["key-of-one", "key-of-two"]
    with pytest.raises(SlowDown) as caught:
        pooled.ask(url, identity=Identity.NEEDED)
    assert (caught.value.is_credentials, len(server.seen)) == (True, 2)


def test_one_that_is_told_to_wait_is_left_alone_and_the_next_visit_goes_with_another(pooled, server):
    pooled.platform = SomePlatform(OWN, Budget("some", 60, 60, is_per_credential=True))
    url = server.on("/", status(429, retry_after="600"), reply())
    with pytest.raises(SlowDown):
        pooled.ask(url, identity=Identity.NEEDED)
    pooled.ask(url, identity=Identity.NEEDED)
    assert keys_seen(server) == ["key-of-one", "key-of-two"]


def test_a_pause_of_the_whole_host_is_not_escaped_by_another_credential(pooled, server):
    url = server.on("/", status(429, retry_after="600"), reply())
    for _ in range(2):
        with pytest.raises(SlowDown):
            pooled.ask(url, identity=Identity.NEEDED)
    assert keys_seen(server) == ["key-of-one"]


def of_an_account(status: int = 402) -> SomePlatform:
    return SomePlatform(
        OWN,
        refuses=lambda answer: (
            Refusal(OutOfCredits("nothing left"), FailureScope.CREDENTIAL) if answer.status == status else None
        ),
    )


def test_while_the_account_of_one_has_nothing_left_the_request_goes_with_the_next_one(pooled, server):
    pooled.platform = of_an_account()
    assert pooled.ask(server.on("/", status(402), reply(b"posts")), identity=Identity.NEEDED).body == b"posts"
    assert keys_seen(server) == ["key-of-one", "key-of-two"]
    assert pooled.told == [("one", "OUT_OF_CREDITS"), ("two", "succeeded")]


def test_when_no_account_has_anything_left_each_is_asked_once_and_blamed_once(pooled, server):
    pooled.platform = of_an_account()
    with pytest.raises(OutOfCredits):
        pooled.ask(server.on("/", status(402)), identity=Identity.NEEDED)
    assert keys_seen(server) == ["key-of-one", "key-of-two"]
    assert pooled.told == [("one", "OUT_OF_CREDITS"), ("two", "OUT_OF_CREDITS")]


def test_a_request_that_names_its_credential_is_not_sent_with_the_account_of_another(pooled, server):
    pooled.platform = of_an_account()
    with pytest.raises(OutOfCredits):
        pooled.ask(server.on("/", status(402), reply()), identity=Identity.NEEDED, credential="one")
    assert keys_seen(server) == ["key-of-one"]


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_logins_of_two_credentials_do_not_wait_for_each_other(logged_door, server):
    together = Barrier(2)

    def meeting(connection: Connection, seen: Seen) -> bool:
        # Passed only by two that log in side by side.
        together.wait(600)
        answer: Behaviour = token_reply(f"token of {seen.headers['x-basic']}")
        return answer(connection, seen)

    server.on("/login", meeting)
    logged_door.secrets["other"] = Secret(basic="other:s3cret")
    url = server.on("/", reply())
    threads = [Thread(target=logged_door.ask, args=(url,), kwargs={"credential": name}) for name in ("app", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {seen.headers["authorization"] for seen in server.seen if seen.path == "/"} == {
        "Bearer token of id:s3cret",
        "Bearer token of other:s3cret",
    }


def test_a_token_that_has_taken_the_place_of_a_refused_one_is_kept(door):
    login, secret = Login(), Secret(basic="id:s3cret")
    old, new = Token({"Authorization": "Bearer old"}, 1000), Token({"Authorization": "Bearer new"}, 1000)
    login.keep(secret, old, door.clock.now())
    login.keep(secret, new, door.clock.now())
    login.forget(old)
    assert login.token_of(secret, door.clock.now()) is new
    login.forget(new)
    assert login.token_of(secret, door.clock.now()) is None


def test_a_new_secret_under_the_same_name_logs_in_anew(logged_door, server):
    url = server.on("/", reply())
    logged_door.ask(url, credential="app")
    logged_door.secrets["app"] = Secret(basic="id:another")
    logged_door.ask(url, credential="app")
    assert [seen.headers["x-basic"] for seen in server.seen if seen.path == "/login"] == ["id:s3cret", "id:another"]


def test_what_is_asked_at_login_is_the_credentials_own_budget(logged_door, server):
    platform: LoginPlatform = logged_door.platform
    platform.HOSTS, platform.BUDGET = OWN, Budget("some", 2, 3600, is_per_credential=True)
    logged_door.secrets["other"] = Secret(basic="other:s3cret")
    url = server.on("/", reply())
    logged_door.ask(Request(url, identity=Identity.NEEDED))
    logged_door.ask(Request(url, identity=Identity.NEEDED))
    assert [seen.headers.get("x-basic") for seen in server.seen] == ["id:s3cret", None, "other:s3cret", None]


def test_what_would_help_a_credential_named_for_another_host_is_a_command_that_is_not_redacted() -> None:
    use = Use("mine", Secret(), datetime(2026, 1, 31, tzinfo=UTC), "feeds", ("a.example",))
    _, helps = mismatch(use, feeds, parse_url("https://b.example:8443/feed"))
    assert redact(helps) == (
        "to let b.example:8443 have it, too: `catchment credentials change mine --host a.example --host b.example:8443`"
    )
