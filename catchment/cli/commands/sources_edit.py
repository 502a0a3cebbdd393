"""`sources add`, `set`, `pause`, `resume`, `remove`, `import` and `export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from catchment import logs
from catchment.app import App
from catchment.cli import context, output
from catchment.cli.errors import SOME_REJECTED
from catchment.cli.params import AsJson, SourceId
from catchment.credentials.secret import strip_url, unsure_notes
from catchment.errors import InvalidInput
from catchment.model import as_dict
from catchment.sources import add as source_add
from catchment.sources import list_formats, lists, preview
from catchment.sources.describe import SourceView, source_view
from catchment.sources.intervals import minutes_from

_FIRST_ITEMS, _LINE = 5, 100
_COUNTERS = ("score", "reply_count", "view_count")
KIND = "kind"
"""Instead of minutes: use the interval of its kind."""

Priority = Annotated[str | None, typer.Option(metavar="PRIORITY", help="high, medium or low.")]


def add(
    kind: Annotated[
        str, typer.Argument(metavar="ADDRESS|KIND", help="An address alone, or a kind: rss, hackernews, website …")
    ],
    target: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", help="After a kind: an address, r/NAME …", show_default=False),
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A name; by default the source's own title.")] = None,
    interval: Annotated[
        int | None, typer.Option(metavar="MIN", help="Minutes between collections, instead of the kind's interval.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the kind. May be repeated.")
    ] = None,
    credential: Annotated[
        str | None, typer.Option(metavar="NAME", help="The credential to use; see `catchment credentials`.")
    ] = None,
    category: Annotated[list[str] | None, typer.Option(metavar="CATEGORY", help="A category. May be repeated.")] = None,
    priority: Priority = "medium",
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            help="Whether to request the source first, show its first items, and add it only if it answers. By default "
            "yes for an address alone, no after a KIND.",
            show_default=False,
        ),
    ] = None,
    keep_secret: Annotated[
        bool,
        typer.Option("--keep-secret", help="Also encrypt values in the address that only look like a secret."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """For an address alone, as in `catchment sources add https://example.com`, catchment finds out what it is, shows
    the first items, and adds it if it answers. After a KIND, only the form of the target is checked, unless --check is
    given. A password or key inside an address is stored encrypted. Adding an existing source is a conflict (exit code
    5) that names the source. A running `catchment serve` collects the new source at once.
    """
    _redact_secrets_of(kind if target is None else target, keep_secret)
    with context.opened_app("sources add", creates=True) as app:
        now = app.clock.now()
        added = source_add.add_typed(
            app.visitor(),
            app.secrets,
            kind,
            target,
            now,
            check=check,
            settings=settings or (),
            name=name,
            credential=credential,
            interval_minutes=interval,
            categories=category or (),
            priority=priority,
            keep_secret=keep_secret,
        )
        source = _view(app, added.source.id)
    for note in unsure_notes(source.target):
        output.note(note)
    shown_preview = preview.preview_view(added.preview) if added.preview else None
    if as_json:
        output.document(as_dict(source) | {"preview": shown_preview} if shown_preview else source)
        return
    if added.recognised:
        title = f"{added.preview.title} · " if added.preview and added.preview.title else ""
        output.say(f"{title}{added.recognised.what} [{added.recognised.name}]")
    if shown_preview:
        _show_preview(shown_preview, now)
    # A feed is named after its address until it is collected.
    facts = (source.kind, source.target) if source.name != source.target else (source.kind,)
    output.say(f"Added source {source.id}: {source.name} ({', '.join(facts)})")
    if not source.has_platform:
        output.say(f"{source.note}: it is skipped until one is installed")


def _redact_secrets_of(address: str, takes_unsure: bool) -> None:
    """Redact the secrets in the address from all output from here on."""
    _, secret = strip_url(address, takes_unsure=takes_unsure)
    for value in secret.values() if secret else ():
        logs.know_secret(value)


def _show_preview(shown: preview.PreviewView, now: datetime) -> None:
    """The first items as they would be stored, and what was left out."""
    output.say(f"It answers with {output.counted(shown.shown, 'item')}" + (":" if shown.items else "."))
    for item in shown.items[:_FIRST_ITEMS]:
        counters = [f"{name} {item[name]}" for name in _COUNTERS if item[name] is not None]
        facts = [output.at(item["created_at"], now), item["author"], *counters, f"id {item['external_id']}"]
        output.say(f"  {item['title'] or _beginning(item['text']) or item['url']}")
        output.say(f"    {' · '.join(fact for fact in facts if fact)}")
        for line in (item["url"], _beginning(item["text"]) if item["title"] else None):
            if line:
                output.say(f"    {line}")
    for skipped in shown.skipped:
        example = skipped.example[:100] or "nothing"
        output.note(f"skipped: {skipped.reason} ({skipped.count:,}), for example {example}")
    for note in shown.notes:
        output.note(note)


def _beginning(text: str | None) -> str | None:
    """As much of a long text as fits on a line."""
    line = " ".join((text or "").split())
    return f"{line[:_LINE]} …" if len(line) > _LINE else line or None


def _view(app: App, source_id: int) -> SourceView:
    return source_view(*app.store.sources.with_progress(source_id), app.intervals())


def change(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The id, name or address of the source.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A new name.")] = None,
    interval: Annotated[
        str | None, typer.Option(metavar="MIN", help=f"Minutes between collections; `{KIND}` for the kind's interval.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the kind; KEY= restores its default. May be repeated."
        ),
    ] = None,
    credential: Annotated[str | None, typer.Option(metavar="NAME", help='The credential to use; "" for none.')] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(metavar="CATEGORY", help='A category; replaces the current ones; "" for none. May be repeated.'),
    ] = None,
    priority: Priority = None,
    as_json: AsJson = False,
) -> None:
    """Only the given options change; items, progress and all other settings stay as they are."""
    with context.opened_app("sources set") as app:
        source_id = app.names.source(source)
        kind = app.store.sources.get(source_id).kind
        changes: dict[str, Any] = {}
        if name is not None and not name.strip():
            raise InvalidInput("a source needs a name", field="name")
        if name is not None:
            changes["name"] = name
        if interval is not None:
            changes["interval_minutes"] = minutes_from(interval, unset=KIND)
        if settings:
            values = source_add.settings_from(app.platforms, kind, settings)
            changes["settings"] = {key: None if value == "" else value for key, value in values.items()}
        if credential is not None:
            changes["credential"] = credential or None
        if category is not None:
            changes["categories"] = [text for text in category if text]
        if priority is not None:
            changes["priority"] = priority
        if not changes:
            raise InvalidInput("nothing to change", "use an option, such as --interval 60 or --name NAME")
        source_add.change(app.store, app.secrets, app.platforms, source_id, app.clock.now(), **changes)
        shown = _view(app, source_id)
    values = as_dict(shown) | {"interval_minutes": f"{shown.fetch_interval_minutes} min"}
    changed = ", ".join(f"{field.removesuffix('_minutes')} {_plain(values[field])}" for field in changes)
    output.result(as_json, shown, f"Changed source {shown.id} ({shown.name}): {changed}")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items()) or "none"
    return (", ".join(value) if isinstance(value, list | tuple) else str(value or "")) or "none"


def pause(
    source_id: SourceId,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; shown with the source.")] = None,
    as_json: AsJson = False,
) -> None:
    with context.opened_app("sources pause") as app:
        source_add.pause(app.store, source_id, reason, app.clock.now())
        _show_state(_view(app, source_id), as_json)


def resume(source_id: SourceId, as_json: AsJson = False) -> None:
    """For paused and retired sources; earlier failures no longer count."""
    with context.opened_app("sources resume") as app:
        source_add.resume(app.store, source_id, app.clock.now())
        _show_state(_view(app, source_id), as_json)


def remove(source_id: SourceId, as_json: AsJson = False) -> None:
    """If it is added again, collecting continues where it stopped."""
    with context.opened_app("sources remove") as app:
        _, progress = app.store.sources.with_progress(source_id)
        removed = source_add.remove(app.store, source_id, app.clock.now())
        _show_state(source_view(removed, progress, app.intervals()), as_json)


def _show_state(source: SourceView, as_json: bool) -> None:
    output.result(as_json, source, f"Source {source.id} ({source.name}) is {source.state}.")


def import_list(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="A file, or - for stdin.")] = None,
    starter: Annotated[
        bool, typer.Option("--starter", help="Import a dozen sources to begin with, in English and Chinese.")
    ] = False,
    communities: Annotated[
        bool, typer.Option("--communities", help="Import a pool of 200 well-known Reddit communities.")
    ] = False,
    allow_credentials: Annotated[
        bool,
        typer.Option(
            "--allow-credentials",
            help="Let the list assign your credentials to sources. Only for lists that you trust.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """The format (OPML, CSV or JSON) is detected from the content. An invalid row is reported with the reason, and the
    others are imported: the exit code is then 8, or 2 if every row was invalid. Existing sources stay as they are;
    only a pool of communities (JSON: name, tier, categories, quality_score) updates their tier (as the priority),
    score and categories. A row that names a credential is rejected without --allow-credentials; in any case a
    credential is sent only to the hosts it was stored for.
    """
    if sum((starter, communities, file is not None)) != 1:
        raise InvalidInput("specify one list to import", "use FILE, --starter or --communities", field="file")
    if file is not None and file.lower().startswith(("http://", "https://")):
        raise InvalidInput(
            f"{file} is an address, not a file",
            "download the list first; to follow the address itself: `catchment sources add ADDRESS`",
            field="file",
        )
    listed = None if file is None else list_formats.read(_content(file, list_formats.MOST_BYTES))
    with context.opened_app("sources import", creates=True) as app:
        shipped = lists.STARTER if starter else lists.COMMUNITIES
        listed, left_out = (listed, ()) if listed else lists.shipped(shipped, app.platforms)
        with output.bar("Importing", len(listed.entries), as_json=as_json) as bar:
            done = lists.follow_all(
                app.store,
                app.secrets,
                app.platforms,
                listed.entries,
                app.clock.now(),
                bar.move,
                may_name_credentials=allow_credentials,
            )
    return _show_import(listed, done, left_out, as_json)


def _show_import(
    listed: list_formats.SourceList, done: lists.Imported, left_out: Sequence[list_formats.ListedSource], as_json: bool
) -> int:
    """Show the result of an import; returns the exit code."""
    places = {bad_row.place for bad_row in done.refused}
    for entry in listed.entries:
        for note in unsure_notes(entry.target) if entry.place not in places else ():
            output.note(f"{entry.place}: {note}")
    rejected = [
        {"place": bad_row.place, "target": bad_row.target, "reason": bad_row.reason}
        for bad_row in (*listed.bad_rows, *done.refused)
    ]
    if as_json:
        output.document(
            {
                "format": listed.format,
                "added": len(done.added),
                "known": len(done.known),
                "changed": len(done.changed),
                "same": len(done.same),
                "refused": len(rejected),
                "source_ids": done.added,
                "problems": rejected,
                "left_out": [{"kind": entry.kind, "target": entry.target} for entry in left_out],
            }
        )
    else:
        changed = f" ({len(done.changed):,} changed)" if done.changed else ""
        output.say(f"{len(done.added):,} added, {len(done.known):,} already there{changed}, {len(rejected):,} rejected")
        for row in rejected:
            output.note(f"{row['place']}: {row['target'] or '(empty)'}: {row['reason']}")
        for entry in left_out:
            output.note(f"left out: {entry.name} ({entry.target}): the kind {entry.kind} is not installed")
    if not rejected:
        return 0
    return SOME_REJECTED if done.added or done.known else InvalidInput.exit_code


def _content(file: str, most_bytes: int) -> bytes:
    # One byte more than allowed shows that the file is too large; the rest is not read.
    if file == "-":
        return sys.stdin.buffer.read(most_bytes + 1)
    with Path(file).open("rb") as opened:
        return opened.read(most_bytes + 1)


def export_list(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for stdout.")],
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="opml, csv, json or communities; by default the extension of the file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Credentials are written by name only. CSV and JSON hold all sources, OPML feeds only, and communities (a pool as
    JSON) Reddit communities only.
    """
    format = (format or Path(file).suffix.lstrip(".")).lower()
    with context.opened_store(context.settings()) as (store, _):
        entries = lists.listed(store)
    text, left_out = list_formats.write(entries, format)
    count = len(entries) - left_out
    if file == "-":
        output.raw(text)
    else:
        with output.whole_file(Path(file)) as opened:
            opened.write(text.encode())
        summary = {"format": format, "file": file, "sources": count, "left_out": left_out}
        output.result(as_json, summary, f"{output.counted(count, 'source')} written to {file}")
    if left_out and not (as_json and file != "-"):
        output.note(f"{output.counted(left_out, 'source')} left out, because {format} cannot represent them")
