"""`serve` and `collect`: the commands that collect sources."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

import typer

from catchment import logs
from catchment.app import App
from catchment.cli import context, output
from catchment.cli.commands.sources import NO_SOURCES_HINT
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson
from catchment.collect.cache_warmup import warmable
from catchment.collect.outages import causes_among
from catchment.collect.scheduler import CollectSummary, ErrorView, StillDue, summed
from catchment.engines.embedded import Embedded, share_memory
from catchment.errors import InvalidInput
from catchment.installation import as_typed
from catchment.jobs import tell_others
from catchment.model import VisitResult
from catchment.policy.outages import CommonCause
from catchment.policy.schedule import UNKNOWN_KIND_MINUTES

_FEW_NAMES = 3


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="The address to listen on, instead of CATCHMENT_HOST.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="The port to listen on, instead of CATCHMENT_PORT."),
    ] = None,
    no_collect: Annotated[
        bool, typer.Option("--no-collect", help="Run the web server only; another process collects.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Runs until it is stopped. If CELERY_BROKER_URL is set, `catchment worker` collects, and `serve` only serves.

    On SIGTERM or Ctrl-C, running work may finish within CATCHMENT_STOP_SECONDS; a second signal aborts it. Exits with 0
    if nothing had to be aborted, else with 1.
    """
    # The web server takes a second to import, which no other command needs.
    from catchment.web.server import serve

    with context.opened_app("serve", is_engine=not no_collect, creates=True) as app:
        collects = not no_collect and app.settings.broker_url is None
        if not collects and not no_collect:
            output.note("CELERY_BROKER_URL is set: `catchment worker` collects; this process only serves")
        if not no_collect:
            app.follow_configured()
        code = serve(
            app,
            app.settings.host if host is None else host,
            app.settings.port if port is None else port,
            collects=collects,
            announce=output.note if as_json else output.say,
        )
    if as_json:
        output.document({"is_clean": code == 0})
    return code


def collect(
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="SOURCE",
            help="This source (id, name or address), even if it is not due. May be repeated.",
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="All active sources of this kind, even if they are not due.")
    ] = None,
    due: Annotated[bool, typer.Option("--due", help="All sources that are due (the default).")] = False,
    everything: Annotated[bool, typer.Option("--all", help="All active sources, even if they are not due.")] = False,
    cache_only: Annotated[
        bool, typer.Option("--cache-only", help="Communities only: refresh the cache and store no items.")
    ] = False,
    loop: Annotated[bool, typer.Option("--loop", help="Keep collecting, like `serve` without the web server.")] = False,
    as_json: AsJson = False,
) -> int:
    """Exits with 3 if a source failed; the others are still collected. A source that must wait for our own limits (a
    used-up budget, a cooldown) is deferred, which is not a failure; the summary says how many sources are still due and
    when they can be collected. A source that another process is collecting is skipped. Afterwards, spending caps are
    checked, watches check the new items, and events are delivered once to webhooks and hooks; failed deliveries are
    repeated by the next run.

    On SIGTERM or Ctrl-C, no further source is started, and running ones may finish within CATCHMENT_STOP_SECONDS; a
    second signal aborts them. The exit code is then 0, or 1 if a source was aborted; the next run continues with it.
    """
    if sum((bool(source), kind is not None, due, everything, loop)) > 1:
        raise InvalidInput("only one of --source, --kind, --due, --all and --loop is possible")
    if cache_only and (due or loop):
        raise InvalidInput("--cache-only cannot be combined with --due or --loop")
    work = "collect --loop" if loop else "collect"
    with StopSignals() as stopping, context.opened_app(work, is_engine=loop, creates=True) as app:
        say = output.note if output.is_watched() else logs.logger(__name__).info
        stopping.watch(app.stop, app.cut, app.settings.stop_seconds, say)
        app.follow_configured()
        if loop:
            return _run_engine(app, as_json)
        # All ids are resolved before the first visit: an unknown source is a usage error.
        chosen = [app.store.sources.get(app.names.source(name)).id for name in source or ()]
        if cache_only:
            return _warm(app, _communities(app, chosen, kind), as_json)
        is_chosen = chosen or kind is not None or everything
        return _collect(app, _ids(app, chosen, kind) if is_chosen else None, as_json)


