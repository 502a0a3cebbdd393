"""A hostile world: every trick at once, and ten honest feeds among them, through the whole collector.

Real app, real SQLite, real HTTP. The internet is played by a server on 127.0.0.1 to which the collector is told to
turn as its proxy: so every source has a public address of its own (none of which is ever reached), and private networks
stay as closed as they are for everybody. A second round asks the same addresses without a proxy, where the guard judges
the very socket; a third one goes through the command, with private networks open, as on a developer's machine.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from catchment import logs
from catchment.app import App, open_app
from catchment.credentials.cipher import Cipher
from catchment.credentials.secret import Secret
from catchment.credentials.secret_store import SecretStore
from catchment.model import (
    Outcome,
    Source,
    Target,
    VisitResult,
    as_dict,
)
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.sources.sources import SourceRequest
from tests.hostile import Behaviour, Hostile, cut, drip, gzip_bomb, raw, redirect, reply, status

MASTER_KEY, ANOTHER_KEY = "the-master-key-of-this-test", "the-master-key-of-yesterday"
PLANTED = ("hunter2-in-the-address", "token-in-the-query-7c1d", "cookie-that-is-wrong-99", "locked-away-for-good-31")
"""Secrets that are given along, and must be seen nowhere afterwards."""
HEALTHY = 10
PATIENCE_SECONDS = 300.0
"""The healthy must not seem late, however busy the machine is."""
SHORT_SECONDS = 2.0
"""Of JSON APIs: the only one here never comes to its end."""


# ── what the world says ───────────────────────────────────────────────────────────────────────────────────────────


def rss(*items: str, title: str = "A feed", prolog: str = "") -> bytes:
    text = f'{prolog}<rss version="2.0"><channel><title>{title}</title>{"".join(items)}</channel></rss>'
    return text.encode(errors="surrogatepass")


def entry(key: object, inside: str = "") -> str:
    return f'<item><guid isPermaLink="false">{key}</guid><title>About {key}</title>{inside}</item>'


def laughs() -> bytes:
    levels = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    return rss("<item><title>&l9;</title></item>", prolog=f'<!DOCTYPE rss [<!ENTITY l0 "ha">{levels}]>')


def hostile_posts() -> bytes:
    """Malformed, and every post an attack."""
    posts = [
        entry("script", "<description>&lt;p onclick=x()&gt;hi&lt;script&gt;steal()&lt;/script&gt; & bye</description>"),
        f"<item><guid>title</guid><title>{'long ' * 20_000}</title></item>",
        entry("nul", "<description>a\0b&#0;c</description>"),
        entry("half", "<description>a\udc80&#xd800;b</description>"),
        entry("large", f"<description>{'word ' * 1_000_000}</description>"),
        *(entry(number) for number in range(10_000)),
    ]
    return rss(*posts)


def not_yet(*then: Behaviour) -> tuple[Behaviour, ...]:
    """A good feed once, for the round before; then what the world has in store."""
    return reply(rss(entry("before"))), *then


class Case(NamedTuple):
    """One trick: what is followed, what the server does, and what must come of it."""

    name: str
    behaviours: tuple[Behaviour, ...] = ()
    code: str | None = None
    """Of the error; None: it succeeds all the same."""
    retryable: bool = False
    says: str = ""
    """Words of the error."""
    target: str = "{host}/feed"
    kind: str = "rss"
    visits_before: int = 0


def at(address: str) -> dict[str, Any]:
    return {"target": address, "code": "ADDRESS_REFUSED"}


ADDRESSES = (
    Case("localhost", **at("http://localhost:8700/api"), says="loopback"),
    Case("decimal", **at("http://2130706433/"), says="loopback"),
    Case("hex", **at("http://0x7f000001/"), says="loopback"),
    Case("octal", **at("http://0177.0.0.1/"), says="loopback"),
    Case("short", **at("http://127.1/"), says="loopback"),
    Case("ipv6", **at("http://[::1]:8700/"), says="loopback"),
    Case("mapped", **at("http://[::ffff:169.254.169.254]/"), says="metadata"),
    Case("private", **at("http://10.0.0.1/feed"), says="private"),
    Case("metadata", **at("http://169.254.169.254/latest/meta-data"), says="metadata"),
    Case("file", **at("file:///etc/passwd"), says="only http"),
)
"""Refused before anybody is asked."""


def cases(host: Callable[[str], str]) -> list[Case]:
    return [
        *ADDRESSES,
        Case("bomb", (gzip_bomb(1_000_000_000),), "TOO_LARGE", says="larger than"),
        Case("nested", (reply(b"<rss><channel>" + b"<a>" * 1_000_000),), "TOO_COMPLEX", says="tags and attributes"),
        Case("laughs", (reply(laughs()),)),
        Case("entity", (reply(rss(entry("x", "<description>[&x;]</description>"), prolog=FILE_ENTITY)),)),
        Case("circle", (redirect("/feed"),), "ADDRESS_REFUSED", says="in a loop"),
        Case("chain", (redirect("/1"),), "ADDRESS_REFUSED", says="more than 8 redirects"),
        Case("to-metadata", (redirect("http://169.254.169.254/latest"),), "ADDRESS_REFUSED", says="metadata"),
        Case("to-loopback", (redirect("http://[::1]:8700/api"),), "ADDRESS_REFUSED", says="loopback"),
        Case("to-name", (redirect("http://localhost:8700/"),), "ADDRESS_REFUSED", says="loopback"),
        Case("to-file", (redirect("file:///etc/passwd"),), "ADDRESS_REFUSED", says="only http"),
        Case("to-nonsense", (redirect("http://["),), "ADDRESS_REFUSED", says="invalid address"),
        Case(
            "page-now",
            not_yet(reply(b"<!doctype html><title>We have moved</title>", content_type="text/html")),
            "UNREADABLE",
            says="an HTML page was returned instead of a feed",
            visits_before=1,
        ),
        Case("drip", (drip(1.0),), "TIMEOUT_ERROR", True, "did not answer in time", kind="custom_api"),
        Case("cut", (cut(rss(entry(1)), 5000),), "NETWORK_ERROR", True, "only part"),
        Case("garbage", (raw(b"\0\1\2 no http at all"),), "UNREADABLE", says="is not HTTP"),
        Case("charset", (reply(CHINESE.encode("gbk"), content_type="text/xml; charset=utf-8"),)),
        Case("not-gzip", (reply(rss(entry(1)), content_encoding="gzip"),), "UNREADABLE", says="claims to be gzip"),
        Case("half-gzip", (reply(gzip.compress(laughs())[:-9], content_encoding="gzip"),), "NETWORK_ERROR", True),
        Case("empty", (reply(b""),), "UNREADABLE", says="the answer is empty"),
        Case("posts", (reply(hostile_posts()),)),
        Case("stay-away", (status(429, retry_after="99999999999"),), "SLOW_DOWN", True, "too many requests"),
        Case(
            "secret",
            (redirect(f"/{PLANTED[1]}/login?u={PLANTED[0]}", 301),),
            "MISSING",
            says="there is nothing at this address",
            target=f"{host('secret').replace('//', f'//me:{PLANTED[0]}@')}/feed?page=1&token={PLANTED[1]}",
        ),
    ]


FILE_ENTITY = '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
WEATHER = "今天天气很好，我们去公园。"
CHINESE = rss(entry(1, f"<description>{WEATHER}</description>")).decode()


class World:
    """The internet, as a proxy on 127.0.0.1 shows it. Hosts are numbers that are public and asked by nobody."""

    def __init__(self, server: Hostile) -> None:
        self.server = server
        self._hosts: dict[str, str] = {}

    def host(self, name: str) -> str:
        return self._hosts.setdefault(name, f"http://93.184.216.{1 + len(self._hosts)}")

    def says(self, name: str, *behaviours: Behaviour) -> str:
        return self.server.on(f"{self.host(name)}/feed", *behaviours).removeprefix(self.server.url)

    def publish(self, number: int, posts: int) -> None:
        self.says(f"healthy-{number}", reply(rss(*(entry(f"{number}-{post}") for post in range(posts)))))


@pytest.fixture
def world() -> Iterator[World]:
    with Hostile() as server:
        yield World(server)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, to the last detail."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:], root.level
    logs.configure("json", "debug", stream)
    yield stream
    root.handlers[:], root.level = before


def settings(home: Path, **more: Any) -> Settings:
    return Settings(
        home=home,
        master_key=MASTER_KEY,
        timeout_seconds=PATIENCE_SECONDS,
        platform_timeouts={"custom_api": SHORT_SECONDS},
        retry_waits=(),
        concurrency=5,
        **more,
    )


class Following:
    """An app and its sources, by the names of the cases."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.sources: dict[str, Source] = {}

    def add(self, name: str, address: str, credential: str | None = None, kind: str = "rss") -> None:
        app, now = self.app, self.app.clock.now()
        if not address.startswith("http"):
            self.smuggle(name, "rss", address)
            return
        source, _ = follow(
            app.store, app.secrets, app.platforms, kind, address, now, name=f"the {name} one", credential=credential
        )
        self.sources[name] = source

    def smuggle(self, name: str, kind: str, address: str) -> None:
        """A source that no door would let in: from an older version, or somebody else's hand in the table."""
        store, now = self.app.store, self.app.clock.now()
        wanted = SourceRequest(Target(kind, address), "feeds", name=f"the {name} one")
        ((source_id, _),) = store.sources.follow_many([wanted], now)
        self.sources[name] = store.sources.get(source_id)

    def collect(self, *names: str) -> dict[str, VisitResult]:
        ids = [self.sources[name].id for name in names or self.sources]
        by_id = {result.source_id: result for result in self.app.scheduler().these(ids, "test", "test")}
        return {name: by_id[source.id] for name, source in self.sources.items() if source.id in by_id}

    def items(self, name: str) -> list[dict[str, Any]]:
        return self.app.store.items.newest(20_000, source_id=self.sources[name].id)

    def last_errors(self) -> dict[str, tuple[str | None, str | None]]:
        """What the database says about each source."""
        progress = {name: self.app.store.sources.with_progress(source.id)[1] for name, source in self.sources.items()}
        return {name: (state.last_error_code, state.last_error) for name, state in progress.items()}

    def held(self) -> int:
        row = self.app.store.database.read(lambda tx: tx.one("SELECT count(*) FROM leases WHERE owner_id IS NOT NULL"))
        assert row is not None
        return int(row[0])


