"""The entry point, and the table of commands. The module of a command is imported when that command runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from catchment import __version__
from catchment.cli import errors, output
from catchment.installation import NAME, command


class Entry(NamedTuple):
    """A command: its summary, which help and completion show without importing it, and its function as
    `module:function`. The function's docstring holds the rest of the help."""

    summary: str
    function: str = ""
    context_settings: dict[str, Any] | None = None


_GC_THRESHOLD = 50_000
"""How many new objects start the garbage collector. Python's 700 makes it run hundreds of times while the modules of a
command are imported, and with every page of items. Nearly nothing that we make needs it: counting references frees it.
"""
_WORDS_WITH_MINUS = {"ignore_unknown_options": True}
"""A word may begin with a minus sign: an unknown option is taken as a word."""

COMMANDS: dict[str, Entry] = {
    "serve": Entry("Run the web server and the collector.", "collect:serve"),
    "collect": Entry("Collect sources now.", "collect:collect"),
    "worker": Entry("Run tasks of the distributed engine.", "workers:worker"),
    "beat": Entry("Send due work to the distributed engine's workers.", "workers:beat"),
    "demo": Entry("Watch catchment at work on a simulated internet.", "demo:demo"),
    "sources": Entry("Add, list, change, import and export sources."),
    "sources add": Entry("Add a source.", "sources_edit:add", _WORDS_WITH_MINUS),
    "sources list": Entry("List sources and their state.", "sources:list_sources"),
    "sources show": Entry("Show a source in detail.", "sources:show"),
    "sources set": Entry("Change a source.", "sources_edit:change"),
    "sources pause": Entry("Stop collecting a source until it is resumed.", "sources_edit:pause"),
    "sources resume": Entry("Collect a source again.", "sources_edit:resume"),
    "sources remove": Entry("Remove a source; its items are kept.", "sources_edit:remove"),
    "sources import": Entry("Add all sources of a list.", "sources_edit:import_list"),
    "sources export": Entry("Write all sources to a list.", "sources_edit:export_list"),
    "items": Entry("List stored items, newest first.", "items:items"),
    "show": Entry("Show an item as it is, or as it was.", "items:show"),
    "changes": Entry("List new and changed items, oldest change first.", "items:changes"),
    "search": Entry("Search items by their words, newest first.", "items:search"),
    "revisions": Entry("Show the edit history of an item.", "items:revisions"),
    "gaps": Entry("List periods with missing items.", "items:gaps"),
    "audit": Entry("Find and repair missing floors of threads, and gaps in time.", "audit:audit"),
    "coverage": Entry("Show for which periods a source is complete.", "reports:coverage"),
    "export": Entry("Export items to a file.", "items:export"),
    "reparse": Entry("Parse stored answers again with the current parser.", "maintenance:reparse"),
    "tiers": Entry("Show how active communities are, and their tiers.", "communities:tiers"),
    "status": Entry("Show the state of the deployment.", "status:status"),
    "metrics": Entry("Show collection figures by hour or by day.", "reports:metrics"),
    "plan": Entry("Show whether the request budgets cover all sources.", "status:plan"),
    "alive": Entry("Check that serve, beat or a worker is working.", "workers:alive"),
    "spending": Entry("Show spending by service, credential and source.", "spending:spending"),
    "alerts": Entry("List alerts, newest first.", "reports:alerts"),
    "doctor": Entry("Check this installation for problems.", "maintenance:doctor"),
    "migrate": Entry("Upgrade the database schema.", "maintenance:migrate"),
    "backup": Entry("Copy a SQLite database to a file.", "maintenance:backup"),
    "restore": Entry("Replace the database with a backup.", "maintenance:restore"),
    "move": Entry("Move the archive to another database.", "move:move"),
    "login-link": Entry("Create a sign-in link.", "access:login_link"),
    "keys": Entry("List, add and revoke API keys."),
    "keys list": Entry("List API keys and when they were last used.", "access:list_keys"),
    "keys add": Entry("Create an API key and print it once.", "access:add_key"),
    "keys revoke": Entry("Revoke an API key.", "access:revoke_key"),
    "sessions": Entry("List and end browser sessions."),
    "sessions list": Entry("List the browsers that are signed in.", "access:list_sessions"),
    "sessions end": Entry("Sign out one browser, or all of them.", "access:end_sessions"),
    "credentials": Entry("Manage cookies and tokens for platforms."),
    "credentials add": Entry("Store a secret, which is read from stdin.", "credentials:add"),
    "credentials list": Entry("List credentials and their state.", "credentials:list_credentials"),
    "credentials show": Entry("Show a credential and its history.", "credentials:show"),
    "credentials change": Entry("Change priority, daily limit, expiry or hosts.", "credentials:change"),
    "credentials pause": Entry("Stop using a credential until it is resumed.", "credentials:pause"),
    "credentials resume": Entry("Use a credential again.", "credentials:resume"),
    "credentials test": Entry("Test a credential with its platform.", "credentials:check"),
    "credentials remove": Entry("Delete a credential.", "credentials:remove"),
    "credentials new-key": Entry("Create a master key and print it.", "credentials:new_key"),
    "credentials rotate-key": Entry("Encrypt all secrets with a new master key.", "credentials:rotate_key"),
    "security-audit": Entry("Search for secrets stored in plain text.", "maintenance:security_audit"),
    "watches": Entry("Watch new items for keywords."),
    "watches add": Entry("Watch new items for keywords.", "watches:add", _WORDS_WITH_MINUS),
    "watches list": Entry("List watches and how often they matched.", "watches:list_watches"),
    "watches show": Entry("Show a watch and its latest matches.", "watches:show"),
    "watches try": Entry("Test keywords on the latest items.", "watches:try_words", _WORDS_WITH_MINUS),
    "watches pause": Entry("Pause a watch.", "watches:pause"),
    "watches resume": Entry("Resume a watch; it applies to new items only.", "watches:resume"),
    "watches remove": Entry("Remove a watch and its matches; items are kept.", "watches:remove"),
    "webhooks": Entry("Send events to other programs."),
    "webhooks add": Entry("Send events to a URL from now on.", "webhooks:add"),
    "webhooks list": Entry("List webhooks and Python hooks.", "webhooks:list_webhooks"),
    "webhooks test": Entry("Send a test event now.", "webhooks:send_test"),
    "webhooks pause": Entry("Stop delivering events until resumed.", "webhooks:pause"),
    "webhooks resume": Entry("Deliver events again, from where it stopped.", "webhooks:resume"),
    "webhooks remove": Entry("Remove a webhook and its secret.", "webhooks:remove"),
    "notifications": Entry("Notify people of alerts and matches by chat or mail."),
    "notifications add": Entry("Notify an address, which is read from stdin.", "notifications:add"),
    "notifications list": Entry("List notifications and their state.", "notifications:list_notifications"),
    "notifications test": Entry("Send a test message now.", "notifications:send_test"),
    "notifications pause": Entry("Send no messages until resumed.", "notifications:pause"),
    "notifications resume": Entry("Send messages again, from where it stopped.", "notifications:resume"),
    "notifications remove": Entry("Remove a notification and its address.", "notifications:remove"),
    "tasks": Entry("Show and cancel requested collections."),
    "tasks list": Entry("List the tasks of the last 24 hours.", "tasks:list_tasks"),
    "tasks show": Entry("Show a task and the result of each target.", "tasks:show"),
    "tasks cancel": Entry("Cancel a task.", "tasks:cancel"),
    "forget": Entry("Delete an item or an author permanently."),
    "forget item": Entry("Delete an item permanently.", "maintenance:item"),
    "forget author": Entry("Delete everything by an author permanently.", "maintenance:author"),
    "forgotten": Entry("List permanent deletions.", "maintenance:forgotten"),
    "hot": Entry("Inspect and clear the cache."),
    "hot status": Entry("Show the size and hit rate of the cache.", "communities:cache_status"),
    "hot list": Entry("List cached posts of a community.", "communities:cached_items"),
    "hot clear": Entry("Remove expired entries from the cache.", "communities:clear_cache"),
    "settings": Entry("Change settings that are stored in the database."),
    "settings intervals": Entry("Show or set the collection interval of kinds.", "maintenance:intervals"),
}
"""All commands by their words, in the order of the help. One without a function is a group."""


