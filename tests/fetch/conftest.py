"""A hostile server, and doors through which it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from catchment.credentials.secret import Secret
from tests.fetch.surroundings import Door, LoginPlatform, token_reply
from tests.hostile import Hostile


@pytest.fixture
def server() -> Iterator[Hostile]:
    with Hostile() as server:
        yield server


@pytest.fixture
def new_door() -> Iterator[Callable[..., Door]]:
    """Makes doors with other settings, and closes them."""
    doors: list[Door] = []

    def make(**settings: Any) -> Door:
        doors.append(Door(**settings))
        return doors[-1]

    yield make
    for door in doors:
        door.fetch.close()


@pytest.fixture
def door(new_door: Callable[..., Door]) -> Door:
    """The usual one. It may ask this machine: that is where the hostile server is."""
    return new_door()


@pytest.fixture
def logged_door(door: Door, server: Hostile) -> Door:
    """One whose platform trades a credential for a token."""
    door.secrets = {"app": Secret(basic="id:s3cret")}
    door.platform = LoginPlatform(server.on("/login", token_reply("first-token"), token_reply("second-token")))
    return door
