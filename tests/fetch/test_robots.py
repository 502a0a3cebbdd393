"""What a site's robots.txt asks of programs is asked for first, and kept to: at every step of the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from protego import Protego

from catchment.errors import (
    AddressRefused,
    Disallowed,
    NetworkError,
    ServerTrouble,
    SlowDown,
    TooLarge,
)
from catchment.fetch import robots
from catchment.fetch.robots import Robots
from catchment.fetch.urls import parse_url
from catchment.model import Answer, Request
from tests.fetch.surroundings import Door
from tests.hostile import Hostile, redirect, reply, reset, status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PUBLIC = "http://93.184.216.34"
"""Never reached: it is asked by way of a proxy, which is the test's own server."""
PRIVATE = b"User-agent: *\nDisallow: /private/\n"


@pytest.fixture
def obedient(new_door) -> Door:
    return as_obedient(new_door(retry_waits=()))


def as_obedient(door: Door) -> Door:
    door.platform.OBEYS_ROBOTS = True
    return door


def paths(server: Hostile) -> list[str]:
    return [seen.path for seen in server.seen]


def test_the_rules_are_asked_for_first_and_once_a_day(obedient, server):
    server.on("/robots.txt", reply(PRIVATE))
    url = server.on("/page", reply())
    for _ in range(3):
        obedient.ask(url)
    assert paths(server) == ["/robots.txt", "/page", "/page", "/page"]
    obedient.clock.advance(86_401)
    obedient.ask(url)
    assert paths(server)[4:] == ["/robots.txt", "/page"]


def test_a_platform_that_asks_an_interface_meant_for_programs_asks_for_no_rules(door, server):
    server.on("/robots.txt", reply(b"User-agent: *\nDisallow: /\n"))
    door.ask(server.on("/page", reply()))
    assert paths(server) == ["/page"]


def test_an_address_that_the_site_forbids_is_not_asked_and_said_so(obedient, server):
    server.on("/robots.txt", reply(PRIVATE))
    url = server.on("/private/page", reply())
    with pytest.raises(Disallowed, match=r"robots\.txt of 127\.0\.0\.1:\d+ asks programs to stay away") as failure:
        obedient.ask(url)
    assert (failure.value.code, failure.value.retryable) == ("DISALLOWED", False)
    assert paths(server) == ["/robots.txt"]


@pytest.mark.parametrize(
    ("rules", "is_allowed"),
    [
        (b"User-agent: catchment-test\nDisallow: /page\n", False),
        (b"User-agent: other\nDisallow: /\n", True),
        (b"User-agent: *\nDisallow: /\nAllow: /page$\n", True),
        (b"User-agent: *\nDisallow: /*age\n", False),
        (b"User-agent: *\nDisallow:\n", True),
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n", False),
        (b"<!doctype html><html><body>Welcome</body></html>", True),
        (b"\xff\xfe\x00\x01 Disallow", True),
        (b"", True),
    ],
)
def test_rules_are_meant_as_the_standard_says(obedient, server, rules, is_allowed):
    server.on("/robots.txt", reply(rules))
    url = server.on("/page", reply())
    if is_allowed:
        obedient.ask(url)
    else:
        with pytest.raises(Disallowed):
            obedient.ask(url)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410])
def test_where_there_are_no_rules_nothing_is_forbidden(obedient, server, code):
    server.on("/robots.txt", status(code))
    assert obedient.ask(server.on("/page", reply(b"yes"))).body == b"yes"


@pytest.mark.parametrize(
    ("says", "error"), [(status(503), ServerTrouble), (status(500), ServerTrouble), (reset(), NetworkError)]
)
def test_a_site_in_trouble_is_not_asked_without_its_rules(obedient, server, says, error):
    server.on("/robots.txt", says)
    url = server.on("/page", reply())
    with pytest.raises(error, match=r"its robots\.txt cannot be read") as failure:
        obedient.ask(url)
    assert failure.value.retryable
    assert paths(server) == ["/robots.txt"]


def test_a_site_that_is_well_again_is_asked(new_door, server):
    door = as_obedient(new_door())
    server.on("/robots.txt", status(503), reply(PRIVATE))
    assert door.ask(server.on("/page", reply(b"yes"))).body == b"yes"
    assert door.clock.waits == [1.0]