@pytest.fixture
def following(world: World, tmp_path: Path) -> Iterator[Following]:
    with open_app(settings(tmp_path, proxy=world.server.url), "test", may_migrate=True) as app:
        yield Following(app)


def follow_the_world(following: Following, world: World, tricks: list[Case]) -> None:
    for number in range(HEALTHY):
        world.publish(number, posts=3 + number)
        following.add(f"healthy-{number}", f"{world.host(f'healthy-{number}')}/feed")
    for trick in tricks:
        if trick.behaviours:
            world.says(trick.name, *trick.behaviours)
        following.add(trick.name, trick.target.format(host=world.host(trick.name)), kind=trick.kind)
    for number in range(12):
        world.server.on(f"{world.host('chain')}/{number}", redirect(f"/{number + 1}"))
    following.smuggle("unknown-kind", "martian_mail", "mars/1")
    lend_wrong_credentials(following, world)


def lend_wrong_credentials(following: Following, world: World) -> None:
    app, now = following.app, following.app.clock.now()
    app.secrets.add("feeds", "refused", Secret(cookies=f"session={PLANTED[2]}"), now)
    SecretStore(app.store.credentials, Cipher(ANOTHER_KEY)).add(
        "feeds", "locked", Secret(basic=f"me:{PLANTED[3]}"), now
    )
    world.says("wrong-cookie", status(401))
    following.add("wrong-cookie", f"{world.host('wrong-cookie')}/feed", credential="refused")
    world.says("wrong-key", reply(rss(entry(1))))
    following.add("wrong-key", f"{world.host('wrong-key')}/feed", credential="locked")


