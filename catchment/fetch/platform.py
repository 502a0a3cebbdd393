"""What fetching needs to know of a platform, and the optional verbs that it looks up by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from catchment.model import Answer, Budget, Refusal, Request, Token
from catchment.vault.secret import Secret


class Platform(Protocol):
    NAME: str
    HOSTS: tuple[str, ...]
    BUDGET: Budget | None

    def refusal(self, answer: Answer, request: Request) -> Refusal | None: ...


Dress = Callable[[Request, Secret | None, datetime, str], Request]
"""`dress`: a platform's own way to put a credential on; gets the request, the secret, now, and a nonce."""
Login = Callable[[Secret], Request | None]
"""`login`: the request that yields a token for a secret; None: this secret needs none, it is sent as it is."""
ReadToken = Callable[[Answer], Token]
"""`token`: what that request's answer holds; raises what the platform says against it."""
