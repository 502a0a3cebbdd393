"""What a Fetch needs around it: a platform that has no opinion, a still clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from threading import Event
from typing import Any

from catchment.credentials.pool import CookieHost, Use
from catchment.credentials.secret import Secret
from catchment.errors import LoginNeeded, PlatformError
from catchment.fetch.client import Fetch
from catchment.fetch.settings import Attempt, FetchSettings
from catchment.fetch.urls import parse_url
from catchment.model import (
    Answer,
    Budget,
    Kind,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    Target,
    Token,
    WalkPlan,
)
from tests.clocks import HandClock
from tests.fetch.memory_budgets import MemoryBudgets
from tests.hostile import Behaviour, reply


class SomePlatform:
    """A platform of which only what fetching needs does anything."""

    NAME = "somewhere"
    KINDS: tuple[Kind, ...] = ()
    IS_SCOPED = True
    PARSER_VERSION = 1

    def __init__(
        self,
        hosts: tuple[str, ...] = (),
        budget: Budget | None = None,
        refuses: Callable[[Answer], Refusal | None] = lambda answer: None,
    ) -> None:
        self.HOSTS, self.BUDGET, self._refuses = hosts, budget, refuses
        self.judged: list[int] = []

    def understand(self, text: str, kind: str | None) -> Target:
        raise AssertionError("fetching asks a platform about refusals, and nothing else")

    def first(self, source: Source, progress: Progress, ask: WalkPlan) -> list[Request]:
        raise AssertionError("fetching asks a platform about refusals, and nothing else")

    def read(self, answer: Answer, request: Request) -> Reading:
        raise AssertionError("fetching asks a platform about refusals, and nothing else")

    def refusal(self, answer: Answer, request: Request) -> Refusal | None:
        self.judged.append(answer.status)
        return self._refuses(answer)


class LoginPlatform(SomePlatform):
    """Client id and secret yield a bearer token; a ready header is sent as it is."""

    def __init__(self, login_url: str) -> None:
        super().__init__()
        self.login_url = login_url

    def login(self, secret: Secret) -> Request | None:
        if secret.basic is None:
            return None
        return Request(self.login_url, "POST", body=b"grant_type=client_credentials", headers={"X-Basic": secret.basic})

    def token(self, answer: Answer) -> Token:
        body = json.loads(answer.body)
        if "access_token" not in body:
            raise LoginNeeded(f"the login failed: {body['error']}", "check the client id and secret")
        return Token({"Authorization": f"Bearer {body['access_token']}"}, body["expires_in"])


def token_reply(value: str) -> Behaviour:
    return reply(json.dumps({"access_token": value, "expires_in": 1000}).encode())


class Nobody:
    """A pool that has nobody in it."""

    def take(
        self, platform: str, name: str | None = None, avoid: Collection[str] = (), host: CookieHost | None = None
    ) -> None:
        return None

    def renewed(self, use: Use) -> Use:
        return use

    def succeeded(self, use: Use) -> None: ...

    def failed(self, use: Use, error: PlatformError) -> None: ...


NOBODY = Nobody()


class Door:
    """A Fetch with its surroundings, and what it did."""

    def __init__(self, **settings: Any) -> None:
        self.clock, self.stop, self.cut = HandClock(), Event(), Event()
        self.platform: Any = SomePlatform()
        self.secrets: dict[str, Secret] = {}
        self.given_for: dict[str, tuple[str, tuple[str, ...]]] = {}
        """The platform and the hosts of a credential; by default what is asked first."""
        self.told: list[tuple[str, str]] = []
        """What came of using which credential."""
        self.attempts: list[Attempt] = []
        defaults = {"allow_private_networks": True, "timeout_seconds": 20.0}
        self.fetch = Fetch(
            FetchSettings("catchment-test", **{**defaults, **settings}),
            self.clock,
            stop=self.stop,
            cut=self.cut,
            budgets=MemoryBudgets(),
            credentials=self,
            random=lambda: 0.0,
            nonce=lambda: "nonce",
        )

    # ── what a pool would do ──────────────────────────────────────────────────────────────────────────────────────

    def take(
        self, platform: str, name: str | None = None, avoid: Collection[str] = (), host: CookieHost | None = None
    ) -> Use | None:
        chosen = name or next((secret for secret in self.secrets if secret not in avoid), None)
        if chosen is None:
            return None
        given_for, hosts = self.given_for.get(chosen, (platform, (self._asked_site,)))
        return Use(chosen, self.secrets[chosen], self.clock.now(), given_for, hosts, is_pooled=name is None)

    def renewed(self, use: Use) -> Use:
        return use

    def succeeded(self, use: Use) -> None:
        self.told.append((use.name, "succeeded"))

    def failed(self, use: Use, error: PlatformError) -> None:
        self.told.append((use.name, error.code))

    def ask(self, request: Request | str, **fields: Any) -> Answer:
        asked = Request(request, **fields) if isinstance(request, str) else request
        self._asked_site = parse_url(asked.url).site
        return self.fetch(asked, self.platform, subject="a source (source 1)", attempts=self.attempts)

    @property
    def outcomes(self) -> list[str]:
        return [attempt.outcome for attempt in self.attempts]
