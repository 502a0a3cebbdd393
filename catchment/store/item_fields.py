"""The fields of items, each declared once: columns, rows and records derive from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import msgspec
from msgspec.structs import astuple

from catchment.clock import micros, moment
from catchment.messages import Message
from catchment.model import Item, Media, Record, Reference, StoredItem
from catchment.store.row_mappers import default_tester, field_types, mapper, row_builder


def _sentence(value: object) -> str:
    """Messages within events are English sentences."""
    if isinstance(value, Message):
        return str(value)
    # What msgspec expects of such a function for types that it does not handle.
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


encode = msgspec.json.Encoder(enc_hook=_sentence).encode
decode = msgspec.json.decode


def to_json(value: Any) -> str:
    return encode(value).decode()


def to_micros(value: datetime | None) -> int | None:
    return None if value is None else micros(value)


def to_moment(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


class Group(StrEnum):
    """What happens to a column of `items` when the item is seen again."""

    IDENTITY = "identity"
    """Written with the item. Only a reparse, or the complete form of a partial item, changes it."""
    CONTENT = "content"
    """Changed by an edit; a revision keeps the former value."""
    COUNTER = "counter"
    """Updated in place, without a revision."""
    LABEL = "label"
    """Updated in place, without a revision; what the platform does not state stays."""
    INTERNAL = "internal"
    """Bookkeeping of the store."""


class ItemColumn(NamedTuple):
    """How a field of an item is stored; its name and Python type are those of the field."""

    group: Group
    about: str = ""
    """Description for users of the API."""
    is_small: bool = False
    """A number of 32 bits."""
    is_large: bool = False
    """Large texts come last in a row: SQLite then reads the small columns without touching the pages that hold them."""


IDENTITY, CONTENT, COUNTER = ItemColumn(Group.IDENTITY), ItemColumn(Group.CONTENT), ItemColumn(Group.COUNTER)
LABEL, INTERNAL = ItemColumn(Group.LABEL), ItemColumn(Group.INTERNAL)


class ItemView(Record, frozen=True):
    """One item as it is shown: in the API, in exports and with `--json`, under these names and in this order.

    This is the only list of the columns of `items`, together with `ItemState`: the table, INSERT, the API's schema and
    exports derive from it.
    """

    id: Annotated[int, IDENTITY]
    platform: Annotated[str, IDENTITY]
    external_id: Annotated[str, IDENTITY]
    kind: Annotated[str, IDENTITY]
    source_id: Annotated[int, ItemColumn(Group.IDENTITY, "The first source that showed it.")]
    author: Annotated[str | None, LABEL]
    title: Annotated[str | None, CONTENT]
    text: Annotated[str | None, ItemColumn(Group.CONTENT, is_large=True)]
    html: Annotated[str | None, ItemColumn(Group.CONTENT, "Sanitised, but untrusted.", is_large=True)]
    url: Annotated[str | None, LABEL]
    created_at: Annotated[datetime, IDENTITY]
    edited_at: Annotated[datetime | None, LABEL]
    score: Annotated[int | None, COUNTER]
    reply_count: Annotated[int | None, COUNTER]
    view_count: Annotated[int | None, COUNTER]
    last_reply_at: Annotated[
        datetime | None,
        ItemColumn(
            Group.COUNTER,
            "Time of the last reply, as stated by the platform or taken from stored replies. Null: unknown.",
        ),
    ]
    thread_id: Annotated[str | None, IDENTITY]
    floor_number: Annotated[int | None, IDENTITY]
    is_head: Annotated[
        bool, ItemColumn(Group.IDENTITY, "It opens its thread; the others of the thread are its replies.")
    ]
    is_deleted: Annotated[bool, CONTENT]
    deleted_by: Annotated[
        str | None, ItemColumn(Group.LABEL, "Who removed it, if the platform says so: author or moderator.")
    ]
    is_folded: Annotated[bool, CONTENT]
    is_pinned: Annotated[bool, LABEL]
    is_digest: Annotated[bool, LABEL]
    version: Annotated[int, ItemColumn(Group.INTERNAL, "1 + how many revisions there are.", is_small=True)]
    fingerprint: Annotated[bytes, CONTENT]
    first_seen_at: Annotated[datetime, INTERNAL]
    content_last_changed_at: Annotated[datetime, INTERNAL]
    author_id: Annotated[str | None, IDENTITY]
    author_display_name: Annotated[str | None, LABEL]
    media: Annotated[tuple[Media, ...], ItemColumn(Group.CONTENT, is_large=True)]
    tags: Annotated[tuple[str, ...], LABEL]
    title_prefixes: Annotated[
        tuple[str, ...],
        ItemColumn(Group.LABEL, "Tags in brackets at the beginning of the title."),
    ]
    parent_id: Annotated[
        str | None,
        ItemColumn(
            Group.IDENTITY,
            "The id of the item that it replies to, where the platform names it. Where it names only a number: thread "
            "and number (`40#5`), until the post with that number is stored.",
        ),
    ]
    scope: Annotated[str, IDENTITY]
    target_url: Annotated[str | None, ItemColumn(Group.CONTENT, "The URL it links to, if that is not the item itself.")]
    is_adult: Annotated[bool, LABEL]
    is_created_at_guessed: Annotated[bool, IDENTITY]
    is_zone_guessed: Annotated[bool, IDENTITY]
    is_text_cut: Annotated[bool, INTERNAL]
    is_partial: Annotated[
        bool, ItemColumn(Group.INTERNAL, "Only a short form has been seen so far; the complete form will replace it.")
    ]
    language: Annotated[str | None, IDENTITY]
    ordered_at: Annotated[
        datetime,
        ItemColumn(
            Group.INTERNAL,
            "Sort key of lists: the earlier of the creation time and the first-seen time.",
        ),
    ]
    change_number: Annotated[int, ItemColumn(Group.INTERNAL, "Grows with every change, counters included.")]
    content_change_number: Annotated[
        int, ItemColumn(Group.INTERNAL, "Its change number when anything but counters changed last.")
    ]
    rounded: Annotated[tuple[str, ...], ItemColumn(Group.COUNTER, "Which of the counters are approximations.")]
    # From other tables.
    last_seen_at: datetime | None
    references: tuple[Reference, ...]


V = TypeVar("V", bound=ItemView)


def extended(view: type[V], item: ItemView, *more: Any) -> V:
    """Returns the item as a view that has more fields."""
    return view(*astuple(item), *more)


class ItemState(Record, frozen=True):
    """Columns of `items` that are never shown."""

    applied_at: Annotated[datetime, INTERNAL]
    """When the newest answer that changed it arrived."""
    fingerprint_rule: Annotated[int, ItemColumn(Group.INTERNAL, is_small=True)]
    volatile_until: Annotated[datetime | None, INTERNAL]
    volatile_count: Annotated[int, ItemColumn(Group.INTERNAL, is_small=True)]


def _columns() -> Iterator[tuple[str, ItemColumn]]:
    for record in (ItemView, ItemState):
        for name, hint in get_type_hints(record, include_extras=True).items():
            for column in getattr(hint, "__metadata__", ()):
                yield name, column


COLUMNS: dict[str, ItemColumn] = dict(sorted(_columns(), key=lambda column: column[1].is_large))
"""The columns of `items`, in the order of the table."""
TYPES = field_types(ItemView) | field_types(ItemState)
"""Their Python types."""


def names_of(group: Group) -> tuple[str, ...]:
    """Returns the columns of a group."""
    return tuple(name for name, column in COLUMNS.items() if column.group == group)


SHOWN = tuple(name for name in ItemView.__struct_fields__ if name in COLUMNS)
"""The columns that are shown."""
_STATED = {name for name in COLUMNS if name in Item.__struct_fields__} - {"created_at", "last_reply_at", "is_partial"}
"""Columns that hold what the platform stated, as it stated it."""


class NewRows(NamedTuple):
    """How new items are inserted: with a value for each of the columns, and the same literals for all rows."""

    columns: tuple[str, ...]
    literals: Mapping[str, str]
    row: Callable[[Item, Mapping[str, Any], Mapping[str, Any]], tuple[Any, ...]]
    """Makes the row of an item: from the item, from the values decided for it, and from those of all new items of its
    page (`PAGE_COLUMNS`); both encoded."""


PAGE_COLUMNS = frozenset(
    (
        *("platform", "source_id", "first_seen_at", "content_last_changed_at", "applied_at"),
        *("change_number", "content_change_number", "fingerprint_rule"),
    )
)
_DECIDED = frozenset(COLUMNS.keys() - _STATED - PAGE_COLUMNS)
_FIRST = {"version": "1", "volatile_until": "NULL", "volatile_count": "0"}
"""How the history of an item begins."""
_USUAL = {"external_id", "scope", "kind", "title", "text", "html", "url", "author", "author_id", "tags", "language"}
_UNUSUAL = sorted(_STATED - _USUAL)
_BLANK = {
    name: "FALSE" if TYPES[name].type is bool else "'[]'" if TYPES[name].is_list else "NULL"
    for name in (*_UNUSUAL, "last_reply_at", "parent_id", "is_partial")
}


def _new_rows(literals: Mapping[str, str]) -> NewRows:
    columns = tuple(name for name in COLUMNS if name not in literals)
    return NewRows(columns, literals, row_builder(Item, columns, _DECIDED, PAGE_COLUMNS))


WHOLE_ROWS = _new_rows(_FIRST)
BARE_ROWS = _new_rows(_FIRST | _BLANK)
"""For pages of nothing but bare items: half of the columns are blank for all of them, and binding a blank to a
statement costs as much as binding a number."""
is_bare = default_tester(Item, (*_UNUSUAL, "last_reply_at", "parent_floor", "references", "is_partial", "lacks_text"))
"""Whether an item states nothing but what entries of feeds usually state: content, author, tags, language."""


_STORED = {name: f"i.{name}" for name in StoredItem.__struct_fields__ if name in COLUMNS} | {
    "is_withheld": "i.is_deleted AND i.text IS NULL AND i.html IS NULL",
}
STORED_COLUMNS = ", ".join(_STORED.values())
"""SELECT list for `stored_item`."""
_stored_item = mapper(StoredItem, (*_STORED, "shown_at", "is_shown_by_source", "is_seen_by_others"))


def column_index(column: str) -> int:
    """Returns the index of that column in a row of `STORED_COLUMNS`."""
    return list(_STORED).index(column)


_APPLIED_AT = column_index("applied_at")


def stored_item(
    row: tuple[Any, ...], last_seen_at: int, is_shown_by_source: bool, is_seen_by_others: bool = False
) -> StoredItem:
    """Returns the stored item, seen at that time and by these sources."""
    return _stored_item(*row, max(row[_APPLIED_AT], last_seen_at), is_shown_by_source, is_seen_by_others)


def iso(micro: int | None) -> str | None:
    """Formats a time for output: ISO 8601 with offset."""
    return None if micro is None else moment(micro).isoformat()
