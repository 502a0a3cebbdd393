"""Child processes: what can only be interrupted by a kill is done there, and is killed at its limit."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from threading import Event

import pytest

from catchment import child_processes, work_limits
from catchment.errors import Stopped, TooComplex, Unreadable
from catchment.platforms.website import links

URL = "https://example.com/news"
SLOW = "x ~ li ~ li ~ li a"
"""For each entry of a list, all combinations of three entries before it."""


def listed(entries: int) -> str:
    rows = "".join(f'<li><a href="/{number}">About {number}</a></li>' for number in range(entries))
    return f"<html><body><ul>{rows}</ul></body></html>"


# Named by the tests below, and called in the child.
def pid(given: bytes) -> bytes:
    return str(os.getpid()).encode()


def environment(given: bytes) -> bytes:
    return " ".join(os.environ).encode()


def too_much_memory(given: bytes) -> bytes:
    return b"x" * 10 * int(given)


def crash(given: bytes) -> bytes:
    os.abort()


def forever(given: bytes) -> bytes:
    while True:
        pass


def test_a_child_is_kept_for_the_next_job_and_has_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COOKIE_MASTER_KEY", "planted")
    child_processes.close()
    first = child_processes.run(__name__, "pid", b"")
    assert first != str(os.getpid()).encode()
    assert child_processes.run(__name__, "pid", b"") == first
    assert "COOKIE_MASTER_KEY" not in child_processes.run(__name__, "environment", b"").decode()


@pytest.mark.parametrize("job", ["too_much_memory", "crash"])
def test_a_job_that_takes_too_much_memory_or_crashes_is_given_up_and_the_next_one_is_done(job: str) -> None:
    with pytest.raises(child_processes.JobKilled):
        child_processes.run(__name__, job, b"500000000")
    assert child_processes.run(__name__, "pid", b"")


def test_a_job_is_killed_when_its_time_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_processes, "CPU_SECONDS", 1)
    with pytest.raises(child_processes.JobKilled):
        child_processes.run(__name__, "forever", b"")


def test_a_stop_kills_the_job_that_is_waited_for() -> None:
    asked = Event()

    def check() -> None:
        # Asked while it is waited for; the job itself never ends.
        asked.set()
        raise Stopped("a stop was asked for")

    with work_limits.limited(work_limits.WorkLimit(check)), pytest.raises(Stopped):
        child_processes.run(__name__, "forever", b"")
    assert asked.is_set()


# ── selectors ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_selector_that_would_freeze_the_process_is_given_up_with_what_would_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child_processes, "CPU_SECONDS", 1)
    with pytest.raises(TooComplex, match="takes too long on this page") as caught:
        links.read(listed(3_000), URL, SLOW)
    assert "setting `links`" in str(caught.value)


@pytest.mark.parametrize("selector", ["li a", "li:nth-child(3) a", "li:first-child a", "ul > li > a[href]"])
def test_a_child_finds_what_the_process_itself_would_find(selector: str) -> None:
    page = listed(50)
    here = links.find(page, URL, selector)
    padded = page.replace("</body>", "<p>" * 20_000 + "</body>")
    found, skipped = links.read(padded, URL, selector)
    assert tuple((item.url, item.text) for item in found) == here.links
    assert skipped == here.skipped


@pytest.mark.parametrize(
    ("selector", "entries", "is_quick"),
    [
        ("main h2 a", 1_000, True),
        ("#news > article a.title, .sidebar a", 1_000, True),
        ("li:nth-child(3) a", 50, True),
        ("li:nth-child(3) a", 1_000, False),
        ("li ~ li a", 1_000, False),
        ("li a", 70_000, False),
        (SLOW, 50, False),
    ],
)
def test_only_what_surely_ends_soon_is_done_in_the_process_itself(selector: str, entries: int, is_quick: bool) -> None:
    page = listed(entries)
    assert links.is_quick(selector, links.html.shape(page), len(page)) is is_quick


def test_many_descendants_on_a_deep_page_are_not_tried_in_the_process_itself() -> None:
    page = "<html><body>" + "<div>" * 900 + "<a href=/x>x</a>"
    assert not links.is_quick("p div div div a", links.html.shape(page), len(page))


@pytest.mark.parametrize(
    "selector", [" ".join(["div"] * 60), "a:not(b:not(c:not(d:not(e))))", "a" * 2_000, "a,,", "p::before"]
)
def test_a_selector_of_too_many_parts_or_none_at_all_is_refused_when_it_is_given(selector: str) -> None:
    with pytest.raises(ValueError, match="CSS selector"):
        links.checked(selector)


@pytest.mark.parametrize("selector", ["main h2 a", "a[href*='/2026/']", "ul > li:not(.ad) a, .news a", "a"])
def test_ordinary_selectors_are_taken(selector: str) -> None:
    assert links.checked(selector) == selector


def test_a_page_of_more_tags_than_any_page_has_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(TooComplex, match="tags"):
        links.html.parsed("<html><body>" + "<b></b>" * 200_001)


@pytest.mark.parametrize(
    "body",
    [
        "<div/>" * 8_000,
        "<!-->" + "<div>" * 8_000,
        "<noscript>" + "<div>" * 8_000,
        "<svg><title>" + "<div>" * 8_000,
        "<rt>" * 8_000,
        ("<div>" * 100 + "<table>" + "</div>" * 100 + "</table>") * 100,
        "<p>" + "".join(f"<b a={number}>" for number in range(900)) + "<p>x" * 5_000,
    ],
    ids=["slash", "comment", "noscript", "svg", "ruby", "ends-out-of-scope", "copied-formatting"],
)
def test_a_page_that_looks_flat_and_is_parsed_into_a_deep_or_huge_tree_is_refused(body: str) -> None:
    assert links.html.apparent_shape(body).is_bearable
    with pytest.raises(Unreadable, match=r"the page (has|takes)"):
        links.html.parsed(f"<html><body>{body}")


def test_a_child_counts_an_ordinary_page_as_its_text_looks() -> None:
    page = listed(2_000)
    found, apparent = links.html.shape(page), links.html.apparent_shape(page)
    # <head> is made by the parser.
    assert (found.tags, found.deepest) == (apparent.tags + 1, apparent.deepest)


def test_words_below_many_matching_tags_are_not_read_in_the_process_itself() -> None:
    page = "<html><body>" + "<div>" * 900 + "x" * 900_000
    assert not links.is_quick("div", links.html.shape(page), len(page))


def test_a_child_imports_nothing_from_the_folder_that_we_were_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "catchment.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    child_processes.close()
    assert child_processes.run("os", "fsencode", b"ours") == b"ours"


def test_a_child_is_heard_where_the_process_has_more_than_a_thousand_files_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1_200:
        pytest.skip("this system allows fewer")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1_200), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_030)]
    try:
        child_processes.close()
        assert child_processes.run(__name__, "pid", b"")
    finally:
        child_processes.close()
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
