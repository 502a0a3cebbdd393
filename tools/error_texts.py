"""The texts of errors, found in the code: those for the catalogue, and those that nobody can translate.

The first two arguments of an error are texts; its keywords are parameters. A text is a literal, a constant, one of
several of these, or a `Message`. Anything else, such as an f-string, would be shown in English on every page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from catchment import errors
from catchment.messages import SENTENCES, Message

ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
NOT_PARAMS = ("field", "status", "retry_at")
"""Arguments of errors that are no parameters of what they say."""
_OF_ERRORS = ("what", "helps", "message")
"""Attributes of an error that are messages already."""
_MESSAGES = ("message", "Message", "about", "reason_of")
"""Functions that return messages."""
_PROSE = re.compile(r"(?<![-\w=/`{])[a-z]{2,} (?=[a-z{])|[a-z]{2,}, [a-z]")
"""Two words in a row."""


class Untranslatable(NamedTuple):
    """An expression that is shown to people, and whose text is not known in advance."""

    line: int
    code: str


class ErrorTexts:
    """The texts of the errors of a module. `values` returns the module's own values, for constants."""

    def __init__(self, tree: ast.Module, values: Callable[[], Mapping[str, Any]] = dict) -> None:
        self.texts: list[str] = []
        self.untranslatable: list[Untranslatable] = []
        self._tree, self._values = tree, values
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._read_call(node)
            elif isinstance(node, ast.Tuple) and _is_error_in_table(node):
                self._read_texts(iter(node.elts[1:3]))

    def _read_call(self, call: ast.Call) -> None:
        name = _name(call.func)
        if name in _MESSAGES[:2] and call.args:
            self._read_texts(_constants(call.args[0]))
        if name in ERRORS:
            # A starred argument stands for both texts.
            is_starred = bool(call.args) and isinstance(call.args[0], ast.Starred)
            self._read_texts(iter(call.args[: 1 if is_starred else 2]))
            params = [keyword.value for keyword in call.keywords if keyword.arg not in NOT_PARAMS]
        elif name in _MESSAGES[:2]:
            params = [keyword.value for keyword in call.keywords]
        else:
            return
        for param in params:
            self._check_param(param)

    def _read_texts(self, nodes: Iterator[ast.expr]) -> None:
        for node in nodes:
            for text in self._resolved(node):
                if isinstance(text, Untranslatable):
                    self.untranslatable.append(text)
                elif text and text not in SENTENCES:
                    self.texts.append(text)

    def _check_param(self, node: ast.expr) -> None:
        """English text in a parameter stays English."""
        for part in self._branches(node):
            pieces = part.values if isinstance(part, ast.JoinedStr) else [part]
            texts = [
                piece.value for piece in pieces if isinstance(piece, ast.Constant) and isinstance(piece.value, str)
            ]
            # A parameter inside an f-string stands between words.
            if _PROSE.search("{".join(texts)):
                self.untranslatable.append(Untranslatable(part.lineno, ast.unparse(part)))

    def _branches(self, node: ast.expr) -> Iterator[ast.expr]:
        """The expressions that a value may come from."""
        if isinstance(node, ast.IfExp):
            yield from (*self._branches(node.body), *self._branches(node.orelse))
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                yield from self._branches(value)
        elif isinstance(node, ast.Name) and (assigned := self._assigned(node)):
            for value in assigned:
                yield from self._branches(value)
        else:
            yield node

    def _resolved(self, node: ast.expr) -> Iterator[str | Untranslatable]:
        for part in self._branches(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str | None):
                yield part.value or ""
            elif isinstance(part, ast.Tuple):
                for element in part.elts:
                    yield from self._resolved(element)
            elif isinstance(part, ast.Starred):
                yield from self._resolved(part.value)
            elif not self._is_message(part):
                found = list(_strings(self._value(part)))
                yield from found
                if not found:
                    yield Untranslatable(part.lineno, ast.unparse(part))

    def _is_message(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr in _OF_ERRORS:
            return True
        if isinstance(node, ast.Call):
            returned = getattr(self._value(node.func), "__annotations__", {}).get("return", "")
            return _name(node.func) in _MESSAGES or "Message" in str(returned)
        return isinstance(node, ast.Name) and "Message" in self._annotation(node)

    def _annotation(self, name: ast.Name) -> str:
        """The type of a parameter of the function around it."""
        for function in self._around(name):
            arguments = function.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if argument.arg == name.id and argument.annotation is not None:
                    return ast.unparse(argument.annotation)
        return ""

    def _around(self, node: ast.AST) -> Iterator[ast.FunctionDef]:
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, ast.FunctionDef):
                yield node

    def _assigned(self, name: ast.Name) -> list[ast.expr]:
        """What a variable is set to: in the innermost function that sets it, else in the module."""
        for scope in (*self._around(name), self._tree):
            if found := [value for node in ast.walk(scope) for value in _set_to(node, name.id)]:
                return [value for value in found if not any(name is part for part in ast.walk(value))]
            if isinstance(scope, ast.FunctionDef) and self._annotation(name):
                break
        return []

    def _value(self, node: ast.expr) -> Any:
        """The value of a constant; None if it is none, or not known."""
        if isinstance(node, ast.Name):
            return self._values().get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._value(node.value), node.attr, None)
        if isinstance(node, ast.Subscript):
            return self._value(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            return self._value(node.func.value)
        return None


def _is_error_in_table(node: ast.Tuple) -> bool:
    """Whether it is an error's class, what it says, and what helps."""
    texts = [part.value for part in node.elts[1:2] if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return _name(node.elts[0]) in ERRORS and any(" " in text for text in texts) if node.elts else False


def _set_to(node: ast.AST, name: str) -> Iterator[ast.expr]:
    if isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value is not None:
        if node.target.id == name:
            yield node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield node.value
            elif isinstance(target, ast.Tuple):
                for position, part in enumerate(target.elts):
                    if isinstance(part, ast.Name) and part.id == name:
                        yield from _element(node.value, position)


def _element(value: ast.expr, position: int) -> Iterator[ast.expr]:
    if isinstance(value, ast.IfExp):
        yield from (*_element(value.body, position), *_element(value.orelse, position))
    else:
        yield value.elts[position] if isinstance(value, ast.Tuple) else value


def _constants(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from (*_constants(node.body), *_constants(node.orelse))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, Message):
        yield value.code
    elif isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, Mapping):
        yield from _strings(list(value.values()))


def _name(node: ast.AST) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))