def test_a_site_that_asks_for_patience_gets_it(obedient, server):
    server.on("/robots.txt", status(429, retry_after="120"))
    with pytest.raises(SlowDown) as failure:
        obedient.ask(server.on("/page", reply()))
    assert failure.value.retry_at == obedient.clock.now() + timedelta(seconds=120)


def test_rules_without_end_are_not_read_to_their_end(obedient, server):
    server.on("/robots.txt", reply(b"#" * (robots.MOST_BYTES + 1)))
    with pytest.raises(TooLarge, match=r"its robots\.txt cannot be read"):
        obedient.ask(server.on("/page", reply()))


def test_rules_are_obeyed_where_a_redirect_leads(obedient, server):
    server.on("/robots.txt", reply(PRIVATE))
    server.on("/private/page", reply())
    with pytest.raises(Disallowed):
        obedient.ask(server.on("/page", redirect("/private/page")))
    assert paths(server) == ["/robots.txt", "/page"]


def test_the_rules_of_another_site_are_asked_for_when_a_redirect_leads_there(obedient, server):
    with Hostile() as other:
        other.on("/robots.txt", reply(PRIVATE))
        there = other.on("/private/page", reply())
        with pytest.raises(Disallowed):
            obedient.ask(server.on("/page", redirect(there)))
        assert (paths(server), paths(other)) == (["/robots.txt", "/page"], ["/robots.txt"])


def test_rules_that_lie_elsewhere_are_followed_there(obedient, server):
    server.on("/robots.txt", redirect("/rules.txt"))
    server.on("/rules.txt", reply(PRIVATE))
    with pytest.raises(Disallowed):
        obedient.ask(server.on("/private/page", reply()))


def test_the_guard_stands_before_the_rules_as_well(new_door, server):
    door = as_obedient(new_door(allow_private_networks=False))
    with pytest.raises(AddressRefused):
        door.ask(f"{server.url}/page")
    assert server.seen == []


def test_asking_for_the_rules_counts_as_an_attempt(obedient, server):
    server.on("/robots.txt", status(404))
    obedient.ask(server.on("/page", reply()))
    assert obedient.outcomes == ["404", "200"]


def test_the_pause_that_a_site_asks_for_lies_between_two_pages(new_door, server):
    door = as_obedient(new_door(proxy=server.url, per_host_per_second=0))
    server.on(f"{PUBLIC}/robots.txt", reply(b"User-agent: *\nCrawl-delay: 3\n"))
    server.on(f"{PUBLIC}/page", reply())
    for _ in range(3):
        door.ask(f"{PUBLIC}/page")
    assert door.clock.waits == [3.0, 3.0]


def test_a_pause_that_is_too_long_to_wait_for_ends_the_call(new_door, server):
    door = as_obedient(new_door(proxy=server.url, per_host_per_second=0))
    server.on(f"{PUBLIC}/robots.txt", reply(b"User-agent: *\nCrawl-delay: 20\n"))
    server.on(f"{PUBLIC}/page", reply())
    door.ask(f"{PUBLIC}/page")
    with pytest.raises(SlowDown, match="requires a pause") as failure:
        door.ask(f"{PUBLIC}/page")
    assert failure.value.retry_at == door.clock.now() + timedelta(seconds=20)


def test_own_machines_are_asked_without_a_pause(obedient, server):
    server.on("/robots.txt", reply(b"User-agent: *\nCrawl-delay: 20\n"))
    url = server.on("/page", reply())
    for _ in range(3):
        obedient.ask(url)
    assert obedient.clock.waits == []


# ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────────────


class Sites:
    """Sites that all have the same rules, and what was asked of them."""

    def __init__(self, rules: str) -> None:
        self.rules, self.asked = rules.encode(), list[str]()
        self.robots = Robots("catchment", timedelta(seconds=5))

    def check(self, url: str, now: datetime = NOW) -> timedelta:
        return self.robots.check(parse_url(url), now, self._answer)

    def _answer(self, request: Request) -> Answer:
        self.asked.append(request.url)
        return Answer(200, {}, self.rules, request.url, NOW)


def test_no_pause_is_longer_than_the_longest():
    sites = Sites("User-agent: *\nCrawl-delay: 86400\n")
    sites.check("https://a.example/")
    assert sites.check("https://a.example/") == timedelta(seconds=robots.LONGEST_DELAY_SECONDS)


