"""`items`, `show`, `changes`, `revisions`, `gaps`: what is stored."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, ItemId, Limit, OfSource, moment, reached
from catchment.cli.sources import show_gaps
from catchment.model import Ordering

if TYPE_CHECKING:
    from catchment.hot import Hot
    from catchment.store import Store
    from catchment.store.changes import Place
    from catchment.store.filtering import Filter

_PAGE = 500


def items(
    source: OfSource = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only of this kind: the item's own, or its source's.")
    ] = None,
    platform: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this platform.")] = None,
    author: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only by this author, written as the platform writes it.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only with this tag.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=moment, metavar="TIME", help="Only from this time on, by what the list is ordered by; UTC."
        ),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(parser=moment, metavar="TIME", help="Only before this time; UTC.")
    ] = None,
    deleted: Annotated[
        bool | None, typer.Option("--deleted/--not-deleted", help="Only what its source has deleted, or has not.")
    ] = None,
    changed_since: Annotated[
        int | None,
        typer.Option(metavar="N", callback=reached, help="Only what is new or has changed after this change number."),
    ] = None,
    order: Annotated[
        Ordering, typer.Option(help="Newest first by what: posting time, or last reply, of what has one.")
    ] = Ordering.POSTED,
    limit: Limit = 30,
    before: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only those behind this place: the key of the last one shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what is stored, newest first.

    With --json one object a line.
    """
    from catchment.store.filtering import Filter
    from catchment.store.items import key_from

    place = key_from(before)
    wanted = Filter(source, kind, platform, author, tag, since, until, deleted, changed_since)
    settings = doors.settings()
    with doors.opened_store(settings) as (store, now), doors.opened_hot(settings, store) as hot:
        doors.check(store, wanted)
        found = _listed(hot, wanted, limit, place, order)
        first = list(islice(found, 1))
        if source is not None and not first:
            # Nothing of it: is there such a source at all? One that was removed has its items still.
            _check_source(store, source)
        if as_json:
            showing.lines(chain(first, found))
        else:
            _show_items([*first, *found], now, limit, order)


def _check_source(store: Store, source_id: int) -> None:
    if not store.items.newest(1, source_id=source_id):
        store.sources.get(source_id)


def _listed(
    hot: Hot, wanted: Filter, limit: int, place: tuple[int, int] | None, order: Ordering
) -> Iterator[dict[str, Any]]:
    """Page by page, so that a long list is neither held in memory nor in one long read."""
    from catchment.store.items import key_of

    while limit > 0:
        page = hot.listed(wanted, min(limit, _PAGE), place, order)
        for item in page.items:
            yield item | {"key": key_of(item, order)}
        if page.next is None:
            return
        limit -= len(page.items)
        place = page.next


def _show_items(found: Sequence[dict[str, Any]], now: datetime, limit: int, order: Ordering) -> None:
    word, time = ("posted", "created_at") if order == Ordering.POSTED else ("last reply", "last_reply_at")
    showing.table(
        ("#id", word, "author", "title", "#score", "#replies", "#version"),
        (
            (
                str(one["id"]),
                showing.when(one[time], now),
                one["author_display_name"] or one["author"],
                _headline(one),
                one["score"],
                one["reply_count"],
                one["version"],
            )
            for one in found
        ),
    )
    if len(found) == limit:
        showing.note(f"more: --before {found[-1]['key']}")


def _headline(item: dict[str, Any]) -> str:
    words = " ".join((item["title"] or item["text"] or item["url"] or "").split())
    marks = [word for word in ("deleted", "folded", "pinned") if item[f"is_{word}"]]
    return (words[:160] + "…" if len(words) > 160 else words) + (f" [{', '.join(marks)}]" if marks else "")


