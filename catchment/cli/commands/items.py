"""`items`, `show`, `changes`, `search`, `revisions`, `gaps` and `export`: stored items and their history."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from catchment.cli import context
from catchment.cli import output as out
from catchment.cli.commands.sources import NO_SOURCES_HINT, show_gaps
from catchment.cli.params import (
    AsJson,
    ByAuthor,
    IsDeleted,
    ItemId,
    Limit,
    OfCategory,
    OfKind,
    OfPlatform,
    OfSource,
    OfSourceKind,
    OnlyThreads,
    Since,
    Until,
    WithTag,
    change_number,
    moment,
)
from catchment.lazy import lazy_imports
from catchment.messages import Message
from catchment.model import Ordering, as_dict
from catchment.store.item_fields import ItemView
from catchment.store.items.change_feed import ChangeCursor, cursor_after, parse_cursor
from catchment.store.items.items import ExportFilter, key_from, key_of
from catchment.store.items.views import RevisionView
from catchment.store.search.lists import Filter
from catchment.store.search.search import ResultPage, SearchHit
from catchment.store.sources.gaps import GapView

with lazy_imports():
    from catchment.sources import describe
    from catchment.sources import export as item_export

if TYPE_CHECKING:
    from catchment.cache import Cache
    from catchment.store import Store

_PAGE, _RESULT_PAGE = 500, 200
_LONGEST_HEADLINE = 160
_MARKS = ("deleted", "folded", "pinned")


def items(
    source: OfSource = None,
    kind: OfKind = None,
    platform: OfPlatform = None,
    author: ByAuthor = None,
    tag: WithTag = None,
    category: OfCategory = None,
    since: Since = None,
    until: Until = None,
    deleted: IsDeleted = None,
    threads: OnlyThreads = False,
    changed_since: Annotated[
        int | None,
        typer.Option(metavar="N", callback=change_number, help="Only items added or changed after this change number."),
    ] = None,
    order: Annotated[
        Ordering, typer.Option(help="Sort by posting time, or by last reply (lists only items that have one).")
    ] = Ordering.POSTED,
    limit: Limit = 30,
    before: Annotated[
        str | None, typer.Option(metavar="KEY", help="Continue a list: the key of the last item shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """--since and --until refer to the time that the list is sorted by. With --json, prints one object per line."""
    cursor = key_from(before)
    settings = context.settings()
    with context.opened_store(settings) as (store, now), context.opened_cache(settings, store) as cache:
        source_id = context.source_id(store, source)
        conditions = Filter(
            *(source_id, kind, platform, author, tag, since, until, deleted, changed_since),
            category=category,
            is_thread=threads or None,
        )
        context.names(store).checked(conditions)
        listed = _listed(cache, conditions, limit, cursor, order)
        first = list(islice(listed, 1))
        if not first:
            _check_source(store, source_id)
        if as_json:
            out.lines(as_dict(item) | {"key": key_of(item, order)} for item in chain(first, listed))
        elif first:
            _show_items(store, [*first, *listed], now, limit, order)
        else:
            out.nothing(*_why_empty(store, is_filtered=conditions != Filter() or cursor is not None))


def _listed(
    cache: Cache, conditions: Filter, limit: int, cursor: tuple[int, int] | None, order: Ordering
) -> Iterator[ItemView]:
    """Page by page, so that a long list needs neither much memory nor one long read."""
    while limit > 0:
        page = cache.listed(conditions, min(limit, _PAGE), cursor, order)
        yield from page.items
        if page.next is None:
            return
        limit -= len(page.items)
        cursor = page.next


def _check_source(store: Store, source_id: int | None) -> None:
    """Raise NotFound if there is no such source. A removed source exists as long as it has items."""
    if source_id is not None and not store.items.newest(1, source_id=source_id):
        store.sources.get(source_id)


def _why_empty(store: Store, *, is_filtered: bool) -> tuple[str, str]:
    """Why no item is shown, and what to do next."""
    if not store.items.count():
        if any(store.sources.counts().values()):
            return "no items yet", "run `catchment collect` once, or `catchment serve` to keep collecting"
        return "no items yet", NO_SOURCES_HINT
    if is_filtered:
        return "no item matches these filters", "remove one of them"
    return "no items", "this order lists only items that have a reply; use --order posted"


def _show_items(store: Store, listed: Sequence[ItemView], now: datetime, limit: int, order: Ordering) -> None:
    names = _source_names(store, listed)
    is_by_reply = order == Ordering.REPLIED
    out.table(
        (
            "#ID",
            "Last reply" if is_by_reply else "Posted",
            "Source",
            "Author",
            "Title",
            "#Score",
            "#Replies",
            "#Version",
        ),
        (
            (
                str(item.id),
                out.when(item.last_reply_at if is_by_reply else item.created_at, now),
                names.get(item.source_id, item.source_id),
                item.author_display_name or item.author,
                _headline(item),
                item.score,
                item.reply_count,
                item.version,
            )
            for item in listed
        ),
        shrink=("Source", "Author", "Title"),
        optional=("Author", "#Score", "#Replies"),
    )
    if len(listed) == limit:
        out.note(f"more: --before {key_of(listed[-1], order)}")


def _source_names(store: Store, items: Iterable[ItemView]) -> dict[int, str]:
    return store.sources.names(item.source_id for item in items)


def _headline(item: ItemView) -> str:
    text = " ".join((item.title or item.text or item.url or "").split())
    marks = [mark for mark in _MARKS if getattr(item, f"is_{mark}")]
    short = text[:_LONGEST_HEADLINE] + "…" if len(text) > _LONGEST_HEADLINE else text
    return short + (f" [{', '.join(marks)}]" if marks else "")


def show(
    item_id: ItemId,
    at: Annotated[
        datetime | None,
        typer.Option(
            parser=moment,
            metavar="TIME",
            help="Show it as it was at a date or time (UTC), yesterday, 2d or 12h ago.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """With --at, shows the version of that time; counters are shown only if they have not changed since."""
    with context.opened_store(context.settings()) as (store, now):
        item = store.items.get(item_id) if at is None else store.items.as_of(item_id, at)
        source_name = _source_names(store, [item]).get(item.source_id)
    if as_json:
        out.document(item)
        return
    since = f"{item.version}, since {out.at(item.content_last_changed_at, now)}"
    valid_to = getattr(item, "valid_to", None)
    until = f", until {out.at(valid_to, now)}" if valid_to else ""
    out.say(f"Item {item.id}: {_headline(item)}")
    out.facts(
        (
            ("Source", f"{source_name or item.platform} (source {item.source_id})"),
            ("Posted", item.created_at and out.at(item.created_at, now)),
            ("Author", item.author_display_name or item.author),
            ("Address", item.url),
            ("Links to", item.target_url),
            ("Tags", item.tags),
            ("Score", item.score),
            ("Replies", item.reply_count),
            ("Last reply", item.last_reply_at and out.at(item.last_reply_at, now)),
            ("Views", item.view_count),
            ("Version", since + until),
            ("First seen", out.at(item.first_seen_at, now)),
            ("Last seen", item.last_seen_at and out.at(item.last_seen_at, now)),
        ),
        omit_empty=True,
    )
    if item.text:
        out.say()
        out.prose(item.text)


def changes(
    after: Annotated[
        str,
        typer.Option(metavar="KEY", help="Continue after this change: a change number, or the key of the last item."),
    ] = "0",
    limit: Limit = 30,
    counters: Annotated[bool, typer.Option("--counters", help="Include items of which only counters changed.")] = False,
    as_json: AsJson = False,
) -> None:
    """With --json, prints one object per line; to continue, pass the key of the last line to --after."""
    cursor = parse_cursor(after)
    with context.opened_store(context.settings()) as (store, now):
        changed = _changed(store, cursor, limit, counters)
        if as_json:
            out.lines(as_dict(item) | {"key": str(cursor_after(item, counters=counters))} for item in changed)
        elif rows := list(changed):
            _show_changes(rows, now, limit, counters)
        elif cursor.number:
            out.nothing("no changes since then", "try again later with the same --after")
        else:
            out.nothing(*_why_empty(store, is_filtered=False))


def _changed(store: Store, cursor: ChangeCursor, limit: int, counters: bool) -> Iterator[ItemView]:
    """Page by page, up to the limit."""
    while limit > 0:
        page = store.changes.after(cursor, min(limit, _PAGE), counters=counters)
        yield from page.items
        if page.is_end:
            return
        limit -= len(page.items)
        cursor = page.next


def _show_changes(rows: Sequence[ItemView], now: datetime, limit: int, counters: bool) -> None:
    out.table(
        ("#Change", "#Item", "Changed", "Title", "#Version"),
        (
            (
                str(cursor_after(item, counters=counters).number),
                str(item.id),
                out.when(item.content_last_changed_at, now),
                _headline(item),
                item.version,
            )
            for item in rows
        ),
    )
    if len(rows) == limit:
        out.note(f"more: --after {cursor_after(rows[-1], counters=counters)}")


def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS", help="Words that must all occur; a phrase in double quotes.")
    ],
    limit: Limit = 30,
    kind: OfKind = None,
    platform: OfPlatform = None,
    source: OfSource = None,
    author: ByAuthor = None,
    tag: WithTag = None,
    category: OfCategory = None,
    since: Since = None,
    until: Until = None,
    is_deleted: IsDeleted = None,
    threads: OnlyThreads = False,
    best: Annotated[
        bool, typer.Option("--best", help="Sort by relevance; considers the newest thousand results.")
    ] = False,
    after: Annotated[
        str | None, typer.Option(metavar="KEY", help="Continue a list: the key of the last result shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Matches whole words in any case; in Chinese, Japanese and Korean, any part of the text, even one character. With
    --json, prints one object per line. See docs/search.md.
    """
    with context.opened_store(context.settings()) as (store, now):
        source_id = context.source_id(store, source)
        conditions = Filter(
            *(source_id, kind, platform, author, tag, since, until, is_deleted),
            category=category,
            is_thread=threads or None,
        )
        context.names(store).checked(conditions)
        _check_source(store, source_id)
        pages = _results(store, " ".join(words), conditions, best, limit, after)
        if as_json:
            out.lines(item for page in pages for item in page.items)
        else:
            _show_results(store, pages, now)


