"""Nothing is without its words, and the words are true: links lead somewhere, what they name exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.cli.main import commands
from catchment.errors import CatchmentError
from catchment.jobs import JOBS
from catchment.messages import Translator
from catchment.model import EndCode, Kind
from catchment.policy.tasks import ENDS_TASK, NOT_ALARMING, UNSETTLED
from catchment.settings import DEFINED
from catchment.web.pages.locale.names import NAMES
from tools.docs import PAGES, REPOSITORY
from tools.errors import OTHERS, advice, family, meanings
from tools.platforms import ours

TEXTS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])
GUIDES = [path for path in TEXTS if str(path.relative_to(REPOSITORY)) not in PAGES]
"""Those that people wrote; the others are built."""
ERRORS = list(family())


def path_of(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


# ── every part of the product has its words ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_says_what_it_means_and_what_to_do_about_it(error: type[CatchmentError]) -> None:
    assert meanings()[error.__name__]
    assert advice(error).endswith(".")


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [*(error.code for error in ERRORS), *OTHERS]
    assert len(set(codes)) == len(codes)


def test_the_tree_of_errors_shows_the_classes_there_are_in_their_order() -> None:
    assert list(meanings()) == [error.__name__ for error in ERRORS]


def test_codes_of_visits_that_no_error_has_are_explained_and_rules_name_no_other() -> None:
    assert set(EndCode) <= OTHERS.keys()
    assert {*(error.code for error in ERRORS), *OTHERS} >= UNSETTLED | ENDS_TASK | NOT_ALARMING


@pytest.mark.parametrize("platform", ours(), ids=lambda platform: platform.NAME)
def test_a_platform_says_how_it_is_reached_within_which_limits_and_what_it_cannot_see(platform: Any) -> None:
    assert [part for part in ("Access", "Limits", "Blind spots") if f"**{part}.**" not in platform.__doc__] == []


@pytest.mark.parametrize("kind", [kind for platform in ours() for kind in platform.KINDS], ids=lambda kind: kind.name)
def test_a_kind_and_each_of_its_settings_say_what_they_are(kind: Kind) -> None:
    assert kind.what
    assert kind.example
    assert [field.name for field in kind.fields if not field.what] == []


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_says_why_it_is_there_and_has_a_name_in_every_language(job: Any) -> None:
    assert NAMES["job"][job.name] == job.why
    assert Translator("zh").gettext(job.why) != job.why


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("docs/errors.md", [*(error.code for error in ERRORS), *OTHERS]),
        ("docs/settings.md", [setting.name for setting in DEFINED.values()]),
        ("docs/platforms.md", [kind.name for platform in ours() for kind in platform.KINDS]),
        ("docs/operator.md", [job.name for job in JOBS]),
    ],
)
def test_a_page_names_everything_that_it_is_about(page: str, names: list[str]) -> None:
    text = (REPOSITORY / page).read_text()
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_map_for_contributors_shows_every_part_of_the_product() -> None:
    parts = [path for path in (REPOSITORY / "catchment").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))]
    names = {f"{path.name}/" if path.is_dir() else path.name for path in parts} - {"__init__.py", "__main__.py"}
    (shown,) = [
        block for block in _FENCED.findall((REPOSITORY / "docs/contributing.md").read_text()) if "bench/" in block
    ]
    assert names - set(shown.split()) == set()


# ── links lead somewhere ───────────────────────────────────────────────────────────────────────────────────────────

_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    found = [target or other for target, other in _LINK.findall(_FENCED.sub("", text))]
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(text: str) -> set[str]:
    """The places in a page that can be linked to, as code hosts name them."""
    titles = re.findall(r"^#+ (.+)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS, ids=path_of)
def test_a_link_inside_the_repository_leads_to_a_file_and_a_place_in_it(page: Path) -> None:
    lost = []
    for link in links(page.read_text()):
        file, _, place = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        is_there = target.exists()
        if not is_there or (place and place not in anchors(target.read_text())):
            lost.append(link)
    assert lost == []


def test_a_link_is_seen_however_it_is_written() -> None:
    text = 'a [b](c.md#d) <img src="e.png"> [f](https://g.example)\n```\n[h](i.md)\n```\n# J, and `k`!\n'
    assert links(text) == ["c.md#d", "e.png"]
    assert anchors(text) == {"j-and-k"}


# ── what is named exists ───────────────────────────────────────────────────────────────────────────────────────────

COMMAND = commands(is_loaded=True)
TARGETS = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def said(text: str, program: str) -> Iterator[list[str]]:
    """The words after `program`, wherever a text shows it as a command: in a line of a block, or in quotes."""
    shown = [line for block in _FENCED.findall(text) for line in block.splitlines()]
    shown += re.findall(r"`([^`\n]+)`", _FENCED.sub("", text))
    for line in shown:
        found = re.search(rf"(?:^|[ /|]){program} (?=[a-z-])(.*)", line)
        if found:
            words = shlex.split(re.split(r"[|&;>]|\$\(", found[1])[0], comments=True)
            yield words


def objection(words: list[str]) -> str | None:
    """What is wrong with these words as a command of ours; None: nothing."""
    command: Any = COMMAND
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    spellings = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    return next((f"no option {word!r}" for word in words if word.startswith("--") and word not in spellings), None)


@pytest.mark.parametrize("page", GUIDES, ids=path_of)
def test_a_command_that_is_shown_exists_with_its_options(page: Path) -> None:
    text = page.read_text()
    assert [(words, wrong) for words in said(text, "catchment") if (wrong := objection(words))] == []
    assert [words[0] for words in said(text, "make") if words[0] not in TARGETS] == []


def test_a_command_is_seen_wherever_it_stands() -> None:
    text = "do `catchment dance --high`, or\n```sh\n$ X=1 .venv/bin/catchment status --jsn | less  # so\nmake tea\n```"
    assert [objection(words) for words in said(text, "catchment")] == ["no option '--jsn'", "no command 'dance'"]
    assert list(said(text, "make")) == [["tea"]]


@pytest.mark.parametrize("page", GUIDES, ids=path_of)
def test_a_file_or_a_test_that_is_named_exists(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"`((?:catchment|tests|tools|bench|docs)/[\w./-]*)(?:::(\w+))?`", text))
    lost = [
        (file, test)
        for file, test in named
        if not (REPOSITORY / file).exists() or (test and f"def {test}(" not in (REPOSITORY / file).read_text())
    ]
    assert lost == []


@pytest.mark.parametrize("page", GUIDES, ids=path_of)
def test_a_setting_that_is_named_exists(page: Path) -> None:
    named = set(re.findall(r"\b(?:CATCHMENT|COLLECTOR|FETCH|COOKIE)_[A-Z_]+\b(?!<)", page.read_text()))
    unknown = [name for name in named if not any(setting.owns(name) for setting in DEFINED.values())]
    others = {error.code for error in ERRORS} | {"CATCHMENT_EXAMPLES"}  # a setting of the tests
    assert [name for name in unknown if not name.endswith("_") and name not in others] == []


def test_every_test_in_the_list_of_long_ones_exists() -> None:
    listed = [line.split("::") for line in (REPOSITORY / "tests/long.txt").read_text().split()]
    texts = {file: (REPOSITORY / file).read_text() for file, *_ in listed if (REPOSITORY / file).exists()}
    # A Hypothesis state machine has no function of its own: its class is a variable of that name.
    lost = [
        (file, *names)
        for file, *names in listed
        if not re.search(rf"^(def {names[0]}\(|{names[0]} = )", texts.get(file, ""), re.MULTILINE)
    ]
    assert lost == []
