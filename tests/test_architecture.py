"""Imports point downwards only: what may know of what, checked by reading the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PRODUCT = Path(__file__).parents[1] / "catchment"

LAYERS = (
    {"lazy", "decoders"},
    {"messages"},
    {"errors", "installation"},
    {"model", "clock", "settings", "work_limits"},
    {"child_processes", "text"},
    {"logs", "policy"},
    {"playground"},
    {"store"},
    {"redis"},
    {"credentials", "health", "cache"},
    {"fetch"},
    {"platforms"},
    {"collect", "events"},
    {"sources", "doctor"},
    {"app"},
    {"jobs"},
    {"status"},
    {"engines"},
    {"web"},
    {"demo"},
    {"cli"},
    {"__main__"},
)
"""From the bottom. A part imports itself and what lies below; never its neighbours, never what lies above."""

READ_THE_CLOCK = {"now", "utcnow", "today", "time", "time_ns", "monotonic"}


class Import(NamedTuple):
    """That a file, which belongs to a part of the product, imports a module."""

    file: str
    part: str
    module: str

    @property
    def imported_part(self) -> str | None:
        """Which part of ours that is; None: somebody else's, or the package itself (its version)."""
        names = self.module.split(".")
        return names[1] if names[0] == "catchment" and len(names) > 1 else None


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Every source file with its part: the first folder, or the module's own name. The demo's view is
    a part of its own: it lies in the playground's folder, and looks at a whole application."""
    for file in sorted(root.rglob("*.py")):
        is_demo = file.parent.name == "playground" and file.name.startswith("demo_")
        part = "demo" if is_demo else file.relative_to(root).parts[0].removesuffix(".py")
        if part != "__init__":
            yield file, part


@cache
def imports(root: Path) -> list[Import]:
    return [
        Import(str(file.relative_to(root)), part, module)
        for file, part in files(root)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for module in imported(node, file, root)
    ]