def _results(
    store: Store, question: str, conditions: Filter, is_best: bool, limit: int, after: str | None
) -> Iterator[ResultPage]:
    """Pages of results, in short reads; complete: if the index is too far behind, it is updated first."""
    while limit > 0:
        page = store.search.find(question, conditions, is_best=is_best, limit=min(limit, _RESULT_PAGE), after=after)
        if page.behind:
            _catch_up(store)
            continue
        yield page
        limit -= len(page.items)
        after = page.next
        if after is None:
            return


def _catch_up(store: Store) -> None:
    with out.bar("Indexing", store.index.behind()) as bar:
        count = 0
        while indexed := store.index.advance():
            count += indexed
            bar.move(count)
    store.index.update_planner_statistics()


def _show_results(store: Store, pages: Iterator[ResultPage], now: datetime) -> None:
    page, is_any = None, False
    for page in pages:
        names = _source_names(store, page.items)
        is_any = is_any or bool(page.items)
        if page.count is not None:
            about = "about " if page.is_count_estimated else ""
            out.note(f"{about}{out.counted(page.count, 'result')}")
        for item in page.items:
            _show_result(item, names.get(item.source_id, item.platform), now)
    if not is_any:
        out.nothing("no results", "try fewer words or filters; only whole words match")
    if page is not None and page.next is not None:
        out.note(f"more: --after {page.next}")


