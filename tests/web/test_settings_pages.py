"""Credentials, watches and settings in a browser; and that every word of ours is said in both languages."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from catchment.credentials.lifecycle import failed
from catchment.jobs import JOBS, run_watches
from catchment.model import Watch
from catchment.store.credentials import Terms
from catchment.web.pages.locale.names import NAMES
from tests.town import TownApp
from tests.web.browser import led_to, opened, plain, sent
from tests.web.desk import Desk
from tools.errors import OTHERS, family
from tools.platforms import ours

# ── credentials ───────────────────────────────────────────────────────────────────────────────────────────────────


def a_credential(desk: Desk, name: str = "reader", **terms: object) -> None:
    now = desk.here.clock.now()
    given = Terms(is_shared=True, **terms)  # type: ignore[arg-type]
    desk.here.app.store.credentials.add("reddit", name, "key", b"sealed", now, terms=given)


def test_credentials_are_shown_by_platform_with_their_use_and_no_secret(both: Desk) -> None:
    assert "No credentials" in opened(both, "/credentials")
    a_credential(both, daily_limit=100)
    page = opened(both, "/credentials")
    assert "Reddit" in plain(page)
    assert "reader active usable 0 of 100" in plain(page)
    assert "sealed" not in page
    credential_page = opened(both, "/credentials/1")
    assert "for any source of the platform" in credential_page
    assert "sealed" not in credential_page
    opened(both, "/credentials/7", status=404)


def test_a_credential_is_paused_and_resumed_by_its_buttons(both: Desk) -> None:
    a_credential(both)
    assert led_to(both, "/credentials/1/pause", reason="on leave") == "/credentials/1?done=credential_paused"
    page = opened(both, "/credentials/1?done=credential_paused")
    assert "It is not used until you resume it." in page
    assert "not usable until you act" in page
    assert "on leave" in page
    assert both.get("/api/credentials/1")["state"] == "paused"
    led_to(both, "/credentials/1/resume")
    said = plain(opened(both, "/credentials/1"))
    assert "usable" in said
    assert "active → paused on leave" in said
    assert sent(both, "/credentials/7/pause").status_code == 404


def test_a_credential_that_cools_down_says_until_when(desk: Desk) -> None:
    a_credential(desk)
    until = (desk.here.clock.now().timestamp() + 1800) * 1_000_000
    desk.here.app.store.database.write(
        lambda tx: tx.run(
            "UPDATE credentials SET state = 'cooling', state_until = ?, state_reason = '3 errors in a row'", int(until)
        )
    )
    said = plain(opened(desk, "/credentials"))
    assert "cooling down usable again in 30 min" in said
    assert "3 errors in a row" in said
    assert "冷却中" in opened(desk, "/credentials", language="zh")


def test_why_a_credential_is_in_its_state_is_told_in_the_readers_language(both: Desk) -> None:
    a_credential(both)
    manager = both.here.app.credential_manager
    for _ in range(3):
        manager.change("reader", lambda known, now: failed(known, manager.rules, now, now, "HTTP 401"))
    led_to(both, "/credentials/1/pause")
    english, chinese = (plain(opened(both, "/credentials/1", language=language)) for language in ("en", "zh"))
    assert "cooling down 3 errors in a row: HTTP 401" in english
    assert "paused by a user" in english
    assert "连续 3 次错误：HTTP 401" in chinese
    assert "由用户暂停" in chinese
    changes = both.get("/api/credentials/1")["changes"]
    assert [change["reason"] for change in changes] == ["paused by a user", "3 errors in a row: HTTP 401", "added"]


def test_a_reason_that_looks_like_a_stored_message_is_shown_as_it_was_typed(both: Desk) -> None:
    a_credential(both)
    led_to(both, "/credentials/1/pause", reason='{"code": broken')
    assert both.get("/api/credentials/1")["state_reason"] == '{"code": broken'


# ── watches ───────────────────────────────────────────────────────────────────────────────────────────────────────


def a_town_that_talks(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    for number, title in enumerate(("The bridge is closed", "桥梁开放", "A quiet day")):
        feed.post(f"p{number}", title=title, at=desk.here.clock.now())
    desk.here.collect(desk.here.follow(feed, name="Gazette"))


def test_a_rule_is_tried_on_what_is_kept_before_it_is_kept(both: Desk) -> None:
    a_town_that_talks(both)
    page = sent(both, "/watches", words="bridge, 桥", any="1", intent="try").text
    assert "2 of the latest 3 items match:" in page
    assert re.findall(r'class="headline" href="/items/\d+">(.*?)</a>', page) != []
    assert both.get("/api/watches")["items"] == []
    assert "None of the latest 3 items matches." in sent(both, "/watches", words="bridge, 桥", intent="try").text
    assert led_to(both, "/watches", words="bridge, 桥", any="1", intent="add", name="Bridges") == (
        "/watches/1?done=watched"
    )
    (watch,) = both.get("/api/watches")["items"]
    assert (watch["name"], watch["words"], watch["is_any_enough"]) == ("Bridges", ["bridge", "桥"], True)


def test_a_watch_without_a_name_whose_words_another_has_asks_for_a_name(both: Desk) -> None:
    led_to(both, "/watches", words="bridge", intent="add")
    answer = sent(both, "/watches", words="bridge", authors="ada", intent="add")
    assert answer.status_code == 409
    assert "there is already a watch named 'bridge' — enter another name" in plain(answer.text)
    assert re.search(r'<label class="is-wrong">Name <input', answer.text)


def test_whatever_the_picker_of_a_watch_offers_is_understood(both: Desk) -> None:
    here = both.here
    names = ("Gazette", "News, daily", "2024", "Twice", "twice")
    for number, name in enumerate(names):
        here.follow(here.town.feed(f"feed{number}"), name=name)
    offered = [unescape(value) for value in re.findall(r'<option value="([^"]*)">[^<]*</option>', options(both))]
    assert sorted(offered) == ['"News, daily"', "3", "4", "5", "Gazette"]
    led_to(both, "/watches", words="bridge", sources=", ".join(offered), intent="add")
    assert sorted(both.get("/api/watches")["items"][0]["source_ids"]) == [1, 2, 3, 4, 5]


def options(desk: Desk) -> str:
    """The suggestions for the sources of a watch."""
    page = opened(desk, "/watches")
    return page[page.index('<datalist id="source-names">') : page.index("</datalist>")]


def test_a_watch_shows_its_rule_and_its_hits_and_is_paused_resumed_and_removed(both: Desk) -> None:
    here = both.here
    watch = Watch("Bridges", ("bridge", "-tunnel"), source_ids=(1,), kinds=("rss",), authors=("ada",))
    here.follow(here.town.feed("one"), name="Gazette")
    here.app.store.watches.add(watch, here.clock.now())
    here.app.store.watches.add(Watch("Everything", ("bridge",)), here.clock.now())
    a_town_that_talks(both)
    run_watches(here.app)
    assert "bridge -tunnel; of kind Feed; from source 1; by ada" in plain(opened(both, "/watches"))
    assert "No matches yet." in opened(both, "/watches/1")
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
        ({"words": "", "name": "x"}, "a watch needs at least one condition"),
        ({"words": "a", "name": "x" * 101}, "a watch needs a name of at most"),
        ({"words": "!!", "name": "x"}, "has no letter or digit"),
        ({"words": "a", "name": "x", "sources": "one"}, "there is no source named"),
        ({"words": "a", "name": "x", "sources": "77"}, "there is no source 77"),
        ({"words": "a", "name": "taken"}, "there is already a watch named"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_and_the_form_stays(desk: Desk, fields: dict[str, str], said: str) -> None:
    desk.here.app.store.watches.add(Watch("taken", ("word",)), desk.here.clock.now())
    answer = sent(desk, "/watches", intent="add", **fields)
    assert answer.status_code in (400, 409)
    assert said in answer.text
    assert f'name="name" maxlength="100" value="{fields["name"]}"' in answer.text


def test_a_sources_page_leads_to_a_rule_about_it(desk: Desk) -> None:
    a_town_that_talks(desk)
    assert 'href="/watches?sources=1"' in opened(desk, "/sources/1")
    assert re.search(r'name="sources"[^>]* value="Gazette"', opened(desk, "/watches?sources=1"))


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_settings_that_differ_are_shown_with_their_meaning_and_no_secret(tmp_path: Path) -> None:
    here = TownApp(
        tmp_path / "home",
        f"sqlite:///{tmp_path / 'catchment.db'}",
        concurrency=17,
        api_key="very-secret-key",
        master_key="another-secret",
        proxy="http://ada:hunter2@proxy.example:3128",
        intervals={"rss": 30},
    )
    page = opened(Desk(here), "/settings")
    differing = page[page.index("Changed settings") : page.index("All other settings")]
    said = plain(page)
    assert "COLLECTOR_CONCURRENCY 17 default: 5" in said
    assert "Number of sources collected at the same time." in differing
    assert "FETCH_INTERVAL_RSS 30" in said
    assert "CATCHMENT_API_KEY set" in said
    assert not re.search("very-secret-key|another-secret|hunter2", page)
    assert "COLLECTOR_TICK" not in differing
    here.close()


def test_the_interval_of_a_kind_is_set_on_the_page_and_by_the_api(desk: Desk) -> None:
    assert "Feed 240 min default" in plain(opened(desk, "/settings"))
    assert led_to(desk, "/settings/intervals", kind="rss", interval="45") == "/settings?done=interval_set#intervals"
    assert "Feed 45 min set here" in plain(opened(desk, "/settings?done=interval_set"))
    found = {item["kind"]: item for item in desk.get("/api/settings/intervals")["items"]}
    assert (found["rss"]["interval_minutes"], found["rss"]["origin"]) == (45, "database")
    answer = desk.client.put("/api/settings/intervals/rss", json={"interval_minutes": 30})
    assert (answer.status_code, answer.json()["interval_minutes"]) == (200, 30)
    assert desk.here.app.intervals()["rss"] == 30
    led_to(desk, "/settings/intervals", kind="rss", interval="")
    assert desk.here.app.intervals()["rss"] == 240
    for kind, minutes, status in (("rss", 0, 400), ("mastodon", 5, 404), ("rss", "5", 400)):
        answer = desk.client.put(f"/api/settings/intervals/{kind}", json={"interval_minutes": minutes})
        assert answer.status_code == status
    assert sent(desk, "/settings/intervals", kind="mastodon", interval="5").status_code == 400


# ── in both languages ─────────────────────────────────────────────────────────────────────────────────────────────


def test_kinds_and_their_settings_have_texts_in_chinese() -> None:
    for platform in ours():
        texts = {kind.title for kind in platform.KINDS} | {kind.what for kind in platform.KINDS}
        texts |= {field.what for kind in platform.KINDS for field in kind.fields} | {platform.TITLE}
        # A proper name is the same in Chinese.
        assert texts - platform.CHINESE.keys() <= {platform.TITLE}


def test_every_kind_of_a_watch_has_a_chinese_name(desk: Desk) -> None:
    page = opened(desk, "/watches", language="zh")
    options = re.findall(
        r'<option value="([^"]+)"[^>]*>([^<]+)', page.partition('name="kind"')[2].partition("</select>")[0]
    )
    # A proper name is the same in Chinese.
    assert {title for _, title in options if title.isascii()} == {"Hacker News"}


def test_every_error_and_job_has_its_words() -> None:
    assert {*(error.code for error in family()), *OTHERS} - NAMES["error"].keys() == set()
    assert {job.name for job in JOBS} - NAMES["job"].keys() == set()


def test_a_watch_without_a_name_is_called_by_its_words_and_its_test_results_stay(desk: Desk) -> None:
    a_town_that_talks(desk)
    where = led_to(desk, "/watches", words="bridge, closed", sources="Gazette", intent="add")
    assert where == "/watches/1?done=watched"
    page = opened(desk, where)
    assert "<h1>bridge closed</h1>" in page
    assert "items match" in plain(page)
    assert "The bridge is closed" in plain(page)
    # The same once more: the name is taken, and what the test found stays in sight.
    again = sent(desk, "/watches", words="bridge, closed", sources="Gazette", intent="add")
    assert again.status_code == 409
    assert "items match" in plain(again.text)
    assert 'value="Gazette"' in again.text


def test_a_watch_names_its_sources_or_says_which_names_are_meant(desk: Desk) -> None:
    a_town_that_talks(desk)
    wrong = sent(desk, "/watches", words="bridge", sources="Nobody", intent="try")
    assert (wrong.status_code, "there is no source named" in wrong.text) == (400, True)


def test_a_watch_of_the_api_may_be_without_a_name(desk: Desk) -> None:
    assert desk.post("/api/watches", {"words": ["bridge"]}, status=201)["name"] == "bridge"
