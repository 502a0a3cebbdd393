"""What a test needs to play a platform of its own: its answers, in place of the fetch client, and its declaration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from catchment.fetch.paid_calls import CallCosts
from catchment.fetch.settings import Attempt
from catchment.model import Answer, Field, PlanPart, Platform, Request, Target

DECIDING = tuple(
    Field(name, name, decides=part)
    for name, part in (
        ("sort", PlanPart.LISTING),
        ("time_filter", PlanPart.TIME_FILTER),
        ("limit", PlanPart.LIMIT),
    )
)
"""Fields of a kind that decide how its listings are walked."""


class Answering:
    """Stands where the fetch client would, and is called like it."""

    def __call__(
        self,
        request: Request,
        platform: Platform,
        *,
        subject: str,
        attempts: list[Attempt],
        costs: CallCosts | None = None,
    ) -> Answer:
        return self.answer(request, platform, attempts)

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        raise NotImplementedError

    def close(self) -> None:
        pass


def played(**declared: Any) -> Any:
    """Returns the platform that this declares: if nothing else is said, one with a host and no budget, which refuses
    nothing and takes any text as a target of its first kind."""
    name, (kind, *_) = declared["NAME"], declared["KINDS"]
    usual = {
        "HOSTS": (f"{name}.example",),
        "BUDGET": None,
        "IS_SCOPED": False,
        "PARSER_VERSION": 1,
        "understand": lambda text, _=None: Target(kind.name, text),
        "refusal": lambda answer, request: None,
    }
    return SimpleNamespace(**usual | declared)
