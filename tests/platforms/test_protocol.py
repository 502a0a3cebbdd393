"""What a platform module must have is checked when it is loaded: what is missing, misspelt or wrong is named."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from catchment import platforms
from catchment.errors import CatchmentError
from catchment.model import Budget, Field, Forum, Kind, Listing, Order, PlanPart
from catchment.platforms import feeds, installed, protocol_faults

NEW, TOP = Listing("new", Order.NEWEST_FIRST), Listing("top", Order.RANKED)
KIND = Kind("wall", "A wall", 60, "wall:x", (NEW, TOP))
SOUND = """
def understand(text, kind): ...
def first(source, progress, plan): ...
def read(answer, request): ...
def refusal(answer, request): ...
def _helper(): ...
"""


@pytest.fixture
def wall() -> Iterator[ModuleType]:
    module = ModuleType("wall")
    sys.modules["wall"] = module
    vars(module).update(NAME="wall", KINDS=(KIND,), HOSTS=(), BUDGET=None, IS_SCOPED=False, PARSER_VERSION=1)
    exec(SOUND, vars(module))
    yield module
    del sys.modules["wall"]


def with_field(**more: Any) -> tuple[Kind, ...]:
    return (KIND.replace(fields=(Field("sort", "Which", **more),)),)


def test_all_installed_platforms_follow_the_protocol() -> None:
    assert {platform.NAME: protocol_faults(platform) for platform in installed()} == {  # type: ignore[arg-type]
        name: [] for name in installed().by_name
    }


def test_a_sound_module_has_no_faults(wall: ModuleType) -> None:
    assert protocol_faults(wall) == []


@pytest.mark.parametrize(
    ("code", "faults"),
    [
        ("del read, NAME", ["it has no NAME", "it has no read"]),
        ("def rechek(rechecks): ...", ["the protocol has no rechek (did you mean recheck?)"]),
        ("def accept(answer, request): ...", ["the protocol has no accept (did you mean accepts?)"]),
        ("def parse_note(raw): ...", ["the protocol has no parse_note: helpers begin with an underscore"]),
        ("OBEY_ROBOTS = True", ["the protocol has no OBEY_ROBOTS (did you mean OBEYS_ROBOTS?)"]),
        ("def recheck(): ...", ["recheck does not take (rechecks)"]),
        ("def understand(text): ...", ["understand does not take (text, kind)"]),
        ("def read(answer): ...", ["read does not take (answer, request)"]),
        ("def dress(request, secret): ...", ["dress does not take (request, secret, now, nonce)"]),
        ("accepts = True", ["accepts does not take (answer, request)"]),
        ("PARSER_VERSION = '1'", ["PARSER_VERSION is not of the type <class 'int'>"]),
        ("HOSTS = ['wall.example']", ["HOSTS is not of the type tuple[str, ...]"]),
        ("PROBE = 'https://wall.example/'", ["PROBE is not of the type <class 'catchment.model.protocol.Request'>"]),
        ("def login(secret): ...", ["login and token go together: it has one of them"]),
    ],
)
def test_a_fault_is_named(wall: ModuleType, code: str, faults: list[str]) -> None:
    exec(code, vars(wall))
    assert protocol_faults(wall) == faults


@pytest.mark.parametrize(
    ("kinds", "fault"),
    [
        ((KIND.replace(listings=()),), "it needs listings, each with a name of its own"),
        ((KIND.replace(listings=(NEW, NEW)),), "it needs listings, each with a name of its own"),
        ((KIND.replace(newest="top"),), "newest='top' is not the name of a newest-first listing"),
        ((KIND.replace(newest="newest"),), "newest='newest' is not the name of a newest-first listing"),
        (
            (KIND.replace(forum=Forum(stream="top")),),
            "stream='top' is not the name of a newest-first listing after the first",
        ),
        (
            (KIND.replace(forum=Forum(stream="new")),),
            "stream='new' is not the name of a newest-first listing after the first",
        ),
        ((KIND.replace(recheck_ages=(timedelta(hours=1),)),), "it has recheck_ages, and the module has no recheck"),
        (with_field(decides=PlanPart.LISTING), "the choices of sort are not names of its listings"),
        (with_field(choices=("hot",), decides=PlanPart.LISTING), "the choices of sort are not names of its listings"),
        (
            (KIND.replace(fields=(Field("a", "A", decides=PlanPart.LIMIT), Field("b", "B", decides=PlanPart.LIMIT))),),
            "several settings decide the limit: a, b",
        ),
    ],
)
def test_a_fault_of_a_kind_is_named(wall: ModuleType, kinds: tuple[Kind, ...], fault: str) -> None:
    vars(wall)["KINDS"] = kinds
    assert protocol_faults(wall) == [f"kind wall: {fault}"]


def test_what_is_optional_may_be_there_in_its_right_form(wall: ModuleType) -> None:
    vars(wall).update(BUDGET=Budget("wall", 60, 60), KINDS=with_field(choices=("top",), decides=PlanPart.LISTING))
    exec("OBEYS_ROBOTS = True\ndef recheck(rechecks): ...\ndef accepts(answer, request): ...", vars(wall))
    assert protocol_faults(wall) == []


def test_two_platforms_cannot_have_the_same_name_or_kind(wall: ModuleType) -> None:
    vars(wall)["KINDS"] = (KIND.replace(name="rss"),)
    assert protocol_faults(wall, [feeds]) == ["another platform has the name rss"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are ours, too."""
    monkeypatch.setattr(platforms, "__path__", [*platforms.__path__, str(tmp_path)])
    yield tmp_path
    sys.modules.pop("catchment.platforms.wall", None)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("from typing import Anny", "platform wall cannot be loaded: ImportError: cannot import name 'Anny'"),
        ("KINDS = (", "platform wall cannot be loaded: SyntaxError: '(' was never closed"),
        ("NAME = 'wal'", "NAME is 'wal'; it must be the name of the module, 'wall'; it has no KINDS"),
        ("NAME = 'wall'", "platform wall does not follow the protocol: it has no KINDS; it has no HOSTS"),
    ],
)
def test_a_module_of_ours_that_cannot_be_used_is_named_with_its_faults(folder: Path, code: str, says: str) -> None:
    (folder / "wall.py").write_text(code)
    with pytest.raises(CatchmentError, match=re.escape(says)):
        installed.__wrapped__()
