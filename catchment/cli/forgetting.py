"""`forget`, `forgotten`: what must leave the archive for good, and the record that it did."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, ItemId, Limit
from catchment.errors import InvalidInput

if TYPE_CHECKING:
    from catchment.store import Store
    from catchment.store.forgetting import Forget

app = typer.Typer(help="Forget an item or an author for good.", no_args_is_help=True)

Reason = Annotated[str | None, typer.Option(metavar="WORDS", help="Why; kept with the record.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]

STILL = (
    "Backups, exports, and copies that other programs fetched still hold it: delete or mend those yourself. "
    "The sources' kept answers are gone, too, and cannot be read again."
)


@app.command()
def item(item_id: ItemId, reason: Reason = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Forget one item.

    With its revisions, counters, index entries, quotes, events, and the kept answers of the sources that showed it.
    It is not collected again; that it was forgotten is recorded, without its content.
    """
    from catchment.store.forgetting import Forget

    with doors.opened_store(doors.settings()) as (store, now):
        platform = store.forgetting.platform_of(item_id)
        wanted = Forget("item", platform, by=_who(), reason=reason, item_id=item_id)
        _forget(store, wanted, f"item {item_id}", now, yes, as_json)


@app.command()
def author(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="Where: feeds, hackernews …")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The author's name or id there.")],
    reason: Reason = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Forget an author on a platform.

    All items of that name or id, whatever the case of its letters, as with `forget item`; what others quoted of them
    loses its text and the name. Nothing of them is collected again.
    """
    from catchment.platforms import installed
    from catchment.store.forgetting import Forget

    if not name.strip():
        raise InvalidInput("an author has a name", field="name")
    with doors.opened_store(doors.settings()) as (store, now):
        # A slip would forget nobody, and look like success.
        installed().named(platform, *store.forgetting.followed_on(platform))
        wanted = Forget("author", platform, by=_who(), reason=reason, author=name)
        count = showing.counted(store.forgetting.count(wanted), "item")
        _forget(store, wanted, f"{name} on {platform} ({count})", now, yes, as_json)


def _who() -> str:
    import getpass

    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"


def _forget(store: Store, wanted: Forget, shown: str, now: datetime, yes: bool, as_json: bool) -> None:
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InvalidInput("forgetting cannot be undone", "give --yes", field="yes")
        typer.confirm(f"Forget {showing.plain(shown)} for good?", abort=True)
    from catchment.collect.forgetting import forget_for_good

    is_shown = showing.is_watched() and not as_json
    with doors.opened_hot(doors.settings(), store) as hot, showing.bar("forgetting", None, is_shown=is_shown) as bar:
        record = forget_for_good(store, hot, wanted, now, bar.move)
    if as_json:
        showing.document(record | {"still_held": STILL})
        return
    showing.say(
        f"forgotten: {showing.counted(record['item_count'], 'item')}, "
        f"{showing.counted(record['revision_count'], 'revision')}, "
        f"{showing.counted(record['answer_count'], 'kept answer')}, {showing.counted(record['event_count'], 'event')}"
    )
    showing.note(STILL)


def forgotten(limit: Limit = 100, as_json: AsJson = False) -> None:
    """List what was forgotten: when, by whom, why.

    Without content or names; with --json one list.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        found = store.forgetting.records(limit)
    if as_json:
        showing.document(found)
        return
    showing.table(
        ("#id", "when", "what", "platform", "#items", "by", "reason", "finished"), (_row(one, now) for one in found)
    )


def _row(one: dict[str, Any], now: datetime) -> tuple[object, ...]:
    told = (one["what"], one["platform"], one["item_count"], one["forgotten_by"], one["reason"], one["is_finished"])
    return one["id"], showing.when(one["forgotten_at"], now), *told