WRONG_CREDENTIALS = [
    Case("wrong-cookie", code="LOGIN_NEEDED", says="add or renew the credential"),
    Case("wrong-key", code="VAULT_ERROR", says="COOKIE_MASTER_KEY"),
]


# ── the rounds ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_trick_ends_with_its_error_and_the_honest_feeds_go_on(
    following: Following, world: World, log: io.StringIO, tmp_path: Path
) -> None:
    tricks = cases(world.host)
    follow_the_world(following, world, tricks)
    following.collect(*(trick.name for trick in tricks if trick.visits_before))

    results = following.collect()

    expected = [*tricks, *WRONG_CREDENTIALS]
    assert outcomes(results) == {
        **{f"healthy-{number}": (Outcome.SUCCEEDED, None, None) for number in range(HEALTHY)},
        **{trick.name: outcome_of(trick) for trick in expected},
        "unknown-kind": (Outcome.SKIPPED, None, None),
    }
    for trick in expected:
        check_words(results[trick.name], following.sources[trick.name], trick)
    assert following.last_errors() == {name: (result.error_code, result.error) for name, result in results.items()}
    assert "martian_mail" in results["unknown-kind"].notes[0]
    assert [len(following.items(f"healthy-{number}")) for number in range(HEALTHY)] == list(range(3, 3 + HEALTHY))
    check_survivors(following)
    assert following.held() == 0
    check_waits(following)
    check_next_round(following, world, results)
    following.app.close()
    check_no_secret_is_anywhere(tmp_path, log)


