"""Resolves names of sources, source kinds, item kinds, categories and platforms. An unknown name is an error: an empty
list would look like an answer.

Known names are those installed and those in the archive: a platform's items stay readable without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from catchment.errors import InvalidInput, NotFound
from catchment.lazy import lazy_imports
from catchment.model import SourceState
from catchment.platforms import ANNOUNCED, Platforms, unknown

with lazy_imports():
    from catchment.credentials import secret
    from catchment.text import tokens

if TYPE_CHECKING:
    from catchment.model import Watch
    from catchment.store import Store
    from catchment.store.search.lists import Filter

_MOST_NAMED = 20
"""How many names an error suggests."""
_LONGEST_NUMBER = 18
_LISTED = "`catchment sources list` shows them all"


class NameResolver:
    """The names of an archive and of an installation. The archive is asked first: loading all platforms takes longer
    than most commands."""

    def __init__(self, store: Store, platforms: Callable[[], Platforms]) -> None:
        self._store, self._platforms = store, platforms

    def source_kind(self, name: str) -> str:
        """Returns the name if sources are, or may be, of this kind."""
        followed = self._store.sources.kinds()
        if name in followed or name in ANNOUNCED or self._platforms().kind(name) is not None:
            return name
        kinds = followed | self._installed_kinds() | set(ANNOUNCED)
        if name in self._platforms().item_kinds() or self._store.items.has_kind(name):
            raise InvalidInput(
                "{name!r} is a kind of items, not of sources",
                "known: {kinds}",
                field="kind",
                name=name,
                kinds=", ".join(sorted(kinds)),
            )
        raise unknown("kind", name, kinds)

    def kind(self, name: str, field: str = "kind") -> str:
        """Returns the name if items, or the sources that show them, are or may be of this kind."""
        followed = self._store.sources.kinds()
        if name in followed or self._store.items.has_kind(name):
            return name
        kinds = self.kinds()
        if name not in kinds:
            raise unknown("kind", name, kinds, field)
        return name

    def kinds(self) -> list[str]:
        """Returns the kinds of sources and of items, to choose from."""
        return sorted(self._store.sources.kinds() | self._installed_kinds() | self._platforms().item_kinds())

    def platforms(self) -> list[str]:
        """Returns the platforms, to choose from."""
        return sorted({*self._store.sources.platforms_ever(), *self._platforms().by_name})

    def platform(self, name: str) -> str:
        followed = self._store.sources.platforms_ever()
        return name if name in followed else self._platforms().named(name, *followed)

    def category(self, name: str) -> str:
        """Returns the name if a source is, or was, in this category."""
        categories = self._store.sources.categories()
        if any(tokens.folded(name) == tokens.folded(category) for category in categories):
            return name
        if self._store.sources.page(category=name, limit=1, states=[SourceState.REMOVED]):
            return name
        if not categories:
            raise InvalidInput(
                "unknown category {name!r}",
                "no source has a category yet; assign one first",
                "category",
                name=name[:100],
            )
        # Only the largest: a list of hundreds does not help.
        raise unknown("category", name, list(categories)[:_MOST_NAMED])

    def source(self, text: str) -> int:
        """Returns the id of the source meant by an id, a name, a URL (in any form that its platform accepts), or words
        of these. Does not check that a source with a given id exists."""
        typed = text.strip()
        if typed.isascii() and typed.isdecimal():
            if not 1 <= len(typed) <= _LONGEST_NUMBER:
                raise InvalidInput("{text!r} is not the id of a source", _LISTED, "source", text=text[:50])
            return int(typed)
        plain, _ = secret.strip_url(typed)
        return self._only(text, self._store.sources.matching(plain, _MOST_NAMED + 1) or list(self._of_target(plain)))

    def exact_source(self, text: str) -> int:
        """Returns the id of the source with this name or URL (in any form that its platform accepts). For programs: a
        source whose name only contains the text is another one."""
        plain, _ = secret.strip_url(text.strip())
        matches = self._store.sources.matching(plain, _MOST_NAMED + 1, is_exact=True) or list(self._of_target(plain))
        return self._only(text, matches)

    def _only(self, text: str, matches: Sequence[tuple[int, str]]) -> int:
        """Returns the id of the one that matches. Raises if there is none, or more than one."""
        if len(matches) == 1:
            return matches[0][0]
        if not matches:
            raise NotFound("there is no source named {text!r}", _LISTED, text=text[:100])
        choices = ", ".join(f"{source_id} ({name})" for source_id, name in matches[:_MOST_NAMED])
        more = " …" if len(matches) > _MOST_NAMED else ""
        raise InvalidInput(
            "{text!r} matches several sources",
            "use the number of one: {choices}{more}",
            "source",
            text=text[:100],
            choices=choices,
            more=more,
        )

    def _of_target(self, text: str) -> Iterator[tuple[int, str]]:
        """Yields id and name of the sources for what a person typed, as each platform understands it."""
        for platform in self._platforms():
            for kind in platform.KINDS:
                try:
                    address = platform.understand(text, kind.name).address
                except InvalidInput:
                    continue
                if (source := self._store.sources.of_target(kind.name, address)) is not None:
                    yield source.id, source.name

    def checked(self, filters: Filter) -> Filter:
        """Returns the filter if everything it names exists."""
        if filters.category is not None:
            self.category(filters.category)
        if filters.kind is not None:
            self.kind(filters.kind)
        if filters.platform is not None:
            self.platform(filters.platform)
        return filters

    def is_of_forums(self, filters: Filter) -> bool:
        """Whether a list is of forums only: threads are then shown before their floors."""
        names = [filters.kind] if filters.kind is not None else []
        if filters.source_id is not None:
            with suppress(NotFound):
                names.append(self._store.sources.get(filters.source_id, even_removed=True).kind)
        kinds = [kind for name in names if (kind := self._platforms().kind(name)) is not None]
        if filters.platform is not None and (platform := self._platforms().by_name.get(filters.platform)) is not None:
            kinds += platform.KINDS
        return bool(kinds) and all(kind.forum is not None for kind in kinds)

    def checked_watch(self, watch: Watch) -> Watch:
        for name in watch.kinds:
            self.kind(name, field="kinds")
        return watch

    def _installed_kinds(self) -> set[str]:
        return {kind.name for kind in self._platforms().kinds()}
