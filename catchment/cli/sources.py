"""`sources`: what is followed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from catchment.cli import doors, showing
from catchment.cli.failing import SOME_REFUSED
from catchment.cli.given import AsJson, SourceId
from catchment.errors import InvalidInput

if TYPE_CHECKING:
    from catchment.collect.importing import Imported
    from catchment.collect.lists import Listed, SourceList
    from catchment.settings import Settings
    from catchment.shop import Shop
    from catchment.store import Store

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What is followed: add, list, pause, import …")

_PAGE = 1000
_FIRST_ITEMS, _LINE = 5, 100
_COUNTERS = ("score", "reply_count", "view_count")
_TIMES = (
    *("created_at", "last_fetched_at", "last_success_at", "last_new_at", "next_fetch_at", "watermark"),
    "expected_by",
)


@app.command()
def add(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The sort of source: rss, hackernews, website …")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="What to follow: an address, r/NAME, @NAME …")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to call it; by default what it calls itself.")
    ] = None,
    interval: Annotated[
        int | None, typer.Option(metavar="MIN", help="Minutes between two visits, instead of its kind's.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of its kind. May be repeated.")
    ] = None,
    credential: Annotated[
        str | None, typer.Option(metavar="NAME", help="The credential to ask with; see `catchment credentials`.")
    ] = None,
    category: Annotated[list[str] | None, typer.Option(metavar="CATEGORY", help="A category. May be repeated.")] = None,
    priority: Annotated[str, typer.Option(metavar="PRIORITY", help="high, medium or low.")] = "medium",
    check: Annotated[
        bool,
        typer.Option("--check", help="Ask first, and show what would be stored; without that nothing is added."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Follow something.

    Only the target's form is checked, unless --check asks the platform. A password or key inside an address goes to
    the vault at once. What is followed already is a conflict (exit code 5), which names the source.
    """
    with doors.opened_shop("sources add") as shop:
        from catchment.collect import following, previewing
        from catchment.store.sources import refuse_twice

        _know_secrets(target)
        now = shop.clock.now()
        more: dict[str, Any] = {
            "name": name,
            "settings": _pairs(settings or (), _texts(shop, kind)),
            "credential": credential,
            "interval_minutes": interval,
            "categories": category or (),
            "priority": priority,
        }
        preview = None
        if check:
            source, preview = following.follow_checked(shop.visitor, shop.safe, kind, target, now, **more)
            refuse_twice(source, preview is not None)
        else:
            source, is_new = following.follow(shop.store, shop.safe, shop.platforms, kind, target, now, **more)
            refuse_twice(source, is_new)
        shown = _shown(shop.store, shop.settings, source.id)
        found = previewing.told(preview) if preview else None
    if as_json:
        showing.document(shown if found is None else shown | {"preview": found})
        return
    showing.say(f"source {shown['id']}: {shown['name']} ({shown['kind']}, {shown['target']})")
    if found is not None:
        _show_preview(found, now)


def _know_secrets(target: str) -> None:
    """From here on, no line shows what is secret in the address."""
    from catchment.logs import know_secret
    from catchment.vault import strip_url

    _, secret = strip_url(target)
    for value in secret.values() if secret else ():
        know_secret(value)


def _texts(shop: Shop, kind: str) -> set[str]:
    """The settings of a kind that are texts, whatever they look like: an expression may begin with a bracket."""
    declared = shop.platforms.kind(kind)
    return {field.name for field in declared.fields if field.check is not None} if declared else set()