def outcome_of(trick: Case) -> tuple[Outcome, str | None, bool | None]:
    return (Outcome.FAILED, trick.code, trick.retryable) if trick.code else (Outcome.SUCCEEDED, None, None)


def outcomes(results: dict[str, VisitResult]) -> dict[str, tuple[Outcome, str | None, bool | None]]:
    return {name: (result.outcome, result.error_code, result.is_retryable) for name, result in results.items()}


def check_words(result: VisitResult, source: Source, trick: Case) -> None:
    """An error names the source, what happened and what helps, and nothing of our inside."""
    if trick.code is None:
        assert result.error is None
        return
    words = result.error or ""
    assert words.startswith(f"the {trick.name} one (source {source.id}): ")
    assert trick.says in words
    what, dash, helps = words.partition(" — ")
    assert (bool(what), dash, bool(helps)) == (True, " — ", True)
    assert not any(inside in words for inside in ("Traceback", "Error(", 'File "', " at 0x", "pycurl", *PLANTED))
    assert len(words) < 500


def check_survivors(following: Following) -> None:
    """What succeeded in spite of it all has what an honest reader would see, and nothing else."""
    (laughing,) = following.items("laughs")
    assert laughing.title == "&l9;"
    (opened,) = following.items("entity")
    assert opened.text == "[&x;]"
    (chinese,) = following.items("charset")
    assert chinese.text == WEATHER
    posts = {item.external_id: as_dict(item) for item in following.items("posts")}
    assert len(posts) == 10_005
    assert (posts["script"]["html"], posts["script"]["text"]) == ("<p>hi &amp; bye</p>", "hi & bye")
    assert len(posts["title"]["title"]) < 2_001
    assert [posts[key]["text"] for key in ("nul", "half")] == ["abc", "a\ufffd\ufffd\ufffdb"]
    assert len(posts["large"]["text"]) in (999_999, 1_000_000)


def check_waits(following: Following) -> None:
    """However long a server asks to be left alone, it is asked again tomorrow."""
    progress = following.app.store.sources.with_progress(following.sources["stay-away"].id)[1]
    assert progress.next_due_at is not None
    assert timedelta(hours=23) < progress.next_due_at - following.app.clock.now() <= timedelta(days=1)
    assert progress.failures_in_a_row == 0


def check_next_round(following: Following, world: World, before: dict[str, VisitResult]) -> None:
    """As if nothing had happened: one more post each, and the same errors."""
    for number in range(HEALTHY):
        world.publish(number, posts=4 + number)
    results = following.collect()
    assert [results[f"healthy-{number}"].counts.new for number in range(HEALTHY)] == [1] * HEALTHY
    assert {name: result.error_code for name, result in results.items()} == {
        name: result.error_code for name, result in before.items()
    }
    assert following.held() == 0


def check_no_secret_is_anywhere(home: Path, log: io.StringIO) -> None:
    told = log.getvalue()
    assert "source failed" in told
    assert "Traceback" not in told
    assert not any(secret in told for secret in (*PLANTED, MASTER_KEY, ANOTHER_KEY))
    check_no_secret_is_in_a_file(home)


def check_no_secret_is_in_a_file(home: Path) -> None:
    for file in filter(Path.is_file, home.rglob("*")):
        stored = file.read_bytes()
        found = [secret for secret in (*PLANTED, MASTER_KEY, ANOTHER_KEY) if secret.encode() in stored]
        assert found == [], file.name


