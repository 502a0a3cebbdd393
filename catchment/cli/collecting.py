"""`serve` and `collect`: what visits sources."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, TheseSources
from catchment.cli.stopping import Stopping
from catchment.errors import InvalidInput

if TYPE_CHECKING:
    from catchment.model import Result
    from catchment.shop import Shop

_FEW_NAMES = 3


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="The address to listen on, instead of CATCHMENT_HOST.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="The port to listen on, instead of CATCHMENT_PORT."),
    ] = None,
    no_collect: Annotated[bool, typer.Option("--no-collect", help="Only serve; another process collects.")] = False,
    as_json: AsJson = False,
) -> int:
    """Serve the pages and the API, and collect.

    It goes on until stopped. A SIGTERM or Ctrl-C lets what is under way finish for CATCHMENT_STOP_SECONDS; a second
    one cuts it off. The exit code is 0 if nothing had to be cut off, else 1.
    """
    with doors.opened_shop("serve", is_engine=not no_collect) as shop:
        from catchment.api.serving import serve

        address = shop.settings.host if host is None else host
        code = serve(
            shop,
            address,
            shop.settings.port if port is None else port,
            collects=not no_collect,
            announce=showing.note if as_json else showing.say,
        )
    if as_json:
        showing.document({"is_clean": code == 0})
    return code


def collect(
    source: TheseSources = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Every active source of this kind, whatever the schedule.")
    ] = None,
    due: Annotated[bool, typer.Option("--due", help="What is due now. The default.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every active source, whatever the schedule.")] = False,
    cache_only: Annotated[
        bool, typer.Option("--cache-only", help="Communities, kept hot and not stored: all, or those given.")
    ] = False,
    loop: Annotated[
        bool, typer.Option("--loop", help="Go on for ever: the engine of `serve`, without the web server.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Visit sources now, and store what they show.

    Exits with 0 if every source succeeded or was skipped, with 3 if one failed; the others are collected all the
    same. A source that another process is collecting at this moment is skipped. Then watches are run over what came,
    and webhooks and hooks are told once; what they do not take waits for the next run, and is said.

    On SIGTERM or Ctrl-C no new source is begun, and what is under way may finish for CATCHMENT_STOP_SECONDS; a second
    signal cuts it off. The exit code is then 0 if nothing was cut off, else 1: it is taken up again next time.
    """
    if sum((bool(source), kind is not None, due, everything, loop)) > 1:
        raise InvalidInput("--source, --kind, --due, --all and --loop exclude each other", "give one of them")
    if cache_only and (due or loop):
        raise InvalidInput("--cache-only is for communities now", "give --source, --kind or nothing beside it")
    work = "collect --loop" if loop else "collect"
    with Stopping() as stopping, doors.opened_shop(work, is_engine=loop) as shop:
        say = showing.note if showing.is_watched() else _log_info
        stopping.watch(shop.stop, shop.cut, shop.settings.stop_seconds, say)
        if loop:
            return _go_on(shop, as_json)
        if cache_only:
            return _warm(shop, _communities(shop, source, kind), as_json)
        is_chosen = source or kind is not None or everything
        return _collect(shop, _ids(shop, source, kind) if is_chosen else None, as_json)


def _log_info(words: str) -> None:
    from catchment import logs

    logs.logger(__name__).info(words)


def _go_on(shop: Shop, as_json: bool) -> int:
    from catchment.engines.embedded import Embedded

    engine = Embedded(shop)
    engine.start()
    shop.stop.wait()
    is_clean = engine.stop(shop.settings.stop_seconds)
    if as_json:
        showing.document({"is_clean": is_clean})
    return 0 if is_clean else 1


def _ids(shop: Shop, sources: Sequence[int] | None, kind: str | None) -> list[int]:
    if sources:
        # Asked for one by one: an id that is not there is a mistake, and is said before anything is visited.
        return [shop.store.sources.get(one).id for one in dict.fromkeys(sources)]
    if kind is not None:
        shop.names.source_kind(kind)
    return shop.store.sources.ids(kind=kind)


def _communities(shop: Shop, sources: Sequence[int] | None, kind: str | None) -> list[int]:
    """These, or all that can be crawled cache-only."""
    from catchment.collect.warming import warmable

    kinds = warmable(shop.platforms)
    wanted = {kind} if kind is not None else {shop.store.sources.get(one).kind for one in sources or ()}
    if others := wanted - set(kinds):
        what = f"sources of kind {', '.join(sorted(others))} are not kept hot"
        raise InvalidInput(what, f"kinds that are: {', '.join(kinds)}", field="kind")
    if sources or kind is not None:
        return _ids(shop, sources, kind)
    return [source_id for one in kinds for source_id in _ids(shop, None, one)]


