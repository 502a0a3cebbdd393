"""Imports that run on first use."""

from __future__ import annotations

import builtins
import sys
from threading import Event, Thread
from types import SimpleNamespace

from catchment.lazy import lazy_imports


def test_a_module_is_imported_when_one_of_its_names_is_used() -> None:
    sys.modules.pop("colorsys", None)
    with lazy_imports():
        import colorsys
    assert "colorsys" not in sys.modules
    assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert "colorsys" in sys.modules


def test_blocks_of_two_threads_leave_imports_as_they_were() -> None:
    before, seen = builtins.__import__, SimpleNamespace(second=None)
    is_first_inside, is_second_begun = Event(), Event()

    def first() -> None:
        with lazy_imports():
            is_first_inside.set()
            is_second_begun.wait()

    def second() -> None:
        is_first_inside.wait()
        is_second_begun.set()
        with lazy_imports():
            seen.second = builtins.__import__
        seen.second_after = builtins.__import__

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builtins.__import__ is before
    assert seen.second is not before
    assert seen.second_after is before
