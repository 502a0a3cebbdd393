"""`migrate`, `backup`, `restore`, `doctor`, `security-audit`, `reparse`, `settings`, `forget` and `forgotten`:
running an installation."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from catchment import doctor as diagnosis
from catchment.cache import forget_for_good
from catchment.cli import context, output
from catchment.cli.context import StopSignals
from catchment.cli.params import AsJson, ItemId, Limit, OfSource, OfSourceKind, Since
from catchment.collect.reparse import Reparsed, Reparsing
from catchment.credentials.security_audit import AuditReport, audit
from catchment.errors import BadSetting, InvalidInput, NotFound
from catchment.installation import as_typed
from catchment.logs import redact
from catchment.model import as_dict
from catchment.platforms import installed
from catchment.sources.intervals import KindIntervalView, interval_views, minutes_from, set_interval
from catchment.store import Store
from catchment.store.items.deletion import Forget
from catchment.store.leases import refuse_while_in_use
from catchment.store.migrate import back_up, ready, revision
from catchment.store.migrate import restore as put_back
from catchment.store.version import HEAD
from catchment.text.printable import plain

DEFAULT = "default"
_ORIGINS = {"database": "database", "settings": "environment or file", "default": "default"}


def migrate(as_json: AsJson = False) -> None:
    """Needed after an update of catchment. A SQLite file is copied to `backups` in CATCHMENT_HOME first. Refused
    while another process works with the database."""
    settings = context.settings()
    with context.bare_database(settings, creates=True) as database:
        before = revision(database)
        backup = ready(database, settings.home, context.clock_of(settings).now(), may_migrate=True)
    if before == HEAD:
        sentences = [f"The database is up to date (schema {HEAD})."]
    else:
        sentences = [f"The database now has schema {HEAD}" + (f"; before, it was {before}." if before else ".")]
    if backup:
        sentences.append(f"The previous version is kept as {backup}")
    output.result(as_json, {"from": before, "to": HEAD, "backup": backup}, *sentences)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")],
    as_json: AsJson = False,
) -> None:
    """The copy is complete and consistent, even while other processes write. It is verified before it gets its name: a
    damaged or empty database is not backed up, and the exit code is 6. For PostgreSQL, use `pg_dump`.
    """
    with context.bare_database(context.settings()) as database:
        if not database.is_there:
            raise NotFound(f"there is no database {database.file} yet", "there is nothing to back up")
        size = back_up(database, file).stat().st_size
    output.result(as_json, {"file": str(file), "bytes": size}, f"{size:,} bytes written to {file}")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")],
    as_json: AsJson = False,
) -> None:
    """The current database is kept in `backups` in CATCHMENT_HOME. Refused while another process uses the database."""
    settings = context.settings()
    now = context.clock_of(settings).now()
    with context.bare_database(settings, creates=True) as database:
        refuse_while_in_use(database, settings.home, now)
        replaced = put_back(database, settings.home, file, now)
    output.result(
        as_json,
        {"file": str(file), "kept": str(replaced) if replaced else None},
        f"Restored from {file}" + (f"; the previous database is kept as {replaced}" if replaced else ""),
    )


def doctor(as_json: AsJson = False) -> int:
    """Checks settings, database, disk, credentials and clock, without any network request, and says what to do about
    each problem. The database is checked for damage, and for whether it can be written to and still has its items.
    Exits with 1 if there is a problem.
    """
    try:
        settings = context.full_settings()
    except BadSetting as error:
        problem = diagnosis.Check("settings", redact(str(error)), "wrong", "docs/settings.md lists the allowed values")
        checks, changed = [problem, diagnosis.program()], []
    else:
        checks, changed = list(diagnosis.examine(settings)), diagnosis.changed_settings(settings)
    is_well = all(check.verdict != "wrong" for check in checks)
    if as_json:
        findings = [{name: getattr(check, name) for name in check.__struct_fields__} for check in checks]
        output.document({"is_well": is_well, "findings": findings, "settings": changed})
        return 0 if is_well else 1
    if changed:
        output.heading("Changed settings")
        output.table(("Setting", "Value", "Default", "Set in"), [tuple(setting.values()) for setting in changed])
        output.say()
    output.table(
        ("", "Check", "Result"),
        [
            (check.verdict, check.about, as_typed(check.what + (f" — {check.helps}" if check.helps else "")))
            for check in checks
        ],
    )
    output.say("No problems found." if is_well else "There are problems.")
    return 0 if is_well else 1


def security_audit(
    log: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", exists=True, help="A log file, or a folder of them. May be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Decrypts all secrets and looks for them in the database, in Redis (if CATCHMENT_REDIS_URL is set), in all files
    of CATCHMENT_HOME, in settings files and in the given logs. Our own records (requests, errors, runs, logs) are also
    searched for anything that has the form of a secret; collected content is not. Secrets found are not shown. Exits
    with 1 if there are any, or if something could not be searched.
    """
    with (
        context.opened_app("security-audit") as app,
        output.bar("Searching", app.store.secret_scans.size(), as_json=as_json) as bar,
    ):
        done = audit(
            app.store,
            app.settings,
            Path.cwd(),
            redis=app.redis,
            lent=app.secrets.lent.values(),
            logs=[file for path in log or () for file in _files(path)],
            progress=bar.move,
        )
    if as_json:
        output.document({"passed": done.passed} | {name: getattr(done, name) for name in done.__struct_fields__})
    else:
        _show_audit(done)
    return 0 if done.passed else 1