def imported(node: ast.AST, file: Path, root: Path) -> list[str]:
    """The modules that a statement imports, by their whole names, wherever in the file it stands."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    module = node.module or ""
    if node.level:
        folder = file.parents[node.level - 1].relative_to(root.parent)
        module = ".".join([*folder.parts, *module.split(".")]).rstrip(".")
    # `from catchment import store`, `from catchment.platforms import feeds` name it only behind the word import.
    names = [f"{module}.{alias.name}" for alias in node.names]
    is_behind = (module == "catchment" and any(is_part(alias.name, root) for alias in node.names)) or (
        module == "catchment.platforms" and any(is_part(f"platforms/{alias.name}", root) for alias in node.names)
    )
    return names if is_behind else [module]


def is_part(name: str, root: Path) -> bool:
    return (root / name).is_dir() or (root / f"{name}.py").is_file()


def height(part: str) -> int:
    """Counted from the bottom; a part without a layer is above all: a test of its own asks where it belongs."""
    return next((number for number, layer in enumerate(LAYERS) if part in layer), len(LAYERS))


def points_downwards(import_: Import) -> bool:
    if import_.imported_part is None or import_.imported_part == import_.part:
        return True
    return height(import_.imported_part) < height(import_.part)


def by(parts: set[str], modules: set[str], root: Path = PRODUCT) -> list[Import]:
    """Imports of these modules, or of anything inside them, by these parts."""
    return [
        import_
        for import_ in imports(root)
        if import_.part in parts
        and any(import_.module == name or import_.module.startswith(f"{name}.") for name in modules)
    ]


def everyone_but(*parts: str) -> set[str]:
    return {part for _, part in files(PRODUCT)} - set(parts)


def test_every_part_of_the_product_has_its_layer() -> None:
    assert {part for _, part in files(PRODUCT)} - set().union(*LAYERS) == set()


def test_imports_point_downwards_only() -> None:
    assert [import_ for import_ in imports(PRODUCT) if not points_downwards(import_)] == []


def test_platforms_know_neither_network_nor_database_nor_settings() -> None:
    assert (
        by({"platforms"}, {f"catchment.{part}" for part in ("fetch", "store", "credentials", "health", "settings")})
        == []
    )


def test_no_platform_imports_another() -> None:
    others = {path.stem for path in (PRODUCT / "platforms").iterdir()} - {"_common", "__init__", "__pycache__"}
    foreign = [
        found
        for found in imports(PRODUCT)
        if found.part == "platforms" and found.module.startswith("catchment.platforms.")
        if (other := found.module.split(".")[2]) in others and other != Path(found.file).parts[1].removesuffix(".py")
    ]
    assert foreign == []


def test_decisions_know_neither_settings_nor_store_nor_network() -> None:
    assert (
        by({"policy"}, {f"catchment.{part}" for part in ("settings", "store", "fetch", "credentials", "health")}) == []
    )


def test_platforms_and_decisions_do_not_look_at_the_clock_or_roll_dice() -> None:
    looks = [
        f"{file.relative_to(PRODUCT)}: {ast.unparse(node)}"
        for file, part in files(PRODUCT)
        if part in {"platforms", "policy"}
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if looks_at_the_clock(node)
    ]
    assert looks == []
    assert by({"platforms", "policy"}, {"random", "secrets"}) == []


def looks_at_the_clock(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return any(alias.name == "SystemClock" for alias in node.names)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READ_THE_CLOCK
        and not node.args
    )


def test_only_the_store_speaks_sql() -> None:
    assert by(everyone_but("store"), {"sqlalchemy", "sqlite3", "psycopg", "alembic"}) == []


def test_only_fetch_opens_connections_to_platforms() -> None:
    clients = {"pycurl", "urllib.request", "http.client", "httpx", "requests", "aiohttp", "urllib3"}
    assert by(everyone_but("fetch"), clients) == []


def test_the_product_imports_no_tests_and_the_playground_only_for_the_demo() -> None:
    assert by(everyone_but(), {"tests", "tools", "bench"}) == []
    users = {import_.file for import_ in by(everyone_but("playground"), {"catchment.playground"})}
    assert users == {"cli/commands/demo.py", "playground/demo_view.py", "playground/demo_world.py"}


def test_the_playground_knows_nothing_of_those_whom_it_judges() -> None:
    known = {import_.imported_part for import_ in imports(PRODUCT) if import_.part == "playground"} - {None}
    assert known <= {"playground", "model", "clock", "errors"}


@pytest.mark.parametrize(
    ("path", "source", "module"),
    [
        ("judge.py", "from catchment.store.items.items import page", "catchment.store.items.items"),
        ("judge.py", "from catchment import __version__, store", "catchment.store"),
        ("judge.py", "import catchment.store.items.items as items", "catchment.store.items.items"),
        ("judge.py", "def f():\n    from catchment.store import items", "catchment.store"),
        ("judge.py", "if TYPE_CHECKING:\n    import catchment.store", "catchment.store"),
        ("judge.py", "from .store import items", "catchment.store"),
        ("judge.py", "from . import store", "catchment.store"),
        ("pace/rules.py", "from ..store.items import page", "catchment.store.items"),
    ],
)
def test_an_import_is_seen_however_it_is_written(tmp_path: Path, path: str, source: str, module: str) -> None:
    root = tmp_path / "catchment"
    (root / "store").mkdir(parents=True)
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text(source)
    assert [import_.module for import_ in by({"judge", "pace"}, {"catchment.store"}, root)] == [module]


@pytest.mark.parametrize(
    ("part", "module", "is_allowed"),
    [
        ("collect", "catchment.store", True),
        ("store", "catchment.collect", False),
        ("credentials", "catchment.health", False),
        ("settings", "catchment.errors", True),
        ("logs", "catchment.policy", False),
        ("errors", "catchment.model", False),
        ("settings", "catchment", True),
        ("errors", "datetime", True),
    ],
)
def test_down_is_allowed_up_and_sideways_are_not(part: str, module: str, is_allowed: bool) -> None:
    assert points_downwards(Import("file.py", part, module)) is is_allowed
