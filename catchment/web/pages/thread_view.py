"""The thread on an item's page: what a reply answers, and the replies below it, with their full text."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from catchment.app import App
from catchment.model import Kind, Record
from catchment.store.item_fields import ItemView
from catchment.store.items.items import key_text
from catchment.store.items.replies import Branch, BranchPage
from catchment.web.pages.item_views import headline

A_PAGE = 30
Body = Callable[[str], Markup]
"""Sanitises the HTML of an item."""


class ReplyView(Record, frozen=True):
    item: ItemView
    author: str | None
    body: Markup | None
    """Its HTML; None: it has text only, or nothing."""
    replies: tuple[ReplyView, ...] = ()
    hidden_count: int = 0
    """Direct replies that are shown on its own page only."""


class AboveView(Record, frozen=True):
    """One of the items that a reply answers, directly or not."""

    item: ItemView
    author: str | None
    text: str


class FloorRow(Record, frozen=True):
    """A line of a thread that is shown by number: a reply, or numbers that are not stored."""

    reply: ReplyView | None = None
    missing: tuple[int, int] = (0, 0)
    """The first and the last number, if there is no reply."""
    is_hole: bool = False
    """The platform itself does not have them (any more); otherwise they were not fetched."""


class ThreadSection(Record, frozen=True):
    """The thread around an item, as far as it is stored."""

    above: list[AboveView] = []
    root: AboveView | None = None
    """What opens the thread, if it is not the first of `above`."""
    is_broken: bool = False
    """Whether something between the root and `above` is not stored or left out."""
    floors: list[FloorRow] | None = None
    """The replies by number; None: as a tree."""
    floor: int | None = None
    """The number from which floors are shown, or could be; None: its replies have no numbers."""
    as_tree: str | None = None
    """Where the replies that are shown by number are a tree."""
    in_thread: str | None = None
    """The place of a numbered reply in its thread."""
    replies: list[ReplyView] = []
    orphans: list[ReplyView] = []
    """Replies whose place in the thread is unknown: their parent is not stored, or they have no number."""
    first: str | None = None
    next: str | None = None
    next_orphans: str | None = None
    stored_count: int | None = None
    """Only for what opens a thread."""
    why_fewer: str | None = None
    """Why fewer replies are stored than the platform reports: a code."""
    is_of_forum: bool = False
    """Its opening post was first shown by a list of threads, without its text."""


class ThreadCursors(Record, frozen=True):
    """Which part of a thread is asked for."""

    after: tuple[int, int] | None = None
    orphans_after: tuple[int, int] | None = None
    floor: int | None = None


def thread_section(app: App, item: ItemView, body: Body, cursors: ThreadCursors) -> ThreadSection:
    """Returns the thread around an item: as a tree where replies name what they answer, else by number."""
    kind = app.platforms.kind(app.store.sources.get(item.source_id, even_removed=True).kind)
    section = _context(app, item).replace(is_of_forum=kind is not None and kind.forum is not None)
    if item.is_head:
        stored = app.store.replies.stored_count(item)
        section = section.replace(stored_count=stored, why_fewer=_why_fewer(app, item, kind, stored))
    elif item.reply_count and _never_collects(kind):
        section = section.replace(why_fewer="never")
    if not item.is_head or item.floor_number is None:
        return _with_tree(app, item, body, section, cursors)
    has_tree = kind is not None and kind.forum is not None and kind.forum.names_parents
    if has_tree and cursors.floor is None:
        section = section.replace(floor=item.floor_number + 1)
        return _with_tree(app, item, body, section, cursors)
    section = section.replace(as_tree=f"/items/{item.id}#replies" if has_tree else None)
    return _with_floors(app, item, body, section, cursors)


def _context(app: App, item: ItemView) -> ThreadSection:
    if item.is_head:
        return ThreadSection()
    above, root = app.store.replies.context(item), app.store.replies.root(item)
    is_named = root is None or root.id in {item.id, *(parent.id for parent in above.items)}
    is_numbered = root is not None and root.floor_number is not None and item.floor_number is not None
    return ThreadSection(
        in_thread=f"/items/{root.id}?floor={item.floor_number}#replies" if root is not None and is_numbered else None,
        above=[_above(parent) for parent in above.items],
        root=None if is_named or root is None else _above(root),
        is_broken=not above.is_complete,
    )


def _with_floors(app: App, item: ItemView, body: Body, section: ThreadSection, cursors: ThreadCursors) -> ThreadSection:
    lowest = (item.floor_number or 0) + 1
    start = max(lowest, cursors.floor or 0)
    floors = app.store.replies.floors(item, start, A_PAGE + 1)
    rows: list[FloorRow] = []
    expected = start
    for reply in floors[:A_PAGE]:
        number = reply.floor_number or 0
        if number > expected:
            rows += _missing(app, item, expected, number - 1)
        rows.append(FloorRow(_reply(Branch(reply), body)))
        expected = number + 1
    section = section.replace(
        floors=rows,
        floor=start,
        first=f"/items/{item.id}?floor={lowest}#replies" if start > lowest else None,
        next=f"/items/{item.id}?floor={expected}#replies" if len(floors) > A_PAGE else None,
    )
    if section.next is not None:
        return section
    return _with_orphans(item, body, section, app.store.replies.unnumbered(item, A_PAGE, cursors.orphans_after))


def _missing(app: App, item: ItemView, first: int, last: int) -> list[FloorRow]:
    """Returns lines for the numbers of a stretch, one for each run of holes and of posts that were not fetched."""
    holes = sorted(app.store.threads.holes_of_item(item.id, first, last))
    rows, expected = [], first
    for run in _runs(holes):
        if run[0] > expected:
            rows.append(FloorRow(missing=(expected, run[0] - 1)))
        rows.append(FloorRow(missing=run, is_hole=True))
        expected = run[1] + 1
    return [*rows, FloorRow(missing=(expected, last))] if expected <= last else rows


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Returns runs of successive numbers: the first and the last of each."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _with_tree(app: App, item: ItemView, body: Body, section: ThreadSection, cursors: ThreadCursors) -> ThreadSection:
    store = app.store.replies
    page = store.tree(item, A_PAGE, cursors.after)
    section = section.replace(
        replies=[_reply(branch, body) for branch in page.branches],
        first=f"/items/{item.id}#replies" if cursors.after else None,
        next=f"/items/{item.id}?after={key_text(page.next)}#replies" if page.next else None,
    )
    if page.next is not None or not section.stored_count:
        return section
    return _with_orphans(item, body, section, store.orphans(item, A_PAGE, cursors.orphans_after))


def _with_orphans(item: ItemView, body: Body, section: ThreadSection, orphans: BranchPage) -> ThreadSection:
    floor = f"&floor={section.floor}" if section.floors is not None else ""
    return section.replace(
        orphans=[_reply(branch, body) for branch in orphans.branches],
        next_orphans=f"/items/{item.id}?orphans={key_text(orphans.next)}{floor}#orphans" if orphans.next else None,
    )


def _why_fewer(app: App, item: ItemView, kind: Kind | None, stored: int) -> str | None:
    """Returns the reason why fewer replies are stored than the platform reports; None: all of them are."""
    if not item.reply_count or stored >= item.reply_count:
        return None
    if _never_collects(kind):
        return "never"
    source = app.store.sources.get(item.source_id, even_removed=True)
    if kind is not None and not kind.collects_replies(source.settings):
        return "off"
    thread = app.store.threads.of_item(item.id)
    if thread is not None and thread.skipped_since is not None:
        return "too_long"
    is_pending = thread is not None and (thread.next_page is not None or thread.is_waiting)
    return "pending" if is_pending or app.store.replies.has_pending(item.id) else "unseen"


def _never_collects(kind: Kind | None) -> bool:
    """Whether replies to the items of a kind of source cannot be collected at all."""
    return kind is not None and kind.forum is None and all(field.name != "comments" for field in kind.fields)


def _above(item: ItemView) -> AboveView:
    line = headline(item, {})
    return AboveView(item, line.author, line.text)


def _reply(branch: Branch, body: Body) -> ReplyView:
    item = branch.item
    return ReplyView(
        item,
        item.author_display_name or item.author,
        body(item.html) if item.html else None,
        tuple(_reply(reply, body) for reply in branch.replies),
        branch.hidden_count,
    )
