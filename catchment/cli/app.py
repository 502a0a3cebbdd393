"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from catchment import __version__
from catchment.cli import (
    alerting,
    auditing,
    collecting,
    covering,
    credentials,
    demo,
    doctor,
    exporting,
    forgetting,
    hot,
    keeping,
    measuring,
    planning,
    reading,
    reparsing,
    searching,
    sources,
    state,
    tiers,
    watches,
    webhooks,
)
from catchment.cli.failing import EPILOG

app = typer.Typer(
    name="catchment",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"catchment {__version__}")
        raise typer.Exit


@app.callback()
def catchment(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Keeps a complete, deduplicated, versioned copy of the public conversations you follow.

    Settings come from the environment, from .env or from catchment.toml; docs/settings.md lists them.
    """


app.command()(collecting.serve)
app.command(epilog=EPILOG)(collecting.collect)
app.command()(demo.demo)
app.add_typer(sources.app, name="sources")
app.command()(reading.items)
app.command()(reading.show)
app.command()(reading.changes)
app.command()(searching.search)
app.command()(reading.revisions)
app.command()(reading.gaps)
app.command()(covering.coverage)
app.command()(exporting.export)
app.command()(reparsing.reparse)
app.command()(tiers.tiers)
app.command()(state.status)
app.command()(measuring.metrics)
app.command()(planning.plan)
app.command()(alerting.alerts)
app.command()(doctor.doctor)
app.command()(keeping.migrate)
app.command()(keeping.backup)
app.command()(keeping.restore)
app.add_typer(credentials.app, name="credentials")
app.command(name="security-audit")(auditing.security_audit)
app.add_typer(watches.app, name="watches")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(forgetting.app, name="forget")
app.command()(forgetting.forgotten)
app.add_typer(hot.app, name="hot")
