"""Following what a list names: many sources at once, each refused or taken for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from catchment.collect import following
from catchment.collect.lists import UNTOLD_PRIORITY, BadRow, Listed
from catchment.errors import InvalidInput, NotFound, VaultError
from catchment.logs import redact
from catchment.model import Progress, Record, Source, SourceState
from catchment.platforms import Platforms
from catchment.store import Store
from catchment.store.merging import Described
from catchment.store.sources import Wanted
from catchment.vault import Safe

# So many a transaction: few enough that a collector at work never waits for long.
_BATCH = 500


class Imported(Record, frozen=True):
    """What became of a list."""

    added: tuple[int, ...] = ()
    """The ids of the new sources."""
    changed: tuple[int, ...] = ()
    """Those that were followed already, and took over what a pool of communities says of them."""
    same: tuple[int, ...] = ()
    """Those that were followed already, and are as they were."""
    refused: tuple[BadRow, ...] = ()

    @property
    def known(self) -> tuple[int, ...]:
        """Those that were followed already."""
        return (*self.changed, *self.same)

    def __add__(self, other: Imported) -> Imported:
        return Imported(
            self.added + other.added,
            self.changed + other.changed,
            self.same + other.same,
            self.refused + other.refused,
        )


def follow_all(
    store: Store,
    safe: Safe,
    platforms: Platforms,
    entries: Sequence[Listed],
    now: datetime,
    done: Callable[[int], None] = lambda _: None,
) -> Imported:
    """Follow all that can be followed; `done` hears after every few hundred how many are behind us."""
    whole = Imported()
    for batch in _batches(entries):
        whole += _follow_batch(store, safe, platforms, batch, now)
        done(len(whole.added) + len(whole.known) + len(whole.refused))
    return whole


def _batches(entries: Sequence[Listed]) -> Iterator[Sequence[Listed]]:
    for start in range(0, len(entries), _BATCH):
        yield entries[start : start + _BATCH]


def _follow_batch(store: Store, safe: Safe, platforms: Platforms, batch: Sequence[Listed], now: datetime) -> Imported:
    taken: list[tuple[Listed, Wanted]] = []
    refused: list[BadRow] = []
    for one in batch:
        try:
            taken.append((one, _wanted(store, safe, platforms, one, now)))
        except (InvalidInput, NotFound, VaultError) as error:
            refused.append(BadRow(one.place, redact(one.target), redact(str(error))))
    results = store.sources.follow_many([wanted for _, wanted in taken], now)
    for (one, _), (source_id, is_new) in zip(taken, results, strict=True):
        if is_new and one.is_paused:
            following.pause(store, source_id, "paused in the list that it came from", now)
    listed = [one for one, _ in taken]
    changed = store.sources.merge(_told(listed, results))
    known = [source_id for source_id, is_new in results if not is_new]
    return Imported(
        tuple(source_id for source_id, is_new in results if is_new),
        tuple(source_id for source_id in known if source_id in changed),
        tuple(source_id for source_id in known if source_id not in changed),
        tuple(refused),
    )


def _told(listed: Sequence[Listed], results: Sequence[tuple[int, bool]]) -> dict[int, Described]:
    """What a pool says about those of its communities that are followed already. Whether they are paused stays."""
    return {
        source_id: Described(one.categories, one.priority, one.quality_score)
        for one, (source_id, is_new) in zip(listed, results, strict=True)
        if one.is_of_pool and not is_new
    }


def _wanted(store: Store, safe: Safe, platforms: Platforms, one: Listed, now: datetime) -> Wanted:
    return following.wanted(
        store,
        safe,
        platforms,
        one.kind,
        one.target,
        now,
        name=one.name,
        settings=one.settings,
        credential=one.credential,
        interval_minutes=one.interval_minutes,
        categories=one.categories,
        priority=one.priority or UNTOLD_PRIORITY,
        quality_score=one.quality_score,
    )


def listed(store: Store) -> list[Listed]:
    """Everything that is followed, as a list names it."""
    return [_as_listed(source) for source, _ in _everything(store)]


def _everything(store: Store) -> Iterator[tuple[Source, Progress]]:
    after = 0
    while page := store.sources.page(after, _BATCH):
        yield from page
        after = page[-1][0].id


def _as_listed(source: Source) -> Listed:
    return Listed(
        target=source.target,
        kind=source.kind,
        name=source.name if source.name != source.target else None,
        categories=source.categories,
        priority=source.priority,
        interval_minutes=source.interval_minutes,
        quality_score=source.quality_score,
        settings=source.settings,
        credential=source.credential,
        is_paused=source.state == SourceState.PAUSED,
    )