def show(
    item_id: ItemId,
    at: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="As it was then, as in 2026-03-01T00:00:00Z; UTC."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show one item whole, as it is or as it was.

    With --at what it said at that moment; its counters only if none were told since.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        found = store.items.get(item_id) if at is None else store.items.as_of(item_id, at)
    if as_json:
        showing.document(found)
    else:
        _show_item(found, now)


def _show_item(item: dict[str, Any], now: datetime) -> None:
    showing.say(f"item {item['id']}: {_headline(item)}")
    since = f"version {item['version']}, since {showing.at(item['content_last_changed_at'], now)}"
    until = f", until {showing.at(item['valid_to'], now)}" if item.get("valid_to") else ""
    showing.facts(
        (
            ("posted", showing.at(item["created_at"], now)),
            ("author", item["author_display_name"] or item["author"]),
            ("address", item["url"]),
            ("points to", item["target_url"]),
            ("tags", item["tags"]),
            ("score", item["score"]),
            ("replies", item["reply_count"]),
            ("last reply", item["last_reply_at"] and showing.at(item["last_reply_at"], now)),
            ("views", item["view_count"]),
            ("said", since + until),
            ("first seen", showing.at(item["first_seen_at"], now)),
            ("last seen", showing.at(item["last_seen_at"], now)),
        )
    )
    if item["text"]:
        showing.say()
        showing.say(item["text"])


def changes(
    after: Annotated[
        str,
        typer.Option(metavar="PLACE", help="What was read already: a change number, or the key of the last one shown."),
    ] = "0",
    limit: Limit = 30,
    counters: Annotated[bool, typer.Option("--counters", help="Also items of which only counters changed.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what is new or has changed, oldest change first.

    With --json one object a line; the key of the last line is where to go on with --after.
    """
    from catchment.store.changes import place_from

    place = place_from(after)
    with doors.opened_store(doors.settings()) as (store, now):
        found = _changed(store, place, limit, counters)
        if as_json:
            showing.lines(found)
        else:
            _show_changes(list(found), now, limit, "change_number" if counters else "content_change_number")


def _changed(store: Store, place: Place, limit: int, counters: bool) -> Iterator[dict[str, Any]]:
    """Page by page, as far as the limit."""
    from catchment.store.changes import place_of

    while limit > 0:
        page = store.changes.after(place, min(limit, _PAGE), counters=counters)
        for item in page.items:
            yield item | {"key": str(place_of(item, counters=counters))}
        if page.is_end:
            return
        limit -= len(page.items)
        place = page.next


def _show_changes(found: Sequence[dict[str, Any]], now: datetime, limit: int, number: str) -> None:
    showing.table(
        ("#change", "#item", "changed", "title", "#version"),
        (
            (
                str(one[number]),
                str(one["id"]),
                showing.when(one["content_last_changed_at"], now),
                _headline(one),
                one["version"],
            )
            for one in found
        ),
    )
    if len(found) == limit:
        showing.note(f"more: --after {found[-1]['key']}")


def revisions(
    item_id: ItemId,
    as_json: AsJson = False,
) -> None:
    """Show what an item said before.

    When it changed, why, and what; with --json one list, oldest first.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        before, today = store.items.revisions(item_id), store.items.get(item_id)
    if as_json:
        showing.document(before)
        return
    showing.say(f"item {item_id}: {_headline(today)}")
    if not before:
        showing.say("it was never changed")
        return
    for old, new in zip(before, [*before[1:], today], strict=True):
        showing.say()
        reasons = ", ".join(old["reasons"])
        showing.say(f"version {old['version']} → {new['version']}, {showing.at(old['valid_to'], now)}: {reasons}")
        for line in _difference(old, new):
            showing.say(f"  {line}")


def _difference(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Title and text, line by line: what went with -, what came with +."""
    for name in ("title", "target_url", "text"):
        if old[name] != new[name]:
            yield f"{name}:"
            yield from _changed_lines(old[name] or "", new[name] or "")


def _changed_lines(old: str, new: str) -> Iterator[str]:
    for line in difflib.unified_diff(_sentences(old), _sentences(new), lineterm="", n=1):
        if not line.startswith(("---", "+++", "@@")):
            yield f"  {line}"


def _sentences(text: str) -> list[str]:
    """In pieces that a person compares: a paragraph in one line would show no more than that it changed."""
    return [piece for line in text.splitlines() for piece in re.split(r"(?<=[.!?]) |(?<=[。！？])", line) if piece]


def gaps(
    source: OfSource = None,
    everything: Annotated[bool, typer.Option("--all", help="Those that were closed, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what is, or may be, missing.

    From when to when, and why. A known gap is certain; a possible one may hold nothing.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        if source is not None:
            store.sources.get(source)
        found: list[dict[str, Any]] = []
        while page := store.gaps.page(
            source_id=source, include_closed=everything, after=found[-1]["id"] if found else 0, limit=_PAGE
        ):
            found += page
    if as_json:
        showing.document(found)
    else:
        show_gaps(found, now)
