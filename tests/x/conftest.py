from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from catchment.playground.faults import Cue
from tests.x.scene import Scene


@pytest.fixture
def scene_of(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def open_scene(key: str = "a-key-for-", script: Sequence[Cue] = (), **more: Any) -> Scene:
        scenes.append(Scene(tmp_path, key, script, **more))
        return scenes[-1]

    yield open_scene
    for scene in scenes:
        scene.close()


@pytest.fixture
def scene(scene_of: Callable[..., Scene]) -> Scene:
    return scene_of()