def main() -> None:
    """The console script."""
    # What a start imports stays until the end: the collector need not look at it again and again.
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Every failure is reported in one line."""
    try:
        code = commands()(args=list(arguments), prog_name=command(), standalone_mode=False)
    except SystemExit as left:
        # From the libraries, for a broken pipe: they have silenced stdout already.
        code = left.code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 — the outermost handler: users get no stack trace
        code = errors.report(error, as_json="--json" in arguments)
    return output.flushed(code if isinstance(code, int) else 0)


app = typer.Typer(
    name=NAME,
    epilog=errors.EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


@app.callback()
def catchment(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Keeps a complete, deduplicated, versioned copy of the public conversations you follow.

    Settings are read from the environment, .env or catchment.toml; docs/settings.md lists them.
    """


@cache
def commands(*, is_loaded: bool = False) -> Any:
    """The command tree. With `is_loaded`, all modules are imported: for the documentation and for tests."""
    root: Any = get_command(app)
    groups: dict[str, Any] = {"": root}
    for words, entry in COMMANDS.items():
        parent, _, name = words.rpartition(" ")
        if entry.function:
            lazy = LazyCommand(name, entry)
            command: Any = lazy.load() if is_loaded else lazy
        else:
            command = TyperGroup(name=name, help=entry.summary, no_args_is_help=True, rich_markup_mode=None)
            groups[name] = command
        groups[parent].add_command(command)
    return root


class LazyCommand(TyperCommand):
    """Stands for a command whose module is imported when it is called."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.summary)
        self._entry = entry

    def load(self) -> Any:
        module, _, attribute = self._entry.function.partition(":")
        function = getattr(import_module(f"catchment.cli.commands.{module}"), attribute)
        text = "\n\n".join(filter(None, (self._entry.summary, getdoc(function))))
        single = typer.Typer(rich_markup_mode=None, add_completion=False)
        single.command(self.name, help=text, context_settings=self._entry.context_settings)(function)
        return get_command(single)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent, **extra)