def _files(path: Path) -> Iterator[Path]:
    yield from [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def _show_audit(done: AuditReport) -> None:
    if done.findings:
        output.table(
            ("Where", "Found", "#Times", "Examples"),
            ((finding.where, finding.what, finding.count, finding.examples) for finding in done.findings),
        )
    searched = f"{output.counted(done.rows, 'row')} and {output.counted(done.files, 'file')}"
    verdict = "Passed" if done.passed else "Failed"
    output.say(f"{verdict}: searched {searched} for {output.counted(done.secrets, 'known secret')}.")


def reparse(
    source: OfSource = None,
    kind: OfSourceKind = None,
    everything: Annotated[bool, typer.Option("--all", help="All sources.")] = False,
    since: Since = None,
    again: Annotated[
        bool, typer.Option("--again", help="Include answers that the current parser has already parsed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: AsJson = False,
) -> int:
    """Sends no requests. Each answer corrects the version of the item that it produced, with that version's date; the
    previous content stays in the item's history, with the reason `parser_mended`. Items that could not be parsed
    before are added. It can be stopped at any time; the same command continues.
    """
    if sum((source is not None, kind is not None, everything)) != 1:
        raise InvalidInput("which answers?", "use one of --source, --kind and --all")
    with StopSignals() as stopping, context.opened_app("reparse") as app:
        stopping.watch(app.stop, app.cut, app.settings.stop_seconds, output.note)
        source_id = None if source is None else app.names.source(source)
        if source_id is not None:
            app.store.sources.get(source_id, even_removed=True)
        if kind is not None:
            app.platforms.needed(kind)
        reparsing = Reparsing(
            app.store, app.platforms, app.settings.text_limit, app.stop, app.clock.now(), is_dry=dry_run
        )
        chosen = reparsing.filter(source_id, kind, since, again)
        with output.bar("Parsing", app.store.reparses.count(chosen), as_json=as_json) as bar:
            done = reparsing.run(
                chosen,
                lambda so_far: bar.move(so_far.answers, f"{so_far.done.new:,} new · {so_far.done.mended:,} corrected"),
            )
    report = {
        "answers": done.answers,
        "unreadable": done.unreadable,
        "new": done.done.new,
        "mended": done.done.mended,
        "details": done.done.details,
        "is_dry_run": dry_run,
        "is_cut_off": done.is_cut_off,
    }
    output.result(as_json, report, *_reparse_summary(done, dry_run))
    if done.is_cut_off and not as_json:
        output.note("stopped before the end; run the same command to continue")
    return 1 if done.is_cut_off else 0


def _reparse_summary(done: Reparsed, dry_run: bool) -> Iterator[str]:
    if not done.answers:
        yield "No stored answer needs to be parsed again."
        return
    would = "would be " if dry_run else ""
    yield (
        f"{output.counted(done.answers, 'answer')} parsed again: {output.counted(done.done.mended, 'version')} "
        f"{would}corrected, {output.counted(done.done.new, 'item')} {would}added, {done.done.details:,} {would}changed "
        "in details."
    )
    if done.unreadable:
        yield f"{output.counted(done.unreadable, 'answer')} could not be parsed; kept for a later parser."


def intervals(
    kind: Annotated[str | None, typer.Argument(metavar="KIND", help="The kind to show or change.")] = None,
    minutes: Annotated[
        str | None,
        typer.Argument(metavar="MINUTES", help=f"Minutes between collections; `{DEFAULT}` removes the stored value."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """An interval that is set here overrides FETCH_INTERVAL_<KIND> for all processes that use this database, from the
    next tick on. A source's own interval (`catchment sources set`) overrides both.
    """
    with context.opened_app("settings intervals", creates=minutes is not None) as app:
        if kind is not None:
            app.names.source_kind(kind)
        if kind is not None and minutes is not None:
            set_interval(app.store, app.names, kind, minutes_from(minutes, unset=DEFAULT), app.clock.now())
        rows = interval_views(app.platforms, app.store.settings.intervals(), app.settings.intervals)
    rows = [row for row in rows if kind in (None, row.kind)]
    if as_json:
        output.document(rows if kind is None else rows[0])
        return
    output.table(("Kind", "#Minutes", "Set in", "#Otherwise"), map(_interval_cells, rows))


def _interval_cells(row: KindIntervalView) -> tuple[object, ...]:
    fallback = row.settings_minutes if row.origin == "database" else None
    return row.kind, row.interval_minutes, _ORIGINS[row.origin], fallback or row.default_minutes


Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="The reason, kept in the record of deletions.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]

STILL = (
    "Backups, exports and copies fetched by other programs still contain it: delete those yourself. "
    "The stored answers of its sources were deleted, too, and cannot be parsed again."
)


def item(item_id: ItemId, reason: Reason = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Deletes its revisions, counters, index entries, quotes and events, and the stored answers of its sources. The
    item is not collected again. The deletion is recorded, without the content.
    """
    with context.opened_store(context.settings()) as (store, now):
        platform = store.deletion.platform_of(item_id)
        request = Forget("item", platform, by=_who(), reason=reason, item_id=item_id)
        _forget(store, request, f"item {item_id}", now, yes, as_json)


def author(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="The platform: feeds, hackernews …")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name or id of the author on the platform.")],
    reason: Reason = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Deletes all items by this name or id, in any case, as `forget item` does. Quotes in other items lose the text and
    the name. Nothing by this author is collected again.
    """
    if not name.strip():
        raise InvalidInput("the name of the author is missing", field="name")
    with context.opened_store(context.settings()) as (store, now):
        # A typing error would delete nothing and look like success.
        installed().named(platform, *store.deletion.followed_on(platform))
        request = Forget("author", platform, by=_who(), reason=reason, author=name)
        count = output.counted(store.deletion.count(request), "item")
        _forget(store, request, f"{name} on {platform} ({count})", now, yes, as_json)


def _who() -> str:
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"


def _forget(store: Store, request: Forget, shown: str, now: datetime, yes: bool, as_json: bool) -> None:
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InvalidInput("a permanent deletion needs a confirmation", "use --yes", field="yes")
        typer.confirm(f"Delete {plain(shown)} permanently?", abort=True)
    with (
        context.opened_cache(context.settings(), store) as cache,
        output.bar("Deleting", None, as_json=as_json) as bar,
    ):
        record = forget_for_good(store, cache, request, now, bar.move)
    if as_json:
        output.document(as_dict(record) | {"still_held": STILL})
        return
    output.say(
        f"Deleted: {output.counted(record.item_count, 'item')}, "
        f"{output.counted(record.revision_count, 'revision')}, "
        f"{output.counted(record.answer_count, 'stored answer')}, {output.counted(record.event_count, 'event')}"
    )
    output.note(STILL)


def forgotten(limit: Limit = 100, as_json: AsJson = False) -> None:
    """Shows when, by whom and why; neither content nor names are recorded."""
    with context.opened_store(context.settings()) as (store, now):
        records = store.deletion.records(limit)
    output.listing(
        as_json,
        records,
        ("#ID", "When", "What", "Platform", "#Items", "By", "Reason", "Finished"),
        lambda record: (
            record.id,
            output.when(record.forgotten_at, now),
            record.what,
            record.platform,
            record.item_count,
            record.forgotten_by,
            record.reason,
            record.is_finished,
        ),
        empty=("nothing has been deleted permanently", ""),
    )
