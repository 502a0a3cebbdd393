"""X by the command line, as its contract names it: keys, services, base URLs, prices and caps from the environment."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from catchment.playground.faults import FaultPlan
from catchment.playground.log import Asked, read_log
from catchment.playground.server import Playground
from catchment.playground.sites.x import user_name
from tests.cli.conftest import Catchment
from tests.clocks import HandClock
from tests.x.scene import SERVICES, START, WORLD, somebody

KEYS = {"x": "AAAAkeyOfX4711", "twitterapi_io": "new1_keyOfTwitterApi0815"}
VARIABLES = {"x": "X_BEARER_TOKEN", "twitterapi_io": "TWITTER_BEARER_TOKEN"}
NAME = f"@{user_name(WORLD, somebody('usual'), START)}"


class Hosts:
    """A host for each service."""

    def __init__(self, folder: Path) -> None:
        clock = HandClock(START + timedelta(days=1))
        self.logs = {service: folder / f"{service}.jsonl" for service in SERVICES}
        self.sites = {service: Playground(WORLD, clock, FaultPlan(), log=log) for service, log in self.logs.items()}

    def asked(self, service: str) -> list[Asked]:
        return read_log(self.logs[service]) if self.logs[service].exists() else []


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path)
    for service, site in hosts.sites.items():
        site.start()
        monkeypatch.setenv(f"CATCHMENT_{service.upper()}_BASE_URL", site.url)
        monkeypatch.delenv(VARIABLES[service], raising=False)
    monkeypatch.setenv("CATCHMENT_CLOCK", "2026-03-03T00:00:00+00:00,1")
    yield hosts
    for site in hosts.sites.values():
        site.close()


def hashed(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:12]


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("is_in_vault", [True, False], ids=["vault", "environment"])
def test_a_user_is_read_through_the_named_service_with_its_own_key(
    catchment: Catchment, hosts: Hosts, monkeypatch: pytest.MonkeyPatch, service: str, is_in_vault: bool
) -> None:
    if is_in_vault:
        assert catchment("credentials", "add", service, "mine", stdin=KEYS[service].encode()).code == 0
    else:
        monkeypatch.setenv(VARIABLES[service], KEYS[service])
    assert (
        catchment("sources", "add", "twitter_feed", NAME, "--set", f"service={service}", "--set", "limit=5").code == 0
    )
    collected = catchment("collect", "--all", "--json")
    assert collected.code == 0, collected
    other = next(name for name in SERVICES if name != service)
    assert {line.credential for line in hosts.asked(service)} == {hashed(KEYS[service])}
    assert hosts.asked(other) == []
    items = catchment("items", "--json").lines
    assert items
    assert {f"@{item['author']}" for item in items} == {NAME}
    references = [reference for item in items for reference in item["references"]]
    assert all(
        {"relation", "external_id", "text", "author", "author_display_name", "created_at", "media"} <= reference.keys()
        for reference in references
    )


def test_prices_and_caps_are_settings(catchment: Catchment, hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWITTER_BEARER_TOKEN", KEYS["twitterapi_io"])
    monkeypatch.setenv("CATCHMENT_TWITTERAPI_IO_PRICES", "item=0.001,profile=0.01")
    monkeypatch.setenv("CATCHMENT_TWITTERAPI_IO_DAILY_CAP", "0.04")
    assert catchment("sources", "add", "twitter_feed", NAME, "--set", "limit=60").code == 0
    # The profile and a page of twenty: the cap allows no second page.
    catchment("collect", "--all", "--json")
    (service,) = catchment("spending", "--json").json["services"]
    assert (service["today"]["amount"], service["today"]["cap"]) == (30_000, 40_000)
    assert [line.status for line in hosts.asked("twitterapi_io")] == [200, 200]
    shown = catchment("sources", "show", 1).out
    assert "Share of new items" not in shown
    # Whether or not there is an engine: collecting may be left to cron.
    alert = next(alert for alert in catchment("alerts", "--json").json if alert["subject"].endswith("spending"))
    assert (alert["severity"], "the daily spending cap of $0.04 is reached" in alert["message"]) == ("P0", True)
    monkeypatch.setenv("CATCHMENT_TWITTERAPI_IO_DAILY_CAP", "4")
    catchment("collect", "--all", "--json")
    assert not [alert for alert in catchment("alerts", "--json").json if alert["subject"].endswith("spending")]


def test_the_figures_of_the_adaptive_limit_are_shown(
    catchment: Catchment, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWITTER_BEARER_TOKEN", KEYS["twitterapi_io"])
    monkeypatch.setenv("SCRAPER_USERNAMES", f"{NAME},{NAME.removeprefix('@')}")
    monkeypatch.setenv("SCRAPER_LIMIT", "5")
    for _ in range(2):
        assert catchment("collect", "--all", "--json").code == 0
    shown = {
        name.strip(): value.strip()
        for name, _, value in (
            line.strip().partition("  ") for line in catchment("sources", "show", 1).out.splitlines()
        )
    }
    facts = catchment("sources", "show", 1, "--json").json["fetch_stats"]
    assert (facts["total_fetches"], facts["last_fetched_count"], facts["last_new_count"]) == (2, 20, 0)
    assert shown["Share of new items"] == f"{facts['avg_new_rate']:.0%}"
    assert shown["Empty in a row"] == f"{facts['consecutive_empty_fetches']}" == "1"
    assert shown["Requests first"] == f"{facts['next_limit']}"
