"""Names that somebody gives: of kinds of sources, of kinds of items, of platforms. One that nothing has is a mistake,
and is said to be one: an empty list would look like an answer.

Known is what is installed, and what stands in the archive: what a platform brought stays readable without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from catchment.errors import InvalidInput
from catchment.platforms import Platforms, unknown

if TYPE_CHECKING:
    from catchment.model import Watch
    from catchment.store import Store
    from catchment.store.filtering import Filter


class Names:
    """The names of an archive and of an installation. The archive is asked first: loading all platforms takes longer
    than most commands."""

    def __init__(self, store: Store, platforms: Callable[[], Platforms]) -> None:
        self._store, self._platforms = store, platforms

    def source_kind(self, name: str) -> str:
        """The name, if sources are, or may be, of this kind."""
        followed = self._store.sources.kinds()
        if name in followed or self._platforms().kind(name) is not None:
            return name
        known = followed | self._installed_kinds()
        if name in self._platforms().item_kinds() or self._store.items.has_kind(name):
            what = f"{name!r} is a kind of items, not of sources"
            raise InvalidInput(what, f"known: {', '.join(sorted(known))}", field="kind")
        raise unknown("kind", name, known)

    def kind(self, name: str, field: str = "kind") -> str:
        """The name, if items, or the sources that show them, are or may be of this kind."""
        followed = self._store.sources.kinds()
        if name in followed or self._store.items.has_kind(name):
            return name
        known = self.kinds()
        if name not in known:
            raise unknown("kind", name, known, field)
        return name

    def kinds(self) -> list[str]:
        """Those of sources and those of items, to choose from."""
        return sorted(self._store.sources.kinds() | self._installed_kinds() | self._platforms().item_kinds())

    def platforms(self) -> list[str]:
        """To choose from."""
        return sorted({*self._store.sources.platforms_ever(), *self._platforms().by_name})

    def platform(self, name: str) -> str:
        followed = self._store.sources.platforms_ever()
        return name if name in followed else self._platforms().named(name, *followed)

    def checked(self, wanted: Filter) -> Filter:
        """What is asked for, if there are such things."""
        if wanted.kind is not None:
            self.kind(wanted.kind)
        if wanted.platform is not None:
            self.platform(wanted.platform)
        return wanted

    def checked_watch(self, watch: Watch) -> Watch:
        for name in watch.kinds:
            self.kind(name, field="kinds")
        return watch

    def _installed_kinds(self) -> set[str]:
        return {kind.name for kind in self._platforms().kinds()}
