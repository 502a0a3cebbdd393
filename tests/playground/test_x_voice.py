"""X of the playground."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from catchment.playground.sites import Ask, Bend, Page, x
from catchment.playground.world import World

START = datetime(2026, 1, 5, tzinfo=UTC)
AT = START + timedelta(days=6)


def test_an_old_copy_is_possible_of_a_list_and_not_of_the_page_that_a_cursor_leads_to() -> None:
    # A cursor is used once, so that no cache can have the page. From an old one, posts between both pages would be
    # missing, and nobody could tell.
    world = World(3, START, 0, 7, others={"x": 1})
    voice, place = x.Voice(world), world.places[0]

    def answer(query: str, ago: timedelta) -> Page:
        path, headers = f"/2/users/{x.user_id(place)}/tweets", {"authorization": "Bearer AAAAkey"}
        return voice.answer(place, Ask(path, f"max_results=5{query}", headers, AT, "http://x", Bend(ago=ago)))

    first = answer("", timedelta())
    assert answer("", timedelta(days=1)).entries != first.entries
    cursor = f"&pagination_token={json.loads(first.body)['meta']['next_token']}"
    assert answer(cursor, timedelta(days=1)).entries == answer(cursor, timedelta()).entries != ()
