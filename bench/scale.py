"""What a large archive costs its readers: the same questions to a small one and to a large one, by turns.

Asked are the store's own verbs, those that the API calls. By turns: whatever else the machine does disturbs both alike.
Runs in a process of its own: `python -m bench.scale sqlite 25000 1000000` prints its figures as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.archives import CHINESE_WORD, FREQUENT, MIXED, NOW, RARE, RARE_ITEMS, Archive, fill, index
from bench.postgres import postgres
from bench.processes import run
from catchment.refine import fingerprint
from catchment.store import Store, open_store
from catchment.store.changes import Place
from catchment.store.filtering import Filter

SORTS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
LIST, FAR_PAGE, FAR_SIZE, READ_ON = 30, 1_000, 20, 50
WARM_UPS, REPEATS = 5, 60


@dataclass(frozen=True)
class Answer:
    """One question, put to both archives."""

    question: str
    most: float
    """At most so many times as long with the large archive as with the small one."""
    small_ms: float
    large_ms: float

    @property
    def times(self) -> float:
        return self.large_ms / self.small_ms


@dataclass(frozen=True)
class Scale:
    sort: str
    small: int
    large: int
    answers: list[Answer]
    indexed_per_second: float
    """While the large archive was indexed."""

    def broken(self) -> list[str]:
        return [
            f"{SORTS[self.sort]}: {one.question} takes {one.times:.1f} × as long with {self.large:,} items as with "
            f"{self.small:,}; promised are {one.most:.0f}"
            for one in self.answers
            if one.times > one.most
        ]


def measure(sort: str, small: int, large: int) -> Scale:
    answer, _ = run([sys.executable, "-m", "bench.scale", sort, str(small), str(large)], weighs=False)
    told = json.loads(answer)
    return Scale(**told | {"answers": [Answer(**one) for one in told["answers"]]})


class Readers:
    """The questions to one archive. Each gives how many items it got: a quick nothing must not pass for fast."""

    def __init__(self, store: Store, archive: Archive) -> None:
        self._store, self._archive = store, archive
        # In the middle, and not the first of its page or of its kind: nothing about it is special.
        self._number = archive.size // 2 + 3
        self._far = self.far_key()

    def questions(self) -> Iterator[tuple[str, float, Callable[[], int]]]:
        number, archive = self._number, self._archive
        source_id, author = archive.source_of(number), archive.author_of(number)
        tag, common = archive.tags_of(number)[1], archive.tags_of(number)[0]
        yield f"newest {LIST}", 2, lambda: self._listed(Filter())
        yield "of a kind", 2, lambda: self._listed(Filter(kind="story"))
        yield "of an author", 2, lambda: self._listed(Filter(author=author))
        yield "with a tag", 2, lambda: self._listed(Filter(tag=tag))
        yield "of a source", 2, lambda: self._listed(Filter(source_id=source_id))
        yield (
            "of a kind, with two conditions more",
            2,
            lambda: self._listed(Filter(kind="entry", tag=common, since=NOW.replace(year=2000))),
        )
        yield "of a source, with a tag", 2, lambda: self._listed(Filter(source_id=source_id, tag=common))
        yield (
            f"page {self._pages:,} by key",
            2,
            lambda: len(self._store.items.listed(Filter(), FAR_SIZE, self._far).items),
        )
        yield "search: a rare word", 5, lambda: self._found(RARE)
        yield "search: a frequent word", 5, lambda: self._found(FREQUENT)
        yield "search: two Chinese characters", 5, lambda: self._found(CHINESE_WORD)
        yield "search: English and Chinese", 5, lambda: self._found(MIXED)
        yield "search: a frequent word, best first", 5, lambda: self._found(FREQUENT, is_best=True)
        yield "changes, from the middle", 2, lambda: self._changed(archive.pages // 2)
        yield "changes, counters too", 2, lambda: self._changed(archive.pages // 2, counters=True)
        yield "changes, the latest", 2, lambda: self._changed(archive.last_change - READ_ON)

    def check(self) -> None:
        """What is indexed is found: a rare word in every item that has it."""
        expected = len(range(0, self._archive.size, self._archive.size // RARE_ITEMS))
        found = len(self._store.search.find(RARE, limit=200).items)
        if found < min(expected, RARE_ITEMS):
            raise SystemExit(f"{RARE} is in {expected} items of {self._archive.size:,}; search finds {found}")

    @property
    def _pages(self) -> int:
        return min(FAR_PAGE, self._archive.size // FAR_SIZE)

    def far_key(self) -> tuple[int, int]:
        """Where the far page begins, as whoever walks there page by page would get it."""
        last_before = self._archive.size - (self._pages - 1) * FAR_SIZE + 1
        return self._archive.time_of(last_before), last_before

    def _listed(self, wanted: Filter) -> int:
        return len(self._store.items.listed(wanted, LIST).items)

    def _found(self, words: str, *, is_best: bool = False) -> int:
        return len(self._store.search.find(words, is_best=is_best, limit=LIST).items)

    def _changed(self, number: int, *, counters: bool = False) -> int:
        return len(self._store.changes.after(Place(number), READ_ON, counters=counters).items)


def compare(small: Readers, large: Readers) -> list[Answer]:
    small.check()
    large.check()
    return [
        _asked_by_turns(question, most, ask_small, ask_large)
        for (question, most, ask_small), (_, _, ask_large) in zip(small.questions(), large.questions(), strict=True)
    ]


def _asked_by_turns(question: str, most: float, small: Callable[[], int], large: Callable[[], int]) -> Answer:
    for _ in range(WARM_UPS):
        if not (small() and large()):
            raise SystemExit(f"{question}: no answer")
    times = [(_milliseconds(small), _milliseconds(large)) for _ in range(REPEATS)]
    return Answer(question, most, median(one for one, _ in times), median(other for _, other in times))


def _milliseconds(ask: Callable[[], int]) -> float:
    # On the clock: a PostgreSQL works in processes of its own.
    begun = time.perf_counter()
    ask()
    return (time.perf_counter() - begun) * 1e3


@contextmanager
def databases(sort: str, home: Path) -> Iterator[Callable[[str], str]]:
    """Gives the address of an empty database for every name."""
    if sort == "sqlite":
        yield lambda name: f"sqlite:///{home / name}.db"
    else:
        with postgres(home / "postgres") as address_of:
            yield address_of


def report(sort: str, sizes: tuple[int, int], home: Path) -> Scale:
    with ExitStack() as stack:
        address_of = stack.enter_context(databases(sort, home))
        readers, rate = [], 0.0
        for size in sizes:
            archive = Archive(size)
            store = open_store(address_of(f"of_{size}"), home / str(size), NOW, fingerprint)
            stack.callback(store.close)
            fill(store, archive)
            rate = index(store)
            print(f"{sort}: {size:,} items are indexed, {rate:,.0f} a second", file=sys.stderr, flush=True)
            readers.append(Readers(store, archive))
        return Scale(sort, *sizes, compare(*readers), rate)


def main() -> None:
    sort, small, large = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asdict(report(sort, (int(small), int(large)), Path(folder)))))


if __name__ == "__main__":
    main()