def _pairs(given: Sequence[str], texts: set[str]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise InvalidInput(f"--set {text!r} is not a setting", "write it as key=value", field="set")
        pairs[key.strip()] = value.strip() if key.strip() in texts else _value(value.strip())
    return pairs


def _value(text: str) -> Any:
    """Lists, objects and truths as JSON writes them; everything else is text, and its kind knows what to make of it."""
    if text in ("true", "false") or text.startswith(("{", "[")):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise InvalidInput(f"{text!r} is not valid JSON: {error}", field="set") from None
    return text


def _show_preview(found: dict[str, Any], now: datetime) -> None:
    """The first items as they would be stored, and what was left out."""
    showing.say(f"it answers, with {showing.counted(found['shown'], 'item')}" + (":" if found["items"] else "."))
    for one in found["items"][:_FIRST_ITEMS]:
        counters = [f"{name} {one[name]}" for name in _COUNTERS if one[name] is not None]
        facts = [showing.at(one["created_at"], now), one["author"], *counters, f"id {one['external_id']}"]
        showing.say(f"  {one['title'] or _beginning(one['text']) or one['url']}")
        showing.say(f"    {' · '.join(fact for fact in facts if fact)}")
        for line in (one["url"], _beginning(one["text"]) if one["title"] else None):
            if line:
                showing.say(f"    {line}")
    for one in found["skipped"]:
        showing.note(f"left out: {one['reason']} ({one['count']:,}), as {one['example'][:100] or 'nothing'}")
    for note in found["notes"]:
        showing.note(note)


def _beginning(text: str | None) -> str | None:
    """Of a long text what fits on a line."""
    line = " ".join((text or "").split())
    return f"{line[:_LINE]} …" if len(line) > _LINE else line or None


def _shown(store: Store, settings: Settings, source_id: int) -> dict[str, Any]:
    from catchment.collect.telling import shown_source

    source, progress = store.sources.with_progress(source_id)
    return shown_source(source, progress, intervals_of(store, settings))


def intervals_of(store: Store, settings: Settings) -> dict[str, int]:
    """Minutes by kind, as they are at this moment."""
    from catchment.pace import kind_intervals
    from catchment.platforms import installed

    return kind_intervals(installed().kinds(), store.settings.intervals(), settings.intervals)


@app.command(name="list")
def list_sources(
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only those of this kind.")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="Only those that are active, paused, retired or removed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what is followed, and how it stands."""
    from catchment.collect.telling import health_of, shown_source
    from catchment.model import SourceState

    if state is not None and state not in list(SourceState):
        raise InvalidInput(f"unknown state {state!r}", f"one of {', '.join(SourceState)}", field="state")
    settings = doors.settings()
    with doors.opened_store(settings) as (store, now):
        if kind is not None:
            doors.names(store).source_kind(kind)
        intervals, found, after = intervals_of(store, settings), [], 0
        while page := store.sources.page(after, _PAGE, kind=kind, states=[SourceState(state)] if state else ()):
            found += page
            after = page[-1][0].id
    shown = [shown_source(source, progress, intervals) for source, progress in found]
    if as_json:
        showing.document(shown)
        return
    limit = settings.failures_before_probation
    showing.table(
        ("#id", "kind", "name", "state", "last visit", "next visit", "trouble"),
        (
            (
                str(one["id"]),
                one["kind"],
                one["name"],
                health_of(source, progress, limit),
                showing.when(one["last_fetched_at"], now),
                _next(one, now),
                one["last_error"],
            )
            for one, (source, progress) in zip(shown, found, strict=True)
        ),
    )
    showing.say(showing.counted(len(shown), "source"))


def _next(shown: dict[str, Any], now: datetime) -> str:
    if not shown["is_active"]:
        return "–"
    at = shown["next_fetch_at"]
    return showing.when(at, now) if at and datetime.fromisoformat(at) > now else "due"


@app.command()
def show(source_id: SourceId, as_json: AsJson = False) -> None:
    """Show one source in full.

    How it stands, when it is due and why then, its latest visits, its open gaps.
    """
    settings = doors.settings()
    with doors.opened_store(settings) as (store, now):
        shown = _shown(store, settings, source_id)
        visits, gaps = store.runs.of_source(source_id), store.gaps.page(source_id=source_id)
    if as_json:
        showing.document(shown | {"visits": visits, "gaps": gaps})
        return
    showing.facts((name, showing.at(value, now) if name in _TIMES else value) for name, value in shown.items())
    if visits:
        showing.table(
            ("visit", "outcome", "#new", "#updated", "#duplicate", "#invalid", "#requests", "why"),
            (
                (
                    showing.when(one["started_at"], now),
                    one["outcome"] or "under way",
                    *(one[f"{name}_count"] for name in ("new", "updated", "duplicate", "invalid", "request")),
                    one["error"] or "; ".join(one["notes"]),
                )
                for one in visits
            ),
        )
    show_gaps(gaps, now)


def show_gaps(gaps: Sequence[dict[str, Any]], now: datetime) -> None:
    if not gaps:
        showing.say("no open gaps")
        return
    showing.table(
        ("#gap", "source", "certainty", "standing", "from", "to", "cause", "closed"),
        (
            (
                str(one["id"]),
                f"{one['source_id']} {one['source_name']}",
                one["certainty"],
                one["standing"],
                showing.at(one["from_at"], now),
                showing.at(one["to_at"], now),
                one["cause"],
                f"{showing.when(one['closed_at'], now)}: {one['closed_because']}" if one["closed_at"] else "",
            )
            for one in gaps
        ),
    )


@app.command()
def pause(
    source_id: SourceId,
    reason: Annotated[str | None, typer.Option(metavar="WORDS", help="Why; shown wherever the source is.")] = None,
    as_json: AsJson = False,
) -> None:
    """Visit it no more until it is resumed."""
    with doors.opened_shop("sources pause") as shop:
        from catchment.collect import following

        following.pause(shop.store, source_id, reason, shop.clock.now())
        _show_changed(_shown(shop.store, shop.settings, source_id), as_json)


@app.command()
def resume(source_id: SourceId, as_json: AsJson = False) -> None:
    """Visit it again; earlier failures are forgotten."""
    with doors.opened_shop("sources resume") as shop:
        from catchment.collect import following

        following.resume(shop.store, source_id, shop.clock.now())
        _show_changed(_shown(shop.store, shop.settings, source_id), as_json)


@app.command()
def remove(source_id: SourceId, as_json: AsJson = False) -> None:
    """Follow it no longer; its items stay.

    Added again, it goes on where it was.
    """
    with doors.opened_shop("sources remove") as shop:
        from catchment.collect import following
        from catchment.collect.telling import shown_source

        _, progress = shop.store.sources.with_progress(source_id)
        gone = following.remove(shop.store, source_id, shop.clock.now())
        _show_changed(shown_source(gone, progress, shop.intervals()), as_json)


def _show_changed(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        showing.document(shown)
    else:
        showing.say(f"source {shown['id']} ({shown['name']}) is {shown['state']}")


File = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for stdin and stdout.")]


@app.command(name="import")
def import_list(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="A file, or - for stdin.")] = None,
    starter: Annotated[
        bool, typer.Option("--starter", help="Instead of a file: a dozen sources to begin with, English and Chinese.")
    ] = False,
    communities: Annotated[
        bool, typer.Option("--communities", help="Instead of a file: a pool of 200 well-known communities of Reddit.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Follow everything that a list names.

    OPML, CSV and JSON are told apart by content. A row that cannot be used is reported with the reason, and the rest
    goes on: the exit code is then 8, or 2 if no row could be used. What is followed already stays as it is; but from a
    pool of communities (JSON: name, tier, categories, quality_score) it takes over the tier (as its priority), the
    score, and further categories.
    """
    from catchment.collect import lists

    if sum((starter, communities, file is not None)) != 1:
        raise InvalidInput("import what?", "give a FILE, --starter or --communities, one of them", field="file")
    listed = None if file is None else lists.read(_content(file, lists.MOST_BYTES))
    with doors.opened_shop("sources import") as shop:
        from catchment.collect.importing import follow_all
        from catchment.collect.shipped import COMMUNITIES, STARTER, shipped

        listed, left_out = (listed, ()) if listed else shipped(STARTER if starter else COMMUNITIES, shop.platforms)
        is_shown = showing.is_watched() and not as_json
        with showing.bar("importing", len(listed.entries), is_shown=is_shown) as bar:
            done = follow_all(shop.store, shop.safe, shop.platforms, listed.entries, shop.clock.now(), bar.move)
    return _tell_import(listed, done, left_out, as_json)


def _tell_import(listed: SourceList, done: Imported, left_out: Sequence[Listed], as_json: bool) -> int:
    from catchment.logs import redact

    refused = [
        {"place": one.place, "target": redact(one.target), "reason": redact(one.reason)}
        for one in (*listed.bad_rows, *done.refused)
    ]
    summary: dict[str, Any] = {
        "format": listed.format,
        "added": len(done.added),
        "known": len(done.known),
        "changed": len(done.changed),
        "same": len(done.same),
        "refused": len(refused),
    }
    if as_json:
        unknown = [{"kind": one.kind, "target": one.target} for one in left_out]
        showing.document(summary | {"source_ids": done.added, "problems": refused, "left_out": unknown})
    else:
        known = f"{summary['known']:,} known already" + (f" ({summary['changed']:,} changed)" if done.changed else "")
        showing.say(f"{summary['added']:,} added, {known}, {summary['refused']:,} refused")
        for one in refused:
            showing.note(f"{one['place']}: {one['target'] or '(nothing)'}: {one['reason']}")
        for entry in left_out:
            showing.note(f"left out: {entry.name} ({entry.target}): the kind {entry.kind} is not installed")
    if not refused:
        return 0
    return SOME_REFUSED if done.added or done.known else InvalidInput.exit_code


def _content(file: str, most_bytes: int) -> bytes:
    # One byte more than is allowed tells that there is too much; the rest is not read at all.
    if file == "-":
        return sys.stdin.buffer.read(most_bytes + 1)
    with Path(file).open("rb") as opened:
        return opened.read(most_bytes + 1)


@app.command(name="export")
def export_list(
    file: File,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="opml, csv, json or communities; by default what the file's name ends with."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write everything that is followed to a list.

    Credentials are named, never told. OPML holds feeds only; communities, a pool as JSON, those of Reddit only; CSV and
    JSON hold everything.
    """
    from catchment.collect import lists

    format = (format or Path(file).suffix.lstrip(".")).lower()
    if format not in lists.FORMATS:
        raise InvalidInput(
            f"unknown format {format!r}" if format else "which format?",
            f"give --format, one of {', '.join(lists.FORMATS)}",
            field="format",
        )
    with doors.opened_store(doors.settings()) as (store, _):
        from catchment.collect.importing import listed

        entries = listed(store)
    text, left_out = lists.write(entries, format)
    if file == "-":
        showing.raw(text)
    else:
        with showing.whole_file(Path(file)) as opened:
            opened.write(text.encode())
    summary = {"format": format, "file": file, "sources": len(entries) - left_out, "left_out": left_out}
    if file != "-":
        _tell_export(summary, as_json)
    elif left_out:
        showing.note(f"left out, because {format} cannot hold them: {left_out:,}")


def _tell_export(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        showing.document(summary)
        return
    showing.say(f"{showing.counted(summary['sources'], 'source')} written to {summary['file']}")
    if summary["left_out"]:
        showing.note(f"left out, because {summary['format']} cannot hold them: {summary['left_out']:,}")