def _run_engine(app: App, as_json: bool) -> int:
    engine = Embedded(app)
    engine.start()
    app.stop.wait()
    is_clean = engine.stop(app.settings.stop_seconds)
    if as_json:
        output.document({"is_clean": is_clean})
    return 0 if is_clean else 1


def _ids(app: App, sources: Sequence[int], kind: str | None) -> list[int]:
    if sources:
        return list(dict.fromkeys(sources))
    if kind is not None:
        app.names.source_kind(kind)
    return app.store.sources.ids(kind=kind)


def _communities(app: App, sources: Sequence[int], kind: str | None) -> list[int]:
    """These sources, or all that support cache-only crawls."""
    kinds = warmable(app.platforms)
    requested = {kind} if kind is not None else {app.store.sources.get(source).kind for source in sources}
    if others := requested - set(kinds):
        what = f"sources of kind {', '.join(sorted(others))} are not cached"
        raise InvalidInput(what, f"cached kinds: {', '.join(kinds)}", field="kind")
    if sources or kind is not None:
        return _ids(app, sources, kind)
    return [source_id for name in kinds for source_id in _ids(app, (), name)]


def _warm(app: App, ids: list[int], as_json: bool) -> int:
    with _progress(app, len(ids), as_json) as seen:
        began = app.clock.now()
        results = app.cache_warmup().these(ids, "collect --cache-only", "command", seen)
    return _report(app, results, began, as_json)


def _collect(app: App, ids: list[int] | None, as_json: bool) -> int:
    """Collect these sources, or those that are due."""
    share_memory()
    began = app.clock.now()
    with _progress(app, None if ids is None else len(ids), as_json) as seen:
        scheduler, arguments = app.scheduler(), ("collect", "command", seen)
        results = scheduler.due(*arguments) if ids is None else scheduler.these(ids, *arguments)
        if ids is None and not app.stop.is_set():
            visited = [result.source_id for result in results]
            results += app.visitor().read_threads("command", app.presence.owner_id, but_not=visited)
    code = _report(app, results, began, as_json, scheduler.still_due(results) if ids is None else None)
    # Alerts about spending, watches and deliveries, now: there may be no engine to do it later.
    tell_others(app)
    for listener in app.store.deliveries.page():
        if listener.is_active and listener.waiting_count:
            reason = f": {listener.last_error}" if listener.last_error else ""
            count = output.counted(listener.waiting_count, "event")
            output.note(f"{count} not yet delivered to {listener.listener}{reason}")
    return code


def _report(app: App, results: list[VisitResult], began: datetime, as_json: bool, left: StillDue | None = None) -> int:
    """Show the results; returns the exit code. `left` is what is still due, if all due sources were requested."""
    summary = summed(results, began, app.clock.now(), left)
    if as_json:
        output.document(summary)
    else:
        if not summary.sources and not summary.still_due:
            _show_nothing_due(app)
        else:
            _show(summary, _causes(app, sum(result.outcome == "failed" for result in results)))
        _show_notes(results)
        _show_still_due(summary)
    if app.stop.is_set():
        return 1 if any(_is_cut_off(result) for result in results) else 0
    return 3 if summary.failed else 0


def _is_cut_off(result: VisitResult) -> bool:
    # A source that was claimed, but not yet requested when the stop came, has lost nothing.
    return result.error_code == "STOPPED" and result.requests > 0


@contextmanager
def _progress(app: App, total: int | None, as_json: bool) -> Iterator[Callable[[VisitResult], None]]:
    """A progress bar for a terminal, and the function that gets each result."""
    is_shown = output.is_watched() and not as_json
    counts = {"seen": 0, "new": 0, "failed": 0}
    with output.bar("Collecting", total, as_json=as_json) as bar, _logs_above_the_bar(app, is_shown):

        def seen(result: VisitResult) -> None:
            counts["seen"] += 1
            counts["new"] += result.counts.new
            counts["failed"] += result.outcome == "failed"
            bar.move(counts["seen"], f"{counts['new']:,} new · {counts['failed']:,} failed")

        yield seen


