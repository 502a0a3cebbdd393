"""Parses NGA's answers: boards, threads, single posts. What came is read by its own form, whichever was requested."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable
from typing import TypeVar

from catchment.errors import Unreadable
from catchment.model import Answer, JsonObject, Reading, Request, Skipped
from catchment.platforms.nga import errors, html_form, items, json_form, requests
from catchment.platforms.nga.encoding import decoded, json_data
from catchment.platforms.nga.shapes import BoardPage, BoardRow, ThreadAnswer

REPEATED = "the list repeats its pages"
DENIED = "rows that this account must not see were left out"
Page = TypeVar("Page")


def read(answer: Answer, request: Request) -> Reading:
    text = decoded(answer.body, is_strict=_is_json(answer.body))
    if request.step == requests.BOARD:
        return _board(text, request)
    thread: ThreadAnswer = _in_its_form(text, json_form.read_thread, html_form.read_thread)
    if request.step == requests.POST:
        return _post(thread, request)
    if thread.tid != request.state.get("tid", thread.tid):
        raise Unreadable("the answer contains a different thread from the one requested", json_form.HELPS)
    floors = items.of_floors(thread)
    if request.step == requests.WATCHED:
        return Reading(
            tuple(item for item in floors if item.is_head),
            threads=(items.state_of_thread(thread),),
            title=thread.subject or None,
        )
    number = thread.page if thread.page and thread.page > 0 else int(request.state.get("page", 1))
    skipped = (Skipped("a floor that cannot be read"),) * thread.unreadable
    reading = Reading(floors, skipped=skipped, thread_page=items.page_state(thread, number))
    return reading.replace(gone=_absent(reading, number, request))


def _absent(reading: Reading, number: int, request: Request) -> tuple[str, ...]:
    """Returns the floors that were to be rechecked on this page and are not on it."""
    if reading.skipped or number != request.state.get("page"):
        return ()
    shown = {item.external_id for item in reading.items}
    return tuple(id_ for id_ in request.state.get("rechecked", ()) if id_ not in shown)


def _is_json(body: bytes) -> bool:
    return body.lstrip()[:1] in (b"{", b"w", b"/")


def _in_its_form(text: str, of_json: Callable[[JsonObject], Page], of_html: Callable[[str], Page]) -> Page:
    if text[:200].lstrip().startswith("<"):
        return of_html(text)
    return of_json(json_form.data_of(json_data(text)))


def _board(text: str, request: Request) -> Reading:
    number = int(request.state.get("page", 1))
    if number > 1 and errors.is_end_of_list(text):
        return Reading()
    page: BoardPage = _in_its_form(text, json_form.read_list, html_form.read_list)
    if not page.rows:
        if number == 1 or page.unreadable:
            raise Unreadable("the board shows no threads", json_form.HELPS)
        return Reading()
    # Placeholders have made-up ids, which may differ although the page is the same.
    shown_rows = [row for row in page.rows if not row.is_denied] or page.rows
    shown = crc32(",".join(str(row.tid) for row in shown_rows).encode())
    if shown == request.state.get("shown"):
        return Reading(notes=(REPEATED,))
    # A thread that is shown several times, by mirrors, is one.
    rows: dict[int, list[BoardRow]] = {}
    for row in page.rows:
        if not row.is_denied:
            rows.setdefault(row.tid, []).append(row)
    is_end = page.pages is not None and number >= page.pages
    return Reading(
        tuple(items.of_rows(group, page) for group in rows.values()),
        threads=tuple(items.state_of_rows(group, page) for group in rows.values()),
        skipped=(Skipped("a row that cannot be read"),) * page.unreadable,
        follow=() if is_end else (requests.next_page(request, number + 1, shown),),
        is_end=is_end,
        title=page.name or None,
        notes=(DENIED,) if any(row.is_denied for row in page.rows) else (),
    )


def _post(thread: ThreadAnswer, request: Request) -> Reading:
    """Reads one post, or the comments on it; an answer without the post says that it is gone."""
    floors = items.of_floors(thread)
    if "comments" in request.state:
        return Reading(tuple(item for item in floors if item.external_id in request.state["comments"]))
    asked_id = request.item_id or f"p{request.state.get('pid')}"
    posts = tuple(item for item in floors if item.external_id == asked_id)
    return Reading(posts, gone=() if posts else (asked_id,))
