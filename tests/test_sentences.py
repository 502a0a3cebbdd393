"""What other parts of the product write down in English is read in Chinese on the Chinese pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import catchment
from catchment.collect.planning import alarms_of
from catchment.health.monitors import BUDGET, CALLS, REDIS, STALLED, SUCCESS, WARM_UP, Success, too_little_success
from catchment.model import Budget, Progress
from catchment.pages.words import CATALOGUE, Speech
from catchment.pages.words.sentences import FORMS, in_chinese, known_in_chinese
from catchment.plan import Need, planned
from catchment.platforms.feeds.markup import STEPS
from catchment.tiers import Tier, Tiers, tiered

PRODUCT = Path(catchment.__file__).parent
ALARMED = [
    PRODUCT / one for one in ("health/monitors.py", "health/silence.py", "vault/alarms.py", "tell/delivering.py")
]
NOTED = [*(PRODUCT / "collect").glob("*.py"), *(PRODUCT / "platforms").rglob("*.py")]
A_WORD = re.compile("[a-z]{3}")


def written(node: ast.expr) -> str | None:
    """A text as it may come out: 7 stands for whatever is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(written(one) or "7" if isinstance(one, ast.Constant) else "7" for one in node.values)
    return None


def texts_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Tuple | ast.List):
        return [text for one in node.elts for text in texts_in(one)]
    text = written(node) if isinstance(node, ast.expr) else None
    return [] if text is None else [text]


def notes(path: Path) -> Iterator[str]:
    """What is noted of visits: `notes=(…)`, `.note(…)`, `notes.append(…)`, `NOTE = …`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "notes":
            yield from texts_in(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_notes = isinstance(node.func.value, ast.Name) and node.func.value.id == "notes"
            if node.func.attr in ("note", "_skip") or (node.func.attr == "append" and is_notes):
                yield from (text for one in node.args for text in texts_in(one))
        elif isinstance(node, ast.Assign) and _name_of(node) in ("NOTE", "EMPTY_PAGE", "notes"):
            yield from texts_in(node.value)


def alarming(path: Path) -> Iterator[str]:
    """What alerts tell: whatever is given as the words of one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and _name_of(node) in ("words", "alert"):
            yield from texts_in(node.value)


def _name_of(node: ast.Assign) -> str | None:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else None


@pytest.mark.parametrize("path", NOTED, ids=lambda path: str(path.relative_to(PRODUCT)))
def test_what_is_noted_of_a_visit_has_its_chinese(path: Path) -> None:
    assert [text for text in notes(path) if known_in_chinese(text) is None] == []


@pytest.mark.parametrize("path", ALARMED, ids=lambda path: str(path.relative_to(PRODUCT)))
def test_what_an_alert_tells_has_its_chinese(path: Path) -> None:
    assert [text for text in alarming(path) if A_WORD.search(text) and known_in_chinese(text) is None] == []


def test_every_step_that_mends_a_feed_has_its_chinese() -> None:
    assert [note for note, _ in STEPS if note and known_in_chinese(note) is None] == []


def test_every_alert_has_words_for_what_it_is_about_and_what_helps() -> None:
    endings = [CALLS, SUCCESS, BUDGET]
    sorts = [*(f"platform{one}" for one in endings), "hot hits", STALLED, REDIS, WARM_UP.strip()]
    assert [one for one in sorts if not {f"alert:{one}", f"alert_helps:{one}"} <= CATALOGUE.keys()] == []


BUDGET_OF = Budget("reddit", 60, 60)
LIVELY = Progress(recent_valid=(9, 9, 9, 9, 9), posts_per_day=20_000.0, reach=1_000)
TIERS = Tiers((Tier("tier1", 5, 2.0, "new", "day", 100), Tier("tier2", 0, 6.0, "new", "day", 100)), 5, 3)


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        (tiered(LIVELY.plus(posts_per_day=1.0), TIERS).tier_reason, "tier1：每 2 小时一次"),
        (tiered(LIVELY, TIERS).tier_reason, "tier1：每 36 分钟一次而非每 2 小时，因为平台只显示最新的 1,000 条"),
        ("3 of the items that were listed could not be had: gone (3)", "列出的条目中有 3 条未能取得：gone (3)"),
        ("something that nobody has put into words", "something that nobody has put into words"),
        ("", ""),
        (
            too_little_success([Success("feeds", 2, 18)], {"feeds": {"TIMEOUT": 9}})[0].message,
            "feeds：10 分钟内 20 次访问中有 18 次失败，最常见的是 TIMEOUT — `catchment status` 显示详情",
        ),
        (
            too_little_success([Success("feeds", 2, 18)], {})[0].message,
            "feeds：10 分钟内 20 次访问中有 18 次失败 — `catchment status` 显示详情",
        ),
        (
            alarms_of(
                [planned("reddit", [Need(1, "r/a", "high", 1, 50.0), Need(2, "r/b", "low", 1, 80.0)], BUDGET_OF)]
            )[0].message,
            "reddit：2 个来源每分钟需要 130 次请求，每分钟允许 60 次：1 个将延迟 — 请减少关注、调长间隔，或添加凭据；"
            "`catchment plan` 显示哪些会延迟",
        ),
    ],
)
def test_a_sentence_is_told_in_chinese_with_what_stands_in_it_and_as_it_is_if_nobody_knows_it(
    sentence: str, words: str
) -> None:
    assert in_chinese(sentence) == words
    assert Speech("en").said(sentence) == sentence


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[:40])
def test_a_form_and_its_chinese_speak_of_the_same(form: str) -> None:
    places = re.compile(r"\{\w+\}")
    assert set(places.findall(form)) == set(places.findall(FORMS[form]))


def test_notes_and_alarms_are_found_where_they_are_written() -> None:
    assert len([text for path in NOTED for text in notes(path)]) >= 12
    assert len([text for path in ALARMED for text in alarming(path)]) >= 8
