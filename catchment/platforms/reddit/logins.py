"""A key becomes a token: of an app with a secret by its own right, of an installed app, which has none, as a device."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any, Protocol
from urllib.parse import urlencode

from msgspec import Struct

from catchment.errors import LoginNeeded
from catchment.model import Answer, Request, Token
from catchment.platforms.reddit import requests, wire

HELPS = (
    "check client id and secret at https://www.reddit.com/prefs/apps, and store them anew: CLIENT_ID:SECRET, or "
    "CLIENT_ID: for an installed app"
)
# Reddit's own word for a device that does not want to be told from others; an id of one must have 20 characters.
DEVICE = "DO_NOT_TRACK_THIS_DEVICE"
INSTALLED = "https://oauth.reddit.com/grants/installed_client"
_USUAL_LIFE, _LONGEST_LIFE = 3600, 86_400
"""Seconds. What claims to live longer is asked for anew after a day."""
_LARGEST = 100_000
"""Bytes of an answer. A token is a line."""
# What may stand in a header.
_TOKEN = re.compile(r"[!-~]{1,8000}")


class Secret(Protocol):
    """What is needed of a credential."""

    @property
    def basic(self) -> str | None: ...


class Granted(Struct):
    access_token: Any = None
    expires_in: Any = None


def login(secret: Secret) -> Request | None:
    """None: the credential is a token already, and is sent as it is."""
    if secret.basic is None:
        return None
    _, _, password = secret.basic.partition(":")
    form = {"grant_type": "client_credentials"} if password else {"grant_type": INSTALLED, "device_id": DEVICE}
    basic = secret.basic if ":" in secret.basic else f"{secret.basic}:"
    return Request(
        f"https://{requests.SITE}/api/v1/access_token",
        "POST",
        headers={
            "Authorization": f"Basic {b64encode(basic.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        body=urlencode(form).encode(),
        step=requests.LOGIN,
        max_bytes=_LARGEST,
        is_keepable=False,
    )


def token(answer: Answer) -> Token:
    granted = _granted(answer)
    told = _bearer(granted)
    if told is None:
        raise LoginNeeded("Reddit gives no token for this key", HELPS)
    lives = wire.number(granted.expires_in) or 0
    return Token({"Authorization": f"Bearer {told}"}, min(lives, _LONGEST_LIFE) if lives > 0 else _USUAL_LIFE)


def is_token(answer: Answer) -> bool:
    return _bearer(_granted(answer)) is not None


def _granted(answer: Answer) -> Granted:
    return wire.decoded(answer.body, Granted) or Granted()


def _bearer(granted: Granted) -> str | None:
    told = wire.text(granted.access_token)
    return told if told is not None and _TOKEN.fullmatch(told) else None
