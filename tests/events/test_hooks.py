"""A callable of an installed package takes events, and whatever it does stays its own affair."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from threading import Event as Flag

import pytest

from catchment.events import delivery
from tests.events.teller import Teller

HOOK = """
    import json
    from pathlib import Path

    HEARD = Path(__file__).with_name("heard.jsonl")

    def on_event(event):
        if Path(__file__).with_name("is_broken").exists():
            raise RuntimeError("no paper in the printer")
        with HEARD.open("a") as file:
            file.write(json.dumps(event) + "\\n")
"""


class Package:
    """A package of somebody else's, as an installer would leave it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "printing_hook.py").write_text(dedent(HOOK))
        described = folder / "printing_hook-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: printing-hook\nVersion: 1.0\n")
        (described / "entry_points.txt").write_text("[catchment.events]\nprinter = printing_hook:on_event\n")

    def break_down(self, is_broken: bool = True) -> None:
        if is_broken:
            (self.folder / "is_broken").touch()
        else:
            (self.folder / "is_broken").unlink()

    @property
    def heard(self) -> list[dict[str, object]]:
        file = self.folder / "heard.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield Package(folder)
    sys.modules.pop("printing_hook", None)


def test_an_installed_hook_gets_what_happens_from_then_on(both: Teller, package: Package) -> None:
    both.happen("before")
    both.round()
    both.happen("one", "two")
    both.round()
    both.round()
    assert [(event["id"], event["event"], event["data"]) for event in package.heard] == [
        (2, "items.collected", {"what": "one"}),
        (3, "items.collected", {"what": "two"}),
    ]
    assert both.state("hook printer").delivered_count == 2


def test_what_a_hook_raises_is_contained_written_down_and_tried_again(teller: Teller, package: Package) -> None:
    teller.round()
    teller.happen("one", "two")
    package.break_down()
    teller.round()
    state = teller.state("hook printer")
    assert (state.failures_in_a_row, state.waiting_count) == (1, 2)
    assert "no paper in the printer" in state.last_error
    package.break_down(False)
    teller.round(timedelta(hours=1))
    assert [event["data"] for event in package.heard] == [{"what": "one"}, {"what": "two"}]


def test_a_hook_that_is_taken_away_holds_nothing_up_and_goes_on_when_it_is_back(
    teller: Teller, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    teller.round()
    teller.happen("one")
    with monkeypatch.context() as patch, teller.another("without it") as without:
        patch.setattr(sys, "path", [folder for folder in sys.path if folder != str(package.folder)])
        without.deliverer.deliver_pending()
    state = teller.state("hook printer")
    assert (state.is_active, state.off_because) == (False, "it is not installed any more")
    teller.round()
    assert [event["data"] for event in package.heard] == [{"what": "one"}]


def test_a_hook_that_never_comes_back_holds_up_neither_the_others_nor_the_end(
    teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    never, heard = Flag(), []

    class Sleeper:
        pause = timedelta(0)

        def wants(self, event: object) -> bool:
            return True

        def take(self, events: list[object], attempt: int) -> int:
            never.wait(600)
            return 1

    class Awake(Sleeper):
        def take(self, events: list[object], attempt: int) -> int:
            heard.append(events[0])
            return 1

    monkeypatch.setattr(delivery, "installed_hooks", lambda: {"sleeper": Sleeper(), "awake": Awake()})
    teller.round()
    teller.happen("one")
    while len(heard) < 1:
        teller.round(seconds=0.1)
    teller.happen("two")
    while len(heard) < 2:
        teller.round(seconds=0.1)
    never.set()
