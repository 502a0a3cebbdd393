"""The catalogue of translations: extracts the English texts from code and templates, updates the Chinese, compiles it.

`make messages` runs it. Texts are found in calls of `gettext`, `ngettext` and `_`, in errors and messages, in the
dictionaries that hold texts by code, and in the tables of settings and of jobs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from catchment.clock import EPOCH
from catchment.jobs import JOBS
from catchment.settings import DEFINED
from tools.docs import REPOSITORY
from tools.error_texts import ErrorTexts, Untranslatable

PRODUCT = REPOSITORY / "catchment"
PO = PRODUCT / "locale/zh/LC_MESSAGES/catchment.po"
MO = PO.with_suffix(".mo")

ENGLISH_ONLY = ("cli", "playground")
"""Parts that print English."""
TABLES = ("SENTENCES", "NAMES")
"""Dictionaries from codes to texts."""
_HEAD = r"""msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\n"
"Plural-Forms: nplurals=1; plural=0;\n"

"""

Text = str | tuple[str, ...]
"""A text, or its singular and plural."""


def texts_of_templates() -> Iterator[tuple[str, Text]]:
    """The texts of the templates, each with the file it is in."""
    for path in sorted(PRODUCT.glob("web/pages/templates/*.html")):
        with path.open("rb") as file:
            for _, text, _, _ in extract("jinja2", file, {"_": None, "ngettext": (1, 2)}, options={"trimmed": "true"}):
                yield str(path.relative_to(REPOSITORY)), text


def texts_of_settings() -> Iterator[tuple[str, Text]]:
    for setting in DEFINED.values():
        for text in (setting.what, setting.default_words):
            if text:
                yield "catchment/settings/table.py", text


def texts_of_jobs() -> Iterator[tuple[str, Text]]:
    for job in JOBS:
        yield "catchment/jobs.py", job.why


def texts_of_code() -> Iterator[tuple[str, Text]]:
    for path in translated_modules():
        place, source = str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8")
        yield from ((place, text) for text in (*texts_in(source), *error_texts(path).texts))


def translated_modules() -> list[Path]:
    """The modules whose texts are shown on pages."""
    return [path for path in sorted(PRODUCT.rglob("*.py")) if path.relative_to(PRODUCT).parts[0] not in ENGLISH_ONLY]


def error_texts(path: Path) -> ErrorTexts:
    name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    return ErrorTexts(ast.parse(path.read_text(encoding="utf-8")), lambda: vars(import_module(name)))


def untranslatable() -> dict[str, list[Untranslatable]]:
    """What errors say that is not in the catalogue, by module."""
    found = {str(path.relative_to(PRODUCT)): error_texts(path).untranslatable for path in translated_modules()}
    return {place: expressions for place, expressions in found.items() if expressions}


def texts_in(source: str) -> Iterator[Text]:
    """The texts of a Python module that are shown to users, apart from those of errors."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "gettext":
                yield from _literals(node.args[0], tree)
            elif name == "ngettext":
                yield from _pair(node.args)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id in TABLES and isinstance(node.value, ast.Dict):
                yield from _values(node.value)


def _values(table: ast.Dict) -> Iterator[Text]:
    for value in table.values:
        if isinstance(value, ast.Dict):
            yield from _values(value)
        elif isinstance(value, ast.Tuple):
            yield from _pair(value.elts)
        else:
            yield ast.literal_eval(value)


def _pair(nodes: list[ast.expr]) -> Iterator[Text]:
    texts = tuple(node.value for node in nodes[:2] if isinstance(node, ast.Constant) and isinstance(node.value, str))
    if len(texts) == 2:
        yield texts


def _literals(node: ast.expr, tree: ast.Module) -> Iterator[str]:
    """The texts that an expression may be: a literal, one of two, or what a variable of the module is set to."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _literals(node.body, tree)
        yield from _literals(node.orelse, tree)
    elif isinstance(node, ast.Name):
        for assigned in ast.walk(tree):
            if isinstance(assigned, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == node.id for target in assigned.targets
            ):
                yield from _literals(assigned.value, tree)


def extracted() -> Catalog:
    """The catalogue of all texts there are, without translations."""
    catalogue = Catalog(locale="zh", project="catchment", fuzzy=False)
    for place, text in [*texts_of_templates(), *texts_of_settings(), *texts_of_jobs(), *texts_of_code()]:
        # Braces are parameters, percent signs are not.
        catalogue.add(text, locations=[(place, 0)], flags=["python-brace-format"])
    return catalogue


def stored() -> Catalog:
    with PO.open("rb") as file:
        catalogue = read_po(file, locale="zh")
    # The same translations give the same file.
    catalogue.creation_date = EPOCH
    return catalogue


def updated(translations: Catalog) -> Catalog:
    """The extracted catalogue with these translations."""
    catalogue = extracted()
    for message in catalogue:
        if message.id and (known := translations.get(message.id)):
            message.string = known.string
    return catalogue


def as_po(catalogue: Catalog) -> bytes:
    file = BytesIO()
    # Without line numbers: they would change with every edit.
    write_po(file, catalogue, width=120, sort_output=True, omit_header=True, include_lineno=False)
    return _HEAD.encode() + file.getvalue()


def as_mo(catalogue: Catalog) -> bytes:
    file = BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def untranslated(catalogue: Catalog) -> list[Text]:
    return [_text(message.id) for message in catalogue if message.id and not any(message.string or ())]


def _text(found: str | tuple[str, ...] | list[str]) -> Text:
    return tuple(found) if isinstance(found, list) else found


def main() -> None:
    catalogue = updated(stored())
    PO.write_bytes(as_po(catalogue))
    MO.write_bytes(as_mo(stored()))
    if missing := untranslated(catalogue):
        sys.exit("\n".join(["without Chinese:", *map(str, missing)]))


if __name__ == "__main__":
    main()