@pytest.mark.parametrize("delay", ["0", "-3", "nan", "inf", "1e400", "soon"])
def test_a_pause_that_makes_no_sense_is_none_or_the_longest(delay):
    sites = Sites(f"User-agent: *\nCrawl-delay: {delay}\n")
    sites.check("https://a.example/")
    longest = timedelta(seconds=robots.LONGEST_DELAY_SECONDS)
    assert sites.check("https://a.example/") in (timedelta(0), longest)


def test_http_and_https_of_one_name_have_rules_of_their_own():
    sites = Sites("")
    for url in ("https://a.example/x", "http://a.example/x", "https://a.example:8443/x", "https://a.example/y"):
        sites.check(url)
    assert sites.asked == [
        "https://a.example/robots.txt",
        "http://a.example/robots.txt",
        "https://a.example:8443/robots.txt",
    ]


def test_of_many_sites_only_the_last_are_kept(monkeypatch):
    monkeypatch.setattr(robots, "MOST_SITES", 3)
    sites = Sites("")
    for number in (1, 2, 3, 4, 4, 3, 1):
        sites.check(f"https://site{number}.example/")
    assert [url[12:13] for url in sites.asked] == ["1", "2", "3", "4", "1"]


def test_a_clock_that_was_set_back_has_the_rules_asked_for_again():
    sites = Sites("")
    sites.check("https://a.example/", NOW)
    sites.check("https://a.example/", NOW - timedelta(days=365))
    assert len(sites.asked) == 2


def test_what_lies_beyond_the_part_that_is_read_is_passed_over_and_no_line_is_torn():
    rule = b"Disallow: /elsewhere/page\n"
    kept, lost = b"User-agent: *\nDisallow: /kept\n", b"Disallow: /lost\n"
    # The last line that is read in part would forbid everything, if it ended after its first slash.
    torn = robots.READ_BYTES - len(kept) - len(b"Disallow: /")
    body = kept + b"#" * (torn % len(rule) - 1) + b"\n" + rule * (torn // len(rule)) + rule + lost
    rules = Robots("catchment", timedelta(seconds=5))
    answer = Answer(200, {}, body, f"{PUBLIC}/robots.txt", NOW)
    assert len(body) < robots.MOST_BYTES

    def is_allowed(path: str) -> bool:
        try:
            rules.check(parse_url(f"{PUBLIC}{path}"), NOW, lambda request: answer)
        except Disallowed:
            return False
        return True

    assert [is_allowed(path) for path in ("/", "/kept", "/lost")] == [True, False, True]


def test_rules_for_however_many_agents_become_rules_for_two():
    agents = "".join(f"User-agent: agent-{number}\n" for number in range(5_000))
    text = robots.addressed(f"{agents}User-agent: Catchment*\nDisallow: /a\n\n{agents}Disallow: /b\n", "catchment/1.0")
    named = [line for line in text.splitlines() if line.startswith("User-agent")]
    assert set(named) == {"User-agent: us", "User-agent: them"}
    assert named.count("User-agent: us") == 1


AGENTS = ("*", "catchment", "Catchment-Test", "catch", "test", "other", "other*", "ment", "", "**")
LINES = (
    *(f"User-agent: {agent}" for agent in AGENTS),
    *("useragent: test # or so", "USER AGENT catchment", "User-agent:*", "  user-agent  :  catchment-test  "),
    *("Disallow: /a", "Disallow: /", "Allow: /a/b", "Disallow:", "Crawl-delay: 3", "Sitemap: /s", "Host: h", "", "# x"),
    *("Unknown: word", "nonsense"),
)


@pytest.mark.parametrize("user_agent", ["catchment", "catchment-test/1.0 (+https://a.example)", "Somebody/2 catchment"])
def test_rules_for_two_mean_to_us_what_the_rules_for_all_mean(user_agent):
    chance = Random(user_agent)
    for _ in range(300):
        text = "\n".join(chance.choices(LINES, k=chance.randrange(1, 14)))
        whole, ours = Protego.parse(text), Protego.parse(robots.addressed(text, user_agent))
        assert ours.crawl_delay(robots.US) == whole.crawl_delay(user_agent), text
        for path in ("/", "/a", "/a/b", "/c"):
            url = f"{PUBLIC}{path}"
            assert ours.can_fetch(url, robots.US) == whole.can_fetch(url, user_agent), (text, path)
