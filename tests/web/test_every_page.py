"""What holds for every page: links lead somewhere, nothing is inline, nobody comes in unasked, no change unproven."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import pairwise

import pytest

from catchment import installation
from catchment.cli.main import COMMANDS
from catchment.errors import Missing
from catchment.web.app import PAGES
from catchment.web.pages.render import PLACES
from tests.web.browser import links_of
from tests.web.desk import Desk
from tests.web.whole_deployment import a_whole_deployment, browsing_paths

ENOUGH = 250
"""Pages that are looked at: of lists that go on and on, the beginning."""


def pages_of(desk: Desk, language: str) -> Iterator[tuple[str, str, str]]:
    """Every page that a link leads to, beginning at the start: where it stands, where it leads, what is there."""
    browser = desk.browser(language)
    waiting, known = deque([("the start", "/"), *(("the menu", place.path) for place in PLACES)]), set[str]()
    while waiting and len(known) < ENOUGH:
        origin, path = waiting.popleft()
        path = path.partition("#")[0]
        if path in known or not path:
            continue
        known.add(path)
        answer = browser.get(path)
        assert answer.status_code == 200, f"{origin} leads to {path}, which answers {answer.status_code}"
        if answer.headers["content-type"].startswith("text/html"):
            yield origin, path, answer.text
            waiting.extend((path, link) for link in links_of(answer.text))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_link_leads_somewhere_and_no_page_holds_anything_inline_or_foreign(desk: Desk, language: str) -> None:
    a_whole_deployment(desk)
    paths = set()
    for _, path, page in pages_of(desk, language):
        paths.add(re.sub(r"\d+", "1", path.partition("?")[0]))
        loaded = re.findall(r'(?:src|<link[^>]+href)="([^"]*)"', page)
        assert all(url.startswith(("/", "data:image/svg+xml,")) for url in loaded), path
        assert not re.search(r"<style|\sstyle=|\son\w+=|<iframe|<img|http-equiv|javascript:", page), path
        assert "<old>" not in page, path
        assert "<moved>" not in page, path
    expected = {path for path in browsing_paths("GET") if not path.startswith(("/login", "/static", "/live"))}
    assert expected - paths == set(), "no link leads there"


def test_headings_are_in_order_fields_have_labels_first_views_are_small_and_commands_can_be_typed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "command", lambda: ".venv/bin/catchment")
    assert ".venv/bin/catchment audit" in desk.browser().get("/audits").text
    a_whole_deployment(desk)
    siteless = desk.here.town.feed("five")
    siteless.says.append(Missing("no feed was found", "use `catchment sources add website ADDRESS`", status=404))
    desk.here.collect(desk.here.follow(siteless, name="Siteless"))
    browser, sizes = desk.browser(), dict[str, int]()
    for _, path, page in pages_of(desk, "en"):
        assets = re.findall(r'(?:<link rel="stylesheet" href|<script src)="([^"]+)"', page)
        for asset in {*assets} - sizes.keys():
            sizes[asset] = len(browser.get(asset).content)
        assert len(page.encode()) + sum(sizes[asset] for asset in assets) < 150_000, path
        assert "`" not in page, path
        assert re.findall(rf"(?<!\.venv/bin/)\bcatchment (?:{'|'.join(sorted(COMMANDS))})\b.*", page) == [], path
        main = page[page.index("<main") : page.index("</main>")]
        levels = [int(level) for level in re.findall(r"<h([1-6])\b", re.sub(r'<div class="said".*?</div>', "", main))]
        assert levels[:1] == [1], path
        assert levels.count(1) == 1, path
        assert all(later - earlier <= 1 for earlier, later in pairwise(levels)), (path, levels)
        bare = [tag for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", main) if 'type="hidden"' not in tag]
        assert len(bare) <= len(re.findall(r"<label\b", main)), path


@pytest.mark.parametrize("path", sorted(browsing_paths("POST") - {"/login", "/preferences"}))
def test_no_change_without_the_token_of_its_reader(desk: Desk, path: str) -> None:
    a_whole_deployment(desk)
    browser = desk.browser()
    before = [desk.get(api_path) for api_path in ("/api/sources", "/api/watches", "/api/credentials")]
    for data in ({}, {"token": ""}, {"token": "0" * 64}):
        assert browser.post(path, data=data).status_code == 403
    stranger = desk.caller({"Accept": "text/html"})
    assert stranger.post(path, data={}).status_code == 401
    assert [desk.get(api_path) for api_path in ("/api/sources", "/api/watches", "/api/credentials")] == before


@pytest.mark.parametrize("path", sorted(browsing_paths("GET") - {"/login", "/static/1"}))
def test_nobody_sees_a_page_without_coming_in(desk: Desk, path: str) -> None:
    answer = desk.caller({"Accept": "text/html"}).get(path)
    assert answer.status_code == 401
    assert "Sign in with the link printed in the terminal" in answer.text


HOSTILE_VALUES = ("9" * 5000, "a%00b", "%ED%A0%80")
LIST_PARAMETERS = (
    "after",
    "source",
    "kind",
    "platform",
    "author",
    "tag",
    "since",
    "until",
    "q",
    "state",
    "order",
    "at",
)


def pages_that_go_on() -> set[str]:
    """Those with a cursor in their address; of items and search it is read with the filters."""
    return {"/items", "/search"} | {
        re.sub(r"{\w+}", "1", route.path)
        for router in PAGES
        for route in router.routes
        if "after" in {param.alias for param in getattr(getattr(route, "dependant", None), "query_params", ())}
    }


def test_a_cursor_of_thousands_of_digits_is_a_bad_request_on_every_page_that_goes_on(desk: Desk) -> None:
    a_whole_deployment(desk)
    browser, paths = desk.browser(), pages_that_go_on()
    assert {"/runs", "/runs/1", "/audits", "/items/1", "/gaps", "/sources/1/board-runs"} <= paths
    values = ("9" * 5000, f"{'9' * 5000}-1", "a%00b")
    statuses = {
        (path, value): browser.get(f"{path}?q=a&after={value}").status_code for path in paths for value in values
    }
    assert {f"{path} {value[:20]}": status for (path, value), status in statuses.items() if status != 400} == {}


@pytest.mark.parametrize("parameter", LIST_PARAMETERS)
def test_no_value_in_an_address_is_more_than_a_bad_request(both: Desk, parameter: str) -> None:
    browser = both.browser()
    answers = {
        f"{path}?{parameter}={value[:20]}": browser.get(f"{path}?{parameter}={value}").status_code
        for path in ("/items", "/search", "/sources", "/gaps")
        for value in HOSTILE_VALUES
    }
    assert {path: status for path, status in answers.items() if status not in (200, 400, 404)} == {}
    assert {path: status for path, status in answers.items() if "%00" in path and status != 400} == {}
