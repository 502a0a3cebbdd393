"""A platform that is reached through services: each has hosts, credentials, a budget and cooldowns of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.collect.reparse import Reparsed
from catchment.credentials.secret import Secret
from catchment.errors import InvalidInput, SlowDown
from catchment.fetch.settings import Attempt
from catchment.model import (
    Answer,
    Budget,
    CredentialSettings,
    FailureScope,
    Field,
    Identity,
    Item,
    Kind,
    Listing,
    Order,
    Outcome,
    Platform,
    Progress,
    Reading,
    Refusal,
    Request,
    Service,
    Source,
    WalkPlan,
)
from catchment.platforms import Platforms, protocol_faults
from catchment.settings import Settings
from catchment.sources.add import change, follow
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.collect.test_reparse import reparse
from tests.databases import sqlite_ready
from tests.hostile import Hostile, reply
from tests.playing import Answering, played
from tests.town import TownApp

NORTH, SOUTH = "north", "south"


def _service(name: str) -> Service:
    return Service(
        name,
        (f"{name}.example",),
        Budget(name, 100, 60, is_per_credential=True),
        CredentialSettings((Field(f"{name.upper()}_KEY", "Its key."),), headers={"X-Key": f"{{{name.upper()}_KEY}}"}),
    )


def _first(source: Source, progress: Progress, plan: WalkPlan) -> list[Request]:
    service = source.settings.get("service") or next(name for name in (NORTH, SOUTH) if name in plan.keyed)
    return [Request(f"https://{service}.example/{source.target}", service=service, identity=Identity.NEEDED)]


def bridge() -> Any:
    """A platform with two services."""
    return played(
        NAME="bridge",
        KINDS=(
            Kind(
                "bridge",
                "A bridge",
                60,
                "old",
                (Listing("new", Order.NEWEST_FIRST),),
                (Field("service", "Through what", choices=(NORTH, SOUTH)),),
            ),
        ),
        HOSTS=("north.example", "south.example"),
        SERVICES=(_service(NORTH), _service(SOUTH)),
        first=_first,
        read=lambda answer, request: Reading((Item(f"{answer.body.decode()} {request.service}", text="said"),)),
        refusal=_refusal,
    )


def _refusal(answer: Answer, request: Request) -> Refusal | None:
    if answer.body != b"slow":
        return None
    later = answer.answered_at + timedelta(hours=1)
    return Refusal(SlowDown("too many", "later", retry_at=later), blames=FailureScope.CREDENTIAL)


def _add_key(app: App, service: str, secret: str) -> None:
    terms = Terms(is_shared=True)
    app.secrets.add(service, f"key-{service}", Secret(headers={"X-Key": secret}), app.clock.now(), terms=terms)


@pytest.fixture
def sites() -> Iterator[dict[str, Hostile]]:
    with Hostile() as north, Hostile() as south:
        yield {NORTH: north, SOUTH: south}


OpenApp = Callable[..., App]


@pytest.fixture
def opened(tmp_path: Path, sites: dict[str, Hostile]) -> Iterator[OpenApp]:
    apps: list[App] = []

    def open_it(**declared: str) -> App:
        settings = Settings(
            home=tmp_path,
            database_url=sqlite_ready(f"sqlite:///{tmp_path / 'catchment.db'}"),
            base_urls={name: site.on("/").rstrip("/") for name, site in sites.items()},
            declared=declared,
        )
        apps.append(open_app(settings, "test", clock=HandClock(), platforms=Platforms((bridge(),))))
        return apps[-1]

    yield open_it
    for app in apps:
        app.close()


def _follow(app: App, target: str, **more: Any) -> Source:
    return follow(app.store, app.secrets, app.platforms, "bridge", target, app.clock.now(), **more)[0]


def _collect(app: App, source: Source) -> list[Outcome]:
    return [result.outcome for result in app.scheduler().these([source.id], "test", "test")]


def test_each_service_gets_its_own_key_and_no_other(opened: OpenApp, sites: dict[str, Hostile]) -> None:
    app = opened(NORTH_KEY="northern secret", SOUTH_KEY="southern secret")
    for name, site in sites.items():
        site.on(f"/{name}", reply(name.encode()))
        source = _follow(app, name, settings={"service": name})
        assert _collect(app, source) == [Outcome.SUCCEEDED]
    keys = {name: {seen.headers["x-key"] for seen in site.seen} for name, site in sites.items()}
    assert keys == {NORTH: {"northern secret"}, SOUTH: {"southern secret"}}


def test_a_source_that_names_no_service_uses_the_one_that_has_a_key(opened: OpenApp, sites: dict[str, Hostile]) -> None:
    app = opened(SOUTH_KEY="southern secret")
    sites[SOUTH].on("/old", reply(b"1"))
    assert _collect(app, _follow(app, "old")) == [Outcome.SUCCEEDED]
    assert not sites[NORTH].seen


def test_a_credential_that_a_source_names_decides_its_service(opened: OpenApp, sites: dict[str, Hostile]) -> None:
    app = opened(SOUTH_KEY="southern secret")
    _add_key(app, NORTH, "another secret")
    source = _follow(app, "old", credential="key-north")
    assert source.settings == {"service": NORTH}
    sites[NORTH].on("/old", reply(b"1"))
    assert _collect(app, source) == [Outcome.SUCCEEDED]
    assert [seen.headers["x-key"] for seen in sites[NORTH].seen] == ["another secret"]
    with pytest.raises(InvalidInput, match="is for north, and the source is read through south"):
        change(app.store, app.secrets, app.platforms, source.id, app.clock.now(), settings={"service": SOUTH})


def test_a_service_that_asks_to_wait_leaves_the_other_one_alone(opened: OpenApp, sites: dict[str, Hostile]) -> None:
    app = opened(NORTH_KEY="northern secret", SOUTH_KEY="southern secret")
    sites[NORTH].on("/old", reply(b"slow"))
    sites[SOUTH].on("/new", reply(b"1"))
    assert _collect(app, _follow(app, "old", settings={"service": NORTH})) == [Outcome.FAILED]
    assert app.visitor().kinds_in_cooldown() == {}
    assert _collect(app, _follow(app, "new", settings={"service": SOUTH})) == [Outcome.SUCCEEDED]
    sites[SOUTH].on("/newer", reply(b"slow"))
    assert _collect(app, _follow(app, "newer", settings={"service": SOUTH})) == [Outcome.FAILED]
    assert set(app.visitor().kinds_in_cooldown()) == {"bridge"}


def test_services_have_budgets_and_credentials_of_their_own(opened: OpenApp) -> None:
    app = opened(NORTH_KEY="northern secret")
    assert {name: budget.name for name, budget in app.budgets().items()} == {NORTH: NORTH, SOUTH: SOUTH}
    assert app.credential_manager.platforms() == {NORTH}
    with pytest.raises(InvalidInput, match="unknown platform 'bridge'"):
        app.platforms.service("bridge")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"HOSTS": ("north.example",)}, "HOSTS are not the hosts of its services"),
        ({"BUDGET": Budget("bridge", 1, 1)}, "its services have the budgets: BUDGET must be None"),
        ({"SERVICES": (_service(NORTH), _service(NORTH))}, "its services need different names"),
        (
            {"SERVICES": (_service(NORTH), _service(SOUTH).replace(hosts=("south.example", "north.example")))},
            "two services share a host: a credential of the one would be sent to the other",
        ),
    ],
)
def test_services_that_could_mix_up_credentials_are_a_fault(changes: dict[str, Any], fault: str) -> None:
    module = bridge()
    vars(module).update(changes)
    assert fault in protocol_faults(module)
    assert protocol_faults(bridge()) == []


class _Site(Answering):
    """Answers for the town, and notes whom each request was for."""

    def __init__(self, here: TownApp) -> None:
        self.here, self.asked = here, list[str]()
        here.play(self, bridge())

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        self.asked.append(platform.NAME)
        return Answer(200, {}, b"1", request.url, self.here.clock.now())


def test_a_kept_answer_is_parsed_again_as_that_of_its_service(quick: TownApp) -> None:
    site = _Site(quick)
    source = _follow(quick.app, "old", settings={"service": SOUTH})
    quick.collect(source)
    assert site.asked == [SOUTH]
    assert reparse(quick, again=True) == Reparsed(1)
    assert [item["external_id"] for item in quick.items()] == ["1 south"]
