"""The pages' catalogue of words holds what is said, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from jinja2 import Environment, nodes

import catchment
from catchment.pages.words import CATALOGUE

PRODUCT = Path(catchment.__file__).parent
TEMPLATES = sorted((PRODUCT / "pages/templates").glob("*.html"))
CODE = sorted(
    [*(PRODUCT / "pages").glob("*.py"), PRODUCT / "pages/words/__init__.py", *(PRODUCT / "api").rglob("*.py")]
)


class Texts(NamedTuple):
    """The texts in templates and code by which a word may be asked for."""

    whole: set[str]
    beginnings: set[str]
    """`theme_` of `"theme_" ~ theme`."""
    endings: set[str]
    """`_why` of `word ~ "_why"`."""

    def say(self, name: str) -> bool:
        group, colon, _ = name.partition(":")
        if colon:
            # Which names there are in a group is known elsewhere: to the platforms, the jobs, the errors.
            return group in self.whole or f"{group}:" in self.beginnings
        return (
            name in self.whole
            or any(name.startswith(one) for one in self.beginnings)
            or any(name.endswith(one) and name.removesuffix(one) in self.whole for one in self.endings)
        )


def texts(templates: Iterable[str], code: Iterable[str]) -> Texts:
    whole, joined = set[str](), list[tuple[str | None, str | None]]()
    for text in templates:
        tree = Environment().parse(text)
        whole |= {one.value for one in tree.find_all(nodes.Const) if isinstance(one.value, str)}
        joined += [(_written(one.nodes[0]), _written(one.nodes[-1])) for one in tree.find_all(nodes.Concat)]
    for text in code:
        for one in ast.walk(ast.parse(text)):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                whole.add(one.value)
            elif isinstance(one, ast.JoinedStr):
                joined.append((_written(one.values[0]), _written(one.values[-1])))
    # A text that ends like a beginning is one, wherever it is joined to the rest.
    firsts = {first for first, _ in joined if first} | {one for one in whole if one.endswith("_")}
    beginnings = {first for first in firsts if re.fullmatch(r"[a-z_]+[_:]", first)}
    endings = {last for _, last in joined if last and re.fullmatch(r"_[a-z]+", last)}
    return Texts(whole, beginnings, endings)


def _written(part: nodes.Expr | ast.expr) -> str | None:
    return part.value if isinstance(part, nodes.Const | ast.Constant) and isinstance(part.value, str) else None


def unsaid(names: Iterable[str], said: Texts) -> Iterator[str]:
    return (name for name in names if not said.say(name))


def test_every_word_is_said_somewhere() -> None:
    said = texts((path.read_text() for path in TEMPLATES), (path.read_text() for path in CODE))
    assert list(unsaid(CATALOGUE, said)) == []


@pytest.mark.parametrize(
    ("template", "code", "name"),
    [
        ('{{ say("hello") }}', "", "hello"),
        ('{{ say("hello" if new else "bye") }}', "", "bye"),
        ('{{ say("tone_" ~ tone) }}', "", "tone_loud"),
        ('{{ told("tone_", tone) }}', "", "tone_loud"),
        ('{{ say(word ~ "_why") }}{{ told("hello") }}', "", "hello_why"),
        ("", 'say("hello")', "hello"),
        ("", 'say(f"tone_{tone}")', "tone_loud"),
        ('{{ say.counted("egg", 2) }}', 'f"{name}_many"', "egg_many"),
        ('{{ say.named("job", job.name) }}', "", "job:sweep"),
    ],
)
def test_a_word_is_found_however_it_is_asked_for(template: str, code: str, name: str) -> None:
    assert list(unsaid([name], texts([template], [code]))) == []
    assert list(unsaid([name], texts(["<p>hello bye tone_ _why</p>"], ["hello = tone"]))) == [name]
