"""`search`: what is stored, by its words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, Limit, OfSource, Since, moment

if TYPE_CHECKING:
    from catchment.store import Store
    from catchment.store.filtering import Filter
    from catchment.store.search import Found

_PAGE = 200


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="All of them; a phrase in double quotes.")],
    limit: Limit = 30,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only of this kind of source (rss) or of item (entry).")
    ] = None,
    platform: Annotated[str | None, typer.Option(metavar="PLATFORM", help="Only of this platform.")] = None,
    source: OfSource = None,
    author: Annotated[str | None, typer.Option(metavar="NAME", help="Only by this author, to the letter.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only with this tag, to the letter.")] = None,
    since: Since = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", parser=moment, help="Only from before then.")
    ] = None,
    is_deleted: Annotated[
        bool | None, typer.Option("--deleted/--not-deleted", help="Only what its source deleted, or did not.")
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="The best first, of the newest thousand that answer.")] = False,
    after: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only those behind this place: the key of the last one shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find items by their words, newest first.

    Words are found whole, whatever their case; Chinese, Japanese and Korean by any part, from one character on. With
    --json one object a line. docs/search.md tells more.
    """
    from catchment.store.filtering import Filter

    wanted = Filter(source, kind, platform, author, tag, since, until, is_deleted)
    with doors.opened_store(doors.settings()) as (store, now):
        doors.check(store, wanted)
        if source is not None and not store.items.newest(1, source_id=source):
            # Nothing of it: is there such a source at all? One that was removed has its items still.
            store.sources.get(source)
        pages = _pages(store, " ".join(words), wanted, best, limit, after)
        if as_json:
            showing.lines(one for page in pages for one in page.items)
        else:
            _show(pages, now)


def _pages(
    store: Store, question: str, wanted: Filter, is_best: bool, limit: int, after: str | None
) -> Iterator[Found]:
    """In short reads; and whole: where the index is too far behind for that, it is brought up first."""
    while limit > 0:
        page = store.search.find(question, wanted, is_best=is_best, limit=min(limit, _PAGE), after=after)
        if page.behind:
            _catch_up(store)
            continue
        yield page
        limit -= len(page.items)
        after = page.next
        if after is None:
            return


def _catch_up(store: Store) -> None:
    with showing.bar("indexing", store.index.behind(), is_shown=showing.is_watched()) as bar:
        count = 0
        while indexed := store.index.advance():
            count += indexed
            bar.move(count)
    store.index.settle()


def _show(pages: Iterator[Found], now: datetime) -> None:
    page = None
    for page in pages:
        if page.count is not None:
            about = "about " if page.is_count_estimated else ""
            showing.note(f"{about}{showing.counted(page.count, 'item')}")
        for item in page.items:
            _show_hit(item, now)
    if page is not None and page.next is not None:
        showing.note(f"more: --after {page.next}")


def _show_hit(item: dict[str, Any], now: datetime) -> None:
    marks = "".join(f" [{word}]" for word in ("deleted", "folded", "pinned") if item[f"is_{word}"])
    author = item["author_display_name"] or item["author"]
    told = (f"{item['id']}", showing.when(item["created_at"], now), author, item["url"])
    showing.say(" · ".join(one for one in told if one) + marks)
    if item["title"]:
        showing.marked(item["title"], item["title_marks"])
    if item["snippet"]["text"]:
        showing.marked(item["snippet"]["text"], item["snippet"]["marks"])
    showing.say()