def test_without_a_proxy_the_guard_judges_the_very_address(tmp_path: Path) -> None:
    with Hostile() as server, open_app(settings(tmp_path), "test", may_migrate=True) as app:
        following = Following(app)
        server.on("/feed", reply(rss(entry(1))))
        own = [f"http://{host}:{server.port}/feed" for host in ("127.0.0.1", "localhost", "2130706433", "0x7f000001")]
        tricks = [*ADDRESSES, *(Case(f"own-{number}", **at(address)) for number, address in enumerate(own))]
        for trick in tricks:
            following.add(trick.name, trick.target)
        results = following.collect()
        assert outcomes(results) == {trick.name: outcome_of(trick) for trick in tricks}
        assert (server.connections, following.held()) == (0, 0)
        for trick in tricks:
            check_words(results[trick.name], following.sources[trick.name], trick)


# ── the same through the command, with private networks open ──────────────────────────────────────────────────────


class Said(NamedTuple):
    code: int
    out: str
    err: str
    peak_mb: float


def command(home: Path, *arguments: str) -> Said:
    """The real command in a process of its own, and how much memory that took at most."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("CATCHMENT_", "COLLECTOR_"))},
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "CATCHMENT_HOME": str(home),
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "true",
        "CATCHMENT_TIMEOUT_SECONDS": str(PATIENCE_SECONDS),
        "CUSTOM_API_REQUEST_TIMEOUT_SECONDS": str(SHORT_SECONDS),
        "CATCHMENT_RETRY_WAITS": "none",
        "CATCHMENT_HOST_REQUESTS_PER_SECOND": "0",
        "COOKIE_MASTER_KEY": MASTER_KEY,
    }
    with (home / "out").open("w+") as out, (home / "err").open("w+") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "catchment", *arguments], env=environ, cwd=home, stdout=out, stderr=err
        )
        _, ended, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
        out.seek(0)
        err.seek(0)
        return Said(process.returncode, out.read(), err.read(), used.ru_maxrss / 1024)


@pytest.mark.process
def test_the_command_survives_it_too_and_stays_small(tmp_path: Path) -> None:
    tricks: dict[str, tuple[Behaviour, str | None]] = {
        "bomb": (gzip_bomb(1_000_000_000), "TOO_LARGE"),
        "nested": (reply(b"<rss><channel>" + b"<a>" * 1_000_000), "TOO_COMPLEX"),
        "laughs": (reply(laughs()), None),
        "posts": (reply(hostile_posts()), None),
        "metadata": (redirect("http://169.254.169.254/latest"), "ADDRESS_REFUSED"),
        "drip": (drip(1.0), "TIMEOUT_ERROR"),
        "noise": (reply(b"<rss>" + random.Random(1).randbytes(5_000_000)), "UNREADABLE"),
        "comments": (reply(b"<!---->" * 500 + b"x"), "UNREADABLE"),
        f"secret?token={PLANTED[1]}": (status(403), "REFUSED"),
        **{f"healthy-{number}": (reply(rss(entry(number))), None) for number in range(HEALTHY)},
    }
    codes = {name.partition("?")[0]: code for name, (_, code) in tricks.items()}
    failed = sum(code is not None for code in codes.values())
    with Hostile() as server:
        for name, (behaviour, _) in tricks.items():
            server.on(f"/{name.partition('?')[0]}", behaviour)
        kinds = {"drip": "custom_api"}
        rows = [f"{name.partition('?')[0]},{kinds.get(name, 'rss')},{server.url}/{name}" for name in tricks]
        (tmp_path / "list.csv").write_text("\n".join(["name,kind,target", *rows]))
        small = command(tmp_path, "sources", "import", "list.csv", "--json")
        (tmp_path / "list.csv").unlink()
        said, again = (command(tmp_path, "collect", "--all", "--json") for _ in range(2))
    told = json.loads(said.out)
    assert {result["name"]: (result["error"] or {}).get("code") for result in told["results"]} == codes
    assert (said.code, told["failed"], told["succeeded"], told["skipped"]) == (3, failed, len(codes) - failed, 0)
    assert said.peak_mb - small.peak_mb < 300, f"{small.peak_mb:.0f} MB for a list, {said.peak_mb:.0f} MB for the world"
    told = json.loads(again.out)
    assert (told["failed"], told["succeeded"], told["new"]) == (failed, len(codes) - failed, 0)
    for text in (small.out, small.err, said.out, said.err, again.out, again.err):
        assert not any(word in text for word in ("Traceback", *PLANTED, MASTER_KEY))
    check_no_secret_is_in_a_file(tmp_path)
