"""Imports modules, and builds parts of an object, on first use: a command pays only for what it uses.

Most of a short command's time is importing. A module in a `lazy_imports` block is imported when one of its names is
first used; type checkers and editors see an ordinary import:

    with lazy_imports():
        from catchment.store import migrate      # modules only: a class or function cannot wait

    migrate.ready(database)                      # imported here
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import RLock, get_ident
from types import ModuleType, SimpleNamespace
from typing import Any, AnyStr, Generic, TypeVar, cast

T = TypeVar("T")
_ONE_AT_A_TIME = RLock()


class LazyModule(ModuleType):
    """Stands for a module until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Within this block, `from package import module` and `import module` import nothing yet.

    Python 3.15 has a keyword for it (PEP 810). Imports by other threads in the meantime are not affected; other threads
    with such a block wait, so that each one restores what it found.
    """
    _ONE_AT_A_TIME.acquire()
    import_now, thread = builtins.__import__, get_ident()

    def import_later(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if get_ident() != thread:
            return import_now(name, globals, locals, fromlist or (), level)
        if not fromlist:
            return LazyModule(name)
        return SimpleNamespace(**{module: LazyModule(f"{name}.{module}") for module in fromlist})

    builtins.__import__ = import_later
    try:
        yield
    finally:
        builtins.__import__ = import_now
        _ONE_AT_A_TIME.release()


class _LazyPattern:
    def __init__(self, text: Any, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        # Found in the instance from then on: as fast as the pattern itself.
        value = self.__dict__[name] = getattr(re.compile(self._text, self._flags), name)
        return value


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression that is compiled on first use: Python compiles them slowly, a fifth of a command's start.

    It has the methods of a pattern; the functions of `re` do not accept it.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))


class part(Generic[T]):
    """A part of an object that is built on first use; once, also where several threads are the first to need it.

    The object has a lock named `building`.
    """

    def __init__(self, build: Callable[[Any], T]) -> None:
        self._build, self.__doc__ = build, build.__doc__

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, _: type) -> T:
        with owner.building:
            if self._name not in owner.__dict__:
                owner.__dict__[self._name] = self._build(owner)
            built: T = owner.__dict__[self._name]
            return built
