"""JMESPath, bounded: an expression is compiled when a source is added, and may cost only so much when it is used.

A dozen characters are enough to double a list, and a dozen more to do that forty times. So what an expression makes is
weighed while it is made, and the one that makes too much is stopped there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.visitor import Options, TreeInterpreter

LONGEST = 500
MOST_WORK = 5_000_000
"""Values visited and made for one answer: a second of work, and more than the largest answer asks for."""
_LONGEST_SAID = 200
_CHARACTERS_A_VALUE = 32
"""So many of a text weigh as much as one value."""
_FUNCTIONS = frozenset(Functions.FUNCTION_TABLE)


class TooMuch(Exception):
    """Expressions that make more of an answer than anybody could want. The rest of the answer is not looked at."""


def checked(text: object) -> str:
    """The expression, if it is one; otherwise a ValueError that says what is wrong with it."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("not a JMESPath expression; for example: data.items")
    if len(text) > LONGEST:
        raise ValueError(f"an expression of {len(text)} characters; {LONGEST} is the most")
    try:
        tree = _tree(text)
    except (JMESPathError, RecursionError, ValueError) as error:
        said = str(error).partition("\n")[0]
        raise ValueError(f"not a JMESPath expression ({said}); for example: data.items") from None
    if unknown := _functions(tree) - _FUNCTIONS:
        raise ValueError(f"JMESPath has no function {min(unknown)}; it has {', '.join(sorted(_FUNCTIONS))}")
    return text


class Searching:
    """Looks things up in one answer, by one expression after the other; all together may cost only so much."""

    def __init__(self, most: int = MOST_WORK) -> None:
        self._weighing = _Weighing(most)

    def __call__(self, text: str, document: Any) -> Any:
        """What the expression finds; None for nothing. A ValueError for what it cannot be used on."""
        try:
            return self._weighing.visit(_tree(text), document)
        except TooMuch:
            raise
        except (JMESPathError, RecursionError, TypeError, OverflowError) as error:
            raise ValueError(str(error).partition("\n")[0][:_LONGEST_SAID] or type(error).__name__) from None


@lru_cache(maxsize=1024)
def _tree(text: str) -> dict[str, Any]:
    return cast(dict[str, Any], jmespath.compile(text).parsed)


def _functions(tree: dict[str, Any]) -> set[str]:
    """The names of all functions that an expression calls."""
    found, waiting = set(), [tree]
    while waiting:
        node = waiting.pop()
        if node["type"] == "function_expression":
            found.add(node["value"])
        waiting += [child for child in node["children"] if isinstance(child, dict)]
    return found


class _Weighing(TreeInterpreter):  # type: ignore[misc]  # the library has no types
    """Interprets an expression, and adds up what it makes."""

    def __init__(self, most: int) -> None:
        super().__init__(Options())
        self._left = most

    def visit(self, node: dict[str, Any], *arguments: Any, **more: Any) -> Any:
        found = super().visit(node, *arguments, **more)
        if node["type"] in ("multi_select_list", "multi_select_dict"):
            # Here alone does a value come to stand in two places: whatever copies it later pays for both.
            self._spend(_weight(found, self._left))
        elif isinstance(found, list | dict):
            self._spend(1 + len(found))
        elif isinstance(found, str):
            self._spend(1 + len(found) // _CHARACTERS_A_VALUE)
        else:
            self._spend(1)
        return found

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooMuch("the expressions make too much of the answer")


def _weight(value: Any, most: int) -> int:
    """How many values there are in one, each as often as it stands there; no further than the most."""
    weight, waiting = 0, [value]
    while waiting and weight <= most:
        one = waiting.pop()
        weight += 1
        if isinstance(one, str):
            weight += len(one) // _CHARACTERS_A_VALUE
        elif isinstance(one, list | dict):
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return weight