@contextmanager
def _logs_above_the_bar(app: App, is_shown: bool) -> Iterator[None]:
    """While there is a bar, it owns stderr and prints other lines above itself; the summary reports failures, so the
    log is quiet, unless the user asked for it."""
    settings = app.settings
    if not is_shown:
        yield
        return
    level = settings.log_level if "CATCHMENT_LOG_LEVEL" in settings.origins else "error"
    logs.configure(settings.log_format, level, sys.stderr)
    try:
        yield
    finally:
        logs.configure(settings.log_format, settings.log_level, sys.__stderr__)


def _causes(app: App, failed: int) -> list[CommonCause]:
    return causes_among(app.store, app.platforms, app.store.failure_stats.failing(failed)) if failed else []


def _show(summary: CollectSummary, causes: Sequence[CommonCause]) -> None:
    """`causes` explain the failures of several sources at once: each is shown once."""
    if not summary.sources:
        output.say("No source can be collected now.")
        return
    counts = ", ".join(f"{getattr(summary, name):,} {name}" for name in ("succeeded", "failed", "deferred", "skipped"))
    items = ", ".join(f"{getattr(summary, name):,} {name}" for name in ("new", "updated", "duplicate", "invalid"))
    requests = output.counted(summary.requests, "request")
    output.say(f"{output.counted(summary.sources, 'source')}: {counts}")
    output.say(f"Items: {items} · {requests} in {summary.duration_seconds:.1f} s")
    # Deferred sources take one line, however many there are.
    for cause in causes:
        output.say(cause.view.message)
    explained = {source_id for cause in causes for source_id in cause.source_ids}
    troubled = [
        result
        for result in summary.results
        if result.error and result.outcome != "deferred" and result.source_id not in explained
    ]
    if troubled:
        rows = [(row.source_id, row.name, row.outcome, _error(row.error)) for row in troubled]
        output.table(("#ID", "Source", "Outcome", "Error"), rows)


def _show_nothing_due(app: App) -> None:
    """When the next source is due, and how to collect it earlier."""
    store, now = app.store.sources, app.clock.now()
    if not store.counts().get("active"):
        what = "no active sources" if any(store.counts().values()) else "no sources yet"
        output.nothing(what, NO_SOURCES_HINT)
        return
    at = store.next_due(app.intervals(), UNKNOWN_KIND_MINUTES)
    if at is None or at <= now:
        output.say("Another process is already collecting the sources that are due.")
        return
    output.say(
        as_typed(
            f"No source is due; the next one is due {output.when(at, now)}. "
            "Run `catchment collect --all` to collect all sources now."
        )
    )


def _show_still_due(summary: CollectSummary) -> None:
    count, at = summary.still_due, summary.next_due_at
    if not count or at is None:
        return
    are = "source is" if count == 1 else "sources are"
    deferred = f", {summary.deferred:,} of them deferred" if summary.deferred else ""
    output.say(
        f"{count:,} {are} still due{deferred}: our own request limits allow more from {at:%Y-%m-%d %H:%M:%S} UTC on."
    )
    output.say(
        as_typed(
            "`catchment serve` and `catchment collect --loop` continue automatically; or run `catchment collect` then."
        )
    )


def _show_notes(results: Sequence[VisitResult]) -> None:
    """Notes of successful visits, each once, with the sources that it is about."""
    about: dict[str, list[str]] = {}
    for result in results:
        for note in result.notes if result.error is None else ():
            about.setdefault(note, []).append(result.name)
    for note, names in about.items():
        more = f" and {len(names) - _FEW_NAMES:,} more" if len(names) > _FEW_NAMES else ""
        output.say(f"{', '.join(names[:_FEW_NAMES])}{more}: {as_typed(note)}")


def _error(error: ErrorView | None) -> str:
    return as_typed(f"{error.message} [{error.code}]") if error else ""
