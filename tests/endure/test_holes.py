"""The judge of the trial of users: what is neither stored nor in a gap is a hole, whoever made it; and everybody is
read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catchment.model import Outcome
from catchment.playground.log import read_log
from catchment.playground.sites.x import fate
from endure import users
from endure.following import Followed, followed, user
from tests.x.scene import WORLD, Scene, somebody

PAGE = 3_000
"""What twenty posts cost at TwitterAPI.io, in millionths of a dollar."""
SERVICE = "twitterapi_io"


@pytest.fixture
def capped(tmp_path: Path) -> Iterator[tuple[Scene, Followed]]:
    """A source whose second visit found more than a day's cap allowed, and whose third one went well."""
    with closing(Scene(tmp_path, daily_caps={SERVICE: 3 * PAGE + PAGE // 2})) as scene:
        place = somebody("usual")
        manner = user(WORLD, place, SERVICE)
        source = followed(scene.app, place, manner.replace(settings={**manner.settings, "limit": 20}))
        outcomes = []
        for days in (0, 4, 1):
            scene.clock.advance(days * 86_400)
            (result,) = scene.app.scheduler().these([source.source_id], "test", "test")
            outcomes.append(result.outcome)
        assert outcomes == [Outcome.SUCCEEDED, Outcome.DEFERRED, Outcome.SUCCEEDED]
        yield scene, source


def holes(scene: Scene, source: Followed) -> list[str]:
    return users.holes(scene.app, WORLD, [source], read_log(scene.log))


def test_what_a_cap_left_out_is_inside_a_gap_that_says_so(capped: tuple[Scene, Followed]) -> None:
    scene, source = capped
    assert [gap.cause for gap in scene.app.store.gaps.newest()] == ["money"]
    assert holes(scene, source) == []


def test_without_its_gap_it_is_a_hole(capped: tuple[Scene, Followed]) -> None:
    scene, source = capped
    scene.app.store.database.write(lambda tx: tx.run("DELETE FROM gaps"))
    assert len(holes(scene, source)) > 0


def test_a_post_that_is_taken_out_of_the_archive_is_a_hole(capped: tuple[Scene, Followed]) -> None:
    scene, source = capped
    newest = scene.app.store.items.newest(1, source_id=source.source_id)[0]
    scene.app.store.database.write(lambda tx: tx.run("DELETE FROM sightings WHERE item_id = ?", newest.id))
    (hole,) = holes(scene, source)
    assert "is missing" in hole


def test_a_user_whose_visits_all_failed_was_never_read(tmp_path: Path) -> None:
    with closing(Scene(tmp_path, key="cap-1-")) as scene:
        places = [place for place in WORLD.places if fate(WORLD, place)[0] == "usual"][:2]
        # What the first one costs is all that the account has.
        manners = [user(WORLD, place, "x") for place in places]
        sources = [
            followed(scene.app, place, manner.replace(settings={"service": "x", "limit": 5}))
            for place, manner in zip(places, manners, strict=True)
        ]
        outcomes = [
            result.outcome
            for source in sources
            for result in scene.app.scheduler().these([source.source_id], "test", "test")
        ]
        assert outcomes == [Outcome.SUCCEEDED, Outcome.FAILED]
        (starved,) = users.never_read(scene.app, sources)
        assert starved == f"{sources[1].manner.target} was never read"
