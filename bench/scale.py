"""What a large archive costs its readers: the same questions to a small one and to a large one, by turns.

Asked are the store's own verbs, those that the API calls, and the pages (`bench/pages.py`). By turns: whatever else the
machine does disturbs both alike. Runs in a process of its own, which prints its figures as JSON and leaves the archives
in the folder: `python -m bench.scale sqlite 10000 25000 1000000 FOLDER`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

from bench import pages, records
from bench.archives import CHINESE_WORD, FREQUENT, HEADS, MIXED, NOW, RARE, RARE_ITEMS, Archive, fill, index
from bench.pages import Shown
from bench.postgres import postgres
from bench.processes import run
from bench.timing import Times, by_turns
from catchment.cache import Cache
from catchment.clock import SystemClock
from catchment.model import Kind, Listing, Order, Ordering
from catchment.store import Store, open_store
from catchment.store.items.change_feed import ChangeCursor
from catchment.store.search.lists import Filter
from catchment.text.clean import fingerprint

SORTS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
LIST, FAR_PAGE, FAR_SIZE, READ_ON = 30, 1_000, 20, 50
WARM_UPS, REPEATS = 5, 60
OF_SOURCE, CACHED = "of a source", "of a source, from the cache"
_COMMUNITY = Kind("community", "", 60, "", (Listing("new", Order.NEWEST_FIRST),), is_tiered=True)


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


class Sizes(NamedTuple):
    """Of the archives: the large one is asked for pages beside the smallest, and by the store's verbs beside the
    small one."""

    smallest: int
    small: int
    large: int


@dataclass(frozen=True)
class Scale:
    sort: str
    smallest: int
    small: int
    large: int
    answers: list[Answer]
    indexed_per_second: float
    """While the large archive was indexed."""
    pages: list[Shown]

    def broken(self) -> list[str]:
        slow = [
            f"{SORTS[self.sort]}: {answer.question} takes {answer.times:.1f} × as long with {self.large:,} items as "
            f"with {self.small:,}; promised are {answer.most:.0f}"
            for answer in self.answers
            if answer.times > answer.most
        ]
        return slow + [
            f"{SORTS[self.sort]}: the page “{page.page}” takes {page.large.median:.0f} ms with {self.large:,} items, "
            f"{page.times:.1f} × as long as with {self.smallest:,}; promised are {page.promise}"
            for page in self.pages
            if not page.is_kept
        ]


def measure(sort: str, sizes: Sizes, kept_in: Path | None = None) -> Scale:
    """`kept_in`: the archives stay there, and those that are there already are used."""
    with tempfile.TemporaryDirectory() if kept_in is None else nullcontext(kept_in) as folder:
        answer, _ = run([sys.executable, "-m", "bench.scale", sort, *map(str, sizes), str(folder)], weighs=False)
    told = json.loads(answer)
    answers, shown = [Answer(**answer) for answer in told["answers"]], [_shown(**page) for page in told["pages"]]
    return Scale(**told | {"answers": answers, "pages": shown})


def _shown(page: str, most_times: float | None, small: dict[str, float], large: dict[str, float]) -> Shown:
    return Shown(page, most_times, Times(**small), Times(**large))


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
        replied_in = archive.source_of(archive.size // 2 // HEADS * HEADS)
        yield f"newest {LIST}", 2, lambda: self._listed(Filter())
        yield "of a kind", 2, lambda: self._listed(Filter(kind="story"))
        yield "of an author", 2, lambda: self._listed(Filter(author=author))
        yield "with a tag", 2, lambda: self._listed(Filter(tag=tag))
        yield OF_SOURCE, 2, lambda: self._listed(Filter(source_id=source_id))
        cache = Cache(self._store, None, SystemClock(), timedelta(days=1), timedelta(days=1))
        cache.refresh(source_id, _COMMUNITY)
        yield CACHED, 2, lambda: len(cache.listed(Filter(source_id=source_id), LIST).items)
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
        yield "by last reply", 2, lambda: self._listed(Filter(), Ordering.REPLIED)
        yield "of a source, by last reply", 2, lambda: self._listed(Filter(source_id=replied_in), Ordering.REPLIED)
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

    def _listed(self, wanted: Filter, order: Ordering = Ordering.POSTED) -> int:
        return len(self._store.items.listed(wanted, LIST, order=order).items)

    def _found(self, words: str, *, is_best: bool = False) -> int:
        return len(self._store.search.find(words, is_best=is_best, limit=LIST).items)

    def _changed(self, number: int, *, counters: bool = False) -> int:
        return len(self._store.changes.after(ChangeCursor(number), READ_ON, counters=counters).items)


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
    of_small, of_large = by_turns(small, large, REPEATS)
    return Answer(question, most, of_small.fastest, of_large.fastest)


# ── the archives ──────────────────────────────────────────────────────────────────────────────────────────────────


class Databases(Protocol):
    """One for each archive, by its name."""

    def address(self, name: str) -> str: ...

    def empty(self, name: str) -> None: ...


class Files:
    def __init__(self, home: Path) -> None:
        self._home = home

    def address(self, name: str) -> str:
        return f"sqlite:///{self._home / name}.db"

    def empty(self, name: str) -> None:
        for file in self._home.glob(f"{name}.db*"):
            file.unlink()


@contextmanager
def databases(sort: str, home: Path) -> Iterator[Databases]:
    if sort == "sqlite":
        yield Files(home)
    else:
        with postgres(home / "postgres") as server:
            yield server


@dataclass(frozen=True)
class Whole:
    """An archive that is filled and indexed, and where it is."""

    archive: Archive
    address: str
    home: Path
    indexed_per_second: float


def whole(sort: str, kept: Databases, folder: Path, size: int) -> Whole:
    """The archive of that size in this folder: filled, unless it is there already."""
    name, home, archive = f"of_{size}", folder / str(size), Archive(size)
    # Written last: without it, whoever filled the archive was cut off.
    note = folder / f"{size}.rate"
    if not note.exists():
        kept.empty(name)
        with closing(open_store(kept.address(name), home, NOW, fingerprint)) as store:
            fill(store, archive)
            records.keep(store, archive)
            note.write_text(str(index(store)))
    rate = float(note.read_text())
    print(f"{sort}: {size:,} items are indexed, {rate:,.0f} a second", file=sys.stderr, flush=True)
    return Whole(archive, kept.address(name), home, rate)


def report(sort: str, sizes: Sizes, folder: Path) -> Scale:
    folder.mkdir(parents=True, exist_ok=True)
    with databases(sort, folder) as kept:
        smallest, small, large = (whole(sort, kept, folder, size) for size in sizes)
        return Scale(sort, *sizes, asked(small, large), large.indexed_per_second, looked_at(smallest, large))


def asked(small: Whole, large: Whole) -> list[Answer]:
    with ExitStack() as stack:
        stores = [
            stack.enter_context(closing(open_store(archive.address, archive.home, NOW, fingerprint, may_migrate=True)))
            for archive in (small, large)
        ]
        return compare(Readers(stores[0], small.archive), Readers(stores[1], large.archive))


def looked_at(smallest: Whole, large: Whole) -> list[Shown]:
    with (
        pages.browser_of(smallest.address, smallest.home) as of_smallest,
        pages.browser_of(large.address, large.home) as of_large,
    ):
        return pages.compare((of_smallest, smallest.archive), (of_large, large.archive))


def main() -> None:
    sort, *sizes, folder = sys.argv[1:]
    print(json.dumps(asdict(report(sort, Sizes(*map(int, sizes)), Path(folder) / sort))))


if __name__ == "__main__":
    main()