def _show_result(item: SearchHit, source_name: str, now: datetime) -> None:
    marks = "".join(f" [{mark}]" for mark in _MARKS if getattr(item, f"is_{mark}"))
    author = item.author_display_name or item.author
    parts = (f"{item.id}", source_name, out.when(item.created_at, now), author, item.url)
    out.say(" · ".join(part for part in parts if part) + marks)
    if item.title:
        out.highlighted(item.title, item.title_marks)
    if item.snippet.text:
        out.highlighted(item.snippet.text, item.snippet.marks)
    out.say()


def revisions(item_id: ItemId, as_json: AsJson = False) -> None:
    """Shows when and why it changed, and what. With --json, prints one list, oldest first."""
    with context.opened_store(context.settings()) as (store, now):
        before, current = store.items.revisions(item_id), store.items.get(item_id)
    if as_json:
        out.document(before)
        return
    out.say(f"Item {item_id}: {_headline(current)}")
    if not before:
        out.say("It has not changed since it was first seen.")
    later: list[RevisionView | ItemView] = [*before[1:], current]
    for old, new in zip(before, later, strict=True) if before else ():
        reasons = ", ".join(str(Message(reason)) for reason in old.reasons)
        out.say()
        out.say(f"Version {old.version} → {new.version}, {out.at(old.valid_to, now)}: {reasons}")
        for line in _difference(old, new):
            out.say(f"  {line}")


