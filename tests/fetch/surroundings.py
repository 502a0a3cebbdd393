"""What a Fetch needs around it: a platform that has no opinion, a still clock."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

from catchment.fetch import Attempt, Fetch, FetchSettings, MemoryBudgets
from catchment.model import Answer, Ask, Budget, Kind, Progress, Reading, Refusal, Request, Source, Target
from catchment.vault.secret import Secret
from tests.clocks import HandClock


class SomePlatform:
    """A platform of which only what fetching needs does anything."""

    NAME = "somewhere"
    KINDS: tuple[Kind, ...] = ()
    IS_SCOPED = True
    READER_VERSION = 1

    def __init__(
        self,
        hosts: tuple[str, ...] = (),
        budget: Budget | None = None,
        refuses: Callable[[Answer], Refusal | None] = lambda answer: None,
    ) -> None:
        self.HOSTS, self.BUDGET, self._refuses = hosts, budget, refuses
        self.judged: list[int] = []

    def understand(self, text: str) -> Target:
        raise AssertionError("fetching asks a platform about refusals, and nothing else")

    def first(self, source: Source, progress: Progress, ask: Ask) -> list[Request]:
        raise AssertionError("fetching asks a platform about refusals, and nothing else")

    def read(self, answer: Answer, request: Request) -> Reading:
        raise AssertionError("fetching asks a platform about refusals, and nothing else")

    def refusal(self, answer: Answer, request: Request) -> Refusal | None:
        self.judged.append(answer.status)
        return self._refuses(answer)


class Door:
    """A Fetch with its surroundings, and what it did."""

    def __init__(self, **settings: Any) -> None:
        self.clock, self.stop, self.cut = HandClock(), Event(), Event()
        self.platform: Any = SomePlatform()
        self.secrets: dict[str, Secret] = {}
        self.attempts: list[Attempt] = []
        defaults = {"allow_private_networks": True, "timeout_seconds": 20.0}
        self.fetch = Fetch(
            FetchSettings("catchment-test", **{**defaults, **settings}),
            self.clock,
            stop=self.stop,
            cut=self.cut,
            budgets=MemoryBudgets(),
            secrets=lambda name: self.secrets[name],
            random=lambda: 0.0,
            nonce=lambda: "nonce",
        )

    def ask(self, request: Request | str, **fields: Any) -> Answer:
        asked = Request(request, **fields) if isinstance(request, str) else request
        return self.fetch(asked, self.platform, subject="a source (source 1)", attempts=self.attempts)

    @property
    def outcomes(self) -> list[str]:
        return [attempt.outcome for attempt in self.attempts]
