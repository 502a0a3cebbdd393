"""Imports and exports lists of sources: many at once, each accepted or refused on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files

from catchment.credentials.secret_store import SecretStore
from catchment.errors import InvalidInput, NotFound, VaultError
from catchment.logs import redact
from catchment.messages import message
from catchment.model import (
    Progress,
    Record,
    Source,
    SourceState,
)
from catchment.platforms import Platforms
from catchment.sources import add, list_formats
from catchment.sources.list_formats import UNTOLD_PRIORITY, BadRow, ListedSource, SourceList
from catchment.store import Store
from catchment.store.sources.sources import ListedChanges, SourceRequest

NAMES_CREDENTIAL = (
    "it specifies a credential",
    "the author of the list could send your secret to any host; if you trust it, import it with "
    "`--allow-credentials`, or with that box ticked",
)
# Per transaction: few enough that a running collector never waits for long.
_BATCH = 500


class Imported(Record, frozen=True):
    """The result of importing a list."""

    added: tuple[int, ...] = ()
    """The ids of the new sources."""
    changed: tuple[int, ...] = ()
    """Existing sources that took over values from a pool of communities."""
    same: tuple[int, ...] = ()
    """Existing sources that did not change."""
    refused: tuple[BadRow, ...] = ()

    @property
    def known(self) -> tuple[int, ...]:
        """The existing sources."""
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
    safe: SecretStore,
    platforms: Platforms,
    entries: Sequence[ListedSource],
    now: datetime,
    done: Callable[[int], None] = lambda _: None,
    *,
    may_name_credentials: bool = False,
) -> Imported:
    """Adds all sources that can be added; calls `done` after every few hundred with the number processed.

    Lists come from strangers: an entry that names a credential is refused unless the operator allows it.
    """
    whole = Imported()
    for batch in _batches(entries):
        whole += _follow_batch(store, safe, platforms, batch, now, may_name_credentials)
        done(len(whole.added) + len(whole.known) + len(whole.refused))
    return whole


def _batches(entries: Sequence[ListedSource]) -> Iterator[Sequence[ListedSource]]:
    for start in range(0, len(entries), _BATCH):
        yield entries[start : start + _BATCH]


def _follow_batch(
    store: Store,
    safe: SecretStore,
    platforms: Platforms,
    batch: Sequence[ListedSource],
    now: datetime,
    may_name_credentials: bool,
) -> Imported:
    taken: list[tuple[ListedSource, SourceRequest]] = []
    refused: list[BadRow] = []
    for entry in batch:
        try:
            if entry.credential is not None and not may_name_credentials:
                raise InvalidInput(*NAMES_CREDENTIAL, field="credential")
            taken.append((entry, _request_of(store, safe, platforms, entry, now)))
        except (InvalidInput, NotFound, VaultError) as error:
            refused.append(BadRow(entry.place, redact(entry.target), redact(str(error))))
    results = store.sources.follow_many([request for _, request in taken], now)
    for (entry, _), (source_id, is_new) in zip(taken, results, strict=True):
        if is_new and entry.is_paused:
            add.pause(store, source_id, message("source.paused_in_list"), now)
    listed = [entry for entry, _ in taken]
    changed = store.sources.merge(_told(listed, results))
    existing = [source_id for source_id, is_new in results if not is_new]
    return Imported(
        tuple(source_id for source_id, is_new in results if is_new),
        tuple(source_id for source_id in existing if source_id in changed),
        tuple(source_id for source_id in existing if source_id not in changed),
        tuple(refused),
    )


def _told(listed: Sequence[ListedSource], results: Sequence[tuple[int, bool]]) -> dict[int, ListedChanges]:
    """Returns the pool's values for its communities that exist already. Whether they are paused does not change."""
    return {
        source_id: ListedChanges(entry.categories, entry.priority, entry.quality_score)
        for entry, (source_id, is_new) in zip(listed, results, strict=True)
        if entry.is_of_pool and not is_new
    }


def _request_of(
    store: Store, safe: SecretStore, platforms: Platforms, source: ListedSource, now: datetime
) -> SourceRequest:
    return add.source_request(
        store,
        safe,
        platforms,
        source.kind,
        source.target,
        now,
        name=source.name,
        settings=source.settings,
        credential=source.credential,
        interval_minutes=source.interval_minutes,
        categories=source.categories,
        priority=source.priority or UNTOLD_PRIORITY,
        quality_score=source.quality_score,
        is_from_list=True,
    )


def listed(store: Store) -> list[ListedSource]:
    """Returns all sources as list entries."""
    return [_as_listed(source) for source, _ in _everything(store)]


def _everything(store: Store) -> Iterator[tuple[Source, Progress]]:
    after = 0
    while page := store.sources.page(after, _BATCH):
        yield from page
        after = page[-1][0].id


def _as_listed(source: Source) -> ListedSource:
    return ListedSource(
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


STARTER, COMMUNITIES = "starter", "communities"


def shipped(name: str, platforms: Platforms) -> tuple[SourceList, tuple[ListedSource, ...]]:
    """Returns the list, and the entries left out because this installation does not know their kind."""
    whole = list_formats.read((files(__package__) / f"{name}.json").read_bytes())
    unknown = tuple(entry for entry in whole.entries if platforms.of_kind(entry.kind) is None)
    return whole.replace(entries=tuple(entry for entry in whole.entries if entry not in unknown)), unknown
