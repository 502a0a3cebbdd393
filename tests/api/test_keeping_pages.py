"""Credentials, watches and settings in a browser; and that every word of ours is said in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.jobs import JOBS, run_watches
from catchment.model import Watch
from catchment.pages.words import CATALOGUE
from catchment.pages.words.foreign import FIELDS, FOREIGN, KINDS, SETTINGS
from catchment.platforms.reddit import atom
from catchment.settings import DEFINED
from catchment.store.credentials import Terms
from tests.api.browsing import led_to, opened, plain, sent
from tests.api.desk import Desk
from tests.town import TownShop
from tools.errors import OTHERS, family
from tools.platforms import ours

# ── credentials ───────────────────────────────────────────────────────────────────────────────────────────────────


def a_credential(desk: Desk, name: str = "reader", **terms: object) -> None:
    now = desk.here.clock.now()
    given = Terms(is_shared=True, **terms)  # type: ignore[arg-type]
    desk.here.shop.store.credentials.add("reddit", name, "key", b"sealed", now, terms=given)


def test_credentials_are_shown_by_platform_with_their_use_and_no_secret(both: Desk) -> None:
    assert "No credential is kept" in opened(both, "/credentials")
    a_credential(both, daily_limit=100)
    page = opened(both, "/credentials")
    assert "Reddit" in plain(page)
    assert "reader active can be used 0 of 100" in plain(page)
    assert "sealed" not in page
    one = opened(both, "/credentials/1")
    assert "yes, for any source of the platform" in one
    assert "sealed" not in one
    opened(both, "/credentials/7", status=404)


def test_a_credential_is_paused_and_resumed_by_its_buttons(both: Desk) -> None:
    a_credential(both)
    assert led_to(both, "/credentials/1/pause", reason="on leave") == "/credentials/1?done=credential_paused"
    page = opened(both, "/credentials/1?done=credential_paused")
    assert "It is not used until you resume it." in page
    assert "cannot be used until a person acts" in page
    assert "on leave" in page
    assert both.get("/api/credentials/1")["state"] == "paused"
    led_to(both, "/credentials/1/resume")
    said = plain(opened(both, "/credentials/1"))
    assert "can be used" in said
    assert "active → paused on leave" in said
    assert sent(both, "/credentials/7/pause").status_code == 404


def test_a_credential_that_cools_down_says_until_when(desk: Desk) -> None:
    a_credential(desk)
    until = (desk.here.clock.now().timestamp() + 1800) * 1_000_000
    desk.here.shop.store.database.write(
        lambda tx: tx.run(
            "UPDATE credentials SET state = 'cooling', state_until = ?, state_reason = '3 errors in a row'", int(until)
        )
    )
    said = plain(opened(desk, "/credentials"))
    assert "cooling down can be used again in 30 min" in said
    assert "3 errors in a row" in said
    assert "冷却中" in opened(desk, "/credentials", language="zh")


# ── watches ───────────────────────────────────────────────────────────────────────────────────────────────────────


def a_town_that_talks(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    for number, title in enumerate(("The bridge is closed", "桥梁开放", "A quiet day")):
        feed.post(f"p{number}", title=title, at=desk.here.clock.now())
    desk.here.collect(desk.here.follow(feed, name="Gazette"))


def test_a_rule_is_tried_on_what_is_kept_before_it_is_kept(both: Desk) -> None:
    a_town_that_talks(both)
    page = sent(both, "/watches", words="bridge, 桥", any="1", deed="try").text
    assert "2 of the latest 3 items would have fitted:" in page
    assert re.findall(r'class="headline" href="/items/\d+">(.*?)</a>', page) != []
    assert both.get("/api/watches")["items"] == []
    assert "None of the latest 3 items fits." in sent(both, "/watches", words="bridge, 桥", deed="try").text
    assert led_to(both, "/watches", words="bridge, 桥", any="1", deed="add", name="Bridges") == (
        "/watches/1?done=watched"
    )
    (watch,) = both.get("/api/watches")["items"]
    assert (watch["name"], watch["words"], watch["is_any_enough"]) == ("Bridges", ["bridge", "桥"], True)


def test_a_watch_shows_its_rule_and_its_hits_and_is_paused_resumed_and_removed(both: Desk) -> None:
    here = both.here
    watch = Watch("Bridges", ("bridge", "-tunnel"), source_ids=(1,), kinds=("rss",), authors=("ada",))
    here.follow(here.town.feed("one"), name="Gazette")
    here.shop.store.watches.add(watch, here.clock.now())
    here.shop.store.watches.add(Watch("Everything", ("bridge",)), here.clock.now())
    a_town_that_talks(both)
    run_watches(here.shop)
    assert "bridge -tunnel; of kind Feed; from source 1; by ada" in plain(opened(both, "/watches"))
    assert "Nothing has fitted yet." in opened(both, "/watches/1")
    page = opened(both, "/watches/2")
    assert re.search(r'<a class="headline" href="/items/\d">The bridge is closed</a>', page)
    assert '<a class="source" href="/items?source=1">Gazette</a>' in page
    assert led_to(both, "/watches/2/pause") == "/watches/2?done=watch_paused"
    assert 'action="/watches/2/resume"' in opened(both, "/watches/2?done=watch_paused")
    led_to(both, "/watches/2/resume")
    assert led_to(both, "/watches/2/remove") == "/watches?done=unwatched"
    opened(both, "/watches/2", status=404)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"words": "", "name": "x"}, "a watch needs something to look for"),
        ({"words": "a", "name": ""}, "a watch needs a name"),
        ({"words": "!!", "name": "x"}, "has no letter or digit"),
        ({"words": "a", "name": "x", "sources": "one"}, "is not the number of a source"),
        ({"words": "a", "name": "x", "sources": "77"}, "there is no source 77"),
        ({"words": "a", "name": "taken"}, "there is a watch named"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_and_the_form_stays(desk: Desk, fields: dict[str, str], said: str) -> None:
    desk.here.shop.store.watches.add(Watch("taken", ("word",)), desk.here.clock.now())
    answer = sent(desk, "/watches", deed="add", **fields)
    assert answer.status_code in (400, 409)
    assert said in answer.text
    assert f'name="name" maxlength="100" value="{fields["name"]}"' in answer.text


def test_a_sources_page_leads_to_a_rule_about_it(desk: Desk) -> None:
    a_town_that_talks(desk)
    assert 'href="/watches?sources=1"' in opened(desk, "/sources/1")
    assert 'name="sources" maxlength="500" value="1"' in opened(desk, "/watches?sources=1")


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_settings_that_differ_are_shown_with_their_meaning_and_no_secret(tmp_path: Path) -> None:
    here = TownShop(
        tmp_path / "home",
        f"sqlite:///{tmp_path / 'catchment.db'}",
        concurrency=17,
        api_key="very-secret-key",
        master_key="another-secret",
        proxy="http://ada:hunter2@proxy.example:3128",
        intervals={"rss": 30},
    )
    page = opened(Desk(here), "/settings")
    differing = page[page.index("Not as usual") : page.index("All other settings")]
    said = plain(page)
    assert "COLLECTOR_CONCURRENCY 17 usually 5" in said
    assert "How many sources are collected at once." in differing
    assert "FETCH_INTERVAL_RSS 30" in said
    assert "CATCHMENT_API_KEY set" in said
    assert not re.search("very-secret-key|another-secret|hunter2", page)
    assert "COLLECTOR_TICK" not in differing
    here.shop.store.settings.put_interval("rss", 45, here.clock.now())
    assert "45 min" in plain(opened(Desk(here), "/settings"))
    here.close()


# ── in both languages ─────────────────────────────────────────────────────────────────────────────────────────────


def test_kinds_and_their_settings_are_told_in_chinese_too() -> None:
    kinds = [kind for platform in ours() for kind in platform.KINDS]
    assert {kind.what for kind in kinds} - KINDS.keys() == set()
    assert {field.what for kind in kinds for field in kind.fields} - FIELDS.keys() == set()
    assert {f"kind:{kind.name}" for kind in kinds} - CATALOGUE.keys() == set()
    assert {f"platform:{platform.NAME}" for platform in ours()} - CATALOGUE.keys() == set()


def test_settings_are_told_in_chinese_too() -> None:
    said = {one.what for one in DEFINED.values()} | {one.default_words for one in DEFINED.values()} - {""}
    assert said - SETTINGS.keys() == set()


def test_what_a_source_says_of_itself_is_told_in_chinese_too() -> None:
    assert atom.NOTE in FOREIGN


def test_nothing_is_kept_in_chinese_that_nobody_says_any_more() -> None:
    kinds = [kind for platform in ours() for kind in platform.KINDS]
    said = {kind.what for kind in kinds} | {field.what for kind in kinds for field in kind.fields}
    said |= {one.what for one in DEFINED.values()} | {one.default_words for one in DEFINED.values()}
    assert FOREIGN.keys() - said - {atom.NOTE} == set()


def test_every_error_and_job_has_its_words() -> None:
    codes = [*(error.code for error in family()), *OTHERS]
    assert [code for code in codes if f"error:{code}" not in CATALOGUE] == []
    assert [job.name for job in JOBS if f"job:{job.name}" not in CATALOGUE] == []
