"""Whether an item fits a watch. Pure. Words are found as a search finds them: see `wording`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from catchment.errors import InvalidInput
from catchment.model import Watch
from catchment.store.watches import Hit, Seen, Waiting
from catchment.wording import Query, answers, spoken, understand

_MOST_WORDS = 100
_LONGEST_NAME = 100


def checked(watch: Watch) -> Watch:
    """The watch, if it can ever be right: it has a name, and something that it looks for."""
    if not watch.name.strip() or len(watch.name) > _LONGEST_NAME or not watch.name.isprintable():
        raise InvalidInput(f"a watch needs a name of at most {_LONGEST_NAME} characters", field="name")
    wanted, unwanted = _split(watch.words)
    if not (wanted or watch.kinds or watch.source_ids or watch.authors):
        raise InvalidInput("a watch needs something to look for", "give words, a source, an author or a kind", "words")
    if len(watch.words) > _MOST_WORDS:
        raise InvalidInput(f"a watch has at most {_MOST_WORDS} words", "make several watches of it", "words")
    for word in (*wanted, *unwanted):
        try:
            understand(word)
        except InvalidInput as error:
            raise InvalidInput(f"{word!r} has no letter or digit that could be found", field="words") from error
    return watch


class Look:
    """An item that is looked at: its words are split only if a watch asks for them, and once for all watches."""

    def __init__(self, item: Seen) -> None:
        self.item = item

    @cached_property
    def said(self) -> str:
        return spoken(self.item.title, self.item.text)

    def has(self, word: str) -> bool:
        return answers(self.said, _understood(word))


# The same few words, for every item that comes in.
_understood: Callable[[str], Query] = lru_cache(maxsize=10_000)(understand)


def fitting(watch: Watch, looks: Sequence[Look], *, are_edits: bool = False) -> list[Hit]:
    """Which of these items the watch is to tell of."""
    found = ((look.item, matched(watch, look)) for look in looks)
    return [Hit(item, words, are_edits) for item, words in found if words is not None]


def edited(waiting: Waiting, looks: Sequence[Look]) -> list[Look]:
    """What of these changes is an edit to the watch: not the items that it has still to see as new ones."""
    return [look for look in looks if look.item.version > 1 and look.item.id <= waiting.last_item_id]


def matched(watch: Watch, look: Look) -> tuple[str, ...] | None:
    """The words of the watch that were found in the item; None: it does not fit. The cheap questions come first."""
    item = look.item
    if item.is_deleted:
        # That something was deleted is a change, too, but nothing that anybody wrote.
        return None
    if watch.kinds and not set(watch.kinds) & set(item.kinds):
        return None
    if watch.source_ids and not set(watch.source_ids) & item.source_ids:
        return None
    if watch.authors and not {one.casefold() for one in watch.authors} & {one.casefold() for one in item.authors}:
        return None
    wanted, unwanted = _split(watch.words)
    if not wanted and not unwanted:
        return ()
    found = tuple(word for word in wanted if look.has(word))
    is_enough = not wanted or (bool(found) if watch.is_any_enough else len(found) == len(wanted))
    return found if is_enough and not any(look.has(word) for word in unwanted) else None


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those that must occur, and those that must not."""
    return [word for word in words if not word.startswith("-")], [word[1:] for word in words if word.startswith("-")]