def _difference(old: RevisionView, new: RevisionView | ItemView) -> Iterator[str]:
    """Title and text, line by line: removed lines with -, added ones with +."""
    for field, label in (("title", "Title"), ("target_url", "Link"), ("text", "Text")):
        before, after = getattr(old, field), getattr(new, field)
        if before == after:
            continue
        yield f"{label}:"
        for line in difflib.unified_diff(_sentences(before), _sentences(after), lineterm="", n=1):
            if not line.startswith(("---", "+++", "@@")):
                yield f"  {line}"


def _sentences(text: str | None) -> list[str]:
    """In units that a person compares: a paragraph on one line would only show that it changed."""
    lines = (text or "").splitlines()
    return [piece for line in lines for piece in re.split(r"(?<=[.!?]) |(?<=[。！？])", line) if piece]


def gaps(
    source: OfSource = None,
    everything: Annotated[bool, typer.Option("--all", help="Include closed gaps.")] = False,
    as_json: AsJson = False,
) -> None:
    """A known gap is certain; a possible gap may turn out to be empty. `catchment audit --repair` repairs gaps where
    that is possible.
    """
    with context.opened_store(context.settings()) as (store, now):
        source_id = context.source_id(store, source)
        if source_id is not None:
            store.sources.get(source_id)
        rows: list[GapView] = []
        while page := store.gaps.page(
            source_id=source_id, include_closed=everything, after=rows[-1].id if rows else 0, limit=_PAGE
        ):
            rows += page
    reports = describe.gap_reports(rows)
    if as_json:
        out.document(reports)
    else:
        show_gaps(reports, now)


def export(
    output: Annotated[str, typer.Option(metavar="FILE", help="The file to write, or - for stdout.")],
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="jsonl (one JSON object per line), csv (for spreadsheets; a text that begins like a formula gets a "
            "leading ', lists are JSON) or parquet (for analysis; needs pyarrow). By default the extension of the "
            "file, else jsonl.",
        ),
    ] = None,
    source: OfSource = None,
    kind: OfSourceKind = None,
    since: Since = None,
    with_revisions: Annotated[
        bool, typer.Option("--with-revisions", help="Include earlier versions of each item.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The file appears only once it is complete; its folder is created if necessary. Prints the number of items and the
    SHA-256 of the file.
    """
    extension = Path(output).suffix.lstrip(".").lower()
    format = format or (extension if extension in item_export.FORMATS else "jsonl")
    item_export.needed(format)
    with context.opened_store(context.settings()) as (store, _):
        source_id = context.source_id(store, source)
        if source_id is not None:
            store.sources.get(source_id, even_removed=True)
        if kind is not None:
            context.names(store).source_kind(kind)
        chosen = ExportFilter(source_id, kind, since)
        if output == "-":
            item_export.export(store, out.stdout(), format, chosen, with_revisions=with_revisions)
            return
        total = store.items.count() if chosen.is_all else None
        with out.bar("Exporting", total, as_json=as_json) as bar, out.whole_file(Path(output)) as file:
            count = item_export.export(
                store, file, format, chosen, with_revisions=with_revisions, seen=lambda done: bar.move(done)
            )
    with Path(output).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = Path(output).stat().st_size
    out.result(
        as_json,
        {"format": format, "file": output, "items": count, "bytes": size, "sha256": digest},
        f"{out.counted(count, 'item')} written to {output} ({size:,} bytes)",
        f"SHA-256: {digest}",
    )
