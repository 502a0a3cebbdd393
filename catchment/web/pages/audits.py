"""The pages of audits, of threads that lack replies, and of what runs did with boards and threads."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from catchment.store.items.items import key_from, key_text
from catchment.web.api.params import LARGEST, After, AuditId, RunId, SourceId, paged, place
from catchment.web.dependencies import AppDep
from catchment.web.pages.render import render
from catchment.web.pages.runs import A_PAGE, A_PAGE_OF_RESULTS, onwards
from catchment.web.pages.session import TheReader

router = APIRouter()

_MOST_FLOORS = 200
"""Of one thread; the API has all of them."""
_MOST_REPAIRS = 200


@router.get("/audits")
def audits(app: AppDep, reader: TheReader, after: After = None) -> Response:
    page = paged(app.store.floor_audits.page(A_PAGE + 1, before=place(after)), A_PAGE, lambda audit: audit.id)
    names = app.store.sources.names(audit.source_id for audit in page.items if audit.source_id is not None)
    return render("audits.html", reader, rows=page.items, names=names, **onwards("/audits", {}, after, page))


@router.get("/audits/replies")
def replies(
    app: AppDep,
    reader: TheReader,
    after: Annotated[str, Query(max_length=64)] = "",
    source: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """The threads with fewer stored replies than the platform reports, the worst first."""
    rows = app.store.reply_counts.worst(A_PAGE + 1, source_id=source, after=key_from(after or None))
    page = paged(rows, A_PAGE, lambda row: key_text((row.missing_count, row.item_id)))
    asked = {} if source is None else {"source": source}
    name = app.store.sources.names([source]).get(source) if source else None
    links = onwards("/audits/replies", asked, after, page)
    return render("replies.html", reader, rows=page.items, source_id=source, source_name=name, **links)


@router.get("/audits/{audit_id}")
def audit(app: AppDep, reader: TheReader, audit_id: AuditId, after: After = None) -> Response:
    """One audit: its counts, the gaps that it tried to repair, and threads with their missing floors."""
    store = app.store.floor_audits
    audit = store.get(audit_id)
    threads = store.threads(audit_id, A_PAGE + 1, place(after) or 0)
    page = paged(threads, A_PAGE, lambda thread: thread.thread_row_id)
    repairs = app.store.gaps.repairs_of_audit(audit_id, _MOST_REPAIRS + 1) if after is None else []
    source_ids = [*(thread.source_id for thread in page.items), *(repair.source_id for repair in repairs)]
    return render(
        "audit.html",
        reader,
        audit=audit,
        rows=page.items,
        floors={thread.id: store.floors(thread.id, _MOST_FLOORS + 1) for thread in page.items},
        most_floors=_MOST_FLOORS,
        titles=app.store.threads.titles([thread.thread_row_id for thread in page.items]),
        names=app.store.sources.names([*source_ids, audit.source_id or 0]),
        repairs=repairs[:_MOST_REPAIRS],
        has_more_repairs=len(repairs) > _MOST_REPAIRS,
        **onwards(f"/audits/{audit_id}", {}, after, page),
    )


@router.get("/sources/{source_id}/board-runs")
def board_runs(app: AppDep, reader: TheReader, source_id: SourceId, after: After = None) -> Response:
    """What runs did with a board: its window, and how many threads were scanned, changed and read."""
    source = app.store.sources.get(source_id, even_removed=True)
    rows = app.store.threads.board_runs(source_id, A_PAGE + 1, before=place(after))
    page = paged(rows, A_PAGE, lambda run: run.run_id)
    links = onwards(f"/sources/{source_id}/board-runs", {}, after, page)
    return render("board_runs.html", reader, source=source, rows=page.items, **links)


@router.get("/runs/{run_id}/threads")
def thread_runs(app: AppDep, reader: TheReader, run_id: RunId, after: After = None) -> Response:
    """What a run did with each thread that it read."""
    run = app.store.runs.get(run_id)
    rows = app.store.threads.thread_runs(run_id, A_PAGE_OF_RESULTS + 1, after=place(after) or 0)
    page = paged(rows, A_PAGE_OF_RESULTS, lambda thread: thread.thread_row_id)
    links = onwards(f"/runs/{run_id}/threads", {}, after, page)
    return render("thread_runs.html", reader, run=run, rows=page.items, **links)
