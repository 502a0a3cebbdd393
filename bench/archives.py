"""Archives of any size, filled in minutes: straight into the store's tables, and then indexed by the real indexer.

What an archive says is a function of its size alone: a source for every 500 items, an author for every 25, tags of
which some are everywhere and some hardly anywhere, three texts of five in English and two in Chinese. Ids follow the
order of storing, as they do in life, one item in 50 was edited since, and one in 500 is the head of a thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any

from bench.world import CHINESE, ENGLISH, World
from catchment.clock import micros
from catchment.store import Store
from catchment.store.database import Transaction
from catchment.store.item_fields import to_json
from catchment.store.schema import metadata
from catchment.store.search.facets import kind_facet, platform_facet
from catchment.store.search.lists import ALL, source_list

NOW = datetime(2026, 6, 1, tzinfo=UTC)
RARE, FREQUENT, CHINESE_WORD, MIXED = "quokkaqx", "everywhereqx", "河口", "iphoneqx 手机壳"
RARE_ITEMS = 20
"""So many items have the rare word, however many there are."""
BATCH = 5_000
PAGE, EDITED = 50, 50
"""So many items were stored at once; one in so many was edited since."""
HEADS, REPLIES = 500, 40
"""One item in so many is the head of a thread, and so many that follow it are the replies."""
COUNTED = 12
"""So often the counters of a head were noted down while it grew."""
_EVERY = 20_000_000
"""Microseconds from one item to the next."""

Row = dict[str, Any]
_FLAGS: Row = {column.name: False for column in metadata.tables["items"].c if column.name.startswith("is_")}


class Archive:
    """What an archive of so many items holds, row by row; items are numbered from 1, the oldest."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.sources, self.authors = max(1, size // 500), max(1, size // 25)
        self._begin = micros(NOW) - size * _EVERY

    @cached_property
    def _world(self) -> World:
        return World(feeds=1)

    def source_of(self, number: int) -> int:
        """Sources take turns page by page."""
        return number // PAGE % self.sources + 1

    def author_of(self, number: int) -> str:
        return f"author{number * 7 % self.authors}"

    def tags_of(self, number: int) -> list[str]:
        return [ENGLISH[number % 7], CHINESE[number // 3 % len(CHINESE)]]

    def kind_of(self, number: int) -> str:
        return "story" if number % 4 == 0 else "entry"

    def head_of(self, number: int) -> int | None:
        """The head of the thread that it belongs to, if only as that head; None: to none."""
        return number - number % HEADS if number >= HEADS and number % HEADS <= REPLIES else None

    def last_reply_at(self, number: int) -> int | None:
        last = min(number + REPLIES, self.size)
        return self.time_of(last) if self.head_of(number) == number < last else None

    def time_of(self, number: int) -> int:
        return self._begin + number * _EVERY

    @property
    def pages(self) -> int:
        return self.size // PAGE + 1

    def change_of(self, number: int) -> int:
        return self.pages + number // EDITED if number % EDITED == 0 else number // PAGE + 1

    @property
    def last_change(self) -> int:
        return self.pages + self.size // EDITED

    def text_of(self, number: int) -> str:
        sentences = self._world.chinese if number % 5 < 2 else self._world.english
        words = [sentences[number * step % 600] for step in (7, 11, 13)]
        words.append(f"w{number * 31 % 50_021}")
        if number % max(1, self.size // RARE_ITEMS) == 0:
            words.append(RARE)
        if number % 5 == 2:
            words.append(FREQUENT)
        if number % 50 == 3:
            words.append(MIXED)
        return " ".join(words)

    def item(self, number: int) -> Row:
        at, change, text = self.time_of(number), self.change_of(number), self.text_of(number)
        head = self.head_of(number)
        return _FLAGS | {
            "id": number,
            "platform": "feeds",
            "scope": "",
            "external_id": external_id(number),
            "kind": self.kind_of(number),
            "source_id": self.source_of(number),
            "created_at": at,
            "ordered_at": at,
            "first_seen_at": at + _EVERY,
            "content_last_changed_at": at + _EVERY,
            "applied_at": at + _EVERY,
            "change_number": change,
            "content_change_number": change,
            "version": 2 if number % EDITED == 0 else 1,
            "fingerprint": blake2b(text.encode(), digest_size=16).digest(),
            "fingerprint_rule": 1,
            "volatile_count": 0,
            "score": number % 1_000,
            "reply_count": 0 if number % HEADS else REPLIES,
            "rounded": "[]",
            "thread_id": external_id(head) if head else None,
            "is_head": head == number,
            "last_reply_at": self.last_reply_at(number),
            "author": self.author_of(number),
            "title": f"{text[:60]} #{number}",
            "url": f"https://archive.example/p/{number}",
            "tags": to_json(self.tags_of(number)),
            "media": "[]",
            "title_prefixes": "[]",
            "text": text,
            "html": f"<p>{text}</p>",
        }

    def revision(self, number: int) -> Row:
        item = self.item(number)
        kept = ("fingerprint", "is_deleted", "is_folded", "title", "media", "text", "html")
        return {name: item[name] for name in kept} | {
            "item_id": number,
            "version": 1,
            "valid_from": item["first_seen_at"],
            "valid_to": item["first_seen_at"] + _EVERY,
            "reasons": "text",
        }

    def replied(self, number: int) -> Iterator[Row]:
        """Its places in the lists by last reply."""
        at = self.last_reply_at(number)
        facets = (platform_facet("feeds"), kind_facet(self.kind_of(number)), kind_facet("rss"))
        for name in (ALL, *facets, source_list(self.source_of(number))) if at else ():
            yield {"list": name, "last_reply_at": at, "item_id": number}

    def counter_points(self, number: int) -> Iterator[Row]:
        for place in range(COUNTED):
            yield {
                "item_id": number,
                "at": self.time_of(number) + (place + 1) * _EVERY,
                "score": number % 1_000 * place // COUNTED,
                "reply_count": REPLIES * place // COUNTED,
            }

    def sighting(self, number: int) -> Row:
        at = self.time_of(number)
        return {
            "source_id": self.source_of(number),
            "ordered_at": at,
            "item_id": number,
            "first_seen_at": at + _EVERY,
            "last_seen_at": at + _EVERY,
        }

    def source(self, source_id: int) -> Row:
        at = micros(NOW)
        return {
            "id": source_id,
            "key": f"rss:https://archive.example/{source_id}",
            "platform": "feeds",
            "kind": "rss",
            "target": f"https://archive.example/{source_id}",
            "name": f"Feed {source_id}",
            "is_name_given": False,
            "settings": "{}",
            "categories": "[]",
            "priority": "medium",
            "state": "active",
            "state_changed_at": at,
            "created_at": at,
        }


def external_id(number: int) -> str:
    return f"tag:archive.example,2026:{number}"


def fill(store: Store, archive: Archive) -> None:
    """All rows but the index's, a few thousand items in each transaction."""
    store.database.write(lambda tx: _begin(tx, archive))
    for first in range(1, archive.size + 1, BATCH):
        numbers = range(first, min(first + BATCH, archive.size + 1))
        store.database.write(lambda tx, numbers=numbers: _add(tx, archive, numbers))  # type: ignore[misc]
    store.database.write(
        lambda tx: tx.run(
            "UPDATE ledger SET change_number = ?, last_item_id = ? WHERE id = 1", archive.last_change, archive.size
        )
    )


def index(store: Store) -> float:
    """By the real indexer, until nothing waits; gives items a second."""
    begun, count = time.perf_counter(), 0
    while indexed := store.index.advance():
        count += indexed
    store.index.update_planner_statistics()
    return count / (time.perf_counter() - begun)


def _begin(tx: Transaction, archive: Archive) -> None:
    insert(tx, "sources", map(archive.source, range(1, archive.sources + 1)))
    insert(tx, "tags", ({"id": at, "name": name, "first_seen_at": 0} for name, at in _tag_ids().items()))


def _add(tx: Transaction, archive: Archive, numbers: range) -> None:
    insert(tx, "items", map(archive.item, numbers))
    insert(tx, "sightings", map(archive.sighting, numbers))
    insert(tx, "revisions", (archive.revision(number) for number in numbers if number % EDITED == 0))
    heads = [number for number in numbers if number % HEADS == 0]
    insert(tx, "replied", (place for number in heads for place in archive.replied(number)))
    insert(tx, "counter_points", (point for number in heads for point in archive.counter_points(number)))
    ids = _tag_ids()
    insert(
        tx,
        "item_tags",
        (
            {"item_id": number, "tag_id": ids[tag], "first_seen_at": 0}
            for number in numbers
            for tag in archive.tags_of(number)
        ),
    )


def _tag_ids() -> dict[str, int]:
    return {name: at for at, name in enumerate((*ENGLISH[:7], *CHINESE), 1)}


def insert(tx: Transaction, table: str, rows: Iterable[Row]) -> None:
    """Rows of one shape."""
    told = list(rows)
    if told:
        tx.insert(table, list(told[0]), [tuple(row.values()) for row in told])