def _warm(shop: Shop, ids: list[int], as_json: bool) -> int:
    with _watched(shop, len(ids), as_json) as seen:
        began = shop.clock.now()
        results = shop.warming().these(ids, "collect --cache-only", "command", seen)
    return _told(shop, results, began, as_json)


def _collect(shop: Shop, ids: list[int] | None, as_json: bool) -> int:
    """These sources, or what is due."""
    began = shop.clock.now()
    with _watched(shop, None if ids is None else len(ids), as_json) as seen:
        rounds, who = shop.rounds(), ("collect", "command", seen)
        results = rounds.due(*who) if ids is None else rounds.these(ids, *who)
    code = _told(shop, results, began, as_json)
    _tell_others(shop)
    return code


def _tell_others(shop: Shop) -> None:
    """Those who watch and those who listen hear of it now: there may be no engine to do it later."""
    from catchment.jobs import tell_others

    tell_others(shop)
    for one in shop.store.deliveries.page():
        if one["is_active"] and one["waiting_count"]:
            why = f": {one['last_error']}" if one["last_error"] else ""
            showing.note(f"{showing.counted(one['waiting_count'], 'event')} still to be told to {one['listener']}{why}")


def _told(shop: Shop, results: list[Result], began: datetime, as_json: bool) -> int:
    """What it came to, shown; gives the exit code."""
    from catchment.collect.rounds import summed

    summary = summed(results, began, shop.clock.now())
    if as_json:
        showing.document(summary)
    else:
        _show(summary)
        _show_notes(results)
    if shop.stop.is_set():
        return 1 if any(_is_cut_off(one) for one in results) else 0
    return 3 if summary["failed"] else 0


def _is_cut_off(result: Result) -> bool:
    # What was claimed, but not yet asked for when the stop came, has lost nothing.
    return result.error_code == "STOPPED" and result.requests > 0


@contextmanager
def _watched(shop: Shop, total: int | None, as_json: bool) -> Iterator[Callable[[Result], None]]:
    """A bar for whoever watches, and what it is told of each result."""
    is_shown = showing.is_watched() and not as_json
    counts = {"seen": 0, "new": 0, "failed": 0}
    with showing.bar("collecting", total, is_shown=is_shown) as bar, _logs_above_the_bar(shop, is_shown):

        def seen(result: Result) -> None:
            counts["seen"] += 1
            counts["new"] += result.counts.new
            counts["failed"] += result.outcome == "failed"
            bar.move(counts["seen"], f"{counts['new']:,} new · {counts['failed']:,} failed")

        yield seen


@contextmanager
def _logs_above_the_bar(shop: Shop, is_shown: bool) -> Iterator[None]:
    """While there is a bar, stderr is the bar's, which prints other lines above itself; the summary tells of failures,
    so the log need not, unless somebody asked for it."""
    from catchment import logs

    settings = shop.settings
    if not is_shown:
        yield
        return
    level = settings.log_level if "CATCHMENT_LOG_LEVEL" in settings.origins else "error"
    logs.configure(settings.log_format, level, sys.stderr)
    try:
        yield
    finally:
        logs.configure(settings.log_format, settings.log_level, sys.__stderr__)


def _show(summary: dict[str, Any]) -> None:
    if not summary["sources"]:
        showing.say("Nothing to collect now.")
        return
    told = ", ".join(f"{summary[name]:,} {name}" for name in ("succeeded", "failed", "skipped"))
    items = ", ".join(f"{summary[name]:,} {name}" for name in ("new", "updated", "duplicate", "invalid"))
    requests = showing.counted(summary["requests"], "request")
    showing.say(f"{showing.counted(summary['sources'], 'source')}: {told}")
    showing.say(f"items: {items} · {requests} in {summary['duration_seconds']:.1f} s")
    troubled = [one for one in summary["results"] if one["error"]]
    if troubled:
        rows = [(one["source_id"], one["name"], one["outcome"], _error(one["error"])) for one in troubled]
        showing.table(("#id", "source", "outcome", "why"), rows)


def _show_notes(results: Sequence[Result]) -> None:
    """What is to be known of visits that went well, each thing once, with those that it is about."""
    about: dict[str, list[str]] = {}
    for one in results:
        for note in one.notes if one.error is None else ():
            about.setdefault(note, []).append(one.name)
    for note, names in about.items():
        more = f" and {len(names) - _FEW_NAMES:,} more" if len(names) > _FEW_NAMES else ""
        showing.say(f"{', '.join(names[:_FEW_NAMES])}{more}: {note}")


def _error(error: dict[str, Any]) -> str:
    return f"{error['message']} [{error['code']}]"
